//! Effects of the options of mkfs and mount that the plan varies, and finding C24.
//!
//! An effect is the ratio of the metric between two values of a factor, averaged over all other
//! factors. Each trial contributes to every effect, so a combination needs few repetitions.

use crate::view::FindingKind;
use analysis::{
    Interval,
    factorial::{Effect, Factorial, Source, Term},
    holm,
    summary::{LEVEL, needed},
};
use model::{OptionOf, Ratio, Warning};

use super::Input;
use crate::{
    units::{count, probability},
    view::{
        findings::{Answer, list},
        sweeps::signed,
        tables::{Body, Column, Row, Table, TableCell, metric_label},
    },
};

/// Method paragraph of the report.
pub(crate) const METHOD: &str = "\
    Options: the effect of an option is the ratio of geometric means between two of its values, \
    over all combinations of the other factors, from the analysis of variance of the logarithms \
    with rounds and two-way interactions; its 95 % interval is from Student's t distribution. A \
    finding requires a p-value below 5 % by permuting residuals within rounds, Holm-adjusted over \
    the terms. In a screening design, interactions are aliased, and significant effects are \
    overestimated on average: measure them again in a full design.";

/// Family-wise error rate of the findings about one test.
const ERROR: f64 = 0.05;
/// Largest fraction of results that may be missing.
const MISSING_MAX: f64 = 0.25;

/// True for the name of an option, such as `mount.data`.
pub(super) fn is_option(name: &str) -> bool {
    OptionOf::parse(name).is_some()
}

/// One effect.
#[derive(Clone, Debug)]
pub(crate) struct EffectRow {
    /// `mount.sync: false to true`.
    pub(crate) name: String,
    pub(crate) ratio: Ratio,
    pub(crate) interval: Interval,
    /// Holm-adjusted over the terms.
    p: f64,
}

impl EffectRow {
    pub(crate) fn is_significant(&self) -> bool {
        self.p < ERROR
    }

    /// Change and its interval in percent.
    pub(crate) fn text(&self) -> String {
        signed(self.ratio, Some(self.interval))
    }
}

/// Main effects, then significant interactions of factors with two values. Empty unless the plan
/// varies options, and the data support the analysis.
pub(super) fn rows(input: &Input) -> Vec<EffectRow> {
    let Some(factorial) = input.factorial.as_ref().ok().filter(|_| input.has_options()) else {
        return Vec::new();
    };
    let p = adjusted(factorial);
    let rows = factorial.terms.iter().zip(p).flat_map(|(term, p)| {
        let row = move |effect: &Effect| EffectRow {
            name: name(factorial, term, effect),
            ratio: effect.ratio,
            interval: effect.interval,
            p,
        };
        term.effects.iter().map(row).collect::<Vec<_>>()
    });
    let mains = factorial.factors.iter().map(|factor| factor.levels.len() - 1).sum();
    let rows: Vec<EffectRow> = rows.collect();
    let (mains, interactions) = rows.split_at(rows.len().min(mains));
    let significant = interactions.iter().filter(|row| row.is_significant());
    mains.iter().chain(significant).cloned().collect()
}

fn adjusted(factorial: &Factorial) -> Vec<f64> {
    holm(&factorial.terms.iter().map(|term| term.p).collect::<Vec<_>>())
}

fn name(factorial: &Factorial, term: &Term, effect: &Effect) -> String {
    match term.source {
        Source::Main(factor) => {
            let factor = &factorial.factors[factor];
            format!("{}: {} to {}", factor.name, factor.levels[0], factor.levels[effect.level])
        }
        Source::Interaction(..) => pairs(factorial, term),
    }
}

/// `mount.a × mount.b`, and the interactions aliased with it.
fn pairs(factorial: &Factorial, term: &Term) -> String {
    let pair = |one: usize, other: usize| {
        format!("{} × {}", factorial.factors[one].name, factorial.factors[other].name)
    };
    let own = match term.source {
        Source::Interaction(one, other) => pair(one, other),
        Source::Main(factor) => factorial.factors[factor].name.clone(),
    };
    let aliases = term.aliases.iter().map(|(one, other)| pair(*one, *other));
    std::iter::once(own).chain(aliases).collect::<Vec<_>>().join(" or ")
}

