//! `fslab record`, `fslab trace`, and suite `replay`.
#![cfg(target_arch = "x86_64")]

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::support::{Bench, finished, needs_root, on_path, wait_for};

/// Bench with a directory to record in and one to measure.
fn bench() -> Bench {
    let bench = Bench::new();
    fs::create_dir(bench.path("root")).unwrap();
    fs::create_dir(bench.path("data")).unwrap();
    bench
}

const SCRIPT: &str = "echo one > root/a; mv root/a root/b; cat root/b; exit 7";

#[test]
fn the_exit_status_of_a_recorded_program_is_returned() {
    let bench = bench();
    let words = ["record", "-o", "r.fstrace", "--root", "root", "--", "sh", "-c", SCRIPT];
    let output = bench.ends(7, &words);
    assert_eq!(output.stdout, "one\n");
    assert!(output.stderr.contains("operations into r.fstrace"), "{}", output.stderr);
    // An existing file is not replaced, and the program does not run.
    let output = bench.ends(2, &words);
    assert!(output.stdout.is_empty() && output.stderr.contains("r.fstrace already exists"));
    let shown = bench.ends(0, &["trace", "show", "r.fstrace"]).stdout;
    for text in ["exit status 7", "rename", "4.00 B written", "tasks"] {
        assert!(shown.contains(text), "{text} is not in {shown}");
    }
    let checked = bench.ends(0, &["trace", "check", "r.fstrace"]).stdout;
    assert!(checked.contains("workers"), "{checked}");
    let dumped = bench.ends(0, &["trace", "dump", "r.fstrace"]).stdout;
    let lines: Vec<Value> =
        dumped.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let renames: Vec<_> = lines.iter().filter(|line| line["call"] == "rename").collect();
    assert_eq!(renames.len(), 1);
    assert_eq!((&renames[0]["path"], &renames[0]["path2"]), (&"a".into(), &"b".into()));
}

#[test]
fn a_program_without_operations_below_the_root_is_reported() {
    let bench = bench();
    let output = bench.ends(0, &["record", "-o", "r.fstrace", "--root", "root", "true"]);
    assert!(output.stderr.contains("set --root to the directory"), "{}", output.stderr);
    let output = bench.ends(2, &["record", "-o", "x.fstrace", "--root", "none", "true"]);
    assert!(output.stderr.contains("set --root to a directory"), "{}", output.stderr);
    let output = bench.ends(2, &["record", "-o", "x.fstrace", "./no-program"]);
    assert!(output.stderr.contains("cannot start ./no-program"), "{}", output.stderr);
    let output = bench.ends(2, &["record", "-o", "x.fstrace", "--root", "/", "true"]);
    assert!(output.stderr.contains("use --root DIRECTORY"), "{}", output.stderr);
    assert!(!bench.path("x.fstrace").exists());
    let output = bench.ends(2, &["trace", "show", "data"]);
    assert!(output.stderr.contains("check the path"), "{}", output.stderr);
}

#[test]
fn a_program_is_run_without_recording_first() {
    let bench = bench();
    let script = "echo run; echo x >> root/a";
    let words = ["record", "--baseline", "2", "-o", "r.fstrace", "--root", "root", "sh", "-c"];
    let output = bench.ends(0, &[&words[..], &[script]].concat());
    assert_eq!(output.stdout, "run\nrun\nrun\n");
    assert_eq!(fs::read_to_string(bench.path("root/a")).unwrap(), "x\nx\nx\n");
    let shown = bench.ends(0, &["trace", "show", "r.fstrace"]).stdout;
    for text in ["2.00 B written", "1 before the program started", "runs without the recorder"] {
        assert!(shown.contains(text), "{text} is not in {shown}");
    }
}

/// In contrast to the programs that fslab runs for a filesystem.
#[test]
fn a_recorded_program_has_the_environment_and_the_path_of_the_caller() {
    let bench = bench();
    fs::create_dir(bench.path("tools")).unwrap();
    let tool = bench.path("tools/tool");
    fs::write(&tool, "#!/bin/sh\necho $MARK > root/a\n").unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = bench.command(&["record", "-o", "r.fstrace", "--root", "root", "tool"]);
    let output = finished(command.env("PATH", "tools").env("MARK", "1").output().unwrap());
    assert_eq!(output.status, Some(0), "{}", output.stderr);
    assert_eq!(fs::read_to_string(bench.path("root/a")).unwrap(), "1\n");
}

#[test]
fn a_recording_is_replayed_in_a_directory() {
    let bench = bench();
    bench.ends(7, &["record", "-o", "r.fstrace", "--root", "root", "sh", "-c", SCRIPT]);
    let replay = ["bench", "replay", "data", "--json", "--set", "trace=r.fstrace"];
    let output = bench.ends(0, &replay);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    let tests = json["workloads"][0]["tests"].as_array().unwrap();
    assert_eq!(tests[0]["name"], "replay");
    let metrics = &tests[0]["results"][0]["metrics"];
    assert!(metrics["elapsed"]["median"].as_f64().unwrap() > 0.0, "{metrics}");
    assert!(!output.stdout.contains("unexpected-status"), "{}", output.stdout);
    assert_eq!(fs::read_dir(bench.path("data")).unwrap().count(), 0);
}

