//! Test engines that wrap others: one that fails at an operation, and one with late completions.

use super::*;

/// Passes operations to another engine, but fails the one with index `at` with `errno`.
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

    fn make_durable(&mut self, call: SyncCall, range: (u64, u64)) -> Result<(), Fault> {
        self.inner.make_durable(call, range)
    }

    fn close(self) -> Result<(), Fault> {
        self.inner.close()
    }
}

/// Runs the I/O of another engine, but completes it late and in reverse order, up to `depth`
/// operations at a time, as an asynchronous engine may.
pub(crate) struct Late<'p, E> {
    pub(crate) inner: E,
    pub(crate) depth: usize,
    pub(crate) held: Vec<Completion<'p>>,
    /// Completions of the last reap.
    pub(crate) ready: Vec<Completion<'p>>,
    pub(crate) deepest: usize,
    /// Maximum number of operations between two commits, and their number since the last one.
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
        assert!(!self.held.is_empty(), "waiting without operations in flight");
        assert!(self.ready.is_empty(), "reaping before all completions were processed");
        self.fresh = 0;
        // Up to two completions if the caller waits, otherwise none: the loop must accept any
        // number.
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

    fn make_durable(&mut self, call: SyncCall, range: (u64, u64)) -> Result<(), Fault> {
        self.inner.make_durable(call, range)
    }

    fn close(self) -> Result<(), Fault> {
        self.inner.close()
    }
}
