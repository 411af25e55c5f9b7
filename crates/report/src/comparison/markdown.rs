//! Comparison as GitHub-flavored Markdown, short enough for a pull request comment.

use std::fmt::Write;

use analysis::{
    Summary,
    conditions::Difference,
    runs::{Chain, GateVerdict, TestPair},
};
use model::RunRecord;

use super::{
    Mark, NOT_RECORDED, RenderedComparison, at_gate, histories, name, named, phrases, regressions,
    rendered, verdict,
};
use crate::{document::markdown::escaped, units::Scale, view::metric_label};

/// Markdown of a comparison: gate, findings, inconclusive tests, all tests, conditions.
pub fn markdown(runs: &[&RunRecord], chain: &Chain) -> String {
    let mut text = String::from("# Comparison of runs\n\n");
    // Writing to a string cannot fail, here and below.
    for (at, run) in runs.iter().enumerate() {
        let _ = writeln!(text, "- {}: {}", name(at), escaped(&named(run)));
    }
    text.push('\n');
    if let Some(gate) = &chain.gate {
        let _ = writeln!(text, "**{}**\n", escaped(&verdict(gate)));
        if gate.verdict == GateVerdict::Failed {
            list(&mut text, regressions(chain).iter());
        }
    }
    list(&mut text, histories(chain).iter());
    for rendered in rendered(chain) {
        step(&mut text, &rendered);
    }
    text
}

fn list<'a>(text: &mut String, lines: impl Iterator<Item = &'a String>) {
    let before = text.len();
    for line in lines {
        let _ = writeln!(text, "- {}", escaped(line));
    }
    text.push_str(if text.len() > before { "\n" } else { "" });
}

fn step(text: &mut String, rendered: &RenderedComparison<'_>) {
    let _ = writeln!(text, "## {}\n", escaped(&rendered.title));
    for why in &rendered.obstacles {
        let _ = writeln!(text, "No findings: {}\n", escaped(why));
    }
    if !rendered.obstacles.is_empty() && !rendered.aspects.is_empty() {
        let _ = writeln!(text, "The results below compare {}.\n", escaped(&rendered.aspects));
    }
    list(text, rendered.headlines.iter().map(|sentence| &sentence.text));
    if !rendered.listed.is_empty() {
        let _ = writeln!(text, "{}\n", escaped(&rendered.listing()));
        list(text, rendered.listed.iter().map(|sentence| &sentence.text));
    }
    if rendered.step.family.found > 0 && rendered.obstacles.is_empty() {
        let _ = writeln!(text, "{}\n", escaped(&rendered.level()));
    }
    if let Some(nothing) = rendered.nothing() {
        let _ = writeln!(text, "{}\n", escaped(&nothing));
    }
    if !rendered.open.is_empty() {
        text.push_str("Inconclusive:\n\n");
        list(text, rendered.open.iter().map(|sentence| &sentence.text));
    }
    list(text, rendered.notes.iter());
    if !rendered.step.tests.is_empty() {
        text.push_str(
            "| test | metric | first | second | change, interval | n | | gate |\n\
             | --- | --- | ---: | ---: | ---: | ---: | --- | --- |\n",
        );
        rendered.step.tests.iter().for_each(|test| row(text, test, rendered));
        text.push('\n');
    }
    let unpaired = [("first", &rendered.step.only_first), ("second", &rendered.step.only_second)];
    for (which, unpaired) in unpaired.into_iter().filter(|(_, unpaired)| !unpaired.is_empty()) {
        let _ = writeln!(text, "Cells only in the {which} run:\n");
        let lines =
            unpaired.iter().map(|unpaired| format!("{}: {}", unpaired.name, unpaired.reason));
        list(text, lines.collect::<Vec<_>>().iter());
    }
    conditions(text, rendered);
}

fn row(text: &mut String, test: &TestPair, rendered: &RenderedComparison<'_>) {
    let value = |summary: &Option<Summary>| {
        let Some(summary) = summary else { return String::new() };
        let scale = Scale::of(test.metric.spec().unit, std::iter::once(summary.median));
        let shown = scale.shown(summary);
        let interval = shown.interval.map(|(low, high)| format!(" [{low}, {high}]"));
        format!("{} {}{}", shown.value, scale.name, interval.unwrap_or_default())
    };
    let (change, counts, mark) = match &test.comparison {
        Ok(comparison) => (
            phrases::change(test).map(phrases::signed).unwrap_or_default(),
            format!("{}, {}", comparison.n_first, comparison.n_second),
            Mark::of(test, rendered.step).label().to_owned(),
        ),
        Err(withheld) => (String::new(), String::new(), format!("not compared: {withheld}")),
    };
    let metric = format!("{}, {}", metric_label(test.metric), test.metric.spec().better.label());
    let (before, after, gate) = (value(&test.before), value(&test.after), at_gate(test).to_owned());
    let fields = [phrases::place(test), metric, before, after, change, counts, mark, gate];
    text.push('|');
    for field in fields {
        let _ = write!(text, " {} |", escaped(&field));
    }
    text.push('\n');
}

fn conditions(text: &mut String, rendered: &RenderedComparison<'_>) {
    let differences = &rendered.step.conditions.differences;
    if differences.is_empty() {
        let further = if rendered.step.aspects.is_empty() { "" } else { "further " };
        let _ = writeln!(text, "No {further}condition is known to differ.\n");
        return;
    }
    text.push_str(
        "| condition | severity | first | second | aspect |\n| --- | --- | --- | --- | --- |\n",
    );
    for Difference { severity, what, first, second, aspect } in differences {
        let value = |value: &Option<String>| escaped(value.as_deref().unwrap_or(NOT_RECORDED));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            escaped(what).replace("\\_", "_"),
            severity.name(),
            value(first),
            value(second),
            aspect.map_or("", |aspect| aspect.name())
        );
    }
    text.push('\n');
}
