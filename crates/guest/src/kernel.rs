//! The kernel that a guest boots.
//!
//! What a user names enters ([`Kernel::find`]): the version of an installed kernel, an image with
//! its modules, or a distribution's package, which needs no installing. A [`Kernel`] leaves: an
//! image that the machine can enter at once, and the folder of its modules. What has to be unpacked
//! for that is kept in a [`Cache`].
//!
//! Packages and images come from strangers. Nothing of them is run here, nothing of them is written
//! outside the cache, and what does not add up is refused.
//!
//! Deliberately not here: which modules a job needs ([`crate::modules`]), downloading, and kernels
//! for other processors than x86-64.

pub(crate) mod archive;
mod boot;
pub(crate) mod built;
pub(crate) mod cache;
pub(crate) mod elf;
pub(crate) mod finder;
pub(crate) mod keep;
mod known;
mod package;
pub(crate) mod source;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod version;

use std::{path::PathBuf, sync::atomic::AtomicBool};

use self::finder::Finder;
pub(crate) use self::finder::examine;
pub use self::{
    cache::Cache,
    known::{Known, Origin},
};
use crate::GuestError;

/// What a kernel was built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// A PC: x86-64 for QEMU and KVM.
    Pc,
    /// User-mode Linux: a program of the host.
    Uml,
}

impl Architecture {
    /// As it is kept in the cache.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pc => "pc",
            Self::Uml => "uml",
        }
    }

    /// What to call it in a sentence.
    pub(crate) const fn phrase(self) -> &'static str {
        match self {
            Self::Pc => "a kernel for a PC",
            Self::Uml => "a program of user-mode Linux",
        }
    }
}

/// Which kernel is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named<'a> {
    /// For a PC the newest kernel that is installed and readable, or of a package that was unpacked
    /// before; for user-mode Linux the newest that was built here ([`crate::build`]), else
    /// `linux.uml` on `PATH`.
    Newest,
    /// One of these:
    ///
    /// - a version, or its beginning (`6.1`, `6.1.0-50-amd64`), of a kernel that is installed, of a
    ///   package that was unpacked before, or of a kernel that was built here; of several the
    ///   newest;
    /// - the path of a package: `.deb`, or a tar archive packed by xz, zstd, or gzip;
    /// - the path of a `vmlinuz`, a `vmlinux`, or a program of user-mode Linux.
    ///
    /// Behind a path may stand `:MODULES`, a folder `lib/modules/RELEASE` or a package of modules.
    /// Without it, modules are taken from the package, and for an image from where they belong:
    /// `/boot/vmlinuz-RELEASE` has them in `/lib/modules/RELEASE`, `/usr/bin/linux.uml` in
    /// `/usr/lib/uml/modules/RELEASE`, and an image in `lib/modules/RELEASE` beside it; so it is
    /// under any other root as well.
    Text(&'a str),
}

/// A kernel ready to be booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// What `uname -r` says in it, such as `6.1.0-50-amd64`.
    pub release: String,
    /// What it was built for.
    pub architecture: Architecture,
    /// What the user named, or where it was found.
    pub origin: String,
    /// SHA-256 of the package or the image that it came from, in hexadecimal.
    pub hash: String,
    /// The image: an uncompressed ELF `vmlinux`, or the program of user-mode Linux. A kernel that
    /// was built without an entry for virtual machines (`CONFIG_PVH`) stays the `bzImage` it was,
    /// which the guest then decompresses itself.
    pub image: PathBuf,
    /// `lib/modules/RELEASE`, as the package has it; `None` for a kernel without modules.
    pub modules: Option<PathBuf>,
}

impl Kernel {
    /// Finds a kernel, and unpacks what is packed, which takes some seconds the first time.
    ///
    /// # Errors
    /// [`GuestError::Missing`] if there is no such kernel, [`GuestError::Malformed`] if what was
    /// named is not one, or not for this architecture, [`GuestError::Io`] if it cannot be read or
    /// the cache not be written, and [`GuestError::Interrupted`] once `interrupt` is set.
    pub fn find(
        named: Named<'_>,
        architecture: Architecture,
        cache: &Cache,
        interrupt: &AtomicBool,
    ) -> Result<Self, GuestError> {
        let path = sys::program::search_path();
        let root = PathBuf::from("/");
        Finder { root: &root, path: &path, architecture, cache, interrupt }.find(named)
    }

    /// All kernels that can be named by their version, and those of packages that were unpacked
    /// before, newest first for each architecture. Nothing is unpacked for this.
    pub fn known(cache: &Cache, interrupt: &AtomicBool) -> Vec<Known> {
        let path = sys::program::search_path();
        let root = PathBuf::from("/");
        let architecture = Architecture::Pc;
        known::all(Finder { root: &root, path: &path, architecture, cache, interrupt })
    }
}
