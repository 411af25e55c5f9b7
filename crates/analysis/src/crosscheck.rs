//! Crosscheck: pairs of trials in which two load generators performed the same operations.
//!
//! Input is the record of a run that varies the parameter `load_generator`. The trials of a
//! repetition are a pair. Speeds are compared only if the work was the same.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::{
    Cell, CellId, Metric, Ratio, RunRecord, Value,
    phase::Role,
    record::{CellRecord, HistogramKind, Outcome, TrialRecord},
};

use crate::{
    count, median,
    paired::{self, Agreement},
    sorted,
};

/// Default margin of the primary metric.
pub const MARGIN: Ratio = Ratio(0.05);

/// Environment fact: version of fio.
pub const FIO_VERSION: &str = "fio.version";

/// Parameters in which the cells of a test differ.
const GENERATOR: [&str; 2] = ["load_generator", "fio_program"];

/// Metrics whose medians explain a difference.
const SHOWN: [Metric; 17] = [
    Metric::Throughput,
    Metric::DurableThroughput,
    Metric::CommitRate,
    Metric::OpsRate,
    Metric::LatencyP50,
    Metric::LatencyP99,
    Metric::SyncCalls,
    Metric::SyncLatencyP50,
    Metric::UserTimePerOp,
    Metric::SystemTimePerOp,
    Metric::AttributedCpuTimePerOp,
    Metric::ContextSwitchesPerOp,
    Metric::DeviceBytesRead,
    Metric::DeviceBytesWritten,
    Metric::DeviceReadRequests,
    Metric::DeviceWriteRequests,
    Metric::DeviceFlushRequests,
];

/// Largest relative difference of the bytes per operation, and of the sync calls per operation.
const TOLERANCE: f64 = 0.01;

/// Standard errors of the difference of two means by which drawn sizes may differ. The standard
/// deviation of the sizes is assumed to be at most their mean.
const DRAWN: f64 = 4.0;

/// Sum of the relative errors of the percentiles of both programs: 0.4 % of fslab
/// ([`model::Histogram`]) and 0.8 % of fio (fio(1), `--output-format=json+`).
const PERCENTILE_ERROR: f64 = 0.012;

/// An operation must take at least this many times as long as the loop of a load generator alone.
/// Otherwise a difference of 100 % between the loops changes the rate by more than 5 %.
const LOOP_FACTOR: f64 = 20.0;

/// Result of one test.
#[derive(Clone, Debug, PartialEq)]
pub struct Crosschecked {
    /// Indexes of the cells of fslab and of fio in the record.
    pub cells: [usize; 2],
    /// Number of pairs.
    pub pairs: u32,
    /// Differences of the work; speeds are compared only if there are none.
    pub differences: Vec<Difference>,
    /// Medians of fslab and fio, in base units, for metrics that both have.
    pub medians: Vec<(Metric, [f64; 2])>,
    /// Comparisons of fslab to fio. The first is that of the primary metric.
    pub comparisons: Vec<Compared>,
    /// Time per operation and worker in nanoseconds, and the longer time per operation of the two
    /// loops alone, if the operations are too short for a comparison.
    pub loop_bound: Option<[f64; 2]>,
}

/// Comparison of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Metric.
    pub metric: Metric,
    /// Margin, with the error of the percentiles.
    pub margin: Ratio,
    /// Result.
    pub agreement: Agreement,
}

/// Difference of the work in a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Repetition.
    pub repetition: u32,
    /// Quantity, such as operations.
    pub quantity: &'static str,
    /// Values of fslab and of fio.
    pub values: [f64; 2],
}

/// Verdict of a crosscheck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All speeds are equivalent.
    Equivalent,
    /// A speed differs by more than its margin.
    Different,
    /// The programs did not perform the same work.
    DifferentWork,
    /// A speed is neither equivalent nor different.
    Inconclusive,
    /// The operations are so short that the rates depend on the load generators.
    LoopBound,
}

impl Crosschecked {
    /// Verdict on the test.
    pub fn verdict(&self) -> Verdict {
        let any = |verdict: fn(&paired::Verdict) -> bool| {
            self.comparisons.iter().any(|compared| verdict(&compared.agreement.verdict))
        };
        match () {
            () if !self.differences.is_empty() => Verdict::DifferentWork,
            () if self.loop_bound.is_some() => Verdict::LoopBound,
            () if any(|verdict| *verdict == paired::Verdict::Different) => Verdict::Different,
            () if self.comparisons.is_empty() => Verdict::Inconclusive,
            () if any(|verdict| matches!(verdict, paired::Verdict::Inconclusive { .. })) => {
                Verdict::Inconclusive
            }
            () => Verdict::Equivalent,
        }
    }
}

