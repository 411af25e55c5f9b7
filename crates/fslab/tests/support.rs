//! Temporary directories, the built program, and state of the machine, for all tests.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// Script for sh(1) in a private mount namespace: replaces the boot ID of the kernel by a file and
/// starts a program. Arguments: directory of the test, the file, the program with its arguments.
///
/// Copies of the mounts of parallel tests are unmounted first, because they would keep filesystems
/// in use after these tests have unmounted them.
pub(crate) const BOOT: &str = r#"
    tac /proc/self/mounts | while read -r _ at _; do
        case $at in "${1%/.}"/*) ;; /var/tmp/*) umount -l "$at";; esac
    done
    mount --bind "$2" /proc/sys/kernel/random/boot_id && shift 2 && exec "$@""#;

/// Directory of a test, with a separate state directory. It is on a disk, because image files with
/// direct I/O require one.
pub(crate) struct Bench {
    directory: TempDir,
}

/// Loop device.
pub(crate) struct Disk {
    path: String,
}

impl Disk {
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let detached = Command::new("/usr/sbin/losetup").args(["--detach", &self.path]).status();
        assert!(detached.is_ok_and(|status| status.success()), "{} is detached", self.path);
    }
}

/// Output and exit status of a command.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::new_in(Path::new("/var/tmp"))
    }

    /// Directory of a test within another directory, with a separate state directory.
    pub(crate) fn new_in(parent: &Path) -> Self {
        let directory = tempfile::Builder::new().prefix("fslab-test-").tempdir_in(parent);
        Self { directory: directory.expect("a temporary directory") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// Writes a plan and returns its path.
    pub(crate) fn plan(&self, text: &str) -> String {
        let path = self.path("plan.toml");
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Command that runs the program in the directory of the test.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.other(env!("CARGO_BIN_EXE_fslab"));
        command.args(arguments);
        command
    }

    /// Command that runs another program, which may run this one, in the directory of the test.
    pub(crate) fn other(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.directory.path())
            .env("FSLAB_STATE", self.state())
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        finished(self.command(arguments).output().expect("the binary starts"))
    }

    /// Runs a command and checks its exit status; prints everything on failure.
    #[track_caller]
    pub(crate) fn ends(&self, status: i32, arguments: &[&str]) -> Finished {
        let output = self.run(arguments);
        assert_eq!(
            output.status,
            Some(status),
            "fslab {arguments:?}\nstdout:\n{}\nstderr:\n{}",
            output.stdout,
            output.stderr
        );
        output
    }

    /// Checks that `fslab clean` has nothing to undo, except runs of other tests in memory.
    #[track_caller]
    pub(crate) fn has_nothing_to_undo(&self) {
        let output = self.ends(0, &["clean"]).stdout;
        let other = |line: &str| line == "nothing to undo" || line.contains("/dev/shm/fslab-");
        assert!(output.lines().all(other), "{output}");
    }

    /// Attaches a loop device to an image file of this test. It is detached on drop.
    pub(crate) fn disk(&self, name: &str, bytes: u64) -> Disk {
        let image = self.path(name);
        fs::File::create_new(&image).unwrap().set_len(bytes).unwrap();
        let losetup = |arguments: &[&str]| {
            let output = Command::new("/usr/sbin/losetup").args(arguments).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        let path = losetup(&["--find", "--show", &image.display().to_string()]);
        Disk { path }
    }

    /// Mounts, loop devices, and control groups of this test that remain on the machine.
    pub(crate) fn left_behind(&self) -> Vec<String> {
        let here = self.directory.path().display().to_string();
        let mut left = Vec::new();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        left.extend(mounts.lines().filter(|line| line.contains(&here)).map(str::to_owned));
        for entry in fs::read_dir("/sys/block").unwrap() {
            let backing = entry.unwrap().path().join("loop/backing_file");
            let file = fs::read_to_string(&backing).unwrap_or_default();
            if file.starts_with(&here) {
                left.push(format!("{}: {file}", backing.display()));
            }
        }
        left
    }
}

pub(crate) fn finished(output: Output) -> Finished {
    Finished {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8 on stdout"),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// True if the test runs as root. Otherwise the test is counted as skipped.
pub(crate) fn needs_root(test: &str) -> bool {
    if rustix::process::geteuid().is_root() {
        return true;
    }
    skipped(test, "root");
    false
}

/// Prints a skipped test with the missing requirement, and counts it.
pub(crate) fn skipped(test: &str, needs: &str) {
    eprintln!("skipped: needs {needs}: {test}");
    if let Some(log) = std::env::var_os("FSLAB_SKIP_LOG") {
        let log = fs::OpenOptions::new().append(true).create(true).open(log);
        match needs {
            "root" => writeln!(log.unwrap(), "fslab {test}").unwrap(),
            other => writeln!(log.unwrap(), "fslab {test} (needs {other})").unwrap(),
        }
    }
}

/// All files below a directory of the repository, except those that git ignores.
pub(crate) fn files(below: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let ignored = matches!(&*name, "target" | ".git" | "node_modules");
        if path.is_dir() && !ignored {
            files.extend(self::files(&path));
        } else if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// True if a program is installed.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Directories that fslab also searches.
    let further = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(further).any(|folder| folder.join(program).exists())
}

/// Other processes whose command line contains this text.
pub(crate) fn processes(text: &str) -> Vec<u32> {
    let pids = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != std::process::id())
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ").contains(text)
        })
        .collect()
}

/// Waits until a process with this command line runs, or none.
pub(crate) fn wait_for(line: &str, runs: bool) {
    let limit = Instant::now() + Duration::from_secs(20);
    let command = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).trim_end_matches('\0').replace('\0', " ")
    };
    while processes(line).iter().any(|pid| command(pid) == line) != runs {
        assert!(Instant::now() < limit, "`{line}`: {:?}", processes(line));
        thread::sleep(Duration::from_millis(20));
    }
}
