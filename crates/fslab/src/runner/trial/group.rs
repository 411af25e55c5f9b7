//! Phases that start together: one thread per phase, one start, one monitor.
//!
//! Input: the phases of a group, and the mounted filesystem. Output: the results of each phase as
//! for a phase that runs alone, and the system activity of the whole group, which is stored as
//! [`GROUP`]. The group ends when the first measured phase ends by itself. If a phase fails, all
//! phases end, and so does the trial.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use engine::{Context, Flows, Progress, Start, StartGate};
use model::{
    Nanos, Phase, PhaseResult, SystemActivity, Warning,
    phase::{Cache, GROUP, GroupEnd, Part, Together, UNLIMITED, Work, later_group},
};
use rig::MountedFilesystem;

use super::{
    Stop, TrialData,
    commands::Session,
    phases::{Workload, directory_of, ready, run_work, time_of},
    verdict, writable,
};
use crate::runner::{
    events::Event,
    samples::{self, PhaseContext},
};

/// Interval in which the coordinator checks for an interruption.
const NAP: Duration = Duration::from_millis(50);

/// Phase of a group, ready to start.
struct Member<'a> {
    phase: &'a Phase,
    together: Together,
    directory: PathBuf,
    session: Option<Session<'a>>,
    /// Stopped at the end of the group.
    stops: bool,
}

/// Result of a phase and the session of its programs.
type Outcome<'a> = (Result<PhaseResult, Stop>, Option<Session<'a>>);

/// Result of a phase that succeeded, and the session of its programs.
type Measured<'a> = (PhaseResult, Option<Session<'a>>);

/// Places of the phases that have ended.
#[derive(Default)]
struct EndedPhases {
    places: Mutex<Vec<u32>>,
    changed: Condvar,
}

impl EndedPhases {
    fn add(&self, place: usize) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.push(u32::try_from(place).unwrap_or(u32::MAX));
        self.changed.notify_all();
    }

    /// Waits for the end of a phase. Returns false if `stop` is set or the gate is closed earlier.
    fn wait(&self, place: u32, gate: &StartGate, stop: &AtomicBool) -> bool {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if stop.load(Relaxed) || gate.is_closed() || gate.is_canceled() {
                return false;
            }
            if places.contains(&place) {
                return true;
            }
            let waited = self.changed.wait_timeout(places, NAP);
            places = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Parameters of all phases of a group.
#[derive(Clone, Copy)]
struct Shared<'a> {
    gate: &'a StartGate,
    ended: &'a EndedPhases,
    /// Set to end all phases at once.
    stop: &'a AtomicBool,
    progress: &'a Progress,
    worker_command: &'a [std::ffi::OsString],
    external: Option<&'a Path>,
    /// Start of the first measured phase of the trial.
    first: Nanos,
    /// Counts of the flows, if a phase has one.
    flows: Option<&'a Arc<Flows>>,
}

