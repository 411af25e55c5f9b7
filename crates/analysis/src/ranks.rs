//! A family of cells in order, with ties where the data do not separate them.
//!
//! One list of values for each cell enters; a [`Ranking`] leaves. Cells are ordered by median; all
//! pairs are compared and corrected together, so a claim about the family holds for the family. A
//! single winner exists only when the top group has one member. Ranks are never averaged over
//! workloads, and no points are given.

use model::{Ratio, metric::Better};

use crate::{
    Error,
    compare::{Comparer, Comparison, Side, Size, Verdict},
    median, sorted,
};

/// Family-wise error rate of the claims about one family.
pub const FAMILY_ERROR: f64 = 0.05;
/// Resamples behind [`first_share`].
const RESAMPLES: u32 = 4000;

/// Two cells of a family.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Index of the better cell by median.
    pub better: usize,
    /// Index of the other.
    pub other: usize,
    /// The better against the other: a ratio above 1 is in favor of `better`.
    pub comparison: Comparison,
    /// p-value after Holm's correction for all pairs of the family.
    pub p_holm: f64,
}

impl Pair {
    /// Whether the two are told apart: at [`FAMILY_ERROR`], and by a verdict that says so. A small
    /// p-value alone is not enough where too few values or two ratios that disagree forbid a
    /// verdict.
    pub fn separated(&self) -> bool {
        let differs = matches!(self.comparison.verdict, Verdict::Differs { .. });
        differs && self.p_holm <= FAMILY_ERROR
    }

    /// Whether the better by median is told apart from the other as the better one, by a difference
    /// that may matter.
    fn beats(&self) -> bool {
        let matters = matches!(
            self.comparison.verdict,
            Verdict::Differs { side: Side::Better, size: Size::AtLeast | Size::Uncertain }
        );
        matters && self.separated()
    }
}

/// The family in order. Indexes are those of the slice that was ranked.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// All cells, best median first; equal medians keep their order.
    pub order: Vec<usize>,
    /// The best cell, all not told apart from it, and all that differ from it by less than δ for
    /// certain (equivalent, or a negligible difference); best first.
    pub top: Vec<usize>,
    /// Compact letters of each cell, by its index: cells that share a letter were not told apart.
    pub letters: Vec<String>,
    /// All pairs; the better cell by median comes first in each.
    pub pairs: Vec<Pair>,
}

impl Ranking {
    /// The pair of two cells, in whichever order it is kept.
    pub fn pair(&self, one: usize, other: usize) -> Option<&Pair> {
        let wanted =
            |pair: &&Pair| [(one, other), (other, one)].contains(&(pair.better, pair.other));
        self.pairs.iter().find(wanted)
    }
}

/// Ranks cells by the values of one metric, at the practical threshold δ.
///
/// # Errors
/// [`Error`] when a list is empty or holds a value that is not finite and positive.
pub fn rank(
    comparer: &mut Comparer,
    cells: &[&[f64]],
    better: Better,
    threshold: Ratio,
) -> Result<Ranking, Error> {
    let medians =
        cells.iter().map(|v| Ok(median(&sorted(v)?))).collect::<Result<Vec<f64>, Error>>()?;
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.sort_by(|a, b| match better {
        Better::Lower => medians[*a].total_cmp(&medians[*b]),
        Better::Higher | Better::Neither => medians[*b].total_cmp(&medians[*a]),
    });
    let mut pairs = Vec::new();
    for (place, &first) in order.iter().enumerate() {
        for &other in &order[place + 1..] {
            let comparison = comparer.compare(cells[other], cells[first], better, threshold)?;
            let p_holm = comparison.p;
            pairs.push(Pair { better: first, other, comparison, p_holm });
        }
    }
    let raw: Vec<f64> = pairs.iter().map(|pair| pair.comparison.p).collect();
    for (pair, p) in pairs.iter_mut().zip(holm(&raw)) {
        pair.p_holm = p;
    }
    let top = top_group(&order, &pairs);
    let apart: Vec<(usize, usize)> = pairs
        .iter()
        .filter(|pair| pair.separated())
        .map(|pair| (pair.better, pair.other))
        .collect();
    let letters = letters(&order, &apart);
    Ok(Ranking { order, top, letters, pairs })
}

/// p-values after Holm's step-down correction, in the order given: the i-th smallest of m is
/// multiplied by m - i + 1, and none may fall below a smaller one's.
///
/// Source: Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
/// Statistics 6, 1979.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut floor = 0.0f64;
    for (step, index) in order.into_iter().enumerate() {
        floor = floor.max(p[index] * (p.len() - step) as f64).min(1.0);
        adjusted[index] = floor;
    }
    adjusted
}

