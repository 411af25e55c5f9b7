//! Supervisor process that terminates a guest when fslab exits.
//!
//! User-mode Linux consists of several processes. If only the first one is killed, the others
//! continue to run on the host. The machine therefore runs under a supervisor, which is another
//! process of this binary ([`main`], [`COMMAND`]):
//!
//! ```text
//! fslab ──pipe──> watchdog ──> init process of a pid namespace ──> the machine
//! ```
//!
//! The kernel closes the pipe when fslab ends for any reason. The watchdog then kills the init
//! process, and the kernel kills all other processes of the namespace (pid_namespaces(7)). The init
//! process waits for its children, and is killed if the watchdog ends (`PR_SET_PDEATHSIG`,
//! prctl(2)). If the kernel refuses namespaces, the watchdog becomes the parent of orphaned
//! descendants (`PR_SET_CHILD_SUBREAPER`) and kills its children until none are left.
//!
//! If the kernel allows a network namespace, the machine has only a loopback device. If fslab is
//! root, the machine runs as `nobody`, without capabilities ([`Isolation`]).
//!
//! The input is a [`SupervisorSpec`]. The output is the console of the machine
//! ([`console::Console`]). The files of the machine are created after the watchdog has started,
//! because the watchdog removes them at the end. This module is independent of the kind of machine.

pub mod console;
mod init;
mod spec;
mod sweep;
mod watchdog;

use std::{
    ffi::OsString,
    fs,
    io::{self, Read as _, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio},
    sync::{Arc, OnceLock},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::GuestError;
pub use sys::child::Identity;

use console::Console;
pub use spec::{Containment, SupervisorSpec};

/// Hidden command that runs this binary as a supervisor.
pub const COMMAND: &str = "guest-supervisor";
/// Program of this process, also after its file was replaced (proc(5)).
const THIS_PROGRAM: &str = "/proc/self/exe";
/// Time limit for the watchdog to kill the machine, clean up, and end.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(10);
/// Commands to the watchdog: start and end the machine.
const GO: u8 = b'g';
const END: u8 = b'e';

/// Entry point of the hidden command [`COMMAND`] with its `arguments`.
///
/// Call this function before the process starts any thread: a process with threads cannot enter a
/// user namespace.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let outcome = match arguments.first().and_then(|role| role.to_str()) {
        Some(PROBE) => watchdog::probe(),
        Some(INIT) => {
            SupervisorSpec::of_arguments(&arguments[1..]).and_then(|spec| init::run(&spec))
        }
        _ => SupervisorSpec::of_arguments(&arguments).and_then(|spec| watchdog::run(&spec)),
    };
    outcome.unwrap_or_else(|error| {
        // A failure to write cannot be reported.
        let _ = writeln!(io::stderr(), "{COMMAND}: {error}");
        ExitCode::from(FAILED)
    })
}

/// Role of the init process of a namespace.
const INIT: &str = "--init";
/// Role of a process that only checks if namespaces are allowed.
const PROBE: &str = "--probe";
/// Exit status of a supervisor that failed itself, as in `env` and similar programs.
const FAILED: u8 = 125;

/// Kinds of isolation of a guest from the host that the kernel allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Isolation {
    /// The guest has a pid namespace, and can have a mount namespace.
    pub namespaces: bool,
    /// The guest has a network namespace, in which only the loopback device exists.
    pub network: bool,
    /// The guest runs as `nobody` if fslab runs as root.
    pub identity: bool,
}

/// Names of the kinds of isolation in the output of a probe.
const NAMESPACES: &str = "namespaces";
const NETWORK: &str = "network";
const IDENTITY: &str = "identity";

impl Isolation {
    /// Isolation of the guests of this process. The first call starts a process that tries each
    /// kind, which takes milliseconds.
    #[must_use]
    pub fn here() -> Self {
        static PROBED: OnceLock<Isolation> = OnceLock::new();
        *PROBED.get_or_init(|| {
            let mut command = Command::new(THIS_PROGRAM);
            command.args([COMMAND, PROBE]).stdin(Stdio::null()).stderr(Stdio::null());
            let output = command.output().map(|output| output.stdout).unwrap_or_default();
            let output = String::from_utf8_lossy(&output);
            let kinds: Vec<&str> = output.split(' ').collect();
            Self {
                namespaces: kinds.contains(&NAMESPACES),
                network: kinds.contains(&NETWORK),
                identity: kinds.contains(&IDENTITY),
            }
        })
    }

    /// Identity of a guest; `None` if the guest has the identity of this process.
    #[must_use]
    pub fn identity(self, extra_group: Option<u32>) -> Option<Identity> {
        self.identity.then(|| nobody(extra_group))
    }
}

/// The user `nobody`, which owns no files. Its ID is the same on every system: kernels use it for
/// IDs that they cannot represent (`DEFAULT_OVERFLOWUID` in include/linux/highuid.h).
fn nobody(extra_group: Option<u32>) -> Identity {
    const OVERFLOW: u32 = 65534;
    Identity { user: OVERFLOW, group: OVERFLOW, groups: extra_group.into_iter().collect() }
}

