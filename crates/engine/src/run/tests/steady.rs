//! Streams that end when their rate is steady.

use model::phase::{SteadyChange, SteadyLimit, SteadyRate, SteadyState};

use super::*;

fn steady(limit: SteadyLimit, run: Nanos) -> Stream {
    let mut stream = stream(IoEngineKind::Null, Direction::Read, 64);
    stream.bound = Bound::Time { ramp: Nanos(0), run };
    stream.workers = threads(2, Stonewall::Off);
    stream.steady_state = Some(SteadyState {
        rate: SteadyRate::Operations,
        change: SteadyChange::Deviation,
        limit,
        ramp: Nanos(0),
        interval: Nanos(100_000_000),
        intervals: 2,
    });
    stream
}

#[test]
fn a_stream_ends_when_its_rate_is_steady() {
    let run = Nanos(600_000_000_000);
    let result = Bench::new().run(&steady(SteadyLimit::Relative(10.0), run)).unwrap();
    assert_eq!(result.steady, Some(true));
    assert!(result.wall_time < run && result.wall_time >= Nanos(200_000_000), "{result:?}");
    assert!(result.workers.iter().all(|own| own.read.ops.0 > 0));
}

#[test]
fn a_stream_whose_rate_is_not_steady_ends_by_its_time_limit() {
    let run = Nanos(300_000_000);
    // No two rates of null operations are equal.
    let result = Bench::new().run(&steady(SteadyLimit::Absolute(1e-9), run)).unwrap();
    assert_eq!(result.steady, Some(false));
    assert!(result.wall_time >= run);
}
