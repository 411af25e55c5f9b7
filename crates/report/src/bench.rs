//! The report of one workload on one directory: everything that was measured of it, on a screen.
//!
//! A [`RunRecord`] and the [`Subject`] in words enter, text for a terminal leaves. Where the report
//! of a plan compares, this one looks into each phase: rates, the ladder of latencies, costs, and
//! the evidence that speaks for or against the numbers. Nothing is ranked and nothing compared.

use analysis::Summary;
use model::{
    Metric, RunRecord,
    evidence::Origin,
    metric::Unit,
    phase::ReplayOp,
    phase::Role,
    record::{PhaseInfo, TimesOf},
};

use crate::{
    TerminalOptions,
    terminal::Page,
    units::{Scale, alone, one_line, percent},
    view::{View, costs::percentile, pool::Pool},
};

/// What was run, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Its name.
    pub name: String,
    /// What it stands for.
    pub title: String,
    /// Where its definition comes from.
    pub source: String,
    /// Its parameters that differ from the defaults, and their values.
    pub parameters: Vec<(String, String)>,
}

/// The ladder; `None` is the longest.
const LADDER: [(&str, Option<f64>); 6] = [
    ("p50", Some(0.5)),
    ("p90", Some(0.9)),
    ("p99", Some(0.99)),
    ("p99.9", Some(0.999)),
    ("p99.99", Some(0.9999)),
    ("max", None),
];

/// Letters of a name, and of a step of the ladder with its unit.
const NAME: usize = 24;
const STEP: usize = 9;

/// Letters before the ladder: all of it takes 80 columns.
const NARROW: usize = 26;

/// Lays the report out for a terminal.
pub fn bench(record: &RunRecord, subject: &Subject, options: &TerminalOptions) -> String {
    let mut view = View::new(record);
    // Said in the head already, and wanted: one repeat is what this is for.
    view.warnings.retain(|row| row.code != "W-FEW");
    let mut sheet = Sheet { page: Page::new(options), pool: Pool::new(record), record };
    sheet.head(subject, &view);
    for (index, cell) in record.cells.iter().enumerate() {
        if record.cells.len() > 1 {
            sheet.page.heading(&one_line(&cell.label));
        }
        // Why nothing was measured is said below.
        let measured = sheet.pool.measured(index).next().is_some();
        let phases = cell.phases.iter().filter(|phase| phase.role == Role::Measure);
        for phase in phases.filter(|_| measured) {
            sheet.phase(index, phase);
        }
    }
    for line in &view.facts.regimes {
        sheet.page.wrapped("", "  ", line);
    }
    sheet.page.missing(&view);
    sheet.page.warnings(&view);
    sheet.page.text
}

struct Sheet<'a> {
    page: Page,
    pool: Pool<'a>,
    record: &'a RunRecord,
}

impl<'a> Sheet<'a> {
    fn head(&mut self, subject: &Subject, view: &View) {
        let title = self.page.styled("1", &subject.name);
        self.page.wrapped("", "  ", &format!("{title}: {}", one_line(&subject.title)));
        self.page.wrapped("", "  ", &format!("source: {}", one_line(&subject.source)));
        let parameters: Vec<String> = subject
            .parameters
            .iter()
            .map(|(name, value)| format!("{name} {}", one_line(value)))
            .collect();
        if !parameters.is_empty() {
            let words = format!("not the defaults: {}", parameters.join(", "));
            self.page.wrapped("", "  ", &words);
        }
        self.page.wrapped("", "  ", &format!("{} · {}", view.facts.conditions, view.facts.when));
    }

    fn phase(&mut self, cell: usize, phase: &'a PhaseInfo) {
        let n = self.pool.values(cell, &phase.name, phase.primary).len();
        let words = match n {
            0 => "no result".to_owned(),
            1..6 => format!("n = {n}: no interval, which takes 6 repeats"),
            _ => format!("n = {n}, medians [95 % interval of the median]"),
        };
        let name = self.page.styled("1", &one_line(&phase.name));
        self.page.line("");
        self.page.line(&format!("{name}  {words}"));
        if n > 0 {
            self.rates(cell, phase);
            self.latencies(cell, phase);
            self.costs(cell, phase);
            self.evidence(cell, phase);
        }
    }

