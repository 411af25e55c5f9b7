//! The thread that looks again and again while a window lasts.

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use model::{Nanos, evidence::Absent};

use super::{Looks, Watcher, lock, missing};
use crate::host::Host;

/// Time between two looks: short enough to tell apart what a worker does in turn, and to see
/// programs that run for a moment.
const INTERVAL: Nanos = Nanos(100_000_000);

/// A look is followed by at least so many times its own CPU time, so that looking takes at most
/// 0.33 % of a processor, however many tasks the machine has.
const SPARING: u64 = 300;

/// A running thread; dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Sampler {
    /// Nothing is ever sent: closing it ends the thread.
    open: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    pub(super) fn start(
        host: &Arc<dyn Host>,
        looks: &Arc<Mutex<Looks>>,
        absent: &mut Vec<Absent>,
    ) -> Self {
        let (open, closed) = mpsc::channel();
        let (host, looks) = (Arc::clone(host), Arc::clone(looks));
        let work = move || {
            let _watcher = Watcher::new();
            let mut interval = INTERVAL;
            while closed.recv_timeout(Duration::from_nanos(interval.0))
                == Err(RecvTimeoutError::Timeout)
            {
                let before = host.thread_time();
                lock(&looks).look(&*host, false);
                interval = next(host.thread_time() - before);
            }
        };
        // In /proc it is seen by this name.
        let thread = thread::Builder::new().name("watch".into()).spawn(work);
        if let Err(error) = &thread {
            absent.push(missing("looks in between", &format!("no thread for them: {error}")));
        }
        Self { open: Some(open), thread: thread.ok() }
    }

    /// Ends the thread; a look that has begun is completed.
    pub(super) fn stop(&mut self) {
        self.open = None;
        if let Some(thread) = self.thread.take() {
            // It ends without a result, and a panic in it was reported by its own.
            let _ended = thread.join();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop();
    }
}

/// How long to wait after a look that took so much CPU time.
fn next(cost: Nanos) -> Nanos {
    INTERVAL.max(Nanos(cost.0.saturating_mul(SPARING)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costly_looks_are_rare() {
        assert_eq!(next(Nanos(0)), INTERVAL);
        assert_eq!(next(Nanos(333_333)), INTERVAL);
        assert_eq!(next(Nanos(2_000_000)), Nanos(600_000_000));
        assert_eq!(next(Nanos(u64::MAX)), Nanos(u64::MAX));
    }
}
