//! Preflight check of an engine on this host, before any file is created.

pub(super) mod uml;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use model::Bytes;

use super::Engine;
use crate::{GuestError, Kernel, kvm, supervisor::SupervisorSpec};
pub(super) use uml::check_registers;

/// Environment variable that lists kinds of guests to exclude, separated by commas. Tests use it to
/// simulate machines without them.
const WITHOUT: &str = "FSLAB_WITHOUT_GUESTS";

/// Backing of the guest memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Anonymous memory of the emulator.
    Anonymous,
    /// Files of this memory filesystem.
    Tmpfs(PathBuf),
    /// Files of a memory filesystem that is mounted for the guest.
    Private,
    /// Files in the guest's directory, because no memory filesystem has enough space. Disk-backed
    /// memory is slow and is recorded as the fact `guest.memory_backing`.
    Disk,
}

/// Engine that can run on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Engine.
    pub engine: Engine,
    /// Program of the emulator. For user-mode Linux, the default kernel; empty if there is none.
    pub program: PathBuf,
    /// Version reported by the program.
    pub version: String,
    /// Backing of the guest memory.
    pub memory: Memory,
}

impl Engine {
    /// Checks that a kernel runs on this CPU. Only user-mode Linux depends on the size of the CPU's
    /// registers.
    ///
    /// # Errors
    /// [`GuestError::Unusable`] if the kernel does not run on this CPU.
    pub fn check_kernel(self, kernel: &Kernel) -> Result<(), GuestError> {
        check_registers(self, &kernel.release)
    }

    /// Checks that the engine can run on this host with this amount of memory. `cache_directory`
    /// contains results of slow checks and the kernels built on this host.
    ///
    /// # Errors
    /// [`GuestError::Missing`] if a program or memory is missing, [`GuestError::Unusable`] if this
    /// host does not allow the engine. Both include a hint.
    pub fn preflight(
        self,
        memory: Bytes,
        cache_directory: Option<&Path>,
    ) -> Result<Ready, GuestError> {
        let excluded = std::env::var(WITHOUT).unwrap_or_default();
        if excluded.split(',').any(|name| name.trim() == self.name()) {
            return Err(GuestError::Unusable {
                engine: self.name(),
                why: format!("the environment variable {WITHOUT} excludes it"),
                hint: "remove it from the variable, or use another kind of guest".into(),
            });
        }
        check_architecture(self, std::env::consts::ARCH)?;
        check_memory(memory)?;
        match self {
            Self::Uml => uml::preflight(memory, cache_directory),
            Self::Kvm => {
                kvm::probe(cache_directory).usable()?;
                kvm::group()?;
                emulator(self)
            }
            Self::Tcg | Self::Icount => emulator(self),
        }
    }
}

impl Ready {
    /// Sets the backing of the guest memory in the supervisor's specification.
    pub(super) fn place_memory(&self, spec: &mut SupervisorSpec, memory: Bytes) {
        match &self.memory {
            Memory::Anonymous => {}
            Memory::Tmpfs(at) => spec.temporary = Some(unique_directory(at)),
            Memory::Private => {
                spec.temporary = Some("memory".into());
                spec.memory = Some(uml::backing_size(memory));
            }
            Memory::Disk => spec.temporary = Some("memory".into()),
        }
    }
}

/// Checks that fslab is a program of the guest's architecture, because it is also the guest's init
/// process. All guests are x86-64.
pub(super) fn check_architecture(engine: Engine, architecture: &str) -> Result<(), GuestError> {
    if architecture == "x86_64" {
        return Ok(());
    }
    Err(GuestError::Unusable {
        engine: engine.name(),
        why: format!("guests are x86-64, and this fslab is a program for {architecture}"),
        hint: "measure in guests on an x86-64 machine".into(),
    })
}

/// Path of a directory that does not exist yet.
fn unique_directory(at: &Path) -> PathBuf {
    at.join(format!("fslab-{}-{:08x}", std::process::id(), fastrand::u32(..)))
}

/// Finds QEMU and checks that it supports the engine.
fn emulator(engine: Engine) -> Result<Ready, GuestError> {
    const NAME: &str = "qemu-system-x86_64";
    let missing = |what: String| GuestError::Missing {
        what,
        hint: "install QEMU for x86-64 (package qemu-system-x86 of Debian and Ubuntu, \
               qemu-system-x86-core of Fedora, qemu-system-x86 of Arch), or use another kind of \
               guest"
            .into(),
    };
    let program = sys::program::find(NAME).map_err(|error| missing(format!("{NAME}: {error}")))?;
    let version = output_of(&program, &["--version"])?;
    let version = version.lines().next().unwrap_or_default().trim().to_owned();
    // QEMU lists the accelerators that it was built with (qemu(1), -accel).
    let accelerators = output_of(&program, &["-accel", "help"])?;
    let accelerator = if engine == Engine::Kvm { "kvm" } else { "tcg" };
    if !accelerators.lines().any(|line| line.trim() == accelerator) {
        return Err(missing(format!("{} was built without {accelerator}", program.display())));
    }
    Ok(Ready { engine, program, version, memory: Memory::Anonymous })
}

/// Output of a program that runs with an empty environment, as the machine does later.
fn output_of(program: &Path, arguments: &[&str]) -> Result<String, GuestError> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().stdin(Stdio::null()).stderr(Stdio::null());
    let what = format!("cannot run {} {}", program.display(), arguments.join(" "));
    let output = command.output().map_err(GuestError::io(what))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Available memory of the host: the kernel's estimate of what programs can allocate without
/// swapping (`MemAvailable`, proc_meminfo(5)). `None` if the kernel does not report it.
pub fn memory_available() -> Option<Bytes> {
    available(&fs::read_to_string("/proc/meminfo").unwrap_or_default())
}

/// Checks that the host has this much memory.
fn check_memory(memory: Bytes) -> Result<(), GuestError> {
    match memory_available() {
        Some(free) if free < memory => Err(GuestError::Missing {
            what: format!(
                "the guest needs {} of memory, but the host has only {} available",
                memory.rough(),
                free.rough()
            ),
            hint: "use a smaller guest, or stop other processes".into(),
        }),
        Some(_) | None => Ok(()),
    }
}

/// Parses `MemAvailable` of a text such as `/proc/meminfo`; `None` if it is missing.
pub(super) fn available(meminfo: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    kib.checked_mul(Bytes::KIB).map(Bytes)
}
