//! Conflicting values of one quantity, and equal values of two quantities.

use std::collections::{BTreeMap, BTreeSet};

use statrs::distribution::{DiscreteCDF, Poisson};

use super::{CHANCE, Cause, Chance, Finding, digits, printed::Printed};

/// Minimum value in steps: smaller numbers (fewer than four digits) are equal by chance.
const STEPS: f64 = 1000.0;
/// Relative difference up to which two values are near each other.
const NEAR: f64 = 0.01;

/// Duplicate values, and the probabilities that they are due to chance.
pub(super) struct Duplicates {
    pub(super) found: Vec<Finding>,
    pub(super) chances: Vec<Chance>,
}

/// Cells of one statistic with the same value, in input order.
type Equal = Vec<usize>;

/// Finds duplicate values for every set of coordinates in [`super::Layout::repeats`].
pub(super) fn find(printed: &Printed<'_>) -> Duplicates {
    let mut repeats = Duplicates { found: Vec::new(), chances: Vec::new() };
    let mut tests = Vec::new();
    for shared in 0..printed.layout.repeats.len() {
        for statistic in printed.styles.keys() {
            tests.push(one(printed, shared, statistic));
        }
    }
    let corrected = crate::holm(&tests.iter().map(|test| test.chance.p).collect::<Vec<_>>());
    for (mut test, p) in tests.into_iter().zip(corrected) {
        test.chance.p = p;
        if p < CHANCE {
            repeats.found.extend(test.pairs);
        }
        if test.chance.sharing.0 + test.chance.apart.0 > 0 {
            repeats.chances.push(test.chance);
        }
    }
    let pairs: BTreeSet<_> = repeats.found.iter().filter_map(|f| pair(printed, f)).collect();
    let statistics = printed.styles.len();
    let mut wholes = BTreeSet::new();
    for (first, second, _) in &pairs {
        let both = |(a, b, _): &&(_, _, _)| a == first && b == second;
        if statistics > 1 && pairs.iter().filter(both).count() == statistics {
            wholes.insert((first.clone(), second.clone()));
        }
    }
    for finding in &mut repeats.found {
        let things = pair(printed, finding);
        if let (Finding::Duplicated { whole, .. }, Some((first, second, _))) = (finding, things) {
            *whole = wholes.contains(&(first, second));
        }
    }
    let first = |finding: &Finding| match finding {
        Finding::Duplicated { first, second, .. } => (*first, *second),
        Finding::Malformed { .. }
        | Finding::Conflicting { .. }
        | Finding::DuplicateTest(_)
        | Finding::MissingCell { .. }
        | Finding::Granular { .. } => (usize::MAX, 0),
    };
    repeats.found.sort_by_key(first);
    // Two cells that have several sets of coordinates in common are reported once, under the first
    // set.
    repeats.found.dedup_by_key(|finding| first(finding));
    repeats
}

type Thing<'a> = Vec<(&'a str, &'a str)>;

/// The two quantities and the statistic of a duplicate value.
fn pair<'a>(printed: &Printed<'a>, of: &Finding) -> Option<(Thing<'a>, Thing<'a>, &'a str)> {
    let Finding::Duplicated { first, second, .. } = of else { return None };
    let (one, other) = (printed.thing(*first), printed.thing(*second));
    Some((one, other, printed.statistic(*first)))
}

/// Test for duplicate values of one statistic among cells that agree in one set of coordinates.
struct Test {
    /// Counts, and the p-value before the adjustment.
    chance: Chance,
    /// Pairs to report if chance is an unlikely cause.
    pairs: Vec<Finding>,
}

