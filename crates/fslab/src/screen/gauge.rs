//! Live line of a single workload: time, rates, and the last seconds as a row of small bars.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use engine::{Progress, Snapshot};
use indicatif::{ProgressBar, ProgressStyle};
use model::{Metric, Nanos};

use super::watcher::{INTERVAL, Reading, Watcher};
use crate::{output, runner::events::Event};

/// Samples in the row of small bars: six seconds.
const LOOKS: usize = 24;

/// Bar characters from zero to the maximum.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The line, and the thread that redraws it.
pub(super) struct Gauge {
    line: ProgressBar,
    progress: Progress,
    current: Arc<Mutex<Current>>,
    stop: Arc<AtomicBool>,
    redraw: Option<JoinHandle<()>>,
}

/// Phase announced last.
#[derive(Clone, Debug, Default)]
struct Current {
    name: String,
    time: Option<Nanos>,
    /// Number of the previous phase; its counters are shown until the next phase starts.
    before: u64,
    /// Time of the announcement.
    since: Option<Instant>,
}

impl Gauge {
    /// Starts drawing.
    pub(super) fn start(progress: Progress, workload: &str) -> Self {
        let line = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{msg}");
        line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        let current = Arc::new(Mutex::new(Current::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let redraw = std::thread::spawn({
            let (line, progress) = (line.clone(), progress.clone());
            let (current, stop) = (Arc::clone(&current), Arc::clone(&stop));
            let workload = output::line(workload);
            move || redraw(&stop, &line, &progress, &current, &workload)
        });
        Self { line, progress, current, stop, redraw: Some(redraw) }
    }

    /// Processes an event and prints its line above the live line.
    pub(super) fn show(&self, event: &Event<'_>, line: Option<String>) {
        if let Event::PhaseStarted { name, time } = event {
            let before = self.progress.snapshot().phase;
            *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Current {
                name: output::line(name),
                time: *time,
                before,
                since: Some(Instant::now()),
            };
        }
        if let Some(line) = line {
            self.line.println(output::wrapped(&line));
        }
        if matches!(event, Event::RunEnded { .. }) {
            self.clear();
        }
    }

    fn clear(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.line.finish_and_clear();
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.clear();
        if let Some(redraw) = self.redraw.take() {
            let _panicked = redraw.join();
        }
    }
}

fn redraw(
    stop: &AtomicBool,
    line: &ProgressBar,
    progress: &Progress,
    current: &Mutex<Current>,
    workload: &str,
) {
    let _not_the_workload = rig::MonitorThread::new();
    let mut watcher = Watcher::default();
    let mut history = VecDeque::with_capacity(LOOKS);
    loop {
        std::thread::sleep(INTERVAL);
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let snapshot = progress.snapshot();
        let reading = watcher.poll(Instant::now(), snapshot);
        let current = current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let reading = reading.filter(|_| snapshot.phase > current.before);
        match reading {
            None => history.clear(),
            Some(reading) => {
                if history.len() == LOOKS {
                    history.pop_front();
                }
                history.push_back(reading.ops_per_second);
            }
        }
        let waited = current.since.map(|since| since.elapsed()).unwrap_or_default();
        line.set_message(status(workload, &current, snapshot, reading.ok_or(waited), &history));
    }
}

/// Live line, at most 80 columns with names of usual length. Without a reading, which is the case
/// if operations are not counted live, it shows the time since the announcement.
fn status(
    workload: &str,
    current: &Current,
    snapshot: Snapshot,
    reading: Result<Reading, Duration>,
    history: &VecDeque<f64>,
) -> String {
    let Current { name, time, .. } = current;
    let reading = match reading {
        Ok(reading) => reading,
        Err(waited) => {
            return format!("{workload} · {name}  … {}", report::duration(waited.into()));
        }
    };
    let elapsed = report::duration(reading.elapsed.into());
    let far = match (time, snapshot.total.0) {
        (Some(time), _) => format!("{elapsed} of {}", report::duration(*time)),
        (None, 0) => elapsed,
        (None, total) => {
            let percent = snapshot.done.0.min(total).saturating_mul(100) / total;
            format!("{elapsed}, {percent} %")
        }
    };
    let ops = report::quantity(Metric::OpsRate, reading.ops_per_second);
    let moved = match snapshot.done.0 {
        0 => String::new(),
        _ => format!("  {}", report::bandwidth(reading.bytes_per_second)),
    };
    format!("{workload} · {name}  {far}{moved}  {ops}  {}", bars(history))
}

/// Bar for each value, proportional to its fraction of the maximum.
fn bars(history: &VecDeque<f64>) -> String {
    let most = history.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 7: no value is negative or larger than the maximum"
        )]
        let at = if most > 0.0 { (value / most * 7.0).round() as usize } else { 0 };
        BARS[at.min(7)]
    };
    history.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use model::{Bytes, Ops};

    use super::*;

    #[test]
    fn the_line_shows_progress_and_rates() {
        let history = VecDeque::from([0.0, 50.0, 100.0]);
        let reading = Reading {
            elapsed: Duration::from_millis(3200),
            bytes_per_second: 1024.0 * 1024.0,
            ops_per_second: 256.0,
        };
        let snapshot = Snapshot { phase: 2, ops: Ops(8), done: Bytes::mib(1), total: Bytes(0) };
        let mut current = Current {
            name: "read".into(),
            time: Some(Nanos(10_000_000_000)),
            ..Current::default()
        };
        let line = |current: &Current, snapshot, reading| {
            status("oltp-8k", current, snapshot, reading, &history)
        };
        assert_eq!(
            line(&current, snapshot, Ok(reading)),
            "oltp-8k · read  3.2 s of 10.0 s  1.00 MiB/s  256 ops/s  ▁▅█"
        );
        current.time = None;
        let half = Snapshot { total: Bytes::mib(2), ..snapshot };
        assert_eq!(
            line(&current, half, Ok(reading)),
            "oltp-8k · read  3.2 s, 50 %  1.00 MiB/s  256 ops/s  ▁▅█"
        );
        let waited = Duration::from_millis(1500);
        assert_eq!(line(&current, snapshot, Err(waited)), "oltp-8k · read  … 1.5 s");
        assert_eq!(bars(&VecDeque::from([0.0])), "▁");
    }
}
