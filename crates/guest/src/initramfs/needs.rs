//! What a filesystem, a layer, or a device needs in a guest beyond the program that makes it.

/// What is to be taken along for one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Modules, by name or alias, without which it does not work.
    pub modules: &'static [&'static str],
    /// Modules that are used if the kernel has them as such: what some versions have built in, or
    /// no longer need.
    pub if_there: &'static [&'static str],
    /// Programs of the host that it starts by itself, or that are started to mount it, if there.
    pub programs: &'static [&'static str],
    /// Files of the host that its programs read, if there.
    pub files: &'static [&'static str],
}

/// A row: its name, then as in [`Needs`].
type Row = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
);

/// mke2fs.conf(5) decides which features a new filesystem has.
const MKE2FS: &[&str] = &["/etc/mke2fs.conf"];
/// How names are stored, by default: `CONFIG_NLS_DEFAULT`, `CONFIG_FAT_DEFAULT_CODEPAGE`, and
/// `CONFIG_FAT_DEFAULT_IOCHARSET` of distributions. The kernel asks for them at mount.
const FAT_NAMES: &[&str] = &["nls_cp437", "nls_ascii", "nls_iso8859-1", "nls_utf8"];
/// The one of these that is asked for where names are kept in Unicode.
const NAMES: &[&str] = &["nls_utf8"];

/// What each needs. Names of kernel filesystems are those of `/proc/filesystems`, those of layers
/// are device mapper's targets with `dm-` before them, and those of devices are their drivers.
#[rustfmt::skip]
const TABLE: &[Row] = &[
    // filesystem, modules, modules if there, programs, files
    ("bcachefs",   &["bcachefs"],   &[],                       &[], &[]),
    ("btrfs",      &["btrfs"],      &["crypto-crc32c"],        &[], &[]),
    ("erofs",      &["erofs"],      &[],                       &[], &[]),
    ("exfat",      &["exfat"],      NAMES,                     &[], &[]),
    // Where there is no driver ext2, ext4 serves it and has its alias (`fs/ext4/super.c`).
    ("ext2",       &["fs-ext2"],    &[],                       &[], MKE2FS),
    ("ext3",       &["fs-ext3"],    &["crypto-crc32c"],        &[], MKE2FS),
    ("ext4",       &["ext4"],       &["crypto-crc32c"],        &[], MKE2FS),
    // It asks for the checksum at mount (`f2fs_fill_super`), up to Linux 6.13.
    ("f2fs",       &["f2fs"],       &["crypto-crc32"],         &[], &[]),
    ("fuse",       &["fuse"],       &[],                       &[], &[]),
    ("gfs2",       &["gfs2"],       &[],                       &[], &[]),
    ("hfsplus",    &["hfsplus"],    NAMES,                     &[], &[]),
    ("jfs",        &["jfs"],        &[],                       &[], &[]),
    ("minix",      &["minix"],      &[],                       &[], &[]),
    ("msdos",      &["msdos"],      FAT_NAMES,                 &[], &[]),
    // mount(2) starts no cleaner; mount.nilfs2(8) does, and looks for it in /sbin.
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
    // layer, of the device mapper; the first are part of its core
    ("dm-error",   &["dm_mod"],     &[],                       &[], &[]),
    ("dm-linear",  &["dm_mod"],     &[],                       &[], &[]),
    ("dm-striped", &["dm_mod"],     &[],                       &[], &[]),
    ("dm-cache",   &["dm_cache"],   &["dm_cache_smq"],         &[], &[]),
    // `aes-xts-plain64` is cryptsetup(8)'s own choice.
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

/// What a filesystem needs by the kernel's name for it (`xfs`), a layer by that of its target
/// (`dm-delay`), or a device by that of its driver (`null_blk`). `None` for one that is not in the
/// table: of a filesystem the kernel then asks for the alias `fs-NAME`.
pub fn needs(name: &str) -> Option<Needs> {
    let row = TABLE.iter().find(|row| row.0 == name)?;
    let (_, modules, if_there, programs, files) = *row;
    Some(Needs { modules, if_there, programs, files })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::tests::{kernels, say};
    use crate::modules::{Index, Presence};
    use crate::support::skipped;

    #[test]
    fn names_are_in_the_table_once_and_files_are_absolute() {
        for (at, row) in TABLE.iter().enumerate() {
            assert!(TABLE[..at].iter().all(|other| other.0 != row.0), "{} twice", row.0);
            assert!(row.4.iter().all(|file| file.starts_with('/')), "{}", row.0);
        }
        assert_eq!(needs("nilfs2").unwrap().files, ["/etc/nilfs_cleanerd.conf"]);
        assert_eq!(needs("vfat").unwrap().modules, ["vfat"]);
        assert_eq!(needs("reiserfs9"), None);
    }

    /// What a real kernel has of the table can be loaded; what one of them must have is there.
    #[test]
    fn real_kernels_have_what_the_table_asks_for() {
        let kernels = kernels();
        if kernels.is_empty() {
            skipped("real_kernels_have_what_the_table_asks_for", "the modules of a kernel");
        }
        for folder in kernels {
            let index = Index::read(&folder, None).unwrap();
            let mut absent = Vec::new();
            for (name, modules, if_there, ..) in TABLE {
                if modules.iter().any(|module| index.has(module) == Presence::Absent) {
                    absent.push(*name);
                    continue;
                }
                index.order_with(modules, if_there).unwrap_or_else(|error| {
                    panic!("{}: {name}: {error:?}", folder.display());
                });
            }
            say(&format!("{}: absent: {}", folder.display(), absent.join(" ")));
            assert!(!absent.contains(&"ext4") && !absent.contains(&"loop"), "{absent:?}");
        }
    }
}
