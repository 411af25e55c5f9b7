//! CPU time of kernel threads by origin, of other processes by name, and of children of this
//! process, during a period of recording (the window).
//!
//! A task is a process or a kernel thread. The scheduler keeps the exact run time of each task. A
//! kernel worker serves many workqueues in turn, and its name contains the last one. A worker is
//! therefore sampled often: the CPU time since the last sample is attributed to the queue in the
//! present name. Two kinds of CPU time are not detected: that of a task that starts and ends
//! between two samples, and that of a task between its last sample and its end. A descendant of
//! this process still counts as a child if its own parent has ended.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::{Path, PathBuf},
};

use model::{
    Nanos,
    activity::{KernelThread, Origin, OtherProcess},
};

use super::{devices::Stack, origin};
use crate::host::Host;

/// Flag of kernel threads, `PF_KTHREAD` of include/linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Maximum number of other processes that are listed by name. The CPU time of the rest is only in
/// the total.
const MAX_NAMED: usize = 8;

/// CPU time in the window after which the name and the control group of a process are read. Both
/// are read again each time the CPU time has doubled, because the process may run another program
/// by then.
const NAME_AFTER: Nanos = Nanos(1_000_000);

/// Minimum CPU time of a kernel thread since the last sample. A smaller time is attributed at a
/// later sample.
const MIN_WORK: Nanos = Nanos(20_000);

/// Maximum number of new process IDs that are tried one by one. For more IDs, listing all tasks
/// takes less time.
const MAX_TRIED: u32 = 200;

/// Number of samples after which all tasks are listed regardless of the number of new process IDs.
const LIST_INTERVAL: u32 = 20;

/// Maximum number of ancestors that are followed.
const MAX_ANCESTORS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Kernel,
    /// Process that was a descendant of this process when it was detected.
    Child,
    Other,
}

#[derive(Clone, Debug)]
struct Task {
    kind: Kind,
    name: String,
    group: Option<String>,
    /// Clock at the start of the window; 0 for a task that started later.
    before: Nanos,
    /// Clock at the last sample.
    last: Nanos,
    /// CPU time in the window after which the name is read again.
    name_at: Nanos,
}

/// All tasks of the machine except this process, with their CPU times in a window.
#[derive(Clone, Debug)]
pub(super) struct Tasks {
    own: u32,
    /// True if `/proc` shows another PID namespace than that of this process.
    has_foreign_pids: bool,
    stack: Stack,
    live: BTreeMap<u32, Task>,
    /// Process ID that the kernel has assigned last, at the last sample. `None`: the next sample
    /// lists all tasks.
    newest: Option<u32>,
    /// Number of samples since all tasks were listed.
    tried: u32,
    kernel: BTreeMap<(Origin, String), Nanos>,
    /// CPU time of other processes that have ended, by name and control group.
    ended: BTreeMap<(String, Option<String>), Nanos>,
    /// CPU time used before the window by the children that ended in the window.
    children_before: Nanos,
}

impl Tasks {
    /// Finds all tasks. The window starts with [`Tasks::begin`].
    pub(super) fn find(host: &dyn Host, stack: Stack) -> Self {
        let mut tasks = Self {
            own: host.pid(),
            has_foreign_pids: has_foreign_pids(host),
            stack,
            live: BTreeMap::new(),
            newest: None,
            tried: 0,
            kernel: BTreeMap::new(),
            ended: BTreeMap::new(),
            children_before: Nanos(0),
        };
        tasks.refresh(host, true);
        tasks
    }

    /// Prepares the tasks for another window. New tasks are detected in the same way as between two
    /// samples. This takes much less time than reading all of `/proc`. [`Tasks::begin`] removes
    /// tasks that have ended.
    pub(super) fn next_window(mut self, host: &dyn Host, stack: Stack) -> Self {
        self.stack = stack;
        self.kernel.clear();
        self.ended.clear();
        self.children_before = Nanos(0);
        self.refresh(host, false);
        self
    }

    /// True if kernel threads are visible. Kernel threads are not visible in a container with a PID
    /// namespace, or if `/proc` hides processes of other users (`hidepid`, proc(5)).
    pub(super) fn kernel_threads_visible(&self) -> bool {
        !self.has_foreign_pids && self.live.values().any(|task| task.kind == Kind::Kernel)
    }

    /// Starts the window. CPU time used before does not count.
    pub(super) fn begin(&mut self, host: &dyn Host) {
        let mut reused = false;
        self.live.retain(|&process, task| match host.process_time(process) {
            Ok(time) if time >= task.last => {
                (task.before, task.last, task.name_at) = (time, time, NAME_AFTER);
                true
            }
            answer => {
                // The clock went backward: the process ID was reused by another task.
                reused |= answer.is_ok();
                false
            }
        });
        if reused {
            // The next sample lists all tasks.
            self.newest = None;
        }
    }

