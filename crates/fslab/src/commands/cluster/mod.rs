//! Runs on several hosts over MPI, and the command `fslab cluster`.
//!
//! ```text
//! trials (conductor) ── connection ── relay of rank 0 ══ MPI ══ relays ── agents ── LocalTrials
//! ```

mod agent;
mod check;
mod connection;
mod hosts;
mod launcher;
mod messages;
mod mount;
mod network;
#[cfg(test)]
mod tests;
mod trials;

use std::{ffi::OsString, path::Path, sync::atomic::AtomicBool};

use model::{
    Environment, RunRecord, Warning, cluster::ClusterHosts, record::CellState, storage::StorageKind,
};
use store::Store;

pub(crate) use self::trials::OnHosts;
use self::{
    connection::{Lost, Session},
    launcher::{AgentCommand, Launcher},
    messages::{Answer, Mount, Request, RunStarted, StartRun},
};
use super::{
    run_file::{self, RunFilePath},
    run_setup::{self, Backend, Prepared, RunEnvironment},
};
use crate::{
    cells,
    cli::{Cluster as Arguments, ClusterCommand, Hosts},
    exit::{Exit, Failure},
    plans::ResolvedPlan,
};

/// Runs `fslab cluster`.
///
/// # Errors
/// If the hosts cannot be connected, or a check fails.
pub(super) fn run(arguments: &Arguments, state: &Path) -> Result<Exit, Failure> {
    match &arguments.command {
        ClusterCommand::Check(check) => check::run(check, state),
    }
}

/// Runs an agent, which `fslab-mpi` starts on each host.
///
/// # Errors
/// If a message is invalid, or the changes of the host cannot be undone.
pub(super) fn agent(state: &Path) -> Result<Exit, Failure> {
    agent::run(std::io::stdin(), std::io::stdout(), state)?;
    Ok(Exit::Success)
}

/// Options of the command line as overrides of the plan.
///
/// # Errors
/// If the host file cannot be read, or a name is invalid.
pub(super) fn overrides(arguments: &Hosts) -> Result<Vec<(String, String)>, Failure> {
    let mut overrides = Vec::new();
    let mut named = arguments.hosts.clone();
    if let Some(file) = &arguments.hostfile {
        named = hosts::of_file(file)?;
    }
    if !named.is_empty() {
        hosts::check(&named)?;
        overrides.push(("cluster_hosts".into(), named.join(",")));
    }
    if let Some(launcher) = &arguments.launcher {
        overrides.push(("launcher".into(), launcher.clone()));
    }
    Ok(overrides)
}

/// Hosts of a run, and how to reach them.
pub(crate) struct Cluster {
    path: String,
    hosts: Vec<String>,
    count: usize,
    launcher: Launcher,
    agent: AgentCommand,
    begin: StartRun,
    /// Session that the start of the run has left.
    session: Option<Session>,
}

impl Cluster {
    fn new(
        path: &str,
        named: &ClusterHosts,
        begin: StartRun,
        state: &Path,
    ) -> Result<Self, Failure> {
        hosts::check(&named.hosts)?;
        let slurm = hosts::of_slurm().filter(|_| named.hosts.is_empty());
        let count = slurm.map_or(named.hosts.len(), |count| count as usize);
        if count == 0 {
            return Err(Failure::usage(anyhow::anyhow!(
                "the plan names no hosts; set storage.hosts, or use --hosts or --hostfile"
            )));
        }
        let launcher = Launcher::find(named.launcher.as_deref(), slurm.is_some())?;
        Ok(Self {
            path: path.to_owned(),
            hosts: named.hosts.clone(),
            count,
            launcher,
            agent: agent_command(state)?,
            begin,
            session: None,
        })
    }

    /// Description of the storage and the hosts.
    fn describe(&self) -> String {
        let hosts = match self.hosts.is_empty() {
            true => String::new(),
            false => format!(": {}", self.hosts.join(", ")),
        };
        let (path, count) = (&self.path, self.count);
        format!("directory {path} on {count} host{}{hosts}", if count == 1 { "" } else { "s" })
    }

    /// Starts a session: connects the hosts, checks their mounts, and claims the storage.
    fn launch(&self, interrupt: &AtomicBool) -> Result<(Session, RunStarted), Lost> {
        let session =
            Session::launch(&self.launcher, &self.hosts, self.count, &self.agent, interrupt);
        let session = session
            .map_err(|error| Lost { host: None, why: crate::exit::chain(error.as_ref()) })?;
        self.begin(session, interrupt)
    }

    /// Checks the mounts of connected hosts, and claims the storage.
    fn begin(
        &self,
        mut session: Session,
        interrupt: &AtomicBool,
    ) -> Result<(Session, RunStarted), Lost> {
        check::mounts(&mut session, &self.path, interrupt)?;
        session.send(&Request::StartRun(Box::new(self.begin.clone())))?;
        let mut first: Option<RunStarted> = None;
        for (host, answer) in session.all(session.agents.len(), interrupt)? {
            let name = session.agents[host].name.clone();
            let lost = |why: String| Lost { host: Some(name.clone()), why };
            let Answer::RunStarted(begun) = answer else {
                return Err(lost("it sent an unexpected reply".into()));
            };
            let begun = begun.map_err(lost)?;
            match &mut first {
                None => first = Some(begun),
                Some(first) => other_host(&mut first.environment, &name, &begun.environment),
            }
        }
        Ok((session, first.unwrap_or_default()))
    }
}

