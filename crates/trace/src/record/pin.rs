//! Runs a traced thread and the recorder on the same CPU while no other thread makes calls.
//!
//! A chosen call switches four times between its thread and the recorder. A switch on one CPU costs
//! less than waking another CPU, and the recorder does not have to wait until the thread has left
//! its own CPU. Programs with several busy threads keep all CPUs: a thread is pinned after a number
//! of calls in a row, and released as soon as another thread makes a call.
//!
//! A program does not notice it: the thread is released before it reads or changes the CPUs of any
//! thread, and its children start with its original CPUs.

use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity},
};

/// Calls of one thread in a row after which it is pinned.
const CALLS: u32 = 32;

/// Thread that shares the CPU of the recorder.
#[derive(Debug)]
struct Pinned {
    tid: i32,
    /// CPUs of the thread, and of the recorder, without this module.
    theirs: CpuSet,
    own: CpuSet,
}

/// Decides which thread is pinned.
#[derive(Debug, Default)]
pub(super) struct Pin {
    /// Thread of the last call, and the number of its calls in a row.
    last: i32,
    calls: u32,
    pinned: Option<Pinned>,
}

impl Pin {
    /// A thread is stopped at a call.
    pub(super) fn called(&mut self, tid: i32) {
        if tid != self.last {
            (self.last, self.calls) = (tid, 0);
            self.release();
        }
        self.calls = self.calls.saturating_add(1);
        if self.calls == CALLS && self.pinned.is_none() {
            self.pinned = pin(tid);
        }
    }

    /// True if a thread is pinned.
    pub(super) fn holds(&self, tid: i32) -> bool {
        self.pinned.as_ref().is_some_and(|pinned| pinned.tid == tid)
    }

    /// A stopped thread was created. It inherited the CPUs of its creator.
    pub(super) fn created(&mut self, parent: i32, child: i32) {
        if let Some(pinned) = self.pinned.as_ref().filter(|pinned| pinned.tid == parent) {
            set(child, &pinned.theirs);
        }
    }

    /// The ID of a thread changed.
    pub(super) fn renumbered(&mut self, former: i32, tid: i32) {
        if let Some(pinned) = self.pinned.as_mut().filter(|pinned| pinned.tid == former) {
            pinned.tid = tid;
        }
    }

    /// A thread ended.
    pub(super) fn ended(&mut self, tid: i32) {
        if let Some(pinned) = self.pinned.take_if(|pinned| pinned.tid == tid) {
            let _ = sched_setaffinity(None, &pinned.own);
        }
    }

    /// Restores the CPUs of the pinned thread and of the recorder.
    pub(super) fn release(&mut self) {
        if let Some(pinned) = self.pinned.take() {
            set(pinned.tid, &pinned.theirs);
            let _ = sched_setaffinity(None, &pinned.own);
        }
        self.calls = 0;
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.release();
    }
}

/// Pins a thread and this one to one CPU that both may use.
fn pin(tid: i32) -> Option<Pinned> {
    let own = sched_getaffinity(None).ok()?;
    let theirs = sched_getaffinity(Some(Pid::from_raw(tid)?)).ok()?;
    let current = sched_getcpu();
    let both = |cpu: usize| cpu < CpuSet::MAX_CPU && own.is_set(cpu) && theirs.is_set(cpu);
    let cpu = if both(current) { current } else { (0..CpuSet::MAX_CPU).find(|cpu| both(*cpu))? };
    let mut one = CpuSet::new();
    one.set(cpu);
    // The thread may have ended.
    sched_setaffinity(Some(Pid::from_raw(tid)?), &one).ok()?;
    let pinned = Pinned { tid, theirs, own };
    // Without it, the recorder wakes the thread from another CPU.
    let _ = sched_setaffinity(None, &one);
    Some(pinned)
}

/// Sets the CPUs of a thread, unless it ended.
fn set(tid: i32, cpus: &CpuSet) {
    if let Some(tid) = Pid::from_raw(tid) {
        let _ = sched_setaffinity(Some(tid), cpus);
    }
}
