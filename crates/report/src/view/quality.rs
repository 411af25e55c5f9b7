//! Quality of a run: A/A control, drift, carry-over, invalid trials, and outliers.
//!
//! [`RunQuality`] has the effective equivalence margin, which all tests use, and the text and
//! tables of the section. Warnings about the whole run are added to the collector. Outliers and
//! bimodal results are detected in [`super::points`]. The section has a table of results without
//! outliers.

mod drift;
mod invalid;

use analysis::{
    Comparer,
    aa::{self, AaNoise},
};
use model::{Metric, RunRecord, Warning, metric::Better, phase::Role};

use crate::{
    units::percent,
    view::{
        equivalence_margin::EquivalenceMargin,
        facts::{Filesystem, imported},
        points::{Suite, repetitions},
        sample_index::SampleIndex,
        tables::Table,
        warnings::WarningCollector,
    },
};

/// Fraction of A/A duplicates that differ significantly by chance.
const EXPECTED: f64 = 0.05;
/// Minimum number of A/A duplicates for an error rate. With fewer, the interval is too wide: for 0
/// of 5 it is [0, 52 %].
const AA_DUPLICATES_MIN: u32 = 6;

/// Method paragraph of the report.
pub(crate) const METHOD: &str = "\
    Run quality: an A/A duplicate is a cell that was measured a second time under another name, so \
    any difference between the two is noise. A duplicate differs if any of its tests does, \
    Holm-adjusted within the duplicate. If duplicates differ significantly, the equivalence margin \
    δ is raised to δ′, within which 95 % of the ratios of their tests are (all ratios, if there \
    are fewer than 20). Drift is tested on the logarithms of all values relative to the medians of \
    their cells: between rounds with the Kruskal-Wallis statistic, over the order of trials with \
    Spearman's, and after each filesystem with ranks, Holm-adjusted; p-values are from \
    permutations within cells. Outliers are labeled by their distance from the median in robust \
    standard deviations and are not removed. Trials are invalid because of predefined \
    disturbances, never because of their results; they are stored, listed here, and excluded from \
    all results.";

/// Section "Run quality" of the report.
#[derive(Clone, Debug)]
pub(crate) struct RunQuality {
    /// Equivalence margin, raised to the A/A noise.
    pub(crate) margin: EquivalenceMargin,
    /// True if rounds differ significantly and by more than half of the margin. Rankings then
    /// remove the common trend, provided there are enough other cells to estimate it.
    pub(crate) drifts: bool,
    /// True if the run may have drifted. Cells are then compared in common rounds only.
    pub(crate) suspected: bool,
    /// Text of the section, one sentence per subject.
    pub(crate) lines: Vec<String>,
    /// Drift and carry-over; invalid trials; sensitivity to outliers and invalid trials.
    pub(crate) tables: Vec<Table>,
}

impl RunQuality {
    /// Evaluates the A/A control and drift, and adds warnings about the whole run.
    pub(crate) fn new(
        sample_index: &SampleIndex,
        filesystems: &[Filesystem],
        collector: &mut WarningCollector,
    ) -> Self {
        let record = sample_index.record;
        let mut quality = Self {
            margin: EquivalenceMargin::of(record.info.profile),
            drifts: false,
            suspected: false,
            lines: Vec::new(),
            tables: Vec::new(),
        };
        if imported(record).is_some() {
            return quality;
        }
        quality.aa_duplicates(record, sample_index, collector);
        quality.drift(record, filesystems, sample_index, collector);
        quality.tables.extend(invalid::invalid(record, sample_index));
        quality
    }

    /// Adds the table of results without outliers and with invalid trials.
    pub(crate) fn with_numbers(
        &mut self,
        sample_index: &SampleIndex,
        suites: &[Suite],
        filesystems: &[Filesystem],
    ) {
        if imported(sample_index.record).is_some() {
            return;
        }
        self.tables.extend(invalid::sensitivity(suites, filesystems, sample_index));
    }

