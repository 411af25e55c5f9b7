//! Findings C6, C7, and C8: effect of a swept parameter on a filesystem.
//!
//! There is one answer per test and filesystem. If all levels are equivalent within ε, the answer
//! is C7, even if there is a trend. A turning point is reported as C8, never as a trend. C6
//! requires a significant trend and a significant difference between the first and the last level.
//! The p-values of trends are Holm-adjusted over the filesystems of a sweep.

use crate::view::FindingKind;
use analysis::{
    Comparer, Comparison, Interval, NotEstimable, Summary, Verdict, holm, summary,
    trend::{Form, FormKind, INSENSITIVE, Level, Sensitive, Sensitivity, Sweep, Trend},
};
use model::{Ratio, metric::Better};

use crate::{
    units::{Scale, capital, fixed, grouped, percents, probability, ratio, span},
    view::{
        equivalence_margin::EquivalenceMargin,
        findings::{Answer, PointFindings, WithheldFinding, disagreement},
        sweeps::{Cut, TOO_FEW},
    },
};

/// Significance level of a trend, after adjustment.
const TREND: f64 = 0.05;
/// Minimum fraction of resamples that agree on the level of a turning point.
const SHARE_MIN: f64 = 0.5;

/// One quantity over the levels of one parameter.
pub(in crate::view) struct Input<'a> {
    /// Anchor of the sweep.
    pub(in crate::view) id: &'a str,
    /// Heading: `Write: iozone file_size=16GiB, over block_size`.
    pub(in crate::view) label: &'a str,
    /// `durable throughput`.
    pub(in crate::view) quantity: &'a str,
    /// Test and point: `write, iozone file_size=16GiB`; empty for a lifecycle step.
    pub(in crate::view) what: &'a str,
    pub(in crate::view) parameter: &'a str,
    pub(in crate::view) scale: Scale,
    pub(in crate::view) margin: EquivalenceMargin,
    pub(in crate::view) seed: u64,
    pub(in crate::view) lines: Vec<Line>,
}

impl Input<'_> {
    /// ε: limit of the ratio of the largest to the smallest median, minus 1, for equivalent levels.
    /// It is at least the equivalence margin.
    fn epsilon(&self) -> Ratio {
        Ratio(INSENSITIVE.0.max(self.margin.ratio().0))
    }
}

/// One filesystem.
pub(in crate::view) struct Line {
    pub(in crate::view) name: String,
    /// True if all levels are ranked, so that findings can use them.
    pub(in crate::view) sound: bool,
    /// Label and repetitions of each level with results, ascending.
    pub(in crate::view) levels: Vec<(String, Level)>,
    /// Restriction to common rounds.
    pub(in crate::view) cut: Cut,
}

/// Analysis of one filesystem.
struct Found {
    sensitivity: Sensitivity,
    verdict: Sensitive,
    /// Shape of the medians over the levels; `None` for C7, which does not depend on it, and for
    /// two levels.
    form: Option<Form>,
    trend: Trend,
    ends: Comparison,
}

/// Answers for all filesystems, and the reasons for withheld ones for the caption: `no finding for
/// ext4: …`.
pub(in crate::view) fn findings(
    view: &Input,
    comparer: &mut Comparer,
) -> (PointFindings, Vec<String>) {
    let found: Vec<Result<Found, WithheldFinding>> =
        view.lines.iter().map(|line| find(view, line, comparer)).collect();
    let ps: Vec<f64> = found.iter().flatten().map(|found| found.trend.p).collect();
    let mut corrected = holm(&ps).into_iter();
    let mut findings = PointFindings { label: view.label.to_owned(), ..PointFindings::default() };
    let mut reasons: Vec<(String, &str)> = Vec::new();
    for (line, found) in view.lines.iter().zip(found) {
        let answer = match found {
            Ok(found) => {
                let p = corrected.next().unwrap_or(1.0);
                SweepWriter { view, line, found: &found, p, family: ps.len() }.answer()
            }
            Err(withheld) => Answer::Withheld(withheld),
        };
        if let Answer::Withheld(withheld) = &answer {
            reasons.push((withheld.reason.clone(), &line.name));
        }
        findings.extend_on_request([answer]);
    }
    let caption = |(reason, names): (String, Vec<&str>)| {
        format!("no finding for {}: {reason}", names.join(", "))
    };
    (findings, grouped(reasons).into_iter().map(caption).collect())
}