/// Effects as a table; `None` without effects.
pub(super) fn table(input: &Input, rows: &[EffectRow]) -> Option<Table> {
    let factorial = input.factorial.as_ref().ok()?;
    let row = |effect: &EffectRow| {
        let p = probability(effect.p).trim_start_matches("= ").to_owned();
        let cells = [effect.text(), p].map(TableCell::Text).into();
        Row::of(effect.name.clone(), None, Body::Cells(cells))
    };
    let mut caption = vec![
        format!(
            "Change of {} between two values of a factor, averaged over the other factors, with \
             95 % confidence interval; for an interaction, the ratio of the effect of one factor \
             between the two values of the other",
            metric_label(input.all.metric)
        ),
        format!(
            "p Holm-adjusted over {}; n = {} values, at least {} per value of a factor",
            count(factorial.terms.len(), "term"),
            factorial.n,
            factorial.per_level
        ),
    ];
    if factorial.missing > 0 {
        caption.push(
            "screening design: significant effects are overestimated on average, so measure them \
             again in a full design"
                .into(),
        );
    }
    (!rows.is_empty()).then(|| Table {
        id: format!("{}--effects", input.id),
        title: format!("Effects: {}", input.what),
        caption,
        corner: "factor",
        columns: vec![Column::new("change", ""), Column::new("p", "")],
        rows: rows.iter().map(row).collect(),
    })
}

/// C24: options that change the metric, and options that do not matter.
pub(super) fn answers(input: &Input, factorial: &Factorial) -> Vec<Answer> {
    let found = |text| Answer::found(FindingKind::C24, &input.id, text);
    let withheld = |question: String, reason: String, hint: &str| {
        Answer::withheld(FindingKind::C24, &input.id, question, reason, hint)
    };
    if let Some((reason, hint)) = obstacle(input, factorial) {
        return vec![withheld(format!("effects of options on {}", input.what), reason, hint)];
    }
    let p = adjusted(factorial);
    let options: Vec<(&Term, f64)> = factorial
        .terms
        .iter()
        .zip(p.iter().copied())
        .filter(|(term, _)| match term.source {
            Source::Main(factor) => is_option(&factorial.factors[factor].name),
            Source::Interaction(..) => false,
        })
        .collect();
    let (changed, others): (Vec<_>, Vec<_>) = options.into_iter().partition(|(_, p)| *p < ERROR);
    let mut answers: Vec<Answer> =
        changed.iter().map(|(term, p)| found(change(input, factorial, term, *p))).collect();
    let margin = input.margin.ratio().0;
    let within = |(term, _): &&(&Term, f64)| {
        let inside = |effect: &Effect| {
            effect.interval.low > 1.0 / (1.0 + margin) && effect.interval.high < 1.0 + margin
        };
        term.effects.iter().all(inside)
    };
    let (irrelevant, open): (Vec<_>, Vec<_>) = others.iter().partition(within);
    let names: Vec<String> = irrelevant.iter().map(|(term, _)| pairs(factorial, term)).collect();
    if !names.is_empty() {
        let do_not = if names.len() == 1 { "does not" } else { "do not" };
        answers.push(found(format!(
            "{} {do_not} matter on {}: 95 % intervals of the effects within ±{} (n = {}).",
            list(&names),
            input.what,
            input.margin.percent(),
            factorial.n
        )));
    }
    answers.extend(open.iter().map(|(term, p)| {
        let question = format!("effect of {} on {}", pairs(factorial, term), input.what);
        let reason = format!("{}, p {}", sizes(factorial, term), probability(*p));
        withheld(question, reason, "run more repetitions")
    }));
    let depends = factorial.terms.iter().zip(&p).filter(|(_, p)| **p < ERROR);
    answers.extend(depends.filter_map(|(term, p)| {
        let text = dependence(factorial, term, &changed)?;
        Some(found(format!("{text} on {} (p {}, Holm-adjusted).", input.what, probability(*p))))
    }));
    answers
}

