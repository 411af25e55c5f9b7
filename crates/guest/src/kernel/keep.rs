//! Which files of a kernel's package are kept: what boots, and the modules that filesystems and
//! storage need. That is a sixth of it; the rest is drivers of hardware that no guest has.
//!
//! The name of a file in the package enters; what becomes of it leaves. A name is a stranger's: one
//! that leads out of the package is an error, even if the file would not be kept.

use std::path::{Component, Path, PathBuf};

use super::elf::is_release;

/// Folders of `kernel/` in a folder of modules that are kept, with everything below.
const FOLDERS: &[&str] = &[
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

/// Folders of which modules with such beginnings are kept: disks, not their adapters.
const SOME: &[(&str, &[&str])] =
    &[("drivers/scsi", &["scsi_", "sd_mod", "sg", "sr_mod", "virtio_scsi"])];

/// Endings of modules.
const MODULES: &[&str] = &[".ko", ".ko.gz", ".ko.xz", ".ko.zst"];

/// What becomes of a file of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It may be the image for a PC. Packages made from the kernel's own tree have the `vmlinux`
    /// beside the packed one, which is not taken then.
    Image {
        /// Whether it is the packed one.
        packed: bool,
    },
    /// It may be the program of user-mode Linux.
    Program,
    /// It belongs to the modules.
    Module {
        /// The release that it is for.
        release: String,
        /// Its name below `lib/modules/RELEASE`.
        name: PathBuf,
    },
    /// Nobody needs it.
    Leave,
}

/// Decides about a file by its name; the error says what is wrong with the name.
pub(super) fn fate(name: &Path) -> Result<Fate, &'static str> {
    let mut parts = Vec::new();
    for part in name.components() {
        match part {
            // A name that is no text is not one of those that are looked for.
            Component::Normal(part) => parts.push(part.to_str().unwrap_or_default()),
            Component::CurDir => {}
            Component::ParentDir => return Err("leads upwards"),
            Component::RootDir | Component::Prefix(_) => return Err("is absolute"),
        }
    }
    if parts.iter().any(|part| part.contains('\0')) {
        return Err("has a zero byte");
    }
    let parts = parts.strip_prefix(&["usr"]).unwrap_or(&parts);
    Ok(match parts {
        ["boot", file] if file.starts_with("vmlinuz") => Fate::Image { packed: true },
        ["boot", file] if file.starts_with("vmlinux") => Fate::Image { packed: false },
        ["lib", "modules", _, "vmlinuz"] => Fate::Image { packed: true },
        ["bin", file] if file.starts_with("linux") => Fate::Program,
        ["lib", "modules", release, rest @ ..] | ["lib", "uml", "modules", release, rest @ ..]
            if is_release(release) && is_wanted(rest) =>
        {
            Fate::Module { release: (*release).to_owned(), name: rest.iter().collect() }
        }
        _ => Fate::Leave,
    })
}

/// Whether a file of a folder of modules is kept, by its name below that folder.
pub(crate) fn is_wanted(parts: &[&str]) -> bool {
    let Some((file, folders)) = parts.split_last() else { return false };
    if folders.is_empty() {
        return file.starts_with("modules.");
    }
    if !MODULES.iter().any(|ending| file.ends_with(ending)) {
        return false;
    }
    match folders[0] {
        "kernel" => {
            let folder = folders[1..].join("/");
            let within = |kept: &&str| {
                folder
                    .strip_prefix(*kept)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            FOLDERS.iter().any(within)
                || SOME.iter().any(|(kept, beginnings)| {
                    *kept == folder && beginnings.iter().any(|begin| file.starts_with(begin))
                })
        }
        // Modules that were not built with the kernel, such as another filesystem.
        "extra" | "updates" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn module(release: &str, name: &str) -> Result<Fate, &'static str> {
        Ok(Fate::Module { release: release.to_owned(), name: name.into() })
    }

    #[test]
    fn what_boots_and_what_storage_needs_is_kept() {
        let of = |name: &str| fate(Path::new(name));
        assert_eq!(of("./boot/vmlinuz-6.1.0-50-amd64"), Ok(Fate::Image { packed: true }));
        assert_eq!(of("boot/vmlinux-6.12.0"), Ok(Fate::Image { packed: false }));
        assert_eq!(of("usr/lib/modules/6.17.1-arch1/vmlinuz"), Ok(Fate::Image { packed: true }));
        assert_eq!(of("./usr/bin/linux.uml"), Ok(Fate::Program));
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
    fn the_rest_is_left() {
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
            assert_eq!(fate(Path::new(name)), Ok(Fate::Leave), "{name}");
        }
    }

    #[test]
    fn names_that_lead_out_are_refused() {
        for name in ["/boot/vmlinuz", "../boot/vmlinuz", "lib/modules/6.1/../../x", "a/.."] {
            assert!(fate(Path::new(name)).is_err(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn what_is_kept_stays_below_its_folder(name in "(usr/|\\./|/)?(lib/modules/|lib/uml/modules/|boot/)?[a-z0-9./]{0,8}(/kernel/fs/)?[a-z./\\x00]{0,8}(\\.ko)?") {
            if let Ok(Fate::Module { release, name }) = fate(Path::new(&name)) {
                prop_assert!(is_release(&release));
                prop_assert!(name.components().all(|part| matches!(part, Component::Normal(_))));
            }
        }
    }
}
