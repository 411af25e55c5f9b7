//! Effect of the record length on each filesystem and test, from printed means and deviations.
//!
//! The findings are those of a measured sweep (C6 to C8 of `fslab explain`), adapted to summaries,
//! which cannot be resampled: every ratio has a Fieller interval ([`Moments::over`]), and all
//! sweeps of the study are one family (Bonferroni). Equivalence is checked first, then turning
//! points, then trends. Findings that depend on a number marked by the audit are withheld, unless
//! all readings of a malformed number lead to the same finding.

use analysis::{Interval, moments::Moments, trend::INSENSITIVE};

use super::iozone::{Number, RUNS, Statistic, Study, length, test_name};
use crate::{
    audit::quality_notes::QualityNoteKind,
    units::{fixed, percents, ratio},
};

/// Family-wise error rate.
const ERROR: f64 = 0.05;
const KIB_IN_MIB: f64 = 1024.0;

/// Result of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    /// The levels are equivalent: ratio of the largest to the smallest mean, and its upper bound.
    Alike { largest: f64, bound: f64 },
    /// An inner level is significantly above (`peak`) or below all others.
    Turns { level: usize, peak: bool },
    /// The last level differs significantly from the first: ratio and interval.
    Changes { ratio: f64, interval: Interval },
    /// Inconclusive.
    Open,
}

impl Answer {
    /// True if two answers lead to the same sentence except for its numbers.
    fn agrees(self, other: Self) -> bool {
        match (self, other) {
            (Self::Alike { .. }, Self::Alike { .. }) | (Self::Open, Self::Open) => true,
            (Self::Turns { level, peak }, Self::Turns { level: at, peak: way }) => {
                level == at && peak == way
            }
            (Self::Changes { ratio: one, .. }, Self::Changes { ratio: two, .. }) => {
                (one > 1.0) == (two > 1.0)
            }
            (
                Self::Alike { .. } | Self::Turns { .. } | Self::Changes { .. } | Self::Open,
                Self::Alike { .. } | Self::Turns { .. } | Self::Changes { .. } | Self::Open,
            ) => false,
        }
    }
}

/// Findings, and withheld findings with the reason.
pub(super) fn findings(study: &Study) -> (Vec<String>, Vec<String>) {
    let records = study.records();
    let sweeps: Vec<Vec<&Number>> = study
        .tests()
        .into_iter()
        .flat_map(|test| {
            let records = &records;
            study.filesystems().into_iter().map(move |filesystem| {
                records.iter().filter_map(|record| study.of(test, filesystem, *record)).collect()
            })
        })
        .filter(|sweep: &Vec<&Number>| sweep.len() == records.len())
        .collect();
    let family = f64::from(u32::try_from(sweeps.len()).unwrap_or(u32::MAX));
    let (mut claims, mut withheld) = (Vec::new(), Vec::new());
    for sweep in &sweeps {
        match of_sweep(sweep, family) {
            Ok(sentence) => claims.push(sentence),
            Err(reason) => {
                withheld.push(format!("{}: {reason}", subject(sweep)));
            }
        }
    }
    (claims, withheld)
}

/// Subject of a sentence, such as `throughput of xfs on random write`.
fn subject(sweep: &[&Number]) -> String {
    let first = sweep.first();
    first.map_or_else(String::new, |first| {
        format!("throughput of {} on {}", first.filesystem, test_name(&first.test))
    })
}

/// Finding of a sweep, or the reason for withholding it.
fn of_sweep(sweep: &[&Number], family: f64) -> Result<String, String> {
    let quality_notes = || {
        let all = sweep.iter().enumerate();
        all.flat_map(|(at, number)| number.quality_notes.iter().map(move |note| (at, note)))
    };
    if let Some((at, (_, note))) =
        quality_notes().find(|(_, (_, own))| own.kind == QualityNoteKind::Repeated)
    {
        let record = length(sweep[at].record);
        return Err(format!("a number at {record} is the {}", note.short));
    }
    let moments: Option<Vec<Moments>> = sweep.iter().map(|number| number.moments()).collect();
    let moments = moments.ok_or("a deviation is missing")?;
    let answer = answer(&moments, family);
    let mut read = String::new();
    for (at, (statistic, note)) in quality_notes() {
        for other in &note.others {
            let mut again = moments.clone();
            match statistic {
                Statistic::Mean => again[at].mean = *other,
                Statistic::Deviation => again[at].deviation = *other,
            }
            if !self::answer(&again, family).agrees(answer) {
                return Err(format!("the malformed number ({}) has other readings", note.short));
            }
        }
        read.push_str(&format!("; at {}, {}", length(sweep[at].record), note.short));
    }
    sentence(sweep, &moments, answer, family, &read)
}

