//! Design matrix of the model, and the sums that its fits use.
//!
//! The columns of the matrix are the same for all trials of one combination of levels, so they are
//! stored once per combination. Block effects are removed by subtracting the block mean. The
//! contribution of each block to the normal equations is stored separately. A resample of blocks
//! then only adds contributions, and does not read the trials again.

use std::{collections::BTreeMap, ops::Range};

use super::{
    Factor, Observation, Source,
    columns::{code, merged, per_level},
};
use crate::{NotEstimable, count};

/// Relative pivot below which a column counts as linearly dependent on others.
const DEPENDENT: f64 = 1e-9;

/// Value of one trial with the indexes of its combination and block.
struct Trial {
    cell: usize,
    block: usize,
    /// ln y minus the mean over all trials.
    value: f64,
}

/// Columns of a model, and the data that it is fitted to.
pub(super) struct Design {
    sources: Vec<Source>,
    /// Interactions with the same column as each term, up to the sign.
    aliases: Vec<Vec<(usize, usize)>>,
    interactions: Result<(), NotEstimable>,
    /// Smallest number of values at a level of a factor.
    per_level: u32,
    /// Range of the columns of each term.
    columns: Vec<Range<usize>>,
    /// Values of the columns for each measured combination.
    codes: Vec<Vec<f64>>,
    /// Trials, sorted by block, combination, and value.
    trials: Vec<Trial>,
    /// Range of the trials of each block.
    blocks: Vec<Range<usize>>,
    blocked: bool,
    missing: u32,
}

/// Sums over the data that a fit uses.
#[derive(Clone)]
pub(super) struct Sums {
    /// Sums of products of two columns, centered within blocks.
    pub(super) gram: Vec<f64>,
    /// Sums of products of columns and values, centered within blocks.
    pub(super) right: Vec<f64>,
    /// Sum of squares of values around the mean of their block.
    pub(super) within: f64,
    /// Sum of squares of values around the mean of all.
    pub(super) total: f64,
    /// Number of values.
    pub(super) values: f64,
    /// Number of blocks.
    pub(super) blocks: f64,
}

/// Contribution of one block to [`Sums`].
pub(super) struct Part {
    gram: Vec<f64>,
    right: Vec<f64>,
    within: f64,
    sum: f64,
    squares: f64,
    values: f64,
}

impl Sums {
    /// Adds up contributions. A contribution that occurs several times counts as several blocks.
    pub(super) fn of<'a>(parts: impl Iterator<Item = &'a Part>) -> Self {
        let mut own = Self {
            gram: Vec::new(),
            right: Vec::new(),
            within: 0.0,
            total: 0.0,
            values: 0.0,
            blocks: 0.0,
        };
        let mut sum = 0.0;
        for part in parts {
            own.gram.resize(part.gram.len(), 0.0);
            own.right.resize(part.right.len(), 0.0);
            own.gram.iter_mut().zip(&part.gram).for_each(|(all, one)| *all += one);
            own.right.iter_mut().zip(&part.right).for_each(|(all, one)| *all += one);
            own.within += part.within;
            own.total += part.squares;
            own.values += part.values;
            own.blocks += 1.0;
            sum += part.sum;
        }
        own.total -= sum * sum / own.values;
        own
    }
}

