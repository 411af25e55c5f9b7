//! Agent: runs the trials of one host, as requested by the conductor.
//!
//! Input and output are frames on two pipes. A thread reads the input and interrupts the trial if
//! the conductor cancels it or the input ends. At the end of the input, the agent undoes its
//! changes and ends.
#![expect(clippy::wildcard_enum_match_arm, reason = "messages of other steps are skipped")]

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use anyhow::Context;
use engine::{Progress, Start, StartGate};
use model::{
    Cell, Clock, Nanos, Phase, PhaseResult, RunRecord,
    cluster::Network,
    record::{RunInfo, TrialRecord},
};
use rig::{Host, RealHost};

use super::{
    messages::{Answer, Request, RunStarted, StartRun},
    mount, network,
};
use crate::{
    commands::{run_setup::RunEnvironment, version},
    exit::Failure,
    plans::ResolvedPlan,
    runner::{
        Conditions, LocalTrials, Reboots, RunObserver, Trials,
        hosts::{Canceled, HostGate, HostPhase, PhaseData, Place, Waited},
    },
};

/// Longest wait between two checks for an interruption.
const NAP: Duration = Duration::from_millis(50);

/// Runs an agent until its input ends.
///
/// # Errors
/// If a message is invalid, or the changes of the host cannot be undone.
pub(crate) fn run(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    state: &Path,
) -> anyhow::Result<()> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let channel = Channel::new(input, Box::new(output), Arc::clone(&interrupt))?;
    let Some(channel) = channel else { return Ok(()) };
    while let Some(request) = channel.next()? {
        match request {
            Request::Hello { program, ranks } => {
                let own = ranks.iter().position(|rank| *rank == channel.rank);
                channel.index.store(u32::try_from(own.unwrap_or(0)).unwrap_or(0), Relaxed);
                channel.hosts.store(u32::try_from(ranks.len()).unwrap_or(1), Relaxed);
                let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
                channel.answer(&Answer::Hello { program: version::program(), host })?;
                anyhow::ensure!(program == version::program(), "another version: {program}");
            }
            Request::StartRun(begin) => serve(&channel, &begin, state, &interrupt)?,
            other => channel.about_mount(other)?,
        }
    }
    Ok(())
}

/// Serves the trials of a run until the input ends.
fn serve(
    channel: &Channel,
    begin: &StartRun,
    state: &Path,
    interrupt: &Arc<AtomicBool>,
) -> anyhow::Result<()> {
    let file = match &begin.filesystems {
        None => None,
        Some(text) => {
            let mut file = std::env::temp_dir();
            file.push(format!("fslab-filesystems-{}.toml", std::process::id()));
            std::fs::write(&file, text).context("writing the filesystem catalog")?;
            Some(file)
        }
    };
    let catalog = crate::commands::catalog(file.as_deref());
    file.iter().for_each(|file| drop(std::fs::remove_file(file)));
    let host: Arc<dyn Host> = Arc::new(RealHost);
    let prepared = catalog.and_then(|catalog| {
        let env = RunEnvironment { catalog: &catalog, host: &host, state, destroy: &[], interrupt };
        prepare(channel, begin, &env)
            .map(|(rig, chosen, begun)| (rig, chosen, begun, catalog.clone()))
    });
    let (rig, chosen, begun, catalog) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => {
            let failed = Err(failure.message());
            return channel.answer(&Answer::RunStarted(Box::new(failed)));
        }
    };
    let environment = match begin.environment.0.is_empty() {
        true => begun.environment.clone(),
        false => begin.environment.clone(),
    };
    let progress = Progress::default();
    let observer = RunObserver { notify: &|_| {}, progress: &progress, interrupt };
    let conditions = Conditions {
        seed: begin.info.seed,
        clock: Clock::Wall,
        fsck: false,
        memory_limited: chosen.storage.memory_limit.is_some(),
        reboots: Reboots::No,
        isolation: model::Isolation::Remount,
        crash_state: None,
        worker_command: ["/proc/self/exe", "worker"].map(Into::into).into(),
    };
    let record = RunRecord {
        info: begin.info.clone(),
        environment,
        cells: Vec::new(),
        trials: Vec::new(),
        warnings: Vec::new(),
    };
    let catalog = catalog.with_levels(&chosen.plan.filesystems, true);
    let trials = LocalTrials::new(rig, &record, &catalog, conditions, observer);
    let mut trials = trials.on_hosts(channel);
    let started = channel.answer(&Answer::RunStarted(Box::new(Ok(begun))));
    let served = started.and_then(|()| channel.serve_trials(&mut trials));
    // The changes are undone even if the connection has ended.
    let closed = trials.close();
    // A killed agent may have been exiting when this session started.
    undo_killed(state, &channel.own_runs(&begin.info));
    closed.and(served)
}

