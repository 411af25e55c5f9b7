//! System activity during a test: CPU time by consumer and device I/O.
//!
//! The input is the [`SystemActivity`] of each repetition and the samples derived from it. Each
//! test has up to two tables, with one row per part and one column per filesystem. Values that the
//! kernel does not provide are shown as not available, never as zero.

use analysis::Summary;
use model::{
    Clock, Metric, Nanos, SystemActivity,
    activity::{CpuActivity, Origin},
    metric::Unit,
};

use super::{
    facts::Filesystem,
    origins::PARTS,
    points::{Entry, Status, Test, WorkPoint},
    sample_index::SampleIndex,
    tables::{Body, Column, Row, Table, TableCell, ValueCell, scale_of},
};
use crate::units::{capital, fixed, slug};

/// Text of a value that the kernel does not provide.
pub(crate) const NOT_AVAILABLE: &str = "not available";

/// Tables of a test.
pub(crate) fn activity(
    point: &WorkPoint,
    test: &Test,
    filesystems: &[Filesystem],
    sample_index: &SampleIndex,
) -> Vec<Table> {
    let sheet = Sheet { point, test, filesystems, sample_index };
    sheet.cpu().into_iter().chain(sheet.devices()).collect()
}

/// Part of the CPU time: title, true if it is shown even when zero, and amount. The amount is
/// nanoseconds in [`parts`] and a fraction of the window in [`Sheet::shares`].
type Part = (String, bool, f64);

/// CPU time by consumer in nanoseconds, in table order. If `host` is false, the window is too short
/// for the resolution of the host counters, and the parts that need them are NaN.
fn parts(cpu: &CpuActivity, host: bool) -> Vec<Part> {
    let part = |title: &str, time: Nanos| (title.to_owned(), false, time.0 as f64);
    let always = |title: &str, time: Nanos| (title.to_owned(), true, time.0 as f64);
    let of_host = |part: Part| if host { part } else { (part.0, part.1, f64::NAN) };
    let origins = Origin::ALL.into_iter().zip(&PARTS[1..]);
    let (own, others): (Vec<_>, Vec<_>) = origins.partition(|(origin, _)| origin.attributed());
    let mut parts =
        vec![always(PARTS[0], cpu.workload), always("attributed kernel threads", cpu.attributed())];
    parts.extend(own.iter().map(|(origin, name)| part(&format!("· {name}"), cpu.of(*origin))));
    parts.extend(others.iter().map(|(origin, name)| part(name, cpu.of(*origin))));
    let [.., processes, monitoring, unattributed] = PARTS;
    parts.push(part(processes, cpu.others_total));
    parts.push(part(monitoring, cpu.monitoring));
    parts.push(of_host((unattributed.to_owned(), false, cpu.unattributed() as f64)));
    parts.push(of_host(always("whole machine", cpu.host.busy)));
    parts
}

/// Fraction of requests that the block layer merged before they reached the devices of the
/// filesystem; `None` without requests.
fn merged(activity: &SystemActivity) -> Option<f64> {
    let devices = activity.devices.iter().filter(|device| device.depth == 0);
    let (merged, done) = devices.fold((0, 0), |(merged, done), device| {
        (merged + device.reads_merged + device.writes_merged, done + device.reads + device.writes)
    });
    (merged + done > 0).then(|| merged as f64 / (merged + done) as f64)
}

/// Device metrics: row title, metric, true if the row is shown even without values.
const DEVICE: [(&str, Metric, bool); 11] = [
    ("read", Metric::DeviceBytesRead, true),
    ("written", Metric::DeviceBytesWritten, true),
    ("read requests", Metric::DeviceReadRequests, true),
    ("write requests", Metric::DeviceWriteRequests, true),
    ("flush requests", Metric::DeviceFlushRequests, true),
    ("discarded", Metric::DeviceBytesDiscarded, false),
    ("utilization", Metric::DeviceUtilization, true),
    ("queue length", Metric::DeviceQueueLength, true),
    ("cache hits", Metric::CacheHitRatio, false),
    ("read amplification", Metric::ReadAmplification, false),
    ("write amplification", Metric::WriteAmplification, false),
];

struct Sheet<'a> {
    point: &'a WorkPoint,
    test: &'a Test,
    filesystems: &'a [Filesystem],
    sample_index: &'a SampleIndex<'a>,
}