/// Environment fact: time per operation of the loop of fio without system calls for a cell, in
/// nanoseconds.
pub fn loop_time_fact(cell: CellId) -> String {
    format!("fio.loop_time.{cell}")
}

/// Tests of a run, in the order of their cells. The margin applies to the primary metric and the
/// median latency; the margin of the 99th percentile is three times as large.
pub fn crosscheck(record: &RunRecord, margin: Ratio) -> Vec<Crosschecked> {
    // Cells of fslab and of fio.
    let mut tests: Vec<[Option<usize>; 2]> = Vec::new();
    let mut indexes: BTreeMap<CellId, usize> = BTreeMap::new();
    for (index, CellRecord { cell, .. }) in record.cells.iter().enumerate() {
        let mut common = cell.clone();
        GENERATOR.iter().for_each(|name| drop(common.workload.parameters.remove(*name)));
        let at = *indexes.entry(common.id()).or_insert(tests.len());
        if at == tests.len() {
            tests.push([None, None]);
        }
        tests[at][usize::from(is_fio(cell))] = Some(index);
    }
    let both = tests.into_iter().filter_map(|[own, fio]| Some([own?, fio?]));
    both.map(|cells| test(record, cells, margin)).collect()
}

/// True if fio is the load generator of a cell.
pub fn is_fio(cell: &Cell) -> bool {
    let generator = cell.workload.parameters.get(GENERATOR[0]);
    generator.is_some_and(|generator| generator.to_string() == "fio")
}

