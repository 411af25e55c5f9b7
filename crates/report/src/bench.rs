//! Report of `fslab bench`: one workload in one directory, for a terminal.
//!
//! It does not rank or compare, but lists each phase in detail: rates, latency percentiles, CPU
//! cost, and system activity.

mod clients;

use analysis::Summary;
use model::{
    Metric, RunRecord, Warning,
    activity::Origin,
    metric::Unit,
    phase::{FileCall, ReplayOp, Role},
    record::{HistogramKind, PhaseInfo},
};

use crate::{
    document::{
        Block, Body, Document, Item, Layout, Row, Section, Style, Table, TableCell, ValueCell,
        terminal::{TerminalOptions, terminal},
    },
    run,
    units::{Scale, Shown, alone, one_line, percent, slug},
    view::{View, costs::percentile, sample_index::SampleIndex},
};

/// Description of the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Name.
    pub name: String,
    /// Title.
    pub title: String,
    /// Source of the definition.
    pub source: String,
    /// Parameters that differ from the defaults, with their values.
    pub parameters: Vec<(String, String)>,
}

/// Percentiles; `None` is the maximum.
const PERCENTILES: [(&str, Option<f64>); 6] = [
    ("p50", Some(0.5)),
    ("p90", Some(0.9)),
    ("p99", Some(0.99)),
    ("p99.9", Some(0.999)),
    ("p99.99", Some(0.9999)),
    ("max", None),
];

/// Formats the report for a terminal.
pub fn bench(record: &RunRecord, subject: &Subject, options: &TerminalOptions) -> String {
    terminal(&document(record, subject), options)
}

fn document(record: &RunRecord, subject: &Subject) -> Document {
    let mut view = View::new(record);
    // The header of a phase states n, and single repetitions are common here.
    view.warnings.retain(|row| row.code != "too-few-repetitions");
    let mut report =
        BenchReport { groups: Vec::new(), sample_index: SampleIndex::new(record), record };
    let mut sections = Vec::new();
    for (index, cell) in record.cells.iter().enumerate() {
        // The section of missing results has the reason.
        let measured = report.sample_index.measured(index).next().is_some();
        let phases = cell.phases.iter().filter(|phase| phase.role == Role::Measure);
        let phases = phases.filter(|_| measured).enumerate();
        sections.extend(phases.map(|(at, phase)| Section {
            id: format!("phase-{index}-{at}"),
            ..report.phase(index, phase)
        }));
    }
    let conditions = Block::bullets(&view.facts.run_conditions).into_iter().collect();
    sections.extend(Section::new("conditions", "Conditions", conditions).some());
    sections.extend(run::missing(&view));
    sections.extend(run::warnings(&view));
    let parameters: Vec<String> =
        subject.parameters.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let conditions = format!("{} · {}", view.facts.conditions, view.facts.when);
    let lead = [
        Some(Item::named("source", &subject.source)),
        (!parameters.is_empty()).then(|| Item::named("overrides", parameters.join(", "))),
        Some(Item::of(conditions)),
    ];
    Document {
        title: format!("{}: {}", subject.name, subject.title),
        lead: Block::list(Style::Facts, lead.into_iter().flatten()).into_iter().collect(),
        sections,
        ..Document::default()
    }
}

struct BenchReport<'a> {
    /// Groups of results of one phase.
    groups: Vec<Section>,
    sample_index: SampleIndex<'a>,
    record: &'a RunRecord,
}

/// Metrics of numbers that a program printed.
const REPORTED: [(Metric, &str); 4] = [
    (Metric::ReportedRate, "printed by the program"),
    (Metric::ReportedTime, "printed by the program"),
    (Metric::ReportedBytes, "printed by the program"),
    (Metric::ReportedCount, "printed by the program"),
];

impl<'a> BenchReport<'a> {
    fn phase(&mut self, cell: usize, phase: &'a PhaseInfo) -> Section {
        let n = self.sample_index.values(cell, &phase.name, phase.primary).len();
        let text = match n {
            0 => "no result".to_owned(),
            1..6 => format!("n = {n}: no confidence interval (6 repetitions needed)"),
            _ => format!("n = {n}, medians [95 % confidence interval]"),
        };
        if n > 0 {
            self.rates(cell, phase);
        }
        // A number that a program printed has no other metrics.
        let printed = REPORTED.iter().any(|(metric, _)| *metric == phase.primary);
        if n > 0 && (!printed || self.summary(cell, phase, Metric::Elapsed).is_some()) {
            self.latencies(cell, phase);
            self.costs(cell, phase);
            self.activity(cell, phase);
        }
        let name = match self.record.cells.len() {
            1 => one_line(&phase.name),
            _ => one_line(&format!("{}, {}", self.record.cells[cell].label, phase.name)),
        };
        Section {
            sections: std::mem::take(&mut self.groups),
            ..Section::new("", format!("{name}  {text}"), Vec::new())
        }
    }

