//! Skewed patterns: Zipf's law, the self-similar law, a normal distribution, a hotspot, and zones.
//!
//! Each pattern is a table of ranges of ranks, with a weight per range. A range is drawn by weight
//! ([`Alias`]), and a rank within the range uniformly. Rank 0 is the most popular.
//!
//! # Laws
//!
//! - Zipf: rank r has weight `(r + 1)^-theta`. The weight of a range of ranks is the integral of
//!   `x^-theta` from half a rank before its first to half a rank after its last, counting ranks
//!   from 1. The integral approximates the sum of the weights. Its relative error is at most `theta
//!   (theta + 1) / (24 * 1024^2)`, below 5e-6 (midpoint rule).
//! - Self-similar (Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD
//!   1994): ranks below x get the fraction `(x / n)^e` of the accesses, where `e = ln(1 - h) /
//!   ln(h)`. Example: with h = 0.2, e is 0.139. The first 20 % of the ranks get 80 % of the
//!   accesses, the first 4 % get 64 %, and so on. Weights are exact.
//! - Hotspot: two ranges. The hot range has `round(fraction * n)` blocks, at least 1. The cold
//!   range has the other blocks, at least 1 unless the part is a single block.
//! - Normal: up to 4096 ranges of equal length, with the density in the middle of each.
//! - Zones: the ranges of the stream.
//!
//! # Error
//!
//! The first [`EXACT`] ranks have a range each. The length of a later range is a [`GRAIN`]th of the
//! rank at which it starts. Within a range, all ranks have the same probability, although the law
//! gives the first rank more than the last: by a factor of up to `(1 + 1/64)^theta` for Zipf, and
//! by a smaller factor than with theta = 1 for the self-similar law. With theta = 1, the factor is
//! 1.016, so every rank's weight is within 0.8 % of the law. The weight of a whole range does not
//! have this error. A part of 2^52 blocks takes 2900 ranges.
//!
//! # Location of popular blocks
//!
//! Ranks of Zipf, of the self-similar law, and of the normal distribution are scattered over the
//! part by a [`Bijection`]. Its key depends only on the seed of the stream, so workers that share a
//! file share its popular blocks. The hotspot is at the start, and zones have their places.

use fastrand::Rng;
use model::phase::{AccessPattern, Stream, Zone};

use super::{
    BlockSpan,
    alias::Alias,
    bijection::Bijection,
    draw::{below, common},
};

/// Number of ranks that have a range each.
const EXACT: u64 = 1024;
/// Divisor that determines the length of later ranges: start of the range / `GRAIN`.
const GRAIN: u64 = 64;
/// Maximum number of ranges of equal length.
const RANGES: u64 = 4096;

/// Consecutive ranks.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    width: u64,
}

/// Prepared popularity law.
#[derive(Debug)]
pub(crate) struct Skew {
    alias: Alias,
    ranges: Box<[Range]>,
    scatter: Option<Bijection>,
}

impl Skew {
    /// Law of a stream whose workers have parts of `n` blocks; `None` if its pattern is not skewed.
    pub(super) fn new(stream: &Stream, n: u64) -> Option<Self> {
        let weighted = match stream.access_pattern {
            AccessPattern::Zipf { theta } => zipf(n, theta),
            AccessPattern::Pareto { share } => self_similar(n, share),
            AccessPattern::Hotspot { space, visits } => hot(n, space, visits),
            AccessPattern::Normal { deviation } => normal(n, deviation),
            AccessPattern::Zones => zoned(n, &stream.zones),
            AccessPattern::Sequential
            | AccessPattern::Skip { .. }
            | AccessPattern::Runs { .. }
            | AccessPattern::Backward
            | AccessPattern::SameBlock
            | AccessPattern::Stride { .. }
            | AccessPattern::IozonePermutation
            | AccessPattern::Permutation
            | AccessPattern::Random
            | AccessPattern::Append
            | AccessPattern::Trace
            | AccessPattern::SequentialPerDirection
            | AccessPattern::Tickets => return None,
        };
        let (ranges, weights): (Vec<_>, Vec<_>) = weighted.into_iter().unzip();
        let local =
            matches!(stream.access_pattern, AccessPattern::Hotspot { .. } | AccessPattern::Zones);
        let scatter = (!local).then(|| Bijection::new(n, &mut common(stream.seed)));
        Some(Self { alias: Alias::new(&weights), ranges: ranges.into(), scatter })
    }

