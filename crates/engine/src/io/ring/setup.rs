//! Setup of a ring: flags, sizes, CPU of a polling thread, and registration.
#![expect(unsafe_code, reason = "the kernel gets addresses of buffers to register")]

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

use io_uring::{Builder, IoUring};
use rustix::{
    io::Errno,
    process::getpid,
    thread::{CpuSet, sched_getaffinity, sched_getcpu},
};

use super::SlotMemory;
use crate::error::{Fault, Operation};

/// Maximum size of a registered buffer, io_uring_register(2).
const LARGEST: usize = 1 << 30;

/// Milliseconds without work after which a polling thread sleeps.
const IDLE: u32 = 1000;

/// Fault of a ring operation.
pub(crate) fn fault(operation: Operation, error: &io::Error) -> Fault {
    Fault::whole(operation, Errno::from_io_error(error).unwrap_or(Errno::IO))
}

/// Number of entries of the submission queue. At most `depth` operations are in flight, and each
/// has at most one entry (two with a linked sync) that the kernel has not taken yet. Without a
/// polling thread, the kernel has taken the entries when io_uring_enter(2) returns. A polling
/// thread reports that it has taken entries only after a whole batch. Before this report,
/// operations of the batch may complete, and new operations may take their place. Twice as many
/// entries are therefore needed.
pub(super) fn entries(ring: model::phase::Ring) -> u32 {
    let each = if ring.linked_fdatasync { 2 } else { 1 };
    let behind = if ring.sqpoll { 2 } else { 1 };
    ring.depth.saturating_mul(each * behind)
}

/// Creates a ring for the calling thread; `worker` distributes polling threads over the CPUs.
pub(super) fn build(ring: model::phase::Ring, worker: u32) -> Result<IoUring, Fault> {
    let cpu = if ring.sqpoll { Some(polling_cpu(worker)?) } else { None };
    newest(entries(ring), ring.sqpoll, |builder| {
        if ring.iopoll {
            builder.setup_iopoll();
        }
        if let Some(cpu) = cpu {
            builder.setup_sqpoll(IDLE).setup_sqpoll_cpu(cpu);
        }
    })
}

/// Creates a ring with the newest features of the kernel, for the calling thread only. `add` adds
/// options; `polled` is true with a polling thread.
///
/// One thread submits (`SINGLE_ISSUER`, Linux 6.0). Deferred work runs only when that thread
/// requests completions (`DEFER_TASKRUN`, 6.1). Entries are taken in order, without an index
/// (`NO_SQARRAY`, 6.6). A kernel that rejects unknown flags with EINVAL gets fewer flags. The
/// completion queue has twice the entries of the submission queue, which is the kernel's default
/// and more than can be in flight.
pub(crate) fn newest(
    entries: u32,
    polled: bool,
    add: impl Fn(&mut Builder),
) -> Result<IoUring, Fault> {
    let mut answer = Err(io::Error::from_raw_os_error(libc::EINVAL));
    for level in (0..3).rev() {
        let mut builder: Builder = IoUring::builder();
        if level >= 1 {
            builder.setup_single_issuer();
            if !polled {
                builder.setup_defer_taskrun();
            }
        }
        if level >= 2 {
            builder.setup_no_sqarray();
        }
        add(&mut builder);
        answer = builder.build(entries);
        if !matches!(&answer, Err(error) if error.raw_os_error() == Some(libc::EINVAL)) {
            break;
        }
    }
    answer.map_err(|error| fault(Operation::Ring, &error))
}

/// CPU for the polling thread: a CPU of the process, but not the worker's. By default, the polling
/// thread would inherit the CPUs of the worker, and both would wait for each other.
fn polling_cpu(worker: u32) -> Result<u32, Fault> {
    let allowed = sched_getaffinity(Some(getpid()))
        .map_err(|errno| Fault::whole(Operation::PollThread, errno))?;
    choose(&allowed, sched_getcpu(), worker).ok_or(Fault::whole(Operation::PollThread, Errno::BUSY))
}

fn choose(allowed: &CpuSet, own: usize, worker: u32) -> Option<u32> {
    let others = || (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu) && *cpu != own);
    // Starts with the last CPU, because pinned workers use the first ones.
    let count = others().count();
    let turn = (worker as usize).checked_rem(count)?;
    others().nth(count - 1 - turn).and_then(|cpu| u32::try_from(cpu).ok())
}

/// Distribution of the slots over registered buffers.
pub(super) struct Parts {
    /// Whole slots per buffer, except the last.
    pub(super) slots_in_each: usize,
}

impl Parts {
    /// Registered buffer that contains a slot.
    pub(super) fn index(&self, slot: usize) -> u16 {
        u16::try_from(slot / self.slots_in_each).expect("registered buffers are at most 16384")
    }
}

/// Buffers for an area: one, or several of at most 1 GiB each with whole slots.
fn parts(area: SlotMemory, largest: usize) -> Result<(Parts, Vec<libc::iovec>), Fault> {
    let slot = area.len / area.slots.max(1);
    let slots_in_each = (largest / slot.max(1)).min(area.slots);
    if slots_in_each == 0 {
        return Err(Fault::whole(Operation::Register, Errno::TOOBIG));
    }
    let part = slots_in_each * slot;
    let buffers = (0..area.slots * slot).step_by(part).map(|start| libc::iovec {
        iov_base: area.base.wrapping_add(start).cast(),
        iov_len: part.min(area.len - start),
    });
    Ok((Parts { slots_in_each }, buffers.collect()))
}

/// Registers the file as number 0, and the slots.
pub(super) fn register(
    uring: &IoUring,
    file: BorrowedFd<'_>,
    area: SlotMemory,
) -> Result<Parts, Fault> {
    let (parts, buffers) = parts(area, LARGEST)?;
    let submitter = uring.submitter();
    submitter
        .register_files(&[file.as_raw_fd()])
        .map_err(|error| fault(Operation::Register, &error))?;
    // SAFETY: the buffers are parts of the worker's pool, which is mapped until after the ring is
    // dropped. The kernel accesses them only for the operations of `InFlight::push`.
    unsafe { submitter.register_buffers(&buffers) }
        .map_err(|error| fault(Operation::Register, &error))?;
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_polling_thread_gets_a_separate_cpu_or_fails() {
        let mut allowed = CpuSet::new();
        allowed.set(3);
        assert_eq!(choose(&allowed, 3, 0), None);
        assert_eq!(choose(&allowed, 1, 7), Some(3));
        for cpu in [1, 2, 5] {
            allowed.set(cpu);
        }
        let chosen = (0..4).map(|worker| choose(&allowed, 1, worker).unwrap());
        assert!(chosen.eq([5, 3, 2, 5]));
    }

    #[test]
    fn large_areas_are_registered_in_parts_of_whole_slots() {
        let area =
            |slots: usize| SlotMemory { base: std::ptr::null_mut(), len: slots * 4096, slots };
        let lengths = |slots, largest| {
            parts(area(slots), largest).map(|(parts, buffers)| {
                let lengths: Vec<usize> = buffers.iter().map(|part| part.iov_len / 4096).collect();
                (parts.index(0), parts.index(slots - 1), lengths)
            })
        };
        assert_eq!(lengths(7, LARGEST), Ok((0, 0, vec![7])));
        assert_eq!(lengths(7, 3 * 4096 + 512), Ok((0, 2, vec![3, 3, 1])));
        assert_eq!(lengths(6, 3 * 4096), Ok((0, 1, vec![3, 3])));
        assert_eq!(lengths(1, 4095), Err(Fault::whole(Operation::Register, Errno::TOOBIG)));
    }
}
