//! System activity during a phase or a lifecycle step, as reported by the kernel.
//!
//! An [`ActivityMonitor`] reads counters at its start and at its end and computes the differences.
//! The work of kernel workers, the amount of dirty memory, and the CPU frequency cannot be derived
//! from two readings. A sampler thread reads these values ten times per second. If this would use
//! more than about 0.3 % of a CPU, it reads them less often.
//!
//! Input: the names of the monitored devices. Files of `/proc` and `/sys`, the CPU clocks of
//! processes, and the kernel log are read through [`Host`]. Output: [`model::SystemActivity`].
//! Values that the kernel does not provide are not an error; they are listed as unavailable, with a
//! hint. The values are not interpreted here.

mod clients;
mod devices;
mod gauges;
mod log;
mod origin;
mod pressure;
mod processors;
mod sampler;
mod tasks;

use std::{
    collections::BTreeSet,
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use model::{
    Bytes, Nanos, SystemActivity,
    activity::{ClientActivity, CpuActivity, Faults, LogLine, Overhead, Pressure, Unavailable},
};

pub(crate) use self::devices::Stack;
use self::{
    clients::Clients,
    devices::Counters,
    gauges::Series,
    processors::{Frequency, Throttles, Ticks},
    sampler::Sampler,
    tasks::Tasks,
};
use crate::{
    host::{Host, KernelLog, Usage},
    monitor_thread::MonitorThread,
};

/// Recorder of system activity. [`MountedFilesystem::monitor`](crate::MountedFilesystem::monitor)
/// starts a recorder, and [`ActivityMonitor::end`] returns the recorded activity. Dropping a
/// recorder stops it.
#[derive(Debug)]
pub struct ActivityMonitor {
    host: Arc<dyn Host>,
    stack: Stack,
    log_tail: KernelLogTail,
    throttles: Throttles,
    clients: Clients,
    /// Resident memory of this process at the start.
    memory: Option<Bytes>,
    before: CounterSnapshot,
    state: Arc<Mutex<SamplerState>>,
    sampler: Sampler,
    unavailable: Vec<Unavailable>,
    cache: MonitorCache,
}

/// State that a monitor leaves for the next monitor. A trial has many short periods of recording.
/// Rebuilding this state for each period would take longer than all other monitoring.
#[derive(Clone, Debug, Default)]
pub(crate) struct MonitorCache(Arc<Mutex<CachedState>>);

#[derive(Debug, Default)]
struct CachedState {
    tasks: Option<Tasks>,
    targets: Option<MonitorTargets>,
}

impl MonitorCache {
    fn cached(&self) -> MutexGuard<'_, CachedState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Targets for these devices, from the cache if the devices are the same as before. Targets do
    /// not change while a run uses its devices.
    fn targets(&self, host: &dyn Host, devices: &[String]) -> MonitorTargets {
        let mut cached = self.cached();
        if let Some(targets) = cached.targets.as_ref().filter(|targets| targets.devices == devices)
        {
            return targets.clone();
        }
        let targets = MonitorTargets::find(host, devices);
        cached.targets = Some(targets.clone());
        targets
    }
}

/// Monitored devices, and the files with CPU frequencies, with counts of CPU throttling, and with
/// the traffic of network filesystems.
#[derive(Clone, Debug)]
struct MonitorTargets {
    devices: Vec<String>,
    stack: Stack,
    frequency: Frequency,
    throttles: Throttles,
    clients: Clients,
    unavailable: Vec<Unavailable>,
}

impl MonitorTargets {
    fn find(host: &dyn Host, devices: &[String]) -> Self {
        let stack = Stack::of(host, devices);
        let mut unavailable = stack.unavailable.clone();
        let frequency = Frequency::find(host, &mut unavailable);
        let throttles = Throttles::find(host, &mut unavailable);
        let clients = Clients::find(host);
        Self { devices: devices.to_vec(), stack, frequency, throttles, clients, unavailable }
    }
}

/// Recorder of kernel log messages only, for the periods between measurements. An error in such a
/// period also invalidates results.
#[derive(Debug)]
pub struct KernelLogMonitor {
    host: Arc<dyn Host>,
    stack: Stack,
    log_tail: KernelLogTail,
}

impl KernelLogMonitor {
    /// Starts to record. `devices` are the kernel names of the devices of the filesystem.
    pub(crate) fn start(host: Arc<dyn Host>, devices: &[String], cache: &MonitorCache) -> Self {
        let _monitoring = MonitorThread::new();
        let stack = cache.targets(&*host, devices).stack;
        let log_tail = KernelLogTail::open(&*host);
        Self { host, stack, log_tail }
    }

    /// Stops recording and returns the relevant messages: those about the devices, and errors that
    /// name no device.
    pub fn end(self) -> Vec<LogLine> {
        let _monitoring = MonitorThread::new();
        self.log_tail.read(&*self.host, &self.stack, &mut Vec::new())
    }
}

/// Reader of kernel log messages that arrive after it was opened.
#[derive(Debug)]
struct KernelLogTail {
    /// Names of all block devices when the log was opened.
    all: BTreeSet<String>,
    log: Result<Box<dyn KernelLog>, io::Error>,
}

impl KernelLogTail {
    fn open(host: &dyn Host) -> Self {
        Self { all: devices::all(host), log: host.kernel_log() }
    }

    /// Relevant messages since the log was opened.
    fn read(
        self,
        host: &dyn Host,
        stack: &Stack,
        unavailable: &mut Vec<Unavailable>,
    ) -> Vec<LogLine> {
        let mut note = |why: &str| unavailable.push(missing("kernel log", why));
        let records = match self.log.and_then(|mut log| log.records()) {
            Ok(records) => records,
            Err(error) => {
                let kind = error.kind();
                if kind == io::ErrorKind::PermissionDenied {
                    note("not permitted; run as root, or set kernel.dmesg_restrict=0");
                } else if kind == io::ErrorKind::NotFound {
                    note("there is no /dev/kmsg");
                } else {
                    note(&format!("/dev/kmsg: {error}"));
                }
                return Vec::new();
            }
        };
        if records.lost {
            note("messages were lost; boot with log_buf_len=4M or more");
        }
        if records.lines.is_empty() {
            return Vec::new();
        }
        let mut all = devices::all(host);
        all.extend(self.all);
        let (lines, more) = log::select(&records.lines, stack, &all);
        if more > 0 {
            note(&format!("{more} more messages were omitted"));
        }
        lines
    }
}

/// State shared by the sampler thread and the monitor.
#[derive(Debug)]
struct SamplerState {
    tasks: Tasks,
    series: Series,
}

impl SamplerState {
    fn sample(&mut self, host: &dyn Host, last: bool) {
        self.tasks.sample(host, last);
        self.series.sample(host, last);
    }
}

/// Counters read once at the start and once at the end.
#[derive(Debug)]
struct CounterSnapshot {
    at: Nanos,
    ticks: Option<Ticks>,
    usage: Result<Usage, io::Error>,
    devices: Counters,
    pressure: Result<Pressure, Unavailable>,
    throttled: Option<u64>,
    clients: Vec<ClientActivity>,
}

impl CounterSnapshot {
    /// Reads all counters. `tasks` is a function that reads the CPU times of tasks. It is called
    /// right after the other CPU times are read, because these times are compared. The order of the
    /// readings is always the same.
    fn take(
        host: &dyn Host,
        stack: &Stack,
        throttles: &Throttles,
        clients: &Clients,
        tasks: impl FnOnce(),
    ) -> Self {
        let at = host.now();
        let ticks = Ticks::read(host);
        let usage = host.usage();
        tasks();
        Self {
            at,
            ticks,
            usage,
            devices: Counters::read(host, stack),
            pressure: pressure::read(host),
            throttled: throttles.count(host),
            clients: clients.read(host),
        }
    }
}

fn lock(state: &Mutex<SamplerState>) -> MutexGuard<'_, SamplerState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ActivityMonitor {
    /// Starts to record. `devices` are the kernel names of the devices of the filesystem, which may
    /// have none.
    pub(crate) fn start(host: Arc<dyn Host>, devices: &[String], cache: &MonitorCache) -> Self {
        let _monitoring = MonitorThread::new();
        let host_ref = &*host;
        let MonitorTargets { stack, frequency, throttles, clients, mut unavailable, .. } =
            cache.targets(host_ref, devices);
        let log_tail = KernelLogTail::open(host_ref);
        let memory = resident(host_ref);
        let cached = cache.cached().tasks.take();
        let mut tasks = match cached {
            Some(tasks) => tasks.next_window(host_ref, stack.clone()),
            None => Tasks::find(host_ref, stack.clone()),
        };
        let before =
            CounterSnapshot::take(host_ref, &stack, &throttles, &clients, || tasks.begin(host_ref));
        let mut series = Series::new(before.at, frequency);
        series.sample(host_ref, false);
        let state = Arc::new(Mutex::new(SamplerState { tasks, series }));
        let sampler = Sampler::start(&host, &state, &mut unavailable);
        let cache = cache.clone();
        Self {
            host,
            stack,
            log_tail,
            throttles,
            clients,
            memory,
            before,
            state,
            sampler,
            unavailable,
            cache,
        }
    }

    /// Stops recording and returns the activity since the start.
    pub fn end(mut self) -> SystemActivity {
        let _monitoring = MonitorThread::new();
        self.sampler.stop();
        let host = Arc::clone(&self.host);
        let host = &*host;
        let state = Arc::clone(&self.state);
        let mut state = lock(&state);
        let after =
            CounterSnapshot::take(host, &self.stack, &self.throttles, &self.clients, || {
                state.tasks.sample(host, true)
            });
        state.series.sample(host, true);

        let mut unavailable = std::mem::take(&mut self.unavailable);
        let window = after.at - self.before.at;
        let cpu = self.cpu(&after, &state.tasks, window, &mut unavailable);
        let monitoring = self.used(&after, |usage| usage.monitoring.0);
        let overhead = monitoring.zip(self.memory).map(|(cpu, memory)| Overhead {
            cpu: Nanos(cpu),
            memory,
            samples: state.series.samples(),
        });
        if overhead.is_none() {
            unavailable.push(missing("monitoring overhead", "/proc/self/statm cannot be read"));
        }
        let (devices, uncounted) =
            after.devices.since(&self.before.devices, &self.stack, &mut unavailable);
        let mut activity = SystemActivity {
            window,
            devices,
            without_counters: uncounted,
            cpu,
            faults: self.faults(&after),
            pressure: self.pressure(&after, &mut unavailable),
            gauges: state.series.gauges(&mut unavailable),
            throttled: after.throttled.zip(self.before.throttled).map(|(b, a)| b.saturating_sub(a)),
            clients: clients::since(&after.clients, &self.before.clients),
            log: Vec::new(),
            overhead,
            unavailable,
        };
        self.cache.cached().tasks = Some(state.tasks.clone());
        activity.log = self.log_tail.read(host, &self.stack, &mut activity.unavailable);
        activity.unavailable.sort();
        activity.unavailable.dedup();
        activity
    }

    /// Increase of a resource usage of this process since the start; `None` if a reading failed.
    fn used(&self, after: &CounterSnapshot, what: impl Fn(&Usage) -> u64) -> Option<u64> {
        let (before, after) = (self.before.usage.as_ref().ok()?, after.usage.as_ref().ok()?);
        Some(what(after).saturating_sub(what(before)))
    }

    fn cpu(
        &self,
        after: &CounterSnapshot,
        tasks: &Tasks,
        window: Nanos,
        unavailable: &mut Vec<Unavailable>,
    ) -> Option<CpuActivity> {
        if !tasks.kernel_threads_visible() {
            let why = "kernel threads are not visible; run fslab outside of containers with a PID \
                       namespace, and with /proc mounted without hidepid";
            unavailable.push(missing("CPU time", why));
            return None;
        }
        let used = |what: fn(&Usage) -> Nanos| self.used(after, |usage| what(usage).0).map(Nanos);
        let cpu = || {
            let monitoring = used(|usage| usage.monitoring)?;
            let ended = used(|usage| usage.children)?;
            let (others, others_total) = tasks.others(&*self.host);
            Some(CpuActivity {
                workload: used(|usage| usage.process)? - monitoring + tasks.children(ended),
                monitoring,
                kernel: tasks.kernel(),
                others,
                others_total,
                host: after.ticks?.since(self.before.ticks?, window),
            })
        };
        let cpu = cpu();
        if cpu.is_none() {
            unavailable.push(missing("CPU time", "/proc/stat cannot be read"));
        }
        cpu
    }

    fn faults(&self, after: &CounterSnapshot) -> Option<Faults> {
        Some(Faults {
            minor: self.used(after, |usage| usage.minor_faults)?,
            major: self.used(after, |usage| usage.major_faults)?,
        })
    }

    fn pressure(
        &self,
        after: &CounterSnapshot,
        unavailable: &mut Vec<Unavailable>,
    ) -> Option<Pressure> {
        match (&self.before.pressure, &after.pressure) {
            (Ok(before), Ok(after)) => Some(pressure::since(*after, *before)),
            (Err(why), _) | (_, Err(why)) => {
                unavailable.push(why.clone());
                None
            }
        }
    }
}

