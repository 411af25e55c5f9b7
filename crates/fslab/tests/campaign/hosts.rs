//! Runs on several hosts: killed processes, cut networks, and slow hosts.
//!
//! The hosts are namespaces of this machine, with a directory that bindfs mounts on each of them.

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::{Section, selected, tries};
use crate::{
    cluster::{Hosts, has_hosts, mount, rows},
    support::{Bench, Finished, finished, on_path},
};

/// Longest time from a failure until all processes of the session have ended.
const ENDED: Duration = Duration::from_secs(15);
/// Longest duration of a run.
const RUN: Duration = Duration::from_secs(180);
const TRIALS: usize = 3;
const NAMES: &str = "--hosts=node0,node1,node2";

/// Part of a run that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Agent,
    Rank,
    Launcher,
    Daemon,
    Network,
    Conductor,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent of a host",
            Self::Rank => "rank of a host",
            Self::Launcher => "launcher",
            Self::Daemon => "launcher's daemon on a host",
            Self::Network => "network of a host",
            Self::Conductor => "fslab run",
        }
    }

    fn failure(self) -> &'static str {
        match self {
            Self::Network => "link down",
            Self::Agent | Self::Rank | Self::Launcher | Self::Daemon | Self::Conductor => "SIGKILL",
        }
    }

    /// True if the process with this command line is such a part.
    fn is(self, words: &[String]) -> bool {
        let program = words[0].rsplit('/').next().unwrap_or_default();
        let has = |word: &str| words.iter().any(|it| it == word);
        match self {
            Self::Agent => program == "fslab" && has("agent"),
            Self::Rank => program == "fslab-mpi" && !has("--socket"),
            Self::Launcher => program.starts_with("mpirun") || program.starts_with("mpiexec"),
            Self::Daemon => program == "orted" || program.starts_with("hydra_"),
            Self::Conductor => program == "fslab" && has("run"),
            Self::Network => false,
        }
    }
}

/// MPI library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Library {
    OpenMpi,
    Mpich,
}

impl Library {
    fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
        }
    }

    fn launcher(self, hosts: &Hosts) -> String {
        match self {
            Self::OpenMpi => hosts.launcher(),
            Self::Mpich => hosts.mpich_launcher(),
        }
    }
}

/// Library, part that fails, and number of tries in `make test` and in the campaign.
const ROWS: [(Library, Part, usize, usize); 11] = [
    (Library::OpenMpi, Part::Agent, 0, 20),
    (Library::OpenMpi, Part::Rank, 1, 20),
    (Library::OpenMpi, Part::Launcher, 0, 20),
    (Library::OpenMpi, Part::Daemon, 0, 20),
    (Library::OpenMpi, Part::Network, 0, 20),
    (Library::OpenMpi, Part::Conductor, 1, 20),
    (Library::Mpich, Part::Agent, 0, 5),
    (Library::Mpich, Part::Rank, 0, 5),
    (Library::Mpich, Part::Launcher, 0, 5),
    (Library::Mpich, Part::Daemon, 0, 5),
    (Library::Mpich, Part::Conductor, 0, 5),
];

const INTRO: &str = "\
Each try runs a plan with three trials on three hosts, which are namespaces of this machine. At a
random time in the trials, a process is killed or the network of a host is cut. A try fails in each
of these cases:

- A process of the session remains on a host after 15 s.
- The run file lacks a trial, or has one twice, after the run or after `--resume`.
- A file remains in the shared directory.

*ended* is the longest time until no process of the session remained. *resumed* is the number of
runs that `--resume` completed; the other runs continued by themselves.";

/// Three hosts with a shared directory.
struct Ground {
    bench: Bench,
    hosts: Hosts,
    shared: PathBuf,
    /// Processes of the hosts themselves.
    own: BTreeSet<i32>,
}

/// Process of a session.
#[derive(Clone, Debug)]
struct Process {
    id: i32,
    words: Vec<String>,
}

