//! Attacks on fslab running as root: state directory of another user, `PATH`, and environment
//! variables.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown, symlink},
    path::Path,
};

use crate::support::{Bench, finished, needs_root};

const PLAN: &str = r#"
repetitions = 1
seed = 7
[storage]
image_size = "64MiB"
[axes]
filesystem = ["ext2"]
workload = [{ suite = "iozone", file_size = "1MiB", block_size = "64KiB", tests = ["write"] }]
"#;

/// Undo journal of an ended run that writes a text to a file.
fn journal(state: &Path, file: &Path) {
    fs::create_dir_all(state.join("journal")).unwrap();
    let change = format!(
        r#"{{"change":"setting","path":"{}","before":"evil","after":null}}"#,
        file.display()
    );
    let lines = format!(
        "{{\"line\":\"run\",\"run_id\":\"x\",\"pid\":1,\"boot\":null}}\n\
         {{\"line\":\"planned\",\"step\":0,\"what\":{change}}}\n"
    );
    fs::write(state.join("journal/x.jsonl"), lines).unwrap();
}

#[test]
fn a_state_directory_of_another_user_is_rejected_by_all_commands() {
    if !needs_root("trust::a_state_directory_of_another_user_is_refused") {
        return;
    }
    let bench = Bench::new();
    let victim = bench.path("victim");
    fs::write(&victim, "unharmed").unwrap();
    let plan = bench.plan(PLAN);
    fs::write(bench.path("job.fio"), "[job]\nrw=write\nsize=1m\n").unwrap();
    let theirs = bench.path("theirs");
    journal(&theirs, &victim);
    chown(&theirs, Some(65534), Some(65534)).unwrap();
    symlink(&theirs, bench.path("link")).unwrap();
    journal(&bench.path("open"), &victim);
    fs::set_permissions(bench.path("open"), fs::Permissions::from_mode(0o777)).unwrap();
    for state in ["theirs", "link", "open", "theirs/none"] {
        let commands: [&[&str]; 10] = [
            &["clean"],
            &["run", &plan, "-o", "run.fslab"],
            &["bench", "write", "."],
            &["demo", "-o", "demo.fslab"],
            &["fio", "job.fio"],
            &["iozone", "-i", "0", "-s", "1m", "-r", "64k"],
            &["bonnie++", "-s", "0", "-n", "1", "-u", "root"],
            &["dbench", "-D", ".", "-t", "1", "1"],
            &["mdtest", "-d", "tree", "-n", "10"],
            &["crosscheck", "fsync-4k", "."],
        ];
        for arguments in commands {
            let state = bench.path(state);
            let output =
                finished(bench.command(arguments).env("FSLAB_STATE", &state).output().unwrap());
            assert_eq!(output.status, Some(3), "{arguments:?} {state:?}: {}", output.stderr);
            assert!(output.stderr.contains("is not secure: "), "{}", output.stderr);
            assert!(output.stderr.contains("--state-directory"), "{}", output.stderr);
        }
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "unharmed");
    assert!(!bench.path("run.fslab").exists() && !bench.path("theirs/none").exists());
}

#[test]
fn a_plan_of_another_user_is_accepted() {
    if !needs_root("trust::a_plan_of_another_user_is_accepted") {
        return;
    }
    let bench = Bench::new();
    let plan = bench.plan(PLAN);
    chown(&plan, Some(65534), Some(65534)).unwrap();
    fs::set_permissions(&plan, fs::Permissions::from_mode(0o666)).unwrap();
    bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
}

#[test]
fn clean_writes_to_kernel_files_only() {
    let bench = Bench::new();
    let victim = bench.path("victim");
    fs::write(&victim, "unharmed").unwrap();
    journal(&bench.state(), &victim);
    fs::set_permissions(bench.state(), fs::Permissions::from_mode(0o700)).unwrap();
    let output = bench.ends(3, &["clean"]);
    assert!(output.stdout.contains("is not below /sys, /proc/sys"), "{}", output.stdout);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "unharmed");
    assert!(bench.state().join("journal/x.jsonl").exists());
}

#[test]
fn programs_come_from_root_directories_and_inherit_nothing() {
    if !needs_root("trust::programs_come_from_root_directories_and_inherit_nothing") {
        return;
    }
    let bench = Bench::new();
    let plan = bench.plan(PLAN);
    // Programs in the current directory and in a directory of another user. Each would create a
    // file.
    fs::create_dir(bench.path("bin")).unwrap();
    for name in ["mkfs.ext2", "bin/mkfs.ext2", "e2fsck", "dumpe2fs"] {
        let path = bench.path(name);
        fs::write(&path, format!("#!/bin/sh\ntouch {}\n", bench.path("ran").display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    chown(bench.path("bin"), Some(65534), Some(65534)).unwrap();
    // Block size that the kernel cannot mount, if mkfs reads the file.
    let config = "[defaults]\n\tblocksize = 65536\n[fs_types]\n";
    fs::write(bench.path("mke2fs.conf"), config).unwrap();
    let path = format!(":.:bin:{}:/usr/sbin:/usr/bin:/sbin:/bin", bench.path("bin").display());
    let mut command = bench.command(&["run", &plan, "-o", "run.fslab"]);
    command.env("PATH", path).env("MKE2FS_CONFIG", bench.path("mke2fs.conf"));
    let output = finished(command.output().unwrap());
    assert_eq!(output.status, Some(0), "{}\n{}", output.stdout, output.stderr);
    assert!(!bench.path("ran").exists(), "a program of another user was run");
    assert_eq!(bench.left_behind(), Vec::<String>::new());
}