    /// Zipf's law for `n` items, at least 1.
    pub(crate) fn zipf(n: u64, theta: f64, seed: u64) -> Self {
        let scatter = Some(Bijection::new(n, &mut common(seed)));
        Self { scatter, ..Self::zipf_ranks(n, theta) }
    }

    /// Ranks of Zipf's law: 0 is drawn most often.
    pub(crate) fn zipf_ranks(n: u64, theta: f64) -> Self {
        let (ranges, weights): (Vec<_>, Vec<_>) = zipf(n, theta).into_iter().unzip();
        Self { alias: Alias::new(&weights), ranges: ranges.into(), scatter: None }
    }

    /// Draws a block.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Rng) -> u64 {
        let range = self.ranges[self.alias.choose(random.u64(..))];
        let rank = range.start + below(random.u64(..), range.width);
        self.scatter.as_ref().map_or(rank, |scatter| scatter.at(rank))
    }
}

/// Ranges of the ranks 0..n, with the weight of each.
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

/// Integral of `x^-theta` from `from` over `width`. With t = 1 - theta and to = from + width, the
/// integral is `from^t ((to / from)^t - 1) / t`, or the logarithm of `to / from` if t is zero. The
/// code loses no digits if t is near zero.
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
    reason = "a fraction of the blocks, clamped to them"
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

/// Mean of twelve uniform numbers, close to a normal distribution with standard deviation 1/12,
/// plus a uniform number of this width; the range of the numbers is the part.
#[expect(clippy::cast_precision_loss, reason = "weights need no more digits than an f64 has")]
fn normal(n: u64, width: f64) -> Vec<(Range, f64)> {
    // Density of the sum: the normal distribution, averaged over the width. A narrow width is that
    // of the normal distribution itself.
    let (sigma, half) = (1.0 / 12.0, (width / 2.0).max(1e-6));
    let density = |x: f64| {
        let at = |x: f64| error_function(x / (sigma * std::f64::consts::SQRT_2));
        (at(x - 0.5 + half) - at(x - 0.5 - half)) / (4.0 * half)
    };
    let parts = n.min(RANGES);
    (0..parts)
        .map(|part| {
            let border = |part: u64| {
                let border = u128::from(n) * u128::from(part) / u128::from(parts);
                u64::try_from(border).unwrap_or(n)
            };
            let (start, end) = (border(part), border(part + 1));
            let middle = (start as f64 + end as f64) / 2.0 / n as f64;
            (Range { start, width: end - start }, density(middle) * (end - start) as f64)
        })
        .collect()
}

/// Error function, with an error below 1.5e-7 (Abramowitz and Stegun, Handbook of Mathematical
/// Functions, 7.1.26).
fn error_function(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let factors = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    let sum = factors.iter().fold(0.0, |sum, factor| (sum + factor) * t);
    (1.0 - sum * (-x * x).exp()).copysign(x)
}

/// Zones in the order of the file, cut at the end of the part.
fn zoned(n: u64, zones: &[Zone]) -> Vec<(Range, f64)> {
    let mut start = 0;
    let mut weighted = Vec::new();
    for zone in zones {
        let width = zone.blocks.min(n - start);
        if width > 0 && zone.weight > 0 {
            weighted.push((Range { start, width }, f64::from(zone.weight)));
        }
        start += width;
    }
    if weighted.is_empty() { vec![(Range { start: 0, width: n }, 1.0)] } else { weighted }
}

/// One pass of draws.
#[derive(Debug)]
pub(super) struct Skewed<'a> {
    skew: &'a Skew,
    left: u64,
    blocks: u64,
}

impl<'a> Skewed<'a> {
    /// `n` draws from `n` blocks.
    pub(super) fn new(skew: &'a Skew, n: u64) -> Self {
        Self { skew, left: n, blocks: n }
    }

    /// Distribution of the draws.
    pub(super) fn skew(&self) -> &'a Skew {
        self.skew
    }

    /// `count` blocks, at most n, starting at the drawn block, or before it if they would not fit.
    #[inline]
    pub(super) fn next(&mut self, random: &mut Rng, count: u64) -> Option<BlockSpan> {
        self.left = self.left.checked_sub(1)?;
        let first = self.skew.draw(random).min(self.blocks - count);
        Some(BlockSpan { first, count })
    }
}

#[cfg(test)]
mod tests;
