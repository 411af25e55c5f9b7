//! Phases of a trial: preparation, execution under monitoring, checks, and conversion to samples.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use engine::{Context, CrashState, EngineError};
use model::{
    Clock, Nanos, Phase, PhaseResult, Warning,
    phase::{Cache, Command, Role, Series, Set, Stream, Tree, TreeStep, UNLIMITED, Work},
    record::Action,
};
use rig::MountedFilesystem;

use super::{Stop, TrialData, commands::Session, verdict, writable};
use crate::runner::{
    RunObserver,
    events::Event,
    hosts::HostGate,
    samples::{self, PhaseContext, RunContext},
};

/// Maximum time to wait for an idle device before a phase.
const SETTLE_LIMIT: Nanos = Nanos(5_000_000_000);

/// Maximum time to wait after a device was not idle because of other I/O: a longer wait does not
/// help then.
const RESTLESS_LIMIT: Nanos = Nanos(500_000_000);

/// Phases of a trial with their context.
pub(super) struct Workload<'a> {
    pub(super) phases: &'a [Phase],
    /// Load generator cost of each phase, in nanoseconds per operation.
    pub(super) generator: &'a [Option<f64>],
    pub(super) observer: RunObserver<'a>,
    pub(super) worker_command: &'a [std::ffi::OsString],
    pub(super) crash_state: Option<&'a CrashState>,
    /// Directory of the trial on another filesystem, if a phase needs it.
    pub(super) external_directory: Option<&'a Path>,
    pub(super) always: RunContext,
    /// Connection to the other hosts, and the phases in which this host takes part; `None` for a
    /// trial on one host.
    pub(super) hosts: Option<(&'a dyn HostGate, &'a [bool])>,
}

