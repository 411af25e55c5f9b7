use model::phase::Access;
use proptest::prelude::*;

use super::*;

fn shuffled(n: u64) -> Vec<u64> {
    permutation(Access::Shuffled, n).unwrap()
}

fn numbers(text: &str) -> Vec<u64> {
    text.split(' ').map(|number| number.parse().unwrap()).collect()
}

#[test]
fn the_shuffled_order_is_the_published_one() {
    for (n, order) in [
        (4, "0 3 1 2"),
        (8, "3 7 2 5 6 1 0 4"),
        (16, "3 15 8 1 12 9 7 2 5 0 6 10 14 13 4 11"),
        (
            32,
            "3 31 5 9 18 11 22 16 8 17 28 19 30 13 26 21 2 0 29 4 12 15 7 6 20 10 25 27 24 14 23 1",
        ),
    ] {
        assert_eq!(shuffled(n), numbers(order), "n = {n}");
    }
}

#[test]
fn long_shuffled_orders_begin_and_end_as_published() {
    for (n, first, last) in [
        (64, "1 55 28 7 18 58 39 3 22 0 34 10", "51 6 2"),
        (1024, "505 56 602 672 161 94 231 572 891 127 226 994", "290 272 65"),
        (
            65536,
            "43523 57920 49791 36646 58258 43298 61671 7740 11977 57471 54908 2304",
            "53281 34409 3384",
        ),
    ] {
        let order = shuffled(n);
        assert!(order.starts_with(&numbers(first)), "n = {n}");
        assert!(order.ends_with(&numbers(last)), "n = {n}");
    }
}

#[test]
fn only_the_shuffled_order_costs_memory() {
    assert_eq!(permutation(Access::Sequential, u64::MAX), Ok(Vec::new()));
    assert!(permutation(Access::Shuffled, u64::MAX).is_err());
}

#[test]
fn the_stride_is_the_published_one() {
    let order: Vec<u64> = Stride::new(32, 17).collect();
    let published = "0 17 1 18 2 19 3 20 4 21 5 22 6 23 7 24 8 25 9 26 10 27 11 28 12 29 13 14 15 \
                     16 17 18";
    assert_eq!(order, numbers(published));
}

#[test]
fn a_short_file_is_strided_in_place() {
    assert_eq!(Stride::new(17, 17).collect::<Vec<_>>(), [0; 17]);
    assert_eq!(Stride::new(1, 17).collect::<Vec<_>>(), [0]);
}

/// The rule of the stride, written down as it is told, division and all.
fn stride_as_told(n: u64, stride: u64) -> Vec<u64> {
    let (mut position, mut wrap, mut order) = (0, 0, Vec::new());
    for _ in 0..n {
        order.push(position);
        if position + 1 + stride >= n - 1 {
            wrap += 1;
            position = if n <= stride { 0 } else { wrap % n };
        } else {
            position += stride;
        }
    }
    order
}

proptest! {
    #[test]
    fn linear_orders_are_what_they_say(n in 0u64..3000) {
        prop_assert!(Linear::sequential(n).eq(0..n));
        prop_assert!(Linear::backward(n).eq((0..n).rev()));
        prop_assert!(Linear::same_record(n).eq((0..n).map(|_| 0)));
    }

    #[test]
    fn the_shuffled_order_visits_each_record_once(n in 0u64..3000) {
        let mut order = shuffled(n);
        order.sort_unstable();
        prop_assert!(order.into_iter().eq(0..n));
    }

    #[test]
    fn the_stride_follows_its_rule(n in 1u64..3000, stride in 0u64..40) {
        let order: Vec<u64> = Stride::new(n, stride).collect();
        prop_assert!(order.iter().all(|record| *record < n));
        prop_assert_eq!(order, stride_as_told(n, stride));
    }

    #[test]
    fn the_usual_stride_skips_two_records(n in 21u64..3000) {
        let mut order: Vec<u64> = Stride::new(n, 17).collect();
        order.sort_unstable();
        order.dedup();
        prop_assert_eq!(order.len() as u64, n - 2);
    }
}
