//! Comparison of filesystems with the block device without a filesystem (level `none`).
//!
//! The device is a reference, not a filesystem: it is not ranked. In each test, every ranked
//! filesystem is compared with it by the rules of the run.

use crate::view::FindingKind;
use analysis::{Comparer, Interval};
use model::metric::Unit;

use super::{
    findings::{Answer, TestContext, disagreement},
    points::{Entry, Rules, Test, ranking},
};
use crate::units::{count, ratio};

/// Method paragraph of the report.
pub(crate) const METHOD: &str = "\
    Block device: level `none` is the device without a filesystem. It is a reference and not \
    ranked. The ratio of a filesystem to it is the Hodges–Lehmann estimate with the interval of \
    the inverted test, not adjusted; below 1, the filesystem is slower than its device.";

/// Reason why the device has no rank.
pub(crate) const REFERENCE: &str = "reference: the block device without a filesystem";

/// A filesystem relative to the block device.
#[derive(Clone, Debug)]
pub(crate) struct OverDevice {
    /// Index of the filesystem.
    pub(crate) filesystem: usize,
    /// Speed, or guest instructions, relative to the device.
    pub(crate) ratio: f64,
    /// Confidence interval of the ratio.
    pub(crate) interval: Option<Interval>,
    /// Repetitions of the filesystem and of the device.
    n: (usize, usize),
}

impl OverDevice {
    /// `×0.931 [0.925, 0.937]`.
    pub(crate) fn text(&self) -> String {
        ratio(self.ratio, self.interval)
    }
}

/// Ratios of all ranked filesystems of a test to the device. Empty without the device, and without
/// filesystems whose estimates of the ratio agree.
pub(super) fn over_device(
    test: &Test,
    comparer: &mut Comparer,
    rules: &Rules<'_>,
) -> Vec<OverDevice> {
    let Some(device) = test.entries.iter().find(|entry| entry.raw && entry.ranked) else {
        return Vec::new();
    };
    let fewer = test.metric.spec().unit == Unit::Instructions;
    let of = |entry: &Entry| {
        let own = ranking(comparer, &[device, entry], test.metric.spec().better, rules)?.ranking;
        let pair = own.pairs.first()?;
        if disagreement(&pair.comparison).is_some() {
            return None;
        }
        // A ratio above 1 favors the better one. With instructions, the better one has fewer.
        let turned = (pair.better == 0) != fewer;
        let turn = |value: f64| if turned { 1.0 / value } else { value };
        let ends = pair.comparison.interval.map(|ends| {
            let (low, high) = (turn(ends.low), turn(ends.high));
            Interval { low: low.min(high), high: low.max(high), level: ends.level }
        });
        Some(OverDevice {
            filesystem: entry.filesystem,
            ratio: turn(pair.comparison.ratio.0),
            interval: ends,
            n: (entry.values.len(), device.values.len()),
        })
    };
    test.entries.iter().filter(|entry| entry.ranked && !entry.raw).filter_map(of).collect()
}

/// C23: the ratio of each filesystem to the device.
pub(super) fn answer(context: &TestContext) -> Option<Answer> {
    let test = context.test;
    let text = text(test, &|at| context.filesystems[at].name.clone())?;
    Some(context.found(FindingKind::C23, format!("{text} on {}{}.", context.workload(), n(test))))
}

/// Finding of the first page: the ratios in one test, and the natural logarithm of the largest.
pub(super) fn line(
    test: &Test,
    title: &str,
    name: &dyn Fn(usize) -> String,
) -> Option<(f64, String)> {
    let effects = test.over_device.iter().map(|own| own.ratio.ln().abs());
    let text = text(test, name)?;
    Some((effects.reduce(f64::max)?, format!("{text} in {title}.")))
}

/// `Speed relative to the block device: ext4 ×0.931 [0.925, 0.937]`.
fn text(test: &Test, name: &dyn Fn(usize) -> String) -> Option<String> {
    let each = test.over_device.iter();
    let each = each.map(|own| format!("{} {}", name(own.filesystem), own.text()));
    let each: Vec<String> = each.collect();
    let fewer = test.metric.spec().unit == Unit::Instructions;
    let what = if fewer { "Guest instructions" } else { "Speed" };
    (!each.is_empty()).then(|| format!("{what} relative to the block device: {}", each.join(", ")))
}

/// ` (n = 8 to 10 repetitions)`.
fn n(test: &Test) -> String {
    let all = || test.over_device.iter().flat_map(|own| [own.n.0, own.n.1]);
    match (all().min(), all().max()) {
        (Some(least), Some(most)) if least == most => {
            format!(" (n = {})", count(most, "repetition"))
        }
        (Some(least), Some(most)) => format!(" (n = {least} to {most} repetitions)"),
        _ => String::new(),
    }
}
