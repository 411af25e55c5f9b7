//! Report as JSON: summaries, ranks, verdicts, findings, and warnings. Values are in base units,
//! with the keys of the run file.

use analysis::Summary;
use model::Metric;
use serde_json::{Value, json};

use crate::{
    document::json::{of_interval, of_summary, of_table, tables, verdict},
    published,
    view::{Details, Entry, Finding, Interaction, Scaled, Status, Test, View, WithheldFinding},
};

/// Name and version of the format, which `docs/schemas/report-1.json` describes. Removing a key or
/// changing its meaning raises the version. Keys may be added to format and schema at any time.
const SCHEMA: &str = "fslab-report/1";

/// Indented JSON. The keys of an object are in alphabetical order.
pub fn json(view: &View) -> String {
    let facts = &view.facts;
    let points = view.suites.iter().flat_map(|suite| suite.points.iter().map(move |p| (suite, p)));
    let mut details = view.details.iter().flatten();
    let workloads: Vec<Value> = points
        .map(|(suite, point)| {
            let parameters: serde_json::Map<String, Value> = point
                .parameters
                .iter()
                .map(|(name, value)| (name.clone(), json!(value.to_string())))
                .collect();
            // The tests are on the left, because `zip` advances the right side only if the left
            // side has an item.
            let tests = point.tests.iter().zip(details.by_ref());
            let tests: Vec<Value> = tests.map(|(test, own)| of_test(view, test, own)).collect();
            json!({
                "suite": suite.name,
                "label": point.label,
                "parameters": parameters,
                "loadfile": point.load,
                "tests": tests,
                "filesystems_without_results": holes(view, &point.statuses),
            })
        })
        .collect();
    let points = view.findings.by_point.iter();
    let said = points.clone().flat_map(|point| point.findings.iter().map(of_finding));
    let open = points.flat_map(|point| point.open.iter().map(of_withheld));
    let document = json!({
        "schema": SCHEMA,
        "run": facts.run,
        "title": facts.title,
        "plan_name": facts.plan_name,
        "profile": facts.profile.name(),
        "study": view.study.as_ref().map(|study| study.study.name()),
        "equivalence_margin": facts.profile.equivalence_margin().0,
        "program": facts.program,
        "measured_by_fslab": facts.imported.is_none(),
        "imported_from": facts.imported,
        "conditions": facts.conditions,
        "run_conditions": facts.run_conditions,
        "workloads": workloads,
        "scaling": scaling(view),
        "conditions_varied": conditions(view),
        "totals": tables(view.overviews.iter().flat_map(|overview| &overview.composites)),
        "lifecycle": tables(view.lifecycle.iter()),
        "published": published::of_suites(view.suites.iter().map(|suite| suite.name.as_str())),
        "findings": said.collect::<Vec<_>>(),
        "inconclusive": open.collect::<Vec<_>>(),
        "run_quality": {
            "equivalence_margin": facts.margin.ratio().0,
            "margin_raised": facts.margin.is_raised(),
            "drift_detected": view.quality.drifts,
            "lines": view.quality.lines,
            "tables": tables(view.quality.tables.iter()),
        },
        "warnings": view.warnings.iter().map(|row| json!({
            "code": row.code,
            "severity": row.severity.name(),
            "message": row.message,
            "hint": row.hint,
            "count": row.count,
            "places": row.places,
        })).collect::<Vec<_>>(),
        "missing": view.missing.iter().map(|hole| json!({
            "filesystem": hole.filesystem,
            "workloads": hole.workloads,
            "what": hole.what,
            "reason": hole.reason,
        })).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}

/// Results over the number of clients.
fn scaling(view: &View) -> Value {
    let of = |scaled: &Scaled| {
        json!({
            "suite": scaled.suite,
            "title": scaled.title,
            "test": scaled.test,
            "parameter": scaled.clients.0,
            "metric": scaled.metric.name(),
            "tables": tables(scaled.tables.iter()),
        })
    };
    view.scaling.iter().map(of).collect()
}

/// Results under varied conditions.
fn conditions(view: &View) -> Value {
    let of = |interaction: &Interaction| {
        json!({
            "suite": interaction.suite,
            "title": interaction.title,
            "conditions": interaction.conditions,
            "metric": interaction.metric.name(),
            "tables": tables(interaction.tables.iter()),
        })
    };
    view.interactions.iter().map(of).collect()
}

fn of_finding(finding: &Finding) -> Value {
    json!({"template": finding.kind, "test": finding.test, "text": finding.text})
}

fn of_withheld(open: &WithheldFinding) -> Value {
    json!({
        "template": open.kind,
        "test": open.test,
        "about": open.question,
        "missing": open.reason,
        "hint": open.hint,
        "text": open.text(),
    })
}

fn holes(view: &View, statuses: &[Option<Status>]) -> Value {
    let named = statuses.iter().zip(&view.filesystems).filter_map(|(status, filesystem)| {
        match status.as_ref()? {
            Status::Nothing(reason) => Some((filesystem.name.clone(), json!(reason))),
            Status::Measured => None,
        }
    });
    Value::Object(named.collect())
}

fn of_test(view: &View, test: &Test, details: &Details) -> Value {
    let name = |entry: &Entry| view.filesystems[entry.filesystem].name.as_str();
    let over_device = |entry: &Entry| {
        let own = test.over_device.iter().find(|own| own.filesystem == entry.filesystem);
        own.map(|own| json!({ "ratio": own.ratio, "interval": own.interval.map(of_interval) }))
    };
    let entries: Vec<Value> = test
        .entries
        .iter()
        .filter(|entry| entry.summary.is_some())
        .map(|entry| {
            json!({
                "filesystem": name(entry),
                "values": entry.values,
                "summary": entry.summary.as_ref().map(of_summary),
                "counterpart": entry.counterpart.as_ref().map(of_summary),
                "metrics": Value::Object(entry.metrics.iter().map(of_metric).collect()),
                "ranked": entry.ranked && !entry.raw,
                "relative_to_device": over_device(entry),
                "letters": entry.letters,
                "top_group": entry.top,
                "failed_repetitions": entry.failed.as_ref().map_or(0, |(failed, ..)| *failed),
                "warnings": entry.codes,
            })
        })
        .collect();
    let pairs: Vec<Value> = test
        .family
        .iter()
        .flat_map(|family| {
            family.ranking.pairs.iter().map(|pair| {
                let member = |index: usize| name(&test.entries[family.members[index]]);
                json!({
                    "first": member(pair.other),
                    "second": member(pair.better),
                    "ratio": pair.comparison.ratio.0,
                    "interval": pair.comparison.interval.map(of_interval),
                    "p": pair.comparison.p,
                    "p_holm": pair.p_holm,
                    "verdict": verdict(pair.comparison.verdict),
                })
            })
        })
        .collect();
    json!({
        "name": test.name,
        "group": test.group,
        "metric": test.metric.name(),
        "unit": test.metric.spec().unit.name(),
        "better": test.metric.spec().better.label(),
        "counterpart_metric": test.counterpart.map(|metric| metric.name()),
        "cache": test.cache.map(model::phase::Cache::name),
        "system_activity": tables(details.activity.iter()),
        "operations": details.operations.as_ref().map(of_table),
        "results": entries,
        "pairs": pairs,
    })
}

/// Name of a metric, and its summary with unit and direction.
fn of_metric((metric, summary): &(Metric, Summary)) -> (String, Value) {
    let spec = metric.spec();
    let mut value = of_summary(summary);
    value["unit"] = json!(spec.unit.name());
    value["better"] = json!(spec.better.label());
    (spec.name.to_owned(), value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn it_reads_back_and_holds_every_test() {
        let text = json(&View::new(&fixture::record()));
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["workloads"].as_array().map(Vec::len), Some(2));
        let tests = value["workloads"][0]["tests"].as_array().unwrap();
        assert_eq!(tests.len(), 13);
        assert_eq!(tests[0]["unit"], "bytes_per_second");
        let result = &tests[0]["results"][0];
        assert_eq!(result["summary"]["n"], 8);
        assert_eq!(result["metrics"]["durable_throughput"]["median"], result["summary"]["median"]);
        assert_eq!(result["metrics"]["throughput"]["unit"], "bytes_per_second");
        assert!(value["workloads"][0]["filesystems_without_results"]["jfs"].is_string());
    }

    const PUBLISHED: &str = include_str!("../../../../docs/schemas/report-1.json");

    #[test]
    fn output_matches_the_schema() {
        let mut unfinished = fixture::record();
        unfinished.info.ended_unix = None;
        unfinished.trials.truncate(3);
        let mut empty = fixture::record();
        empty.trials.clear();
        let sizes = [64, 128, 256].map(model::Bytes::kib);
        for record in [
            fixture::record(),
            fixture::with_records(&sizes, "three"),
            fixture::bonnie::record(),
            fixture::dbench::record(),
            fixture::tasks::record(),
            unfinished,
            empty,
        ] {
            let wrong = fixture::schema::wrong(PUBLISHED, &json(&View::new(&record)));
            assert!(wrong.is_empty(), "{}: {wrong:#?}", record.info.plan_name);
        }
    }

    #[test]
    fn a_key_too_many_or_too_few_is_seen() {
        let text = json(&View::new(&fixture::bonnie::record()));
        let document: Value = serde_json::from_str(&text).unwrap();
        let mut more = document.clone();
        more["workloads"][0]["tests"][0]["results"][0]["speed"] = json!(1);
        assert!(!fixture::schema::wrong(PUBLISHED, &more.to_string()).is_empty());
        let mut less = document;
        less["workloads"][0]["tests"][0].as_object_mut().unwrap().remove("unit");
        assert!(!fixture::schema::wrong(PUBLISHED, &less.to_string()).is_empty());
    }
}
