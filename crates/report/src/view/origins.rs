//! CPU time by consumer during a test, as amounts that add up.
//!
//! The input is the [`SystemActivity`] and the operation counts of the measured trials. Amounts are
//! means over the repetitions: unlike medians, means of parts add up to the mean of the whole. The
//! tables of [`super::activity`] have medians with intervals.

use analysis::Summary;
use model::{
    Nanos, SystemActivity,
    activity::{CpuActivity, Origin},
    metric::Unit,
    record::{HistogramKind, TrialRecord},
};

use super::{
    points::{Status, Test},
    sample_index::SampleIndex,
};

/// Consumers, in the order of the segments: the workload, all of [`Origin`], and others.
pub(crate) const PARTS: [&str; 14] = [
    "workload",
    "journal",
    "writeback",
    "filesystem",
    "deferred work",
    "block layer",
    "loop device",
    "device stack",
    "reclaim",
    "shared kernel workqueues",
    "other kernel threads",
    "other processes",
    "fslab monitoring",
    "unattributed",
];

/// Index of the first part that is not attributed to the workload.
pub(crate) const FOREIGN: usize = 9;

/// CPU time of one test.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Origins {
    /// [`Unit::Nanoseconds`] or [`Unit::Instructions`] per operation. If operations were not
    /// counted, [`Unit::Fraction`] of one CPU over the duration of the test.
    pub(crate) unit: Unit,
    /// By index of the filesystem.
    pub(crate) lines: Vec<OriginLine>,
    /// True if all repetitions were long enough for host counters, so that the unattributed CPU
    /// time is known.
    pub(crate) unattributed: bool,
    /// Filesystems without a line, with the reason.
    pub(crate) absent: Vec<(usize, String)>,
}

/// One filesystem.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OriginLine {
    pub(crate) filesystem: usize,
    /// Means of [`PARTS`]; never negative.
    pub(crate) parts: [f64; PARTS.len()],
    /// Attributed CPU time (workload and attributed kernel threads), over the repetitions.
    pub(crate) attributed: Summary,
}

impl OriginLine {
    /// Fraction of the attributed CPU time that kernel threads used.
    pub(crate) fn kernel_thread_fraction(&self) -> f64 {
        let attributed: f64 = self.parts[..FOREIGN].iter().sum();
        if attributed > 0.0 { 1.0 - self.parts[0] / attributed } else { 0.0 }
    }
}

/// CPU activity and operation count of one repetition.
struct CpuBreakdown<'a> {
    activity: &'a SystemActivity,
    cpu: &'a CpuActivity,
    operations: Option<u64>,
}

/// CPU time of a test by consumer; `None` if not available.
pub(crate) fn origins(test: &Test, sample_index: &SampleIndex) -> Option<Origins> {
    let mut own: Vec<(usize, Vec<CpuBreakdown>)> = Vec::new();
    for entry in test.entries.iter().filter(|entry| entry.status == Status::Measured) {
        let breakdown: Vec<CpuBreakdown> = sample_index
            .measured(entry.cell)
            .filter_map(|trial| breakdown(trial, &test.name))
            .collect();
        if !breakdown.is_empty() {
            own.push((entry.filesystem, breakdown));
        }
    }
    own.sort_by_key(|(filesystem, _)| *filesystem);
    let all = || own.iter().flat_map(|(_, repetitions)| repetitions);
    let counted = all().all(|breakdown| breakdown.operations.is_some());
    let unattributed = all().all(|breakdown| breakdown.activity.has_host_counters());
    let line = |(filesystem, repetitions): &(usize, Vec<CpuBreakdown>)| {
        let amounts = repetitions.iter().map(|breakdown| breakdown.parts(counted, unattributed));
        let amounts: Vec<[f64; PARTS.len()]> = amounts.collect();
        let attributed = amounts.iter().map(|parts| parts[..FOREIGN].iter().sum());
        let mean = |part: usize| {
            let sum: f64 = amounts.iter().map(|parts| parts[part]).sum();
            // Unattributed time is a difference and may be negative.
            (sum / amounts.len() as f64).max(0.0)
        };
        Some(OriginLine {
            filesystem: *filesystem,
            parts: std::array::from_fn(mean),
            attributed: Summary::new(&attributed.collect::<Vec<f64>>()).ok()?,
        })
    };
    let mut lines: Vec<OriginLine> = own.iter().filter_map(line).collect();
    lines.retain(|line| line.parts.iter().sum::<f64>() > 0.0);
    (!lines.is_empty()).then(|| Origins {
        unit: if counted { sample_index.clock.unit() } else { Unit::Fraction },
        unattributed,
        absent: test.absent(
            |filesystem| lines.iter().any(|line| line.filesystem == filesystem),
            "CPU time is not available",
        ),
        lines,
    })
}

fn breakdown<'a>(trial: &'a TrialRecord, phase: &str) -> Option<CpuBreakdown<'a>> {
    let (_, activity) = trial.activity.iter().find(|(at, _)| at == phase)?;
    let cpu = activity.cpu.as_ref().filter(|_| activity.window > Nanos(0))?;
    let all = |times: &&model::record::PhaseHistogram| {
        times.phase == phase && times.kind == HistogramKind::All
    };
    let operations = trial.histograms.iter().find(all).map(|times| times.histogram.count());
    Some(CpuBreakdown { activity, cpu, operations: operations.filter(|count| *count > 0) })
}

impl CpuBreakdown<'_> {
    /// Amounts of [`PARTS`]. If `counted`, they are nanoseconds or instructions per operation,
    /// otherwise fractions of the window.
    fn parts(&self, counted: bool, unattributed: bool) -> [f64; PARTS.len()] {
        let cpu = self.cpu;
        let whole = match self.operations {
            Some(operations) if counted => operations as f64,
            Some(_) | None => self.activity.window.0 as f64,
        };
        let threads = Origin::ALL.map(|origin| cpu.of(origin).0 as f64);
        let unattributed = if unattributed { cpu.unattributed() as f64 } else { 0.0 };
        let others = [cpu.others_total.0 as f64, cpu.monitoring.0 as f64, unattributed];
        let all = [cpu.workload.0 as f64].into_iter().chain(threads).chain(others);
        let mut parts = [0.0; PARTS.len()];
        parts.iter_mut().zip(all).for_each(|(part, nanos)| *part = nanos / whole);
        parts
    }
}
