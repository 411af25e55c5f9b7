//! One process of an everyday program: started, waited for, and told to stop.

use std::{
    ffi::OsString,
    io::{Read, Seek},
    os::{fd::AsFd, unix::process::CommandExt},
    path::Path,
    process::{ExitStatus, Stdio},
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
/// environment of [`sys::program`]. It has its own process group, so that it can be stopped
/// together with what it starts.
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
    let mut command = sys::program::command(name).map_err(unstarted)?;
    command.args(arguments).current_dir(directory).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(said.try_clone().map_err(unstarted)?);
    sys::child::dies_with_parent(&mut command);
    let child = command.spawn().map_err(unstarted)?;
    let pid = Pid::from_child(&child);
    let waiting = |errno| failed(Operation::Wait, directory, errno);
    let stopped = attend(pid, hand).map_err(waiting);
    if !matches!(stopped, Ok(false)) {
        // It may have ended just now, and then there is nobody to stop.
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let ended = sys::child::wait(child);
    let ended =
        ended.map_err(|error| waiting(Errno::from_io_error(&error).unwrap_or(Errno::CHILD)))?;
    hand.children = hand.children.plus(Usage::of_program(&ended));
    let status = ended.status;
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
