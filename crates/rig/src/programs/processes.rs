//! Descendants of this process, with their CPU times and page faults (proc_pid_stat(5)).

use std::{
    collections::BTreeMap,
    fs, io,
    time::{Duration, Instant},
};

use model::{Nanos, activity::Faults};
use rustix::{
    io::Errno,
    param::clock_ticks_per_second,
    process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait},
};

use super::ProgramUsage;

/// Maximum time to wait for the end of killed processes. A process that waits for a device ends
/// later.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Process, with the usage of itself and of its children that it has waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) name: String,
    parent: i32,
    usage: ProgramUsage,
}

impl Process {
    fn read(pid: Pid) -> Option<Self> {
        Self::parse(pid, &fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?)
    }

    /// Parses `/proc/PID/stat`. The name is in parentheses and may itself contain parentheses.
    fn parse(pid: Pid, text: &str) -> Option<Self> {
        let (head, tail) = text.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        // The third field of the file is the first one here.
        let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let state = fields.first()?;
        if *state == "Z" {
            return None;
        }
        let ticks = |field| {
            let number = number(field)?;
            Some(Nanos(number.saturating_mul(1_000_000_000 / clock_ticks_per_second().max(1))))
        };
        let usage = ProgramUsage {
            user: ticks(14)? + ticks(16)?,
            system: ticks(15)? + ticks(17)?,
            faults: Faults { minor: number(10)? + number(11)?, major: number(12)? + number(13)? },
            ..ProgramUsage::default()
        };
        Some(Self { pid, name: name.to_owned(), parent: fields.get(1)?.parse().ok()?, usage })
    }
}

/// Running descendants of this process, without zombies.
pub(super) fn descendants() -> Vec<Process> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let all: BTreeMap<i32, Process> = pids
        .filter_map(Pid::from_raw)
        .filter_map(|pid| Some((pid.as_raw_nonzero().get(), Process::read(pid)?)))
        .collect();
    let own = getpid().as_raw_nonzero().get();
    let below = |process: &&Process| is_below(&all, process, own);
    all.values().filter(below).cloned().collect()
}

/// True if a chain of parents leads from the process to the process `root`.
fn is_below(all: &BTreeMap<i32, Process>, process: &Process, root: i32) -> bool {
    let mut parent = process.parent;
    // The chain ends at the latest after all processes, even if PIDs were reused while reading.
    for _ in 0..=all.len() {
        if parent == root {
            return true;
        }
        match all.get(&parent) {
            Some(next) => parent = next.parent,
            None => return false,
        }
    }
    false
}

/// The descendants that are neither in `known` nor the process `server` nor below it.
pub(super) fn strangers(known: &[Pid], server: Option<Pid>) -> Vec<Process> {
    let all = descendants();
    let by_pid: BTreeMap<i32, Process> =
        all.iter().map(|it| (it.pid.as_raw_nonzero().get(), it.clone())).collect();
    let of_server = |process: &Process| {
        server.is_some_and(|server| {
            process.pid == server || is_below(&by_pid, process, server.as_raw_nonzero().get())
        })
    };
    all.into_iter().filter(|it| !known.contains(&it.pid) && !of_server(it)).collect()
}

/// Ended child, if any. Every child is waited for here, also one that became a child because its
/// parent ended.
pub(super) fn reap() -> Option<(Pid, WaitStatus)> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Err(Errno::INTR) => {}
            answer => return answer.ok().flatten(),
        }
    }
}

/// Kills the processes that `select` returns, until it returns none. `ended` receives the children
/// that have ended.
pub(super) fn kill(select: impl Fn() -> Vec<Process>, mut ended: impl FnMut(Pid, WaitStatus)) {
    let limit = Instant::now() + KILL_LIMIT;
    loop {
        while let Some((pid, status)) = reap() {
            ended(pid, status);
        }
        let left = select();
        if left.is_empty() || Instant::now() > limit {
            return;
        }
        for process in left {
            // The process may have ended.
            let _ = kill_process(process.pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Usage of all descendants since the start of this process: those that have ended and were waited
/// for, and those that run.
///
/// # Errors
/// None are known on Linux.
pub(super) fn usage() -> io::Result<ProgramUsage> {
    let ended = sys::usage::resources(sys::usage::UsageScope::EndedChildren)?;
    let mut sum = ProgramUsage {
        user: Nanos(ended.user),
        system: Nanos(ended.time.saturating_sub(ended.user)),
        faults: Faults { minor: ended.minor_faults, major: ended.major_faults },
        voluntary: ended.voluntary,
        involuntary: ended.involuntary,
    };
    for Process { usage, .. } in descendants() {
        sum.user = sum.user + usage.user;
        sum.system = sum.system + usage.system;
        sum.faults.minor += usage.faults.minor;
        sum.faults.major += usage.faults.major;
    }
    Ok(sum)
}

/// Increase of the usage.
pub(super) fn since(after: ProgramUsage, before: ProgramUsage) -> ProgramUsage {
    ProgramUsage {
        user: after.user - before.user,
        system: after.system - before.system,
        faults: Faults {
            minor: after.faults.minor.saturating_sub(before.faults.minor),
            major: after.faults.major.saturating_sub(before.faults.major),
        },
        voluntary: after.voluntary.saturating_sub(before.voluntary),
        involuntary: after.involuntary.saturating_sub(before.involuntary),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_the_last_parenthesis() {
        let pid = Pid::from_raw(7).unwrap();
        let text = "7 (a) S b) S 3 7 7 0 -1 4194560 10 20 1 2 30 40 5 6 20 0 1 0 99 0 0";
        let process = Process::parse(pid, text).unwrap();
        assert_eq!((process.name.as_str(), process.parent), ("a) S b", 3));
        let tick = 1_000_000_000 / clock_ticks_per_second();
        assert_eq!(process.usage.user, Nanos(35 * tick));
        assert_eq!(process.usage.system, Nanos(46 * tick));
        assert_eq!(process.usage.faults, Faults { minor: 30, major: 3 });
        assert_eq!(Process::parse(pid, &text.replace(") S 3", ") Z 3")), None);
    }
}
