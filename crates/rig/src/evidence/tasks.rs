//! Who used the processors: kernel threads by what they work for, other processes by name, and
//! children of this process.
//!
//! Each task's clock is the scheduler's exact sum of its run time. A worker of a work queue serves
//! many queues in turn and shows the last, so it is looked at often, and what it used since the
//! last look is added to what it shows now. A task that comes and goes between two looks is not
//! seen, nor is what a task used after the last look before its end. Programs that this process
//! started stay its children when their parent ends before them.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::{Path, PathBuf},
};

use model::{
    Nanos,
    evidence::{KernelThread, Origin, OtherProcess},
};

use super::{devices::Stack, origin};
use crate::host::Host;

/// `PF_KTHREAD` of include/linux/sched.h: a thread of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Other processes that are named; the rest is in their sum.
const NAMED: usize = 8;

/// What a process must use before its name and group are read; they are read again each time it
/// used as much again as until then, since it may have become another program.
const NAMED_AFTER: Nanos = Nanos(1_000_000);

/// What a worker must have used before it is asked what it works on; less waits for a later look.
const MINOR: Nanos = Nanos(20_000);

/// Numbers that are tried one by one; where more were given away, listing all tasks costs less.
const TRIED: u32 = 200;

/// Looks after which all tasks are listed, whether any came or not.
const LISTED: u32 = 20;

/// How far up the parents of a process are followed.
const STEPS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Kernel,
    /// A descendant of this process when it was first seen.
    Child,
    Other,
}

#[derive(Clone, Debug)]
struct Task {
    kind: Kind,
    name: String,
    group: Option<String>,
    /// Its clock when the window began, 0 for one that came later.
    before: Nanos,
    /// Its clock at the last look.
    last: Nanos,
    /// What it must have used within the window before its name is read again.
    name_at: Nanos,
}

/// All tasks of the machine but this process, over a window.
#[derive(Clone, Debug)]
pub(super) struct Tasks {
    own: u32,
    /// Whether the numbers of `/proc` are not those of the clocks.
    foreign: bool,
    stack: Stack,
    live: BTreeMap<u32, Task>,
    /// The number given away last, by which new tasks are noticed.
    newest: Option<u32>,
    /// Looks since all tasks were listed.
    tried: u32,
    kernel: BTreeMap<(Origin, String), Nanos>,
    /// Other processes that have ended.
    ended: BTreeMap<(String, Option<String>), Nanos>,
    /// What children that are gone had used before the window.
    children_before: Nanos,
}

