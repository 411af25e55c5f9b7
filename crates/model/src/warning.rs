//! Measurement warnings. A warning is stored and shown with the value that it qualifies.
//!
//! Each warning has a message with the observed values and a hint. The reference page
//! `docs/reference/warnings.md` is generated from this module.

mod codes;
mod examples;
mod hints;
mod messages;

use serde::{Deserialize, Serialize};

use crate::{
    guest::GuestKind,
    units::{Bytes, Nanos, Ratio},
};

/// Effect of a warning on the value that it qualifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Additional information.
    Info,
    /// The value is shown with the warning.
    Warning,
    /// No finding uses the value.
    Blocking,
}

impl Severity {
    /// Name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Blocking => "blocking",
        }
    }
}

/// Measurement warning. Its code is the name of the variant in kebab case, and also the serde tag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum Warning {
    /// Too few repetitions for a confidence interval.
    TooFewRepetitions {
        /// Valid repetitions.
        n: u32,
        /// Repetitions needed for a 95 % confidence interval.
        needed: u32,
    },
    /// The confidence interval is wider than the profile's target.
    WideInterval {
        /// Half-width relative to the median.
        half_width: Ratio,
        /// Target of the profile.
        target: Ratio,
    },
    /// A phase that requires a cold cache read data from the page cache.
    CacheNotCold {
        /// Bytes requested by the phase.
        requested: Bytes,
        /// Bytes read from the device.
        from_device: Bytes,
    },
    /// The caches could not be dropped.
    CacheNotDropped {
        /// Reason.
        reason: String,
        /// True if root could drop the caches.
        needs_root: bool,
    },
    /// The files fit in the memory available to the workload.
    FitsInMemory {
        /// Total size of the files.
        working_set: Bytes,
        /// Memory available to the workload.
        memory: Bytes,
    },
    /// The storage is not a dedicated disk.
    SharedStorage {
        /// Description of the storage.
        storage: String,
        /// True if the storage is a directory of a mounted filesystem.
        directory: bool,
    },
    /// Devices of the axis `device` have different sizes.
    DeviceSizesDiffer {
        /// Names and sizes.
        sizes: String,
    },
    /// Sizes of filesystems are compared, but the filesystems are empty.
    EmptyFilesystems,
    /// A measured member of workloads that run together is a closed loop.
    ClosedLoop {
        /// Member.
        member: String,
    },
    /// Written data was not synced in or after the timed region.
    NotDurable,
    /// The written data can be compressed or deduplicated.
    CompressibleData,
    /// A setting reads back a value that differs from the one set.
    SettingNotApplied {
        /// Setting.
        setting: String,
        /// Value set.
        wanted: String,
        /// Value read back.
        found: String,
    },
    /// The memory limit of the plan could not be set.
    MemoryLimitNotSet {
        /// Reason.
        reason: String,
    },
    /// The device was still busy when the phase had to start.
    DeviceNotIdle {
        /// Time waited for the device.
        waited: Nanos,
    },
    /// Reading the clock takes too long for the timed operations.
    SlowClock {
        /// Time per clock read.
        cost: Nanos,
        /// Median operation latency.
        median: Nanos,
    },
    /// The load generator used a large part of the worker time.
    GeneratorBound {
        /// Load generator overhead over worker time per operation.
        share: Ratio,
        /// Load generator overhead per operation.
        loop_time: Nanos,
    },
    /// The phase was too short for a reliable result.
    ShortPhase {
        /// Duration of the phase.
        elapsed: Nanos,
    },
    /// A phase that requires a warm cache read from a device.
    CacheNotWarm {
        /// Fraction of the bytes read that came from memory.
        cached: Ratio,
    },
    /// Some of the bytes read came from the page cache, and some from the devices.
    PartlyCached {
        /// Fraction of the bytes read that came from memory.
        cached: Ratio,
    },
    /// One consumer used a CPU for nearly the whole phase.
    CpuBound {
        /// The workers, or a kind of kernel thread.
        who: String,
        /// CPU time over elapsed time; 1 is one CPU.
        share: Ratio,
    },
    /// Other processes used CPU time.
    OtherCpuLoad {
        /// Fraction of the time of all CPUs.
        share: Ratio,
        /// Process with the most CPU time.
        who: String,
    },
    /// Other processes did I/O on the device.
    OtherIoLoad {
        /// Device.
        device: String,
        /// Bytes that do not belong to the workload.
        bytes: Bytes,
        /// Fraction of all bytes read or written on the device.
        share: Ratio,
    },
    /// Tasks were stalled on a resource (PSI).
    ResourcePressure {
        /// Resource: `memory` or `CPU`.
        resource: String,
        /// Fraction of the time.
        share: Ratio,
    },
    /// The hypervisor stole CPU time.
    CpuSteal {
        /// Fraction of the time of all CPUs.
        share: Ratio,
    },
    /// The CPU was throttled because of temperature or power.
    CpuThrottled {
        /// Number of throttling events.
        events: u64,
    },
    /// The rate did not reach a steady state.
    NotSteadyState {
        /// Largest of five rounds minus the smallest, relative to their mean.
        range: Ratio,
        /// Change of the line fitted to the rounds, relative to their mean.
        slope: Ratio,
    },
    /// A phase that ends when its rate is steady ended by another limit.
    SteadyStateNotReached,
    /// Logs of operations end before the phase.
    LogTruncated {
        /// Number of operations that are missing.
        missing: u64,
    },
    /// Written data was still dirty at the end.
    UnwrittenData {
        /// Dirty memory of the whole machine at the end.
        left: Bytes,
        /// Bytes written.
        written: Bytes,
    },
    /// The devices wrote fewer bytes than were synced.
    ReducedWrites {
        /// Bytes written to the devices per byte synced.
        amplification: Ratio,
    },
    /// The result is faster than the hardware allows.
    ImplausibleResult {
        /// Observed value and its upper bound.
        what: String,
    },
    /// Deferred filesystem work ran during the phase.
    DeferredWork {
        /// Name of the kernel thread.
        who: String,
        /// CPU time of the kernel thread.
        time: Nanos,
    },
    /// The kernel logged messages about the filesystem or its devices.
    KernelMessage {
        /// First message.
        line: String,
        /// Number of messages.
        lines: u64,
    },
    /// The machine does not provide a value.
    NotAvailable {
        /// Name of the value.
        what: String,
        /// Reason and hint.
        why: String,
    },
    /// The read-only fsck found errors after the workload.
    FsckFailed {
        /// Exit status and first line of output.
        verdict: String,
    },
    /// The plan was overridden on the command line.
    PlanOverridden {
        /// Override.
        what: String,
    },
    /// A mount option or mkfs argument was omitted or replaced, because the kernel or the tool no
    /// longer supports it.
    OptionRemoved {
        /// Option as in the plan: `nobh of ext4`.
        option: String,
        /// Version that removed it, and the replacement.
        instead: String,
    },
    /// The phase was skipped because the filesystem or the kernel does not support it.
    NotSupported {
        /// Missing feature.
        what: String,
        /// Error of the kernel.
        why: String,
    },
    /// The plan requires a reboot between trials, but the machine was not rebooted.
    NotRebooted,
    /// The bound of the offset between the clocks of two hosts is large for the phase.
    ClockUncertain {
        /// Largest bound of a host.
        bound: Nanos,
        /// Ratio of the bound to the duration of the phase.
        share: Ratio,
    },
    /// Hosts read files that they wrote, which their caches may contain.
    OwnDataRead,
    /// The trial ran in a guest.
    MeasuredInGuest {
        /// Kind of guest.
        kind: GuestKind,
        /// Simulated latency per device request of an icount guest; `None` without latency, and for
        /// all other guests.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        latency: Option<Nanos>,
    },
    /// The CPU of an icount guest was idle, so its clock advanced without instructions.
    GuestIdle {
        /// Idle fraction of the phase.
        share: Ratio,
    },
    /// The guest does not pass flushes to the host.
    FlushNotPassed,
    /// A setting that the machine does not have was emulated.
    SettingEmulated {
        /// Setting and value: `cpu_speed 50%`.
        wanted: String,
        /// Mechanism used.
        instead: String,
        /// Reason for the emulation.
        why: String,
    },
    /// Replayed operations returned a status that differs from that in the loadfile.
    UnexpectedStatus {
        /// Number of operations with another status.
        count: u64,
        /// Number of all operations.
        of: u64,
    },
    /// A replay copied data that the recorded program cloned.
    ClonesCopied {
        /// Clones.
        count: u64,
    },
    /// Processes of a command still ran after its last program had ended, and were killed.
    LeftoverProcesses {
        /// Names of the programs.
        who: String,
    },
    /// File calls of a command, from a recording.
    FileCalls {
        /// Fraction of the time of the programs that their file calls take.
        share: Ratio,
        /// Number of calls.
        calls: u64,
        /// Number of calls that sync a file or filesystem.
        syncs: u64,
        /// Bytes that were read.
        read: Bytes,
        /// Bytes that were written.
        written: Bytes,
        /// Bytes that were mapped, whose accesses are not calls.
        mapped: Bytes,
    },
    /// The programs of a command could use the network of the host.
    NetworkAccess,
    /// A program reported another rate than its log of latencies.
    ReportedRateDiffers {
        /// Reported rate per second.
        reported: f64,
        /// Number of logged operations per second.
        logged: f64,
    },
    /// The repetitions form two clusters.
    Bimodal {
        /// Repetitions in the lower cluster.
        lower: u32,
        /// Repetitions in the higher cluster.
        higher: u32,
        /// Ratio of the medians, higher over lower.
        ratio: Ratio,
    },
    /// Some repetitions are outliers. No repetition was removed.
    Outliers {
        /// Repetitions more than 10 robust standard deviations from the median.
        severe: u32,
        /// Number of repetitions.
        of: u32,
    },
    /// Methods with different assumptions disagree.
    EstimatesDisagree {
        /// Method and its result.
        what: String,
    },
    /// The results of all cells changed over the run.
    Drift {
        /// Relative change from the first to the last round.
        size: Ratio,
        /// p-value of the differences between rounds.
        p: f64,
    },
    /// Results depend on the preceding trial.
    CarryOver {
        /// Filesystem of the preceding trial.
        after: String,
        /// Relative difference of the results after this filesystem.
        size: Ratio,
        /// p-value of this difference.
        p: f64,
    },
    /// The A/A duplicates differ by more than the equivalence margin.
    AaDifference {
        /// Noise: 95 % of the differences between A/A duplicates are at most this large.
        noise: Ratio,
        /// Equivalence margin of the profile.
        threshold: Ratio,
    },
    /// Too many trials were invalid.
    ManyInvalidTrials {
        /// Number of invalid trials.
        invalid: u32,
        /// Number of trials.
        of: u32,
    },
    /// The run reached its time limit before the cell met the stopping rule.
    TimeLimitReached,
    /// The value was imported from the output of another program.
    Imported {
        /// Program and version.
        program: String,
    },
    /// The run was interrupted and resumed.
    Resumed {
        /// Environment facts that differ after the run was resumed; empty if there are none.
        differs: String,
    },
}

