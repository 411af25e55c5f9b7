//! Runs on several hosts whose ranks are threads of this process.

use std::{os::unix::net::UnixStream, sync::atomic::AtomicBool, thread};

use engine::Progress;
use model::{Nanos, RunRecord, record::Outcome};
use mpi::{Endpoint, InProcess, Pulse};
use rig::Catalog;

use super::*;
use crate::runner::{RunObserver, Trials};

/// Session with this number of agents, in threads.
fn session(hosts: usize, state: &Path) -> Result<Session, Lost> {
    let (conductor, bridge) = UnixStream::pair().unwrap();
    for (rank, mut fabric) in InProcess::ranks(hosts + 1).into_iter().enumerate() {
        let bridge = (rank == 0)
            .then(|| Endpoint::new(bridge.try_clone().unwrap(), bridge.try_clone().unwrap()));
        let agent = (rank > 0).then(|| {
            let (own, other) = UnixStream::pair().unwrap();
            let state = state.to_owned();
            let input = other.try_clone().unwrap();
            thread::spawn(move || agent::run(input, other, &state).unwrap());
            Endpoint::new(own.try_clone().unwrap(), own)
        });
        thread::spawn(move || {
            mpi::relay(&mut fabric, &format!("node{rank}"), agent, bridge, &Pulse::default())
        });
    }
    Session::connect(conductor, None, &[], &AtomicBool::new(false))
}

/// Plan in a directory, with workers that write and read files.
fn plan(directory: &Path, workload: &str) -> ResolvedPlan {
    let text = format!(
        "repetitions = 1\nseed = 7\n[storage]\ncluster = \"{}\"\n[axes]\nworkload = [{workload}]\n",
        directory.display()
    );
    let scale = model::Scale::ONE;
    let catalog = Catalog::embedded();
    ResolvedPlan::read("test".into(), "test", text, Vec::new(), scale, &catalog)
        .unwrap_or_else(|failure| panic!("{}", failure.message()))
}

fn begin(chosen: &ResolvedPlan) -> StartRun {
    let id = run_setup::run_id(7);
    let info = run_setup::info(chosen, id, 7, "directory".into());
    StartRun { info, filesystems: None, environment: Environment::default() }
}

fn cluster(chosen: &ResolvedPlan, count: usize) -> Cluster {
    Cluster {
        path: directory(chosen).to_owned(),
        hosts: Vec::new(),
        count,
        launcher: Launcher::without_program(),
        agent: Vec::new(),
        begin: begin(chosen),
        session: None,
    }
}

/// Runs one trial of the first cell on all hosts.
fn trial(workload: &str, hosts: usize) -> model::record::TrialRecord {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let state = tempfile::tempdir().unwrap();
    rig::undo::make_state_directory(state.path()).unwrap();
    let shared = directory.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    let chosen = plan(&shared, workload);
    let mut cluster = cluster(&chosen, hosts);
    let session = session(hosts, state.path()).unwrap_or_else(|lost| panic!("{}", lost.reason()));
    let interrupt = AtomicBool::new(false);
    let (session, begun) =
        cluster.begin(session, &interrupt).unwrap_or_else(|lost| panic!("{}", lost.reason()));
    cluster.session = Some(session);
    let record = RunRecord {
        info: cluster.begin.info.clone(),
        environment: begun.environment,
        cells: Vec::new(),
        trials: Vec::new(),
        warnings: begun.warnings,
    };
    let progress = Progress::default();
    let observer = RunObserver { notify: &|_| {}, progress: &progress, interrupt: &interrupt };
    let mut trials = OnHosts::new(cluster, &record, false, observer);
    let trial = trials.measure(&chosen.cells[0].cell, 0, 0).unwrap();
    trials.close().unwrap();
    let left: Vec<_> = std::fs::read_dir(&shared).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    trial
}

#[test]
fn a_trial_on_several_hosts_has_the_workers_of_all_hosts() {
    let workload = "{ suite = \"stream\", direction = \"write\", workers = 2, file_size = \"1MiB\", \
                    block_size = \"64KiB\" }";
    let trial = trial(workload, 3);
    assert_eq!(trial.outcome, Outcome::Measured);
    let hosts: Vec<(u32, &str, u64)> =
        trial.hosts.iter().map(|it| (it.index, it.host.as_str(), it.bytes.0)).collect();
    let own = 2 << 20;
    assert_eq!(hosts, [(0, "node1", own), (1, "node2", own), (2, "node3", own)]);
    let workers = trial.samples.iter().filter_map(|sample| sample.worker);
    assert_eq!(workers.max(), Some(5), "workers are counted over all hosts");
    for host in &trial.hosts {
        assert!(host.ended > host.started && host.clock_bound > Nanos(0), "{host:?}");
        assert_eq!(host.histogram.count(), 32);
    }
    let first = trial.hosts.iter().map(|host| host.started).min().unwrap();
    let last = trial.hosts.iter().map(|host| host.started).max().unwrap();
    assert!(last - first < Nanos(1_000_000_000), "agreed start");
}

#[test]
fn hosts_read_the_verified_files_of_another_host() {
    let workload = "{ suite = \"stream\", direction = \"read\", verify = true, workers = 1, \
                    file_size = \"1MiB\", block_size = \"64KiB\" }";
    let trial = trial(workload, 2);
    assert_eq!(trial.outcome, Outcome::Measured);
    let own = |it: &(Option<String>, Warning)| it.1 == Warning::OwnDataRead;
    assert!(!trial.warnings.iter().any(own), "reads are shifted by default");
}

#[test]
fn metadata_operations_run_on_several_hosts() {
    for operation in ["create", "stat", "unlink"] {
        let workload = format!(
            "{{ suite = \"metadata\", operations = \"{operation}\", workers = 2, files = 20 }}"
        );
        let trial = trial(&workload, 2);
        assert_eq!(trial.outcome, Outcome::Measured, "{operation}");
        let ops: Vec<u64> = trial.hosts.iter().map(|host| host.ops.0).collect();
        assert_eq!(ops.len(), 2, "{operation}");
        assert!(ops[0] > 0 && ops[0] == ops[1], "{operation}: {ops:?}");
    }
}

#[test]
fn unsuitable_plans_are_rejected() {
    let reject = |text: &str| {
        let catalog = Catalog::embedded();
        let scale = model::Scale::ONE;
        let read = ResolvedPlan::read("t".into(), "t", text.into(), Vec::new(), scale, &catalog);
        read.err().map(|failure| failure.message()).unwrap_or_default()
    };
    let storage = "[storage]\ncluster = \"/tmp\"\n[axes]\n";
    let other = reject(&format!("{storage}workload = [{{ suite = \"dbench\" }}]\n"));
    assert!(other.contains("cannot run on several hosts"), "{other}");
    let axis = "[storage]\ndirectory = \"/tmp\"\n[axes]\nhosts = [1, 2]\n\
                workload = [{ suite = \"stream\" }]\n";
    assert!(reject(axis).contains("requires several hosts"), "{}", reject(axis));
    let alone = "[storage]\ndirectory = \"/tmp\"\nhosts = [\"a\"]\n[axes]\n\
                 workload = [{ suite = \"stream\" }]\n";
    assert!(reject(alone).contains("`hosts` requires `cluster`"), "{}", reject(alone));
    let first = format!(
        "{storage}workload = [{{ suite = \"stream\", workers = 2, stonewall = \"stop\" }}]\n"
    );
    assert!(reject(&first).contains("workers of other hosts"), "{}", reject(&first));
}
