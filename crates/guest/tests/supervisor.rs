//! Tests of supervisors with a shell script as the machine: this binary starts itself as the
//! supervisor, and as a parent that is killed.
//!
//! Without arguments it runs the tests below, one after the other; a failing test panics.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test without a harness, which clippy does not detect"
)]

use std::{
    env,
    ffi::OsString,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::{MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    thread,
    time::Duration,
};

use guest::supervisor::{self, Containment, Isolation, Supervisor, SupervisorSpec};
use model::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

mod support;

use support::skipped;

/// Machine with many processes: in other sessions, ignoring signals, and orphaned.
const MANY: &str = "trap '' HUP INT TERM\n\
    (setsid sh -c 'trap \"\" HUP INT TERM; sleep 600 & (sleep 600 &) ; sleep 600' &)\n\
    sleep 600 &\n\
    echo up\n\
    wait\n";
/// Time limit for the end of all processes of a machine.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// Number of killed parents per containment method.
const KILLS: u64 = 40;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().collect();
    match arguments.get(1).and_then(|role| role.to_str()) {
        Some(supervisor::COMMAND) => return supervisor::main(arguments.into_iter().skip(2)),
        Some("--role-parent") => parent(containment(arguments.get(2)), Path::new(&arguments[3])),
        Some("--role-early") => {
            let _supervisor = prepared(&spec(Containment::Any, Path::new(&arguments[2]), "true"));
            // Without destructors, as if killed.
            std::process::exit(0);
        }
        Some("--role-ordinary") => ordinary(Path::new(&arguments[2])),
        Some("--role-stopped") => a_supervisor_that_does_not_end_is_killed(),
        Some("--role-refused") => machines_run_without_namespaces_unless_they_need_one(),
        _ => tests(),
    }
    ExitCode::SUCCESS
}

fn tests() {
    // Takes as long as the limit for the end of a supervisor.
    let stopped = Isolation::here()
        .namespaces
        .then(|| Command::new(env::current_exe().unwrap()).arg("--role-stopped").spawn().unwrap());
    isolation_is_reported_as_the_kernel_allows_it();
    a_parent_that_ends_before_the_start_leaves_no_files();
    let mut methods = vec!["reaper"];
    if Isolation::here().namespaces {
        methods.push("any");
        only_the_machine_sees_its_memory_filesystem();
    } else {
        skipped("only_the_machine_sees_its_memory_filesystem", "user namespaces");
    }
    for name in methods {
        let containment = containment(Some(&name.into()));
        the_end_of_a_machine_is_reported(containment);
        the_environment_is_empty_and_core_files_are_disabled(containment);
        machines_with_a_reaper_have_no_namespace(containment);
        a_requested_end_leaves_only_orphan_files(containment);
        a_dropped_supervisor_ends(containment);
        a_supervisor_that_is_killed_leaves_no_files(containment);
        a_missing_program_is_reported(containment);
        an_existing_directory_is_not_used_for_temporary_files(containment);
        a_created_directory_for_temporary_files_is_removed(containment);
        nothing_is_removed_from_a_directory_of_another_user(containment);
        nothing_outlives_a_killed_parent(name);
        println!("supervisors, {name}: ok");
    }
    if Isolation::here().namespaces {
        a_machine_has_no_network();
    } else {
        skipped("a_machine_has_no_network", "namespaces");
    }
    if rustix::process::geteuid().is_root() {
        a_machine_of_an_ordinary_user_runs_as_this_user();
    } else {
        skipped("a_machine_of_an_ordinary_user_runs_as_this_user", "root");
    }
    for containment in [Containment::Any, Containment::Reaper] {
        if Isolation::here().identity {
            a_machine_of_root_has_no_rights(containment);
        } else {
            skipped("a_machine_of_root_has_no_rights", "root");
        }
    }
    match stopped {
        Some(mut child) => assert!(child.wait().unwrap().success()),
        None => skipped("a_supervisor_that_does_not_end_is_killed", "namespaces"),
    }
}

