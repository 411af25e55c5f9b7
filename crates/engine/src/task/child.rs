//! One process of an everyday program: started, waited for, and told to stop.
#![expect(
    unsafe_code,
    reason = "wait4(2), which alone tells what a program used, has no safe form"
)]

use std::{
    ffi::OsString,
    io::{Read, Seek},
    mem::MaybeUninit,
    os::{
        fd::AsFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::Path,
    process::{Command, ExitStatus, Stdio},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{MemfdFlags, memfd_create},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};

use super::hand::{Hand, failed};
use crate::{EngineError, clock::Usage, error::Operation};

/// How often a program that runs is left to look whether it is to stop.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// Arguments of a command that an error shows.
const SHOWN: usize = 8;
/// Bytes of what a program said that an error shows.
const SAID: usize = 400;

/// A program, and where Debian has it.
#[derive(Clone, Copy)]
pub(super) struct Program {
    /// Its name.
    pub(super) name: &'static str,
    /// The package.
    pub(super) package: &'static str,
}

/// Runs a program in a directory, and adds what it used to the hand; programs that it starts itself
/// and waits for are included.
///
/// It is started without a shell, with nothing to read, what it prints thrown away, and the
/// environment of this process but for the language and the variables that change what these
/// programs do. It has a process group of its own, so that it can be stopped together with what it
/// starts.
pub(super) fn run(
    program: Program,
    arguments: &[OsString],
    directory: &Path,
    hand: &mut Hand<'_>,
) -> Result<(), EngineError> {
    let Program { name, package } = program;
    let unstarted = |source| EngineError::Program { program: name, package, source };
    let said = memfd_create("fslab-stderr", MemfdFlags::CLOEXEC)
        .map_err(|errno| unstarted(errno.into()))?;
    let mut command = Command::new(name);
    command.args(arguments).current_dir(directory).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(said.try_clone().map_err(unstarted)?);
    command.env("LC_ALL", "C");
    ["TAR_OPTIONS", "GZIP", "POSIXLY_CORRECT", "TAPE"].iter().for_each(|name| {
        command.env_remove(name);
    });
    sys::child::dies_with_parent(&mut command);
    let child = command.spawn().map_err(unstarted)?;
    let pid = Pid::from_child(&child);
    let waiting = |errno| failed(Operation::Wait, directory, errno);
    let stopped = attend(pid, hand).map_err(waiting);
    if !matches!(stopped, Ok(false)) {
        // It may have ended just now, and then there is nobody to stop.
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let (status, usage) = wait(pid).map_err(waiting)?;
    hand.children = hand.children.plus(usage);
    if stopped? {
        return Err(EngineError::Interrupted);
    }
    if status.success() {
        return Ok(());
    }
    let mut said = std::fs::File::from(said);
    let mut text = Vec::new();
    // What cannot be read is not shown.
    let _ = said.rewind().and_then(|()| said.take(1 << 16).read_to_end(&mut text));
    Err(EngineError::ProgramFailed {
        command: shown(name, arguments),
        verdict: verdict(status, &String::from_utf8_lossy(&text)),
    })
}

/// Waits until the process has ended or is to stop; whether it is to stop.
fn attend(pid: Pid, hand: &Hand<'_>) -> Result<bool, Errno> {
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    loop {
        if hand.look().is_err() {
            return Ok(true);
        }
        let mut files = [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)];
        match poll(&mut files, Some(&LOOK)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(false),
            Err(errno) => return Err(errno),
        }
    }
}

/// Ends a child that nobody else waits for: how it ended, and what it used.
fn wait(pid: Pid) -> Result<(ExitStatus, Usage), Errno> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        let pid = pid.as_raw_nonzero().get();
        // SAFETY: both pointers are valid for what the kernel writes there, one int and one rusage.
        let answer = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
        if answer >= 0 {
            break;
        }
        let error = std::io::Error::last_os_error();
        match Errno::from_io_error(&error) {
            Some(Errno::INTR) => {}
            errno => return Err(errno.unwrap_or(Errno::CHILD)),
        }
    }
    // SAFETY: all-zero is a valid rusage, and the kernel has filled it.
    let usage = unsafe { usage.assume_init() };
    Ok((ExitStatus::from_raw(status), Usage::from_kernel(&usage)))
}

fn shown(name: &str, arguments: &[OsString]) -> String {
    let words = arguments.iter().map(|word| word.to_string_lossy());
    let mut words: Vec<_> = std::iter::once(name.into()).chain(words.take(SHOWN)).collect();
    if arguments.len() > SHOWN {
        words.push("…".into());
    }
    words.join(" ")
}

/// How a program ended, and the end of what it said.
fn verdict(status: ExitStatus, said: &str) -> String {
    let said = said.trim();
    let start = said.char_indices().rev().nth(SAID).map_or(0, |(start, _)| start);
    match &said[start..] {
        "" => format!("failed without a word ({status})"),
        said => format!("failed ({status}): {said}"),
    }
}
