//! Kernels for guests.
//!
//! [`Kernel::find`] selects a kernel: an installed version, an image with its modules, or a
//! distribution package, which need not be installed. The result is a [`Kernel`], which contains
//! the paths of a bootable image and of its modules. Unpacked files are stored in a [`Cache`].
//!
//! Packages and images are untrusted. Nothing in them is executed, nothing is written outside the
//! cache, and malformed files are rejected.
//!
//! Out of scope: the selection of modules ([`crate::modules`]), downloads, and kernels for CPUs
//! other than x86-64.

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
    known::{KnownKernel, Origin},
};
use crate::GuestError;

/// Architecture of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// PC: x86-64 for QEMU and KVM.
    Pc,
    /// User-mode Linux: a program of the host.
    Uml,
}

impl Architecture {
    /// Name in the cache.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pc => "pc",
            Self::Uml => "uml",
        }
    }

    /// Description for messages.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Pc => "a kernel for a PC",
            Self::Uml => "a user-mode Linux program",
        }
    }
}

/// Selection of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelQuery<'a> {
    /// The default kernel. For a PC: the newest kernel that is installed and readable, or in an
    /// unpacked package. For user-mode Linux: the newest kernel built by fslab ([`crate::build`])
    /// without changes of the user, otherwise `linux.uml` on `PATH`.
    Newest,
    /// One of:
    ///
    /// - a version or its prefix (`6.1`, `6.1.0-50-amd64`) of a kernel that is installed, in an
    ///   unpacked package, or built by fslab; the newest match is used;
    /// - the path of a package: a `.deb`, or a tar archive, which may be compressed by gzip, xz,
    ///   zstd, or lz4;
    /// - the path of a `vmlinuz`, a `vmlinux`, or a user-mode Linux program.
    ///
    /// A path may be followed by `:MODULES`, a directory `lib/modules/RELEASE` or a package of
    /// modules. By default, the modules of a package are used. For an image, the default depends on
    /// its path: `/lib/modules/RELEASE` for `/boot/vmlinuz-RELEASE`, `/usr/lib/uml/modules/RELEASE`
    /// for `/usr/bin/linux.uml`, and the image's own directory for an image in
    /// `lib/modules/RELEASE`. The same applies below any other root directory.
    Text(&'a str),
}

/// Kernel that is ready to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Release (`uname -r`), such as `6.1.0-50-amd64`.
    pub release: String,
    /// Architecture.
    pub architecture: Architecture,
    /// Query of the user, path of an installed kernel, file name of an unpacked package, or
    /// description of a kernel built by fslab.
    pub origin: String,
    /// SHA-256 of the source package or image, in hexadecimal.
    pub hash: String,
    /// Image: an uncompressed ELF `vmlinux`, or the user-mode Linux program. A kernel without an
    /// entry for virtual machines (`CONFIG_PVH`) remains a `bzImage`, which the guest decompresses
    /// itself.
    pub image: PathBuf,
    /// Directory `lib/modules/RELEASE`; `None` for a kernel without modules.
    pub modules: Option<PathBuf>,
}

impl Kernel {
    /// Finds a kernel and unpacks it if it is not cached, which takes some seconds.
    ///
    /// # Errors
    /// [`GuestError::Missing`] if no kernel matches, [`GuestError::Malformed`] if the file is not a
    /// kernel or has another architecture, [`GuestError::Io`] if the file cannot be read or the
    /// cache cannot be written, and [`GuestError::Interrupted`] if `interrupt` is set.
    pub fn find(
        query: KernelQuery<'_>,
        architecture: Architecture,
        cache: &Cache,
        interrupt: &AtomicBool,
    ) -> Result<Self, GuestError> {
        let path = sys::program::search_path();
        let root = PathBuf::from("/");
        Finder { root: &root, path: &path, architecture, cache, interrupt }.find(query)
    }

    /// Lists all kernels that can be selected by version, newest first per architecture. Nothing is
    /// unpacked.
    pub fn known(cache: &Cache, interrupt: &AtomicBool) -> Vec<KnownKernel> {
        let path = sys::program::search_path();
        let root = PathBuf::from("/");
        let architecture = Architecture::Pc;
        known::all(Finder { root: &root, path: &path, architecture, cache, interrupt })
    }
}