    /// Attributes the CPU time of each task since the last sample. `thoroughly` is set for the last
    /// sample of a window: all tasks are listed, and even small times are attributed now.
    pub(super) fn sample(&mut self, host: &dyn Host, thoroughly: bool) {
        self.refresh(host, thoroughly);
        let Self { live, newest, kernel, ended, children_before, stack, .. } = self;
        live.retain(|&process, task| {
            match host.process_time(process) {
                Ok(time) if time >= task.last => {
                    let minor = task.kind == Kind::Kernel && !thoroughly;
                    let least = if minor { MIN_WORK } else { Nanos(1) };
                    if time - task.last >= least {
                        task.advance(host, process, time, kernel, stack);
                    }
                    true
                }
                answer => {
                    // The clock went backward: the process ID was reused by another task.
                    if answer.is_ok() {
                        *newest = None;
                    }
                    let used = task.last - task.before;
                    match task.kind {
                        Kind::Kernel => {}
                        Kind::Child => *children_before = *children_before + task.before,
                        Kind::Other => add(ended, (task.name.clone(), task.group.take()), used),
                    }
                    false
                }
            }
        });
    }

    /// Detects tasks started since the last sample.
    ///
    /// The last field of `/proc/loadavg` is the process ID assigned last (`proc_loadavg(5)`), and
    /// IDs are assigned in ascending order. Therefore only the IDs assigned since the last sample
    /// are tried, which takes much less time than listing `/proc`. All tasks are listed
    /// periodically, because a task may become visible after its ID was assigned. They are also
    /// listed whenever the IDs have wrapped.
    fn refresh(&mut self, host: &dyn Host, thoroughly: bool) {
        let newest = host.read(Path::new("/proc/loadavg")).ok();
        let newest = newest.and_then(|text| text.split_whitespace().last()?.parse::<u32>().ok());
        let came = match (self.newest, newest) {
            (Some(old), Some(new)) if (old..=old.saturating_add(MAX_TRIED)).contains(&new) => {
                Some(old + 1..=new)
            }
            _ => None,
        };
        self.newest = newest;
        self.tried += 1;
        match came.filter(|_| !thoroughly && self.tried < LIST_INTERVAL) {
            Some(came) => {
                // The ID of a thread of another process has no process clock. The ID of a thread of
                // this process yields the clock of this process (`pid_for_clock`), so such IDs are
                // excluded.
                let ours = |process: u32| {
                    host.entry(&Path::new("/proc/self/task").join(process.to_string())).is_ok()
                };
                let is_process =
                    |process: &u32| host.process_time(*process).is_ok() && !ours(*process);
                self.record(host, came.filter(is_process));
            }
            None => {
                self.tried = 0;
                let names = host.list(Path::new("/proc")).unwrap_or_default();
                self.record(host, names.iter().filter_map(|name| name.parse().ok()));
            }
        }
    }

    fn record(&mut self, host: &dyn Host, processes: impl Iterator<Item = u32>) {
        for process in processes {
            if process != self.own
                && !self.live.contains_key(&process)
                && let Some(task) = self.identify(host, process)
            {
                self.live.insert(process, task);
            }
        }
    }

    fn identify(&self, host: &dyn Host, process: u32) -> Option<Task> {
        let status = Status::read(host, process)?;
        let kind = match status.flags & KERNEL_THREAD {
            0 if self.descends(host, status.parent) => Kind::Child,
            0 => Kind::Other,
            _ => Kind::Kernel,
        };
        Some(Task {
            kind,
            name: status.name,
            group: None,
            before: Nanos(0),
            last: Nanos(0),
            name_at: NAME_AFTER,
        })
    }

    /// True if a process whose parent has the ID `parent` is a descendant of this process.
    fn descends(&self, host: &dyn Host, parent: u32) -> bool {
        let mut parent = parent;
        for _ in 0..MAX_ANCESTORS {
            if parent <= 2 {
                return parent == self.own;
            }
            match self.live.get(&parent) {
                _ if parent == self.own => return true,
                Some(known) => return known.kind == Kind::Child,
                None => {}
            }
            match Status::read(host, parent) {
                Some(status) => parent = status.parent,
                None => return false,
            }
        }
        false
    }

