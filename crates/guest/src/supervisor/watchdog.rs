//! Watchdog process: starts the machine on command and ends it when fslab ends.

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
    namespaces::Additional,
};

use super::{
    COMMAND, Containment, END, GO, IDENTITY, INIT, NAMESPACES, NETWORK, SupervisorSpec,
    THIS_PROGRAM, init, nobody, sweep, within,
};

/// Interval at which the machine is polled without a pidfd: after its end, and on kernels without
/// pidfd_open(2) (before 5.3).
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Waits for the start command, runs the machine, and removes its files.
///
/// # Errors
/// Errors of the system if the machine cannot be started.
pub(super) fn run(spec: &SupervisorSpec) -> io::Result<ExitCode> {
    let state = match read()? {
        Some(GO) => machine(spec),
        Some(_) => Ok(ParentState::StopRequested),
        None => Ok(ParentState::Exited),
    };
    clean(spec, !matches!(state, Ok(ParentState::StopRequested)));
    state.map(|_| ExitCode::SUCCESS)
}

/// Tries each kind of isolation and writes the names of the allowed kinds.
///
/// # Errors
/// Errors of the system if the names cannot be written.
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

/// Reason to end the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParentState {
    /// fslab requested the end.
    StopRequested,
    /// fslab has exited without a request.
    Exited,
}

/// Runs the machine until fslab requests its end or exits; then ends all of its processes.
fn machine(spec: &SupervisorSpec) -> io::Result<ParentState> {
    limits()?;
    let namespaces = spec.containment == Containment::Any && {
        // The machine runs as another user (`identity`) only if fslab runs as root. In this case no
        // user namespace is created: the other user would not be mapped in it, and root can create
        // the other namespaces without it.
        match enter(spec.memory.is_some(), spec.identity.is_none()) {
            Err(error) if spec.memory.is_some() => {
                let what = "cannot create namespaces for the guest memory";
                return Err(init::with_context(error, what));
            }
            Ok(_) => true,
            Err(_) => false,
        }
    };
    if !namespaces {
        set_child_subreaper(Some(Pid::INIT))?;
    }
    // The machine inherits the working directory, because its user may be unable to reach the path.
    env::set_current_dir(&spec.directory)
        .map_err(|error| init::with_context(error, "cannot change to the guest directory"))?;
    let temporary = temporary(spec)?;
    let outcome = run_machine(spec, namespaces);
    if let Some(at) = temporary {
        // A failure only leaves temporary files of a machine that has ended.
        let _ = fs::remove_dir_all(at);
    }
    outcome
}

/// Starts the machine, waits, and ends it.
fn run_machine(spec: &SupervisorSpec, namespaces: bool) -> io::Result<ParentState> {
    let mounted = mounted(spec)?;
    let mut child = spawn(spec, namespaces)?;
    let state = watch(&mut child);
    if namespaces {
        // When the init process is killed, the kernel kills all other processes of the namespace
        // (zap_pid_ns_processes in kernel/pid_namespace.c). Waiting for the init process returns
        // only after they have ended.
        child.kill()?;
        child.wait()?;
    } else {
        sweep::descendants()?;
    }
    if let Some(at) = mounted {
        // A mount point cannot be removed.
        unmount(at, UnmountFlags::DETACH)?;
    }
    state
}

/// Creates the directory for temporary files if one is specified and does not exist. Returns its
/// path if it was created. An existing directory is used only if it is in the machine's own
/// directory: in `/dev/shm`, for example, another user may have created it.
fn temporary(spec: &SupervisorSpec) -> io::Result<Option<PathBuf>> {
    let Some(path) = &spec.temporary else { return Ok(None) };
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_relative() => {
            return Ok(None);
        }
        made => made.map_err(|error| {
            init::with_context(error, &format!("cannot create {}", path.display()))
        })?,
    }
    if let Some(identity) = &spec.identity {
        chown(path, Some(identity.user), Some(identity.group))?;
    }
    Ok(Some(path.clone()))
}

/// Mounts the memory filesystem, if one is specified. The watchdog mounts it, because the init
/// process has no capabilities in the user namespace: a process that is not root loses its
/// capabilities when it executes a program (capabilities(7)).
fn mounted(spec: &SupervisorSpec) -> io::Result<Option<PathBuf>> {
    let (Some(path), Some(size)) = (&spec.temporary, spec.memory) else {
        return Ok(None);
    };
    let mut options = format!("size={},mode=0700", size.0);
    if let Some(Identity { user, group, .. }) = &spec.identity {
        options += &format!(",uid={user},gid={group}");
    }
    let options = CString::new(options)?;
    let at = within(&spec.directory, path);
    mount("tmpfs", &at, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, &*options)
        .map_err(|error| init::with_context(error.into(), "cannot mount the guest memory"))?;
    Ok(Some(at))
}

/// Network of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    /// Network namespace in which only the loopback device exists.
    Own,
    /// Network of fslab, because the kernel does not allow a new namespace.
    OfHost,
}

