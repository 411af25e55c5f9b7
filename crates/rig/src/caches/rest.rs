//! Waiting until devices and kernel threads are at rest.
//!
//! Devices tell what they have completed and what is in flight; kernel threads tell their CPU time.
//! A filesystem that goes on working after a flush without I/O, such as one that frees what was
//! removed, is seen by the latter alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use model::{Nanos, Warning};

use crate::{device::DeviceStat, host::Host};

/// Time between two looks.
pub(super) const LOOK: Nanos = Nanos(20_000_000);

/// Looks in a row that must be alike.
const LOOKS: u32 = 3;

/// How much of the time a thread may work and still count as at rest, as one part in this many:
/// some wake up again and again only to look whether there is anything to do, xfsaild for one
/// twenty times a second (`xfsaild_push`, `fs/xfs/xfs_trans_ail.c`).
const PART: u64 = 100;

/// A tick of proc_pid_stat(5) in nanoseconds: `USER_HZ` is 100 on every architecture with Linux
/// binaries of today.
const TICK: u64 = 10_000_000;

/// The process id of kthreadd, the parent of all kernel threads (`rest_init`, `init/main.c`).
const KTHREADD: &str = "2";

/// How the names of workers begin that serve any queue (`create_worker`, `kernel/workqueue.c`).
const WORKER: &str = "kworker";

/// Longest name of a thread of older kernels (`TASK_COMM_LEN` less its end); since Linux 5.17 those
/// of kernel threads are told in full (`get_kthread_comm`, `kernel/kthread.c`).
const NAME: usize = 15;

/// How waiting ended.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// How long it took.
    pub(crate) waited: Nanos,
    /// Kernel threads that were seen working meanwhile.
    pub(crate) restless: BTreeSet<String>,
    /// That it did not come to rest.
    pub(crate) warning: Option<Warning>,
}

/// One look at everything that should be at rest.
#[derive(Debug)]
struct Look {
    /// What each device has completed.
    completed: Vec<u64>,
    in_flight: u64,
    /// By process id: name and CPU time.
    threads: BTreeMap<String, (String, Nanos)>,
    /// When.
    at: Nanos,
}

impl Look {
    /// Devices that keep no account are not waited for.
    fn take(
        host: &dyn Host,
        devices: &[String],
        threads: &[String],
        strangers: &mut BTreeSet<String>,
    ) -> Self {
        let stats = devices.iter().map(|name| DeviceStat::read(host, name));
        let stats = stats.collect::<Option<Vec<_>>>().unwrap_or_default();
        Self {
            completed: stats.iter().map(|stat| stat.completed).collect(),
            in_flight: stats.iter().map(|stat| stat.in_flight).sum(),
            threads: kernel_threads(host, threads, strangers),
            at: host.now(),
        }
    }

    fn has_nothing(&self) -> bool {
        self.completed.is_empty() && self.threads.is_empty()
    }

    /// Threads that worked since an earlier look. One that has come since did; one that is gone has
    /// ended its work.
    fn worked(&self, earlier: &Self) -> impl Iterator<Item = &String> {
        let most = Nanos((self.at - earlier.at).0 / PART);
        let moved = self.threads.iter().filter(move |(pid, (_, time))| {
            earlier.threads.get(*pid).is_none_or(|(_, before)| *time - *before > most)
        });
        moved.map(|(_, (name, _))| name)
    }
}

/// Waits until devices are idle and kernel threads, by the names given, use next to no CPU time; at
/// most `limit`.
pub(crate) fn settle(
    host: &dyn Host,
    devices: &[String],
    threads: &[String],
    limit: Nanos,
) -> Rest {
    let start = host.now();
    let mut rest = Rest::default();
    let mut strangers = BTreeSet::new();
    let mut last = Look::take(host, devices, threads, &mut strangers);
    if last.has_nothing() && threads.is_empty() {
        return rest;
    }
    let mut alike = 0;
    while alike < LOOKS {
        host.sleep(LOOK);
        let now = Look::take(host, devices, threads, &mut strangers);
        rest.restless.extend(now.worked(&last).cloned());
        let quiet = now.worked(&last).next().is_none();
        let idle = now.in_flight == 0 && now.completed == last.completed;
        alike = if idle && quiet { alike + 1 } else { 0 };
        last = now;
        rest.waited = host.now() - start;
        if rest.waited > limit && alike < LOOKS {
            rest.warning = Some(Warning::NotIdle { waited: rest.waited });
            break;
        }
    }
    rest
}

/// The kernel threads whose name holds one of `names`, with their CPU time: the scheduler's own
/// count of nanoseconds (first field of schedstat, Documentation/scheduler/sched-stats.rst), or
/// where the kernel keeps none, which it tells as zero, the ticks of proc_pid_stat(5).
///
/// Processes that are none of them and cannot become one are added to `strangers` and not read
/// again: looking at all of a machine takes five million instructions each time. A worker of the
/// kernel shows what it works for in its name, so that it may become one at any time.
fn kernel_threads(
    host: &dyn Host,
    names: &[String],
    strangers: &mut BTreeSet<String>,
) -> BTreeMap<String, (String, Nanos)> {
    let mut found = BTreeMap::new();
    if names.is_empty() {
        return found;
    }
    let proc = Path::new("/proc");
    let numbers = host.list(proc).unwrap_or_default().into_iter();
    for pid in numbers.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
        if strangers.contains(&pid) {
            continue;
        }
        let folder = proc.join(&pid);
        let Ok(stat) = host.read(&folder.join("stat")) else { continue };
        let Some((name, fields)) = fields(&stat) else { continue };
        // Counted from the state on: the parent is second, the ticks are twelfth and thirteenth.
        let of_kernel = fields.get(1) == Some(&KTHREADD);
        if !of_kernel || !names.iter().any(|known| is_named(name, known)) {
            if !of_kernel || !name.starts_with(WORKER) {
                strangers.insert(pid);
            }
            continue;
        }
        let schedstat = host.read(&folder.join("schedstat")).unwrap_or_default();
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

/// Name and further fields of a line of `/proc/PID/stat`; the name may hold anything.
fn fields(stat: &str) -> Option<(&str, Vec<&str>)> {
    let (_, rest) = stat.split_once('(')?;
    let (name, rest) = rest.rsplit_once(')')?;
    Some((name, rest.split_whitespace().collect()))
}

/// Whether a thread is of a kind. Workers carry what they work for behind their own name.
fn is_named(name: &str, kind: &str) -> bool {
    name.contains(kind) || (name.len() == NAME && kind.starts_with(name))
}
