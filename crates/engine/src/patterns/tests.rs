use model::{
    Bytes, Nanos,
    phase::{Direction, Length, Workers, Zone},
};
use proptest::prelude::*;

use super::{iozone_permutation::permutation, *};

fn numbers(text: &str) -> Vec<u64> {
    text.split(' ').map(|number| number.parse().unwrap()).collect()
}

/// Reads of `n` blocks of 512 bytes in one file, with a partial block after them.
fn plan(access: AccessPattern, n: u64) -> Stream {
    let (size, block) = (Bytes(n * 512 + 100), Bytes(512));
    Stream {
        access_pattern: access,
        seed: 7,
        ..Stream::new(FileSharing::One("f".into()), size, block)
    }
}

fn with_lengths(lengths: &[(u32, u32)], plan: Stream) -> Stream {
    let length = |(blocks, weight): &(u32, u32)| Length { blocks: *blocks, weight: *weight };
    Stream { block_sizes: lengths.iter().map(length).collect(), ..plan }
}

fn split(workers: u32, plan: Stream) -> Stream {
    Stream { files: FileSharing::Segmented("f".into()), workers: Workers::threads(workers), ..plan }
}

#[test]
fn interleaved_blocks_alternate_between_the_workers() {
    let files = FileSharing::Interleaved("f".into());
    for access_pattern in [AccessPattern::Sequential, AccessPattern::Permutation] {
        let plan = plan(access_pattern, 14);
        let plan = Stream { files: files.clone(), workers: Workers::threads(4), ..plan };
        let own = |worker| spans(&plan, worker).iter().map(|(block, _)| *block).collect::<Vec<_>>();
        assert!(
            (0..4).all(|worker| own(worker).iter().all(|block| block % 4 == u64::from(worker)))
        );
        let mut all: Vec<u64> = (0..4).flat_map(own).collect();
        all.sort_unstable();
        // Each worker has three of 14 blocks.
        assert_eq!(all, (0..12).collect::<Vec<_>>());
        if access_pattern == AccessPattern::Sequential {
            assert_eq!(own(2), [2, 6, 10]);
        }
    }
}

/// First operations of a worker, at most `most`.
fn visits(plan: &Stream, worker: u32, most: usize) -> Vec<PlannedOp> {
    let prepared = Prepared::new(plan).unwrap();
    let mut order = Order::new(plan, worker, 1000, &prepared).unwrap();
    let visits: Vec<_> = std::iter::from_fn(|| order.next()).take(most).collect();
    if visits.len() < most {
        assert_eq!(order.next(), None, "an ended sequence stays ended");
    }
    visits
}

/// First block and number of blocks of each operation of a bounded sequence.
fn spans(plan: &Stream, worker: u32) -> Vec<(u64, u64)> {
    let span = |visit: &PlannedOp| {
        assert!(visit.offset.is_multiple_of(512) && visit.len > 0 && visit.len.is_multiple_of(512));
        (visit.offset / 512, visit.len as u64 / 512)
    };
    visits(plan, worker, usize::MAX).iter().map(span).collect()
}

/// Blocks of worker 0 in order.
fn blocks(plan: &Stream) -> Vec<u64> {
    let block = |(first, count)| {
        assert_eq!(count, 1);
        first
    };
    spans(plan, 0).into_iter().map(block).collect()
}

fn sorted(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable();
    numbers
}

/// All patterns that need no trace and stay inside the file.
const INSIDE: [AccessPattern; 11] = [
    AccessPattern::Sequential,
    AccessPattern::Backward,
    AccessPattern::SameBlock,
    AccessPattern::Stride { blocks: 17 },
    AccessPattern::IozonePermutation,
    AccessPattern::Permutation,
    AccessPattern::Random,
    AccessPattern::Zipf { theta: 0.99 },
    AccessPattern::Pareto { share: 0.2 },
    AccessPattern::Hotspot { space: 0.1, visits: 0.9 },
    AccessPattern::Tickets,
];

