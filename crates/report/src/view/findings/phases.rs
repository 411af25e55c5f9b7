//! Findings from the rate over time: C14 (sustained rate) and C17 (source of variance: within a
//! repetition or between repetitions). One finding lists all filesystems of a test.
//!
//! A test is analyzed only if the rate of at least one repetition was recorded in 100 intervals.

use crate::view::FindingKind;
use analysis::{
    Summary,
    variance::{self, Instance},
    warmup::{self, RateProfile, Shape},
};
use model::{Warning, phase::Series};

use super::{Answer, PointFindings, TestContext, single::refused};
use crate::{
    units::{alone, count, percents},
    view::points::Entry,
};

/// Number of windows of equal length per repetition.
const WINDOWS: usize = 10;
/// Minimum number of intervals per window.
const INTERVALS_MIN: usize = 10;

/// Adds the findings about the rate over time of one test.
pub(super) fn answers(context: &TestContext, findings: &mut PointFindings) {
    let long = |entry: &&Entry| {
        let mut all = series(context, entry);
        all.any(|series| series.ops.len() >= WINDOWS * INTERVALS_MIN)
    };
    if context.test.entries.iter().any(|entry| long(&entry)) {
        findings.extend_on_request([sustained(context), variation(context)]);
    }
}

/// Rate over time of each measured repetition.
fn series<'a>(context: &TestContext<'a>, entry: &Entry) -> impl Iterator<Item = &'a Series> {
    let name = &context.test.name;
    let trials = context.sample_index.measured(entry.cell).flat_map(|trial| &trial.series);
    trials
        .filter(move |(phase, _)| phase == name)
        .map(|(_, series)| series)
        .collect::<Vec<_>>()
        .into_iter()
}

/// C14: sustained rate relative to the initial rate, if the rate changes in most repetitions.
fn sustained(context: &TestContext) -> Answer {
    let question = format!("sustained rate on {}", context.workload());
    let what = format!("Sustained rate on {} relative to the initial rate", context.workload());
    of_each(context, FindingKind::C14, (question, what), |entry| sustained_by(context, entry))
}

/// Finding that lists the results of all ranked filesystems that have one. Withheld with the
/// reasons if none has.
fn of_each(
    context: &TestContext,
    kind: FindingKind,
    (question, what): (String, String),
    result: impl Fn(&Entry) -> Result<String, String>,
) -> Answer {
    if let Some(refused) = refused(context, kind, &question) {
        return Answer::Withheld(refused);
    }
    let (mut results, mut open) = (Vec::new(), Vec::new());
    for entry in context.entries().into_iter().filter(|entry| entry.ranked) {
        match result(entry) {
            Ok(text) => results.push(format!("{} {text}", context.name(entry))),
            Err(why) => open.push(format!("{}: {why}", context.name(entry))),
        }
    }
    match results.is_empty() {
        true => Answer::withheld(kind, &context.test.id, question, open.join("; "), ""),
        false => context.found(kind, format!("{what}: {}.", results.join(", "))),
    }
}

/// `62 % [58 to 65 %] after 12 s (in 6 of 8 repetitions)`, or the reason for withholding it. More
/// than half of the repetitions must settle at another rate, because the others have no sustained
/// rate.
fn sustained_by(context: &TestContext, entry: &Entry) -> Result<String, String> {
    let profile = context.facts.profile;
    let profiles: Result<Vec<RateProfile>, _> =
        series(context, entry).map(|series| warmup::rate_profile(series, profile)).collect();
    let profiles = profiles.map_err(|absent| absent.to_string())?;
    let all = profiles.len();
    let settled: Vec<(f64, f64)> = profiles
        .iter()
        .filter(|profile| profile.shape != Shape::Flat && profile.burst > 0.0)
        .filter_map(|profile| Some((profile.steady? / profile.burst, profile.until?.seconds())))
        .collect();
    let flat = profiles.iter().filter(|profile| profile.shape == Shape::Flat).count();
    if flat * 2 > all {
        let all = count(all, "repetition");
        return Err(format!("the rate did not change in {flat} of {all}"));
    }
    if settled.len() * 2 <= all {
        let (settled, all) = (settled.len(), count(all, "repetition"));
        return Err(format!("only {settled} of {all} settled at another rate"));
    }
    let shares: Vec<f64> = settled.iter().map(|(share, _)| *share).collect();
    let times: Vec<f64> = settled.iter().map(|(_, until)| *until * 1e9).collect();
    let summary = Summary::new(&shares).ok().filter(|summary| summary.interval.is_some());
    match (summary, Summary::new(&times)) {
        (Some(summary), Ok(until)) => Ok(format!(
            "{} after {} (in {} of {all} repetitions)",
            percents(summary.median, summary.interval),
            alone(model::metric::Unit::Nanoseconds, until.median),
            summary.n
        )),
        (None, _) | (_, Err(_)) => {
            Err(format!("{} settled repetitions are too few for an interval", settled.len()))
        }
    }
}

