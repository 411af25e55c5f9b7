//! CPU affinity, priorities, and timer slack of worker threads.
#![expect(unsafe_code, reason = "ioprio_set(2), prctl(2), and close_range(2) have no safe form")]

use model::phase::{CpuList, IoPriority, Pin, Workers};
use rustix::{
    process::nice,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

use crate::error::{Fault, Operation};

/// Class shift of ioprio_set(2) (include/uapi/linux/ioprio.h).
const CLASS_SHIFT: u32 = 13;
const REAL_TIME: u32 = 1;
const BEST_EFFORT: u32 = 2;
const IDLE: u32 = 3;
const WHO_PROCESS: libc::c_int = 1;

/// Sets CPU affinity, nice value, and I/O priority of a worker for the calling thread.
pub(crate) fn apply(workers: Workers, worker: u32) -> Result<(), Fault> {
    match workers.pin {
        Pin::Free => {}
        Pin::Each => pin(worker)?,
        Pin::Shared(cpus) => allow(cpus.cpus())?,
        Pin::Nodes(nodes) => allow(cpus_of(nodes)?.into_iter())?,
        Pin::Split { cpus, first } => {
            let count = cpus.cpus().count().max(1);
            allow(cpus.cpus().skip((first as usize + worker as usize) % count).take(1))?;
        }
    }
    if workers.nice != 0 {
        // The nice value is one of each thread in Linux (sched(7)).
        nice(workers.nice.into()).map_err(|errno| Fault::whole(Operation::Prioritize, errno))?;
    }
    workers.io_priority.map_or(Ok(()), io_priority)
}

/// Gives the calling thread a descriptor table that it does not share, with only standard input,
/// output, and error. A worker process does not share its table either.
///
/// Threads that share a table contend for its lock in open(2) and close(2)
/// (`files_struct.file_lock`, fs/file.c) and count references in every call with a descriptor
/// (`fdget`). These costs are not caused by the filesystem. The caller must use only descriptors
/// that it opens after this call. If close_range(2) is not available (before Linux 5.9), the thread
/// keeps using the shared table.
///
/// If the table were only copied, the copied descriptors would stay open for a moment after the
/// thread was joined (`exit_files` follows `exit_mm`). An unmount at this moment would fail.
pub(crate) fn own_descriptors() {
    const FIRST: libc::c_uint = 3;
    const UNSHARE: libc::c_uint = 1 << 1;
    // SAFETY: the call takes three integers. It closes descriptors in the new table only, so those
    // of other threads stay open. The caller uses none of them afterwards.
    let _ = unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, UNSHARE) };
}

/// Allows the calling thread to run on these CPUs only; the kernel ignores CPUs that do not exist.
fn allow(cpus: impl Iterator<Item = u32>) -> Result<(), Fault> {
    let mut set = CpuSet::new();
    cpus.filter(|cpu| (*cpu as usize) < CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu as usize));
    sched_setaffinity(None, &set).map_err(|errno| Fault::whole(Operation::Pin, errno))
}

/// CPUs of NUMA nodes (`/sys/devices/system/node/node0/cpulist`).
fn cpus_of(nodes: CpuList) -> Result<Vec<u32>, Fault> {
    let mut all = Vec::new();
    for node in nodes.cpus() {
        let path = format!("/sys/devices/system/node/node{node}/cpulist");
        let list = std::fs::read_to_string(path).map_err(|error| {
            let errno = rustix::io::Errno::from_io_error(&error);
            Fault::whole(Operation::Pin, errno.unwrap_or(rustix::io::Errno::INVAL))
        })?;
        all.extend(ranges(&list));
    }
    Ok(all)
}

/// Numbers of a list such as `0-3,8`.
fn ranges(list: &str) -> Vec<u32> {
    let parts = list.trim().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse::<u32>().ok()?.min(CpuList::LARGEST))
    });
    parts.flatten().collect()
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

