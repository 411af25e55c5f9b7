//! Merges the results that the hosts measured in a phase.
//!
//! Instants of a host are shifted by the offset of its clock, so that all are in the time of the
//! conducting host. The merged result is that of one phase with the workers of all hosts: its
//! duration is from the agreed start to the end of the last worker.

use model::{
    Clock, Environment, Histogram, HostResult, Nanos, Phase, PhaseResult, Ratio, RunRecord, Sample,
    SystemActivity, Warning,
    activity::{ClientActivity, CpuActivity, Faults, HostCpu},
    cluster::Network,
    phase::{Latencies, Series, WorkerResult},
    record::PhaseHistogram,
};
use serde::{Deserialize, Serialize};

use super::PhaseData;
use crate::runner::{
    MEMORY_RATE, RunObserver,
    events::Event,
    samples::{self, PhaseContext, RunContext},
};

/// Ratio of the clock bound to the duration of a phase above which a warning is given.
const UNCERTAIN: f64 = 0.01;

/// Result of one host in a measured phase, in the time of the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HostPhase {
    /// Phase.
    pub(crate) phase: String,
    /// Results of its workers, without latencies.
    workers: Vec<WorkerResult>,
    /// Encoded histograms of each worker, in the order of [`Latencies::each`].
    latencies: Vec<Vec<Vec<u8>>>,
    facts: Environment,
    wall_time: Nanos,
    activity: SystemActivity,
    network: Option<Network>,
    generator: Option<f64>,
    warnings: Vec<Warning>,
}

impl HostPhase {
    /// Result of a phase on this host.
    pub(crate) fn new(phase: &Phase, result: &PhaseResult, known: PhaseData) -> Self {
        let encoded = |worker: &WorkerResult| {
            worker.latencies.each().into_iter().map(|(_, own)| own.encode()).collect()
        };
        Self {
            phase: phase.name.clone(),
            latencies: result.workers.iter().map(encoded).collect(),
            workers: result.workers.clone(),
            facts: result.facts.clone(),
            wall_time: result.wall_time,
            activity: known.activity,
            network: known.network,
            generator: known.generator,
            warnings: known.warnings,
        }
    }

    /// Workers with their latencies, in the time of the conductor. `None` if a histogram is
    /// damaged.
    fn workers(&self, offset: i64) -> Option<Vec<WorkerResult>> {
        let mut workers = self.workers.clone();
        if workers.len() != self.latencies.len() {
            return None;
        }
        for (worker, encoded) in workers.iter_mut().zip(&self.latencies) {
            let mut latencies = Latencies::default();
            for ((_, own), bytes) in latencies.each_mut().into_iter().zip(encoded) {
                *own = Histogram::decode(bytes).ok()?;
            }
            worker.latencies = latencies;
            for instant in [&mut worker.started, &mut worker.begun, &mut worker.series.start] {
                *instant = common(*instant, offset);
            }
            worker.events.iter_mut().for_each(|event| event.begun = common(event.begun, offset));
        }
        Some(workers)
    }
}

/// Instant of a host in the time of the conductor. Zero stands for no instant.
fn common(instant: Nanos, offset: i64) -> Nanos {
    match instant {
        Nanos(0) => instant,
        Nanos(own) => Nanos(own.wrapping_sub(offset.cast_unsigned())),
    }
}

/// Host of a phase, with the offset of its clock.
#[derive(Clone, Debug)]
pub(crate) struct Origin<'a> {
    pub(crate) index: u32,
    pub(crate) host: &'a str,
    pub(crate) offset: i64,
    pub(crate) bound: Nanos,
}

/// Data of a phase on all hosts, for the record of the trial.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    pub(crate) samples: Vec<Sample>,
    pub(crate) histograms: Vec<PhaseHistogram>,
    pub(crate) series: Vec<(String, Series)>,
    pub(crate) activity: Vec<(String, SystemActivity)>,
    pub(crate) warnings: Vec<(Option<String>, Warning)>,
    pub(crate) environment: Environment,
    pub(crate) hosts: Vec<HostResult>,
}

/// Merges phases of a run.
#[derive(Clone, Copy)]
pub(crate) struct Merger<'a> {
    always: RunContext,
    observer: RunObserver<'a>,
}

impl<'a> Merger<'a> {
    /// Merges phases of the run with this record.
    pub(crate) fn new(record: &RunRecord, memory_limited: bool, observer: RunObserver<'a>) -> Self {
        let always = RunContext {
            clock: Clock::Wall,
            clock_cost: engine::clock().cost,
            memory_rate: record.environment.get(MEMORY_RATE).and_then(|rate| rate.parse().ok()),
            memory_limited,
            shared_devices: true,
            profile: record.info.profile,
        };
        Self { always, observer }
    }

