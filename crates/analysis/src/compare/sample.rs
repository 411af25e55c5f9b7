//! The values of one cell, made ready to be compared.

use model::metric::Better;

use crate::{Error, median, sorted, trend::Repeat};

/// The logarithms of a cell's values, turned so that larger is better.
pub(crate) struct Sample {
    /// Ascending; at least one.
    pub(crate) logs: Vec<f64>,
    /// The block of each, in the same order; `None` if any of them is unknown.
    pub(crate) owners: Option<Vec<u32>>,
    /// Mean of the logarithms.
    pub(crate) mean: f64,
    /// Variance of the logarithms, with divisor n - 1; 0 for one value.
    pub(crate) variance: f64,
}

impl Sample {
    /// Values without blocks.
    ///
    /// # Errors
    /// [`Error`] when there is none, or one is not finite and positive.
    pub(crate) fn of_values(values: &[f64], better: Better) -> Result<Self, Error> {
        let mut logs = sorted(values)?;
        if let Some(index) = values.iter().position(|value| *value <= 0.0) {
            return Err(Error::NotPositive { index, value: values[index] });
        }
        logs.iter_mut().for_each(|value| *value = sign(better) * value.ln());
        logs.sort_unstable_by(f64::total_cmp);
        Ok(Self::of_logs(logs, None))
    }

    /// Repeats with their blocks.
    ///
    /// # Errors
    /// As [`Sample::of_values`]; an index counts repeats.
    pub(crate) fn of_repeats(repeats: &[Repeat], better: Better) -> Result<Self, Error> {
        if repeats.is_empty() {
            return Err(Error::Empty);
        }
        let mut owned = Vec::with_capacity(repeats.len());
        for (index, Repeat { block, value }) in repeats.iter().copied().enumerate() {
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

    /// The median of the logarithms.
    pub(crate) fn median(&self) -> f64 {
        median(&self.logs)
    }

    /// The mean logarithm of each block, by block; empty if blocks are unknown.
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

/// A sum that does not lose the small terms beside the large ones: Neumaier, "Rundungsfehleranalyse
/// einiger Verfahren zur Summation endlicher Summen", Zeitschrift für Angewandte Mathematik und
/// Mechanik 54, 1974.
pub(crate) fn sum(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0);
    for value in values {
        let next = sum + value;
        lost += if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
        sum = next;
    }
    sum + lost
}

/// [`sum`] of many lists, side by side: what comes in are their first values, then their second.
/// Knuth's sum without a branch takes the place of Neumaier's ("The Art of Computer Programming",
/// volume 2, 4.2.2, theorem B), which processors do several at a time, and loses as little.
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