/// Withheld finding about one filesystem.
fn open(
    view: &Input,
    line: &Line,
    kind: FindingKind,
    reason: String,
    hint: &str,
) -> WithheldFinding {
    WithheldFinding {
        kind,
        test: view.id.to_owned(),
        question: format!("effect of {} on {}", view.parameter, subject(view, line)),
        reason,
        hint: hint.to_owned(),
    }
}

/// `durable throughput of ext4 on write, iozone file_size=16GiB`.
fn subject(view: &Input, line: &Line) -> String {
    let on = if view.what.is_empty() { String::new() } else { format!(" on {}", view.what) };
    format!("{} of {}{on}", view.quantity, line.name)
}

/// Analyzes one filesystem, or returns the withheld finding.
fn find(view: &Input, line: &Line, comparer: &mut Comparer) -> Result<Found, WithheldFinding> {
    let refused =
        |reason: &str, hint: &str| open(view, line, FindingKind::C6, reason.to_owned(), hint);
    let least = line.levels.iter().map(|(_, level)| level.repetitions.len()).min().unwrap_or(0);
    let needed = summary::needed(summary::LEVEL);
    if least < needed as usize {
        let (reason, hint) = (
            format!("n = {least}, {needed} needed"),
            format!("run at least {needed} repetitions of each level"),
        );
        return Err(refused(&reason, &hint));
    }
    if !line.sound {
        let reason = "a level failed or is blocked by warnings";
        return Err(refused(reason, "see the warnings of the level"));
    }
    let absent = |absent: NotEstimable| {
        let text = absent.to_string();
        // The text has the form `reason; hint`.
        let (reason, hint) = text.split_once("; ").unwrap_or((text.as_str(), ""));
        refused(reason, hint)
    };
    if line.cut == Cut::TooFew {
        return Err(refused(TOO_FEW.0, TOO_FEW.1));
    }
    let levels = line.levels.iter().map(|(_, level)| level.clone()).collect();
    let no_ratio = |error: analysis::Error| refused(&error.to_string(), "");
    let sweep = Sweep::new(levels).map_err(no_ratio)?;
    let sensitivity = sweep.sensitivity(view.seed).map_err(absent)?;
    let verdict = sensitivity.verdict(view.margin.ratio(), view.epsilon());
    // Two levels have no turning point.
    let has_shape = verdict != Sensitive::Insensitive && line.levels.len() > 2;
    let form = || sweep.shape(view.seed).map_err(absent);
    Ok(Found {
        sensitivity,
        verdict,
        form: has_shape.then(form).transpose()?,
        trend: sweep.trend(view.seed).map_err(absent)?,
        // Higher counts as better for all metrics, because the finding reports an increase or a
        // decrease.
        ends: sweep.ends(comparer, Better::Higher, view.margin.ratio()).map_err(no_ratio)?,
    })
}

/// Writer of the finding about one analyzed filesystem.
struct SweepWriter<'a> {
    view: &'a Input<'a>,
    line: &'a Line,
    found: &'a Found,
    /// p-value of the trend, Holm-adjusted.
    p: f64,
    /// Number of filesystems over which the p-value is adjusted.
    family: usize,
}

