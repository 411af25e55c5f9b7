//! Values of one cell, preprocessed for comparisons.

use model::metric::Better;

use crate::{Error, median, sorted, sweep::Repetition};

/// Logarithms of a cell's values, signed so that larger is better.
pub(crate) struct Sample {
    /// Logarithms, ascending; at least one.
    pub(crate) logs: Vec<f64>,
    /// Block of each value in the same order; `None` if any is unknown.
    pub(crate) owners: Option<Vec<u32>>,
    /// Mean of the logarithms.
    pub(crate) mean: f64,
    /// Variance of the logarithms, with divisor n - 1; 0 for one value.
    pub(crate) variance: f64,
}

impl Sample {
    /// Sample without blocks.
    ///
    /// # Errors
    /// [`Error`] if the list is empty or a value is not finite and positive.
    pub(crate) fn of_values(values: &[f64], better: Better) -> Result<Self, Error> {
        let mut logs = sorted(values)?;
        if let Some(index) = values.iter().position(|value| *value <= 0.0) {
            return Err(Error::NotPositive { index, value: values[index] });
        }
        logs.iter_mut().for_each(|value| *value = sign(better) * value.ln());
        logs.sort_unstable_by(f64::total_cmp);
        Ok(Self::of_logs(logs, None))
    }

    /// Sample of repetitions with their blocks.
    ///
    /// # Errors
    /// As [`Sample::of_values`]; the index in the error is that of the repetition.
    pub(crate) fn of_repetitions(
        repetitions: &[Repetition],
        better: Better,
    ) -> Result<Self, Error> {
        if repetitions.is_empty() {
            return Err(Error::Empty);
        }
        let mut owned = Vec::with_capacity(repetitions.len());
        for (index, Repetition { block, value }) in repetitions.iter().copied().enumerate() {
            if !value.is_finite() {
                return Err(Error::NotFinite { index, value });
            }
            if value <= 0.0 {
                return Err(Error::NotPositive { index, value });
            }
            owned.push((sign(better) * value.ln(), block));
        }
        owned.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let owners = owned.iter().map(|(_, block)| *block).collect();
        Ok(Self::of_logs(owned.into_iter().map(|(log, _)| log).collect(), owners))
    }

    fn of_logs(logs: Vec<f64>, owners: Option<Vec<u32>>) -> Self {
        let n = logs.len() as f64;
        let mean = sum(logs.iter().copied()) / n;
        let squares = sum(logs.iter().map(|value| (value - mean).powi(2)));
        let variance = if n > 1.0 { squares / (n - 1.0) } else { 0.0 };
        Self { logs, owners, mean, variance }
    }

    /// Median of the logarithms.
    pub(crate) fn median(&self) -> f64 {
        median(&self.logs)
    }

    /// Mean logarithm of each block, ordered by block; empty if blocks are unknown.
    pub(crate) fn by_block(&self) -> Vec<(u32, f64)> {
        let owners = self.owners.as_deref().unwrap_or_default();
        let mut pairs: Vec<(u32, f64)> =
            owners.iter().copied().zip(self.logs.iter().copied()).collect();
        pairs.sort_by_key(|(block, _)| *block);
        let of_block = |pairs: &[(u32, f64)]| {
            (pairs[0].0, sum(pairs.iter().map(|(_, log)| *log)) / pairs.len() as f64)
        };
        pairs.chunk_by(|one, other| one.0 == other.0).map(of_block).collect()
    }
}

fn sign(better: Better) -> f64 {
    match better {
        Better::Lower => -1.0,
        Better::Higher | Better::Neither => 1.0,
    }
}

/// Compensated sum: Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher
/// Summen", Zeitschrift für Angewandte Mathematik und Mechanik 54, 1974.
pub(crate) fn sum(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0);
    for value in values {
        let next = sum + value;
        lost += if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
        sum = next;
    }
    sum + lost
}

/// [`sum`] of many lists at once: the iterator yields the first values of all lists, then the
/// second values, and so on. Uses Knuth's branchless sum ("The Art of Computer Programming", volume
/// 2, 4.2.2, theorem B). It is as accurate as Neumaier's sum, and can be vectorized.
pub(crate) fn sums<const N: usize>(values: impl Iterator<Item = [f64; N]>) -> [f64; N] {
    let (mut sum, mut lost) = ([0.0f64; N], [0.0; N]);
    for values in values {
        for at in 0..N {
            let next = sum[at] + values[at];
            let added = next - sum[at];
            lost[at] += (sum[at] - (next - added)) + (values[at] - added);
            sum[at] = next;
        }
    }
    std::array::from_fn(|at| sum[at] + lost[at])
}
