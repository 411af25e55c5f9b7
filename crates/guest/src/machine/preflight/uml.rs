//! Requirements of user-mode Linux: a memory filesystem from which programs can be mapped,
//! permission to trace its own processes, and a CPU whose registers fit into the buffers of the
//! kernel.

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

use super::{Memory, Ready, output_of, unique_directory};
use crate::{
    Engine, GuestError, build,
    machine::files,
    supervisor::{Isolation, Supervisor, SupervisorSpec},
};

const NAME: &str = "linux.uml";
const OTHER_KIND: &str = "use another kind of guest";
/// Magic number of a memory filesystem (`TMPFS_MAGIC` in linux/magic.h).
const TMPFS_MAGIC: u64 = 0x0102_1994;
/// Size in bytes of the register buffer of kernels before [`SIZED_BY_HOST`] on x86-64
/// (`HOST_FP_SIZE` in arch/x86/um/user-offsets.c). The buffer is large enough for AVX-512, but not
/// for AMX. The host kernel rejects a buffer that is too small with EFAULT (`xstateregs_set` in
/// arch/x86/kernel/fpu/regset.c).
const REGISTERS: u32 = 2696;
/// First version that reads the size of the registers from the host (`host_fp_size` in
/// arch/x86/um/os-Linux/registers.c).
const SIZED_BY_HOST: (u32, u32) = (6, 13);
/// Time limit for the checks of user-mode Linux, which take about 0.1 s.
const CHECK_LIMIT: Duration = Duration::from_secs(5);
/// Output of the last check (`check_tmpexec` in arch/um/os-Linux/mem.c).
const LAST_CHECK: &str = "Checking PROT_EXEC mmap in";

/// See [`Engine::preflight`].
pub(super) fn preflight(
    memory: Bytes,
    cache_directory: Option<&Path>,
) -> Result<Ready, GuestError> {
    let size = backing_size(memory);
    // The guest memory is a file.
    if getrlimit(Resource::Fsize).maximum.is_some_and(|maximum| maximum < size.0) {
        return Err(unusable(
            format!("the file size limit is lower than its memory of {}", memory.rough()),
            "raise the limit (ulimit -f)",
        ));
    }
    let backing = memory_backing(size);
    // Default kernel ([`crate::KernelQuery::Newest`]).
    let built = cache_directory.and_then(build::newest).map(|built| built.image);
    let Some(program) = built.or_else(|| sys::program::find(NAME).ok()) else {
        // A kernel may be specified by path and is checked when it boots.
        let (program, version) = (PathBuf::new(), String::new());
        return Ok(Ready { engine: Engine::Uml, program, version, memory: backing });
    };
    let version = output_of(&program, &["--version"])?.trim().to_owned();
    check_registers(Engine::Uml, &version)?;
    run_checks(&program, &backing)?;
    Ok(Ready { engine: Engine::Uml, program, version, memory: backing })
}

/// Filesystem space required for a guest with this memory: the memory plus a tenth, because other
/// processes may use the filesystem. The file grows as the guest uses its memory. If the filesystem
/// is full, the guest is killed by SIGBUS.
pub(super) fn backing_size(memory: Bytes) -> Bytes {
    Bytes(memory.0.saturating_add(memory.0 / 10))
}

/// Selects the first suitable backing of the guest memory.
fn memory_backing(size: Bytes) -> Memory {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = [Some("/dev/shm".into()), runtime, Some("/tmp".into())];
    match places.into_iter().flatten().find(|place| is_suitable(place, size)) {
        Some(place) => Memory::Tmpfs(place),
        None if Isolation::here().namespaces => Memory::Private,
        None => Memory::Disk,
    }
}

