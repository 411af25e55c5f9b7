//! Messages of the warnings: observed facts with their values.

use super::Warning;
use crate::{
    guest::GuestKind,
    units::{Ratio, plural},
};

impl Warning {
    /// Message with the observed values, in lower case and without a full stop.
    #[expect(clippy::too_many_lines, reason = "table with one entry per warning")]
    pub fn message(&self) -> String {
        match self {
            Self::TooFewRepetitions { n, needed } => {
                let n = plural(*n, "repetition");
                format!("{n}, {needed} needed for a 95 % confidence interval")
            }
            Self::WideInterval { half_width, target } => format!(
                "confidence interval ±{:.1} %, target ±{:.1} %",
                half_width.0 * 100.0,
                target.0 * 100.0
            ),
            Self::CacheNotCold { requested, from_device } => format!(
                "expected a cold cache, but only {} of {} bytes came from the device",
                from_device.0, requested.0
            ),
            Self::CacheNotDropped { reason, .. } => format!("cannot drop the caches: {reason}"),
            Self::FitsInMemory { working_set, memory } => {
                let (files, memory) = (working_set.rough(), memory.rough());
                format!(
                    "the files ({files}) fit in the memory available to the workload ({memory})"
                )
            }
            Self::SharedStorage { storage, directory: true } => {
                format!(
                    "the storage is {storage}; I/O by other users of its disk is included in the \
                     device counters, so amplification is not available"
                )
            }
            Self::SharedStorage { storage, directory: false } => {
                format!("the storage is {storage}, not a dedicated disk")
            }
            Self::DeviceSizesDiffer { sizes } => {
                format!(
                    "the devices have different sizes ({sizes}), which may explain a difference \
                     between them"
                )
            }
            Self::EmptyFilesystems => {
                "filesystems of several sizes are compared without files: mkfs, mount, and fsck \
                 times do not include content"
                    .into()
            }
            Self::ClosedLoop { member } => format!(
                "member `{member}` is a closed loop: it starts fewer operations while it is slowed \
                 down, so that its latencies understate the slowdown"
            ),
            Self::NotDurable => "writes were accepted but not synced".into(),
            Self::CompressibleData => {
                "the written data is compressible and contains duplicates".into()
            }
            Self::SettingNotApplied { setting, wanted, found } => {
                format!("{setting}: set to `{wanted}`, reads back `{found}`")
            }
            Self::MemoryLimitNotSet { reason } => format!("cannot set the memory limit: {reason}"),
            Self::DeviceNotIdle { waited } => {
                format!("the device was still busy after {:.1} s", waited.seconds())
            }
            Self::SlowClock { cost, median } => format!(
                "reading the clock takes {} ns, the median operation {} ns",
                cost.0, median.0
            ),
            Self::GeneratorBound { share, loop_time } => format!(
                "the load generator used {:.0} % of the worker time ({} ns per operation)",
                share.0 * 100.0,
                loop_time.0
            ),
            Self::ShortPhase { elapsed } => format!(
                "the phase lasted {:.1} ms, too short for a reliable result",
                elapsed.seconds() * 1e3
            ),
            Self::CacheNotWarm { cached } => format!(
                "expected a warm cache, but only {} of the bytes read came from memory",
                percent(*cached)
            ),
            Self::PartlyCached { cached } => format!(
                "{} of the bytes read came from memory; the result depends on the memory size",
                percent(*cached)
            ),
            Self::CpuBound { who, share } => format!(
                "{who} used {} of one CPU; the storage was not the bottleneck",
                percent(*share)
            ),
            Self::OtherCpuLoad { share, who } => format!(
                "other processes used {} of the CPU time, most of it {who}",
                percent(*share)
            ),
            Self::OtherIoLoad { device, bytes, share } => format!(
                "other I/O on {device}: {}, {} of its total",
                bytes.rough(),
                percent(*share)
            ),
            Self::ResourcePressure { resource, share } => {
                format!("some tasks were stalled on {resource} for {} of the time", percent(*share))
            }
            Self::CpuSteal { share } => {
                format!("the hypervisor stole {} of the CPU time", percent(*share))
            }
            Self::CpuThrottled { events } => {
                let times = if *events == 1 { "time" } else { "times" };
                format!("the CPU was throttled {events} {times} (temperature or power limit)")
            }
            Self::NotSteadyState { range, slope } => format!(
                "no steady state: the rate varied by {} and drifted by {} of its mean",
                percent(*range),
                percent(*slope)
            ),
            Self::SteadyStateNotReached => {
                "the phase ended by its runtime or size, before its rate was steady".into()
            }
            Self::LogTruncated { missing } => format!(
                "the logs end before the phase: {missing} operations are missing, because the \
                 reserved memory was full"
            ),
            Self::UnwrittenData { left, written } => format!(
                "up to {} of {} written bytes were still dirty at the end",
                left.0, written.0
            ),
            Self::ReducedWrites { amplification } => format!(
                "the devices wrote {:.2} bytes per byte synced: data was compressed, \
                 deduplicated, or skipped",
                amplification.0
            ),
            Self::ImplausibleResult { what } => format!("implausibly fast: {what}"),
            Self::DeferredWork { who, time } => format!(
                "deferred filesystem work ran during the phase: {who} used {:.1} ms of CPU time",
                time.seconds() * 1e3
            ),
            Self::KernelMessage { line, lines: 1 } => format!("kernel log: {line}"),
            Self::KernelMessage { line, lines } => {
                format!("kernel log: {lines} messages, first: {line}")
            }
            Self::NotAvailable { what, why } => format!("{what} is not available: {why}"),
            Self::FsckFailed { verdict } => format!("fsck failed after the workload: {verdict}"),
            Self::PlanOverridden { what } => format!("the plan was overridden: {what}"),
            Self::OptionRemoved { option, instead } => format!("{option} was removed: {instead}"),
            Self::NotSupported { what, why } => {
                format!("skipped: {what} is not supported by the filesystem or kernel ({why})")
            }
            Self::NotRebooted => "the machine was not rebooted before this trial".into(),
            Self::ClockUncertain { bound, share } => format!(
                "the clocks of the hosts are known to ± {}, {} of the phase",
                bound,
                percent(*share)
            ),
            Self::OwnDataRead => {
                "each host read the files that it wrote; its cache may contain them".into()
            }
            Self::MeasuredInGuest { kind: GuestKind::Kvm, .. } => "measured in a KVM guest".into(),
            Self::MeasuredInGuest { kind: GuestKind::Icount, latency: Some(latency) } => format!(
                "virtual time: 1 ns per instruction plus {latency} per device request; one CPU, \
                 no cache, memory, or lock-contention effects"
            ),
            Self::MeasuredInGuest { kind: GuestKind::Icount, latency: None } => {
                "guest instruction counts; one CPU, no cache, memory, or lock-contention effects"
                    .into()
            }
            Self::MeasuredInGuest { kind, .. } => format!(
                "measured in an emulated guest ({kind}); its times do not represent performance"
            ),
            Self::GuestIdle { share } => format!(
                "the guest CPU was idle for {} of the phase; idle time is subtracted from the \
                 phase but not from single operations",
                percent(*share)
            ),
            Self::FlushNotPassed => {
                "user-mode Linux does not pass flushes to the host; fsync was not durable".into()
            }
            Self::SettingEmulated { wanted, instead, why } => {
                format!("{wanted} was emulated by {instead}: {why}")
            }
            Self::UnexpectedStatus { count, of } => {
                format!("{count} of {of} operations returned another status than recorded")
            }
            Self::ClonesCopied { count } => format!(
                "the filesystem cannot share blocks; replayed as copies: {} (FICLONE)",
                plural(*count, "clone")
            ),
            Self::LeftoverProcesses { who } => {
                format!("processes of the command still ran after its end and were killed: {who}")
            }
            Self::FileCalls { share, calls, syncs, read, written, mapped } => {
                let mut text = format!(
                    "file calls take {} of the time of the programs, without that of the recorder: {}, {}, \
                     {} read, {} written",
                    percent(*share),
                    plural(*calls, "call"),
                    plural(*syncs, "sync"),
                    read.rough(),
                    written.rough()
                );
                if mapped.0 / 9 > read.0 + written.0 {
                    text += &format!("; {} were mapped, which is not included", mapped.rough());
                }
                text
            }
            Self::NetworkAccess => "the programs could use the network of the host".into(),
            Self::ReportedRateDiffers { reported, logged } => format!(
                "the program reported {reported:.1} operations per second, its log has \
                 {logged:.1}"
            ),
            Self::Bimodal { lower, higher, ratio } => format!(
                "bimodal results: {} near the lower value, {higher} near a value {} higher; the \
                 median represents neither",
                plural(*lower, "repetition"),
                percent(Ratio(ratio.0 - 1.0))
            ),
            Self::Outliers { severe, of } => format!(
                "{severe} of {of} repetitions are outliers (more than 10 robust standard \
                 deviations from the median); none was removed"
            ),
            Self::EstimatesDisagree { what } => format!("another method disagrees: {what}"),
            Self::Drift { size, p } => format!(
                "rounds differ ({}): results changed by {:+.1} % from the first to the last round",
                chance(*p),
                size.0 * 100.0
            ),
            Self::CarryOver { after, size, p } => format!(
                "trials right after {after} differ by {:+.1} % ({})",
                size.0 * 100.0,
                chance(*p)
            ),
            Self::AaDifference { noise, threshold } => format!(
                "identical cells differ by up to {}, more than the equivalence margin of {}",
                percent(*noise),
                percent(*threshold)
            ),
            Self::ManyInvalidTrials { invalid, of } => format!(
                "{invalid} of {of} trials were invalid because of other activity on the machine"
            ),
            Self::TimeLimitReached => "the run reached its time limit".into(),
            Self::Imported { program } => {
                format!("imported from {program}, not measured by fslab")
            }
            Self::Resumed { differs } if differs.is_empty() => {
                "the run was interrupted and resumed".into()
            }
            Self::Resumed { differs } => {
                format!("the run was interrupted and resumed with different {differs}")
            }
        }
    }
}

/// p-value with three decimals, or its upper bound.
fn chance(p: f64) -> String {
    if p < 0.001 { "p < 0.001".into() } else { format!("p = {p:.3}") }
}

fn percent(share: Ratio) -> String {
    format!("{:.1} %", share.0 * 100.0)
}
