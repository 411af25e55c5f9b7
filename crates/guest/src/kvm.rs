//! Check that `/dev/kvm` uses hardware virtualization. On some hosts, `/dev/kvm` interprets each
//! instruction.
//!
//! On such a host, every call on `/dev/kvm` succeeds, but a guest prints nothing for minutes. The
//! check therefore lets a virtual CPU count down from a million within 100 ms, with three attempts.
//! The [`Verdict`] is cached in a directory until the next boot of the host.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::Duration,
};

use crate::{GuestError, supervisor::Isolation};

/// Time limit of the code. A CPU at 1 GHz needs at most 2 ms; interpretation takes 4 s.
const LIMIT: Duration = Duration::from_millis(100);
/// Number of attempts, because a busy host can delay a hardware CPU.
const TRIES: u32 = 3;
/// I/O port that the code writes to at its end; the number is arbitrary.
const PORT: u16 = 0x42;
/// Three parts: a loop of a million iterations, a reload of the page tables (an exit on a CPU
/// without nested paging), and a write to the port.
///
/// ```text
/// b9 40420f00    mov ecx, 1000000
/// ff c9          dec ecx
/// 75 fc          jnz -4
/// 0f 20 d8       mov rax, cr3
/// 0f 22 d8       mov cr3, rax
/// b0 42          mov al, 0x42
/// e6 42          out 0x42, al
/// ```
const CODE: [u8; 19] = [
    0xb9, 0x40, 0x42, 0x0f, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0x0f, 0x20, 0xd8, 0x0f, 0x22, 0xd8, 0xb0,
    0x42, 0xe6, 0x42,
];
/// File of the cached verdict.
const CACHED_VERDICT: &str = "kvm-probe";
/// Boot ID, which changes with each boot (proc_sys_kernel(5)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Usability of KVM on this host for this user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The CPU runs guest instructions.
    Runs,
    /// `/dev/kvm` does not exist.
    Missing,
    /// This user cannot open `/dev/kvm`.
    Forbidden,
    /// `/dev/kvm` runs instructions so slowly that they must be interpreted.
    Interprets,
    /// `/dev/kvm` can be opened, but fails as the text describes.
    Broken(String),
}

impl Verdict {
    /// Checks that machines can use KVM.
    ///
    /// # Errors
    /// [`GuestError::Unusable`] with the reason and a hint.
    pub fn usable(&self) -> Result<(), GuestError> {
        const OTHER_KIND: &str = "use another kind of guest";
        let (why, hint) = match self {
            Self::Runs => return Ok(()),
            Self::Missing => (
                "/dev/kvm does not exist".to_owned(),
                "load the module kvm_intel or kvm_amd, enable virtualization in the firmware (or \
                 nested virtualization on the host of this machine), or use another kind of guest",
            ),
            Self::Forbidden => (
                "this user cannot open /dev/kvm".to_owned(),
                "add the user to the group that owns it (usually kvm), or use another kind \
                 of guest",
            ),
            Self::Interprets => (
                format!(
                    "/dev/kvm exists, but a loop of a million iterations took more than {} ms in \
                     {TRIES} attempts: instructions are interpreted",
                    LIMIT.as_millis()
                ),
                OTHER_KIND,
            ),
            Self::Broken(what) => (format!("/dev/kvm exists, but {what}"), OTHER_KIND),
        };
        Err(GuestError::Unusable { engine: "kvm", why, hint: hint.to_owned() })
    }

    /// Text of a verdict in the cache; `None` for verdicts that are not cached.
    fn to_text(&self) -> Option<String> {
        match self {
            Self::Runs => Some("runs".to_owned()),
            Self::Interprets => Some("interprets".to_owned()),
            Self::Missing | Self::Forbidden | Self::Broken(_) => None,
        }
    }

    fn of_text(text: &str) -> Option<Self> {
        match text {
            "runs" => Some(Self::Runs),
            "interprets" => Some(Self::Interprets),
            _ => None,
        }
    }
}

