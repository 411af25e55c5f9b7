//! Evidence: what the machine did while a step of a trial ran, as the kernel tells it.
//!
//! A [`Watch`] reads counters at its start and at its end and takes the differences; in between, a
//! thread of its own looks ten times a second at what cannot be told from two readings: what the
//! workers of the kernel work on, how much memory waits to be written, and at which frequency the
//! processors run. It looks less often where a look costs so much that it would use more than 0.3 %
//! of a processor.
//!
//! Enters: the names of the watched devices, and through [`Host`] the files of `/proc` and `/sys`,
//! the clocks of tasks, and the kernel's log. Leaves: [`model::Evidence`]. What the kernel does not
//! tell stands in `absent` with a cure; nothing fails. Deliberately not here: judging what was
//! seen.

mod devices;
mod gauges;
mod log;
mod origin;
mod pressure;
mod processors;
mod sampler;
mod tasks;
mod watcher;

use std::{
    collections::BTreeSet,
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use model::{
    Bytes, Evidence, Nanos,
    evidence::{Absent, CpuWork, Faults, LogLine, Overhead, Pressure},
};

pub(crate) use self::devices::Stack;
pub use self::watcher::{Watcher, watching};
use self::{
    devices::Counters,
    gauges::Series,
    processors::{Frequency, Throttles, Ticks},
    sampler::Sampler,
    tasks::Tasks,
};
use crate::host::{Host, KernelLog, Usage};

/// Looks at the machine from its start to its end; see [`Mounted::watch`](crate::Mounted::watch).
/// Dropped without [`Watch::end`], it stops looking.
#[derive(Debug)]
pub struct Watch {
    host: Arc<dyn Host>,
    stack: Stack,
    ear: Ear,
    throttles: Throttles,
    /// Resident memory of this process as the window began.
    memory: Option<Bytes>,
    before: Reading,
    looks: Arc<Mutex<Looks>>,
    sampler: Sampler,
    absent: Vec<Absent>,
    roster: Roster,
}

/// What the last watch knew, for the next one: trials are many short windows, and finding all of it
/// anew for each would be most of what looking costs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roster(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    tasks: Option<Tasks>,
    ground: Option<Ground>,
}

impl Roster {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What stays as it is while a run holds its devices.
    fn ground(&self, host: &dyn Host, devices: &[String]) -> Ground {
        let mut known = self.known();
        if let Some(ground) = known.ground.as_ref().filter(|ground| ground.devices == devices) {
            return ground.clone();
        }
        let ground = Ground::find(host, devices);
        known.ground = Some(ground.clone());
        ground
    }
}

/// Devices, and where processors tell of themselves.
#[derive(Clone, Debug)]
struct Ground {
    devices: Vec<String>,
    stack: Stack,
    frequency: Frequency,
    throttles: Throttles,
    absent: Vec<Absent>,
}

impl Ground {
    fn find(host: &dyn Host, devices: &[String]) -> Self {
        let stack = Stack::of(host, devices);
        let mut absent = stack.absent.clone();
        let frequency = Frequency::find(host, &mut absent);
        let throttles = Throttles::find(host, &mut absent);
        Self { devices: devices.to_vec(), stack, frequency, throttles, absent }
    }
}

/// Listens to the kernel's log alone, where nothing is measured: an error counts wherever it is.
#[derive(Debug)]
pub struct Listener {
    host: Arc<dyn Host>,
    stack: Stack,
    ear: Ear,
}

impl Listener {
    /// Begins; `devices` as for [`Watch`].
    pub(crate) fn start(host: Arc<dyn Host>, devices: &[String], roster: &Roster) -> Self {
        let _watcher = Watcher::new();
        let stack = roster.ground(&*host, devices).stack;
        let ear = Ear::open(&*host);
        Self { host, stack, ear }
    }

    /// Ends, and tells what the kernel logged about the filesystem and its devices.
    pub fn end(self) -> Vec<LogLine> {
        let _watcher = Watcher::new();
        self.ear.heard(&*self.host, &self.stack, &mut Vec::new())
    }
}

/// The kernel's log from now on.
#[derive(Debug)]
struct Ear {
    /// Names of all block devices as it began.
    all: BTreeSet<String>,
    log: Result<Box<dyn KernelLog>, io::Error>,
}

