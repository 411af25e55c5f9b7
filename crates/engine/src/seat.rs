//! Where a worker sits: its CPU, its I/O priority, and how exactly it is woken.
#![expect(unsafe_code, reason = "ioprio_set(2), prctl(2), and close_range(2) have no safe form")]

use model::phase::{IoPriority, Pace, Pin, Stream, Workers};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::{Fault, Operation};

/// Classes of ioprio_set(2), shifted as include/uapi/linux/ioprio.h has it.
const CLASS_SHIFT: u32 = 13;
const REAL_TIME: u32 = 1;
const BEST_EFFORT: u32 = 2;
const IDLE: u32 = 3;
const WHO_PROCESS: libc::c_int = 1;

/// Seats the calling thread as the stream asks.
pub(crate) fn take(stream: &Stream, worker: u32) -> Result<(), Fault> {
    sit(stream.workers, worker)?;
    if stream.pace != Pace::Free {
        wake_exactly();
    }
    Ok(())
}

/// Gives the calling thread the CPU and the I/O priority of a worker.
pub(crate) fn sit(workers: Workers, worker: u32) -> Result<(), Fault> {
    if workers.pin == Pin::Each {
        pin(worker)?;
    }
    workers.io_priority.map_or(Ok(()), io_priority)
}

/// Gives the calling thread a table of descriptors of its own, as a process has, with nothing in it
/// but standard input, output, and error.
///
/// Threads that share one take turns at each open(2) and close(2) (`files_struct.file_lock`,
/// fs/file.c), and count references at every call that takes a descriptor (`fdget`), which is no
/// cost of the filesystem. For a thread that uses what it opens itself, and nothing else; where it
/// cannot be had (close_range(2) came with Linux 5.9) the thread goes on with the common table.
///
/// A plain copy of the table would keep open whatever was open in it until after the thread was
/// joined (`exit_files` follows `exit_mm`), and a filesystem could be found busy for that.
pub(crate) fn own_descriptors() {
    const FIRST: libc::c_uint = 3;
    const UNSHARE: libc::c_uint = 1 << 1;
    // SAFETY: the call takes three integers. It closes descriptors in the new table alone, so those
    // that other threads own stay open for them; the caller uses none of them afterwards.
    let _ = unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, UNSHARE) };
}

fn pin(worker: u32) -> Result<(), Fault> {
    let fault = |errno| Fault::whole(Operation::Pin, errno);
    let allowed = sched_getaffinity(None).map_err(fault)?;
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let Some(cpu) = cpus.get(worker as usize % cpus.len().max(1)) else { return Ok(()) };
    let mut one = CpuSet::new();
    one.set(*cpu);
    sched_setaffinity(None, &one).map_err(fault)
}

fn io_priority(priority: IoPriority) -> Result<(), Fault> {
    let value = match priority {
        IoPriority::RealTime(level) => REAL_TIME << CLASS_SHIFT | u32::from(level),
        IoPriority::BestEffort(level) => BEST_EFFORT << CLASS_SHIFT | u32::from(level),
        IoPriority::Idle => IDLE << CLASS_SHIFT,
    };
    // SAFETY: the call takes three integers; 0 is the calling thread.
    let answer = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, value) };
    if answer == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::INVAL);
    Err(Fault::whole(Operation::Prioritize, errno))
}

/// Sleeps may otherwise last 50 µs longer than asked for (`PR_SET_TIMERSLACK`, prctl(2)).
fn wake_exactly() {
    // SAFETY: the call takes integers; it can only fail for a wrong option number.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
}

#[cfg(test)]
mod tests {
    use model::phase::{Direction, Interface};

    use super::*;
    use crate::io::conformance::stream;

    fn seated(change: impl FnOnce(&mut Stream), worker: u32) -> (CpuSet, i64) {
        let mut plan = stream(Interface::Null, Direction::Read, 1);
        change(&mut plan);
        std::thread::spawn(move || {
            take(&plan, worker).unwrap();
            // SAFETY: two integers; 0 is the calling thread.
            let priority = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) };
            (sched_getaffinity(None).unwrap(), priority)
        })
        .join()
        .unwrap()
    }

    #[test]
    fn workers_get_one_cpu_each_round_and_round() {
        let all = sched_getaffinity(None).unwrap().count();
        let (first, _) = seated(|plan| plan.workers.pin = Pin::Each, 0);
        let (again, _) = seated(|plan| plan.workers.pin = Pin::Each, all);
        assert_eq!(first.count(), 1);
        assert_eq!(first, again);
        assert_eq!(seated(|_| (), 0).0.count(), all, "others are left alone");
    }

    #[test]
    fn the_io_priority_is_set() {
        let idle = |plan: &mut Stream| plan.workers.io_priority = Some(IoPriority::Idle);
        assert_eq!(seated(idle, 0).1, i64::from(IDLE << CLASS_SHIFT));
        let low = |plan: &mut Stream| plan.workers.io_priority = Some(IoPriority::BestEffort(6));
        assert_eq!(seated(low, 0).1, i64::from(BEST_EFFORT << CLASS_SHIFT | 6));
    }
}
