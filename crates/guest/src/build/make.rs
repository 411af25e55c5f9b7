//! Runs make with a log, a count of compiled files, and support for interruption.
//!
//! The output of make is written to a log. If make fails, the relevant lines are returned. Make and
//! its children are one process group, which is killed when the build is interrupted. If this
//! process is killed, the pipe has no reader, and SIGPIPE ends make and its children at their next
//! write.

use std::{
    env,
    fs::File,
    io::{self, BufRead as _, BufReader, Read, Write as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::GuestError;

/// Interval between checks of the interrupt flag.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of bytes of a log line that are read at once.
const LINE_MAX: u64 = 64 << 10;
/// Output of make for a compiled or assembled file (`quiet_cmd` of its makefiles).
const COMPILED: [&[u8]; 2] = [b"  CC ", b"  AS "];
/// Markers of error lines of compilers, linkers, and make.
const ERROR_MARKERS: [&str; 7] = [
    "error:",
    "undefined reference",
    "not found",
    "No such file",
    "No space left",
    "can't open",
    "*** [",
];
/// Maximum number of lines in an error.
const LINES_MAX: usize = 6;
/// Values that replace the time, user, and host of the build, which would make each kernel
/// different (`Documentation/kbuild/reproducible-builds.rst`). An empty `LOCALVERSION` prevents a
/// `+` in the release of a source in a git directory.
const FIXED: [(&str, &str); 6] = [
    ("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 2026"),
    ("KBUILD_BUILD_USER", "fslab"),
    ("KBUILD_BUILD_HOST", "fslab"),
    ("KBUILD_BUILD_VERSION", "1"),
    ("SOURCE_DATE_EPOCH", "1767225600"),
    ("LOCALVERSION", ""),
];

/// Program that applies patches, and its package.
pub(super) const PATCH: (&str, &str) = ("patch", "patch");

/// Programs that every build runs, and their packages on Debian and Ubuntu.
const TOOLS: [(&str, &str); 8] = [
    ("make", "make"),
    ("gcc", "gcc libc6-dev"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("ld", "binutils"),
    ("strip", "binutils"),
    ("awk", "mawk"),
];

/// Checks that all programs are installed, those of every build and `others`; `path` has the format
/// of `PATH`.
///
/// # Errors
/// [`GuestError::Missing`] with the packages of the missing programs.
pub(super) fn check_tools(
    path: &std::ffi::OsStr,
    others: &[(&'static str, &'static str)],
) -> Result<(), GuestError> {
    let there = |name: &str| {
        env::split_paths(path)
            .any(|directory| directory.is_absolute() && directory.join(name).is_file())
    };
    let all = TOOLS.iter().chain(others);
    let missing: Vec<_> = all.filter(|(name, _)| !there(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    packages.dedup();
    Err(GuestError::Missing {
        what: format!("programs required to build a kernel are not on PATH: {}", names.join(", ")),
        hint: format!(
            "install them (apt-get install {}; package names of other distributions are similar)",
            packages.join(" ")
        ),
    })
}

/// Source tree in which make runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Make<'a> {
    /// Path of the tree.
    pub(super) tree: &'a Path,
    /// Log file, to which output is appended.
    pub(super) log: &'a Path,
    /// Flag that interrupts the build.
    pub(super) interrupt: &'a AtomicBool,
}

impl Make<'_> {
    /// Runs make for user-mode Linux and periodically calls `report` with the number of compiled
    /// files.
    ///
    /// # Errors
    /// [`GuestError::Build`] with the relevant lines of the output, [`GuestError::Interrupted`].
    pub(super) fn run(
        self,
        arguments: &[&str],
        report: &mut dyn FnMut(u64),
    ) -> Result<(), GuestError> {
        self.command("make", &[&["ARCH=um"], arguments].concat(), report)
    }

    /// Runs a program in the tree.
    ///
    /// # Errors
    /// Errors of [`Self::run`].
    pub(super) fn command(
        self,
        program: &str,
        arguments: &[&str],
        report: &mut dyn FnMut(u64),
    ) -> Result<(), GuestError> {
        let line = [&[program], arguments].concat().join(" ");
        let failed = || GuestError::io(format!("cannot run {line}"));
        let mut log = File::options().append(true).create(true).open(self.log).map_err(failed())?;
        writeln!(log, "$ {line}").map_err(failed())?;
        let (reader, writer) = io::pipe().map_err(failed())?;
        let mut command = sys::program::command(program).map_err(failed())?;
        command.args(arguments).current_dir(self.tree).stdin(Stdio::null());
        command.stdout(writer.try_clone().map_err(failed())?).stderr(writer);
        command.envs(FIXED).process_group(0);
        let mut child = command.spawn().map_err(failed())?;
        // The command holds two writing ends of the pipe. They must be closed, because reading
        // would not end otherwise.
        drop(command);
        let compiled = AtomicU64::new(0);
        let (status, copied) = thread::scope(|scope| {
            let thread = scope.spawn(|| copy_output(reader, &mut log, &compiled));
            let status = wait(&mut child, self.interrupt, &mut || report(compiled.load(Relaxed)));
            let copied = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (status, copied)
        });
        // The last output may have been read after the program ended.
        report(compiled.load(Relaxed));
        let status = status.map_err(failed())?;
        if self.interrupt.load(Relaxed) {
            return Err(GuestError::Interrupted);
        }
        copied.map_err(GuestError::io(format!("cannot write {}", self.log.display())))?;
        if status.success() {
            return Ok(());
        }
        let text = std::fs::read(self.log).map_err(failed())?;
        let last = error_lines(&String::from_utf8_lossy(&text));
        let (step, log) = (line, PathBuf::from(self.log));
        Err(GuestError::Build { step, status: status.to_string(), last, log })
    }
}

/// Waits for a program to end, or ends it if interrupted.
fn wait(
    child: &mut Child,
    interrupt: &AtomicBool,
    on_poll: &mut dyn FnMut(),
) -> io::Result<std::process::ExitStatus> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) if interrupt.load(Relaxed) => {
                // The output of an interrupted build is discarded, so its processes may be killed.
                let killed = group.map(|group| kill_process_group(group, Signal::KILL));
                break match killed {
                    Some(Ok(())) => child.wait(),
                    Some(Err(_)) | None => child.kill().and_then(|()| child.wait()),
                };
            }
            Ok(None) => {}
            Err(error) => break Err(error),
        }
        on_poll();
        thread::sleep(POLL_INTERVAL);
    };
    on_poll();
    ended
}

