//! Suite `command`: order of steps, containment, failures, and numbers.

use std::{
    fs,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use model::{Warning, record::Outcome};
use serde_json::Value;

use crate::support::{Bench, Finished, finished, needs_root, processes, wait_for};

/// Bench with a directory to measure.
fn bench() -> Bench {
    let bench = Bench::new();
    fs::create_dir(bench.path("data")).unwrap();
    bench
}

/// Runs one command in the directory, with parameters.
fn run(bench: &Bench, program: &str, settings: &[&str]) -> Finished {
    let mut arguments = vec!["bench", "--json", "--command", program, "data"];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    bench.run(&arguments)
}

/// Median of a metric of a test.
fn value(output: &Finished, test: &str, metric: &str) -> Option<f64> {
    let json: Value = serde_json::from_str(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", output.stdout, output.stderr));
    let tests = json["workloads"][0]["tests"].as_array().unwrap();
    let result = &tests.iter().find(|it| it["name"] == test)?["results"][0];
    result["metrics"][metric]["median"].as_f64()
}

/// Waits until no process has this text in its command line.
fn assert_gone(text: &str) {
    let limit = Instant::now() + Duration::from_secs(10);
    while !processes(text).is_empty() {
        assert!(Instant::now() < limit, "{text} still runs: {:?}", processes(text));
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_command_is_timed_and_leaves_nothing_behind() {
    let bench = bench();
    let output = run(&bench, "sleep 0.2", &[]);
    assert_eq!(output.status, Some(0), "{}", output.stderr);
    assert!(value(&output, "run", "elapsed").unwrap() >= 0.2e9, "{}", output.stdout);
    let durable = value(&output, "run", "durable_elapsed").unwrap();
    assert!(durable >= value(&output, "run", "elapsed").unwrap());
    assert_eq!(fs::read_dir(bench.path("data")).unwrap().count(), 0);
    bench.has_nothing_to_undo();
}

#[test]
fn cpu_time_includes_grandchildren_and_orphans() {
    let bench = bench();
    let spin = "i=0; while [ $i -lt 150000 ]; do i=$((i + 1)); done";
    // CPU time per loop varies with the load of the machine, so the orphan does four times as much.
    // It ends before the program does, because the program waits for its file.
    let orphan = format!(
        "sh -c '(({spin}; {spin}; {spin}; {spin}; touch orphan) &)'; {spin}; \
         while [ ! -e orphan ]; do sleep 0.01; done"
    );
    let cpu = |program: &str| {
        let output = run(&bench, &format!("sh -c \"{program}\""), &[]);
        assert_eq!(output.status, Some(0), "{}", output.stderr);
        value(&output, "run", "user_time").unwrap() + value(&output, "run", "system_time").unwrap()
    };
    let (one, two) = (cpu(spin), cpu(&orphan));
    assert!(two > 2.0 * one, "{two} of {one}");
}

#[test]
fn steps_run_in_order() {
    let bench = bench();
    let note = |word: &str| format!("sh -c 'echo {word} >> {{scratch}}/order'");
    let check = "sh -c 'test \"$(echo $(cat {scratch}/order))\" = \"prepare1 prepare2 serve \
                 ready run settle\"'";
    let serve = "sh -c 'echo serve >> {scratch}/order; exec sleep 1000'";
    // The server may start after the first attempt of `ready`.
    let ready = "sh -c 'grep -q serve {scratch}/order && echo ready >> {scratch}/order'";
    let settings = [
        format!("prepare={}\n{}", note("prepare1"), note("prepare2")),
        format!("serve={serve}"),
        format!("ready={ready}"),
        format!("settle={}", note("settle")),
        format!("check={check}"),
        "expect=3".to_owned(),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let program = "sh -c 'echo run >> {scratch}/order; exit 3'";
    let output = run(&bench, program, &settings);
    assert_eq!(output.status, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(value(&output, "run", "settle_time").unwrap() > 0.0);
}

#[test]
fn a_daemon_that_forks_twice_is_killed_and_reported() {
    let bench = bench();
    let program = "sh -c '(setsid sh -c \"sleep 271828 & sleep 271829 &\" &); sleep 0.3'";
    let output = run(&bench, program, &[]);
    assert_eq!(output.status, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("leftover-processes"), "{}", output.stdout);
    assert_gone("sleep 27182");
}

#[test]
fn failures_state_step_status_and_output() {
    let bench = bench();
    let failed = |program: &str, settings: &[&str], words: &[&str]| {
        let output = run(&bench, program, settings);
        assert_eq!(output.status, Some(3), "{}{}", output.stdout, output.stderr);
        let text = output.stdout + &output.stderr;
        for word in words {
            assert!(text.contains(word), "{word} is missing from {text}");
        }
    };
    failed("sh -c 'echo sorry >&2; exit 7'", &[], &["run: ", "exit status 7", "sorry"]);
    failed("sh -c 'kill -9 $$'", &[], &["was killed by signal 9"]);
    failed("true", &["check=false"], &["check: `false` ended with exit status 1"]);
    failed("true", &["prepare=false"], &["prepare: `false`"]);
    failed("true", &["serve=sh -c 'exit 5'", "ready=false"], &["serve: ", "exit status 5"]);
    failed("sleep 314159", &["timeout=300ms"], &["did not end within 300ms"]);
    assert_gone("sleep 314159");
    failed("echo x", &["numbers=name=n is=rate pattern='n = {}'"], &["matches `n = {}`: x"]);
    bench.has_nothing_to_undo();
}

#[test]
fn a_missing_program_is_named_with_its_package() {
    let bench = bench();
    let output = run(&bench, "fslab-no-such-program x", &[]);
    assert_eq!(output.status, Some(3));
    assert!(output.stderr.contains("fslab-no-such-program is not installed"), "{}", output.stderr);
}

#[test]
fn numbers_and_latencies_become_metrics() {
    let bench = bench();
    let program = "sh -c 'for i in 1 2 3 4; do echo 0 $i 2000; done > {scratch}/log.1; echo \"tps = \
                   1234.5 (without)\"; echo took 25 ms >&2'";
    let settings = [
        "numbers=name=tps is=rate 'pattern=tps = {} (without'\nname=t is=time unit=ms from=stderr \
         'pattern=took {} ms'",
        "latencies=file={scratch}/log.* column=3 unit=us",
        "judge=tps",
    ];
    let output = run(&bench, program, &settings);
    assert_eq!(output.status, Some(0), "{}{}", output.stdout, output.stderr);
    assert_eq!(value(&output, "run", "reported_rate"), Some(1234.5));
    assert_eq!(value(&output, "run.t", "reported_time"), Some(25e6));
    let mean = value(&output, "run", "latency_mean").unwrap();
    assert!((mean - 2e6).abs() < 2e6 * 0.01, "{mean}");
    assert!(output.stdout.contains("reported-rate-differs"), "{}", output.stdout);
}

#[test]
fn programs_get_their_own_environment_and_exactly_their_words() {
    let bench = bench();
    let plan = bench.plan(
        r#"
repetitions = 1
[storage]
directory = "data"
[axes]
workload = [{ suite = "command", environment = ["OWN=of the plan"], run = ["sh", "-c",
    "printf '%s\n' \"$1\" \"$OWN\" \"$MARK\" \"$TZ\" \"$LANG\" > {target}/a", "sh", "$HOME *"],
    check = ["sh", "-c", "printf '%s\n' '$HOME *' 'of the plan' '' UTC C.UTF-8 | cmp - {target}/a"] }]
"#,
    );
    let mut command = bench.command(&["run", &plan, "-q", "-o", "run.fslab"]);
    let output = finished(command.env("MARK", "of the caller").output().unwrap());
    assert_eq!(output.status, Some(0), "{}{}", output.stdout, output.stderr);
}

#[test]
fn root_runs_commands_as_the_caller_of_sudo_or_as_user_65534() {
    if !needs_root("command::root_runs_commands_as_the_caller_of_sudo_or_as_user_65534") {
        return;
    }
    let bench = bench();
    for (sudo, expected) in [(true, "1234:1235"), (false, "65534:65534")] {
        let program = format!("sh -c 'test $(id -u):$(id -g) = {expected}'");
        let mut command = bench.command(&["bench", "--command", &program, "data"]);
        for (variable, value) in [("SUDO_UID", "1234"), ("SUDO_GID", "1235")] {
            match sudo {
                true => command.env(variable, value),
                false => command.env_remove(variable),
            };
        }
        let output = finished(command.output().unwrap());
        assert_eq!(output.status, Some(0), "{expected}: {}{}", output.stdout, output.stderr);
    }
}

#[test]
fn root_runs_commands_as_another_user_below_closed_directories() {
    if !needs_root("command::root_runs_commands_as_another_user_below_closed_directories") {
        return;
    }
    let bench = bench();
    // The state directory, which contains mount points, is closed to other users.
    let plan = |run: &str, more: &str| {
        bench.plan(&format!(
            "repetitions = 1\n[storage]\nimage_size = \"64MiB\"\n[axes]\nfilesystem = \
             [\"ext4\"]\nworkload = [{{ suite = \"command\", run = {run}, {more} }}]\n"
        ))
    };
    let path = plan(
        r#"["sh", "-c", "id -u > {target}/a && cat {input}/source.tar > {target}/b"]"#,
        r#"user = "65534", input_files = 20, check = ["grep", "-x", "65534", "{target}/a"]"#,
    );
    bench.ends(0, &["run", &path, "-q", "-o", "a.fslab"]);
    let shown = bench.ends(0, &["show", &path]).stdout;
    assert!(shown.contains("  $ grep -x 65534 {target}/a"), "{shown}");
    assert!(shown.contains("run as user 65534, without the network"), "{shown}");
    let path = plan(r#"["touch", "/root/fslab-test"]"#, r#"user = "daemon""#);
    let refused = bench.ends(3, &["run", &path, "-q", "-o", "denied.fslab"]);
    let hint = "the program ran as user daemon; set `user` to another name, or to `same`";
    let text = refused.stdout + &refused.stderr;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(hint), "{text}");
    let path = plan(r#"["id", "-u"]"#, r#"user = "root""#);
    bench.ends(0, &["run", &path, "-q", "-o", "b.fslab"]);
    assert_eq!(bench.left_behind(), Vec::<String>::new());
}

#[test]
fn a_full_filesystem_fails_the_trial_with_the_space_that_is_left() {
    if !needs_root("command::a_full_filesystem_fails_the_trial_with_the_space_that_is_left") {
        return;
    }
    let bench = bench();
    let path = bench.plan(
        "repetitions = 1\n[storage]\nimage_size = \"32MiB\"\n[axes]\nfilesystem = \
         [\"ext4\"]\nworkload = [{ suite = \"command\", run = \"dd if=/dev/zero bs=1M of={target}/a\" \
         }]\n",
    );
    let output = bench.run(&["run", &path, "-o", "a.fslab"]);
    assert_ne!(output.status, Some(0));
    let text = output.stdout + &output.stderr;
    assert!(text.contains("No space left on device"), "{text}");
    assert!(text.contains("so use a larger one"), "{text}");
    assert_eq!(bench.left_behind(), Vec::<String>::new());
    bench.has_nothing_to_undo();
}

#[test]
fn no_program_outlives_a_killed_run() {
    let bench = bench();
    let start = |program: &str| {
        let mut command = bench.command(&["bench", "--command", program, "data"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    for signal in ["-KILL", "-INT"] {
        let mut child = start("sh -c 'setsid sleep 161803 & sleep 161804'");
        // The command line of fslab contains the text, too, before its signal handlers are installed.
        wait_for("sleep 161803", true);
        let kill = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        child.wait().unwrap();
        assert_gone("sleep 16180");
        bench.ends(0, &["clean"]);
        assert_eq!(fs::read_dir(bench.path("data")).unwrap().count(), 0);
    }
}

#[test]
fn a_command_and_a_workload_exclude_each_other() {
    let bench = bench();
    let output = bench.ends(2, &["bench", "--command", "true", "iozone", "data"]);
    assert!(output.stderr.contains("both `iozone` and --command"), "{}", output.stderr);
    assert!(Path::new(&bench.path("data")).is_dir());
}

#[test]
fn without_namespaces_the_supervisor_kills_orphans() {
    if !needs_root("command::without_namespaces_the_supervisor_kills_orphans") {
        return;
    }
    let bench = bench();
    let program = "sh -c '(setsid sleep 141421 &); sleep 0.3'";
    let fslab = bench.command(&["bench", "--json", "--command", program, "data"]);
    // Root without CAP_SYS_ADMIN cannot create namespaces.
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]);
    command.arg(fslab.get_program()).args(fslab.get_args());
    command.current_dir(bench.path(".")).env("FSLAB_STATE", bench.state());
    let output = finished(command.output().unwrap());
    assert_eq!(output.status, Some(0), "{}", output.stderr);
    for code in ["leftover-processes", "network-access"] {
        assert!(output.stdout.contains(code), "{}", output.stdout);
    }
    assert_gone("sleep 141421");
}

/// Filesystem in memory, unmounted on drop.
struct Memory(PathBuf);

impl Memory {
    fn new(at: PathBuf, size: &str) -> Self {
        let options = format!("size={size},uid=65534,gid=65534,mode=0700");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&at);
        assert!(command.status().unwrap().success());
        Self(at)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        assert!(Command::new("umount").arg(&self.0).status().is_ok_and(|it| it.success()));
    }
}

#[test]
fn programs_of_an_ordinary_user_are_ended_and_their_trials_say_why() {
    if !needs_root("command::programs_of_an_ordinary_user_are_ended_and_their_trials_say_why") {
        return;
    }
    let bench = bench();
    let data = Memory::new(bench.path("data"), "16m");
    chown(bench.path("."), Some(65534), Some(65534)).unwrap();
    let workload = |name: &str, run: &str| {
        format!("{{ suite = \"command\", name = \"{name}\", timeout = \"2s\", run = {run} }}")
    };
    let entries = [
        workload("hangs", r#"["sleep", "577215"]"#),
        workload("ignores", r#"["sh", "-c", "trap '' TERM HUP INT; sleep 577216; sleep 577217"]"#),
        workload(
            "forks",
            r#"["sh", "-c", "(setsid sh -c 'sleep 577218 & sleep 577219 &' &); sleep 0.3"]"#,
        ),
        workload("fills", r#"["dd", "if=/dev/zero", "bs=1M", "of={target}/a"]"#),
        workload("dies", r#"["sh", "-c", "kill -SEGV $$"]"#),
    ];
    let plan = bench.plan(&format!(
        "repetitions = 1\n[storage]\ndirectory = \"{}\"\n[axes]\nworkload = [\n{}\n]\n",
        data.0.display(),
        entries.join(",\n")
    ));
    let as_user = |arguments: &[&str]| {
        let mut command = bench.command(arguments);
        finished(command.uid(65534).gid(65534).output().unwrap())
    };
    let output = as_user(&["run", &plan, "-q", "-o", "run.fslab"]);
    // Some of the workloads failed.
    assert_eq!(output.status, Some(4), "{}{}", output.stdout, output.stderr);
    assert_gone("sleep 57721");
    assert_eq!(fs::read_dir(&data.0).unwrap().count(), 0);
    assert!(as_user(&["clean"]).stdout.contains("nothing to undo"));
    let record = store::read(&bench.path("run.fslab")).unwrap();
    let outcomes = |name: &str| {
        let cell = record.cells.iter().position(|cell| cell.label.contains(name)).unwrap();
        record.trials.iter().filter(move |trial| trial.cell == cell)
    };
    for (name, reason) in [
        ("hangs", "did not end within 2s"),
        ("ignores", "did not end within 2s"),
        ("fills", "No space left on device"),
        ("dies", "was killed by signal 11"),
    ] {
        let mut trials = outcomes(name).peekable();
        assert!(trials.peek().is_some(), "{name} has no trial");
        assert!(trials.all(|it| format!("{:?}", it.outcome).contains(reason)), "{name}: {reason}");
    }
    for trial in outcomes("forks") {
        assert_eq!(trial.outcome, Outcome::Measured);
        let mut warnings = trial.warnings.iter().map(|(_, warning)| warning);
        let leftover = warnings.any(|it| matches!(it, Warning::LeftoverProcesses { .. }));
        assert!(leftover, "{:?}", trial.warnings);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn file_calls_are_counted_in_an_additional_trial() {
    let bench = bench();
    let message = |program: &str| {
        let output = run(&bench, program, &["count_calls=true"]);
        assert_eq!(output.status, Some(0), "{}{}", output.stdout, output.stderr);
        assert!(value(&output, "run", "elapsed").is_some());
        let text = output.stdout.lines().find(|line| line.contains("file calls take"));
        text.unwrap_or_else(|| panic!("no file calls in {}", output.stdout)).to_owned()
    };
    let text = message("dd if=/dev/zero of={target}/a bs=4k count=100 conv=fsync status=none");
    assert!(text.contains("1 sync, 0B read, 400KiB written"), "{text}");
    // A program that computes. Its calls may wait for a disk that other tests use.
    let text = message("sh -c 'i=0; while [ $i -lt 1000000 ]; do i=$((i + 1)); done; echo > a'");
    let percent = text.split("take ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert!(percent.parse::<f64>().is_ok_and(|percent| percent < 50.0), "{text}");
    let output = run(&bench, "true", &["count_calls=true", "serve=sleep 9"]);
    assert!(output.stderr.contains("not those of `serve`"), "{}", output.stderr);
    bench.has_nothing_to_undo();
}