#[test]
fn a_plan_rejects_other_recordings() {
    let bench = bench();
    bench.ends(7, &["record", "-o", "r.fstrace", "--root", "root", "sh", "-c", SCRIPT]);
    let plan = |rest: &str| {
        format!(
            "[storage]\nimage_size = \"300MiB\"\n[axes]\nfilesystem = [\"ext4\"]\n\
             workload = [{{ suite = \"replay\"{rest} }}]\n"
        )
    };
    let shown = bench.ends(0, &["show", &bench.plan(&plan(", trace = \"r.fstrace\""))]).stdout;
    assert!(shown.contains("replay"), "{shown}");
    let digest = "0".repeat(64);
    for (rest, expected) in [
        (String::new(), "`trace` is not set"),
        (", trace = \"none.fstrace\"".to_owned(), "the recording none.fstrace"),
        (format!(", trace = \"r.fstrace\", sha256 = \"{digest}\""), "its SHA-256 is"),
        (", trace = \"data\"".to_owned(), "the recording data"),
    ] {
        let output = bench.ends(2, &["show", &bench.plan(&plan(&rest))]);
        assert!(output.stderr.contains(expected), "{}", output.stderr);
    }
    fs::write(bench.path("r.fstrace"), "damaged").unwrap();
    let output = bench.ends(2, &["show", &bench.plan(&plan(", trace = \"r.fstrace\""))]);
    assert!(output.stderr.contains("not a recording"), "{}", output.stderr);
}