impl Design {
    /// Model of validated factors. Interactions are included only if they are wanted and every
    /// measured combination has at least two values.
    pub(super) fn new(factors: &[Factor], observations: &[Observation], wanted: bool) -> Self {
        let mut cells: BTreeMap<&[usize], u32> = BTreeMap::new();
        for observation in observations {
            *cells.entry(&observation.levels).or_default() += 1;
        }
        let least = cells.values().copied().min().unwrap_or(0);
        let interactions = match (wanted, least) {
            (false, _) => Err(NotEstimable::Confounded),
            (true, ..2) => Err(NotEstimable::Repetitions { least, needed: 2 }),
            (true, _) => Ok(()),
        };
        let mut sources: Vec<Source> = (0..factors.len()).map(Source::Main).collect();
        if interactions.is_ok() {
            for one in 0..factors.len() {
                sources.extend((one + 1..factors.len()).map(|two| Source::Interaction(one, two)));
            }
        }
        let (sources, aliases) = merged(factors, &cells, sources);
        let width = |source: &Source| match source {
            Source::Main(one) => factors[*one].levels.len() - 1,
            Source::Interaction(one, two) => {
                (factors[*one].levels.len() - 1) * (factors[*two].levels.len() - 1)
            }
        };
        let mut end = 0;
        let columns = sources.iter().map(|source| {
            end += width(source);
            end - width(source)..end
        });
        let columns: Vec<Range<usize>> = columns.collect();
        let codes = cells.keys().map(|levels| code(factors, &sources, levels)).collect();
        let all: f64 = factors.iter().map(|factor| factor.levels.len() as f64).product();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates; those measured are a part of all combinations"
        )]
        let missing = (all - cells.len() as f64) as u32;
        let (trials, blocked) = trials(&cells, observations);
        let mut blocks: Vec<Range<usize>> = Vec::new();
        for (at, trial) in trials.iter().enumerate() {
            if trial.block == blocks.len() {
                blocks.push(at..at);
            }
            blocks[trial.block].end = at + 1;
        }
        let per_level = per_level(factors, &cells);
        Self {
            sources,
            aliases,
            interactions,
            per_level,
            columns,
            codes,
            trials,
            blocks,
            blocked,
            missing,
        }
    }

    /// Interactions that a term stands for besides its own.
    pub(super) fn aliases(&self, term: usize) -> &[(usize, usize)] {
        &self.aliases[term]
    }

    /// Error if the model has no interactions.
    pub(super) fn interactions(&self) -> Result<(), NotEstimable> {
        self.interactions
    }

    /// Smallest number of values at a level of a factor.
    pub(super) fn per_level(&self) -> u32 {
        self.per_level
    }

    /// Terms: main effects, then interactions.
    pub(super) fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Columns of a term.
    pub(super) fn columns(&self, term: usize) -> Range<usize> {
        self.columns[term].clone()
    }

    /// Number of columns, without blocks and the mean.
    pub(super) fn effects(&self) -> usize {
        self.columns.last().map_or(0, |columns| columns.end)
    }

    pub(super) fn values(&self) -> usize {
        self.trials.len()
    }

    /// Number of blocks; 1 if they are unknown.
    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn blocked(&self) -> bool {
        self.blocked
    }

    /// Number of combinations that were not measured.
    pub(super) fn missing(&self) -> u32 {
        self.missing
    }

    /// Smallest and largest number of values of a measured combination.
    pub(super) fn repetitions(&self) -> (u32, u32) {
        let mut repetitions = vec![0; self.codes.len()];
        self.trials.iter().for_each(|trial| repetitions[trial.cell] += 1);
        let least = repetitions.iter().copied().min().unwrap_or(0);
        (least, repetitions.into_iter().max().unwrap_or(0))
    }

    /// Smallest number of blocks in which a combination was measured.
    pub(super) fn least_blocks(&self) -> u32 {
        let mut blocks = vec![0; self.codes.len()];
        for (at, trial) in self.trials.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| &self.trials[before]);
            if before.is_none_or(|b| (b.block, b.cell) != (trial.block, trial.cell)) {
                blocks[trial.cell] += 1;
            }
        }
        blocks.into_iter().min().unwrap_or(0)
    }

    /// Contribution of each block.
    pub(super) fn parts(&self) -> Vec<Part> {
        self.blocks.iter().map(|block| self.part(&self.trials[block.clone()])).collect()
    }

    /// Sums over all blocks.
    pub(super) fn sums(&self) -> Sums {
        Sums::of(self.parts().iter())
    }

    /// Sum of squares that blocks explain in addition to all terms: the increase of the residual if
    /// blocks are omitted.
    pub(super) fn block_squares(&self, squares: &super::Squares) -> f64 {
        let whole = Sums::of([self.part(&self.trials)].iter());
        let order: Vec<usize> = (0..self.effects()).collect();
        let Some(cholesky) = Cholesky::new(&whole.gram, &order) else { return 0.0 };
        let explained = super::length(&cholesky.solve(&order, &whole.right));
        (whole.within - explained - squares.residual).max(0.0)
    }

    fn part(&self, trials: &[Trial]) -> Part {
        let p = self.effects();
        let n = trials.len() as f64;
        let mut counts = vec![(0.0, 0.0); self.codes.len()];
        for trial in trials {
            counts[trial.cell].0 += 1.0;
            counts[trial.cell].1 += trial.value;
        }
        let mean = trials.iter().map(|trial| trial.value).sum::<f64>() / n;
        let mut means = vec![0.0; p];
        for (code, (count, _)) in self.codes.iter().zip(&counts) {
            means.iter_mut().zip(code).for_each(|(mean, value)| *mean += value * count / n);
        }
        let (mut gram, mut right) = (vec![0.0; p * p], vec![0.0; p]);
        let mut off = vec![0.0; p];
        for (code, (count, sum)) in self.codes.iter().zip(&counts).filter(|(_, c)| c.0 > 0.0) {
            off.iter_mut().zip(code).zip(&means).for_each(|((off, code), mean)| *off = code - mean);
            for (row, one) in off.iter().enumerate() {
                right[row] += one * (sum - count * mean);
                let line = &mut gram[row * p..=row * p + row];
                line.iter_mut().zip(&off).for_each(|(cell, other)| *cell += count * one * other);
            }
        }
        // Squares of the values, around their mean and around 0.
        let within = trials.iter().map(|trial| (trial.value - mean).powi(2)).sum();
        let squares = trials.iter().map(|trial| trial.value * trial.value).sum();
        Part { gram, right, within, sum: mean * n, squares, values: n }
    }

    /// Order of columns in which a term comes directly after all terms that do not contain it, and
    /// the range of the term in this order. With `all`, the terms that contain it follow.
    pub(super) fn order(&self, term: usize, all: bool) -> (Vec<usize>, Range<usize>) {
        let contains = |other: &Source| match (self.sources[term], *other) {
            (Source::Main(own), Source::Interaction(one, two)) => own == one || own == two,
            (Source::Main(_) | Source::Interaction(..), _) => false,
        };
        let (mut order, mut after) = (Vec::new(), Vec::new());
        for (at, source) in self.sources.iter().enumerate() {
            if contains(source) {
                after.extend(self.columns(at));
            } else if at != term {
                order.extend(self.columns(at));
            }
        }
        let own = order.len()..order.len() + self.columns[term].len();
        order.extend(self.columns(term));
        if all {
            order.extend(after);
        }
        (order, own)
    }

    /// Residual of each trial after subtracting the fit of the given columns and the block means.
    pub(super) fn residuals(&self, coefficients: &[(usize, f64)]) -> Vec<f64> {
        let fitted: Vec<f64> = self
            .codes
            .iter()
            .map(|code| coefficients.iter().map(|(column, value)| code[*column] * value).sum())
            .collect();
        let mut left: Vec<f64> =
            self.trials.iter().map(|trial| trial.value - fitted[trial.cell]).collect();
        for block in &self.blocks {
            let own = &mut left[block.clone()];
            let mean = own.iter().sum::<f64>() / own.len() as f64;
            own.iter_mut().for_each(|value| *value -= mean);
        }
        left
    }

    /// Permutes the values of each block randomly.
    pub(super) fn shuffle(&self, values: &mut [f64], rng: &mut fastrand::Rng) {
        for block in &self.blocks {
            rng.shuffle(&mut values[block.clone()]);
        }
    }

    /// Sums of products of columns and values. The values must sum to zero in each block.
    pub(super) fn right(&self, values: &[f64]) -> Vec<f64> {
        let mut right = Vec::new();
        self.right_into(values, &mut right);
        right
    }

    /// [`Design::right`] into existing memory.
    pub(super) fn right_into(&self, values: &[f64], right: &mut Vec<f64>) {
        let mut sums = vec![0.0; self.codes.len()];
        for (trial, value) in self.trials.iter().zip(values) {
            sums[trial.cell] += value;
        }
        right.clear();
        right.resize(self.effects(), 0.0);
        for (code, sum) in self.codes.iter().zip(&sums) {
            right.iter_mut().zip(code).for_each(|(right, code)| *right += code * sum);
        }
    }
}

