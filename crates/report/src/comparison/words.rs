//! The words of a comparison: ways, sentences, changes in percent.

use analysis::{
    Check, Interval, Verdict,
    runs::{By, Missing, NoClaim, Paired, TestPair, Way, WayDiffers, Which},
};
use model::metric::{Better, Unit};

use crate::{
    units::{self, alone, capital, fixed, one_line},
    view::words as metric_words,
};

/// Letters of a value within a sentence.
const VALUE_MAX: usize = 48;

/// Repeats of each below which nothing is decided (`analysis::summary::needed` at 95 %).
const REPEATS_MIN: u32 = 6;

/// How many times its low end the high end of a wide interval is.
const WIDE: f64 = 3.0;

/// Cells whose tests are missing that the closing line names.
const MISSING_MAX: usize = 4;

/// A threshold in percent, without decimals that say nothing: `5 %`, `2.5 %`.
pub(super) fn limit(share: f64) -> String {
    let text = fixed(share * 100.0, 1);
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// A ratio with its interval; where its ends are far apart each has two digits of its own, so that
/// none is rounded to zero.
fn ratio(value: f64, interval: Option<Interval>) -> String {
    let wide = |interval: &Interval| interval.high > WIDE * interval.low;
    let Some(Interval { low, high, .. }) = interval.filter(wide) else {
        return units::ratio(value, interval);
    };
    let [value, low, high] = [value, low, high].map(|value| match value {
        10.0.. => fixed(value, 0),
        1.0.. => fixed(value, 1),
        0.1.. => fixed(value, 2),
        0.01.. => fixed(value, 3),
        _ => fixed(value, 4),
    });
    format!("×{value} [{low}, {high}]")
}

/// From which difference on a step counts it, with the reason where twins set it.
pub(super) fn least(step: &Paired) -> String {
    match step.working.0 > step.threshold.0 {
        true => format!("what twins differ by, {}", limit(step.working.0)),
        false => limit(step.working.0),
    }
}

/// All ways in words, `kernel 6.1 -> 6.12 and machine … -> …, together`; empty for none.
pub(super) fn ways(ways: &[WayDiffers]) -> String {
    let each: Vec<String> = ways.iter().map(way).collect();
    match &each[..] {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}, all together", first.join(", ")),
    }
}

fn way(differs: &WayDiffers) -> String {
    let Some(lead) = differs.differences.first() else { return differs.way.name().into() };
    let value = |value: &Option<String>| {
        let text = one_line(value.as_deref().unwrap_or("not told"));
        let short: String = text.chars().take(VALUE_MAX).collect();
        if short.len() < text.len() { format!("{}…", short.trim_end()) } else { text }
    };
    let change = format!("{} -> {}", value(&lead.first), value(&lead.second));
    let name = differs.way.name();
    let what = lead.what.as_str();
    let of_filesystem = what.strip_prefix("filesystem.").and_then(|rest| rest.rsplit_once('.'));
    match (differs.way, of_filesystem) {
        (Way::Filesystem, Some((filesystem, fact))) => {
            let fact = if fact == "mounted" { "mount options" } else { fact };
            format!("{} of {}", one_line(fact), one_line(filesystem))
        }
        (Way::Kernel, _) if what == "kernel.release" => format!("{name} {change}"),
        (Way::Filesystem, None) if what == "filesystem" || what == "backing.fstype" => {
            format!("{name} {change}")
        }
        (Way::Program, _) | (Way::Storage, _) if what.starts_with("run.") => {
            format!("{name} {change}")
        }
        (
            Way::Kernel
            | Way::Machine
            | Way::Storage
            | Way::Filesystem
            | Way::Settings
            | Way::Program
            | Way::Plan,
            _,
        ) => format!("{name}: {} {change}", one_line(what)),
    }
}

/// Why nothing may be claimed, with what would allow it.
pub(super) fn refusal(why: &NoClaim, (first, second): (&str, &str)) -> String {
    let name = |which: &Which| match which {
        Which::First => first,
        Which::Second => second,
    };
    match why {
        NoClaim::Ways { ways } => {
            let words: Vec<&str> = ways.iter().map(|way| way.name()).collect();
            format!(
                "{why}. Make all but one the same, or name them, --allow {}, to have sentences about all together.",
                words.join(",")
            )
        }
        NoClaim::Imported { which, .. } | NoClaim::Warned { which, .. } => {
            format!("{why} ({})", name(which))
        }
        NoClaim::AnchorMoved { .. } => why.to_string(),
    }
}

/// Filesystem, workload, and phase of a test.
pub(super) fn place(test: &TestPair) -> String {
    format!("{}, {}, {}", filesystem(test), one_line(&test.label), one_line(&test.phase))
}

/// The same with the metric.
pub(super) fn named(test: &TestPair) -> String {
    format!("{}, {}", place(test), metric_words(test.metric))
}

