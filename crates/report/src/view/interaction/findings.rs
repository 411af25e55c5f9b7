//! Finding C18: share of the variance that a factor explains, and the factors it interacts with.
//! Also the conditions that findings about filesystems must name because of an interaction.

use crate::view::FindingKind;
use analysis::{
    factorial::{Dependence, Factorial, Source},
    holm,
    summary::{LEVEL, needed},
};

use super::{Input, Scopes, at, effects, without};
use crate::{
    units::{percent, percents},
    view::findings::{Answer, PointFindings},
};

/// Family-wise error rate of the findings about one test.
const ERROR: f64 = 0.05;

/// One finding per factor with a significant share, and withheld findings.
pub(super) fn findings(input: &Input, title: &str) -> PointFindings {
    let found = |text| Answer::found(FindingKind::C18, &input.id, text);
    let withheld = |question: String, reason: String| {
        Answer::withheld(FindingKind::C18, &input.id, question, reason, "")
    };
    let influence = || format!("influence of settings on {}", input.what);
    let answers = match &input.factorial {
        Err(refusal) => vec![withheld(influence(), refusal.to_string())],
        Ok(factorial) if input.has_options() => effects::answers(input, factorial),
        Ok(factorial) if factorial.mostly_noise() => vec![withheld(
            influence(),
            format!("{} of the variance is unexplained", percent(factorial.residual_share)),
        )],
        Ok(factorial) if enough(factorial) && input.sound => {
            let (texts, inconclusive) = texts(input, factorial);
            let open = inconclusive.into_iter().map(|(one, other)| {
                let reason = format!(
                    "the interaction of {one} and {other} is inconclusive, so findings name the \
                     condition"
                );
                withheld(format!("interaction of {one} and {other} on {}", input.what), reason)
            });
            texts.into_iter().map(found).chain(open).collect()
        }
        Ok(_) => Vec::new(),
    };
    PointFindings::new(title, answers)
}

/// True if each combination has enough repetitions for a finding.
fn enough(factorial: &Factorial) -> bool {
    factorial.repetitions.0 >= needed(LEVEL)
}

/// Reason for missing findings, for the caption.
pub(super) fn withheld(input: &Input) -> Option<String> {
    match &input.factorial {
        Err(refusal) => Some(format!("shares of the variance: {refusal}")),
        Ok(_) if input.has_options() => None,
        Ok(factorial) if factorial.mostly_noise() => {
            Some(format!("{} of the variance is unexplained", percent(factorial.residual_share)))
        }
        Ok(factorial) if !enough(factorial) => {
            Some(format!("no finding: n = {}, {} needed", factorial.repetitions.0, needed(LEVEL)))
        }
        Ok(_) if !input.sound => Some("no finding: a cell failed or is blocked by warnings".into()),
        Ok(_) => None,
    }
}

/// Texts of the findings, and pairs of factors whose interaction is not significant.
fn texts(input: &Input, factorial: &Factorial) -> (Vec<String>, Vec<(String, String)>) {
    let p: Vec<f64> = factorial.terms.iter().map(|term| term.p).collect();
    let corrected = holm(&p);
    let name = |factor: usize| factorial.factors[factor].name.as_str();
    let decided = |one: usize, other: usize| {
        let wanted = Source::Interaction(one.min(other), one.max(other));
        let at = factorial.terms.iter().position(|term| term.source == wanted);
        at.is_some_and(|at| corrected[at] < ERROR)
    };
    let (mut texts, mut open) = (Vec::new(), Vec::new());
    for (term, p) in factorial.terms.iter().zip(&corrected) {
        let Source::Main(factor) = term.source else { continue };
        let (interactions, inconclusive): (Vec<_>, Vec<_>) = factorial
            .conditional_on(factor)
            .into_iter()
            .partition(|dependence| decided(factor, dependence.other));
        // Each pair is listed once, with its first factor.
        for dependence in inconclusive.iter().filter(|dependence| factor < dependence.other) {
            open.push((name(factor).to_owned(), name(dependence.other).to_owned()));
        }
        if *p >= ERROR || term.share <= 0.0 {
            continue;
        }
        let share = percents(term.share, term.interval.as_ref().ok().copied());
        let part = |dependence: &Dependence| {
            format!(
                "{} ({} of the explained variance)",
                name(dependence.other),
                percent(dependence.share.0)
            )
        };
        let clause = match interactions.iter().map(part).collect::<Vec<_>>() {
            none if none.is_empty() => String::new(),
            some => format!("; it interacts with {}", some.join(" and ")),
        };
        texts.push(format!(
            "{} explains {share} of the variance on {}{clause}.",
            name(factor),
            input.what
        ));
    }
    (texts, open)
}

/// Conditions that findings about filesystems must name, by test. An interaction with the
/// filesystem counts even if it is not significant ([`Factorial::conditional_on`]). Empty without
/// interactions.
pub(super) fn scopes(input: &Input) -> Scopes {
    let (Ok(factorial), Some(filesystem)) = (&input.factorial, input.filesystem) else {
        return Scopes::new();
    };
    let on = factorial.conditional_on(filesystem);
    let names: Vec<&str> =
        on.iter().map(|other| factorial.factors[other.other].name.as_str()).collect();
    if names.is_empty() {
        return Scopes::new();
    }
    let scoped = input.all.points.iter().zip(&input.all.tests).filter_map(|(point, test)| {
        let scope = (at(point, names.iter().copied()), without(point, names.iter().copied()));
        Some((test.as_ref()?.id.clone(), scope))
    });
    scoped.collect()
}
