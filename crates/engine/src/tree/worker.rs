//! Worker of a tree: from directories and memory to the end.

use std::{
    path::Path,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use model::{
    Nanos,
    phase::{Stonewall, Tree, TreeOrder, WorkerKind, WorkerResult},
};

use super::{
    Failure,
    context::TreeContext,
    count::Count,
    end,
    ring::{Chains, Over},
    walk::{self, Room},
};
use crate::{
    affinity,
    barrier::{ABORT, ControlBlock, WorkerSlot},
    clock::{Clock, Usage},
    error::Fault,
    set::WorkerEntries,
};

/// Does the work of one worker in the calling thread, and aborts the others if it fails.
pub(crate) fn perform(
    tree: &Tree,
    worker: u32,
    directory: &Path,
    control: &ControlBlock,
) -> Result<WorkerResult, Failure> {
    let result = timeline(tree, worker, directory, control);
    match &result {
        Ok(_) | Err(Failure { fault: Fault::Aborted, .. }) => {}
        Err(_) => control.fail(worker),
    }
    result
}

/// directories, memory │ barrier │ loop │ end.
fn timeline(
    tree: &Tree,
    worker: u32,
    directory: &Path,
    control: &ControlBlock,
) -> Result<WorkerResult, Failure> {
    let WorkerEntries { root, owner } = WorkerEntries::new(&tree.set, worker, directory);
    let at_root = |fault| Failure { fault, path: root.clone() };
    affinity::apply(tree.workers, worker).map_err(at_root)?;
    if tree.workers.kind == WorkerKind::Thread {
        affinity::own_descriptors();
    }
    let time = Clock::new();
    let context = TreeContext::new(tree, worker, owner, &root)?;
    let mut room = Room::new(tree).map_err(at_root)?;
    let (slot, signal) = (control.slot(worker), control.signal());
    let chains = Chains::new(tree, worker, owner, &context).map_err(at_root)?;
    let count = Count::new(tree);
    let mut run =
        Run { tree, worker, chains, context, time, count, slot, signal, moved: 0, done: 0 };
    control.arrive().map_err(at_root)?;

    let before = Usage::of_this_thread();
    run.count.start(run.time.now());
    let complete = walk::walk(&mut run, &mut room)?;
    if complete && tree.workers.stonewall != Stonewall::Off {
        control.stop();
    }
    let mut ended = run.count.clock;
    let follows = tree.end.remove_directories || tree.end.sync;
    if follows || tree.order == TreeOrder::Listed {
        end::end(tree, &mut run.context, signal)?;
        ended = run.time.now();
    }
    let usage = Usage::of_this_thread().since(before);
    control.slot(worker).end(ended);
    Ok(run.count.finish(worker, ended, usage))
}

/// Loop of a worker.
pub(super) struct Run<'a> {
    pub(super) tree: &'a Tree,
    pub(super) worker: u32,
    // Ring, if the calls are made by io_uring.
    chains: Option<Chains>,
    pub(super) context: TreeContext<'a>,
    // Clock of all instants of the loop.
    time: Clock,
    pub(super) count: Count,
    slot: &'a WorkerSlot,
    signal: &'a AtomicU32,
    moved: u64,
    done: u64,
}

impl Run<'_> {
    /// Runs all steps of the selected entry, or starts them with io_uring. Returns true if the loop
    /// continues.
    #[inline]
    pub(super) fn entry(&mut self) -> Result<bool, Failure> {
        if self.chains.is_some() {
            self.send()?;
            return Ok(self.should_continue());
        }
        for (index, step) in self.tree.steps.iter().enumerate() {
            if let Err(fault) = self.context.step(*step, index) {
                return Err(self.failure(fault, index));
            }
        }
        let (read, written) = self.context.take_bytes_moved();
        if !self.done(self.count.clock, read, written) {
            return Err(self.aborted());
        }
        Ok(self.should_continue())
    }

    /// Waits for all entries in flight.
    pub(super) fn drain(&mut self) -> Result<(), Failure> {
        while self.chains.as_ref().is_some_and(Chains::are_busy) {
            self.collect()?;
        }
        Ok(())
    }

    /// Queues the selected entry, and waits until a slot is free.
    fn send(&mut self) -> Result<(), Failure> {
        let Some(chains) = &mut self.chains else { return Ok(()) };
        chains.load(&mut self.context);
        while self.chains.as_ref().is_some_and(Chains::are_full) {
            self.collect()?;
        }
        Ok(())
    }

    /// Submits queued requests, waits for a completion, and counts completed entries.
    fn collect(&mut self) -> Result<(), Failure> {
        let Some(chains) = &mut self.chains else { return Ok(()) };
        if let Err(fault) = chains.enter(&mut self.time) {
            return Err(Failure { fault, path: self.context.root().to_path_buf() });
        }
        while let Some(over) = self.chains.as_mut().and_then(Chains::next) {
            match over {
                Over::Done { begun, read, written } => {
                    if !self.done(begun, read, written) {
                        return Err(self.aborted());
                    }
                }
                Over::Failed { entry, index, fault } => {
                    self.context.select(entry);
                    return Err(self.failure(fault, index));
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn should_continue(&self) -> bool {
        !self.count.stopped || self.tree.workers.stonewall == Stonewall::Finish
    }

    /// Counts an entry that started at `begun`. Returns false if the phase was aborted.
    #[inline]
    fn done(&mut self, begun: Nanos, read: u64, written: u64) -> bool {
        let clock = self.time.now();
        self.moved += read + written;
        self.done += 1;
        self.slot.bytes.store(self.moved, Relaxed);
        self.slot.done.store(self.done, Relaxed);
        let signal = self.signal.load(Relaxed);
        if signal != 0 {
            if signal & ABORT != 0 {
                return false;
            }
            self.count.stop(clock);
        }
        self.count.add(begun, clock, read, written);
        true
    }

    #[cold]
    fn failure(&mut self, fault: Fault, index: usize) -> Failure {
        Failure { fault, path: self.context.path(self.tree.steps[index]) }
    }

    #[cold]
    fn aborted(&self) -> Failure {
        Failure { fault: Fault::Aborted, path: self.context.root().to_path_buf() }
    }
}
