//! Driver of all phases: starts the workers of a phase, runs them together, and collects their
//! results.
//!
//! A kind of phase implements [`Phase`], which prepares a worker, and [`WorkerLoop`], which does
//! its operations. Everything else is the same for all kinds:
//!
//! ```text
//! coordinator: start the workers │ barrier │ wait             │ results or first error
//! worker:      Phase::perform    │ barrier │ start, advance … │ finish, report
//! ```
//!
//! The coordinator is the calling thread. It sleeps while the workers run and checks every 50 ms
//! for an interruption.

use std::{
    cell::RefCell,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

use model::{
    Bytes, Nanos, PhaseResult,
    phase::{SteadyState, Stonewall, WorkerKind, WorkerResult, Workers},
};

use crate::{
    Context, EngineError, affinity,
    barrier::ControlBlock,
    clock::{Usage, now},
    counter::Counter,
    error::{Failure, Fault},
    flow::{self, Flows},
    process::{self, Process, WorkerJob},
    steady::SteadyWatch,
};

/// Kind of phase.
pub(crate) trait Phase: Sync {
    /// Error of a worker.
    type Error: PhaseError;

    /// True if threads get a separate descriptor table ([`affinity::own_descriptors`]).
    const OWN_DESCRIPTORS: bool = true;

    /// Workers of the phase.
    fn workers(&self) -> Workers;

    /// Bytes that the phase moves unless it is stopped; zero if that is unknown.
    fn total(&self) -> Bytes;

    /// File of a worker, the default for errors without a file.
    fn path(&self, worker: u32) -> PathBuf;

    /// Control block of the phase.
    fn control(&self) -> Result<ControlBlock, EngineError> {
        control(self)
    }

    /// Work of a worker process; `None` if the phase does not support processes.
    fn job(&self) -> Option<process::Work> {
        None
    }

    /// Condition that ends the phase early.
    fn steady_state(&self) -> Option<SteadyState> {
        None
    }

    /// True if the operations are part of a flow.
    fn has_flow(&self) -> bool {
        false
    }

    /// Prepares a worker and passes its loop to [`Seat::run`]. The preparation is not timed.
    fn perform(&self, seat: &Seat<'_>) -> Result<WorkerResult, Self::Error>;
}

/// Control block in memory.
pub(crate) fn control<P: Phase + ?Sized>(phase: &P) -> Result<ControlBlock, EngineError> {
    let fault = |fault| Failure { fault, path: phase.path(0) };
    Ok(ControlBlock::new(phase.workers().local()).map_err(fault)?)
}

/// Error of a worker.
pub(crate) trait PhaseError: From<Failure> + Into<EngineError> {
    /// True if the worker stopped because another worker failed or the phase was interrupted.
    fn is_abort(&self) -> bool;
}

impl PhaseError for Failure {
    fn is_abort(&self) -> bool {
        self.fault == Fault::Aborted
    }
}

impl PhaseError for EngineError {
    fn is_abort(&self) -> bool {
        matches!(self, Self::Interrupted)
    }
}

/// Prepared worker.
pub(crate) trait WorkerLoop: Sized {
    /// Error of the worker.
    type Error: From<Failure>;

    /// Reads the clock and starts the schedule of the operations.
    fn start(&mut self) -> Nanos {
        now()
    }

    /// Does the next operation or batch of operations. Returns false after the last one.
    fn advance(&mut self, counter: &mut Counter<'_>) -> Result<bool, Self::Error>;

    /// Timed work after the last operation, which ended at `ended`.
    fn finish(&mut self, ended: Nanos) -> Result<Ended, Self::Error> {
        Ok(Ended { synced: ended, closed: ended })
    }

    /// Completes the result with values from outside the counter. Not timed.
    fn report(self, _result: &mut WorkerResult) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Instants after the last operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// End of the sync.
    pub(crate) synced: Nanos,
    /// End of closing files.
    pub(crate) closed: Nanos,
}

/// Place of a worker in its phase.
pub(crate) struct Seat<'a> {
    /// Index of the worker, among the workers of all hosts.
    pub(crate) worker: u32,
    /// Index of the worker on this host.
    pub(crate) slot: u32,
    /// Path for errors that concern no other file.
    pub(crate) path: PathBuf,
    /// Control block shared with the other workers.
    pub(crate) control: &'a ControlBlock,
    /// Counts of the flows, if the phase has one.
    pub(crate) flows: Option<&'a Arc<Flows>>,
    stonewall: Stonewall,
}

impl Seat<'_> {
    /// Failure with the file of the worker ([`Phase::path`]).
    pub(crate) fn failure(&self, fault: Fault) -> Failure {
        Failure { fault, path: self.path.clone() }
    }

    /// Waits for the other workers and runs the loop.
    pub(crate) fn run<W: WorkerLoop>(
        &self,
        mut work: W,
        mut counter: Counter<'_>,
    ) -> Result<WorkerResult, W::Error> {
        self.control.arrive().map_err(|fault| self.failure(fault))?;
        let before = Usage::of_this_thread();
        counter.start(work.start());
        while work.advance(&mut counter)? {}
        if counter.complete && self.stonewall != Stonewall::Off {
            self.control.stop();
        }
        let ended = counter.clock;
        let Ended { synced, closed } = work.finish(ended)?;
        let usage = Usage::of_this_thread().since(before);
        self.control.slot(self.slot).end(closed);
        let mut result = counter.finish(self.worker, usage);
        (result.end_sync_time, result.close_time) = (synced - ended, closed - synced);
        work.report(&mut result)?;
        Ok(result)
    }
}

/// Body of the thread or process of a worker; `slot` is its index on this host. Aborts the other
/// workers if this one fails.
pub(crate) fn work<P: Phase>(
    phase: &P,
    slot: u32,
    control: &ControlBlock,
    flows: Option<&Arc<Flows>>,
) -> Result<WorkerResult, P::Error> {
    let workers = phase.workers();
    let (worker, stonewall) = (workers.index(slot), workers.stonewall);
    let seat = Seat { worker, slot, path: phase.path(worker), control, flows, stonewall };
    let result = match affinity::apply(workers, slot) {
        Ok(()) => {
            if P::OWN_DESCRIPTORS && workers.kind == WorkerKind::Thread {
                affinity::own_descriptors();
            }
            phase.perform(&seat)
        }
        Err(fault) => Err(seat.failure(fault).into()),
    };
    if result.as_ref().is_err_and(|error| !error.is_abort()) {
        control.fail(slot);
    }
    result
}

/// Runs all workers of a phase. If one fails, the others are aborted immediately.
///
/// # Errors
/// The error of the worker that failed first; [`EngineError::Interrupted`] if the caller
/// interrupted the phase.
pub(crate) fn run<P: Phase>(phase: &P, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    interrupted(context.interrupt)?;
    let workers = phase.workers();
    let (count, kind) = (workers.local(), workers.kind);
    let control = Arc::new(phase.control()?);
    if let Some(start) = context.start {
        start.begin(&control);
    }
    context.progress.begin(Some(Arc::clone(&control)), phase.total());
    let control = &*control;
    let flows = flows(phase, context)?;
    let flows = flows.as_ref();
    let steady = RefCell::new(phase.steady_state().map(SteadyWatch::new));
    let (released, outcomes) = match kind {
        WorkerKind::Thread => {
            let work = (0..count)
                .map(|worker| move || work(phase, worker, control, flows).map_err(Into::into));
            run_threads(control, context, &steady, work)?
        }
        WorkerKind::Process => {
            let job = phase.job().expect("checked: the phase supports processes");
            let job = WorkerJob::new(job, context.directory, control, flows);
            let job = &job;
            let processes = Process::spawn_all(count, job, context.worker_command)?;
            let work = processes.into_iter().map(|process| move || process.run(job, control));
            run_threads(control, context, &steady, work)?
        }
    };
    interrupted(context.interrupt)?;
    let workers = results(outcomes, control.first_failed_worker())?;
    let result = PhaseResult::new(workers, control.last_end() - released);
    Ok(PhaseResult { steady: steady.into_inner().map(|watch| watch.is_reached()), ..result })
}

/// Counts of the flows of the group, or separate ones.
fn flows<P: Phase>(phase: &P, context: &Context<'_>) -> Result<Option<Arc<Flows>>, EngineError> {
    if !phase.has_flow() {
        return Ok(None);
    }
    if let Some(flows) = context.start.and_then(|start| start.flows) {
        return Ok(Some(Arc::clone(flows)));
    }
    let failed = |error: std::io::Error| Failure {
        fault: flow::fault(error.raw_os_error().unwrap_or(libc::ENOMEM)),
        path: phase.path(0),
    };
    Ok(Some(Arc::new(Flows::new().map_err(failed)?)))
}

/// Fails if the caller interrupted the phase.
pub(crate) fn interrupted(interrupt: &AtomicBool) -> Result<(), EngineError> {
    if interrupt.load(Relaxed) { Err(EngineError::Interrupted) } else { Ok(()) }
}

/// Result of one worker.
type Outcome = Result<WorkerResult, EngineError>;

/// Runs each piece of work in a thread, opens the gate when all workers are ready, and waits for
/// all of them, or stops them when their rate is steady. Returns the time of the opening, and the
/// results in order.
fn run_threads<W>(
    control: &ControlBlock,
    context: &Context<'_>,
    steady: &RefCell<Option<SteadyWatch>>,
    work: impl Iterator<Item = W>,
) -> Result<(Nanos, Vec<Outcome>), EngineError>
where
    W: FnOnce() -> Outcome + Send,
{
    let Context { interrupt, start, .. } = *context;
    let canceled = || start.is_some_and(|start| start.gate.is_canceled());
    let poll = || {
        if (interrupt.load(Relaxed) || canceled()) && !control.aborted() {
            control.abort();
        }
        if let Some(largest) = control.reached() {
            match start.and_then(|start| start.agree) {
                None => control.agree(largest),
                Some(agree) => match agree(largest) {
                    Some(largest) => control.agree(largest),
                    None => control.abort(),
                },
            }
        }
    };
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (work, worker) in work.zip(0..) {
            let guard = DoneGuard { control, worker };
            let builder = thread::Builder::new().name(format!("worker-{worker}"));
            let thread = builder.spawn_scoped(scope, move || {
                let _guard = guard;
                work()
            });
            match thread {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    control.abort();
                    return Err(EngineError::Spawn { worker, program: "thread".into(), source });
                }
            }
        }
        control.wait_ready(poll);
        if let Some(start) = start
            && !control.aborted()
            && !start.wait(interrupt)
        {
            // The group failed or ended before this phase could start.
            control.abort();
        }
        let released = control.release();
        control.wait_finished(|| {
            poll();
            if let Some(steady) = &mut *steady.borrow_mut()
                && steady.observe(now(), control.done(), control.bytes())
            {
                control.stop();
            }
        });
        let join = |thread: thread::ScopedJoinHandle<'_, Outcome>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        Ok((released, threads.into_iter().map(join).collect()))
    })
}

/// Marks a worker as ended when dropped, even if it panics.
struct DoneGuard<'a> {
    control: &'a ControlBlock,
    worker: u32,
}

impl Drop for DoneGuard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.control.fail(self.worker);
        }
        self.control.finish();
    }
}

/// Results of all workers, or the error of the worker that failed first. Errors of other workers
/// are consequences of the first error.
fn results(
    outcomes: Vec<Outcome>,
    first_failed_worker: Option<u32>,
) -> Result<Vec<WorkerResult>, EngineError> {
    let mut errors = Vec::new();
    let mut results = Vec::new();
    for (outcome, worker) in outcomes.into_iter().zip(0..) {
        match outcome {
            Ok(result) => results.push(result),
            Err(error) => errors.push((worker, error)),
        }
    }
    let first =
        errors.iter().position(|(worker, _)| Some(*worker) == first_failed_worker).unwrap_or(0);
    match errors.into_iter().nth(first) {
        Some((_, error)) => Err(error),
        None => Ok(results),
    }
}