    fn summary(&self, cell: usize, phase: &'a PhaseInfo, metric: Metric) -> Option<Summary> {
        Summary::new(self.pool.values(cell, &phase.name, metric)).ok()
    }

    /// The median of a metric with its unit; no interval.
    fn median(&self, cell: usize, phase: &'a PhaseInfo, metric: Metric) -> Option<String> {
        let summary = self.summary(cell, phase, metric)?;
        Some(alone(metric.spec().unit, summary.median))
    }

    /// A name and what is said of it, if there is anything.
    fn row(&mut self, name: &str, words: Option<String>) {
        if let Some(words) = words {
            let first = format!("    {name:<NAME$}");
            let indent = " ".repeat(NAME + 4);
            self.page.wrapped(&first, &indent, &words);
        }
    }

    fn rates(&mut self, cell: usize, phase: &'a PhaseInfo) {
        let operations = if of_tree(phase) { "files" } else { "operations" };
        // Beside reads, what was made durable is a part of the whole.
        let mixed = self.summary(cell, phase, Metric::ReadThroughput).is_some();
        let durable = if mixed { "· written, durable" } else { "· durable" };
        let rows = [
            (Metric::Throughput, "throughput"),
            (Metric::ReadThroughput, "· read"),
            (Metric::WriteThroughput, "· written"),
            (Metric::DurableThroughput, durable),
            (Metric::OpsRate, operations),
            (Metric::ReadOpsRate, "· reads"),
            (Metric::WriteOpsRate, "· writes"),
        ];
        let times = [(Metric::Elapsed, "elapsed"), (Metric::DurableElapsed, "until durable")];
        // What is judged by its time has no rate.
        let (head, rows) = match phase.primary == Metric::Elapsed {
            true => ("  times, lower is better ↓", &times[..]),
            false => ("  rates, higher is better ↑", &rows[..]),
        };
        self.page.line(head);
        for (metric, name) in rows.iter().copied() {
            let summary = self.summary(cell, phase, metric);
            self.row(name, summary.map(|summary| with_interval(metric.spec().unit, &summary)));
        }
    }

    fn latencies(&mut self, cell: usize, phase: &'a PhaseInfo) {
        let ladder = |of: TimesOf| -> Vec<Option<Summary>> {
            let step =
                |(_, q): (&str, Option<f64>)| percentile(&self.pool, cell, &phase.name, of, q);
            LADDER.map(step).into()
        };
        let filled = |of: TimesOf| ladder(of).iter().any(Option::is_some);
        let both = filled(TimesOf::Read) && filled(TimesOf::Write);
        let either = filled(TimesOf::Read) || filled(TimesOf::Write);
        let of_replay = ReplayOp::ALL.iter().any(|op| filled(TimesOf::Op(*op)));
        let kinds = [
            (TimesOf::All, if of_tree(phase) { "files" } else { "operations" }),
            (TimesOf::Read, "· reads"),
            (TimesOf::Write, "· writes"),
            (TimesOf::Service, "service, see below"),
            (TimesOf::Submit, "submit"),
            (TimesOf::Complete, "complete"),
            (TimesOf::Flush, "flush calls"),
        ];
        let replayed = ReplayOp::ALL.map(|op| (TimesOf::Op(op), op.name()));
        let rows: Vec<(&str, Vec<Option<Summary>>)> = kinds
            .into_iter()
            .chain(replayed)
            .filter(|(of, _)| match of {
                TimesOf::Read | TimesOf::Write => both && !of_replay,
                TimesOf::All => either || filled(TimesOf::All),
                TimesOf::Service
                | TimesOf::Submit
                | TimesOf::Complete
                | TimesOf::Flush
                | TimesOf::Op(_) => true,
            })
            .map(|(of, name)| (name, ladder(of)))
            .filter(|(_, ladder)| ladder.iter().any(Option::is_some))
            .collect();
        if rows.is_empty() {
            return;
        }
        let open = rows.iter().any(|(name, _)| name.starts_with("service"));
        self.page.line("  latency, lower is better ↓");
        let head: String = LADDER.iter().map(|(name, _)| format!("{name:>STEP$}")).collect();
        self.page.line(&format!("{:NARROW$}{head}", ""));
        for (name, ladder) in &rows {
            self.ladder(name, ladder);
        }
        if rows.iter().any(|(_, ladder)| ladder.iter().any(Option::is_none)) {
            self.page.line("    – fewer than ten values lie beyond");
        }
        if open {
            self.page.wrapped(
                "    ",
                "    ",
                "operations count from when they were due; service is the same as a closed loop \
                 would have seen it",
            );
        }
    }

