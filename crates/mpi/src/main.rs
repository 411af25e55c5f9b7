//! Program `fslab-mpi`: one rank of a run on several hosts. `fslab run --hosts` starts it with the
//! launcher of the MPI library.
//!
//! ```text
//! fslab-mpi relay [--socket PATH] [-- AGENT …]     one rank; only rank 0 uses the socket
//! fslab-mpi library                                name and version of the MPI library
//! ```
#![deny(unsafe_code)]

mod library;

use std::{
    ffi::OsString,
    io::Write,
    os::unix::{net::UnixStream, process::CommandExt},
    path::PathBuf,
    process::{Child, Command, ExitCode, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use library::Mpi;
use mpi::{EXIT_LOST, Endpoint, Fabric, FabricError, Pulse, RelayError, relay};

/// Time that an agent has to undo its changes after the end of a session.
const GRACE: Duration = Duration::from_secs(20);

/// Arguments of `fslab-mpi relay`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Arguments {
    socket: Option<PathBuf>,
    agent: Vec<OsString>,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let ran = match arguments.next().as_deref().and_then(|word| word.to_str()) {
        Some("library") => Mpi::open().map(|mpi| say(&mpi.version())),
        Some("relay") => parse(arguments).and_then(run),
        _ => Err("usage: fslab-mpi library | fslab-mpi relay [--socket PATH] [-- AGENT …]; \
                  `fslab run --hosts` calls this program"
            .into()),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            warn(&error);
            ExitCode::from(EXIT_LOST)
        }
    }
}

fn say(text: &str) {
    let _closed = writeln!(std::io::stdout(), "{text}");
}

fn warn(text: &str) {
    let _closed = writeln!(std::io::stderr(), "fslab-mpi on {}: {text}", host());
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn parse(mut words: impl Iterator<Item = OsString>) -> Result<Arguments, String> {
    let mut arguments = Arguments::default();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--socket") => {
                arguments.socket = Some(words.next().ok_or("--socket needs a path")?.into());
            }
            Some("--") => arguments.agent = words.by_ref().collect(),
            _ => return Err(format!("unknown argument {}", word.display())),
        }
    }
    Ok(arguments)
}

/// Agent process, which ends when its standard input is closed, and is killed otherwise.
struct Agent(Arc<Mutex<Child>>);

impl Agent {
    /// Starts the agent. This must happen before MPI is initialized, because MPI libraries do not
    /// support programs that are started later. The agent has its own process group: a launcher
    /// that ends the ranks kills their groups after a second, but the agent needs time to undo its
    /// changes.
    fn start(command: &[OsString]) -> Result<(Self, Endpoint), String> {
        let (program, arguments) = command.split_first().ok_or("no agent")?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut child = child.map_err(|error| {
            format!(
                "cannot start {}: {error}; install fslab on this host at the same path",
                program.display()
            )
        })?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let (to, from) = to.zip(from).ok_or("the agent has no pipes")?;
        Ok((Self(Arc::new(Mutex::new(child))), Endpoint::new(to, from)))
    }

    /// Waits for the end of the agent, whose standard input is closed, and kills it after a while.
    fn end(&self, grace: Duration) {
        let ends = Instant::now() + grace;
        let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while Instant::now() < ends {
            if child.try_wait().is_ok_and(|status| status.is_some()) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        let _ended = child.kill();
        let _reaped = child.wait();
    }
}

fn run(arguments: Arguments) -> Result<(), String> {
    let (agent, endpoint) = match arguments.agent.is_empty() {
        true => (None, None),
        false => Agent::start(&arguments.agent).map(|(agent, end)| (Some(agent), Some(end)))?,
    };
    let result = session(arguments, endpoint);
    if let Some(agent) = agent {
        agent.end(GRACE);
    }
    result
}

/// Joins the other ranks and relays messages until the end of the session.
fn session(arguments: Arguments, agent: Option<Endpoint>) -> Result<(), String> {
    let mpi = Mpi::open()?;
    let pulse = Arc::new(Pulse::default());
    let mut world = mpi.join().map_err(|error| error.to_string())?;
    let conductor = match arguments.socket {
        Some(socket) if world.rank() == 0 => Some(connect(&socket)?),
        _ => None,
    };
    if world.rank() == 0 && conductor.is_none() {
        return Err("rank 0 has no socket".into());
    }
    let watched = Arc::clone(&pulse);
    let parent = rustix::process::getppid();
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_millis(500));
            if rustix::process::getppid() != parent {
                // MPICH notices the end of a daemon after half a minute only.
                warn("the launcher or its daemon on this host ended; the session ends");
                std::process::abort();
            }
            if watched.is_late() {
                warn("no message from the other hosts; the session ends");
                end_daemon();
                // The thread that calls MPI may be blocked. The kernel closes the pipe of the
                // agent, which then ends by itself.
                std::process::abort();
            }
        }
    });
    let host = host();
    match relay(&mut world, &host, agent, conductor, &pulse) {
        Ok(()) => {
            world.leave();
            Ok(())
        }
        Err(error) => {
            if matches!(error, RelayError::Fabric(FabricError::Lost(_))) {
                end_daemon();
            }
            Err(error.to_string())
        }
    }
}

/// Names of the daemons that MPI launchers start on each host: Open MPI 4, Open MPI 5, and MPICH
/// (proc_pid_comm(5) has 15 characters).
const DAEMONS: [&str; 4] = ["orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_pr"];

/// Ends the daemon of the launcher if it started this process. Without a connection to the
/// launcher, the daemon of Open MPI does not end after its processes.
fn end_daemon() {
    let Some(parent) = rustix::process::getppid() else { return };
    let name = std::fs::read_to_string(format!("/proc/{}/comm", parent.as_raw_nonzero()));
    if name.is_ok_and(|name| DAEMONS.contains(&name.trim_end())) {
        let _ended = rustix::process::kill_process(parent, rustix::process::Signal::TERM);
    }
}

fn connect(socket: &PathBuf) -> Result<Endpoint, String> {
    let failed = |error| {
        format!(
            "cannot connect to fslab run at {}: {error}; rank 0 must run on the host of fslab run",
            socket.display()
        )
    };
    let stream = UnixStream::connect(socket).map_err(failed)?;
    let from = stream.try_clone().map_err(failed)?;
    Ok(Endpoint::new(stream, from))
}
