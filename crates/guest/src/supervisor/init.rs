//! Init process of the supervisor's namespace: starts the machine, reaps children, and ends with
//! the machine.

use std::{
    io,
    os::unix::{ffi::OsStrExt as _, process::CommandExt as _},
    process::{Command, ExitCode},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Signal, WaitOptions, WaitStatus, set_parent_process_death_signal, wait},
};

use sys::child::become_identity;

use super::{SupervisorSpec, within};

/// Runs the machine and returns its exit status.
///
/// # Errors
/// Errors of the system if the machine cannot be started.
pub(super) fn run(spec: &SupervisorSpec) -> io::Result<ExitCode> {
    if let Some(identity) = &spec.identity {
        become_identity(identity)?;
    }
    // Set after the change of identity, which resets this signal (prctl(2)).
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The watchdog may have ended before the signal was set. The other end of this pipe, which the
    // watchdog holds, is then closed. The parent process ID cannot be checked because the watchdog
    // is in another pid namespace.
    let stdin = io::stdin();
    let mut pipe = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut pipe, Some(&Timespec::default()))?;
    if pipe[0].revents().contains(PollFlags::HUP) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    let machine = machine(spec)?.spawn().map_err(|error| with_context(error, &program(spec)))?;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status)))
                if pid.as_raw_nonzero().get().cast_unsigned() == machine.id() =>
            {
                return Ok(ExitCode::from(code(status)));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Command that runs the machine. The machine inherits standard input, a pipe that the watchdog
/// keeps open. Without it, user-mode Linux would treat the end of file as the end of its console.
pub(super) fn machine(spec: &SupervisorSpec) -> io::Result<Command> {
    let [program, arguments @ ..] = &*spec.machine else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut command = Command::new(program);
    // The machine inherits the working directory from the watchdog, because the machine's user may
    // be unable to reach the path.
    command.args(arguments).env_clear();
    if let Some(path) = &spec.temporary {
        command.env("TMPDIR", within(&spec.directory, path));
    }
    // `ps` then shows the program as specified.
    command.arg0(program);
    Ok(command)
}

/// Description of the start of the machine, for error messages.
pub(super) fn program(spec: &SupervisorSpec) -> String {
    let program = spec.machine.first().map(|program| program.as_bytes()).unwrap_or_default();
    format!("cannot start {}", String::from_utf8_lossy(program))
}

/// Adds context to an error.
pub(super) fn with_context(error: io::Error, context: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{context}: {error}"))
}

/// Exit status as shells report it: 128 plus the signal number for a signal.
fn code(status: WaitStatus) -> u8 {
    let code = status.exit_status().or_else(|| Some(128 + status.terminating_signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