impl Ground {
    /// Creates the hosts; `options` are those of bindfs for each host.
    fn new(options: [&str; 3]) -> Self {
        let bench = Bench::new();
        let hosts = Hosts::up(&bench, 3);
        let (server, shared) = (bench.path("server"), bench.path("shared"));
        fs::create_dir(&server).unwrap();
        fs::create_dir(&shared).unwrap();
        for (host, options) in ["node0", "node1", "node2"].into_iter().zip(options) {
            mount(&hosts, host, &server, &shared, options);
        }
        let mut ground = Self { bench, hosts, shared, own: BTreeSet::new() };
        ground.own = ground.processes().into_iter().map(|process| process.id).collect();
        ground
    }

    /// Processes on the hosts, except those of the hosts themselves.
    fn processes(&self) -> Vec<Process> {
        let marker = format!("FSLAB_HOSTS={}", self.hosts.directory().display());
        let ids = fs::read_dir("/proc").unwrap().flatten();
        let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let other = ids.filter(|id| !self.own.contains(id));
        let found = other.filter_map(|id| {
            let environment = fs::read(format!("/proc/{id}/environ")).ok()?;
            let mut variables = environment.split(|byte| *byte == 0);
            variables.find(|it| *it == marker.as_bytes())?;
            let line = fs::read(format!("/proc/{id}/cmdline")).ok()?;
            let words = String::from_utf8_lossy(&line);
            let words: Vec<String> = words.split('\0').map(str::to_owned).collect();
            // A process that ends has no command line.
            (!words[0].is_empty()).then_some(Process { id, words })
        });
        found.collect()
    }

    /// True if a trial has created files.
    fn measures(&self) -> bool {
        let directories = fs::read_dir(self.bench.path("server")).unwrap();
        directories.flatten().any(|entry| entry.path().join("data/file.0").exists())
    }

    /// Starts the run, and waits until its first trial has created files.
    fn start(&self, library: Library, output: &Path) -> Child {
        let plan = self.bench.plan(&plan(&self.shared, TRIALS, "runtime = \"1s\""));
        let launcher = library.launcher(&self.hosts);
        let output = output.display().to_string();
        let words = ["run", &plan, NAMES, &launcher, "-o", &output];
        let mut command = self.hosts.on_first(&self.bench, &words);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let started = Instant::now();
        while !self.measures() {
            assert!(started.elapsed() < Duration::from_secs(60), "no trial has started");
            std::thread::sleep(Duration::from_millis(20));
        }
        child
    }

    /// Makes the part fail. Returns false if it does not exist any more.
    fn strike(&self, part: Part, random: &mut fastrand::Rng) -> bool {
        if part == Part::Network {
            self.link(random.u32(1..3), "down");
            return true;
        }
        let found: Vec<Process> =
            self.processes().into_iter().filter(|process| part.is(&process.words)).collect();
        let Some(victim) = random.choice(&found) else { return false };
        let pid = Pid::from_raw(victim.id).unwrap();
        kill_process(pid, Signal::KILL).is_ok()
    }

    fn link(&self, host: u32, state: &str) {
        let line = format!("ip link set to{host} {state}");
        let set = self.hosts.command(&["on", "node0", &line]).status().unwrap();
        assert!(set.success(), "{line}");
    }

