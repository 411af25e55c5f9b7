//! One trial: a fresh filesystem, its phases, its end.
//!
//! A cell and the number of its repeat enter; the trial's record leaves. Where trials come from is
//! behind [`Trials`]: from a rig on this machine ([`OnRig`]), or made up by a test of the rules of
//! a run.

mod phases;
mod verdict;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use engine::CrashState;
use model::{
    Cell, Clock, Environment, Evidence, Factor, Isolation, Phase, RunRecord, Sample, Warning,
    factor::parse_percent,
    phase::Series,
    record::{Action, Outcome, Times, TrialRecord},
    sample::lifecycle,
};
use phases::Workload;
pub(crate) use phases::time_of;
use rig::{Catalogue, Mounted, Rig, Step, Wanted};

use super::{
    BOOT, Located, MEMORY_RATE, Reboots, Watch, boot_of,
    ceilings::Ceilings,
    deeds::{Scratch, needs_elsewhere},
    events::Event,
    name::{self, Always},
    now_unix, reason,
};

/// What a trial gathers on its way.
#[derive(Default)]
struct Gathered {
    samples: Vec<Sample>,
    histograms: Vec<Times>,
    series: Vec<(String, Series)>,
    evidence: Vec<(String, Evidence)>,
    warnings: Vec<Located>,
    actions: Vec<Action>,
    environment: Environment,
}

/// Why a trial stopped early.
enum Stop {
    Interrupted,
    Failed(String),
    /// The filesystem does not have what a phase is about; ends the phase, not the trial.
    Lacks(Warning),
}

impl Stop {
    fn failed(step: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::Failed(reason(step, error))
    }
}

/// A trial that will be asked for, unless the run ends before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead<'a> {
    /// Its cell.
    pub(crate) cell: &'a Cell,
    /// The index of the cell in the run.
    pub(crate) index: usize,
    /// Which repeat.
    pub(crate) repeat: u32,
}

/// Where trials come from.
pub(crate) trait Trials {
    /// What lies under the filesystems, in words.
    fn describe(&self) -> String;

    /// How many trials are made at once.
    fn side_by_side(&self) -> usize {
        1
    }

    /// Tells which trials will be asked for, in this order; whoever can make them before they are
    /// may.
    fn ahead(&mut self, next: &mut dyn Iterator<Item = Ahead<'_>>) {
        let _one_by_one = next;
    }

    /// Measures one trial of the cell with that index; `None` when a signal ended it, and then the
    /// machine is as before and nothing is kept.
    fn measure(&mut self, cell: &Cell, index: usize, repeat: u32) -> Option<TrialRecord>;

    /// Whether the machine has to be booted before the next trial.
    fn awaits_boot(&self) -> bool;

    /// Puts the machine back.
    ///
    /// # Errors
    /// What could not be put back, with what to do.
    fn close(self) -> anyhow::Result<()>;
}

/// What trials on this machine need to know of their plan.
#[derive(Clone, Debug)]
pub(crate) struct Conditions {
    /// Seed of the data.
    pub(crate) seed: u64,
    /// What the clock counts.
    pub(crate) clock: Clock,
    /// Check each filesystem after its trial.
    pub(crate) fsck: bool,
    /// Whether the plan limits the memory of the workload.
    pub(crate) memory_limited: bool,
    /// Whether the machine is to be booted between trials.
    pub(crate) reboots: Reboots,
    /// What separates one trial from the next.
    pub(crate) isolation: Isolation,
    /// Where the last measured phase that writes keeps what is needed to judge its files after a
    /// crash.
    pub(crate) crash_state: Option<Arc<CrashState>>,
    /// The command that becomes a worker process.
    pub(crate) worker_command: Vec<OsString>,
}

