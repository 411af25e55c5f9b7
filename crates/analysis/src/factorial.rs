//! Analysis of variance: fractions of the variance of a metric that are explained by factors,
//! interactions of factors, blocks, and chance.
//!
//! Input is the factors that were varied together and one value per trial. The result is a
//! [`Factorial`], or a [`Refusal`] that states which data are missing. The analysis does not rank
//! levels. It shows whether an interaction is large: then, for example, a ranking of filesystems is
//! valid for one I/O scheduler only.
//!
//! # The model
//!
//! ```text
//! ln y = mean + factors + interactions of two + block + error
//! ```
//!
//! Interactions of three and more factors are part of the error. In a fraction of all combinations,
//! interactions of two may be aliased: their columns are equal up to the sign. They are one term
//! ([`Term::aliases`]). If the columns of interactions depend on others in another way, the model
//! has main effects only. Each term has its type II sum of
//! squares: the variation that the term explains in addition to all terms that do not contain it
//! (Langsrud, "ANOVA for unbalanced data: Use Type II instead of Type III sums of squares",
//! Statistics and Computing 13, 2003). Its fraction of the variance is
//!
//! ```text
//! ω² = (SS - df MS) / (SS total + MS)      MS = residual sum of squares / residual df
//! ```
//!
//! (Hays, "Statistics for Psychologists", 1963), which is 0 on average without an effect. With N
//! values, the fraction of the residual is N MS / (SS total + MS). If all combinations have the
//! same number of repetitions, the fractions of all terms, of the blocks, and of the residual add
//! up to 1.
//!
//! # p and interval
//!
//! The p-value is computed by permutation of residuals (Freedman and Lane, "A Nonstochastic
//! Interpretation of Reported Significance Levels", Journal of Business & Economic Statistics 1,
//! 1983): the model without the term is fitted, its residuals are permuted within blocks, and F is
//! recomputed, 20,000 times.
//!
//! The interval resamples whole blocks, 4000 times (1000 times above 40 effects). A resample
//! contains both the randomness of the data and that of resampling, so its fractions are too large
//! on average. The interval is therefore shifted down by the mean excess.
//!
//! # Computation
//!
//! Levels are coded by columns that sum to zero: three levels have the rows (1, 0), (0, 1), and
//! (-1, -1). The block means are subtracted. The remaining problem is small and well conditioned,
//! so the normal equations are solved by Cholesky's decomposition. To compute the sum of squares of
//! a term, its columns are placed after those of all terms that do not contain it. The sum of
//! squares is then the squared length of the part of the solution that belongs to the term.

use model::Ratio;

use crate::{
    Error, Interval, NotEstimable,
    bootstrap::{RESAMPLES, expanded_interval},
    count,
    summary::{LEVEL, needed},
    trend::{DRAWS, positive},
};

mod columns;
mod design;
mod effect;
use design::{Cholesky, Design, Sums};
pub use effect::Effect;

/// Allowed number of factors.
const FACTORS: std::ops::RangeInclusive<usize> = 2..=16;
/// Allowed number of levels of one factor.
const LEVELS: std::ops::RangeInclusive<usize> = 2..=20;
/// Maximum number of effects of all terms, which limits an analysis to seconds.
const EFFECTS_MAX: usize = 100;
/// Number of effects above which fewer resamples are drawn.
const EFFECTS_MANY: usize = 40;
/// Number of resamples above [`EFFECTS_MANY`] effects.
const RESAMPLES_FEW: u32 = 1000;
/// Fraction of explained variance above which an interaction prevents unconditional findings.
pub const CONDITIONAL: f64 = 0.10;
/// Fraction of the variance above which the residual makes a result mostly noise.
pub const NOISE: f64 = 0.50;

/// Factor that was varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// Name, such as `filesystem`.
    pub name: String,
    /// Levels, 2 to 20, such as `ext4` and `xfs`.
    pub levels: Vec<String>,
}

