//! Thread that samples the system activity while a monitor records.

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use model::{Nanos, activity::Unavailable};

use super::{SamplerState, lock, missing};
use crate::{host::Host, monitor_thread::MonitorThread};

/// Interval between samples. The interval is short, so that the successive work of a kernel worker
/// is separated and short-lived programs are detected.
const INTERVAL: Nanos = Nanos(100_000_000);

/// Minimum ratio of the pause after a sample to the CPU time of the sample. With this ratio,
/// sampling uses at most 0.33 % of a CPU, regardless of the number of tasks.
const PAUSE_FACTOR: u64 = 300;

/// Running sampler thread; dropping it stops the thread.
#[derive(Debug)]
pub(super) struct Sampler {
    /// Channel through which nothing is sent. Closing it stops the thread.
    open: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    pub(super) fn start(
        host: &Arc<dyn Host>,
        state: &Arc<Mutex<SamplerState>>,
        unavailable: &mut Vec<Unavailable>,
    ) -> Self {
        let (open, closed) = mpsc::channel();
        let (host, state) = (Arc::clone(host), Arc::clone(state));
        let work = move || {
            let _monitoring = MonitorThread::new();
            let mut interval = INTERVAL;
            while closed.recv_timeout(Duration::from_nanos(interval.0))
                == Err(RecvTimeoutError::Timeout)
            {
                let before = host.thread_time();
                lock(&state).sample(&*host, false);
                interval = next(host.thread_time() - before);
            }
        };
        // Name of the thread in /proc.
        let thread = thread::Builder::new().name("monitor".into()).spawn(work);
        if let Err(error) = &thread {
            unavailable.push(missing(
                "samples during the phase",
                &format!("cannot start a thread: {error}"),
            ));
        }
        Self { open: Some(open), thread: thread.ok() }
    }

    /// Stops the thread. A sample in progress is completed first.
    pub(super) fn stop(&mut self) {
        self.open = None;
        if let Some(thread) = self.thread.take() {
            // The thread returns no value, and a panic of the thread was already reported.
            let _ended = thread.join();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Pause after a sample that used this CPU time.
fn next(cost: Nanos) -> Nanos {
    INTERVAL.max(Nanos(cost.0.saturating_mul(PAUSE_FACTOR)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expensive_samples_are_rare() {
        assert_eq!(next(Nanos(0)), INTERVAL);
        assert_eq!(next(Nanos(333_333)), INTERVAL);
        assert_eq!(next(Nanos(2_000_000)), Nanos(600_000_000));
        assert_eq!(next(Nanos(u64::MAX)), Nanos(u64::MAX));
    }
}
