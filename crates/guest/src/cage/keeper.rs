//! The keeper: starts the machine when told, and ends it with fslab.

use std::{
    env,
    ffi::CString,
    fs::{self, DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd as _, AsRawFd as _, OwnedFd},
        unix::{
            fs::{DirBuilderExt as _, chown},
            process::{CommandExt as _, ExitStatusExt as _},
        },
    },
    path::{Component, Path, PathBuf},
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags, fstat, open},
    mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount},
    process::{
        Pid, PidfdFlags, Resource, Rlimit, getegid, geteuid, getrlimit, pidfd_open,
        set_child_subreaper, setrlimit,
    },
    stdio::dup2_stderr,
    thread::set_no_new_privs,
};

use sys::{
    child::{Identity, become_identity},
    namespaces::Further,
};

use super::{
    COMMAND, END, FIRST, GO, IDENTITY, NAMESPACES, NETWORK, Order, THIS_PROGRAM, Way, first,
    nobody, sweep, within,
};

/// How often the machine is looked after where the kernel has no pidfd_open(2) (before 5.3).
const LOOK: Duration = Duration::from_millis(100);

/// Waits to be told, runs the machine, and removes what is to be removed.
///
/// # Errors
/// The system's, if the machine cannot be started.
pub(super) fn run(order: &Order) -> io::Result<ExitCode> {
    let told = match read()? {
        Some(GO) => machine(order),
        Some(_) => Ok(Told::End),
        None => Ok(Told::Nothing),
    };
    clean(order, !matches!(told, Ok(Told::End)));
    told.map(|_| ExitCode::SUCCESS)
}

/// Tries each kind of isolation, and writes the names of those that are allowed here.
///
/// # Errors
/// The system's, if it cannot be written.
pub(super) fn probe() -> io::Result<ExitCode> {
    let mut allowed = Vec::new();
    let root = geteuid().is_root();
    match enter(true, !root) {
        Ok(Network::Own) => allowed.extend([NAMESPACES, NETWORK]),
        Ok(Network::OfHost) => allowed.push(NAMESPACES),
        Err(_) => {}
    }
    if root && become_identity(&nobody(None)).is_ok() {
        allowed.push(IDENTITY);
    }
    write!(io::stdout(), "{}", allowed.join(" "))?;
    Ok(ExitCode::SUCCESS)
}

/// What fslab said last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// To end the machine.
    End,
    /// Nothing: fslab is no more.
    Nothing,
}

/// Runs the machine until fslab wants its end, or ends itself; sweeps.
fn machine(order: &Order) -> io::Result<Told> {
    limits()?;
    let namespaces = order.way == Way::Any && {
        // Root needs no user namespace, in which the machine's user would have no id.
        match enter(order.memory.is_some(), order.identity.is_none()) {
            Err(error) if order.memory.is_some() => {
                let what = "making namespaces for the guest's memory";
                return Err(first::named(error, what));
            }
            Ok(_) => true,
            Err(_) => false,
        }
    };
    if !namespaces {
        set_child_subreaper(Some(Pid::INIT))?;
    }
    // Another user inherits the way to it.
    env::set_current_dir(&order.directory)
        .map_err(|error| first::named(error, "moving to the guest's directory"))?;
    let temporary = temporary(order)?;
    let outcome = held(order, namespaces);
    if let Some(at) = temporary {
        // A failure leaves files of a machine that is no more.
        let _ = fs::remove_dir_all(at);
    }
    outcome
}

/// Starts the machine, and ends it.
fn held(order: &Order, namespaces: bool) -> io::Result<Told> {
    let mounted = mounted(order)?;
    let mut child = spawn(order, namespaces)?;
    let told = watch(&mut child);
    if namespaces {
        // With the first process, the kernel kills all others (zap_pid_ns_processes in
        // kernel/pid_namespace.c), and the first is there to be waited for when they are gone.
        child.kill()?;
        child.wait()?;
    } else {
        sweep::descendants()?;
    }
    if let Some(at) = mounted {
        // Otherwise its directory could not be removed by this process.
        unmount(at, UnmountFlags::DETACH)?;
    }
    told
}

/// Makes the directory for temporary files, if one is wanted and it is not there; where it was
/// made. Directories for all users are among the parents, so one that is there is used only within
/// the machine's own.
fn temporary(order: &Order) -> io::Result<Option<PathBuf>> {
    let Some(path) = &order.temporary else { return Ok(None) };
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_relative() => {
            return Ok(None);
        }
        made => made.map_err(|error| first::named(error, &format!("making {}", path.display())))?,
    }
    if let Some(identity) = &order.identity {
        chown(path, Some(identity.user), Some(identity.group))?;
    }
    Ok(Some(path.clone()))
}

/// Mounts the memory file system, if one is wanted. That is done here since a process that is not
/// root's loses the rights over its namespace when it starts a program (capabilities(7)).
fn mounted(order: &Order) -> io::Result<Option<PathBuf>> {
    let (Some(path), Some(size)) = (&order.temporary, order.memory) else {
        return Ok(None);
    };
    let mut options = format!("size={},mode=0700", size.0);
    if let Some(Identity { user, group, .. }) = &order.identity {
        options += &format!(",uid={user},gid={group}");
    }
    let options = CString::new(options)?;
    let at = within(&order.directory, path);
    mount("tmpfs", &at, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, &*options)
        .map_err(|error| first::named(error.into(), "mounting memory for the guest"))?;
    Ok(Some(at))
}

