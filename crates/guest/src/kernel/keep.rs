//! Selection of the files of a kernel package to unpack: the boot file, and modules for filesystems
//! and storage. The selected files are a sixth of a package; the others are drivers of hardware
//! that no guest has.
//!
//! Names are untrusted: a name outside the package is an error, even if the file would not be
//! unpacked.

use std::path::{Component, Path, PathBuf};

use super::elf::is_release;

/// Directories of `kernel/` whose modules are unpacked, including subdirectories.
const KEPT_DIRECTORIES: &[&str] = &[
    "arch/x86/crypto",
    "arch/x86/lib",
    "block",
    "crypto",
    "drivers/acpi/nfit",
    "drivers/block",
    "drivers/cdrom",
    "drivers/char/hw_random",
    "drivers/crypto/virtio",
    "drivers/dax",
    "drivers/md",
    "drivers/mtd",
    "drivers/nvdimm",
    "drivers/nvme",
    "drivers/virtio",
    "fs",
    "lib",
    "mm",
    "net/9p",
    "net/ceph",
    "net/dns_resolver",
    "net/sunrpc",
    "security/keys",
    "zfs",
];

/// Directories of which only modules with these prefixes are unpacked: those for disks and exports
/// of disks, not for host adapters.
const KEPT_PREFIXES: &[(&str, &[&str])] = &[
    ("drivers/scsi", &["scsi_", "sd_mod", "sg", "sr_mod", "virtio_scsi"]),
    ("drivers/target", &["target_core_"]),
];

/// Extensions of modules.
const MODULES: &[&str] = &[".ko", ".ko.gz", ".ko.xz", ".ko.zst"];

/// Handling of a file of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileAction {
    /// Candidate for the boot image of a PC. Packages built from the kernel tree contain the
    /// `vmlinux` next to the compressed image; the compressed image is then used.
    Image {
        /// True for the compressed image.
        packed: bool,
    },
    /// Candidate for the user-mode Linux program.
    Program,
    /// Module, or list of modules.
    Module {
        /// Release of the modules.
        release: String,
        /// Path below `lib/modules/RELEASE`.
        name: PathBuf,
    },
    /// Not unpacked.
    Skip,
}

/// Selects the handling of a file by its name. The error describes the defect of an invalid name.
pub(super) fn file_action(name: &Path) -> Result<FileAction, &'static str> {
    let mut parts = Vec::new();
    for part in name.components() {
        match part {
            // A name that is not UTF-8 does not match any file.
            Component::Normal(part) => parts.push(part.to_str().unwrap_or_default()),
            Component::CurDir => {}
            Component::ParentDir => return Err("has `..` in its path"),
            Component::RootDir | Component::Prefix(_) => return Err("has an absolute path"),
        }
    }
    if parts.iter().any(|part| part.contains('\0')) {
        return Err("has a NUL in its path");
    }
    let parts = parts.strip_prefix(&["usr"]).unwrap_or(&parts);
    Ok(match parts {
        ["boot", file] if file.starts_with("vmlinuz") => FileAction::Image { packed: true },
        ["boot", file] if file.starts_with("vmlinux") => FileAction::Image { packed: false },
        ["lib", "modules", _, "vmlinuz"] => FileAction::Image { packed: true },
        ["bin", file] if file.starts_with("linux") => FileAction::Program,
        ["lib", "modules", release, rest @ ..] | ["lib", "uml", "modules", release, rest @ ..]
            if is_release(release) && is_kept(rest) =>
        {
            FileAction::Module { release: (*release).to_owned(), name: rest.iter().collect() }
        }
        _ => FileAction::Skip,
    })
}

