//! Which factor matters: how the variance of a metric divides among factors, their interactions,
//! blocks, and chance.
//!
//! Factors that were varied together and one value for each trial enter; a [`Factorial`] leaves,
//! or the [`Refusal`] that says what the data lack. Nothing here says which level is best; what it
//! says is whether that may be asked without naming the level of another factor.
//!
//! # The model
//!
//! ```text
//! ln y = mean + factors + interactions of two + block + error
//! ```
//!
//! Interactions of three and more are part of the error. Each term has its type II sum of squares:
//! what it explains beyond all terms that do not contain it (Langsrud, "ANOVA for unbalanced data:
//! Use Type II instead of Type III sums of squares", Statistics and Computing 13, 2003). Its share
//! of the variance is
//!
//! ```text
//! ω² = (SS - df MS) / (SS total + MS)      MS = residual sum of squares / residual df
//! ```
//!
//! (Hays, "Statistics for Psychologists", 1963), which chance alone keeps at 0 on average. With
//! equal repeats the shares of all terms, blocks, and the residual, N MS / (SS total + MS), add up
//! to 1.
//!
//! # p and interval
//!
//! p by permutation of residuals (Freedman and Lane, "A Nonstochastic Interpretation of Reported
//! Significance Levels", Journal of Business & Economic Statistics 1, 1983): the model without the
//! term is fitted, its residuals change places within blocks, and F is computed anew; 20,000 draws.
//! The interval resamples whole blocks, 4000 times (1000 above 40 effects). A resample has the
//! chance of the data and that of resampling in it, so that shares come out too large; the interval
//! is moved back by the mean excess.
//!
//! # How it is computed
//!
//! Levels are coded by columns that sum to zero, the block means are taken off, and what is left is
//! small and well conditioned: normal equations by Cholesky's decomposition. A term's
//! sum of squares is then the squared length of its part of the solution, when its columns come
//! directly after those of the terms that do not contain it.

use model::Ratio;

use crate::{
    Absent, Error, Interval,
    bootstrap::{RESAMPLES, expanded_interval},
    count,
    summary::{LEVEL, needed},
    trend::{DRAWS, positive},
};

mod design;
use design::{Cholesky, Design, Sums};

/// Factors of one analysis.
const FACTORS: std::ops::RangeInclusive<usize> = 2..=6;
/// Levels of one factor.
const LEVELS: std::ops::RangeInclusive<usize> = 2..=20;
/// Effects of all terms together, so that an analysis takes seconds.
const EFFECTS_MAX: usize = 100;
/// Above so many effects fewer resamples are drawn.
const EFFECTS_MANY: usize = 40;
/// How many then.
const RESAMPLES_FEW: u32 = 1000;
/// Share of explained variance above which an interaction blocks unconditional claims.
pub const CONDITIONAL: f64 = 0.10;
/// Share of the variance above which a residual makes the whole mostly noise.
pub const NOISE: f64 = 0.50;

/// One factor that was varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// Its name, such as `filesystem`.
    pub name: String,
    /// Its levels, 2 to 20, such as `ext4` and `xfs`.
    pub levels: Vec<String>,
}

/// The value of one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The level of each factor, by index, in the order of the factors.
    pub levels: Vec<usize>,
    /// The block the trial belongs to; `None` if unknown, and then all blocks count as unknown.
    pub block: Option<u32>,
    /// Its value, above zero, in the base unit of the metric.
    pub value: f64,
}

/// Why factors cannot be analyzed together.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// A value is not sound.
    #[error(transparent)]
    Values(#[from] Error),
    /// Not 2 to 6 factors.
    #[error("{0} factors; give 2 to 6")]
    Factors(usize),
    /// A factor has not 2 to 20 levels.
    #[error("factor {factor} has {levels} levels; give 2 to 20")]
    Levels {
        /// Name of the factor.
        factor: String,
        /// How many it has.
        levels: usize,
    },
    /// An observation does not name one existing level of each factor.
    #[error("observation {0} does not have one level of each factor; correct its levels")]
    Observation(usize),
    /// Two levels never met, so the effects cannot be told apart.
    #[error("{first} was never measured at {second}; cross the factors fully")]
    NotCrossed {
        /// `factor=level`.
        first: String,
        /// `factor=level`.
        second: String,
    },
    /// Which of the model's effects is meant cannot be told from the combinations measured.
    #[error("the effect of {0} cannot be told from others; cross the factors fully")]
    Confounded(String),
    /// Too few values for the number of effects.
    #[error("{values} values are too few for {effects} effects; measure more repeats")]
    TooFew {
        /// How many values there are.
        values: usize,
        /// How many effects the model has, blocks included.
        effects: usize,
    },
    /// More effects than are worth fitting.
    #[error("{effects} effects are more than {max}; vary fewer factors or levels at once")]
    TooMany {
        /// How many effects the model has, blocks not counted.
        effects: usize,
        /// How many it may have.
        max: usize,
    },
    /// All values are equal.
    #[error("all values are equal, so no factor matters; look at another metric")]
    Constant,
}