/// Trials on this machine.
pub(crate) struct OnRig<'a> {
    rig: Rig,
    catalogue: &'a Catalogue,
    conditions: Conditions,
    watch: Watch<'a>,
    /// Facts of the run: a trial keeps those that differ.
    environment: Environment,
    ceilings: Ceilings,
    always: Always,
    /// The directory on another filesystem, once a trial needed it.
    elsewhere: Option<PathBuf>,
    /// Whether the device was ever found busy with what others do.
    restless: bool,
    /// The boot of this session, and whether a trial was made in it.
    boot: Option<String>,
    boot_used: bool,
}

impl<'a> OnRig<'a> {
    /// Takes over a rig; `record` is what the store holds so far.
    pub(crate) fn new(
        rig: Rig,
        record: &RunRecord,
        catalogue: &'a Catalogue,
        conditions: Conditions,
        watch: Watch<'a>,
    ) -> Self {
        let memory_rate = record.environment.get(MEMORY_RATE).and_then(|rate| rate.parse().ok());
        let always = Always {
            clock: conditions.clock,
            clock_cost: engine::clock().cost,
            memory_rate,
            memory_limited: conditions.memory_limited,
            profile: record.info.profile,
        };
        let boot = rig.boot_id();
        let used = |trial: &TrialRecord| boot_of(&trial.environment, &record.environment) == boot;
        Self {
            boot_used: record.trials.iter().any(used),
            boot,
            rig,
            catalogue,
            conditions,
            watch,
            environment: record.environment.clone(),
            ceilings: Ceilings::default(),
            always,
            elsewhere: None,
            restless: false,
        }
    }
}

impl Trials for OnRig<'_> {
    fn describe(&self) -> String {
        self.rig.describe()
    }

    fn awaits_boot(&self) -> bool {
        self.conditions.reboots == Reboots::Needed && self.boot_used
    }

    fn close(self) -> anyhow::Result<()> {
        match self.rig.close().first() {
            None => Ok(()),
            Some(stuck) => anyhow::bail!(
                "could not undo {}: {}; end what uses it and run `fslab clean`",
                stuck.what,
                stuck.why
            ),
        }
    }

    fn measure(&mut self, cell: &Cell, index: usize, repeat: u32) -> Option<TrialRecord> {
        let (started, started_unix) = (Instant::now(), now_unix());
        let mut gathered = Gathered::default();
        let watched = rig::watching();
        let steps = self.steps(cell, &mut gathered);
        if let Some(boot) = &self.boot {
            gathered.environment.set(BOOT, boot);
        }
        if self.conditions.reboots == Reboots::Waived && self.boot_used {
            gathered.warnings.push((None, Warning::NotRebooted));
        }
        let watched = rig::watching() - watched;
        let (elapsed, clock) = (started.elapsed().into(), self.conditions.clock);
        let looks = name::looking(watched, elapsed, &gathered.evidence, clock);
        gathered.samples.extend(looks);
        gathered.actions = self.rig.take_actions();
        let outcome = match steps {
            Ok(()) => Outcome::Measured,
            Err(Stop::Failed(reason)) if !self.watch.interrupt.load(Ordering::Relaxed) => {
                Outcome::Failed { reason }
            }
            Err(Stop::Failed(_) | Stop::Interrupted | Stop::Lacks(_)) => return None,
        };
        self.boot_used = true;
        Some(TrialRecord {
            cell: index,
            repeat,
            attempt: 0,
            started_unix,
            elapsed: started.elapsed().into(),
            outcome,
            samples: gathered.samples,
            histograms: gathered.histograms,
            series: gathered.series,
            evidence: gathered.evidence,
            warnings: gathered.warnings,
            actions: gathered.actions,
            environment: gathered.environment.beyond(&self.environment),
        })
    }
}

