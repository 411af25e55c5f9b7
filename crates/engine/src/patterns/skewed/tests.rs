use model::{Bytes, phase::FileSharing};

use super::*;
use crate::patterns::index;

fn skew(access: AccessPattern, n: u64) -> Skew {
    let (size, block) = (Bytes(n * 512), Bytes(512));
    let plan = Stream::new(FileSharing::One("f".into()), size, block);
    Skew::new(&Stream { access_pattern: access, seed: 3, ..plan }, n).unwrap()
}

/// Frequency of each rank in `draws` draws.
fn counts(access: AccessPattern, n: u64, draws: u64) -> Vec<u64> {
    let skew = Skew { scatter: None, ..skew(access, n) };
    let mut random = Rng::with_seed(11);
    let mut counts = vec![0; index(n)];
    for _ in 0..draws {
        counts[index(skew.draw(&mut random))] += 1;
    }
    counts
}

/// Probabilities of a law by rank.
fn law(n: u64, weight: impl Fn(f64) -> f64) -> Vec<f64> {
    let weights: Vec<f64> = (0..n).map(|rank| weight(rank as f64)).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

fn zipf_law(n: u64, theta: f64) -> Vec<f64> {
    law(n, |rank| (rank + 1.0).powf(-theta))
}

fn self_similar_law(n: u64, share: f64) -> Vec<f64> {
    let below = |rank: f64| (rank / n as f64).powf((1.0 - share).ln() / share.ln());
    law(n, |rank| below(rank + 1.0) - below(rank))
}

/// Chi-square of counts against a law, in standard deviations from its mean; neighbors are joined
/// until at least 10 accesses are expected.
fn deviation(counts: &[u64], law: &[f64]) -> f64 {
    let draws = counts.iter().sum::<u64>() as f64;
    let (mut chi, mut bins) = (0.0, 0.0);
    let (mut found, mut expected) = (0.0, 0.0);
    for (count, probability) in counts.iter().zip(law) {
        found += *count as f64;
        expected += probability * draws;
        if expected >= 10.0 {
            chi += (found - expected).powi(2) / expected;
            bins += 1.0;
            (found, expected) = (0.0, 0.0);
        }
    }
    let freedom: f64 = bins - 1.0;
    (chi - freedom) / (2.0 * freedom).sqrt()
}

#[test]
fn zipf_is_followed() {
    for (n, theta) in
        [(2, 1.0), (100, 0.5), (1000, 0.99), (50_000, 0.99), (20_000, 1.2), (500, 0.0)]
    {
        let counts = counts(AccessPattern::Zipf { theta }, n, 1_000_000);
        let deviation = deviation(&counts, &zipf_law(n, theta));
        assert!(deviation.abs() < 5.0, "n = {n}, theta = {theta}: {deviation}");
    }
}

#[test]
fn the_self_similar_law_is_followed() {
    for (n, share) in [(2, 0.2), (1000, 0.2), (50_000, 0.2), (20_000, 0.4), (3000, 0.05)] {
        let counts = counts(AccessPattern::Pareto { share }, n, 1_000_000);
        let deviation = deviation(&counts, &self_similar_law(n, share));
        assert!(deviation.abs() < 5.0, "n = {n}, share = {share}: {deviation}");
    }
}

#[test]
fn one_fifth_of_the_blocks_gets_four_fifths_of_the_accesses_recursively() {
    let counts = counts(AccessPattern::Pareto { share: 0.2 }, 100_000, 1_000_000);
    let share = |ranks: usize| counts[..ranks].iter().sum::<u64>() as f64 / 1e6;
    assert!((share(20_000) - 0.8).abs() < 0.002, "{}", share(20_000));
    assert!((share(4000) - 0.64).abs() < 0.003, "{}", share(4000));
    assert!((share(800) - 0.512).abs() < 0.003, "{}", share(800));
}

#[test]
fn the_hotspot_has_its_fraction_and_each_zone_is_uniform() {
    for (n, hot, space, visits) in
        [(1000, 100, 0.1, 0.9), (777, 389, 0.5, 0.25), (100, 1, 0.001, 0.5)]
    {
        let counts = counts(AccessPattern::Hotspot { space, visits }, n, 1_000_000);
        let cold = n - hot;
        let weight = |rank: f64| {
            let (share, zone) =
                if rank < hot as f64 { (visits, hot) } else { (1.0 - visits, cold) };
            share / zone as f64
        };
        let deviation = deviation(&counts, &law(n, weight));
        assert!(deviation.abs() < 5.0, "n = {n}, {space} has {visits}: {deviation}");
    }
}

#[test]
fn zones_may_have_all_accesses_or_none_and_parts_one_block() {
    let all = counts(AccessPattern::Hotspot { space: 0.5, visits: 1.0 }, 10, 1000);
    assert_eq!(all[5..], [0; 5]);
    let none = counts(AccessPattern::Hotspot { space: 0.5, visits: 0.0 }, 10, 1000);
    assert_eq!(none[..5], [0; 5]);
    for access in [
        AccessPattern::Hotspot { space: 0.5, visits: 0.0 },
        AccessPattern::Zipf { theta: 10.0 },
        AccessPattern::Pareto { share: 1e-9 },
    ] {
        assert_eq!(counts(access, 1, 10), [10]);
    }
    let two = counts(AccessPattern::Hotspot { space: 0.999, visits: 0.5 }, 2, 1000);
    assert!(two[0] > 400 && two[1] > 400, "{two:?}");
}

/// Fraction of each range of a table.
fn shares(ranges: &[(Range, f64)]) -> Vec<f64> {
    let total: f64 = ranges.iter().map(|(_, weight)| weight).sum();
    ranges.iter().map(|(_, weight)| weight / total).collect()
}

#[test]
fn each_rank_is_within_the_stated_error_of_its_law() {
    let n = 200_000;
    for (ranges, law) in [
        (zipf(n, 1.0), zipf_law(n, 1.0)),
        (zipf(n, 0.99), zipf_law(n, 0.99)),
        (zipf(n, 0.3), zipf_law(n, 0.3)),
        (self_similar(n, 0.2), self_similar_law(n, 0.2)),
        (self_similar(n, 0.01), self_similar_law(n, 0.01)),
    ] {
        for ((range, _), share) in ranges.iter().zip(shares(&ranges)) {
            let ranks = index(range.start)..index(range.start + range.width);
            assert!(range.width == 1 || range.width <= range.start / GRAIN);
            let exact: f64 = law[ranks.clone()].iter().sum();
            assert!((share / exact - 1.0).abs() < 5e-6, "{range:?}: {share} for {exact}");
            for rank in ranks {
                let error = share / range.width as f64 / law[rank] - 1.0;
                assert!(error.abs() < 0.008, "rank {rank}: {error}");
            }
        }
    }
    // For the steepest law, only the sum over a range is exact.
    let (ranges, law) = (zipf(20_000, 10.0), zipf_law(20_000, 10.0));
    for ((range, _), share) in ranges.iter().zip(shares(&ranges)) {
        let exact: f64 = law[index(range.start)..][..index(range.width)].iter().sum();
        assert!((share / exact - 1.0).abs() < 5e-6, "{range:?}");
    }
}

#[test]
fn the_largest_parts_have_small_tables_without_gaps() {
    let n = 1 << 52;
    for ranges in [zipf(n, 0.99), self_similar(n, 0.2)] {
        assert!(ranges.len() < 3000, "{}", ranges.len());
        let mut next = 0;
        for (range, weight) in ranges {
            assert_eq!(range.start, next);
            assert!(range.width > 0 && weight.is_finite() && weight > 0.0);
            next += range.width;
        }
        assert_eq!(next, n);
    }
}

#[test]
fn the_integral_is_accurate_near_theta_one() {
    let exact = (2f64).ln();
    assert!((integral(5.0, 5.0, 1.0) - exact).abs() < 1e-15);
    for off in [-1e-12, -1e-15, 1e-15, 1e-12] {
        assert!((integral(5.0, 5.0, 1.0 + off) - exact).abs() < 1e-11);
    }
    assert!((integral(2.0, 3.0, 2.0) - 0.3).abs() < 1e-15);
    assert!((integral(2.0, 3.0, 0.0) - 3.0).abs() < 1e-15);
}

#[test]
fn workers_share_popular_blocks_scattered_by_the_seed() {
    let n = 10_000;
    let skew = |seed| {
        let plan = Stream::new(FileSharing::Shared("f".into()), Bytes(n), Bytes(1));
        let access = AccessPattern::Zipf { theta: 1.5 };
        Skew::new(&Stream { access_pattern: access, seed, ..plan }, n).unwrap()
    };
    let favorite = |skew: &Skew, worker: u64| {
        let mut random = Rng::with_seed(worker);
        let mut counts = vec![0; index(n)];
        for _ in 0..10_000 {
            counts[index(skew.draw(&mut random))] += 1;
        }
        (0..n).max_by_key(|block| counts[index(*block)]).unwrap()
    };
    let favorites: Vec<u64> = (0..5).map(|seed| favorite(&skew(seed), 1)).collect();
    for (seed, block) in (0..).zip(&favorites) {
        assert_eq!(favorite(&skew(seed), 2), *block);
    }
    let mut places = favorites.clone();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), 5, "{favorites:?}");
}

