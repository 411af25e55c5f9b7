//! Termination of all descendants of a watchdog that has no pid namespace.

use std::{fs, io};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, wait},
};

/// Kills children until none are left. This process is a child subreaper, so orphaned descendants
/// become its children and are killed, too.
///
/// # Errors
/// Errors of the system if processes cannot be listed.
pub(super) fn descendants() -> io::Result<()> {
    loop {
        for child in children(getpid())? {
            // Both may fail: a child may have ended, and not every child leads a process group.
            let _ = kill_process_group(child, Signal::KILL);
            let _ = kill_process(child, Signal::KILL);
        }
        // At least one child ends; processes that it started are listed in the next iteration.
        match wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::CHILD) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Children of a process, found by the parent ID of each process (`/proc/PID/stat`, proc(5)). The
/// file `/proc/PID/task/TID/children` is not used because not every kernel has it.
fn children(parent: Pid) -> io::Result<Vec<Pid>> {
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
        else {
            continue;
        };
        // A process may end at any moment.
        let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())) else {
            continue;
        };
        if parent_of(&stat) == Some(parent) {
            children.push(pid);
        }
    }
    Ok(children)
}

/// Parent ID, the fourth field of `/proc/PID/stat`. The process name before it may contain any
/// characters and ends with the last parenthesis.
pub(super) fn parent_of(stat: &str) -> Option<Pid> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok().and_then(Pid::from_raw)
}