/// Starts a recording of a script in a new process group.
fn start(bench: &Bench, output: &str, script: &str) -> Child {
    let words = ["record", "-o", output, "--root", "root", "sh", "-c", script];
    let mut command = bench.command(&words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command.spawn().unwrap()
}

/// Sends a signal to a process, or to a process group if the number is negative.
fn send(signal: &str, to: i64) {
    let status = Command::new("kill").args(["-s", signal, "--", &to.to_string()]).status();
    assert!(status.unwrap().success());
}

#[test]
fn no_program_outlives_a_killed_recorder() {
    let bench = bench();
    // The orphan has another session.
    let script = "(setsid sleep 112358 &) ; echo x > root/a; sleep 112359";
    let child = start(&bench, "r.fstrace", script);
    wait_for("sleep 112358", true);
    wait_for("sleep 112359", true);
    send("KILL", child.id().into());
    finished(child.wait_with_output().unwrap());
    wait_for("sleep 112358", false);
    wait_for("sleep 112359", false);
    assert!(!bench.path("r.fstrace").exists());
    bench.has_nothing_to_undo();
}

#[test]
fn a_recording_is_kept_if_a_signal_ends_it() {
    let bench = bench();
    // As from the terminal: the program gets the signal, too.
    let child = start(&bench, "a.fstrace", "echo x > root/a; sleep 137035");
    wait_for("sleep 137035", true);
    send("INT", -i64::from(child.id()));
    let output = finished(child.wait_with_output().unwrap());
    assert_eq!(output.status, Some(130), "{}", output.stderr);
    assert!(bench.ends(0, &["trace", "show", "a.fstrace"]).stdout.contains("exit status 130"));
    // SIGTERM of the recorder only.
    let child = start(&bench, "b.fstrace", "trap '' TERM; echo x > root/a; sleep 137036");
    wait_for("sleep 137036", true);
    send("TERM", child.id().into());
    let output = finished(child.wait_with_output().unwrap());
    assert!(output.stderr.contains("the recording was interrupted"), "{}", output.stderr);
    wait_for("sleep 137036", false);
    bench.ends(0, &["trace", "check", "b.fstrace"]);
}

/// Log of `cp a b` of 1,000,000 bytes, on a filesystem that shares blocks.
const CLONES: &str = "\
1 1.00 openat(AT_FDCWD, \"/data/a\", O_RDONLY) = 3</data/a> <0.000010>
1 1.01 fstat(3</data/a>, {st_mode=S_IFREG|0644, st_size=1000000, ...}) = 0 <0.000010>
1 1.02 openat(AT_FDCWD, \"/data/b\", O_RDWR|O_CREAT|O_EXCL, 0644) = 4</data/b> <0.000010>
1 1.03 ioctl(4</data/b>, FICLONE, 3</data/a>) = 0 <0.000010>
1 1.04 fstat(4</data/b>, {st_mode=S_IFREG|0644, st_size=1000000, ...}) = 0 <0.000010>
1 1.05 pread64(4</data/b>, \"\"..., 4096, 999000) = 1000 <0.000010>
1 1.06 ioctl(4</data/b>, FICLONERANGE, {src_fd=3</data/a>, src_offset=0, src_length=65536, dest_offset=2097152}) = 0 <0.000010>
1 1.07 pread64(4</data/b>, \"\"..., 131072, 2097152) = 65536 <0.000010>
1 1.08 sendfile(4</data/b>, 3</data/a>, [1000] => [1500], 500) = 500 <0.000010>
1 1.09 read(3</data/a>, \"\"..., 1048576) = 1000000 <0.000010>
1 1.10 +++ exited with 0 +++
";

#[test]
fn a_clone_is_replayed_as_a_copy_on_a_filesystem_that_cannot_share_blocks() {
    let bench = bench();
    fs::write(bench.path("cp.log"), CLONES).unwrap();
    bench.ends(0, &["import", "cp.log", "--root", "/data", "-o", "r.fstrace"]);
    let dumped = bench.ends(0, &["trace", "dump", "r.fstrace"]).stdout;
    assert_eq!(dumped.matches("\"ficlone\"").count(), 2, "{dumped}");
    let line = |call: &str| dumped.lines().rfind(|line| line.contains(call)).unwrap();
    let range: Value = serde_json::from_str(line("\"ficlone\"")).unwrap();
    assert_eq!((&range["size"], &range["flags"]), (&65_536.into(), &2_097_152.into()));
    let sent: Value = serde_json::from_str(line("\"sendfile\"")).unwrap();
    assert_eq!(sent["offset"], 1000);
    let test = "record::a_clone_is_replayed_as_a_copy_on_a_filesystem_that_cannot_share_blocks";
    if !needs_root(test) || !on_path("mkfs.btrfs") {
        return;
    }
    let plan = bench.plan(
        "repetitions = 1\naa_control = \"none\"\n[storage]\nimage_size = \"256MiB\"\n[axes]\n\
         filesystem = [\"btrfs\", \"ext4\"]\n\
         workload = [{ suite = \"replay\", trace = \"r.fstrace\" }]\n",
    );
    bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    for trial in &record.trials {
        let name = &record.cells[trial.cell].cell.filesystem.name;
        let has = |code| trial.warnings.iter().any(|(_, warning)| warning.code() == code);
        assert!(!has("unexpected-status"), "{name}: {:?}", trial.environment);
        assert_eq!(has("clones-copied"), name == "ext4", "{name}: {:?}", trial.warnings);
    }
    assert_eq!(record.trials.len(), 2);
}

#[test]
fn a_large_sendfile_is_several_operations() {
    let bench = bench();
    let log = "\
1 1.00 openat(AT_FDCWD, \"/data/b\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 4</data/b> <0.000010>
1 1.01 sendfile(4</data/b>, 3</other/a>, NULL, 3000000000) = 2147479552 <0.500000>
1 1.02 +++ exited with 0 +++
";
    fs::write(bench.path("cp.log"), log).unwrap();
    bench.ends(0, &["import", "cp.log", "--root", "/data", "-o", "r.fstrace"]);
    bench.ends(0, &["trace", "check", "r.fstrace"]);
    let dumped = bench.ends(0, &["trace", "dump", "r.fstrace"]).stdout;
    let lines = dumped.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let writes: Vec<_> = lines.filter(|line| line["call"] == "write").collect();
    let sizes: Vec<u64> = writes.iter().map(|line| line["size"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [1 << 30, (1 << 30) - 4096]);
    assert!(writes.iter().all(|line| line["size"] == line["result"]));
}

#[test]
fn a_signal_during_the_start_of_a_recording_is_not_an_error() {
    let bench = bench();
    for round in 0..20 {
        let name = format!("{round}.fstrace");
        let child = start(&bench, &name, "sleep 137037");
        thread::sleep(Duration::from_millis(3 * round));
        send("TERM", child.id().into());
        let output = finished(child.wait_with_output().unwrap());
        // Until it handles the signal, the signal kills it; then the program is killed.
        assert!(matches!(output.status, None | Some(130 | 137)), "{output:?}");
        assert!(!output.stderr.contains("error:"), "{}", output.stderr);
    }
    wait_for("sleep 137037", false);
}

#[test]
fn a_daemon_of_a_recorded_program_is_reported_and_killed_on_request() {
    let bench = bench();
    let script = "(setsid sleep 173205 &); echo x > root/a; exit 3";
    let child = start(&bench, "r.fstrace", script);
    wait_for("sleep 173205", true);
    wait_for(&format!("sh -c {script}"), false);
    // The shell has ended, and the recorder has seen it.
    thread::sleep(Duration::from_millis(200));
    send("INT", child.id().into());
    let output = finished(child.wait_with_output().unwrap());
    assert_eq!(output.status, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("1 of its processes still run"), "{}", output.stderr);
    assert!(output.stderr.contains("the recording was interrupted"), "{}", output.stderr);
    wait_for("sleep 173205", false);
    bench.ends(0, &["trace", "check", "r.fstrace"]);
}
