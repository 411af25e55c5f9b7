//! When a cell has been repeated often enough.
//!
//! The values measured so far enter, one list for each measured phase; a [`Decision`] leaves, with
//! the rule that closed the cell in words and figures. Only the width of intervals is looked at,
//! never a comparison with another cell: stopping because two cells already differ would make the
//! difference (`docs/method/statistics.md`).

use model::{Profile, Warning};

use crate::{count, summary::Summary};

/// Go on, or enough.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// More repeats are needed.
    More {
        /// The number of repeats at which to ask again; always more than there are.
        next_look: u32,
    },
    /// The cell is closed.
    Enough {
        /// The rule that closed it, with its figures.
        rule: String,
        /// [`Warning::Few`] or [`Warning::Wide`] for each phase that did not converge; where it was
        /// the budget that closed the cell, each is followed by [`Warning::OverBudget`].
        warnings: Vec<Warning>,
    },
}

/// Decides whether a cell needs more repeats.
///
/// `values_per_primary` holds, for each measured phase, its primary metric over all measured
/// trials, positive and in the metric's base unit, in the order they were measured. A cell is
/// closed at a look when the interval of *every* phase is within the profile's target, and was so
/// at as many looks before as the profile wants ([`Profile::looks_in_a_row`]), or at the last look,
/// whatever the width. Between looks the answer is the next look. With `fixed` repeats the answer
/// is closed at exactly that many. No lists, or empty ones, mean that nothing has been measured
/// yet.
///
/// Source of the rule and of the looks: the sequential rule of `docs/method/statistics.md`, whose
/// final coverage is simulated in `docs/method/calibration.md`.
pub fn decide(values_per_primary: &[Vec<f64>], profile: Profile, fixed: Option<u32>) -> Decision {
    let n = count(values_per_primary.iter().map(Vec::len).min().unwrap_or(0));
    let target = profile.half_width_target();
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    if let Some(repeats) = fixed {
        if n < repeats {
            return Decision::More { next_look: repeats };
        }
        let rule = format!("fixed: {n} repeats, as the plan sets");
        return Decision::Enough { rule, warnings: open_phases(values_per_primary, profile) };
    }
    let looks = profile.looks();
    if let Some(&next_look) = looks.iter().find(|look| **look > n)
        && !looks.contains(&n)
    {
        return Decision::More { next_look };
    }
    let warnings = open_phases(values_per_primary, profile);
    let next = looks.iter().find(|look| **look > n);
    if warnings.is_empty() && (next.is_none() || confirmed(values_per_primary, profile)) {
        let widest = widest(values_per_primary).unwrap_or(0.0);
        let again = match profile.looks_in_a_row() {
            1 => "",
            _ if next.is_none() => "",
            _ => ", and was so at the look before",
        };
        let rule = format!(
            "converged: after {n} repeats every phase is known to ±{} or better{again}; the target \
             is ±{}",
            percent(widest),
            percent(target.0)
        );
        return Decision::Enough { rule, warnings };
    }
    match next {
        Some(&next_look) => Decision::More { next_look },
        None => {
            let rule = format!(
                "cap: {n} repeats, the most that profile {} makes; {} of {} phases are wider \
                 than ±{}",
                profile.name(),
                warnings.len(),
                values_per_primary.len(),
                percent(target.0)
            );
            Decision::Enough { rule, warnings }
        }
    }
}

/// Closes a cell because the time for the run is used up, whether or not it is at a look: how long
/// a run took says nothing about its results, so closing it here chooses none.
///
/// The lists are those of [`decide`]; the answer is always [`Decision::Enough`]. Each phase that is
/// not within the profile's target carries its own warning and [`Warning::OverBudget`].
pub fn over_budget(values_per_primary: &[Vec<f64>], profile: Profile) -> Decision {
    let n = count(values_per_primary.iter().map(Vec::len).min().unwrap_or(0));
    let target = profile.half_width_target().0 * 100.0;
    let open: Vec<Vec<Warning>> = values_per_primary
        .iter()
        .map(|values| of_phase(values, profile))
        .filter(|own| !own.is_empty())
        .collect();
    let state = match (values_per_primary.len(), open.len()) {
        (0, _) => "nothing was measured".to_owned(),
        (_, 0) => format!("every phase is known to ±{target:.1} % or better"),
        (phases, open) => format!("{open} of {phases} phases are not known to ±{target:.1} %"),
    };
    let rule = format!("budget: the time for the run was used up after {n} repeats; {state}");
    let with_reason = |own: Vec<Warning>| own.into_iter().chain([Warning::OverBudget]);
    Decision::Enough { rule, warnings: open.into_iter().flat_map(with_reason).collect() }
}

