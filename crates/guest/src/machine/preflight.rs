//! Whether an engine can run here, found out before anything is made.

pub(super) mod uml;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use model::Bytes;

use super::Engine;
use crate::{GuestError, Kernel, cage::Order, kvm};
pub(super) use uml::check_registers;

/// Names the kinds of guests that are not used, divided by commas. Tests see with it what happens
/// on machines that lack them.
const WITHOUT: &str = "FSLAB_WITHOUT_GUESTS";

/// Where the memory of a guest is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// In the emulator, as that of any program.
    Anonymous,
    /// In files of this memory file system.
    Tmpfs(PathBuf),
    /// In files of a memory file system that is made for the guest.
    Private,
    /// In files in its directory, since no memory file system has enough room. That is slow, and
    /// the `guest.memory_on` of its facts says so.
    Disk,
}

/// An engine that can run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Which one.
    pub engine: Engine,
    /// The program of the emulator. User-mode Linux is its own, and this is the one that is booted
    /// unless another one is named; empty without any.
    pub program: PathBuf,
    /// What the program says that its version is.
    pub version: String,
    /// Where the guest's memory is going to be.
    pub memory: Memory,
}

impl Engine {
    /// Checks that a kernel runs on this CPU. Only user-mode Linux depends on the size of its
    /// registers.
    ///
    /// # Errors
    /// [`GuestError::Unusable`] if it does not.
    pub fn check_kernel(self, kernel: &Kernel) -> Result<(), GuestError> {
        check_registers(self, &kernel.release)
    }

    /// Whether it can run here with this memory, and with what. `cache_directory` remembers what
    /// takes long to find out, and has the kernels that were built here.
    ///
    /// # Errors
    /// [`GuestError::Missing`] if a program or memory is missing, [`GuestError::Unusable`] if this
    /// host does not let it run; both say what to do.
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
                cure: "remove it from the variable, or take another kind of guest".into(),
            });
        }
        check_room(memory)?;
        match self {
            Self::Uml => uml::preflight(memory, cache_directory),
            Self::Kvm => {
                kvm::probe(cache_directory).usable()?;
                kvm::group()?;
                emulator(self)
            }
            Self::Tcg | Self::Counted => emulator(self),
        }
    }
}

impl Ready {
    /// Tells the cage where the memory of a guest goes.
    pub(super) fn place_memory(&self, order: &mut Order, memory: Bytes) {
        match &self.memory {
            Memory::Anonymous => {}
            Memory::Tmpfs(at) => order.temporary = Some(own_directory(at)),
            Memory::Private => {
                order.temporary = Some("memory".into());
                order.memory = Some(uml::room(memory));
            }
            Memory::Disk => order.temporary = Some("memory".into()),
        }
    }
}

/// A name for a directory that nobody else has.
fn own_directory(at: &Path) -> PathBuf {
    at.join(format!("fslab-{}-{:08x}", std::process::id(), fastrand::u32(..)))
}

/// QEMU, if it is there and can do that.
fn emulator(engine: Engine) -> Result<Ready, GuestError> {
    const NAME: &str = "qemu-system-x86_64";
    let missing = |what: String| GuestError::Missing {
        what,
        cure: "install QEMU for x86-64 (package qemu-system-x86 of Debian and Ubuntu, \
               qemu-system-x86-core of Fedora, qemu-system-x86 of Arch), or take another kind of \
               guest"
            .into(),
    };
    let program = sys::program::find(NAME).map_err(|error| missing(format!("{NAME}: {error}")))?;
    let version = words(&program, &["--version"])?;
    let version = version.lines().next().unwrap_or_default().trim().to_owned();
    // What it lists is what it was built with (qemu(1), -accel).
    let accelerators = words(&program, &["-accel", "help"])?;
    let wanted = if engine == Engine::Kvm { "kvm" } else { "tcg" };
    if !accelerators.lines().any(|line| line.trim() == wanted) {
        return Err(missing(format!("{} was built without {wanted}", program.display())));
    }
    Ok(Ready { engine, program, version, memory: Memory::Anonymous })
}

/// What a program says of itself, in the empty environment in which it is going to run.
fn words(program: &Path, arguments: &[&str]) -> Result<String, GuestError> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().stdin(Stdio::null()).stderr(Stdio::null());
    let what = format!("asking {} {}", program.display(), arguments.join(" "));
    let output = command.output().map_err(GuestError::io(what))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The memory that the host has to give: the kernel's estimate of what programs can have without
/// swapping (`MemAvailable`, proc_meminfo(5)). `None` if it does not tell.
pub fn memory_available() -> Option<Bytes> {
    available(&fs::read_to_string("/proc/meminfo").unwrap_or_default())
}

/// Whether the host has this memory to give.
fn check_room(memory: Bytes) -> Result<(), GuestError> {
    match memory_available() {
        Some(room) if room < memory => Err(GuestError::Missing {
            what: format!("the guest wants {memory} of memory, and the host has {room} left"),
            cure: "give it less, or end what uses memory".into(),
        }),
        Some(_) | None => Ok(()),
    }
}

/// What a text like `/proc/meminfo` says is available; `None` if it does not.
pub(super) fn available(meminfo: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    kib.checked_mul(Bytes::KIB).map(Bytes)
}