/// The network that a machine is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    /// A namespace without any device.
    Own,
    /// That of fslab, since the kernel allows no other.
    OfHost,
}

/// New namespaces, in which ids are what they were. What systems may refuse of it is left out where
/// it is not needed: without a map, ids are shown as those of nobody.
fn enter(mounts: bool, user: bool) -> io::Result<Network> {
    let (id, group) = (geteuid().as_raw(), getegid().as_raw());
    let further = Further { user, mounts, network: true };
    let network = match sys::namespaces::enter(further) {
        Ok(()) => Network::Own,
        Err(_) => {
            sys::namespaces::enter(Further { network: false, ..further })?;
            Network::OfHost
        }
    };
    if !user {
        // Otherwise a mount could be seen by others, and what they unmount would stay in use.
        if mounts {
            mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
        }
        return Ok(network);
    }
    // A group may be mapped without rights only when groups cannot be dropped
    // (user_namespaces(7)).
    let maps = fs::write("/proc/self/setgroups", "deny")
        .and_then(|()| fs::write("/proc/self/uid_map", format!("{id} {id} 1")))
        .and_then(|()| fs::write("/proc/self/gid_map", format!("{group} {group} 1")));
    if mounts { maps.map(|()| network) } else { Ok(network) }
}

/// No core files (the abort of a guest's kernel would write its memory), files as long as allowed
/// (user-mode Linux keeps its memory in one), and no more rights than now.
fn limits() -> io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: maximum, maximum })?;
    Ok(set_no_new_privs(true)?)
}

/// Starts the first process of the namespace, or the machine itself. Its input is a pipe of which
/// the other end is the keeper's, and its output is the console.
fn spawn(order: &Order, namespaces: bool) -> io::Result<Child> {
    let console = io::stderr().as_fd().try_clone_to_owned()?;
    let mut command = if namespaces {
        let mut command = Command::new(THIS_PROGRAM);
        command.arg0("fslab").args([COMMAND, FIRST]).args(order.to_arguments());
        command
    } else {
        let mut command = first::machine(order)?;
        command.process_group(0);
        if let Some(identity) = &order.identity {
            sys::child::starts_as(&mut command, identity.clone());
        }
        sys::child::dies_with_parent(&mut command);
        command
    };
    let error = |error| first::named(error, &first::program(order));
    command.stdin(Stdio::piped()).stdout(console).spawn().map_err(error)
}

/// Waits until fslab wants an end; tells it meanwhile if the machine ended by itself.
fn watch(child: &mut Child) -> io::Result<Told> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let mut end = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let mut running = true;
    loop {
        if ready(end.as_ref(), running)? {
            return Ok(if read()?.is_some_and(|told| told == END) {
                Told::End
            } else {
                Told::Nothing
            });
        }
        if running && let Some(status) = child.try_wait()? {
            running = false;
            end = None;
            // Then the console is at its end, too.
            dup2_stderr(File::options().write(true).open("/dev/null")?)?;
            // Fslab may end at this moment; the pipe will tell.
            let _ = writeln!(io::stdout(), "{}", told(status)).and_then(|()| io::stdout().flush());
        }
    }
}

/// Waits for fslab or the machine; whether fslab said something.
fn ready(end: Option<&OwnedFd>, running: bool) -> io::Result<bool> {
    let stdin = io::stdin();
    let mut files = vec![PollFd::new(&stdin, PollFlags::IN)];
    files.extend(end.map(|end| PollFd::new(end, PollFlags::IN)));
    let look = (running && end.is_none()).then(|| Timespec::try_from(LOOK).unwrap_or_default());
    match poll(&mut files, look.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(!files[0].revents().is_empty()),
        Err(error) => Err(error.into()),
    }
}

/// A machine's end in words.
fn told(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) if code > 128 => format!("it was killed by signal {}", code - 128),
        (Some(code), _) => format!("its exit status is {code}"),
        (None, Some(signal)) => format!("it was killed by signal {signal}"),
        (None, None) => "it ended".into(),
    }
}

/// What fslab says, one byte; nothing if it is no more.
fn read() -> io::Result<Option<u8>> {
    let mut byte = [0];
    let length = io::stdin().lock().read(&mut byte)?;
    Ok((length > 0).then_some(byte[0]))
}

/// Removes what the machine leaves, and what fslab would have removed. Files that were never made
/// are no error, and others cannot be told anybody.
pub(super) fn clean(order: &Order, orphaned: bool) {
    let Some(directory) = own_directory(&order.directory) else { return };
    // By its number, so that nothing is removed from what may take its name.
    let place = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    let orphans = order.orphans.iter().filter(|_| orphaned);
    for path in order.own.iter().chain(orphans) {
        let path = path.strip_prefix(&order.directory).unwrap_or(path);
        let mut names = path.components();
        let (Some(Component::Normal(name)), None) = (names.next(), names.next()) else { continue };
        let path = place.join(name);
        if fs::remove_file(&path).is_err() {
            let _ = fs::remove_dir_all(&path);
        }
    }
    let _ = fs::remove_dir(&order.directory);
}

/// The machine's directory, if it is one and belongs to fslab's user: it may never have been made,
/// and in a directory for all users, another one could have made what has its name.
fn own_directory(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(path, flags, Mode::empty()).ok()?;
    let facts = fstat(&directory).ok()?;
    (facts.st_uid == geteuid().as_raw()).then_some(directory)
}
