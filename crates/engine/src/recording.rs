//! Replays of recordings ([`trace`]): the file operations of any program.
//!
//! The input is a [`TraceReplay`], the output a [`PhaseResult`]. One operation is one recorded
//! system call; its latency is from the end of the previous operation of the worker, or of the last
//! wait, to its own end. Tasks that ran at the same time are different workers, which are threads
//! with one descriptor table: a descriptor may be opened by one worker and used by another.
//!
//! A first phase creates [`ROOT`] with the files that existed before the recording. The second
//! phase executes the operations. The root is not removed, so that its final state can be compared.
//!
//! # Confinement
//!
//! A recording is untrusted. No operation has an effect outside of [`ROOT`]:
//!
//! - [`trace::compile`] leaves out operations whose path leaves the root.
//! - As root, each worker changes its root directory to [`ROOT`] (chroot(2)), so that symbolic
//!   links and `..` cannot leave it.
//! - Otherwise, no symbolic link is followed: the directory of each path is opened with
//!   `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS` of openat2(2), with a path in which
//!   [`trace::compile`] has resolved the links.
//! - Files that do not fit in the filesystem are not created.
//! - Device files, set-user-ID bits, other owners, and extended attributes other than `user.*` are
//!   not created.
//!
//! Between barrier and end, a worker neither allocates nor locks.

mod calls;
mod done;
mod files;
mod outcome;
mod paths;
mod raw;
mod worker;

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, atomic::AtomicI32},
};

use model::{
    Bytes, PhaseResult,
    phase::{TraceReplay, WorkerResult, Workers},
};
use trace::{Program, TraceError};

use self::{done::Done, outcome::Differences, paths::Paths};
use crate::{
    Context, EngineError,
    clock::now,
    driver::{self, Phase, Seat, interrupted},
    error::Failure,
};

/// Name of the root in the directory under test.
pub(crate) const ROOT: &str = "fslab-trace";

/// Creates the files of a recording, or replays it, in the directory `fslab-trace` in
/// `context.directory`.
///
/// # Errors
/// [`EngineError::Recording`] if the recording cannot be read, has another hash, or cannot be
/// replayed by this user; the error of the worker that failed first: the filesystem is full,
/// broken, or read-only; [`EngineError::Diverged`]; [`EngineError::Interrupted`].
pub fn run_trace(replay: &TraceReplay, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    interrupted(context.interrupt)?;
    let program = load(replay)?;
    let root = context.directory.join(ROOT);
    if replay.prepares {
        context.progress.begin(None, Bytes(0));
        let started = now();
        files::check_space(&program.nodes, context.directory).map_err(|source| {
            EngineError::Recording { path: replay.trace.clone().into(), source }
        })?;
        files::create(&program, &root, replay.seed, context.interrupt)?;
        return Ok(PhaseResult::new(Vec::new(), now() - started));
    }
    raise_descriptors();
    let phase = TracePhase::new(replay, &program, &root)?;
    let mut result = driver::run(&phase, context)?;
    phase.facts(&mut result);
    phase.check(&result)?;
    Ok(result)
}

/// Reads and compiles a recording.
fn load(replay: &TraceReplay) -> Result<Program, EngineError> {
    let path = PathBuf::from(&replay.trace);
    let failed = |source| EngineError::Recording { path: path.clone(), source };
    let (bytes, digest) = trace::digest(&path).map_err(failed)?;
    if !replay.sha256.is_empty() && digest != replay.sha256 {
        let changed = "the file changed since the plan was read; start a new run";
        return Err(failed(TraceError::Refused(changed.to_owned())));
    }
    let recording = trace::parse(&bytes).map_err(failed)?;
    trace::compile(&recording, replay.order).map_err(failed)
}

/// Raises the limit of open files to its maximum, because a recorded program may have several
/// processes with many files.
fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // The previous limit is sufficient for most recordings.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Replay in a directory.
pub(crate) struct TracePhase<'a> {
    replay: &'a TraceReplay,
    program: &'a Program,
    path: &'a Path,
    paths: Paths,
    /// Open descriptors by their numbers in the recording; -1 if closed.
    slots: Vec<AtomicI32>,
    done: Vec<Done>,
    /// True if workers change their root directory.
    confined: bool,
    /// Flags of each open: `O_NONBLOCK` if there may be a FIFO, whose open would wait.
    open_flags: i32,
    differences: Mutex<Differences>,
}

impl<'a> TracePhase<'a> {
    fn new(
        replay: &'a TraceReplay,
        program: &'a Program,
        path: &'a Path,
    ) -> Result<Self, EngineError> {
        let confined = rustix::process::geteuid().is_root();
        if !confined {
            files::check_openat2(path)?;
        }
        let slots = (0..=program.descriptors).map(|_| AtomicI32::new(-1)).collect();
        let done = program.workers.iter().map(|_| Done::default()).collect();
        let paths = Paths::new(&program.paths);
        let differences = Mutex::default();
        Ok(Self {
            replay,
            program,
            path,
            paths,
            slots,
            done,
            confined,
            open_flags: if program.has_fifos() { libc::O_NONBLOCK } else { 0 },
            differences,
        })
    }

    /// Adds the most frequent differences from the recording to the facts of a result.
    fn facts(&self, result: &mut PhaseResult) {
        result.facts.set("trace.rules", trace::RULES.to_string());
        result.facts.set("trace.left_out", self.program.left_out.to_string());
        let differences = self.differences.lock().unwrap_or_else(|it| it.into_inner());
        if let Some(text) = differences.text() {
            result.facts.set("trace.unexpected", text);
        }
        if differences.not_done > 0 {
            result.facts.set("trace.not_done", differences.not_done.to_string());
        }
        if differences.copied > 0 {
            result.facts.set("trace.copied_clones", differences.copied.to_string());
        }
    }
}

impl TracePhase<'_> {
    /// Fails if more results deviate from the recording than the phase accepts.
    #[expect(clippy::cast_precision_loss, reason = "a share of operations")]
    fn check(&self, result: &PhaseResult) -> Result<(), EngineError> {
        let differences = self.differences.lock().unwrap_or_else(|it| it.into_inner());
        let unexpected: u64 = result.workers.iter().map(|worker| worker.unexpected.0).sum();
        let count = unexpected - differences.unsupported;
        let of = result.ops().0 + differences.not_done;
        if count as f64 <= self.replay.unexpected_max * of as f64 {
            return Ok(());
        }
        Err(EngineError::Diverged { count, of, most: differences.text().unwrap_or_default() })
    }
}

impl Drop for TracePhase<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

impl Phase for TracePhase<'_> {
    type Error = Failure;

    // Several workers share descriptors.
    const OWN_DESCRIPTORS: bool = false;

    fn workers(&self) -> Workers {
        Workers::threads(u32::try_from(self.program.workers.len()).unwrap_or(1).max(1))
    }

    fn total(&self) -> Bytes {
        let steps = self.program.workers.iter().flatten();
        Bytes(steps.fold(0, |sum: u64, step| sum.saturating_add(step.op.bytes())))
    }

    fn path(&self, _worker: u32) -> PathBuf {
        self.path.to_owned()
    }

    fn perform(&self, seat: &Seat<'_>) -> Result<WorkerResult, Failure> {
        worker::perform(self, seat)
    }
}

impl TracePhase<'_> {
    /// True if no other worker uses the descriptors or waits for operations.
    fn has_one_worker(&self) -> bool {
        self.program.workers.len() == 1
    }

    /// Closes the descriptors that the program had left open, or an aborted replay.
    fn close(&self) {
        for slot in &self.slots {
            raw::close(slot);
        }
    }
}