    /// The medians, and below them the widths of their intervals where there are any.
    fn ladder(&mut self, name: &str, ladder: &[Option<Summary>]) {
        let step = |summary: &Option<Summary>| match summary {
            Some(summary) => alone(Unit::Nanoseconds, summary.median),
            None => "–".into(),
        };
        // The longest of a whole repeat is no estimate of anything.
        let estimates = ladder
            .iter()
            .zip(LADDER)
            .map(|(summary, (_, q))| summary.as_ref().filter(|_| q.is_some()));
        let width = |summary: Option<&Summary>| {
            let width = summary.and_then(Summary::half_width);
            width.map(|width| format!("±{}", crate::units::percent(width.0))).unwrap_or_default()
        };
        let line = |texts: Vec<String>| -> String {
            texts.iter().map(|text| format!("{text:>STEP$}")).collect()
        };
        let medians = line(ladder.iter().map(step).collect());
        let name = format!("    {name}");
        self.page.line(&format!("{name:<NARROW$}{medians}"));
        let widths = line(estimates.map(width).collect());
        if !widths.trim().is_empty() {
            self.page.line(&format!("{:NARROW$}{widths}", ""));
        }
    }

    fn costs(&mut self, cell: usize, phase: &'a PhaseInfo) {
        let each = if of_tree(phase) { "file" } else { "operation" };
        let median = |metric| self.median(cell, phase, metric);
        let value = |metric| self.summary(cell, phase, metric).map(|summary| summary.median);
        let cpu = median(Metric::UserTimePerOp).zip(median(Metric::SystemTimePerOp));
        // The kernel accounts CPU time by ticks of some milliseconds.
        let seen =
            [Metric::UserTime, Metric::SystemTime].into_iter().filter_map(value).sum::<f64>();
        let switches = median(Metric::SwitchesPerOp);
        let generator = median(Metric::GeneratorShare);
        let caused = median(Metric::CausedTimePerOp);
        self.page.line("  costs, lower is better ↓");
        let words = cpu.map(|(user, system)| match seen > 0.0 {
            true => format!("{user} user, {system} system per {each}"),
            false => "too short to be seen".to_owned(),
        });
        self.row("CPU time", words);
        let words = caused.map(|time| format!("{time} per {each}"));
        self.row("· with kernel threads", words);
        self.row("context switches", switches.map(|count| format!("{count} per {each}")));
        let words = generator.map(|share| format!("{share} of the workers' time"));
        self.row("load generator", words);
    }

    fn evidence(&mut self, cell: usize, phase: &'a PhaseInfo) {
        let median = |metric| self.median(cell, phase, metric);
        let value = |metric| self.summary(cell, phase, metric).map(|summary| summary.median);
        let cpu = median(Metric::UserShare).zip(median(Metric::SystemShare));
        let device = median(Metric::DeviceRead).zip(median(Metric::DeviceWritten));
        let cached = median(Metric::CachedShare);
        let flushes = value(Metric::FlushCalls);
        let blocked = median(Metric::WouldBlock).zip(median(Metric::WouldBlockShare));
        let skew = median(Metric::StartSkew).zip(median(Metric::EndSkew));
        let last = value(Metric::FlushTime).filter(|time| *time > 0.0);
        let clock = self.record.environment.get("clock.cost_ns").map(str::to_owned);
        self.page.line("  evidence, without direction");
        let words = cpu.map(|(user, system)| {
            format!("busy {user} in user mode, {system} in the kernel, of wall time × workers")
        });
        self.row("CPUs", words);
        self.processors(cell, phase);
        let words = device.map(|(read, written)| format!("{read} read, {written} written"));
        self.row("devices", words);
        self.devices(cell, phase);
        self.row("page cache", cached.map(|share| format!("served {share} of the bytes read")));
        self.row("flushes in the loop", flushes.map(|count| format!("{count:.0}")));
        self.row("flush after the loop", last.map(|time| alone(Unit::Nanoseconds, time)));
        let words = blocked.map(|(count, share)| format!("{count} reads, {share} of all"));
        self.row("would have blocked", words);
        let words =
            skew.map(|(start, end)| format!("{start} apart at the start, {end} at the end"));
        self.row("workers", words);
        let words = clock.map(|cost| format!("{} ns for each reading", one_line(&cost)));
        self.row("clock", words);
    }