/// C17: share of the variance that is between repetitions, each on a newly created filesystem. The
/// rest is between windows of a repetition.
fn variation(context: &TestContext) -> Answer {
    let question = format!("source of variance on {}", context.workload());
    let ranked = context.test.entries.iter().any(|entry| entry.ranked);
    if context.suspected && ranked {
        let reason = "the run may have drifted, and drift is variance between repetitions".into();
        let hint = "use a quieter machine".into();
        return Answer::Withheld(context.withheld(FindingKind::C17, question, reason, hint));
    }
    let what = format!("Share of the variance on {} between repetitions", context.workload());
    of_each(context, FindingKind::C17, (question, what), |entry| variation_of(context, entry))
}

/// Share of the variance between repetitions, `61 % [40 to 72 %], n = 8`, or the reason for
/// withholding it.
fn variation_of(context: &TestContext, entry: &Entry) -> Result<String, String> {
    let (foreign, all) = foreign(context, entry);
    if foreign * 2 > all {
        return Err(format!(
            "other processes used the CPUs in {foreign} of {} (other-cpu-load)",
            count(all, "repetition")
        ));
    }
    let runs: Option<Vec<Vec<f64>>> = series(context, entry).map(windows).collect();
    let Some(runs) = runs.filter(|runs| !runs.is_empty()) else {
        let least = WINDOWS * INTERVALS_MIN;
        return Err(format!("a repetition had fewer than {least} intervals"));
    };
    let n = runs.len();
    let tree: Vec<Instance> =
        runs.into_iter().map(|windows| Instance { runs: vec![windows] }).collect();
    let seed = u64::from(u32::try_from(entry.cell).unwrap_or(0));
    let found = variance::components(&tree, seed).map_err(|absent| absent.to_string())?;
    let instance = found.shares.iter().find(|share| share.level == "instance");
    match instance.and_then(|share| Some((share.share.0, share.interval?))) {
        Some((share, interval)) => Ok(format!("{}, n = {n}", percents(share, Some(interval)))),
        None => Err("too few repetitions for a confidence interval".into()),
    }
}

/// Number of repetitions in which other processes used the CPUs (`other-cpu-load`), and number of
/// measured repetitions.
fn foreign(context: &TestContext, entry: &Entry) -> (usize, usize) {
    let at =
        |phase: &Option<String>| phase.as_ref().is_none_or(|phase| *phase == context.test.name);
    let disturbed = context.sample_index.measured(entry.cell).filter(|trial| {
        let mut own = trial.warnings.iter().filter(|(phase, _)| at(phase));
        own.any(|(_, warning)| matches!(warning, Warning::OtherCpuLoad { .. }))
    });
    (disturbed.count(), context.sample_index.measured(entry.cell).count())
}

/// Number of operations per window of a repetition; `None` if the repetition is too short.
fn windows(series: &Series) -> Option<Vec<f64>> {
    let width = series.ops.len() / WINDOWS;
    (width >= INTERVALS_MIN).then(|| {
        let windows = series.ops.chunks_exact(width).take(WINDOWS);
        windows.map(|ops| ops.iter().sum::<u64>() as f64).collect()
    })
}
