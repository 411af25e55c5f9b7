//! Runs on several hosts: ranks of MPI on this host, and hosts that are namespaces.
//!
//! The hosts of `scripts/hosts` share kernel, CPUs, and disks, so that only the evidence about the
//! network and the clocks is that of each host.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use crate::support::{Bench, finished, needs_root, on_path, root, skipped};

/// Launcher, or a skipped test.
fn launcher(test: &str, program: &str) -> Option<String> {
    match on_path(program) {
        true => Some(program.to_owned()),
        false => {
            skipped(test, &format!("{program}; scripts/prepare --mpi installs it"));
            None
        }
    }
}

/// Plan that writes and reads small files on the hosts.
fn plan(directory: &Path, more: &str) -> String {
    format!(
        "title = \"hosts\"\nprofile = \"quick\"\nrepetitions = 2\n{more}\n[storage]\n\
         cluster = \"{}\"\n[axes]\nworkload = [{{ suite = \"stream\", direction = \"write\", \
         workers = 2, file_size = \"2MiB\", block_size = \"64KiB\" }}]\n",
        directory.display()
    )
}

/// Rows of a query on a run file.
pub(crate) fn rows(run: &Path, query: &str) -> Vec<Vec<String>> {
    let connection = rusqlite::Connection::open(run).unwrap();
    let mut statement = connection.prepare(query).unwrap();
    let columns = statement.column_count();
    let text = |row: &rusqlite::Row<'_>, column| {
        let value: rusqlite::types::Value = row.get(column).unwrap();
        match value {
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Text(text) => text,
            rusqlite::types::Value::Real(number) => number.to_string(),
            rusqlite::types::Value::Null | rusqlite::types::Value::Blob(_) => String::new(),
        }
    };
    let rows = statement.query_map([], |row| Ok((0..columns).map(|at| text(row, at)).collect()));
    rows.unwrap().map(Result::unwrap).collect()
}