impl OnRig<'_> {
    fn steps(&mut self, cell: &Cell, gathered: &mut Gathered) -> Result<(), Stop> {
        let suite = suites::find(&cell.workload.suite).ok_or_else(|| {
            Stop::Failed(format!("this program has no suite `{}`", cell.workload.suite))
        })?;
        let phases = (suite.phases)(&cell.workload, self.conditions.seed);
        // Before anything is made: the machine is as idle as it gets, and no cache is warm yet.
        let slower = slower(cell);
        let counts = self.conditions.clock == Clock::Instructions;
        let ceiling = |phase| match counts {
            true => None,
            false => self.ceilings.of(phase).map(|cost| cost * slower),
        };
        let generator: Vec<_> = phases.iter().map(ceiling).collect();
        let scratch = self.scratch(&phases)?;
        (self.watch.observer)(&Event::PhaseStarted { name: lifecycle::MKFS, time: None });
        let mut mounted = self.instance(cell)?;
        settings_hold(cell, &mounted)?;
        let workload = Workload {
            phases: &phases,
            generator: &generator,
            watch: self.watch,
            worker_command: &self.conditions.worker_command,
            crash_state: self.conditions.crash_state.as_deref(),
            elsewhere: scratch.as_ref().map(Scratch::path),
            always: self.always,
        };
        let ran = workload.run(&mut mounted, &mut self.restless, gathered);
        gathered.environment.merge(mounted.environment().clone());
        gathered.warnings.extend(mounted.warnings().iter().map(|w| (None, w.clone())));
        gathered.samples.extend(name::offered(mounted.space()));
        ran?;
        (self.watch.observer)(&Event::PhaseStarted { name: lifecycle::SPACE, time: None });
        let taken = mounted.occupancy();
        let taken = taken.map_err(|error| Stop::failed("looking at the space taken", &error))?;
        gathered.samples.extend(taken.map(name::occupied).unwrap_or_default());
        (self.watch.observer)(&Event::PhaseStarted { name: lifecycle::UMOUNT, time: None });
        let finished = mounted.finish(self.conditions.fsck);
        let finished = finished.map_err(|error| Stop::failed("ending the filesystem", &error))?;
        gathered.environment.merge(finished.facts);
        gathered.warnings.extend(finished.warnings.into_iter().map(|warning| (None, warning)));
        if let Some(verdict) = finished.damage {
            gathered.warnings.push((None, Warning::Damaged { verdict }));
        }
        let clock = self.conditions.clock;
        finished.lifecycle.into_iter().try_for_each(|step| around(step, clock, gathered))
    }

    /// The filesystem of a cell, made and mounted.
    fn instance(&self, cell: &Cell) -> Result<Mounted, Stop> {
        let get = |name: &str| {
            let entry = self.catalogue.get(name);
            entry.map_err(|error| Stop::failed("the catalogue", &error))
        };
        let level = &cell.filesystem;
        // The same tree in every trial, and for every filesystem.
        let (seed, interrupt) = (self.conditions.seed, self.watch.interrupt);
        let populate = |directory: &Path, files| {
            let written = engine::populate(directory, files, seed, interrupt);
            written.map_err(|error| crate::exit::chain(&error))
        };
        let mounted = self.rig.instance(&Wanted {
            becomes: level.becomes.as_deref().map(get).transpose()?,
            scheduler: cell.scheduler.as_deref(),
            factors: &cell.factors,
            fullness: cell.fullness,
            isolation: self.conditions.isolation,
            populate: &populate,
            ..Wanted::plain(get(&level.base)?, level)
        });
        mounted.map_err(|error| Stop::failed("making the filesystem", &error))
    }

    /// A directory of the trial's own on another filesystem, if a phase needs one.
    fn scratch(&mut self, phases: &[Phase]) -> Result<Option<Scratch>, Stop> {
        if !phases.iter().any(needs_elsewhere) {
            return Ok(None);
        }
        if self.elsewhere.is_none() {
            let made = self.rig.elsewhere();
            self.elsewhere =
                Some(made.map_err(|error| Stop::failed("a directory elsewhere", &error))?);
        }
        let made = self.elsewhere.as_deref().map(Scratch::new).transpose();
        made.map_err(|error| Stop::failed("a directory elsewhere", &error))
    }
}