impl Workload<'_> {
    /// Runs all phases and collects the results of measured phases.
    pub(super) fn run(
        &self,
        mounted: &mut MountedFilesystem,
        other_io_seen: &mut bool,
        data: &mut TrialData,
    ) -> Result<(), Stop> {
        let mut lacking = Lacking::default();
        let mut first_start = None;
        let mut index = 0;
        while let Some(phase) = self.phases.get(index) {
            let members = members(&self.phases[index..]);
            let generators = &self.generator[index..index + members.len()];
            index += members.len();
            let first_start = match phase.role {
                Role::Measure => *first_start.get_or_insert_with(engine::now),
                Role::Prepare => Nanos(0),
            };
            if phase.together.is_some() {
                let part = (members, generators);
                self.group(part, first_start, mounted, other_io_seen, data)?;
                continue;
            }
            let generator = &generators[0];
            if let Some((hosts, parts)) = self.hosts {
                let part = (phase, parts[index - 1], *generator);
                self.on_host(hosts, part, mounted, other_io_seen, data)?;
                continue;
            }
            if let Some(warning) = lacking.keeps(phase) {
                if phase.role == Role::Measure {
                    data.warnings.push((Some(phase.name.clone()), warning));
                }
                continue;
            }
            (self.observer.notify)(&Event::PhaseStarted {
                name: &phase.name,
                time: time_of(phase),
            });
            let mut ready = ready(phase, self.always.clock, mounted, other_io_seen)?;
            let directory = &directory_of(phase, mounted.directory())?;
            ready.extend(mounted.expect_workers(phase.work.workers()));
            if phase.role == Role::Measure {
                let begun = mounted.begin_faults();
                begun.map_err(|error| Stop::failed("enabling device errors", &error))?;
            }
            let (result, stands) = match phase.role {
                Role::Measure => {
                    self.measured(phase, (*generator, directory), mounted, ready, data)
                }
                Role::Prepare => {
                    let listener = mounted.listen();
                    let result = self.engine(phase, directory);
                    (result.map(|_| ()), verdict::check_log(&listener.end()))
                }
            };
            // The kernel log describes the error better than the failed call.
            stands.map_err(|why| Stop::Failed(format!("{}: {why}", phase.name)))?;
            if let Err(Stop::Unsupported(warning)) = result {
                lacking.note(phase, &warning);
                if phase.role == Role::Measure {
                    data.warnings.push((Some(phase.name.clone()), warning));
                }
                continue;
            }
            result?;
            writable(&phase.name, mounted.directory())?;
        }
        // The programs that run after the phases have one worker each.
        data.warnings.extend(mounted.expect_workers(1).map(|warning| (None, warning)));
        data.warnings.extend(samples::across(self.phases, &data.samples));
        Ok(())
    }

    /// Runs a measured phase under monitoring, and checks its result and the kernel log.
    fn measured(
        &self,
        phase: &Phase,
        (generator, directory): (Option<f64>, &Path),
        mounted: &MountedFilesystem,
        mut ready: Vec<Warning>,
        data: &mut TrialData,
    ) -> (Result<(), Stop>, Result<(), String>) {
        // The server of a command starts before the window of the monitor, and ends after it.
        let mut session = None;
        if let Work::Command(command) = &phase.work {
            match self.session(&phase.name, command, directory, self.observer.interrupt) {
                Ok(started) => session = Some(started),
                Err(stop) => return (Err(stop), Ok(())),
            }
        }
        let monitor = mounted.monitor();
        let mut result = match &mut session {
            Some(session) => session.measure(),
            None => self.engine(phase, directory),
        };
        let mut activity = monitor.end();
        if let (Some(session), Ok(measured)) = (session, &mut result)
            && let Err(stop) = session.complete(measured, &mut activity, &mut ready)
        {
            result = Err(stop);
        }
        let stands = verdict::check_log(&activity.log);
        let known = PhaseContext { always: self.always, activity, generator };
        if let Ok(result) = &result {
            self.keep(phase, result, &known, ready, data);
        }
        if !matches!(result, Err(Stop::Unsupported(_))) {
            data.activity.push((phase.name.clone(), known.activity));
        }
        (result.map(|_| ()), stands)
    }

    /// Converts the result of a measured phase to samples. `warnings` are the warnings of its
    /// preparation.
    pub(super) fn keep(
        &self,
        phase: &Phase,
        result: &PhaseResult,
        known: &PhaseContext,
        warnings: Vec<Warning>,
        data: &mut TrialData,
    ) {
        let samples = samples::of_phase(phase, result, known);
        let metric = self.always.clock.primary_metric(phase.primary());
        if let Some(value) = samples::value(&samples, metric) {
            let name = phase.name.as_str();
            (self.observer.notify)(&Event::PhaseEnded { name, metric, value });
        }
        let own = samples::warnings(phase, result, known, &samples);
        let located = |warning| (Some(phase.name.clone()), warning);
        data.warnings.extend(warnings.into_iter().chain(own).map(located));
        data.samples.extend(samples);
        data.actions.extend(events(phase, result));
        data.environment.merge(result.facts.clone());
        data.histograms.extend(samples::histograms(&phase.name, result));
        let series = Series::merged(result.workers.iter().map(|worker| &worker.series));
        // A series of work over time has no meaning on an instruction clock.
        if !series.ops.is_empty() && self.always.clock != Clock::Instructions {
            data.series.push((phase.name.clone(), series));
        }
    }

    /// Starts the programs of a command, and its server.
    pub(super) fn session<'a>(
        &'a self,
        name: &'a str,
        command: &'a Command,
        directory: &'a Path,
        interrupt: &'a AtomicBool,
    ) -> Result<Session<'a>, Stop> {
        let external = self
            .external_directory
            .ok_or_else(|| Stop::Failed("the programs have no external directory".into()))?;
        Session::begin(name, command, directory, external, interrupt)
    }

    fn engine(&self, phase: &Phase, directory: &Path) -> Result<PhaseResult, Stop> {
        let RunObserver { progress, interrupt, .. } = self.observer;
        if let Work::Command(command) = &phase.work {
            let mut session = self.session(&phase.name, command, directory, interrupt)?;
            let mut result = session.measure()?;
            session.complete(&mut result, &mut Default::default(), &mut Vec::new())?;
            return Ok(result);
        }
        let state = self.crash_state.filter(|_| leaves_a_state(phase));
        let worker_command = self.worker_command;
        let context =
            Context { directory, progress, interrupt, state, worker_command, start: None };
        run_work(phase, &context, self.external_directory)
    }
}

