//! Comparison as one JSON object.

use analysis::{
    changes::Change,
    conditions::Difference,
    runs::{AtGate, Chain, Gate, Missing, Paired, PairedBy, TestPair, Unpaired},
};
use model::RunRecord;
use serde_json::{Value, json};

use crate::document::json::{of_interval, of_summary, verdict as verdict_json};

use super::{ComparisonFinding, Mark, RenderedComparison, name, rendered, verdict};

/// Schema version. Incremented if a field is removed or changes its meaning; fields may be added.
const SCHEMA: u32 = 1;

/// Complete comparison as JSON. Values are in base units. A ratio above 1 means that the second run
/// is better.
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
        let change = |change: &Change| {
            json!({ "at": change.at, "p": change.p, "ratio_of_values": change.size.0 })
        };
        let withheld = history.withheld.iter().map(|withheld| {
            json!({ "change": change(&withheld.change), "reason": withheld.reason })
        });
        json!({
            "cell": history.name,
            "phase": history.phase,
            "metric": history.metric.name(),
            "runs": history.runs.iter().map(|run| name(*run)).collect::<Vec<_>>(),
            "medians": history.medians,
            "changes": history.changes.iter().map(change).collect::<Vec<_>>(),
            "withheld_changes": withheld.collect::<Vec<_>>(),
        })
    });
    let all = rendered(chain);
    let steps = all.iter().enumerate().map(|(at, rendered)| step(at, rendered));
    let object = json!({
        "schema": SCHEMA,
        "runs": runs.collect::<Vec<_>>(),
        "steps": steps.collect::<Vec<_>>(),
        "histories": histories.collect::<Vec<_>>(),
        "gate": chain.gate.as_ref().map(gate),
    });
    format!("{object:#}\n")
}

fn gate(gate: &Gate) -> Value {
    json!({
        "equivalence_margin": gate.rule.margin.0,
        "aa_noise": gate.aa_noise.map(|aa_duplicates| aa_duplicates.0),
        "machine_changed": gate.machine,
        "strict": gate.rule.strict,
        "verdict": gate.verdict.name(),
        "worse": gate.worse,
        "non_inferior": gate.non_inferior,
        "inconclusive": gate.inconclusive,
        "failed": gate.failed.iter().map(missing).collect::<Vec<_>>(),
        "missing": gate.missing.iter().map(missing).collect::<Vec<_>>(),
        "reasons": gate.obstacles.iter().map(ToString::to_string).collect::<Vec<_>>(),
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
        "reason": missing.reason,
    })
}

fn step(at: usize, rendered: &RenderedComparison<'_>) -> Value {
    let step = rendered.step;
    let aspects = step.aspects.iter().map(|differs| {
        let differences: Vec<Value> = differs.differences.iter().map(difference).collect();
        json!({ "aspect": differs.aspect.name(), "differences": differences })
    });
    let findings = rendered.headlines.iter().chain(&rendered.listed).chain(&rendered.open);
    let finding = |finding: &ComparisonFinding| {
        json!({
            "template": finding.kind,
            "verdict": finding.mark.label(),
            "text": finding.text,
        })
    };
    json!({
        "first": name(at),
        "second": name(at + 1),
        "title": rendered.title,
        "aspects": aspects.collect::<Vec<_>>(),
        "refused": rendered.obstacles,
        "equivalence_margin": step.margin.0,
        "effective_margin": step.effective_margin.0,
        "family": {
            "tests": step.family.tests,
            "false_discovery_rate": step.family.q,
            "found": step.family.found,
            "interval_level": step.family.level,
        },
        "tally": {
            "better": step.tally.better,
            "worse": step.tally.worse,
            "equivalent": step.tally.equivalent,
            "negligible": step.tally.negligible,
            "inconclusive": step.tally.inconclusive,
        },
        "findings": findings.map(finding).collect::<Vec<_>>(),
        "notes": rendered.notes,
        "total": total(step),
        "negative_controls": negative_controls(step),
        "tests": step.tests.iter().map(|test| of_test(test, step)).collect::<Vec<_>>(),
        "differences": step.conditions.differences.iter().map(difference).collect::<Vec<_>>(),
        "cells": {
            "shared": step.conditions.shared,
            "only_a": unpaired(&step.only_first),
            "only_b": unpaired(&step.only_second),
        },
    })
}

fn difference(difference: &Difference) -> Value {
    let Difference { severity, what, first, second, aspect } = difference;
    json!({
        "condition": what,
        "severity": severity.name(),
        "aspect": aspect.map(|aspect| aspect.name()),
        "a": first,
        "b": second,
    })
}

fn unpaired(cells: &[Unpaired]) -> Vec<Value> {
    let of = |cell: &Unpaired| json!({ "cell": cell.name, "reason": cell.reason.to_string() });
    cells.iter().map(of).collect()
}

fn total(step: &Paired) -> Value {
    let Some(total) = &step.total else { return Value::Null };
    json!({
        "ratio": total.ratio.0,
        "interval": of_interval(total.interval),
        "similar_workloads": total.similar_workloads.map(of_interval),
        "fragile": total.fragile.is_some(),
    })
}

fn negative_controls(step: &Paired) -> Value {
    let tests = step.negative_controls.tests.as_ref().map(|tests| {
        json!({
            "tests": tests.tests,
            "ratio": tests.ratio.0,
            "interval": tests.interval.map(of_interval),
        })
    });
    let machine = step.negative_controls.machine.iter().map(|fact| {
        json!({ "fact": fact.name, "a": fact.first, "b": fact.second, "differs": fact.differs })
    });
    json!({ "tests": tests, "machine": machine.collect::<Vec<_>>() })
}

fn of_test(test: &TestPair, step: &Paired) -> Value {
    let spec = test.metric.spec();
    let by = match test.by {
        PairedBy::Identity => "identity",
        PairedBy::Options => "options",
        PairedBy::Workload => "workload",
    };
    let gate = test.gate.map(|gate| match gate {
        AtGate::Worse => "worse",
        AtGate::NonInferior => "non-inferior",
        AtGate::Inconclusive => "inconclusive",
        AtGate::Failed => "failed",
        AtGate::Missing => "missing",
    });
    let comparison = test.comparison.as_ref().ok();
    json!({
        "filesystem_a": test.filesystems.0,
        "filesystem_b": test.filesystems.1,
        "workload": test.label,
        "phase": test.phase,
        "metric": spec.name,
        "unit": spec.unit.name(),
        "better": spec.better.label(),
        "paired_by": by,
        "affected": test.affected,
        "a": test.before.as_ref().map(of_summary),
        "b": test.after.as_ref().map(of_summary),
        "ratio": comparison.map(|comparison| comparison.ratio.0),
        "interval": test.interval.map(of_interval),
        "p": comparison.map(|comparison| comparison.p),
        "p_holm": test.p_holm,
        "found": test.found,
        "verdict": comparison.map(|comparison| verdict_json(comparison.verdict)),
        "mark": comparison.map(|_| Mark::of(test, step).label()),
        "gate": gate,
        "withheld": test.comparison.as_ref().err().map(ToString::to_string),
    })
}
