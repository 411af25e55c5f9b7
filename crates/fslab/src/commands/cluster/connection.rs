//! Session: one launcher with one agent per host, and the messages to and from the agents.
//!
//! A session ends when the run ends or when a host is lost: the launcher or an agent ended, or the
//! hosts did not respond. The launcher runs in a separate process group, which is ended as a whole.
//! The agents end by themselves when their connection ends.
#![expect(clippy::wildcard_enum_match_arm, reason = "messages of other steps are skipped")]

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, ErrorKind, Read},
    os::unix::{
        fs::DirBuilderExt,
        net::{UnixListener, UnixStream},
        process::CommandExt,
    },
    path::PathBuf,
    process::{Child, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use model::Nanos;
use mpi::{ToConductor, ToRelay};
use rustix::process::{Pid, Signal, kill_process_group};

use super::{
    launcher::{AgentCommand, Launcher, SOCKET},
    messages::{Answer, Clocks, Request},
};
use crate::commands::version;

/// Longest time from the start of the launcher until all hosts are connected.
const CONNECT: Duration = Duration::from_secs(120);
/// Longest wait for the end of the launcher after the end of a session.
const GRACE: Duration = Duration::from_secs(25);
/// Longest wait for the launcher to report the lost host and to end.
const REPORT: Duration = Duration::from_secs(2);
/// Longest wait for the end of the launcher after a signal, or after its connection has ended.
const AFTER_SIGNAL: Duration = Duration::from_secs(1);
/// Number of lines of the launcher's output that are kept for messages.
const LINES: usize = 40;

/// Reason why a session ended.
#[derive(Clone, Debug)]
pub(super) struct Lost {
    /// Host that was lost, if it is known.
    pub(super) host: Option<String>,
    /// Cause.
    pub(super) why: String,
}

impl Lost {
    /// Text for the outcome of a trial.
    pub(super) fn reason(&self) -> String {
        match &self.host {
            Some(host) => format!("host {host} was lost: {}", self.why),
            None => format!("a host was lost: {}", self.why),
        }
    }
}

/// Host of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Agent {
    /// Rank.
    pub(super) rank: usize,
    /// Name: as given by the user, or as reported by the host.
    pub(super) name: String,
}

/// Running launcher, its output, and its private directory.
pub(super) struct Launched {
    child: Child,
    output: Arc<Mutex<VecDeque<String>>>,
    directory: PathBuf,
}

/// Connected agents.
pub(super) struct Session {
    stream: UnixStream,
    incoming: Receiver<ToConductor>,
    launched: Option<Launched>,
    /// Agents in the order of the hosts.
    pub(super) agents: Vec<Agent>,
    /// Version of the transport.
    pub(super) transport: String,
    /// Time from the start of the launcher until all agents had replied.
    pub(super) launch_time: Duration,
    /// Messages that were received while the session waited for another one.
    backlog: VecDeque<(usize, Answer)>,
}

