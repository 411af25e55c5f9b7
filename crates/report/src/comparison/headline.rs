//! Headline of a comparison: its verdict in one sentence.

use analysis::{
    compare::Comparison,
    runs::{Chain, FindingsObstacle, Gate, GateVerdict, TestPair},
};

use super::{Mark, RenderedComparison, phrases};

/// Verdict of the gate. Without a gate, verdict of the only comparison, or numbers of tests over
/// several comparisons.
pub(super) fn headline(chain: &Chain, all: &[RenderedComparison<'_>]) -> String {
    if let Some(gate) = &chain.gate {
        return of_gate(gate, all);
    }
    match all {
        [only] => of_step(only),
        _ => {
            let count = |mark: Mark| all.iter().map(|own| marked(own, mark).count()).sum::<usize>();
            format!(
                "{} comparisons: {} worse, {} better, {} inconclusive",
                all.len(),
                phrases::tests(count(Mark::Worse)),
                count(Mark::Better),
                count(Mark::Inconclusive)
            )
        }
    }
}

fn of_gate(gate: &Gate, all: &[RenderedComparison<'_>]) -> String {
    let limit = phrases::limit(gate.rule.margin.0);
    let word = match gate.verdict {
        GateVerdict::Passed => "PASS",
        GateVerdict::Failed => "FAIL",
        GateVerdict::Inconclusive => "INCONCLUSIVE",
        GateVerdict::NotComparable => "NOT COMPARABLE",
    };
    let tests = all.iter().flat_map(|own| own.step.tests.iter());
    let at = |wanted| tests.clone().filter(move |test| test.gate == Some(wanted));
    let worse: Vec<&TestPair> = at(analysis::runs::AtGate::Worse).collect();
    let lost = gate.failed.len() + gate.missing.len();
    let what = match (gate.verdict, largest(worse.iter().copied())) {
        (GateVerdict::Failed, Some(test)) => others(&change(test), worse.len() - 1 + lost),
        (GateVerdict::Failed, None) => format!("{lost} cells newly fail or are missing"),
        (GateVerdict::Passed, _) => format!("{} non-inferior", phrases::tests(gate.non_inferior)),
        (GateVerdict::Inconclusive, _) => match gate.obstacles.first() {
            Some(why @ FindingsObstacle::Imported { .. }) => why.to_string(),
            Some(_) | None => format!("{} inconclusive", phrases::tests(gate.inconclusive)),
        },
        (GateVerdict::NotComparable, _) => match gate.obstacles.first() {
            Some(why) => why.to_string(),
            None => "the runs have no common cells".into(),
        },
    };
    format!("{word} gate {limit}: {what}")
}

/// Verdict of a comparison of two runs. Inconclusive tests are stated, so that they are not read as
/// equivalent.
pub(super) fn of_step(rendered: &RenderedComparison<'_>) -> String {
    let step = rendered.step;
    if let Some(why) = step.obstacles.first() {
        return format!("No findings: {why}");
    }
    let judged = step.tests.iter().filter(|test| test.affected && test.comparison.is_ok());
    let all = judged.count();
    if all == 0 {
        return "No test can be compared".into();
    }
    let count = |mark| marked(rendered, mark).count();
    let groups = [
        (vec![Mark::Worse], "worse"),
        (vec![Mark::Better], "better"),
        (vec![Mark::PossiblyWorse, Mark::PossiblyBetter], "possibly changed"),
    ];
    let mut parts = Vec::new();
    for (marks, word) in groups {
        let own: Vec<&TestPair> = marks.iter().flat_map(|mark| marked(rendered, *mark)).collect();
        let Some(test) = largest(own.iter().copied()) else { continue };
        parts.push(format!(
            "{} of {} {word} ({})",
            own.len(),
            phrases::tests(all),
            others(&change(test), own.len() - 1)
        ));
    }
    let open = count(Mark::Inconclusive);
    let largest = largest(marked(rendered, Mark::Inconclusive));
    match (parts.is_empty(), open, largest) {
        (true, 1.., Some(test)) => {
            let n = test.comparison.as_ref().map(|own| (own.n_first, own.n_second));
            let (one, other) = n.unwrap_or_default();
            parts.push(format!(
                "Inconclusive in {open} of {}: {}, n = {one} and {other}",
                phrases::tests(all),
                change(test)
            ));
        }
        (false, 1.., _) => parts.push(format!("{open} inconclusive")),
        (_, _, _) => {}
    }
    let unknown = if step.imported { "; other conditions are not recorded" } else { "" };
    if parts.is_empty() {
        let margin = phrases::limit(step.effective_margin.0);
        return match count(Mark::Negligible) {
            0 if all == 1 => format!("Equivalent within {margin} in 1 test{unknown}"),
            0 => format!("Equivalent within {margin} in all {all} tests{unknown}"),
            _ => format!("No difference of {margin} or more in {}{unknown}", phrases::tests(all)),
        };
    }
    parts.join("; ") + unknown
}

fn marked<'a>(
    rendered: &RenderedComparison<'a>,
    mark: Mark,
) -> impl Iterator<Item = &'a TestPair> + use<'a> {
    let step = rendered.step;
    let own = step.tests.iter().filter(|test| test.comparison.is_ok());
    own.filter(move |test| Mark::of(test, step) == mark)
}

/// Test with the largest change, by the absolute value of the logarithm of its ratio.
fn largest<'a>(tests: impl Iterator<Item = &'a TestPair>) -> Option<&'a TestPair> {
    let size = |test: &TestPair| test.comparison.as_ref().map_or(0.0, |own| own.ratio.0.ln().abs());
    tests.max_by(|one, other| size(one).total_cmp(&size(other)))
}

/// `random-write on xfs -12.0 % [-14.3, -9.7]`.
fn change(test: &TestPair) -> String {
    let disagrees = |comparison: &Comparison| crate::view::disagreement(comparison).is_some();
    let change = match &test.comparison {
        Ok(comparison) if disagrees(comparison) => "; estimates disagree".to_owned(),
        Ok(_) | Err(_) => phrases::change(test)
            .map(|change| format!(" {}", phrases::signed(change)))
            .unwrap_or_default(),
    };
    format!("{} on {}{change}", crate::units::one_line(&test.phase), phrases::filesystem(test))
}

fn others(text: &str, more: usize) -> String {
    if more == 0 { text.to_owned() } else { format!("{text}, and {more} more") }
}