    fn group(&mut self, title: &str, blocks: Vec<Block>) {
        self.groups.push(Section::new(slug(title), title, blocks));
    }

    fn summary(&self, cell: usize, phase: &'a PhaseInfo, metric: Metric) -> Option<Summary> {
        Summary::new(self.sample_index.values(cell, &phase.name, metric)).ok()
    }

    /// Median of a metric with its unit, without interval.
    fn median(&self, cell: usize, phase: &'a PhaseInfo, metric: Metric) -> Option<String> {
        let summary = self.summary(cell, phase, metric)?;
        Some(alone(metric.spec().unit, summary.median))
    }

    /// Adds a row to the last group if there is a text.
    fn row(&mut self, name: &str, text: Option<String>) {
        let (Some(text), Some(group)) = (text, self.groups.last_mut()) else { return };
        let item = Item::named(name, text);
        match group.blocks.last_mut() {
            Some(Block::List(list)) => list.items.push(item),
            Some(_) | None => group.blocks.extend(Block::list(Style::Columns, [item])),
        }
    }

    fn rates(&mut self, cell: usize, phase: &'a PhaseInfo) {
        let operations = nouns(phase).1;
        // Mixed workloads sync only their writes.
        let mixed = self.summary(cell, phase, Metric::ReadThroughput).is_some();
        let synced = [Metric::DurableThroughput, Metric::EndSyncTime]
            .iter()
            .any(|metric| self.summary(cell, phase, *metric).is_some());
        let durable = if mixed { "· written, durable" } else { "durable throughput" };
        let mut rows = [
            (
                Metric::Throughput,
                if synced && !mixed { "accepted throughput" } else { "throughput" },
            ),
            (Metric::ReadThroughput, "· read"),
            (Metric::WriteThroughput, "· written"),
            (Metric::DurableThroughput, durable),
            (Metric::OpsRate, operations),
            (Metric::ReadOpsRate, "· reads"),
            (Metric::WriteOpsRate, "· writes"),
        ];
        if matches!(phase.primary, Metric::CommitRate | Metric::DeliveryRate) {
            // The primary metric has its own name and comes first.
            rows[4].0 = phase.primary;
            rows[..5].rotate_right(1);
        }
        if phase.primary == Metric::DurableThroughput {
            // The primary metric comes first.
            rows[..4].rotate_right(1);
            (rows[0].1, rows[1].1) = ("durable throughput", "accepted throughput");
        }
        let times = [
            (Metric::Elapsed, "elapsed"),
            (Metric::SettleTime, "completion"),
            (Metric::DurableElapsed, "until durable"),
        ];
        // Phases whose primary metric is the time have no rate.
        let of = |list: &[(Metric, &str)]| list.iter().any(|(metric, _)| *metric == phase.primary);
        let (head, rows): (&str, Vec<(Metric, &str)>) = if of(&times) {
            ("times, lower is better ↓", times.into())
        } else if of(&REPORTED) {
            (phase.primary.spec().better.label(), [&REPORTED[..], &times[..]].concat())
        } else {
            ("rates, higher is better ↑", rows.into())
        };
        self.group(head, Vec::new());
        for (metric, name) in rows {
            let summary = self.summary(cell, phase, metric);
            self.row(name, summary.map(|summary| with_interval(metric.spec().unit, &summary)));
        }
    }

