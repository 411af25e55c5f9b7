//! Requirements of a filesystem, layer, or device in a guest, in addition to its mkfs program.

/// Requirements of a filesystem, layer, or device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Required modules, by name or alias.
    pub modules: &'static [&'static str],
    /// Optional modules, which some kernel versions have built in or no longer use.
    pub optional: &'static [&'static str],
    /// Programs of the host that mount the filesystem, and programs that the former start. Programs
    /// that are not installed are omitted.
    pub programs: &'static [&'static str],
    /// Files of the host that the programs of the filesystem read, if they exist.
    pub files: &'static [&'static str],
}

/// Table row: name, then the fields of [`Needs`].
type Row = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
);

/// mke2fs.conf(5) defines the features of a new filesystem.
const MKE2FS: &[&str] = &["/etc/mke2fs.conf"];
/// Default character sets of names in distributions: `CONFIG_NLS_DEFAULT`,
/// `CONFIG_FAT_DEFAULT_CODEPAGE`, and `CONFIG_FAT_DEFAULT_IOCHARSET`. The kernel requests them at
/// mount.
const FAT_NAMES: &[&str] = &["nls_cp437", "nls_ascii", "nls_iso8859-1", "nls_utf8"];
/// Character set of filesystems that store names in Unicode.
const NAMES: &[&str] = &["nls_utf8"];

/// Requirements by name. Names of filesystems are those of `/proc/filesystems`, names of layers are
/// device-mapper targets with the prefix `dm-`, and names of devices are their drivers.
#[rustfmt::skip]
const TABLE: &[Row] = &[
    // filesystem, modules, optional modules, programs, files
    ("bcachefs",   &["bcachefs"],   &[],                       &[], &[]),
    ("btrfs",      &["btrfs"],      &["crypto-crc32c"],        &[], &[]),
    ("erofs",      &["erofs"],      &[],                       &[], &[]),
    ("exfat",      &["exfat"],      NAMES,                     &[], &[]),
    // In kernels without the ext2 driver, ext4 mounts ext2 and has the alias `fs-ext2`
    // (`fs/ext4/super.c`).
    ("ext2",       &["fs-ext2"],    &[],                       &[], MKE2FS),
    ("ext3",       &["fs-ext3"],    &["crypto-crc32c"],        &[], MKE2FS),
    ("ext4",       &["ext4"],       &["crypto-crc32c"],        &[], MKE2FS),
    // Up to Linux 6.13, f2fs requests the checksum at mount (`f2fs_fill_super`).
    ("f2fs",       &["f2fs"],       &["crypto-crc32"],         &[], &[]),
    ("fuse",       &["fuse"],       &[],                       &[], &[]),
    ("gfs2",       &["gfs2"],       &[],                       &[], &[]),
    ("hfsplus",    &["hfsplus"],    NAMES,                     &[], &[]),
    ("jfs",        &["jfs"],        &[],                       &[], &[]),
    ("minix",      &["minix"],      &[],                       &[], &[]),
    ("msdos",      &["msdos"],      FAT_NAMES,                 &[], &[]),
    // The cleaner is started by mount.nilfs2(8), not by mount(2), and must be in /sbin.
    ("nilfs2",     &["nilfs2"],     &[],
        &["mount.nilfs2", "umount.nilfs2", "nilfs_cleanerd"], &["/etc/nilfs_cleanerd.conf"]),
    ("ntfs3",      &["ntfs3"],      NAMES,                     &[], &[]),
    ("ocfs2",      &["ocfs2"],      &[],                       &[], &[]),
    ("overlay",    &["overlay"],    &[],                       &[], &[]),
    ("reiser4",    &["reiser4"],    &[],                       &[], &[]),
    ("reiserfs",   &["reiserfs"],   &[],                       &[], &[]),
    ("squashfs",   &["squashfs"],   &[],                       &[], &[]),
    ("tmpfs",      &[],             &[],                       &[], &[]),
    ("udf",        &["udf"],        NAMES,                     &[], &[]),
    ("vfat",       &["vfat"],       FAT_NAMES,                 &[], &[]),
    ("xfs",        &["xfs"],        &["crypto-crc32c"],        &[], &[]),
    ("zonefs",     &["zonefs"],     &[],                       &[], &[]),
    // device-mapper layer; the first three are part of `dm_mod`
    ("dm-error",   &["dm_mod"],     &[],                       &[], &[]),
    ("dm-linear",  &["dm_mod"],     &[],                       &[], &[]),
    ("dm-striped", &["dm_mod"],     &[],                       &[], &[]),
    ("dm-cache",   &["dm_cache"],   &["dm_cache_smq"],         &[], &[]),
    // `aes-xts-plain64` is the default of cryptsetup(8).
    ("dm-crypt",   &["dm_crypt"],   &["crypto-aes", "crypto-xts", "crypto-ecb"], &[], &[]),
    ("dm-delay",   &["dm_delay"],   &[],                       &[], &[]),
    ("dm-dust",    &["dm_dust"],    &[],                       &[], &[]),
    ("dm-flakey",  &["dm_flakey"],  &[],                       &[], &[]),
    ("dm-integrity", &["dm_integrity"], &["crypto-crc32c"],    &[], &[]),
    ("dm-log-writes", &["dm_log_writes"], &[],                 &[], &[]),
    ("dm-raid",    &["dm_raid"],    &["raid0", "raid1", "raid10", "raid456"], &[], &[]),
    ("dm-snapshot", &["dm_snapshot"], &[],                     &[], &[]),
    ("dm-thin",    &["dm_thin_pool"], &[],                     &[], &[]),
    ("dm-verity",  &["dm_verity"],  &["crypto-sha256"],        &[], &[]),
    ("dm-writecache", &["dm_writecache"], &[],                 &[], &[]),
    ("dm-zero",    &["dm_zero"],    &[],                       &[], &[]),
    ("dm-zoned",   &["dm_zoned"],   &[],                       &[], &[]),
    // device
    ("brd",        &["brd"],        &[],                       &[], &[]),
    ("loop",       &["loop"],       &[],                       &[], &[]),
    ("md",         &["md_mod"],     &["raid0", "raid1", "raid10", "raid456"], &[], &[]),
    ("null_blk",   &["null_blk", "configfs"], &[],             &[], &[]),
    ("nvme",       &["nvme"],       &[],                       &[], &[]),
    ("scsi_debug", &["scsi_debug", "sd_mod"], &[],             &[], &[]),
    ("virtio_blk", &["virtio_pci", "virtio_blk"], &[],         &[], &[]),
    ("zram",       &["zram"],       &["lz4", "zstd"],          &[], &[]),
];

