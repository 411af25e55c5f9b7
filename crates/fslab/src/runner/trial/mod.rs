//! Execution of a trial: mkfs, mount, all phases, umount, and fsck.
//!
//! Input: a cell and the index of its repetition. Output: the record of the trial. Implementations
//! of [`Trials`] run trials on this machine ([`LocalTrials`]), in guests, or simulate them in
//! tests.

pub(crate) mod commands;
mod group;
mod hosts;
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
    Cell, Clock, Environment, Isolation, Phase, RunRecord, Sample, SystemActivity, SystemSetting,
    Warning,
    phase::{Series, Work},
    record::{Action, Outcome, PhaseHistogram, TrialRecord},
    sample::lifecycle,
    setting::parse_percent,
};
use phases::Workload;
pub(crate) use phases::time_of;
use rig::{Catalog, InstanceSpec, MountedFilesystem, Rig, Step};

use super::{
    BOOT, Located, MEMORY_RATE, Reboots, RunObserver, boot_of,
    events::Event,
    generator_limits::GeneratorLimits,
    hosts::{HostGate, on_all_hosts, share},
    now_unix, reason,
    samples::{self, RunContext},
    task_files::{Scratch, needs_external_directory},
};

/// Data collected during a trial.
#[derive(Default)]
struct TrialData {
    samples: Vec<Sample>,
    histograms: Vec<PhaseHistogram>,
    series: Vec<(String, Series)>,
    activity: Vec<(String, SystemActivity)>,
    warnings: Vec<Located>,
    actions: Vec<Action>,
    environment: Environment,
}

/// Reason why a trial stopped early.
enum Stop {
    Interrupted,
    Failed(String),
    /// The filesystem does not support a phase. The trial continues with other phases.
    Unsupported(Warning),
}

impl Stop {
    fn failed(step: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::Failed(reason(step, error))
    }
}

/// Trial that the runner will request unless the run ends first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpcomingTrial<'a> {
    /// Cell of the trial.
    pub(crate) cell: &'a Cell,
    /// Index of the cell in the run.
    pub(crate) index: usize,
    /// Index of the repetition.
    pub(crate) repetition: u32,
}

/// Source of trials.
pub(crate) trait Trials {
    /// Description of the storage under test.
    fn describe(&self) -> String;

    /// Number of trials that run concurrently.
    fn concurrency(&self) -> usize {
        1
    }

    /// Announces the next trials in their order; an implementation may start them in advance.
    fn ahead(&mut self, next: &mut dyn Iterator<Item = UpcomingTrial<'_>>) {
        let _one_by_one = next;
    }

    /// Measures one trial of a cell; `index` is the index of the cell in the run. `None` if a
    /// signal interrupted the trial, which must then not be stored.
    fn measure(&mut self, cell: &Cell, index: usize, repetition: u32) -> Option<TrialRecord>;

    /// Reports whether a reboot is required before the next trial.
    fn reboot_required(&self) -> bool;

    /// Undoes all changes to the machine.
    ///
    /// # Errors
    /// The first change that could not be undone, with a hint.
    fn close(self) -> anyhow::Result<()>;
}

/// Program of this process, also if its path is closed to the user of a command (proc(5)).
const THIS_PROGRAM: &str = "/proc/self/exe";

/// Settings of the plan for trials on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Conditions {
    /// Seed of the data.
    pub(crate) seed: u64,
    /// Unit of the clock.
    pub(crate) clock: Clock,
    /// True to check each filesystem with fsck after its trial.
    pub(crate) fsck: bool,
    /// True if the plan limits the memory of the workload.
    pub(crate) memory_limited: bool,
    /// Reboots between trials.
    pub(crate) reboots: Reboots,
    /// Isolation between trials.
    pub(crate) isolation: Isolation,
    /// State for `fslab verify`, saved by each measured phase that writes; the last state is kept.
    pub(crate) crash_state: Option<Arc<CrashState>>,
    /// Command that starts a worker process.
    pub(crate) worker_command: Vec<OsString>,
}

