//! CPU time of tasks: kernel threads by origin, other processes by name, and children of this
//! process.
//!
//! The clock of each task is the scheduler's exact sum of its run time. A worker of a workqueue
//! serves many queues in turn and shows the last one, so it is sampled often, and its CPU time
//! since the last sample is attributed to the queue shown now. A task that starts and ends between
//! two samples is not detected, nor is the CPU time of a task between the last sample and its end.
//! Programs started by this process remain its children if their parent ends before them.

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

/// `PF_KTHREAD` of include/linux/sched.h: kernel thread.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Number of other processes listed by name; the rest is only part of the total.
const MAX_NAMED: usize = 8;

/// CPU time of a process before its name and group are read. They are read again each time it has
/// doubled, because the process may run another program by then.
const NAME_AFTER: Nanos = Nanos(1_000_000);

/// CPU time of a worker before its current work is read; less is attributed at a later sample.
const MIN_WORK: Nanos = Nanos(20_000);

/// Number of process IDs that are tried individually; beyond that, listing all tasks is cheaper.
const MAX_TRIED: u32 = 200;

/// Number of samples after which all tasks are listed in any case.
const LIST_INTERVAL: u32 = 20;

/// Maximum number of ancestors that are followed.
const MAX_ANCESTORS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Kernel,
    /// A descendant of this process when it was detected.
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
    /// CPU time within the window after which its name is read again.
    name_at: Nanos,
}

/// All tasks of the machine except this process, over a window.
#[derive(Clone, Debug)]
pub(super) struct Tasks {
    own: u32,
    /// True if `/proc` uses another PID namespace than the clocks.
    has_foreign_pids: bool,
    stack: Stack,
    live: BTreeMap<u32, Task>,
    /// The process ID assigned last, which reveals new tasks.
    newest: Option<u32>,
    /// Samples since all tasks were listed.
    tried: u32,
    kernel: BTreeMap<(Origin, String), Nanos>,
    /// Other processes that ended.
    ended: BTreeMap<(String, Option<String>), Nanos>,
    /// CPU time of ended children before the window.
    children_before: Nanos,
}

impl Tasks {
    /// Finds all tasks; the window starts with [`Tasks::begin`].
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

    /// The same tasks for another window. Tasks started since are detected as between two samples,
    /// which is much cheaper than reading all of `/proc`; [`Tasks::begin`] removes those that
    /// ended.
    pub(super) fn next_window(mut self, host: &dyn Host, stack: Stack) -> Self {
        self.stack = stack;
        self.kernel.clear();
        self.ended.clear();
        self.children_before = Nanos(0);
        self.refresh(host, false);
        self
    }

    /// True if kernel threads are visible. They are not in a container with a PID namespace, nor if
    /// `/proc` hides processes of other users (`hidepid`, proc(5)).
    pub(super) fn kernel_threads_visible(&self) -> bool {
        !self.has_foreign_pids && self.live.values().any(|task| task.kind == Kind::Kernel)
    }

    /// Starts the window: CPU time used before does not count.
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

    /// Attributes the CPU time of each task since the last sample; `thoroughly` for the last
    /// sample.
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
    /// IDs are assigned in sequence. Therefore only the IDs since then are tried, which is much
    /// cheaper than listing `/proc`. All tasks are still listed periodically, to find tasks whose
    /// ID was assigned before they were visible, and after the IDs wrapped.
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
                // Threads of other processes have no process clock, but for a thread of this
                // process, its own ID yields the clock of the process (`pid_for_clock`).
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

    /// True if a process with this parent is a descendant of this process.
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

    /// Kernel threads by origin, in descending order of CPU time.
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

    /// Other processes with the most CPU time, in descending order, and the total of all.
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

    /// CPU time of children within the window. `ended` is the total of children that ended in the
    /// window and were waited for.
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

/// True if `/proc` numbers tasks by another PID namespace than that of this process, which the
/// clocks use. `/proc/self` is a link to the ID in its namespace.
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

    /// The name is in parentheses and may contain parentheses; no later field does.
    fn parse(text: &str) -> Option<Self> {
        let (head, tail) = text.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let mut fields = tail.split_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        let flags = fields.nth(4)?.parse().ok()?;
        Some(Self { name: name.to_owned(), parent, flags })
    }
}

/// Control group of a process: of version 2, or of the version 1 hierarchies used for services and
/// CPU time; the deepest one that is not the root (cgroups(7)).
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
