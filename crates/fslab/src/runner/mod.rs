//! Runs a plan in rounds of trials in random order until every cell meets the stopping rule. A cell
//! is a combination of filesystem, workload, and settings; a trial is one execution of a cell on a
//! new filesystem. Each trial is stored in one transaction.
//!
//! Input: a source of trials, a store, and the cells. Output: rows in the store and [`Event`]s for
//! the observer. The runner is the only place that uses both the rig and the engine. It writes to
//! the store only between trials. [`stopping`] decides which cells are still open. [`invalid`]
//! decides which trials are invalid.

pub(crate) mod events;
mod forecast;
mod generator_limits;
pub(crate) mod hosts;
mod invalid;
mod order;
mod progress;
mod samples;
mod stopping;
pub(crate) mod task_files;
#[cfg(test)]
mod tests;
mod trial;

use std::{
    collections::{BTreeSet, VecDeque},
    sync::atomic::{AtomicBool, Ordering},
    time::{Instant, SystemTime},
};

use engine::Progress;
use events::{Event, RunProgress};
use forecast::{Closing, Outlook};
use model::{
    Environment, Nanos, Warning,
    activity::Unavailable,
    plan::{InvalidTrials, Profile},
    record::{CellRecord, CellState, Outcome, RunRecord, TrialRecord},
};
pub(crate) use progress::CellProgress;
use store::Store;
pub(crate) use trial::{Conditions, LocalTrials, Trials, UpcomingTrial, time_of};

use crate::exit::chain;

/// Settings of a run besides its cells and its trials.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Precision target.
    pub(crate) profile: Profile,
    /// Fixed number of repetitions.
    pub(crate) repetitions: Option<u32>,
    /// Seed of the trial order.
    pub(crate) seed: u64,
    /// Time limit for all trials.
    pub(crate) time_limit: Option<Nanos>,
    /// Handling of invalid trials.
    pub(crate) invalid_trials: InvalidTrials,
    /// True if the storage is dedicated devices.
    pub(crate) own_devices: bool,
    /// Stop after the pilot rounds.
    pub(crate) pilot: bool,
    /// Stop at the first failed cell.
    pub(crate) fail_fast: bool,
}

/// Number of rounds before the forecast. A spread needs at least two values. The trials of these
/// rounds count as results, because the forecast does not change the run.
pub(crate) const PILOT: u32 = 2;

/// Reboots between trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reboots {
    /// The plan requires no reboots.
    #[default]
    No,
    /// The plan requires reboots. A session ends when the next trial needs one.
    Needed,
    /// The plan requires reboots, but the user disabled them. Trials that run without one get a
    /// warning.
    Waived,
}

/// Result of a run or of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunSummary {
    /// Cells closed by the stopping rule.
    pub(crate) done: usize,
    /// Skipped cells.
    pub(crate) skipped: usize,
    /// Failed cells.
    pub(crate) failed: usize,
    /// Measured trials, including those of earlier sessions.
    pub(crate) measured: usize,
    /// Invalid trials, including those of earlier sessions.
    pub(crate) invalid: usize,
    /// Interrupted by a signal.
    pub(crate) interrupted: bool,
    /// Stopped at a failed cell (`--fail-fast`).
    pub(crate) stopped: bool,
    /// The run continues after a reboot.
    pub(crate) reboot_required: bool,
    /// Stopped after the pilot rounds (`--pilot`).
    pub(crate) pilot: bool,
}

/// Reason to stop a session before all cells are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopReason {
    No,
    Interrupted,
    Failed,
    Reboot,
    Pilot,
}

/// Run in progress.
pub(crate) struct Runner<'a, T> {
    trials: T,
    store: Store,
    cells: Vec<CellRecord>,
    progress: Vec<CellProgress>,
    /// Repetitions at which the cells are expected to close.
    outlook: Outlook,
    /// Measurements known to be unavailable on this machine; each is reported once.
    absent: BTreeSet<Unavailable>,
    settings: Settings,
    observer: RunObserver<'a>,
    /// True if this session has sent its forecast.
    forecast: bool,
}

/// Connection of a run to the user interface: events, progress, and interruption.
#[derive(Clone, Copy)]
pub(crate) struct RunObserver<'a> {
    /// Receiver of every event. It is called by the thread of the runner, never during a phase.
    pub(crate) notify: &'a dyn Fn(&Event<'_>),
    /// Progress of the current phase, updated by its workers and read by the screen.
    pub(crate) progress: &'a Progress,
    /// Flag that a signal sets to stop the run.
    pub(crate) interrupt: &'a AtomicBool,
}