/// Tests that the second run has no numbers of, with the reason.
pub(super) fn missing(missing: &Missing) -> String {
    let tests = match &missing.phases[..] {
        [phase] => one_line(phase),
        _ => format!("{} tests", missing.tests),
    };
    format!("{}, {tests}: {}", one_line(&missing.cell), one_line(&missing.why))
}

/// The first cells of such tests, and how many there are beyond them.
pub(super) fn some(missing: &[Missing]) -> String {
    let mut told: Vec<String> = missing.iter().take(MISSING_MAX).map(self::missing).collect();
    let more = missing.len().saturating_sub(MISSING_MAX);
    if more > 0 {
        told.push(format!("and {more} cells more"));
    }
    told.join("; ")
}

pub(super) fn filesystem(test: &TestPair) -> String {
    let (first, second) = (one_line(&test.filesystems.0), one_line(&test.filesystems.1));
    if first == second { second } else { format!("{second} in place of {first}") }
}

/// By how much the value itself changed, as a share, with the interval: a time that doubled is
/// +100 %, whatever that means for who waits.
pub(super) fn change(test: &TestPair) -> Option<(f64, Option<Interval>)> {
    let ratio = test.comparison.as_ref().ok()?.ratio.0;
    Some(match test.metric.spec().better {
        Better::Lower => {
            let turned = |i: Interval| Interval { low: 1.0 / i.high, high: 1.0 / i.low, ..i };
            (1.0 / ratio - 1.0, test.interval.map(|interval| less_one(turned(interval))))
        }
        Better::Higher | Better::Neither => (ratio - 1.0, test.interval.map(less_one)),
    })
}

fn less_one(interval: Interval) -> Interval {
    Interval { low: interval.low - 1.0, high: interval.high - 1.0, ..interval }
}

/// `-7.1 % [-9.2, -4.9]`.
pub(super) fn signed(change: (f64, Option<Interval>)) -> String {
    let (value, interval) = change;
    let places = places(interval.map_or(value.abs(), |i| (i.high - i.low) / 2.0));
    let shown = |share: f64| format!("{}{}", sign(share), fixed(share.abs() * 100.0, places));
    match interval {
        Some(Interval { low, high, .. }) => {
            format!("{} % [{}, {}]", shown(value), shown(low), shown(high))
        }
        None => format!("{} %", shown(value)),
    }
}

fn sign(share: f64) -> &'static str {
    if share < 0.0 { "-" } else { "+" }
}

/// Decimal places of percents known to a half-width.
fn places(half_width: f64) -> i32 {
    match half_width {
        0.1.. => 0,
        0.002.. => 1,
        _ => 2,
    }
}

/// C11: how one test changed.
pub(super) fn changed(
    test: &TestPair,
    step: &Paired,
    ways: &str,
    (first, second): (&str, &str),
) -> String {
    let Some((value, interval)) = change(test) else { return String::new() };
    let higher = test.metric.spec().better != Better::Lower;
    let worse = (value < 0.0) == higher;
    let verb = match (test.by, worse) {
        (By::Workload, true) => "is worse",
        (By::Workload, false) => "is better",
        (By::Identity | By::Options, true) => "regressed",
        (By::Identity | By::Options, false) => "improved",
    };
    let half = interval.map_or(value.abs(), |i| (i.high - i.low) / 2.0);
    let percents = |share: f64| fixed(share * 100.0, places(half));
    let size = match interval {
        // The side that was found has the sign of the change; the interval is told without it.
        Some(Interval { low, high, .. }) if value < 0.0 => {
            format!("{} % [{}, {}]", percents(-value), percents(-high), percents(-low))
        }
        Some(Interval { low, high, .. }) => {
            format!("{} % [{}, {}]", percents(value), percents(low), percents(high))
        }
        None => format!("{} %", percents(value.abs())),
    };
    let size = match test.comparison.as_ref().ok().and_then(crate::view::disagreement) {
        Some(why) => format!(" (by how much is not told: {why})"),
        None => format!(" by {size}"),
    };
    let way = if ways.is_empty() { String::new() } else { format!(" ({ways})") };
    let correction = if step.headlines && test.headline().is_some() {
        format!("Holm over {} tests", step.family.tests)
    } else {
        format!("screened among {} tests at q = {}", step.family.tests, fixed(step.family.q, 2))
    };
    let counts = test.comparison.as_ref().map(|c| (c.n_first, c.n_second)).unwrap_or_default();
    let anchor = step.anchor.tests.as_ref().map_or(String::new(), |anchor| {
        format!("; the anchor moved by {}", signed((anchor.ratio.0 - 1.0, None)))
    });
    format!(
        "{} of {} {verb}{size} from {first} to {second}{way}; n = {} and {}, \
         {correction}{anchor}.",
        capital(&metric_words(test.metric)),
        place(test),
        counts.0,
        counts.1
    )
}

