//! CPU utilization of the machine, CPU frequency, and throttling.
//!
//! Busy time is the elapsed time of all CPUs minus their idle time. A kernel that stops its timer
//! tick while a CPU is idle records idle time exactly (`get_cpu_idle_time_us` in
//! kernel/time/tick-sched.c, used by fs/proc/stat.c). User and system time are counted in ticks
//! (`account_process_tick` in kernel/sched/cputime.c), unless the kernel was built to record them
//! exactly. The busy time is therefore computed from the idle time. In periods of 5 s on two CPUs,
//! the sum of user and system time differed from it by up to 0.6 %. The sum of the run times of all
//! tasks agreed with it if no tasks started or ended. A kernel that never stops its tick also
//! counts idle time in ticks.

use std::path::{Path, PathBuf};

use model::{
    Nanos,
    activity::{HostCpu, Unavailable},
};

use crate::host::Host;

const CPU_DIRECTORY: &str = "/sys/devices/system/cpu";

/// Sums of `/proc/stat` over all CPUs (`proc_stat(5)`), in ticks of `USER_HZ`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ticks {
    idle: u64,
    iowait: u64,
    irq: u64,
    softirq: u64,
    steal: u64,
    processors: u32,
}

impl Ticks {
    pub(super) fn read(host: &dyn Host) -> Option<Self> {
        Self::parse(&host.read(Path::new("/proc/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let sums = lines.next()?.strip_prefix("cpu ")?;
        let fields = sums.split_whitespace().map(str::parse::<u64>);
        let fields = fields.collect::<Result<Vec<_>, _>>().ok()?;
        // Fields: user nice system idle iowait irq softirq steal.
        let field = |index: usize| fields.get(index).copied();
        let processors = lines.take_while(|line| line.starts_with("cpu")).count();
        Some(Self {
            idle: field(3)?,
            iowait: field(4)?,
            irq: field(5)?,
            softirq: field(6)?,
            steal: field(7)?,
            processors: u32::try_from(processors).ok().filter(|count| *count > 0)?,
        })
    }

    /// CPU time of the machine since `earlier`, in a period of length `window`.
    pub(super) fn since(self, earlier: Self, window: Nanos) -> HostCpu {
        let tick = tick();
        let time =
            |after: u64, before: u64| Nanos(after.saturating_sub(before).saturating_mul(tick.0));
        // iowait may decrease (proc_stat(5)); the difference is then 0.
        let (idle, iowait) = (time(self.idle, earlier.idle), time(self.iowait, earlier.iowait));
        let all = Nanos(window.0.saturating_mul(u64::from(self.processors)));
        let interrupts = time(self.irq, earlier.irq) + time(self.softirq, earlier.softirq);
        HostCpu {
            processors: self.processors,
            busy: all - idle - iowait,
            iowait,
            // If both are zero since boot, the kernel does not record interrupt time separately.
            interrupts: (self.irq > 0 || self.softirq > 0).then_some(interrupts),
            steal: time(self.steal, earlier.steal),
            // idle and iowait are each rounded to a tick of the sum over all CPUs.
            resolution: tick + tick,
        }
    }
}

/// Unit of `/proc/stat`: `sysconf(_SC_CLK_TCK)`, 10 ms on all common machines.
fn tick() -> Nanos {
    Nanos(1_000_000_000 / rustix::param::clock_ticks_per_second().max(1))
}

/// Numbers of the CPUs in sysfs.
fn processors(host: &dyn Host) -> Vec<u32> {
    let names = host.list(Path::new(CPU_DIRECTORY)).unwrap_or_default();
    names.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect()
}

fn file(processor: u32, name: &str) -> PathBuf {
    Path::new(CPU_DIRECTORY).join(format!("cpu{processor}")).join(name)
}

fn number(host: &dyn Host, path: &Path) -> Option<u64> {
    host.read(path).ok()?.trim().parse().ok()
}

/// Files with the CPU frequencies (Documentation/admin-guide/pm/cpufreq.rst, `scaling_cur_freq`, in
/// kHz).
#[derive(Clone, Debug, Default)]
pub(super) struct Frequency(Vec<PathBuf>);

impl Frequency {
    pub(super) fn find(host: &dyn Host, unavailable: &mut Vec<Unavailable>) -> Self {
        let files = processors(host).into_iter().map(|cpu| file(cpu, "cpufreq/scaling_cur_freq"));
        let files: Vec<PathBuf> = files.filter(|path| number(host, path).is_some()).collect();
        if files.is_empty() {
            let why = "the kernel has no cpufreq, as in most virtual machines";
            unavailable.push(Unavailable { what: "CPU frequency".into(), why: why.into() });
        }
        Self(files)
    }

    /// Mean over the CPUs, in Hz.
    pub(super) fn mean(&self, host: &dyn Host) -> Option<u64> {
        let (sum, count) = self
            .0
            .iter()
            .filter_map(|path| number(host, path))
            .fold((0u64, 0u64), |(sum, count), khz| {
                (sum.saturating_add(khz.saturating_mul(1000)), count + 1)
            });
        sum.checked_div(count)
    }
}

/// Files with counts of thermal throttling (Documentation/ABI/testing/sysfs-devices-system-cpu).
/// Each CPU shows the counts of its core and of its package; one file is used per core and one per
/// package.
#[derive(Clone, Debug, Default)]
pub(super) struct Throttles(Vec<PathBuf>);

impl Throttles {
    pub(super) fn find(host: &dyn Host, unavailable: &mut Vec<Unavailable>) -> Self {
        let mut seen = Vec::new();
        let mut files = Vec::new();
        for cpu in processors(host) {
            let topology = |name: &str| number(host, &file(cpu, &format!("topology/{name}")));
            let package = topology("physical_package_id");
            let core = topology("core_id").unwrap_or_else(|| u64::from(cpu));
            let counts = [
                (file(cpu, "thermal_throttle/core_throttle_count"), (package, Some(core))),
                (file(cpu, "thermal_throttle/package_throttle_count"), (package, None)),
            ];
            for (path, of) in counts {
                if !seen.contains(&of) && number(host, &path).is_some() {
                    seen.push(of);
                    files.push(path);
                }
            }
        }
        if files.is_empty() {
            let why = "the kernel counts it on Intel CPUs only, and not in virtual machines";
            unavailable.push(Unavailable { what: "CPU throttling".into(), why: why.into() });
        }
        Self(files)
    }

    /// Sum of the counts; `None` if there are no counts, or if one cannot be read.
    pub(super) fn count(&self, host: &dyn Host) -> Option<u64> {
        let counts = self.0.iter().map(|path| number(host, path));
        counts
            .collect::<Option<Vec<_>>>()
            .filter(|counts| !counts.is_empty())
            .map(|counts| counts.into_iter().fold(0, u64::saturating_add))
    }
}

#[cfg(test)]
mod tests;
