//! The evidence beside the numbers of a test: who used the processors, and what the devices did.
//!
//! [`Evidence`] of every repeat enters, with the samples that were made from it; two tables for
//! each test leave, parts × filesystems. What the kernel does not tell is `not told`, never a zero.

use analysis::Summary;
use model::{
    Clock, Evidence, Metric,
    evidence::{CpuWork, Origin},
    metric::Unit,
};

use super::{
    facts::Filesystem,
    points::{Entry, Status, Suite, Test, WorkPoint, slug},
    pool::Pool,
    tables::{Body, Column, Row, Table, TableCell, ValueCell, scale_of},
};
use crate::units::{capital, fixed};

/// In place of a number that the kernel does not tell.
pub(crate) const NOT_TOLD: &str = "not told";

/// For each suite and each test of its points, in their order: the tables there are.
pub(crate) fn evidence(
    suites: &[Suite],
    filesystems: &[Filesystem],
    pool: &Pool,
) -> Vec<Vec<Vec<Table>>> {
    let of_test = |point: &WorkPoint, test: &Test| -> Vec<Table> {
        let sheet = Sheet { point, test, filesystems, pool };
        sheet.cpu().into_iter().chain(sheet.devices()).collect()
    };
    let of_suite = |suite: &Suite| {
        let tests =
            suite.points.iter().flat_map(|point| point.tests.iter().map(move |t| (point, t)));
        tests.map(|(point, test)| of_test(point, test)).collect()
    };
    suites.iter().map(of_suite).collect()
}

/// A part of the CPU time in a row: title, whether it stands even when it is nothing, nanoseconds.
type Part = (&'static str, bool, f64);

/// Who used the processors, in the order of the table; the last is what the machine itself counts,
/// which is no number where the window is too short for that.
fn parts(cpu: &CpuWork, host: bool) -> Vec<Part> {
    let time = |time: model::Nanos| time.seconds() * 1e9;
    let threads = Origin::ALL.into_iter().filter(|origin| origin.attributed());
    #[expect(clippy::cast_precision_loss, reason = "a share of some digits is shown")]
    let unattributed = cpu.unattributed() as f64;
    let first: [Part; 2] = [
        ("the workload", true, time(cpu.workload)),
        ("kernel threads it caused", true, time(cpu.attributed())),
    ];
    let last: [Part; 6] = [
        ("queues the kernel shares", false, time(cpu.of(Origin::Shared))),
        ("other kernel threads", false, time(cpu.of(Origin::Other))),
        ("other processes", false, time(cpu.others_total)),
        ("fslab, looking", false, time(cpu.watching)),
        ("unattributed", false, if host { unattributed } else { f64::NAN }),
        ("the machine", true, if host { time(cpu.host.busy) } else { f64::NAN }),
    ];
    let threads = threads.map(|origin| (dotted(origin), false, time(cpu.of(origin))));
    first.into_iter().chain(threads).chain(last).collect()
}

/// The word of an origin as a part of the row above.
const fn dotted(origin: Origin) -> &'static str {
    match origin {
        Origin::Journal => "· journal",
        Origin::Writeback => "· writeback",
        Origin::Filesystem => "· filesystem",
        Origin::Background => "· background",
        Origin::Block => "· block",
        Origin::Loop => "· loop",
        Origin::Stack => "· stack",
        Origin::Reclaim => "· reclaim",
        Origin::Shared => "· shared queues",
        Origin::Other => "· other",
    }
}

/// The part of the requests that were joined with a neighbor before they reached the devices that
/// the filesystem is on; `None` if there were no requests.
fn merged(evidence: &Evidence) -> Option<f64> {
    let devices = evidence.devices.iter().filter(|device| device.depth == 0);
    let (merged, done) = devices.fold((0, 0), |(merged, done), device| {
        (merged + device.reads_merged + device.writes_merged, done + device.reads + device.writes)
    });
    #[expect(clippy::cast_precision_loss, reason = "a share of some digits is shown")]
    (merged + done > 0).then(|| merged as f64 / (merged + done) as f64)
}

/// What the devices did, by metric; and whether the row stands even if nobody told it.
const DEVICE: [(&str, Metric, bool); 11] = [
    ("read", Metric::DeviceRead, true),
    ("written", Metric::DeviceWritten, true),
    ("read requests", Metric::DeviceReads, true),
    ("write requests", Metric::DeviceWrites, true),
    ("flush requests", Metric::DeviceFlushes, true),
    ("discarded", Metric::DeviceDiscarded, false),
    ("busy", Metric::DeviceBusy, true),
    ("mean queue", Metric::DeviceQueue, true),
    ("served from memory", Metric::CachedShare, false),
    ("read amplification", Metric::ReadAmplification, false),
    ("write amplification", Metric::WriteAmplification, false),
];

struct Sheet<'a> {
    point: &'a WorkPoint,
    test: &'a Test,
    filesystems: &'a [Filesystem],
    pool: &'a Pool<'a>,
}

