//! Launcher of the MPI library: its command line for one process per host.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::hosts::LOCAL;
use crate::exit::Failure;

/// Command that starts one process per host.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    words: Vec<String>,
    kind: Kind,
    /// Program `fslab-mpi`.
    relay: PathBuf,
}

/// Kind of a launcher, which determines how hosts are given to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    OpenMpi,
    Mpich,
    /// Command with placeholders. All ranks run the same command, and rank 0 has an agent, too.
    Template,
}

/// Program and arguments of an agent.
pub(super) type AgentCommand = Vec<OsString>;

impl Launcher {
    /// Launcher of a plan, or `mpirun`, or `srun` in a Slurm allocation.
    ///
    /// # Errors
    /// If the launcher or `fslab-mpi` is missing, with a hint.
    pub(crate) fn find(text: Option<&str>, in_slurm: bool) -> Result<Self, Failure> {
        let default = if in_slurm { "srun -N {hosts} --ntasks-per-node=1" } else { "mpirun" };
        let text = text.unwrap_or(default);
        let lines = model::words::split(text)
            .map_err(|error| Failure::usage(anyhow::anyhow!("launcher `{text}`: {error}")))?;
        let words = lines.concat();
        let Some(program) = words.first() else {
            return Err(Failure::usage(anyhow::anyhow!("the launcher is empty; use mpirun")));
        };
        let relay = relay()?;
        let placeholders = ["{hosts}", "{list}"];
        let kind = match words.iter().any(|word| placeholders.iter().any(|it| word.contains(it))) {
            true => Kind::Template,
            false => kind(program)?,
        };
        Ok(Self { words, kind, relay })
    }

    /// Launcher for tests that start no program.
    #[cfg(test)]
    pub(super) fn without_program() -> Self {
        Self { words: vec!["false".into()], kind: Kind::Template, relay: PathBuf::new() }
    }

    /// Name and version of the MPI library that `fslab-mpi` opens on this host.
    ///
    /// # Errors
    /// The message of `fslab-mpi`, if it finds no library.
    pub(super) fn library(&self) -> Result<String, Failure> {
        let output = Command::new(&self.relay).arg("library").output();
        let output = output.map_err(|error| {
            Failure::from(anyhow::anyhow!("cannot start {}: {error}", self.relay.display()))
        })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(Failure::from(anyhow::anyhow!("{}", text(&output.stderr)))),
        }
    }

    /// True if rank 0 only connects the conductor and has no agent.
    pub(super) fn has_bridge(&self) -> bool {
        self.kind != Kind::Template
    }

    /// Command line for these hosts. `directory` is a private directory with the socket.
    ///
    /// # Errors
    /// If the host file cannot be written.
    pub(super) fn command(
        &self,
        hosts: &[String],
        directory: &Path,
        agent: &AgentCommand,
    ) -> std::io::Result<Command> {
        let socket = directory.join(SOCKET);
        let mut words: Vec<OsString> = Vec::new();
        let relay = |words: &mut Vec<OsString>, bridge: bool, agent: Option<&AgentCommand>| {
            words.push(self.relay.clone().into());
            words.push("relay".into());
            if bridge {
                words.extend(["--socket".into(), socket.clone().into()]);
            }
            if let Some(agent) = agent {
                words.push("--".into());
                words.extend(agent.iter().cloned());
            }
        };
        let here = match hosts.iter().all(|host| host == LOCAL) {
            true => LOCAL.to_owned(),
            false => rustix::system::uname().nodename().to_string_lossy().into_owned(),
        };
        match self.kind {
            Kind::OpenMpi => {
                words.extend(["--oversubscribe", "--bind-to", "none"].map(Into::into));
                words.extend(["-n", "1", "--host", &here].map(Into::into));
                relay(&mut words, true, None);
                for host in hosts {
                    words.extend([":", "-n", "1", "--host", host].map(Into::into));
                    relay(&mut words, false, Some(agent));
                }
            }
            Kind::Mpich => {
                let file = directory.join("hosts");
                let lines = std::iter::once(&here).chain(hosts).map(|host| format!("{host}:1\n"));
                fs::write(&file, lines.collect::<String>())?;
                words.extend(["-f".into(), file.into()]);
                words.extend(["-n", "1"].map(Into::into));
                relay(&mut words, true, None);
                let count = hosts.len().to_string();
                words.extend([":", "-n", &count].map(Into::into));
                relay(&mut words, false, Some(agent));
            }
            Kind::Template => relay(&mut words, true, Some(agent)),
        }
        let (count, list) = (hosts.len().to_string(), hosts.join(","));
        let own = self.words.iter().map(|word| word.replace("{hosts}", &count));
        let own: Vec<String> = own.map(|word| word.replace("{list}", &list)).collect();
        let mut command = Command::new(&own[0]);
        command.args(&own[1..]).args(words);
        if rustix::process::geteuid().is_root() {
            // Open MPI refuses to start as root otherwise.
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
        Ok(command)
    }
}

