//! Whether `/dev/kvm` is what it says: some hosts offer it and then interpret each instruction.
//!
//! Such a node opens and answers every call, and a guest behind it prints nothing for minutes. So a
//! virtual processor counts down from a million first, which takes a real one less than a
//! millisecond, and has three times 100 ms for it. A directory enters, to remember what came out
//! until the next boot of the host; a [`Verdict`] leaves.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::Duration,
};

use crate::{GuestError, cage::Isolation};

/// The time that the code has. A processor at 1 GHz needs 2 ms at worst; one that is interpreted,
/// 4 s.
const LIMIT: Duration = Duration::from_millis(100);
/// How often it may try: a real processor may have had other things to do.
const TRIES: u32 = 3;
/// The port that the code writes to when it is done, an arbitrary one.
const PORT: u16 = 0x42;
/// A million turns of a loop; then a reload of the page tables, which only a processor with nested
/// paging does without an exit; then the port.
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
/// The file that remembers.
const REMEMBERED: &str = "kvm-probe";
/// proc_sys_kernel(5): a new one at each boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// What KVM is worth on this host, for this user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The processor runs a guest's instructions.
    Runs,
    /// There is no `/dev/kvm`.
    Missing,
    /// There is one, and this user may not open it.
    Forbidden,
    /// It opens, and runs instructions so slowly that it can only interpret them.
    Interprets,
    /// It opens, and does something else; what, says the text.
    Broken(String),
}

impl Verdict {
    /// Whether machines can run on it.
    ///
    /// # Errors
    /// [`GuestError::Unusable`] with the reason and what to do about it.
    pub fn usable(&self) -> Result<(), GuestError> {
        const OTHERWISE: &str = "take another kind of guest";
        let (why, cure) = match self {
            Self::Runs => return Ok(()),
            Self::Missing => (
                "there is no /dev/kvm".to_owned(),
                "load the module kvm_intel or kvm_amd, switch virtualization on in the firmware (or \
                 nested virtualization in the host of this machine), or take another kind of guest",
            ),
            Self::Forbidden => (
                "/dev/kvm is not open to this user".to_owned(),
                "have the user added to the group that owns it (usually kvm), or take another kind \
                 of guest",
            ),
            Self::Interprets => (
                format!(
                    "/dev/kvm is there, but a loop of a million turns was not done after {} ms, \
                     {TRIES} times: instructions are interpreted",
                    LIMIT.as_millis()
                ),
                OTHERWISE,
            ),
            Self::Broken(what) => (format!("/dev/kvm is there, but {what}"), OTHERWISE),
        };
        Err(GuestError::Unusable { engine: "kvm", why, cure: cure.to_owned() })
    }

    /// The outcome of a run, as a word and a text; `None` for what is seen without one.
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

/// The group through which a guest of root, which runs as another user, opens `/dev/kvm`; `None`
/// if it needs none.
///
/// # Errors
/// [`GuestError::Unusable`] if root alone can open it.
pub fn group() -> Result<Option<u32>, GuestError> {
    let facts = fs::metadata("/dev/kvm").map_err(GuestError::io("reading /dev/kvm"))?;
    let allows = |bits| facts.mode() & bits == bits;
    if !Isolation::here().identity || allows(0o006) {
        return Ok(None);
    }
    if allows(0o060) && facts.gid() != 0 {
        return Ok(Some(facts.gid()));
    }
    let why = "root alone can open /dev/kvm, and the guests of root run as nobody".to_owned();
    let cure = "give /dev/kvm to a group (chgrp kvm /dev/kvm; chmod 660 /dev/kvm)".to_owned();
    Err(GuestError::Unusable { engine: "kvm", why, cure })
}

/// Finds out what KVM is worth here, in at most about 0.3 s.
///
/// With a directory, whether instructions run or are interpreted is remembered there until the host
/// boots anew; whether the node is there and open to this user is looked at each time.
pub fn probe(cache_directory: Option<&Path>) -> Verdict {
    let boot = fs::read_to_string(BOOT_ID).unwrap_or_default();
    probe_node(Path::new("/dev/kvm"), boot.trim(), cache_directory)
}

fn probe_node(path: &Path, boot: &str, cache_directory: Option<&Path>) -> Verdict {
    let node = match File::options().read(true).write(true).open(path) {
        Ok(node) => node,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Verdict::Forbidden,
        // Also ENXIO and ENODEV: the node is there, what serves it is not.
        Err(_) => return Verdict::Missing,
    };
    let memory = cache_directory.filter(|_| !boot.is_empty()).map(|d| d.join(REMEMBERED));
    let remembered = memory.as_ref().and_then(|file| {
        let text = fs::read_to_string(file).ok()?;
        let (of, verdict) = text.trim().split_once(' ')?;
        (of == boot).then(|| Verdict::of_text(verdict))?
    });
    if let Some(verdict) = remembered {
        return verdict;
    }
    let verdict = run(&node);
    if let (Some(file), Some(text)) = (memory, verdict.to_text()) {
        // Forgetting it costs 0.3 s the next time; a partial line is not taken for an answer.
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
        Ok(Exit::Port(port)) => Verdict::Broken(format!("its processor went to port {port:#x}")),
        Ok(Exit::Other(reason)) => {
            Verdict::Broken(format!("its processor stopped for reason {reason}"))
        }
        Err(error) => Verdict::Broken(format!("makes no machine: {error}")),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn run(_node: &File) -> Verdict {
    Verdict::Broken("only that of x86-64 is known".to_owned())
}

#[cfg(test)]
mod tests;
