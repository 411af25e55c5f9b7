//! The phases of a trial: each made ready, watched, carried out, judged, and named.

use std::{collections::BTreeMap, path::Path};

use engine::{Context, CrashState, EngineError};
use model::{
    Clock, Nanos, Phase, PhaseResult, Warning,
    phase::{Bound, Cache, Role, Series, Set, Stream, Tree, TreeStep, Until, Work},
};
use rig::Mounted;

use super::{Gathered, Stop, verdict, writable};
use crate::conductor::{
    Watch,
    events::Event,
    name::{self, Always, Known},
};

/// How long a device may take to come to rest before a phase.
const SETTLE_LIMIT: Nanos = Nanos(5_000_000_000);

/// The same once a device was found busy with what others do: waiting longer would not help.
const RESTLESS_LIMIT: Nanos = Nanos(500_000_000);

/// The phases of a trial and what they need.
pub(super) struct Workload<'a> {
    pub(super) phases: &'a [Phase],
    /// What the loop of each phase costs for an operation, in nanoseconds.
    pub(super) generator: &'a [Option<f64>],
    pub(super) watch: Watch<'a>,
    pub(super) worker_command: &'a [std::ffi::OsString],
    pub(super) crash_state: Option<&'a CrashState>,
    /// The trial's directory on another filesystem, if a phase needs it.
    pub(super) elsewhere: Option<&'a Path>,
    pub(super) always: Always,
}

impl Workload<'_> {
    /// Carries all phases out, and gathers what the measured ones gave.
    pub(super) fn run(
        &self,
        mounted: &mut Mounted,
        restless: &mut bool,
        gathered: &mut Gathered,
    ) -> Result<(), Stop> {
        let mut lacking = Lacking::default();
        for (phase, generator) in self.phases.iter().zip(self.generator) {
            if let Some(warning) = lacking.keeps(phase) {
                if phase.role == Role::Measure {
                    gathered.warnings.push((Some(phase.name.clone()), warning));
                }
                continue;
            }
            (self.watch.observer)(&Event::PhaseStarted { name: &phase.name, time: time_of(phase) });
            let mut ready = ready(phase, self.always.clock, mounted, restless)?;
            ready.extend(mounted.expect_workers(phase.work.workers()));
            if phase.role == Role::Measure {
                let begun = mounted.begin_faults();
                begun.map_err(|error| Stop::failed("making the devices fail", &error))?;
            }
            let (result, stands) = match phase.role {
                Role::Measure => self.measured(phase, *generator, mounted, ready, gathered),
                Role::Prepare => {
                    let listener = mounted.listen();
                    let result = self.engine(phase, mounted.directory());
                    (result.map(|_| ()), verdict::stands(&listener.end()))
                }
            };
            // What the kernel tells says more than the call that failed for it.
            stands.map_err(|why| Stop::Failed(format!("{}: {why}", phase.name)))?;
            if let Err(Stop::Lacks(warning)) = result {
                lacking.note(phase, &warning);
                if phase.role == Role::Measure {
                    gathered.warnings.push((Some(phase.name.clone()), warning));
                }
                continue;
            }
            result?;
            writable(&phase.name, mounted.directory())?;
        }
        // What comes now is done by one program after the other.
        gathered.warnings.extend(mounted.expect_workers(1).map(|warning| (None, warning)));
        gathered.warnings.extend(name::across(self.phases, &gathered.samples));
        Ok(())
    }

    /// Carries a measured phase out under watch; whether it went through, and whether the kernel
    /// lets it stand.
    fn measured(
        &self,
        phase: &Phase,
        generator: Option<f64>,
        mounted: &Mounted,
        ready: Vec<Warning>,
        gathered: &mut Gathered,
    ) -> (Result<(), Stop>, Result<(), String>) {
        let watch = mounted.watch();
        let result = self.engine(phase, mounted.directory());
        let evidence = watch.end();
        let stands = verdict::stands(&evidence.log);
        let known = Known { always: self.always, evidence, generator };
        if let Ok(result) = &result {
            self.keep(phase, result, &known, ready, gathered);
        }
        if !matches!(result, Err(Stop::Lacks(_))) {
            gathered.evidence.push((phase.name.clone(), known.evidence));
        }
        (result.map(|_| ()), stands)
    }

    /// Names what a measured phase gave; `warnings` are those of making it ready.
    fn keep(
        &self,
        phase: &Phase,
        result: &PhaseResult,
        known: &Known,
        warnings: Vec<Warning>,
        gathered: &mut Gathered,
    ) {
        let samples = name::samples(phase, result, known);
        let metric = self.always.clock.judged(phase.primary());
        if let Some(value) = name::value(&samples, metric) {
            let name = phase.name.as_str();
            (self.watch.observer)(&Event::PhaseEnded { name, metric, value });
        }
        let own = name::warnings(phase, result, known, &samples);
        let located = |warning| (Some(phase.name.clone()), warning);
        gathered.warnings.extend(warnings.into_iter().chain(own).map(located));
        gathered.samples.extend(samples);
        gathered.environment.merge(result.facts.clone());
        gathered.histograms.extend(name::histograms(&phase.name, result));
        let series = Series::merged(result.workers.iter().map(|worker| &worker.series));
        // Work over time is a rate.
        if !series.ops.is_empty() && self.always.clock != Clock::Instructions {
            gathered.series.push((phase.name.clone(), series));
        }
    }

    fn engine(&self, phase: &Phase, directory: &Path) -> Result<PhaseResult, Stop> {
        let Watch { progress, interrupt, .. } = self.watch;
        let state = self.crash_state.filter(|_| leaves_a_state(phase));
        let worker_command = self.worker_command;
        let context = Context { directory, progress, interrupt, state, worker_command };
        let result = match &phase.work {
            Work::Stream(stream) => engine::run(stream, &context),
            Work::Tree(tree) => engine::run_tree(tree, &context),
            Work::Mix(mix) => engine::run_mix(mix, &context),
            Work::Replay(replay) => engine::run_replay(replay, &context),
            Work::Layout(layout) => engine::run_layout(layout, &context),
            Work::Task(task) => engine::run_task(task, self.elsewhere, &context),
            Work::Remove { files, workers } => engine::remove(files, *workers, &context),
        };
        result.map_err(|error| {
            if let EngineError::Unsupported { what, source } = &error {
                let (what, why) = ((*what).to_owned(), source.to_string());
                return Stop::Lacks(Warning::Lacks { what, why });
            }
            if matches!(error, EngineError::Interrupted) {
                return Stop::Interrupted;
            }
            Stop::failed(&phase.name, &error)
        })
    }
}

