//! Statements about measured numbers: a statement holds, does not hold, or is undecided.
//!
//! A measured number is a mean of repetitions. Its uncertainty is the fiducial distribution of a
//! normal mean, mean + deviation / √n · t with n - 1 degrees of freedom (Fisher, "The fiducial
//! argument in statistical inference", Annals of Eugenics 6, 1935). The central 95 % of this
//! distribution are Student's confidence interval.
//!
//! A statement is checked on [`DRAWS`] sets of numbers drawn from these distributions. It holds if
//! it is true in all draws except a fraction of 5 % divided by the number of tested statements
//! (Bonferroni). The probability that at least one statement is decided wrongly is therefore about
//! 5 %. Example: with 10 statements and 2000 draws, a statement holds if it is true in at least
//! 1990 draws. Numbers are drawn independently. Real numbers of one block vary together, so their
//! differences vary less than the draws suggest. Statements about such differences are undecided
//! too often, but not wrongly decided.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{
    Cell, Claim, Filter, Judgment, Layout, Location, Part, Ruling, Statement, judge::Judge,
    judge::together, printed::Printed,
};
use crate::{moments::Moments, ranks::FAMILY_ERROR};

/// Number of drawn sets of numbers on which a statement is checked.
pub const DRAWS: u32 = 2000;

/// Minimum number of repetitions of every number that a statement refers to.
pub const REPETITIONS: u32 = 3;

/// Number of quantiles of Student's distribution from which values are drawn.
const QUANTILES: usize = 4096;

/// Measured number.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Coordinates.
    pub at: Location,
    /// Mean and standard deviation of the repetitions.
    pub moments: Moments,
}

/// Result of a statement about measured numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The numbers confirm the statement.
    Holds,
    /// The numbers contradict the statement, at least in part.
    DoesNotHold,
    /// The numbers are not precise enough.
    Undecided,
    /// Numbers are missing, or the statement is about the study itself.
    NotTestable,
}

/// Statement with its verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Verdict.
    pub verdict: Verdict,
    /// Fraction of the draws in which the statement holds; `None` if it cannot be tested.
    pub share: Option<f64>,
    /// Result for the means, with the deciding numbers.
    pub judgment: Judgment,
    /// Levels that the statement names and that were not measured, by coordinate.
    pub missing: Location,
}

/// Preliminary result of a statement. The number of tested statements does not affect this result.
struct Draft {
    judgment: Judgment,
    missing: Location,
    /// Draws in which it holds, and all draws; `None` if it cannot be tested.
    draws: Option<(u32, u32)>,
}

/// Decides statements about measured numbers, in the order of the statements. `layout` is that of
/// the study; its deviations, number of runs, and locations are not used.
pub fn measured(cells: &[Measured], layout: &Layout, statements: &[Statement]) -> Vec<Decision> {
    let layout = &Layout { deviation: None, runs: None, place: Vec::new(), ..layout.clone() };
    let mut tables = Tables::default();
    let printed = printed(cells);
    // The number of tested statements is needed first, and it does not depend on the draws.
    let tested = statements.iter().filter(|one| prepared(&printed, cells, layout, one).is_ok());
    let family = u32::try_from(tested.count()).unwrap_or(u32::MAX).max(1);
    let most = (f64::from(DRAWS) * FAMILY_ERROR / f64::from(family)).floor();
    let draft = |statement: &Statement| match prepared(&printed, cells, layout, statement) {
        Err(draft) => draft,
        Ok(ready) => draft_of(ready, cells, layout, &mut tables, most),
    };
    let decided = |draft: Draft| {
        let verdict = match draft.draws {
            None => Verdict::NotTestable,
            Some((yes, all)) if f64::from(all - yes) <= most => Verdict::Holds,
            Some((yes, _)) if f64::from(yes) <= most => Verdict::DoesNotHold,
            Some(_) => Verdict::Undecided,
        };
        let share = draft.draws.map(|(yes, all)| f64::from(yes) / f64::from(all));
        Decision { verdict, share, judgment: draft.judgment, missing: draft.missing }
    };
    statements.iter().map(draft).map(decided).collect()
}

/// Cells that contain the means.
fn printed(cells: &[Measured]) -> Vec<Cell> {
    let cell = |own: &Measured| Cell {
        at: own.at.clone(),
        printed: format!("{}", own.moments.mean),
        value: Some(own.moments.mean),
    };
    cells.iter().map(cell).collect()
}

/// Statement that can be tested, with the cells of each part.
struct Ready {
    parts: Vec<(Part, Vec<usize>)>,
    judgment: Judgment,
    missing: Location,
}

/// Prepares a statement for testing. If it cannot be tested, returns a [`Draft`] with the reason.
fn prepared(
    printed: &[Cell],
    cells: &[Measured],
    layout: &Layout,
    statement: &Statement,
) -> Result<Ready, Draft> {
    let (parts, missing) = measured_levels(printed, statement);
    let read = Printed::new(printed, layout);
    let judge = Judge::new(&read, &[]);
    let mut judged: Vec<_> = parts.iter().map(|part| judge.part(part)).collect();
    let mut ready = Vec::new();
    for (part, result) in parts.iter().zip(&mut judged) {
        if let Some(reason) = own_numbers(&part.claim) {
            (result.ruling, result.absent) = (Ruling::NotTestable, Some(reason.into()));
            continue;
        }
        let Ok(own) = judge.about(part) else { continue };
        let least = own.iter().map(|cell| cells[*cell].moments.n).min().unwrap_or(0);
        if least < REPETITIONS {
            let reason = format!("{REPETITIONS} repetitions are required, a test has {least}");
            (result.ruling, result.absent) = (Ruling::NotTestable, Some(reason));
        } else if result.ruling != Ruling::NotTestable {
            ready.push((part.clone(), own));
        }
    }
    let ruling = together(judged.iter().map(|part| part.ruling));
    let judgment = Judgment { id: statement.id.clone(), ruling, parts: judged };
    match ready.is_empty() {
        true => Err(Draft { judgment, missing, draws: None }),
        false => Ok(Ready { parts: ready, judgment, missing }),
    }
}