impl<'a, T: Trials> Runner<'a, T> {
    /// Takes ownership of trials and a store; `record` is the current content of the store.
    pub(crate) fn new(
        trials: T,
        store: Store,
        record: RunRecord,
        settings: Settings,
        observer: RunObserver<'a>,
    ) -> Self {
        let progress = progress::of(&record);
        let absent = record.warnings.iter().filter_map(|warning| {
            let Warning::NotAvailable { what, why } = warning else { return None };
            Some(Unavailable { what: what.clone(), why: why.clone() })
        });
        Self {
            trials,
            store,
            progress,
            outlook: Outlook::default(),
            absent: absent.collect(),
            cells: record.cells,
            settings,
            observer,
            forecast: false,
        }
    }

    /// Runs rounds until no cell is open, then ends the run file.
    ///
    /// # Errors
    /// If the run file cannot be written. A failed trial is stored, not returned.
    pub(crate) fn run(mut self) -> anyhow::Result<RunSummary> {
        let started = Instant::now();
        self.announce();
        let cut = self.blocks()?;
        let tally = self.tally(cut);
        if cut == StopReason::No {
            self.store.finish(now_unix())?;
        }
        (self.observer.notify)(&Event::RunEnded { tally, elapsed: started.elapsed() });
        self.trials.close().map(|()| tally)
    }

    fn blocks(&mut self) -> anyhow::Result<StopReason> {
        loop {
            self.evaluate()?;
            let open: Vec<usize> = self.open().collect();
            let Some(block) = open.iter().map(|cell| self.progress[*cell].repetitions).min() else {
                return Ok(StopReason::No);
            };
            if block >= PILOT && !self.forecast {
                self.forecast = true;
                (self.observer.notify)(&Event::Forecast(self.expect()));
            }
            if block >= PILOT && self.settings.pilot {
                return Ok(StopReason::Pilot);
            }
            let cut = self.block(block, &open)?;
            if cut != StopReason::No {
                return Ok(cut);
            }
        }
    }

    /// Runs one round, with one trial of each open cell. Cells with an invalid trial run again at
    /// the end of the round.
    fn block(&mut self, block: u32, open: &[usize]) -> anyhow::Result<StopReason> {
        let mut order = order::block(self.settings.seed, block, open);
        // A resumed round continues where it was interrupted.
        order.retain(|cell| self.progress[*cell].repetitions <= block);
        order.sort_by_key(|cell| self.progress[*cell].attempts > 0);
        let mut order = VecDeque::from(order);
        while let Some(cell) = order.pop_front() {
            if self.exceeds_time_limit(cell) {
                self.close_at_time_limit()?;
                return Ok(StopReason::No);
            }
            if self.trials.reboot_required() {
                return Ok(StopReason::Reboot);
            }
            let ahead = std::iter::once(&cell).chain(&order);
            self.trials.ahead(&mut ahead.map(|index| UpcomingTrial {
                cell: &self.cells[*index].cell,
                index: *index,
                repetition: block,
            }));
            if self.observer.interrupt.load(Ordering::Relaxed) || !self.trial(cell, block)? {
                return Ok(StopReason::Interrupted);
            }
            let failed = matches!(self.cells[cell].state, CellState::Failed { .. });
            if failed && self.settings.fail_fast {
                return Ok(StopReason::Failed);
            }
            if self.progress[cell].attempts > 0 {
                order.push_back(cell);
            }
        }
        Ok(StopReason::No)
    }

    /// Runs and stores one trial. Returns `false` if the trial was interrupted. An interrupted
    /// trial is not stored.
    fn trial(&mut self, cell: usize, repetition: u32) -> anyhow::Result<bool> {
        let record = &self.cells[cell];
        (self.observer.notify)(&Event::TrialStarted {
            filesystem: &record.cell.filesystem.name,
            label: &record.label,
            aa_duplicate: record.cell.aa_duplicate,
            repetition,
        });
        let Some(mut trial) = self.trials.measure(&record.cell, cell, repetition) else {
            return Ok(false);
        };
        self.judge(&mut trial);
        let failed = match &trial.outcome {
            Outcome::Measured | Outcome::Invalid { .. } => None,
            Outcome::Failed { reason } => Some(CellState::Failed { reason: reason.clone() }),
        };
        self.store.trial(&trial, failed.as_ref())?;
        self.warn_unavailable(&trial)?;
        self.progress[cell].add(&self.cells[cell].phases, &trial);
        if let Some(state) = failed {
            self.cells[cell].state = state;
            self.outlook.closing[cell] = Closing::default();
        }
        self.report_progress();
        let record = &self.cells[cell];
        (self.observer.notify)(&Event::TrialEnded {
            filesystem: &record.cell.filesystem.name,
            label: &record.label,
            aa_duplicate: record.cell.aa_duplicate,
            repetition,
            elapsed: trial.elapsed,
            outcome: &trial.outcome,
        });
        Ok(true)
    }