/// Sets that are not as they should be, since the filesystem does not have what was to be done to
/// them.
#[derive(Debug, Default)]
struct Lacking(BTreeMap<String, Warning>);

impl Lacking {
    /// A phase was left out: what comes after it finds its set otherwise than it needs it.
    fn note(&mut self, phase: &Phase, warning: &Warning) {
        if let Some(set) = set_of(phase) {
            self.0.insert(set.name.clone(), warning.clone());
        }
    }

    /// What keeps a phase from being done, unless it makes its set itself.
    fn keeps(&mut self, phase: &Phase) -> Option<Warning> {
        let set = set_of(phase)?;
        if makes(phase) {
            self.0.remove(&set.name);
        }
        self.0.get(&set.name).cloned()
    }
}

fn set_of(phase: &Phase) -> Option<&Set> {
    match &phase.work {
        Work::Tree(tree) => Some(&tree.set),
        Work::Mix(mix) => Some(&mix.set),
        Work::Layout(layout) => Some(&layout.set),
        Work::Stream(_) | Work::Replay(_) | Work::Task(_) | Work::Remove { .. } => None,
    }
}

/// Whether a phase needs nothing of its set to be there.
fn makes(phase: &Phase) -> bool {
    let first = |tree: &Tree| tree.steps.iter().copied().find(|step| *step != TreeStep::MakeParent);
    match &phase.work {
        Work::Layout(_) => true,
        Work::Tree(tree) => matches!(
            first(tree),
            Some(
                TreeStep::Create
                    | TreeStep::LinkFirst
                    | TreeStep::SymlinkFirst
                    | TreeStep::Symlink
                    | TreeStep::Mknod
                    | TreeStep::Mkdir
            )
        ),
        Work::Mix(_) | Work::Stream(_) | Work::Replay(_) | Work::Task(_) | Work::Remove { .. } => {
            false
        }
    }
}

