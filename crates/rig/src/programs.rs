//! Programs of the user, held together so that none of them outlives its trial.
//!
//! The programs are descendants of another process of this binary ([`main`], [`COMMAND`]):
//!
//! ```text
//! fslab ──pipes──> supervisor ──> init process of the namespaces ──> programs
//! ```
//!
//! If the kernel allows namespaces, the programs have a pid namespace, a mount namespace, and,
//! unless the plan requests the network, a network namespace in which only the loopback device
//! exists. When the init process ends, the kernel kills all other processes of its pid namespace
//! (pid_namespaces(7)). Otherwise the supervisor becomes the parent of orphaned descendants
//! (`PR_SET_CHILD_SUBREAPER`, prctl(2)) and kills them. The init process ends when fslab ends, for
//! any reason, because it reads the pipe.
//!
//! The programs get no new privileges (`PR_SET_NO_NEW_PRIVS`), and the identity of a
//! [`ProgramSpec`]. This is not a confinement: the programs can read and write all files of their
//! user.
//!
//! Input: a [`ProgramSpec`], then requests. Output: exit status, times, output, and resource usage
//! ([`Ran`]). This module does not interpret the output.

mod init;
mod output;
mod processes;
mod supervisor;
mod user;

use std::{
    ffi::OsString,
    io::{self, BufRead as _, BufReader, Write as _},
    os::fd::AsFd as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use model::{Nanos, activity::Faults};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

pub use user::user;

/// Hidden command that runs this binary as a supervisor of programs.
pub const COMMAND: &str = "program-supervisor";
/// Role of the init process of the namespaces.
const INIT: &str = "--init";
/// Roles of the supervisor.
const WITH_NAMESPACES: &str = "--namespaces";
const WITHOUT_NAMESPACES: &str = "--subreaper";
/// Program of this process, also after its file was replaced (proc(5)).
const THIS_PROGRAM: &str = "/proc/self/exe";
/// Interval in which an interruption is noticed.
const POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Entry point of the hidden command [`COMMAND`] with its `arguments`.
///
/// Call this function before the process starts any thread: a process with threads cannot enter a
/// user namespace.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let spec = |text: &OsString| -> Option<ProgramSpec> {
        text.to_str().and_then(|text| serde_json::from_str(text).ok())
    };
    let ended = match &arguments[..] {
        [role, network, text] if role == INIT => {
            spec(text).map(|spec| init::run(&spec, true, network == "own"))
        }
        [role, text] if role == WITH_NAMESPACES => {
            spec(text).map(|spec| supervisor::run(&spec, true))
        }
        [role, text] if role == WITHOUT_NAMESPACES => {
            spec(text).map(|spec| supervisor::run(&spec, false))
        }
        _ => None,
    };
    match ended {
        Some(Ok(())) => ExitCode::SUCCESS,
        // fslab notices the end of the pipe.
        Some(Err(_)) | None => ExitCode::FAILURE,
    }
}

/// User and group of programs, without supplementary groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserId {
    /// User ID.
    pub user: u32,
    /// Group ID.
    pub group: u32,
}

/// Conditions of the programs of a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSpec {
    /// User; `None` for the user of this process.
    pub user: Option<UserId>,
    /// True for the network of the host.
    pub network: bool,
    /// Working directory.
    pub directory: String,
    /// Directories that the programs must reach, although the user may be unable to search their
    /// parents.
    pub reachable: Vec<String>,
    /// Complete environment.
    pub environment: Vec<(String, String)>,
}

/// State of the containment, sent once at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Ready {
    /// True if the programs cannot use the network of the host.
    network_isolated: bool,
}

/// Request to the init process.
#[derive(Serialize, Deserialize)]
enum Request {
    /// Runs programs one after the other.
    Run { programs: Vec<Vec<String>>, expect: u8, timeout: Nanos },
    /// Starts a server.
    Serve { program: Vec<String> },
    /// Ends the server.
    Stop,
}

