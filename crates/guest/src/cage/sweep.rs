//! Ending all descendants, where no namespace does it.

use std::{fs, io};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, wait},
};

/// Kills children until there are none: orphans become children of this process, which is their
/// reaper, so those of every generation come by.
///
/// # Errors
/// The system's, if processes cannot be listed.
pub(super) fn descendants() -> io::Result<()> {
    loop {
        for child in children(getpid())? {
            // Some lead a group of processes, some do not, and some are dead already.
            let _ = kill_process_group(child, Signal::KILL);
            let _ = kill_process(child, Signal::KILL);
        }
        // One at least ends by that, and what it has started is listed in the next round.
        match wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::CHILD) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// The children of a process, by the parent that each process has (`/proc/PID/stat`, proc(5)); the
/// file `children` is not in every kernel.
fn children(parent: Pid) -> io::Result<Vec<Pid>> {
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
        else {
            continue;
        };
        // A process may end while we look.
        let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())) else {
            continue;
        };
        if parent_of(&stat) == Some(parent) {
            children.push(pid);
        }
    }
    Ok(children)
}

/// The fourth field, behind the name, which may itself hold anything but ends with the last
/// parenthesis.
pub(super) fn parent_of(stat: &str) -> Option<Pid> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok().and_then(Pid::from_raw)
}