/// Value of one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Index of the level of each factor, in the order of the factors.
    pub levels: Vec<usize>,
    /// Block of the trial. If it is `None` for any trial, all blocks count as unknown.
    pub block: Option<u32>,
    /// Value above zero in the base unit of the metric.
    pub value: f64,
}

/// Reason that factors cannot be analyzed together.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// A value is invalid.
    #[error(transparent)]
    Values(#[from] Error),
    /// The number of factors is not 2 to 16.
    #[error("{0} factors; use 2 to 16")]
    Factors(usize),
    /// The number of levels of a factor is not 2 to 20.
    #[error("factor {factor} has {levels} levels; use 2 to 20")]
    Levels {
        /// Name of the factor.
        factor: String,
        /// Number of its levels.
        levels: usize,
    },
    /// An observation does not name one existing level of each factor.
    #[error("observation {0} does not have one level of each factor; correct its levels")]
    Observation(usize),
    /// Two levels were never combined, so their effects cannot be separated.
    #[error("{first} was never measured with {second}; measure all combinations")]
    NotCrossed {
        /// `factor=level`.
        first: String,
        /// `factor=level`.
        second: String,
    },
    /// The measured combinations do not determine all effects of the model.
    #[error("the effect of {0} is confounded with others; measure all combinations")]
    Confounded(String),
    /// Too few values for the number of effects.
    #[error("{values} values for {effects} effects; measure more repetitions")]
    TooFew {
        /// Number of values.
        values: usize,
        /// Number of effects of the model, blocks included.
        effects: usize,
    },
    /// Too many effects to fit.
    #[error("{effects} effects, at most {max} allowed; vary fewer factors or levels")]
    TooMany {
        /// Number of effects of the model, without blocks.
        effects: usize,
        /// Maximum number of effects.
        max: usize,
    },
    /// All values are equal.
    #[error("all values are equal; analyze another metric")]
    Constant,
}

/// Source of variance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Factor, by index.
    Main(usize),
    /// Interaction of two factors, by index, the smaller index first: the effect of one factor
    /// depends on the other factor.
    Interaction(usize, usize),
}

/// One term of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Source of variance.
    pub source: Source,
    /// Interactions that the measured combinations do not distinguish from this one.
    pub aliases: Vec<(usize, usize)>,
    /// Sizes of the effect, by level.
    pub effects: Vec<Effect>,
    /// Degrees of freedom.
    pub freedom: u32,
    /// Type II sum of squares of ln y.
    pub squares: f64,
    /// F: mean square of the term over the residual mean square; infinite without a residual.
    pub f: f64,
    /// p-value of "no effect", from permutations of residuals within blocks (Freedman and Lane).
    pub p: f64,
    /// ω²: fraction of the variance of ln y, corrected for chance. Values below 0 are due to
    /// chance.
    pub share: f64,
    /// 95 % interval of the fraction by resampling blocks. Not estimable without blocks, or with
    /// too few blocks.
    pub interval: Result<Interval, NotEstimable>,
}

/// Variance explained by each factor.
#[derive(Clone, Debug, PartialEq)]
pub struct Factorial {
    /// Names and levels as given.
    pub factors: Vec<Factor>,
    /// Main effects in the order of the factors, then interactions.
    pub terms: Vec<Term>,
    /// Error if the terms do not include interactions, because not every measured combination has
    /// at least two values.
    pub interactions: Result<(), NotEstimable>,
    /// ω² of the blocks, which contains the drift of the machine; `None` if blocks are unknown.
    pub block_share: Option<f64>,
    /// Fraction of the variance, 0 to 1, that neither terms nor blocks explain.
    pub residual_share: f64,
    /// Degrees of freedom of the residual.
    pub residual_freedom: u32,
    /// Number of values.
    pub n: u32,
    /// Number of blocks; 0 if unknown.
    pub blocks: u32,
    /// Smallest and largest number of values of the measured combinations.
    pub repetitions: (u32, u32),
    /// Smallest number of values at a level of a factor, over all combinations with this level.
    pub per_level: u32,
    /// Number of combinations of levels that were not measured.
    pub missing: u32,
}

