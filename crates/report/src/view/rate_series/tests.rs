//! Edge cases of rates over time.

use model::Nanos;
use proptest::prelude::*;

use super::*;

fn series(interval: u64, ops: &[u64]) -> Series {
    let bytes = ops.iter().map(|ops| ops * 4096).collect();
    Series { start: Nanos(7), interval: Nanos(interval), ops: ops.to_vec(), bytes }
}

#[test]
fn intervals_are_resampled_to_one_length() {
    let (short, long) = (series(1_000_000, &[1; 1000]), series(4_000_000, &[8; 100]));
    // One second has at most 120 intervals, so the longest interval, 4 ms, is doubled twice.
    assert_eq!(interval([&short, &long].into_iter()), Some(16_000_000));
    assert_eq!(interval(std::iter::empty()), None);
    let rates = joined(&short, 16_000_000, false);
    assert_eq!(rates.len(), 62, "the 63rd interval is incomplete");
    assert!(rates.iter().all(|rate| (*rate - 1000.0).abs() < 1e-6));
    assert!((joined(&long, 16_000_000, true)[0] - 2000.0 * 4096.0).abs() < 1e-3);
}

#[test]
fn a_line_ends_with_half_of_the_repetitions() {
    let repetitions = [vec![1.0, 5.0, 9.0, 9.0], vec![2.0, 4.0, 7.0], vec![3.0, 6.0]];
    let expected = [[2.0, 1.0, 3.0], [5.0, 4.0, 6.0], [8.0, 7.0, 9.0]];
    assert_eq!(rates(&repetitions), expected);
    assert_eq!(rates(&repetitions[..1]).len(), 4);
    assert!(rates(&[]).is_empty() && rates(&[Vec::new()]).is_empty());
}

proptest! {
    #[test]
    fn only_the_work_of_the_last_interval_is_omitted(
        ops in prop::collection::vec(0u64..1 << 30, 1..300), doublings in 0u32..6
    ) {
        let own = series(1 << 20, &ops);
        let interval = (1 << 20) << doublings;
        let rates = joined(&own, interval, false);
        let whole = rates.len() << doublings;
        prop_assert!(whole < ops.len() && ops.len() - whole <= 1 << doublings);
        let done: f64 = rates.iter().map(|rate| rate * interval as f64 / 1e9).sum();
        let truth = ops[..whole].iter().sum::<u64>() as f64;
        prop_assert!((done - truth).abs() <= 1e-6 * truth.max(1.0));
    }
}
