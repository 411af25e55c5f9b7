//! Sessions of program `fslab-mpi` with the MPI libraries that are installed.
//!
//! `cat` is the agent: it returns each frame unchanged. Tests without a launcher are counted as
//! skipped.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test, which clippy does not see")]

use std::{
    os::unix::{net::UnixListener, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use mpi::{ToConductor, ToRelay, read_frame, write_frame};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fslab-mpi");

fn launcher(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .find_map(|directory| names.iter().map(|it| directory.join(it)).find(|it| it.is_file()));
    if found.is_none() {
        eprintln!("skipped: needs {}; scripts/prepare --mpi installs it", names[0]);
    }
    found
}

/// Launcher in a process group, which is killed on drop.
struct Session(Child);

impl Drop for Session {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _gone = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _reaped = self.0.wait();
    }
}

impl Session {
    fn start(launcher: &Path, open_mpi: bool, socket: &Path, agents: u32) -> Self {
        let mut command = Command::new(launcher);
        if open_mpi {
            command.args(["--oversubscribe", "--bind-to", "none"]);
        }
        command.args(["-n", "1", PROGRAM, "relay", "--socket"]).arg(socket);
        command.args([":", "-n", &agents.to_string(), PROGRAM, "relay", "--", "cat"]);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        Self(command.stdin(Stdio::null()).process_group(0).spawn().unwrap())
    }
}

fn exchanges(launcher: &Path, open_mpi: bool, expected: &str) {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut session = Session::start(launcher, open_mpi, &socket, 3);
    let (mut stream, _) = listener.accept().unwrap();
    let receive = |stream: &mut _| ToConductor::decode(&read_frame(stream).unwrap().unwrap());
    let Some(ToConductor::Started(version, members)) = receive(&mut stream) else { panic!() };
    assert!(version.contains(expected), "{version}");
    let agents: Vec<bool> = members.iter().map(|member| member.agent).collect();
    assert_eq!(agents, [false, true, true, true]);
    assert!(members.iter().all(|member| member.ranks_on_host == 4), "{members:?}");
    for _ in 0..3 {
        let Some(ToConductor::Agent(rank, own)) = receive(&mut stream) else { panic!() };
        assert_eq!(own, u32::try_from(rank).unwrap().to_le_bytes(), "the first frame is the rank");
    }
    for size in [1_usize, 100_000] {
        let message = vec![b'x'; size];
        write_frame(&mut stream, &ToRelay::Agents(message.clone()).encode()).unwrap();
        let mut ranks = Vec::new();
        for _ in 0..3 {
            let Some(ToConductor::Agent(rank, reply)) = receive(&mut stream) else { panic!() };
            assert!(reply == message, "rank {rank} changed the message");
            ranks.push(rank);
        }
        ranks.sort_unstable();
        assert_eq!(ranks, [1, 2, 3]);
    }
    write_frame(&mut stream, &ToRelay::Clocks.encode()).unwrap();
    let Some(ToConductor::Clocks(offsets)) = receive(&mut stream) else { panic!() };
    assert_eq!(offsets.len(), 4);
    for it in offsets {
        assert!(it.offset.unsigned_abs() <= it.bound, "ranks of one host share a clock: {it:?}");
    }
    write_frame(&mut stream, &ToRelay::End.encode()).unwrap();
    let status = session.0.wait().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn ranks_of_open_mpi_exchange_messages() {
    if let Some(launcher) = launcher(&["mpirun.openmpi"]) {
        exchanges(&launcher, true, "Open MPI");
    }
}

#[test]
fn ranks_of_mpich_exchange_messages() {
    if let Some(launcher) = launcher(&["mpiexec.hydra", "mpirun.mpich"]) {
        exchanges(&launcher, false, "MPICH");
    }
}

#[test]
fn the_end_of_the_conductor_ends_all_ranks() {
    let Some(launcher) = launcher(&["mpirun.openmpi"]) else { return };
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut session = Session::start(&launcher, true, &socket, 2);
    let (mut stream, _) = listener.accept().unwrap();
    read_frame(&mut stream).unwrap().unwrap();
    drop(stream);
    let started = Instant::now();
    let status = loop {
        if let Some(status) = session.0.try_wait().unwrap() {
            break status;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "the ranks did not end");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(!status.success());
}

#[test]
fn a_missing_library_is_an_error_with_a_hint() {
    let output = Command::new(PROGRAM)
        .arg("library")
        .env("FSLAB_MPI_LIBRARY", "/nonexistent/libmpi.so")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("no MPI library was found") && text.contains("openmpi-bin"), "{text}");
}