/// Adds the facts of another host that differ from those of the first one and affect results.
fn other_host(facts: &mut Environment, name: &str, other: &Environment) {
    for fact in ["kernel.release", "cpu.model", "cpu.online", "memory.total_bytes"] {
        if let Some(value) = other.get(fact).filter(|value| facts.get(fact) != Some(value)) {
            facts.set(format!("host.{name}.{fact}"), value);
        }
    }
}

/// Command of an agent: this program, at the same path on all hosts.
fn agent_command(state: &Path) -> Result<AgentCommand, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::from(anyhow::anyhow!("locating the program: {error}")))?;
    let state = std::path::absolute(state).unwrap_or_else(|_| state.to_owned());
    let words: [OsString; 4] =
        [program.into(), "--state-directory".into(), state.into(), "agent".into()];
    Ok(words.into())
}

/// Prepares a new run on several hosts. All hosts are connected and their mounts are checked before
/// anything is written.
///
/// # Errors
/// If a requirement is missing, a host cannot be connected, or a mount is not that of the others.
pub(super) fn begin(
    chosen: &ResolvedPlan,
    named: &ClusterHosts,
    path: &Path,
    mut warnings: Vec<Warning>,
    filesystems: Option<String>,
    env: &RunEnvironment<'_>,
) -> Result<Prepared, Failure> {
    run_file::writable(path)?;
    let mut keeping = RunFilePath::choose(path, &chosen.storage.kind)?;
    keeping.free()?;
    let seed = chosen.plan.seed.unwrap_or_else(|| fastrand::u64(..));
    let info = run_setup::info(chosen, run_setup::run_id(seed), seed, String::new());
    let begin = StartRun { info, filesystems, environment: Environment::default() };
    let mut cluster = Cluster::new(directory(chosen), named, begin, env.state)?;
    let most = trials::most_hosts(chosen.cells.iter().map(|labelled| &labelled.cell));
    if let Some(most) = most.filter(|most| *most as usize > cluster.count) {
        return Err(Failure::usage(anyhow::anyhow!(
            "the axis `hosts` has {most}, but the run has {} hosts; name more hosts",
            cluster.count
        )));
    }
    cluster.begin.info.storage = cluster.describe();
    let (session, begun) = cluster.launch(env.interrupt).map_err(failure)?;
    warnings.extend(begun.warnings);
    let mut environment = begun.environment;
    environment.set("cluster.transport", &session.transport);
    environment.set("cluster.launch_time_ms", session.launch_time.as_millis().to_string());
    let names: Vec<&str> = session.agents.iter().map(|agent| agent.name.as_str()).collect();
    environment.set("cluster.hosts", names.join(" "));
    let cells = cells::of(chosen, &chosen.catalog, env.host.as_ref(), seed);
    if cells.iter().all(|cell| cell.state != CellState::Open) {
        return Err(run_setup::nothing_to_measure(&cells));
    }
    keeping.begin()?;
    let info = cluster.begin.info.clone();
    let store = Store::create(&keeping.working, &info, &cells, &environment, &warnings)?;
    cluster.session = Some(session);
    let record = RunRecord { info, environment, cells, trials: Vec::new(), warnings };
    Ok(Prepared::new(Backend::Cluster(Box::new(cluster)), store, record, keeping, chosen))
}

/// Prepares the hosts of a resumed run. The first trial connects them.
///
/// # Errors
/// If a requirement is missing.
pub(super) fn resume(
    chosen: &ResolvedPlan,
    named: &ClusterHosts,
    record: &RunRecord,
    filesystems: Option<String>,
    env: &RunEnvironment<'_>,
) -> Result<Cluster, Failure> {
    let environment = record.environment.clone();
    let begin = StartRun { info: record.info.clone(), filesystems, environment };
    let mut cluster = Cluster::new(directory(chosen), named, begin, env.state)?;
    let (session, _) = cluster.launch(env.interrupt).map_err(failure)?;
    cluster.session = Some(session);
    Ok(cluster)
}

fn failure(lost: Lost) -> Failure {
    let text = match &lost.host {
        Some(host) => format!("host {host}: {}", lost.why),
        None => lost.why,
    };
    anyhow::anyhow!("{text}; `fslab cluster check` shows the state of all hosts").into()
}

/// Directory of a plan on several hosts.
fn directory(chosen: &ResolvedPlan) -> &str {
    match &chosen.storage.kind {
        StorageKind::Directory { path } => path,
        StorageKind::Image { .. } | StorageKind::Devices { .. } | StorageKind::Levels { .. } => "/",
    }
}

/// Hosts with their mounts, in the order of the hosts.
type Mounts = Vec<(String, Mount)>;
