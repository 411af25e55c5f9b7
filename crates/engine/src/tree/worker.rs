//! One worker of a tree: its timeline from directories and memory to the end.

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
    count::Count,
    end,
    hand::Hand,
    ring::{Chains, Over},
    walk::{self, Room},
};
use crate::{
    barrier::{ABORT, Board, Lane},
    clock::{Clock, Usage},
    error::Fault,
    seat,
    set::Place,
};

/// Does the work of one worker in the calling thread, and tells the others if it fails.
pub(crate) fn perform(
    tree: &Tree,
    worker: u32,
    directory: &Path,
    board: &Board,
) -> Result<WorkerResult, Failure> {
    let result = timeline(tree, worker, directory, board);
    match &result {
        Ok(_) | Err(Failure { fault: Fault::Aborted, .. }) => {}
        Err(_) => board.fail(worker),
    }
    result
}

/// directories, memory │ barrier │ loop │ end.
fn timeline(
    tree: &Tree,
    worker: u32,
    directory: &Path,
    board: &Board,
) -> Result<WorkerResult, Failure> {
    let Place { root, owner } = Place::new(&tree.set, worker, directory);
    let at_root = |fault| Failure { fault, path: root.clone() };
    seat::sit(tree.workers, worker).map_err(at_root)?;
    if tree.workers.kind == WorkerKind::Thread {
        seat::own_descriptors();
    }
    let time = Clock::new();
    let hand = Hand::new(tree, worker, owner, &root)?;
    let mut room = Room::new(tree).map_err(at_root)?;
    let (lane, signal) = (board.lane(worker), board.signal());
    let chains = Chains::new(tree, worker, owner, &hand).map_err(at_root)?;
    let count = Count::new(tree);
    let mut run = Run { tree, worker, chains, hand, time, count, lane, signal, moved: 0, done: 0 };
    board.arrive().map_err(at_root)?;

    let before = Usage::of_this_thread();
    run.count.start(run.time.now());
    let complete = walk::walk(&mut run, &mut room)?;
    if complete && tree.workers.stonewall != Stonewall::Off {
        board.stop();
    }
    let mut ended = run.count.clock;
    let follows = tree.end.remove_directories || tree.end.sync;
    if follows || tree.order == TreeOrder::Listed {
        end::end(tree, &mut run.hand, signal)?;
        ended = run.time.now();
    }
    let usage = Usage::of_this_thread().since(before);
    board.lane(worker).end(ended);
    Ok(run.count.finish(worker, ended, usage))
}

/// The loop of a worker.
pub(super) struct Run<'a> {
    pub(super) tree: &'a Tree,
    pub(super) worker: u32,
    // Where the calls are made in a ring.
    chains: Option<Chains>,
    pub(super) hand: Hand<'a>,
    // All instants of the loop are of this one.
    time: Clock,
    pub(super) count: Count,
    lane: &'a Lane,
    signal: &'a AtomicU32,
    moved: u64,
    done: u64,
}

impl Run<'_> {
    /// All steps of the entry that the hand was turned to, or in a ring their beginning; whether
    /// to go on.
    #[inline]
    pub(super) fn entry(&mut self) -> Result<bool, Failure> {
        if self.chains.is_some() {
            self.send()?;
            return Ok(self.goes_on());
        }
        for (index, step) in self.tree.steps.iter().enumerate() {
            if let Err(fault) = self.hand.step(*step, index) {
                return Err(self.failure(fault, index));
            }
        }
        let (read, written) = self.hand.take_moved();
        if !self.done(self.count.clock, read, written) {
            return Err(self.aborted());
        }
        Ok(self.goes_on())
    }

    /// What is in flight comes to its end.
    pub(super) fn settle(&mut self) -> Result<(), Failure> {
        while self.chains.as_ref().is_some_and(Chains::are_busy) {
            self.collect()?;
        }
        Ok(())
    }

    /// Puts the entry that the hand was turned to into the ring, and waits until there is room for
    /// another one.
    fn send(&mut self) -> Result<(), Failure> {
        let Some(chains) = &mut self.chains else { return Ok(()) };
        chains.load(&mut self.hand);
        while self.chains.as_ref().is_some_and(Chains::are_full) {
            self.collect()?;
        }
        Ok(())
    }

    /// Gives the kernel what it has not got yet, waits for an answer, and counts what is done.
    fn collect(&mut self) -> Result<(), Failure> {
        let Some(chains) = &mut self.chains else { return Ok(()) };
        if let Err(fault) = chains.enter(&mut self.time) {
            return Err(Failure { fault, path: self.hand.root().to_path_buf() });
        }
        while let Some(over) = self.chains.as_mut().and_then(Chains::next) {
            match over {
                Over::Done { begun, read, written } => {
                    if !self.done(begun, read, written) {
                        return Err(self.aborted());
                    }
                }
                Over::Failed { entry, index, fault } => {
                    self.hand.turn_to(entry);
                    return Err(self.failure(fault, index));
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn goes_on(&self) -> bool {
        !self.count.stopped || self.tree.workers.stonewall == Stonewall::Finish
    }

    /// All steps of an entry that was begun at `begun` are done; whether nobody called it off.
    #[inline]
    fn done(&mut self, begun: Nanos, read: u64, written: u64) -> bool {
        let clock = self.time.now();
        self.moved += read + written;
        self.done += 1;
        self.lane.bytes.store(self.moved, Relaxed);
        self.lane.done.store(self.done, Relaxed);
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
        Failure { fault, path: self.hand.path(self.tree.steps[index]) }
    }

    #[cold]
    fn aborted(&self) -> Failure {
        Failure { fault: Fault::Aborted, path: self.hand.root().to_path_buf() }
    }
}