/// Trials, sorted; true if all of them have a block.
fn trials(cells: &BTreeMap<&[usize], u32>, observations: &[Observation]) -> (Vec<Trial>, bool) {
    let blocked = observations.iter().all(|observation| observation.block.is_some());
    let mut all: Vec<(u32, &[usize], f64)> = observations
        .iter()
        .map(|o| (o.block.filter(|_| blocked).unwrap_or(0), o.levels.as_slice(), o.value.ln()))
        .collect();
    all.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
    let mean = all.iter().map(|trial| trial.2).sum::<f64>() / count(all.len()).max(1) as f64;
    let places: BTreeMap<&[usize], usize> =
        cells.keys().enumerate().map(|(at, levels)| (*levels, at)).collect();
    let mut blocks: Vec<u32> = all.iter().map(|trial| trial.0).collect();
    blocks.dedup();
    let trial = |(block, levels, value): (u32, &[usize], f64)| Trial {
        cell: places[levels],
        block: blocks.partition_point(|other| *other < block),
        value: value - mean,
    };
    (all.into_iter().map(trial).collect(), blocked)
}

/// Cholesky decomposition of the products of some columns in a given order.
///
/// The forward solution for the products with values has one entry per column: the component of the
/// values along the part of the column that is orthogonal to all columns before it. The sum of the
/// squares of some entries is the sum of squares that their columns explain (Golub and Van Loan,
/// "Matrix Computations", section 4.2).
pub(super) struct Cholesky {
    /// Lower triangle, row by row, with the inverse of each diagonal element.
    rows: Vec<f64>,
}

