//! One of each warning, with plausible values.

use super::Warning;
use crate::{
    guest::GuestKind,
    units::{Bytes, Nanos, Ratio},
};

impl Warning {
    /// One of each, with plausible values: for the reference page and for tests that must see them
    /// all.
    pub fn examples() -> Vec<Self> {
        let text = |text: &str| text.to_owned();
        vec![
            Self::Few { n: 3, needed: 6 },
            Self::Wide { half_width: Ratio(0.12), target: Ratio(0.03) },
            Self::NotCold { asked: Bytes::mib(64), from_device: Bytes::mib(8) },
            Self::CacheKept { reason: text("not root") },
            Self::FitsMemory { working_set: Bytes::mib(64), memory: Bytes::gib(8) },
            Self::Backing { what: text("an image file on a loop device") },
            Self::Unsynced,
            Self::Compressible,
            Self::ReadBack {
                setting: text("scheduler of loop3"),
                wanted: text("bfq"),
                found: text("none"),
            },
            Self::MemoryUnlimited { reason: text("no memory controller") },
            Self::NotIdle { waited: Nanos(30_000_000_000) },
            Self::Clock { cost: Nanos(1200), median: Nanos(900) },
            Self::GeneratorBound { share: Ratio(0.17), loop_time: Nanos(31) },
            Self::Short { elapsed: Nanos(4_000_000) },
            Self::NotWarm { cached: Ratio(0.61) },
            Self::Mixed { cached: Ratio(0.45) },
            Self::CpuBound { who: text("kworker btrfs-endio-write"), share: Ratio(0.98) },
            Self::ForeignCpu { share: Ratio(0.24), who: text("updatedb (/system.slice)") },
            Self::ForeignIo { device: text("sdb"), bytes: Bytes::mib(18), share: Ratio(0.07) },
            Self::Pressure { resource: text("memory"), share: Ratio(0.04) },
            Self::Steal { share: Ratio(0.011) },
            Self::Throttled { events: 3 },
            Self::NotSteady { range: Ratio(0.42), slope: Ratio(0.18) },
            Self::Dirty { left: Bytes::mib(180), written: Bytes::mib(256) },
            Self::Shrunk { amplification: Ratio(0.04) },
            Self::Impossible { what: text("12 GB/s read by 1 worker where memory gives 9 GB/s") },
            Self::Background { who: text("ext4lazyinit"), time: Nanos(81_000_000) },
            Self::KernelLog { line: text("EXT4-fs (loop3): mounted without journal"), lines: 1 },
            Self::Absent {
                what: text("pressure"),
                why: text("the kernel keeps no account of it; boot with psi=1"),
            },
            Self::Damaged { verdict: text("xfs_repair exit 1: bad magic") },
            Self::Amended { what: text("--scale 1/64") },
            Self::OptionGone {
                option: text("mount option nobh of ext4"),
                instead: text("the kernel ignores it since 3.5, and attaches no buffer heads"),
            },
            Self::Lacks {
                what: text("extended attributes"),
                why: text("Operation not supported (os error 95)"),
            },
            Self::NotRebooted,
            Self::InGuest { kind: GuestKind::Tcg, latency: None },
            Self::Idle { share: Ratio(0.12) },
            Self::HostNotFlushed,
            Self::StandIn {
                wanted: text("cpu_speed 50%"),
                instead: text("half of the time of each processor (control group)"),
                why: text("the machine has no frequency to set"),
            },
            Self::Unexpected { count: 12, of: 458_344 },
            Self::Modes { lower: 3, higher: 9, ratio: Ratio(1.18) },
            Self::Outliers { severe: 1, of: 12 },
            Self::Disagree { what: text("Welch's test on logarithms says 0.93 with p = 0.004") },
            Self::Drift { size: Ratio(-0.061), p: 0.002 },
            Self::CarryOver { after: text("btrfs"), size: Ratio(-0.034), p: 0.004 },
            Self::TwinsDiffer { noise: Ratio(0.083), threshold: Ratio(0.05) },
            Self::Unstable { invalid: 4, of: 12 },
            Self::OverBudget,
            Self::Imported { program: text("bonnie++ 1.96") },
            Self::Resumed { differs: text("vm.swappiness") },
        ]
    }
}