/// Parts of a statement without the levels that were not measured, and these levels by coordinate.
/// If no level of a coordinate was measured, all its levels are kept, so that the part cannot be
/// tested.
fn measured_levels(cells: &[Cell], statement: &Statement) -> (Vec<Part>, Location) {
    let known = |axis: &str, level: &str| {
        cells.iter().any(|cell| cell.at.get(axis).is_some_and(|own| own == level))
    };
    let mut missing: Filter = Filter::new();
    let mut parts = statement.parts.clone();
    for part in &mut parts {
        for (axis, levels) in &mut part.about {
            let (kept, absent): (Vec<String>, Vec<String>) =
                levels.iter().cloned().partition(|level| known(axis, level));
            if kept.is_empty() || absent.is_empty() {
                continue;
            }
            let all = missing.entry(axis.clone()).or_default();
            all.extend(absent.into_iter().filter(|level| !all.contains(level)).collect::<Vec<_>>());
            *levels = kept;
        }
    }
    let missing = missing.into_iter().map(|(axis, levels)| (axis, levels.join(", "))).collect();
    (parts, missing)
}

/// Reason that a claim applies only to the numbers of the study.
fn own_numbers(claim: &Claim) -> Option<&'static str> {
    match claim {
        Claim::Quoted { .. } => Some("it quotes a number of the study"),
        Claim::Count { .. } => Some("it is about the extent of the study"),
        Claim::Extreme { .. }
        | Claim::Order { .. }
        | Claim::Factor { .. }
        | Claim::Change { .. }
        | Claim::Difference { .. }
        | Claim::Monotone { .. }
        | Claim::Insensitive { .. }
        | Claim::Equal { .. }
        | Claim::Above { .. }
        | Claim::GainsMost { .. } => None,
    }
}

/// Checks a statement on at most [`DRAWS`] draws. Stops early if the statement is already
/// undecided.
fn draft_of(
    ready: Ready,
    cells: &[Measured],
    layout: &Layout,
    tables: &mut Tables,
    most: f64,
) -> Draft {
    let Ready { parts, judgment, missing } = ready;
    let own = |indices: &[usize]| -> Vec<Cell> {
        let own: Vec<Measured> = indices.iter().map(|at| cells[*at].clone()).collect();
        printed(&own)
    };
    let lists: Vec<Vec<Cell>> = parts.iter().map(|(_, indices)| own(indices)).collect();
    let read: Vec<Printed> = lists.iter().map(|list| Printed::new(list, layout)).collect();
    let mut judges: Vec<Judge> = read.iter().map(|own| Judge::new(own, &[])).collect();
    let mut used: Vec<usize> = parts.iter().flat_map(|(_, own)| own.iter().copied()).collect();
    used.sort_unstable();
    used.dedup();
    let quantiles: Vec<usize> = used.iter().map(|at| tables.of(cells[*at].moments.n - 1)).collect();
    let mut rng = fastrand::Rng::with_seed(0);
    let mut drawn = vec![0.0; cells.len()];
    let (mut yes, mut all) = (0_u32, 0_u32);
    while all < DRAWS && (f64::from(yes) <= most || f64::from(all - yes) <= most) {
        for (at, table) in used.iter().zip(&quantiles) {
            let moments = &cells[*at].moments;
            let t = tables.quantiles[*table].1[rng.usize(..QUANTILES)];
            drawn[*at] = moments.mean + moments.deviation / f64::from(moments.n).sqrt() * t;
        }
        let rulings = parts.iter().zip(&mut judges).map(|((part, indices), judge)| {
            judge.values = indices.iter().map(|at| Some(drawn[*at])).collect();
            judge.part(part).ruling
        });
        yes += u32::from(together(rulings) == Ruling::Holds);
        all += 1;
    }
    Draft { judgment, missing, draws: Some((yes, all)) }
}

/// Quantiles of Student's distribution, by degrees of freedom.
#[derive(Default)]
struct Tables {
    quantiles: Vec<(u32, Vec<f64>)>,
}

impl Tables {
    /// Index of the quantiles for these degrees of freedom, at least 1.
    fn of(&mut self, freedom: u32) -> usize {
        if let Some(at) = self.quantiles.iter().position(|(own, _)| *own == freedom) {
            return at;
        }
        let share = |at: usize| (at as f64 + 0.5) / QUANTILES as f64;
        let all = match StudentsT::new(0.0, 1.0, f64::from(freedom)) {
            Ok(student) => (0..QUANTILES).map(|at| student.inverse_cdf(share(at))).collect(),
            Err(_) => vec![0.0; QUANTILES],
        };
        self.quantiles.push((freedom, all));
        self.quantiles.len() - 1
    }
}

#[cfg(test)]
mod tests;