impl Workload<'_> {
    /// Runs phases that start together, and keeps their results.
    pub(super) fn group(
        &self,
        (group, generators): (&[Phase], &[Option<f64>]),
        first_start: Nanos,
        mounted: &mut MountedFilesystem,
        other_io_seen: &mut bool,
        data: &mut TrialData,
    ) -> Result<(), Stop> {
        let names: Vec<&str> = group.iter().map(|phase| phase.name.as_str()).collect();
        let time = group.iter().filter_map(time_of).max();
        (self.observer.notify)(&Event::PhaseStarted { name: &names.join(" + "), time });
        // The caches are dropped for all phases if they are dropped for one.
        let cold = group.iter().find(|phase| phase.cache == Cache::Cold);
        let first = cold.unwrap_or(&group[0]);
        let mut warnings = ready(first, self.always.clock, mounted, other_io_seen)?;
        let workers = group.iter().map(|phase| phase.work.workers());
        warnings.extend(mounted.expect_workers(workers.fold(0, u32::saturating_add)));
        let begun = mounted.begin_faults();
        begun.map_err(|error| Stop::failed("enabling device errors", &error))?;
        let directories = group.iter().map(|phase| directory_of(phase, mounted.directory()));
        let directories: Vec<PathBuf> = directories.collect::<Result<_, _>>()?;
        // A phase that waits for another one is prepared after it.
        let waits = |phase: &Phase| phase.together.is_some_and(|own| own.after.is_some());
        let first = group.iter().filter(|phase| !waits(phase)).count();
        let (stop, gate) = (AtomicBool::new(false), StartGate::new(first));
        let mut members = Vec::new();
        for (phase, directory) in group.iter().zip(&directories) {
            let mut session = None;
            if let Work::Command(command) = &phase.work {
                session = Some(self.session(&phase.name, command, directory, &stop)?);
            }
            let together = phase.together.expect("a group has phases that start together");
            let (directory, stops) = (directory.clone(), stops(phase, group));
            members.push(Member { phase, together, directory, session, stops });
        }
        let flows = flows(group).map_err(|error| Stop::failed("creating the flows", &error))?;
        let monitor = mounted.monitor();
        let outcomes = self.run_members(members, (&gate, &stop), flows.as_ref(), first_start);
        let mut activity = monitor.end();
        verdict::check_log(&activity.log)
            .map_err(|why| Stop::Failed(format!("{}: {why}", names.join(" + "))))?;
        let outcomes = self.judged(group, outcomes, &gate, data)?;
        let Some(outcomes) = outcomes else { return Ok(()) };
        self.keep_all(group, generators, outcomes, (&mut activity, warnings), data)?;
        writable(GROUP, mounted.directory())
    }

    /// Runs the phases in threads until all have ended.
    fn run_members<'a>(
        &'a self,
        members: Vec<Member<'a>>,
        (gate, stop): (&'a StartGate, &'a AtomicBool),
        flows: Option<&'a Arc<Flows>>,
        first: Nanos,
    ) -> Vec<Outcome<'a>> {
        let shared = Shared {
            gate,
            ended: &EndedPhases::default(),
            stop,
            progress: self.observer.progress,
            worker_command: self.worker_command,
            external: self.external_directory,
            first,
            flows,
        };
        // The progress of the run is that of the first measured phase.
        let shown = members.iter().position(|member| member.together.part == Part::Measured);
        let (sender, ended) = mpsc::channel();
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for (index, member) in members.into_iter().enumerate() {
                let sender = sender.clone();
                let is_shown = shown == Some(index);
                threads.push(scope.spawn(move || {
                    let outcome = run_member(member, shared, is_shown);
                    shared.ended.add(index);
                    // The receiver lives as long as this thread.
                    let _ = sender.send(());
                    outcome
                }));
            }
            let mut left = threads.len();
            while left > 0 {
                match ended.recv_timeout(NAP) {
                    Ok(()) => left -= 1,
                    // A thread that panicked sends nothing.
                    Err(_) if threads.iter().all(thread::ScopedJoinHandle::is_finished) => break,
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
                }
                if self.observer.interrupt.load(Relaxed) || gate.is_canceled() {
                    stop.store(true, Relaxed);
                }
            }
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        })
    }

    /// Results of all phases. `None` if the filesystem does not support a phase; all phases of the
    /// group then have the warning about it.
    fn judged<'a>(
        &self,
        group: &[Phase],
        outcomes: Vec<Outcome<'a>>,
        gate: &StartGate,
        data: &mut TrialData,
    ) -> Result<Option<Vec<Measured<'a>>>, Stop> {
        let (mut results, mut errors) = (Vec::new(), Vec::new());
        for ((result, session), phase) in outcomes.into_iter().zip(group) {
            match result {
                Ok(result) => results.push((result, session)),
                // A background phase that the end of the group found before its start.
                Err(Stop::Interrupted)
                    if stops(phase, group) && gate.is_closed() && !self.interrupted() =>
                {
                    results.push((PhaseResult::default(), session));
                }
                Err(error) => errors.push(error),
            }
        }
        // The other phases were interrupted because of the first error.
        let first = errors.iter().position(|error| !matches!(error, Stop::Interrupted));
        match errors.into_iter().nth(first.unwrap_or(0)) {
            None => Ok(Some(results)),
            Some(Stop::Unsupported(warning)) => {
                let at = |phase: &Phase| (Some(phase.name.clone()), warning.clone());
                data.warnings.extend(group.iter().map(at));
                Ok(None)
            }
            Some(error) => Err(error),
        }
    }

    fn interrupted(&self) -> bool {
        self.observer.interrupt.load(Relaxed)
    }

    /// Keeps the results of each phase, and the activity of the group.
    fn keep_all(
        &self,
        group: &[Phase],
        generators: &[Option<f64>],
        outcomes: Vec<Measured<'_>>,
        (activity, warnings): (&mut SystemActivity, Vec<Warning>),
        data: &mut TrialData,
    ) -> Result<(), Stop> {
        let mut wall = Nanos(0);
        for (((mut result, session), phase), generator) in
            outcomes.into_iter().zip(group).zip(generators)
        {
            let mut own = Vec::new();
            if let Some(session) = session {
                let cpu = activity.cpu.as_ref().map(|_| Default::default());
                let mut of_programs = SystemActivity { cpu, ..SystemActivity::default() };
                session.complete(&mut result, &mut of_programs, &mut own)?;
                if let (Some(cpu), Some(programs)) = (&mut activity.cpu, of_programs.cpu) {
                    cpu.workload = cpu.workload + programs.workload;
                }
            }
            wall = wall.max(result.wall_time);
            let known = PhaseContext {
                always: self.always,
                activity: SystemActivity::default(),
                generator: *generator,
            };
            self.keep(phase, &result, &known, own, data);
        }
        let name = match data.activity.iter().any(|(name, _)| name == GROUP) {
            false => GROUP.to_owned(),
            true => later_group(group.iter().map(|phase| phase.name.as_str())),
        };
        let whole = Phase { name: name.clone(), ..group[0].clone() };
        let known =
            PhaseContext { always: self.always, activity: activity.clone(), generator: None };
        let result = PhaseResult::new(Vec::new(), wall);
        let samples = samples::of_phase(&whole, &result, &known);
        let own = samples::warnings(&whole, &result, &known, &samples);
        data.warnings.extend(warnings.into_iter().chain(own).map(|warning| (None, warning)));
        data.samples.extend(samples);
        data.activity.push((name, known.activity));
        Ok(())
    }
}

