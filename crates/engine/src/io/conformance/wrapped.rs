//! Engines that only tests have, around others: one that fails when told, and one that answers
//! late.

use super::*;

/// Passes operations on to another engine, but refuses the one with index `at` with `errno`.
pub(crate) struct FailAt<E> {
    pub(crate) inner: E,
    pub(crate) at: u64,
    pub(crate) errno: Errno,
    pub(crate) seen: u64,
}

impl<'p, E: IoEngine<'p>> IoEngine<'p> for FailAt<E> {
    fn submit(&mut self, op: Op<'p>) -> Submitted<'p> {
        self.seen += 1;
        if self.seen == self.at + 1 {
            let operation = op.kind.operation();
            let cause = Cause::Os(self.errno);
            return Submitted::Done(Completion {
                op,
                result: Err(IoFault { operation, moved: 512, cause }),
            });
        }
        self.inner.submit(op)
    }

    fn commit(&mut self) -> Result<(), IoFault> {
        self.inner.commit()
    }

    fn reap(&mut self, wait: Wait) -> Result<bool, IoFault> {
        self.inner.reap(wait)
    }

    fn next(&mut self) -> Option<Completion<'p>> {
        self.inner.next()
    }

    fn rewind(&mut self) -> Result<(), Fault> {
        self.inner.rewind()
    }

    fn flush(&mut self, call: FlushCall, range: (u64, u64)) -> Result<(), Fault> {
        self.inner.flush(call, range)
    }

    fn close(self) -> Result<(), Fault> {
        self.inner.close()
    }
}

/// Does the I/O of another engine, but answers late and in reverse, up to `depth` at a time, as an
/// asynchronous engine may.
pub(crate) struct Late<'p, E> {
    pub(crate) inner: E,
    pub(crate) depth: usize,
    pub(crate) held: Vec<Completion<'p>>,
    /// What the last reaping found.
    pub(crate) ready: Vec<Completion<'p>>,
    pub(crate) deepest: usize,
    /// The most operations between two commits, and how many there were since the last.
    pub(crate) batch: usize,
    pub(crate) fresh: usize,
}

impl<E> Late<'_, E> {
    pub(crate) fn new(inner: E, depth: usize) -> Self {
        Self {
            inner,
            depth,
            held: Vec::new(),
            ready: Vec::new(),
            deepest: 0,
            batch: usize::MAX,
            fresh: 0,
        }
    }
}

impl<'p, E: IoEngine<'p>> IoEngine<'p> for Late<'p, E> {
    const QUEUES: bool = true;

    fn submit(&mut self, op: Op<'p>) -> Submitted<'p> {
        if self.held.len() == self.depth || self.fresh == self.batch {
            return Submitted::Full(op);
        }
        self.fresh += 1;
        match self.inner.submit(op) {
            Submitted::Done(completion) => self.held.push(completion),
            Submitted::Queued | Submitted::Full(_) => unreachable!("built on synchronous engines"),
        }
        self.deepest = self.deepest.max(self.held.len());
        Submitted::Queued
    }

    fn commit(&mut self) -> Result<(), IoFault> {
        self.fresh = 0;
        Ok(())
    }

    fn reap(&mut self, wait: Wait) -> Result<bool, IoFault> {
        assert!(!self.held.is_empty(), "asked to wait for what was never submitted");
        assert!(self.ready.is_empty(), "asked for more before all was taken");
        self.fresh = 0;
        // Two where there are two, none unless waited for: the loop must take what it gets.
        let count = if wait == Wait::No { 0 } else { self.held.len().min(2) };
        self.ready.extend(self.held.drain(self.held.len() - count..));
        Ok(count > 0)
    }

    fn next(&mut self) -> Option<Completion<'p>> {
        self.ready.pop()
    }

    fn rewind(&mut self) -> Result<(), Fault> {
        self.inner.rewind()
    }

    fn flush(&mut self, call: FlushCall, range: (u64, u64)) -> Result<(), Fault> {
        self.inner.flush(call, range)
    }

    fn close(self) -> Result<(), Fault> {
        self.inner.close()
    }
}
