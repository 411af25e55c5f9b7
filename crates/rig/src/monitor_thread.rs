//! CPU time that this process uses for monitoring, which is not part of the workload.
//!
//! A process has one list of monitoring threads. A [`MonitorThread`] registers the current thread;
//! dropping it removes the thread. The total CPU time never decreases, so that an
//! [`ActivityMonitor`](crate::ActivityMonitor) can use the difference between two readings.

use std::{
    marker::PhantomData,
    sync::{Mutex, PoisonError},
};

use model::Nanos;

/// Registered threads, and the CPU time of threads that are no longer registered.
#[derive(Debug)]
struct MonitorCpuTime {
    threads: Vec<(u32, u64)>,
    ended: u64,
}

static MONITORING: Mutex<MonitorCpuTime> =
    Mutex::new(MonitorCpuTime { threads: Vec::new(), ended: 0 });

fn list() -> std::sync::MutexGuard<'static, MonitorCpuTime> {
    MONITORING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// CPU time that the threads of this process used while they were registered by a
/// [`MonitorThread`], since the start of the process. This includes the start and the end of each
/// [`ActivityMonitor`](crate::ActivityMonitor).
pub fn monitor_cpu_time() -> Nanos {
    let list = list();
    let running = list.threads.iter().map(|&(thread, began)| {
        sys::usage::thread_time(thread).unwrap_or(began).saturating_sub(began)
    });
    Nanos(list.ended.saturating_add(running.sum()))
}

/// Guard that counts the CPU time of the current thread as monitoring, not as workload.
///
/// A second guard on the same thread has no effect. A guard cannot be sent to another thread.
#[derive(Debug)]
pub struct MonitorThread {
    /// Thread ID if this guard registered the thread; `None` if another guard did.
    thread: Option<u32>,
    here: PhantomData<*const ()>,
}

impl MonitorThread {
    /// Registers the calling thread.
    #[expect(clippy::new_without_default, reason = "it has a side effect")]
    pub fn new() -> Self {
        let raw = rustix::thread::gettid().as_raw_nonzero().get();
        let thread = u32::try_from(raw).ok();
        let mut list = list();
        let known = list.threads.iter().any(|(known, _)| Some(*known) == thread);
        let thread = thread.filter(|_| !known);
        if let Some(thread) = thread {
            list.threads.push((thread, sys::usage::thread_time(thread).unwrap_or(0)));
        }
        Self { thread, here: PhantomData }
    }
}

impl Drop for MonitorThread {
    fn drop(&mut self) {
        let Some(thread) = self.thread else { return };
        let mut list = list();
        let Some(place) = list.threads.iter().position(|(known, _)| *known == thread) else {
            return;
        };
        let (_, began) = list.threads.swap_remove(place);
        let used = sys::usage::thread_time(thread).unwrap_or(began).saturating_sub(began);
        list.ended = list.ended.saturating_add(used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Host as _, RealHost};

    /// Uses this much CPU time.
    fn burn(time: Nanos) {
        let end = RealHost.thread_time() + time;
        while RealHost.thread_time() < end {
            std::hint::black_box(0);
        }
    }

    #[test]
    fn cpu_time_under_a_guard_counts_as_monitoring() {
        // Other tests may monitor at the same time, so only bounds of the sum can be asserted; the
        // entries of this thread are exact.
        let entries = || {
            let thread = rustix::thread::gettid().as_raw_nonzero().get();
            let list = list();
            list.threads.iter().filter(|(known, _)| i64::from(*known) == i64::from(thread)).count()
        };
        let before = monitor_cpu_time();
        {
            let _outer = MonitorThread::new();
            let inner = MonitorThread::new();
            burn(Nanos(3_000_000));
            assert_eq!(entries(), 1);
            drop(inner);
            assert_eq!(entries(), 1, "the outer guard still counts");
            assert!(monitor_cpu_time() - before >= Nanos(3_000_000));
        }
        assert_eq!(entries(), 0);
        assert!(monitor_cpu_time() - before >= Nanos(3_000_000), "the sum does not decrease");
    }
}