/// Trials on this machine.
pub(crate) struct LocalTrials<'a> {
    rig: Rig,
    catalog: &'a Catalog,
    conditions: Conditions,
    observer: RunObserver<'a>,
    /// Environment facts of the run. A trial stores only facts with other values.
    environment: Environment,
    ceilings: GeneratorLimits,
    always: RunContext,
    /// Directory on another filesystem, created when a trial first needs it.
    external_directory: Option<PathBuf>,
    /// True if the device was not idle because of other I/O.
    other_io_seen: bool,
    /// ID of the current boot. `boot_used` is true if a trial ran since this boot.
    boot: Option<String>,
    boot_used: bool,
    /// Connection to the other hosts of the trials.
    hosts: Option<&'a dyn HostGate>,
}

impl<'a> LocalTrials<'a> {
    /// Takes ownership of a rig; `record` is the current content of the store.
    pub(crate) fn new(
        rig: Rig,
        record: &RunRecord,
        catalog: &'a Catalog,
        conditions: Conditions,
        observer: RunObserver<'a>,
    ) -> Self {
        let memory_rate = record.environment.get(MEMORY_RATE).and_then(|rate| rate.parse().ok());
        let always = RunContext {
            clock: conditions.clock,
            clock_cost: engine::clock().cost,
            memory_rate,
            memory_limited: conditions.memory_limited,
            shared_devices: record
                .warnings
                .iter()
                .any(|warning| matches!(warning, Warning::SharedStorage { directory: true, .. })),
            profile: record.info.profile,
        };
        let boot = rig.boot_id();
        let used = |trial: &TrialRecord| boot_of(&trial.environment, &record.environment) == boot;
        Self {
            boot_used: record.trials.iter().any(used),
            boot,
            rig,
            catalog,
            conditions,
            observer,
            environment: record.environment.clone(),
            ceilings: GeneratorLimits::default(),
            always,
            external_directory: None,
            other_io_seen: false,
            hosts: None,
        }
    }

    /// Trials that run on several hosts, of which this is one.
    pub(crate) fn on_hosts(self, hosts: &'a dyn HostGate) -> Self {
        Self { hosts: Some(hosts), ..self }
    }
}

impl Trials for LocalTrials<'_> {
    fn describe(&self) -> String {
        self.rig.describe()
    }

    fn reboot_required(&self) -> bool {
        self.conditions.reboots == Reboots::Needed && self.boot_used
    }

    fn close(self) -> anyhow::Result<()> {
        match self.rig.close().first() {
            None => Ok(()),
            Some(stuck) => anyhow::bail!(
                "cannot undo {}: {}; end the processes that use it and run `fslab clean`",
                stuck.what,
                stuck.why
            ),
        }
    }

    fn measure(&mut self, cell: &Cell, index: usize, repetition: u32) -> Option<TrialRecord> {
        let (started, started_unix) = (Instant::now(), now_unix());
        let mut data = TrialData::default();
        let watched = rig::monitor_cpu_time();
        let steps = self.steps(cell, false, &mut data);
        let watched = rig::monitor_cpu_time() - watched;
        let elapsed = started.elapsed();
        if steps.is_ok() && repetition == 0 {
            self.count_calls(cell, &mut data);
        }
        if let Some(boot) = &self.boot {
            data.environment.set(BOOT, boot);
        }
        if self.conditions.reboots == Reboots::Waived && self.boot_used {
            data.warnings.push((None, Warning::NotRebooted));
        }
        let clock = self.conditions.clock;
        let overhead = samples::monitoring_overhead(watched, elapsed.into(), &data.activity, clock);
        data.samples.extend(overhead);
        data.actions.extend(self.rig.take_actions());
        let outcome = match steps {
            Ok(()) => Outcome::Measured,
            Err(Stop::Failed(reason)) if !self.observer.interrupt.load(Ordering::Relaxed) => {
                Outcome::Failed { reason }
            }
            Err(Stop::Failed(_) | Stop::Interrupted | Stop::Unsupported(_)) => return None,
        };
        self.boot_used = true;
        Some(TrialRecord {
            cell: index,
            repetition,
            attempt: 0,
            started_unix,
            elapsed: elapsed.into(),
            outcome,
            samples: data.samples,
            histograms: data.histograms,
            series: data.series,
            activity: data.activity,
            warnings: data.warnings,
            actions: data.actions,
            environment: data.environment.beyond(&self.environment),
            hosts: Vec::new(),
        })
    }
}

