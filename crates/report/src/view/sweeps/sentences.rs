//! C6, C7, and C8: what a swept parameter does to a filesystem, or why that is not told.
//!
//! One answer for each test and filesystem. What is alike within ε is told as that, before a trend
//! that would be smaller; what turns is told by where it does, and never as a trend; a trend needs
//! its ends to differ as well. The p-values of trends hold for all filesystems of a sweep (Holm).

use analysis::{
    Absent, Comparer, Comparison, Interval, Summary, Verdict, holm, summary,
    trend::{Form, FormKind, INSENSITIVE, Level, Sensitive, Sensitivity, Sweep, Trend},
};
use model::{Metric, Ratio, metric::Better};

use crate::{
    units::{Scale, capital, fixed, percents, ratio},
    view::{
        claims::{Answer, Claim, PointClaims, Withheld, disagreement},
        scaling::probability,
        sweeps::{Cut, TOO_FEW},
        tables::words,
        threshold::Threshold,
    },
};

/// A trend is told at a corrected p-value below this.
const TREND: f64 = 0.05;
/// A turn is told where at least this share of resamples agrees on its level.
const SHARE_MIN: f64 = 0.5;

/// One test over one parameter.
pub(super) struct Input<'a> {
    /// Anchor of the sweep.
    pub(super) id: &'a str,
    /// The heading: `Write over record, iozone file=16GiB`.
    pub(super) label: &'a str,
    /// The test in a sentence: `write, iozone file=16GiB`.
    pub(super) what: &'a str,
    pub(super) parameter: &'a str,
    pub(super) metric: Metric,
    pub(super) scale: Scale,
    pub(super) threshold: Threshold,
    pub(super) seed: u64,
    pub(super) lines: Vec<Line>,
}

impl Input<'_> {
    /// What is alike: twins may differ by more than what would be called that.
    fn epsilon(&self) -> Ratio {
        Ratio(INSENSITIVE.0.max(self.threshold.ratio().0))
    }
}

/// One filesystem.
pub(super) struct Line {
    pub(super) name: String,
    /// All its levels may carry a claim.
    pub(super) sound: bool,
    /// What stands under each level that has results, and its repeats; ascending.
    pub(super) levels: Vec<(String, Level)>,
    /// Whether blocks were left out.
    pub(super) cut: Cut,
}

/// What was found of one filesystem.
struct Found {
    sensitivity: Sensitivity,
    verdict: Sensitive,
    /// What is insensitive is told as that, whatever its form.
    form: Option<Form>,
    trend: Trend,
    ends: Comparison,
}

/// Every filesystem with its answer; and for the caption, why there is none: `no sentence on ext4:
/// …`.
pub(super) fn claims(view: &Input, comparer: &mut Comparer) -> (PointClaims, Vec<String>) {
    let found: Vec<Result<Found, Withheld>> =
        view.lines.iter().map(|line| find(view, line, comparer)).collect();
    let ps: Vec<f64> = found.iter().flatten().map(|found| found.trend.p).collect();
    let mut corrected = holm(&ps).into_iter();
    let mut claims = PointClaims { label: view.label.to_owned(), ..PointClaims::default() };
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for (line, found) in view.lines.iter().zip(found) {
        let answer = match found {
            Ok(found) => {
                let p = corrected.next().unwrap_or(1.0);
                Teller { view, line, found: &found, p, family: ps.len() }.answer()
            }
            Err(withheld) => Answer::Withheld(withheld),
        };
        if let Answer::Withheld(withheld) = &answer {
            match reasons.iter_mut().find(|(reason, _)| *reason == withheld.missing) {
                Some((_, names)) => names.push(&line.name),
                None => reasons.push((withheld.missing.clone(), vec![&line.name])),
            }
        }
        claims.extend_quietly([answer]);
    }
    let told = |(reason, names): (String, Vec<&str>)| {
        format!("no sentence on {}: {reason}", names.join(", "))
    };
    (claims, reasons.into_iter().map(told).collect())
}

/// The question about one filesystem, unanswered.
fn open(
    view: &Input,
    line: &Line,
    template: &'static str,
    missing: String,
    cure: &str,
) -> Withheld {
    Withheld {
        template,
        test: view.id.to_owned(),
        about: format!("what {} does to {} on {}", view.parameter, line.name, view.what),
        missing,
        cure: cure.to_owned(),
    }
}