/// Copies the output to the log and counts compiled files.
fn copy_output(reader: io::PipeReader, log: &mut File, compiled: &AtomicU64) -> io::Result<()> {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    let mut written = Ok(());
    loop {
        line.clear();
        if reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)? == 0 {
            return written;
        }
        compiled.fetch_add(COMPILED.iter().any(|begin| line.starts_with(begin)).into(), Relaxed);
        // Keep reading if the disk is full: otherwise the writers would block.
        if written.is_ok() {
            written = log.write_all(&line);
        }
    }
}

/// Output of the last program in a log.
pub(super) fn last_run(log: &str) -> impl Iterator<Item = &str> {
    log.rfind("\n$ ").map_or(log, |at| &log[at + 1..]).lines().skip(1)
}

/// Relevant lines of the last run in a log: lines with error markers, otherwise the last lines.
pub(super) fn error_lines(log: &str) -> String {
    let lines: Vec<&str> = last_run(log).filter(|line| !line.trim().is_empty()).collect();
    let is_error = |line: &&str| ERROR_MARKERS.iter().any(|marker| line.contains(marker));
    let error_lines: Vec<&str> = lines.iter().copied().filter(is_error).take(LINES_MAX).collect();
    let chosen = if error_lines.is_empty() {
        lines[lines.len().saturating_sub(LINES_MAX)..].to_vec()
    } else {
        error_lines
    };
    let printable = |line: &&str| line.trim().replace(char::is_control, "?");
    chosen.iter().map(printable).collect::<Vec<_>>().join("\n  ")
}

#[cfg(test)]
mod tests;
