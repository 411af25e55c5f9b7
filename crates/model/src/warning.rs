//! What is wrong with a measurement, as a value that travels with the number it qualifies.
//!
//! The reference page `docs/reference/warnings.md` is made from this table. A warning always
//! says what was seen and what cures it.

mod cures;
mod examples;
mod messages;

use serde::{Deserialize, Serialize};

use crate::{
    guest::GuestKind,
    units::{Bytes, Nanos, Ratio},
};

/// What a warning does to the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Worth knowing.
    Info,
    /// Shown at the number; read it with care.
    Warn,
    /// No claim is made from the number.
    Block,
}

impl Level {
    /// One word for tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warning",
            Self::Block => "no claim",
        }
    }
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum Warning {
    /// Too few repeats for an interval.
    Few {
        /// Repeats there are.
        n: u32,
        /// Repeats an interval at 95 % needs.
        needed: u32,
    },
    /// The interval is wider than the profile's target.
    Wide {
        /// Half-width relative to the median.
        half_width: Ratio,
        /// The target.
        target: Ratio,
    },
    /// A phase that should have started cold was served from memory.
    NotCold {
        /// Bytes the phase asked for.
        asked: Bytes,
        /// Bytes that came from the device.
        from_device: Bytes,
    },
    /// The caches could not be emptied.
    CacheKept {
        /// Why not.
        reason: String,
    },
    /// The file fits into the memory the workload may use.
    FitsMemory {
        /// Size of all files together.
        working_set: Bytes,
        /// Memory of the workload.
        memory: Bytes,
    },
    /// What lies under the filesystem is not a disk of its own.
    Backing {
        /// What it is.
        what: String,
    },
    /// Written data was not flushed inside or after the timed region.
    Unsynced,
    /// The data written can be compressed or deduplicated.
    Compressible,
    /// A setting reads back otherwise than it was set.
    ReadBack {
        /// The setting.
        setting: String,
        /// What was asked for.
        wanted: String,
        /// What the kernel says.
        found: String,
    },
    /// The plan's memory limit could not be set.
    MemoryUnlimited {
        /// Why not.
        reason: String,
    },
    /// The device was still busy when the phase had to start.
    NotIdle {
        /// How long it was waited for.
        waited: Nanos,
    },
    /// The clock is too coarse or too slow to read for the operations timed.
    Clock {
        /// Cost of reading it.
        cost: Nanos,
        /// Median operation.
        median: Nanos,
    },
    /// The load generator itself took a large part of the workers' time.
    GeneratorBound {
        /// Time of the loop without calls over the workers' time for each operation.
        share: Ratio,
        /// Time of the loop without calls, for one operation.
        loop_time: Nanos,
    },
    /// The phase was over too soon to say much.
    Short {
        /// How long it took.
        elapsed: Nanos,
    },
    /// A phase that should have found its data in memory read a device.
    NotWarm {
        /// The part of the bytes that came from memory.
        cached: Ratio,
    },
    /// Part of what was read came from memory, and part from the devices.
    Mixed {
        /// The part of the bytes that came from memory.
        cached: Ratio,
    },
    /// Something used a processor for nearly all of the time.
    CpuBound {
        /// Who: the workers, or a kind of kernel thread.
        who: String,
        /// Its CPU time over elapsed time; 1 is one processor.
        share: Ratio,
    },
    /// Others used the processors.
    ForeignCpu {
        /// Their part of the time of all processors.
        share: Ratio,
        /// Who used the most.
        who: String,
    },
    /// Others used the devices.
    ForeignIo {
        /// The device.
        device: String,
        /// Bytes beyond what the workload accounts for.
        bytes: Bytes,
        /// The same over all bytes of the device.
        share: Ratio,
    },
    /// Tasks waited for a resource.
    Pressure {
        /// Which: `memory` or `a processor`.
        resource: String,
        /// The part of the time.
        share: Ratio,
    },
    /// The hypervisor gave processor time to others.
    Steal {
        /// The part of the time of all processors.
        share: Ratio,
    },
    /// A processor was slowed down for its temperature or power.
    Throttled {
        /// How often.
        events: u64,
    },
    /// The rate still moved when it should have been steady.
    NotSteady {
        /// Largest less smallest interval, over the mean.
        range: Ratio,
        /// How far the fitted line moves over the window, over the mean.
        slope: Ratio,
    },
    /// Much of what was written was still in memory at the end.
    Dirty {
        /// Bytes not yet written back, of the whole machine.
        left: Bytes,
        /// Bytes written.
        written: Bytes,
    },
    /// The devices wrote less than was flushed.
    Shrunk {
        /// Bytes the devices wrote for each byte flushed.
        amplification: Ratio,
    },
    /// Faster than is possible.
    Impossible {
        /// What was seen, and what bounds it.
        what: String,
    },
    /// The filesystem did what it had put off.
    Background {
        /// The kernel thread.
        who: String,
        /// Its CPU time.
        time: Nanos,
    },
    /// The kernel logged something about the filesystem or its devices.
    KernelLog {
        /// The line; the first if there are many.
        line: String,
        /// How many lines.
        lines: u64,
    },
    /// Evidence that the machine does not give.
    Absent {
        /// What.
        what: String,
        /// Why, and what would help.
        why: String,
    },
    /// The read-only check found errors after the workload.
    Damaged {
        /// The check's exit status and first words.
        verdict: String,
    },
    /// The plan or its size was changed from the command line.
    Amended {
        /// What was changed.
        what: String,
    },
    /// A mount option or an argument of mkfs that today's kernel or tool no longer has was left out
    /// or replaced.
    OptionGone {
        /// As the plan has it: `nobh of ext4`.
        option: String,
        /// Since when it is gone, and what was done instead.
        instead: String,
    },
    /// The phase was left out since the filesystem or the kernel does not have what it is about.
    Lacks {
        /// What it lacks.
        what: String,
        /// What the kernel said when it was tried.
        why: String,
    },
    /// The machine was to be booted between trials, and was not.
    NotRebooted,
    /// It was measured in a guest whose times are not those of a machine.
    InGuest {
        /// What ran the guest.
        kind: GuestKind,
        /// What each request takes on the device of a guest that counts; `None` for no time, and
        /// for all others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        latency: Option<Nanos>,
    },
    /// The clock of a guest that counts instructions jumped while its processor had nothing to do:
    /// something waited for a time to pass.
    Idle {
        /// The part of the phase that was jumped over.
        share: Ratio,
    },
    /// What the guest flushed stayed in the memory of its host.
    HostNotFlushed,
    /// A setting that the machine does not have was brought about by other means.
    StandIn {
        /// What was asked for: `cpu_speed 50%`.
        wanted: String,
        /// What was done instead.
        instead: String,
        /// Why.
        why: String,
    },
    /// Operations of a replay went otherwise than their load file has it.
    Unexpected {
        /// How many.
        count: u64,
        /// Of how many.
        of: u64,
    },
    /// The repeats gather around two values.
    Modes {
        /// Repeats around the lower one.
        lower: u32,
        /// Repeats around the higher one.
        higher: u32,
        /// The higher over the lower, by their medians.
        ratio: Ratio,
    },
    /// Repeats lie far from the others; none is left out.
    Outliers {
        /// How many lie further than 10 robust standard deviations away.
        severe: u32,
        /// Of how many.
        of: u32,
    },
    /// Ways to compare that rest on other assumptions come to another answer.
    Disagree {
        /// Which, and what it says.
        what: String,
    },
    /// All cells moved together over the run.
    Drift {
        /// How far from the first block to the last, as a part of the values; negative where they
        /// fell.
        size: Ratio,
        /// How likely chance alone moves the blocks as far apart.
        p: f64,
    },
    /// What was measured depends on what had been measured right before.
    CarryOver {
        /// After which filesystem.
        after: String,
        /// By how much, as a part of the values.
        size: Ratio,
        /// How likely chance alone does as much.
        p: f64,
    },
    /// Two cells of the same differ more than differences that were to be told.
    TwinsDiffer {
        /// What chance alone makes of a ratio of two cells: 95 % of the twins lie within.
        noise: Ratio,
        /// The practical threshold that was asked for.
        threshold: Ratio,
    },
    /// Too many trials were spoiled by what else the machine did.
    Unstable {
        /// Invalid trials.
        invalid: u32,
        /// Of how many.
        of: u32,
    },
    /// The time for the run was used up before the cell was known well enough.
    OverBudget,
    /// The number was not measured by this program, but read from another program's record.
    Imported {
        /// Which program and version.
        program: String,
    },
    /// The run was interrupted and went on later.
    Resumed {
        /// Names of the facts about the host that had changed by then; empty if none.
        differs: String,
    },
}

