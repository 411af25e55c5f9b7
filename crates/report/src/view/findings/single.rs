//! Findings C16 (cost of durability) and C21 (bottleneck). They describe each filesystem
//! separately, and one finding lists all filesystems of a test.

use crate::view::FindingKind;
use analysis::{
    Summary,
    summary::{LEVEL, needed},
};
use model::{Metric, Warning};

use super::{
    Answer, PointFindings, TestContext, WithheldFinding, obstacle::Obstacle, ranked::hints,
};
use crate::{
    units::{percent, percents, span},
    view::points::Entry,
};

/// Minimum utilization of a device that is a bottleneck. Warning `cpu-bound` has the same limit for
/// a CPU.
const BUSY: f64 = 0.95;

/// Adds the findings about single filesystems at one test.
pub(super) fn answers(context: &TestContext, findings: &mut PointFindings) {
    let answers = [durability(context), limits(context)];
    findings.extend_on_request(answers.into_iter().flatten());
}

/// Withheld finding of a test without ranked entries; `None` if any entry is ranked.
pub(super) fn refused(
    context: &TestContext,
    kind: FindingKind,
    question: &str,
) -> Option<WithheldFinding> {
    if context.test.entries.iter().any(|entry| entry.ranked) {
        return None;
    }
    let most = context.test.entries.iter().map(|entry| entry.values.len()).max().unwrap_or(0);
    let lacks = u32::try_from(most).is_ok_and(|most| most < needed(LEVEL));
    let hint = match lacks {
        true => format!("run at least {} repetitions of each filesystem", needed(LEVEL)),
        false => hints(context),
    };
    let reasons = context.entries().into_iter().filter_map(|entry| {
        Some(format!("{}: {}", context.name(entry), Obstacle::of(entry)?.reason(entry)))
    });
    let reasons: Vec<String> = reasons.collect();
    let reason = format!("no usable results ({})", reasons.join("; "));
    Some(context.withheld(kind, question.to_owned(), reason, hint))
}

/// C16: part of the accepted throughput that durability costs, paired within repetitions. `None`
/// for tests without both rates, or if no filesystem has a significant cost.
fn durability(context: &TestContext) -> Option<Answer> {
    let test = context.test;
    if (test.metric, test.counterpart) != (Metric::DurableThroughput, Some(Metric::Throughput)) {
        return None;
    }
    let question = format!("cost of durability on {}", context.workload());
    if let Some(refused) = refused(context, FindingKind::C16, &question) {
        return Some(Answer::Withheld(refused));
    }
    let mut results = Vec::new();
    let mut counts = Vec::new();
    for entry in context.entries().into_iter().filter(|entry| entry.ranked) {
        let Some(kept) = kept(context, entry) else { continue };
        let cost = kept.interval.map(|ends| analysis::Interval {
            low: 1.0 - ends.high,
            high: 1.0 - ends.low,
            level: ends.level,
        });
        // A cost is significant if its interval is above zero.
        if cost.is_some_and(|cost| cost.low > 0.0) {
            results.push(format!("{} {}", context.name(entry), percents(1.0 - kept.median, cost)));
            counts.push(kept.n);
        }
    }
    if counts.is_empty() {
        return None;
    }
    let n = span(counts.into_iter());
    let text = format!(
        "Cost of durability on {} in percent of accepted throughput: {} (paired within \
         repetitions, n = {n}).",
        context.workload(),
        results.join(", ")
    );
    Some(context.found(FindingKind::C16, text))
}

/// Ratio of durable to accepted throughput, paired within repetitions; `None` without any pair.
fn kept(context: &TestContext, entry: &Entry) -> Option<Summary> {
    let of = |metric| context.sample_index.repetitions(entry.cell, &context.test.name, metric);
    let accepted = of(Metric::Throughput);
    let ratios = of(Metric::DurableThroughput).into_iter().filter_map(|(block, durable)| {
        let (_, accepted) = accepted.iter().find(|(other, _)| *other == block)?;
        (*accepted > 0.0).then(|| durable / accepted)
    });
    Summary::new(&ratios.collect::<Vec<f64>>()).ok()
}

/// C21: resource that was in use for almost all of the time.
fn limits(context: &TestContext) -> Option<Answer> {
    let question = format!("bottleneck on {}", context.workload());
    if let Some(refused) = refused(context, FindingKind::C21, &question) {
        return Some(Answer::Withheld(refused));
    }
    let (mut known, mut unknown, mut busy) = (Vec::new(), Vec::new(), Vec::new());
    for entry in context.entries().into_iter().filter(|entry| entry.ranked) {
        let device = device(entry);
        busy.extend(device);
        match limit(context, entry, device) {
            Some(limit) => known.push(format!("{}: {limit}", context.name(entry))),
            None => unknown.push(context.name(entry)),
        }
    }
    if known.is_empty() {
        let device = match busy.iter().copied().reduce(f64::max) {
            Some(most) => format!("the busiest device was {} utilized", percent(most)),
            None => "device utilization is not available".into(),
        };
        let reason = format!("neither CPU nor load generator was the bottleneck, and {device}");
        return Some(Answer::Withheld(context.withheld(
            FindingKind::C21,
            question,
            reason,
            String::new(),
        )));
    }
    let unknown = match unknown.is_empty() {
        true => String::new(),
        false => format!("; unknown for {}", unknown.join(", ")),
    };
    let text = format!("Bottleneck on {}: {}{unknown}.", context.workload(), known.join("; "));
    Some(context.found(FindingKind::C21, text))
}

/// Median utilization of the busiest device.
fn device(entry: &Entry) -> Option<f64> {
    let busy = entry.metrics.iter().find(|(metric, _)| *metric == Metric::DeviceUtilization);
    busy.map(|(_, summary)| summary.median)
}

/// Bottleneck of one filesystem, with its utilization; `None` if unknown. Load generator and CPU
/// are bottlenecks if more than half of the repetitions have the warning. A device is a bottleneck
/// if its median utilization is at least [`BUSY`].
fn limit(context: &TestContext, entry: &Entry, device: Option<f64>) -> Option<String> {
    let warnings = context.sample_index.warnings(entry.cell, &context.test.name);
    let repetitions = context.sample_index.measured(entry.cell).count();
    let most = |shares: &[f64]| shares.len() * 2 > repetitions;
    let median = |shares: &[f64]| Summary::new(shares).map_or(0.0, |summary| summary.median);
    let (mut generator, mut cpu, mut busiest) = (Vec::new(), Vec::new(), "");
    for warning in warnings {
        if let Warning::GeneratorBound { share, .. } = warning {
            generator.push(share.0);
        }
        if let Warning::CpuBound { who, share } = warning {
            cpu.push(share.0);
            busiest = who;
        }
    }
    if most(&generator) {
        let share = percent(median(&generator));
        return Some(format!("load generator ({share} of worker time)"));
    }
    if most(&cpu) {
        let share = percent(median(&cpu));
        return Some(format!("CPU ({busiest}, {share} of one CPU)"));
    }
    let busy = device.filter(|busy| *busy >= BUSY)?;
    Some(format!("device ({} utilized)", percent(busy)))
}
