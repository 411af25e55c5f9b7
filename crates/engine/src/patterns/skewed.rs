//! Orders with favorites: Zipf's law, the self-similar law, and a hot zone.
//!
//! All three are one table of ranges of ranks with a weight each: a range is chosen by weight
//! ([`Alias`]), a rank within it uniformly. Rank 0 is the most popular.
//!
//! # The laws
//!
//! - Zipf: rank r has weight `(r + 1)^-theta`. A range of ranks has the integral of `x^-theta` from
//!   half a rank before its first to half a rank behind its last, counting ranks from 1; by the
//!   error of the midpoint rule that is within a share of `theta (theta + 1) / (24 * 1024^2)` of
//!   the sum, which is below 5e-6.
//! - Self-similar (Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD
//!   1994): ranks below x have the share `(x / n)^e` of the visits, where
//!   `e = ln(1 - share) / ln(share)`. With x = share * n that is `1 - share`, and so it is again
//!   within these. Weights are exact.
//! - Hot: two ranges, the hot zone of `round(space * n)` records (at least 1, and at least 1 cold
//!   one unless the part is a single record), and the cold one.
//!
//! # The error
//!
//! The first [`EXACT`] ranks have a range each. From there on ranges are [`GRAIN`]th parts of the
//! rank they start at, so within a range, where all ranks are taken to be alike, the weights of the
//! law differ by a factor of `(1 + 1/64)^theta` for Zipf, and a smaller one than that of theta = 1
//! for the self-similar law: with theta = 1 every rank's weight is within 0.8 % of its law. Weights
//! of whole ranges, and so the shares of all ranks up to the end of any, do not have this error. A
//! part of 2^52 records takes 2900 ranges.
//!
//! # Where favorites are
//!
//! Ranks of Zipf and the self-similar law are scattered over the part by a [`Bijection`] whose key
//! is made from the seed of the stream alone, so workers that share a file share its favorites. The
//! hot zone is where it says: at the start.

use fastrand::Rng;
use model::phase::{Access, Stream};

use super::{
    Place,
    alias::Alias,
    bijection::Bijection,
    draw::{below, common},
};

/// Ranks that have a range of their own.
const EXACT: u64 = 1024;
/// The part of its start that a longer range has.
const GRAIN: u64 = 64;

/// Ranks next to each other.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    width: u64,
}

/// A law of popularity, ready to draw from.
#[derive(Debug)]
pub(super) struct Skew {
    alias: Alias,
    ranges: Box<[Range]>,
    scatter: Option<Bijection>,
}

impl Skew {
    /// Of a stream whose workers have parts of `n` records; `None` if its access has no favorites.
    pub(super) fn new(stream: &Stream, n: u64) -> Option<Self> {
        let weighted = match stream.access {
            Access::Zipf { theta } => zipf(n, theta),
            Access::Pareto { share } => self_similar(n, share),
            Access::Hot { space, visits } => hot(n, space, visits),
            Access::Sequential
            | Access::Backward
            | Access::SameRecord
            | Access::Stride { .. }
            | Access::Shuffled
            | Access::Permuted
            | Access::Random
            | Access::Append
            | Access::Replay
            | Access::Tickets => return None,
        };
        let (ranges, weights): (Vec<_>, Vec<_>) = weighted.into_iter().unzip();
        let scattered = !matches!(stream.access, Access::Hot { .. });
        let scatter = scattered.then(|| Bijection::new(n, &mut common(stream.seed)));
        Some(Self { alias: Alias::new(&weights), ranges: ranges.into(), scatter })
    }

    /// A record.
    #[inline]
    fn draw(&self, random: &mut Rng) -> u64 {
        let range = self.ranges[self.alias.choose(random.u64(..))];
        let rank = range.start + below(random.u64(..), range.width);
        self.scatter.as_ref().map_or(rank, |scatter| scatter.at(rank))
    }
}

/// Ranks 0..n cut into ranges, with the weight of each.
fn weigh(n: u64, weight: impl Fn(Range) -> f64) -> Vec<(Range, f64)> {
    let mut weighted = Vec::new();
    let mut start = 0;
    while start < n {
        let width = if start < EXACT { 1 } else { (start / GRAIN).min(n - start) };
        let range = Range { start, width };
        weighted.push((range, weight(range)));
        start += width;
    }
    weighted
}

#[expect(clippy::cast_precision_loss, reason = "weights need no more digits than an f64 has")]
fn zipf(n: u64, theta: f64) -> Vec<(Range, f64)> {
    weigh(n, |range| {
        let first = range.start as f64 + 1.0;
        if range.width == 1 {
            return first.powf(-theta);
        }
        integral(first - 0.5, range.width as f64, theta)
    })
}

/// The integral of `x^-theta` from `from` over `width`. With t = 1 - theta that is
/// `from^t ((to / from)^t - 1) / t`, or the logarithm of `to / from` where t is zero; written so
/// that no digits are lost near it.
fn integral(from: f64, width: f64, theta: f64) -> f64 {
    let (power, log) = (1.0 - theta, (width / from).ln_1p());
    let grown = if power == 0.0 { log } else { (power * log).exp_m1() / power };
    from.powf(power) * grown
}

#[expect(clippy::cast_precision_loss, reason = "weights need no more digits than an f64 has")]
fn self_similar(n: u64, share: f64) -> Vec<(Range, f64)> {
    let exponent = (-share).ln_1p() / share.ln();
    weigh(n, |Range { start, width }| {
        let (start, width) = (start as f64, width as f64);
        if start == 0.0 {
            return (width / n as f64).powf(exponent);
        }
        (start / n as f64).powf(exponent) * (exponent * (width / start).ln_1p()).exp_m1()
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a share of the records, clamped to them"
)]
fn hot(n: u64, space: f64, visits: f64) -> Vec<(Range, f64)> {
    let hot = ((space * n as f64).round() as u64).min(n.saturating_sub(1)).max(1);
    if n <= hot {
        return vec![(Range { start: 0, width: n }, 1.0)];
    }
    vec![
        (Range { start: 0, width: hot }, visits),
        (Range { start: hot, width: n - hot }, 1.0 - visits),
    ]
}

/// One pass of draws.
#[derive(Debug)]
pub(super) struct Skewed<'a> {
    skew: &'a Skew,
    left: u64,
    records: u64,
}

impl<'a> Skewed<'a> {
    /// `n` draws from `n` records.
    pub(super) fn new(skew: &'a Skew, n: u64) -> Self {
        Self { skew, left: n, records: n }
    }

    /// `count` records, at most n, from the one drawn on or from as near before it as they fit.
    #[inline]
    pub(super) fn next(&mut self, random: &mut Rng, count: u64) -> Option<Place> {
        self.left = self.left.checked_sub(1)?;
        let first = self.skew.draw(random).min(self.records - count);
        Some(Place { first, count })
    }
}

#[cfg(test)]
mod tests;