/// All that is told of a filesystem.
fn find(view: &Input, line: &Line, comparer: &mut Comparer) -> Result<Found, Withheld> {
    let refused = |missing: &str, cure: &str| open(view, line, "C6", missing.to_owned(), cure);
    let least = line.levels.iter().map(|(_, level)| level.repeats.len()).min().unwrap_or(0);
    let needed = summary::needed(summary::LEVEL);
    if least < needed as usize {
        let (missing, cure) =
            (format!("only {least} repeats"), format!("measure at least {needed}"));
        return Err(refused(&missing, &cure));
    }
    if !line.sound {
        return Err(refused("a level failed or must not carry a claim", "see the warnings there"));
    }
    let absent = |absent: Absent| {
        let text = absent.to_string();
        // What is missing, and what would help.
        let (missing, cure) = text.split_once("; ").unwrap_or((text.as_str(), ""));
        refused(missing, cure)
    };
    if line.cut == Cut::TooFew {
        return Err(refused(TOO_FEW.0, TOO_FEW.1));
    }
    let levels = line.levels.iter().map(|(_, level)| level.clone()).collect();
    let no_ratio = |error: analysis::Error| refused(&error.to_string(), "");
    let sweep = Sweep::new(levels).map_err(no_ratio)?;
    let sensitivity = sweep.sensitivity(view.seed).map_err(absent)?;
    let verdict = sensitivity.verdict(view.threshold.ratio(), view.epsilon());
    let form = || sweep.shape(view.seed).map_err(absent);
    Ok(Found {
        sensitivity,
        verdict,
        form: (verdict != Sensitive::Insensitive).then(form).transpose()?,
        trend: sweep.trend(view.seed).map_err(absent)?,
        // Turned by nothing: the sentence says whether it is more or less.
        ends: sweep.ends(comparer, Better::Higher, view.threshold.ratio()).map_err(no_ratio)?,
    })
}

/// One filesystem whose figures are there.
struct Teller<'a> {
    view: &'a Input<'a>,
    line: &'a Line,
    found: &'a Found,
    /// Of its trend, corrected.
    p: f64,
    /// How many filesystems it was corrected for.
    family: usize,
}

