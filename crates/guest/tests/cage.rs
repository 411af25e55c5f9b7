//! Cages with a shell script as the machine: this binary starts itself as the cage, and as a parent
//! that is killed.
//!
//! Without arguments it runs the tests below, one after the other; a failing one panics.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test without the harness, which clippy does not see"
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

use guest::cage::{self, Cage, Isolation, Order, Way};
use model::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

mod support;

use support::skipped;

/// A machine of many processes: in other sessions, deaf to signals, and orphaned.
const MANY: &str = "trap '' HUP INT TERM\n\
    (setsid sh -c 'trap \"\" HUP INT TERM; sleep 600 & (sleep 600 &) ; sleep 600' &)\n\
    sleep 600 &\n\
    echo up\n\
    wait\n";
/// How long nothing of a machine may stay.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many parents are killed, for each way.
const KILLS: u64 = 40;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().collect();
    match arguments.get(1).and_then(|role| role.to_str()) {
        Some(cage::COMMAND) => return cage::main(arguments.into_iter().skip(2)),
        Some("--role-parent") => parent(way(arguments.get(2)), Path::new(&arguments[3])),
        _ => tests(),
    }
    ExitCode::SUCCESS
}

fn tests() {
    let mut ways = vec!["reaper"];
    if cage::namespaces_allowed() {
        ways.push("any");
        a_private_memory_file_system_is_the_machines_alone();
    } else {
        skipped("a_private_memory_file_system_is_the_machines_alone", "user namespaces");
    }
    for name in ways {
        let way = way(Some(&name.into()));
        a_machine_that_ends_tells_how(way);
        its_environment_is_empty_and_it_may_not_leave_a_core(way);
        an_ordered_end_leaves_nothing_but_what_is_to_be_kept(way);
        a_dropped_cage_is_ended(way);
        a_supervisor_that_is_killed_leaves_no_files(way);
        a_machine_that_is_not_there_is_told(way);
        a_directory_that_is_there_is_not_used_for_temporary_files(way);
        nothing_is_removed_from_a_directory_of_another_user(way);
        nothing_outlives_a_killed_parent(name);
        println!("cages, {name}: ok");
    }
    if cage::namespaces_allowed() {
        a_machine_has_no_network();
    } else {
        skipped("a_machine_has_no_network", "namespaces");
    }
    for way in [Way::Any, Way::Reaper] {
        if Isolation::here().identity {
            a_machine_of_root_has_no_rights(way);
        } else {
            skipped("a_machine_of_root_has_no_rights", "root");
        }
    }
}

fn way(name: Option<&OsString>) -> Way {
    if name.is_some_and(|name| name == "reaper") { Way::Reaper } else { Way::Any }
}

/// An order for a script in a directory that does not exist yet.
fn order(way: Way, directory: &Path, script: &str) -> Order {
    let machine = ["/bin/sh", "-c", script].map(Into::into).to_vec();
    let own = vec!["own".into(), "tree".into()];
    let orphans = vec!["disk".into()];
    Order { directory: directory.into(), machine, own, orphans, way, ..Order::default() }
}

/// A started cage, with files that are to be removed.
fn started(order: &Order) -> Cage {
    let mut cage = Cage::spawn(order).unwrap();
    fs::create_dir(&order.directory).unwrap();
    fs::write(order.directory.join("own"), "").unwrap();
    fs::write(order.directory.join("disk"), "").unwrap();
    fs::create_dir_all(order.directory.join("tree/branch")).unwrap();
    fs::write(order.directory.join("tree/branch/leaf"), "").unwrap();
    cage.start().unwrap();
    cage
}

/// Where a test works.
fn place() -> (TempDir, PathBuf) {
    let place = TempDir::new_in("/var/tmp").unwrap();
    let directory = place.path().join("machine");
    (place, directory)
}

