//! What the run says about itself: what chance makes of two cells of the same, whether all cells
//! moved together, and which repeats were spoiled or lie far from the others.
//!
//! The record enters; a [`Control`] leaves, with the threshold that everything else is judged by,
//! warnings about the whole run, sentences, and small tables. It looks at whole repeats and at
//! twins; what is said about single numbers (outliers, two modes) is found with them, in
//! [`super::points`], and collected here.

mod drift;
mod spoiled;

use analysis::{
    Comparer,
    twins::{self, Noise},
};
use model::{Metric, RunRecord, Warning, metric::Better, phase::Role};

use crate::{
    units::percent,
    view::{
        facts::{Filesystem, imported},
        points::{Suite, repeats},
        pool::Pool,
        tables::Table,
        threshold::Threshold,
        warnings::Register,
    },
};

/// Twins are called apart this often by chance.
const EXPECTED: f64 = 0.05;
/// With fewer twins even none that differs leaves more than half open: 0 of 5 is [0, 52 %].
const TWINS_MIN: u32 = 6;

/// How it was done, for the notes of the report.
pub(crate) const METHOD: &str = "\
    The control: twins are cells that were measured twice, the second time under another name; \
    what they differ by is chance. A twin differs if any of its tests does, by Holm's correction \
    within it. Where twins are shown to differ, the threshold δ′ is δ or what 95 % of the ratios \
    of their tests stay within (of fewer than 20, the largest), if that is more. Drift is \
    looked for in the logarithms of all values over the medians of their cells: over blocks by the \
    statistic of Kruskal and Wallis, over the order of trials by Spearman’s, \
    after each filesystem by ranks with Holm’s correction, each against permutations within \
    cells. Outliers are labelled by their distance from the median in robust standard \
    deviations, and stay. Repeats are invalid for what the machine did, never for their results; \
    they are kept, counted here, and left out of all numbers.";

/// What the run says about itself.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    /// The smallest difference that matters, noise of the twins included.
    pub(crate) threshold: Threshold,
    /// Blocks are called apart, by more than half of the threshold, so rankings take out what all
    /// other cells moved by, where there are enough of them.
    pub(crate) drifts: bool,
    /// The run may have drifted, so that cells are compared in the blocks that both have.
    pub(crate) suspected: bool,
    /// Sentences, the gravest not first but in the order of their subjects.
    pub(crate) lines: Vec<String>,
    /// Drift and order; invalid repeats; numbers with and without what is doubtful.
    pub(crate) tables: Vec<Table>,
}

impl Control {
    /// Looks at twins and at drift, and notes warnings about the whole run.
    pub(crate) fn new(pool: &Pool, filesystems: &[Filesystem], register: &mut Register) -> Self {
        let record = pool.record;
        let asked = Threshold::of(record.info.profile);
        let mut control = Self {
            threshold: asked,
            drifts: false,
            suspected: false,
            lines: Vec::new(),
            tables: Vec::new(),
        };
        if imported(record).is_some() {
            return control;
        }
        control.twins(record, pool, register);
        control.drift(record, filesystems, pool, register);
        control.tables.extend(spoiled::invalid(record, pool));
        control
    }

    /// Adds what was found with the numbers: the same without outliers, and with invalid repeats.
    pub(crate) fn with_numbers(
        &mut self,
        pool: &Pool,
        suites: &[Suite],
        filesystems: &[Filesystem],
    ) {
        if imported(pool.record).is_some() {
            return;
        }
        self.tables.extend(spoiled::both(suites, filesystems, pool));
    }

