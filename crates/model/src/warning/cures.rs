//! What to do about each warning.

use super::Warning;
use crate::guest::GuestKind;

impl Warning {
    /// What to do about it, one sentence without a full stop.
    #[expect(clippy::too_many_lines, reason = "one line for each warning")]
    pub fn cure(&self) -> &'static str {
        match self {
            Self::Few { .. } => "leave `repeats` out of the plan, or set it to 6 or more",
            Self::Wide { .. } => {
                "make more repeats (leave `repeats` out, or take --profile rigorous), take a longer workload or a quieter machine"
            }
            Self::NotCold { .. } => "run as root on a device or image, so that it can be remounted",
            Self::CacheKept { reason } if reason.contains("not root") => "run as root",
            Self::CacheKept { .. } => {
                "put the storage on a disk (image_directory); what lies in memory cannot be cold"
            }
            Self::FitsMemory { .. } => {
                "make the files at least twice as large, or set `storage.memory` below half of them"
            }
            Self::Backing { what } if what.starts_with("the directory ") => {
                "read it as the filesystem that is mounted there, with its disk and its neighbors; \
                 root can make fresh ones with `storage.image` or `storage.device`"
            }
            Self::Backing { .. } => "name a spare disk with `storage.device`",
            Self::Unsynced => "read the durable throughput beside it, or leave `compat` out",
            Self::Compressible => {
                "write random content: entropy = 1.0, without `compat` (iozone); content = \"random\" (bonnie); load files are written as zeros by their definition"
            }
            Self::ReadBack { .. } => {
                "take the setting out of the plan, give it a value that the kernel takes, or use a kernel that has it"
            }
            Self::MemoryUnlimited { .. } => "run as root on a kernel with the memory controller",
            Self::NotIdle { .. } => "stop what else uses the device",
            Self::Clock { .. } => {
                "time larger operations, or use a machine whose clocksource is tsc"
            }
            Self::GeneratorBound { .. } => {
                "use larger operations, else read the number as a lower bound"
            }
            Self::Short { .. } => "make the files larger, or the time longer",
            Self::NotWarm { .. } => "make the files smaller than the memory, or the limit larger",
            Self::Mixed { .. } => {
                "make the files at least twice as large as the memory, or much smaller than it"
            }
            Self::CpuBound { .. } => {
                "read it as the cost of the code; more workers, where the workload can have them, \
                 reach the storage's limit"
            }
            Self::ForeignCpu { .. } => "stop what else runs",
            Self::ForeignIo { .. } => "stop what else uses the device, or take one of its own",
            Self::Pressure { .. } => "give the workload more of it, or stop what else runs",
            Self::Steal { .. } => "use a machine of its own, or a quieter host",
            Self::Throttled { .. } => "cool the machine, or fix a lower frequency",
            Self::NotSteady { .. } => "run for longer, with a longer ramp-up",
            Self::Dirty { .. } => {
                "let the workload flush at its end (sync = true where a suite has it, sync_writes for load files), or read the durable figure"
            }
            Self::Shrunk { .. } => "use data that cannot be compressed, unless this is the point",
            Self::Impossible { .. } => {
                "look at the cached share, the device's counters, and the clock before believing it"
            }
            Self::Background { .. } => {
                "let it settle for longer, or switch the putting off at mkfs"
            }
            Self::KernelLog { .. } => "read the log with dmesg",
            Self::Absent { .. } => "read what depends on it as unknown, not as zero",
            Self::Damaged { .. } => "keep the image and report it to the filesystem's developers",
            Self::Amended { .. } => "compare only with runs amended in the same way",
            Self::OptionGone { .. } => {
                "read what replaced it; numbers of kernels that had it are of another subject"
            }
            Self::Lacks { .. } => {
                "nothing; take another filesystem, or a newer kernel, if it matters"
            }
            Self::NotRebooted => {
                "boot the machine, then go on with `fslab run --resume`; or take isolation remount"
            }
            Self::InGuest { kind: GuestKind::Kvm, .. } => {
                "compare only with numbers of such guests; this one shares its processors"
            }
            Self::InGuest { kind: GuestKind::Counted, latency: Some(_) } => {
                "compare it with virtual times on the same device, and with no other times"
            }
            Self::InGuest { kind: GuestKind::Counted, latency: None } => {
                "read it as work for the processor, not as time: of filesystems that differ much in \
                 it, a machine's clock mostly has the same order, but caches, memory, and devices \
                 have their say there"
            }
            Self::InGuest { kind: GuestKind::Uml | GuestKind::Tcg | GuestKind::Auto, .. } => {
                "read what was counted (I/O, bytes, space); for times measure on the machine \
                 itself, or with --guest kvm"
            }
            Self::Idle { .. } => {
                "expect a machine to take longer than the instructions say; a guest_latency shows the \
                 waiting in virtual time"
            }
            Self::HostNotFlushed => "read no durability into it; QEMU's guests do flush",
            Self::StandIn { .. } => {
                "compare only with numbers brought about in the same way; it is not the same thing"
            }
            Self::Unexpected { .. } => {
                "see whether the load file is whole and the filesystem is its own; many make the \
                 replay another one"
            }
            Self::Modes { .. } => {
                "look for what the two have apart: the place on the disk, a memory limit, an order"
            }
            Self::Outliers { .. } => "look at what the machine did in those repeats",
            Self::Disagree { .. } => "look at the repeats themselves; more of them may settle it",
            Self::Drift { .. } => {
                "let the machine settle before it; what is compared shares blocks"
            }
            Self::CarryOver { .. } => {
                "let the device rest between trials, or discard it as a whole"
            }
            Self::TwinsDiffer { .. } => "use a quieter machine, or longer workloads",
            Self::Unstable { .. } => "stop what spoils them, or use a machine of its own",
            Self::OverBudget => "raise `budget`, or leave it out of the plan",
            Self::Imported { .. } => "measure with fslab to have intervals, evidence, and warnings",
            Self::Resumed { .. } => "start a new run if the difference matters",
        }
    }
}
