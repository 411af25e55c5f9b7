//! What a person sees while a run goes on: two progress lines on a terminal, plain lines elsewhere,
//! JSON lines on request, or nothing.
//!
//! Events arrive on the conductor's thread between phases. The lines are redrawn four times a
//! second by a thread of their own that reads one counter of the engine; the workers never wait for
//! it.

use std::{
    cell::RefCell,
    io::IsTerminal,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use engine::Progress;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use model::{Nanos, record::Outcome};
use serde_json::json;

use crate::{cli::View, conductor::events::Event, output};

/// Shows a run.
pub(crate) struct Screen {
    form: Form,
    state: RefCell<State>,
}

enum Form {
    Quiet,
    Json,
    Plain,
    Live(Live),
}

/// What the plain and the live form count.
#[derive(Default)]
struct State {
    trials_least: usize,
    done_before: usize,
    done: usize,
    failed: usize,
    started: Option<Instant>,
    current: String,
}

struct Live {
    all: MultiProgress,
    plan: ProgressBar,
    trial: ProgressBar,
    phase: ProgressBar,
    stop: Arc<AtomicBool>,
    redraw: Option<JoinHandle<()>>,
}

impl Screen {
    /// The form that the options and the terminal ask for; `progress` is the current phase's.
    pub(crate) fn new(view: &View, progress: &Progress) -> Self {
        let form = match (view.quiet, view.json, std::io::stderr().is_terminal()) {
            (true, ..) => Form::Quiet,
            (_, true, _) => Form::Json,
            (_, _, true) => Form::Live(Live::start(progress.clone())),
            (_, _, false) => Form::Plain,
        };
        Self { form, state: RefCell::default() }
    }

    /// Takes note of an event.
    pub(crate) fn show(&self, event: &Event<'_>) {
        self.count(event);
        match &self.form {
            Form::Quiet => {}
            Form::Json => output::message(&json_line(event).to_string()),
            Form::Plain => {
                if let Some(line) = self.line(event) {
                    output::message(&line);
                }
            }
            Form::Live(live) => self.live(live, event),
        }
    }

    fn count(&self, event: &Event<'_>) {
        let mut state = self.state.borrow_mut();
        match event {
            Event::Planned { trials } => state.trials_least = *trials,
            Event::RunStarted { done, .. } => {
                (state.done, state.done_before) = (*done, *done);
                state.started = Some(Instant::now());
            }
            Event::TrialStarted { filesystem, label, repeat } => {
                state.current = format!("{filesystem} · {label} · repeat {}", repeat + 1);
            }
            Event::TrialEnded { outcome, .. } => {
                state.done += 1;
                state.trials_least = state.trials_least.max(state.done);
                state.failed += usize::from(**outcome != Outcome::Measured);
            }
            Event::Skipped { .. }
            | Event::PhaseStarted { .. }
            | Event::PhaseEnded { .. }
            | Event::CellDone { .. }
            | Event::RunEnded { .. } => {}
        }
    }

    /// The line for people whose stderr is a file.
    fn line(&self, event: &Event<'_>) -> Option<String> {
        let state = self.state.borrow();
        Some(match event {
            Event::RunStarted { run_file, storage, done } => {
                let resumed =
                    if *done > 0 { format!(", {done} kept already") } else { String::new() };
                format!("measuring on {storage}{resumed}, into {}", run_file.display())
            }
            Event::Skipped { filesystem, reason } => format!("skipped {filesystem}: {reason}"),
            Event::TrialEnded { filesystem, label, repeat, elapsed, outcome } => {
                let outcome = match outcome {
                    Outcome::Measured => String::new(),
                    Outcome::Failed { reason } => format!(" FAILED: {reason}"),
                };
                format!(
                    "[{}/{}+] {filesystem} · {label} · repeat {} in {}{}{outcome}",
                    state.done,
                    state.trials_least,
                    repeat + 1,
                    report::duration(*elapsed),
                    state.remaining(),
                )
            }
            Event::CellDone { filesystem, label, rule } => {
                format!("done {filesystem} · {label}: {rule}")
            }
            Event::RunEnded { elapsed, .. } => {
                let plural = if state.done == 1 { "" } else { "s" };
                format!("{} trial{plural} in {}", state.done, report::duration((*elapsed).into()))
            }
            Event::Planned { .. }
            | Event::TrialStarted { .. }
            | Event::PhaseStarted { .. }
            | Event::PhaseEnded { .. } => return None,
        })
    }

    fn live(&self, live: &Live, event: &Event<'_>) {
        match event {
            Event::RunStarted { .. } | Event::Skipped { .. } | Event::CellDone { .. } => {
                live.say(self.line(event));
            }
            Event::TrialEnded { outcome, .. } if **outcome != Outcome::Measured => {
                live.say(self.line(event));
            }
            Event::PhaseStarted { name } => live.phase.set_prefix((*name).to_owned()),
            Event::RunEnded { .. } => {
                live.clear();
                live.say(self.line(event));
                return;
            }
            Event::Planned { .. }
            | Event::TrialStarted { .. }
            | Event::TrialEnded { .. }
            | Event::PhaseEnded { .. } => {}
        }
        let state = self.state.borrow();
        live.plan.set_length(state.trials_least as u64);
        live.plan.set_position(state.done as u64);
        live.trial.set_prefix(state.current.clone());
        live.plan.set_message(state.remaining());
    }
}

impl State {
    /// Time to go if the cells need no more than the least number of repeats; empty until a trial
    /// of this start has ended.
    fn remaining(&self) -> String {
        let measured = self.done - self.done_before;
        let (Some(started), 1..) = (self.started, measured) else { return String::new() };
        let left = self.trials_least.saturating_sub(self.done);
        let per_trial = started.elapsed() / u32::try_from(measured).unwrap_or(u32::MAX);
        let time = Nanos::from(per_trial * u32::try_from(left).unwrap_or(u32::MAX));
        match left {
            0 => String::new(),
            _ => format!(", about {} to go", report::duration(time)),
        }
    }
}

impl Live {
    fn start(progress: Progress) -> Self {
        let all = MultiProgress::new();
        let style = |template: &str| {
            ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("━╸─")
        };
        let plan = all.add(ProgressBar::new(0));
        plan.set_style(style("{bar:30} {pos}/{len}+ trials in {elapsed}{msg}"));
        let trial = all.add(ProgressBar::new(0));
        trial.set_style(style("{prefix}"));
        let phase = all.add(ProgressBar::new(0));
        phase.set_style(style("{bar:30} {prefix}{msg}"));
        let stop = Arc::new(AtomicBool::new(false));
        let redraw = std::thread::spawn({
            let (stop, plan, phase) = (Arc::clone(&stop), plan.clone(), phase.clone());
            move || redraw(&stop, &plan, &phase, &progress)
        });
        Self { all, plan, trial, phase, stop, redraw: Some(redraw) }
    }

    /// Ends the redrawing first, which would bring a line back.
    fn clear(&self) {
        self.stop.store(true, Ordering::Relaxed);
        for line in [&self.plan, &self.trial, &self.phase] {
            line.finish_and_clear();
        }
    }

    fn say(&self, line: Option<String>) {
        if let Some(line) = line {
            // A terminal that is gone is no reason to stop measuring.
            let _gone = self.all.println(line);
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

/// Redraws the phase's bar with its throughput over the last quarter second.
fn redraw(stop: &AtomicBool, plan: &ProgressBar, phase: &ProgressBar, progress: &Progress) {
    let interval = Duration::from_millis(250);
    let mut before = (Instant::now(), 0);
    loop {
        std::thread::sleep(interval);
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let (now, snapshot) = (Instant::now(), progress.snapshot());
        let moved = snapshot.done.0.saturating_sub(before.1);
        #[expect(clippy::cast_precision_loss, reason = "a figure to look at")]
        let rate = moved as f64 / now.duration_since(before.0).as_secs_f64();
        let message =
            if moved > 0 { format!("  {}", report::bandwidth(rate)) } else { String::new() };
        before = (now, snapshot.done.0);
        phase.set_length(snapshot.total.0.max(1));
        phase.set_position(snapshot.done.0);
        phase.set_message(message);
        plan.tick();
    }
}

fn json_line(event: &Event<'_>) -> serde_json::Value {
    match event {
        Event::RunStarted { run_file, storage, done } => json!({
            "event": "run_started", "run_file": run_file, "storage": storage, "done": done,
        }),
        Event::Planned { trials } => json!({ "event": "planned", "trials_least": trials }),
        Event::Skipped { filesystem, reason } => json!({
            "event": "skipped", "filesystem": filesystem, "reason": reason,
        }),
        Event::TrialStarted { filesystem, label, repeat } => json!({
            "event": "trial_started", "filesystem": filesystem, "workload": label,
            "repeat": repeat,
        }),
        Event::PhaseStarted { name } => json!({ "event": "phase_started", "phase": name }),
        Event::PhaseEnded { name, metric, value } => json!({
            "event": "phase_ended", "phase": name, "metric": metric.name(),
            "unit": metric.spec().unit.name(), "value": value,
        }),
        Event::TrialEnded { filesystem, label, repeat, elapsed, outcome } => json!({
            "event": "trial_ended", "filesystem": filesystem, "workload": label,
            "repeat": repeat, "elapsed_ns": elapsed, "outcome": outcome,
        }),
        Event::CellDone { filesystem, label, rule } => json!({
            "event": "cell_done", "filesystem": filesystem, "workload": label, "rule": rule,
        }),
        Event::RunEnded { tally, elapsed } => json!({
            "event": "run_ended", "done": tally.done, "skipped": tally.skipped,
            "failed": tally.failed, "interrupted": tally.interrupted,
            "elapsed_ns": Nanos::from(*elapsed),
        }),
    }
}
