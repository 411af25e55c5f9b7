//! Hints of the warnings.

use super::Warning;
use crate::guest::GuestKind;

impl Warning {
    /// Hint without a full stop: how to avoid the warning, or how to interpret the value.
    #[expect(clippy::too_many_lines, reason = "table with one entry per warning")]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::TooFewRepetitions { .. } => {
                "run at least 6 repetitions: raise or remove `repetitions`, or continue an \
                 interrupted run with --resume"
            }
            Self::WideInterval { .. } => {
                "run more repetitions (raise or remove `repetitions`, or use --profile rigorous), \
                 a longer workload, or a quieter machine"
            }
            Self::CacheNotCold { .. } => {
                "run as root on an image or device so that the filesystem can be remounted"
            }
            Self::CacheNotDropped { needs_root: true, .. } => "run as root",
            Self::CacheNotDropped { needs_root: false, .. } => {
                "put the storage on a disk (`image_directory`); data in memory cannot be cold"
            }
            Self::FitsInMemory { .. } => {
                "use files at least twice as large as memory, or set `storage.memory_limit` below \
                 half their size"
            }
            Self::SharedStorage { directory: true, .. } => {
                "results apply to this mounted filesystem only; as root, use `storage.image_size` \
                 or `storage.device`"
            }
            Self::SharedStorage { directory: false, .. } => "use a spare disk (`storage.device`)",
            Self::DeviceSizesDiffer { .. } => "use devices, partitions, or images of one size",
            Self::EmptyFilesystems => {
                "generate files with a `populate` step of `setup`, or set `fill_percent`"
            }
            Self::ClosedLoop { .. } => {
                "use an open loop: set `rate` and `arrivals` of the member (suite stream)"
            }
            Self::NotDurable => "use the durable throughput, or remove `compat`",
            Self::CompressibleData => {
                "write random data: `incompressible_fraction = 1.0` without `compat` (iozone), \
                 `content = \"random\"` (bonnie); loadfiles always write zeros"
            }
            Self::SettingNotApplied { .. } => {
                "remove the setting, use a supported value, or use another kernel"
            }
            Self::MemoryLimitNotSet { .. } => {
                "run as root on a kernel with the cgroup memory controller"
            }
            Self::DeviceNotIdle { .. } => "stop other users of the device",
            Self::SlowClock { .. } => "use larger operations, or a machine with clocksource tsc",
            Self::GeneratorBound { .. } => {
                "use larger operations, or treat the result as a lower bound"
            }
            Self::ShortPhase { .. } => "use larger files or a longer `runtime`",
            Self::CacheNotWarm { .. } => "use files smaller than memory, or raise `memory_limit`",
            Self::PartlyCached { .. } => {
                "use files at least twice as large as memory, or much smaller"
            }
            Self::CpuBound { .. } => {
                "treat the result as CPU cost; more workers may saturate the storage"
            }
            Self::OtherCpuLoad { .. } => "stop other processes",
            Self::OtherIoLoad { .. } => "stop other users of the device, or use a dedicated one",
            Self::ResourcePressure { .. } => {
                "give the workload more of the resource, or stop other processes"
            }
            Self::CpuSteal { .. } => "use a dedicated machine or a less loaded host",
            Self::CpuThrottled { .. } => "improve cooling, or set a lower CPU frequency",
            Self::LogTruncated { .. } => "set `log_avg_msec`, or use a shorter `runtime`",
            Self::SteadyStateNotReached => "increase `runtime`, or the limit of `steadystate`",
            Self::NotSteadyState { .. } => "increase `runtime` and `ramp_time`",
            Self::UnwrittenData { .. } => {
                "sync at the end (`sync_after = true`, `fsync_writes = true`), or use the durable \
                 result"
            }
            Self::ReducedWrites { .. } => {
                "use incompressible data, unless data reduction is the subject"
            }
            Self::ImplausibleResult { .. } => {
                "check the cache hit ratio, the device counters, and the clock"
            }
            Self::DeferredWork { .. } => {
                "wait longer before the phase, or disable deferral with mkfs options"
            }
            Self::KernelMessage { .. } => "inspect the kernel log with dmesg",
            Self::NotAvailable { .. } => "treat dependent values as unknown, not as zero",
            Self::FsckFailed { .. } => {
                "keep the image and report the bug to the filesystem developers"
            }
            Self::PlanOverridden { .. } => "compare only with runs that use the same overrides",
            Self::OptionRemoved { .. } => {
                "use the replacement; results from kernels with the option are not comparable"
            }
            Self::NotSupported { .. } => "use another filesystem or a newer kernel",
            Self::NotRebooted => {
                "reboot and run `fslab run --resume`, or set `isolation = \"remount\"`"
            }
            Self::ClockUncertain { .. } => "use longer phases or a network with less delay",
            Self::OwnDataRead => "set reader_shift to 1 to read the files of another host",
            Self::MeasuredInGuest { kind: GuestKind::Kvm, .. } => {
                "compare only with KVM guests; CPUs may be shared with the host"
            }
            Self::MeasuredInGuest { kind: GuestKind::Icount, latency: Some(_) } => {
                "compare only with virtual times for the same device latency"
            }
            Self::MeasuredInGuest { kind: GuestKind::Icount, latency: None } => {
                "treat the counts as CPU work, not as time; caches, memory, and devices also \
                 affect time"
            }
            Self::MeasuredInGuest {
                kind: GuestKind::Uml | GuestKind::Tcg | GuestKind::Auto,
                ..
            } => {
                "use the counts (requests, bytes, space); measure times on the host or with \
                 --guest kvm"
            }
            Self::GuestIdle { .. } => {
                "expect longer times on hardware; `guest_device_latency` includes the waiting as \
                 virtual time"
            }
            Self::FlushNotPassed => {
                "do not draw conclusions about durability; QEMU guests pass flushes"
            }
            Self::SettingEmulated { .. } => "compare only with results that use the same emulation",
            Self::UnexpectedStatus { .. } => {
                "check that the loadfile or recording is complete and the directory was empty; many \
                 deviations change the workload"
            }
            Self::ClonesCopied { .. } => {
                "compare with the filesystem of the recording only if the program would copy here, too"
            }
            Self::LeftoverProcesses { .. } => {
                "let the last program of `run` wait for its processes, or start them by `serve`"
            }
            Self::FileCalls { .. } => {
                "a filesystem that takes no time would save this share at most; `fslab record` \
                 lists the calls"
            }
            Self::NetworkAccess => {
                "remove `network = true`; without it, the kernel must allow network namespaces"
            }
            Self::ReportedRateDiffers { .. } => {
                "check `column` and `unit` of `latencies`, and that the log has all operations"
            }
            Self::Bimodal { .. } => {
                "look for a difference between the groups: disk location, memory limit, trial order"
            }
            Self::Outliers { .. } => "inspect the system activity of these repetitions",
            Self::EstimatesDisagree { .. } => {
                "inspect the repetitions; more of them may resolve the disagreement"
            }
            Self::Drift { .. } => {
                "let the machine stabilize first; comparisons use common rounds only"
            }
            Self::CarryOver { .. } => {
                "leave the device idle between trials, or discard it completely"
            }
            Self::AaDifference { .. } => "use a quieter machine or longer workloads",
            Self::ManyInvalidTrials { .. } => "stop the other activity, or use a dedicated machine",
            Self::TimeLimitReached => "raise `time_limit`, or remove it from the plan",
            Self::Imported { .. } => {
                "measure with fslab to get confidence intervals, system activity, and warnings"
            }
            Self::Resumed { .. } => "start a new run if the difference matters",
        }
    }
}