/// How many times longer the processors of a cell take than at full speed, at which the loop of the
/// load generator is measured: it computes and does nothing else.
fn slower(cell: &Cell) -> f64 {
    let speed = cell.factors.get(&Factor::CpuSpeed).map(ToString::to_string);
    let percent = speed.and_then(|text| parse_percent(&text).ok());
    percent.map_or(1.0, |percent| 100.0 / f64::from(percent))
}

/// Keeps what a step around the phases took, and what was seen of it.
fn around(step: Step, clock: Clock, gathered: &mut Gathered) -> Result<(), Stop> {
    gathered.samples.extend(name::step(&step, clock));
    let located = |warning| (Some(step.name.to_owned()), warning);
    gathered.warnings.extend(name::step_warnings(&step).into_iter().map(located));
    let Some(evidence) = step.evidence else { return Ok(()) };
    let stands = verdict::stands(&evidence.log);
    gathered.evidence.push((step.name.to_owned(), evidence));
    stands.map_err(|why| Stop::Failed(format!("{}: {why}", step.name)))
}

/// A setting that is an axis of the plan must hold, or the number would stand under a wrong name.
/// What the kernel has rounded holds.
fn settings_hold(cell: &Cell, mounted: &Mounted) -> Result<(), Stop> {
    let of_the_plan = |setting: &str| {
        let named = |factor: &Factor| setting.starts_with(factor.spec().name);
        setting.contains("scheduler") || cell.factors.keys().any(named)
    };
    let broken = mounted.warnings().iter().find(|warning| {
        matches!(warning, Warning::ReadBack { setting, wanted, found }
            if of_the_plan(setting) && !rounded(wanted, found))
    });
    match broken {
        None => Ok(()),
        Some(warning) => Err(Stop::Failed(format!("{}; {}", warning.message(), warning.cure()))),
    }
}

/// Whether both are numbers of about the same size.
fn rounded(wanted: &str, found: &str) -> bool {
    match (wanted.trim().parse::<f64>(), found.trim().parse::<f64>()) {
        (Ok(wanted), Ok(found)) => found > wanted / 2.0 && found < wanted * 2.0,
        _ => false,
    }
}

/// Whether the directory under test can still be written to after a phase.
fn writable(phase: &str, directory: &Path) -> Result<(), Stop> {
    let flags = rustix::fs::statvfs(directory).map(|told| told.f_flag);
    let flags = flags.map_err(|error| Stop::failed(&format!("looking after {phase}"), &error))?;
    verdict::still_writable(flags).map_err(|why| Stop::Failed(format!("{phase}: {why}")))
}

#[cfg(test)]
mod tests {
    use model::{Metric, Nanos, evidence::LogLine};
    use rig::ProgramTime;

    use super::*;

    fn step(log: Vec<LogLine>) -> Step {
        Step {
            name: lifecycle::UMOUNT,
            elapsed: Nanos(1_000_000),
            program: Some(ProgramTime { user: Nanos(1), system: Nanos(2) }),
            evidence: Some(Evidence { log, ..Evidence::default() }),
        }
    }

    #[test]
    fn a_fatal_line_in_a_step_fails_the_trial_and_what_was_seen_is_kept() {
        let line = |fatal| LogLine { level: 3, fatal, text: "EXT4-fs error (device loop3)".into() };
        let mut gathered = Gathered::default();
        assert!(around(step(vec![line(false)]), Clock::Wall, &mut gathered).is_ok());
        assert!(matches!(&gathered.warnings[..], [(Some(at), Warning::KernelLog { .. })]
            if at == lifecycle::UMOUNT));
        let failed = around(step(vec![line(true)]), Clock::Wall, &mut gathered);
        assert!(matches!(failed, Err(Stop::Failed(why))
            if why.starts_with("umount: ") && why.contains("EXT4-fs error (device loop3)")));
        assert_eq!(gathered.evidence.len(), 2);
        let elapsed = |sample: &&Sample| sample.metric == Metric::Elapsed;
        assert_eq!(gathered.samples.iter().filter(elapsed).count(), 2);
    }
}
