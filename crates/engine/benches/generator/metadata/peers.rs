//! Other benchmarks of many files, with their usual options.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use engine::now;
use model::Nanos;

use crate::rate::Rate;

/// True if a program can be started. Administration programs may be in `/usr/sbin` only.
pub(crate) fn is_installed(program: &str) -> bool {
    let started = command(program).arg("-?").stdout(Stdio::null()).stderr(Stdio::null()).status();
    started.is_ok()
}

fn command(program: &str) -> Command {
    let there = format!("/usr/sbin/{program}");
    if Path::new(&there).exists() { Command::new(there) } else { Command::new(program) }
}

fn output(command: &mut Command) -> Output {
    let output = command.output().expect("it is installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Files per second reported by fs_mark, with one thread and without sync.
pub(crate) fn fs_mark(files: u64, directory: &Path) -> Rate {
    fs::create_dir_all(directory).expect("the directory is created");
    let mut command = command("fs_mark");
    command.args(["-S", "0", "-s", "0", "-t", "1", "-n", &files.to_string(), "-l"]);
    command.arg(directory.with_extension("log")).arg("-d").arg(directory);
    let output = output(&mut command);
    let text = String::from_utf8_lossy(&output.stdout);
    let row = text.lines().skip_while(|line| !line.starts_with("FSUse%")).nth(1);
    let rate = row.and_then(|row| row.split_whitespace().nth(3)).and_then(|word| word.parse().ok());
    Rate { per_second: rate.expect("fs_mark reports files per second") }
}

/// Rates reported by bonnie++ for `units` times 1024 empty files: create, stat, and delete,
/// sequentially and in random order. `None` for a phase of less than 0.5 s.
pub(crate) fn bonnie(units: u64, directory: &Path) -> Vec<Option<Rate>> {
    let mut command = command("bonnie++");
    command.args(["-q", "-m", "peer", "-s", "0", "-n", &units.to_string(), "-d"]).arg(directory);
    if rustix::process::geteuid().is_root() {
        command.args(["-u", "root"]);
    }
    let output = output(&mut command);
    let text = String::from_utf8_lossy(&output.stdout);
    let record = text.lines().find(|line| line.starts_with("1.9")).expect("bonnie++ prints CSV");
    let fields: Vec<&str> = record.split(',').collect();
    // Records of format 1.98 have two more fields than older ones.
    let first = if fields.len() >= 50 { 26 } else { 24 };
    (0..6)
        .map(|phase| fields.get(first + 2 * phase)?.parse().ok())
        .map(|rate| rate.map(|per_second| Rate { per_second }))
        .collect()
}

/// Files of one byte that fio creates per second. The time of a run with one file is subtracted.
pub(crate) fn fio(files: u64, directory: &Path) -> Rate {
    let alone = fio_run(1, directory);
    let all = fio_run(files, directory);
    Rate::new(files, Nanos(all.0.saturating_sub(alone.0).max(1)))
}

/// Duration of a run that creates this number of files. fio reserves its memory in advance, by
/// default too little for a million files (about 400 bytes per file).
fn fio_run(files: u64, directory: &Path) -> Nanos {
    fs::create_dir_all(directory).expect("the directory is created");
    let mut command = Command::new("fio");
    command.args(["--name=peer", "--thread", "--rw=read", "--bs=1", "--filesize=1"]);
    command
        .args(["--create_only=1", "--create_fsync=0", "--alloc-size=1048576"])
        .arg(format!("--nrfiles={files}"));
    command.arg(format!("--directory={}", directory.display()));
    let begun = now();
    output(&mut command);
    let time = now() - begun;
    let laid_out = fs::read_dir(directory).expect("it was just made").count() as u64;
    assert!(laid_out >= files, "fio created {laid_out} of {files} files");
    fs::remove_dir_all(directory).expect("it was just made");
    time
}
