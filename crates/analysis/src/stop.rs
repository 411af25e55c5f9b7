//! Stopping rule: decides whether a cell has enough repetitions.
//!
//! Takes the values measured so far, one list per measured phase, and returns a [`Decision`] with
//! the reason for closing the cell. The rule evaluates only the widths of confidence intervals. It
//! never compares cells: if a cell were closed because it already differs from another cell, the
//! difference would be biased (`docs/method/statistics.md`).

use model::{Profile, Warning, units::plural};

use crate::{count, summary::Summary};

/// Decision about further repetitions.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// More repetitions are needed.
    More {
        /// Number of repetitions at the next interim analysis; always more than there are.
        next_analysis: u32,
    },
    /// The cell is closed.
    Enough {
        /// Reason for closing the cell, with figures.
        rule: String,
        /// [`Warning::TooFewRepetitions`] or [`Warning::WideInterval`] for each phase that did not
        /// converge. If the time limit closed the cell, [`Warning::TimeLimitReached`] follows each
        /// of them.
        warnings: Vec<Warning>,
    },
}

/// Decides whether a cell needs more repetitions.
///
/// `values_per_primary` contains the primary metric of each measured phase over all measured
/// trials: positive values in the base unit of the metric, in the order of measurement. Without
/// lists, or with empty ones, nothing has been measured yet.
///
/// A cell is closed at an interim analysis if the interval of *every* phase is within the target of
/// the profile. If [`Profile::consecutive_analyses`] is 2, this must also be true of the analysis
/// directly before. At the last analysis, the cell is closed regardless of the widths. Between two
/// analyses, the cell stays open until the next analysis. With `fixed` repetitions, the cell is
/// closed as soon as it has this number.
///
/// The sequential rule and its analyses are explained in `docs/method/statistics.md`. Its final
/// coverage is simulated in `docs/method/calibration.md`.
pub fn decide(values_per_primary: &[Vec<f64>], profile: Profile, fixed: Option<u32>) -> Decision {
    let n = count(values_per_primary.iter().map(Vec::len).min().unwrap_or(0));
    let target = profile.half_width_target();
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    if let Some(repetitions) = fixed {
        if n < repetitions {
            return Decision::More { next_analysis: repetitions };
        }
        let rule = format!("fixed: {}", plural(n, "repetition"));
        return Decision::Enough { rule, warnings: open_phases(values_per_primary, profile) };
    }
    let analyses = profile.interim_analyses();
    if let Some(&next_analysis) = analyses.iter().find(|analysis| **analysis > n)
        && !analyses.contains(&n)
    {
        return Decision::More { next_analysis };
    }
    let warnings = open_phases(values_per_primary, profile);
    let next = analyses.iter().find(|analysis| **analysis > n);
    if warnings.is_empty() && (next.is_none() || confirmed(values_per_primary, profile)) {
        let widest = widest(values_per_primary).unwrap_or(0.0);
        let rule = format!(
            "converged: after {} all phases are within ±{} (target ±{})",
            plural(n, "repetition"),
            percent(widest),
            percent(target.0)
        );
        return Decision::Enough { rule, warnings };
    }
    match next {
        Some(&next_analysis) => Decision::More { next_analysis },
        None => {
            let rule = format!(
                "limit: {n} repetitions, the maximum of profile {}; {} of {} phases exceed ±{}",
                profile.name(),
                warnings.len(),
                values_per_primary.len(),
                percent(target.0)
            );
            Decision::Enough { rule, warnings }
        }
    }
}

/// Closes a cell because the time limit was reached, at any number of repetitions. No
/// interval and no comparison influences this.
///
/// The lists are those of [`decide`]; the result is always [`Decision::Enough`]. Each phase whose
/// interval is not within the target of the profile has its own warning and
/// [`Warning::TimeLimitReached`].
pub fn at_time_limit(values_per_primary: &[Vec<f64>], profile: Profile) -> Decision {
    let n = count(values_per_primary.iter().map(Vec::len).min().unwrap_or(0));
    let target = profile.half_width_target().0 * 100.0;
    let open: Vec<Vec<Warning>> = values_per_primary
        .iter()
        .map(|values| of_phase(values, profile))
        .filter(|own| !own.is_empty())
        .collect();
    let state = match (values_per_primary.len(), open.len()) {
        (0, _) => "no phase was measured".to_owned(),
        (_, 0) => format!("all phases are within ±{target:.1} %"),
        (phases, open) => format!("{open} of {phases} phases exceed ±{target:.1} %"),
    };
    let rule = format!("time limit: after {}; {state}", plural(n, "repetition"));
    let with_reason = |own: Vec<Warning>| own.into_iter().chain([Warning::TimeLimitReached]);
    Decision::Enough { rule, warnings: open.into_iter().flat_map(with_reason).collect() }
}

