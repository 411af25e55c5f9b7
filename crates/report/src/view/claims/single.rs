//! What one filesystem does by itself at one test, told in one sentence for all of them: C16, what
//! durability costs, and C21, what limits it.

use analysis::{
    Summary,
    summary::{LEVEL, needed},
};
use model::{Metric, Warning};

use super::{
    About, Answer, PointClaims, Withheld,
    ranked::{barred, cures},
};
use crate::{
    units::{percent, percents},
    view::points::Entry,
};

/// A device that had a request for this part of the time is called the limit. The same line as for
/// a processor (W-CPUBOUND).
const BUSY: f64 = 0.95;

/// All answers about single filesystems at one test.
pub(super) fn answers(about: &About, claims: &mut PointClaims) {
    let answers = [durability(about), limits(about)];
    claims.extend_quietly(answers.into_iter().flatten());
}

/// Why no sentence is made of any entry, if there is a reason that holds for the whole test.
pub(super) fn refused(about: &About, template: &'static str, question: &str) -> Option<Withheld> {
    let withheld = |missing: String, cure: String| {
        Some(about.withheld(template, question.to_owned(), missing, cure))
    };
    if about.test.entries.iter().any(|entry| entry.ranked) {
        return None;
    }
    let most = about.test.entries.iter().map(|entry| entry.values.len()).max().unwrap_or(0);
    let lacks = u32::try_from(most).is_ok_and(|most| most < needed(LEVEL));
    let cure = if lacks { format!("at least {} repeats", needed(LEVEL)) } else { cures(about) };
    let reasons = about
        .entries()
        .into_iter()
        .filter_map(|entry| Some(format!("{}: {}", about.name(entry), barred(entry)?.0)));
    let reasons: Vec<String> = reasons.collect();
    withheld(format!("no numbers that carry a claim ({})", reasons.join("; ")), cure)
}

/// C16: durable against accepted throughput of the same repeats.
fn durability(about: &About) -> Option<Answer> {
    let test = about.test;
    if (test.metric, test.counterpart) != (Metric::DurableThroughput, Some(Metric::Throughput)) {
        return None;
    }
    let question = format!("what making writes durable costs on {}", about.workload());
    if let Some(refused) = refused(about, "C16", &question) {
        return Some(Answer::Withheld(refused));
    }
    let mut told = Vec::new();
    let mut counts = Vec::new();
    for entry in about.entries().into_iter().filter(|entry| entry.ranked) {
        let Some(kept) = kept(about, entry) else { continue };
        let cost = kept.interval.map(|ends| analysis::Interval {
            low: 1.0 - ends.high,
            high: 1.0 - ends.low,
            level: ends.level,
        });
        // Without an interval above zero there is no cost to speak of.
        if cost.is_some_and(|cost| cost.low > 0.0) {
            told.push(format!("{} {}", about.name(entry), percents(1.0 - kept.median, cost)));
            counts.push(kept.n);
        }
    }
    let n = match (counts.iter().min()?, counts.iter().max()?) {
        (least, most) if least < most => format!("{least} to {most}"),
        (least, _) => least.to_string(),
    };
    let text = format!(
        "Making writes durable cost, of the accepted throughput on {}: {}; each repeat against \
         itself, n = {n}.",
        about.workload(),
        told.join(", ")
    );
    Some(about.said("C16", text))
}

/// Durable over accepted throughput of each repeat, if enough have both.
fn kept(about: &About, entry: &Entry) -> Option<Summary> {
    let of = |metric| about.pool.repeats(entry.cell, &about.test.name, metric);
    let accepted = of(Metric::Throughput);
    let ratios = of(Metric::DurableThroughput).into_iter().filter_map(|(block, durable)| {
        let (_, accepted) = accepted.iter().find(|(other, _)| *other == block)?;
        (*accepted > 0.0).then(|| durable / accepted)
    });
    Summary::new(&ratios.collect::<Vec<f64>>()).ok()
}

/// C21: what was busy for nearly all of the time.
fn limits(about: &About) -> Option<Answer> {
    let question = format!("what limits {}", about.workload());
    if let Some(refused) = refused(about, "C21", &question) {
        return Some(Answer::Withheld(refused));
    }
    let (mut known, mut unknown, mut busy) = (Vec::new(), Vec::new(), Vec::new());
    for entry in about.entries().into_iter().filter(|entry| entry.ranked) {
        let device = device(entry);
        busy.extend(device);
        match limit(about, entry, device) {
            Some(limit) => known.push(format!("{} by {limit}", about.name(entry))),
            None => unknown.push(about.name(entry)),
        }
    }
    if known.is_empty() {
        let device = match busy.iter().copied().reduce(f64::max) {
            Some(most) => format!("the busiest device had a request {} of the time", percent(most)),
            None => "what the devices did is not told".into(),
        };
        let missing = format!("no processor and no load generator was the limit, and {device}");
        return Some(Answer::Withheld(about.withheld("C21", question, missing, String::new())));
    }
    let unknown = match unknown.is_empty() {
        true => String::new(),
        false => format!("; unknown for {}", unknown.join(", ")),
    };
    let text = format!("Limited on {}: {}{unknown}.", about.workload(), known.join(", "));
    Some(about.said("C21", text))
}

/// The median part of the time in which the busiest device had a request.
fn device(entry: &Entry) -> Option<f64> {
    let busy = entry.metrics.iter().find(|(metric, _)| *metric == Metric::DeviceBusy);
    busy.map(|(_, summary)| summary.median)
}

/// What was the limit of one filesystem in most of its repeats, with the evidence.
fn limit(about: &About, entry: &Entry, device: Option<f64>) -> Option<String> {
    let warnings = about.pool.warnings(entry.cell, &about.test.name);
    let repeats = about.pool.measured(entry.cell).count();
    let most = |shares: &[f64]| shares.len() * 2 > repeats;
    let median = |shares: &[f64]| Summary::new(shares).map_or(0.0, |summary| summary.median);
    let (mut generator, mut processor, mut busiest) = (Vec::new(), Vec::new(), "");
    for warning in warnings {
        if let Warning::GeneratorBound { share, .. } = warning {
            generator.push(share.0);
        }
        if let Warning::CpuBound { who, share } = warning {
            processor.push(share.0);
            busiest = who;
        }
    }
    if most(&generator) {
        let share = percent(median(&generator));
        return Some(format!("the load generator ({share} of the workers’ time)"));
    }
    if most(&processor) {
        let share = percent(median(&processor));
        return Some(format!("a processor ({busiest} used it for {share} of the time)"));
    }
    let busy = device.filter(|busy| *busy >= BUSY)?;
    Some(format!("the device (it had a request for {} of the time)", percent(busy)))
}
