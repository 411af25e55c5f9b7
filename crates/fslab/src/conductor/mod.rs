//! Runs a plan: blocks of trials in random order until every cell has enough, each trial stored
//! whole.
//!
//! Enters: where trials come from, a store and the cells. Leaves: rows in the store and [`Event`]s
//! for whoever watches. The conductor is the only place that knows both the rig and the engine, and
//! it writes to the store only between trials, never during one. Which cells are still open is
//! decided in [`looks`], which trials are invalid in [`invalid`].

mod ceilings;
pub(crate) mod deeds;
pub(crate) mod events;
mod forecast;
mod invalid;
mod looks;
mod name;
mod order;
mod progress;
#[cfg(test)]
mod tests;
mod trial;

use std::{
    collections::{BTreeSet, VecDeque},
    sync::atomic::{AtomicBool, Ordering},
    time::{Instant, SystemTime},
};

use engine::Progress;
use events::Event;
use model::{
    Environment, Nanos, Warning,
    evidence::Absent,
    plan::{Profile, Spoiled},
    record::{CellRecord, CellState, Outcome, RunRecord, TrialRecord},
};
use progress::CellProgress;
use store::Store;
pub(crate) use trial::{Ahead, Conditions, OnRig, Trials, time_of};

use crate::exit::chain;

/// What a run needs to know besides its cells and its trials.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// How sure to be.
    pub(crate) profile: Profile,
    /// A fixed number of repeats.
    pub(crate) repeats: Option<u32>,
    /// Seed of the order.
    pub(crate) seed: u64,
    /// How long all trials may take together.
    pub(crate) budget: Option<Nanos>,
    /// What becomes of trials that the machine spoiled.
    pub(crate) spoiled: Spoiled,
    /// Whether the storage is devices of the run's own.
    pub(crate) own_devices: bool,
    /// Stop after the blocks of a pilot.
    pub(crate) pilot: bool,
    /// Stop at the first cell that fails.
    pub(crate) fail_fast: bool,
}

/// Blocks after which the rest of a run is forecast: a spread needs two values, and the trials
/// count, since nothing is set by them.
pub(crate) const PILOT: u32 = 2;

/// Whether the machine is booted between two trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reboots {
    /// The plan does not ask for it.
    #[default]
    No,
    /// It must be: a session ends where the next trial needs it.
    Needed,
    /// The plan asks for it, and whoever runs it goes on without; the trials say so.
    Waived,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Cells measured as often as they need.
    pub(crate) done: usize,
    /// Cells that cannot be had here.
    pub(crate) skipped: usize,
    /// Cells that failed.
    pub(crate) failed: usize,
    /// Trials measured, in this session or before.
    pub(crate) measured: usize,
    /// Trials that were invalid and made again, in this session or before.
    pub(crate) invalid: usize,
    /// Cut short by a signal.
    pub(crate) interrupted: bool,
    /// Cut short by a failure, as asked for.
    pub(crate) stopped: bool,
    /// Goes on when the machine was booted again.
    pub(crate) awaits_boot: bool,
    /// Ended after its pilot, as asked for.
    pub(crate) pilot: bool,
}

/// What kept a run from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    No,
    Interrupted,
    Failed,
    Reboot,
    Pilot,
}

/// A run in progress.
pub(crate) struct Conductor<'a, T> {
    trials: T,
    store: Store,
    cells: Vec<CellRecord>,
    progress: Vec<CellProgress>,
    /// What is known to be unseen on this machine: each is told once.
    absent: BTreeSet<Absent>,
    settings: Settings,
    watch: Watch<'a>,
    /// Whether the rest of the run was forecast in this session.
    forecast: bool,
}

/// Whoever watches a run, and how it is told to stop.
#[derive(Clone, Copy)]
pub(crate) struct Watch<'a> {
    /// Gets every event, on the conductor's own thread, never during a phase.
    pub(crate) observer: &'a dyn Fn(&Event<'_>),
    /// Filled by the workers of the current phase; read by the screen.
    pub(crate) progress: &'a Progress,
    /// Set by a signal.
    pub(crate) interrupt: &'a AtomicBool,
}