/// Runs this binary in a user namespace in which the kernel refuses other namespaces.
fn isolation_is_reported_as_the_kernel_allows_it() {
    const NAME: &str = "isolation_is_reported_as_the_kernel_allows_it";
    let unshare = |arguments: &[&str], program: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(arguments).args(program).status().is_ok_and(|status| status.success())
    };
    let root = rustix::process::geteuid().is_root();
    if root {
        let all = unshare(&["--pid", "--fork", "--mount", "--net", "--ipc"], &["true"]);
        let Isolation { namespaces, network, identity } = Isolation::here();
        assert_eq!((namespaces && network, identity), (all, true));
    }
    let user = ["--user", "--map-root-user"];
    let none = "echo 0 >/proc/sys/user/max_pid_namespaces";
    if !unshare(&user, &["sh", "-c", none]) {
        return skipped(NAME, "unshare(1) and user namespaces");
    }
    let this = env::current_exe().unwrap();
    let script = format!("{none}; exec \"$0\" --role-refused");
    assert!(unshare(&user, &["sh", "-c", &script, this.to_str().unwrap()]));
}

fn machines_run_without_namespaces_unless_they_need_one() {
    assert_eq!(Isolation::here(), Isolation::default());
    let (_place, directory) = place();
    let mut spec = spec(Containment::Any, &directory, "echo up");
    assert_eq!(output_of(&spec), "up\n");
    spec.temporary = Some("tree".into());
    spec.memory = Some(Bytes::mib(16));
    let mut supervisor = started(&spec);
    assert_eq!(supervisor.ended_within(TIME_LIMIT).as_deref(), Some("the supervisor ended"));
    let line = supervisor.console().error_line();
    assert!(line.contains("cannot create namespaces for the guest memory"), "{line}");
}

fn machines_with_a_reaper_have_no_namespace(containment: Containment) {
    let (_place, directory) = place();
    let namespace = output_of(&spec(containment, &directory, "readlink /proc/self/ns/pid"));
    let ours = fs::read_link("/proc/self/ns/pid").unwrap();
    assert_eq!(namespace.trim() == ours.as_os_str(), containment == Containment::Reaper);
}

fn a_supervisor_that_does_not_end_is_killed() {
    let (_place, directory) = place();
    let (read, write) = inherited();
    let supervisor = started(&spec(Containment::Any, &directory, MANY));
    drop(write);
    until_up(&supervisor);
    signal_supervisor(rustix::process::Signal::STOP);
    let error = supervisor.end().unwrap_err().to_string();
    assert!(error.contains("cannot end the guest"), "{error}");
    assert!(is_closed(&read), "processes are left");
    assert_eq!(left_in(&directory), ["disk"]);
}

/// Sends a signal to the newest child, which is a supervisor.
fn signal_supervisor(signal: rustix::process::Signal) {
    let children = fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|task| fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default());
    let children: String = children.collect();
    let process = children.split_whitespace().next_back().unwrap().parse().unwrap();
    let process = rustix::process::Pid::from_raw(process).unwrap();
    rustix::process::kill_process(process, signal).unwrap();
}

fn left_in(directory: &Path) -> Vec<OsString> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

fn containment(name: Option<&OsString>) -> Containment {
    if name.is_some_and(|name| name == "reaper") { Containment::Reaper } else { Containment::Any }
}

/// Specification for a script in a directory that does not exist yet.
fn spec(containment: Containment, directory: &Path, script: &str) -> SupervisorSpec {
    let machine = ["/bin/sh", "-c", script].map(Into::into).to_vec();
    let own = vec!["own".into(), "tree".into()];
    let orphans = vec!["disk".into()];
    SupervisorSpec {
        directory: directory.into(),
        machine,
        own,
        orphans,
        containment,
        ..SupervisorSpec::default()
    }
}

/// A started supervisor, with files to remove.
fn started(spec: &SupervisorSpec) -> Supervisor {
    let mut supervisor = prepared(spec);
    supervisor.start().unwrap();
    supervisor
}

/// A supervisor whose machine is not started, with files to remove.
fn prepared(spec: &SupervisorSpec) -> Supervisor {
    let supervisor = Supervisor::spawn(spec).unwrap();
    fs::create_dir(&spec.directory).unwrap();
    fs::write(spec.directory.join("own"), "").unwrap();
    fs::write(spec.directory.join("disk"), "").unwrap();
    fs::create_dir_all(spec.directory.join("tree/branch")).unwrap();
    fs::write(spec.directory.join("tree/branch/leaf"), "").unwrap();
    supervisor
}

/// Directories of a test.
fn place() -> (TempDir, PathBuf) {
    let place = TempDir::new_in("/var/tmp").unwrap();
    let directory = place.path().join("machine");
    (place, directory)
}