/// Resource usage of programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramUsage {
    /// CPU time in user mode.
    pub user: Nanos,
    /// CPU time in kernel mode.
    pub system: Nanos,
    /// Page faults.
    pub faults: Faults,
    /// Voluntary context switches of programs that have ended.
    pub voluntary: u64,
    /// Involuntary context switches of programs that have ended.
    pub involuntary: u64,
}

/// Failed program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFailure {
    /// Program with its arguments.
    pub command: String,
    /// Exit status, signal, or other reason.
    pub verdict: String,
    /// End of its output.
    pub output: String,
}

/// Result of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// Time from the start of the first program to the end of the last.
    pub elapsed: Nanos,
    /// First failed program; the programs after it did not run.
    pub failure: Option<ProgramFailure>,
    /// Usage of all programs, including servers and processes without a living parent.
    pub usage: ProgramUsage,
    /// First and last 64 KiB of standard output.
    pub stdout: String,
    /// First and last 64 KiB of standard error.
    pub stderr: String,
    /// Names of processes that still ran after the last program had ended, and were killed.
    pub leftover: Vec<String>,
    /// End of the server, if it has ended.
    pub server_ended: Option<ProgramFailure>,
}

/// Failure of the containment itself.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// The caller interrupted the programs.
    #[error("interrupted")]
    Interrupted,
    /// The supervisor cannot be started.
    #[error("cannot start the supervisor of the programs")]
    Start(#[source] io::Error),
    /// The supervisor ended, or its reply is not valid.
    #[error("the supervisor of the programs ended: {0}")]
    Ended(String),
}

/// Running supervisor. Dropping it kills all programs.
#[derive(Debug)]
pub struct Programs {
    supervisor: Child,
    requests: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
    network_isolated: bool,
}

impl Programs {
    /// Starts a supervisor, with namespaces if the kernel allows them.
    ///
    /// # Errors
    /// [`ProgramError::Start`] or [`ProgramError::Ended`].
    pub fn start(spec: &ProgramSpec, interrupt: &AtomicBool) -> Result<Self, ProgramError> {
        // In a container, the kernel may allow namespaces but not their /proc. The supervisor then
        // ends.
        match Self::spawn(spec, WITH_NAMESPACES, interrupt) {
            Err(ProgramError::Ended(_)) => Self::spawn(spec, WITHOUT_NAMESPACES, interrupt),
            started => started,
        }
    }

    fn spawn(spec: &ProgramSpec, role: &str, interrupt: &AtomicBool) -> Result<Self, ProgramError> {
        let text =
            serde_json::to_string(spec).map_err(|error| ProgramError::Start(error.into()))?;
        let mut supervisor = Command::new(THIS_PROGRAM)
            .args([COMMAND, role, &text])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(ProgramError::Start)?;
        let (Some(requests), Some(replies)) = (supervisor.stdin.take(), supervisor.stdout.take())
        else {
            return Err(ProgramError::Start(io::ErrorKind::BrokenPipe.into()));
        };
        let replies = BufReader::new(replies);
        let mut programs =
            Self { supervisor, requests: Some(requests), replies, network_isolated: false };
        programs.network_isolated = programs.reply::<Ready>(interrupt)?.network_isolated;
        Ok(programs)
    }

    /// True if the programs cannot use the network of the host.
    pub fn network_isolated(&self) -> bool {
        self.network_isolated
    }

    /// Runs programs one after the other, each for at most `timeout`. The last one must have the
    /// exit status `expect`, and the others 0. Afterwards, all processes except those that were
    /// there before, and those of the server, are killed.
    ///
    /// # Errors
    /// [`ProgramError::Interrupted`] or [`ProgramError::Ended`]. A failed program is not an error.
    pub fn run(
        &mut self,
        programs: Vec<Vec<String>>,
        expect: u8,
        timeout: Nanos,
        interrupt: &AtomicBool,
    ) -> Result<Ran, ProgramError> {
        self.ask(&Request::Run { programs, expect, timeout }, interrupt)
    }

