//! Which threads of this process watch, and what they have used while they did.
//!
//! One list for the whole process: a thread enters it with a [`Watcher`] and leaves it by dropping
//! that. The sum only grows, so that every [`Watch`](super::Watch) takes the difference over its
//! own window.

use std::{
    marker::PhantomData,
    sync::{Mutex, PoisonError},
};

use model::Nanos;

/// Threads that watch now, with their clocks as they began to; and what all others used before.
#[derive(Debug)]
struct Watching {
    threads: Vec<(u32, u64)>,
    ended: u64,
}

static WATCHING: Mutex<Watching> = Mutex::new(Watching { threads: Vec::new(), ended: 0 });

fn list() -> std::sync::MutexGuard<'static, Watching> {
    WATCHING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// CPU time that the threads of this process have used for watching since its start: those under a
/// [`Watcher`], and the beginning and ending of each [`Watch`](super::Watch).
pub fn watching() -> Nanos {
    let list = list();
    let running = list.threads.iter().map(|&(thread, began)| {
        sys::usage::thread_time(thread).unwrap_or(began).saturating_sub(began)
    });
    Nanos(list.ended.saturating_add(running.sum()))
}

/// As long as it lives, the CPU time of the thread that made it counts as watching, not as work.
///
/// A second one on the same thread changes nothing. It cannot be sent to another thread.
#[derive(Debug)]
pub struct Watcher {
    /// The thread, if this one put it on the list.
    thread: Option<u32>,
    here: PhantomData<*const ()>,
}

impl Watcher {
    /// For the calling thread.
    #[expect(clippy::new_without_default, reason = "it does something")]
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

impl Drop for Watcher {
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

    /// Works until this thread has used so much more.
    fn burn(time: Nanos) {
        let end = RealHost.thread_time() + time;
        while RealHost.thread_time() < end {
            std::hint::black_box(0);
        }
    }

    #[test]
    fn only_what_a_thread_uses_under_a_watcher_is_watching() {
        // Other tests may watch at the same time, so that bounds are all that can be asserted of
        // the sum; what this thread adds is told by its own entries.
        let entries = || {
            let thread = rustix::thread::gettid().as_raw_nonzero().get();
            let list = list();
            list.threads.iter().filter(|(known, _)| i64::from(*known) == i64::from(thread)).count()
        };
        let before = watching();
        {
            let _outer = Watcher::new();
            let inner = Watcher::new();
            burn(Nanos(3_000_000));
            assert_eq!(entries(), 1);
            drop(inner);
            assert_eq!(entries(), 1, "the outer one still stands");
            assert!(watching() - before >= Nanos(3_000_000));
        }
        assert_eq!(entries(), 0);
        assert!(watching() - before >= Nanos(3_000_000), "what was used stays counted");
    }
}