#[test]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to n")]
fn the_normal_distribution_is_the_mean_of_twelve_uniform_numbers() {
    for width in [0.0, 0.25, 0.5] {
        let n = 997;
        let mut random = Rng::with_seed(5);
        let mut law = vec![0.0; index(n)];
        for _ in 0..2_000_000 {
            let sum: f64 = (0..12).map(|_| random.f64()).sum();
            let place = (sum / 12.0 + width * (random.f64() - 0.5)).clamp(0.0, 0.999_999);
            law[(place * n as f64) as usize] += 0.5e-6;
        }
        let counts = counts(AccessPattern::Normal { deviation: width }, n, 100_000);
        // The law is a simulation, and the density is close to that of the sum.
        let found = deviation(&counts, &law);
        assert!(found < 8.0, "{width}: {found}");
    }
    assert!((error_function(1.0) - 0.842_700_793).abs() < 2e-7);
    assert!((error_function(-0.3) + 0.328_626_759).abs() < 2e-7);
}

#[test]
fn zones_have_their_places_and_weights() {
    let zone = |weight, blocks| Zone { weight, blocks };
    let zones = [zone(60, 10), zone(0, 20), zone(30, 30), zone(10, 100)];
    let (size, block) = (Bytes(100 * 512), Bytes(512));
    let plan = Stream::new(FileSharing::One("f".into()), size, block);
    let access_pattern = AccessPattern::Zones;
    let plan = Stream { access_pattern, zones: zones.into(), seed: 3, ..plan };
    let skew = Skew::new(&plan, 100).unwrap();
    let mut random = Rng::with_seed(2);
    let mut counts = [0u64; 100];
    (0..1_000_000).for_each(|_| counts[index(skew.draw(&mut random))] += 1);
    let parts = [(0, 10, 0.6), (10, 30, 0.0), (30, 60, 0.3), (60, 100, 0.1)];
    let part =
        |(start, end, part): (usize, usize, f64)| vec![part / (end - start) as f64; end - start];
    let law: Vec<f64> = parts.into_iter().flat_map(part).collect();
    assert!(counts[10..30].iter().all(|count| *count == 0));
    assert!(deviation(&counts, &law) < 4.0, "{}", deviation(&counts, &law));
}