/// Reason why there are no findings about options, and a hint.
fn obstacle(input: &Input, factorial: &Factorial) -> Option<(String, &'static str)> {
    let needed = needed(LEVEL);
    if factorial.per_level < needed || factorial.residual_freedom < needed {
        let reason = format!("n = {} per value, {needed} needed", factorial.per_level);
        return Some((reason, "run more repetitions"));
    }
    let entries = || input.all.entries();
    let all = (input.all.points.len() * input.shown.len()) as f64;
    let with = entries().filter(|entry| entry.summary.is_some()).count() as f64;
    if with < (1.0 - MISSING_MAX) * all {
        let reason = "more than 25 % of the combinations have no results".to_owned();
        return Some((reason, "remove the options that fail"));
    }
    // An effect has the repetitions of many combinations.
    let few = Warning::TooFewRepetitions { n: 0, needed: 0 }.code();
    let blocked = entries()
        .filter(|entry| entry.summary.is_some())
        .any(|entry| entry.barring.iter().any(|(code, _)| *code != few));
    blocked.then(|| ("a cell is blocked by warnings".into(), "see the warnings of the cell"))
}

/// `mount.sync changed durable throughput on write, …: true -93.2 % [-93.9 to -92.4 %] relative to
/// false (…)`.
fn change(input: &Input, factorial: &Factorial, term: &Term, p: f64) -> String {
    let screening = if factorial.missing > 0 { "; screening design" } else { "" };
    format!(
        "{} changed {} on {}: {} (p {}, Holm-adjusted over {}; n = {}{screening}).",
        pairs(factorial, term),
        metric_label(input.all.metric),
        input.what,
        sizes(factorial, term),
        probability(p),
        count(factorial.terms.len(), "term"),
        factorial.n
    )
}

/// `true -93.2 % [-93.9 to -92.4 %] relative to false`.
fn sizes(factorial: &Factorial, term: &Term) -> String {
    let Source::Main(factor) = term.source else { return String::new() };
    let levels = &factorial.factors[factor].levels;
    let effect = |effect: &Effect| {
        format!("{} {}", levels[effect.level], signed(effect.ratio, Some(effect.interval)))
    };
    let each: Vec<String> = term.effects.iter().map(effect).collect();
    format!("{} relative to {}", each.join(", "), levels[0])
}

/// Text about an interaction that includes an option. With aliases, a pair whose main effects are
/// both significant is named as the likely one (effect heredity).
fn dependence(factorial: &Factorial, term: &Term, changed: &[(&Term, f64)]) -> Option<String> {
    let Source::Interaction(one, other) = term.source else { return None };
    let all = || std::iter::once((one, other)).chain(term.aliases.iter().copied());
    let name = |factor: usize| factorial.factors[factor].name.as_str();
    if !all().any(|(one, other)| is_option(name(one)) || is_option(name(other))) {
        return None;
    }
    let matters =
        |factor: usize| changed.iter().any(|(term, _)| term.source == Source::Main(factor));
    let mut likely = all().filter(|(one, other)| matters(*one) && matters(*other));
    let hint = match (term.aliases.is_empty(), likely.next(), likely.next()) {
        (false, Some((one, other)), None) => {
            format!(" (aliased; probably {} × {})", name(one), name(other))
        }
        (false, ..) => " (aliased)".to_owned(),
        (true, ..) => String::new(),
    };
    let size = term.effects.first().map(|effect| {
        format!(
            ": ratio of the effects {}",
            crate::units::ratio(effect.ratio.0, Some(effect.interval))
        )
    });
    Some(format!("{} interact{hint}{}", pairs(factorial, term), size.unwrap_or_default()))
}

impl Input<'_> {
    /// True if the plan varies options.
    pub(super) fn has_options(&self) -> bool {
        self.axes.iter().any(|axis| is_option(&axis.name))
    }
}
