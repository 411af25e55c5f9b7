//! Texts of a comparison: aspects, findings, and changes in percent.

use std::collections::BTreeMap;

use analysis::{
    Check, Interval, Verdict,
    conditions::Difference,
    runs::{
        Aspect, AspectDifference, FindingsObstacle, Missing, Paired, PairedBy, TestPair, Which,
    },
};
use model::metric::{Better, Unit};

use super::NOT_RECORDED;
use crate::{
    units::{self, alone, capital, fixed, one_line},
    view::{common_name, metric_label, without_key},
};

/// Maximum length of a value within a sentence, in characters.
const VALUE_MAX: usize = 48;

/// Minimum number of repetitions of each run for a confidence interval (`analysis::summary::needed`
/// at 95 %).
const REPETITIONS_MIN: u32 = 6;

/// An interval is wide if the ratio of its ends exceeds this value.
const WIDE: f64 = 3.0;

/// Maximum number of cells with missing tests named in the result line.
const MISSING_MAX: usize = 4;

/// Margin in percent without trailing zeros: `5 %`, `2.5 %`.
pub(super) fn limit(share: f64) -> String {
    let text = fixed(share * 100.0, 1);
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// Ratio with its interval. The ends of a wide interval are rounded separately, so that the lower
/// end does not become zero.
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

/// Effective margin of a step, with the reason if raised.
pub(super) fn least(step: &Paired) -> String {
    match step.effective_margin.0 > step.margin.0 {
        true => format!("δ′ = {} (A/A noise)", limit(step.effective_margin.0)),
        false => limit(step.effective_margin.0),
    }
}

/// All aspects that differ: `kernel 6.1 -> 6.12 and machine … -> …, combined`; empty if none
/// differs.
pub(super) fn aspects(aspects: &[AspectDifference]) -> String {
    let each: Vec<String> = aspects.iter().map(way).collect();
    match &each[..] {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}, combined", first.join(", ")),
    }
}

/// Values of a condition in both runs. Limits and values of `--set` are recorded only if they are
/// set.
pub(super) fn values(differs: &Difference) -> [String; 2] {
    let set = ["set.", "memory.limit"].iter().any(|prefix| differs.what.starts_with(prefix));
    let absent = match set && differs.aspect != Some(Aspect::Unknown) {
        true => "not set",
        false => NOT_RECORDED,
    };
    [&differs.first, &differs.second].map(|value| value.as_deref().unwrap_or(absent).to_owned())
}

fn way(differs: &AspectDifference) -> String {
    if differs.aspect == Aspect::Unknown {
        return "conditions that one run does not record".into();
    }
    let Some(lead) = differs.differences.first() else { return differs.aspect.name().into() };
    let [first, second] = values(lead).map(|value| {
        let text = one_line(&value);
        let short: String = text.chars().take(VALUE_MAX).collect();
        if short.len() < text.len() { format!("{}…", short.trim_end()) } else { text }
    });
    let change = format!("{first} -> {second}");
    let name = differs.aspect.name();
    let what = lead.what.as_str();
    match (differs.aspect, lead.filesystem_fact()) {
        (Aspect::Filesystem, Some((filesystem, fact))) => {
            let fact = if fact == "mounted" { "mount options" } else { fact };
            format!("{} of {}", one_line(fact), one_line(filesystem))
        }
        (Aspect::Kernel, _) if what == "kernel.release" => format!("{name} {change}"),
        (Aspect::Filesystem, None) if what == "filesystem" || what == "backing.fstype" => {
            format!("{name} {change}")
        }
        (Aspect::Program, _) | (Aspect::Storage, _) if what.starts_with("run.") => {
            format!("{name} {change}")
        }
        (
            Aspect::Kernel
            | Aspect::Machine
            | Aspect::Storage
            | Aspect::Filesystem
            | Aspect::Settings
            | Aspect::Program
            | Aspect::Plan
            | Aspect::Unknown,
            _,
        ) => format!("{name}: {} {change}", one_line(what)),
    }
}