impl<'a, T: Trials> Conductor<'a, T> {
    /// Takes over trials and a store; `record` is what the store holds so far.
    pub(crate) fn new(
        trials: T,
        store: Store,
        record: RunRecord,
        settings: Settings,
        watch: Watch<'a>,
    ) -> Self {
        let progress = progress::of(&record);
        let told = record.warnings.iter().filter_map(|warning| {
            let Warning::Absent { what, why } = warning else { return None };
            Some(Absent { what: what.clone(), why: why.clone() })
        });
        Self {
            trials,
            store,
            progress,
            absent: told.collect(),
            cells: record.cells,
            settings,
            watch,
            forecast: false,
        }
    }

    /// Runs blocks until no cell is open, then ends the run file.
    ///
    /// # Errors
    /// When the run file cannot be written; a trial that fails is stored, not returned.
    pub(crate) fn run(mut self) -> anyhow::Result<Tally> {
        let started = Instant::now();
        self.announce();
        let cut = self.blocks()?;
        let tally = self.tally(cut);
        if cut == Cut::No {
            self.store.finish(now_unix())?;
        }
        (self.watch.observer)(&Event::RunEnded { tally, elapsed: started.elapsed() });
        self.trials.close().map(|()| tally)
    }

    fn blocks(&mut self) -> anyhow::Result<Cut> {
        loop {
            self.look()?;
            let open: Vec<usize> = self.open().collect();
            let Some(block) = open.iter().map(|cell| self.progress[*cell].repeats).min() else {
                return Ok(Cut::No);
            };
            if block >= PILOT && !self.forecast {
                self.forecast = true;
                (self.watch.observer)(&Event::Forecast(self.expect()));
            }
            if block >= PILOT && self.settings.pilot {
                return Ok(Cut::Pilot);
            }
            let cut = self.block(block, &open)?;
            if cut != Cut::No {
                return Ok(cut);
            }
        }
    }

    /// Runs one block: each open cell once, those whose trial was invalid again at its end.
    fn block(&mut self, block: u32, open: &[usize]) -> anyhow::Result<Cut> {
        let mut order = order::block(self.settings.seed, block, open);
        // A resumed block goes on where it was cut.
        order.retain(|cell| self.progress[*cell].repeats <= block);
        order.sort_by_key(|cell| self.progress[*cell].attempts > 0);
        let mut order = VecDeque::from(order);
        while let Some(cell) = order.pop_front() {
            if self.exceeds_budget(cell) {
                self.close_for_budget()?;
                return Ok(Cut::No);
            }
            if self.trials.awaits_boot() {
                return Ok(Cut::Reboot);
            }
            let ahead = std::iter::once(&cell).chain(&order);
            self.trials.ahead(&mut ahead.map(|index| Ahead {
                cell: &self.cells[*index].cell,
                index: *index,
                repeat: block,
            }));
            if self.watch.interrupt.load(Ordering::Relaxed) || !self.trial(cell, block)? {
                return Ok(Cut::Interrupted);
            }
            let failed = matches!(self.cells[cell].state, CellState::Failed { .. });
            if failed && self.settings.fail_fast {
                return Ok(Cut::Failed);
            }
            if self.progress[cell].attempts > 0 {
                order.push_back(cell);
            }
        }
        Ok(Cut::No)
    }

    /// Runs and keeps one trial; `false` when it was interrupted, and then nothing of it is kept.
    fn trial(&mut self, cell: usize, repeat: u32) -> anyhow::Result<bool> {
        let record = &self.cells[cell];
        (self.watch.observer)(&Event::TrialStarted {
            filesystem: &record.cell.filesystem.name,
            label: &record.label,
            twin: record.cell.twin,
            repeat,
        });
        let Some(mut trial) = self.trials.measure(&record.cell, cell, repeat) else {
            return Ok(false);
        };
        self.judge(&mut trial);
        let failed = match &trial.outcome {
            Outcome::Measured | Outcome::Invalid { .. } => None,
            Outcome::Failed { reason } => Some(CellState::Failed { reason: reason.clone() }),
        };
        self.store.trial(&trial, failed.as_ref())?;
        self.tell_absent(&trial)?;
        let record = &self.cells[cell];
        (self.watch.observer)(&Event::TrialEnded {
            filesystem: &record.cell.filesystem.name,
            label: &record.label,
            twin: record.cell.twin,
            repeat,
            elapsed: trial.elapsed,
            outcome: &trial.outcome,
        });
        self.progress[cell].add(&record.phases, &trial);
        if let Some(state) = failed {
            self.cells[cell].state = state;
        }
        Ok(true)
    }