/// Warnings of a summary under a profile: those of the summary, and [`Warning::WideInterval`] if
/// its interval is wider than the target.
pub fn warnings(summary: &Summary, profile: Profile) -> Vec<Warning> {
    let mut warnings = summary.warnings.clone();
    let target = profile.half_width_target();
    if let Some(half_width) = summary.half_width().filter(|width| width.0 > target.0) {
        warnings.push(Warning::WideInterval { half_width, target });
    }
    warnings
}

/// True if every phase was also within the target at the previous analyses. Their number is
/// [`Profile::consecutive_analyses`] minus 1.
fn confirmed(values_per_primary: &[Vec<f64>], profile: Profile) -> bool {
    let n = count(values_per_primary.iter().map(Vec::len).min().unwrap_or(0));
    let mut before = profile.interim_analyses().iter().rev().filter(|analysis| **analysis < n);
    (1..profile.consecutive_analyses()).all(|_| {
        before.next().is_some_and(|analysis| {
            let first =
                |values: &Vec<f64>| values.iter().take(*analysis as usize).copied().collect();
            let first: Vec<Vec<f64>> = values_per_primary.iter().map(first).collect();
            open_phases(&first, profile).is_empty()
        })
    })
}

/// Warnings of all phases that are not within the target.
fn open_phases(values_per_primary: &[Vec<f64>], profile: Profile) -> Vec<Warning> {
    values_per_primary.iter().flat_map(|values| of_phase(values, profile)).collect()
}

/// Warnings of a phase that is not within the target. Values that cannot be summarized count as too
/// few, because they cannot converge.
fn of_phase(values: &[f64], profile: Profile) -> Vec<Warning> {
    let needed = crate::summary::needed(crate::summary::LEVEL);
    match Summary::new(values) {
        Ok(summary) => warnings(&summary, profile),
        Err(_) => vec![Warning::TooFewRepetitions { n: 0, needed }],
    }
}

