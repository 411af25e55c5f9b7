//! Every quantity fslab reports: one table that gives name, unit, direction and meaning.
//!
//! A value without its row here cannot be stored or shown: [`crate::Sample`] holds a [`Metric`],
//! and a `Metric` is its row.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What the base unit of a value is. Rates are per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Operations per second.
    OpsPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// A plain count.
    Count,
    /// A part of a whole; 1 is all of it.
    Share,
    /// How many times one thing is another; may be above 1.
    Ratio,
    /// Cycles per second.
    Hertz,
    /// Instructions of a guest's processor.
    Instructions,
}

impl Unit {
    /// Its name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes_per_second",
            Self::OpsPerSecond => "ops_per_second",
            Self::Nanoseconds => "ns",
            Self::Count => "count",
            Self::Share => "share",
            Self::Ratio => "ratio",
            Self::Hertz => "hertz",
            Self::Instructions => "instructions",
        }
    }
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither: evidence about a number, not a score.
    Neither,
}

impl Better {
    /// The words that stand beside every number.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Higher => "higher is better ↑",
            Self::Lower => "lower is better ↓",
            Self::Neither => "evidence, no direction",
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct MetricSpec {
    /// The metric.
    pub metric: Metric,
    /// Its name in plans, files and tables.
    pub name: &'static str,
    /// Its base unit.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// What it means, one sentence.
    pub meaning: &'static str,
}

macro_rules! metrics {
    ($($variant:ident $name:literal $unit:ident $better:ident $meaning:literal;)*) => {
        /// A quantity; see [`ALL`] for unit, direction and meaning.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(into = "&'static str", try_from = "String")]
        pub enum Metric {
            $(#[doc = $meaning] $variant,)*
        }

        /// Every metric, in the order of the enum.
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
        "Bytes moved in the region the suite times, over that time; for writes this is data accepted, which may still be in memory.";
    ThroughputTick "throughput_tick" BytesPerSecond Higher
        "Bytes moved until the last whole second before the end, over that time, as the classic tool tells it; only of replays that end by time.";
    DurableThroughput "durable_throughput" BytesPerSecond Higher
        "Bytes written over the time until the flush that followed had returned; not told where records are overwritten in memory before it.";
    ThroughputSum "throughput_sum" BytesPerSecond Higher
        "Sum of each worker's own rate; larger than the true rate when workers do not overlap.";
    ReadThroughput "read_throughput" BytesPerSecond Higher
        "The part of the throughput that was read, where a phase both reads and writes.";
    WriteThroughput "write_throughput" BytesPerSecond Higher
        "The part of the throughput that was written, where a phase both reads and writes.";
    OpsRate "ops_rate" OpsPerSecond Higher
        "Operations in the region the suite times, over that time; of a tree, files.";
    ReadOpsRate "read_ops_rate" OpsPerSecond Higher
        "The part of the operations that were reads, where a phase both reads and writes.";
    WriteOpsRate "write_ops_rate" OpsPerSecond Higher
        "The part of the operations that were writes, where a phase both reads and writes.";
    LatencyMean "latency_mean" Nanoseconds Lower
        "Mean latency of an operation, from when it was due in an open loop, else from when the worker turned to it.";
    LatencyP50 "latency_p50" Nanoseconds Lower
        "Half of the operations took at most this long.";
    LatencyP90 "latency_p90" Nanoseconds Lower
        "90 % of the operations took at most this long.";
    LatencyP99 "latency_p99" Nanoseconds Lower
        "99 % of the operations took at most this long.";
    LatencyP999 "latency_p999" Nanoseconds Lower
        "99.9 % of the operations took at most this long.";
    LatencyP9999 "latency_p9999" Nanoseconds Lower
        "99.99 % of the operations took at most this long.";
    LatencyMax "latency_max" Nanoseconds Lower
        "The longest operation.";
    ReadLatencyP50 "read_latency_p50" Nanoseconds Lower
        "Half of the reads took at most this long, where a phase both reads and writes.";
    ReadLatencyP99 "read_latency_p99" Nanoseconds Lower
        "99 % of the reads took at most this long, where a phase both reads and writes.";
    ReadLatencyP999 "read_latency_p999" Nanoseconds Lower
        "99.9 % of the reads took at most this long, where a phase both reads and writes.";
    WriteLatencyP50 "write_latency_p50" Nanoseconds Lower
        "Half of the writes took at most this long, where a phase both reads and writes.";
    WriteLatencyP99 "write_latency_p99" Nanoseconds Lower
        "99 % of the writes took at most this long, where a phase both reads and writes.";
    WriteLatencyP999 "write_latency_p999" Nanoseconds Lower
        "99.9 % of the writes took at most this long, where a phase both reads and writes.";
    ServiceP50 "service_p50" Nanoseconds Neither
        "Open loops only: half of the operations took at most this long once the worker had turned to them, which is all that a closed loop would have seen.";
    ServiceP99 "service_p99" Nanoseconds Neither
        "The same for 99 % of the operations.";
    ServiceP999 "service_p999" Nanoseconds Neither
        "The same for 99.9 % of the operations.";
    SubmitP50 "submit_p50" Nanoseconds Lower
        "Queues only: half of the operations were taken by the kernel within this time.";
    SubmitP99 "submit_p99" Nanoseconds Lower
        "Queues only: 99 % of the operations were taken by the kernel within this time.";
    CompleteP50 "complete_p50" Nanoseconds Lower
        "Queues only: half of the operations were complete within this time after the kernel had taken them.";
    CompleteP99 "complete_p99" Nanoseconds Lower
        "Queues only: 99 % of the operations were complete within this time after the kernel had taken them.";
    FlushCalls "flush_calls" Count Neither
        "Flushes inside the loop.";
    FlushCallP50 "flush_call_p50" Nanoseconds Lower
        "Half of the flushes inside the loop took at most this long.";
    FlushCallP99 "flush_call_p99" Nanoseconds Lower
        "99 % of the flushes inside the loop took at most this long.";
    FlushCallP999 "flush_call_p999" Nanoseconds Lower
        "99.9 % of the flushes inside the loop took at most this long.";
    FlushCallMax "flush_call_max" Nanoseconds Lower
        "The longest flush inside the loop.";
    Elapsed "elapsed" Nanoseconds Lower
        "Wall-clock time of the whole step.";
    DurableElapsed "durable_elapsed" Nanoseconds Lower
        "Wall-clock time of the step until the flush that followed had returned.";
    LoopTime "loop_time" Nanoseconds Lower
        "From the first operation to the end of the last.";
    FlushTime "flush_time" Nanoseconds Lower
        "Length of the flush after the loop.";
    CloseTime "close_time" Nanoseconds Lower
        "Length of the close after the flush.";
    UserTime "user_time" Nanoseconds Neither
        "CPU time of the workers in user mode; the sum with the time in the kernel is exact, and the kernel splits it by its ticks, which is coarse below about 0.1 s.";
    SystemTime "system_time" Nanoseconds Neither
        "CPU time of the workers in the kernel.";
    UserTimePerOp "user_time_per_op" Nanoseconds Lower
        "CPU time of the workers in user mode for each operation; those of a ramp-up are taken to be as frequent as those counted.";
    SystemTimePerOp "system_time_per_op" Nanoseconds Lower
        "CPU time of the workers in the kernel for each operation, likewise.";
    UserShare "user_share" Share Neither
        "CPU time in user mode over wall-clock time times workers.";
    SystemShare "system_share" Share Neither
        "CPU time in the kernel over wall-clock time times workers.";
    CpuShare "cpu_share" Share Neither
        "CPU time of the workers and the programs they ran, over elapsed time; 100 % is one processor, as the classic tools have it.";
    KernelTime "kernel_time" Nanoseconds Neither
        "CPU time of the kernel threads that the work caused: journal, writeback, workers of the filesystem, block layer, loop devices, reclaim.";
    CausedTime "caused_time" Nanoseconds Lower
        "CPU time of the work and of the kernel threads it caused.";
    CausedTimePerOp "caused_time_per_op" Nanoseconds Lower
        "CPU time of the work and of the kernel threads it caused, for each operation.";
    CausedShare "caused_share" Share Neither
        "CPU time of the work and of the kernel threads it caused, over the time in which it was counted, which includes making the workers ready and the flush; 100 % is one processor.";
    HostShare "host_share" Share Neither
        "Time in which the processors of the machine were not idle, over elapsed time times processors.";
    OtherShare "other_share" Share Neither
        "CPU time of processes that have nothing to do with the work, over elapsed time times processors.";
    UnattributedShare "unattributed_share" Share Neither
        "Busy time of the machine that no task accounts for, as interrupts do not, over all its busy time; below zero by what the two ways of counting disagree.";
    IowaitShare "iowait_share" Share Neither
        "Time in which processors were idle while requests were outstanding, over elapsed time times processors.";
    StealShare "steal_share" Share Neither
        "Time that the hypervisor gave to others, over elapsed time times processors.";
    MinorFaults "minor_faults" Count Neither
        "Page faults of the work that were served without reading a device.";
    MajorFaults "major_faults" Count Neither
        "Page faults of the work that had to read a device.";
    PressureCpu "pressure_cpu" Share Neither
        "The part of the time in which some task waited for a processor.";
    PressureMemory "pressure_memory" Share Neither
        "The part of the time in which some task waited for memory.";
    PressureIo "pressure_io" Share Neither
        "The part of the time in which some task waited for I/O.";
    PressureIoFull "pressure_io_full" Share Neither
        "The part of the time in which all tasks that were not idle waited for I/O.";
    DirtyPeak "dirty_peak" Bytes Neither
        "The most memory that waited for being written back at one time, of the whole machine.";
    DirtyEnd "dirty_end" Bytes Neither
        "Memory that waited for being written back at the end of the step, of the whole machine.";
    Frequency "frequency" Hertz Neither
        "Mean frequency of the processors.";
    OverheadShare "overhead_share" Share Neither
        "CPU time that looking took, over elapsed time; 100 % is one processor.";
    OverheadMemory "overhead_memory" Bytes Neither
        "Resident memory of this program without the buffers of the work.";
    VoluntarySwitches "voluntary_switches" Count Neither
        "Context switches because a worker waited.";
    InvoluntarySwitches "involuntary_switches" Count Neither
        "Context switches because others wanted the CPU of a worker.";
    SwitchesPerOp "switches_per_op" Count Lower
        "Context switches of both kinds for each operation; those of a ramp-up are taken to be as frequent as those counted.";
    WouldBlock "would_block" Count Neither
        "Reads without waiting that were answered `it would block`, and then done again.";
    WouldBlockShare "would_block_share" Share Neither
        "The same as a part of all reads.";
    StartSkew "start_skew" Nanoseconds Neither
        "Time between the first and the last worker's start.";
    EndSkew "end_skew" Nanoseconds Neither
        "Time between the first and the last worker's end of counting.";
    GeneratorShare "generator_share" Share Lower
        "Time of the loop itself, measured on an engine without calls, over the workers' time for each operation; absent where operations are paced.";
    DeviceRead "device_read" Bytes Neither
        "Bytes the devices under the filesystem read during the phase.";
    DeviceWritten "device_written" Bytes Neither
        "Bytes the devices under the filesystem wrote during the phase, flush included.";
    DeviceReads "device_reads" Count Neither
        "Read requests that the devices under the filesystem completed.";
    DeviceWrites "device_writes" Count Neither
        "Write requests that the devices under the filesystem completed.";
    DeviceFlushes "device_flushes" Count Neither
        "Flush requests that the devices under the filesystem completed.";
    DeviceDiscarded "device_discarded" Bytes Neither
        "Bytes that were discarded on the devices under the filesystem.";
    DeviceBusy "device_busy" Share Neither
        "The part of the time in which the busiest device under the filesystem had a request.";
    DeviceQueue "device_queue" Count Neither
        "Requests at the devices under the filesystem, queued or in progress, on average over the time.";
    ReadAmplification "read_amplification" Ratio Neither
        "Bytes the devices under the filesystem read for each byte that was read from cold caches.";
    WriteAmplification "write_amplification" Ratio Neither
        "Bytes the devices under the filesystem wrote for each byte that was written and flushed; below 1 where data were compressed, joined, or left out.";
    CachedShare "cached_share" Share Neither
        "The part of the bytes read that did not come from the devices; those of a ramp-up are taken to be as frequent as those counted.";
    SpaceUsable "space_usable" Bytes Higher
        "Space an ordinary user can fill right after mkfs.";
    SpaceTotal "space_total" Bytes Neither
        "Size of the device or image.";
    Inodes "inodes" Count Neither
        "Inodes right after mkfs; absent where they are made on demand.";
    SpaceUsed "space_used" Bytes Lower
        "Space the filesystem says is taken after the phases and a flush, less what it said before them.";
    SpaceData "space_data" Bytes Neither
        "Sizes of all files that were there after the phases, added up.";
    SpaceOverhead "space_overhead" Ratio Lower
        "Space taken for each byte of the files that were there.";
    Instructions "instructions" Instructions Lower
        "Guest instructions in the region the suite times: those of the kernel, of this program, and of reading the clock; kernel and program are not told apart, since the kernel itself does so by its ticks.";
    InstructionsPerOp "instructions_per_op" Instructions Lower
        "Guest instructions in the region the suite times, for each operation; of a tree, for each file.";
    DurableInstructionsPerOp "durable_instructions_per_op" Instructions Lower
        "Guest instructions until the flush that followed had returned, for each operation that wrote.";
    InstructionsMean "instructions_mean" Instructions Lower
        "Mean of the guest instructions of an operation, from when the worker turned to it.";
    InstructionsP50 "instructions_p50" Instructions Lower
        "Half of the operations took at most so many guest instructions.";
    InstructionsP90 "instructions_p90" Instructions Lower
        "90 % of the operations took at most so many guest instructions.";
    InstructionsP99 "instructions_p99" Instructions Lower
        "99 % of the operations took at most so many guest instructions.";
    InstructionsP999 "instructions_p999" Instructions Lower
        "99.9 % of the operations took at most so many guest instructions.";
    InstructionsMax "instructions_max" Instructions Lower
        "The operation with the most guest instructions.";
    StepInstructions "step_instructions" Instructions Lower
        "Guest instructions of the whole step, whoever's they were.";
    LoopInstructions "loop_instructions" Instructions Lower
        "Guest instructions from the first operation to the end of the last.";
    FlushInstructions "flush_instructions" Instructions Lower
        "Guest instructions of the flush after the loop.";
    CloseInstructions "close_instructions" Instructions Lower
        "Guest instructions of the close after the flush.";
    ProgramInstructions "program_instructions" Instructions Neither
        "Guest instructions of the workers, or of the program that made the step, those of the kernel on their behalf included.";
    CausedInstructions "caused_instructions" Instructions Lower
        "Guest instructions of the work and of the kernel threads it caused, from before the workers are set up until the last is done.";
    CausedInstructionsPerOp "caused_instructions_per_op" Instructions Lower
        "The same for each operation.";
    KernelThreadInstructions "kernel_thread_instructions" Instructions Neither
        "Guest instructions of the kernel threads that the work caused: journal, writeback, workers of the filesystem, block layer, reclaim.";
}

/// Times, and as what they are kept where a clock counts instructions instead.
const IN_INSTRUCTIONS: [(Metric, Metric); 13] = [
    (Metric::LatencyMean, Metric::InstructionsMean),
    (Metric::LatencyP50, Metric::InstructionsP50),
    (Metric::LatencyP90, Metric::InstructionsP90),
    (Metric::LatencyP99, Metric::InstructionsP99),
    (Metric::LatencyP999, Metric::InstructionsP999),
    (Metric::LatencyMax, Metric::InstructionsMax),
    (Metric::Elapsed, Metric::StepInstructions),
    (Metric::LoopTime, Metric::LoopInstructions),
    (Metric::FlushTime, Metric::FlushInstructions),
    (Metric::CloseTime, Metric::CloseInstructions),
    (Metric::CausedTime, Metric::CausedInstructions),
    (Metric::CausedTimePerOp, Metric::CausedInstructionsPerOp),
    (Metric::KernelTime, Metric::KernelThreadInstructions),
];

impl Metric {
    /// As what a value of this metric is kept where the clock counts instructions: a time as so
    /// many of them, what is no matter of time as it is, and the rest not at all.
    pub(crate) fn in_instructions(self) -> Option<Self> {
        let restated = IN_INSTRUCTIONS.iter().find(|(time, _)| *time == self);
        match (restated, self.spec().unit) {
            (Some((_, instructions)), _) => Some(*instructions),
            // Requests at a device are averaged over time.
            (None, _) if self == Self::DeviceQueue => None,
            (None, Unit::Share) => {
                matches!(self, Self::WouldBlockShare | Self::CachedShare).then_some(self)
            }
            (None, Unit::Bytes | Unit::Count | Unit::Ratio | Unit::Instructions) => Some(self),
            (None, Unit::BytesPerSecond | Unit::OpsPerSecond | Unit::Nanoseconds | Unit::Hertz) => {
                None
            }
        }
    }

    /// Its row.
    pub fn spec(self) -> &'static MetricSpec {
        &ALL[self as usize]
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.spec().name
    }
}

impl From<Metric> for &'static str {
    fn from(metric: Metric) -> Self {
        metric.name()
    }
}

/// The text names no metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no metric is called `{0}`")]
pub struct UnknownMetric(String);

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
    fn every_row_stands_at_its_metric_and_reads_back() {
        for (index, row) in ALL.iter().enumerate() {
            assert_eq!(row.metric as usize, index, "{}", row.name);
            assert_eq!(row.name.parse(), Ok(row.metric));
            assert!(row.meaning.ends_with('.'), "{}", row.name);
        }
    }
}
