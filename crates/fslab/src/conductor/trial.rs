//! One trial: a fresh filesystem, its phases, its end.

use std::{path::Path, sync::atomic::Ordering, time::Instant};

use engine::{Context, EngineError};
use model::{
    Environment, Nanos, Phase, PhaseResult, Sample, Warning,
    phase::{Bound, Cache, Role, Series, Stream, Work},
    record::{Action, Outcome, Times, TrialRecord},
    sample::lifecycle,
};
use rig::{DeviceCounters, Mounted};

use super::{Conductor, Located, Watch, events::Event, name, name::Evidence, now_unix, reason};

/// How long a device may take to come to rest before a phase.
const SETTLE_LIMIT: Nanos = Nanos(5_000_000_000);

/// The same once a device was found busy with what others do: waiting longer would not help.
const RESTLESS_LIMIT: Nanos = Nanos(500_000_000);

/// What a trial gathers on its way.
#[derive(Default)]
struct Gathered {
    samples: Vec<Sample>,
    histograms: Vec<Times>,
    series: Vec<(String, Series)>,
    warnings: Vec<Located>,
    actions: Vec<Action>,
    environment: Environment,
}

/// Why a trial stopped early.
enum Stop {
    Interrupted,
    Failed(String),
}

impl Stop {
    fn failed(step: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::Failed(reason(step, error))
    }
}

impl Conductor<'_> {
    /// Measures one trial; `None` when a signal ended it, and then the machine is as before and
    /// nothing is kept.
    pub(super) fn measure(&mut self, cell: usize, repeat: u32) -> Option<TrialRecord> {
        let (started, started_unix) = (Instant::now(), now_unix());
        let mut gathered = Gathered::default();
        let steps = self.steps(cell, &mut gathered);
        gathered.actions = self.rig.take_actions();
        let outcome = match steps {
            Ok(()) => Outcome::Measured,
            Err(Stop::Failed(reason)) if !self.watch.interrupt.load(Ordering::Relaxed) => {
                Outcome::Failed { reason }
            }
            Err(Stop::Failed(_) | Stop::Interrupted) => return None,
        };
        Some(TrialRecord {
            cell,
            repeat,
            started_unix,
            elapsed: started.elapsed().into(),
            outcome,
            samples: gathered.samples,
            histograms: gathered.histograms,
            series: gathered.series,
            warnings: gathered.warnings,
            actions: gathered.actions,
            environment: gathered.environment.beyond(&self.environment),
        })
    }

    fn steps(&mut self, index: usize, gathered: &mut Gathered) -> Result<(), Stop> {
        let cell = &self.cells[index].cell;
        let base = &cell.filesystem.base;
        let filesystem =
            self.catalogue.get(base).map_err(|error| Stop::failed("the catalogue", &error))?;
        let suite = suites::find(&cell.workload.suite).ok_or_else(|| {
            Stop::Failed(format!("this program has no suite `{}`", cell.workload.suite))
        })?;
        let phases = (suite.phases)(&cell.workload, self.settings.seed);
        // Before anything is made: the machine is as idle as it gets, and no cache is warm yet.
        let generator: Vec<_> = phases.iter().map(|phase| self.ceilings.of(phase)).collect();
        (self.watch.observer)(&Event::PhaseStarted { name: lifecycle::MKFS, time: None });
        let mounted = self.rig.instance(filesystem, &cell.filesystem, cell.scheduler.as_deref());
        let mut mounted = mounted.map_err(|error| Stop::failed("making the filesystem", &error))?;
        schedulers_hold(&mounted)?;
        let workload = Workload {
            phases: &phases,
            generator: &generator,
            watch: self.watch,
            worker_command: &self.settings.worker_command,
            crash_state: self.settings.crash_state.as_deref(),
            clock_cost: self.clock.cost,
        };
        let ran = workload.run(&mut mounted, &mut self.restless, gathered);
        gathered.environment.merge(mounted.environment().clone());
        gathered.warnings.extend(mounted.warnings().iter().map(|w| (None, w.clone())));
        space(&mounted, gathered);
        ran?;
        (self.watch.observer)(&Event::PhaseStarted { name: lifecycle::UMOUNT, time: None });
        let finished = mounted.finish(self.settings.fsck);
        let finished = finished.map_err(|error| Stop::failed("ending the filesystem", &error))?;
        let steps = finished.lifecycle.into_iter();
        gathered.samples.extend(steps.map(|(step, time)| elapsed(step, time)));
        if let Some(verdict) = finished.damage {
            gathered.warnings.push((None, Warning::Damaged { verdict }));
        }
        Ok(())
    }
}

/// A setting that is an axis of the plan must hold, or the number would stand under a wrong name.
fn schedulers_hold(mounted: &Mounted) -> Result<(), Stop> {
    let broken = mounted.warnings().iter().find(|warning| {
        matches!(warning, Warning::ReadBack { setting, .. } if setting.contains("scheduler"))
    });
    match broken {
        None => Ok(()),
        Some(warning) => Err(Stop::Failed(format!("{}; {}", warning.message(), warning.cure()))),
    }
}