/// What a share of variance belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A factor, by index.
    Main(usize),
    /// Two factors together, by index, the smaller first: the effect of one depends on the other.
    Interaction(usize, usize),
}

/// One term of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// What it is.
    pub source: Source,
    /// Degrees of freedom.
    pub freedom: u32,
    /// Type II sum of squares of ln y.
    pub squares: f64,
    /// Mean square over the residual mean square; infinite without residual.
    pub f: f64,
    /// p-value of "no effect", by permuting residuals within blocks (Freedman and Lane).
    pub p: f64,
    /// ω²: its share of the variance of ln y, corrected for chance; below 0 by chance alone.
    pub share: f64,
    /// The 95 % interval of the share by resampling blocks; absent without blocks or with few.
    pub interval: Result<Interval, Absent>,
}

/// Which share of the variance belongs to which factor.
#[derive(Clone, Debug, PartialEq)]
pub struct Factorial {
    /// Names and levels as they were given.
    pub factors: Vec<Factor>,
    /// Mains in the order of the factors, then interactions.
    pub terms: Vec<Term>,
    /// Why there are no interactions among the terms, if there are none: single repeats.
    pub interactions: Result<(), Absent>,
    /// ω² of blocks, the drift of the machine; `None` if blocks are unknown.
    pub block_share: Option<f64>,
    /// What neither terms nor blocks explain, as a share of the variance, within 0..=1.
    pub residual_share: f64,
    /// Degrees of freedom of the residual.
    pub residual_freedom: u32,
    /// Values.
    pub n: u32,
    /// Blocks; 0 if unknown.
    pub blocks: u32,
    /// The fewest and the most values of a combination that was measured.
    pub repeats: (u32, u32),
    /// Combinations of levels that were not measured.
    pub missing: u32,
}

/// An interaction of a factor, against everything that is explained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dependence {
    /// Index of the other factor.
    pub other: usize,
    /// ω² of the interaction over the sum of ω² of all terms, negative ones counted as 0.
    pub share: Ratio,
    /// p-value of the interaction.
    pub p: f64,
}

/// Analyzes factors that were varied together. The seed settles all draws; the order of
/// observations does not matter.
///
/// # Errors
/// [`Refusal`] when the data cannot carry the model.
pub fn analyze(
    factors: &[Factor],
    observations: &[Observation],
    seed: u64,
) -> Result<Factorial, Refusal> {
    check(factors, observations)?;
    let design = Design::new(factors, observations);
    if design.effects() > EFFECTS_MAX {
        return Err(Refusal::TooMany { effects: design.effects(), max: EFFECTS_MAX });
    }
    let sums = design.sums();
    let effects = design.effects() + design.blocks();
    let values = design.values();
    let Some(freedom) = values.checked_sub(effects).filter(|freedom| *freedom > 0) else {
        return Err(Refusal::TooFew { values, effects });
    };
    let squares = squares(&design, &sums).map_err(|at| {
        let (Source::Main(one) | Source::Interaction(one, _)) = design.sources()[at];
        Refusal::Confounded(factors[one].name.clone())
    })?;
    let intervals = intervals(&design, &squares, seed);
    let mut rng = fastrand::Rng::with_seed(seed);
    let terms = design.sources().iter().enumerate().map(|(at, source)| {
        let df = design.columns(at).len();
        let mean = squares.terms[at] / df as f64;
        Term {
            source: *source,
            freedom: count(df),
            squares: squares.terms[at],
            f: mean / (squares.residual / freedom as f64),
            p: p(&design, &sums, at, &mut rng),
            share: squares.share(squares.terms[at], df),
            interval: intervals.as_ref().map(|all| all[at]).map_err(|why| *why),
        }
    });
    let repeats = design.repeats();
    Ok(Factorial {
        factors: factors.to_vec(),
        terms: terms.collect(),
        interactions: if repeats.0 < 2 {
            Err(Absent::Repeats { least: repeats.0, needed: 2 })
        } else {
            Ok(())
        },
        block_share: design
            .blocked()
            .then(|| squares.share(design.block_squares(&squares), design.blocks() - 1)),
        residual_share: (values as f64 * squares.mean() / (squares.total + squares.mean()))
            .clamp(0.0, 1.0),
        residual_freedom: count(freedom),
        n: count(values),
        blocks: if design.blocked() { count(design.blocks()) } else { 0 },
        repeats,
        missing: design.missing(),
    })
}

