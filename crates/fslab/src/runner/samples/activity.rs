//! System activity of a phase: CPU, faults, PSI, memory, devices.
//!
//! Fractions refer to the window in which the activity was recorded. A missing counter gives no
//! sample.

use model::{
    Metric, Nanos, PhaseResult, SystemActivity,
    activity::{CpuActivity, GaugeSeries, Pressure},
    phase::Work,
};

use super::{PhaseSamples, beyond_counting, float, moved::Devices, nanos};

/// Minimum window length for counters of timer ticks: a few ticks are then a few percent.
const TICKS: Nanos = Nanos(100_000_000);

pub(super) fn add(named: &mut PhaseSamples<'_>, result: &PhaseResult, activity: &SystemActivity) {
    let window = nanos(activity.window);
    if let Some(cpu) = &activity.cpu {
        caused(named, result, cpu, window);
        let all = window * f64::from(cpu.host.processors);
        part(named, Metric::OtherCpuUtilization, nanos(cpu.others_total), all);
        if activity.has_host_counters() {
            machine(named, cpu, all);
        }
    }
    if let Some(faults) = activity.faults {
        named.add(Metric::MinorFaults, float(faults.minor));
        named.add(Metric::MajorFaults, float(faults.major));
    }
    if let Some(waited) = &activity.pressure {
        pressure(named, waited, window);
    }
    gauges(named, &activity.gauges);
    if let Some(overhead) = activity.overhead {
        part(named, Metric::MonitoringCpuUtilization, nanos(overhead.cpu), window);
        named.add(Metric::MonitoringMemory, float(overhead.memory.0));
    }
    if let Some(own) = Devices::under(activity) {
        devices(named, &own, window);
        if matches!(named.phase.work, Work::Command(_) | Work::Sqlite(_) | Work::Trace(_)) {
            let ops = float(result.ops().0);
            part(named, Metric::DeviceBytesWrittenPerOp, float(own.written.0), ops);
            if let Some(flushes) = own.flushes {
                part(named, Metric::DeviceFlushRequestsPerOp, float(flushes), ops);
            }
        }
    }
}

/// Adds a fraction, unless the whole is 0.
fn part(named: &mut PhaseSamples<'_>, metric: Metric, part: f64, whole: f64) {
    if whole > 0.0 {
        named.add(metric, part / whole);
    }
}

/// Adds the CPU time of the workload and of attributed kernel threads. Like all counters of the
/// window, it includes the setup of the workers.
fn caused(named: &mut PhaseSamples<'_>, result: &PhaseResult, cpu: &CpuActivity, window: f64) {
    let caused = nanos(cpu.attributed_total());
    named.add(Metric::KernelThreadTime, nanos(cpu.attributed()));
    named.add(Metric::AttributedCpuTime, caused);
    let ops = float(result.ops().0) * beyond_counting(named.phase, result);
    part(named, Metric::AttributedCpuTimePerOp, caused, ops);
    part(named, Metric::AttributedCpuUtilization, caused, window);
}

/// Adds counters that the kernel updates in steps. The window must therefore be long enough. `all`
/// is the time of all CPUs.
fn machine(named: &mut PhaseSamples<'_>, cpu: &CpuActivity, all: f64) {
    part(named, Metric::HostCpuUtilization, nanos(cpu.host.busy), all);
    part(named, Metric::IowaitFraction, nanos(cpu.host.iowait), all);
    part(named, Metric::StealFraction, nanos(cpu.host.steal), all);
    // The value may be negative if the two methods of accounting disagree. That is also
    // informative.
    let (unattributed, sign) = (cpu.unattributed(), cpu.unattributed().signum() as f64);
    let unattributed = sign * float(unattributed.unsigned_abs());
    part(named, Metric::UnattributedFraction, unattributed, nanos(cpu.host.busy));
}

fn pressure(named: &mut PhaseSamples<'_>, waited: &Pressure, window: f64) {
    for (metric, time) in [
        (Metric::PsiCpuSome, waited.cpu_some),
        (Metric::PsiMemorySome, waited.memory_some),
        (Metric::PsiIoSome, waited.io_some),
        (Metric::PsiIoFull, waited.io_full),
    ] {
        // The kernel updates the sum periodically, so it may include time before the window.
        part(named, metric, nanos(time).min(window), window);
    }
}

fn gauges(named: &mut PhaseSamples<'_>, gauges: &GaugeSeries) {
    if let (Some(peak), Some(end)) = (gauges.dirty.iter().max(), gauges.dirty.last()) {
        named.add(Metric::DirtyMemoryPeak, float(*peak));
        named.add(Metric::DirtyMemoryEnd, float(*end));
    }
    let sum: f64 = gauges.frequency.iter().map(|hertz| float(*hertz)).sum();
    part(named, Metric::CpuFrequency, sum, float(gauges.frequency.len() as u64));
}

fn devices(named: &mut PhaseSamples<'_>, own: &Devices, window: f64) {
    named.add(Metric::DeviceBytesRead, float(own.read.0));
    named.add(Metric::DeviceBytesWritten, float(own.written.0));
    named.add(Metric::DeviceReadRequests, float(own.reads));
    named.add(Metric::DeviceWriteRequests, float(own.writes));
    if let Some(flushes) = own.flushes {
        named.add(Metric::DeviceFlushRequests, float(flushes));
    }
    if let Some(discarded) = own.discarded {
        named.add(Metric::DeviceBytesDiscarded, float(discarded.0));
    }
    // The kernel counts whole ticks of 1 to 10 ms (`update_io_ticks`, block/blk-core.c).
    if window >= nanos(TICKS) {
        part(named, Metric::DeviceUtilization, nanos(own.busy).min(window), window);
    }
    part(named, Metric::DeviceQueueLength, nanos(own.queue_time), window);
}