impl LocalTrials<'_> {
    /// Repeats a trial under the recorder, if its workload asks for the file calls. Only these are
    /// kept of it. A failure does not concern the trial itself.
    fn count_calls(&mut self, cell: &Cell, data: &mut TrialData) {
        let phases = suites::find(&cell.workload.suite)
            .map(|suite| (suite.phases)(&cell.workload, self.conditions.seed));
        let counts = |phase: &Phase| {
            let asks = matches!(&phase.work, Work::Command(command) if command.calls);
            asks && phase.together.is_none()
        };
        let Some(phase) = phases.and_then(|all| all.into_iter().find(counts)) else { return };
        if self.hosts.is_some() || cell.aa_duplicate {
            return;
        }
        let mut recorded = TrialData::default();
        if let Err(Stop::Failed(why)) = self.steps(cell, true, &mut recorded) {
            let what = format!("the file calls of {}", phase.name);
            data.warnings.push((Some(phase.name), Warning::NotAvailable { what, why }));
            return;
        }
        let calls = |(_, warning): &Located| matches!(warning, Warning::FileCalls { .. });
        data.warnings.extend(recorded.warnings.into_iter().filter(calls));
    }

    /// Runs the steps of a trial. `recorded`: its programs run under the recorder.
    fn steps(&mut self, cell: &Cell, recorded: bool, data: &mut TrialData) -> Result<(), Stop> {
        let suite = suites::find(&cell.workload.suite)
            .ok_or_else(|| Stop::Failed(format!("unknown suite `{}`", cell.workload.suite)))?;
        let place = self.hosts.map(|hosts| hosts.place(cell));
        let workload = match place {
            None => cell.workload.clone(),
            Some(place) => on_all_hosts(&cell.workload, place.of),
        };
        let mut phases = (suite.phases)(&workload, self.conditions.seed);
        let parts = place.map(|place| phases.iter_mut().map(|it| share(it, place)).collect());
        let parts: Vec<bool> = parts.unwrap_or_default();
        if recorded {
            record_programs(&mut phases);
        }
        // The load generator is measured before the filesystem is created, when the machine is idle
        // and no cache is warm.
        let slower = slower(cell);
        let counts = self.conditions.clock == Clock::Instructions;
        let ceiling = |phase| match counts {
            true => None,
            false => self.ceilings.of(phase).map(|cost| cost * slower),
        };
        let generator: Vec<_> = phases.iter().map(ceiling).collect();
        let scratch = self.scratch(&phases)?;
        (self.observer.notify)(&Event::PhaseStarted { name: lifecycle::MKFS, time: None });
        let mut mounted = self.instance(cell)?;
        check_settings(cell, &mounted)?;
        if let Some(hosts) = self.hosts {
            let directory = hosts.directory(mounted.directory())?;
            mounted.share(directory);
        }
        let phases = match mounted.raw_device() {
            Some(device) => {
                let device = device.display().to_string();
                suites::on_device(&cell.workload, self.conditions.seed, &device)
                    .map_err(Stop::Failed)?
            }
            None => phases,
        };
        let workload = Workload {
            phases: &phases,
            generator: &generator,
            observer: self.observer,
            worker_command: &self.conditions.worker_command,
            crash_state: self.conditions.crash_state.as_deref(),
            external_directory: scratch.as_ref().map(Scratch::path),
            always: self.always,
            hosts: self.hosts.map(|hosts| (hosts, &parts[..])),
        };
        let ran = workload.run(&mut mounted, &mut self.other_io_seen, data);
        data.environment.merge(mounted.environment().clone());
        data.warnings.extend(mounted.warnings().iter().map(|w| (None, w.clone())));
        data.samples.extend(samples::available_space(mounted.space()));
        ran?;
        if let Some(hosts) = self.hosts {
            hosts.fence("all phases ended")?;
        }
        (self.observer.notify)(&Event::PhaseStarted { name: lifecycle::SPACE, time: None });
        let taken = mounted.space_usage();
        let taken = taken.map_err(|error| Stop::failed("reading the used space", &error))?;
        data.samples.extend(taken.map(samples::used_space).unwrap_or_default());
        (self.observer.notify)(&Event::PhaseStarted { name: lifecycle::UMOUNT, time: None });
        let finished = mounted.finish(self.conditions.fsck);
        let finished =
            finished.map_err(|error| Stop::failed("finishing the filesystem", &error))?;
        data.environment.merge(finished.facts);
        data.warnings.extend(finished.warnings.into_iter().map(|warning| (None, warning)));
        if let Some(verdict) = finished.damage {
            data.warnings.push((None, Warning::FsckFailed { verdict }));
        }
        let clock = self.conditions.clock;
        finished.lifecycle.into_iter().try_for_each(|step| store_step(step, clock, data))
    }

    /// Creates and mounts the filesystem of a cell.
    fn instance(&self, cell: &Cell) -> Result<MountedFilesystem, Stop> {
        let get = |name: &str| {
            let entry = self.catalog.get(name);
            entry.map_err(|error| Stop::failed("the catalog", &error))
        };
        let level = &cell.level();
        // The seed of the run creates the same files in every trial and on every filesystem.
        let (seed, interrupt) = (self.conditions.seed, self.observer.interrupt);
        let populate = |directory: &Path, files| {
            let written = engine::populate(directory, files, seed, interrupt);
            written.map_err(|error| crate::exit::chain(&error))
        };
        let mounted = self.rig.instance(&InstanceSpec {
            converted_to: level.converted_to.as_deref().map(get).transpose()?,
            scheduler: cell.scheduler.as_deref(),
            settings: &cell.settings,
            fill_level: cell.fill_level,
            isolation: self.conditions.isolation,
            populate: &populate,
            ..InstanceSpec::plain(get(&level.fs_type)?, level)
        });
        mounted.map_err(|error| Stop::failed("creating the filesystem", &error))
    }

    /// Subdirectory of the trial on another filesystem, if a phase needs one.
    fn scratch(&mut self, phases: &[Phase]) -> Result<Option<Scratch>, Stop> {
        if !phases.iter().any(needs_external_directory) {
            return Ok(None);
        }
        if self.external_directory.is_none() {
            let made = self.rig.external_directory();
            self.external_directory = Some(
                made.map_err(|error| Stop::failed("creating the external directory", &error))?,
            );
        }
        let made = self.external_directory.as_deref().map(Scratch::new).transpose();
        made.map_err(|error| Stop::failed("creating the external directory", &error))
    }
}