impl SweepWriter<'_> {
    fn answer(&self) -> Answer {
        let epsilon = self.view.epsilon();
        match self.found.form.as_ref().map(|form| (form, form.kind)) {
            None if self.found.verdict == Sensitive::Insensitive => {
                self.found(FindingKind::C7, self.independent(epsilon))
            }
            Some((form, FormKind::Peak { level })) => self.turn(form, level, "highest"),
            Some((form, FormKind::Valley { level })) => self.turn(form, level, "lowest"),
            Some((
                _,
                FormKind::Rising | FormKind::Falling | FormKind::Flat | FormKind::Inconclusive,
            ))
            | None => self.change(self.found.verdict, epsilon),
        }
    }

    fn found(&self, kind: FindingKind, text: String) -> Answer {
        Answer::found(kind, self.view.id, text)
    }

    fn withheld(&self, kind: FindingKind, reason: String, hint: &str) -> Answer {
        Answer::Withheld(open(self.view, self.line, kind, reason, hint))
    }

    /// Text of C7.
    fn independent(&self, epsilon: Ratio) -> String {
        format!(
            "{} did not depend on {} from {} to {} (within {:.0} %): largest over smallest median \
             {}, upper 95 % bound {} (bootstrap; n = {}).",
            capital(&self.subject()),
            self.view.parameter,
            self.label(0),
            self.label(self.last()),
            epsilon.0 * 100.0,
            times(self.found.sensitivity.index),
            times(self.found.sensitivity.upper),
            self.repetitions()
        )
    }

    /// C8, if enough resamples agree on the level.
    fn turn(&self, form: &Form, level: usize, word: &str) -> Answer {
        let share = form.share.map_or(0.0, |share| share.0);
        let (at, parameter) = (self.label(level), self.view.parameter);
        if share < SHARE_MIN {
            let reason = format!(
                "the turning point at {parameter}={at} has only {:.0} % of resamples",
                share * 100.0
            );
            return self.withheld(FindingKind::C8, reason, "run more repetitions");
        }
        let text = format!(
            "{} was {word} at {parameter}={at}: {}; {:.0} % of bootstrap resamples agree (levels \
             {} to {}; not monotone, p {}; n = {}).",
            capital(&self.subject()),
            self.value(level),
            (share * 100.0).floor(),
            self.label(0),
            self.label(self.last()),
            probability(form.p),
            self.repetitions()
        );
        self.found(FindingKind::C8, text)
    }

    /// C6, if the trend and the difference between the first and the last level are significant.
    fn change(&self, verdict: Sensitive, epsilon: Ratio) -> Answer {
        let ends = &self.found.ends;
        let between = (self.label(0), self.label(self.last()));
        let shown = self.p < TREND;
        match ends.verdict {
            Verdict::Differs { .. } if shown && self.agrees() => {}
            Verdict::Inconclusive { needed } if shown => {
                let why = disagreement(ends);
                let reason = format!(
                    "the trend is significant (p {}), but {} does not differ significantly from \
                     {}: {}{}",
                    probability(self.p),
                    between.1,
                    between.0,
                    ratio(ends.ratio.0, ends.interval),
                    why.as_ref().map_or(String::new(), |why| format!(", but {why}"))
                );
                let hint = why.map_or_else(|| repetitions_hint(needed), |_| String::new());
                return self.withheld(FindingKind::C6, reason, &hint);
            }
            Verdict::Differs { .. } | Verdict::Equivalent if shown => {
                let reason = format!(
                    "the trend is significant (p {}), but {} relative to {} is {}",
                    probability(self.p),
                    between.1,
                    between.0,
                    ratio(ends.ratio.0, ends.interval)
                );
                return self.withheld(FindingKind::C6, reason, "");
            }
            Verdict::Differs { .. } | Verdict::Equivalent | Verdict::Inconclusive { .. } => {
                return self.undecided(verdict, epsilon);
            }
        }
        let (word, by) = by(ends.ratio, ends.interval);
        let (by, caveat) = match disagreement(ends) {
            None => (format!(" {by}"), String::new()),
            Some(why) => (
                String::new(),
                format!(
                    "not quantified because estimates disagree: {}, but {why}; ",
                    ratio(ends.ratio.0, ends.interval)
                ),
            ),
        };
        let slope = self.found.trend.per_doubling;
        let text = format!(
            "Increasing {} from {} to {} {word} {}{by} ({caveat}from {} to {}; {} per doubling; \
             trend p {}, Holm-adjusted over {}; n = {}).",
            self.view.parameter,
            between.0,
            between.1,
            self.subject(),
            self.value(0),
            self.value(self.last()),
            signed(slope, self.found.trend.per_doubling_interval.ok()),
            probability(self.p),
            match self.family {
                1 => "1 filesystem".to_owned(),
                n => format!("{n} filesystems"),
            },
            self.repetitions()
        );
        self.found(FindingKind::C6, text)
    }

    /// True if the trend and the difference between the ends have the same direction.
    fn agrees(&self) -> bool {
        (self.found.trend.per_doubling.0 > 1.0) == (self.found.ends.ratio.0 > 1.0)
    }

    /// Withheld C6: the levels are not equivalent, and there is neither a turning point nor a
    /// significant trend.
    fn undecided(&self, verdict: Sensitive, epsilon: Ratio) -> Answer {
        let own = &self.found.sensitivity;
        let trend = probability(self.p);
        if verdict == Sensitive::Sensitive {
            let reason = format!(
                "levels differ (largest over smallest median {}, {} expected by chance) without a \
                 significant trend (p {trend}) or a single turning point",
                times(own.index),
                times(own.chance)
            );
            return self.withheld(FindingKind::C6, reason, "inspect the results per level");
        }
        let reason = format!(
            "no significant trend (p {trend}) and no equivalence within {:.0} % (upper bound {})",
            epsilon.0 * 100.0,
            times(own.upper)
        );
        let hint = match self.found.ends.verdict {
            // These repetitions also narrow the bound, but by an unknown amount.
            Verdict::Inconclusive { needed } if disagreement(&self.found.ends).is_none() => {
                repetitions_hint(needed)
            }
            Verdict::Inconclusive { .. } | Verdict::Differs { .. } | Verdict::Equivalent => {
                "run more repetitions".to_owned()
            }
        };
        self.withheld(FindingKind::C6, reason, &hint)
    }

    fn subject(&self) -> String {
        subject(self.view, self.line)
    }

    fn last(&self) -> usize {
        self.line.levels.len().saturating_sub(1)
    }

    fn label(&self, level: usize) -> &str {
        self.line.levels.get(level).map_or("", |(label, _)| label)
    }

    /// `412 MiB/s [408, 415]`.
    fn value(&self, level: usize) -> String {
        let level = self.line.levels.get(level).map(|(_, level)| level.values());
        let Some(Ok(summary)) = level.map(|values| Summary::new(&values)) else {
            return String::new();
        };
        let shown = self.view.scale.shown(&summary);
        let ends = shown.interval.map_or(String::new(), |(low, high)| format!(" [{low}, {high}]"));
        format!("{} {}{ends}", shown.value, self.view.scale.name)
    }

    /// Number of repetitions per level: `8`, or `8 to 12`. A suffix states that rounds were
    /// excluded.
    fn repetitions(&self) -> String {
        let counts = self.line.levels.iter().map(|(_, level)| level.repetitions.len());
        let counts = span(counts.map(|count| u32::try_from(count).unwrap_or(u32::MAX)));
        let several = counts.contains(' ');
        if several { counts } else { counts + self.line.cut.suffix() }
    }
}

