//! Running make: with a log, a count of what is done, and an end when it is wanted.
//!
//! A tree and targets enter, what make writes goes through us into a log; whether it worked, and if
//! not the lines that tell why, leaves. Make and all that it starts are one process group, which is
//! killed when the build is interrupted. If we are killed ourselves, nobody reads what they write,
//! and the next thing that one of them writes ends it.

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

/// How often the interrupt is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of a line of the log that are kept together.
const LINE_MAX: u64 = 64 << 10;
/// What make writes for a file that is compiled or assembled (`quiet_cmd` of its makefiles).
const COMPILED: [&[u8]; 2] = [b"  CC ", b"  AS "];
/// How lines look that tell what went wrong: of compilers and linkers, and of make.
const TELLING: [&str; 7] = [
    "error:",
    "undefined reference",
    "not found",
    "No such file",
    "No space left",
    "can't open",
    "*** [",
];
/// Lines of an error.
const LAST: usize = 6;
/// What would otherwise be in the kernel as the time, the user, and the host of the build, and make
/// it another one each time (`Documentation/kbuild/reproducible-builds.rst`). An empty
/// `LOCALVERSION` keeps a `+` from a release that is built in a folder of git.
const FIXED: [(&str, &str); 6] = [
    ("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 2026"),
    ("KBUILD_BUILD_USER", "fslab"),
    ("KBUILD_BUILD_HOST", "fslab"),
    ("KBUILD_BUILD_VERSION", "1"),
    ("SOURCE_DATE_EPOCH", "1767225600"),
    ("LOCALVERSION", ""),
];

/// Programs that a build starts, and the packages that have them on Debian and Ubuntu; others call
/// them the same but for the last.
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

/// Whether all programs are there; `path` is as in `PATH`.
///
/// # Errors
/// [`GuestError::Missing`] with the packages that have them.
pub(super) fn check_tools(path: &std::ffi::OsStr) -> Result<(), GuestError> {
    let there = |name: &str| {
        env::split_paths(path).any(|folder| folder.is_absolute() && folder.join(name).is_file())
    };
    let missing: Vec<_> = TOOLS.into_iter().filter(|(name, _)| !there(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    packages.dedup();
    Err(GuestError::Missing {
        what: format!("a kernel is built by programs that are not on PATH: {}", names.join(", ")),
        cure: format!(
            "install them (apt-get install {}; others have packages of the same or like names)",
            packages.join(" ")
        ),
    })
}

/// A tree in which make runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Make<'a> {
    /// The tree.
    pub(super) tree: &'a Path,
    /// The log, to which it is added.
    pub(super) log: &'a Path,
    /// Set by whoever wants to stop.
    pub(super) interrupt: &'a AtomicBool,
}

impl Make<'_> {
    /// Runs make for user-mode Linux; `heard` is told now and then how many files are compiled.
    ///
    /// # Errors
    /// [`GuestError::Build`] with what it said if it fails, [`GuestError::Interrupted`].
    pub(super) fn run(
        self,
        arguments: &[&str],
        heard: &mut dyn FnMut(u64),
    ) -> Result<(), GuestError> {
        self.command("make", &[&["ARCH=um"], arguments].concat(), heard)
    }

    /// Runs a program in the tree.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(super) fn command(
        self,
        program: &str,
        arguments: &[&str],
        heard: &mut dyn FnMut(u64),
    ) -> Result<(), GuestError> {
        let line = [&[program], arguments].concat().join(" ");
        let failed = || GuestError::io(format!("running {line}"));
        let mut log = File::options().append(true).create(true).open(self.log).map_err(failed())?;
        writeln!(log, "$ {line}").map_err(failed())?;
        let (said, says) = io::pipe().map_err(failed())?;
        let mut command = sys::program::command(program).map_err(failed())?;
        command.args(arguments).current_dir(self.tree).stdin(Stdio::null());
        command.stdout(says.try_clone().map_err(failed())?).stderr(says);
        command.envs(FIXED).process_group(0);
        let mut child = command.spawn().map_err(failed())?;
        // Its ends of the pipe, or reading would have none.
        drop(command);
        let compiled = AtomicU64::new(0);
        let (status, kept) = thread::scope(|scope| {
            let reader = scope.spawn(|| keep(said, &mut log, &compiled));
            let status = wait(&mut child, self.interrupt, &mut || heard(compiled.load(Relaxed)));
            let kept = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (status, kept)
        });
        // What came last may have been read after the end was seen.
        heard(compiled.load(Relaxed));
        let status = status.map_err(failed())?;
        if self.interrupt.load(Relaxed) {
            return Err(GuestError::Interrupted);
        }
        kept.map_err(GuestError::io(format!("writing {}", self.log.display())))?;
        if status.success() {
            return Ok(());
        }
        let text = std::fs::read(self.log).map_err(failed())?;
        let last = telling(&String::from_utf8_lossy(&text));
        let (step, log) = (line, PathBuf::from(self.log));
        Err(GuestError::Build { step, status: status.to_string(), last, log })
    }
}

/// Waits for the end of a program, or brings it about.
fn wait(
    child: &mut Child,
    interrupt: &AtomicBool,
    look: &mut dyn FnMut(),
) -> io::Result<std::process::ExitStatus> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) if interrupt.load(Relaxed) => {
                // Nothing that they write is to be kept, so they need not end in order.
                let killed = group.map(|group| kill_process_group(group, Signal::KILL));
                break match killed {
                    Some(Ok(())) => child.wait(),
                    Some(Err(_)) | None => child.kill().and_then(|()| child.wait()),
                };
            }
            Ok(None) => {}
            Err(error) => break Err(error),
        }
        look();
        thread::sleep(LOOK);
    };
    look();
    ended
}

/// Writes what comes into the log, and counts.
fn keep(said: io::PipeReader, log: &mut File, compiled: &AtomicU64) -> io::Result<()> {
    let mut said = BufReader::new(said);
    let mut line = Vec::new();
    let mut written = Ok(());
    loop {
        line.clear();
        if said.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)? == 0 {
            return written;
        }
        compiled.fetch_add(COMPILED.iter().any(|begin| line.starts_with(begin)).into(), Relaxed);
        // A full disk must not end the reading, which would hold up who writes.
        if written.is_ok() {
            written = log.write_all(&line);
        }
    }
}

/// What of a log tells why it ended: of its last run, the lines that look like errors, else the
/// last ones.
pub(super) fn telling(log: &str) -> String {
    let run = log.rfind("\n$ ").map_or(log, |at| &log[at + 1..]);
    let lines: Vec<&str> = run.lines().skip(1).filter(|line| !line.trim().is_empty()).collect();
    let tells = |line: &&str| TELLING.iter().any(|word| line.contains(word));
    let telling: Vec<&str> = lines.iter().copied().filter(tells).take(LAST).collect();
    let chosen = if telling.is_empty() {
        lines[lines.len().saturating_sub(LAST)..].to_vec()
    } else {
        telling
    };
    let plain = |line: &&str| line.trim().replace(char::is_control, "?");
    chosen.iter().map(plain).collect::<Vec<_>>().join("\n  ")
}

#[cfg(test)]
mod tests;