/// Whether a phase is one whose files can be judged after a crash.
fn leaves_a_state(phase: &Phase) -> bool {
    let writes =
        |stream: &Stream| (0..stream.workers.count).any(|worker| stream.direction.writes(worker));
    phase.role == Role::Measure && matches!(&phase.work, Work::Stream(stream) if writes(stream))
}

/// Brings the caches into the state the phase asks for, and the device to rest. A warm phase comes
/// after those that read or wrote its files, and is judged by what it reads.
fn ready(
    phase: &Phase,
    clock: Clock,
    mounted: &mut Mounted,
    restless: &mut bool,
) -> Result<Vec<Warning>, Stop> {
    let mut warnings = Vec::new();
    if phase.cache == Cache::Cold {
        let cold =
            mounted.make_cold().map_err(|error| Stop::failed("emptying the caches", &error))?;
        warnings.extend(cold);
    }
    // Waiting costs no time where instructions are counted, but looking does, and what only
    // prepares has no number that could be disturbed.
    if phase.role == Role::Prepare && clock == Clock::Instructions {
        return Ok(warnings);
    }
    let settled = mounted.settle(if *restless { RESTLESS_LIMIT } else { SETTLE_LIMIT });
    let busy = settled.map_err(|error| Stop::failed("waiting for the device", &error))?;
    *restless |= busy.is_some();
    warnings.extend(busy);
    Ok(warnings)
}

/// How long the workers of a phase work, where that is given.
pub(crate) fn time_of(phase: &Phase) -> Option<Nanos> {
    match &phase.work {
        Work::Stream(stream) => match stream.bound {
            Bound::Time { ramp, run } => Some(ramp + run),
            Bound::Once | Bound::Ops(_) | Bound::Together(_) => None,
        },
        Work::Replay(replay) => match replay.until {
            Until::Time { ramp, run } => Some(ramp + run),
            Until::Replayed(_) => None,
        },
        Work::Tree(_) | Work::Mix(_) | Work::Layout(_) | Work::Task(_) | Work::Remove { .. } => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of the phases that are left out, with what keeps them, if those named are lacking.
    fn left_out(suite: &str, settings: &[(&str, &str)], lacks: &[&str]) -> Vec<String> {
        let suite = suites::find(suite).unwrap();
        let mut point = suite.spec.defaults();
        for (name, text) in settings {
            let kind = suite.spec.parameter(name).unwrap().kind;
            point.parameters.insert((*name).to_owned(), kind.read(text).unwrap());
        }
        let point = (suite.refine)(point).unwrap().remove(0);
        let mut lacking = Lacking::default();
        let mut left = Vec::new();
        for phase in (suite.phases)(&point, 1) {
            if lacking.keeps(&phase).is_some() {
                left.push(phase.name);
            } else if lacks.contains(&phase.name.as_str()) {
                let (what, why) = ("links".to_owned(), "no".to_owned());
                lacking.note(&phase, &Warning::Lacks { what, why });
                left.push(phase.name);
            }
        }
        left
    }

    #[test]
    fn what_a_lack_leaves_out_is_what_needs_its_set_and_nothing_else() {
        let metadata =
            |operations, lacks: &[&str]| left_out("metadata", &[("operations", operations)], lacks);
        let after = metadata("link,unlink,stat", &["link"]);
        assert!(after.iter().all(|name| name.starts_with("link")), "{after:?}");
        let after = metadata("symlink,mkdir", &["symlink"]);
        assert!(after.iter().all(|name| name.starts_with("symlink")), "{after:?}");
        let files = [("links", "hard"), ("tests", "seq-create,seq-stat,seq-delete")];
        let after = left_out("bonnie", &files, &["seq-create"]);
        assert_eq!(after, ["seq-create", "seq-stat", "seq-delete"]);
        let after = left_out("smallfile", &[], &["write"]);
        assert_eq!(after, ["write", "stat", "read", "rewrite", "unlink"]);
    }
}
