//! Terms of the model, and their columns in the design matrix.

use std::collections::BTreeMap;

use super::{Factor, Source};

/// Columns of one combination of levels. For each factor, the column of its level is 1 and the
/// other columns are 0; for the last level, all columns are -1. An interaction has the products of
/// the columns of its factors.
pub(super) fn code(factors: &[Factor], sources: &[Source], levels: &[usize]) -> Vec<f64> {
    let main = |factor: usize| {
        let last = factors[factor].levels.len() - 1;
        let level = levels[factor];
        (0..last).map(move |column| match () {
            () if level == last => -1.0,
            () if level == column => 1.0,
            () => 0.0,
        })
    };
    let mut code: Vec<f64> = Vec::new();
    for source in sources {
        match *source {
            Source::Main(one) => code.extend(main(one)),
            Source::Interaction(one, two) => {
                code.extend(main(one).flat_map(|a| main(two).map(move |b| a * b)));
            }
        }
    }
    code
}

/// Terms without aliases, and the aliases of each: interactions of factors with two levels whose
/// columns are equal up to the sign in all measured combinations.
pub(super) fn merged(
    factors: &[Factor],
    cells: &BTreeMap<&[usize], u32>,
    sources: Vec<Source>,
) -> (Vec<Source>, Vec<Vec<(usize, usize)>>) {
    let sign = |factor: usize, levels: &[usize]| levels[factor] == 0;
    let two = |factor: usize| factors[factor].levels.len() == 2;
    let mut kept: Vec<(Source, Vec<(usize, usize)>)> = Vec::new();
    let mut columns: Vec<(usize, Vec<bool>)> = Vec::new();
    for source in sources {
        if let Source::Interaction(one, other) = source
            && two(one)
            && two(other)
        {
            let products = cells.keys().map(|levels| sign(one, levels) == sign(other, levels));
            let mut column: Vec<bool> = products.collect();
            // The sign of a column does not matter.
            if column.first() == Some(&false) {
                column.iter_mut().for_each(|value| *value = !*value);
            }
            if let Some((at, _)) = columns.iter().find(|(_, known)| *known == column) {
                kept[*at].1.push((one, other));
                continue;
            }
            columns.push((kept.len(), column));
        }
        kept.push((source, Vec::new()));
    }
    kept.into_iter().unzip()
}

/// Smallest number of values at a level of a factor, over all combinations with this level.
pub(super) fn per_level(factors: &[Factor], cells: &BTreeMap<&[usize], u32>) -> u32 {
    let of_level = |factor: usize, level: usize| {
        let own = cells.iter().filter(|(levels, _)| levels[factor] == level);
        own.map(|(_, values)| *values).sum::<u32>()
    };
    let levels = factors.iter().enumerate();
    let all = levels.flat_map(|(at, factor)| (0..factor.levels.len()).map(move |it| (at, it)));
    all.map(|(factor, level)| of_level(factor, level)).min().unwrap_or(0)
}