/// Undoes the changes of killed agents of this host, whose run IDs start with `prefix`.
fn undo_killed(state: &Path, prefix: &str) {
    let failed = match rig::undo::clean_runs(&RealHost, state, prefix) {
        Ok(report) => report.failed,
        Err(error) => return tracing::warn!(%error, "changes of killed agents are not undone"),
    };
    for failed in failed {
        tracing::warn!(what = failed.what, why = failed.why, "not undone");
    }
}

/// Claims the storage of the run on this host.
fn prepare(
    channel: &Channel,
    begin: &StartRun,
    env: &RunEnvironment<'_>,
) -> Result<(rig::Rig, ResolvedPlan, RunStarted), Failure> {
    let info = &begin.info;
    let chosen = ResolvedPlan::read(
        info.plan_name.clone(),
        "the plan of the run",
        info.plan_text.clone(),
        info.overrides.clone(),
        info.scale,
        env.catalog,
    )?;
    // Directories of hosts and of sessions have distinct names in the shared filesystem.
    let host = channel.own_runs(info);
    undo_killed(env.state, &host);
    let id = format!("{host}{:x}", fastrand::u32(..));
    let rig = env.rig(&chosen, &id, Path::new("/proc/fslab"))?;
    let mut environment = env.facts(&rig, &chosen);
    environment.set("cluster.host", rustix::system::uname().nodename().to_string_lossy());
    let begun = RunStarted { environment, warnings: rig.warnings() };
    Ok((rig, chosen, begun))
}

/// Connection to the conductor.
struct Channel {
    rank: usize,
    index: AtomicU32,
    /// Number of hosts of the session.
    hosts: AtomicU32,
    step: AtomicU64,
    requests: Mutex<Receiver<Request>>,
    output: Mutex<Box<dyn Write + Send>>,
    interrupt: Arc<AtomicBool>,
}

impl Channel {
    /// Starts to read requests. `None` if there is no input.
    fn new(
        mut input: impl Read + Send + 'static,
        output: Box<dyn Write + Send>,
        interrupt: Arc<AtomicBool>,
    ) -> anyhow::Result<Option<Self>> {
        let Some(rank) = mpi::read_frame(&mut input)? else { return Ok(None) };
        let rank = <[u8; 4]>::try_from(&rank[..]).context("the first message is not the rank")?;
        let (sender, requests) = mpsc::channel();
        let canceled = Arc::clone(&interrupt);
        thread::spawn(move || {
            while let Ok(Some(frame)) = mpi::read_frame(&mut input) {
                let Ok(request) = serde_json::from_slice(&frame) else { break };
                match &request {
                    // The conductor starts a trial after the previous one has ended.
                    Request::Trial { .. } => canceled.store(false, Relaxed),
                    Request::Cancel => canceled.store(true, Relaxed),
                    _ => {}
                }
                if sender.send(request).is_err() {
                    break;
                }
            }
            canceled.store(true, Relaxed);
        });
        Ok(Some(Self {
            rank: u32::from_le_bytes(rank) as usize,
            index: AtomicU32::new(0),
            hosts: AtomicU32::new(1),
            step: AtomicU64::new(0),
            requests: Mutex::new(requests),
            output: Mutex::new(output),
            interrupt,
        }))
    }

    fn requests(&self) -> MutexGuard<'_, Receiver<Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Next request; `None` at the end of the input. Messages about a trial that has ended are
    /// skipped.
    fn next(&self) -> anyhow::Result<Option<Request>> {
        loop {
            match self.requests().recv() {
                Err(_) => return Ok(None),
                Ok(
                    Request::Directory { .. }
                    | Request::Proceed { .. }
                    | Request::Start { .. }
                    | Request::Agreed { .. }
                    | Request::Cancel,
                ) => {}
                Ok(request) => return Ok(Some(request)),
            }
        }
    }

