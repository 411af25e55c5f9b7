//! Runs a plan: blocks of trials in random order until every cell has enough, each trial stored
//! whole.
//!
//! Enters: a rig, a store and the cells. Leaves: rows in the store and [`Event`]s for whoever
//! watches. The conductor is the only place that knows both the rig and the engine, and it writes
//! to the store only between trials, never during one.

mod ceilings;
pub(crate) mod deeds;
pub(crate) mod events;
mod name;
mod order;
mod progress;
mod trial;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::{Instant, SystemTime},
};

use ceilings::Ceilings;
use engine::Progress;
use events::Event;
use model::{
    Environment, Isolation, Nanos, Warning,
    evidence::Absent,
    plan::Profile,
    record::{CellRecord, CellState, Outcome, RunRecord, TrialRecord},
};
use name::Always;
use progress::CellProgress;
use rig::{Catalogue, Rig};
use store::Store;

use crate::exit::chain;

/// What a run needs to know besides its cells.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// How sure to be.
    pub(crate) profile: Profile,
    /// A fixed number of repeats.
    pub(crate) repeats: Option<u32>,
    /// Seed of order and data.
    pub(crate) seed: u64,
    /// Check each filesystem after its trial.
    pub(crate) fsck: bool,
    /// Whether the plan limits the memory of the workload.
    pub(crate) memory_limited: bool,
    /// Stop at the first cell that fails.
    pub(crate) fail_fast: bool,
    /// Whether the machine is to be booted between trials.
    pub(crate) reboots: Reboots,
    /// What separates one trial from the next.
    pub(crate) isolation: Isolation,
    /// Where the last measured phase that writes keeps what is needed to judge its files after a
    /// crash.
    pub(crate) crash_state: Option<PathBuf>,
    /// The command that becomes a worker process.
    pub(crate) worker_command: Vec<OsString>,
}

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
    /// Cut short by a signal.
    pub(crate) interrupted: bool,
    /// Cut short by a failure, as asked for.
    pub(crate) stopped: bool,
    /// Goes on when the machine was booted again.
    pub(crate) awaits_boot: bool,
}

/// What kept a run from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    No,
    Interrupted,
    Failed,
    Reboot,
}

/// A run in progress.
pub(crate) struct Conductor<'a> {
    rig: Rig,
    store: Store,
    cells: Vec<CellRecord>,
    progress: Vec<CellProgress>,
    environment: Environment,
    ceilings: Ceilings,
    always: Always,
    /// The directory on another filesystem, once a trial needed it.
    elsewhere: Option<PathBuf>,
    /// What is known to be unseen on this machine: each is told once.
    absent: BTreeSet<Absent>,
    catalogue: &'a Catalogue,
    settings: Settings,
    watch: Watch<'a>,
    /// Whether the device was ever found busy with what others do.
    restless: bool,
    /// The boot of this session, and whether a trial was made in it.
    boot: Option<String>,
    boot_used: bool,
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