fn check(factors: &[Factor], observations: &[Observation]) -> Result<(), Refusal> {
    if !FACTORS.contains(&factors.len()) {
        return Err(Refusal::Factors(factors.len()));
    }
    if let Some(factor) = factors.iter().find(|factor| !LEVELS.contains(&factor.levels.len())) {
        let (levels, factor) = (factor.levels.len(), factor.name.clone());
        return Err(Refusal::Levels { factor, levels });
    }
    positive(observations.iter().map(|observation| observation.value))?;
    let fits = |observation: &Observation| {
        let mut levels = factors.iter().zip(&observation.levels);
        observation.levels.len() == factors.len()
            && levels.all(|(factor, level)| *level < factor.levels.len())
    };
    if let Some(index) = observations.iter().position(|observation| !fits(observation)) {
        return Err(Refusal::Observation(index));
    }
    if observations.iter().all(|other| other.value == observations[0].value) {
        return Err(Refusal::Constant);
    }
    for (one, first) in factors.iter().enumerate() {
        for (other, second) in factors.iter().enumerate().skip(one + 1) {
            let mut met = vec![vec![false; second.levels.len()]; first.levels.len()];
            for observation in observations {
                met[observation.levels[one]][observation.levels[other]] = true;
            }
            for (level, met) in first.levels.iter().zip(&met) {
                if let Some(never) = met.iter().position(|met| !met) {
                    return Err(Refusal::NotCrossed {
                        first: format!("{}={level}", first.name),
                        second: format!("{}={}", second.name, second.levels[never]),
                    });
                }
            }
        }
    }
    Ok(())
}

/// Sums of squares of one fit.
struct Squares {
    /// Type II, of each term.
    terms: Vec<f64>,
    /// What is left.
    residual: f64,
    /// Around the mean.
    total: f64,
    /// Degrees of freedom of what is left; of a resample they may be none.
    freedom: f64,
}

impl Squares {
    /// Mean square of what is left.
    fn mean(&self) -> f64 {
        self.residual / self.freedom
    }

    /// ω² of a term with this sum of squares and these degrees of freedom.
    fn share(&self, squares: f64, freedom: usize) -> f64 {
        (squares - freedom as f64 * self.mean()) / (self.total + self.mean())
    }
}

/// All sums of squares.
///
/// # Errors
/// The index of a term that cannot be told from others.
fn squares(design: &Design, sums: &Sums) -> Result<Squares, usize> {
    let mut terms = Vec::new();
    let mut residual = sums.within;
    for at in 0..design.sources().len() {
        let (order, own) = design.order(at, false);
        let solution = Cholesky::new(&sums.gram, &order).ok_or(at)?.solve(&order, &sums.right);
        terms.push(length(&solution[own]));
        if at + 1 == design.sources().len() {
            // Nothing contains the last term, so it comes after all others.
            residual = (sums.within - length(&solution)).max(0.0);
        }
    }
    let freedom = sums.values - sums.blocks - design.effects() as f64;
    Ok(Squares { terms, residual, total: sums.total, freedom })
}

