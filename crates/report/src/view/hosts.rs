//! Spread over the hosts of a run on several hosts: one table per workload and phase.
//!
//! The input is the results of each host in the measured trials. A host is named as a straggler
//! only if a permutation test over the repetitions supports it.

use std::collections::BTreeMap;

use analysis::{Summary, hosts::slowest};
use model::{HostResult, Nanos, RunRecord, metric::Unit, record::Outcome};

use crate::{
    document::Column,
    units::{alone, count, one_line, ratio, slug},
    view::tables::{Row, Table},
};

/// Method paragraph of the report.
const METHOD: &str = "\
    Hosts: the rate of a host is its operations or bytes over the time from the start of its first \
    worker to the end of its last one. Instants are in the time of the conducting host. A host is \
    called slowest of all only if a permutation test over the repetitions rejects that all hosts \
    are equally fast (5 % level, ranks within each repetition).";

/// Method paragraph of a run on several hosts.
pub(crate) fn method(record: &RunRecord) -> Option<&'static str> {
    record.trials.iter().any(|trial| !trial.hosts.is_empty()).then_some(METHOD)
}

/// Tables of all workloads and phases.
pub(crate) fn tables(record: &RunRecord) -> Vec<Table> {
    let mut groups: BTreeMap<(usize, &str), Vec<Vec<&HostResult>>> = BTreeMap::new();
    for trial in record.trials.iter().filter(|trial| trial.outcome == Outcome::Measured) {
        let mut phases: BTreeMap<&str, Vec<&HostResult>> = BTreeMap::new();
        for result in &trial.hosts {
            phases.entry(result.phase.as_str()).or_default().push(result);
        }
        for (phase, results) in phases {
            groups.entry((trial.cell, phase)).or_default().push(results);
        }
    }
    let table = |((cell, phase), repetitions): ((usize, &str), Vec<Vec<&HostResult>>)| {
        let label = record.cells.get(cell).map(|cell| one_line(&cell.label)).unwrap_or_default();
        of_phase(&label, phase, &repetitions)
    };
    groups.into_iter().filter_map(table).collect()
}

fn of_phase(label: &str, phase: &str, repetitions: &[Vec<&HostResult>]) -> Option<Table> {
    let first = repetitions.first()?;
    // Hosts of repetitions on other numbers of hosts cannot be compared; this cannot happen in one
    // cell.
    let complete: Vec<&Vec<&HostResult>> =
        repetitions.iter().filter(|own| own.len() == first.len()).collect();
    if first.len() < 2 {
        return None;
    }
    let moves = first.iter().any(|host| host.bytes.0 > 0);
    let unit = if moves { Unit::BytesPerSecond } else { Unit::OpsPerSecond };
    let rate = |host: &HostResult| {
        let work = if moves { host.bytes.0 } else { host.ops.0 };
        work as f64 / host.span().seconds().max(1e-9)
    };
    let medians: Vec<f64> =
        (0..first.len()).map(|at| median(complete.iter().map(|own| rate(own[at])))).collect();
    let rows = first.iter().enumerate().map(|(at, host)| {
        let own = || complete.iter().map(|own| own[at]);
        let start = |results: &[&HostResult]| {
            results.iter().map(|host| host.started).min().unwrap_or_default()
        };
        let late = median(complete.iter().map(|own| nanos(own[at].started - start(own))));
        let network = |of: fn(&model::cluster::Network) -> u64| {
            let values: Option<Vec<f64>> =
                own().map(|host| host.network.as_ref().map(|it| of(it) as f64)).collect();
            values.map_or("not available".into(), |values| {
                alone(Unit::Bytes, median(values.into_iter()))
            })
        };
        let bound = own().map(|host| host.clock_bound).max().unwrap_or_default();
        Row::texts(
            one_line(&host.host),
            [
                alone(unit, medians[at]),
                alone(Unit::Nanoseconds, median(own().map(|host| nanos(host.span())))),
                alone(Unit::Nanoseconds, late),
                network(|network| network.received.0),
                network(|network| network.sent.0),
                format!("± {}", alone(Unit::Nanoseconds, nanos(bound))),
            ],
        )
    });
    let rows = rows.collect();
    let columns = ["rate", "duration", "late start", "received", "sent", "clock"];
    Some(Table {
        id: format!("hosts-{}", slug(&format!("{label}-{phase}"))),
        title: format!("Hosts: {label}, {phase}"),
        caption: caption(first, &medians, &complete, rate),
        corner: "host",
        columns: columns.map(|title| Column::new(title, "")).into(),
        rows,
    })
}

/// Slowest and fastest host, their ratio, and the evidence for a straggler.
fn caption(
    hosts: &[&HostResult],
    medians: &[f64],
    repetitions: &[&Vec<&HostResult>],
    rate: impl Fn(&HostResult) -> f64,
) -> Vec<String> {
    let by_rate = |one: &usize, other: &usize| medians[*one].total_cmp(&medians[*other]);
    let (slow, fast) = (
        (0..medians.len()).min_by(by_rate).unwrap_or(0),
        (0..medians.len()).max_by(by_rate).unwrap_or(0),
    );
    let name = |at: usize| one_line(&hosts[at].host);
    let ratio = ratio(medians[fast] / medians[slow].max(1e-300), None);
    let mut lines = vec![format!(
        "medians of {}; slowest {}, fastest {}, ratio {ratio}",
        count(repetitions.len(), "repetition"),
        name(slow),
        name(fast)
    )];
    let times: Vec<Vec<f64>> = repetitions
        .iter()
        .map(|own| own.iter().map(|host| 1.0 / rate(host).max(1e-300)).collect())
        .collect();
    if let Some(found) = slowest(&times) {
        lines.push(match found.is_straggler() {
            true => format!("straggler: {} (p = {:.4})", name(found.host), found.p),
            false => {
                format!("no host is significantly slower than the others (p = {:.2})", found.p)
            }
        });
    }
    lines
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let summary = Summary::new(&values.collect::<Vec<f64>>());
    summary.map_or(0.0, |summary| summary.median)
}

fn nanos(time: Nanos) -> f64 {
    time.0 as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Bytes, Ops};

    fn host(index: u32, seconds: u64) -> HostResult {
        HostResult {
            phase: "write".into(),
            index,
            host: format!("node{}", index + 1),
            ops: Ops(10),
            bytes: Bytes(1 << 30),
            started: Nanos(5),
            ended: Nanos(5 + seconds * 1_000_000_000),
            ..HostResult::default()
        }
    }

    fn table(repetitions: &[[u64; 3]]) -> Table {
        let results: Vec<Vec<HostResult>> = repetitions
            .iter()
            .map(|own| (0..).zip(own).map(|(index, time)| host(index, *time)).collect())
            .collect();
        let results: Vec<Vec<&HostResult>> =
            results.iter().map(|own| own.iter().collect()).collect();
        of_phase("stream", "write", &results).unwrap()
    }

    #[test]
    fn a_straggler_is_named_if_it_is_slowest_in_most_repetitions() {
        let slow = table(&[[2, 2, 9]; 6]);
        assert_eq!(slow.rows.len(), 3);
        assert!(slow.caption[0].contains("slowest node3"), "{:?}", slow.caption);
        assert!(slow.caption[1].starts_with("straggler: node3"), "{:?}", slow.caption);
        let once = table(&[[2, 3, 90], [3, 2, 1], [1, 3, 2], [3, 1, 2]]);
        assert!(once.caption[1].starts_with("no host"), "{:?}", once.caption);
    }
}