/// Runs the work of a phase that is not a command.
pub(super) fn run_work(
    phase: &Phase,
    context: &Context<'_>,
    external: Option<&Path>,
) -> Result<PhaseResult, Stop> {
    let result = match &phase.work {
        Work::Stream(stream) => engine::run(stream, context),
        Work::Tree(tree) => engine::run_tree(tree, context),
        Work::Mix(mix) => engine::run_mix(mix, context),
        Work::Replay(replay) => engine::run_replay(replay, context),
        Work::Layout(layout) => engine::run_layout(layout, context),
        Work::Task(task) => engine::run_task(task, external, context),
        Work::Sqlite(sqlite) => engine::run_sqlite(sqlite, context),
        Work::Mail(mail) => engine::run_mail(mail, context),
        Work::Trace(replay) => engine::run_trace(replay, context),
        Work::Maintenance(maintenance) => engine::run_maintenance(maintenance, context),
        Work::Coherence(coherence) => engine::run_coherence(coherence, context),
        Work::Command(_) => unreachable!("commands are run by a session"),
        Work::Remove { files, workers } => engine::remove(files, *workers, context),
    };
    result.map_err(|error| {
        if let EngineError::Unsupported { what, source } = &error {
            let (what, why) = ((*what).to_owned(), source.to_string());
            return Stop::Unsupported(Warning::NotSupported { what, why });
        }
        if matches!(error, EngineError::Interrupted) {
            return Stop::Interrupted;
        }
        Stop::failed(&phase.name, &error)
    })
}

/// Maintenance actions of a phase as actions of the trial.
pub(super) fn events(phase: &Phase, result: &PhaseResult) -> Vec<Action> {
    let Work::Maintenance(maintenance) = &phase.work else { return Vec::new() };
    let begun = result.workers.iter().map(|worker| (worker.begun, &worker.events));
    let each = begun.flat_map(|(begun, events)| events.iter().map(move |event| (begun, event)));
    let action = |(begun, event): (Nanos, &model::phase::Event)| Action {
        description: format!(
            "{}: {} {:.3} s after the start of the workload",
            phase.name,
            maintenance.action.name(),
            (event.begun - begun).seconds(),
        ),
        elapsed: event.elapsed,
        error: event.error.clone(),
    };
    each.map(action).collect()
}

/// First phase, and the phases after it that start together with it.
fn members(phases: &[Phase]) -> &[Phase] {
    let group = |phase: &Phase| phase.together.map(|together| together.group);
    let first = phases.first().and_then(group);
    let others = phases.iter().skip(1);
    let others = others.take_while(|phase| first.is_some() && group(phase) == first).count();
    &phases[..phases.len().min(1 + others)]
}

/// Directory of a phase, which is created if it does not exist.
pub(super) fn directory_of(phase: &Phase, target: &Path) -> Result<PathBuf, Stop> {
    let Some(name) = &phase.directory else { return Ok(target.to_owned()) };
    let directory = target.join(name);
    match fs::create_dir(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Stop::failed(&format!("creating the directory of {}", phase.name), &error))
        }
        Err(_) | Ok(()) => Ok(directory),
    }
}

/// File sets that are not in the expected state because the filesystem did not support an
/// operation, with the warning about the operation.
#[derive(Debug, Default)]
struct Lacking(BTreeMap<(Option<String>, String), Warning>);

impl Lacking {
    /// Records that a phase did not run, so that later phases will not find the file set that they
    /// need.
    fn note(&mut self, phase: &Phase, warning: &Warning) {
        if let Some(set) = phase.work.set() {
            self.0.insert(key(phase, set), warning.clone());
        }
    }

    /// Reason to skip a phase; `None` if its file set is in the expected state, or if the phase
    /// creates the set.
    fn keeps(&mut self, phase: &Phase) -> Option<Warning> {
        let key = key(phase, phase.work.set()?);
        if makes(phase) {
            self.0.remove(&key);
        }
        self.0.get(&key).cloned()
    }
}

