//! A comparison as one JSON object.

use analysis::{
    Interval, Side, Size, Summary, Verdict,
    changes::Change,
    conditions::Difference,
    runs::{AtGate, By, Chain, Gate, Lone, Missing, Paired, TestPair},
};
use model::RunRecord;
use serde_json::{Value, json};

use super::{Mark, Sentence, Told, name, told, verdict};

/// Counts up when a field changes its meaning or goes; new fields may come at any time.
const SCHEMA: u32 = 1;

/// One object with everything: values in base units, ratios above 1 meaning that the second is
/// better.
pub fn json(runs: &[&RunRecord], chain: &Chain) -> String {
    let runs = runs.iter().enumerate().map(|(at, run)| {
        json!({
            "name": name(at),
            "id": run.info.id,
            "title": run.info.title,
            "profile": run.info.profile.name(),
            "program": run.info.program,
        })
    });
    let histories = chain.histories.iter().map(|history| {
        let change = |change: &Change| json!({ "at": change.at, "p": change.p, "ratio_of_values": change.size.0 });
        let doubted = history.doubted.iter().map(|doubted| {
            json!({ "change": change(&doubted.change), "reason": doubted.why })
        });
        json!({
            "cell": history.name,
            "phase": history.phase,
            "metric": history.metric.name(),
            "runs": history.runs.iter().map(|run| name(*run)).collect::<Vec<_>>(),
            "medians": history.medians,
            "changes": history.changes.iter().map(change).collect::<Vec<_>>(),
            "doubted": doubted.collect::<Vec<_>>(),
        })
    });
    let object = json!({
        "schema": SCHEMA,
        "runs": runs.collect::<Vec<_>>(),
        "steps": told(chain).iter().enumerate().map(|(at, told)| step(at, told)).collect::<Vec<_>>(),
        "histories": histories.collect::<Vec<_>>(),
        "gate": chain.gate.as_ref().map(gate),
    });
    format!("{object:#}\n")
}

fn gate(gate: &Gate) -> Value {
    json!({
        "threshold": gate.rule.threshold.0,
        "twins_differ_by": gate.twins.map(|twins| twins.0),
        "machine_changed": gate.machine,
        "strict": gate.rule.strict,
        "verdict": gate.verdict.name(),
        "worse": gate.worse,
        "not_worse": gate.not_worse,
        "undecided": gate.undecided,
        "failed": gate.failed.iter().map(missing).collect::<Vec<_>>(),
        "vanished": gate.vanished.iter().map(missing).collect::<Vec<_>>(),
        "reasons": gate.refused.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "text": verdict(gate),
    })
}

fn missing(missing: &Missing) -> Value {
    json!({
        "first": name(missing.step),
        "second": name(missing.step + 1),
        "cell": missing.cell,
        "phases": missing.phases,
        "tests": missing.tests,
        "reason": missing.why,
    })
}

fn step(at: usize, told: &Told<'_>) -> Value {
    let step = told.step;
    let ways = step.ways.iter().map(|differs| {
        let differences: Vec<Value> = differs.differences.iter().map(difference).collect();
        json!({ "way": differs.way.name(), "differences": differences })
    });
    let sentences = told.headlines.iter().chain(&told.listed).chain(&told.open);
    let sentence = |sentence: &Sentence| json!({ "template": sentence.template, "verdict": sentence.mark.words(), "text": sentence.text });
    json!({
        "first": name(at),
        "second": name(at + 1),
        "title": told.title,
        "ways": ways.collect::<Vec<_>>(),
        "refused": told.refused,
        "threshold": step.threshold.0,
        "working_threshold": step.working.0,
        "family": {
            "tests": step.family.tests,
            "false_discovery_rate": step.family.q,
            "found": step.family.found,
            "interval_level": step.family.level,
        },
        "tally": {
            "better": step.tally.better,
            "worse": step.tally.worse,
            "same": step.tally.same,
            "small": step.tally.small,
            "open": step.tally.open,
        },
        "sentences": sentences.map(sentence).collect::<Vec<_>>(),
        "notes": told.notes,
        "total": total(step),
        "anchor": anchor(step),
        "tests": step.tests.iter().map(|test| of_test(test, step)).collect::<Vec<_>>(),
        "differences": step.conditions.differences.iter().map(difference).collect::<Vec<_>>(),
        "cells": {
            "shared": step.conditions.shared,
            "only_a": lone(&step.only_first),
            "only_b": lone(&step.only_second),
        },
    })
}