/// Group that a guest of root needs to open `/dev/kvm`, because such a guest runs as another user.
/// `None` if no group is needed.
///
/// # Errors
/// [`GuestError::Unusable`] if only root can open `/dev/kvm`.
pub fn group() -> Result<Option<u32>, GuestError> {
    let node = fs::metadata("/dev/kvm").map_err(GuestError::io("cannot read /dev/kvm"))?;
    if Isolation::here().identity { group_of(&node) } else { Ok(None) }
}

/// Group that `nobody` needs to open a node like `/dev/kvm`.
fn group_of(node: &fs::Metadata) -> Result<Option<u32>, GuestError> {
    let allows = |bits| node.mode() & bits == bits;
    if allows(0o006) {
        return Ok(None);
    }
    if allows(0o060) && node.gid() != 0 {
        return Ok(Some(node.gid()));
    }
    let why = "only root can open /dev/kvm, and the guests of root run as user `nobody`".to_owned();
    let hint = "give /dev/kvm to a group (chgrp kvm /dev/kvm; chmod 660 /dev/kvm)".to_owned();
    Err(GuestError::Unusable { engine: "kvm", why, hint })
}

/// Checks the usability of KVM, in at most about 0.3 s.
///
/// With a directory, the result of the loop is cached there until the host reboots. Existence and
/// permissions of `/dev/kvm` are checked each time.
pub fn probe(cache_directory: Option<&Path>) -> Verdict {
    let boot = fs::read_to_string(BOOT_ID).unwrap_or_default();
    probe_node(Path::new("/dev/kvm"), boot.trim(), cache_directory)
}

fn probe_node(path: &Path, boot: &str, cache_directory: Option<&Path>) -> Verdict {
    let node = match File::options().read(true).write(true).open(path) {
        Ok(node) => node,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Verdict::Forbidden,
        // Also ENXIO and ENODEV: `/dev/kvm` exists, but its driver is not loaded.
        Err(_) => return Verdict::Missing,
    };
    let memory = cache_directory.filter(|_| !boot.is_empty()).map(|d| d.join(CACHED_VERDICT));
    let cached = memory.as_ref().and_then(|file| {
        let text = fs::read_to_string(file).ok()?;
        let (of, verdict) = text.trim().split_once(' ')?;
        (of == boot).then(|| Verdict::of_text(verdict))?
    });
    if let Some(verdict) = cached {
        return verdict;
    }
    let verdict = run(&node);
    if let (Some(file), Some(text)) = (memory, verdict.to_text()) {
        // Without a cache, the next check takes up to 0.3 s. A partial line is not treated as a
        // verdict.
        let _ = file.parent().map(fs::create_dir_all);
        if let Err(error) = sys::whole::write(&file, format!("{boot} {text}\n").as_bytes()) {
            tracing::debug!("{}: {error}", file.display());
        }
    }
    verdict
}

#[cfg(target_arch = "x86_64")]
fn run(node: &File) -> Verdict {
    use sys::kvm::Exit;
    let mut tries = (0..TRIES).map(|_| sys::kvm::run(node, &CODE, LIMIT));
    match tries.find(|ended| !matches!(ended, Ok(Exit::TimedOut))).unwrap_or(Ok(Exit::TimedOut)) {
        Ok(Exit::Port(PORT)) => Verdict::Runs,
        Ok(Exit::TimedOut) => Verdict::Interprets,
        Ok(Exit::Port(port)) => Verdict::Broken(format!("its CPU accessed port {port:#x}")),
        Ok(Exit::Other(reason)) => {
            Verdict::Broken(format!("its CPU stopped with exit reason {reason}"))
        }
        Err(error) => Verdict::Broken(format!("it cannot create a machine: {error}")),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn run(_node: &File) -> Verdict {
    Verdict::Broken("only KVM on x86-64 is supported".to_owned())
}

#[cfg(test)]
mod tests;
