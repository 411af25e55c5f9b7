//! Examples of all warnings.

use super::Warning;
use crate::{
    guest::GuestKind,
    units::{Bytes, Nanos, Ratio},
};

impl Warning {
    /// One example of each warning, for the reference page and for tests.
    #[allow(clippy::too_many_lines, reason = "one example of each")]
    pub fn examples() -> Vec<Self> {
        let text = |text: &str| text.to_owned();
        vec![
            Self::TooFewRepetitions { n: 3, needed: 6 },
            Self::WideInterval { half_width: Ratio(0.12), target: Ratio(0.03) },
            Self::CacheNotCold { requested: Bytes::mib(64), from_device: Bytes::mib(8) },
            Self::CacheNotDropped {
                reason: text("not root, so dentries and inodes stay cached"),
                needs_root: true,
            },
            Self::FitsInMemory { working_set: Bytes::mib(64), memory: Bytes::gib(8) },
            Self::SharedStorage {
                storage: text("an image file on a loop device"),
                directory: false,
            },
            Self::DeviceSizesDiffer { sizes: text("hdd 4 TiB, ssd 1 TiB") },
            Self::EmptyFilesystems,
            Self::ClosedLoop { member: text("log") },
            Self::NotDurable,
            Self::CompressibleData,
            Self::SettingNotApplied {
                setting: text("scheduler of loop3"),
                wanted: text("bfq"),
                found: text("none"),
            },
            Self::MemoryLimitNotSet { reason: text("the kernel has no memory controller") },
            Self::DeviceNotIdle { waited: Nanos(30_000_000_000) },
            Self::SlowClock { cost: Nanos(1200), median: Nanos(900) },
            Self::GeneratorBound { share: Ratio(0.17), loop_time: Nanos(31) },
            Self::ShortPhase { elapsed: Nanos(4_000_000) },
            Self::CacheNotWarm { cached: Ratio(0.61) },
            Self::PartlyCached { cached: Ratio(0.45) },
            Self::CpuBound { who: text("kworker btrfs-endio-write"), share: Ratio(0.98) },
            Self::OtherCpuLoad { share: Ratio(0.24), who: text("updatedb (/system.slice)") },
            Self::OtherIoLoad { device: text("sdb"), bytes: Bytes::mib(18), share: Ratio(0.07) },
            Self::ResourcePressure { resource: text("memory"), share: Ratio(0.04) },
            Self::CpuSteal { share: Ratio(0.011) },
            Self::CpuThrottled { events: 3 },
            Self::NotSteadyState { range: Ratio(0.42), slope: Ratio(0.18) },
            Self::SteadyStateNotReached,
            Self::LogTruncated { missing: 1_200_000 },
            Self::UnwrittenData { left: Bytes::mib(180), written: Bytes::mib(256) },
            Self::ReducedWrites { amplification: Ratio(0.04) },
            Self::ImplausibleResult {
                what: text("1 worker read 12 GB/s, memory bandwidth is 9 GB/s"),
            },
            Self::DeferredWork { who: text("ext4lazyinit"), time: Nanos(81_000_000) },
            Self::KernelMessage {
                line: text("EXT4-fs (loop3): mounted without journal"),
                lines: 1,
            },
            Self::NotAvailable {
                what: text("PSI"),
                why: text("disabled in this kernel; boot with psi=1"),
            },
            Self::FsckFailed { verdict: text("xfs_repair exit 1: bad magic") },
            Self::PlanOverridden { what: text("--scale 1/64") },
            Self::OptionRemoved {
                option: text("mount option nobh of ext4"),
                instead: text("ignored since Linux 3.5, buffer heads are not attached"),
            },
            Self::NotSupported {
                what: text("extended attributes"),
                why: text("Operation not supported (os error 95)"),
            },
            Self::NotRebooted,
            Self::ClockUncertain { bound: Nanos(2_000_000), share: Ratio(0.02) },
            Self::OwnDataRead,
            Self::MeasuredInGuest { kind: GuestKind::Tcg, latency: None },
            Self::GuestIdle { share: Ratio(0.12) },
            Self::FlushNotPassed,
            Self::SettingEmulated {
                wanted: text("cpu_speed 50%"),
                instead: text("a CPU quota of 50% (cgroup)"),
                why: text("the machine has no cpufreq"),
            },
            Self::UnexpectedStatus { count: 12, of: 458_344 },
            Self::ClonesCopied { count: 40 },
            Self::LeftoverProcesses { who: text("sleep") },
            Self::FileCalls {
                share: Ratio(0.042),
                calls: 21_088,
                syncs: 0,
                read: Bytes(3_145_728),
                written: Bytes(786_432),
                mapped: Bytes(9_437_184),
            },
            Self::NetworkAccess,
            Self::ReportedRateDiffers { reported: 812.0, logged: 640.5 },
            Self::Bimodal { lower: 3, higher: 9, ratio: Ratio(1.18) },
            Self::Outliers { severe: 1, of: 12 },
            Self::EstimatesDisagree {
                what: text("Welch's test on logarithms: ratio 0.93, p = 0.004"),
            },
            Self::Drift { size: Ratio(-0.061), p: 0.002 },
            Self::CarryOver { after: text("btrfs"), size: Ratio(-0.034), p: 0.004 },
            Self::AaDifference { noise: Ratio(0.083), threshold: Ratio(0.05) },
            Self::ManyInvalidTrials { invalid: 4, of: 12 },
            Self::TimeLimitReached,
            Self::Imported { program: text("bonnie++ 1.96") },
            Self::Resumed { differs: text("vm.swappiness") },
        ]
    }
}