impl Cholesky {
    /// Decomposition; `None` if a column depends on those before it. Only the lower triangle of the
    /// products is used.
    pub(super) fn new(gram: &[f64], order: &[usize]) -> Option<Self> {
        let width = gram.len().isqrt();
        let mut rows: Vec<f64> = Vec::with_capacity(order.len() * (order.len() + 1) / 2);
        for (row, column) in order.iter().enumerate() {
            let start = rows.len();
            for (before, other) in order[..row].iter().enumerate() {
                let (high, low) = (*column.max(other), *column.min(other));
                let there = before * (before + 1) / 2;
                let done = dot(&rows[start..], &rows[there..there + before]);
                rows.push((gram[high * width + low] - done) * rows[there + before]);
            }
            let diagonal = gram[column * width + column];
            let pivot = diagonal - dot(&rows[start..], &rows[start..]);
            if pivot <= DEPENDENT * diagonal {
                return None;
            }
            rows.push(pivot.sqrt().recip());
        }
        Some(Self { rows })
    }

    /// Forward solution. The products with values are given in the original order of columns.
    pub(super) fn solve(&self, order: &[usize], right: &[f64]) -> Vec<f64> {
        let mut solution = Vec::new();
        self.solve_into(order, right, &mut solution);
        solution
    }

    /// [`Cholesky::solve`] into existing memory.
    pub(super) fn solve_into(&self, order: &[usize], right: &[f64], solution: &mut Vec<f64>) {
        solution.clear();
        let mut start = 0;
        for (row, column) in order.iter().enumerate() {
            let done = dot(&self.rows[start..start + row], solution);
            solution.push((right[*column] - done) * self.rows[start + row]);
            start += row + 1;
        }
    }

    /// Variance of a contrast of the coefficients of the last columns of the order, from column
    /// `first` on, in units of the residual mean square.
    pub(super) fn variance(&self, first: usize, contrast: &[f64]) -> f64 {
        let mut solution: Vec<f64> = Vec::new();
        for (at, weight) in contrast.iter().enumerate() {
            let row = first + at;
            let start = row * (row + 1) / 2 + first;
            let done = dot(&self.rows[start..start + at], &solution);
            solution.push((weight - done) * self.rows[start + at]);
        }
        super::length(&solution)
    }

    /// Coefficients of the first columns of the order, fitted without the other columns.
    pub(super) fn coefficients(
        &self,
        order: &[usize],
        solution: &[f64],
        columns: usize,
    ) -> Vec<(usize, f64)> {
        let mut values = solution[..columns].to_vec();
        for row in (0..columns).rev() {
            let start = row * (row + 1) / 2;
            values[row] *= self.rows[start + row];
            for before in 0..row {
                values[before] -= self.rows[start + before] * values[row];
            }
        }
        order.iter().copied().zip(values).collect()
    }
}

/// Dot product of two rows of the same length.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
