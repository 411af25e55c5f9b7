//! The first process of a cage's namespace: starts the machine, reaps, and ends with it.

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

use super::{Order, within};

/// Runs the machine, and ends as it does.
///
/// # Errors
/// The system's, if it cannot be started.
pub(super) fn run(order: &Order) -> io::Result<ExitCode> {
    if let Some(identity) = &order.identity {
        become_identity(identity)?;
    }
    // After the change of identity, which would undo it.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The keeper may have ended before that. It holds the other end of this pipe, and is not to be
    // asked by its number, since it is in another namespace.
    let stdin = io::stdin();
    let mut pipe = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut pipe, Some(&Timespec::default()))?;
    if pipe[0].revents().contains(PollFlags::HUP) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    let machine = machine(order)?.spawn().map_err(|error| named(error, &program(order)))?;
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

/// The command that is the machine; its input never ends, since user-mode Linux would take the end
/// for that of its console.
pub(super) fn machine(order: &Order) -> io::Result<Command> {
    let [program, arguments @ ..] = &*order.machine else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut command = Command::new(program);
    // The keeper has moved to the directory, to which another user may have no way.
    command.args(arguments).env_clear();
    if let Some(path) = &order.temporary {
        command.env("TMPDIR", within(&order.directory, path));
    }
    // What `ps` shows is what was ordered.
    command.arg0(program);
    Ok(command)
}

/// The machine's program, for messages.
pub(super) fn program(order: &Order) -> String {
    let program = order.machine.first().map(|program| program.as_bytes()).unwrap_or_default();
    format!("starting {}", String::from_utf8_lossy(program))
}

/// An error with what was tried.
pub(super) fn named(error: io::Error, what: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// The exit status by which shells tell of a status: 128 and the signal's number for a signal.
fn code(status: WaitStatus) -> u8 {
    let code = status.exit_status().or_else(|| Some(128 + status.terminating_signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
