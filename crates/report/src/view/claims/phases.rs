//! What the course of a phase tells, one sentence for all filesystems of a test: C14, what is
//! sustained after the first burst, and C17, whether results vary within a run or from one
//! filesystem made anew to the next.
//!
//! Only phases whose rate was kept over at least 100 intervals are asked about.

use analysis::{
    Summary,
    variance::{self, Instance},
    warmup::{self, Regime, Shape},
};
use model::{Warning, phase::Series};

use super::{About, Answer, PointClaims, single::refused};
use crate::{
    units::{alone, percents},
    view::points::Entry,
};

/// Windows of equal length that a run is cut into.
const WINDOWS: usize = 10;
/// Intervals that each of them takes.
const INTERVALS_MIN: usize = 10;

/// All answers about the course of one test.
pub(super) fn answers(about: &About, claims: &mut PointClaims) {
    let long = |entry: &&Entry| {
        let mut all = series(about, entry);
        all.any(|series| series.ops.len() >= WINDOWS * INTERVALS_MIN)
    };
    if about.test.entries.iter().any(|entry| long(&entry)) {
        claims.extend_quietly([sustained(about), variation(about)]);
    }
}

/// The rate of each measured repeat over time.
fn series<'a>(about: &About<'a>, entry: &Entry) -> impl Iterator<Item = &'a Series> {
    let name = &about.test.name;
    let trials = about.pool.measured(entry.cell).flat_map(|trial| &trial.series);
    trials
        .filter(move |(phase, _)| phase == name)
        .map(|(_, series)| series)
        .collect::<Vec<_>>()
        .into_iter()
}

/// C14: steady over burst of each repeat, where most of them change their level.
fn sustained(about: &About) -> Answer {
    let question = format!("what is sustained on {}", about.workload());
    if let Some(refused) = refused(about, "C14", &question) {
        return Answer::Withheld(refused);
    }
    let (mut told, mut open) = (Vec::new(), Vec::new());
    for entry in about.entries().into_iter().filter(|entry| entry.ranked) {
        match sustained_by(about, entry) {
            Ok(text) => told.push(format!("{} {text}", about.name(entry))),
            Err(why) => open.push(format!("{}: {why}", about.name(entry))),
        }
    }
    if told.is_empty() {
        return Answer::Withheld(about.withheld("C14", question, open.join("; "), String::new()));
    }
    let text = format!(
        "Of the rate they began with on {}, was sustained: {}.",
        about.workload(),
        told.join(", ")
    );
    about.said("C14", text)
}

/// `62 % [58 to 65 %] after 12 s, in 6 of 8 repeats`, or why not. Those that never settled have no
/// share that could be counted, so that of a few that did nothing follows for the others.
fn sustained_by(about: &About, entry: &Entry) -> Result<String, String> {
    let profile = about.facts.profile;
    let regimes: Result<Vec<Regime>, _> =
        series(about, entry).map(|series| warmup::regime(series, profile)).collect();
    let regimes = regimes.map_err(|absent| absent.to_string())?;
    let all = regimes.len();
    let settled: Vec<(f64, f64)> = regimes
        .iter()
        .filter(|regime| regime.shape != Shape::Flat && regime.burst > 0.0)
        .filter_map(|regime| Some((regime.steady? / regime.burst, regime.until?.seconds())))
        .collect();
    let flat = regimes.iter().filter(|regime| regime.shape == Shape::Flat).count();
    if flat * 2 > all {
        return Err(format!("{flat} of {all} repeats went at one rate throughout"));
    }
    if settled.len() * 2 <= all {
        let settled = settled.len();
        return Err(format!("only {settled} of {all} repeats settled at another rate"));
    }
    let shares: Vec<f64> = settled.iter().map(|(share, _)| *share).collect();
    let times: Vec<f64> = settled.iter().map(|(_, until)| *until * 1e9).collect();
    let summary = Summary::new(&shares).ok().filter(|summary| summary.interval.is_some());
    match (summary, Summary::new(&times)) {
        (Some(summary), Ok(until)) => Ok(format!(
            "{} after {}, in {} of {all} repeats",
            percents(summary.median, summary.interval),
            alone(model::metric::Unit::Nanoseconds, until.median),
            summary.n
        )),
        (None, _) | (_, Err(_)) => {
            Err(format!("{} repeats that settled are too few for an interval", settled.len()))
        }
    }
}