    /// Kernel threads with their origins, in descending order of CPU time.
    pub(super) fn kernel(&self) -> Vec<KernelThread> {
        let used = self.kernel.iter().filter(|(_, time)| time.0 > 0);
        let mut threads: Vec<KernelThread> = used
            .map(|((origin, name), time)| KernelThread {
                origin: *origin,
                name: name.clone(),
                time: *time,
            })
            .collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.time));
        threads
    }

    /// Other processes with the most CPU time, in descending order, and the total CPU time of all
    /// other processes.
    pub(super) fn others(&self, host: &dyn Host) -> (Vec<OtherProcess>, Nanos) {
        let mut all = self.ended.clone();
        for (&process, task) in &self.live {
            let used = task.last - task.before;
            if task.kind == Kind::Other && used.0 > 0 {
                let group = task.group.clone().or_else(|| group(host, process));
                add(&mut all, (task.name.clone(), group), used);
            }
        }
        let total = all.values().copied().sum();
        let mut others: Vec<OtherProcess> = all
            .into_iter()
            .filter(|(_, time)| time.0 > 0)
            .map(|((name, group), time)| OtherProcess { name, group, time })
            .collect();
        others.sort_by_key(|process| std::cmp::Reverse(process.time));
        others.truncate(MAX_NAMED);
        (others, total)
    }

    /// CPU time of children in the window. `ended` is the total CPU time of the children for which
    /// this process waited in the window.
    pub(super) fn children(&self, ended: Nanos) -> Nanos {
        let children = self.live.values().filter(|task| task.kind == Kind::Child);
        let running: Nanos = children.map(|task| task.last - task.before).sum();
        ended - self.children_before + running
    }
}

impl Task {
    fn advance(
        &mut self,
        host: &dyn Host,
        process: u32,
        time: Nanos,
        kernel: &mut BTreeMap<(Origin, String), Nanos>,
        stack: &Stack,
    ) {
        let used = time - self.last;
        self.last = time;
        match self.kind {
            Kind::Kernel => {
                if origin::is_worker(&self.name) {
                    self.read_name(host, process);
                }
                add(kernel, origin::of(&self.name, stack), used);
            }
            Kind::Child => {}
            Kind::Other => {
                let used = time - self.before;
                if used >= self.name_at {
                    self.name_at = used + used;
                    self.group = group(host, process);
                    self.read_name(host, process);
                }
            }
        }
    }

    fn read_name(&mut self, host: &dyn Host, process: u32) {
        if let Ok(name) = host.read(&directory(process).join("comm")) {
            self.name = name.trim_end().to_owned();
        }
    }
}

fn add<K: Ord>(times: &mut BTreeMap<K, Nanos>, key: K, time: Nanos) {
    match times.entry(key) {
        Entry::Vacant(entry) => {
            entry.insert(time);
        }
        Entry::Occupied(mut entry) => *entry.get_mut() = *entry.get() + time,
    }
}

/// True if `/proc` shows process IDs of another PID namespace than that of this process. The clocks
/// are read in the PID namespace of this process. The link `/proc/self` contains the ID of this
/// process in the namespace of `/proc`.
fn has_foreign_pids(host: &dyn Host) -> bool {
    let shown = host.follow(Path::new("/proc/self")).ok();
    let shown = shown.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
    shown.and_then(|shown| shown.parse().ok()).is_some_and(|shown: u32| shown != host.pid())
}

fn directory(process: u32) -> PathBuf {
    Path::new("/proc").join(process.to_string())
}

/// Required fields of `/proc/PID/stat` (`proc_pid_stat(5)`).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Status {
    name: String,
    parent: u32,
    flags: u64,
}

impl Status {
    fn read(host: &dyn Host, process: u32) -> Option<Self> {
        Self::parse(&host.read(&directory(process).join("stat")).ok()?)
    }

    /// Parses the text of the file. The name is in parentheses and may itself contain parentheses;
    /// later fields do not.
    fn parse(text: &str) -> Option<Self> {
        let (head, tail) = text.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let mut fields = tail.split_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        let flags = fields.nth(4)?.parse().ok()?;
        Some(Self { name: name.to_owned(), parent, flags })
    }
}

/// Control group of a process: the deepest of its groups in all hierarchies, except for root groups
/// (cgroups(7)). If several groups are equally deep, that of version 2 is preferred, then those of
/// the version 1 hierarchies for systemd services and for CPU time.
fn group(host: &dyn Host, process: u32) -> Option<String> {
    deepest(&host.read(&directory(process).join("cgroup")).ok()?)
}

fn deepest(text: &str) -> Option<String> {
    let lines = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let rank = match controllers {
            "" => 0,
            "name=systemd" => 1,
            other if other.split(',').any(|name| name == "cpu") => 2,
            _ => 3,
        };
        (path != "/").then_some((path, rank))
    });
    let depth = |path: &str| path.matches('/').count();
    let best = lines.min_by_key(|(path, rank)| (std::cmp::Reverse(depth(path)), *rank));
    best.map(|(path, _)| path.to_owned())
}

#[cfg(test)]
mod tests;
