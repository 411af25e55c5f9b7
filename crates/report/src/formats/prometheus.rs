//! Prometheus text exposition format, version 0.0.4, for the textfile collector of the node
//! exporter.
//!
//! Each metric has four families of gauges: median, lower and upper end of its interval, and number
//! of repetitions. Other families contain the run, the warnings of the tests, and the failed
//! repetitions. Times are in seconds, sizes in bytes, fractions from 0 to 1, as the naming
//! conventions of Prometheus require. There are no timestamps, because the collector rejects them.
//! A/A duplicates are excluded.

use std::{collections::BTreeMap, fmt::Write};

use analysis::Summary;
use model::{Metric, metric::Unit};

use crate::{
    units::one_line,
    view::{Entry, Test, View, metric_label},
};

/// Formats a run as gauges. A value is a median over the repetitions of one filesystem in one test.
pub fn prometheus(view: &View) -> String {
    let mut families: BTreeMap<&str, Family> = BTreeMap::new();
    let mut warnings: Vec<String> = Vec::new();
    let mut failed: Vec<(String, usize)> = Vec::new();
    for suite in &view.suites {
        for point in &suite.points {
            for test in &point.tests {
                for entry in &test.entries {
                    let labels = labels(view, &suite.name, &point.label, test, entry);
                    for (metric, summary) in &entry.metrics {
                        let family = families.entry(metric.name());
                        let family = family.or_insert(Family { metric: *metric, values: vec![] });
                        family.values.push((labels.clone(), summary.clone()));
                    }
                    let codes = entry.codes.iter();
                    warnings.extend(codes.map(|code| format!("{labels},code={}", quoted(code))));
                    if let Some((count, ..)) = &entry.failed {
                        failed.push((labels, *count));
                    }
                }
            }
        }
    }
    let mut text = String::new();
    run(&mut text, view);
    families.values().for_each(|family| family.write(&mut text));
    let one = |labels| (labels, 1.0);
    gauge(
        &mut text,
        "fslab_warning",
        "What qualifies the numbers of a test, by its code.",
        warnings.into_iter().map(one),
    );
    let failed = failed.into_iter().map(|(labels, count)| (labels, count as f64));
    gauge(
        &mut text,
        "fslab_failed_repetitions",
        "Repetitions that failed and count in no median.",
        failed,
    );
    text
}

/// Metric with its values, by their labels.
struct Family {
    metric: Metric,
    values: Vec<(String, Summary)>,
}

impl Family {
    fn write(&self, text: &mut String) {
        let spec = self.metric.spec();
        let (factor, suffix) = base(spec.unit);
        let name = |part: &str| format!("fslab_{}_{part}{suffix}", spec.name);
        let what = format!("{}, {}", metric_label(self.metric), spec.better.label());
        let ends = |end: fn(&analysis::Interval) -> f64| {
            self.values.iter().filter_map(move |(labels, summary)| {
                let interval = summary.interval.as_ref()?;
                Some((format!("{labels},level=\"{}\"", interval.level), end(interval) * factor))
            })
        };
        let medians = self.values.iter();
        let medians = medians.map(|(labels, summary)| (labels.clone(), summary.median * factor));
        gauge(text, &name("median"), &format!("Median of {what}."), medians);
        let help = format!("Lower end of the interval of the median of {what}.");
        gauge(text, &name("low"), &help, ends(|interval| interval.low));
        let help = format!("Upper end of the interval of the median of {what}.");
        gauge(text, &name("high"), &help, ends(|interval| interval.high));
        let counts = self.values.iter();
        let counts = counts.map(|(labels, summary)| (labels.clone(), f64::from(summary.n)));
        let help = format!("Repetitions behind the median of {}.", metric_label(self.metric));
        gauge(text, &format!("fslab_{}_repetitions", spec.name), &help, counts);
    }
}

/// Gauges of the run: ID, conditions, and program, and whether the run has ended.
fn run(text: &mut String, view: &View) {
    let facts = &view.facts;
    let mut labels = format!(
        "run={},plan={},title={},program={},profile={},conditions={}",
        quoted(&facts.run),
        quoted(&facts.plan_name),
        quoted(&facts.title),
        quoted(&facts.program),
        quoted(facts.profile.name()),
        quoted(&facts.conditions)
    );
    if let Some(program) = &facts.imported {
        // Writing to a string cannot fail.
        let _ = write!(labels, ",imported_from={}", quoted(program));
    }
    let help = "The run, and the conditions under which all its numbers hold.";
    gauge(text, "fslab_run_info", help, [(labels, 1.0)].into_iter());
    let ended = if facts.ended { 1.0 } else { 0.0 };
    let labels = format!("run={}", quoted(&facts.run));
    let help = "1 if the run came to its end, 0 if its numbers are provisional.";
    gauge(text, "fslab_run_ended", help, [(labels, ended)].into_iter());
}

