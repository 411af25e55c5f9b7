//! What keeps a guest from outliving the process that booted it.
//!
//! Killing a virtual machine is not enough: user-mode Linux is several processes, and those of its
//! guest go on running natively when only the first is killed. So the machine runs in a cage, which
//! is this binary again ([`main`], [`COMMAND`]):
//!
//! ```text
//! fslab ──pipe──> keeper ──> first process of a pid namespace ──> the machine
//! ```
//!
//! The keeper waits for the pipe to close, which the kernel does however fslab ends; it then kills
//! the first process, with which the kernel kills everything in the namespace (pid_namespaces(7)).
//! The first process reaps, and has itself killed when the keeper ends (`PR_SET_PDEATHSIG`,
//! prctl(2)). Where namespaces are refused, the keeper makes itself the one to whom orphans are
//! given (`PR_SET_CHILD_SUBREAPER`), and kills until it has no children left.
//!
//! The machine has no network: its network namespace has no device. If fslab is root, the machine
//! runs as `nobody`, without capabilities ([`Isolation`]).
//!
//! An [`Order`] enters. The console, which is all that the machine writes, leaves by a
//! [`console::Console`]. Files that the machine needs are made after the keeper runs, and removed
//! by it, so that they do not stay behind either. What the machine is, nobody here knows.

pub mod console;
mod first;
mod keeper;
mod order;
mod sweep;

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
pub use order::{Order, Way};

/// The hidden command by which this binary is a cage.
pub const COMMAND: &str = "guest-cage";
/// Where a process finds the program that it is, also after that was replaced (proc(5)).
const THIS_PROGRAM: &str = "/proc/self/exe";
/// How long a keeper may take to end: it kills, and waits for the kernel to have killed.
const SWEEPING: Duration = Duration::from_secs(10);
/// What the keeper is told: to start the machine, and to end it.
const GO: u8 = b'g';
const END: u8 = b'e';

/// What this binary does when it is called with [`COMMAND`] and `arguments` behind it.
///
/// It has to be called before the process starts any thread, since a process with threads cannot
/// move to a user namespace.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let outcome = match arguments.first().and_then(|role| role.to_str()) {
        Some(PROBE) => keeper::probe(),
        Some(FIRST) => Order::of_arguments(&arguments[1..]).and_then(|order| first::run(&order)),
        _ => Order::of_arguments(&arguments).and_then(|order| keeper::run(&order)),
    };
    outcome.unwrap_or_else(|error| {
        // Nobody is left to be told when this fails.
        let _ = writeln!(io::stderr(), "{COMMAND}: {error}");
        ExitCode::from(FAILED)
    })
}

/// The role of the first process in a namespace.
const FIRST: &str = "--first";
/// The role of a process that only tries whether namespaces are allowed.
const PROBE: &str = "--probe";
/// The exit status of a cage that could not do its work, as of `env` and its like.
const FAILED: u8 = 125;

/// Isolation of a guest from the host, as far as the kernel allows it to this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Isolation {
    /// It has a pid namespace, and can have a mount namespace.
    pub namespaces: bool,
    /// It has a network namespace, in which there is no device.
    pub network: bool,
    /// It runs as `nobody` if fslab runs as root.
    pub identity: bool,
}

/// Words for the kinds of isolation, by which a probe reports them.
const NAMESPACES: &str = "namespaces";
const NETWORK: &str = "network";
const IDENTITY: &str = "identity";

impl Isolation {
    /// That of guests of this process; tried once, by another process, in milliseconds.
    #[must_use]
    pub fn here() -> Self {
        static TRIED: OnceLock<Isolation> = OnceLock::new();
        *TRIED.get_or_init(|| {
            let mut command = Command::new(THIS_PROGRAM);
            command.args([COMMAND, PROBE]).stdin(Stdio::null()).stderr(Stdio::null());
            let output = command.output().map(|output| output.stdout).unwrap_or_default();
            let output = String::from_utf8_lossy(&output);
            let has = |word| output.split(' ').any(|other| other == word);
            let (namespaces, network) = (has(NAMESPACES), has(NETWORK));
            Self { namespaces, network, identity: has(IDENTITY) }
        })
    }

    /// The identity of a guest: none if it is that of this process.
    #[must_use]
    pub fn identity(self, further_group: Option<u32>) -> Option<Identity> {
        self.identity.then(|| nobody(further_group))
    }
}

/// `nobody`, which owns no files, has the id to which kernels map what they cannot represent
/// (`DEFAULT_OVERFLOWUID` in include/linux/highuid.h). So every system has it.
fn nobody(further_group: Option<u32>) -> Identity {
    const OVERFLOW: u32 = 65534;
    Identity { user: OVERFLOW, group: OVERFLOW, groups: further_group.into_iter().collect() }
}