/// Requirements of a filesystem by its kernel name (`xfs`), of a layer by its target (`dm-delay`),
/// or of a device by its driver (`null_blk`). `None` for any other name. When a filesystem of
/// another name is mounted, the kernel requests the alias `fs-NAME`.
pub fn needs(name: &str) -> Option<Needs> {
    let row = TABLE.iter().find(|row| row.0 == name)?;
    let (_, modules, optional, programs, files) = *row;
    Some(Needs { modules, optional, programs, files })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::tests::{kernels, print_observation};
    use crate::modules::{Index, ModuleState};
    use crate::support::skipped;

    #[test]
    fn names_are_unique_and_files_are_absolute() {
        for (at, row) in TABLE.iter().enumerate() {
            assert!(TABLE[..at].iter().all(|other| other.0 != row.0), "{} twice", row.0);
            assert!(row.4.iter().all(|file| file.starts_with('/')), "{}", row.0);
        }
        assert_eq!(needs("nilfs2").unwrap().files, ["/etc/nilfs_cleanerd.conf"]);
        assert_eq!(needs("vfat").unwrap().modules, ["vfat"]);
        assert_eq!(needs("reiserfs9"), None);
    }

    /// Modules of the table that a real kernel has can be loaded; required ones exist.
    #[test]
    fn real_kernels_have_the_modules_of_the_table() {
        let kernels = kernels();
        if kernels.is_empty() {
            skipped("real_kernels_have_the_modules_of_the_table", "modules of a kernel");
        }
        for directory in kernels {
            let index = Index::read(&directory, None).unwrap();
            let mut absent = Vec::new();
            for (name, modules, optional, ..) in TABLE {
                if modules.iter().any(|module| index.has(module) == ModuleState::Missing) {
                    absent.push(*name);
                    continue;
                }
                index.order_with(modules, optional).unwrap_or_else(|error| {
                    panic!("{}: {name}: {error:?}", directory.display());
                });
            }
            print_observation(&format!("{}: absent: {}", directory.display(), absent.join(" ")));
            assert!(!absent.contains(&"ext4") && !absent.contains(&"loop"), "{absent:?}");
        }
    }
}