    /// Whether there is anything to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.tables.is_empty()
    }

    fn twins(&mut self, record: &RunRecord, pool: &Pool, register: &mut Register) {
        let mut twins = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        for (twin, cell) in record.cells.iter().enumerate().filter(|(_, cell)| cell.cell.twin) {
            let plain = model::Cell { twin: false, ..cell.cell.clone() };
            let Some(first) = record.cells.iter().position(|other| other.cell == plain) else {
                continue;
            };
            let name = cell.cell.filesystem.name.as_str();
            if !names.contains(&name) {
                names.push(name);
            }
            let mut phases = Vec::new();
            for phase in cell.phases.iter().filter(|phase| phase.role == Role::Measure) {
                let of = |cell| repeats(pool, cell, &phase.name, phase.primary);
                let better = phase.primary.spec().better;
                if better != Better::Neither {
                    phases.push((of(first), of(twin), better));
                }
            }
            twins.push(phases);
        }
        if names.is_empty() {
            return;
        }
        let asked = self.threshold;
        let noise = match twins::of_cells(&twins, &mut Comparer::new(), asked.ratio()) {
            Ok(noise) => noise,
            Err(absent) => {
                let text = format!("Twins of {} tell nothing yet: {absent}.", names.join(", "));
                self.lines.push(text);
                return;
            }
        };
        self.threshold = asked.raised(twins::shown_threshold(asked.ratio(), Some(&noise)));
        if self.threshold.is_raised() || noise.share.low > EXPECTED {
            let warning = Warning::TwinsDiffer { noise: noise.ratio, threshold: asked.ratio() };
            register.add(&warning, "the whole run");
        }
        self.lines.push(told(&noise, &names, asked, self.threshold));
    }

    fn drift(
        &mut self,
        record: &RunRecord,
        filesystems: &[Filesystem],
        pool: &Pool,
        register: &mut Register,
    ) {
        let found = match drift::of_run(record, filesystems, pool) {
            Ok(found) => found,
            // Nothing was measured, or hardly anything: nobody expects it to tell of drift.
            Err(None) => return,
            Err(Some(absent)) => {
                self.lines.push(format!("Whether the run drifted is not told: {absent}."));
                return;
            }
        };
        self.drifts = found.fires(self.threshold.ratio());
        self.suspected = self.drifts || found.suspected();
        if self.drifts {
            register.add(&Warning::Drift { size: found.size, p: found.p }, "the whole run");
        }
        for carry in found.carry.iter().filter(|carry| carry.p < analysis::drift::FIRES) {
            let after = filesystems[carry.group].name.clone();
            let warning = Warning::CarryOver { after, size: carry.size, p: carry.p };
            register.add(&warning, "the whole run");
        }
        self.lines.push(drift::told(&found, self.drifts, self.threshold));
        self.tables.push(drift::table(&found, filesystems, self.threshold));
    }
}

/// What twins say, in a sentence.
fn told(noise: &Noise, names: &[&str], asked: Threshold, working: Threshold) -> String {
    let share = f64::from(noise.cells_differing) / f64::from(noise.cells.max(1));
    let therefore = match (working.is_raised(), noise.ratio.0 > asked.ratio().0) {
        (true, _) => format!("more than {}, so {} here", asked.words(), working.words()),
        (false, true) => format!(
            "which is chance that the intervals hold, as no difference is shown; the threshold \
             stays {}",
            asked.words()
        ),
        (false, false) => format!("so the threshold stays {}", asked.words()),
    };
    let few = match noise.cells {
        ..TWINS_MIN => " (too few twins to tell how often)",
        TWINS_MIN.. => "",
    };
    let (tests, ratio) = (noise.pairs, percent(noise.ratio.0));
    let spread = match tests {
        1 => format!("the ratio of their one test is {ratio} from 1"),
        2..twins::FOR_PERCENTILE => {
            format!("the largest of the {tests} ratios of their tests is {ratio} from 1")
        }
        _ => format!("95 % of the ratios of their {tests} tests are within ±{ratio}"),
    };
    format!(
        "Twins of {}: {} of {} differed from the same measured again, {} [{} to {}], where chance \
         alone is expected to make {}{few}; {spread}, {therefore}.",
        names.join(", "),
        noise.cells_differing,
        if noise.cells == 1 { "1 twin".into() } else { format!("{} twins", noise.cells) },
        percent(share),
        percent(noise.share.low),
        percent(noise.share.high),
        percent(EXPECTED),
    )
}

/// The metric a phase of a cell is judged by, if it points anywhere.
fn judged(metric: Metric) -> Option<Better> {
    Some(metric.spec().better).filter(|better| *better != Better::Neither)
}

#[cfg(test)]
mod tests;