/// The warnings that a summary earns under a profile: its own, and [`Warning::Wide`] when its
/// interval is wider than the target.
pub fn warnings(summary: &Summary, profile: Profile) -> Vec<Warning> {
    let mut warnings = summary.warnings.clone();
    let target = profile.half_width_target();
    if let Some(half_width) = summary.half_width().filter(|width| width.0 > target.0) {
        warnings.push(Warning::Wide { half_width, target });
    }
    warnings
}

/// Whether every phase was within the target at the looks before this one, too, as many as the
/// profile wants in a row.
fn confirmed(values_per_primary: &[Vec<f64>], profile: Profile) -> bool {
    let n = count(values_per_primary.iter().map(Vec::len).min().unwrap_or(0));
    let mut before = profile.looks().iter().rev().filter(|look| **look < n);
    (1..profile.looks_in_a_row()).all(|_| {
        before.next().is_some_and(|look| {
            let first = |values: &Vec<f64>| values.iter().take(*look as usize).copied().collect();
            let first: Vec<Vec<f64>> = values_per_primary.iter().map(first).collect();
            open_phases(&first, profile).is_empty()
        })
    })
}

/// One warning for each phase that is not within the target.
fn open_phases(values_per_primary: &[Vec<f64>], profile: Profile) -> Vec<Warning> {
    values_per_primary.iter().flat_map(|values| of_phase(values, profile)).collect()
}

/// What keeps a phase open. Values that cannot be summarized count as too few: they cannot
/// converge.
fn of_phase(values: &[f64], profile: Profile) -> Vec<Warning> {
    let needed = crate::summary::needed(crate::summary::LEVEL);
    match Summary::new(values) {
        Ok(summary) => warnings(&summary, profile),
        Err(_) => vec![Warning::Few { n: 0, needed }],
    }
}

