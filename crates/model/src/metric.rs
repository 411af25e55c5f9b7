//! Metrics: name, unit, direction, and meaning of every quantity that fslab reports.
//!
//! A [`crate::Sample`] contains a [`Metric`], so only quantities of this table can be stored and
//! shown.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::suggest::nearest;

/// Base unit of a metric. Rates are per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Operations per second.
    OpsPerSecond,
    /// Commits per second: synced writes.
    CommitsPerSecond,
    /// Deliveries per second: messages that are written, synced, and renamed.
    DeliveriesPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Count.
    Count,
    /// Fraction of a whole, 0 to 1. For CPU utilization, 1 is one CPU, and higher values are
    /// possible.
    Fraction,
    /// Unbounded ratio of two quantities.
    Ratio,
    /// Cycles per second.
    Hertz,
    /// Guest instructions.
    Instructions,
}

impl Unit {
    /// Name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes_per_second",
            Self::OpsPerSecond => "ops_per_second",
            Self::CommitsPerSecond => "commits_per_second",
            Self::DeliveriesPerSecond => "deliveries_per_second",
            Self::Nanoseconds => "ns",
            Self::Count => "count",
            Self::Fraction => "fraction",
            Self::Ratio => "ratio",
            Self::Hertz => "hertz",
            Self::Instructions => "instructions",
        }
    }
}

/// Direction of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Higher is better.
    Higher,
    /// Lower is better.
    Lower,
    /// Informational: system activity without a direction.
    Neither,
}

impl Better {
    /// Text next to numbers.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Higher => "higher is better ↑",
            Self::Lower => "lower is better ↓",
            Self::Neither => "informational",
        }
    }
}

/// Definition of a metric.
#[derive(Clone, Copy, Debug)]
pub struct MetricSpec {
    /// Metric.
    pub metric: Metric,
    /// Name in plans, files, and tables.
    pub name: &'static str,
    /// Base unit.
    pub unit: Unit,
    /// Direction.
    pub better: Better,
    /// Meaning, in full sentences.
    pub meaning: &'static str,
}