impl Session {
    /// Starts the launcher, and waits until all agents are connected.
    ///
    /// # Errors
    /// If the launcher fails or does not connect; the message contains its output.
    pub(super) fn launch(
        launcher: &Launcher,
        hosts: &[String],
        count: usize,
        agent: &AgentCommand,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<Self> {
        let started = Instant::now();
        let directory = std::env::temp_dir().join(format!(
            "fslab-{}-{:08x}",
            std::process::id(),
            fastrand::u32(..)
        ));
        std::fs::DirBuilder::new().mode(0o700).create(&directory)?;
        let listener = UnixListener::bind(directory.join(SOCKET))?;
        listener.set_nonblocking(true)?;
        let mut command = launcher.command(hosts, &directory, agent)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let program = command.get_program().display().to_string();
        let child = command.process_group(0).spawn();
        let mut child = child.with_context(|| format!("starting the launcher {program}"))?;
        let output = Arc::new(Mutex::new(VecDeque::new()));
        let pipes: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|pipe| Box::new(pipe) as Box<_>),
            child.stderr.take().map(|pipe| Box::new(pipe) as Box<_>),
        ];
        pipes.into_iter().flatten().for_each(|pipe| keep_lines(pipe, &output));
        let mut launched = Launched { child, output, directory };
        let stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context("waiting for the hosts"),
            }
            if let Some(status) = launched.child.try_wait()? {
                thread::sleep(Duration::from_millis(100));
                anyhow::bail!("{program} ended ({status}): {}", launched.said(hosts).1);
            }
            anyhow::ensure!(!interrupt.load(Relaxed), "interrupted");
            anyhow::ensure!(
                started.elapsed() < CONNECT,
                "{program} has not connected all hosts after {} s: {}",
                CONNECT.as_secs(),
                launched.said(hosts).1
            );
            thread::sleep(Duration::from_millis(2));
        };
        // The launcher has read the files, so a killed run leaves nothing here.
        let _removed = std::fs::remove_dir_all(&launched.directory);
        stream.set_nonblocking(false)?;
        let mut session = Self::connect(stream, Some(launched), hosts, interrupt)
            .map_err(|lost| anyhow::anyhow!("{}", lost.reason()))?;
        anyhow::ensure!(
            session.agents.len() == count,
            "the launcher started {} processes for {count} hosts; check --launcher",
            session.agents.len()
        );
        session.launch_time = started.elapsed();
        Ok(session)
    }

    /// Connects to the relay of rank 0, and greets the agents.
    pub(super) fn connect(
        stream: UnixStream,
        launched: Option<Launched>,
        hosts: &[String],
        interrupt: &AtomicBool,
    ) -> Result<Self, Lost> {
        let (sender, incoming) = mpsc::channel();
        let unusable = |error: std::io::Error| Lost { host: None, why: error.to_string() };
        let mut from = stream.try_clone().map_err(unusable)?;
        thread::spawn(move || {
            while let Ok(Some(frame)) = mpi::read_frame(&mut from) {
                let Some(message) = ToConductor::decode(&frame) else { break };
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut session = Self {
            stream,
            incoming,
            launched,
            agents: Vec::new(),
            transport: String::new(),
            launch_time: Duration::ZERO,
            backlog: VecDeque::new(),
        };
        session.greet(hosts, interrupt)?;
        Ok(session)
    }

    fn greet(&mut self, hosts: &[String], interrupt: &AtomicBool) -> Result<(), Lost> {
        let members = loop {
            match self.incoming.recv_timeout(Duration::from_millis(100)) {
                Ok(ToConductor::Started(version, members)) => {
                    self.transport = version;
                    break members;
                }
                Ok(_) => return Err(self.lost("the first message is invalid")),
                Err(RecvTimeoutError::Timeout) if !interrupt.load(Relaxed) => {}
                Err(_) => return Err(self.lost("the connection ended")),
            }
        };
        let ranks = members.iter().enumerate().filter(|(_, member)| member.agent);
        let agent = |(at, (rank, member)): (usize, (usize, &mpi::Member))| {
            let named = hosts.get(at).filter(|_| hosts.len() > 1 || members.len() > 1);
            Agent { rank, name: named.unwrap_or(&member.host).clone() }
        };
        self.agents = ranks.enumerate().map(agent).collect();
        distinguish(&mut self.agents);
        let ranks = self.agents.iter().map(|agent| agent.rank).collect();
        self.send(&Request::Hello { program: version::program(), ranks })?;
        let own = version::program();
        for (host, answer) in self.all(self.agents.len(), interrupt)? {
            let name = self.agents[host].name.clone();
            match answer {
                Answer::Hello { program, .. } if program == own => {}
                Answer::Hello { program, .. } => {
                    let why = format!("it has {program}, this host has {own}; install one version");
                    return Err(Lost { host: Some(name), why });
                }
                _ => {
                    return Err(Lost {
                        host: Some(name),
                        why: "it sent an unexpected reply".into(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Sends a message to all agents.
    pub(super) fn send(&mut self, request: &Request) -> Result<(), Lost> {
        let payload = serde_json::to_vec(request)
            .map_err(|error| Lost { host: None, why: error.to_string() })?;
        self.relay(&ToRelay::Agents(payload))
    }

    /// Makes rounds rare while a phase is measured.
    pub(super) fn measuring(&mut self, on: bool) -> Result<(), Lost> {
        self.relay(&ToRelay::Measuring(on))
    }

    fn relay(&mut self, message: &ToRelay) -> Result<(), Lost> {
        match mpi::write_frame(&mut self.stream, &message.encode()) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.lost("the connection ended")),
        }
    }

    /// Next message of an agent, with the index of its host; `None` after `limit`.
    pub(super) fn receive(&mut self, limit: Duration) -> Result<Option<(usize, Answer)>, Lost> {
        if let Some(next) = self.backlog.pop_front() {
            return Ok(Some(next));
        }
        match self.incoming.recv_timeout(limit) {
            Ok(message) => self.answer(message).map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.lost("the connection ended")),
        }
    }

    fn answer(&mut self, message: ToConductor) -> Result<(usize, Answer), Lost> {
        let host = |rank| self.agents.iter().position(|agent| agent.rank == rank);
        match message {
            ToConductor::Agent(rank, payload) => {
                let decoded = serde_json::from_slice(&payload).ok();
                let answer: Option<(usize, Answer)> = host(rank).zip(decoded);
                answer.ok_or_else(|| Lost { host: None, why: "a message is invalid".into() })
            }
            ToConductor::AgentEnded(rank) => {
                let name = host(rank).map(|host| self.agents[host].name.clone());
                Err(Lost { host: name, why: "its agent ended".into() })
            }
            ToConductor::Started(..) | ToConductor::Clocks(_) => {
                Err(Lost { host: None, why: "a message is out of order".into() })
            }
        }
    }

    /// One message of each of the first hosts, in the order of the hosts.
    pub(super) fn all(
        &mut self,
        count: usize,
        interrupt: &AtomicBool,
    ) -> Result<Vec<(usize, Answer)>, Lost> {
        let mut answers: Vec<Option<Answer>> = vec![None; count];
        while answers.iter().any(Option::is_none) {
            if interrupt.load(Relaxed) {
                return Err(Lost { host: None, why: "interrupted".into() });
            }
            let Some((host, answer)) = self.receive(Duration::from_millis(50))? else { continue };
            if let Some(own) = answers.get_mut(host) {
                *own = Some(answer);
            }
        }
        Ok(answers.into_iter().flatten().enumerate().collect())
    }

    /// Measures the offsets of the clocks of all hosts.
    pub(super) fn clocks(&mut self) -> Result<Clocks, Lost> {
        self.relay(&ToRelay::Clocks)?;
        loop {
            let message = self.incoming.recv();
            match message.map_err(|_| self.lost("the connection ended"))? {
                ToConductor::Clocks(offsets) => {
                    let agents = self.agents.iter().enumerate();
                    return Ok(agents
                        .filter_map(|(host, agent)| {
                            let offset = offsets.get(agent.rank)?;
                            Some((host, (offset.offset, Nanos(offset.bound))))
                        })
                        .collect());
                }
                other => {
                    let other = self.answer(other)?;
                    self.backlog.push_back(other);
                }
            }
        }
    }

    /// Reason why the session ended, from the launcher and its output.
    fn lost(&mut self, why: &str) -> Lost {
        let Some(launched) = &mut self.launched else {
            return Lost { host: None, why: why.into() };
        };
        // The launcher reports the lost host before it ends.
        let ends = Instant::now() + REPORT;
        while Instant::now() < ends && launched.child.try_wait().is_ok_and(|it| it.is_none()) {
            thread::sleep(Duration::from_millis(20));
        }
        thread::sleep(Duration::from_millis(50));
        let names: Vec<String> = self.agents.iter().map(|agent| agent.name.clone()).collect();
        let (host, said) = launched.said(&names);
        Lost { host, why: if said.is_empty() { why.into() } else { said } }
    }

    /// Ends the session on all hosts, and waits until the agents have undone their changes.
    pub(super) fn end(mut self) {
        let _ended = self.relay(&ToRelay::End);
        if let Some(launched) = &mut self.launched {
            launched.wait(GRACE);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _closed = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

impl Launched {
    /// Host that the output names, and the last line that reports an error.
    fn said(&self, hosts: &[String]) -> (Option<String>, String) {
        let lines = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let ruler = |line: &&String| line.chars().any(char::is_alphanumeric);
        let lines: Vec<&String> = lines.iter().filter(ruler).collect();
        let names = |line: &&&String| {
            hosts.iter().find(|host| {
                line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '.')
                    .any(|word| word == host.as_str())
            })
        };
        let own = |line: &&&String| line.starts_with("fslab");
        let host = lines.iter().find_map(|line| names(&line)).cloned();
        let said = lines.iter().find(own).or_else(|| lines.iter().find(|it| names(it).is_some()));
        let said = said.or(lines.last()).map(|line| line.trim().to_owned());
        (host, said.unwrap_or_default())
    }

    /// Waits for the end of the launcher, and ends its process group after `grace`.
    fn wait(&mut self, grace: Duration) {
        for (limit, signal) in [(grace, Signal::TERM), (AFTER_SIGNAL, Signal::KILL)] {
            let ends = Instant::now() + limit;
            while Instant::now() < ends {
                if self.child.try_wait().is_ok_and(|status| status.is_some()) {
                    return;
                }
                thread::sleep(Duration::from_millis(5));
            }
            let _ended = kill_process_group(Pid::from_child(&self.child), signal);
        }
        let _reaped = self.child.wait();
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            // The relay of rank 0 ends all ranks when its connection ends.
            self.wait(AFTER_SIGNAL);
        }
        let _removed = std::fs::remove_dir_all(&self.directory);
    }
}

/// Makes the names of hosts unique that are given several times.
fn distinguish(agents: &mut [Agent]) {
    let names: Vec<String> = agents.iter().map(|agent| agent.name.clone()).collect();
    for (at, agent) in agents.iter_mut().enumerate() {
        if names.iter().filter(|name| **name == agent.name).count() > 1 {
            let number = names[..=at].iter().filter(|name| **name == agent.name).count();
            agent.name = format!("{}#{number}", agent.name);
        }
    }
}

/// Keeps the last lines of a pipe.
fn keep_lines(pipe: Box<dyn Read + Send>, lines: &Arc<Mutex<VecDeque<String>>>) {
    let lines = Arc::clone(lines);
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() == LINES {
                lines.pop_front();
            }
            lines.push_back(line.chars().take(300).collect());
        }
    });
}