    fn latencies(&mut self, cell: usize, phase: &'a PhaseInfo) {
        let percentiles = |of: HistogramKind| -> Vec<Option<Summary>> {
            let step = |(_, q): (&str, Option<f64>)| {
                percentile(&self.sample_index, cell, &phase.name, of, q)
            };
            PERCENTILES.map(step).into()
        };
        let filled = |of: HistogramKind| percentiles(of).iter().any(Option::is_some);
        let both = filled(HistogramKind::Read) && filled(HistogramKind::Write);
        let either = filled(HistogramKind::Read) || filled(HistogramKind::Write);
        let of_replay = ReplayOp::ALL.iter().any(|op| filled(HistogramKind::Op(*op)))
            || FileCall::ALL.iter().any(|call| filled(HistogramKind::Call(*call)));
        let kinds = [
            // Only some of mixed operations are commits or deliveries.
            (HistogramKind::All, if both { "operations" } else { nouns(phase).1 }),
            (HistogramKind::Read, "· reads"),
            (HistogramKind::Write, "· writes"),
            (HistogramKind::ServiceTime, "service time"),
            (HistogramKind::ServiceTimeOfReads, "· reads"),
            (HistogramKind::ServiceTimeOfWrites, "· writes"),
            (HistogramKind::Submission, "submission"),
            (HistogramKind::Completion, "completion"),
            (HistogramKind::Sync, "sync calls"),
        ];
        let replayed = ReplayOp::ALL.map(|op| (HistogramKind::Op(op), op.name()));
        let calls = FileCall::ALL.iter().map(|call| (HistogramKind::Call(*call), call.name()));
        let rows: Vec<(&str, Vec<Option<Summary>>)> = kinds
            .into_iter()
            .chain(replayed)
            .chain(calls)
            .filter(|(of, _)| match of {
                HistogramKind::Read | HistogramKind::Write => both && !of_replay,
                HistogramKind::All => either || filled(HistogramKind::All),
                HistogramKind::ServiceTime
                | HistogramKind::ServiceTimeOfReads
                | HistogramKind::ServiceTimeOfWrites
                | HistogramKind::Submission
                | HistogramKind::Completion
                | HistogramKind::Sync
                | HistogramKind::Op(_)
                | HistogramKind::Call(_) => true,
            })
            .map(|(of, name)| (name, percentiles(of)))
            .filter(|(_, percentiles)| percentiles.iter().any(Option::is_some))
            .collect();
        if rows.is_empty() {
            return;
        }
        let open = rows.iter().any(|(name, _)| name.starts_with("service"));
        let few = rows.iter().any(|(_, percentiles)| percentiles.iter().any(Option::is_none));
        let notes = [
            few.then_some("– fewer than 10 operations exceed the percentile"),
            open.then_some(
                "latency: from the scheduled start; service time: from the start of service, as \
                 in a closed loop",
            ),
        ];
        let table = Table::of_texts(
            "",
            &PERCENTILES.map(|(name, _)| name),
            rows.iter().map(|(name, percentiles)| percentile_row(name, percentiles)).collect(),
        );
        let notes = notes.into_iter().flatten().map(|note| Block::Note(note.into()));
        let blocks = std::iter::once(Block::Table(table, Layout::Bare)).chain(notes);
        self.group("latency, lower is better ↓", blocks.collect());
    }

    fn costs(&mut self, cell: usize, phase: &'a PhaseInfo) {
        let (each, _) = nouns(phase);
        let median = |metric| self.median(cell, phase, metric);
        let value = |metric| self.summary(cell, phase, metric).map(|summary| summary.median);
        let cpu = median(Metric::UserTimePerOp).zip(median(Metric::SystemTimePerOp));
        // The kernel accounts CPU time in ticks of a few milliseconds.
        let seen =
            [Metric::UserTime, Metric::SystemTime].into_iter().filter_map(value).sum::<f64>();
        let switches = median(Metric::ContextSwitchesPerOp);
        let generator = median(Metric::GeneratorOverhead);
        let attributed = median(Metric::AttributedCpuTimePerOp);
        // The operations of a command may be unknown.
        let timed = matches!(phase.primary, Metric::Elapsed | Metric::DurableElapsed);
        let total = median(Metric::UserTime).zip(median(Metric::SystemTime)).filter(|_| timed);
        let total = total.map(|(user, system)| format!("{user} user, {system} system"));
        let attributed_total = median(Metric::AttributedCpuTime).filter(|_| timed);
        self.group("CPU cost, lower is better ↓", Vec::new());
        let text = cpu.map(|(user, system)| match seen > 0.0 {
            true => format!("{user} user, {system} system per {each}"),
            false => "below the resolution".to_owned(),
        });
        self.row("CPU time", text.or(total));
        let text = attributed.map(|time| format!("{time} per {each}"));
        self.row("CPU time incl. kernel threads", text.or(attributed_total));
        self.row("context switches", switches.map(|count| format!("{count} per {each}")));
        let text = generator.map(|share| format!("{share} of the worker time"));
        self.row("load generator", text);
    }

