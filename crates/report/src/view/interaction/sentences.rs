//! C18: which factor explains how much, on what its effect depends, and which sentences about
//! filesystems must therefore name a condition.

use analysis::{
    factorial::{Dependence, Factorial, Source},
    holm,
    summary::{LEVEL, needed},
};

use super::{Input, Scopes, at, without};
use crate::{
    units::{percent, percents},
    view::claims::{Answer, Claim, PointClaims, Withheld},
};

/// Family-wise error of the sentences about one test.
const ERROR: f64 = 0.05;

/// A sentence for each factor whose share is told from none, and what cannot be told.
pub(super) fn claims(input: &Input, title: &str) -> PointClaims {
    let said = |text| Answer::Said(Claim { template: "C18", test: input.id.clone(), text });
    let withheld = |about: String, missing: String| {
        let test = input.id.clone();
        Answer::Withheld(Withheld { template: "C18", test, about, missing, cure: String::new() })
    };
    let matters = || format!("what matters on {}", input.what);
    let answers = match &input.factorial {
        Err(refusal) => vec![withheld(matters(), refusal.to_string())],
        Ok(factorial) if factorial.mostly_noise() => vec![withheld(
            matters(),
            format!(
                "mostly noise, {} of the variance is explained by nothing that was varied",
                percent(factorial.residual_share)
            ),
        )],
        Ok(factorial) if enough(factorial) && input.sound => {
            let (texts, undecided) = sentences(input, factorial);
            let open = undecided.into_iter().map(|about| {
                withheld(about, "it is not decided, so sentences name the condition".into())
            });
            texts.into_iter().map(said).chain(open).collect()
        }
        Ok(_) => Vec::new(),
    };
    PointClaims::new(title, answers)
}

/// Enough repeats of each combination for a sentence.
fn enough(factorial: &Factorial) -> bool {
    factorial.repeats.0 >= needed(LEVEL)
}

/// Why there is no sentence, for the caption.
pub(super) fn withheld(input: &Input) -> Option<String> {
    match &input.factorial {
        Err(refusal) => Some(format!("no shares: {refusal}")),
        Ok(factorial) if factorial.mostly_noise() => Some(format!(
            "mostly noise: {} of the variance is explained by nothing that was varied",
            percent(factorial.residual_share)
        )),
        Ok(factorial) if !enough(factorial) => Some(format!(
            "no sentence on what matters: only {} repeats; measure at least {}",
            factorial.repeats.0,
            needed(LEVEL)
        )),
        Ok(_) if !input.sound => {
            Some("no sentence on what matters: a cell failed or must not carry a claim".into())
        }
        Ok(_) => None,
    }
}

/// What can be said, and on which dependence nothing can.
fn sentences(input: &Input, factorial: &Factorial) -> (Vec<String>, Vec<String>) {
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
        let (told, untold): (Vec<_>, Vec<_>) = factorial
            .conditional_on(factor)
            .into_iter()
            .partition(|dependence| decided(factor, dependence.other));
        // Each pair is told by its first factor.
        for dependence in untold.iter().filter(|dependence| factor < dependence.other) {
            open.push(format!(
                "whether the effect of {} on {} depends on {}",
                name(factor),
                input.what,
                name(dependence.other)
            ));
        }
        if *p >= ERROR || term.share <= 0.0 {
            continue;
        }
        let share = percents(term.share, term.interval.as_ref().ok().copied());
        let words = |dependence: &Dependence| {
            format!(
                "{} ({} of what is explained)",
                name(dependence.other),
                percent(dependence.share.0)
            )
        };
        let clause = match told.iter().map(words).collect::<Vec<_>>() {
            none if none.is_empty() => String::new(),
            some => format!("; its effect depends on {}", some.join(" and ")),
        };
        texts.push(format!(
            "{} explained {share} of the differences on {}{clause}.",
            name(factor),
            input.what
        ));
    }
    (texts, open)
}

/// For each test of a point: the conditions that a sentence about filesystems must name, where
/// which of them is best depends on any.
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
    let scoped = input.points.iter().zip(input.tests).filter_map(|(point, test)| {
        let scope = (at(point, names.iter().copied()), without(point, names.iter().copied()));
        Some((test.as_ref()?.id.clone(), scope))
    });
    scoped.collect()
}
