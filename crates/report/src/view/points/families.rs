//! Ranking of the filesystems of each test.
//!
//! Sets the family of each test, and the letters, top group, and order of its entries. Tests are
//! independent and ranked in parallel. The result does not depend on the number of CPUs.

use analysis::{Comparer, Ranking, Repetition, blocks, ranks};
use model::{Ratio, Warning, metric::Better};
use rayon::prelude::*;

use super::{Entry, Family, Suite, Test, aligned::Scores};
use crate::view::{raw, warnings::WarningCollector};

/// Minimum number of tests ranked with one comparer, so that they share its cached tables.
const AT_ONCE: usize = 16;

/// Rules of comparison of a run.
pub(in crate::view) struct Rules<'a> {
    /// Effective equivalence margin.
    pub(super) margin: Ratio,
    /// Scores for alignment by round, if the run drifted.
    pub(super) scores: Option<&'a Scores>,
    /// True if the run may have drifted.
    pub(super) suspected: bool,
}

/// Ranks all tests of the suites, and collects warnings about estimates that disagree.
pub(super) fn rank(suites: &mut [Suite], rules: &Rules<'_>, collector: &mut WarningCollector) {
    let points = suites.iter_mut().flat_map(|suite| &mut suite.points);
    let mut tests: Vec<&mut Test> = points.flat_map(|point| &mut point.tests).collect();
    let Some((first, others)) = tests.split_first_mut() else { return };
    let mut comparer = Comparer::new();
    first.compare(&mut comparer, rules);
    // Most tests have the same number of repetitions as the first and reuse its tables.
    let comparer = || comparer.clone();
    others.into_par_iter().with_min_len(AT_ONCE).for_each_init(comparer, |comparer, test| {
        test.compare(comparer, rules);
    });
    let points = suites.iter().flat_map(|suite| &suite.points);
    for (point, test) in points.flat_map(|point| point.tests.iter().map(move |test| (point, test)))
    {
        let pairs = test.family.iter().flat_map(|family| &family.ranking.pairs);
        for warning in pairs.flat_map(|pair| &pair.comparison.warnings) {
            if matches!(warning, Warning::EstimatesDisagree { .. }) {
                collector.add(warning, &format!("{} · {}", point.label, test.name));
            }
        }
    }
}

/// Ranking of some entries.
pub(in crate::view) struct Ranked {
    pub(in crate::view) ranking: Ranking,
    /// As [`Family::aligned`].
    pub(super) aligned: bool,
    /// As [`Family::shared`].
    pub(super) shared: bool,
}

/// Ranks some entries of one metric; `None` if fewer than two are given, or a value is not
/// positive.
pub(in crate::view) fn ranking(
    comparer: &mut Comparer,
    entries: &[&Entry],
    better: Better,
    rules: &Rules<'_>,
) -> Option<Ranked> {
    let margin = rules.margin;
    let raw: Vec<&[Repetition]> = entries.iter().map(|it| it.repetitions.as_slice()).collect();
    let cells: Vec<usize> = entries.iter().map(|entry| entry.cell).collect();
    let aligned = rules.scores.and_then(|scores| scores.align(&cells, &raw, better));
    let lists: Option<Vec<&[Repetition]>> =
        aligned.as_ref().map(|lists| lists.iter().map(Vec::as_slice).collect());
    let shared = rules.suspected && aligned.is_none() && blocks::unequal(&raw);
    if raw.len() < 2 {
        return None;
    }
    let ranking = match &lists {
        Some(lists) => ranks::rank_repetitions(comparer, lists, better, margin),
        None if shared => ranks::rank_shared(comparer, &raw, better, margin),
        None => ranks::rank_repetitions(comparer, &raw, better, margin),
    };
    Some(Ranked { ranking: ranking.ok()?, aligned: aligned.is_some(), shared })
}

impl Test {
    fn compare(&mut self, comparer: &mut Comparer, rules: &Rules<'_>) {
        self.family = self.rank(comparer, rules);
        self.over_device = raw::over_device(self, comparer, rules);
    }

    /// Ranks the eligible entries, sets their letters and top group, and sorts all entries into
    /// display order.
    fn rank(&mut self, comparer: &mut Comparer, rules: &Rules<'_>) -> Option<Family> {
        let entries = &mut self.entries;
        let is_eligible = |i: &usize| entries[*i].ranked && !entries[*i].raw;
        let eligible: Vec<usize> = (0..entries.len()).filter(is_eligible).collect();
        let compared: Vec<&Entry> = eligible.iter().map(|index| &entries[*index]).collect();
        let ranked = ranking(comparer, &compared, self.metric.spec().better, rules);
        let Some(Ranked { ranking, aligned, shared }) = ranked else {
            entries.sort_by_key(|entry| entry.summary.is_none());
            return None;
        };
        for (member, index) in eligible.iter().enumerate() {
            entries[*index].letters.clone_from(&ranking.letters[member]);
            entries[*index].top = ranking.top.contains(&member);
        }
        let mut order: Vec<usize> = ranking.order.iter().map(|member| eligible[*member]).collect();
        let others = |i: &usize| !eligible.contains(i) && entries[*i].summary.is_some();
        order.extend((0..entries.len()).filter(others));
        order.extend((0..entries.len()).filter(|i| entries[*i].summary.is_none()));
        let members = eligible
            .iter()
            .filter_map(|index| order.iter().position(|other| other == index))
            .collect();
        *entries = order.into_iter().map(|index| entries[index].clone()).collect();
        Some(Family { members, ranking, aligned, shared })
    }
}
