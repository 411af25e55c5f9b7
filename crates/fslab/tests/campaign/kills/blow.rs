//! Signals and failures that end a command early.

use std::{
    fs,
    process::Child,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::ground::{Process, processes};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blow {
    Kill,
    /// SIGTERM to the process only, as sent by kill(1) and systemd.
    Terminate,
    /// SIGINT to the process group, as sent by a terminal.
    Interrupt,
    HangUp,
    /// SIGTERM twice within a second.
    Twice,
    /// The readers of stdout and stderr exit.
    Closed,
    /// The filesystem of the run file or the report becomes full.
    Full,
    /// SIGKILL to one process of a guest.
    Part(Part),
}

/// Process of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Supervisor,
    /// Process 1 of the PID namespace of the supervisor.
    First,
    /// User-mode Linux or QEMU.
    Machine,
}

/// Maximum time to wait for a process of a guest to start.
const START: Duration = Duration::from_secs(60);

impl Blow {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kill => "SIGKILL",
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
            Self::HangUp => "SIGHUP",
            Self::Twice => "SIGTERM twice",
            Self::Closed => "stdout, stderr closed",
            Self::Full => "filesystem full",
            Self::Part(Part::Supervisor) => "SIGKILL to the supervisor",
            Self::Part(Part::First) => "SIGKILL to its init process",
            Self::Part(Part::Machine) => "SIGKILL to the virtual machine",
        }
    }

    /// Signal that ends the process if it does not handle the signal.
    pub(super) fn signal(self) -> Option<i32> {
        let signal = match self {
            Self::Kill => Signal::KILL,
            Self::Terminate | Self::Twice => Signal::TERM,
            Self::Interrupt => Signal::INT,
            Self::HangUp => Signal::HUP,
            Self::Closed | Self::Full | Self::Part(_) => return None,
        };
        Some(signal.as_raw())
    }

    /// Applies the signal or failure. The child may have exited; returns true if it was running.
    pub(super) fn strike(self, child: &mut Child, random: &mut fastrand::Rng) -> bool {
        let running = child.try_wait().unwrap().is_none();
        let pid = Pid::from_child(child);
        match self {
            Self::Kill => signaled(kill_process(pid, Signal::KILL)),
            Self::Terminate => signaled(kill_process(pid, Signal::TERM)),
            Self::Interrupt => signaled(kill_process_group(pid, Signal::INT)),
            Self::HangUp => signaled(kill_process_group(pid, Signal::HUP)),
            Self::Twice => {
                signaled(kill_process(pid, Signal::TERM));
                std::thread::sleep(Duration::from_millis(random.u64(0..1000)));
                signaled(kill_process(pid, Signal::TERM));
            }
            Self::Closed => drop((child.stdout.take(), child.stderr.take())),
            Self::Full => {}
            Self::Part(part) => return part.kill(child),
        }
        running
    }
}

/// The process may have exited before.
fn signaled(sent: rustix::io::Result<()>) {
    assert!(matches!(sent, Ok(()) | Err(rustix::io::Errno::SRCH)), "{sent:?}");
}

impl Part {
    /// Waits for the process to start and kills it. `false` if the command ended first.
    fn kill(self, child: &mut Child) -> bool {
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() && start.elapsed() < START {
            let all = processes(child.id(), "/no/such/state");
            if let Some(process) = all.iter().find(|process| self.is(process)) {
                signaled(kill_process(Pid::from_raw(process.id).unwrap(), Signal::KILL));
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    fn is(self, process: &Process) -> bool {
        let word = |at: usize| process.arguments.get(at).map_or("", String::as_str);
        let cage = word(1) == guest::supervisor::COMMAND;
        match self {
            Self::Supervisor => cage && word(2) != "--init",
            Self::First => cage && word(2) == "--init",
            Self::Machine => {
                let program = fs::read_link(format!("/proc/{}/exe", process.id));
                let program = program.unwrap_or_default().display().to_string();
                program.contains("qemu-system") || program.contains("linux.uml")
            }
        }
    }
}