fn a_machine_that_ends_tells_how(way: Way) {
    let cases = [
        ("echo last words; exit 7", "its exit status is 7", "last words\n"),
        ("kill -ABRT $$", "it was killed by signal 6", ""),
    ];
    for (script, status, words) in cases {
        let (_place, directory) = place();
        let mut cage = started(&order(way, &directory, script));
        assert_eq!(cage.ended_within(PATIENCE).as_deref(), Some(status));
        assert_eq!(cage.console().text(), words);
        // It may end while files of it are still wanted.
        assert!(directory.join("own").exists());
        cage.end().unwrap();
        assert!(!directory.join("own").exists());
    }
}

fn its_environment_is_empty_and_it_may_not_leave_a_core(way: Way) {
    let (_place, directory) = place();
    let mut order = order(way, &directory, "ulimit -c; ulimit -Hc; pwd");
    let shown = directory.display();
    assert_eq!(all_it_writes(&order), format!("0\n0\n{shown}\n"));
    order.machine = vec!["/usr/bin/env".into()];
    assert_eq!(all_it_writes(&order), "");
    order.temporary = Some("tree".into());
    assert_eq!(all_it_writes(&order), format!("TMPDIR={shown}/tree\n"));
}

/// What a machine has written when it has ended by itself.
fn all_it_writes(order: &Order) -> String {
    let mut cage = started(order);
    assert_eq!(cage.ended_within(PATIENCE).as_deref(), Some("its exit status is 0"));
    let text = cage.console().text();
    cage.end().unwrap();
    fs::remove_dir_all(&order.directory).unwrap();
    text
}

fn an_ordered_end_leaves_nothing_but_what_is_to_be_kept(way: Way) {
    let (_place, directory) = place();
    let (mut read, write) = inherited();
    let cage = started(&order(way, &directory, MANY));
    drop(write);
    until_up(&cage);
    cage.end().unwrap();
    assert!(is_closed(&read), "processes are left");
    assert_eq!(read.read(&mut [0]).unwrap(), 0);
    let left: Vec<_> = fs::read_dir(&directory).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["disk"]);
}

fn a_dropped_cage_is_ended(way: Way) {
    let (_place, directory) = place();
    let (read, write) = inherited();
    let cage = started(&order(way, &directory, MANY));
    drop(write);
    until_up(&cage);
    drop(cage);
    assert!(is_closed(&read), "processes are left");
}

fn a_supervisor_that_is_killed_leaves_no_files(way: Way) {
    let (_place, directory) = place();
    let mut cage = started(&order(way, &directory, "echo up; read end"));
    until_up(&cage);
    let children = fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|task| fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default());
    let children: String = children.collect();
    let supervisor = children.split_whitespace().next_back().unwrap().parse().unwrap();
    let supervisor = rustix::process::Pid::from_raw(supervisor).unwrap();
    rustix::process::kill_process(supervisor, rustix::process::Signal::KILL).unwrap();
    assert_eq!(cage.ended_within(PATIENCE).as_deref(), Some("its cage ended"));
    cage.end().unwrap();
    let left: Vec<_> = fs::read_dir(&directory).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["disk"]);
}

fn a_machine_that_is_not_there_is_told(way: Way) {
    let (_place, directory) = place();
    let mut order = order(way, &directory, "");
    order.machine = vec!["/nowhere/machine".into()];
    let mut cage = started(&order);
    assert!(cage.ended_within(PATIENCE).is_some());
    let told = cage.console().telling();
    assert!(told.contains("starting /nowhere/machine: No such file"), "{told}");
}

fn a_machine_has_no_network() {
    let (_place, directory) = place();
    let order = order(Way::Any, &directory, "cat /proc/self/net/dev; readlink /proc/self/ns/net");
    let text = all_it_writes(&order);
    let mut lines = text.lines().skip(2);
    assert!(lines.next().is_some_and(|line| line.trim().starts_with("lo:")), "{text}");
    let ours = fs::read_link("/proc/self/ns/net").unwrap();
    assert!(lines.next().is_some_and(|link| link != ours.as_os_str()), "{text}");
    assert_eq!(lines.next(), None);
}

