//! The first filesystem of a guest, made in memory: this binary as its first process, and what
//! filesystems need to be made and mounted.
//!
//! Names of programs and files of the host, modules, those that are loaded at the start in their
//! order, and the text of a job enter ([`Contents`]); an archive leaves that the kernel unpacks by
//! itself ([`build`]). Programs bring their libraries, scripts their interpreters. Nothing is
//! started to find these, nothing is written, and no owner, time, or path of a work directory gets
//! in, so that the same contents give the same bytes.
//!
//! ```text
//! /init                          this binary, its first process; /sbin/modprobe is a link to it
//! /bin /sbin /lib /lib64         links into /usr, whatever the host has
//! /usr/bin /usr/sbin ...         programs and libraries, where the host has them
//! /lib/fslab/modules/NAME.ko     modules, not compressed
//! /lib/fslab/host/...            what the host has where the guest mounts something: /tmp, /run
//! /etc/fslab/order               names of modules to load at start, in order, one a line
//! /etc/fslab/aliases             ALIAS<TAB>MODULE: what the kernel may ask for; - is written as _
//! /etc/fslab/depends             MODULE<TAB>what is to be loaded before it, in order
//! /etc/fslab/job                 the job
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::GuestError;
use crate::modules::hash::sha256;
use crate::modules::{Found, Index};

mod host;
mod libraries;
mod needs;
mod newc;
mod program;

pub use needs::{Needs, needs};

use host::Host;
use newc::Archive;
use program::Kind;

/// What is to be in the archive.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'a> {
    /// This binary. Its symbols are left out, which for a debug build are most of it.
    pub program: &'a Path,
    /// Programs of the host, by name or absolute path: `mkfs.xfs`.
    pub programs: &'a [String],
    /// Absolute paths of files of the host, taken as they are, if there: `/etc/mke2fs.conf`.
    pub files: &'a [String],
    /// Modules that can be loaded.
    pub modules: &'a [Found],
    /// Those of them that are loaded at start, in this order.
    pub at_start: &'a [Found],
    /// What modules depend on, and by which names the kernel may ask for them.
    pub on_demand: &'a Index,
    /// What the first process is told, as it wants it.
    pub job: &'a str,
}

/// An archive for a kernel's first filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initramfs {
    /// The archive, in the `newc` format.
    pub bytes: Vec<u8>,
    /// Programs that were asked for and are not in it, and why.
    pub missing: BTreeMap<String, String>,
    /// SHA-256 of the programs, libraries, and files in it, in hexadecimal, by their paths in it.
    pub hashes: BTreeMap<String, String>,
}

/// Puts an archive together.
///
/// # Errors
/// [`GuestError`] if this binary or a module cannot be read, or a file cannot be where it is asked
/// for. A program that is not there is no error.
pub fn build(contents: &Contents<'_>) -> Result<Initramfs, GuestError> {
    let mut archive = Archive::default();
    skeleton(&mut archive).map_err(conflict)?;
    let mut host = Host::new(archive);
    put_init(&mut host, contents.program)?;
    let mut missing = BTreeMap::new();
    for name in contents.programs {
        if let Err(why) = host.put_program(name) {
            missing.insert(name.clone(), why);
        }
    }
    for file in contents.files {
        host.put_file(file)?;
    }
    let (mut archive, hashes) = host.finish();
    put_modules(&mut archive, contents)?;
    archive.file("etc/fslab/job", 0o644, contents.job.as_bytes()).map_err(conflict)?;
    Ok(Initramfs { bytes: archive.finish(), missing, hashes })
}

/// Directories, links, and device files that are there before anything is mounted. Numbers of
/// devices: `Documentation/admin-guide/devices.txt` of the kernel.
fn skeleton(archive: &mut Archive) -> Result<(), String> {
    for name in ["usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "root", "mnt"] {
        archive.directory(name, 0o755)?;
    }
    for name in ["bin", "sbin", "lib", "lib64"] {
        archive.link(name, &format!("usr/{name}"))?;
    }
    for name in ["proc", "sys", "dev", "run"] {
        archive.directory(name, 0o755)?;
    }
    archive.directory("tmp", 0o1777)?;
    archive.character("dev/console", 0o600, (5, 1))?;
    archive.character("dev/null", 0o666, (1, 3))?;
    archive.character("dev/kmsg", 0o644, (1, 11))?;
    archive.link("usr/sbin/modprobe", "/init")?;
    // mkfs.nilfs2 refuses to work without it.
    archive.link("etc/mtab", "/proc/self/mounts")
}

/// Puts this binary at `/init`, and its libraries where it looks for them.
fn put_init(host: &mut Host, program: &Path) -> Result<(), GuestError> {
    let malformed = |why: String| GuestError::Malformed { path: program.to_owned(), why };
    let bytes = libraries::read(program).map_err(malformed)?;
    let linkage = match program::kind(&bytes).map_err(malformed)? {
        Kind::Elf(linkage) => linkage,
        Kind::Script(..) => return Err(malformed("it is a script".to_owned())),
    };
    host.put_libraries(program, &linkage).map_err(|why| GuestError::Missing {
        what: format!("{} cannot run in a guest: {why}", program.display()),
        cure: "install what is missing, or use a statically linked build".to_owned(),
    })?;
    let bytes = program::without_symbols(bytes, &linkage);
    host.put_bytes("init", 0o755, &bytes).map_err(conflict)
}

/// Puts the modules, and the tables by which they are found.
fn put_modules(archive: &mut Archive, contents: &Contents<'_>) -> Result<(), GuestError> {
    let there: BTreeSet<&str> = contents.modules.iter().map(|found| found.name.as_str()).collect();
    let mut depends = String::new();
    for found in contents.modules {
        let name = &found.name;
        let path = format!("usr/lib/fslab/modules/{name}.ko");
        if archive.has(&path) {
            continue;
        }
        archive.file(&path, 0o644, &found.read()?).map_err(conflict)?;
        let before = contents.on_demand.before(name);
        let before: Vec<_> = before.into_iter().filter(|name| there.contains(name)).collect();
        if !before.is_empty() {
            depends += &format!("{name}\t{}\n", before.join(" "));
        }
    }
    let order: String = contents.at_start.iter().map(|found| format!("{}\n", found.name)).collect();
    let aliases = contents.on_demand.aliases().filter(|(_, module)| there.contains(module));
    let aliases: String = aliases.map(|(alias, module)| format!("{alias}\t{module}\n")).collect();
    for (name, text) in [("order", order), ("aliases", aliases), ("depends", depends)] {
        archive.file(&format!("etc/fslab/{name}"), 0o644, text.as_bytes()).map_err(conflict)?;
    }
    Ok(())
}

/// Two things of one name, or a name that is none, come from what was asked for.
fn conflict(why: String) -> GuestError {
    GuestError::Malformed { path: "the guest's first filesystem".into(), why }
}

#[cfg(test)]
#[path = "initramfs/tests.rs"]
mod tests;
