//! Initramfs of a guest, built in memory: this binary as the init process, and the programs and
//! modules required to create and mount filesystems.
//!
//! The input is [`Contents`]; the result is an archive that the kernel unpacks ([`build`]). The
//! archive also contains the libraries of programs and the interpreters of scripts. They are found
//! without running a program or writing a file. Owners, times, and working directories are not
//! stored, so the same contents produce the same bytes.
//!
//! ```text
//! /init                          this binary, the init process; /sbin/modprobe is a link to it
//! /bin /sbin /lib /lib64         links into /usr, independent of the host
//! /usr/bin /usr/sbin ...         programs and libraries, at their paths on the host
//! /lib/fslab/modules/NAME.ko     modules, uncompressed
//! /lib/fslab/host/...            host files whose paths are mount points in the guest: /tmp, /run
//! /etc/fslab/order               names of modules to load at start, in order, one per line
//! /etc/fslab/aliases             ALIAS<TAB>MODULE: names the kernel may request; - is written as _
//! /etc/fslab/depends             MODULE<TAB>modules to load before it, in order
//! /etc/fslab/config              the configuration of the guest
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

/// Contents of an initramfs.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'a> {
    /// This binary. Its symbols, which are most of a debug build, are removed.
    pub program: &'a Path,
    /// Programs of the host, by name (`mkfs.xfs`) or absolute path.
    pub programs: &'a [String],
    /// Absolute paths of host files to copy if they exist, such as `/etc/mke2fs.conf`.
    pub files: &'a [String],
    /// Available modules.
    pub modules: &'a [Found],
    /// Modules to load at start, in this order.
    pub at_start: &'a [Found],
    /// Dependencies and aliases of the modules.
    pub on_demand: &'a Index,
    /// Configuration for the init process, as written by [`crate::in_guest::GuestConfig::to_text`].
    pub config: &'a str,
}

/// Initramfs archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initramfs {
    /// The archive in the `newc` format.
    pub bytes: Vec<u8>,
    /// Requested programs that are not included, with the reason.
    pub missing: BTreeMap<String, String>,
    /// SHA-256 of the included programs, libraries, and files, in hexadecimal, by path in the
    /// archive.
    pub hashes: BTreeMap<String, String>,
}

/// Builds an initramfs.
///
/// # Errors
/// [`GuestError`] if this binary or a module cannot be read, or a file cannot have the requested
/// path. A missing program is not an error.
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
    archive.file("etc/fslab/config", 0o644, contents.config.as_bytes()).map_err(conflict)?;
    Ok(Initramfs { bytes: archive.finish(), missing, hashes })
}

/// Directories, links, and device files that exist before any mount. Device numbers:
/// `Documentation/admin-guide/devices.txt` of the kernel.
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
    // mkfs.nilfs2 requires this file.
    archive.link("etc/mtab", "/proc/self/mounts")
}

/// Adds this binary as `/init`, and its libraries at the paths where its loader finds them.
fn put_init(host: &mut Host, program: &Path) -> Result<(), GuestError> {
    let malformed = |why: String| GuestError::Malformed { path: program.to_owned(), why };
    let bytes = libraries::read(program).map_err(malformed)?;
    let linkage = match program::kind(&bytes).map_err(malformed)? {
        Kind::Elf(linkage) => linkage,
        Kind::Script(..) => return Err(malformed("it is a script".to_owned())),
    };
    host.put_libraries(program, &linkage).map_err(|why| GuestError::Missing {
        what: format!("{} cannot run in a guest: {why}", program.display()),
        hint: "install the missing library, or use a statically linked build".to_owned(),
    })?;
    let bytes = program::without_symbols(bytes, &linkage);
    host.put_bytes("init", 0o755, &bytes).map_err(conflict)
}

/// Adds the modules and their tables.
fn put_modules(archive: &mut Archive, contents: &Contents<'_>) -> Result<(), GuestError> {
    let available: BTreeSet<&str> =
        contents.modules.iter().map(|found| found.name.as_str()).collect();
    let mut depends = String::new();
    for found in contents.modules {
        let name = &found.name;
        let path = format!("usr/lib/fslab/modules/{name}.ko");
        if archive.has(&path) {
            continue;
        }
        archive.file(&path, 0o644, &found.read()?).map_err(conflict)?;
        let before = contents.on_demand.before(name);
        let before: Vec<_> = before.into_iter().filter(|name| available.contains(name)).collect();
        if !before.is_empty() {
            depends += &format!("{name}\t{}\n", before.join(" "));
        }
    }
    let order: String = contents.at_start.iter().map(|found| format!("{}\n", found.name)).collect();
    let aliases = contents.on_demand.aliases().filter(|(_, module)| available.contains(module));
    let aliases: String = aliases.map(|(alias, module)| format!("{alias}\t{module}\n")).collect();
    for (name, text) in [("order", order), ("aliases", aliases), ("depends", depends)] {
        archive.file(&format!("etc/fslab/{name}"), 0o644, text.as_bytes()).map_err(conflict)?;
    }
    Ok(())
}

/// Error for duplicate or invalid names in the contents.
fn conflict(why: String) -> GuestError {
    GuestError::Malformed { path: "the initramfs of the guest".into(), why }
}

#[cfg(test)]
#[path = "initramfs/tests.rs"]
mod tests;