fn missing(what: &str, why: &str) -> Unavailable {
    Unavailable { what: what.to_owned(), why: why.to_owned() }
}

/// Resident memory of this process (`proc_pid_statm(5)`: second field, in pages).
fn resident(host: &dyn Host) -> Option<Bytes> {
    let text = host.read(Path::new("/proc/self/statm")).ok()?;
    let pages = text.split_whitespace().nth(1)?.parse::<u64>().ok()?;
    let page = u64::try_from(rustix::param::page_size()).ok()?;
    Some(Bytes(pages.saturating_mul(page)))
}

/// Runs the parsers of `/proc`, sysfs, and the kernel log. `text` is parsed as records of the
/// kernel log.
#[cfg(any(test, feature = "simulated"))]
pub(crate) fn fuzz(host: &dyn Host, text: &str) {
    let _pressure = pressure::read(host);
    let ticks = processors::Ticks::read(host);
    let _spent = ticks.map(|ticks| ticks.since(processors::Ticks::default(), Nanos(1)));
    let stack = Stack::of(host, &["sda".to_owned()]);
    let _counters = devices::Counters::read(host, &stack);
    let mut tasks = tasks::Tasks::find(host, stack.clone());
    tasks.begin(host);
    tasks.sample(host, true);
    let _others = tasks.others(host);
    let clients = Clients::find(host).read(host);
    let _moved = clients::since(&clients, &clients);
    let records: Vec<String> = text.lines().map(str::to_owned).collect();
    let _lines = log::select(&records, &stack, &devices::all(host));
}

#[cfg(test)]
mod tests;