/// Handle of a supervisor and its machine. Dropping the handle ends both.
#[derive(Debug)]
pub struct Supervisor {
    spec: SupervisorSpec,
    watchdog: Child,
    control: Option<ChildStdin>,
    status: ChildStdout,
    console: Arc<Console>,
    reader: Option<JoinHandle<()>>,
    ended: Option<String>,
}

impl Supervisor {
    /// Starts the watchdog; [`Self::start`] then starts the machine. Create the files of the
    /// specification after this function has returned.
    ///
    /// # Errors
    /// [`GuestError::Io`] if the watchdog cannot be started.
    pub fn spawn(spec: &SupervisorSpec) -> Result<Self, GuestError> {
        let context = || "cannot start the guest supervisor";
        let (read, write) = io::pipe().map_err(GuestError::io(context()))?;
        let mut watchdog = Command::new(THIS_PROGRAM)
            .arg0("fslab")
            .arg(COMMAND)
            .args(spec.to_arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(write)
            // Only fslab receives signals from the terminal; it then ends the machine normally.
            .process_group(0)
            .spawn()
            .map_err(GuestError::io(context()))?;
        let (Some(control), Some(status)) = (watchdog.stdin.take(), watchdog.stdout.take()) else {
            return Err(GuestError::io(context())(io::ErrorKind::BrokenPipe.into()));
        };
        let console = Arc::new(Console::default());
        let reader = {
            let console = Arc::clone(&console);
            thread::spawn(move || console.follow(read))
        };
        Ok(Self {
            spec: spec.clone(),
            watchdog,
            control: Some(control),
            status,
            console,
            reader: Some(reader),
            ended: None,
        })
    }

    /// Starts the machine.
    ///
    /// # Errors
    /// [`GuestError::Io`] if the watchdog has ended.
    pub fn start(&mut self) -> Result<(), GuestError> {
        self.send_command(GO).map_err(GuestError::io("cannot start the guest"))
    }

    /// Console output of the machine.
    #[must_use]
    pub fn console(&self) -> &Console {
        &self.console
    }

    /// Waits at most `time` for the end of the machine. Returns a description of the end, or `None`
    /// if the machine is still running.
    pub fn ended_within(&mut self, time: Duration) -> Option<String> {
        if self.ended.is_none() {
            let time = Timespec::try_from(time).ok();
            let mut status = [PollFd::new(&self.status, PollFlags::IN)];
            // An interrupted wait only shortens the wait.
            if poll(&mut status, time.as_ref()).is_ok_and(|ready| ready > 0) {
                // The watchdog writes its only line at once, so this read does not block.
                let mut line = [0; 128];
                let length = self.status.read(&mut line).unwrap_or(0);
                let line = String::from_utf8_lossy(&line[..length]);
                let line = line.trim();
                let line = if line.is_empty() { "the supervisor ended" } else { line };
                self.ended = Some(line.to_owned());
                self.finish_console();
            }
        }
        self.ended.clone()
    }

    /// Ends the machine and waits until all of its processes have ended.
    ///
    /// # Errors
    /// [`GuestError::Io`] if the watchdog does not end within 10 s. The watchdog is then killed.
    pub fn end(mut self) -> Result<(), GuestError> {
        self.shut_down().map_err(GuestError::io("cannot end the guest"))
    }

    fn shut_down(&mut self) -> io::Result<()> {
        if self.control.is_none() {
            return Ok(());
        }
        // A watchdog that has ended does not read the command.
        let _ = self.send_command(END);
        self.control = None;
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.watchdog.try_wait()? {
                break status;
            }
            if start.elapsed() > SHUTDOWN_LIMIT {
                self.watchdog.kill()?;
                self.watchdog.wait()?;
                self.clean();
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(Duration::from_millis(2));
        };
        self.finish_console();
        if !status.success() {
            self.clean();
        }
        Ok(())
    }

    /// Removes files left by a supervisor that was killed.
    fn clean(&self) {
        if let Some(path) = &self.spec.temporary {
            // The directory is empty, because machines unlink the files that they create in it.
            let _ = fs::remove_dir(within(&self.spec.directory, path));
        }
        watchdog::clean(&self.spec, false);
    }

    fn send_command(&mut self, command: u8) -> io::Result<()> {
        let control = self.control.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        control.write_all(&[command])
    }

    /// Waits for console output that is still in transit. The wait is short because another process
    /// might have the console open.
    fn finish_console(&mut self) {
        self.console.wait_for_end(Duration::from_secs(1));
        if let Some(reader) = self.reader.take_if(|reader| reader.is_finished()) {
            // The thread does not panic. If it did, the output read so far would be available.
            let _ = reader.join();
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if let Err(error) = self.shut_down() {
            tracing::warn!(%error, "cannot end a guest");
        }
    }
}

/// Path of a specification, resolved relative to its directory.
fn within(directory: &Path, path: &Path) -> std::path::PathBuf {
    directory.join(path)
}

#[cfg(test)]
mod tests;