/// Whether processes of this user may have namespaces of their own, with mounts.
#[must_use]
pub fn namespaces_allowed() -> bool {
    Isolation::here().namespaces
}

/// A cage, and the machine in it. Dropping it ends both.
#[derive(Debug)]
pub struct Cage {
    order: Order,
    keeper: Child,
    control: Option<ChildStdin>,
    status: ChildStdout,
    console: Arc<Console>,
    reader: Option<JoinHandle<()>>,
    ended: Option<String>,
}

impl Cage {
    /// Starts the keeper; [`Self::start`] then starts the machine. Files of the order may be made
    /// as soon as this has returned.
    ///
    /// # Errors
    /// [`GuestError::Io`] if this program cannot be started again.
    pub fn spawn(order: &Order) -> Result<Self, GuestError> {
        let context = || "starting this program again, as the cage of a guest";
        let (read, write) = io::pipe().map_err(GuestError::io(context()))?;
        let mut keeper = Command::new(THIS_PROGRAM)
            .arg0("fslab")
            .arg(COMMAND)
            .args(order.to_arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(write)
            // Signals of the terminal are for fslab, which then ends the machine in order.
            .process_group(0)
            .spawn()
            .map_err(GuestError::io(context()))?;
        let (Some(control), Some(status)) = (keeper.stdin.take(), keeper.stdout.take()) else {
            return Err(GuestError::io(context())(io::ErrorKind::BrokenPipe.into()));
        };
        let console = Arc::new(Console::default());
        let reader = {
            let console = Arc::clone(&console);
            thread::spawn(move || console.follow(read))
        };
        Ok(Self {
            order: order.clone(),
            keeper,
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
    /// [`GuestError::Io`] if the keeper is no more.
    pub fn start(&mut self) -> Result<(), GuestError> {
        self.tell(GO).map_err(GuestError::io("starting a guest in its cage"))
    }

    /// What the machine has written.
    #[must_use]
    pub fn console(&self) -> &Console {
        &self.console
    }

    /// Waits for the machine's end, but not longer than this; tells how it ended.
    pub fn ended_within(&mut self, time: Duration) -> Option<String> {
        if self.ended.is_none() {
            let time = Timespec::try_from(time).ok();
            let mut status = [PollFd::new(&self.status, PollFlags::IN)];
            // An interrupted wait is a short one.
            if poll(&mut status, time.as_ref()).is_ok_and(|ready| ready > 0) {
                // The keeper writes its one line at once, so that this does not wait.
                let mut line = [0; 128];
                let length = self.status.read(&mut line).unwrap_or(0);
                let line = String::from_utf8_lossy(&line[..length]);
                let line = line.trim();
                let line = if line.is_empty() { "its cage ended" } else { line };
                self.ended = Some(line.to_owned());
                self.hear_out();
            }
        }
        self.ended.clone()
    }

    /// Ends the machine, and waits until nothing of it is left.
    ///
    /// # Errors
    /// [`GuestError::Io`] if the keeper does not end; it is killed then.
    pub fn end(mut self) -> Result<(), GuestError> {
        self.sweep().map_err(GuestError::io("ending a guest"))
    }

    fn sweep(&mut self) -> io::Result<()> {
        if self.control.is_none() {
            return Ok(());
        }
        // If it has ended by itself, nobody reads this.
        let _ = self.tell(END);
        self.control = None;
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        let status = loop {
            if let Some(status) = self.keeper.try_wait()? {
                break status;
            }
            if start.elapsed() > SWEEPING {
                self.keeper.kill()?;
                self.keeper.wait()?;
                self.clean();
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        };
        self.hear_out();
        if !status.success() {
            self.clean();
        }
        Ok(())
    }

    /// Removes what a supervisor that was killed has left.
    fn clean(&self) {
        if let Some(path) = &self.order.temporary {
            // Empty, as machines unlink what they have in it.
            let _ = fs::remove_dir(within(&self.order.directory, path));
        }
        keeper::clean(&self.order, false);
    }

    fn tell(&mut self, what: u8) -> io::Result<()> {
        let control = self.control.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        control.write_all(&[what])
    }

    /// Waits for the last words, which may still be on their way. Not for long: somebody else could
    /// have the console open.
    fn hear_out(&mut self) {
        self.console.wait_for_end(Duration::from_secs(1));
        if let Some(reader) = self.reader.take_if(|reader| reader.is_finished()) {
            // It does not panic, and if it did, what it has heard is there.
            let _ = reader.join();
        }
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        if let Err(error) = self.sweep() {
            tracing::warn!(%error, "a guest could not be ended");
        }
    }
}

/// Where a relative path of an order is from.
fn within(directory: &Path, path: &Path) -> std::path::PathBuf {
    directory.join(path)
}

#[cfg(test)]
mod tests;
