//! Progress display: progress lines on a terminal, plain lines otherwise, JSON lines on request, or
//! nothing. A plan shows the number of trials; a single workload shows its rate.
//!
//! On a terminal the scoreboard of the report is shown as it fills ([`board`]).
//!
//! Events arrive on the thread of the runner between phases. A dedicated thread reads counters of
//! the engine and redraws the lines four times per second; workers never wait for it.

mod board;
mod gauge;
mod json;
mod watcher;

use std::{
    cell::RefCell,
    io::IsTerminal,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Instant,
};

use engine::Progress;
use gauge::Gauge;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use model::{Nanos, Ratio, record::Outcome, units::plural};
use watcher::{INTERVAL, Watcher};

use crate::{
    cli::View,
    output,
    runner::events::{Event, Extent, Forecast, Remaining, RunProgress},
};

/// Display of a run.
pub(crate) struct Screen {
    form: OutputMode,
    state: RefCell<State>,
}

enum OutputMode {
    Quiet,
    Json,
    Plain,
    Live(Live),
    /// Single workload: one line per phase; on a terminal a live line during the phase.
    One(Option<Gauge>),
}

/// State shown by the plain and the live mode.
#[derive(Default)]
struct State {
    /// Trials that were stored before.
    stored: usize,
    /// Stored trials, and the estimate of the rest.
    done: usize,
    remaining: Remaining,
    current: String,
}

struct Live {
    all: MultiProgress,
    board: ProgressBar,
    plan: ProgressBar,
    trial: ProgressBar,
    phase: ProgressBar,
    progress: Progress,
    /// Start of the current phase.
    since: Arc<Mutex<Instant>>,
    stop: Arc<AtomicBool>,
    redraw: Option<JoinHandle<()>>,
}

impl Screen {
    /// Selects the mode from the options and the terminal; `progress` is that of the current phase.
    pub(crate) fn new(view: &View, progress: &Progress) -> Self {
        let form = match (view.quiet, view.json, std::io::stderr().is_terminal()) {
            (true, ..) => OutputMode::Quiet,
            (_, true, _) => OutputMode::Json,
            (_, _, true) => OutputMode::Live(Live::start(progress.clone())),
            (_, _, false) => OutputMode::Plain,
        };
        Self { form, state: RefCell::default() }
    }

    /// The same for a single workload.
    pub(crate) fn of_one(view: &View, progress: &Progress, workload: &str) -> Self {
        let form = match (view.quiet, view.json) {
            (true, _) => OutputMode::Quiet,
            (_, true) => OutputMode::Json,
            (_, false) => {
                let terminal = std::io::stderr().is_terminal();
                OutputMode::One(terminal.then(|| Gauge::start(progress.clone(), workload)))
            }
        };
        Self { form, state: RefCell::default() }
    }

    /// Processes an event.
    pub(crate) fn show(&self, event: &Event<'_>) {
        self.count(event);
        match &self.form {
            OutputMode::Quiet => {}
            OutputMode::Json => output::event(&json::line(event)),
            OutputMode::Plain => {
                if let Some(line) = self.line(event) {
                    output::message(&line);
                }
            }
            OutputMode::Live(live) => self.live(live, event),
            OutputMode::One(gauge) => {
                let line = self.line_of_one(event);
                match gauge {
                    Some(gauge) => gauge.show(event, line),
                    None => line.iter().for_each(|line| output::message(line)),
                }
            }
        }
    }

    /// Line of a single workload: one per measured phase.
    fn line_of_one(&self, event: &Event<'_>) -> Option<String> {
        let state = self.state.borrow();
        match event {
            Event::PhaseEnded { name, metric, value } => {
                let metric_name = metric.name().replace('_', " ");
                let place = match state.remaining.least.trials {
                    0 | 1 => String::new(),
                    all => format!("[{}/{all}] ", state.done + 1),
                };
                Some(format!("{place}{name}: {metric_name} {}", report::quantity(*metric, *value)))
            }
            Event::TrialEnded { outcome, .. } if **outcome != Outcome::Measured => self.line(event),
            Event::Skipped { .. } => self.line(event),
            Event::RunStarted { .. }
            | Event::Progress(_)
            | Event::TrialStarted { .. }
            | Event::PhaseStarted { .. }
            | Event::TrialEnded { .. }
            | Event::CellDone { .. }
            | Event::Forecast(_)
            | Event::RunEnded { .. } => None,
        }
    }