macro_rules! metrics {
    ($($variant:ident $name:literal $unit:ident $better:ident $meaning:literal;)*) => {
        /// Measured quantity. [`ALL`] lists unit, direction, and meaning.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(into = "&'static str", try_from = "String")]
        pub enum Metric {
            $(#[doc = $meaning] $variant,)*
        }

        /// All metrics in the order of the enum.
        pub const ALL: &[MetricSpec] = &[$(MetricSpec {
            metric: Metric::$variant,
            name: $name,
            unit: Unit::$unit,
            better: Better::$better,
            meaning: $meaning,
        },)*];
    };
}

metrics! {
    Throughput "throughput" BytesPerSecond Higher
        "Bytes per second in the timed region; writes count when accepted.";
    ThroughputDbench "throughput_dbench" BytesPerSecond Higher
        "Throughput up to the last full second, as reported by dbench; only for replays that end by time.";
    ThroughputDeadline "throughput_deadline" BytesPerSecond Higher
        "Throughput up to the deadline (`stonewall_time`).";
    OpsRateDeadline "ops_rate_deadline" OpsPerSecond Higher
        "Operations per second up to the deadline (`stonewall_time`).";
    DurableThroughput "durable_throughput" BytesPerSecond Higher
        "Bytes written per second including the final sync; absent if blocks are overwritten before it.";
    ThroughputWorkerSum "throughput_worker_sum" BytesPerSecond Higher
        "Sum of the per-worker rates; too high if workers do not overlap.";
    WorkerBytes "worker_bytes" Bytes Neither
        "Bytes that a worker read and wrote in the timed region; only with several workers.";
    ReadThroughput "read_throughput" BytesPerSecond Higher
        "Throughput of the reads in a phase that reads and writes.";
    WriteThroughput "write_throughput" BytesPerSecond Higher
        "Throughput of the writes in a phase that reads and writes.";
    OpsRate "ops_rate" OpsPerSecond Higher
        "Operations per second in the timed region; files per second for file trees.";
    CommitRate "commit_rate" CommitsPerSecond Higher
        "Commits per second in the timed region: writes or transactions, each of which is synced before the next.";
    DeliveryRate "delivery_rate" DeliveriesPerSecond Higher
        "Deliveries per second in the timed region: messages, each written to a file that is synced and renamed.";
    ReadOpsRate "read_ops_rate" OpsPerSecond Higher
        "Read operations per second in a phase that reads and writes.";
    WriteOpsRate "write_ops_rate" OpsPerSecond Higher
        "Write operations per second in a phase that reads and writes.";
    LatencyMean "latency_mean" Nanoseconds Lower
        "Mean operation latency, from the scheduled start in an open loop, otherwise from the start of the operation.";
    LatencyP50 "latency_p50" Nanoseconds Lower
        "50th percentile of the operation latency.";
    LatencyP90 "latency_p90" Nanoseconds Lower
        "90th percentile of the operation latency.";
    LatencyP99 "latency_p99" Nanoseconds Lower
        "99th percentile of the operation latency.";
    LatencyP999 "latency_p999" Nanoseconds Lower
        "99.9th percentile of the operation latency.";
    LatencyP9999 "latency_p9999" Nanoseconds Lower
        "99.99th percentile of the operation latency.";
    LatencyMax "latency_max" Nanoseconds Lower
        "Maximum operation latency.";
    ReadLatencyP50 "read_latency_p50" Nanoseconds Lower
        "50th percentile of the read latency in a phase that reads and writes.";
    ReadLatencyP99 "read_latency_p99" Nanoseconds Lower
        "99th percentile of the read latency in a phase that reads and writes.";
    ReadLatencyP999 "read_latency_p999" Nanoseconds Lower
        "99.9th percentile of the read latency in a phase that reads and writes.";
    WriteLatencyP50 "write_latency_p50" Nanoseconds Lower
        "50th percentile of the write latency in a phase that reads and writes.";
    WriteLatencyP99 "write_latency_p99" Nanoseconds Lower
        "99th percentile of the write latency in a phase that reads and writes.";
    WriteLatencyP999 "write_latency_p999" Nanoseconds Lower
        "99.9th percentile of the write latency in a phase that reads and writes.";
    ServiceTimeP50 "service_time_p50" Nanoseconds Neither
        "Open loop: 50th percentile of the time from start of service to completion, as a closed loop would measure.";
    ServiceTimeP99 "service_time_p99" Nanoseconds Neither
        "Open loop: 99th percentile of the time from start of service to completion.";
    ServiceTimeP999 "service_time_p999" Nanoseconds Neither
        "Open loop: 99.9th percentile of the time from start of service to completion.";
    SubmissionLatencyP50 "submission_latency_p50" Nanoseconds Lower
        "io_uring and Linux AIO: 50th percentile of the submission latency (fio slat).";
    SubmissionLatencyP99 "submission_latency_p99" Nanoseconds Lower
        "io_uring and Linux AIO: 99th percentile of the submission latency (fio slat).";
    CompletionLatencyP50 "completion_latency_p50" Nanoseconds Lower
        "io_uring and Linux AIO: 50th percentile of the time from submission to completion (fio clat).";
    CompletionLatencyP99 "completion_latency_p99" Nanoseconds Lower
        "io_uring and Linux AIO: 99th percentile of the time from submission to completion (fio clat).";
    CompletionLatencyP999 "completion_latency_p999" Nanoseconds Lower
        "io_uring and Linux AIO: 99.9th percentile of the time from submission to completion (fio clat).";
    SyncCalls "sync_calls" Count Neither
        "Sync calls in the loop.";
    SyncLatencyP50 "sync_latency_p50" Nanoseconds Lower
        "50th percentile of the latency of the sync calls in the loop.";
    SyncLatencyP99 "sync_latency_p99" Nanoseconds Lower
        "99th percentile of the latency of the sync calls in the loop.";
    SyncLatencyP999 "sync_latency_p999" Nanoseconds Lower
        "99.9th percentile of the latency of the sync calls in the loop.";
    SyncLatencyMax "sync_latency_max" Nanoseconds Lower
        "Maximum latency of the sync calls in the loop.";
    Elapsed "elapsed" Nanoseconds Lower
        "Wall-clock time of the step.";
    DurableElapsed "durable_elapsed" Nanoseconds Lower
        "Wall-clock time of the step including the final sync.";
    SettleTime "settle_time" Nanoseconds Lower
        "Time of the programs that complete a command, such as a checkpoint, before the final sync.";
    ReportedRate "reported_rate" OpsPerSecond Higher
        "Operations per second that a program printed.";
    ReportedThroughput "reported_throughput" BytesPerSecond Higher
        "Bytes per second that a program printed.";
    ReportedTime "reported_time" Nanoseconds Lower
        "Time that a program printed.";
    ReportedBytes "reported_bytes" Bytes Neither
        "Bytes that a program printed.";
    ReportedCount "reported_count" Count Neither
        "Count that a program printed.";
    LoopTime "loop_time" Nanoseconds Lower
        "Time from the start of the first operation to the end of the last.";
    EndSyncTime "end_sync_time" Nanoseconds Lower
        "Duration of the sync after the loop.";
    CloseTime "close_time" Nanoseconds Lower
        "Duration of the close after the final sync.";
    UserTime "user_time" Nanoseconds Neither
        "User CPU time of the workers. The sum with the system CPU time is exact; the kernel splits it by ticks, which is inaccurate below about 0.1 s.";
    SystemTime "system_time" Nanoseconds Neither
        "System CPU time of the workers.";
    UserTimePerOp "user_time_per_op" Nanoseconds Lower
        "User CPU time of the workers per operation, extrapolated to the ramp time.";
    SystemTimePerOp "system_time_per_op" Nanoseconds Lower
        "System CPU time of the workers per operation, extrapolated to the ramp time.";
    UserCpuUtilization "user_cpu_utilization" Fraction Neither
        "User CPU time over elapsed time times workers.";
    SystemCpuUtilization "system_cpu_utilization" Fraction Neither
        "System CPU time over elapsed time times workers.";
    CpuUtilization "cpu_utilization" Fraction Neither
        "CPU time of workers and their programs over elapsed time; 100 % is one CPU, as in IOzone and bonnie++.";
    KernelThreadTime "kernel_thread_time" Nanoseconds Neither
        "CPU time of attributed kernel threads: journal, writeback, filesystem workers, block layer, loop, reclaim.";
    AttributedCpuTime "attributed_cpu_time" Nanoseconds Lower
        "CPU time of the workload and attributed kernel threads.";
    AttributedCpuTimePerOp "attributed_cpu_time_per_op" Nanoseconds Lower
        "CPU time of the workload and attributed kernel threads per operation.";
    AttributedCpuUtilization "attributed_cpu_utilization" Fraction Neither
        "CPU time of the workload and attributed kernel threads over elapsed time including worker setup and sync; 100 % is one CPU.";
    HostCpuUtilization "host_cpu_utilization" Fraction Neither
        "Non-idle CPU time of the machine over elapsed time times CPUs.";
    OtherCpuUtilization "other_cpu_utilization" Fraction Neither
        "CPU time of unrelated processes over elapsed time times CPUs.";
    UnattributedFraction "unattributed_fraction" Fraction Neither
        "Fraction of the busy CPU time that belongs to no task, such as interrupts; negative if the two counting methods disagree.";
    IowaitFraction "iowait_fraction" Fraction Neither
        "Idle time with outstanding I/O over elapsed time times CPUs.";
    StealFraction "steal_fraction" Fraction Neither
        "Time stolen by the hypervisor over elapsed time times CPUs.";
    MinorFaults "minor_faults" Count Neither
        "Minor page faults of the workload.";
    MajorFaults "major_faults" Count Neither
        "Major page faults of the workload, which read from a device.";
    PsiCpuSome "psi_cpu_some" Fraction Neither
        "Fraction of time in which some tasks were stalled on CPU.";
    PsiMemorySome "psi_memory_some" Fraction Neither
        "Fraction of time in which some tasks were stalled on memory.";
    PsiIoSome "psi_io_some" Fraction Neither
        "Fraction of time in which some tasks were stalled on I/O.";
    PsiIoFull "psi_io_full" Fraction Neither
        "Fraction of time in which all non-idle tasks were stalled on I/O.";
    DirtyMemoryPeak "dirty_memory_peak" Bytes Neither
        "Maximum dirty memory of the machine.";
    DirtyMemoryEnd "dirty_memory_end" Bytes Neither
        "Dirty memory of the machine at the end of the step.";
    CpuFrequency "cpu_frequency" Hertz Neither
        "Mean CPU frequency.";
    MonitoringCpuUtilization "monitoring_cpu_utilization" Fraction Neither
        "CPU time of the monitor over elapsed time; 100 % is one CPU.";
    MonitoringMemory "monitoring_memory" Bytes Neither
        "Resident memory of fslab without workload buffers.";
    VoluntaryContextSwitches "voluntary_context_switches" Count Neither
        "Voluntary context switches of the workers (getrusage(2)).";
    InvoluntaryContextSwitches "involuntary_context_switches" Count Neither
        "Involuntary context switches of the workers (getrusage(2)).";
    ContextSwitchesPerOp "context_switches_per_op" Count Lower
        "Voluntary and involuntary context switches per operation, extrapolated to the ramp time.";
    EagainReads "eagain_reads" Count Neither
        "RWF_NOWAIT reads that returned EAGAIN and were retried.";
    EagainFraction "eagain_fraction" Fraction Neither
        "Fraction of all reads that returned EAGAIN and were retried.";
    StartSkew "start_skew" Nanoseconds Neither
        "Time between the first and the last worker's start.";
    EndSkew "end_skew" Nanoseconds Neither
        "Time between the first and the last worker's end of the timed region.";
    GeneratorOverhead "generator_overhead" Fraction Lower
        "Time of the I/O loop on the null engine over worker time per operation; absent for paced operations.";
    DeviceBytesRead "device_bytes_read" Bytes Neither
        "Bytes read from the devices of the filesystem.";
    DeviceBytesWritten "device_bytes_written" Bytes Neither
        "Bytes written to the devices of the filesystem, final sync included.";
    DeviceBytesWrittenPerOp "device_bytes_written_per_op" Bytes Lower
        "Bytes written to the devices of the filesystem per transaction or logged operation; commands and SQLite only.";
    DeviceFlushRequestsPerOp "device_flush_requests_per_op" Count Lower
        "Flush requests completed by the devices of the filesystem per transaction or logged operation; commands and SQLite only.";
    DeviceReadRequests "device_read_requests" Count Neither
        "Read requests completed by the devices of the filesystem.";
    DeviceWriteRequests "device_write_requests" Count Neither
        "Write requests completed by the devices of the filesystem.";
    DeviceFlushRequests "device_flush_requests" Count Neither
        "Flush requests completed by the devices of the filesystem.";
    DeviceBytesDiscarded "device_bytes_discarded" Bytes Neither
        "Bytes discarded on the devices of the filesystem.";
    DeviceUtilization "device_utilization" Fraction Neither
        "Fraction of time with a request in flight, busiest device of the filesystem (iostat %util).";
    DeviceQueueLength "device_queue_length" Count Neither
        "Mean number of requests queued or in flight on the devices of the filesystem (iostat aqu-sz).";
    ReadAmplification "read_amplification" Ratio Neither
        "Device bytes per byte read from a cold cache.";
    WriteAmplification "write_amplification" Ratio Neither
        "Device bytes per byte written and synced; below 1 if data was compressed, deduplicated, or skipped.";
    CacheHitRatio "cache_hit_ratio" Fraction Neither
        "Fraction of the bytes read that did not come from the devices, extrapolated to the ramp time.";
    SpaceAvailable "space_available" Bytes Higher
        "Space for unprivileged users after mkfs.";
    DeviceSize "device_size" Bytes Neither
        "Device or image size.";
    Inodes "inodes" Count Neither
        "Number of inodes after mkfs; absent if the filesystem allocates inodes dynamically.";
    SpaceUsed "space_used" Bytes Lower
        "Increase of the used space from before the phases to after the final sync.";
    ApparentSize "apparent_size" Bytes Neither
        "Sum of file sizes after the phases.";
    SpaceAmplification "space_amplification" Ratio Lower
        "Allocated bytes per byte of file data.";
    Instructions "instructions" Instructions Lower
        "Guest instructions in the timed region, including those of the kernel, of fslab, and of clock reads; user and kernel mode are not separated.";
    InstructionsPerOp "instructions_per_op" Instructions Lower
        "Guest instructions in the timed region per operation; per file for file trees.";
    DurableInstructionsPerOp "durable_instructions_per_op" Instructions Lower
        "Guest instructions including the final sync per write operation.";
    InstructionsMean "instructions_mean" Instructions Lower
        "Mean guest instructions of an operation, from its start.";
    InstructionsP50 "instructions_p50" Instructions Lower
        "50th percentile of the guest instructions of an operation.";
    InstructionsP90 "instructions_p90" Instructions Lower
        "90th percentile of the guest instructions of an operation.";
    InstructionsP99 "instructions_p99" Instructions Lower
        "99th percentile of the guest instructions of an operation.";
    InstructionsP999 "instructions_p999" Instructions Lower
        "99.9th percentile of the guest instructions of an operation.";
    InstructionsMax "instructions_max" Instructions Lower
        "Maximum guest instructions of an operation.";
    StepInstructions "step_instructions" Instructions Lower
        "Guest instructions of all tasks during the step.";
    LoopInstructions "loop_instructions" Instructions Lower
        "Guest instructions from the start of the first operation to the end of the last.";
    EndSyncInstructions "end_sync_instructions" Instructions Lower
        "Guest instructions of the sync after the loop.";
    CloseInstructions "close_instructions" Instructions Lower
        "Guest instructions of the close after the final sync.";
    ProcessInstructions "process_instructions" Instructions Neither
        "Guest instructions of the workers or the program, system calls included.";
    AttributedInstructions "attributed_instructions" Instructions Lower
        "Guest instructions of the workload and attributed kernel threads, including worker setup and sync.";
    AttributedInstructionsPerOp "attributed_instructions_per_op" Instructions Lower
        "Guest instructions of the workload and attributed kernel threads per operation.";
    KernelThreadInstructions "kernel_thread_instructions" Instructions Neither
        "Guest instructions of attributed kernel threads: journal, writeback, filesystem workers, block layer, reclaim.";
}

/// Time metrics and the metrics that replace them if the clock counts instructions.
const IN_INSTRUCTIONS: [(Metric, Metric); 13] = [
    (Metric::LatencyMean, Metric::InstructionsMean),
    (Metric::LatencyP50, Metric::InstructionsP50),
    (Metric::LatencyP90, Metric::InstructionsP90),
    (Metric::LatencyP99, Metric::InstructionsP99),
    (Metric::LatencyP999, Metric::InstructionsP999),
    (Metric::LatencyMax, Metric::InstructionsMax),
    (Metric::Elapsed, Metric::StepInstructions),
    (Metric::LoopTime, Metric::LoopInstructions),
    (Metric::EndSyncTime, Metric::EndSyncInstructions),
    (Metric::CloseTime, Metric::CloseInstructions),
    (Metric::AttributedCpuTime, Metric::AttributedInstructions),
    (Metric::AttributedCpuTimePerOp, Metric::AttributedInstructionsPerOp),
    (Metric::KernelThreadTime, Metric::KernelThreadInstructions),
];

impl Metric {
    /// Metric that contains the value if the clock counts instructions: for a time, the metric of
    /// its instructions; for a metric that does not depend on time, the metric itself; otherwise
    /// `None`.
    pub(crate) fn in_instructions(self) -> Option<Self> {
        let restated = IN_INSTRUCTIONS.iter().find(|(time, _)| *time == self);
        match (restated, self.spec().unit) {
            (Some((_, instructions)), _) => Some(*instructions),
            // The queue length is a mean over time, although its unit is a count.
            (None, _) if self == Self::DeviceQueueLength => None,
            (None, Unit::Fraction) => {
                matches!(self, Self::EagainFraction | Self::CacheHitRatio).then_some(self)
            }
            (None, Unit::Bytes | Unit::Count | Unit::Ratio | Unit::Instructions) => Some(self),
            (
                None,
                Unit::BytesPerSecond
                | Unit::OpsPerSecond
                | Unit::CommitsPerSecond
                | Unit::DeliveriesPerSecond
                | Unit::Nanoseconds
                | Unit::Hertz,
            ) => None,
        }
    }

    /// Definition of the metric.
    pub fn spec(self) -> &'static MetricSpec {
        &ALL[self as usize]
    }

    /// Name of the metric.
    pub fn name(self) -> &'static str {
        self.spec().name
    }
}