impl Tasks {
    /// Finds all tasks; the window begins with [`Tasks::begin`].
    pub(super) fn find(host: &dyn Host, stack: Stack) -> Self {
        let mut tasks = Self {
            own: host.pid(),
            foreign: foreign(host),
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

    /// The same tasks for another window. Those that came meanwhile are taken in as between two
    /// looks, which costs far less than reading all of `/proc`; [`Tasks::begin`] leaves out those
    /// that went.
    pub(super) fn again(mut self, host: &dyn Host, stack: Stack) -> Self {
        self.stack = stack;
        self.kernel.clear();
        self.ended.clear();
        self.children_before = Nanos(0);
        self.refresh(host, false);
        self
    }

    /// Whether kernel threads are shown: they are not in a container with process ids of its own,
    /// nor where `/proc` hides processes of others (`hidepid`, proc(5)).
    pub(super) fn sees_kernel(&self) -> bool {
        !self.foreign && self.live.values().any(|task| task.kind == Kind::Kernel)
    }

    /// Begins the window: what was used before does not count.
    pub(super) fn begin(&mut self, host: &dyn Host) {
        let mut reused = false;
        self.live.retain(|&process, task| match host.process_time(process) {
            Ok(time) if time >= task.last => {
                (task.before, task.last, task.name_at) = (time, time, NAMED_AFTER);
                true
            }
            answer => {
                // Less than before: another task has got the number of one that ended.
                reused |= answer.is_ok();
                false
            }
        });
        if reused {
            // The next look lists all tasks.
            self.newest = None;
        }
    }

    /// Looks what each has used since the last look; `thoroughly` when it is the last.
    pub(super) fn look(&mut self, host: &dyn Host, thoroughly: bool) {
        self.refresh(host, thoroughly);
        let Self { live, newest, kernel, ended, children_before, stack, .. } = self;
        live.retain(|&process, task| {
            match host.process_time(process) {
                Ok(time) if time >= task.last => {
                    let minor = task.kind == Kind::Kernel && !thoroughly;
                    let least = if minor { MINOR } else { Nanos(1) };
                    if time - task.last >= least {
                        task.advance(host, process, time, kernel, stack);
                    }
                    true
                }
                answer => {
                    // Less than before: another task has got the number of one that ended.
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

    /// Takes in tasks that came since the last look.
    ///
    /// The last field of `/proc/loadavg` is the number given away last (`proc_loadavg(5)`), and
    /// numbers are given away in turn. So only those since then need to be tried, which costs far
    /// less than listing `/proc`. That is still done now and then, for a task whose number was
    /// given away and which could not be found yet, and when numbers begin anew.
    fn refresh(&mut self, host: &dyn Host, thoroughly: bool) {
        let newest = host.read(Path::new("/proc/loadavg")).ok();
        let newest = newest.and_then(|text| text.split_whitespace().last()?.parse::<u32>().ok());
        let came = match (self.newest, newest) {
            (Some(old), Some(new)) if (old..=old.saturating_add(TRIED)).contains(&new) => {
                Some(old + 1..=new)
            }
            _ => None,
        };
        self.newest = newest;
        self.tried += 1;
        match came.filter(|_| !thoroughly && self.tried < LISTED) {
            Some(came) => {
                // Threads of others are no processes to the clock, but a thread that asks about its
                // own number gets the clock of its process (`pid_for_clock`).
                let ours = |process: u32| {
                    host.entry(&Path::new("/proc/self/task").join(process.to_string())).is_ok()
                };
                let is_process =
                    |process: &u32| host.process_time(*process).is_ok() && !ours(*process);
                self.take_in(host, came.filter(is_process));
            }
            None => {
                self.tried = 0;
                let names = host.list(Path::new("/proc")).unwrap_or_default();
                self.take_in(host, names.iter().filter_map(|name| name.parse().ok()));
            }
        }
    }

    fn take_in(&mut self, host: &dyn Host, processes: impl Iterator<Item = u32>) {
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
            name_at: NAMED_AFTER,
        })
    }

    /// Whether a process whose parent this is descends from this process.
    fn descends(&self, host: &dyn Host, parent: u32) -> bool {
        let mut parent = parent;
        for _ in 0..STEPS {
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

    /// Kernel threads by what they work for, most time first.
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

    /// Other processes: the first few, most time first, and the sum of all.
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
        others.truncate(NAMED);
        (others, total)
    }

    /// What children used within the window, `ended` being what those used in all that ended in it
    /// and were waited for.
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
                if origin::changes(&self.name) {
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
        if let Ok(name) = host.read(&folder(process).join("comm")) {
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

/// Whether `/proc` numbers tasks by another namespace than that of this process, which the clocks
/// go by: it was mounted for another one. `/proc/self` is a link to the number it has there.
fn foreign(host: &dyn Host) -> bool {
    let shown = host.follow(Path::new("/proc/self")).ok();
    let shown = shown.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
    shown.and_then(|shown| shown.parse().ok()).is_some_and(|shown: u32| shown != host.pid())
}

fn folder(process: u32) -> PathBuf {
    Path::new("/proc").join(process.to_string())
}

/// What is needed of `/proc/PID/stat` (`proc_pid_stat(5)`).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Status {
    name: String,
    parent: u32,
    flags: u64,
}

impl Status {
    fn read(host: &dyn Host, process: u32) -> Option<Self> {
        Self::parse(&host.read(&folder(process).join("stat")).ok()?)
    }

    /// The name stands in parentheses and may hold some itself; no field after it does.
    fn parse(text: &str) -> Option<Self> {
        let (head, tail) = text.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let mut fields = tail.split_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        let flags = fields.nth(4)?.parse().ok()?;
        Some(Self { name: name.to_owned(), parent, flags })
    }
}

/// The control group of a process: version 2, or of version 1 the hierarchies by which services
/// and processor time are grouped; the deepest that is not the root (cgroups(7)).
fn group(host: &dyn Host, process: u32) -> Option<String> {
    deepest(&host.read(&folder(process).join("cgroup")).ok()?)
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
