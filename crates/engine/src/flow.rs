//! Flows: proportions of the operations of phases that start together ([`Flow`]).
//!
//! The counts are in a file in memory (memfd_create(2)) that all workers map, so that they can be
//! threads or processes. A worker adds its weight before the start. At its end, it subtracts its
//! weight and its operations, so that the others do not wait for it.
#![expect(unsafe_code, reason = "atomics in memory that processes share")]

use std::{
    fmt,
    num::NonZeroUsize,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use model::{Nanos, phase::Flow};
use rustix::{
    fs::{MemfdFlags, ftruncate, memfd_create},
    io::Errno,
    thread::sched_yield,
};

use crate::{
    clock::now,
    counter::Counter,
    error::{Fault, Memory},
    mapping::Mapping,
};

/// Counts of one flow, in a cache line of its flow only.
#[repr(C, align(64))]
struct Line {
    operations: AtomicU64,
    weights: AtomicU64,
}

const LEN: NonZeroUsize =
    NonZeroUsize::MIN.saturating_add(size_of::<Line>() * Flow::COUNT as usize - 1);

/// Counts of all flows of phases that start together.
pub struct Flows {
    mapping: Mapping,
    file: OwnedFd,
}

impl fmt::Debug for Flows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flows").finish_non_exhaustive()
    }
}

impl Flows {
    /// New counts.
    ///
    /// # Errors
    /// Errors of the memory.
    pub fn new() -> std::io::Result<Self> {
        let file = memfd_create("fslab-flows", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, LEN.get() as u64)?;
        Ok(Self::map(file)?)
    }

    /// Counts that another process created.
    pub(crate) fn attach(file: OwnedFd) -> Result<Self, Fault> {
        Self::map(file).map_err(|errno| fault(errno.raw_os_error()))
    }

    fn map(file: OwnedFd) -> Result<Self, Errno> {
        let mapping = Mapping::shared(file.as_fd(), LEN)?;
        Ok(Self { mapping, file })
    }

    /// File of the counts, to be passed to a worker process.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn line(&self, number: u32) -> &Line {
        let place = number.min(Flow::COUNT - 1) as usize * size_of::<Line>();
        // SAFETY: the mapping starts on a page boundary and has `Flow::COUNT` lines. Their size is
        // a multiple of their alignment. A line consists of atomics, for which the kernel's zeros
        // are valid, and all users of the file access it through them only.
        unsafe { self.mapping.base().add(place).cast::<Line>().as_ref() }
    }
}

/// Fault of memory for the counts.
pub(crate) fn fault(errno: i32) -> Fault {
    Fault::Memory { what: Memory::ControlBlock, bytes: LEN.get() as u64, errno }
}

/// Place of a worker in a flow.
pub(crate) struct FlowShare {
    flows: Arc<Flows>,
    flow: Flow,
    operations: u64,
    left: bool,
}

impl FlowShare {
    /// Joins a flow.
    pub(crate) fn new(flows: Arc<Flows>, flow: Flow) -> Self {
        flows.line(flow.number).weights.fetch_add(flow.weight.into(), Relaxed);
        Self { flows, flow, operations: 0, left: false }
    }

    /// True if the worker may start an operation.
    #[inline]
    pub(crate) fn allows(&self) -> bool {
        let line = self.flows.line(self.flow.number);
        let (all, weights) = (line.operations.load(Relaxed), line.weights.load(Relaxed));
        let own = u128::from(self.operations) * u128::from(weights);
        own <= u128::from(self.flow.weight) * u128::from(all)
    }

    /// Counts an operation that starts.
    #[inline]
    pub(crate) fn take(&mut self) {
        self.operations += 1;
        self.flows.line(self.flow.number).operations.fetch_add(1, Relaxed);
    }

    /// Waits until the worker may start an operation. Returns false if the loop ends earlier.
    pub(crate) fn wait(&self, counter: &mut Counter<'_>) -> Result<bool, Fault> {
        while !self.allows() {
            if !self.pause(counter)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Pauses once before another check. Returns false if the loop ends.
    #[cold]
    pub(crate) fn pause(&self, counter: &mut Counter<'_>) -> Result<bool, Fault> {
        if self.flow.sleep > Nanos(0) {
            return counter.wait(counter.clock + self.flow.sleep);
        }
        sched_yield();
        counter.at(now())?;
        counter.ramp();
        Ok(!counter.over)
    }

    /// Leaves the flow.
    pub(crate) fn leave(&mut self) {
        if !std::mem::replace(&mut self.left, true) {
            let line = self.flows.line(self.flow.number);
            line.operations.fetch_sub(self.operations, Relaxed);
            line.weights.fetch_sub(self.flow.weight.into(), Relaxed);
        }
    }
}

impl Drop for FlowShare {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(flows: &Arc<Flows>, number: u32, weight: u32) -> FlowShare {
        FlowShare::new(Arc::clone(flows), Flow { number, weight, sleep: Nanos(0) })
    }

    /// Operations that are allowed, up to ten.
    fn run(share: &mut FlowShare) -> u32 {
        let mut count = 0;
        while count < 10 && share.allows() {
            share.take();
            count += 1;
        }
        count
    }

    #[test]
    fn operations_are_in_proportion_to_the_weights() {
        let flows = Arc::new(Flows::new().unwrap());
        let (mut one, mut three) = (share(&flows, 0, 1), share(&flows, 0, 3));
        for _ in 0..100 {
            run(&mut one);
            run(&mut three);
        }
        assert!(one.operations >= 100, "{}", one.operations);
        let difference = three.operations.abs_diff(3 * one.operations);
        assert!(difference <= 3, "{} {}", one.operations, three.operations);
    }

    #[test]
    fn a_worker_that_leaves_delays_no_other() {
        let flows = Arc::new(Flows::new().unwrap());
        let (mut one, mut other) = (share(&flows, 63, 1), share(&flows, 63, 1));
        assert_eq!(run(&mut one), 1, "the other one has no operation");
        assert_eq!(run(&mut other), 2);
        other.leave();
        drop(other);
        assert_eq!(run(&mut one), 10);
        assert_eq!(run(&mut share(&flows, 1, 1)), 10, "another flow");
    }

    #[test]
    fn counts_are_common_to_all_mappings() {
        let flows = Flows::new().unwrap();
        let other = Flows::attach(flows.file.try_clone().unwrap()).unwrap();
        let counts =
            || (other.line(2).operations.load(Relaxed), other.line(2).weights.load(Relaxed));
        let mut own = share(&Arc::new(flows), 2, 5);
        own.take();
        assert_eq!(counts(), (1, 5));
        drop(own);
        assert_eq!(counts(), (0, 0), "subtracted at the end");
    }
}