fn difference(difference: &Difference) -> Value {
    let Difference { severity, what, first, second, way } = difference;
    json!({
        "condition": what,
        "severity": severity.name(),
        "way": way.map(|way| way.name()),
        "a": first,
        "b": second,
    })
}

fn lone(cells: &[Lone]) -> Vec<Value> {
    let of = |lone: &Lone| json!({ "cell": lone.name, "reason": lone.why.to_string() });
    cells.iter().map(of).collect()
}

fn total(step: &Paired) -> Value {
    let Some(total) = &step.total else { return Value::Null };
    json!({
        "ratio": total.ratio.0,
        "interval": interval(&total.interval),
        "like_these": total.like_these.as_ref().map(interval),
        "fragile": total.fragile.is_some(),
    })
}

fn anchor(step: &Paired) -> Value {
    let tests = step.anchor.tests.as_ref().map(|tests| {
        json!({
            "tests": tests.tests,
            "ratio": tests.ratio.0,
            "interval": tests.interval.as_ref().map(interval),
        })
    });
    let machine = step.anchor.machine.iter().map(|fact| {
        json!({ "fact": fact.name, "a": fact.first, "b": fact.second, "differs": fact.differs })
    });
    json!({ "tests": tests, "machine": machine.collect::<Vec<_>>() })
}

fn interval(interval: &Interval) -> Value {
    json!({ "low": interval.low, "high": interval.high, "level": interval.level })
}

fn summary(summary: &Summary) -> Value {
    json!({
        "n": summary.n,
        "median": summary.median,
        "interval": summary.interval.as_ref().map(interval),
        "min": summary.min,
        "max": summary.max,
    })
}

fn of_test(test: &TestPair, step: &Paired) -> Value {
    let spec = test.metric.spec();
    let by = match test.by {
        By::Identity => "identity",
        By::Options => "options",
        By::Workload => "workload",
    };
    let gate = test.gate.map(|gate| match gate {
        AtGate::Worse => "worse",
        AtGate::NotWorse => "not-worse",
        AtGate::Undecided => "undecided",
        AtGate::Failed => "failed",
        AtGate::Vanished => "vanished",
    });
    let comparison = test.comparison.as_ref().ok();
    json!({
        "filesystem_a": test.filesystems.0,
        "filesystem_b": test.filesystems.1,
        "workload": test.label,
        "phase": test.phase,
        "metric": spec.name,
        "unit": spec.unit.name(),
        "better": spec.better.words(),
        "paired_by": by,
        "touched": test.touched,
        "a": test.before.as_ref().map(summary),
        "b": test.after.as_ref().map(summary),
        "ratio": comparison.map(|comparison| comparison.ratio.0),
        "interval": test.interval.as_ref().map(interval),
        "p": comparison.map(|comparison| comparison.p),
        "p_holm": test.p_holm,
        "found": test.found,
        "verdict": comparison.map(|comparison| of_verdict(comparison.verdict)),
        "mark": comparison.map(|_| Mark::of(test, step).words()),
        "gate": gate,
        "withheld": test.comparison.as_ref().err().map(ToString::to_string),
    })
}

/// The verdict before any correction for the number of tests.
fn of_verdict(verdict: Verdict) -> Value {
    let size = |size: Size| match size {
        Size::AtLeast => "at-least-threshold",
        Size::Uncertain => "size-uncertain",
        Size::Negligible => "negligible",
    };
    match verdict {
        Verdict::Differs { side: Side::Better, size: how } => {
            json!({"verdict": "better", "size": size(how)})
        }
        Verdict::Differs { side: Side::Worse, size: how } => {
            json!({"verdict": "worse", "size": size(how)})
        }
        Verdict::Equivalent => json!({"verdict": "equivalent"}),
        Verdict::Inconclusive { needed } => {
            json!({"verdict": "inconclusive", "repeats_needed": needed})
        }
    }
}
