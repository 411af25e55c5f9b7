//! Init process of the programs: runs them on request, reads their output, and reaps children.
//!
//! One loop waits for everything: the end of a program, its output, the output of the server, and
//! the pipe of fslab, whose end means that fslab has ended.

use std::{
    io::{self, BufRead as _, Write as _},
    os::fd::{AsFd as _, OwnedFd},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use model::Nanos;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    mount::{MountFlags, mount},
    process::{
        Pid, PidfdFlags, Signal, WaitStatus, kill_process, pidfd_open,
        set_parent_process_death_signal,
    },
    thread::clear_ambient_capability_set,
};
use serde::Serialize;
use sys::child::{Identity, starts_as};

use super::{
    ProgramFailure, ProgramSpec, Ran, Ready, Request,
    output::Pipe,
    path_for,
    processes::{descendants, kill, reap, since, strangers, usage},
};

/// Longest wait between two rounds of reaping.
const ROUND: Duration = Duration::from_millis(500);
/// Time for a server to end after SIGTERM.
const SERVER_LIMIT: Duration = Duration::from_secs(10);
/// Maximum number of bytes of output in a failure.
const OUTPUT_SHOWN: usize = 400;

/// Serves requests until the pipe ends; then kills all programs.
///
/// # Errors
/// Errors of the system on the pipes to fslab.
pub(super) fn run(spec: &ProgramSpec, namespaces: bool, network: bool) -> io::Result<()> {
    if namespaces {
        // The parent process ID cannot be checked, because the supervisor is in another pid
        // namespace. If it has ended already, the pipe of fslab ends this process.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // Programs then see only the processes of the new pid namespace. If the kernel refuses, the
        // numbers of the outer namespace would not match those of the system calls.
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("proc", "/proc", "proc", flags, None)?;
        // The programs get no capability.
        clear_ambient_capability_set()?;
    }
    send(&Ready { network_isolated: network })?;
    let mut state = State { spec, server: None };
    let served = state.serve_requests();
    if !namespaces {
        kill(descendants, |_, _| {});
    }
    // In a pid namespace, the end of this process kills all others.
    served
}

fn send(message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

/// Running program.
struct ProgramProcess {
    pid: Pid,
    command: String,
    /// Standard output and standard error.
    output: [Pipe; 2],
    status: Option<WaitStatus>,
}

struct State<'a> {
    spec: &'a ProgramSpec,
    server: Option<ProgramProcess>,
}

/// End of the pipe from fslab.
struct Closed;