impl Sheet<'_> {
    /// Entries with results, in the order of the filesystems.
    fn entries(&self) -> Vec<&Entry> {
        let mut entries = self.test.in_plan_order();
        entries.retain(|entry| entry.status == Status::Measured);
        entries
    }

    fn cpu(&self) -> Option<Table> {
        let entries = self.entries();
        let labels: Vec<Vec<Vec<Part>>> = entries.iter().map(|entry| self.shares(entry)).collect();
        let titles = labels.iter().flatten().next()?;
        let mut rows = Vec::new();
        for (at, (title, always, _)) in titles.iter().enumerate() {
            let summaries: Vec<Option<Summary>> = labels
                .iter()
                .map(|repetitions| {
                    let values = repetitions.iter().map(|parts| parts[at].2);
                    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
                    Summary::new(&values).ok()
                })
                .collect();
            let any = summaries.iter().flatten().any(|summary| summary.max != 0.0);
            if *always || any {
                rows.push(two_decimals(row(title, Unit::Fraction, &summaries)));
            }
        }
        let (title, quantity) = match self.sample_index.clock {
            Clock::Wall | Clock::Virtual => (
                "CPU time by consumer",
                "CPU time over the duration of the test, informational; 100 % is one CPU",
            ),
            Clock::Instructions => (
                "Instructions by consumer",
                "Guest instructions over those of the test including worker setup, informational",
            ),
        };
        let mut table = self.table("cpu", title, rows);
        table.caption = vec![
            quantity.into(),
            "whole machine: host counters with a resolution of 10 ms, not available for tests \
             shorter than 0.2 s; parts without CPU time are omitted; medians of parts need not add \
             up to the median of the whole"
                .into(),
        ];
        table.state_n();
        Some(table)
    }

    /// Parts as fractions of the window, one list per repetition with CPU data.
    fn shares(&self, entry: &Entry) -> Vec<Vec<Part>> {
        let all = self.sample_index.activity(entry.cell, &self.test.name);
        all.filter_map(|activity| {
            let window = activity.window.seconds() * 1e9;
            let cpu = activity.cpu.as_ref().filter(|_| window > 0.0)?;
            let share = |(title, always, time)| (title, always, time / window);
            Some(parts(cpu, activity.has_host_counters()).into_iter().map(share).collect())
        })
        .collect()
    }

    fn devices(&self) -> Option<Table> {
        let entries = self.entries();
        let mut rows = Vec::new();
        let mut any = false;
        for (title, metric, always) in DEVICE {
            let summaries = entries.iter().map(|entry| entry.metric(metric).cloned());
            let summaries: Vec<Option<Summary>> = summaries.collect();
            let labels = summaries.iter().any(Option::is_some);
            if always || labels {
                rows.push(row(title, metric.spec().unit, &summaries));
            }
            // The cache hit ratio alone is not device data.
            any |= labels && metric != Metric::CacheHitRatio;
            if metric == Metric::DeviceFlushRequests {
                let merged = self.merged(&entries);
                any |= merged.iter().any(Option::is_some);
                rows.push(row("merged requests", Unit::Fraction, &merged));
            }
        }
        if !any {
            return None;
        }
        let mut table = self.table("devices", "Device I/O", rows);
        table.caption = vec![
            "Devices of the filesystem during the test, informational; merged requests: fraction \
             that the block layer merged before they reached the device; amplification: device \
             bytes per byte read from a cold cache, or per byte written and synced"
                .into(),
        ];
        table.state_n();
        Some(table)
    }

    fn merged(&self, entries: &[&Entry]) -> Vec<Option<Summary>> {
        let of = |entry: &&Entry| {
            let all = self.sample_index.activity(entry.cell, &self.test.name);
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

/// Row of one part: one cell per filesystem, all in the same unit.
fn row(title: &str, unit: Unit, summaries: &[Option<Summary>]) -> Row {
    let scale = scale_of(unit, summaries.iter().flatten());
    let cell = |summary: &Option<Summary>| match summary {
        Some(summary) => TableCell::Value(ValueCell::plain(summary, scale)),
        None => TableCell::Text(NOT_AVAILABLE.into()),
    };
    let cells = Body::Cells(summaries.iter().map(cell).collect());
    Row { unit: scale.name, ..Row::of(title, None, cells) }
}

/// Sets two decimals in all cells of a row of percentages, because the rows are parts of one sum.
fn two_decimals(mut row: Row) -> Row {
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