/// True if a file in a modules directory is unpacked, by its path below that directory.
pub(crate) fn is_kept(parts: &[&str]) -> bool {
    let Some((file, directories)) = parts.split_last() else { return false };
    if directories.is_empty() {
        return file.starts_with("modules.");
    }
    if !MODULES.iter().any(|ending| file.ends_with(ending)) {
        return false;
    }
    match directories[0] {
        "kernel" => {
            let directory = directories[1..].join("/");
            let within = |kept: &&str| {
                directory
                    .strip_prefix(*kept)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            KEPT_DIRECTORIES.iter().any(within)
                || KEPT_PREFIXES.iter().any(|(kept, beginnings)| {
                    *kept == directory && beginnings.iter().any(|begin| file.starts_with(begin))
                })
        }
        // Modules that were not built with the kernel, such as additional filesystems.
        "extra" | "updates" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn module(release: &str, name: &str) -> Result<FileAction, &'static str> {
        Ok(FileAction::Module { release: release.to_owned(), name: name.into() })
    }

    #[test]
    fn boot_files_and_storage_modules_are_kept() {
        let of = |name: &str| file_action(Path::new(name));
        assert_eq!(of("./boot/vmlinuz-6.1.0-50-amd64"), Ok(FileAction::Image { packed: true }));
        assert_eq!(of("boot/vmlinux-6.12.0"), Ok(FileAction::Image { packed: false }));
        assert_eq!(
            of("usr/lib/modules/6.17.1-arch1/vmlinuz"),
            Ok(FileAction::Image { packed: true })
        );
        assert_eq!(of("./usr/bin/linux.uml"), Ok(FileAction::Program));
        for (name, release, kept) in [
            ("lib/modules/6.1/kernel/fs/xfs/xfs.ko", "6.1", "kernel/fs/xfs/xfs.ko"),
            ("./usr/lib/modules/6.12/kernel/fs/x.ko.xz", "6.12", "kernel/fs/x.ko.xz"),
            ("./usr/lib/uml/modules/6.1.176/kernel/lib/a/b.ko", "6.1.176", "kernel/lib/a/b.ko"),
            ("lib/modules/6.1/modules.builtin", "6.1", "modules.builtin"),
            (
                "lib/modules/6.1/kernel/drivers/scsi/sd_mod.ko",
                "6.1",
                "kernel/drivers/scsi/sd_mod.ko",
            ),
            ("lib/modules/6.1/updates/dkms/zfs.ko.zst", "6.1", "updates/dkms/zfs.ko.zst"),
        ] {
            assert_eq!(of(name), module(release, kept), "{name}");
        }
    }

    #[test]
    fn other_files_are_skipped() {
        for name in [
            "./",
            "./boot/System.map-6.1.0-50-amd64",
            "boot/grub/vmlinuz",
            "lib/modules/6.1/build",
            "lib/modules/6.1/kernel/fs/xfs/README",
            "lib/modules/6.1/kernel/fsx/x.ko",
            "lib/modules/6.1/kernel/drivers/gpu/drm/i915/i915.ko",
            "lib/modules/6.1/kernel/drivers/scsi/aic7xxx/aic7xxx.ko",
            "lib/modules/6.1/kernel/drivers/scsi/megaraid.ko",
            "lib/modules/6 1/kernel/fs/xfs/xfs.ko",
            "usr/bin/linux/x",
        ] {
            assert_eq!(file_action(Path::new(name)), Ok(FileAction::Skip), "{name}");
        }
    }

    #[test]
    fn names_outside_the_package_are_rejected() {
        for name in ["/boot/vmlinuz", "../boot/vmlinuz", "lib/modules/6.1/../../x", "a/.."] {
            assert!(file_action(Path::new(name)).is_err(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn kept_files_stay_below_their_directory(name in "(usr/|\\./|/)?(lib/modules/|lib/uml/modules/|boot/)?[a-z0-9./]{0,8}(/kernel/fs/)?[a-z./\\x00]{0,8}(\\.ko)?") {
            if let Ok(FileAction::Module { release, name }) = file_action(Path::new(&name)) {
                prop_assert!(is_release(&release));
                prop_assert!(name.components().all(|part| matches!(part, Component::Normal(_))));
            }
        }
    }
}
