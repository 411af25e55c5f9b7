//! What the machine did meanwhile: processors, faults, pressure, memory, devices.
//!
//! Shares are over the window in which all of it was counted. A part that was not seen gives no
//! sample.

use model::{
    Evidence, Metric, Nanos, PhaseResult,
    evidence::{CpuWork, Gauges, Pressure},
};

use super::{Named, beyond_counting, float, moved::Devices, nanos};

/// A window from which on a few ticks more or less are a few percent.
const TICKS: Nanos = Nanos(100_000_000);

pub(super) fn add(named: &mut Named<'_>, result: &PhaseResult, evidence: &Evidence) {
    let window = nanos(evidence.window);
    if let Some(cpu) = &evidence.cpu {
        caused(named, result, cpu, window);
        let all = window * f64::from(cpu.host.processors);
        part(named, Metric::OtherShare, nanos(cpu.others_total), all);
        if evidence.tells_of_host() {
            machine(named, cpu, all);
        }
    }
    if let Some(faults) = evidence.faults {
        named.add(Metric::MinorFaults, float(faults.minor));
        named.add(Metric::MajorFaults, float(faults.major));
    }
    if let Some(waited) = &evidence.pressure {
        pressure(named, waited, window);
    }
    gauges(named, &evidence.gauges);
    if let Some(overhead) = evidence.overhead {
        part(named, Metric::OverheadShare, nanos(overhead.cpu), window);
        named.add(Metric::OverheadMemory, float(overhead.memory.0));
    }
    if let Some(own) = Devices::under(evidence) {
        devices(named, &own, window);
    }
}

/// A part of a whole, if there is a whole.
fn part(named: &mut Named<'_>, metric: Metric, part: f64, whole: f64) {
    if whole > 0.0 {
        named.add(metric, part / whole);
    }
}

/// The work and the kernel threads it caused. Like all that is counted in the window, that includes
/// making the workers ready.
fn caused(named: &mut Named<'_>, result: &PhaseResult, cpu: &CpuWork, window: f64) {
    let caused = nanos(cpu.caused());
    named.add(Metric::KernelTime, nanos(cpu.attributed()));
    named.add(Metric::CausedTime, caused);
    let ops = float(result.ops().0) * beyond_counting(named.phase, result);
    part(named, Metric::CausedTimePerOp, caused, ops);
    part(named, Metric::CausedShare, caused, window);
}

/// What the machine counts by itself, in steps, so that windows must be long enough; `all` is the
/// time of all processors.
fn machine(named: &mut Named<'_>, cpu: &CpuWork, all: f64) {
    part(named, Metric::HostShare, nanos(cpu.host.busy), all);
    part(named, Metric::IowaitShare, nanos(cpu.host.iowait), all);
    part(named, Metric::StealShare, nanos(cpu.host.steal), all);
    // Below zero where the two ways of counting disagree, which is worth knowing as well.
    let (unattributed, sign) = (cpu.unattributed(), cpu.unattributed().signum() as f64);
    let unattributed = sign * float(unattributed.unsigned_abs());
    part(named, Metric::UnattributedShare, unattributed, nanos(cpu.host.busy));
}

fn pressure(named: &mut Named<'_>, waited: &Pressure, window: f64) {
    for (metric, time) in [
        (Metric::PressureCpu, waited.cpu_some),
        (Metric::PressureMemory, waited.memory_some),
        (Metric::PressureIo, waited.io_some),
        (Metric::PressureIoFull, waited.io_full),
    ] {
        // The kernel adds up at its own instants: it may tell of a little more than the window.
        part(named, metric, nanos(time).min(window), window);
    }
}

fn gauges(named: &mut Named<'_>, gauges: &Gauges) {
    if let (Some(peak), Some(end)) = (gauges.dirty.iter().max(), gauges.dirty.last()) {
        named.add(Metric::DirtyPeak, float(*peak));
        named.add(Metric::DirtyEnd, float(*end));
    }
    let sum: f64 = gauges.frequency.iter().map(|hertz| float(*hertz)).sum();
    part(named, Metric::Frequency, sum, float(gauges.frequency.len() as u64));
}

fn devices(named: &mut Named<'_>, own: &Devices, window: f64) {
    named.add(Metric::DeviceRead, float(own.read.0));
    named.add(Metric::DeviceWritten, float(own.written.0));
    named.add(Metric::DeviceReads, float(own.reads));
    named.add(Metric::DeviceWrites, float(own.writes));
    if let Some(flushes) = own.flushes {
        named.add(Metric::DeviceFlushes, float(flushes));
    }
    if let Some(discarded) = own.discarded {
        named.add(Metric::DeviceDiscarded, float(discarded.0));
    }
    // The kernel adds up whole ticks, of 1 to 10 ms (`update_io_ticks`, block/blk-core.c).
    if window >= nanos(TICKS) {
        part(named, Metric::DeviceBusy, nanos(own.busy).min(window), window);
    }
    part(named, Metric::DeviceQueue, nanos(own.queue_time), window);
}