/// Sets the timer slack of the calling thread to 1 ns. With the default, sleeps may last 50 µs too
/// long (`PR_SET_TIMERSLACK`, prctl(2)).
pub(crate) fn wake_exactly() {
    // SAFETY: the call takes integers; it can only fail for a wrong option number.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seated(change: impl FnOnce(&mut Workers), worker: u32) -> (CpuSet, i64) {
        let mut workers = Workers::ONE;
        change(&mut workers);
        std::thread::spawn(move || {
            apply(workers, worker).unwrap();
            // SAFETY: two integers; 0 is the calling thread.
            let priority = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) };
            (sched_getaffinity(None).unwrap(), priority)
        })
        .join()
        .unwrap()
    }

    #[test]
    fn pinned_workers_get_one_cpu_each_round_robin() {
        let all = sched_getaffinity(None).unwrap().count();
        let (first, _) = seated(|workers| workers.pin = Pin::Each, 0);
        let (again, _) = seated(|workers| workers.pin = Pin::Each, all);
        assert_eq!(first.count(), 1);
        assert_eq!(first, again);
        assert_eq!(seated(|_| (), 0).0.count(), all, "unpinned workers keep all CPUs");
    }

    #[test]
    fn workers_share_a_list_of_cpus_or_split_it() {
        let all = sched_getaffinity(None).unwrap();
        let cpus: Vec<u32> = (0..1024).filter(|cpu| all.is_set(*cpu as usize)).collect();
        let list = CpuList::from(cpus.clone());
        assert_eq!(seated(|workers| workers.pin = Pin::Shared(list), 1).0, all);
        for worker in 0..3 {
            let split = |workers: &mut Workers| workers.pin = Pin::Split { cpus: list, first: 1 };
            let allowed = seated(split, worker).0;
            assert_eq!(allowed.count(), 1);
            assert!(allowed.is_set(cpus[(worker as usize + 1) % cpus.len()] as usize));
        }
    }

    #[test]
    fn workers_have_the_cpus_of_a_node() {
        assert_eq!(ranges("0-2,8\n"), [0, 1, 2, 8]);
        assert!(ranges("\n").is_empty(), "a node without CPUs");
        let all = sched_getaffinity(None).unwrap();
        // A kernel without NUMA has no nodes.
        let nodes = std::path::Path::new("/sys/devices/system/node/node0").exists();
        let cpus = cpus_of(CpuList::from(vec![0]));
        assert_eq!(cpus.is_ok(), nodes, "{cpus:?}");
        if let Ok(cpus) = cpus {
            let node = |workers: &mut Workers| workers.pin = Pin::Nodes(CpuList::from(vec![0]));
            let allowed = seated(node, 0).0;
            assert!(allowed.count() > 0 && allowed.count() as usize <= cpus.len());
            let is_set = |set: &CpuSet, cpu: u32| set.is_set(cpu as usize);
            assert!(cpus.iter().all(|cpu| !is_set(&all, *cpu) || is_set(&allowed, *cpu)));
        }
        let missing = Workers { pin: Pin::Nodes(CpuList::from(vec![1023])), ..Workers::ONE };
        assert!(apply(missing, 0).is_err());
    }

    #[test]
    fn the_nice_value_of_the_thread_changes() {
        let nice_value = |change| {
            let workers = Workers { nice: change, ..Workers::ONE };
            let thread = move || {
                apply(workers, 0).unwrap();
                rustix::process::getpriority_process(None).unwrap()
            };
            std::thread::spawn(thread).join().unwrap()
        };
        let before = nice_value(0);
        assert_eq!(nice_value(3), before + 3);
        assert_eq!(nice_value(0), before, "other threads keep their value");
    }

    #[test]
    fn the_io_priority_is_set() {
        let idle = |workers: &mut Workers| workers.io_priority = Some(IoPriority::Idle);
        assert_eq!(seated(idle, 0).1, i64::from(IDLE << CLASS_SHIFT));
        let low = |workers: &mut Workers| workers.io_priority = Some(IoPriority::BestEffort(6));
        assert_eq!(seated(low, 0).1, i64::from(BEST_EFFORT << CLASS_SHIFT | 6));
    }
}
