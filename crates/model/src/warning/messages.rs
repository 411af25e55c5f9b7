//! What was seen, for each warning.

use super::Warning;
use crate::{guest::GuestKind, units::Ratio};

impl Warning {
    /// What was seen, one sentence without a full stop.
    #[expect(clippy::too_many_lines, reason = "a table: one entry for each warning")]
    pub fn message(&self) -> String {
        match self {
            Self::Few { n, needed } => {
                let repeats = if *n == 1 { "repeat gives" } else { "repeats give" };
                format!("{n} {repeats} no interval; {needed} are needed for 95 %")
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
                let (files, memory) = (working_set.rough(), memory.rough());
                format!("the files ({files}) fit into the workload's memory ({memory})")
            }
            Self::Backing { what } if what.starts_with("the directory ") => format!(
                "the storage is {what}, not a disk of its own, and what its disk did for others \
                 counts as well"
            ),
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
            Self::NotWarm { cached } => format!(
                "should have started warm, yet only {} of what it read came from memory",
                percent(*cached)
            ),
            Self::Mixed { cached } => format!(
                "{} of what it read came from memory and the rest from the devices; a little more \
                 or less memory changes that much",
                percent(*cached)
            ),
            Self::CpuBound { who, share } => format!(
                "{who} used a processor for {} of the time, so the storage was not the limit",
                percent(*share)
            ),
            Self::ForeignCpu { share, who } => {
                format!(
                    "others used {} of the processors' time, most of all {who}",
                    percent(*share)
                )
            }
            Self::ForeignIo { device, bytes, share } => format!(
                "others moved {} on {device}, {} of all it moved",
                bytes.rough(),
                percent(*share)
            ),
            Self::Pressure { resource, share } => {
                format!("some task waited for {resource} in {} of the time", percent(*share))
            }
            Self::Steal { share } => {
                format!("the hypervisor gave {} of the processors' time to others", percent(*share))
            }
            Self::Throttled { events } => {
                format!("processors were slowed down {events} times for temperature or power")
            }
            Self::NotSteady { range, slope } => format!(
                "not steady: between its intervals the rate ranged over {} of its mean, and its \
                 trend moved by {}",
                percent(*range),
                percent(*slope)
            ),
            Self::Dirty { left, written } => format!(
                "of {} bytes written, up to {} were still in memory only at the end",
                written.0, left.0
            ),
            Self::Shrunk { amplification } => format!(
                "the devices wrote {:.2} bytes for each byte flushed: the data were compressed, \
                 deduplicated, or left out",
                amplification.0
            ),
            Self::Impossible { what } => format!("faster than is possible: {what}"),
            Self::Background { who, time } => format!(
                "the filesystem did what it had put off: {who} used {:.1} ms of CPU time",
                time.seconds() * 1e3
            ),
            Self::KernelLog { line, lines: 1 } => format!("the kernel logged: {line}"),
            Self::KernelLog { line, lines } => {
                format!("the kernel logged {lines} lines, the first: {line}")
            }
            Self::Absent { what, why } => format!("{what} cannot be seen here: {why}"),
            Self::Damaged { verdict } => format!("the check after the workload failed: {verdict}"),
            Self::Amended { what } => format!("not run as the plan is written: {what}"),
            Self::OptionGone { option, instead } => format!("{option} is gone: {instead}"),
            Self::Lacks { what, why } => {
                format!("left out: the filesystem or the kernel does not have {what} ({why})")
            }
            Self::NotRebooted => "the machine was not booted again before this trial".into(),
            Self::InGuest { kind: GuestKind::Kvm, .. } => {
                "measured in a virtual machine on the processor itself (KVM)".into()
            }
            Self::InGuest { kind: GuestKind::Counted, latency: Some(latency) } => format!(
                "measured in virtual ns on a device of {latency}: an instruction takes one of them; \
                 one processor, no caches, no waiting for memory, no contention for locks"
            ),
            Self::InGuest { kind: GuestKind::Counted, latency: None } => {
                "measured in a guest whose clock counts instructions, one a nanosecond: one \
                 processor, no caches, no waiting for memory, no contention for locks"
                    .into()
            }
            Self::InGuest { kind, .. } => format!(
                "measured in a guest ({kind}) whose processor or kernel is emulated: its times \
                 are no performance"
            ),
            Self::Idle { share } => format!(
                "the filesystem waited for {} of the phase while the processor had nothing to do; that is \
                 taken off the phase, and cannot be taken off single operations",
                percent(*share)
            ),
            Self::HostNotFlushed => {
                "user-mode Linux drops what flushes its disks, so that no fsync reached the host"
                    .into()
            }
            Self::StandIn { wanted, instead, why } => {
                format!("{wanted} was brought about by other means: {instead}, since {why}")
            }
            Self::Unexpected { count, of } => {
                format!("{count} of {of} operations went otherwise than the load file has it")
            }
            Self::Modes { lower, higher, ratio } => format!(
                "the repeats gather around two values, {lower} around the lower and {higher} \
                 around one {} above it, and a median is neither",
                percent(Ratio(ratio.0 - 1.0))
            ),
            Self::Outliers { severe, of } => format!(
                "{severe} of {of} repeats lie further than 10 robust standard deviations from the \
                 median; none is left out"
            ),
            Self::Disagree { what } => format!("another way to compare disagrees: {what}"),
            Self::Drift { size, p } => format!(
                "the blocks of the run differ ({}); from the first to the last all cells together \
                 moved by {:+.1} %",
                chance(*p),
                size.0 * 100.0
            ),
            Self::CarryOver { after, size, p } => format!(
                "what was measured right after {after} differs by {:+.1} % ({})",
                size.0 * 100.0,
                chance(*p)
            ),
            Self::TwinsDiffer { noise, threshold } => format!(
                "cells that are the same differed by {}, more than the {} that were to be told",
                percent(*noise),
                percent(*threshold)
            ),
            Self::Unstable { invalid, of } => {
                format!("{invalid} of {of} trials were spoiled by what else the machine did")
            }
            Self::OverBudget => "the time for the run was used up".into(),
            Self::Imported { program } => {
                format!("not measured by fslab, but read from a record of {program}")
            }
            Self::Resumed { differs } if differs.is_empty() => {
                "the run was interrupted and went on later".into()
            }
            Self::Resumed { differs } => {
                format!("the run was interrupted and went on later, when these differed: {differs}")
            }
        }
    }
}

/// A p-value with the digits it deserves.
fn chance(p: f64) -> String {
    if p < 0.001 { "p below 0.001".into() } else { format!("p = {p:.3}") }
}

fn percent(share: Ratio) -> String {
    format!("{:.1} %", share.0 * 100.0)
}