/// Processes of this test that are still running.
fn processes(directory: &Path) -> Vec<String> {
    let marker = directory.display().to_string();
    let started = Instant::now();
    loop {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
        let own: Vec<String> =
            lines.filter(|line| line.contains(&marker) && line.contains("agent")).collect();
        if own.is_empty() || started.elapsed() > Duration::from_secs(30) {
            return own;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn measures_on_two_ranks(test: &str, program: &str) {
    let Some(launcher) = launcher(test, program) else { return };
    let bench = Bench::new();
    let shared = bench.path("shared");
    fs::create_dir(&shared).unwrap();
    let plan = bench.plan(&plan(&shared, ""));
    let run = bench.path("run.fslab");
    let hosts = "--hosts=localhost,localhost";
    let launcher = format!("--launcher={launcher}");
    let output = run.display().to_string();
    let ended = bench.ends(0, &["run", &plan, hosts, &launcher, "-o", &output]);
    assert!(ended.stdout.contains("hosts"), "{}", ended.stdout);
    let names = rows(&run, "SELECT name FROM host ORDER BY idx").concat();
    assert_eq!(names, ["localhost#1", "localhost#2"]);
    let results = rows(
        &run,
        "SELECT count(*), min(bytes), max(bytes), min(ended_ns > started_ns), min(clock_bound_ns > 0)
         FROM host_result",
    );
    let own = (4 << 20).to_string();
    assert_eq!(results[0], ["4", &own, &own, "1", "1"], "two hosts, two repetitions");
    let workers = rows(&run, "SELECT max(worker) FROM sample WHERE phase = 'write'").concat();
    assert_eq!(workers, ["3"], "workers are counted over all hosts");
    let report = bench.ends(0, &["report", &output, "--format", "md"]).stdout;
    assert!(report.contains("Hosts: ") && report.contains("slowest localhost#"), "{report}");
    assert_eq!(fs::read_dir(&shared).unwrap().count(), 0, "all files are removed");
    assert_eq!(processes(&bench.path("")), Vec::<String>::new());
    bench.has_nothing_to_undo();
}

#[test]
fn ranks_of_open_mpi_measure_together() {
    measures_on_two_ranks("ranks_of_open_mpi_measure_together", "mpirun.openmpi");
}

#[test]
fn ranks_of_mpich_measure_together() {
    measures_on_two_ranks("ranks_of_mpich_measure_together", "mpiexec.hydra");
}

#[test]
fn after_a_deadline_all_ranks_have_the_same_number_of_operations() {
    let test = "after_a_deadline_all_ranks_have_the_same_number_of_operations";
    let Some(launcher) = launcher(test, "mpirun.openmpi") else { return };
    let bench = Bench::new();
    let shared = bench.path("shared");
    fs::create_dir(&shared).unwrap();
    let stream = "file_size = \"2GiB\", stonewall_time = \"200ms\", end_fsync = \"none\"";
    let text = plan(&shared, "invalid_trials = \"keep\"").replace("file_size = \"2MiB\"", stream);
    let text = bench.plan(&text);
    let output = bench.path("run.fslab");
    let launcher = format!("--launcher={launcher}");
    let arguments = ["run", &text, "--hosts=localhost,localhost", &launcher, "-o"];
    let run = output.display().to_string();
    bench.ends(0, &[&arguments[..], &[&run]].concat());
    let hosts = rows(
        &output,
        "SELECT count(DISTINCT bytes), count(*), min(bytes) > 0 FROM host_result GROUP BY trial_id",
    );
    assert_eq!(hosts, vec![["1", "2", "1"]; 2], "two hosts have the same number of bytes");
    let rates = rows(
        &output,
        "SELECT count(*), min(value) > 0 FROM sample WHERE metric = 'throughput_deadline'",
    );
    assert_eq!(rates, [["2", "1"]], "one rate per trial");
}

#[test]
fn a_launcher_with_placeholders_starts_all_ranks() {
    let test = "a_launcher_with_placeholders_starts_all_ranks";
    let Some(launcher) = launcher(test, "mpirun.openmpi") else { return };
    let bench = Bench::new();
    let shared = bench.path("shared").display().to_string();
    fs::create_dir(&shared).unwrap();
    let launcher = format!("--launcher={launcher} --oversubscribe --bind-to none -n {{hosts}}");
    let check = ["cluster", "check", "--hosts=localhost,localhost", &launcher, &shared];
    let output = bench.ends(0, &check).stdout;
    assert!(output.contains("2 hosts connected") && output.contains("Open MPI"), "{output}");
    assert_eq!(output.lines().filter(|line| line.starts_with("clock")).count(), 2, "{output}");
}

#[test]
fn missing_parts_are_errors_with_hints() {
    let bench = Bench::new();
    let shared = bench.path("shared");
    fs::create_dir(&shared).unwrap();
    let text = bench.plan(&plan(&shared, ""));
    let none = bench.ends(2, &["run", &text]).stderr;
    assert!(none.contains("names no hosts") && none.contains("--hosts"), "{none}");
    let other = bench.ends(2, &["run", &text, "--hosts=localhost", "--launcher=/bin/true"]).stderr;
    assert!(other.contains("neither that of Open MPI nor that of MPICH"), "{other}");
    let name = bench.ends(2, &["run", &text, "--hosts=a b"]).stderr;
    assert!(name.contains("is not a host name"), "{name}");
}

/// Hosts that are namespaces.
pub(crate) struct Hosts {
    directory: PathBuf,
    script: PathBuf,
}

impl Hosts {
    pub(crate) fn up(bench: &Bench, count: u32) -> Self {
        let hosts = Self { directory: bench.path("hosts"), script: root().join("scripts/hosts") };
        let process = std::process::id().to_string();
        let up = hosts.command(&["up", &count.to_string(), &process]).output().unwrap();
        assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
        // The remote shell of Open MPI is one word.
        let on = format!("#!/bin/sh\nexec {} on \"$@\"\n", hosts.script.display());
        let shell = hosts.shell();
        fs::write(&shell, on).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&shell, mode).unwrap();
        hosts
    }

    /// Command of `scripts/hosts`.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.script);
        command.args(arguments).env("FSLAB_HOSTS", &self.directory);
        command
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Remote shell of the hosts.
    pub(crate) fn shell(&self) -> PathBuf {
        self.directory.join("shell")
    }

    /// Option for the launcher of Open MPI.
    pub(crate) fn launcher(&self) -> String {
        format!("--launcher=mpirun.openmpi --mca plm_rsh_agent {}", self.shell().display())
    }

    /// Option for the launcher of MPICH.
    pub(crate) fn mpich_launcher(&self) -> String {
        let shell = self.shell().display().to_string();
        format!("--launcher=mpiexec.hydra -launcher ssh -launcher-exec {shell}")
    }

    /// Command line of the program on the first host.
    pub(crate) fn on_first(&self, bench: &Bench, arguments: &[&str]) -> Command {
        let words = [env!("CARGO_BIN_EXE_fslab"), "--state-directory"].map(str::to_owned);
        let state = bench.state().display().to_string();
        let all =
            words.into_iter().chain([state]).chain(arguments.iter().map(|it| (*it).to_owned()));
        let quoted: Vec<String> = all.map(|word| format!("'{word}'")).collect();
        self.command(&["on", "node0", &quoted.join(" ")])
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let down = self.command(&["down"]).status();
        assert!(down.is_ok_and(|status| status.success()), "the hosts are down");
    }
}

/// True if hosts can be created here.
pub(crate) fn has_hosts(test: &str) -> bool {
    if !needs_root(test) {
        return false;
    }
    for program in ["mpirun.openmpi", "ip", "bindfs"] {
        if !on_path(program) {
            skipped(test, &format!("{program}; scripts/prepare --mpi --mounts installs it"));
            return false;
        }
    }
    true
}

/// Mounts a directory on a host with bindfs, as a client of a shared filesystem.
pub(crate) fn mount(hosts: &Hosts, host: &str, from: &Path, to: &Path, options: &str) {
    let line = format!("bindfs {options} '{}' '{}'", from.display(), to.display());
    let mounted = hosts.command(&["on", host, &line]).output().unwrap();
    assert!(mounted.status.success(), "{}", String::from_utf8_lossy(&mounted.stderr));
}

#[test]
fn hosts_with_different_clocks_measure_and_the_slow_one_is_named() {
    let test = "hosts_with_different_clocks_measure_and_the_slow_one_is_named";
    if !has_hosts(test) {
        return;
    }
    let bench = Bench::new();
    let hosts = Hosts::up(&bench, 3);
    let (server, shared) = (bench.path("server"), bench.path("shared"));
    fs::create_dir(&server).unwrap();
    fs::create_dir(&shared).unwrap();
    let path = shared.display().to_string();
    mount(&hosts, "node0", &server, &shared, "");
    mount(&hosts, "node1", &server, &shared, "");
    let launcher = hosts.launcher();
    let names = "--hosts=node0,node1,node2";
    let check = ["cluster", "check", names, &launcher, &path];
    let refused = finished(hosts.on_first(&bench, &check).output().unwrap());
    assert_eq!(refused.status, Some(3), "{refused:?}");
    let hint = "mount the cluster filesystem on this host first";
    assert!(refused.stderr.contains("node2") && refused.stderr.contains(hint), "{refused:?}");
    assert_eq!(fs::read_dir(&shared).unwrap().count(), 0, "nothing was written without a mount");

    mount(&hosts, "node2", &server, &shared, "--write-rate=4M");
    let checked = finished(hosts.on_first(&bench, &check).output().unwrap());
    assert_eq!(checked.status, Some(0), "{checked:?}");
    for (host, seconds) in [("node1", 1000.0), ("node2", 2000.0)] {
        let line = checked.stdout.lines().find(|it| it.contains(host) && it.starts_with("clock"));
        let offset = line.and_then(|line| line.split_whitespace().nth(2)?.parse::<f64>().ok());
        let offset = offset.unwrap_or_else(|| panic!("{}", checked.stdout));
        assert!((offset - seconds).abs() < 0.1, "{}", checked.stdout);
    }

    let text = bench.plan(&plan(&shared, "").replace("repetitions = 2", "repetitions = 6"));
    let output = bench.path("run.fslab").display().to_string();
    let run = ["run", &text, names, &launcher, "-o", &output];
    let ran = finished(hosts.on_first(&bench, &run).output().unwrap());
    assert_eq!(ran.status, Some(0), "{ran:?}");
    let spans = rows(
        Path::new(&output),
        "SELECT max(started_ns) - min(started_ns) < 1000000000, count(*), max(sent_bytes) > 0
         FROM host_result JOIN trial ON trial.id = trial_id WHERE outcome = 'measured'
         GROUP BY trial_id",
    );
    assert_eq!(spans, vec![["1", "3", "1"]; 6], "starts agree in common time");
    let report = bench.ends(0, &["report", &output, "--format", "md"]).stdout;
    assert!(report.contains("straggler: node2"), "{report}");
    assert_eq!(processes(&bench.path("")), Vec::<String>::new());
}

#[test]
fn a_lost_host_invalidates_its_trial_which_is_rerun() {
    let test = "a_lost_host_invalidates_its_trial_which_is_rerun";
    let Some(launcher) = launcher(test, "mpirun.openmpi") else { return };
    let bench = Bench::new();
    let shared = bench.path("shared");
    fs::create_dir(&shared).unwrap();
    let text = plan(&shared, "invalid_trials = \"rerun\"")
        .replace("file_size = \"2MiB\"", "file_size = \"2MiB\", runtime = \"2s\"");
    let text = bench.plan(&text);
    let output = bench.path("run.fslab").display().to_string();
    let launcher = format!("--launcher={launcher}");
    let mut command =
        bench.command(&["run", &text, "--hosts=localhost,localhost", &launcher, "-o", &output]);
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = child.spawn().unwrap();
    // An agent is killed in its first trial.
    let state = bench.state().display().to_string();
    let started = Instant::now();
    let agent = loop {
        let found = fs::read_dir("/proc").unwrap().flatten().find(|entry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            let own = words.contains(&state.as_bytes());
            own && words.contains(&&b"agent"[..])
                && words.first().is_some_and(|word| word.ends_with(b"/fslab"))
        });
        let measuring = fs::read_dir(&shared).unwrap().count() >= 2;
        match found {
            Some(found) if measuring => break found.file_name(),
            _ => assert!(started.elapsed() < Duration::from_secs(60), "no agent was started"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    std::thread::sleep(Duration::from_millis(500));
    let killed = Command::new("kill").arg("-KILL").arg(agent).status().unwrap();
    assert!(killed.success());
    let ended = finished(child.wait_with_output().unwrap());
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let trials = rows(Path::new(&output), "SELECT outcome, reason FROM trial ORDER BY id");
    let outcomes: Vec<&str> = trials.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(outcomes[0], "invalid", "{trials:?}");
    // Tests that run at the same time may invalidate others.
    assert_eq!(outcomes.iter().filter(|it| **it == "measured").count(), 2, "{trials:?}");
    assert!(trials[0][1].contains("was lost"), "{trials:?}");
    assert_eq!(processes(&bench.path("")), Vec::<String>::new());
}