fn the_end_of_a_machine_is_reported(containment: Containment) {
    let cases = [
        // A process that ends before the machine does.
        ("(true &); sleep 0.1; echo last output; exit 7", "exit status 7", "last output\n"),
        ("exit 128", "exit status 128", ""),
        ("kill -ABRT $$", "killed by signal 6", ""),
    ];
    for (script, status, output) in cases {
        let (_place, directory) = place();
        let mut supervisor = started(&spec(containment, &directory, script));
        assert_eq!(supervisor.ended_within(TIME_LIMIT).as_deref(), Some(status));
        assert_eq!(supervisor.console().text(), output);
        // Its files are kept until the supervisor ends.
        assert!(directory.join("own").exists());
        supervisor.end().unwrap();
        assert!(!directory.join("own").exists());
    }
}

fn the_environment_is_empty_and_core_files_are_disabled(containment: Containment) {
    let (_place, directory) = place();
    let mut spec = spec(containment, &directory, "ulimit -c; ulimit -Hc; pwd");
    let shown = directory.display();
    assert_eq!(output_of(&spec), format!("0\n0\n{shown}\n"));
    spec.machine = vec!["/usr/bin/env".into()];
    assert_eq!(output_of(&spec), "");
    spec.temporary = Some("tree".into());
    assert_eq!(output_of(&spec), format!("TMPDIR={shown}/tree\n"));
}

/// Output of a machine that ends by itself.
fn output_of(spec: &SupervisorSpec) -> String {
    let mut supervisor = started(spec);
    assert_eq!(supervisor.ended_within(TIME_LIMIT).as_deref(), Some("exit status 0"));
    let text = supervisor.console().text();
    supervisor.end().unwrap();
    fs::remove_dir_all(&spec.directory).unwrap();
    text
}

fn a_requested_end_leaves_only_orphan_files(containment: Containment) {
    let (_place, directory) = place();
    let (mut read, write) = inherited();
    let supervisor = started(&spec(containment, &directory, MANY));
    drop(write);
    until_up(&supervisor);
    supervisor.end().unwrap();
    assert!(is_closed(&read), "processes are left");
    assert_eq!(read.read(&mut [0]).unwrap(), 0);
    assert_eq!(left_in(&directory), ["disk"]);
}

fn a_dropped_supervisor_ends(containment: Containment) {
    let (_place, directory) = place();
    let (read, write) = inherited();
    let supervisor = started(&spec(containment, &directory, MANY));
    drop(write);
    until_up(&supervisor);
    drop(supervisor);
    assert!(is_closed(&read), "processes are left");
    assert_eq!(left_in(&directory), ["disk"]);
}

fn a_supervisor_that_is_killed_leaves_no_files(containment: Containment) {
    let (_place, directory) = place();
    let mut supervisor = started(&spec(containment, &directory, "echo up; read end"));
    until_up(&supervisor);
    signal_supervisor(rustix::process::Signal::KILL);
    assert_eq!(supervisor.ended_within(TIME_LIMIT).as_deref(), Some("the supervisor ended"));
    supervisor.end().unwrap();
    assert_eq!(left_in(&directory), ["disk"]);
}

fn a_parent_that_ends_before_the_start_leaves_no_files() {
    let (_place, directory) = place();
    let mut parent = Command::new(env::current_exe().unwrap());
    let parent = parent.arg("--role-early").arg(&directory).stderr(Stdio::null());
    assert!(parent.status().unwrap().success());
    let start = std::time::Instant::now();
    while directory.exists() {
        assert!(start.elapsed() < TIME_LIMIT, "left: {:?}", left_in(&directory));
        thread::sleep(Duration::from_millis(10));
    }
}

fn a_missing_program_is_reported(containment: Containment) {
    let (_place, directory) = place();
    let mut spec = spec(containment, &directory, "");
    spec.machine = vec!["/nowhere/machine".into()];
    let mut supervisor = started(&spec);
    assert!(supervisor.ended_within(TIME_LIMIT).is_some());
    let line = supervisor.console().error_line();
    assert!(line.contains("cannot start /nowhere/machine: No such file"), "{line}");
}