/// C5: what one test leaves open.
pub(super) fn open(test: &TestPair, step: &Paired) -> String {
    let Ok(comparison) = &test.comparison else { return String::new() };
    let few = comparison.n_first.min(comparison.n_second) < REPEATS_MIN;
    let how = match comparison.verdict {
        Verdict::Inconclusive { .. } if few => format!(
            "only {} and {} repeats, and a comparison takes {REPEATS_MIN} of each",
            comparison.n_first, comparison.n_second
        ),
        // Further repeats cure no disagreement.
        Verdict::Inconclusive { .. } if comparison.checks.iter().any(|check| check.disagrees) => {
            let told = comparison.checks.iter().filter_map(Check::warning);
            let told: Vec<String> = told.map(|warning| warning.message()).collect();
            told.join("; ")
        }
        Verdict::Inconclusive { .. } if !comparison.ratios_agree => format!(
            "the ratio of the medians is {}, which disagrees",
            ratio(comparison.ratio_of_medians.0, None)
        ),
        Verdict::Inconclusive { needed } => format!(
            "about {needed} repeats of each would decide a difference of {}",
            limit(step.working.0)
        ),
        Verdict::Differs { .. } | Verdict::Equivalent => {
            format!(
                "the difference does not survive the correction for {} tests",
                step.family.tests
            )
        }
    };
    format!("{}: {}; {how}.", named(test), ratio(comparison.ratio.0, test.interval))
}

/// How many are the same, all together, the control, and the anchor.
pub(super) fn notes(step: &Paired) -> Vec<String> {
    let mut notes = Vec::new();
    let tally = step.tally;
    let tests = step.tests.iter().filter(|test| test.touched && test.comparison.is_ok()).count();
    if step.refused.is_empty() && tally.same > 0 {
        let within = limit(step.working.0);
        notes.push(format!("{} of {tests} tests were the same within {within}.", tally.same));
    }
    if step.refused.is_empty() && tally.small > 0 {
        notes.push(format!(
            "{} of {tests} tests show a difference smaller than {}.",
            tally.small,
            match step.working.0 > step.threshold.0 {
                true => format!("what twins differ by ({})", limit(step.working.0)),
                false => format!("{}, which counts", limit(step.working.0)),
            }
        ));
    }
    notes.extend(total(step));
    let threshold = match (&step.noise, step.working.0 > step.threshold.0) {
        (Some(noise), raised) => format!(
            "Control: {} tests of {} twins; 95 % of their ratios are within {}, {}; differences count from {} on{}.",
            noise.pairs,
            noise.cells,
            limit(noise.ratio.0),
            if noise.shown { "which is shown" } else { "which may be chance" },
            limit(step.working.0),
            if raised { "" } else { ", as asked for" }
        ),
        (None, _) => format!(
            "Differences count from δ = {} on; no twins were measured to tell what chance makes of them.",
            limit(step.threshold.0)
        ),
    };
    if !step.tests.is_empty() {
        notes.push(threshold);
    }
    if let Some(anchor) = &step.anchor.tests {
        notes.push(format!(
            "Anchor: {} tests that what differed cannot have touched moved to {} together.",
            anchor.tests,
            ratio(anchor.ratio.0, anchor.interval)
        ));
    }
    for fact in &step.anchor.machine {
        let (unit, what) = match fact.name {
            "clock.cost_ns" => (Unit::Nanoseconds, "time to read the clock, lower is better"),
            _ => (Unit::BytesPerSecond, "memory copy rate, higher is better"),
        };
        let doubt = if fact.differs { "; the machine itself may have changed" } else { "" };
        notes.push(format!(
            "Machine: {what}: {} -> {} ({}, n = 1 each, no claim){doubt}.",
            alone(unit, fact.first),
            alone(unit, fact.second),
            signed((fact.second / fact.first - 1.0, None))
        ));
    }
    notes
}

/// C12: all touched tests together.
fn total(step: &Paired) -> Option<String> {
    let total = step.total.as_ref()?;
    let tally = step.tally;
    let counts = format!(
        "; {} better, {} worse, {} the same, {} small, {} open",
        tally.better, tally.worse, tally.same, tally.small, tally.open
    );
    let end = |at: usize| {
        let (name, ratio) = total.each.get(at)?;
        Some(format!("×{} ({})", fixed(ratio.0, 3), one_line(name)))
    };
    let fragile =
        total.fragile.and_then(|at| total.each.get(at)).map_or(String::new(), |(name, _)| {
            format!(" Fragile: without {} its sign turns.", one_line(name))
        });
    Some(format!(
        "All {} tests together: {} (geometric mean, above 1 is better, these tests){counts}; from {} to {}.{fragile}",
        total.each.len(),
        ratio(total.ratio.0, Some(total.interval)),
        end(total.least)?,
        end(total.most)?
    ))
}
