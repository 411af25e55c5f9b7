//! Number of operations that a worker has completed, which other workers wait for.

use std::{
    sync::atomic::{
        AtomicU32,
        Ordering::{Acquire, SeqCst},
    },
    time::Duration,
};

use rustix::thread::futex;

/// Number of completed operations of a worker, in its own cache line.
///
/// The worker makes a system call only when it has reached the lowest number that another worker
/// waits for: a worker may wait for the end of a program while the program does all operations.
#[repr(align(64))]
pub(super) struct Done {
    count: AtomicU32,
    /// Lowest number that a sleeping worker waits for.
    awaited: AtomicU32,
    /// Number of wakes, which sleeping workers watch.
    wakes: AtomicU32,
}

impl Default for Done {
    fn default() -> Self {
        let [count, wakes] = [0, 0].map(AtomicU32::new);
        Self { count, awaited: AtomicU32::new(u32::MAX), wakes }
    }
}

impl Done {
    /// Number of completed operations.
    pub(super) fn count(&self) -> u32 {
        self.count.load(Acquire)
    }

    /// Publishes the number of completed operations, and wakes the workers that wait for it.
    pub(super) fn publish(&self, count: u32) {
        self.count.store(count, SeqCst);
        // A worker that registers later reads the new count before it sleeps.
        if count >= self.awaited.load(SeqCst) {
            self.awaited.store(u32::MAX, SeqCst);
            // A worker that registered before the store finds another number of wakes.
            self.wakes.fetch_add(1, SeqCst);
            // It fails only for an invalid address.
            let _ = futex::wake(&self.wakes, futex::Flags::PRIVATE, i32::MAX.cast_unsigned());
        }
    }

    /// Sleeps until the count may have reached a number, at most for a time. Returns true if it has
    /// reached it.
    pub(super) fn sleep(&self, number: u32, most: Duration) -> bool {
        let wakes = self.wakes.load(SeqCst);
        self.awaited.fetch_min(number, SeqCst);
        if self.count.load(SeqCst) < number {
            let timeout = futex::Timespec { tv_sec: 0, tv_nsec: most.subsec_nanos().into() };
            // An error, such as a timeout, leads to another check.
            let _ = futex::wait(&self.wakes, futex::Flags::PRIVATE, wakes, Some(&timeout));
        }
        self.count.load(SeqCst) >= number
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn workers_are_woken_when_their_numbers_are_reached() {
        const LAST: u32 = 20_000;
        let done = Done::default();
        thread::scope(|scope| {
            for first in 1..=4 {
                let done = &done;
                scope.spawn(move || {
                    for number in (first..=LAST).step_by(7) {
                        while !done.sleep(number, Duration::from_millis(999)) {}
                        assert!(done.count() >= number);
                    }
                });
            }
            for count in 1..=LAST {
                done.publish(count);
                if count % 100 == 0 {
                    thread::yield_now();
                }
            }
        });
    }

    #[test]
    fn numbers_below_the_awaited_one_wake_no_worker() {
        let done = Done::default();
        assert!(!done.sleep(1000, Duration::from_nanos(1)));
        (1..1000).for_each(|count| done.publish(count));
        assert_eq!(done.wakes.load(SeqCst), 0);
        (1000..2000).for_each(|count| done.publish(count));
        assert_eq!(done.wakes.load(SeqCst), 1);
        assert!(done.sleep(1000, Duration::from_millis(999)));
    }
}