    /// Sends the trials so far and the estimate of the rest.
    fn report_progress(&self) {
        (self.observer.notify)(&Event::Progress(RunProgress {
            cells: &self.cells,
            progress: &self.progress,
            profile: self.settings.profile,
            repetitions: self.settings.repetitions,
            done: self.progress.iter().map(|cell| cell.trials as usize).sum(),
            remaining: self.remaining(),
        }));
    }

    /// Marks a trial as invalid if a disturbance occurred, or adds a warning if the cell has no
    /// reruns left.
    fn judge(&self, trial: &mut TrialRecord) {
        let (record, progress) = (&self.cells[trial.cell], &self.progress[trial.cell]);
        trial.attempt = progress.attempts;
        // A source of trials knows disturbances that this host does not see, such as a lost host.
        if let Outcome::Invalid { reason } = &trial.outcome
            && !invalid::may_rerun(progress.invalid, progress.trials + 1)
        {
            trial.outcome = Outcome::Failed { reason: format!("{reason}; no reruns are left") };
        }
        if trial.outcome != Outcome::Measured || self.settings.invalid_trials == InvalidTrials::Keep
        {
            return;
        }
        let known = invalid::TrialContext {
            cell: &record.cell,
            phases: &record.phases,
            own_devices: self.settings.own_devices,
            usual: progress.usual.as_ref(),
        };
        let Some(reason) = invalid::reason(trial, &known) else { return };
        let trials = progress.trials + 1;
        if invalid::may_rerun(progress.invalid, trials) {
            trial.outcome = Outcome::Invalid { reason };
        } else {
            let invalid = progress.invalid + progress.kept + 1;
            trial.warnings.push((None, Warning::ManyInvalidTrials { invalid, of: trials }));
        }
    }

    /// Adds a warning to the run for each value that is unavailable for the first time.
    fn warn_unavailable(&mut self, trial: &TrialRecord) -> anyhow::Result<()> {
        let lacking = trial.activity.iter().flat_map(|(_, activity)| &activity.unavailable);
        let new = lacking.filter(|absent| self.absent.insert((*absent).clone()));
        let warn = |Unavailable { what, why }: &Unavailable| Warning::NotAvailable {
            what: what.clone(),
            why: why.clone(),
        };
        let warnings: Vec<Warning> = new.map(warn).collect();
        Ok(self.store.warn(&warnings)?)
    }

    fn announce(&self) {
        (self.observer.notify)(&Event::RunStarted {
            run_file: self.store.path(),
            storage: &self.trials.describe(),
            done: self.progress.iter().map(|cell| cell.trials as usize).sum(),
        });
        // A filesystem that is skipped is skipped for all workloads.
        let mut announced = BTreeSet::new();
        for cell in &self.cells {
            let filesystem = &cell.cell.filesystem.name;
            if let CellState::Skipped { reason } = &cell.state
                && announced.insert((filesystem, reason))
            {
                (self.observer.notify)(&Event::Skipped { filesystem, reason });
            }
        }
    }

    fn open(&self) -> impl Iterator<Item = usize> {
        let cells = self.cells.iter().enumerate();
        cells.filter(|(_, cell)| cell.state == CellState::Open).map(|(index, _)| index)
    }

    fn tally(&self, cut: StopReason) -> RunSummary {
        let count =
            |is: fn(&CellState) -> bool| self.cells.iter().filter(|cell| is(&cell.state)).count();
        RunSummary {
            done: count(|state| matches!(state, CellState::Done { .. })),
            skipped: count(|state| matches!(state, CellState::Skipped { .. })),
            failed: count(|state| matches!(state, CellState::Failed { .. })),
            measured: self.progress.iter().map(CellProgress::measured).sum(),
            invalid: self.progress.iter().map(|cell| cell.invalid as usize).sum(),
            interrupted: cut == StopReason::Interrupted,
            stopped: cut == StopReason::Failed,
            reboot_required: cut == StopReason::Reboot,
            pilot: cut == StopReason::Pilot,
        }
    }
}

/// Environment fact: rate at which one CPU copies memory, in bytes per second.
pub(crate) const MEMORY_RATE: &str = "generator.memory_copy_bytes_per_second";

/// Environment fact that identifies the boot of the machine.
pub(crate) const BOOT: &str = "boot.id";

/// ID of the boot in which a trial ran. Facts of the run apply to a trial unless the trial records
/// another value.
fn boot_of(trial: &Environment, run: &Environment) -> Option<String> {
    trial.get(BOOT).or(run.get(BOOT)).map(str::to_owned)
}

/// Current time in nanoseconds since 1970-01-01 UTC.
pub(crate) fn now_unix() -> Nanos {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().into()
}

/// Failure text for the store: the step and the chain of causes.
fn reason(step: &str, error: &(dyn std::error::Error + 'static)) -> String {
    format!("{step}: {}", chain(error))
}

/// Warning of a trial, with the name of its phase. `None` applies to the whole trial.
type Located = (Option<String>, Warning);