fn a_machine_has_no_network() {
    let (_place, directory) = place();
    let spec =
        spec(Containment::Any, &directory, "cat /proc/self/net/dev; readlink /proc/self/ns/net");
    let text = output_of(&spec);
    let mut lines = text.lines().skip(2);
    assert!(lines.next().is_some_and(|line| line.trim().starts_with("lo:")), "{text}");
    let ours = fs::read_link("/proc/self/ns/net").unwrap();
    assert!(lines.next().is_some_and(|link| link != ours.as_os_str()), "{text}");
    assert_eq!(lines.next(), None);
}

/// Tries to read a file that only root can read, and the environment and memory of fslab.
fn a_machine_of_root_has_no_rights(containment: Containment) {
    let (place, directory) = place();
    let secret = place.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let parent = std::process::id();
    // A file like /dev/kvm, which belongs to a group.
    let node = place.path().join("node");
    fs::write(&node, "").unwrap();
    fs::set_permissions(&node, fs::Permissions::from_mode(0o660)).unwrap();
    std::os::unix::fs::chown(&node, None, Some(4242)).unwrap();
    let script = format!(
        "echo >{0} || echo not the group\n\
         cat /proc/self/status; for file in {1} /proc/{parent}/environ /proc/{parent}/mem; do \
         cat $file 2>/dev/null && echo read $file; done; \
         touch tree/file 2>/dev/null && echo wrote tree; echo end",
        node.display(),
        secret.display()
    );
    let mut spec = spec(containment, &directory, &script);
    spec.identity = Isolation::here().identity(Some(4242));
    let text = output_of(&spec);
    for line in ["Uid:\t65534\t65534\t65534\t65534", "Gid:\t65534\t65534\t65534\t65534"] {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(fs::read(&node).unwrap(), b"\n", "{text}");
    assert!(text.contains("Groups:\t4242 \n") && text.contains("NoNewPrivs:\t1"), "{text}");
    for set in ["Inh", "Prm", "Eff", "Bnd", "Amb"] {
        assert!(text.contains(&format!("Cap{set}:\t0000000000000000")), "{text}");
    }
    let rest = text.lines().skip_while(|line| !line.starts_with("nonvoluntary")).skip(1);
    assert_eq!(rest.collect::<Vec<_>>(), ["end"], "{text}");
}

/// Runs this binary as an ordinary user.
fn a_machine_of_an_ordinary_user_runs_as_this_user() {
    let place = TempDir::new_in("/var/tmp").unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = place.path().join("program");
    fs::copy(env::current_exe().unwrap(), &program).unwrap();
    let user = "1234";
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", user, "--clear-groups"]).arg(program);
    let status = command.arg("--role-ordinary").arg(place.path().join("machine")).status();
    assert!(status.unwrap().success());
}

/// The machine reads a file that only its user can read.
fn ordinary(directory: &Path) {
    let isolation = Isolation::here();
    assert!(isolation.identity(None).is_none());
    let private = directory.with_file_name("private");
    fs::write(&private, "of the user\n").unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
    let script = format!("cat {}", private.display());
    assert_eq!(output_of(&spec(Containment::Any, directory, &script)), "of the user\n");
}

fn an_existing_directory_is_not_used_for_temporary_files(containment: Containment) {
    let (place, directory) = place();
    let temporary = place.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    fs::write(temporary.join("valuable"), "").unwrap();
    let mut spec = spec(containment, &directory, "echo up");
    spec.temporary = Some(temporary.clone());
    let mut supervisor = started(&spec);
    assert_eq!(supervisor.ended_within(TIME_LIMIT).as_deref(), Some("the supervisor ended"));
    let console = supervisor.console().error_line();
    assert!(console.contains("/temporary: File exists"), "{console}");
    supervisor.end().unwrap();
    assert!(temporary.join("valuable").exists());
}

fn a_created_directory_for_temporary_files_is_removed(containment: Containment) {
    let (place, directory) = place();
    let temporary = place.path().join("temporary");
    let script = "stat -c %u $TMPDIR > $TMPDIR/user; echo up; read end";
    let mut spec = spec(containment, &directory, script);
    spec.temporary = Some(temporary.clone());
    spec.identity = Isolation::here().identity(None);
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let supervisor = started(&spec);
    until_up(&supervisor);
    let user = spec.identity.map_or(rustix::process::geteuid().as_raw(), |user| user.user);
    assert_eq!(fs::read_to_string(temporary.join("user")).unwrap(), format!("{user}\n"));
    supervisor.end().unwrap();
    assert!(!temporary.exists());
}

/// A link that another user could have created in a directory that all users can write to, before
/// the supervisor created its directory.
fn nothing_is_removed_from_a_directory_of_another_user(containment: Containment) {
    let (place, directory) = place();
    let other = place.path().join("other");
    fs::create_dir_all(other.join("tree")).unwrap();
    fs::write(other.join("own"), "").unwrap();
    std::os::unix::fs::symlink(&other, &directory).unwrap();
    let supervisor = Supervisor::spawn(&spec(containment, &directory, "echo up")).unwrap();
    drop(supervisor);
    assert!(other.join("own").exists() && other.join("tree").exists());
    if rustix::process::geteuid().is_root() {
        fs::remove_file(&directory).unwrap();
        fs::rename(&other, &directory).unwrap();
        std::os::unix::fs::chown(&directory, Some(65534), None).unwrap();
        drop(Supervisor::spawn(&spec(containment, &directory, "echo up")).unwrap());
        assert!(directory.join("own").exists() && directory.join("tree").exists());
    }
}

fn only_the_machine_sees_its_memory_filesystem() {
    let (_place, directory) = place();
    let script = "stat -f -c '%T %b %S' $TMPDIR; echo > $TMPDIR/file; stat -c %d $TMPDIR; \
        grep -c \" $TMPDIR tmpfs [^ ]*nosuid,nodev\" /proc/self/mounts; read end";
    let mut spec = spec(Containment::Any, &directory, script);
    spec.temporary = Some("tree".into());
    spec.memory = Some(Bytes::mib(16));
    let mut supervisor = started(&spec);
    while supervisor.console().text().lines().count() < 3 {
        assert_eq!(
            supervisor.ended_within(Duration::from_millis(1)),
            None,
            "{}",
            supervisor.console().text()
        );
    }
    let text = supervisor.console().text();
    let device = fs::metadata(directory.join("tree")).unwrap().dev();
    assert!(text.starts_with("tmpfs 4096 4096\n"), "{text}");
    assert_ne!(text.lines().nth(1), Some(&*device.to_string()));
    assert_eq!(text.lines().nth(2), Some("1"), "{text}");
    assert!(!directory.join("tree/file").exists());
}

/// Kills a parent at random moments: before the supervisor runs, while it creates files, while the
/// machine starts, and when it is up. All of its processes hold one end of a pipe, and the other
/// end shows when they have ended.
fn nothing_outlives_a_killed_parent(containment: &str) {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..KILLS {
        let (_place, directory) = place();
        let (read, write) = inherited();
        let mut parent = Command::new(env::current_exe().unwrap())
            .args(["--role-parent", containment])
            .arg(&directory)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        drop(write);
        if round % 4 == 0 {
            // The machine with all of its processes.
            let mut line = String::new();
            BufReader::new(parent.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "up\n");
        } else {
            thread::sleep(Duration::from_micros(random.u64(..25_000)));
        }
        parent.kill().unwrap();
        parent.wait().unwrap();
        assert!(is_closed(&read), "seed {seed}, round {round}: processes are left");
        let left = directory.exists();
        assert!(!left, "seed {seed}, round {round}: files are left");
    }
}

/// Parent to kill: a process that runs a machine.
fn parent(containment: Containment, directory: &Path) {
    let supervisor = started(&spec(containment, directory, MANY));
    until_up(&supervisor);
    println!("up");
    std::io::stdout().flush().unwrap();
    loop {
        thread::park();
    }
}

fn until_up(supervisor: &Supervisor) {
    while supervisor.console().text() != "up\n" {
        thread::yield_now();
    }
}

/// A pipe. All processes that are started while its write end is open inherit the write end.
fn inherited() -> (fs::File, OwnedFd) {
    let (read, write) = rustix::pipe::pipe().unwrap();
    rustix::io::fcntl_setfd(&read, rustix::io::FdFlags::CLOEXEC).unwrap();
    assert!(write.as_raw_fd() > 2);
    (read.into(), write)
}

/// Waits until no process can write to a pipe; true if none can.
fn is_closed(read: &fs::File) -> bool {
    let mut files = [PollFd::new(read, PollFlags::IN)];
    let time = Timespec::try_from(TIME_LIMIT).unwrap();
    poll(&mut files, Some(&time)).unwrap();
    files[0].revents().contains(PollFlags::HUP)
}