    /// Waits for a message of the current trial that `wanted` accepts.
    fn wait<T>(&self, wanted: impl Fn(&Request) -> Option<T>) -> Waited<T> {
        loop {
            if self.interrupt.load(Relaxed) {
                return Err(Canceled);
            }
            let request = self.requests().recv_timeout(NAP);
            match request {
                Ok(request) => {
                    if let Some(found) = wanted(&request) {
                        return Ok(found);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Canceled),
            }
        }
    }

    fn answer(&self, answer: &Answer) -> anyhow::Result<()> {
        let payload = serde_json::to_vec(answer)?;
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        mpi::write_frame(&mut *output, &payload).context("writing to the conductor")
    }

    /// Sends a message about the current trial.
    fn report(&self, answer: &Answer) -> Waited<()> {
        self.answer(answer).map_err(|_| Canceled)
    }

    /// Serves a request about the mount of the directory.
    fn about_mount(&self, request: Request) -> anyhow::Result<()> {
        let first = self.index.load(Relaxed) == 0;
        match request {
            Request::Mount { path } => self.answer(&Answer::Mounted(mount::of(&path))),
            Request::WriteToken { file, token } if first => {
                self.answer(&Answer::Token(mount::write(&file, &token)))
            }
            Request::ReadToken { file } => {
                self.answer(&Answer::Token(mount::read(&file, mount::VISIBLE)))
            }
            Request::RemoveToken { file } if first => {
                let removed = std::fs::remove_file(&file).map(|()| String::new());
                self.answer(&Answer::Token(removed.map_err(|error| format!("{file}: {error}"))))
            }
            _ => Ok(()),
        }
    }

    /// Runs trials until the input ends.
    fn serve_trials(&self, trials: &mut LocalTrials<'_>) -> anyhow::Result<()> {
        while let Some(request) = self.next()? {
            match request {
                Request::Trial { cell, index, repetition, hosts, .. } => {
                    if self.index.load(Relaxed) < hosts {
                        let trial = self.trial(trials, &cell, index, repetition);
                        self.answer(&Answer::TrialEnded(Box::new(trial)))?;
                    }
                }
                other => self.about_mount(other)?,
            }
        }
        Ok(())
    }

    fn trial(
        &self,
        trials: &mut LocalTrials<'_>,
        cell: &Cell,
        index: usize,
        repetition: u32,
    ) -> Option<TrialRecord> {
        self.step.store(0, Relaxed);
        trials.measure(cell, index, repetition)
    }

    /// Start of the run IDs of all agents of this host in a run.
    fn own_runs(&self, info: &RunInfo) -> String {
        format!("{}-h{}-", info.id, self.index.load(Relaxed))
    }

    /// Number of the next step of the trial, which is the same on all hosts.
    fn next_step(&self) -> u64 {
        self.step.fetch_add(1, Relaxed) + 1
    }

    /// Waits until the workers of the phase are prepared, reports it, and waits for the start.
    /// Returns the instant of the start.
    fn start(
        &self,
        (step, deadline): (u64, Option<Nanos>),
        phase_ready: impl FnOnce() -> bool,
    ) -> Waited<Nanos> {
        if !phase_ready() {
            return Err(Canceled);
        }
        self.report(&Answer::Prepared { step, deadline })?;
        let rank = self.rank;
        let instant = self.wait(|request| match request {
            Request::Start { step: of, instants } if *of == step => {
                Some(instants.get(rank).copied())
            }
            _ => None,
        })?;
        let instant = instant.ok_or(Canceled)?;
        let now = engine::now();
        if now > instant {
            self.report(&Answer::Missed { by: now - instant })?;
        }
        Ok(instant)
    }
}

impl Channel {
    /// Reports the largest number of operations of a worker of this host at the deadline, and waits
    /// for that of all hosts.
    fn agree(&self, step: u64, operations: u64) -> Waited<u64> {
        self.report(&Answer::AtDeadline { step, operations })?;
        self.wait(|request| match request {
            Request::Agreed { step: of, operations } if *of == step => Some(*operations),
            _ => None,
        })
    }
}

impl HostGate for Channel {
    fn place(&self, cell: &Cell) -> Place {
        Place::of(cell, self.index.load(Relaxed), self.hosts.load(Relaxed))
    }

    fn directory(&self, own: &Path) -> Waited<PathBuf> {
        let path = own.display().to_string();
        self.report(&Answer::Directory { path })?;
        let path = self.wait(|request| match request {
            Request::Directory { path } => Some(PathBuf::from(path)),
            _ => None,
        })?;
        match mount::is_visible(&path, mount::VISIBLE) {
            true => Ok(path),
            false => Err(Canceled),
        }
    }

    fn fence(&self, name: &str) -> Waited<()> {
        let step = self.next_step();
        self.report(&Answer::Reached { step, name: name.to_owned() })?;
        self.wait(|request| {
            matches!(request, Request::Proceed { step: of } if *of == step).then_some(())
        })
    }

    fn measure(
        &self,
        phase: &Phase,
        takes_part: bool,
        run: &mut dyn FnMut(Option<Start<'_>>) -> bool,
    ) -> Waited<()> {
        let step = (self.next_step(), phase.work.deadline());
        if !takes_part {
            self.start(step, || true)?;
            return match step {
                (step, Some(_)) => self.agree(step, 0).map(drop),
                (_, None) => Ok(()),
            };
        }
        let gate = StartGate::held();
        let agree = |operations| self.agree(step.0, operations).ok();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let started = self.start(step, || gate.wait_arrived(&self.interrupt));
                match started {
                    Ok(instant) => gate.open_at(instant),
                    Err(Canceled) => gate.cancel(),
                }
                started.map(drop)
            });
            let ran = run(Some(Start { agree: Some(&agree), ..Start::at(&gate) }));
            if !ran {
                gate.cancel();
            }
            waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn send(&self, phase: &Phase, result: &PhaseResult, known: PhaseData) -> Waited<()> {
        self.report(&Answer::Phase(Box::new(HostPhase::new(phase, result, known))))
    }

    fn network(&self) -> Option<Network> {
        network::read()
    }
}
