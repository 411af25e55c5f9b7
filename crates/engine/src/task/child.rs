//! Process of a standard program: started, awaited, and stopped on request.

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

use super::context::{TaskContext, failed};
use crate::{EngineError, clock::Usage, error::Operation};

/// Interval in which a running program is checked for an interruption.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// Maximum number of arguments in an error message.
const SHOWN: usize = 8;
/// Maximum bytes of program output in an error message.
const OUTPUT_SHOWN: usize = 400;

/// Program and its Debian package.
#[derive(Clone, Copy)]
pub(super) struct Program {
    /// Name of the program.
    pub(super) name: &'static str,
    /// Debian package.
    pub(super) package: &'static str,
}

/// Runs a program in a directory. Adds the resource usage of the program and its child processes to
/// the context.
///
/// The program is started without a shell, with empty input, discarded output, and the environment
/// of [`sys::program`]. It has a separate process group, so that it can be stopped together with
/// its children.
pub(super) fn run(
    program: Program,
    arguments: &[OsString],
    directory: &Path,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let Program { name, package } = program;
    let unstarted = |source| EngineError::Program { program: name, package, source };
    let output = memfd_create("fslab-stderr", MemfdFlags::CLOEXEC)
        .map_err(|errno| unstarted(errno.into()))?;
    let mut command = sys::program::command(name).map_err(unstarted)?;
    command.args(arguments).current_dir(directory).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(output.try_clone().map_err(unstarted)?);
    sys::child::dies_with_parent(&mut command);
    let child = command.spawn().map_err(unstarted)?;
    let pid = Pid::from_child(&child);
    let waiting = |errno| failed(Operation::Wait, directory, errno);
    let stopped = wait_child(pid, context).map_err(waiting);
    if !matches!(stopped, Ok(false)) {
        // The process may have ended in the meantime.
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let ended = sys::child::wait(child);
    let ended =
        ended.map_err(|error| waiting(Errno::from_io_error(&error).unwrap_or(Errno::CHILD)))?;
    context.children = context.children.plus(Usage::of_program(&ended));
    let status = ended.status;
    if stopped? {
        return Err(EngineError::Interrupted);
    }
    if status.success() {
        return Ok(());
    }
    let mut output = std::fs::File::from(output);
    let mut text = Vec::new();
    // Output that cannot be read is not shown.
    let _ = output.rewind().and_then(|()| output.take(1 << 16).read_to_end(&mut text));
    Err(EngineError::ProgramFailed {
        command: shown(name, arguments),
        verdict: verdict(status, &String::from_utf8_lossy(&text)),
    })
}

/// Waits until the process has ended or must be stopped. Returns true if it must be stopped.
fn wait_child(pid: Pid, context: &TaskContext<'_>) -> Result<bool, Errno> {
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    loop {
        if context.poll().is_err() {
            return Ok(true);
        }
        let mut files = [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)];
        match poll(&mut files, Some(&POLL_INTERVAL)) {
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

/// Exit status and end of the output of a program.
fn verdict(status: ExitStatus, output: &str) -> String {
    let output = output.trim();
    let start = output.char_indices().rev().nth(OUTPUT_SHOWN).map_or(0, |(start, _)| start);
    match &output[start..] {
        "" => format!("failed without output ({status})"),
        output => format!("failed ({status}): {output}"),
    }
}
