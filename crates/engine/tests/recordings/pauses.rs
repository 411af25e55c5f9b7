//! CPU time between the operations of a recorded program.

use std::{fs::File, hint};

use rustix::time::{ClockId, clock_gettime};

use crate::{Bench, as_program};

const CALLS: u64 = 3000;
/// CPU time between two calls in nanoseconds, about that of the stops of a call.
const PAUSE: u64 = 20_000;

fn cpu_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[test]
fn pauses_are_the_cpu_time_between_calls_without_that_of_the_stops() {
    let name = "pauses::pauses_are_the_cpu_time_between_calls_without_that_of_the_stops";
    let Some(root) = as_program() else {
        let recording = Bench::new().record_test(name);
        let ops = recording.tasks.iter().flat_map(|task| &task.ops);
        let mut pauses: Vec<u64> = ops.map(|op| op.think).collect();
        pauses.sort_unstable();
        let median = pauses[pauses.len() / 2];
        assert!((PAUSE * 3 / 5..PAUSE * 2).contains(&median), "{median} ns instead of {PAUSE}");
        return;
    };
    let file = File::create(root.join("file")).unwrap();
    for _ in 0..CALLS {
        file.set_len(1).unwrap();
        let end = cpu_time() + PAUSE;
        while cpu_time() < end {
            hint::spin_loop();
        }
    }
}