impl From<Metric> for &'static str {
    fn from(metric: Metric) -> Self {
        metric.name()
    }
}

/// Error: unknown metric name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown metric `{0}`; {near}`fslab list metrics` lists all metrics", near = near(.0))]
pub struct UnknownMetric(String);

/// Question that proposes a similar metric, if there is one.
fn near(name: &str) -> String {
    match nearest(name, ALL.iter().map(|spec| spec.name)) {
        Some(near) => format!("did you mean `{near}`? "),
        None => String::new(),
    }
}

impl FromStr for Metric {
    type Err = UnknownMetric;
    fn from_str(name: &str) -> Result<Self, UnknownMetric> {
        let row = ALL.iter().find(|row| row.name == name);
        row.map(|row| row.metric).ok_or_else(|| UnknownMetric(name.into()))
    }
}

impl TryFrom<String> for Metric {
    type Error = UnknownMetric;
    fn try_from(name: String) -> Result<Self, UnknownMetric> {
        name.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_in_enum_order_and_names_parse() {
        for (index, row) in ALL.iter().enumerate() {
            assert_eq!(row.metric as usize, index, "{}", row.name);
            assert_eq!(row.name.parse(), Ok(row.metric));
            assert!(row.meaning.ends_with('.'), "{}", row.name);
        }
    }
}