    fn activity(&mut self, cell: usize, phase: &'a PhaseInfo) {
        let median = |metric| self.median(cell, phase, metric);
        let value = |metric| self.summary(cell, phase, metric).map(|summary| summary.median);
        let cpu = median(Metric::UserCpuUtilization).zip(median(Metric::SystemCpuUtilization));
        let device = median(Metric::DeviceBytesRead).zip(median(Metric::DeviceBytesWritten));
        let cached = median(Metric::CacheHitRatio);
        let flushes = value(Metric::SyncCalls);
        let blocked = median(Metric::EagainReads).zip(median(Metric::EagainFraction));
        let skew = median(Metric::StartSkew).zip(median(Metric::EndSkew));
        let last = value(Metric::EndSyncTime).filter(|time| *time > 0.0);
        let clock = self.record.environment.get("clock.cost_ns").map(str::to_owned);
        self.group("system activity", Vec::new());
        let text = cpu.map(|(user, system)| {
            format!("{user} user, {system} system (of elapsed time × workers)")
        });
        self.row("CPUs", text);
        self.cpus(cell, phase);
        let text = device.map(|(read, written)| format!("{read} read, {written} written"));
        self.row("devices", text);
        self.devices(cell, phase);
        self.row("cache hits", cached.map(|share| format!("{share} of the bytes read")));
        self.row("syncs in the loop", flushes.map(|count| format!("{count:.0}")));
        self.row("sync after the loop", last.map(|time| alone(Unit::Nanoseconds, time)));
        let text = blocked.map(|(count, share)| format!("{count} reads, {share} of all reads"));
        self.row("EAGAIN", text);
        let text = skew.map(|(start, end)| format!("start skew {start}, end skew {end}"));
        self.row("workers", text);
        let text = clock.map(|cost| format!("{} ns per read", one_line(&cost)));
        self.row("clock", text);
    }

    /// CPU time of the workload and of others, page faults, and PSI.
    fn cpus(&mut self, cell: usize, phase: &'a PhaseInfo) {
        let median = |metric| self.median(cell, phase, metric);
        let own = median(Metric::CpuUtilization);
        let threads = self.threads(cell, phase);
        let others = median(Metric::OtherCpuUtilization);
        let unattributed = median(Metric::UnattributedFraction);
        let faults = median(Metric::MinorFaults).zip(median(Metric::MajorFaults));
        let pressure = [
            (Metric::PsiCpuSome, "CPU"),
            (Metric::PsiMemorySome, "memory"),
            (Metric::PsiIoSome, "I/O"),
        ];
        let pressure: Vec<String> = pressure
            .into_iter()
            .filter_map(|(metric, name)| Some(format!("{name} {}", median(metric)?)))
            .collect();
        self.row("workload", own.map(|share| format!("{share} of one CPU")));
        self.row("attributed kernel threads", threads);
        let text = others.map(|share| format!("{share} of all CPUs"));
        self.row("other processes", text);
        self.row("unattributed", unattributed.map(|share| format!("{share} of the busy CPU time")));
        let text = faults.map(|(minor, major)| format!("{minor} minor, {major} major"));
        self.row("page faults", text);
        let known = !pressure.is_empty();
        let text = format!("tasks stalled for {} of the time", pressure.join(", "));
        self.row("PSI", known.then_some(text));
        self.row("network", clients::text(self.sample_index.activity(cell, &phase.name)));
    }

    /// `5.1 % of one CPU: journal 3.1 %, writeback 2.0 %`, medians over the repetitions.
    fn threads(&self, cell: usize, phase: &'a PhaseInfo) -> Option<String> {
        let known = || {
            self.sample_index.activity(cell, &phase.name).filter_map(|activity| {
                let window = activity.window.seconds();
                Some((activity.cpu.as_ref().filter(|_| window > 0.0)?, window))
            })
        };
        let share = |of: &dyn Fn(&model::activity::CpuActivity) -> model::Nanos| {
            let shares: Vec<f64> =
                known().map(|(cpu, window)| of(cpu).seconds() / window).collect();
            Summary::new(&shares).ok().map(|summary| summary.median)
        };
        let all = share(&|cpu| cpu.attributed())?;
        let each: Vec<String> = Origin::ALL
            .into_iter()
            .filter(|origin| origin.attributed())
            .filter_map(|origin| {
                let share = share(&|cpu| cpu.of(origin))?;
                (share > 0.0).then(|| format!("{} {}", origin.name(), percent(share)))
            })
            .collect();
        let parts = if each.is_empty() { String::new() } else { format!(": {}", each.join(", ")) };
        Some(format!("{} of one CPU{parts}", percent(all)))
    }