impl Warning {
    /// Its code, as in the reference page.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Few { .. } => "W-FEW",
            Self::Wide { .. } => "W-WIDE",
            Self::NotCold { .. } => "W-CACHE",
            Self::CacheKept { .. } => "W-CACHEKEPT",
            Self::FitsMemory { .. } => "W-FITS",
            Self::Backing { .. } => "W-BACKING",
            Self::Unsynced => "W-UNSYNCED",
            Self::Compressible => "W-ENTROPY",
            Self::ReadBack { .. } => "W-READBACK",
            Self::MemoryUnlimited { .. } => "W-MEMORY",
            Self::NotIdle { .. } => "W-NOTIDLE",
            Self::Clock { .. } => "W-CLOCK",
            Self::GeneratorBound { .. } => "W-GENBOUND",
            Self::Short { .. } => "W-SHORT",
            Self::NotWarm { .. } => "W-NOTWARM",
            Self::Mixed { .. } => "W-MIXED",
            Self::CpuBound { .. } => "W-CPUBOUND",
            Self::ForeignCpu { .. } => "W-FOREIGN",
            Self::ForeignIo { .. } => "W-FOREIGNIO",
            Self::Pressure { .. } => "W-PSI",
            Self::Steal { .. } => "W-STEAL",
            Self::Throttled { .. } => "W-THROTTLE",
            Self::NotSteady { .. } => "W-NOSTEADY",
            Self::Dirty { .. } => "W-DIRTY",
            Self::Shrunk { .. } => "W-SHRUNK",
            Self::Impossible { .. } => "W-IMPOSSIBLE",
            Self::Background { .. } => "W-BACKGROUND",
            Self::KernelLog { .. } => "W-KLOG",
            Self::Absent { .. } => "W-ABSENT",
            Self::Damaged { .. } => "W-DAMAGED",
            Self::Amended { .. } => "W-PLAN",
            Self::OptionGone { .. } => "W-OPTION",
            Self::Lacks { .. } => "W-LACKS",
            Self::NotRebooted => "W-NOTREBOOTED",
            Self::InGuest { .. } => "W-GUEST",
            Self::Idle { .. } => "W-IDLE",
            Self::HostNotFlushed => "W-HOSTFLUSH",
            Self::StandIn { .. } => "W-STANDIN",
            Self::Unexpected { .. } => "W-UNEXPECTED",
            Self::Modes { .. } => "W-BIMODAL",
            Self::Outliers { .. } => "W-OUTLIER",
            Self::Disagree { .. } => "W-ASSUME",
            Self::Drift { .. } => "W-DRIFT",
            Self::CarryOver { .. } => "W-CARRY",
            Self::TwinsDiffer { .. } => "W-AA",
            Self::Unstable { .. } => "W-MANYINV",
            Self::OverBudget => "W-BUDGET",
            Self::Imported { .. } => "W-IMPORTED",
            Self::Resumed { .. } => "W-RESUMED",
        }
    }

    /// What it does to the number.
    pub fn level(&self) -> Level {
        match self {
            Self::Few { .. }
            | Self::Damaged { .. }
            | Self::Disagree { .. }
            | Self::Unstable { .. }
            | Self::NotSteady { .. }
            | Self::Throttled { .. }
            | Self::Impossible { .. } => Level::Block,
            // What emulation does to the time of one operation it does not do to another's, so
            // that orders turn round.
            Self::InGuest { kind: GuestKind::Uml | GuestKind::Tcg | GuestKind::Auto, .. } => {
                Level::Block
            }
            Self::InGuest { kind: GuestKind::Kvm | GuestKind::Counted, .. } => Level::Info,
            Self::Amended { .. }
            | Self::Absent { .. }
            | Self::Lacks { .. }
            | Self::Outliers { .. }
            | Self::OverBudget
            | Self::Imported { .. } => Level::Info,
            Self::OptionGone { .. }
            | Self::NotRebooted
            | Self::HostNotFlushed
            | Self::Idle { .. }
            | Self::StandIn { .. }
            | Self::Modes { .. }
            | Self::Drift { .. }
            | Self::CarryOver { .. }
            | Self::TwinsDiffer { .. }
            | Self::Unexpected { .. } => Level::Warn,
            Self::Resumed { differs } if differs.is_empty() => Level::Info,
            Self::Wide { .. }
            | Self::NotCold { .. }
            | Self::CacheKept { .. }
            | Self::FitsMemory { .. }
            | Self::Backing { .. }
            | Self::Unsynced
            | Self::Compressible
            | Self::ReadBack { .. }
            | Self::MemoryUnlimited { .. }
            | Self::NotIdle { .. }
            | Self::Clock { .. }
            | Self::GeneratorBound { .. }
            | Self::Short { .. }
            | Self::NotWarm { .. }
            | Self::Mixed { .. }
            | Self::CpuBound { .. }
            | Self::ForeignCpu { .. }
            | Self::ForeignIo { .. }
            | Self::Pressure { .. }
            | Self::Steal { .. }
            | Self::Dirty { .. }
            | Self::Shrunk { .. }
            | Self::Background { .. }
            | Self::KernelLog { .. }
            | Self::Resumed { .. } => Level::Warn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_every_warning_reads_back() {
        let examples = Warning::examples();
        let mut codes: Vec<_> = examples.iter().map(Warning::code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), examples.len());
        for warning in examples {
            let text = serde_json::to_string(&warning).unwrap();
            assert_eq!(serde_json::from_str::<Warning>(&text).unwrap(), warning);
            assert!(!warning.message().ends_with('.') && !warning.cure().ends_with('.'));
        }
    }
}
