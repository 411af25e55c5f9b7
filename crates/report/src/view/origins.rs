//! Who used the processors during a test, as amounts that can be added up.
//!
//! [`Evidence`] and the counts of operations of the measured trials enter; for each test there
//! leaves at most one [`Origins`]. Amounts are means over the repeats: unlike medians they add up
//! to the mean of the whole. The table beside it has the medians with their intervals.

use analysis::Summary;
use model::{
    Evidence, Nanos,
    evidence::{CpuWork, Origin},
    metric::Unit,
    record::{TimesOf, TrialRecord},
};

use super::{
    points::{Status, Suite, Test},
    pool::Pool,
};

/// What a piece is for: its words, in the order in which pieces stand.
pub(crate) const PARTS: [&str; 14] = [
    "the workload",
    "journal",
    "writeback",
    "filesystem",
    "background",
    "block layer",
    "loop device",
    "stack below",
    "reclaim",
    "shared queues",
    "other kernel threads",
    "other processes",
    "fslab, looking",
    "unattributed",
];

/// Parts from this one on are not taken to be caused by the workload.
pub(crate) const FOREIGN: usize = 9;

/// The CPU time of one test.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Origins {
    /// [`Unit::Nanoseconds`] or [`Unit::Instructions`] for each operation, or where those were not
    /// counted [`Unit::Share`] of one processor over the time the test took.
    pub(crate) unit: Unit,
    /// By index of the filesystem.
    pub(crate) lines: Vec<OriginLine>,
    /// All of them were long enough for what the machine counts by itself.
    pub(crate) unattributed: bool,
    /// Filesystems that are not among them, and why.
    pub(crate) absent: Vec<(usize, String)>,
}

/// One filesystem.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OriginLine {
    pub(crate) filesystem: usize,
    /// Means of [`PARTS`]; never negative.
    pub(crate) parts: [f64; PARTS.len()],
    /// What the workload and the kernel threads that it caused used together, over the repeats.
    pub(crate) caused: Summary,
}

impl OriginLine {
    /// The part of what was caused that kernel threads used, from 0 to 1.
    pub(crate) fn beside(&self) -> f64 {
        let caused: f64 = self.parts[..FOREIGN].iter().sum();
        if caused > 0.0 { 1.0 - self.parts[0] / caused } else { 0.0 }
    }
}

/// For each suite and each test of its points, in their order: who used the processors, if that was
/// told.
pub(crate) fn origins(suites: &[Suite], pool: &Pool) -> Vec<Vec<Option<Origins>>> {
    let of_suite = |suite: &Suite| {
        let tests = suite.points.iter().flat_map(|point| &point.tests);
        tests.map(|test| of_test(test, pool)).collect()
    };
    suites.iter().map(of_suite).collect()
}

/// One repeat: its evidence, what was told of the processors, and the operations it did.
struct Told<'a> {
    evidence: &'a Evidence,
    cpu: &'a CpuWork,
    operations: Option<u64>,
}

fn of_test(test: &Test, pool: &Pool) -> Option<Origins> {
    let mut own: Vec<(usize, Vec<Told>)> = Vec::new();
    for entry in test.entries.iter().filter(|entry| entry.status == Status::Measured) {
        let told: Vec<Told> =
            pool.measured(entry.cell).filter_map(|trial| told(trial, &test.name)).collect();
        if !told.is_empty() {
            own.push((entry.filesystem, told));
        }
    }
    own.sort_by_key(|(filesystem, _)| *filesystem);
    let all = || own.iter().flat_map(|(_, repeats)| repeats);
    let counted = all().all(|told| told.operations.is_some());
    let unattributed = all().all(|told| told.evidence.tells_of_host());
    let line = |(filesystem, repeats): &(usize, Vec<Told>)| {
        let amounts = repeats.iter().map(|told| told.parts(counted, unattributed));
        let amounts: Vec<[f64; PARTS.len()]> = amounts.collect();
        let caused = amounts.iter().map(|parts| parts[..FOREIGN].iter().sum());
        let mean = |part: usize| {
            let sum: f64 = amounts.iter().map(|parts| parts[part]).sum();
            // Unattributed time is a difference, which may be below nothing.
            (sum / amounts.len() as f64).max(0.0)
        };
        Some(OriginLine {
            filesystem: *filesystem,
            parts: std::array::from_fn(mean),
            caused: Summary::new(&caused.collect::<Vec<f64>>()).ok()?,
        })
    };
    let mut lines: Vec<OriginLine> = own.iter().filter_map(line).collect();
    lines.retain(|line| line.parts.iter().sum::<f64>() > 0.0);
    (!lines.is_empty()).then(|| Origins {
        unit: if counted { pool.clock.unit() } else { Unit::Share },
        unattributed,
        absent: absent(test, &lines),
        lines,
    })
}

fn told<'a>(trial: &'a TrialRecord, phase: &str) -> Option<Told<'a>> {
    let (_, evidence) = trial.evidence.iter().find(|(at, _)| at == phase)?;
    let cpu = evidence.cpu.as_ref().filter(|_| evidence.window > Nanos(0))?;
    let all = |times: &&model::record::Times| times.phase == phase && times.of == TimesOf::All;
    let operations = trial.histograms.iter().find(all).map(|times| times.histogram.count());
    Some(Told { evidence, cpu, operations: operations.filter(|count| *count > 0) })
}

impl Told<'_> {
    /// Amounts of [`PARTS`]: nanoseconds for each operation, or shares of the window.
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    fn parts(&self, counted: bool, unattributed: bool) -> [f64; PARTS.len()] {
        let cpu = self.cpu;
        let of = |origin| cpu.of(origin).0 as f64;
        let whole = match self.operations {
            Some(operations) if counted => operations as f64,
            Some(_) | None => self.evidence.window.0 as f64,
        };
        let parts = [
            cpu.workload.0 as f64,
            of(Origin::Journal),
            of(Origin::Writeback),
            of(Origin::Filesystem),
            of(Origin::Background),
            of(Origin::Block),
            of(Origin::Loop),
            of(Origin::Stack),
            of(Origin::Reclaim),
            of(Origin::Shared),
            of(Origin::Other),
            cpu.others_total.0 as f64,
            cpu.watching.0 as f64,
            if unattributed { cpu.unattributed() as f64 } else { 0.0 },
        ];
        parts.map(|nanos| nanos / whole)
    }
}

/// Filesystems of the test without a bar.
fn absent(test: &Test, lines: &[OriginLine]) -> Vec<(usize, String)> {
    let mut absent: Vec<(usize, String)> = Vec::new();
    for entry in &test.entries {
        if lines.iter().all(|line| line.filesystem != entry.filesystem) {
            let reason = match &entry.status {
                Status::Nothing(reason) => reason.clone(),
                Status::Measured => "who used the processors was not told".into(),
            };
            absent.push((entry.filesystem, reason));
        }
    }
    absent.sort_by_key(|(filesystem, _)| *filesystem);
    absent
}