/// Reason for withholding all findings, with a hint.
pub(super) fn obstacle(why: &FindingsObstacle, (first, second): (&str, &str)) -> String {
    let name = |which: &Which| match which {
        Which::First => first,
        Which::Second => second,
    };
    match why {
        FindingsObstacle::Aspects { aspects } => {
            let names: Vec<&str> = aspects.iter().map(|aspect| aspect.name()).collect();
            format!(
                "{why}; change one aspect at a time, or use --allow-differences {} for findings \
                 about all of them combined",
                names.join(",")
            )
        }
        FindingsObstacle::Imported { which, .. } => {
            format!(
                "{why} ({}); if they are the same as those of the other run, use \
                 --allow-differences {}",
                name(which),
                Aspect::Unknown.name()
            )
        }
        FindingsObstacle::Warned { which, .. } => format!("{why} ({})", name(which)),
        FindingsObstacle::NegativeControlsChanged { .. } => why.to_string(),
    }
}

/// Filesystem, workload, and phase of a test.
pub(super) fn place(test: &TestPair) -> String {
    format!("{}, {}, {}", filesystem(test), one_line(&test.label), one_line(&test.phase))
}

/// Filesystem, workload, phase, and metric of a test.
pub(super) fn named(test: &TestPair) -> String {
    format!("{}, {}", place(test), metric_label(test.metric))
}

/// Titles of tests for tables: `random-write on xfs`, followed by workload and metric if they vary.
pub(super) fn titles(tests: &[TestPair]) -> Vec<String> {
    let first = tests.first();
    let same = |of: &dyn Fn(&TestPair) -> String| {
        first.is_some_and(|first| tests.iter().all(|test| of(test) == of(first)))
    };
    let one_label = same(&|test| test.label.clone());
    let common = common_name(tests.iter().map(|test| test.label.as_str()));
    let one_metric = same(&|test| test.metric.name().into());
    let mut places: BTreeMap<String, u32> = BTreeMap::new();
    tests.iter().for_each(|test| *places.entry(place(test)).or_default() += 1);
    let primary = |test: &TestPair| one_metric || places.get(&place(test)) == Some(&1);
    let title = |test: &TestPair| {
        let mut title = format!("{} on {}", one_line(&test.phase), filesystem(test));
        let label = test.label.strip_prefix(common).unwrap_or(&test.label).trim_start();
        if !one_label && !label.is_empty() {
            title.push_str(&format!(", {}", one_line(without_key(label))));
        }
        if !primary(test) {
            title.push_str(&format!(", {}", metric_label(test.metric)));
        }
        title
    };
    tests.iter().map(title).collect()
}

/// Tests of one cell without results in the second run, with the reason.
pub(super) fn missing(missing: &Missing) -> String {
    let tests = match &missing.phases[..] {
        [phase] => one_line(phase),
        _ => format!("{} tests", missing.tests),
    };
    format!("{}, {tests}: {}", one_line(&missing.cell), one_line(&missing.reason))
}

/// Tests without results of the first [`MISSING_MAX`] cells, and the number of further cells.
pub(super) fn some(missing: &[Missing]) -> String {
    let mut texts: Vec<String> = missing.iter().take(MISSING_MAX).map(self::missing).collect();
    let more = missing.len().saturating_sub(MISSING_MAX);
    if more > 0 {
        texts.push(format!("and {more} more cells"));
    }
    texts.join("; ")
}

pub(super) fn filesystem(test: &TestPair) -> String {
    let (first, second) = (one_line(&test.filesystems.0), one_line(&test.filesystems.1));
    if first == second { second } else { format!("{second} instead of {first}") }
}

/// Relative change of the value, with its interval, as fractions: a time that doubled has changed
/// by 1.
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