impl State<'_> {
    fn serve_requests(&mut self) -> io::Result<()> {
        loop {
            // The output of a server is read while fslab sends nothing.
            match self.wait(None, None) {
                Ok(()) if !readable() => continue,
                Ok(()) => {}
                Err(Closed) => return Ok(()),
            }
            let mut line = String::new();
            if io::stdin().lock().read_line(&mut line)? == 0 {
                return Ok(());
            }
            let ran = match serde_json::from_str(&line)? {
                Request::Run { programs, expect, timeout } => self.run(&programs, expect, timeout),
                Request::Serve { program } => Ok(self.start_server(&program)),
                Request::Stop => self.stop_server(),
            };
            match ran {
                Ok(ran) => send(&ran)?,
                Err(Closed) => return Ok(()),
            }
        }
    }

    fn run(&mut self, programs: &[Vec<String>], expect: u8, limit: Nanos) -> Result<Ran, Closed> {
        let known: Vec<Pid> = descendants().iter().map(|process| process.pid).collect();
        let before = usage().unwrap_or_default();
        let mut ran = Ran::default();
        let start = Instant::now();
        for (index, program) in programs.iter().enumerate() {
            let expect = if index + 1 == programs.len() { expect } else { 0 };
            let failure = self.step(program, expect, Duration::from_nanos(limit.0), &mut ran)?;
            if failure.is_some() {
                ran.failure = failure;
                break;
            }
        }
        ran.elapsed = start.elapsed().into();
        let server = self.server.as_ref().map(|server| server.pid);
        let left = strangers(&known, server);
        ran.leftover = left.into_iter().map(|process| process.name).collect();
        ran.leftover.sort();
        ran.leftover.dedup();
        ran.usage = since(usage().unwrap_or_default(), before);
        let of_server = &mut self.server;
        kill(|| strangers(&known, server), |pid, status| note(of_server, pid, status));
        ran.server_ended = self.server_failure();
        Ok(ran)
    }

    /// Runs one program and adds its output. Returns its failure.
    fn step(
        &mut self,
        program: &[String],
        expect: u8,
        limit: Duration,
        ran: &mut Ran,
    ) -> Result<Option<ProgramFailure>, Closed> {
        let mut running = match self.spawn(program) {
            Ok(running) => running,
            Err(failure) => return Ok(Some(failure)),
        };
        let deadline = Instant::now().checked_add(limit);
        while running.status.is_none() {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                break;
            }
            self.wait(Some(&mut running), deadline)?;
        }
        running.output.iter_mut().for_each(Pipe::drain);
        let [stdout, stderr] = running.output.each_ref().map(|pipe| pipe.kept.text());
        ran.stdout.push_str(&stdout);
        ran.stderr.push_str(&stderr);
        let verdict = match running.status {
            None => format!("did not end within {}", Nanos::from(limit)),
            Some(status) if status.exit_status() == Some(i32::from(expect)) => return Ok(None),
            Some(status) => verdict(status),
        };
        let output = if stderr.trim().is_empty() { stdout } else { stderr };
        Ok(Some(ProgramFailure { command: running.command, verdict, output: end_of(&output) }))
    }

    fn start_server(&mut self, program: &[String]) -> Ran {
        match self.spawn(program) {
            Ok(running) => {
                self.server = Some(running);
                Ran::default()
            }
            Err(failure) => Ran { failure: Some(failure), ..Ran::default() },
        }
    }

    fn stop_server(&mut self) -> Result<Ran, Closed> {
        let Some(pid) = self.server.as_ref().map(|server| server.pid) else {
            return Ok(Ran::default());
        };
        // The server may have ended.
        let _ = kill_process(pid, Signal::TERM);
        let deadline = Instant::now() + SERVER_LIMIT;
        while self.server.as_ref().is_some_and(|server| server.status.is_none())
            && Instant::now() < deadline
        {
            self.wait(None, Some(deadline))?;
        }
        let late = self.server.as_ref().is_some_and(|server| server.status.is_none());
        let server = self.server.take();
        kill(descendants, |_, _| {});
        let failure = server.filter(|_| late).map(|server| ProgramFailure {
            verdict: format!("did not end within {} of SIGTERM", Nanos::from(SERVER_LIMIT)),
            output: end_of(&server.output[1].kept.text()),
            command: server.command,
        });
        Ok(Ran { server_ended: failure, ..Ran::default() })
    }

    /// Failure of a server that has ended.
    fn server_failure(&mut self) -> Option<ProgramFailure> {
        let server = self.server.as_mut()?;
        let status = server.status?;
        server.output.iter_mut().for_each(Pipe::drain);
        Some(ProgramFailure {
            command: server.command.clone(),
            verdict: verdict(status),
            output: end_of(&server.output[1].kept.text()),
        })
    }

    fn spawn(&self, program: &[String]) -> Result<ProgramProcess, ProgramFailure> {
        let shown = model::words::join(program);
        let failed = |error: io::Error| ProgramFailure {
            command: shown.clone(),
            verdict: format!("cannot be started: {error}"),
            output: String::new(),
        };
        let [name, arguments @ ..] = program else {
            return Err(failed(io::ErrorKind::InvalidInput.into()));
        };
        let path = super::find(name, self.spec.user).map_err(failed)?;
        let mut command = Command::new(path);
        command.args(arguments).env_clear().env("PATH", path_for(self.spec.user));
        command.envs(self.spec.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.spec.directory).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(user) = self.spec.user {
            let identity = Identity { user: user.user, group: user.group, groups: Vec::new() };
            starts_as(&mut command, identity);
        }
        let mut child = command.spawn().map_err(failed)?;
        let pipe = |pipe: Option<OwnedFd>| Pipe::new(pipe.ok_or(io::ErrorKind::BrokenPipe)?);
        let stdout = pipe(child.stdout.take().map(OwnedFd::from)).map_err(failed)?;
        let stderr = pipe(child.stderr.take().map(OwnedFd::from)).map_err(failed)?;
        let pid = Pid::from_child(&child);
        // The handle does not wait for the process when it is dropped; `wait` below does.
        drop(child);
        Ok(ProgramProcess { pid, command: shown, output: [stdout, stderr], status: None })
    }

    /// Waits until something happens: a program or the server ends or prints, fslab sends a request
    /// or ends, the deadline passes, or at most one round.
    fn wait(
        &mut self,
        mut running: Option<&mut ProgramProcess>,
        deadline: Option<Instant>,
    ) -> Result<(), Closed> {
        let stdin = io::stdin();
        let end = running.as_ref().and_then(|it| pidfd_open(it.pid, PidfdFlags::empty()).ok());
        let server = self.server.as_ref().filter(|server| server.status.is_none());
        let server_end = server.and_then(|it| pidfd_open(it.pid, PidfdFlags::empty()).ok());
        let ends = end.iter().chain(&server_end).map(|end| end.as_fd());
        let all = running.iter().map(|it| &**it).chain(&self.server);
        let pipes = all.flat_map(|it| it.output.iter().filter_map(Pipe::waits));
        let mut files = vec![PollFd::new(&stdin, PollFlags::IN)];
        files.extend(ends.chain(pipes).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let time = left.unwrap_or(ROUND).min(ROUND);
        // An interrupted wait only shortens the wait.
        let _ = poll(&mut files, Timespec::try_from(time).ok().as_ref());
        // During a program, fslab sends nothing, so the pipe is readable only at its end.
        let closed = match running {
            Some(_) => !files[0].revents().is_empty(),
            None => files[0].revents().contains(PollFlags::HUP) && !readable(),
        };
        drop(files);
        if closed {
            return Err(Closed);
        }
        let all = running.iter_mut().map(|it| &mut **it).chain(&mut self.server);
        all.for_each(|it| it.output.iter_mut().for_each(Pipe::drain));
        while let Some((pid, status)) = reap() {
            match &mut running {
                Some(own) if own.pid == pid => own.status = Some(status),
                _ => note(&mut self.server, pid, status),
            }
        }
        Ok(())
    }
}

/// Records the end of the server.
fn note(server: &mut Option<ProgramProcess>, pid: Pid, status: WaitStatus) {
    if let Some(server) = server.as_mut().filter(|server| server.pid == pid) {
        server.status = Some(status);
    }
}

/// True if fslab sent a request.
fn readable() -> bool {
    let stdin = io::stdin();
    let mut pipe = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut pipe, Some(&Timespec::default()))
        .is_ok_and(|_| pipe[0].revents().contains(PollFlags::IN))
}

/// Description of an exit status.
fn verdict(status: WaitStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("ended with exit status {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".into(),
    }
}

/// End of an output, without blanks around it.
fn end_of(output: &str) -> String {
    let output = output.trim();
    let start = output.char_indices().rev().nth(OUTPUT_SHOWN).map_or(0, |(start, _)| start);
    output[start..].to_owned()
}