/// The largest relative half-width of all phases.
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

    /// `n` values around 100 whose spread is `spread` percent to either side.
    fn values(n: u32, spread: f64) -> Vec<f64> {
        (0..n).map(|i| 100.0 + spread * (f64::from(i % 5) / 2.0 - 1.0)).collect()
    }

    #[test]
    fn the_first_look_is_waited_for() {
        let standard = Profile::Standard;
        assert_eq!(decide(&[], standard, None), Decision::More { next_look: 8 });
        assert_eq!(decide(&[values(7, 0.1)], standard, None), Decision::More { next_look: 8 });
        assert_eq!(decide(&[values(9, 0.1)], standard, None), Decision::More { next_look: 10 });
    }

    #[test]
    fn a_narrow_cell_closes_at_the_first_look() {
        let Decision::Enough { rule, warnings } =
            decide(&[values(8, 0.5), values(8, 1.0)], Profile::Standard, None)
        else {
            panic!("±1 % is within ±3 %");
        };
        assert!(warnings.is_empty());
        assert!(rule.starts_with("converged: after 8 repeats"), "{rule}");
        assert!(rule.ends_with("the target is ±3.0 %"), "{rule}");
    }

    #[test]
    fn a_rigorous_cell_closes_at_the_second_narrow_look_in_a_row() {
        let closed = |values: Vec<f64>| decide(&[values], Profile::Rigorous, None);
        assert_eq!(closed(values(10, 0.1)), Decision::More { next_look: 12 });
        let Decision::Enough { rule, warnings } = closed(values(12, 0.1)) else {
            panic!("narrow at 10 and at 12");
        };
        assert!(warnings.is_empty());
        assert!(rule.contains("or better, and was so at the look before; the target"), "{rule}");
        // Wide at 12, narrow at 15.
        let late: Vec<f64> = [90.0, 110.0].repeat(6).into_iter().chain([100.0; 40]).collect();
        let looks = [20, 25, 30, 40, 50].map(|n| (n, closed(late[..n].to_vec())));
        let first = looks.iter().find(|(_, decision)| matches!(decision, Decision::Enough { .. }));
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
        assert_eq!(decide(&both, Profile::Standard, None), Decision::More { next_look: 10 });
    }

    #[test]
    fn at_the_cap_the_wide_phase_is_named_by_its_width() {
        let both = [values(30, 0.5), values(30, 40.0)];
        let Decision::Enough { rule, warnings } = decide(&both, Profile::Standard, None) else {
            panic!("30 is the cap");
        };
        assert!(rule.contains("1 of 2 phases are wider than ±3.0 %"), "{rule}");
        let [Warning::Wide { half_width, target }] = warnings[..] else {
            panic!("one phase is wide: {warnings:?}");
        };
        assert!(half_width.0 > 0.03 && target == Ratio(0.03));
    }

    #[test]
    fn fixed_repeats_are_exact_and_too_few_are_said_so() {
        let three = [values(3, 0.5)];
        assert_eq!(decide(&three, Profile::Quick, Some(4)), Decision::More { next_look: 4 });
        let Decision::Enough { warnings, .. } = decide(&three, Profile::Quick, Some(3)) else {
            panic!("three of three");
        };
        assert_eq!(warnings, [Warning::Few { n: 3, needed: 6 }]);
    }

    #[test]
    fn over_budget_names_the_open_phases_and_nothing_else() {
        let all = [values(4, 0.5), values(9, 0.5), values(9, 40.0)];
        let Decision::Enough { rule, warnings } = over_budget(&all, Profile::Standard) else {
            panic!("a budget closes");
        };
        assert_eq!(
            rule,
            "budget: the time for the run was used up after 4 repeats; 2 of 3 phases are not known \
             to ±3.0 %"
        );
        let [few, Warning::OverBudget, wide, Warning::OverBudget] = &warnings[..] else {
            panic!("two phases are open: {warnings:?}");
        };
        assert_eq!(*few, Warning::Few { n: 4, needed: 6 });
        assert!(matches!(wide, Warning::Wide { .. }), "{wide:?}");
    }

    #[test]
    fn over_budget_closes_whatever_was_measured() {
        let closed = |values: &[Vec<f64>]| match over_budget(values, Profile::Standard) {
            Decision::Enough { rule, warnings } => (rule, warnings),
            Decision::More { .. } => panic!("a budget closes"),
        };
        let (rule, warnings) = closed(&[values(7, 0.5)]);
        assert!(rule.ends_with("every phase is known to ±3.0 % or better"), "{rule}");
        assert!(warnings.is_empty());
        let (rule, warnings) = closed(&[]);
        assert!(rule.ends_with("after 0 repeats; nothing was measured"), "{rule}");
        assert!(warnings.is_empty());
        let few = [Warning::Few { n: 0, needed: 6 }, Warning::OverBudget];
        for bad in [vec![], vec![f64::NAN; 9], vec![f64::INFINITY; 9]] {
            assert_eq!(closed(&[bad]).1, few);
        }
    }

    #[test]
    fn values_that_are_no_numbers_never_converge() {
        let bad = [vec![f64::NAN; 8]];
        assert_eq!(decide(&bad, Profile::Standard, None), Decision::More { next_look: 10 });
    }

    #[test]
    fn every_profile_ends() {
        for profile in Profile::ALL {
            let mut n = 0;
            while let Decision::More { next_look } = decide(&[values(n, 90.0)], profile, None) {
                assert!(next_look > n, "{} goes back from {n} to {next_look}", profile.name());
                n = next_look;
            }
            assert_eq!(Some(&n), profile.looks().last());
        }
    }
}
