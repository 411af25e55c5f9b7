//! `fslab cluster check`: the hosts, their clocks, and the mount on each host.
#![expect(clippy::wildcard_enum_match_arm, reason = "messages of other steps are skipped")]

use std::{path::Path, sync::atomic::AtomicBool};

use model::cluster::ClusterHosts;

use super::{
    Cluster, Mounts,
    connection::{Lost, Session},
    failure, hosts,
    messages::{Answer, Request, StartRun},
};
use crate::{
    cli::ClusterCheck,
    exit::{Exit, Failure},
    output,
};

/// Connects the hosts, and prints the transport, the clocks, and the mounts.
pub(super) fn run(arguments: &ClusterCheck, state: &Path) -> Result<Exit, Failure> {
    let interrupt = crate::commands::signals::handle_signals()?;
    let mut named = ClusterHosts {
        hosts: arguments.hosts.hosts.clone(),
        launcher: arguments.hosts.launcher.clone(),
    };
    if let Some(file) = &arguments.hosts.hostfile {
        named.hosts = hosts::of_file(file)?;
    }
    let path = arguments.directory.as_ref().map(|path| path.display().to_string());
    let cluster =
        Cluster::new(path.as_deref().unwrap_or_default(), &named, StartRun::empty(), state)?;
    let library = cluster.launcher.library()?;
    output::lines(&[format!("MPI library   {library}")])?;
    let session = Session::launch(
        &cluster.launcher,
        &cluster.hosts,
        cluster.count,
        &cluster.agent,
        &interrupt,
    );
    let mut session = session?;
    let seconds = session.launch_time.as_secs_f64();
    let bridge = if cluster.launcher.has_bridge() { " and a bridge" } else { "" };
    output::lines(&[format!(
        "launch        {} hosts{bridge} connected in {seconds:.2} s ({})",
        session.agents.len(),
        session.transport
    )])?;
    clocks(&mut session)?;
    if let Some(path) = &path {
        let found = mounts(&mut session, path, &interrupt);
        session.end();
        let lines: Vec<String> = found
            .map_err(failure)?
            .iter()
            .map(|(host, mount)| {
                let (kind, source, at) = (&mount.kind, &mount.source, &mount.mount_point);
                format!("mount         {host}: {kind} from {source} on {at}, ID {}", mount.id)
            })
            .collect();
        output::lines(&lines)?;
        output::lines(&[format!(
            "token         written by the first host, read by all in {path}"
        )])?;
    } else {
        session.end();
    }
    Ok(Exit::Success)
}

fn clocks(session: &mut Session) -> Result<(), Failure> {
    let clocks = session.clocks().map_err(failure)?;
    let line = |(host, (offset, bound)): (&usize, &(i64, model::Nanos))| {
        let name = &session.agents[*host].name;
        let seconds = std::time::Duration::from_nanos(offset.unsigned_abs()).as_secs_f64();
        let sign = if *offset < 0 { "-" } else { "+" };
        let bound = bound.seconds();
        format!("clock         {name}: {sign}{seconds:.6} s ± {bound:.6} s")
    };
    let lines: Vec<String> = clocks.iter().map(line).collect();
    Ok(output::lines(&lines)?)
}

/// Checks that all hosts have mounted the same filesystem: its type is the same, and a random token
/// that the first host writes can be read by each host. Nothing else is written.
///
/// # Errors
/// The host whose mount differs, with a hint.
pub(super) fn mounts(
    session: &mut Session,
    path: &str,
    interrupt: &AtomicBool,
) -> Result<Mounts, Lost> {
    let count = session.agents.len();
    session.send(&Request::Mount { path: path.to_owned() })?;
    let mut mounts: Mounts = Vec::new();
    for (host, answer) in session.all(count, interrupt)? {
        let name = session.agents[host].name.clone();
        let lost = |why: String| Lost { host: Some(name.clone()), why };
        let Answer::Mounted(mount) = answer else {
            return Err(lost("it sent an unexpected reply".into()));
        };
        let mount = mount.map_err(|why| {
            lost(format!("{why}; mount the cluster filesystem on this host first"))
        })?;
        if let Some((first, other)) = mounts.first()
            && other.kind != mount.kind
        {
            return Err(lost(format!(
                "{path} is on {} ({}), but on {} ({}) on host {first}; mount the cluster \
                 filesystem on this host first",
                mount.kind, mount.source, other.kind, other.source
            )));
        }
        mounts.push((name, mount));
    }
    token(session, path, interrupt)?;
    Ok(mounts)
}

fn token(session: &mut Session, path: &str, interrupt: &AtomicBool) -> Result<(), Lost> {
    let token = format!("{:032x}", fastrand::u128(..));
    let file = format!("{path}/.fslab-token-{:08x}", fastrand::u32(..));
    session.send(&Request::WriteToken { file: file.clone(), token: token.clone() })?;
    first(session, interrupt)?.map_err(|why| Lost {
        host: session.agents.first().map(|agent| agent.name.clone()),
        why: format!("{why}; check the permissions of the directory"),
    })?;
    session.send(&Request::ReadToken { file: file.clone() })?;
    let answers = session.all(session.agents.len(), interrupt)?;
    session.send(&Request::RemoveToken { file })?;
    first(session, interrupt)?.map_err(|why| Lost { host: None, why })?;
    for (host, answer) in answers {
        let why = match answer {
            Answer::Token(Ok(read)) if read == token => continue,
            Answer::Token(Ok(_)) => "the file contains something else".to_owned(),
            Answer::Token(Err(why)) => why,
            _ => "it sent an unexpected reply".into(),
        };
        let first = &session.agents[0].name;
        return Err(Lost {
            host: Some(session.agents[host].name.clone()),
            why: format!(
                "it does not see a file that host {first} wrote to {path} ({why}); mount the \
                 cluster filesystem on this host first"
            ),
        });
    }
    Ok(())
}

/// Reply of the first host.
fn first(session: &mut Session, interrupt: &AtomicBool) -> Result<Result<String, String>, Lost> {
    match session.all(1, interrupt)?.pop() {
        Some((_, Answer::Token(done))) => Ok(done),
        _ => Err(Lost { host: None, why: "the first host sent an unexpected reply".into() }),
    }
}