/// Name of the socket in the private directory.
pub(super) const SOCKET: &str = "socket";

/// Environment variable with the path of `fslab-mpi`.
const RELAY: &str = "FSLAB_MPI";

/// Path of `fslab-mpi`: next to this program, or in a directory of `PATH`.
fn relay() -> Result<PathBuf, Failure> {
    let named = std::env::var_os(RELAY).map(PathBuf::from);
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("fslab-mpi"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|directory| directory.join("fslab-mpi"));
    let mut places = named.into_iter().chain(beside).chain(in_path);
    places.find(|place| place.is_file()).ok_or_else(|| {
        Failure::usage(anyhow::anyhow!(
            "program fslab-mpi is missing; install it next to fslab, or set {RELAY} to its path"
        ))
    })
}

/// Kind of the launcher at `program`, from the output of `--version`.
fn kind(program: &str) -> Result<Kind, Failure> {
    let output = Command::new(program).arg("--version").output().map_err(|error| {
        Failure::usage(anyhow::anyhow!(
            "cannot start the launcher {program}: {error}; install Open MPI (Debian: openmpi-bin) \
             or MPICH (mpich), load the MPI module of the site, or set --launcher"
        ))
    })?;
    let text = [output.stdout, output.stderr].concat();
    of_version(&String::from_utf8_lossy(&text)).ok_or_else(|| {
        Failure::usage(anyhow::anyhow!(
            "the launcher {program} is neither that of Open MPI nor that of MPICH; use {{hosts}} \
             and {{list}} in --launcher, such as 'srun -N {{hosts}} --ntasks-per-node=1'"
        ))
    })
}

fn of_version(text: &str) -> Option<Kind> {
    let contains = |names: &[&str]| names.iter().any(|name| text.contains(name));
    if contains(&["Open MPI", "OpenRTE", "PRRTE", "prterun"]) {
        return Some(Kind::OpenMpi);
    }
    contains(&["HYDRA", "Hydra", "MPICH", "Intel(R) MPI"]).then_some(Kind::Mpich)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str], kind: Kind, hosts: &[&str]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let words = words.iter().map(|it| (*it).to_owned()).collect();
        let launcher = Launcher { words, kind, relay: "/usr/bin/fslab-mpi".into() };
        let hosts: Vec<String> = hosts.iter().map(|it| (*it).to_owned()).collect();
        let agent = vec!["fslab".into(), "agent".into()];
        let command = launcher.command(&hosts, directory.path(), &agent).unwrap();
        let all = std::iter::once(command.get_program()).chain(command.get_args());
        let all: Vec<String> = all.map(|word| word.to_string_lossy().into_owned()).collect();
        all.join(" ").replace(&directory.path().display().to_string(), "DIR")
    }

    #[test]
    fn each_kind_gets_one_process_per_host_and_a_bridge() {
        let open = command(&["mpirun"], Kind::OpenMpi, &[LOCAL, LOCAL]);
        let relay = "/usr/bin/fslab-mpi relay";
        let agent = format!("-n 1 --host localhost {relay} -- fslab agent");
        assert_eq!(
            open,
            format!(
                "mpirun --oversubscribe --bind-to none -n 1 --host localhost {relay} --socket \
                 DIR/socket : {agent} : {agent}"
            )
        );
        let mpich = command(&["mpiexec"], Kind::Mpich, &[LOCAL, LOCAL]);
        assert_eq!(
            mpich,
            format!(
                "mpiexec -f DIR/hosts -n 1 {relay} --socket DIR/socket : -n 2 {relay} -- fslab agent"
            )
        );
        let slurm = ["srun", "-N", "{hosts}", "-w", "{list}"];
        let slurm = command(&slurm, Kind::Template, &["a", "b"]);
        let expected = format!("srun -N 2 -w a,b {relay} --socket DIR/socket -- fslab agent");
        assert_eq!(slurm, expected);
    }

    #[test]
    fn launchers_are_recognized_by_their_version() {
        assert_eq!(of_version("mpirun (Open MPI) 4.1.4"), Some(Kind::OpenMpi));
        assert_eq!(of_version("HYDRA build details:\n    Version: 4.0.2"), Some(Kind::Mpich));
        assert_eq!(of_version("Intel(R) MPI Library for Linux* OS"), Some(Kind::Mpich));
        assert_eq!(of_version("slurm 23.02"), None);
    }
}
