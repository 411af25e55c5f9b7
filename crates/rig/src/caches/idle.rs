//! Waits until devices and kernel threads are idle.
//!
//! A device is idle if no request completes and none is in flight. A kernel thread is idle if it
//! uses almost no CPU time. The CPU time also shows deferred work without I/O, such as freeing
//! removed files after a sync.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use model::{Nanos, Warning};

use crate::{host::Host, sysfs::DeviceStat};

/// Interval between samples.
pub(super) const INTERVAL: Nanos = Nanos(20_000_000);

/// Number of consecutive samples in which everything must be idle.
const SAMPLES: u32 = 3;

/// Reciprocal of the CPU utilization up to which a thread is idle: 1 %. Some threads wake up
/// periodically to search for work; xfsaild wakes up twenty times per second (`xfsaild_push`,
/// `fs/xfs/xfs_trans_ail.c`).
const PART: u64 = 100;

/// Tick of proc_pid_stat(5), in nanoseconds. `USER_HZ` is 100 on all current architectures.
const TICK: u64 = 10_000_000;

/// Process ID of kthreadd, the parent of all kernel threads (`rest_init`, `init/main.c`).
const KTHREADD: &str = "2";

/// Name prefix of kernel workers, each of which may serve any workqueue (`create_worker`,
/// `kernel/workqueue.c`).
const WORKER: &str = "kworker";

/// Maximum length of a thread name before Linux 5.17 (`TASK_COMM_LEN` without the terminator).
/// Since Linux 5.17, the names of kernel threads are complete (`get_kthread_comm`,
/// `kernel/kthread.c`).
const NAME: usize = 15;

/// Result of [`wait_idle`].
#[derive(Debug, Default)]
pub(crate) struct IdleResult {
    pub(crate) waited: Nanos,
    /// Names of kernel threads that were not idle during the wait.
    pub(crate) active: BTreeSet<String>,
    /// Warning if the time limit was exceeded.
    pub(crate) warning: Option<Warning>,
}

/// Sample of everything that should be idle.
#[derive(Debug)]
struct IdleSample {
    /// Number of completed requests of each device.
    completed: Vec<u64>,
    in_flight: u64,
    /// Name and CPU time by process ID.
    threads: BTreeMap<String, (String, Nanos)>,
    /// Time of the sample.
    at: Nanos,
}

impl IdleSample {
    /// Takes a sample. If a device has no counters, all devices are ignored.
    fn take(
        host: &dyn Host,
        devices: &[String],
        threads: &[String],
        ignored: &mut BTreeSet<String>,
    ) -> Self {
        let stats = devices.iter().map(|name| DeviceStat::read(host, name));
        let stats = stats.collect::<Option<Vec<_>>>().unwrap_or_default();
        Self {
            completed: stats.iter().map(|stat| stat.completed).collect(),
            in_flight: stats.iter().map(|stat| stat.in_flight).sum(),
            threads: kernel_threads(host, threads, ignored),
            at: host.now(),
        }
    }

    fn is_empty(&self) -> bool {
        self.completed.is_empty() && self.threads.is_empty()
    }

    /// Names of the threads that were not idle since an earlier sample, including new threads. A
    /// thread that has ended is idle.
    fn active_since(&self, earlier: &Self) -> impl Iterator<Item = &String> {
        let most = Nanos((self.at - earlier.at).0 / PART);
        let moved = self.threads.iter().filter(move |(pid, (_, time))| {
            earlier.threads.get(*pid).is_none_or(|(_, before)| *time - *before > most)
        });
        moved.map(|(_, (name, _))| name)
    }
}

/// Waits until devices and kernel threads with these names are idle in consecutive samples, or
/// until more than `limit` has elapsed.
pub(crate) fn wait_idle(
    host: &dyn Host,
    devices: &[String],
    threads: &[String],
    limit: Nanos,
) -> IdleResult {
    let start = host.now();
    let mut result = IdleResult::default();
    let mut ignored = BTreeSet::new();
    let mut last = IdleSample::take(host, devices, threads, &mut ignored);
    if last.is_empty() && threads.is_empty() {
        return result;
    }
    let mut equal = 0;
    while equal < SAMPLES {
        host.sleep(INTERVAL);
        let now = IdleSample::take(host, devices, threads, &mut ignored);
        result.active.extend(now.active_since(&last).cloned());
        let quiet = now.active_since(&last).next().is_none();
        let idle = now.in_flight == 0 && now.completed == last.completed;
        equal = if idle && quiet { equal + 1 } else { 0 };
        last = now;
        result.waited = host.now() - start;
        if result.waited > limit && equal < SAMPLES {
            result.warning = Some(Warning::DeviceNotIdle { waited: result.waited });
            break;
        }
    }
    result
}

/// Names and CPU times of kernel threads that match one of `names`, by process ID. The CPU time is
/// the first field of schedstat, in nanoseconds (Documentation/scheduler/sched-stats.rst). If it is
/// zero or missing, the ticks of proc_pid_stat(5) are used.
///
/// A process that does not match is added to `ignored` and not read again, because reading all
/// processes of a machine takes five million instructions. Kernel workers are read each time,
/// because their names show their current work.
fn kernel_threads(
    host: &dyn Host,
    names: &[String],
    ignored: &mut BTreeSet<String>,
) -> BTreeMap<String, (String, Nanos)> {
    let mut found = BTreeMap::new();
    if names.is_empty() {
        return found;
    }
    let proc = Path::new("/proc");
    let numbers = host.list(proc).unwrap_or_default().into_iter();
    for pid in numbers.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
        if ignored.contains(&pid) {
            continue;
        }
        let directory = proc.join(&pid);
        let Ok(stat) = host.read(&directory.join("stat")) else { continue };
        let Some((name, fields)) = fields(&stat) else { continue };
        // Fields after the name: state, parent, …; utime and stime are at 11 and 12.
        let of_kernel = fields.get(1) == Some(&KTHREADD);
        if !of_kernel || !names.iter().any(|known| matches_name(name, known)) {
            if !of_kernel || !name.starts_with(WORKER) {
                ignored.insert(pid);
            }
            continue;
        }
        let schedstat = host.read(&directory.join("schedstat")).unwrap_or_default();
        let exact = schedstat.split(' ').next().and_then(|nanos| nanos.parse().ok());
        let ticks = || {
            fields.get(11..13)?.iter().map(|ticks| ticks.parse::<u64>().ok()).sum::<Option<u64>>()
        };
        let coarse = || ticks().map(|ticks| ticks.saturating_mul(TICK));
        let Some(time) = exact.filter(|nanos| *nanos > 0).or_else(coarse) else { continue };
        found.insert(pid, (name.to_owned(), Nanos(time)));
    }
    found
}

/// Name of a process and the fields after the name, from `/proc/PID/stat`. The name may contain any
/// character.
fn fields(stat: &str) -> Option<(&str, Vec<&str>)> {
    let (_, result) = stat.split_once('(')?;
    let (name, result) = result.rsplit_once(')')?;
    Some((name, result.split_whitespace().collect()))
}

/// True if a thread name contains `kind`, because workers append their current work to their name.
/// Older kernels truncate names, so a name that is the beginning of `kind` matches, too.
fn matches_name(name: &str, kind: &str) -> bool {
    name.contains(kind) || (name.len() == NAME && kind.starts_with(name))
}