    fn count(&self, event: &Event<'_>) {
        let mut state = self.state.borrow_mut();
        match event {
            Event::RunStarted { done, .. } => state.stored = *done,
            Event::Progress(RunProgress { done, remaining, .. }) => {
                (state.done, state.remaining) = (*done, *remaining);
            }
            Event::TrialStarted { filesystem, label, aa_duplicate, repetition } => {
                state.current = format!(
                    "{} · repetition {}",
                    cell(filesystem, label, *aa_duplicate),
                    repetition + 1
                );
            }
            Event::TrialEnded { .. }
            | Event::Skipped { .. }
            | Event::PhaseStarted { .. }
            | Event::PhaseEnded { .. }
            | Event::CellDone { .. }
            | Event::Forecast(_)
            | Event::RunEnded { .. } => {}
        }
    }

    /// Line for a stderr that is not a terminal.
    fn line(&self, event: &Event<'_>) -> Option<String> {
        let state = self.state.borrow();
        Some(match event {
            Event::RunStarted { run_file, storage, done } => {
                let resumed =
                    if *done > 0 { format!(", {done} already stored") } else { String::new() };
                format!("measuring on {storage}{resumed}, into {}", run_file.display())
            }
            Event::Skipped { filesystem, reason } => format!("skipped {filesystem}: {reason}"),
            Event::TrialEnded { filesystem, label, aa_duplicate, repetition, elapsed, outcome } => {
                let outcome = match outcome {
                    Outcome::Measured => String::new(),
                    Outcome::Failed { reason } => format!("; FAILED: {reason}"),
                    Outcome::Invalid { reason } => format!("; invalid, rerun: {reason}"),
                };
                format!(
                    "[{}/{}] {} · repetition {} in {}{}{outcome}",
                    state.done,
                    total(&state.remaining),
                    cell(filesystem, label, *aa_duplicate),
                    repetition + 1,
                    report::duration(*elapsed),
                    left(&state.remaining),
                )
            }
            Event::CellDone { filesystem, label, aa_duplicate, reason } => {
                format!("closed {}: {reason}", cell(filesystem, label, *aa_duplicate))
            }
            Event::Forecast(forecast) => forecast_line(forecast),
            Event::RunEnded { tally, elapsed } => {
                let trials = plural(state.done.saturating_sub(state.stored) as u64, "trial");
                let invalid = match tally.invalid {
                    0 => String::new(),
                    many => format!(", {many} of them invalid"),
                };
                let time = report::duration((*elapsed).into());
                format!("{trials} in {time}{invalid}")
            }
            Event::Progress(_)
            | Event::TrialStarted { .. }
            | Event::PhaseStarted { .. }
            | Event::PhaseEnded { .. } => return None,
        })
    }

    fn live(&self, live: &Live, event: &Event<'_>) {
        match event {
            Event::RunStarted { .. }
            | Event::Skipped { .. }
            | Event::Forecast(_)
            | Event::CellDone { .. } => {
                live.say(self.line(event));
            }
            Event::TrialEnded { outcome, .. } if **outcome != Outcome::Measured => {
                live.say(self.line(event));
            }
            Event::PhaseStarted { name, .. } => {
                live.progress.clear();
                live.phase.set_prefix(output::line(name));
                *live.since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            }
            Event::RunEnded { .. } => {
                live.clear();
                live.say(self.line(event));
                return;
            }
            Event::Progress(progress) => {
                if let Some((rows, columns)) = output::screen() {
                    live.board.set_message(output::plain(&board::text(progress, rows, columns)));
                }
            }
            Event::TrialStarted { .. } | Event::TrialEnded { .. } | Event::PhaseEnded { .. } => {}
        }
        let state = self.state.borrow();
        let expected = state.remaining.expected.unwrap_or(state.remaining.least);
        live.plan.set_length(expected.trials.max(state.done) as u64);
        live.plan.set_position(state.done as u64);
        live.plan.set_prefix(format!("{} of {} trials", state.done, total(&state.remaining)));
        live.plan.set_message(left(&state.remaining));
        live.trial.set_prefix(output::line(&state.current));
    }
}

/// Cell as text.
fn cell(filesystem: &str, label: &str, aa_duplicate: bool) -> String {
    let aa_duplicate = if aa_duplicate { " (A/A duplicate)" } else { "" };
    format!("{filesystem}{aa_duplicate} · {label}")
}

/// Forecast as text.
fn forecast_line(forecast: &Forecast) -> String {
    let Forecast { least, expected, most, time, over_time_limit, .. } = forecast;
    let trials = |n: usize| plural(n as u64, "trial");
    let trials = match (least, most) {
        _ if *over_time_limit => format!("about {} until the time limit", trials(*expected)),
        (least, most) if least == most => trials(*least),
        (least, most) => format!("{least} to {most} trials, {expected} expected"),
    };
    let too_few = *over_time_limit && forecast.detectable.is_none();
    let too_few = if too_few { "; too few repetitions per cell for comparisons" } else { "" };
    let percent = |ratio: Ratio| format!("{:.1} %", ratio.0 * 100.0);
    let difference = forecast.detectable.as_ref().map(|detectable| {
        let (median, worst) = (percent(detectable.median), percent(detectable.worst));
        format!(
            "; detectable difference: {median} (median over tests), {worst} at most ({})",
            detectable.at
        )
    });
    format!(
        "forecast: {trials}, about {} more{too_few}{}",
        report::duration(*time),
        difference.unwrap_or_default()
    )
}