/// Runs the programs of commands that ask for their file calls under the recorder.
fn record_programs(phases: &mut [Phase]) {
    for phase in phases {
        if let Work::Command(command) = &mut phase.work
            && command.calls
        {
            **command = command.recorded(THIS_PROGRAM);
        }
    }
}

/// Ratio of the full CPU speed to the CPU speed of a cell. The load generator overhead is measured
/// at full speed and increases by this ratio, because the loop is CPU-bound.
fn slower(cell: &Cell) -> f64 {
    let speed = cell.settings.get(&SystemSetting::CpuSpeed).map(ToString::to_string);
    let percent = speed.and_then(|text| parse_percent(&text).ok());
    percent.map_or(1.0, |percent| 100.0 / f64::from(percent))
}

/// Stores the cost and the system activity of a lifecycle step.
fn store_step(step: Step, clock: Clock, data: &mut TrialData) -> Result<(), Stop> {
    data.samples.extend(samples::step(&step, clock));
    let located = |warning| (Some(step.name.to_owned()), warning);
    data.warnings.extend(samples::step_warnings(&step).into_iter().map(located));
    let Some(activity) = step.activity else { return Ok(()) };
    let stands = verdict::check_log(&activity.log);
    data.activity.push((step.name.to_owned(), activity));
    stands.map_err(|why| Stop::Failed(format!("{}: {why}", step.name)))
}