impl Teller<'_> {
    fn answer(&self) -> Answer {
        let epsilon = self.view.epsilon();
        let Some(form) = &self.found.form else {
            return self.said("C7", self.alike(epsilon));
        };
        match form.kind {
            FormKind::Peak { level } => self.turn(form, level, "peaked"),
            FormKind::Valley { level } => self.turn(form, level, "was lowest"),
            FormKind::Rising | FormKind::Falling | FormKind::Flat | FormKind::Open => {
                self.change(self.found.verdict, epsilon)
            }
        }
    }

    fn said(&self, template: &'static str, text: String) -> Answer {
        Answer::Said(Claim { template, test: self.view.id.to_owned(), text })
    }

    fn withheld(&self, template: &'static str, missing: String, cure: &str) -> Answer {
        Answer::Withheld(open(self.view, self.line, template, missing, cure))
    }

    /// C7.
    fn alike(&self, epsilon: Ratio) -> String {
        format!(
            "{} was insensitive to {} within {:.0} % from {} to {}: its largest median is {} of \
             its smallest, and at most {} (95 % bound by resampling; n = {}).",
            capital(&self.subject()),
            self.view.parameter,
            epsilon.0 * 100.0,
            self.label(0),
            self.label(self.last()),
            times(self.found.sensitivity.index),
            times(self.found.sensitivity.upper),
            self.repeats()
        )
    }

    /// C8, if resamples agree on where it turns.
    fn turn(&self, form: &Form, level: usize, word: &str) -> Answer {
        let share = form.share.map_or(0.0, |share| share.0);
        let (at, parameter) = (self.label(level), self.view.parameter);
        if share < SHARE_MIN {
            let missing = format!(
                "it {word} at {parameter}={at}, but only {:.0} % of resamples agree on that level",
                share * 100.0
            );
            return self.withheld("C8", missing, "measure more repeats");
        }
        let text = format!(
            "{} {word} at {parameter}={at}, with {}; {:.0} % of resamples agree (tested from {} to \
             {}; not monotone, p {}; n = {}).",
            capital(&self.subject()),
            self.value(level),
            (share * 100.0).floor(),
            self.label(0),
            self.label(self.last()),
            probability(form.p),
            self.repeats()
        );
        self.said("C8", text)
    }

    /// C6, if there is a trend and the ends differ.
    fn change(&self, verdict: Sensitive, epsilon: Ratio) -> Answer {
        let ends = &self.found.ends;
        let between = (self.label(0), self.label(self.last()));
        let shown = self.p < TREND;
        match ends.verdict {
            Verdict::Differs { .. } if shown && self.agrees() => {}
            Verdict::Inconclusive { needed } if shown => {
                let why = disagreement(ends);
                let missing = format!(
                    "there is a trend (p {}), but {} is not told from {}: {}{}",
                    probability(self.p),
                    between.1,
                    between.0,
                    ratio(ends.ratio.0, ends.interval),
                    why.as_ref().map_or(String::new(), |why| format!(", and {why}"))
                );
                let cure = why.map_or_else(|| repeats_of_each(needed), |_| String::new());
                return self.withheld("C6", missing, &cure);
            }
            Verdict::Differs { .. } | Verdict::Equivalent if shown => {
                let missing = format!(
                    "there is a trend (p {}), but {} is {} of {}",
                    probability(self.p),
                    between.1,
                    ratio(ends.ratio.0, ends.interval),
                    between.0
                );
                return self.withheld("C6", missing, "");
            }
            Verdict::Differs { .. } | Verdict::Equivalent | Verdict::Inconclusive { .. } => {
                return self.undecided(verdict, epsilon);
            }
        }
        let (word, by) = by(ends.ratio, ends.interval);
        let by = disagreement(ends).map_or(by, |why| format!("(by how much is not told: {why})"));
        let slope = self.found.trend.per_doubling;
        let text = format!(
            "Changing {} from {} to {} {word} {} {by}, from {} to {} ({} per doubling; trend p {}, \
             Holm over {}; n = {}).",
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
            self.repeats()
        );
        self.said("C6", text)
    }

    /// Whether trend and ends point the same way.
    fn agrees(&self) -> bool {
        (self.found.trend.per_doubling.0 > 1.0) == (self.found.ends.ratio.0 > 1.0)
    }

    /// Neither alike, nor turning, nor with a trend.
    fn undecided(&self, verdict: Sensitive, epsilon: Ratio) -> Answer {
        let own = &self.found.sensitivity;
        let trend = probability(self.p);
        if verdict == Sensitive::Sensitive {
            let missing = format!(
                "its levels differ, the largest median {} of the smallest ({} by chance), but \
                 neither a trend (p {trend}) nor one turn is shown",
                times(own.index),
                times(own.chance)
            );
            return self.withheld("C6", missing, "read the points");
        }
        let missing = format!(
            "no trend is shown (p {trend}), nor that its levels are alike within {:.0} %: the \
             largest median is {} of the smallest, and may be {}",
            epsilon.0 * 100.0,
            times(own.index),
            times(own.upper)
        );
        let cure = match self.found.ends.verdict {
            // More repeats narrow the bound of the levels, but by how many is not told.
            Verdict::Inconclusive { needed } if disagreement(&self.found.ends).is_none() => {
                repeats_of_each(needed)
            }
            Verdict::Inconclusive { .. } | Verdict::Differs { .. } | Verdict::Equivalent => {
                "measure more repeats".to_owned()
            }
        };
        self.withheld("C6", missing, &cure)
    }

    /// `durable throughput of ext4 on write, iozone file=16GiB`.
    fn subject(&self) -> String {
        format!("{} of {} on {}", words(self.view.metric), self.line.name, self.view.what)
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

    /// `8`, or `8 to 12`; and whether these are not all.
    fn repeats(&self) -> String {
        let counts = self.line.levels.iter().map(|(_, level)| level.repeats.len());
        match (counts.clone().min(), counts.max()) {
            (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
            (least, _) => format!("{}{}", least.unwrap_or(0), self.line.cut.words()),
        }
    }
}

/// `about 14 repeats of each`.
fn repeats_of_each(needed: u32) -> String {
    format!("about {needed} repeats of each would decide")
}

/// `×1.042`, rounded up as a bound has to be.
fn times(ratio: Ratio) -> String {
    let rounded = (ratio.0 * 1000.0 - 1e-6).ceil() / 1000.0;
    format!("×{}", fixed(rounded, if rounded < 10.0 { 3 } else { 1 }))
}

/// What a ratio is as a change: `raised`, `by 34.2 % [31.0 to 37.5 %]`; beyond twice or half it is
/// told as a ratio, `to ×15.6 [15.1, 16.2]`.
fn by(of: Ratio, interval: Option<Interval>) -> (&'static str, String) {
    let word = if of.0 > 1.0 { "raised" } else { "lowered" };
    if !(0.5..=2.0).contains(&of.0) {
        return (word, format!("to {}", ratio(of.0, interval)));
    }
    let change = |ratio: f64| (ratio - 1.0).abs();
    let ends = interval.map(|ends| {
        let (one, other) = (change(ends.low), change(ends.high));
        Interval { low: one.min(other), high: one.max(other), level: ends.level }
    });
    (word, format!("by {}", percents(change(of.0), ends)))
}

/// `+3.1 % [2.9 to 3.3 %]`.
fn signed(of: Ratio, interval: Option<Interval>) -> String {
    let ends = interval.map(|ends| Interval {
        low: ends.low - 1.0,
        high: ends.high - 1.0,
        level: ends.level,
    });
    let sign = if of.0 >= 1.0 { "+" } else { "" };
    // Without an interval a percentage is told without its sign.
    match ends {
        Some(_) => format!("{sign}{}", percents(of.0 - 1.0, ends)),
        None => {
            format!("{}{}", if of.0 >= 1.0 { "+" } else { "-" }, percents((of.0 - 1.0).abs(), None))
        }
    }
}

#[cfg(test)]
mod tests;