/// Tests for duplicate values of one statistic among cells that agree in one set of coordinates.
fn one(printed: &Printed<'_>, shared: usize, statistic: &str) -> Test {
    let coordinates = &printed.layout.repeats[shared];
    let of = |cell: &usize| printed.statistic(*cell) == statistic;
    let cells: Vec<usize> = printed.firsts().into_iter().filter(of).collect();
    let mut rows: BTreeMap<Vec<&str>, u64> = BTreeMap::new();
    let mut values: BTreeMap<u64, Equal> = BTreeMap::new();
    let mut in_rows: BTreeMap<(u64, Vec<&str>), Equal> = BTreeMap::new();
    for cell in &cells {
        let row = printed.levels(*cell, coordinates);
        let value = printed.values[*cell].unwrap_or(0.0);
        *rows.entry(row.clone()).or_default() += 1;
        if value.abs() >= STEPS * printed.step(*cell) {
            values.entry(value.to_bits()).or_default().push(*cell);
            in_rows.entry((value.to_bits(), row)).or_default().push(*cell);
        }
    }
    let of_all = |groups: &mut dyn Iterator<Item = u64>| groups.map(pairs).sum::<u64>();
    let sharing = (
        of_all(&mut in_rows.values().map(|equal| equal.len() as u64)),
        of_all(&mut rows.values().copied()),
    );
    let all =
        (of_all(&mut values.values().map(|equal| equal.len() as u64)), pairs(cells.len() as u64));
    let mut by_row: BTreeMap<&Vec<&str>, Vec<(f64, f64)>> = BTreeMap::new();
    for ((bits, row), equal) in &in_rows {
        let value = f64::from_bits(*bits).abs();
        let steps = equal.iter().map(|cell| (value, printed.step(*cell)));
        by_row.entry(row).or_default().extend(steps);
    }
    let apart = (all.0 - sharing.0, all.1 - sharing.1);
    let of_apart = apart.0 as f64 / apart.1.max(1) as f64 * sharing.1 as f64;
    let expected = by_row.into_values().map(by_chance).sum::<f64>().max(of_apart);
    // Equal values in m cells have one cause, not one for each of their m (m - 1) / 2 pairs.
    let repeated = in_rows.iter().filter(|(_, equal)| equal.len() > 1);
    let values = repeated.map(|((bits, _), _)| bits).collect::<BTreeSet<_>>().len() as u64;
    let p = beyond(values, expected);
    // Each later cell is compared only with the first one, so a value that occurs in many cells has
    // fewer findings than cells.
    let held = |equal: &Equal| {
        let first = equal[0];
        let pair = move |second| Finding::Duplicated { first, second, shared, whole: false };
        equal[1..].iter().copied().map(pair).collect::<Vec<_>>()
    };
    let pairs = in_rows.values().flat_map(held).collect();
    let statistic = statistic.to_owned();
    Test { chance: Chance { statistic, shared, sharing, apart, values, expected, p }, pairs }
}

fn pairs(n: u64) -> u64 {
    n * n.saturating_sub(1) / 2
}

/// Expected number of equal pairs by chance. `values` are values with their steps. The difference
/// of two near values is assumed to be uniform between -d and d, where d is 1 % of the value. It is
/// one of 2 d / step + 1 multiples of the step; for one of them, 0, the values are equal. Example:
/// 500.0 has d = 5 and a step of 0.1, so one near pair in 101 is equal by chance.
fn by_chance(mut values: Vec<(f64, f64)>) -> f64 {
    values.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let (mut above, mut beyond) = (0, 0);
    let mut expected = 0.0;
    for (value, step) in &values {
        above += values[above..].iter().take_while(|(other, _)| other <= value).count();
        beyond = beyond.max(above);
        let limit = value * (1.0 + NEAR);
        beyond += values[beyond..].iter().take_while(|(other, _)| *other <= limit).count();
        expected += (beyond - above) as f64 / (2.0 * NEAR * value / step + 1.0);
    }
    expected
}

/// Probability of at least `equal` repeated values, given the expected number of equal pairs
/// (Poisson). It is not too small, because there are at most as many repeated values as equal
/// pairs.
fn beyond(equal: u64, expected: f64) -> f64 {
    match (equal, Poisson::new(expected)) {
        (0, _) => 1.0,
        // Without near pairs, no equal pair is expected.
        (_, Err(_)) => 0.0,
        (_, Ok(chance)) => chance.sf(equal - 1).clamp(0.0, 1.0),
    }
}

/// Quantities that are printed several times, with values that differ from the first one.
pub(super) fn differing(printed: &Printed<'_>, repeats: &[Finding]) -> Vec<Finding> {
    let mut copies: BTreeMap<usize, usize> = BTreeMap::new();
    for repeat in repeats {
        if let Finding::Duplicated { first, second, .. } = repeat {
            copies.entry(*first).or_insert(*second);
            copies.entry(*second).or_insert(*first);
        }
    }
    let mut values: BTreeMap<(u64, &str), usize> = BTreeMap::new();
    for cell in printed.firsts() {
        let bits = printed.values[cell].unwrap_or(0.0).to_bits();
        values.entry((bits, printed.statistic(cell))).or_insert(cell);
    }
    let mut found = Vec::new();
    for thing in &printed.things {
        for second in &thing[1..] {
            let (Some(a), Some(b)) = (printed.values[thing[0]], printed.values[*second]) else {
                continue;
            };
            if a == b {
                continue;
            }
            let statistic = printed.statistic(*second);
            let large = b.abs() >= STEPS * printed.step(*second);
            let elsewhere = values.get(&(b.to_bits(), statistic)).filter(|_| large);
            let reason = digits::slip(a, b, printed.scales[statistic].0)
                .or(elsewhere.map(|cell| Cause::SecondIsOf { cell: *cell }))
                .or(copies.get(&thing[0]).map(|cell| Cause::FirstIsOf { cell: *cell }))
                .unwrap_or(Cause::Unknown);
            let difference = (b - a) / a;
            found.push(Finding::Conflicting {
                first: thing[0],
                second: *second,
                difference,
                reason,
            });
        }
    }
    let second = |finding: &Finding| match finding {
        Finding::Conflicting { second, .. } => *second,
        Finding::Malformed { .. }
        | Finding::Duplicated { .. }
        | Finding::DuplicateTest(_)
        | Finding::MissingCell { .. }
        | Finding::Granular { .. } => usize::MAX,
    };
    found.sort_by_key(second);
    found
}