/// Enters new namespaces, in which user and group IDs are unchanged. A network namespace that the
/// kernel refuses is skipped. A refused ID map is an error only if `mounts` is true. Without a map,
/// the kernel shows all IDs as that of `nobody`.
fn enter(mounts: bool, user: bool) -> io::Result<Network> {
    let (id, group) = (geteuid().as_raw(), getegid().as_raw());
    let additional = Additional { user, mounts, network: true };
    let network = match sys::namespaces::enter(additional) {
        Ok(()) => Network::Own,
        Err(_) => {
            sys::namespaces::enter(Additional { network: false, ..additional })?;
            Network::OfHost
        }
    };
    if !user {
        // Mounts in this namespace must not appear in the namespace of the host. If the host
        // unmounts a filesystem, the filesystem is also unmounted here. Otherwise it would stay in
        // use.
        if mounts {
            mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
        }
        return Ok(network);
    }
    // Without privileges, a group may be mapped only if setgroups is denied (user_namespaces(7)).
    let maps = fs::write("/proc/self/setgroups", "deny")
        .and_then(|()| fs::write("/proc/self/uid_map", format!("{id} {id} 1")))
        .and_then(|()| fs::write("/proc/self/gid_map", format!("{group} {group} 1")));
    if mounts { maps.map(|()| network) } else { Ok(network) }
}

/// Disables core files, into which an aborted user-mode Linux kernel would write its memory. Raises
/// the file size limit as far as allowed, because user-mode Linux keeps its memory in a file.
/// Prevents new privileges (`PR_SET_NO_NEW_PRIVS`).
fn limits() -> io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: maximum, maximum })?;
    Ok(set_no_new_privs(true)?)
}

/// Starts the init process of the namespace, or the machine itself. Its standard input is a pipe
/// whose other end the watchdog holds; its output is the console.
fn spawn(spec: &SupervisorSpec, namespaces: bool) -> io::Result<Child> {
    let console = io::stderr().as_fd().try_clone_to_owned()?;
    let mut command = if namespaces {
        let mut command = Command::new(THIS_PROGRAM);
        command.arg0("fslab").args([COMMAND, INIT]).args(spec.to_arguments());
        command
    } else {
        let mut command = init::machine(spec)?;
        command.process_group(0);
        if let Some(identity) = &spec.identity {
            sys::child::starts_as(&mut command, identity.clone());
        }
        sys::child::dies_with_parent(&mut command);
        command
    };
    let error = |error| init::with_context(error, &init::program(spec));
    command.stdin(Stdio::piped()).stdout(console).spawn().map_err(error)
}

/// Waits until fslab requests the end or exits. Reports to fslab if the machine ends first.
fn watch(child: &mut Child) -> io::Result<ParentState> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let mut end = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let mut running = true;
    loop {
        if ready(end.as_ref())? {
            return Ok(if read()?.is_some_and(|byte| byte == END) {
                ParentState::StopRequested
            } else {
                ParentState::Exited
            });
        }
        if running && let Some(status) = child.try_wait()? {
            running = false;
            end = None;
            // Standard error is the console. The reader of the console sees its end when no process
            // has it open anymore.
            dup2_stderr(File::options().write(true).open("/dev/null")?)?;
            // A failed write means that fslab has exited, which the next `ready` reports.
            let _ = writeln!(io::stdout(), "{}", end_status(status))
                .and_then(|()| io::stdout().flush());
        }
    }
}

/// Waits for fslab or the machine; if there is no pidfd, for at most one polling interval. True if
/// fslab sent a command or closed the pipe.
fn ready(end: Option<&OwnedFd>) -> io::Result<bool> {
    let stdin = io::stdin();
    let mut files = vec![PollFd::new(&stdin, PollFlags::IN)];
    files.extend(end.map(|end| PollFd::new(end, PollFlags::IN)));
    let timeout = end.is_none().then(|| Timespec::try_from(POLL_INTERVAL).unwrap_or_default());
    match poll(&mut files, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(!files[0].revents().is_empty()),
        Err(error) => Err(error.into()),
    }
}

/// Describes the exit status of a machine.
fn end_status(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) if code > 128 => format!("killed by signal {}", code - 128),
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended".into(),
    }
}

/// Reads a command of fslab, one byte; `None` if fslab has exited.
fn read() -> io::Result<Option<u8>> {
    let mut byte = [0];
    let length = io::stdin().lock().read(&mut byte)?;
    Ok((length > 0).then_some(byte[0]))
}

/// Removes the machine's files and, if `orphaned`, also the files that fslab would have removed.
/// Errors are ignored: files may be missing, and the watchdog has no process to report to.
pub(super) fn clean(spec: &SupervisorSpec, orphaned: bool) {
    let Some(directory) = own_directory(&spec.directory) else { return };
    // The path refers to the open descriptor, because another directory may have taken the name.
    let place = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    let orphans = spec.orphans.iter().filter(|_| orphaned);
    for path in spec.own.iter().chain(orphans) {
        let path = path.strip_prefix(&spec.directory).unwrap_or(path);
        let mut names = path.components();
        let (Some(Component::Normal(name)), None) = (names.next(), names.next()) else { continue };
        let path = place.join(name);
        if fs::remove_file(&path).is_err() {
            let _ = fs::remove_dir_all(&path);
        }
    }
    let _ = fs::remove_dir(&spec.directory);
}

/// The machine's directory, if it is a directory and belongs to fslab's user. The directory is
/// missing if fslab exited before its creation. If all users can write to its parent, the directory
/// may belong to another user.
fn own_directory(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(path, flags, Mode::empty()).ok()?;
    let facts = fstat(&directory).ok()?;
    (facts.st_uid == geteuid().as_raw()).then_some(directory)
}
