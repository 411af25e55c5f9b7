//! A comparison as GitHub-flavored Markdown, short enough for a comment on a change.

use std::fmt::Write;

use analysis::{
    Summary,
    conditions::Difference,
    runs::{Chain, GateVerdict, TestPair},
};
use model::RunRecord;

use super::{Mark, Told, at_gate, histories, name, named, regressions, told, verdict, words};
use crate::{formats::markdown::escaped, units::Scale, view::words as metric_words};

/// Lays a comparison out as Markdown: the gate, findings, what is open, every test, conditions.
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
    for told in told(chain) {
        step(&mut text, &told);
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

fn step(text: &mut String, told: &Told<'_>) {
    let _ = writeln!(text, "## {}\n", escaped(&told.title));
    for why in &told.refused {
        let _ = writeln!(text, "No claims: {}\n", escaped(why));
    }
    if !told.refused.is_empty() && !told.ways.is_empty() {
        let _ = writeln!(text, "Numbers below are of {}.\n", escaped(&told.ways));
    }
    list(text, told.headlines.iter().map(|sentence| &sentence.text));
    if !told.listed.is_empty() {
        let _ = writeln!(text, "{}\n", escaped(&told.listing()));
        list(text, told.listed.iter().map(|sentence| &sentence.text));
    }
    if told.step.family.found > 0 && told.refused.is_empty() {
        let _ = writeln!(text, "{}\n", escaped(&told.level()));
    }
    if let Some(nothing) = told.nothing() {
        let _ = writeln!(text, "{}\n", escaped(&nothing));
    }
    if !told.open.is_empty() {
        text.push_str("Open:\n\n");
        list(text, told.open.iter().map(|sentence| &sentence.text));
    }
    list(text, told.notes.iter());
    if !told.step.tests.is_empty() {
        text.push_str(
            "| test | metric | first | second | change, interval | n | | gate |\n\
             | --- | --- | ---: | ---: | ---: | ---: | --- | --- |\n",
        );
        told.step.tests.iter().for_each(|test| row(text, test, told));
        text.push('\n');
    }
    let lone = [("first", &told.step.only_first), ("second", &told.step.only_second)];
    for (which, lone) in lone.into_iter().filter(|(_, lone)| !lone.is_empty()) {
        let _ = writeln!(text, "Cells of the {which} alone:\n");
        let lines = lone.iter().map(|lone| format!("{}: {}", lone.name, lone.why));
        list(text, lines.collect::<Vec<_>>().iter());
    }
    conditions(text, told);
}

fn row(text: &mut String, test: &TestPair, told: &Told<'_>) {
    let value = |summary: &Option<Summary>| {
        let Some(summary) = summary else { return String::new() };
        let scale = Scale::of(test.metric.spec().unit, std::iter::once(summary.median));
        let shown = scale.shown(summary);
        let interval = shown.interval.map(|(low, high)| format!(" [{low}, {high}]"));
        format!("{} {}{}", shown.value, scale.name, interval.unwrap_or_default())
    };
    let (change, counts, mark) = match &test.comparison {
        Ok(comparison) => (
            words::change(test).map(words::signed).unwrap_or_default(),
            format!("{}, {}", comparison.n_first, comparison.n_second),
            Mark::of(test, told.step).words().to_owned(),
        ),
        Err(withheld) => (String::new(), String::new(), format!("not compared: {withheld}")),
    };
    let metric = format!("{}, {}", metric_words(test.metric), test.metric.spec().better.words());
    let (before, after, gate) = (value(&test.before), value(&test.after), at_gate(test).to_owned());
    let fields = [words::place(test), metric, before, after, change, counts, mark, gate];
    text.push('|');
    for field in fields {
        let _ = write!(text, " {} |", escaped(&field));
    }
    text.push('\n');
}

fn conditions(text: &mut String, told: &Told<'_>) {
    let differences = &told.step.conditions.differences;
    if differences.is_empty() {
        let beside = if told.step.ways.is_empty() { "No" } else { "Beside that, no" };
        let _ = writeln!(text, "{beside} condition is known to differ.\n");
        return;
    }
    text.push_str(
        "| condition | severity | first | second | way |\n| --- | --- | --- | --- | --- |\n",
    );
    for Difference { severity, what, first, second, way } in differences {
        let value = |value: &Option<String>| escaped(value.as_deref().unwrap_or("not told"));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            escaped(what).replace("\\_", "_"),
            severity.name(),
            value(first),
            value(second),
            way.map_or("", |way| way.name())
        );
    }
    text.push('\n');
}