impl Warning {
    /// Effect on the value that the warning qualifies.
    pub fn severity(&self) -> Severity {
        match self {
            Self::TooFewRepetitions { .. }
            | Self::FsckFailed { .. }
            | Self::EstimatesDisagree { .. }
            | Self::ManyInvalidTrials { .. }
            | Self::NotSteadyState { .. }
            | Self::CpuThrottled { .. }
            | Self::ImplausibleResult { .. } => Severity::Blocking,
            // Emulation slows different operations by different factors, which can reverse a
            // ranking.
            Self::MeasuredInGuest {
                kind: GuestKind::Uml | GuestKind::Tcg | GuestKind::Auto,
                ..
            } => Severity::Blocking,
            Self::MeasuredInGuest { kind: GuestKind::Kvm | GuestKind::Icount, .. }
            | Self::PlanOverridden { .. }
            | Self::NotAvailable { .. }
            | Self::NotSupported { .. }
            | Self::Outliers { .. }
            | Self::TimeLimitReached
            | Self::NetworkAccess
            | Self::ClosedLoop { .. }
            | Self::LogTruncated { .. }
            | Self::ClonesCopied { .. }
            | Self::Imported { .. } => Severity::Info,
            Self::Resumed { differs } if differs.is_empty() => Severity::Info,
            Self::FileCalls { share, .. } if share.0 >= 0.1 => Severity::Info,
            Self::WideInterval { .. }
            | Self::CacheNotCold { .. }
            | Self::CacheNotDropped { .. }
            | Self::FitsInMemory { .. }
            | Self::SharedStorage { .. }
            | Self::DeviceSizesDiffer { .. }
            | Self::EmptyFilesystems
            | Self::NotDurable
            | Self::CompressibleData
            | Self::SettingNotApplied { .. }
            | Self::MemoryLimitNotSet { .. }
            | Self::DeviceNotIdle { .. }
            | Self::SlowClock { .. }
            | Self::GeneratorBound { .. }
            | Self::ShortPhase { .. }
            | Self::CacheNotWarm { .. }
            | Self::PartlyCached { .. }
            | Self::CpuBound { .. }
            | Self::OtherCpuLoad { .. }
            | Self::OtherIoLoad { .. }
            | Self::ResourcePressure { .. }
            | Self::CpuSteal { .. }
            | Self::UnwrittenData { .. }
            | Self::ReducedWrites { .. }
            | Self::DeferredWork { .. }
            | Self::KernelMessage { .. }
            | Self::OptionRemoved { .. }
            | Self::NotRebooted
            | Self::ClockUncertain { .. }
            | Self::OwnDataRead
            | Self::GuestIdle { .. }
            | Self::SteadyStateNotReached
            | Self::FlushNotPassed
            | Self::SettingEmulated { .. }
            | Self::UnexpectedStatus { .. }
            | Self::LeftoverProcesses { .. }
            | Self::FileCalls { .. }
            | Self::ReportedRateDiffers { .. }
            | Self::Bimodal { .. }
            | Self::Drift { .. }
            | Self::CarryOver { .. }
            | Self::AaDifference { .. }
            | Self::Resumed { .. } => Severity::Warning,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_serde_tags() {
        let examples = Warning::examples();
        let mut codes: Vec<_> = examples.iter().map(Warning::code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), examples.len());
        for warning in examples {
            let value = serde_json::to_value(&warning).unwrap();
            assert_eq!(value["code"], warning.code());
            assert_eq!(serde_json::from_value::<Warning>(value).unwrap(), warning);
            assert!(!warning.message().ends_with('.') && !warning.hint().ends_with('.'));
        }
    }
}