    /// True if the section has no content.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.tables.is_empty()
    }

    fn aa_duplicates(
        &mut self,
        record: &RunRecord,
        sample_index: &SampleIndex,
        collector: &mut WarningCollector,
    ) {
        let mut aa_duplicates = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        for (aa_duplicate, cell) in
            record.cells.iter().enumerate().filter(|(_, cell)| cell.cell.aa_duplicate)
        {
            let plain = model::Cell { aa_duplicate: false, ..cell.cell.clone() };
            let Some(first) = record.cells.iter().position(|other| other.cell == plain) else {
                continue;
            };
            let name = cell.cell.filesystem.name.as_str();
            if !names.contains(&name) {
                names.push(name);
            }
            let mut phases = Vec::new();
            for phase in cell.phases.iter().filter(|phase| phase.role == Role::Measure) {
                let of = |cell| repetitions(sample_index, cell, &phase.name, phase.primary);
                let better = phase.primary.spec().better;
                if better != Better::Neither {
                    phases.push((of(first), of(aa_duplicate), better));
                }
            }
            aa_duplicates.push(phases);
        }
        if names.is_empty() {
            return;
        }
        let nominal = self.margin;
        let noise = match aa::of_cells(&aa_duplicates, &mut Comparer::new(), nominal.ratio()) {
            Ok(noise) => noise,
            Err(absent) => {
                let names = names.join(", ");
                let text = format!("A/A control of {names} not evaluated: {absent}.");
                self.lines.push(text);
                return;
            }
        };
        self.margin = nominal.raised(aa::shown_margin(nominal.ratio(), Some(&noise)));
        if self.margin.is_raised() || noise.share.low > EXPECTED {
            let warning = Warning::AaDifference { noise: noise.ratio, threshold: nominal.ratio() };
            collector.add(&warning, "the whole run");
        }
        self.lines.push(aa_line(&noise, &names, nominal, self.margin));
    }

    fn drift(
        &mut self,
        record: &RunRecord,
        filesystems: &[Filesystem],
        sample_index: &SampleIndex,
        collector: &mut WarningCollector,
    ) {
        let found = match drift::of_run(record, filesystems, sample_index) {
            Ok(found) => found,
            // A run with so few results needs no message about the missing test.
            Err(None) => return,
            Err(Some(absent)) => {
                self.lines.push(format!("Drift not evaluated: {absent}."));
                return;
            }
        };
        self.drifts = found.is_detected(self.margin.ratio());
        self.suspected = self.drifts || found.suspected();
        if self.drifts {
            collector.add(&Warning::Drift { size: found.size, p: found.p }, "the whole run");
        }
        for carry in found.carry_over.iter().filter(|carry| carry.p < analysis::drift::SIGNIFICANCE)
        {
            let after = filesystems[carry.group].name.clone();
            let warning = Warning::CarryOver { after, size: carry.size, p: carry.p };
            collector.add(&warning, "the whole run");
        }
        self.lines.push(drift::line(&found, self.drifts, self.margin));
        self.tables.push(drift::table(&found, filesystems, self.margin));
    }
}

/// Result of the A/A control as a sentence.
fn aa_line(
    noise: &AaNoise,
    names: &[&str],
    nominal: EquivalenceMargin,
    effective: EquivalenceMargin,
) -> String {
    let share = f64::from(noise.cells_differing) / f64::from(noise.cells.max(1));
    let margin = match (effective.is_raised(), noise.ratio.0 > nominal.ratio().0) {
        (true, _) => format!("equivalence margin raised to {}", effective.label()),
        (false, true) => {
            format!("not significant, so the equivalence margin stays {}", nominal.label())
        }
        (false, false) => format!("equivalence margin {}", nominal.label()),
    };
    let few = match noise.cells {
        ..AA_DUPLICATES_MIN => "; too few duplicates for an error rate",
        AA_DUPLICATES_MIN.. => "",
    };
    let (tests, ratio) = (noise.pairs, percent(noise.ratio.0));
    let spread = match tests {
        1 => format!("the ratio is within ±{ratio}"),
        2..aa::FOR_PERCENTILE => format!("all {tests} ratios are within ±{ratio}"),
        _ => format!("95 % of {tests} ratios are within ±{ratio}"),
    };
    format!(
        "A/A control of {}: {} of {} duplicates differ significantly ({} [{} to {}], {} \
         expected by chance{few}); {spread}; {margin}.",
        names.join(", "),
        noise.cells_differing,
        noise.cells,
        percent(share),
        percent(noise.share.low),
        percent(noise.share.high),
        percent(EXPECTED),
    )
}

/// Direction of a metric; `None` if it has none.
fn direction(metric: Metric) -> Option<Better> {
    Some(metric.spec().better).filter(|better| *better != Better::Neither)
}

#[cfg(test)]
mod tests;
