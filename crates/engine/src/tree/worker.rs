//! Worker of a tree: preparation, loop, and end.

use model::{
    Histogram, Nanos,
    phase::{EntryCount, Latencies, Stonewall, Tree, TreeOrder, WorkerResult},
};

use super::{
    context::TreeContext,
    end, entry_count,
    ring::{Chains, Over},
    walk::{self, Room},
};
use crate::{
    clock::Clock,
    counter::{Counter, Limits},
    driver::{Ended, Seat, WorkerLoop},
    error::{Failure, Fault},
    io::Kind,
};

/// Creates directories and memory, and runs the loop in the calling thread.
pub(super) fn perform(tree: &Tree, owner: u32, seat: &Seat<'_>) -> Result<WorkerResult, Failure> {
    let at_root = |fault| seat.failure(fault);
    let time = Clock::new();
    let context = TreeContext::new(tree, seat.worker, owner, &seat.path)?;
    let room = Room::new(tree).map_err(at_root)?;
    let chains = Chains::new(tree, seat.worker, owner, &context).map_err(at_root)?;
    let kind = if tree.steps.iter().any(|step| step.changes()) { Kind::Write } else { Kind::Read };
    let mut latencies = Latencies::default();
    *(match kind {
        Kind::Read => &mut latencies.read,
        Kind::Write => &mut latencies.write,
    }) = Histogram::new();
    let finish = tree.workers.stonewall == Stonewall::Finish;
    let continues = matches!(tree.selection.count, EntryCount::Until(_));
    let limits = Limits { finish, continues, ..Limits::default() };
    let counter = Counter::new(seat.control, seat.slot, limits, latencies);
    let run = Run { tree, seat, chains, context, time, kind, reached: 0 };
    seat.run(TreeLoop { run, room, pass: 0 }, counter)
}

/// Prepared worker. Each call of `advance` runs one pass over all entries.
struct TreeLoop<'a> {
    run: Run<'a>,
    room: Room,
    pass: u64,
}

impl WorkerLoop for TreeLoop<'_> {
    type Error = Failure;

    fn start(&mut self) -> Nanos {
        self.run.time.now()
    }

    fn advance(&mut self, counter: &mut Counter<'_>) -> Result<bool, Failure> {
        let on = walk::walk(&mut self.run, counter, &mut self.room, self.pass)?;
        self.pass += 1;
        Ok(on && self.pass < self.run.tree.passes)
    }

    fn finish(&mut self, mut ended: Nanos) -> Result<Ended, Failure> {
        let Run { tree, seat, context, time, .. } = &mut self.run;
        let follows = tree.end.remove_directories || tree.end.sync;
        if follows || tree.order == TreeOrder::Listed {
            end::end(tree, context, seat.control.signal())?;
            ended = time.now();
        }
        Ok(Ended { synced: ended, closed: ended })
    }

    fn report(self, _result: &mut WorkerResult) -> Result<(), Failure> {
        let Run { tree, seat, reached, .. } = &self.run;
        match tree.selection.count {
            EntryCount::Until(_) if seat.slot == 0 => {
                entry_count::write(tree, &seat.path, *reached)
            }
            EntryCount::Until(_) | EntryCount::All | EntryCount::Stored => Ok(()),
        }
    }
}

/// Processing of entries by a worker.
pub(super) struct Run<'a> {
    pub(super) tree: &'a Tree,
    pub(super) seat: &'a Seat<'a>,
    // Ring, if the calls are made by io_uring.
    chains: Option<Chains>,
    pub(super) context: TreeContext<'a>,
    // Clock of all instants of the loop.
    time: Clock,
    // Kind of the operations.
    kind: Kind,
    /// Number of entries of each worker after a time limit.
    pub(super) reached: u64,
}

impl Run<'_> {
    /// Runs all steps of the selected entry, or starts them with io_uring. Returns true if the loop
    /// continues.
    #[inline]
    pub(super) fn entry(&mut self, counter: &mut Counter<'_>) -> Result<bool, Failure> {
        if self.chains.is_some() {
            self.send(counter)?;
            return Ok(!counter.over);
        }
        for (index, step) in self.tree.steps.iter().enumerate() {
            if let Err(fault) = self.context.step(*step, index) {
                return Err(self.failure(fault, index));
            }
        }
        let (read, written) = self.context.take_bytes_moved();
        self.done(counter, counter.clock, read, written)?;
        Ok(!counter.over)
    }

    /// Instant of the clock of the loop.
    pub(super) fn now(&mut self) -> Nanos {
        self.time.now()
    }

    /// Waits for all entries in flight.
    pub(super) fn drain(&mut self, counter: &mut Counter<'_>) -> Result<(), Failure> {
        while self.chains.as_ref().is_some_and(Chains::are_busy) {
            self.collect(counter)?;
        }
        Ok(())
    }

    /// Queues the selected entry, and waits until a slot is free.
    fn send(&mut self, counter: &mut Counter<'_>) -> Result<(), Failure> {
        let Some(chains) = &mut self.chains else { return Ok(()) };
        chains.load(&mut self.context);
        while self.chains.as_ref().is_some_and(Chains::are_full) {
            self.collect(counter)?;
        }
        Ok(())
    }

    /// Submits queued requests, waits for a completion, and counts completed entries.
    fn collect(&mut self, counter: &mut Counter<'_>) -> Result<(), Failure> {
        let Some(chains) = &mut self.chains else { return Ok(()) };
        chains.enter(&mut self.time).map_err(|fault| self.seat.failure(fault))?;
        while let Some(over) = self.chains.as_mut().and_then(Chains::next) {
            match over {
                Over::Done { begun, read, written } => self.done(counter, begun, read, written)?,
                Over::Failed { entry, index, fault } => {
                    self.context.select(entry);
                    return Err(self.failure(fault, index));
                }
            }
        }
        Ok(())
    }

    /// Counts an entry that started at `begun`.
    #[inline]
    fn done(
        &mut self,
        counter: &mut Counter<'_>,
        begun: Nanos,
        read: u64,
        written: u64,
    ) -> Result<(), Failure> {
        let clock = self.time.now();
        counter.at(clock).map_err(|fault| self.seat.failure(fault))?;
        let bytes = match self.kind {
            Kind::Read => read,
            Kind::Write => {
                counter.also_read(read);
                written
            }
        };
        counter.count(self.kind, 1, bytes, begun);
        counter.publish();
        Ok(())
    }

    #[cold]
    fn failure(&mut self, fault: Fault, index: usize) -> Failure {
        Failure { fault, path: self.context.path(self.tree.steps[index]) }
    }
}