    /// Waits until these processes have ended. Returns the time, and the processes that remain.
    fn ended(&self, session: &[Process], from: Instant) -> (Duration, Vec<Process>) {
        loop {
            let now: BTreeSet<i32> = self.processes().iter().map(|process| process.id).collect();
            let left: Vec<Process> =
                session.iter().filter(|process| now.contains(&process.id)).cloned().collect();
            if left.is_empty() || from.elapsed() > ENDED {
                return (from.elapsed(), left);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Plan with small writes on the hosts.
fn plan(shared: &Path, trials: usize, more: &str) -> String {
    let more = if more.is_empty() { String::new() } else { format!(", {more}") };
    format!(
        "title = \"hosts\"\nprofile = \"quick\"\nrepetitions = {trials}\n\
         invalid_trials = \"keep\"\n[storage]\ncluster = \"{}\"\n[axes]\nworkload = [{{ suite = \
         \"stream\", direction = \"write\", workers = 2, file_size = \"2MiB\", block_size = \
         \"64KiB\"{more} }}]\n",
        shared.display()
    )
}

/// Result of a try.
struct Attempt {
    hit: bool,
    ended: Duration,
    resumed: bool,
    problems: Vec<String>,
}

fn attempt(ground: &Ground, library: Library, part: Part, seed: u64) -> Attempt {
    let mut random = fastrand::Rng::with_seed(seed);
    let output = ground.bench.path(&format!("run-{seed:x}.fslab"));
    let child = ground.start(library, &output);
    std::thread::sleep(Duration::from_millis(random.u64(0..2000)));
    let before = ground.processes();
    let session: Vec<Process> = before
        .iter()
        .filter(|process| part == Part::Conductor || !Part::Conductor.is(&process.words))
        // The shell that runs a command on a host ends with the command.
        .filter(|process| process.words[0].contains("fslab") || is_of_launcher(&process.words))
        .cloned()
        .collect();
    let hit = ground.strike(part, &mut random);
    let struck = Instant::now();
    let (ended, left) = ground.ended(&session, struck);
    if part == Part::Network {
        (1..3).for_each(|host| ground.link(host, "up"));
    }
    let mut problems: Vec<String> =
        left.iter().map(|process| format!("remains: {:?}", process.words)).collect();
    let mut ran = within(child, RUN);
    let resumed = ran.status != Some(0);
    if resumed {
        let words = ["clean"];
        let cleaned = finished(ground.hosts.on_first(&ground.bench, &words).output().unwrap());
        if cleaned.status != Some(0) {
            problems.push(format!("clean: {cleaned:?}"));
        }
        let (path, launcher) = (output.display().to_string(), library.launcher(&ground.hosts));
        let words = ["run", "--resume", &path, NAMES, &launcher];
        let first = ran;
        ran = finished(ground.hosts.on_first(&ground.bench, &words).output().unwrap());
        if ran.status != Some(0) {
            problems.push(format!("before --resume: {first:?}"));
        }
    }
    if ran.status != Some(0) || !output.exists() {
        problems.push(format!("the run did not end: {ran:?}"));
        return Attempt { hit, ended, resumed, problems };
    }
    let measured = rows(
        &output,
        "SELECT count(*), count(DISTINCT repetition) FROM trial WHERE outcome = 'measured'",
    );
    let expected = vec![vec![TRIALS.to_string(); 2]];
    if measured != expected {
        problems.push(format!("measured trials, distinct repetitions: {measured:?}"));
    }
    let end = Instant::now();
    let (_, left) = ground.ended(&ground.processes(), end);
    problems.extend(left.iter().map(|process| format!("remains at the end: {:?}", process.words)));
    for entry in fs::read_dir(ground.bench.path("server")).unwrap() {
        let path = entry.unwrap().path();
        problems.push(format!("remains: {}", path.display()));
        let _removed = fs::remove_dir_all(path);
    }
    Attempt { hit, ended, resumed, problems }
}

fn is_of_launcher(words: &[String]) -> bool {
    Part::Launcher.is(words) || Part::Daemon.is(words)
}

/// Waits for the end of a process, and kills it after `limit`.
fn within(mut child: Child, limit: Duration) -> Finished {
    let ends = Instant::now() + limit;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > ends {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    finished(child.wait_with_output().unwrap())
}

#[test]
fn a_failure_on_a_host_leaves_no_process_and_loses_no_trial() {
    if !has_hosts("campaign::hosts::a_failure_on_a_host_leaves_no_process_and_loses_no_trial") {
        return;
    }
    let columns = ["library", "part", "failure", "tries", "hit", "resumed", "ended", "failures"];
    let mut section = Section::new(8, "hosts", "Failures of hosts", INTRO, &columns);
    let seed: u64 = if tries(0, 1) == 1 { fastrand::u64(..) >> 32 } else { 0x5eed };
    let ground = Ground::new(["", "", ""]);
    let mut failures = Vec::new();
    for (index, (library, part, short, whole)) in ROWS.into_iter().enumerate() {
        let name = format!("{}: {}", library.name(), part.name());
        let count = tries(short, whole);
        if count == 0 || !selected(&name) {
            continue;
        }
        if library == Library::Mpich && !on_path("mpiexec.hydra") {
            section.skipped(&name, "mpich");
            continue;
        }
        let (mut hit, mut resumed, mut ended, mut failed) = (0, 0, Duration::ZERO, 0);
        for number in 0..count {
            let own = seed ^ (index as u64 * 1000 + number as u64);
            let attempt = attempt(&ground, library, part, own);
            hit += usize::from(attempt.hit);
            resumed += usize::from(attempt.resumed);
            failed += usize::from(!attempt.problems.is_empty());
            ended = ended.max(attempt.ended);
            let line = format!(
                "{name}, try {number}, seed {own:#x}: hit {}, ended {:.1} s{}",
                attempt.hit,
                attempt.ended.as_secs_f64(),
                attempt.problems.iter().map(|it| format!("\n  {it}")).collect::<String>()
            );
            let _ = writeln!(std::io::stderr(), "{line}");
            if !attempt.problems.is_empty() {
                failures.push(line);
            }
        }
        let numbers = [count, hit, resumed].map(|number| number.to_string());
        let names = [library.name(), part.name(), part.failure()].map(str::to_owned);
        let rest = [format!("{:.1} s", ended.as_secs_f64()), failed.to_string()];
        section.row(names.into_iter().chain(numbers).chain(rest));
    }
    section.write();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Hosts that the report of a run names as stragglers.
fn stragglers(ground: &Ground, number: usize) -> Vec<String> {
    let plan = ground.bench.plan(&plan(&ground.shared, 6, ""));
    let output = ground.bench.path(&format!("speed-{number}.fslab")).display().to_string();
    let launcher = ground.hosts.launcher();
    let words = ["run", &plan, NAMES, &launcher, "-o", &output];
    let ran = finished(ground.hosts.on_first(&ground.bench, &words).output().unwrap());
    assert_eq!(ran.status, Some(0), "{ran:?}");
    let report = ground.bench.ends(0, &["report", &output, "--format", "md"]).stdout;
    let named = report.lines().filter_map(|line| line.split("straggler: ").nth(1));
    named.map(|rest| rest.chars().take_while(|c| c.is_ascii_alphanumeric()).collect()).collect()
}

#[test]
fn only_a_slow_host_is_named_as_a_straggler() {
    if !has_hosts("campaign::hosts::only_a_slow_host_is_named_as_a_straggler") {
        return;
    }
    let intro = "\
Each try is a run with six repetitions on three hosts. In the first row, the writes of one host are
limited to 4 MB/s. In the second row, all hosts are alike.";
    let columns = ["hosts", "runs", "slow host named", "another host named"];
    let mut section = Section::new(9, "stragglers", "Stragglers", intro, &columns);
    let mut wrong = 0;
    // Alike hosts are named with a small probability, so `make test` does not measure them.
    for (name, limited, short) in [("one slow", true, 1), ("all alike", false, 0)] {
        let count = tries(short, 20);
        let (mut right, mut others) = (0, 0);
        for number in 0..count {
            let slow = number % 3;
            let mut options = [""; 3];
            if limited {
                options[slow] = "--write-rate=4M";
            }
            let ground = Ground::new(options);
            let named = stragglers(&ground, number);
            let is_slow = |name: &String| limited && *name == format!("node{slow}");
            right += usize::from(named.iter().any(is_slow));
            others += usize::from(named.iter().any(|name| !is_slow(name)));
            let _ = writeln!(std::io::stderr(), "{name}, run {number}: {named:?}, slow: {slow}");
        }
        wrong += others + if limited { count - right } else { 0 };
        section.row([name.to_owned(), count.to_string(), right.to_string(), others.to_string()]);
    }
    section.write();
    assert_eq!(wrong, 0, "{}", section.text());
}