/// Ratio of two means with its interval, at the level adjusted for `family` intervals (Bonferroni).
fn over(last: &Moments, first: &Moments, family: f64) -> Option<(f64, Interval)> {
    let found = last.over(first, 1.0 - ERROR / family).ok()?;
    Some((found.ratio.0, found.interval))
}

fn answer(levels: &[Moments], family: f64) -> Answer {
    if let Some((largest, bound)) =
        spread(levels, family).filter(|(_, bound)| *bound <= 1.0 + INSENSITIVE.0)
    {
        return Answer::Alike { largest, bound };
    }
    let last = levels.len().saturating_sub(1);
    let inside = |at: &usize| *at > 0 && *at < last;
    for peak in [true, false] {
        let apart = |at: usize| {
            let others = levels.iter().enumerate().filter(|(other, _)| *other != at);
            others.into_iter().all(|(_, other)| {
                let found = over(&levels[at], other, family * (levels.len() - 1) as f64);
                found.is_some_and(|(_, own)| if peak { own.low > 1.0 } else { own.high < 1.0 })
            })
        };
        if let Some(level) = (0..levels.len()).filter(inside).find(|at| apart(*at)) {
            return Answer::Turns { level, peak };
        }
    }
    let ends = levels.first().zip(levels.last());
    let Some((ratio, interval)) = ends.and_then(|(first, last)| over(last, first, family)) else {
        return Answer::Open;
    };
    // A significant step in the opposite direction excludes a trend.
    let against = levels.windows(2).any(|two| {
        over(&two[1], &two[0], family).is_some_and(|(_, step)| match ratio > 1.0 {
            true => step.high < 1.0,
            false => step.low > 1.0,
        })
    });
    match interval.contains(1.0) || against {
        true => Answer::Open,
        false => Answer::Changes { ratio, interval },
    }
}

/// Ratio of the largest to the smallest mean, and its upper bound, adjusted for all pairs of levels
/// of all sweeps.
fn spread(levels: &[Moments], family: f64) -> Option<(f64, f64)> {
    let pairs = family * (levels.len() * levels.len().saturating_sub(1) / 2) as f64;
    let (mut largest, mut bound) = (1.0f64, 1.0f64);
    for (at, one) in levels.iter().enumerate() {
        for other in &levels[at + 1..] {
            let (above, below) = if one.mean >= other.mean { (one, other) } else { (other, one) };
            let (ratio, interval) = over(above, below, pairs)?;
            largest = largest.max(ratio);
            bound = bound.max(interval.high);
        }
    }
    Some((largest, bound))
}

fn sentence(
    sweep: &[&Number],
    moments: &[Moments],
    answer: Answer,
    family: f64,
    read: &str,
) -> Result<String, String> {
    let at = |level: usize| length(sweep[level].record);
    let mib = |level: usize| format!("{} MiB/s", fixed(moments[level].mean / KIB_IN_MIB, 1));
    let last = sweep.len() - 1;
    let subject = subject(sweep);
    let text = match answer {
        Answer::Alike { largest, bound } => format!(
            "The {subject} was insensitive to the record length within {:.0} % from {} to {}: its \
             largest mean is ×{} of its smallest, and at most ×{} (bound of 95 % over all pairs of \
             levels and {family:.0} sweeps; n = {RUNS} each{read}).",
            INSENSITIVE.0 * 100.0,
            at(0),
            at(last),
            fixed(largest, 3),
            fixed((bound * 1000.0).ceil() / 1000.0, 3)
        ),
        Answer::Turns { level, peak } => format!(
            "The {subject} {} at records of {}: {}, significantly different from every other \
             tested length (95 % over {family:.0} sweeps; n = {RUNS} each{read}).",
            if peak { "peaked" } else { "was lowest" },
            at(level),
            mib(level)
        ),
        Answer::Changes { ratio: by, interval } => format!(
            "Changing the record length from {} to {} {} the {subject} {}, from {} to {} (95 % \
             confidence over {family:.0} sweeps; n = {RUNS} each{read}).",
            at(0),
            at(last),
            if by > 1.0 { "increased" } else { "decreased" },
            change(by, interval),
            mib(0),
            mib(last)
        ),
        Answer::Open => {
            return Err(
                "no equivalence within 10 %, and no significant change or turning point over all \
                 sweeps"
                    .into(),
            );
        }
    };
    Ok(text)
}

/// Size of a change, such as `by 34.2 % [31.0 to 37.5 %]`; as a ratio if it is below 0.5 or above
/// 2.
fn change(by: f64, interval: Interval) -> String {
    if !(0.5..=2.0).contains(&by) {
        return format!("to {}", ratio(by, Some(interval)));
    }
    let share = |ratio: f64| (ratio - 1.0).abs();
    let (one, other) = (share(interval.low), share(interval.high));
    let ends = Interval { low: one.min(other), high: one.max(other), level: interval.level };
    format!("by {}", percents(share(by), Some(ends)))
}