impl<'a> Conductor<'a> {
    /// Takes over a rig and a store; `record` is what the store holds so far.
    pub(crate) fn new(
        rig: Rig,
        store: Store,
        record: RunRecord,
        catalogue: &'a Catalogue,
        settings: Settings,
        watch: Watch<'a>,
    ) -> Self {
        let progress = progress::of(&record);
        let memory_rate = record.environment.get(MEMORY_RATE).and_then(|rate| rate.parse().ok());
        let always = Always {
            clock_cost: engine::clock().cost,
            memory_rate,
            memory_limited: settings.memory_limited,
            profile: settings.profile,
        };
        let told = record.warnings.iter().filter_map(|warning| {
            let Warning::Absent { what, why } = warning else { return None };
            Some(Absent { what: what.clone(), why: why.clone() })
        });
        let boot = rig.boot_id();
        let used = |trial: &TrialRecord| boot_of(&trial.environment, &record.environment) == boot;
        let boot_used = record.trials.iter().any(used);
        Self {
            boot,
            boot_used,
            rig,
            store,
            progress,
            absent: told.collect(),
            cells: record.cells,
            environment: record.environment,
            ceilings: Ceilings::default(),
            always,
            elsewhere: None,
            catalogue,
            settings,
            watch,
            restless: false,
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
        let stuck = self.rig.close();
        match stuck.first() {
            None => Ok(tally),
            Some(stuck) => anyhow::bail!(
                "could not undo {}: {}; end what uses it and run `fslab clean`",
                stuck.what,
                stuck.why
            ),
        }
    }

    fn blocks(&mut self) -> anyhow::Result<Cut> {
        loop {
            self.look()?;
            let open: Vec<usize> = self.open().collect();
            let Some(block) = open.iter().map(|cell| self.progress[*cell].repeats).min() else {
                return Ok(Cut::No);
            };
            for cell in order::block(self.settings.seed, block, &open) {
                // A resumed block goes on where it was cut.
                if self.progress[cell].repeats > block {
                    continue;
                }
                if self.settings.reboots == Reboots::Needed && self.boot_used {
                    return Ok(Cut::Reboot);
                }
                if self.watch.interrupt.load(Ordering::Relaxed) || !self.trial(cell, block)? {
                    return Ok(Cut::Interrupted);
                }
                self.boot_used = true;
                let failed = matches!(self.cells[cell].state, CellState::Failed { .. });
                if failed && self.settings.fail_fast {
                    return Ok(Cut::Failed);
                }
            }
        }
    }

    /// Runs and keeps one trial; `false` when it was interrupted, and then nothing of it is kept.
    fn trial(&mut self, cell: usize, repeat: u32) -> anyhow::Result<bool> {
        let record = &self.cells[cell];
        (self.watch.observer)(&Event::TrialStarted {
            filesystem: &record.cell.filesystem.name,
            label: &record.label,
            repeat,
        });
        let Some(trial) = self.measure(cell, repeat) else { return Ok(false) };
        let failed = match &trial.outcome {
            Outcome::Measured => None,
            Outcome::Failed { reason } => Some(CellState::Failed { reason: reason.clone() }),
        };
        self.store.trial(&trial, failed.as_ref())?;
        self.tell_absent(&trial)?;
        let record = &self.cells[cell];
        (self.watch.observer)(&Event::TrialEnded {
            filesystem: &record.cell.filesystem.name,
            label: &record.label,
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

    /// Looks at every open cell, closes those that have enough, and says how many trials there will
    /// be until the others are looked at again.
    fn look(&mut self) -> anyhow::Result<()> {
        let mut trials = 0;
        for cell in 0..self.cells.len() {
            trials += self.decide(cell)?.max(self.progress[cell].repeats) as usize;
        }
        (self.watch.observer)(&Event::Planned { trials });
        Ok(())
    }

    /// Closes a cell that has enough repeats; else the number of repeats at its next look, which is
    /// 0 for a cell that gets none.
    fn decide(&mut self, cell: usize) -> anyhow::Result<u32> {
        if self.cells[cell].state != CellState::Open {
            return Ok(0);
        }
        if let Some(what) = self.progress[cell].lacks_all() {
            let reason = format!("the filesystem or the kernel does not have {what}");
            self.set_state(cell, CellState::Skipped { reason })?;
            return Ok(0);
        }
        let values = self.progress[cell].values();
        let decision =
            analysis::stop::decide(&values, self.settings.profile, self.settings.repeats);
        match decision {
            analysis::stop::Decision::More { next_look } => Ok(next_look),
            analysis::stop::Decision::Enough { rule, .. } => {
                let record = &self.cells[cell];
                (self.watch.observer)(&Event::CellDone {
                    filesystem: &record.cell.filesystem.name,
                    label: &record.label,
                    rule: &rule,
                });
                self.set_state(cell, CellState::Done { rule })?;
                Ok(0)
            }
        }
    }

    fn set_state(&mut self, cell: usize, state: CellState) -> anyhow::Result<()> {
        self.store.cell_state(cell, &state)?;
        self.cells[cell].state = state;
        Ok(())
    }

    fn announce(&self) {
        (self.watch.observer)(&Event::RunStarted {
            run_file: self.store.path(),
            storage: &self.rig.describe(),
            done: self.progress.iter().map(|cell| cell.repeats as usize).sum(),
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
            interrupted: cut == Cut::Interrupted,
            stopped: cut == Cut::Failed,
            awaits_boot: cut == Cut::Reboot,
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
