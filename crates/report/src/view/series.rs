//! One test at several workload points, for analyses over parameters and settings.

use std::collections::BTreeSet;

use analysis::{Comparer, Summary};
use model::Metric;

use super::{
    equivalence_margin::EquivalenceMargin,
    facts::Filesystem,
    points::{Entry, Status, Test, WorkPoint},
    quality::RunQuality,
    sample_index::SampleIndex,
    tables::{Table, TableCell, ValueCell, caches, directions, scale_of, value_cell},
};
use crate::{
    charts::data::SweepValue,
    units::{Scale, capital, span},
};

/// Run as the analyses over several points need it.
pub(super) struct Run<'a> {
    pub(super) filesystems: &'a [Filesystem],
    pub(super) sample_index: &'a SampleIndex<'a>,
    pub(super) margin: EquivalenceMargin,
    /// True if the run may have drifted.
    pub(super) suspected: bool,
    pub(super) seed: u64,
    pub(super) comparer: Comparer,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        sample_index: &'a SampleIndex<'a>,
        filesystems: &'a [Filesystem],
        quality: &RunQuality,
    ) -> Self {
        Self {
            filesystems,
            sample_index,
            margin: quality.margin,
            suspected: quality.suspected,
            seed: sample_index.record.info.seed,
            comparer: Comparer::new(),
        }
    }
}

/// One test at several points.
pub(super) struct TestSeries<'a> {
    pub(super) points: &'a [&'a WorkPoint],
    /// The test at each point.
    pub(super) tests: Vec<Option<&'a Test>>,
    pub(super) metric: Metric,
}

impl<'a> TestSeries<'a> {
    /// The test of this name; `None` if no point has it.
    pub(super) fn new(points: &'a [&'a WorkPoint], name: &str) -> Option<Self> {
        let tests: Vec<Option<&Test>> = points.iter().map(|point| point.test(name)).collect();
        let metric = tests.iter().flatten().next()?.metric;
        Some(Self { points, tests, metric })
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &'a Entry> + Clone {
        self.tests.iter().flatten().flat_map(|test| &test.entries)
    }

    fn summaries(&self) -> impl Iterator<Item = &'a Summary> + Clone {
        self.entries().filter_map(|entry| entry.summary.as_ref())
    }

    /// Common display scale of all medians.
    pub(super) fn scale(&self) -> Scale {
        scale_of(self.metric.spec().unit, self.summaries())
    }

    /// Repetitions per point and filesystem: `8`, or `8 to 12`.
    pub(super) fn repetitions(&self) -> String {
        repetitions(self.summaries())
    }

    /// Warning codes of all results.
    pub(super) fn codes(&self) -> BTreeSet<&'static str> {
        self.tests.iter().flatten().flat_map(|test| test.codes()).collect()
    }

    /// True if a filesystem has a value at any point.
    pub(super) fn has(&self, filesystem: usize) -> bool {
        self.entries().any(|entry| entry.filesystem == filesystem && entry.summary.is_some())
    }

    /// Filesystems without a value, with the reason.
    pub(super) fn absent(&self, filesystems: &[Filesystem]) -> Vec<(String, String)> {
        let all = filesystems.iter().enumerate().filter(|(index, _)| !self.has(*index));
        all.map(|(index, own)| (own.name.clone(), reason(self.points, index))).collect()
    }

    /// Median and interval of a filesystem at a point, in a display scale.
    pub(super) fn value(&self, at: usize, filesystem: usize, scale: Scale) -> Option<SweepValue> {
        let summary = self.tests[at]?.entry(filesystem)?.summary.as_ref()?;
        Some(SweepValue::of(summary, scale))
    }

    /// Cell of a filesystem at a point, in a display scale.
    pub(super) fn cell(&self, at: usize, filesystem: usize, scale: Scale) -> TableCell {
        let Some(entry) = self.tests[at].and_then(|test| test.entry(filesystem)) else {
            return TableCell::Text("not in the plan".into());
        };
        match value_cell(entry, entry.summary.as_ref(), scale, true) {
            TableCell::Value(value) => {
                TableCell::Value(ValueCell { note: entry.failed_repetitions(), ..value })
            }
            text @ TableCell::Text(_) => text,
        }
    }

    /// Table of medians: completes the caption of a table whose rows are points and whose columns
    /// are filesystems. `sizes` are the sizes of the workload, `withheld` the reason for missing
    /// findings.
    pub(super) fn medians(
        &self,
        mut table: Table,
        margin: EquivalenceMargin,
        (sizes, withheld): (Option<String>, Option<String>),
        absent: &[(String, String)],
    ) -> Table {
        table.caption.push(capital(&directions(std::iter::once(self.metric))));
        table.caption.extend(sizes.filter(|sizes| !sizes.is_empty()));
        table.caption.extend(self.points.first().and_then(|point| point.load.first().cloned()));
        table.caption.extend(caches(&self.tests.iter().flatten().copied().collect::<Vec<_>>()));
        table.state_n();
        if table.has_top() {
            let margin = margin.label();
            table.caption.push(format!("▲ top group of the row (Holm-adjusted, {margin})"));
        }
        table.caption.extend(withheld);
        let text = |(name, reason): &(String, String)| format!("not measured: {name}, {reason}");
        table.caption.extend(absent.iter().map(text));
        table
    }
}

/// Number of repetitions of some summaries: `8`, or `8 to 12`.
pub(super) fn repetitions<'a>(summaries: impl Iterator<Item = &'a Summary> + Clone) -> String {
    span(summaries.map(|summary| summary.n))
}

/// Reason why a filesystem has no result at any of these points: that of the first point at which
/// the plan has the filesystem.
pub(super) fn reason(points: &[&WorkPoint], filesystem: usize) -> String {
    match points.iter().find_map(|point| point.statuses[filesystem].as_ref()) {
        Some(Status::Nothing(reason)) => reason.clone(),
        Some(Status::Measured) | None => "not in the plan".into(),
    }
}