/// Range of the random patterns among these.
const DRAWN: std::ops::Range<usize> = 5..11;

#[test]
fn the_iozone_permutation_is_the_published_one() {
    for (n, order) in [
        (4, "0 3 1 2"),
        (8, "3 7 2 5 6 1 0 4"),
        (16, "3 15 8 1 12 9 7 2 5 0 6 10 14 13 4 11"),
        (
            32,
            "3 31 5 9 18 11 22 16 8 17 28 19 30 13 26 21 2 0 29 4 12 15 7 6 20 10 25 27 24 14 23 1",
        ),
    ] {
        assert_eq!(blocks(&plan(AccessPattern::IozonePermutation, n)), numbers(order), "n = {n}");
    }
}

#[test]
fn long_iozone_permutations_begin_and_end_as_published() {
    for (n, first, last) in [
        (64, "1 55 28 7 18 58 39 3 22 0 34 10", "51 6 2"),
        (1024, "505 56 602 672 161 94 231 572 891 127 226 994", "290 272 65"),
        (
            65536,
            "43523 57920 49791 36646 58258 43298 61671 7740 11977 57471 54908 2304",
            "53281 34409 3384",
        ),
    ] {
        let order = blocks(&plan(AccessPattern::IozonePermutation, n));
        assert!(order.starts_with(&numbers(first)), "n = {n}");
        assert!(order.ends_with(&numbers(last)), "n = {n}");
    }
}

#[test]
fn only_the_iozone_permutation_takes_memory() {
    assert_eq!(permutation(AccessPattern::Sequential, u64::MAX), Ok(Vec::new()));
    assert!(permutation(AccessPattern::IozonePermutation, u64::MAX).is_err());
}

#[test]
fn the_stride_is_the_published_one() {
    let published = "0 17 1 18 2 19 3 20 4 21 5 22 6 23 7 24 8 25 9 26 10 27 11 28 12 29 13 14 15 \
                     16 17 18";
    assert_eq!(blocks(&plan(AccessPattern::Stride { blocks: 17 }, 32)), numbers(published));
}

#[test]
fn a_short_file_is_strided_at_block_0() {
    assert_eq!(blocks(&plan(AccessPattern::Stride { blocks: 17 }, 17)), [0; 17]);
    assert_eq!(blocks(&plan(AccessPattern::Stride { blocks: 17 }, 1)), [0]);
}