    /// Who else used the processors, and what the work had to wait for.
    fn processors(&mut self, cell: usize, phase: &'a PhaseInfo) {
        let median = |metric| self.median(cell, phase, metric);
        let own = median(Metric::CpuShare);
        let threads = self.threads(cell, phase);
        let others = median(Metric::OtherShare);
        let untold = median(Metric::UnattributedShare);
        let faults = median(Metric::MinorFaults).zip(median(Metric::MajorFaults));
        let pressure = [
            (Metric::PressureCpu, "CPU"),
            (Metric::PressureMemory, "memory"),
            (Metric::PressureIo, "I/O"),
        ];
        let pressure: Vec<String> = pressure
            .into_iter()
            .filter_map(|(metric, name)| Some(format!("{name} {}", median(metric)?)))
            .collect();
        self.row("the work itself", own.map(|share| format!("{share} of one CPU")));
        self.row("kernel threads caused", threads);
        let words = others.map(|share| format!("{share} of all processors"));
        self.row("other processes", words);
        self.row("unattributed", untold.map(|share| format!("{share} of the busy time")));
        let words = faults.map(|(minor, major)| format!("{minor} minor, {major} major"));
        self.row("page faults", words);
        let told = !pressure.is_empty();
        let words = format!("some task waited for {} of the time", pressure.join(", "));
        self.row("pressure", told.then_some(words));
    }

    /// `5.1 % of one CPU: journal 3.1 %, writeback 2.0 %`, of medians over the repeats.
    fn threads(&self, cell: usize, phase: &'a PhaseInfo) -> Option<String> {
        let told = || {
            self.pool.evidence(cell, &phase.name).filter_map(|evidence| {
                let window = evidence.window.seconds();
                Some((evidence.cpu.as_ref().filter(|_| window > 0.0)?, window))
            })
        };
        let share = |of: &dyn Fn(&model::evidence::CpuWork) -> model::Nanos| {
            let shares: Vec<f64> = told().map(|(cpu, window)| of(cpu).seconds() / window).collect();
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

    /// What the devices did beyond bytes.
    fn devices(&mut self, cell: usize, phase: &'a PhaseInfo) {
        let median = |metric| self.median(cell, phase, metric);
        let requests = median(Metric::DeviceReads).zip(median(Metric::DeviceWrites));
        let flushes = median(Metric::DeviceFlushes);
        let busy = median(Metric::DeviceBusy);
        let queue = median(Metric::DeviceQueue);
        let amplification =
            [(Metric::ReadAmplification, "read"), (Metric::WriteAmplification, "written")];
        let amplification: Vec<String> = amplification
            .into_iter()
            .filter_map(|(metric, name)| Some(format!("{} {name}", median(metric)?)))
            .collect();
        let words = requests.map(|(reads, writes)| {
            let flushes = flushes.map_or("flushes not told".into(), |n| format!("{n} flushes"));
            format!("{reads} reads, {writes} writes, {flushes}")
        });
        self.row("· requests", words);
        let queue = queue.map_or(String::new(), |queue| format!(", {queue} requests on average"));
        self.row("· busy", busy.map(|busy| format!("{busy} of the time{queue}")));
        let told = !amplification.is_empty();
        self.row("· amplification", told.then(|| amplification.join(", ")));
    }
}

/// Files of a tree are counted, not bytes.
fn of_tree(phase: &PhaseInfo) -> bool {
    phase.primary == Metric::OpsRate
}

fn with_interval(unit: Unit, summary: &Summary) -> String {
    let scale = Scale::of(unit, std::iter::once(summary.median));
    let shown = scale.shown(summary);
    let interval = shown.interval.map(|(low, high)| format!(" [{low}, {high}]"));
    format!("{} {}{}", shown.value, scale.name, interval.unwrap_or_default())
}

#[cfg(test)]
mod tests;