impl Ear {
    fn open(host: &dyn Host) -> Self {
        Self { all: devices::all(host), log: host.kernel_log() }
    }

    /// The lines since then that matter.
    fn heard(self, host: &dyn Host, stack: &Stack, absent: &mut Vec<Absent>) -> Vec<LogLine> {
        let mut note = |why: &str| absent.push(missing("the kernel's log", why));
        let records = match self.log.and_then(|mut log| log.records()) {
            Ok(records) => records,
            Err(error) => {
                let kind = error.kind();
                if kind == io::ErrorKind::PermissionDenied {
                    note("not permitted; run as root, or set kernel.dmesg_restrict=0");
                } else if kind == io::ErrorKind::NotFound {
                    note("there is no /dev/kmsg here");
                } else {
                    note(&format!("/dev/kmsg: {error}"));
                }
                return Vec::new();
            }
        };
        if records.lost {
            note("it grew faster than it was read; boot with log_buf_len=4M or more");
        }
        if records.lines.is_empty() {
            return Vec::new();
        }
        let mut all = devices::all(host);
        all.extend(self.all);
        let (lines, more) = log::select(&records.lines, stack, &all);
        if more > 0 {
            note(&format!("{more} further lines were left out"));
        }
        lines
    }
}

/// What is looked at again and again.
#[derive(Debug)]
struct Looks {
    tasks: Tasks,
    series: Series,
}

impl Looks {
    fn look(&mut self, host: &dyn Host, last: bool) {
        self.tasks.look(host, last);
        self.series.look(host, last);
    }
}

/// What is read once at the start and once at the end.
#[derive(Debug)]
struct Reading {
    at: Nanos,
    ticks: Option<Ticks>,
    usage: Result<Usage, io::Error>,
    devices: Counters,
    pressure: Result<Pressure, Absent>,
    throttled: Option<u64>,
}

impl Reading {
    /// Reads everything, the tasks through `tasks` in the midst of it: what is compared with each
    /// other is read close together, and always in the same order.
    fn take(host: &dyn Host, stack: &Stack, throttles: &Throttles, tasks: impl FnOnce()) -> Self {
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
        }
    }
}