    /// Starts a server.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn serve(
        &mut self,
        program: Vec<String>,
        interrupt: &AtomicBool,
    ) -> Result<Ran, ProgramError> {
        self.ask(&Request::Serve { program }, interrupt)
    }

    /// Ends the server by SIGTERM or, if it runs for 10 s longer, by SIGKILL.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn stop(&mut self, interrupt: &AtomicBool) -> Result<Ran, ProgramError> {
        self.ask(&Request::Stop, interrupt)
    }

    fn ask(&mut self, request: &Request, interrupt: &AtomicBool) -> Result<Ran, ProgramError> {
        let ended = |error: io::Error| ProgramError::Ended(error.to_string());
        let mut line = serde_json::to_vec(request).map_err(|error| ended(error.into()))?;
        line.push(b'\n');
        let requests = self.requests.as_mut();
        let requests = requests.ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe));
        requests.and_then(|pipe| pipe.write_all(&line)).map_err(ended)?;
        self.reply(interrupt)
    }

    fn reply<T: DeserializeOwned>(&mut self, interrupt: &AtomicBool) -> Result<T, ProgramError> {
        loop {
            if interrupt.load(Ordering::Relaxed) {
                return Err(ProgramError::Interrupted);
            }
            let mut pipe =
                [PollFd::from_borrowed_fd(self.replies.get_ref().as_fd(), PollFlags::IN)];
            // An interrupted wait only shortens the wait.
            if poll(&mut pipe, Some(&POLL)).is_ok_and(|ready| ready > 0) {
                break;
            }
        }
        let mut line = String::new();
        let ended = |what: String| ProgramError::Ended(what);
        match self.replies.read_line(&mut line) {
            Ok(0) => Err(ended("it was killed".into())),
            Ok(_) => serde_json::from_str(&line).map_err(|error| ended(error.to_string())),
            Err(error) => Err(ended(error.to_string())),
        }
    }
}

impl Drop for Programs {
    /// Closes the pipe, on which the supervisor kills all programs, and waits for its end.
    fn drop(&mut self) {
        self.requests = None;
        if let Err(error) = self.supervisor.wait() {
            tracing::warn!(%error, "cannot wait for the supervisor of the programs");
        }
    }
}

/// The value of `PATH` for programs of this user.
fn path_for(user: Option<UserId>) -> OsString {
    // Root must not run programs that other users can change.
    match user.is_none() && rustix::process::geteuid().is_root() {
        true => sys::program::search_path(),
        false => sys::program::search_path_for_user(),
    }
}

/// Program of a name or absolute path, as found by the programs of this user.
///
/// # Errors
/// As [`sys::program::find`].
pub fn find(name: &str, user: Option<UserId>) -> io::Result<PathBuf> {
    match user.is_none() && rustix::process::geteuid().is_root() {
        true => sys::program::find(name),
        false => sys::program::find_for_user(name),
    }
}

/// Description of a program file: path, beginning of its SHA-256, and package with version if dpkg
/// knows the file.
pub fn describe(path: &Path) -> String {
    let mut text = path.display().to_string();
    if let Ok(bytes) = sys::input::bytes(path, LARGEST_PROGRAM) {
        let hash = Sha256::digest(&bytes);
        text += &format!(", SHA-256 {}…", hex::encode(&hash[..8]));
    }
    if let Some(package) = package(path) {
        text += &format!(", {package}");
    }
    text
}

/// Maximum size of a program whose content is hashed.
const LARGEST_PROGRAM: u64 = 512 << 20;

/// Name and version of the package that contains a file (dpkg-query(1)).
fn package(path: &Path) -> Option<String> {
    let query = |arguments: &[&str]| {
        let mut command = sys::program::command("dpkg-query").ok()?;
        let output = command.args(arguments).stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
        Some(text.trim().to_owned())
    };
    let path = path.to_str()?;
    // Packages older than the merge of /bin and /usr/bin list the path without /usr.
    let names = [Some(path), path.strip_prefix("/usr")];
    let line = names.into_iter().flatten().find_map(|name| query(&["-S", name]))?;
    query(&["-W", "-f", "${Package} ${Version}", line.split_once(':')?.0])
}