/// Counts of the flows of a group; `None` if it has none.
fn flows(group: &[Phase]) -> io::Result<Option<Arc<Flows>>> {
    let has_flow =
        |phase: &Phase| matches!(&phase.work, Work::Stream(stream) if stream.flow.is_some());
    group.iter().any(has_flow).then(|| Flows::new().map(Arc::new)).transpose()
}

/// Reports whether a phase is stopped at the end of its group.
fn stops(phase: &Phase, group: &[Phase]) -> bool {
    let background = phase.together.is_some_and(|it| it.part == Part::Background);
    let stops_all = |own: &Phase| own.together.is_some_and(|it| it.end == GroupEnd::StopAll);
    background || is_unlimited(phase) || group.iter().any(stops_all)
}

/// Reports whether only the end of its group limits a phase.
fn is_unlimited(phase: &Phase) -> bool {
    super::phases::limit_of(phase).is_some_and(|limit| limit >= UNLIMITED)
}

/// Runs one phase, and ends the group if this phase does so.
fn run_member<'a>(member: Member<'a>, shared: Shared<'_>, is_shown: bool) -> Outcome<'a> {
    let Member { phase, together, directory, mut session, stops } = member;
    let Shared { gate, ended, stop, progress, worker_command, external, .. } = shared;
    if let Some(place) = together.after
        && !ended.wait(place, gate, stop)
    {
        return (Err(Stop::Interrupted), session);
    }
    let (delay, earliest) = match together.of_trial {
        true => (Nanos(0), shared.first + together.start_delay),
        false => (together.start_delay, Nanos(0)),
    };
    let flows = shared.flows;
    let start = Start { delay, earliest, background: stops, flows, ..Start::at(gate) };
    let result = match &mut session {
        Some(session) if start.wait(stop) => session.measure(),
        Some(_) => Err(Stop::Interrupted),
        None => {
            let hidden = Progress::default();
            let context = Context {
                directory: &directory,
                progress: if is_shown { progress } else { &hidden },
                interrupt: stop,
                state: None,
                worker_command,
                start: Some(start),
            };
            run_work(phase, &context, external)
        }
    };
    match &result {
        Ok(_) if together.end == GroupEnd::Each => {}
        Ok(_) if together.end == GroupEnd::StopAll || !stops => gate.close(),
        Ok(_) => {}
        Err(_) if gate.is_closed() && stops => {}
        Err(_) => gate.cancel(),
    }
    (result, session)
}