    /// Device requests, utilization, and amplification.
    fn devices(&mut self, cell: usize, phase: &'a PhaseInfo) {
        let median = |metric| self.median(cell, phase, metric);
        let requests = median(Metric::DeviceReadRequests).zip(median(Metric::DeviceWriteRequests));
        let flushes = median(Metric::DeviceFlushRequests);
        let busy = median(Metric::DeviceUtilization);
        let each = nouns(phase).0;
        let per_op = median(Metric::DeviceBytesWrittenPerOp);
        let per_op =
            per_op.zip(median(Metric::DeviceFlushRequestsPerOp)).map(|(bytes, flushes)| {
                format!("{bytes} written, {flushes} flush requests per {each}")
            });
        let queue = median(Metric::DeviceQueueLength);
        let amplification =
            [(Metric::ReadAmplification, "read"), (Metric::WriteAmplification, "written")];
        let amplification: Vec<String> = amplification
            .into_iter()
            .filter_map(|(metric, name)| Some(format!("{} {name}", median(metric)?)))
            .collect();
        let text = requests.map(|(reads, writes)| {
            let flushes = flushes.map_or("flush requests: not available".into(), |flushes| {
                format!("{flushes} flush requests")
            });
            format!("{reads} reads, {writes} writes, {flushes}")
        });
        self.row("· requests", text);
        let queue = queue.map_or(String::new(), |queue| format!(", queue length {queue}"));
        let has_counters = busy.is_some();
        self.row("· utilization", busy.map(|busy| format!("{busy} of the time{queue}")));
        self.row("· cost", per_op);
        let shared = self
            .record
            .warnings
            .iter()
            .any(|warning| matches!(warning, Warning::SharedStorage { directory: true, .. }));
        let text = match amplification.is_empty() {
            false => Some(amplification.join(", ")),
            true if shared && has_counters => {
                Some("not available: the counters include other processes".to_owned())
            }
            true => None,
        };
        self.row("· amplification", text);
    }
}

/// Medians with the half-widths of their intervals, if any, in one unit.
fn percentile_row(name: &str, percentiles: &[Option<Summary>]) -> Row {
    let medians = percentiles.iter().flatten().map(|summary| summary.median);
    let scale = Scale::of(Unit::Nanoseconds, medians);
    let cell = |(summary, (_, q)): (&Option<Summary>, (_, Option<f64>))| {
        let Some(summary) = summary else { return TableCell::Text("–".into()) };
        // The maximum of a repetition has no confidence interval.
        let width = q.and_then(|_| summary.half_width());
        let value = scale.rough(summary.median);
        TableCell::Value(ValueCell {
            shown: Shown { value, interval: None, relative: None },
            note: width.map(|width| format!("±{}", percent(width.0))).unwrap_or_default(),
            ..ValueCell::plain(summary, scale)
        })
    };
    let cells = percentiles.iter().zip(PERCENTILES).map(cell).collect();
    Row { unit: scale.name, ..Row::of(name, None, Body::Cells(cells)) }
}

/// Name of one operation of a phase and of several. Trees count files instead of bytes.
fn nouns(phase: &PhaseInfo) -> (&'static str, &'static str) {
    let named = [
        (Metric::OpsRate, "file", "files"),
        (Metric::CommitRate, "commit", "commits"),
        (Metric::DeliveryRate, "delivery", "deliveries"),
    ];
    let own = named.into_iter().find(|(metric, ..)| *metric == phase.primary);
    own.map_or(("operation", "operations"), |(_, one, several)| (one, several))
}

fn with_interval(unit: Unit, summary: &Summary) -> String {
    let scale = Scale::of(unit, std::iter::once(summary.median));
    let shown = scale.shown(summary);
    let interval = shown.interval.map(|(low, high)| format!(" [{low}, {high}]"));
    format!("{} {}{}", shown.value, scale.name, interval.unwrap_or_default())
}

#[cfg(test)]
mod tests;