/// True if a directory is writable and is on a memory filesystem that has this much space and
/// allows programs to be mapped.
pub(in crate::machine) fn is_suitable(place: &Path, size: Bytes) -> bool {
    let memory = statfs(place).is_ok_and(|fs| u64::try_from(fs.f_type) == Ok(TMPFS_MAGIC));
    let suitable = statvfs(place).is_ok_and(|fs| {
        let programs = !fs.f_flag.contains(StatVfsMountFlags::NOEXEC);
        // A filesystem without a limit reports 0 blocks (tmpfs(5)).
        programs && (fs.f_blocks == 0 || fs.f_bavail.saturating_mul(fs.f_frsize) >= size.0)
    });
    memory && suitable && access(place, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// Checks that the registers of this CPU fit into a user-mode Linux kernel of that release; other
/// engines have no limit.
///
/// # Errors
/// [`GuestError::Unusable`] if the registers do not fit, because the first program in the guest
/// would crash at once.
pub(in crate::machine) fn check_registers(engine: Engine, release: &str) -> Result<(), GuestError> {
    let bytes = registers();
    if engine != Engine::Uml || fits(release, bytes) {
        return Ok(());
    }
    Err(unusable(
        format!(
            "this CPU has {bytes} bytes of registers, but user-mode Linux {release} supports \
             only {} (no AMX)",
            register_limit(release)
        ),
        "build a kernel with larger buffers (fslab guest kernel build), use user-mode Linux 6.13 \
         or later, or use another kind of guest",
    ))
}

/// Register buffer size of a kernel before [`SIZED_BY_HOST`]. Kernels that fslab built with larger
/// buffers have a release suffix.
fn register_limit(release: &str) -> u32 {
    if release.ends_with(build::LARGE_REGISTERS_SUFFIX) { build::REGISTERS } else { REGISTERS }
}

/// True if `bytes` of registers fit into a kernel of that release. A kernel of unknown version is
/// accepted.
pub(in crate::machine) fn fits(release: &str, bytes: u32) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let version = match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
        _ => return true,
    };
    version >= SIZED_BY_HOST || bytes <= register_limit(release)
}

/// Size in bytes of the CPU registers that the kernel has enabled: leaf 0xD, sub-leaf 0, register
/// EBX (Intel SDM, volume 2, CPUID).
#[cfg(target_arch = "x86_64")]
fn registers() -> u32 {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const LEAF: u32 = 0xd;
    if __cpuid(0).eax < LEAF { 0 } else { __cpuid_count(LEAF, 0).ebx }
}

/// 0, because only kernels for x86-64 have a limit.
#[cfg(not(target_arch = "x86_64"))]
fn registers() -> u32 {
    0
}

/// Starts user-mode Linux, waits until it has printed the results of its checks of tracing and
/// memory, and ends it. These checks run first.
fn run_checks(program: &Path, backing: &Memory) -> Result<(), GuestError> {
    let at = match backing {
        Memory::Tmpfs(at) => unique_directory(at),
        Memory::Anonymous | Memory::Private | Memory::Disk => unique_directory(&env::temp_dir()),
    };
    let mut machine = vec![program.as_os_str().to_owned()];
    let arguments = ["mem=32M", "con=null", "con0=null,fd:1", "ssl=null", "panic=-1", "noreboot"];
    machine.extend(arguments.map(Into::into));
    machine.extend(["uml_dir=uml/".into(), "umid=guest".into()]);
    let temporary = Some("memory".into());
    let own = vec!["uml".into()];
    let memory = (*backing == Memory::Private).then(|| Bytes::mib(64));
    let (directory, identity) = (at.clone(), Isolation::here().identity(None));
    let spec = SupervisorSpec {
        directory,
        machine,
        temporary,
        memory,
        own,
        identity,
        ..SupervisorSpec::default()
    };
    let mut supervisor = Supervisor::spawn(&spec)?;
    files::directory(&at, spec.identity.as_ref())?;
    files::owned_directory(&at.join("uml"), spec.identity.as_ref())?;
    supervisor.start()?;
    let start = Instant::now();
    let outcome = loop {
        let ended = supervisor.ended_within(Duration::from_millis(2)).is_some();
        if let Some(outcome) = checked(&supervisor.console().text(), ended) {
            break outcome;
        }
        if start.elapsed() > CHECK_LIMIT {
            break Err("its own checks did not finish".into());
        }
    };
    supervisor.end()?;
    outcome.map_err(|why| unusable(why, OTHER_KIND))
}

/// Result of the checks in the console output, if they have finished.
pub(in crate::machine) fn checked(console: &str, ended: bool) -> Option<Result<(), String>> {
    let last = console.lines().rfind(|line| !line.trim().is_empty());
    let passed = console.lines().any(|l| l.starts_with(LAST_CHECK) && l.ends_with("...OK"));
    match (passed, ended) {
        (true, _) => Some(Ok(())),
        (false, true) => Some(Err(format!("it reports: {}", last.unwrap_or("nothing").trim()))),
        (false, false) => None,
    }
}

fn unusable(why: String, hint: &str) -> GuestError {
    GuestError::Unusable { engine: Engine::Uml.name(), why, hint: hint.into() }
}