fn length(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

/// p-value of a term by Freedman and Lane; the data count as one of the draws.
fn p(design: &Design, sums: &Sums, term: usize, rng: &mut fastrand::Rng) -> f64 {
    let (order, own) = design.order(term, true);
    let Some(cholesky) = Cholesky::new(&sums.gram, &order) else { return 1.0 };
    let observed = cholesky.solve(&order, &sums.right);
    let reduced = cholesky.coefficients(&order, &observed, own.start);
    let mut residuals = design.residuals(&reduced);
    let within: f64 = length(&residuals);
    let ratio =
        |solution: &[f64]| (length(&solution[own.clone()]), (within - length(solution)).max(0.0));
    // The residuals of the reduced model have the same F as the data themselves.
    let mut right = design.right(&residuals);
    let (term_squares, rest) = ratio(&cholesky.solve(&order, &right));
    let mut beyond = 1u32;
    let mut solution = Vec::new();
    for _ in 0..DRAWS {
        design.shuffle(&mut residuals, rng);
        design.right_into(&residuals, &mut right);
        cholesky.solve_into(&order, &right, &mut solution);
        let (drawn, left) = ratio(&solution);
        // Multiplied out, since the rest may be 0; equal but for rounding counts as beyond.
        beyond += u32::from(drawn * rest >= term_squares * left * (1.0 - 1e-9));
    }
    f64::from(beyond) / f64::from(DRAWS + 1)
}

/// Intervals of all shares by resampling blocks.
fn intervals(design: &Design, own: &Squares, seed: u64) -> Result<Vec<Interval>, Absent> {
    if !design.blocked() {
        return Err(Absent::Blocks);
    }
    let (least, needed) = (design.least_blocks(), needed(LEVEL));
    if least < needed {
        return Err(Absent::Repeats { least, needed });
    }
    let resamples = if design.effects() > EFFECTS_MANY { RESAMPLES_FEW } else { RESAMPLES };
    let parts = design.parts();
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut shares: Vec<Vec<f64>> = vec![Vec::new(); design.sources().len()];
    // A resample in which effects cannot be told apart is drawn again; with six blocks for every
    // combination that hardly happens.
    let mut left = 4 * resamples;
    while count(shares[0].len()) < resamples {
        if left == 0 {
            return Err(Absent::Repeats { least, needed: least + 1 });
        }
        left -= 1;
        let drawn = (0..parts.len()).map(|_| &parts[rng.usize(0..parts.len())]);
        let sums = Sums::of(drawn);
        // Blocks of few values may leave nothing to tell the rest by.
        if let Ok(squares) = squares(design, &sums)
            && squares.freedom >= 1.0
        {
            for (at, shares) in shares.iter_mut().enumerate() {
                shares.push(squares.share(squares.terms[at], design.columns(at).len()));
            }
        }
    }
    let moved = |(at, shares): (usize, Vec<f64>)| {
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let excess = mean - own.share(own.terms[at], design.columns(at).len());
        let wide = expanded_interval(shares, least);
        let back = |end: f64| (end - excess).min(1.0);
        Interval { low: back(wide.low), high: back(wide.high), level: wide.level }
    };
    Ok(shares.into_iter().enumerate().map(moved).collect())
}

impl Factorial {
    /// Interactions of a factor as shares of explained variance, largest first; empty if there are
    /// none among the terms, or if nothing is explained.
    pub fn interaction_of(&self, factor: usize) -> Vec<Dependence> {
        let explained: f64 = self.terms.iter().map(|term| term.share.max(0.0)).sum();
        let mut all: Vec<Dependence> = self
            .terms
            .iter()
            .filter_map(|term| {
                let other = match term.source {
                    Source::Interaction(one, other) if one == factor => other,
                    Source::Interaction(other, one) if one == factor => other,
                    Source::Interaction(..) | Source::Main(_) => return None,
                };
                let share = Ratio(term.share.max(0.0) / explained);
                (explained > 0.0).then_some(Dependence { other, share, p: term.p })
            })
            .collect();
        all.sort_by(|a, b| b.share.0.total_cmp(&a.share.0).then(a.other.cmp(&b.other)));
        all
    }

    /// The interactions that forbid claims about a factor that do not name a level of the other:
    /// those above 10 % of explained variance, whatever their p-value, the side of caution.
    pub fn conditional_on(&self, factor: usize) -> Vec<Dependence> {
        let mut all = self.interaction_of(factor);
        all.retain(|dependence| dependence.share.0 > CONDITIONAL);
        all
    }

    /// Whether more than half of the variance is explained by nothing.
    pub fn mostly_noise(&self) -> bool {
        self.residual_share > NOISE
    }
}

#[cfg(test)]
mod tests;