/// Number of trials of the run: `40` if it is fixed, `~40` as forecast, `24+` before the forecast.
fn total(remaining: &Remaining) -> String {
    let Remaining { least, expected, most } = remaining;
    match expected {
        _ if least.trials == most.trials => least.trials.to_string(),
        Some(expected) => format!("~{}", expected.trials),
        None => format!("{}+", least.trials),
    }
}

/// Time left: `, about 12 min left, at most 31 min`. Before the forecast, the range; empty if the
/// duration of a trial is not known yet or none follows.
fn left(remaining: &Remaining) -> String {
    let Remaining { least, expected, most } = remaining;
    let Extent { time: longest, .. } = most;
    if longest.0 == 0 {
        return String::new();
    }
    let longest = roughly(*longest);
    match expected.map(|expected| roughly(expected.time)) {
        Some(expected) if expected == longest => format!(", about {expected} left"),
        Some(expected) => format!(", about {expected} left, at most {longest}"),
        None if roughly(least.time) == longest => format!(", about {longest} left"),
        None => format!(", {} to {longest} left", roughly(least.time)),
    }
}

/// Duration of a forecast: `40 s`, `12 min`, `2 h 05 min`.
fn roughly(time: Nanos) -> String {
    let seconds = time.0.div_ceil(1_000_000_000);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

impl Live {
    fn start(progress: Progress) -> Self {
        let all = MultiProgress::new();
        let board = all.add(ProgressBar::new(0));
        board.set_style(style("{msg}"));
        let plan = all.add(ProgressBar::new(0));
        plan.set_style(style("{bar:12} {prefix} in {elapsed}{msg}"));
        let trial = all.add(ProgressBar::new(0));
        trial.set_style(style("{prefix}"));
        let phase = all.add(ProgressBar::new(0));
        phase.set_style(style(BAR));
        let stop = Arc::new(AtomicBool::new(false));
        let since = Arc::new(Mutex::new(Instant::now()));
        let redraw = std::thread::spawn({
            let (stop, plan, phase) = (Arc::clone(&stop), plan.clone(), phase.clone());
            let (since, progress) = (Arc::clone(&since), progress.clone());
            move || redraw(&stop, &plan, &phase, &since, &progress)
        });
        Self { all, board, plan, trial, phase, progress, since, stop, redraw: Some(redraw) }
    }

    /// Ends the redrawing first, because it would restore the line.
    fn clear(&self) {
        self.stop.store(true, Ordering::Relaxed);
        for line in [&self.board, &self.plan, &self.trial, &self.phase] {
            line.finish_and_clear();
        }
    }

    fn say(&self, line: Option<String>) {
        if let Some(line) = line {
            // A closed terminal does not stop the measurement.
            let _gone = self.all.println(output::wrapped(&line));
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
        if let Some(redraw) = self.redraw.take() {
            let _panicked = redraw.join();
        }
    }
}

/// Redraws the line of the phase: a bar if the amount of work is known, otherwise the elapsed time.
/// If the operations of the phase are not counted live, this time starts at the announcement of the
/// phase.
fn redraw(
    stop: &AtomicBool,
    plan: &ProgressBar,
    phase: &ProgressBar,
    since: &Mutex<Instant>,
    progress: &Progress,
) {
    let _not_the_workload = rig::MonitorThread::new();
    let mut watcher = Watcher::default();
    let mut bar = true;
    loop {
        std::thread::sleep(INTERVAL);
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let snapshot = progress.snapshot();
        let reading = watcher.poll(Instant::now(), snapshot);
        if bar != (snapshot.total.0 > 0) {
            bar = !bar;
            phase.set_style(style(if bar { BAR } else { TIME }));
        }
        let rate = reading.map_or(0.0, |reading| reading.bytes_per_second);
        let since = *since.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = reading.map_or_else(|| since.elapsed(), |reading| reading.elapsed);
        let mut message = String::new();
        if !bar {
            message.push_str(&format!("  {}", report::duration(elapsed.into())));
        }
        if rate > 0.0 {
            message.push_str(&format!("  {}", report::bandwidth(rate)));
        }
        phase.set_length(snapshot.total.0.max(1));
        phase.set_position(snapshot.done.0);
        phase.set_message(message);
        plan.tick();
    }
}

/// Line styles of a phase with a known amount of work, and of one that ends by time.
const BAR: &str = "{bar:30} {prefix}{msg}";
const TIME: &str = "{prefix}{msg}";

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸─")
}

#[cfg(test)]
mod tests;