    /// Finds out whether the machine spoiled a trial: it is then invalid, or, where its cell has
    /// had as many further trials as it may have, says so.
    fn judge(&self, trial: &mut TrialRecord) {
        let (record, progress) = (&self.cells[trial.cell], &self.progress[trial.cell]);
        trial.attempt = progress.attempts;
        if trial.outcome != Outcome::Measured || self.settings.spoiled == Spoiled::Keep {
            return;
        }
        let known = invalid::Known {
            cell: &record.cell,
            phases: &record.phases,
            own_devices: self.settings.own_devices,
            usual: progress.usual.as_ref(),
        };
        let Some(reason) = invalid::reason(trial, &known) else { return };
        let trials = progress.trials + 1;
        if invalid::may_repeat(progress.invalid, trials) {
            trial.outcome = Outcome::Invalid { reason };
        } else {
            let invalid = progress.invalid + progress.kept + 1;
            trial.warnings.push((None, Warning::Unstable { invalid, of: trials }));
        }
    }

    /// Says of the run what its evidence lacks, where that was not said before.
    fn tell_absent(&mut self, trial: &TrialRecord) -> anyhow::Result<()> {
        let lacking = trial.evidence.iter().flat_map(|(_, evidence)| &evidence.absent);
        let new = lacking.filter(|absent| self.absent.insert((*absent).clone()));
        let warn = |Absent { what, why }: &Absent| Warning::Absent {
            what: what.clone(),
            why: why.clone(),
        };
        let warnings: Vec<Warning> = new.map(warn).collect();
        Ok(self.store.warn(&warnings)?)
    }

    fn announce(&self) {
        (self.watch.observer)(&Event::RunStarted {
            run_file: self.store.path(),
            storage: &self.trials.describe(),
            done: self.progress.iter().map(|cell| cell.trials as usize).sum(),
        });
        // What keeps a filesystem from being measured keeps it from all workloads.
        let mut told = BTreeSet::new();
        for cell in &self.cells {
            let filesystem = &cell.cell.filesystem.name;
            if let CellState::Skipped { reason } = &cell.state
                && told.insert((filesystem, reason))
            {
                (self.watch.observer)(&Event::Skipped { filesystem, reason });
            }
        }
    }

    fn open(&self) -> impl Iterator<Item = usize> {
        let cells = self.cells.iter().enumerate();
        cells.filter(|(_, cell)| cell.state == CellState::Open).map(|(index, _)| index)
    }

    fn tally(&self, cut: Cut) -> Tally {
        let count =
            |is: fn(&CellState) -> bool| self.cells.iter().filter(|cell| is(&cell.state)).count();
        Tally {
            done: count(|state| matches!(state, CellState::Done { .. })),
            skipped: count(|state| matches!(state, CellState::Skipped { .. })),
            failed: count(|state| matches!(state, CellState::Failed { .. })),
            measured: self.progress.iter().map(CellProgress::measured).sum(),
            invalid: self.progress.iter().map(|cell| cell.invalid as usize).sum(),
            interrupted: cut == Cut::Interrupted,
            stopped: cut == Cut::Failed,
            awaits_boot: cut == Cut::Reboot,
            pilot: cut == Cut::Pilot,
        }
    }
}

/// The fact of a run that says how many bytes per second one processor copies from memory.
pub(crate) const MEMORY_RATE: &str = "generator.memory_copy_bytes_per_second";

/// The fact that tells one boot of the machine from another.
pub(crate) const BOOT: &str = "boot.id";

/// The boot in which a trial was made: what a trial does not say of itself holds for its run.
fn boot_of(trial: &Environment, run: &Environment) -> Option<String> {
    trial.get(BOOT).or(run.get(BOOT)).map(str::to_owned)
}

/// The time of day, in nanoseconds since 1970-01-01 UTC.
pub(crate) fn now_unix() -> Nanos {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().into()
}

/// A failure as it is stored: the step and the chain of causes.
fn reason(step: &str, error: &(dyn std::error::Error + 'static)) -> String {
    format!("{step}: {}", chain(error))
}

/// A warning of a trial with the phase it belongs to.
type Located = (Option<String>, Warning);