fn test(record: &RunRecord, cells: [usize; 2], margin: Ratio) -> Crosschecked {
    let fio_loop = record.environment.get(&loop_time_fact(record.cells[cells[1]].id));
    let fio_loop = fio_loop.and_then(|time| time.parse().ok());
    let mut tested = Crosschecked {
        cells,
        pairs: 0,
        differences: Vec::new(),
        medians: Vec::new(),
        comparisons: Vec::new(),
        loop_bound: None,
    };
    let cell = &record.cells[cells[0]];
    let Some(phase) = cell.phases.iter().find(|phase| phase.role == Role::Measure) else {
        return tested;
    };
    let of = |cell: usize| {
        let measured = record
            .trials
            .iter()
            .filter(move |trial| trial.cell == cell && trial.outcome == Outcome::Measured);
        measured.map(|trial| (trial.repetition, trial)).collect::<BTreeMap<_, _>>()
    };
    let (own, fio) = (of(cells[0]), of(cells[1]));
    let pairs: Vec<[Measured<'_>; 2]> = own
        .iter()
        .filter_map(|(repetition, trial)| Some([*trial, *fio.get(repetition)?]))
        .map(|pair| pair.map(|trial| Measured { trial, phase: &phase.name }))
        .collect();
    tested.pairs = count(pairs.len());
    let work = Work::of(cell);
    tested.differences = pairs.iter().flat_map(|pair| differences(pair, &work)).collect();
    for metric in SHOWN {
        let values = |side: usize| -> Option<f64> {
            let values: Option<Vec<f64>> =
                pairs.iter().map(|pair| pair[side].value(metric)).collect();
            Some(median(&sorted(&values?).ok()?))
        };
        if let (Some(own), Some(fio)) = (values(0), values(1)) {
            tested.medians.push((metric, [own, fio]));
        }
    }
    let metrics = [
        (phase.primary, margin.0),
        (Metric::LatencyP50, margin.0 + PERCENTILE_ERROR),
        (Metric::LatencyP99, 3.0 * margin.0 + PERCENTILE_ERROR),
    ];
    for (metric, margin) in metrics {
        let values = pairs.iter().map(|[own, fio]| Some((own.value(metric)?, fio.value(metric)?)));
        let Some(values) = values.collect::<Option<Vec<_>>>() else { continue };
        if let Ok(agreement) = paired::compare(&values, Ratio(margin)) {
            tested.comparisons.push(Compared { metric, margin: Ratio(margin), agreement });
        }
    }
    tested.loop_bound = loop_bound(&pairs, work.workers, fio_loop);
    tested
}

/// Time per operation and worker, and that of the slower loop alone, if the first is too short.
fn loop_bound(
    pairs: &[[Measured<'_>; 2]],
    workers: f64,
    fio_loop: Option<f64>,
) -> Option<[f64; 2]> {
    let operation = |own: &Measured<'_>| Some(workers * 1e9 / own.value(Metric::OpsRate)?);
    let times: Vec<f64> = pairs.iter().filter_map(|[own, _]| operation(own)).collect();
    let time = median(&sorted(&times).ok()?);
    let share = |own: &Measured<'_>| own.value(Metric::GeneratorOverhead);
    let shares: Vec<f64> = pairs.iter().filter_map(|[own, _]| share(own)).collect();
    let own_loop = sorted(&shares).ok().map_or(0.0, |shares| median(&shares) * time);
    let slower = own_loop.max(fio_loop.unwrap_or(0.0));
    (time < LOOP_FACTOR * slower).then_some([time, slower])
}

/// Properties of the work that determine which quantities must be equal.
struct Work {
    /// True if the operations end after a time, so that their number depends on the speed.
    by_time: bool,
    /// True if sizes or directions are drawn at random.
    drawn: bool,
    /// Number of workers.
    workers: f64,
}

impl Work {
    fn of(cell: &CellRecord) -> Self {
        let parameters = &cell.cell.workload.parameters;
        let text = |name: &str| parameters.get(name).map(Value::to_string).unwrap_or_default();
        // Suite fio has its options as lines of one text.
        let job = text("text");
        let option = |name: &str| {
            job.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='))
        };
        let mixed = |rw: &str| rw.starts_with("rw") || rw.starts_with("randrw");
        let workers = option("numjobs").and_then(|count| count.trim().parse().ok());
        Self {
            by_time: matches!(parameters.get("runtime"), Some(Value::Time(time)) if time.0 > 0)
                || option("runtime").is_some(),
            drawn: !text("block_size_split").is_empty()
                || text("direction") == "mixed"
                || option("bssplit").or(option("bsrange")).is_some()
                || option("rw").is_some_and(mixed),
            workers: match parameters.get("workers") {
                Some(Value::Count(count)) => *count as f64,
                _ => workers.unwrap_or(1.0),
            },
        }
    }
}

/// Differences of the work in a pair.
fn differences(pair: &[Measured<'_>; 2], work: &Work) -> Vec<Difference> {
    let mut found = Vec::new();
    let repetition = pair[0].trial.repetition;
    let mut compare = |quantity, values: [Option<f64>; 2], tolerance: f64| {
        if let [Some(own), Some(fio)] = values
            && (own - fio).abs() > tolerance * own.abs().max(1.0)
        {
            found.push(Difference { repetition, quantity, values: [own, fio] });
        }
    };
    let [own, fio] = pair;
    let operations = [own.operations(), fio.operations()];
    if !work.by_time {
        compare("operations", operations, 0.0);
    }
    let least = operations.iter().flatten().copied().fold(f64::INFINITY, f64::min).max(1.0);
    let tolerance = match work.drawn {
        true => TOLERANCE + DRAWN * (2.0 / least).sqrt(),
        false => TOLERANCE,
    };
    compare("bytes per operation", [own.operation_size(), fio.operation_size()], tolerance);
    // fio does not sync after the last write of a worker.
    if let [Some(own_operations), Some(fio_operations)] = operations {
        let [own_syncs, fio_syncs] =
            [own, fio].map(|side| side.value(Metric::SyncCalls).unwrap_or(0.0));
        let expected = own_syncs * fio_operations / own_operations;
        let tolerance = work.workers + tolerance * expected;
        if (expected - fio_syncs).abs() > tolerance {
            found.push(Difference {
                repetition,
                quantity: "sync calls",
                values: [expected, fio_syncs],
            });
        }
    }
    found
}

/// Measured phase of a trial.
#[derive(Clone, Copy)]
struct Measured<'a> {
    trial: &'a TrialRecord,
    phase: &'a str,
}

impl Measured<'_> {
    fn value(&self, metric: Metric) -> Option<f64> {
        let own = self.trial.samples.iter().find(|sample| {
            sample.phase == self.phase && sample.metric == metric && sample.worker.is_none()
        });
        own.map(|sample| sample.value)
    }

    fn operations(&self) -> Option<f64> {
        let all = self.trial.histograms.iter().find(|histogram| {
            histogram.phase == self.phase && histogram.kind == HistogramKind::All
        });
        all.map(|all| all.histogram.count() as f64)
    }

    /// Mean bytes per operation. The rate of fio with a final sync is that until the data is
    /// durable, and so is its time; it is one worker in the record.
    fn operation_size(&self) -> Option<f64> {
        match (self.value(Metric::Throughput), self.value(Metric::OpsRate)) {
            (Some(bytes), Some(operations)) => Some(bytes / operations),
            _ => {
                let rate = self.value(Metric::DurableThroughput)?;
                Some(rate * self.value(Metric::LoopTime)? / 1e9 / self.operations()?)
            }
        }
    }
}