/// Direct implementation of the stride rule, with division.
fn stride_by_rule(n: u64, stride: u64) -> Vec<u64> {
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

#[test]
fn appends_are_adjacent_from_the_end_of_the_file() {
    let mut plan = plan(AccessPattern::Append, 3);
    (plan.direction, plan.bound) = (Direction::Write, Bound::Ops(7));
    let visit = |i: u64| PlannedOp { offset: 1000 + i * 512, len: 512, kind: Kind::Write };
    assert_eq!(visits(&plan, 0, 99), (0..7).map(visit).collect::<Vec<_>>());
    plan.bound = Bound::Once;
    assert_eq!(visits(&plan, 0, 99), (0..3).map(visit).collect::<Vec<_>>());
    let long = with_lengths(&[(2, 1)], plan);
    let last = visits(&long, 0, 99)[1];
    assert_eq!((last.offset, last.len), (1000 + 1024, 512), "cut to the size of the part");
}

#[test]
fn a_number_of_operations_repeats_the_pattern() {
    for access in [
        AccessPattern::Backward,
        AccessPattern::IozonePermutation,
        AccessPattern::Stride { blocks: 2 },
    ] {
        let once = plan(access, 10);
        let pass = blocks(&once);
        for ops in [1, 9, 10, 11, 35] {
            let order = blocks(&Stream { bound: Bound::Ops(ops), ..once.clone() });
            assert!(order.iter().eq(pass.iter().cycle().take(index(ops))), "{access:?}, {ops}");
        }
    }
}

#[test]
fn a_time_limit_does_not_end_a_pattern() {
    for access in INSIDE {
        let bound = Bound::Time { ramp: Nanos(0), run: Nanos(1) };
        let endless = Stream { bound, ..plan(access, 5) };
        assert_eq!(visits(&endless, 0, 1000).len(), 1000, "{access:?}");
    }
}

#[test]
fn draws_depend_on_seed_worker_and_pass_only() {
    for access in &INSIDE[DRAWN] {
        let base = plan(*access, 500);
        let twice = Stream { bound: Bound::Ops(1000), ..base.clone() };
        let passes = spans(&twice, 0);
        let (first, second) = passes.split_at(500);
        assert_eq!(first, spans(&base, 0), "{access:?}");
        assert_ne!(first, second, "{access:?}");
        assert_ne!(first, spans(&base, 1), "{access:?}");
        assert_ne!(first, spans(&Stream { seed: 8, ..base }, 0), "{access:?}");
    }
    for access in &INSIDE[..DRAWN.start] {
        let base = plan(*access, 500);
        assert_eq!(spans(&base, 0), spans(&base, 3), "{access:?}");
    }
}

#[test]
fn passes_of_workers_do_not_repeat_each_other() {
    let draws = |worker: u32, pass| generator(0, worker, pass).u64(..);
    let all = (0..100).flat_map(|worker| (0..100).map(move |pass| draws(worker, pass)));
    let all: std::collections::BTreeSet<_> = all.collect();
    assert_eq!(all.len(), 10_000);
}

#[test]
fn each_pass_is_another_permutation() {
    let twice = Stream { bound: Bound::Ops(200), ..plan(AccessPattern::Permutation, 100) };
    let order = blocks(&twice);
    assert!(sorted(order[..100].to_vec()).into_iter().eq(0..100));
    assert!(sorted(order[100..].to_vec()).into_iter().eq(0..100));
}

#[test]
fn permuted_operations_of_several_blocks_cover_each_block_once() {
    let lengths = with_lengths(&[(1, 1), (8, 1)], plan(AccessPattern::Permutation, 500));
    let base = Stream { bound: Bound::Ops(500), ..lengths };
    let mut left = spans(&base, 0).into_iter();
    for pass in 0..2 {
        let mut seen = vec![false; 500];
        let mut counts = [0; 9];
        while seen.iter().any(|seen| !seen) {
            let (first, count) = left.next().unwrap();
            counts[index(count)] += 1;
            for block in first..first + count {
                let seen = &mut seen[index(block)];
                assert!(!*seen, "block {block} twice in pass {pass}");
                *seen = true;
            }
        }
        assert!(
            counts[1] > 20 && counts[8] > 20 && counts[2..8].iter().sum::<u32>() > 5,
            "{counts:?}"
        );
    }
}

#[test]
fn writes_have_their_own_lengths_and_alignment() {
    for access in [AccessPattern::Random, AccessPattern::SequentialPerDirection] {
        let reads = with_lengths(&[(1, 1), (2, 1)], plan(access, 600));
        let plan = Stream {
            write_sizes: vec![Length { blocks: 6, weight: 1 }],
            direction: Direction::Mixed(0.75),
            bound: Bound::Ops(4000),
            ..reads
        };
        let order = visits(&plan, 0, usize::MAX);
        let reads = order.iter().filter(|visit| visit.kind == Kind::Read).count();
        assert!((2800..3200).contains(&reads), "{reads}");
        for visit in order {
            let blocks = visit.len / 512;
            // The last operation of a sequential pass is cut.
            let cut = access == AccessPattern::SequentialPerDirection;
            let is_own = if visit.kind == Kind::Read { blocks <= 2 } else { blocks == 6 };
            assert!(is_own || (cut && blocks < 6), "{visit:?}");
            let aligned = access != AccessPattern::Random || visit.kind == Kind::Read;
            assert!(aligned || visit.offset.is_multiple_of(6 * 512), "{visit:?}");
        }
    }
}

#[test]
fn random_access_is_uniform_with_one_length_and_with_several() {
    let n = 100;
    for lengths in [&[][..], &[(10, 1)]] {
        let plan = with_lengths(lengths, plan(AccessPattern::Random, n));
        let plan = Stream { bound: Bound::Ops(200_000), ..plan };
        let fits = n - plan.longest_operation().0 / 512 + 1;
        let mut counts = vec![0f64; index(fits)];
        for (first, _) in spans(&plan, 0) {
            counts[index(first)] += 1.0;
        }
        let mean = 200_000.0 / fits as f64;
        let chi: f64 = counts.iter().map(|count| (count - mean).powi(2) / mean).sum();
        let freedom = fits as f64 - 1.0;
        assert!((chi - freedom).abs() < 5.0 * (2.0 * freedom).sqrt(), "chi-square {chi}");
    }
}

#[test]
fn lengths_follow_their_weights() {
    let plan = with_lengths(&[(1, 1), (2, 2), (8, 7)], plan(AccessPattern::Random, 1000));
    let plan = Stream { bound: Bound::Ops(100_000), ..plan };
    let order = spans(&plan, 0);
    for (length, share) in [(1, 0.1f64), (2, 0.2), (8, 0.7)] {
        let found = order.iter().filter(|(_, count)| *count == length).count() as f64;
        // Five standard deviations of a binomial count.
        let deviation = (100_000.0 * share * (1.0 - share)).sqrt();
        assert!((found - 100_000.0 * share).abs() < 5.0 * deviation, "{length}: {found}");
    }
}

#[test]
fn mixed_directions_have_the_read_fraction() {
    for (share, tolerance) in [(0.7, 0.005), (0.001, 0.0004), (0.0, 0.0), (1.0, 0.0)] {
        let plan = Stream {
            direction: Direction::Mixed(share),
            bound: Bound::Ops(200_000),
            ..plan(AccessPattern::Random, 64)
        };
        let order = visits(&plan, 0, usize::MAX);
        let reads = order.iter().filter(|visit| visit.kind == Kind::Read).count();
        assert!((reads as f64 / 200_000.0 - share).abs() <= tolerance, "{share}: {reads}");
        // The direction is independent of the position.
        let low: Vec<_> = order.iter().filter(|visit| visit.offset < 32 * 512).collect();
        let reads = low.iter().filter(|visit| visit.kind == Kind::Read).count();
        assert!((reads as f64 / low.len() as f64 - share).abs() <= 2.0 * tolerance);
    }
}

#[test]
fn each_worker_keeps_its_direction() {
    for direction in [Direction::Read, Direction::Alternate, Direction::FirstRead(2)] {
        let plan = Stream { direction, ..plan(AccessPattern::Random, 8) };
        for worker in 0..4 {
            let kind = if direction.reads(worker) { Kind::Read } else { Kind::Write };
            assert!(visits(&plan, worker, 99).iter().all(|visit| visit.kind == kind));
        }
    }
}

#[test]
fn sequential_workers_of_a_shared_file_each_cover_the_whole_file() {
    let shared = Stream {
        files: FileSharing::Shared("f".into()),
        workers: Workers::threads(3),
        ..plan(AccessPattern::Sequential, 10)
    };
    for worker in 0..3 {
        assert!(spans(&shared, worker).into_iter().eq((0..10).map(|block| (block, 1))));
    }
}

#[test]
fn workers_of_a_segmented_file_do_not_overlap() {
    // Three blocks each; the last one of ten is unused.
    for access in INSIDE {
        let plan = split(3, plan(access, 10));
        for worker in 0..3 {
            let part = u64::from(worker) * 3..u64::from(worker) * 3 + 3;
            let order = spans(&plan, worker);
            assert!(order.iter().all(|(first, _)| part.contains(first)), "{access:?}: {order:?}");
            assert_eq!(order.len(), 3);
        }
    }
}

#[test]
fn a_part_without_blocks_has_no_operations() {
    for access in INSIDE {
        let plan = Stream { bound: Bound::Ops(5), ..split(4, plan(access, 3)) };
        assert_eq!(visits(&plan, 0, 9), [], "{access:?}");
    }
}

/// Pattern that stays inside the file, including small parameters.
fn access() -> impl Strategy<Value = AccessPattern> {
    prop_oneof![
        prop::sample::select(&INSIDE[..]),
        (0u64..40).prop_map(|blocks| AccessPattern::Stride { blocks }),
        (0.0f64..=10.0).prop_map(|theta| AccessPattern::Zipf { theta }),
        (0.0001f64..0.4999).prop_map(|share| AccessPattern::Pareto { share }),
        (0.001f64..0.999, 0.0f64..=1.0)
            .prop_map(|(space, visits)| AccessPattern::Hotspot { space, visits }),
    ]
}

proptest! {
    #[test]
    fn linear_orders_are_what_they_say(n in 1u64..3000) {
        prop_assert!(blocks(&plan(AccessPattern::Sequential, n)).into_iter().eq(0..n));
        prop_assert!(blocks(&plan(AccessPattern::Backward, n)).into_iter().eq((0..n).rev()));
        prop_assert!(blocks(&plan(AccessPattern::SameBlock, n)).into_iter().eq((0..n).map(|_| 0)));
    }

    #[test]
    fn permutations_contain_each_block_once(n in 1u64..3000) {
        let iozone = blocks(&plan(AccessPattern::IozonePermutation, n));
        prop_assert!(sorted(iozone).into_iter().eq(0..n));
        prop_assert!(sorted(blocks(&plan(AccessPattern::Permutation, n))).into_iter().eq(0..n));
    }

    #[test]
    fn the_stride_follows_its_rule(n in 1u64..3000, stride in 0u64..40) {
        let order = blocks(&plan(AccessPattern::Stride { blocks: stride }, n));
        prop_assert!(order.iter().all(|block| *block < n));
        prop_assert_eq!(order, stride_by_rule(n, stride));
    }

    #[test]
    fn the_default_stride_skips_two_blocks(n in 21u64..3000) {
        let mut order = sorted(blocks(&plan(AccessPattern::Stride { blocks: 17 }, n)));
        order.dedup();
        prop_assert_eq!(order.len() as u64, n - 2);
    }

    #[test]
    fn every_operation_is_inside_the_part(
        access in access(),
        n in 40u64..400,
        workers in 1u32..5,
        lengths in prop::collection::vec((1u32..10, 1u32..5), 0..4),
        seed: u64,
    ) {
        let plan = Stream { seed, ..split(workers, with_lengths(&lengths, plan(access, n))) };
        let part = n / u64::from(workers);
        for worker in 0..workers {
            let start = u64::from(worker) * part;
            let order = spans(&plan, worker);
            for (first, count) in &order {
                prop_assert!(*first >= start && first + count <= start + part);
            }
            let covers = matches!(
                access,
                AccessPattern::Sequential | AccessPattern::Backward | AccessPattern::Permutation
            );
            if covers {
                // Each block once.
                let mut covered: Vec<u64> =
                    order.iter().flat_map(|(first, count)| *first..first + count).collect();
                covered.sort_unstable();
                prop_assert!(covered.into_iter().eq(start..start + part));
            } else {
                prop_assert_eq!(order.len() as u64, part);
            }
        }
    }

    #[test]
    fn a_number_of_operations_is_met_exactly(
        access in access(),
        n in 10u64..200,
        ops in 1u64..1000,
        lengths in prop::collection::vec((1u32..10, 1u32..5), 0..4),
    ) {
        let plan = with_lengths(&lengths, plan(access, n));
        let plan = Stream { bound: Bound::Ops(ops), ..plan };
        prop_assert_eq!(spans(&plan, 0).len() as u64, ops);
        prop_assert_eq!(spans(&plan, 0), spans(&plan, 0));
    }
}

/// Positions and directions of `ops` updates with tickets.
fn tickets(n: u64, worker: u32, ops: u64) -> Vec<(u64, Kind)> {
    let plan = Stream {
        direction: Direction::Update(0.5),
        bound: Bound::Ops(ops),
        ..plan(AccessPattern::Tickets, n)
    };
    let visits = visits(&plan, worker, usize::MAX);
    visits.iter().map(|visit| (visit.offset / 512, visit.kind)).collect()
}

#[test]
fn tickets_determine_positions_and_updates() {
    // With ten times as many blocks, a position determines the last digit of its ticket.
    for (place, kind) in tickets(40, 0, 2000) {
        assert_eq!(kind == Kind::Write, place.is_multiple_of(10), "place {place}");
    }
    // With an even number of blocks, a position determines if its ticket is even. With an odd
    // number without factor 5, a position determines nothing.
    let written = |n| {
        let written = tickets(n, 0, 4000).into_iter().filter(|(_, kind)| *kind == Kind::Write);
        let mut counts = vec![0u64; index(n)];
        written.for_each(|(place, _)| counts[index(place)] += 1);
        counts
    };
    let even = written(8);
    assert!((0..8).all(|place| (even[place] > 0) == place.is_multiple_of(2)), "{even:?}");
    assert!(written(7).iter().all(|count| *count > 0));
    // A tenth on average, with a standard deviation of 19.
    let all: u64 = even.iter().sum();
    assert!((300..500).contains(&all), "{all} of 4000");
    assert_ne!(tickets(40, 0, 50), tickets(40, 1, 50), "workers draw independently");
    assert_eq!(tickets(40, 1, 50), tickets(40, 1, 50));
}

#[test]
fn tickets_are_uniform_over_the_blocks() {
    let mut counts = [0f64; 50];
    for (place, _) in tickets(50, 3, 50_000) {
        counts[index(place)] += 1.0;
    }
    let chi: f64 = counts.iter().map(|count| (count - 1000.0).powi(2) / 1000.0).sum();
    // 49 degrees of freedom: above 110 once in a million seeds.
    assert!(chi < 110.0, "{chi}");
}

#[test]
fn aligned_operations_start_at_multiples_and_stay_in_the_part() {
    let zones = vec![Zone { weight: 3, blocks: 2 }, Zone { weight: 1, blocks: 10 }];
    let patterns = [
        AccessPattern::Random,
        AccessPattern::Zones,
        AccessPattern::Zipf { theta: 1.0 },
        AccessPattern::Normal { deviation: 0.8 },
    ];
    for access_pattern in patterns {
        let plan = Stream { zones: zones.clone(), ..plan(access_pattern, 100) };
        let plan = with_lengths(&[(1, 1), (8, 1), (20, 1)], plan);
        let plan = Stream { offset_alignment: 8, bound: Bound::Ops(2000), ..plan };
        let all = visits(&plan, 0, 3000);
        assert_eq!(all.len(), 2000, "a pass has 12 operations, and another one follows");
        let mut starts: Vec<u64> = all.iter().map(|own| own.offset / 512).collect();
        assert!(starts.iter().all(|start| start % 8 == 0), "{access_pattern:?}");
        assert!(all.iter().all(|own| own.offset + own.len as u64 <= 100 * 512));
        starts.sort_unstable();
        starts.dedup();
        assert_eq!(starts.len(), 12, "{access_pattern:?}: every place is used: {starts:?}");
        let hot = all.iter().filter(|own| own.offset < 16 * 512).count();
        if access_pattern == AccessPattern::Zones {
            assert!((1350..1650).contains(&hot), "75 % of {hot}");
        }
    }
}