/// How often each cell has the best median when repeats are drawn anew with replacement: 4000
/// seeded resamples. Lists of equal length are resampled jointly, value i of each being the same
/// block of the run; lists of different lengths each on its own. Ties share the win.
///
/// # Errors
/// [`Error`] when a list is empty or holds a value that is not finite.
pub fn first_share(cells: &[&[f64]], better: Better) -> Result<Vec<Ratio>, Error> {
    cells.iter().try_for_each(|values| sorted(values).map(drop))?;
    let mut rng = fastrand::Rng::with_seed(u64::from(RESAMPLES));
    let joint = cells.windows(2).all(|two| two[0].len() == two[1].len());
    let mut wins = vec![0.0; cells.len()];
    let mut picks: Vec<usize> = Vec::new();
    for _ in 0..RESAMPLES {
        picks.clear();
        let mut medians = Vec::with_capacity(cells.len());
        for values in cells {
            if !joint || picks.is_empty() {
                picks = (0..values.len()).map(|_| rng.usize(0..values.len())).collect();
            }
            let mut drawn: Vec<f64> = picks.iter().map(|pick| values[*pick]).collect();
            drawn.sort_by(f64::total_cmp);
            medians.push(median(&drawn));
        }
        let best = match better {
            Better::Lower => medians.iter().copied().reduce(f64::min),
            Better::Higher | Better::Neither => medians.iter().copied().reduce(f64::max),
        };
        let winners: Vec<usize> =
            (0..medians.len()).filter(|cell| Some(medians[*cell]) == best).collect();
        winners.iter().for_each(|cell| wins[*cell] += 1.0 / winners.len() as f64);
    }
    Ok(wins.into_iter().map(|won| Ratio(won / f64::from(RESAMPLES))).collect())
}

fn top_group(order: &[usize], pairs: &[Pair]) -> Vec<usize> {
    let Some((&best, others)) = order.split_first() else {
        return Vec::new();
    };
    let beside = |other: &usize| {
        let mut with_best = pairs.iter().filter(|pair| pair.better == best && pair.other == *other);
        with_best.any(|pair| !pair.beats())
    };
    std::iter::once(best).chain(others.iter().copied().filter(|other| beside(other))).collect()
}

/// Compact letters by insertion and absorption, then a sweep for letters that add nothing.
///
/// Source: Piepho, "An algorithm for a letter-based representation of all-pairwise comparisons",
/// Journal of Computational and Graphical Statistics 13, 2004. `order` lists the cells best first,
/// `apart` the pairs that were told apart; letter `a` goes to the column with the best cell.
fn letters(order: &[usize], apart: &[(usize, usize)]) -> Vec<String> {
    // Columns hold places in `order`, so that sorting columns sorts them by their best cell.
    let place = |cell: usize| order.iter().position(|other| *other == cell);
    let places: Vec<(usize, usize)> =
        apart.iter().filter_map(|(one, other)| Some((place(*one)?, place(*other)?))).collect();
    let mut columns: Vec<Vec<usize>> = vec![(0..order.len()).collect()];
    for &(one, other) in &places {
        let (split, kept): (Vec<_>, Vec<_>) = columns
            .into_iter()
            .partition(|column| column.contains(&one) && column.contains(&other));
        columns = kept;
        for column in split {
            for absent in [one, other] {
                columns.push(column.iter().copied().filter(|cell| *cell != absent).collect());
            }
        }
        absorb(&mut columns);
    }
    sweep(&mut columns, order.len(), &places);
    columns.sort();
    let mut letters = vec![String::new(); order.len()];
    for (column, cells) in columns.iter().enumerate() {
        cells.iter().for_each(|place| letters[order[*place]].push_str(&letter(column)));
    }
    letters
}

/// Removes columns that lie inside another one.
fn absorb(columns: &mut Vec<Vec<usize>>) {
    columns.sort();
    columns.dedup();
    let all = columns.clone();
    let inside = |small: &[usize], large: &[usize]| {
        small.len() < large.len() && small.iter().all(|cell| large.contains(cell))
    };
    columns.retain(|column| !all.iter().any(|other| inside(column, other)));
}

/// Takes a cell out of a column wherever all it says there is said by other columns.
fn sweep(columns: &mut Vec<Vec<usize>>, cells: usize, apart: &[(usize, usize)]) {
    let joined = |columns: &[Vec<usize>], one: usize, other: usize| {
        columns.iter().any(|column| column.contains(&one) && column.contains(&other))
    };
    let together: Vec<(usize, usize)> = (0..cells)
        .flat_map(|one| (one + 1..cells).map(move |other| (one, other)))
        .filter(|(one, other)| !apart.contains(&(*one, *other)) && !apart.contains(&(*other, *one)))
        .collect();
    for column in (0..columns.len()).rev() {
        let mut without = columns.clone();
        without.remove(column);
        let said = together.iter().all(|(one, other)| joined(&without, *one, *other));
        let everyone = (0..cells).all(|cell| without.iter().any(|c| c.contains(&cell)));
        if said && everyone {
            *columns = without;
        }
    }
}

/// a … z, then a1 … z1 and so on.
fn letter(column: usize) -> String {
    let letter = char::from(b'a' + u8::try_from(column % 26).unwrap_or(0));
    match column / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

#[cfg(test)]
mod tests;