/// Labels of a value. `id` distinguishes values with otherwise equal labels.
fn labels(view: &View, suite: &str, workload: &str, test: &Test, entry: &Entry) -> String {
    format!(
        "run={},filesystem={},suite={},workload={},test={},id={}",
        quoted(&view.facts.run),
        quoted(&view.filesystems[entry.filesystem].name),
        quoted(suite),
        quoted(workload),
        quoted(&test.name),
        quoted(&test.id)
    )
}

/// Writes a family of gauges, or nothing if it has no values.
fn gauge(text: &mut String, name: &str, help: &str, values: impl Iterator<Item = (String, f64)>) {
    let mut values = values.peekable();
    if values.peek().is_none() {
        return;
    }
    let help = one_line(help).replace('\\', "\\\\");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
    for (labels, value) in values {
        let _ = writeln!(text, "{name}{{{labels}}} {}", number(value));
    }
}

/// Factor from the base unit to the unit of Prometheus, and suffix of the name.
fn base(unit: Unit) -> (f64, &'static str) {
    match unit {
        Unit::Bytes => (1.0, "_bytes"),
        Unit::BytesPerSecond => (1.0, "_bytes_per_second"),
        Unit::OpsPerSecond => (1.0, "_operations_per_second"),
        Unit::CommitsPerSecond => (1.0, "_commits_per_second"),
        Unit::DeliveriesPerSecond => (1.0, "_deliveries_per_second"),
        Unit::Nanoseconds => (1e-9, "_seconds"),
        Unit::Count => (1.0, ""),
        Unit::Fraction | Unit::Ratio => (1.0, "_ratio"),
        Unit::Hertz => (1.0, "_hertz"),
        Unit::Instructions => (1.0, "_instructions"),
    }
}

/// Label value: one line, with `\` and `"` escaped.
fn quoted(value: &str) -> String {
    format!("\"{}\"", one_line(value).replace('\\', "\\\\").replace('"', "\\\""))
}

/// Number in the notation of the format.
fn number(value: f64) -> String {
    match value {
        value if value.is_nan() => "NaN".into(),
        f64::INFINITY => "+Inf".into(),
        f64::NEG_INFINITY => "-Inf".into(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::fixture;

    /// Name, labels, and value of a line, parsed by the rules of the format.
    fn read(line: &str) -> (String, Vec<(String, String)>, f64) {
        let (name, rest) = line.split_once('{').unwrap();
        let mut letters = rest.chars();
        let mut labels = Vec::new();
        loop {
            let key: String = letters.by_ref().take_while(|c| *c != '=').collect();
            assert!(key.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{line}");
            assert_eq!(letters.next(), Some('"'), "{line}");
            let mut value = String::new();
            loop {
                match letters.next().unwrap() {
                    '\\' => value.push(letters.next().unwrap()),
                    '"' => break,
                    c => value.push(c),
                }
            }
            labels.push((key, value));
            match letters.next().unwrap() {
                ',' => {}
                '}' => break,
                c => panic!("{c} in {line}"),
            }
        }
        assert_eq!(letters.next(), Some(' '));
        (name.to_owned(), labels, letters.as_str().parse().unwrap())
    }

    fn check(view: &View) -> BTreeSet<String> {
        let text = prometheus(view);
        let (mut families, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut current = String::new();
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                current = help.split(' ').next().unwrap().to_owned();
                let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                assert!(current.chars().all(plain), "{current}");
                assert!(families.insert(current.clone()), "{current} comes twice");
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                assert_eq!(kind, format!("{current} gauge"));
            } else {
                let (name, labels, _) = read(line);
                assert_eq!(name, current, "lines of a family stand together");
                assert!(seen.insert((name, labels)), "{line} comes twice");
            }
        }
        families
    }

    #[test]
    fn every_line_is_readable_and_unique() {
        let families = check(&View::new(&fixture::record()));
        for name in ["durable_throughput_median_bytes_per_second", "durable_throughput_repetitions"]
        {
            assert!(families.contains(&format!("fslab_{name}")), "{families:?}");
        }
        assert!(families.contains("fslab_warning") && families.contains("fslab_run_info"));
    }

    #[test]
    fn hostile_labels_are_escaped() {
        let mut record = fixture::record();
        record.info.title = "a\"} 1\nfslab_fake{x=\"\\".into();
        let view = View::new(&record);
        check(&view);
        let text = prometheus(&view);
        let first = text.lines().find(|line| line.starts_with("fslab_run_info")).unwrap();
        let title = read(first).1.into_iter().find(|(key, _)| key == "title").unwrap().1;
        assert_eq!(title, "a\"} 1 fslab_fake{x=\"\\");
    }
}