/// The file is one that root alone can read, and so are the environment and the memory of fslab.
fn a_machine_of_root_has_no_rights(way: Way) {
    let (place, directory) = place();
    let secret = place.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let parent = std::process::id();
    // A file like /dev/kvm, which is the group's.
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
    let mut order = order(way, &directory, &script);
    order.identity = Isolation::here().identity(Some(4242));
    let text = all_it_writes(&order);
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

fn a_directory_that_is_there_is_not_used_for_temporary_files(way: Way) {
    let (place, directory) = place();
    let temporary = place.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    fs::write(temporary.join("dear"), "").unwrap();
    let mut order = order(way, &directory, "echo up");
    order.temporary = Some(temporary.clone());
    let mut cage = started(&order);
    assert_eq!(cage.ended_within(PATIENCE).as_deref(), Some("its cage ended"));
    let console = cage.console().telling();
    assert!(console.contains("/temporary: File exists"), "{console}");
    cage.end().unwrap();
    assert!(temporary.join("dear").exists());
}

/// A link that another user could have made in a directory for all, before the cage's was made.
fn nothing_is_removed_from_a_directory_of_another_user(way: Way) {
    let (place, directory) = place();
    let other = place.path().join("other");
    fs::create_dir_all(other.join("tree")).unwrap();
    fs::write(other.join("own"), "").unwrap();
    std::os::unix::fs::symlink(&other, &directory).unwrap();
    let cage = Cage::spawn(&order(way, &directory, "echo up")).unwrap();
    drop(cage);
    assert!(other.join("own").exists() && other.join("tree").exists());
}

fn a_private_memory_file_system_is_the_machines_alone() {
    let (_place, directory) = place();
    let script = "stat -f -c '%T %b %S' $TMPDIR; echo > $TMPDIR/file; stat -c %d $TMPDIR; \
        read end";
    let mut order = order(Way::Any, &directory, script);
    order.temporary = Some("tree".into());
    order.memory = Some(Bytes::mib(16));
    let mut cage = started(&order);
    while cage.console().text().lines().count() < 2 {
        assert_eq!(cage.ended_within(Duration::from_millis(1)), None, "{}", cage.console().text());
    }
    let text = cage.console().text();
    let device = fs::metadata(directory.join("tree")).unwrap().dev();
    assert!(text.starts_with("tmpfs 4096 4096\n"), "{text}");
    assert_ne!(text.lines().nth(1), Some(&*device.to_string()));
    assert!(!directory.join("tree/file").exists());
}

/// Kills a parent at any moment: before the cage is, while it makes files, while the machine
/// starts, and when it is up. What is left of it is told by a pipe, whose other end all processes
/// of it hold.
fn nothing_outlives_a_killed_parent(way: &str) {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..KILLS {
        let (_place, directory) = place();
        let (read, write) = inherited();
        let mut parent = Command::new(env::current_exe().unwrap())
            .args(["--role-parent", way])
            .arg(&directory)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        drop(write);
        if round % 4 == 0 {
            // The machine with all its processes.
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

/// What is killed: a process that runs a machine.
fn parent(way: Way, directory: &Path) {
    let cage = started(&order(way, directory, MANY));
    until_up(&cage);
    println!("up");
    std::io::stdout().flush().unwrap();
    loop {
        thread::park();
    }
}

fn until_up(cage: &Cage) {
    while cage.console().text() != "up\n" {
        thread::yield_now();
    }
}

/// A pipe whose end for writing every process inherits that is started while it is open.
fn inherited() -> (fs::File, OwnedFd) {
    let (read, write) = rustix::pipe::pipe().unwrap();
    rustix::io::fcntl_setfd(&read, rustix::io::FdFlags::CLOEXEC).unwrap();
    assert!(write.as_raw_fd() > 2);
    (read.into(), write)
}

/// Whether nobody can write to a pipe any more, soon.
fn is_closed(read: &fs::File) -> bool {
    let mut files = [PollFd::new(read, PollFlags::IN)];
    let time = Timespec::try_from(PATIENCE).unwrap();
    poll(&mut files, Some(&time)).unwrap();
    files[0].revents().contains(PollFlags::HUP)
}