/// Directory and name of a file set.
fn key(phase: &Phase, set: &Set) -> (Option<String>, String) {
    (phase.directory.clone(), set.name.clone())
}

/// Reports whether a phase creates the files of its set.
fn makes(phase: &Phase) -> bool {
    let first = |tree: &Tree| tree.steps.iter().copied().find(|step| *step != TreeStep::MakeParent);
    let Work::Tree(tree) = &phase.work else { return matches!(phase.work, Work::Layout(_)) };
    matches!(
        first(tree),
        Some(
            TreeStep::Create
                | TreeStep::OpenCreate
                | TreeStep::LinkFirst
                | TreeStep::SymlinkFirst
                | TreeStep::Symlink
                | TreeStep::Mknod
                | TreeStep::Mkdir
        )
    )
}

/// Reports whether the files of a phase can be verified after a crash.
fn leaves_a_state(phase: &Phase) -> bool {
    let writes =
        |stream: &Stream| (0..stream.workers.count).any(|worker| stream.direction.writes(worker));
    phase.role == Role::Measure && matches!(&phase.work, Work::Stream(stream) if writes(stream))
}

/// Drops the caches before a cold phase and waits for an idle device. A warm phase needs no
/// preparation, because earlier phases read or wrote its files; its cache hit ratio is checked
/// afterwards.
pub(super) fn ready(
    phase: &Phase,
    clock: Clock,
    mounted: &mut MountedFilesystem,
    other_io_seen: &mut bool,
) -> Result<Vec<Warning>, Stop> {
    let mut warnings = Vec::new();
    if phase.cache == Cache::Cold {
        let cold =
            mounted.drop_caches().map_err(|error| Stop::failed("dropping the caches", &error))?;
        warnings.extend(cold);
    }
    // On an instruction clock, waiting takes no instructions, but polling does. A phase that only
    // prepares files has no result that other I/O could affect.
    if phase.role == Role::Prepare && clock == Clock::Instructions {
        return Ok(warnings);
    }
    let settled = mounted.wait_idle(if *other_io_seen { RESTLESS_LIMIT } else { SETTLE_LIMIT });
    let busy = settled.map_err(|error| Stop::failed("waiting for the device", &error))?;
    *other_io_seen |= busy.is_some();
    warnings.extend(busy);
    Ok(warnings)
}

/// Runtime of the workers of a phase, if it is fixed.
pub(crate) fn time_of(phase: &Phase) -> Option<Nanos> {
    let delay = phase.together.map(|together| together.start_delay).unwrap_or_default();
    limit_of(phase).filter(|time| *time < UNLIMITED).map(|time| delay + time)
}

pub(super) fn limit_of(phase: &Phase) -> Option<Nanos> {
    phase.work.time_limit().map(|limit| limit.ramp + limit.run)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Skipped phases and the reasons, given the unsupported ones.
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
                lacking.note(&phase, &Warning::NotSupported { what, why });
                left.push(phase.name);
            }
        }
        left
    }

    #[test]
    fn an_unsupported_phase_skips_only_the_phases_that_need_its_files() {
        let metadata =
            |operations, lacks: &[&str]| left_out("metadata", &[("operations", operations)], lacks);
        let after = metadata("link,unlink,stat", &["link"]);
        assert!(after.iter().all(|name| name.starts_with("link")), "{after:?}");
        let after = metadata("symlink,mkdir", &["symlink"]);
        assert!(after.iter().all(|name| name.starts_with("symlink")), "{after:?}");
        let files = [("links", "hard"), ("tests", "seq-create,seq-stat,seq-delete")];
        let after = left_out("bonnie", &files, &["seq-create"]);
        assert_eq!(after, ["seq-create", "seq-stat", "seq-delete"]);
        let after = left_out("small-files", &[], &["write"]);
        assert_eq!(after, ["write", "stat", "read", "rewrite", "unlink"]);
    }
}
