//! Comparison of filesystem ranks by instruction counts and by time on the host.

use model::{Metric, RunRecord, phase::Role};

use crate::{Bench, page::median, values};

/// Relative difference below which costs are tied.
const TIED: f64 = 0.05;

/// Plan that measures the same calls by time, with more files because times vary more.
const NATIVE: &str = r#"
title = "The same calls by time"
profile = "standard"
repetitions = 5
fsck = false
aa_control = "none"
[storage]
image_size = "1GiB"
image_directory = "/dev/shm"
[axes]
filesystem = ["ext2", "ext3", "ext4", "xfs", "btrfs"]
workload = ["small-file-calls"]
"#;

/// Orders of the filesystems by instruction counts and by time for one probe.
pub(crate) struct Agreement {
    pub(crate) probe: String,
    /// Kendall's τ-b; `None` if either order contains only ties.
    pub(crate) tau: Option<f64>,
    /// Names in ascending order of cost.
    pub(crate) counted: Vec<String>,
    pub(crate) timed: Vec<String>,
}

/// Measures the calls on the host, and compares the two orders of each probe.
pub(crate) fn against_native(bench: &Bench, counted: &RunRecord) -> Vec<Agreement> {
    let plan = bench.plan("native", NATIVE);
    let (native, _) =
        bench.measured("native", &[&plan, "--set", "files=5000", "--set", "fsync_files=1000"]);
    let Some(first) = native.cells.first() else { return Vec::new() };
    let probes = first.phases.iter().filter(|phase| phase.role == Role::Measure);
    probes.map(|probe| agreement(&probe.name, counted, &native)).collect()
}

fn agreement(probe: &str, counted: &RunRecord, native: &RunRecord) -> Agreement {
    let mut costs: Vec<(&str, f64, f64)> = Vec::new();
    for (at, cell) in native.cells.iter().enumerate() {
        let name = cell.cell.filesystem.name.as_str();
        let own = |record: &model::record::CellRecord| {
            record.cell.filesystem.name == name && !record.cell.aa_duplicate
        };
        let Some(there) = counted.cells.iter().position(own) else { continue };
        let rate = median(&values(native, at, probe, Metric::OpsRate));
        let cost = median(&values(counted, there, probe, Metric::InstructionsPerOp));
        if rate.is_finite() && cost.is_finite() {
            costs.push((name, cost, 1.0 / rate));
        }
    }
    let order = |of: fn(&(&str, f64, f64)) -> f64| {
        let mut sorted = costs.clone();
        sorted.sort_by(|a, b| of(a).total_cmp(&of(b)));
        sorted.into_iter().map(|(name, ..)| name.to_owned()).collect()
    };
    Agreement {
        probe: probe.to_owned(),
        tau: tau(&costs.iter().map(|(_, cost, time)| (*cost, *time)).collect::<Vec<_>>()),
        counted: order(|(_, cost, _)| *cost),
        timed: order(|(_, _, time)| *time),
    }
}

/// Kendall's τ-b: the number of pairs in the same order minus the number in opposite order, divided
/// by the square root of the product of the numbers of pairs without ties in each order (Kendall,
/// "The treatment of ties in ranking problems", Biometrika 33, 1945).
fn tau(costs: &[(f64, f64)]) -> Option<f64> {
    let order = |one: f64, other: f64| match other / one - 1.0 {
        more if more > TIED => 1.0,
        more if more < -TIED => -1.0,
        _ => 0.0,
    };
    let (mut agree, mut of_first, mut of_second) = (0.0, 0.0f64, 0.0f64);
    for (at, one) in costs.iter().enumerate() {
        for other in &costs[at + 1..] {
            let (first, second) = (order(one.0, other.0), order(one.1, other.1));
            agree += first * second;
            of_first += f64::abs(first);
            of_second += f64::abs(second);
        }
    }
    Some(agree / (of_first * of_second).sqrt()).filter(|tau| tau.is_finite())
}
