//! What user-mode Linux wants: a memory file system from which programs may be mapped, the right to
//! trace its own processes, and a processor whose registers fit into its buffers.

use std::{
    env,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use model::Bytes;
use rustix::{
    fs::{Access, StatVfsMountFlags, access, statfs, statvfs},
    process::{Resource, getrlimit},
};

use super::{Memory, Ready, own_directory, words};
use crate::{
    Engine, GuestError, build,
    cage::{self, Cage, Isolation, Order},
    machine::files,
};

const NAME: &str = "linux.uml";
const OTHERWISE: &str = "take another kind of guest";
/// The kind of a memory file system (`TMPFS_MAGIC` in linux/magic.h).
const TMPFS_MAGIC: u64 = 0x0102_1994;
/// Bytes of registers for which kernels before [`FITTING`] have room on x86-64 (`HOST_FP_SIZE` in
/// arch/x86/um/user-offsets.c): enough for AVX-512, not for AMX. The host takes all or nothing
/// (`xstateregs_set` in arch/x86/kernel/fpu/regset.c), and answers EFAULT.
const REGISTERS: u32 = 2696;
/// The first version that asks the host how many bytes they are (`host_fp_size` in
/// arch/x86/um/os-Linux/registers.c).
const FITTING: (u32, u32) = (6, 13);
/// How long its own checks may take; 0.1 s was seen.
const CHECKING: Duration = Duration::from_secs(5);
/// The last of them (`check_tmpexec` in arch/um/os-Linux/mem.c).
const LAST_CHECK: &str = "Checking PROT_EXEC mmap in";

/// See [`Engine::preflight`].
pub(super) fn preflight(
    memory: Bytes,
    cache_directory: Option<&Path>,
) -> Result<Ready, GuestError> {
    let wanted = room(memory);
    // Its memory is a file.
    if getrlimit(Resource::Fsize).maximum.is_some_and(|maximum| maximum < wanted.0) {
        return Err(unusable(
            format!("files may not be as long as its memory of {memory}"),
            "raise the limit (ulimit -f)",
        ));
    }
    let place = memory_place(wanted);
    // What is booted unless another one is named ([`crate::Named::Newest`]).
    let built = cache_directory.and_then(build::newest).map(|built| built.image);
    let Some(program) = built.or_else(|| sys::program::find(NAME).ok()) else {
        // One may be named with its path, which is seen when it boots.
        let (program, version) = (PathBuf::new(), String::new());
        return Ok(Ready { engine: Engine::Uml, program, version, memory: place });
    };
    let version = words(&program, &["--version"])?.trim().to_owned();
    check_registers(Engine::Uml, &version)?;
    try_checks(&program, &place)?;
    Ok(Ready { engine: Engine::Uml, program, version, memory: place })
}

/// What a file system has to have for a guest with this memory: it is filled as the guest fills its
/// own, and a guest for which there is no room dies of SIGBUS; and a tenth for others.
pub(super) fn room(memory: Bytes) -> Bytes {
    Bytes(memory.0.saturating_add(memory.0 / 10))
}

/// Where its memory goes: where it costs least.
fn memory_place(wanted: Bytes) -> Memory {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = [Some("/dev/shm".into()), runtime, Some("/tmp".into())];
    match places.into_iter().flatten().find(|place| is_fit(place, wanted)) {
        Some(place) => Memory::Tmpfs(place),
        None if cage::namespaces_allowed() => Memory::Private,
        None => Memory::Disk,
    }
}

/// Whether a directory is of a memory file system with this room, and open to us; programs may be
/// mapped from it.
pub(in crate::machine) fn is_fit(place: &Path, wanted: Bytes) -> bool {
    let memory = statfs(place).is_ok_and(|fs| u64::try_from(fs.f_type) == Ok(TMPFS_MAGIC));
    let fit = statvfs(place).is_ok_and(|fs| {
        let programs = !fs.f_flag.contains(StatVfsMountFlags::NOEXEC);
        // One without a limit says that it has no blocks at all (tmpfs(5)).
        programs && (fs.f_blocks == 0 || fs.f_bavail.saturating_mul(fs.f_frsize) >= wanted.0)
    });
    memory && fit && access(place, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// Whether the registers of this processor fit into a kernel of that release, if it is for
/// user-mode Linux.
///
/// # Errors
/// [`GuestError::Unusable`] if they do not: the first program in the guest would die at its first
/// step.
pub(in crate::machine) fn check_registers(engine: Engine, release: &str) -> Result<(), GuestError> {
    let bytes = registers();
    if engine != Engine::Uml || fits(release, bytes) {
        return Ok(());
    }
    Err(unusable(
        format!(
            "this processor has {bytes} bytes of registers, and user-mode Linux {release} has \
             room for {} (AMX is more than it knows)",
            room_in(release)
        ),
        "build one that has room (fslab guest kernel build), take a user-mode Linux of 6.13 or \
         later, or take another kind of guest",
    ))
}

/// Bytes of registers for which a kernel before [`FITTING`] has room: one that was built here says
/// at the end of its release that it has more.
fn room_in(release: &str) -> u32 {
    if release.ends_with(build::ROOMY) { build::REGISTERS } else { REGISTERS }
}

/// Whether so many bytes of registers fit into a kernel of that release. One whose version cannot
/// be told is tried.
pub(in crate::machine) fn fits(release: &str, bytes: u32) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let version = match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
        _ => return true,
    };
    version >= FITTING || bytes <= room_in(release)
}

/// Bytes of this processor's registers that programs use, as the kernel has switched them on:
/// leaf 0xD, sub-leaf 0, register EBX (Intel SDM, volume 2, CPUID).
#[cfg(target_arch = "x86_64")]
fn registers() -> u32 {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const LEAF: u32 = 0xd;
    if __cpuid(0).eax < LEAF { 0 } else { __cpuid_count(LEAF, 0).ebx }
}

/// Other processors have no such limit.
#[cfg(not(target_arch = "x86_64"))]
fn registers() -> u32 {
    0
}

/// Has it do its own checks, of tracing and of its memory, which it does first and tells of, and
/// ends it there.
fn try_checks(program: &Path, place: &Memory) -> Result<(), GuestError> {
    let at = match place {
        Memory::Tmpfs(at) => own_directory(at),
        Memory::Anonymous | Memory::Private | Memory::Disk => own_directory(&env::temp_dir()),
    };
    let mut machine = vec![program.as_os_str().to_owned()];
    let arguments = ["mem=32M", "con=null", "con0=null,fd:1", "ssl=null", "panic=-1", "noreboot"];
    machine.extend(arguments.map(Into::into));
    machine.extend(["uml_dir=uml/".into(), "umid=guest".into()]);
    let temporary = Some("memory".into());
    let own = vec!["uml".into()];
    let memory = (*place == Memory::Private).then(|| Bytes::mib(64));
    let (directory, identity) = (at.clone(), Isolation::here().identity(None));
    let order = Order { directory, machine, temporary, memory, own, identity, ..Order::default() };
    let mut cage = Cage::spawn(&order)?;
    files::directory(&at, order.identity.as_ref())?;
    files::given(&at.join("uml"), order.identity.as_ref())?;
    cage.start()?;
    let start = Instant::now();
    let outcome = loop {
        let ended = cage.ended_within(Duration::from_millis(2)).is_some();
        if let Some(outcome) = checked(&cage.console().text(), ended) {
            break outcome;
        }
        if start.elapsed() > CHECKING {
            break Err("it does not end its own checks".into());
        }
    };
    cage.end()?;
    outcome.map_err(|why| unusable(why, OTHERWISE))
}

/// What its checks have come to, if they have; all that it wrote enters.
pub(in crate::machine) fn checked(console: &str, ended: bool) -> Option<Result<(), String>> {
    let last = console.lines().rfind(|line| !line.trim().is_empty());
    let passed = console.lines().any(|l| l.starts_with(LAST_CHECK) && l.ends_with("...OK"));
    match (passed, ended) {
        (true, _) => Some(Ok(())),
        (false, true) => Some(Err(format!("it says: {}", last.unwrap_or("nothing").trim()))),
        (false, false) => None,
    }
}

fn unusable(why: String, cure: &str) -> GuestError {
    GuestError::Unusable { engine: Engine::Uml.name(), why, cure: cure.into() }
}