/// The phases of a trial and what they need.
struct Workload<'a> {
    phases: &'a [Phase],
    /// What the loop of each phase costs for an operation, in nanoseconds.
    generator: &'a [Option<f64>],
    watch: Watch<'a>,
    worker_command: &'a [std::ffi::OsString],
    crash_state: Option<&'a Path>,
    clock_cost: Nanos,
}

impl Workload<'_> {
    fn run(
        &self,
        mounted: &mut Mounted,
        restless: &mut bool,
        gathered: &mut Gathered,
    ) -> Result<(), Stop> {
        for (phase, generator) in self.phases.iter().zip(self.generator) {
            (self.watch.observer)(&Event::PhaseStarted { name: &phase.name, time: time(phase) });
            let warnings = ready(phase, mounted, restless)?;
            let before = mounted.counters();
            let result = self.engine(phase, mounted.directory())?;
            let device = difference(before, mounted.counters());
            if phase.role != Role::Measure {
                continue;
            }
            let (clock_cost, generator) = (self.clock_cost, *generator);
            let evidence = Evidence { device, clock_cost, generator };
            let samples = name::samples(phase, &result, &evidence);
            let primary = phase.primary();
            if let Some(sample) =
                samples.iter().find(|sample| sample.metric == primary && sample.worker.is_none())
            {
                let (name, value) = (phase.name.as_str(), sample.value);
                (self.watch.observer)(&Event::PhaseEnded { name, metric: primary, value });
            }
            let own = name::warnings(phase, &result, &evidence);
            let located = |warning| (Some(phase.name.clone()), warning);
            gathered.warnings.extend(warnings.into_iter().chain(own).map(located));
            gathered.samples.extend(samples);
            gathered.histograms.extend(name::histograms(&phase.name, &result));
            let series = Series::merged(result.workers.iter().map(|worker| &worker.series));
            if !series.ops.is_empty() {
                gathered.series.push((phase.name.clone(), series));
            }
        }
        Ok(())
    }

    fn engine(&self, phase: &Phase, directory: &Path) -> Result<PhaseResult, Stop> {
        let Watch { progress, interrupt, .. } = self.watch;
        let state = self.crash_state.filter(|_| leaves_a_state(phase));
        let worker_command = self.worker_command;
        let context = Context { directory, progress, interrupt, state, worker_command };
        let result = match &phase.work {
            Work::Stream(stream) => engine::run(stream, &context),
            Work::Tree(tree) => engine::run_tree(tree, &context),
            Work::Remove { files, workers } => engine::remove(files, *workers, &context),
        };
        result.map_err(|error| {
            if matches!(error, EngineError::Interrupted) {
                return Stop::Interrupted;
            }
            Stop::failed(&phase.name, &error)
        })
    }
}

/// Whether a phase is one whose files can be judged after a crash.
fn leaves_a_state(phase: &Phase) -> bool {
    let writes =
        |stream: &Stream| (0..stream.workers.count).any(|worker| stream.direction.writes(worker));
    phase.role == Role::Measure && matches!(&phase.work, Work::Stream(stream) if writes(stream))
}

/// Brings the caches into the state the phase asks for, and the device to rest.
fn ready(phase: &Phase, mounted: &mut Mounted, restless: &mut bool) -> Result<Vec<Warning>, Stop> {
    let mut warnings = Vec::new();
    if phase.cache == Cache::Cold {
        let cold =
            mounted.make_cold().map_err(|error| Stop::failed("emptying the caches", &error))?;
        warnings.extend(cold);
    }
    let settled = mounted.settle(if *restless { RESTLESS_LIMIT } else { SETTLE_LIMIT });
    let busy = settled.map_err(|error| Stop::failed("waiting for the device", &error))?;
    *restless |= busy.is_some();
    warnings.extend(busy);
    Ok(warnings)
}

/// How long the workers of a phase work, where that is given.
fn time(phase: &Phase) -> Option<Nanos> {
    match &phase.work {
        Work::Stream(stream) => match stream.bound {
            Bound::Time { ramp, run } => Some(ramp + run),
            Bound::Once | Bound::Ops(_) => None,
        },
        Work::Tree(_) | Work::Remove { .. } => None,
    }
}

fn difference(
    before: Option<DeviceCounters>,
    after: Option<DeviceCounters>,
) -> Option<DeviceCounters> {
    let (before, after) = (before?, after?);
    Some(DeviceCounters { read: after.read - before.read, written: after.written - before.written })
}

#[expect(clippy::cast_precision_loss, reason = "sizes and counts below 2^53")]
fn space(mounted: &Mounted, gathered: &mut Gathered) {
    let space = mounted.space();
    let mut add = |metric, value: u64| {
        let phase = lifecycle::MKFS.to_owned();
        gathered.samples.push(Sample { phase, metric, worker: None, value: value as f64 });
    };
    add(model::Metric::SpaceUsable, space.usable.0);
    add(model::Metric::SpaceTotal, space.total.0);
    if let Some(inodes) = space.inodes {
        add(model::Metric::Inodes, inodes);
    }
}

#[expect(clippy::cast_precision_loss, reason = "below 104 days")]
fn elapsed(step: &str, time: Nanos) -> Sample {
    let value = time.0 as f64;
    Sample { phase: step.into(), metric: model::Metric::Elapsed, worker: None, value }
}