    /// Merges the results of all hosts in a phase that started at `start`, and converts them to
    /// samples.
    ///
    /// # Errors
    /// The host whose result is damaged.
    pub(crate) fn merge(
        &self,
        phase: &Phase,
        results: &[(Origin<'_>, HostPhase)],
        start: Nanos,
    ) -> Result<Merged, String> {
        let Self { always, observer } = *self;
        let mut merged = Merged::default();
        let mut workers = Vec::new();
        let mut warnings = Vec::new();
        for (origin, result) in results {
            let own = result.workers(origin.offset);
            let own = own.ok_or_else(|| format!("the result of {} is damaged", origin.host))?;
            merged.hosts.push(host_result(phase, origin, result, &own, start));
            merged.environment.merge(result.facts.clone());
            for warning in &result.warnings {
                if !warnings.contains(warning) {
                    warnings.push(warning.clone());
                }
            }
            workers.extend(own);
        }
        workers.sort_by_key(|worker| worker.worker);
        let ended = merged.hosts.iter().map(|host| host.ended).max().unwrap_or(start);
        let mut result = PhaseResult::new(workers, ended - start);
        result.facts = merged.environment.clone();
        let activity = sum(results.iter().map(|(_, result)| &result.activity));
        let generator = results.iter().filter_map(|(_, result)| result.generator);
        let generator = generator.max_by(f64::total_cmp);
        let known = PhaseContext { always, activity, generator };
        let samples = samples::of_phase(phase, &result, &known);
        let metric = always.clock.primary_metric(phase.primary());
        if let Some(value) = samples::value(&samples, metric) {
            (observer.notify)(&Event::PhaseEnded { name: &phase.name, metric, value });
        }
        warnings.extend(samples::warnings(phase, &result, &known, &samples));
        warnings.extend(uncertain(&merged.hosts, result.wall_time));
        merged.warnings = warnings.into_iter().map(|it| (Some(phase.name.clone()), it)).collect();
        merged.samples = samples;
        merged.histograms = samples::histograms(&phase.name, &result);
        let series = Series::merged(result.workers.iter().map(|worker| &worker.series));
        if !series.ops.is_empty() {
            merged.series.push((phase.name.clone(), series));
        }
        merged.activity.push((phase.name.clone(), known.activity));
        Ok(merged)
    }
}

/// Warning if the clocks are not known well enough for the duration of the phase.
fn uncertain(hosts: &[HostResult], duration: Nanos) -> Option<Warning> {
    let bound = hosts.iter().map(|host| host.clock_bound).max()?;
    let share = bound.seconds() / duration.seconds().max(1e-9);
    (share > UNCERTAIN).then_some(Warning::ClockUncertain { bound, share: Ratio(share) })
}

fn host_result(
    phase: &Phase,
    origin: &Origin<'_>,
    result: &HostPhase,
    workers: &[WorkerResult],
    start: Nanos,
) -> HostResult {
    let mut histogram = Histogram::default();
    workers.iter().for_each(|worker| histogram.merge(&worker.latencies.operations()));
    let end = |worker: &WorkerResult| {
        let loops = worker.loop_time + worker.uncounted_time;
        worker.started + loops + worker.end_sync_time + worker.close_time
    };
    let started = workers.iter().map(|worker| worker.started).min().unwrap_or(start);
    HostResult {
        phase: phase.name.clone(),
        index: origin.index,
        host: origin.host.to_owned(),
        ops: model::Ops(workers.iter().map(|worker| worker.ops().0).sum()),
        bytes: workers.iter().map(WorkerResult::bytes).sum(),
        started,
        ended: workers.iter().map(end).max().unwrap_or(started),
        clock_offset: origin.offset,
        clock_bound: origin.bound,
        histogram,
        series: Series::merged(workers.iter().map(|worker| &worker.series)),
        network: result.network,
        activity: result.activity.clone(),
    }
}

/// CPU time, page faults, and network traffic of all hosts. Devices and pressure are those of
/// single hosts, and stay with their results.
fn sum<'a>(all: impl Iterator<Item = &'a SystemActivity> + Clone) -> SystemActivity {
    let window = all.clone().map(|it| it.window).max().unwrap_or_default();
    let cpu: Option<Vec<&CpuActivity>> = all.clone().map(|it| it.cpu.as_ref()).collect();
    let faults: Option<Vec<Faults>> = all.clone().map(|it| it.faults).collect();
    let mut clients = Vec::new();
    all.clone().flat_map(|it| &it.clients).for_each(|it| ClientActivity::add(&mut clients, it));
    SystemActivity {
        window,
        clients,
        cpu: cpu.map(|cpu| sum_cpu(&cpu)),
        faults: faults.map(|faults| Faults {
            minor: faults.iter().map(|it| it.minor).sum(),
            major: faults.iter().map(|it| it.major).sum(),
        }),
        log: all.flat_map(|it| it.log.iter().cloned()).collect(),
        ..SystemActivity::default()
    }
}

fn sum_cpu(all: &[&CpuActivity]) -> CpuActivity {
    let time = |of: fn(&CpuActivity) -> Nanos| all.iter().map(|cpu| of(cpu)).sum();
    let interrupts: Option<Vec<Nanos>> = all.iter().map(|cpu| cpu.host.interrupts).collect();
    let mut kernel: Vec<model::activity::KernelThread> = Vec::new();
    for thread in all.iter().flat_map(|cpu| &cpu.kernel) {
        match kernel.iter_mut().find(|own| own.name == thread.name && own.origin == thread.origin) {
            Some(own) => own.time = own.time + thread.time,
            None => kernel.push(thread.clone()),
        }
    }
    kernel.sort_by_key(|thread| std::cmp::Reverse(thread.time));
    CpuActivity {
        workload: time(|cpu| cpu.workload),
        monitoring: time(|cpu| cpu.monitoring),
        kernel,
        others: all.iter().flat_map(|cpu| cpu.others.iter().cloned()).collect(),
        others_total: time(|cpu| cpu.others_total),
        host: HostCpu {
            processors: all.iter().map(|cpu| cpu.host.processors).sum(),
            busy: time(|cpu| cpu.host.busy),
            iowait: time(|cpu| cpu.host.iowait),
            interrupts: interrupts.map(|times| times.into_iter().sum()),
            steal: time(|cpu| cpu.host.steal),
            resolution: all.iter().map(|cpu| cpu.host.resolution).max().unwrap_or_default(),
        },
    }
}