/// Checks that the settings of the cell were applied, because its results would be mislabeled
/// otherwise. Rounding by the kernel is accepted.
fn check_settings(cell: &Cell, mounted: &MountedFilesystem) -> Result<(), Stop> {
    let of_the_plan = |setting: &str| {
        let named = |factor: &SystemSetting| setting.starts_with(factor.spec().name);
        setting.contains("scheduler") || cell.settings.keys().any(named)
    };
    let broken = mounted.warnings().iter().find(|warning| {
        matches!(warning, Warning::SettingNotApplied { setting, wanted, found }
            if of_the_plan(setting) && !rounded(wanted, found))
    });
    match broken {
        None => Ok(()),
        Some(warning) => Err(Stop::Failed(format!("{}; {}", warning.message(), warning.hint()))),
    }
}

/// Reports whether two texts are numbers that differ by less than a factor of two.
fn rounded(wanted: &str, found: &str) -> bool {
    match (wanted.trim().parse::<f64>(), found.trim().parse::<f64>()) {
        (Ok(wanted), Ok(found)) => found > wanted / 2.0 && found < wanted * 2.0,
        _ => false,
    }
}

/// Checks that the directory under test is still writable after a phase.
fn writable(phase: &str, directory: &Path) -> Result<(), Stop> {
    let flags = rustix::fs::statvfs(directory).map(|statistics| statistics.f_flag);
    let flags = flags
        .map_err(|error| Stop::failed(&format!("checking the filesystem after {phase}"), &error))?;
    verdict::still_writable(flags).map_err(|why| Stop::Failed(format!("{phase}: {why}")))
}

#[cfg(test)]
mod tests {
    use model::{Metric, Nanos, activity::LogLine};
    use rig::ProgramTime;

    use super::*;

    fn step(log: Vec<LogLine>) -> Step {
        Step {
            name: lifecycle::UMOUNT,
            elapsed: Nanos(1_000_000),
            program: Some(ProgramTime { user: Nanos(1), system: Nanos(2) }),
            activity: Some(SystemActivity { log, ..SystemActivity::default() }),
        }
    }

    #[test]
    fn a_fatal_line_in_a_step_fails_the_trial_and_keeps_its_activity() {
        let line = |fatal| LogLine { level: 3, fatal, text: "EXT4-fs error (device loop3)".into() };
        let mut data = TrialData::default();
        assert!(store_step(step(vec![line(false)]), Clock::Wall, &mut data).is_ok());
        assert!(matches!(&data.warnings[..], [(Some(at), Warning::KernelMessage { .. })]
            if at == lifecycle::UMOUNT));
        let failed = store_step(step(vec![line(true)]), Clock::Wall, &mut data);
        assert!(matches!(failed, Err(Stop::Failed(why))
            if why.starts_with("umount: ") && why.contains("EXT4-fs error (device loop3)")));
        assert_eq!(data.activity.len(), 2);
        let elapsed = |sample: &&Sample| sample.metric == Metric::Elapsed;
        assert_eq!(data.samples.iter().filter(elapsed).count(), 2);
    }
}