impl Sheet<'_> {
    /// Entries that have results, in the order of the filesystems.
    fn entries(&self) -> Vec<&Entry> {
        let entries = self.test.entries.iter();
        let mut entries: Vec<&Entry> =
            entries.filter(|entry| entry.status == Status::Measured).collect();
        entries.sort_by_key(|entry| entry.filesystem);
        entries
    }

    fn cpu(&self) -> Option<Table> {
        let entries = self.entries();
        let told: Vec<Vec<Vec<Part>>> = entries.iter().map(|entry| self.shares(entry)).collect();
        let titles = told.iter().flatten().next()?;
        let mut rows = Vec::new();
        for (at, (title, always, _)) in titles.iter().enumerate() {
            let summaries: Vec<Option<Summary>> = told
                .iter()
                .map(|repeats| {
                    let values = repeats.iter().map(|parts| parts[at].2);
                    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
                    Summary::new(&values).ok()
                })
                .collect();
            let any = summaries.iter().flatten().any(|summary| summary.max != 0.0);
            if *always || any {
                rows.push(alike(row(title, Unit::Share, &summaries)));
            }
        }
        let (title, quantity) = match self.pool.clock {
            Clock::Wall | Clock::Virtual => (
                "Where the CPU time went",
                "CPU time over the time the test took, evidence, no direction; 100 % is one \
                 processor",
            ),
            Clock::Instructions => (
                "Where the instructions went",
                "Guest instructions over those of the test and of making its workers ready, \
                 evidence, no direction",
            ),
        };
        let mut table = self.table("cpu", title, rows);
        table.caption = vec![
            quantity.into(),
            "the machine: what it counts by itself, in steps of 10 ms, so it is not told of \
             shorter tests than 0.2 s; parts without any time are left out, and medians of parts need not add up to the median of the whole"
                .into(),
        ];
        table.state_n();
        Some(table)
    }

    /// Each part over the window, for each repeat that told it.
    fn shares(&self, entry: &Entry) -> Vec<Vec<Part>> {
        let all = self.pool.evidence(entry.cell, &self.test.name);
        all.filter_map(|evidence| {
            let window = evidence.window.seconds() * 1e9;
            let cpu = evidence.cpu.as_ref().filter(|_| window > 0.0)?;
            let share = |(title, always, time): Part| (title, always, time / window);
            Some(parts(cpu, evidence.tells_of_host()).into_iter().map(share).collect())
        })
        .collect()
    }

    fn devices(&self) -> Option<Table> {
        let entries = self.entries();
        let mut rows = Vec::new();
        let mut any = false;
        for (title, metric, always) in DEVICE {
            let of = |entry: &&Entry| {
                let found = entry.metrics.iter().find(|(known, _)| *known == metric);
                found.map(|(_, summary)| summary.clone())
            };
            let summaries: Vec<Option<Summary>> = entries.iter().map(of).collect();
            let told = summaries.iter().any(Option::is_some);
            if always || told {
                rows.push(row(title, metric.spec().unit, &summaries));
            }
            // The page cache alone says nothing about devices.
            any |= told && metric != Metric::CachedShare;
            if metric == Metric::DeviceFlushes {
                let joined = self.joined(&entries);
                any |= joined.iter().any(Option::is_some);
                rows.push(row("joined with a neighbor", Unit::Share, &joined));
            }
        }
        if !any {
            return None;
        }
        let mut table = self.table("devices", "What the devices did", rows);
        table.caption = vec![
            "Devices that the filesystem is on, during the test, evidence, no direction; joined: \
             the part of the requests that were put together before they reached the device; \
             amplification: bytes of the devices for each byte read from cold caches, or written \
             and flushed"
                .into(),
        ];
        table.state_n();
        Some(table)
    }

    fn joined(&self, entries: &[&Entry]) -> Vec<Option<Summary>> {
        let of = |entry: &&Entry| {
            let all = self.pool.evidence(entry.cell, &self.test.name);
            Summary::new(&all.filter_map(merged).collect::<Vec<f64>>()).ok()
        };
        entries.iter().map(of).collect()
    }

    fn table(&self, id: &str, title: &str, rows: Vec<Row>) -> Table {
        let column = |entry: &Entry| Column {
            filesystem: Some(entry.filesystem),
            ..Column::new(self.filesystems[entry.filesystem].name.clone(), "")
        };
        let mut table = Table {
            id: format!("{}--{}--{id}", self.point.id, slug(&self.test.name)),
            title: format!("{title}: {}, {}", capital(&self.test.name), self.point.label),
            caption: Vec::new(),
            corner: "part",
            columns: self.entries().into_iter().map(column).collect(),
            rows,
        };
        for (index, filesystem) in self.filesystems.iter().enumerate() {
            if let Some(Status::Nothing(reason)) = &self.point.statuses[index] {
                let body = Body::Missing(reason.clone());
                table.rows.push(Row::of(filesystem.name.clone(), Some(index), body));
            }
        }
        table
    }
}

/// One part over the filesystems, in one scale.
fn row(title: &str, unit: Unit, summaries: &[Option<Summary>]) -> Row {
    let scale = scale_of(unit, summaries.iter().flatten());
    let cell = |summary: &Option<Summary>| match summary {
        Some(summary) => TableCell::Value(ValueCell::plain(summary, scale)),
        None => TableCell::Text(NOT_TOLD.into()),
    };
    let cells = Body::Cells(summaries.iter().map(cell).collect());
    Row { unit: scale.name, ..Row::of(title, None, cells) }
}

/// A row of percents with two decimals in every cell, whatever their intervals: they are read as
/// parts of one sum.
fn alike(mut row: Row) -> Row {
    let Body::Cells(cells) = &mut row.body else { return row };
    for cell in cells {
        if let TableCell::Value(value) = cell {
            let two = |share: f64| fixed(share * 100.0, 2);
            value.shown.value = two(value.sort);
            value.shown.interval = value.interval.map(|ends| (two(ends.low), two(ends.high)));
        }
    }
    row
}