/// Largest relative half-width of the phases.
fn widest(values_per_primary: &[Vec<f64>]) -> Option<f64> {
    let widths = values_per_primary
        .iter()
        .filter_map(|values| Some(Summary::new(values).ok()?.half_width()?.0));
    widths.max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use model::Ratio;

    use super::*;

    /// `n` values around 100 with a spread of `spread` percent to either side.
    fn values(n: u32, spread: f64) -> Vec<f64> {
        (0..n).map(|i| 100.0 + spread * (f64::from(i % 5) / 2.0 - 1.0)).collect()
    }

    #[test]
    fn no_decision_before_the_first_analysis() {
        let standard = Profile::Standard;
        assert_eq!(decide(&[], standard, None), Decision::More { next_analysis: 8 });
        assert_eq!(decide(&[values(7, 0.1)], standard, None), Decision::More { next_analysis: 8 });
        assert_eq!(decide(&[values(9, 0.1)], standard, None), Decision::More { next_analysis: 10 });
    }

    #[test]
    fn narrow_cell_closes_at_the_first_analysis() {
        let Decision::Enough { rule, warnings } =
            decide(&[values(8, 0.5), values(8, 1.0)], Profile::Standard, None)
        else {
            panic!("±1 % is within ±3 %");
        };
        assert!(warnings.is_empty());
        assert!(rule.starts_with("converged: after 8 repetitions"), "{rule}");
        assert!(rule.ends_with("(target ±3.0 %)"), "{rule}");
    }

    #[test]
    fn rigorous_cell_closes_at_the_second_narrow_analysis_in_a_row() {
        let closed = |values: Vec<f64>| decide(&[values], Profile::Rigorous, None);
        assert_eq!(closed(values(10, 0.1)), Decision::More { next_analysis: 12 });
        let Decision::Enough { rule, warnings } = closed(values(12, 0.1)) else {
            panic!("narrow at 10 and at 12");
        };
        assert!(warnings.is_empty());
        assert!(rule.starts_with("converged: after 12 repetitions"), "{rule}");
        // Wide at 12, narrow at 15.
        let late: Vec<f64> = [90.0, 110.0].repeat(6).into_iter().chain([100.0; 40]).collect();
        let analyses = [20, 25, 30, 40, 50].map(|n| (n, closed(late[..n].to_vec())));
        let first =
            analyses.iter().find(|(_, decision)| matches!(decision, Decision::Enough { .. }));
        let narrow = |n: usize| of_phase(&late[..n], Profile::Rigorous).is_empty();
        let expected = [20, 25, 30, 40, 50].into_iter().zip([15, 20, 25, 30, 40]);
        let expected = expected.map(|(n, before)| (n, narrow(n) && narrow(before)));
        let expected = expected.into_iter().find(|(_, both)| *both).map(|(n, _)| n);
        assert!(expected.is_some_and(|n| n > 20), "{expected:?}");
        assert_eq!(first.map(|(n, _)| *n), expected);
    }

    #[test]
    fn one_wide_phase_keeps_the_cell_open() {
        let both = [values(8, 0.5), values(8, 20.0)];
        assert_eq!(decide(&both, Profile::Standard, None), Decision::More { next_analysis: 10 });
    }

    #[test]
    fn wide_phase_at_the_limit_is_reported_with_its_width() {
        let both = [values(30, 0.5), values(30, 40.0)];
        let Decision::Enough { rule, warnings } = decide(&both, Profile::Standard, None) else {
            panic!("30 is the maximum");
        };
        assert!(rule.contains("1 of 2 phases exceed ±3.0 %"), "{rule}");
        let [Warning::WideInterval { half_width, target }] = warnings[..] else {
            panic!("one phase is wide: {warnings:?}");
        };
        assert!(half_width.0 > 0.03 && target == Ratio(0.03));
    }

    #[test]
    fn fixed_repetitions_are_exact_and_too_few_are_reported() {
        let three = [values(3, 0.5)];
        assert_eq!(decide(&three, Profile::Quick, Some(4)), Decision::More { next_analysis: 4 });
        let Decision::Enough { warnings, .. } = decide(&three, Profile::Quick, Some(3)) else {
            panic!("three of three");
        };
        assert_eq!(warnings, [Warning::TooFewRepetitions { n: 3, needed: 6 }]);
    }

    #[test]
    fn time_limit_lists_the_open_phases() {
        let all = [values(4, 0.5), values(9, 0.5), values(9, 40.0)];
        let Decision::Enough { rule, warnings } = at_time_limit(&all, Profile::Standard) else {
            panic!("the time limit closes every cell");
        };
        assert_eq!(rule, "time limit: after 4 repetitions; 2 of 3 phases exceed ±3.0 %");
        let [few, Warning::TimeLimitReached, wide, Warning::TimeLimitReached] = &warnings[..]
        else {
            panic!("two phases are open: {warnings:?}");
        };
        assert_eq!(*few, Warning::TooFewRepetitions { n: 4, needed: 6 });
        assert!(matches!(wide, Warning::WideInterval { .. }), "{wide:?}");
    }

    #[test]
    fn time_limit_closes_any_cell() {
        let closed = |values: &[Vec<f64>]| match at_time_limit(values, Profile::Standard) {
            Decision::Enough { rule, warnings } => (rule, warnings),
            Decision::More { .. } => panic!("the time limit closes every cell"),
        };
        let (rule, warnings) = closed(&[values(7, 0.5)]);
        assert!(rule.ends_with("all phases are within ±3.0 %"), "{rule}");
        assert!(warnings.is_empty());
        let (rule, warnings) = closed(&[]);
        assert!(rule.ends_with("after 0 repetitions; no phase was measured"), "{rule}");
        assert!(warnings.is_empty());
        let few = [Warning::TooFewRepetitions { n: 0, needed: 6 }, Warning::TimeLimitReached];
        for bad in [vec![], vec![f64::NAN; 9], vec![f64::INFINITY; 9]] {
            assert_eq!(closed(&[bad]).1, few);
        }
    }

    #[test]
    fn invalid_numbers_never_converge() {
        let bad = [vec![f64::NAN; 8]];
        assert_eq!(decide(&bad, Profile::Standard, None), Decision::More { next_analysis: 10 });
    }

    #[test]
    fn every_profile_terminates() {
        for profile in Profile::ALL {
            let mut n = 0;
            while let Decision::More { next_analysis } = decide(&[values(n, 90.0)], profile, None) {
                assert!(
                    next_analysis > n,
                    "{} goes back from {n} to {next_analysis}",
                    profile.name()
                );
                n = next_analysis;
            }
            assert_eq!(Some(&n), profile.interim_analyses().last());
        }
    }
}