/// Hint with the number of repetitions for a conclusive comparison of the first and last level.
fn repetitions_hint(needed: u32) -> String {
    format!("run about {needed} repetitions of each level")
}

/// `×1.042`, rounded up because it is an upper bound.
fn times(ratio: Ratio) -> String {
    let rounded = (ratio.0 * 1000.0 - 1e-6).ceil() / 1000.0;
    format!("×{}", fixed(rounded, if rounded < 10.0 { 3 } else { 1 }))
}

/// Ratio as a change: `increased`, and `by 34.2 % [31.0 to 37.5 %]`. A change beyond twofold is a
/// factor: `by a factor of ×15.60 [15.10, 16.20]`.
fn by(of: Ratio, interval: Option<Interval>) -> (&'static str, String) {
    let word = if of.0 > 1.0 { "increased" } else { "decreased" };
    if !(0.5..=2.0).contains(&of.0) {
        return (word, format!("by a factor of {}", ratio(of.0, interval)));
    }
    let change = |ratio: f64| (ratio - 1.0).abs();
    let ends = interval.map(|ends| {
        let (one, other) = (change(ends.low), change(ends.high));
        Interval { low: one.min(other), high: one.max(other), level: ends.level }
    });
    (word, format!("by {}", percents(change(of.0), ends)))
}

/// `+3.1 % [2.9 to 3.3 %]`.
pub(in crate::view) fn signed(of: Ratio, interval: Option<Interval>) -> String {
    let ends = interval.map(|ends| Interval {
        low: ends.low - 1.0,
        high: ends.high - 1.0,
        level: ends.level,
    });
    let sign = if of.0 >= 1.0 { "+" } else { "" };
    match ends {
        Some(_) => format!("{sign}{}", percents(of.0 - 1.0, ends)),
        None => {
            format!("{}{}", if of.0 >= 1.0 { "+" } else { "-" }, percents((of.0 - 1.0).abs(), None))
        }
    }
}

#[cfg(test)]
mod tests;
