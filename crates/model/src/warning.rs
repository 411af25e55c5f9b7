//! What is wrong with a measurement, as a value that travels with the number it qualifies.
//!
//! The reference page `docs/reference/warnings.md` is made from this table. A warning always
//! says what was seen and what cures it.

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos, Ratio};

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
            Self::Damaged { .. } => "W-DAMAGED",
            Self::Amended { .. } => "W-PLAN",
            Self::Resumed { .. } => "W-RESUMED",
        }
    }

    /// What it does to the number.
    pub fn level(&self) -> Level {
        match self {
            Self::Few { .. } | Self::Damaged { .. } => Level::Block,
            Self::Amended { .. } => Level::Info,
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
            | Self::Resumed { .. } => Level::Warn,
        }
    }

    /// What was seen, one sentence without a full stop.
    pub fn message(&self) -> String {
        match self {
            Self::Few { n, needed } => {
                format!("{n} repeats give no interval; {needed} are needed for 95 %")
            }
            Self::Wide { half_width, target } => format!(
                "the interval is ±{:.1} % wide, the target was ±{:.1} %",
                half_width.0 * 100.0,
                target.0 * 100.0
            ),
            Self::NotCold { asked, from_device } => format!(
                "should have started cold, yet of {} bytes asked for only {} came from the device",
                asked.0, from_device.0
            ),
            Self::CacheKept { reason } => format!("the caches could not be emptied: {reason}"),
            Self::FitsMemory { working_set, memory } => {
                format!("the files ({working_set}) fit into the workload's memory ({memory})")
            }
            Self::Backing { what } => format!("the storage is {what}, not a disk of its own"),
            Self::Unsynced => "written data was accepted, not made durable".into(),
            Self::Compressible => "the data written can be compressed and deduplicated".into(),
            Self::ReadBack { setting, wanted, found } => {
                format!("{setting} was set to `{wanted}` but reads `{found}`")
            }
            Self::MemoryUnlimited { reason } => {
                format!("the memory limit could not be set: {reason}")
            }
            Self::NotIdle { waited } => {
                format!("the device was still busy after {:.1} s", waited.seconds())
            }
            Self::Clock { cost, median } => format!(
                "reading the clock costs {} ns, the median operation only {} ns",
                cost.0, median.0
            ),
            Self::GeneratorBound { share, loop_time } => format!(
                "{:.0} % of the workers' time went into the load generator itself, {} ns for each \
                 operation",
                share.0 * 100.0,
                loop_time.0
            ),
            Self::Short { elapsed } => {
                format!("over after {:.1} ms, too short to trust", elapsed.seconds() * 1e3)
            }
            Self::Damaged { verdict } => format!("the check after the workload failed: {verdict}"),
            Self::Amended { what } => format!("not run as the plan is written: {what}"),
            Self::Resumed { differs } if differs.is_empty() => {
                "the run was interrupted and went on later".into()
            }
            Self::Resumed { differs } => {
                format!("the run was interrupted and went on later, when these differed: {differs}")
            }
        }
    }

    /// What to do about it, one sentence without a full stop.
    pub fn cure(&self) -> &'static str {
        match self {
            Self::Few { .. } => "leave `repeats` out of the plan, or set it to 6 or more",
            Self::Wide { .. } => "use --profile rigorous, a longer workload or a quieter machine",
            Self::NotCold { .. } => "run as root on a device or image, so that it can be remounted",
            Self::CacheKept { .. } => "run as root",
            Self::FitsMemory { .. } => {
                "make the files at least twice as large, or set `storage.memory` below half of them"
            }
            Self::Backing { .. } => "name a spare disk with `storage.device`",
            Self::Unsynced => "read the durable throughput beside it, or leave `compat` out",
            Self::Compressible => "leave `compat` out and set `entropy = 1.0`",
            Self::ReadBack { .. } => {
                "take the setting out of the plan, or use a kernel that has it"
            }
            Self::MemoryUnlimited { .. } => "run as root on a kernel with the memory controller",
            Self::NotIdle { .. } => "stop what else uses the device",
            Self::Clock { .. } => "use larger records, or a machine whose clocksource is tsc",
            Self::GeneratorBound { .. } => {
                "use larger operations, else read the number as a lower bound"
            }
            Self::Short { .. } => "make the files larger, or the time longer",
            Self::Damaged { .. } => "keep the image and report it to the filesystem's developers",
            Self::Amended { .. } => "compare only with runs amended in the same way",
            Self::Resumed { .. } => "start a new run if the difference matters",
        }
    }

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
            Self::Damaged { verdict: text("xfs_repair exit 1: bad magic") },
            Self::Amended { what: text("--scale 1/64") },
            Self::Resumed { differs: text("vm.swappiness") },
        ]
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