/// Number of decimal places of a percentage whose interval has this half-width, a fraction.
fn places(half_width: f64) -> i32 {
    match half_width {
        0.1.. => 0,
        0.002.. => 1,
        _ => 2,
    }
}

/// C11: change of one test.
pub(super) fn changed(
    test: &TestPair,
    step: &Paired,
    aspects: &str,
    (first, second): (&str, &str),
) -> String {
    let Some((value, interval)) = change(test) else { return String::new() };
    let higher = test.metric.spec().better != Better::Lower;
    let worse = (value < 0.0) == higher;
    let verb = match (test.by, worse) {
        (PairedBy::Workload, true) => "is worse",
        (PairedBy::Workload, false) => "is better",
        (PairedBy::Identity | PairedBy::Options, true) => "regressed",
        (PairedBy::Identity | PairedBy::Options, false) => "improved",
    };
    let half = interval.map_or(value.abs(), |i| (i.high - i.low) / 2.0);
    let percents = |share: f64| fixed(share * 100.0, places(half));
    let size = match interval {
        // The verb states the direction, so the size has no sign.
        Some(Interval { low, high, .. }) if value < 0.0 => {
            format!("{} % [{}, {}]", percents(-value), percents(-high), percents(-low))
        }
        Some(Interval { low, high, .. }) => {
            format!("{} % [{}, {}]", percents(value), percents(low), percents(high))
        }
        None => format!("{} %", percents(value.abs())),
    };
    let size = match test.comparison.as_ref().ok().and_then(crate::view::disagreement) {
        Some(why) => format!(" (not quantified because estimates disagree: {size}, but {why})"),
        None => format!(" by {size}"),
    };
    let way = if aspects.is_empty() { String::new() } else { format!(" ({aspects})") };
    let correction = if step.headlines && test.headline().is_some() {
        format!("Holm-adjusted over {}", tests(step.family.tests))
    } else {
        let q = fixed(step.family.q, 2);
        format!("false discovery rate {q} over {}", tests(step.family.tests))
    };
    let counts = test.comparison.as_ref().map(|c| (c.n_first, c.n_second)).unwrap_or_default();
    let controls = step.negative_controls.tests.as_ref().map_or(String::new(), |controls| {
        format!("; negative controls changed by {}", signed((controls.ratio.0 - 1.0, None)))
    });
    let unknown = if step.imported { "; other conditions are not recorded" } else { "" };
    format!(
        "{} of {} {verb}{size} from {first} to {second}{way}; n = {} and {}, \
         {correction}{controls}{unknown}.",
        capital(&metric_label(test.metric)),
        place(test),
        counts.0,
        counts.1
    )
}

/// C5: an inconclusive test.
pub(super) fn open(test: &TestPair, step: &Paired) -> String {
    let Ok(comparison) = &test.comparison else { return String::new() };
    let few = comparison.n_first.min(comparison.n_second) < REPETITIONS_MIN;
    let how = match comparison.verdict {
        Verdict::Inconclusive { .. } if few => format!(
            "n = {} and {}, {REPETITIONS_MIN} needed",
            comparison.n_first, comparison.n_second
        ),
        // Further repetitions do not resolve a disagreement.
        Verdict::Inconclusive { .. } if comparison.checks.iter().any(|check| check.disagrees) => {
            let warnings = comparison.checks.iter().filter_map(Check::warning);
            let messages: Vec<String> = warnings.map(|warning| warning.message()).collect();
            messages.join("; ")
        }
        Verdict::Inconclusive { .. } if !comparison.ratios_agree => format!(
            "estimates disagree: the ratio of the medians on a log scale is {}",
            ratio(comparison.ratio_of_medians.0, None)
        ),
        Verdict::Inconclusive { needed } => format!(
            "about {needed} repetitions each would detect a difference of {}",
            limit(step.effective_margin.0)
        ),
        Verdict::Differs { .. } | Verdict::Equivalent => {
            format!("not significant after adjustment for {}", tests(step.family.tests))
        }
    };
    let change = change(test).map(signed).unwrap_or_default();
    format!("{}: {change}; {how}.", named(test))
}