fn lock(looks: &Mutex<Looks>) -> MutexGuard<'_, Looks> {
    looks.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    /// Begins; `devices` are the kernel's names of those that the filesystem is on, none where it
    /// is on none.
    pub(crate) fn start(host: Arc<dyn Host>, devices: &[String], roster: &Roster) -> Self {
        let _watcher = Watcher::new();
        let looked = &*host;
        let Ground { stack, frequency, throttles, mut absent, .. } = roster.ground(looked, devices);
        let ear = Ear::open(looked);
        let memory = resident(looked);
        let known = roster.known().tasks.take();
        let mut tasks = match known {
            Some(tasks) => tasks.again(looked, stack.clone()),
            None => Tasks::find(looked, stack.clone()),
        };
        let before = Reading::take(looked, &stack, &throttles, || tasks.begin(looked));
        let mut series = Series::new(before.at, frequency);
        series.look(looked, false);
        let looks = Arc::new(Mutex::new(Looks { tasks, series }));
        let sampler = Sampler::start(&host, &looks, &mut absent);
        let roster = roster.clone();
        Self { host, stack, ear, throttles, memory, before, looks, sampler, absent, roster }
    }

    /// Ends, and tells what was seen.
    pub fn end(mut self) -> Evidence {
        let _watcher = Watcher::new();
        self.sampler.stop();
        let host = Arc::clone(&self.host);
        let host = &*host;
        let looks = Arc::clone(&self.looks);
        let mut looks = lock(&looks);
        let after =
            Reading::take(host, &self.stack, &self.throttles, || looks.tasks.look(host, true));
        looks.series.look(host, true);

        let mut absent = std::mem::take(&mut self.absent);
        let window = after.at - self.before.at;
        let cpu = self.cpu(&after, &looks.tasks, window, &mut absent);
        let watching = self.used(&after, |usage| usage.watching.0);
        let overhead = watching.zip(self.memory).map(|(cpu, memory)| Overhead {
            cpu: Nanos(cpu),
            memory,
            looks: looks.series.looks(),
        });
        if overhead.is_none() {
            absent.push(missing("the cost of looking", "/proc/self/statm cannot be read"));
        }
        let (devices, uncounted) =
            after.devices.since(&self.before.devices, &self.stack, &mut absent);
        let mut evidence = Evidence {
            window,
            devices,
            uncounted,
            cpu,
            faults: self.faults(&after),
            pressure: self.pressure(&after, &mut absent),
            gauges: looks.series.gauges(&mut absent),
            throttled: after.throttled.zip(self.before.throttled).map(|(b, a)| b.saturating_sub(a)),
            log: Vec::new(),
            overhead,
            absent,
        };
        self.roster.known().tasks = Some(looks.tasks.clone());
        evidence.log = self.ear.heard(host, &self.stack, &mut evidence.absent);
        evidence.absent.sort();
        evidence.absent.dedup();
        evidence
    }

    /// The growth of something that this process used.
    fn used(&self, after: &Reading, what: impl Fn(&Usage) -> u64) -> Option<u64> {
        let (before, after) = (self.before.usage.as_ref().ok()?, after.usage.as_ref().ok()?);
        Some(what(after).saturating_sub(what(before)))
    }

    fn cpu(
        &self,
        after: &Reading,
        tasks: &Tasks,
        window: Nanos,
        absent: &mut Vec<Absent>,
    ) -> Option<CpuWork> {
        if !tasks.sees_kernel() {
            let why = "kernel threads are not shown here; run it outside of containers with process \
                       ids of their own, and with /proc mounted without hidepid";
            absent.push(missing("CPU time", why));
            return None;
        }
        let used = |what: fn(&Usage) -> Nanos| self.used(after, |usage| what(usage).0).map(Nanos);
        let cpu = || {
            let watching = used(|usage| usage.watching)?;
            let ended = used(|usage| usage.children)?;
            let (others, others_total) = tasks.others(&*self.host);
            Some(CpuWork {
                workload: used(|usage| usage.process)? - watching + tasks.children(ended),
                watching,
                kernel: tasks.kernel(),
                others,
                others_total,
                host: after.ticks?.since(self.before.ticks?, window),
            })
        };
        let cpu = cpu();
        if cpu.is_none() {
            absent.push(missing("CPU time", "/proc/stat cannot be read"));
        }
        cpu
    }

    fn faults(&self, after: &Reading) -> Option<Faults> {
        Some(Faults {
            minor: self.used(after, |usage| usage.minor_faults)?,
            major: self.used(after, |usage| usage.major_faults)?,
        })
    }

    fn pressure(&self, after: &Reading, absent: &mut Vec<Absent>) -> Option<Pressure> {
        match (&self.before.pressure, &after.pressure) {
            (Ok(before), Ok(after)) => Some(pressure::since(*after, *before)),
            (Err(why), _) | (_, Err(why)) => {
                absent.push(why.clone());
                None
            }
        }
    }
}

fn missing(what: &str, why: &str) -> Absent {
    Absent { what: what.to_owned(), why: why.to_owned() }
}

/// Memory of this process that is in RAM (`proc_pid_statm(5)`, second field, in pages).
fn resident(host: &dyn Host) -> Option<Bytes> {
    let text = host.read(Path::new("/proc/self/statm")).ok()?;
    let pages = text.split_whitespace().nth(1)?.parse::<u64>().ok()?;
    let page = u64::try_from(rustix::param::page_size()).ok()?;
    Some(Bytes(pages.saturating_mul(page)))
}

/// The readers of `/proc`, sysfs, and the kernel log, fed with any text.
pub(crate) fn fuzz(host: &dyn Host, text: &str) {
    let _pressure = pressure::read(host);
    let ticks = processors::Ticks::read(host);
    let _spent = ticks.map(|ticks| ticks.since(processors::Ticks::default(), Nanos(1)));
    let stack = Stack::of(host, &["sda".to_owned()]);
    let _counters = devices::Counters::read(host, &stack);
    let mut tasks = tasks::Tasks::find(host, stack.clone());
    tasks.begin(host);
    tasks.look(host, true);
    let _others = tasks.others(host);
    let records: Vec<String> = text.lines().map(str::to_owned).collect();
    let _lines = log::select(&records, &stack, &devices::all(host));
}

#[cfg(test)]
mod tests;