/// C17: windows within a run against filesystems made anew.
fn variation(about: &About) -> Answer {
    let question = format!("where the variation on {} comes from", about.workload());
    if let Some(refused) = refused(about, "C17", &question) {
        return Answer::Withheld(refused);
    }
    if about.suspected {
        let missing = "the run may have drifted, and drift is variation between repeats".into();
        let cure = "use a quieter machine".into();
        return Answer::Withheld(about.withheld("C17", question, missing, cure));
    }
    let (mut told, mut open) = (Vec::new(), Vec::new());
    for entry in about.entries().into_iter().filter(|entry| entry.ranked) {
        match variation_of(about, entry) {
            Ok(share) => told.push(format!("{} {share}", about.name(entry))),
            Err(why) => open.push(format!("{}: {why}", about.name(entry))),
        }
    }
    if told.is_empty() {
        return Answer::Withheld(about.withheld("C17", question, open.join("; "), String::new()));
    }
    let text = format!(
        "Of the variation of the rate on {}, came from one repeat to the next (a fresh filesystem \
         each, and whatever the machine did meanwhile), and not from one tenth of a repeat to \
         another: {}.",
        about.workload(),
        told.join(", ")
    );
    about.said("C17", text)
}

/// The share of the instances: `61 % [40 to 72 %], n = 8`.
fn variation_of(about: &About, entry: &Entry) -> Result<String, String> {
    let (foreign, all) = foreign(about, entry);
    if foreign * 2 > all {
        return Err(format!(
            "others used the processors in {foreign} of {all} repeats (W-FOREIGN)"
        ));
    }
    let runs: Option<Vec<Vec<f64>>> = series(about, entry).map(windows).collect();
    let Some(runs) = runs.filter(|runs| !runs.is_empty()) else {
        return Err(format!("a run had fewer than {} intervals", WINDOWS * INTERVALS_MIN));
    };
    let n = runs.len();
    let tree: Vec<Instance> =
        runs.into_iter().map(|windows| Instance { runs: vec![windows] }).collect();
    let seed = u64::from(u32::try_from(entry.cell).unwrap_or(0));
    let found = variance::components(&tree, seed).map_err(|absent| absent.to_string())?;
    let instance = found.shares.iter().find(|share| share.level == "instance");
    match instance.and_then(|share| Some((share.share.0, share.interval?))) {
        Some((share, interval)) => Ok(format!("{}, n = {n}", percents(share, Some(interval)))),
        None => Err("too few repeats for an interval of the share".into()),
    }
}

/// Repeats in which others used the processors, and all measured ones.
fn foreign(about: &About, entry: &Entry) -> (usize, usize) {
    let at = |phase: &Option<String>| phase.as_ref().is_none_or(|phase| *phase == about.test.name);
    let disturbed = about.pool.measured(entry.cell).filter(|trial| {
        let mut own = trial.warnings.iter().filter(|(phase, _)| at(phase));
        own.any(|(_, warning)| matches!(warning, Warning::ForeignCpu { .. }))
    });
    (disturbed.count(), about.pool.measured(entry.cell).count())
}

/// Operations of each window of a run; `None` where it is too short.
fn windows(series: &Series) -> Option<Vec<f64>> {
    let width = series.ops.len() / WINDOWS;
    (width >= INTERVALS_MIN).then(|| {
        let windows = series.ops.chunks_exact(width).take(WINDOWS);
        windows.map(|ops| ops.iter().sum::<u64>() as f64).collect()
    })
}