/// Number of tests as text.
pub(super) fn tests(count: impl std::fmt::Display) -> String {
    let count = count.to_string();
    if count == "1" { "1 test".into() } else { format!("{count} tests") }
}

/// Numbers of tests by result, mean over all tests, equivalence margin, and negative controls.
pub(super) fn notes(step: &Paired) -> Vec<String> {
    let mut notes = Vec::new();
    let tally = step.tally;
    let all = step.tests.iter().filter(|test| test.affected && test.comparison.is_ok()).count();
    if step.obstacles.is_empty() && tally.equivalent > 0 {
        let within = limit(step.effective_margin.0);
        notes.push(format!(
            "{} of {} are equivalent within {within}.",
            tally.equivalent,
            tests(all)
        ));
    }
    if step.obstacles.is_empty() && tally.negligible > 0 {
        let within = least(step);
        notes.push(format!("{} of {} differ by less than {within}.", tally.negligible, tests(all)));
    }
    notes.extend(total(step));
    let margin = match (&step.noise, step.effective_margin.0 > step.margin.0) {
        (Some(noise), raised) => format!(
            "A/A control: {} of {} duplicates, 95 % of the ratios within {} ({}significant); \
             equivalence margin {} {}.",
            tests(noise.pairs),
            noise.cells,
            limit(noise.ratio.0),
            if noise.shown { "" } else { "not " },
            if raised { "raised to δ′ =" } else { "δ =" },
            limit(step.effective_margin.0)
        ),
        (None, _) => format!(
            "Equivalence margin δ = {}; no A/A control in these runs.",
            limit(step.margin.0)
        ),
    };
    if !step.tests.is_empty() {
        notes.push(margin);
    }
    if let Some(controls) = &step.negative_controls.tests {
        notes.push(format!(
            "Negative controls: {}, geometric mean {}.",
            tests(controls.tests),
            ratio(controls.ratio.0, controls.interval)
        ));
    }
    for fact in &step.negative_controls.machine {
        let (unit, what) = match fact.name {
            "clock.cost_ns" => (Unit::Nanoseconds, "clock read time, lower is better"),
            _ => (Unit::BytesPerSecond, "memory copy rate, higher is better"),
        };
        let doubt = if fact.differs { "; the machine itself may have changed" } else { "" };
        notes.push(format!(
            "Machine: {what}: {} -> {} ({}, n = 1, not tested){doubt}.",
            alone(unit, fact.first),
            alone(unit, fact.second),
            signed((fact.second / fact.first - 1.0, None))
        ));
    }
    notes
}

/// C12: geometric mean over all affected tests.
fn total(step: &Paired) -> Option<String> {
    // A mean over one test would repeat the test.
    let total = step.total.as_ref().filter(|total| total.each.len() > 1)?;
    let tally = step.tally;
    let counts = format!(
        "; {} better, {} worse, {} equivalent, {} negligible, {} inconclusive",
        tally.better, tally.worse, tally.equivalent, tally.negligible, tally.inconclusive
    );
    let end = |at: usize| {
        let (name, ratio) = total.each.get(at)?;
        Some(format!("×{} ({})", fixed(ratio.0, 3), one_line(name)))
    };
    let fragile =
        total.fragile.and_then(|at| total.each.get(at)).map_or(String::new(), |(name, _)| {
            format!(" Not robust: reversed without {}.", one_line(name))
        });
    Some(format!(
        "All {} tests: {} (geometric mean, above 1 is better){counts}; range {} to {}.{fragile}",
        total.each.len(),
        ratio(total.ratio.0, Some(total.interval)),
        end(total.least)?,
        end(total.most)?
    ))
}