/// Interaction of a factor with another one, relative to the explained variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dependence {
    /// Index of the other factor.
    pub other: usize,
    /// ω² of the interaction over the sum of ω² of all terms. Negative ω² count as 0.
    pub share: Ratio,
    /// p-value of the interaction.
    pub p: f64,
}

/// Analyzes factors that were varied together. The seed determines all random draws. The order of
/// observations does not matter.
///
/// # Errors
/// [`Refusal`] if the data do not support the model.
pub fn analyze(
    factors: &[Factor],
    observations: &[Observation],
    seed: u64,
) -> Result<Factorial, Refusal> {
    check(factors, observations)?;
    let design = Design::new(factors, observations, true);
    match fit(factors, &design, seed) {
        Err(Refusal::Confounded(_) | Refusal::TooFew { .. } | Refusal::TooMany { .. })
            if design.missing() > 0 && design.interactions().is_ok() =>
        {
            fit(factors, &Design::new(factors, observations, false), seed)
        }
        answer => answer,
    }
}

fn fit(factors: &[Factor], design: &Design, seed: u64) -> Result<Factorial, Refusal> {
    if design.effects() > EFFECTS_MAX {
        return Err(Refusal::TooMany { effects: design.effects(), max: EFFECTS_MAX });
    }
    let sums = design.sums();
    let effects = design.effects() + design.blocks();
    let values = design.values();
    let Some(freedom) = values.checked_sub(effects).filter(|freedom| *freedom > 0) else {
        return Err(Refusal::TooFew { values, effects });
    };
    let squares = squares(design, &sums).map_err(|at| {
        let (Source::Main(one) | Source::Interaction(one, _)) = design.sources()[at];
        Refusal::Confounded(factors[one].name.clone())
    })?;
    let intervals = intervals(design, &squares, seed);
    let mut rng = fastrand::Rng::with_seed(seed);
    let terms = design.sources().iter().enumerate().map(|(at, source)| {
        let df = design.columns(at).len();
        let mean = squares.terms[at] / df as f64;
        Term {
            source: *source,
            aliases: design.aliases(at).to_vec(),
            effects: effect::effects(design, &sums, at, (squares.mean(), squares.freedom)),
            freedom: count(df),
            squares: squares.terms[at],
            f: mean / (squares.residual / freedom as f64),
            p: p(design, &sums, at, &mut rng),
            share: squares.share(squares.terms[at], df),
            interval: intervals.as_ref().map(|all| all[at]).map_err(|reason| *reason),
        }
    });
    let repetitions = design.repetitions();
    Ok(Factorial {
        factors: factors.to_vec(),
        terms: terms.collect(),
        interactions: design.interactions(),
        block_share: design
            .blocked()
            .then(|| squares.share(design.block_squares(&squares), design.blocks() - 1)),
        residual_share: (values as f64 * squares.mean() / (squares.total + squares.mean()))
            .clamp(0.0, 1.0),
        residual_freedom: count(freedom),
        n: count(values),
        blocks: if design.blocked() { count(design.blocks()) } else { 0 },
        repetitions,
        per_level: design.per_level(),
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
    /// Type II sum of each term.
    terms: Vec<f64>,
    /// Residual sum.
    residual: f64,
    /// Sum about the mean.
    total: f64,
    /// Residual degrees of freedom; may be zero for a resample.
    freedom: f64,
}

impl Squares {
    /// Residual mean square.
    fn mean(&self) -> f64 {
        self.residual / self.freedom
    }

    /// ω² of a term with this sum of squares and these degrees of freedom.
    fn share(&self, squares: f64, freedom: usize) -> f64 {
        (squares - freedom as f64 * self.mean()) / (self.total + self.mean())
    }
}

/// Computes all sums of squares.
///
/// # Errors
/// Index of a term that is confounded with others.
fn squares(design: &Design, sums: &Sums) -> Result<Squares, usize> {
    let mut terms = Vec::new();
    let mut residual = sums.within;
    for at in 0..design.sources().len() {
        let (order, own) = design.order(at, false);
        let solution = Cholesky::new(&sums.gram, &order).ok_or(at)?.solve(&order, &sums.right);
        terms.push(length(&solution[own]));
        if at + 1 == design.sources().len() {
            // The last term is contained in no other term, so here it comes after all others.
            residual = (sums.within - length(&solution)).max(0.0);
        }
    }
    let freedom = sums.values - sums.blocks - design.effects() as f64;
    Ok(Squares { terms, residual, total: sums.total, freedom })
}

fn length(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

/// p-value of a term by Freedman and Lane. The data count as one of the permutations.
fn p(design: &Design, sums: &Sums, term: usize, rng: &mut fastrand::Rng) -> f64 {
    let (order, own) = design.order(term, true);
    let Some(cholesky) = Cholesky::new(&sums.gram, &order) else { return 1.0 };
    let observed = cholesky.solve(&order, &sums.right);
    let reduced = cholesky.coefficients(&order, &observed, own.start);
    let mut residuals = design.residuals(&reduced);
    let within: f64 = length(&residuals);
    let ratio =
        |solution: &[f64]| (length(&solution[own.clone()]), (within - length(solution)).max(0.0));
    // The F of the term is the same for the residuals of the reduced model as for the data.
    let mut right = design.right(&residuals);
    let (term_squares, rest) = ratio(&cholesky.solve(&order, &right));
    let mut beyond = 1u32;
    let mut solution = Vec::new();
    for _ in 0..DRAWS {
        design.shuffle(&mut residuals, rng);
        design.right_into(&residuals, &mut right);
        cholesky.solve_into(&order, &right, &mut solution);
        let (drawn, left) = ratio(&solution);
        // The ratios are multiplied out, because the residual may be 0. A permutation that is equal
        // up to rounding counts as more extreme.
        beyond += u32::from(drawn * rest >= term_squares * left * (1.0 - 1e-9));
    }
    f64::from(beyond) / f64::from(DRAWS + 1)
}

/// Intervals of all fractions by resampling blocks.
fn intervals(design: &Design, own: &Squares, seed: u64) -> Result<Vec<Interval>, NotEstimable> {
    if !design.blocked() {
        return Err(NotEstimable::Blocks);
    }
    let (least, needed) = (design.least_blocks(), needed(LEVEL));
    if least < needed {
        return Err(NotEstimable::Repetitions { least, needed });
    }
    let resamples = if design.effects() > EFFECTS_MANY { RESAMPLES_FEW } else { RESAMPLES };
    let parts = design.parts();
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut shares: Vec<Vec<f64>> = vec![Vec::new(); design.sources().len()];
    // A resample with confounded effects is drawn again, which is rare with six blocks per
    // combination.
    let mut left = 4 * resamples;
    while count(shares[0].len()) < resamples {
        if left == 0 {
            return Err(NotEstimable::Repetitions { least, needed: least + 1 });
        }
        left -= 1;
        let drawn = (0..parts.len()).map(|_| &parts[rng.usize(0..parts.len())]);
        let sums = Sums::of(drawn);
        // Blocks with few values may leave no residual degrees of freedom.
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
    /// Interactions of a factor as fractions of the explained variance, largest first. Empty
    /// without interaction terms, or if no variance is explained.
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

    /// Interactions that prevent findings about a factor, except findings that state a level of the
    /// other factor. These are all interactions above 10 % of the explained variance, regardless of
    /// their p-value, which is conservative.
    pub fn conditional_on(&self, factor: usize) -> Vec<Dependence> {
        let mut all = self.interaction_of(factor);
        all.retain(|dependence| dependence.share.0 > CONDITIONAL);
        all
    }

    /// True if more than half of the variance is unexplained.
    pub fn mostly_noise(&self) -> bool {
        self.residual_share > NOISE
    }
}

#[cfg(test)]
mod tests;
