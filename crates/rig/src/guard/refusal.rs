//! Why the guard says no, one variant a reason, each with what to do about it.

use std::{io, path::PathBuf};

use model::Bytes;
use thiserror::Error;

/// A reason to touch nothing. `device` is a kernel name such as `sda`; `through` is the device that
/// is in use, which may be `device` itself, a partition of it, or something built on top of it.
#[derive(Debug, Error)]
pub enum Refusal {
    /// The path cannot be opened or looked at.
    #[error("cannot open {}; check the path, and run as root for devices", .path.display())]
    Open {
        /// The path as given.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The path names something other than a block device.
    #[error(
        "{} is not a block device; for a file write image = instead of device =, \
         for a folder directory =", .path.display()
    )]
    NotBlockDevice {
        /// The path as given.
        path: PathBuf,
    },
    /// The path names another device, or another medium, than when it was claimed.
    #[error(
        "{} no longer names the device that was checked (it was {device}, {was}; it is {is}); \
         find out what changed it, then start again", .path.display()
    )]
    Changed {
        /// The path as given.
        path: PathBuf,
        /// Kernel name at the time of the claim.
        device: String,
        /// What identified it at the time of the claim.
        was: String,
        /// What is found now.
        is: String,
    },
    /// The size is zero.
    #[error("{device} has a size of zero; insert or attach a medium")]
    Empty {
        /// Kernel name.
        device: String,
    },
    /// The device refuses writes.
    #[error(
        "{device} is read-only; check the write-protect switch, `blockdev --setrw /dev/{device}`, \
         or attach the loop device without -r"
    )]
    ReadOnly {
        /// Kernel name.
        device: String,
    },
    /// The running system is on it; nothing permits this.
    #[error(
        "{device} holds the root filesystem of this system (through {through}) and is never \
         overwritten; use another disk, or an image file (image = \"4GiB\")"
    )]
    UnderRoot {
        /// Kernel name.
        device: String,
        /// The part of it that `/` is on.
        through: String,
    },
    /// It is mounted, itself or through a partition or a device on top of it.
    #[error("{device} is mounted (through {through}) at {at}; unmount it first: umount {at}")]
    Mounted {
        /// Kernel name.
        device: String,
        /// What is mounted.
        through: String,
        /// Where.
        at: String,
    },
    /// It is mounted, but not in this mount namespace, or as one member of many.
    #[error(
        "{device} is in use by a mounted filesystem (through {through}): {by}; \
         unmount it there first"
    )]
    MountedElsewhere {
        /// Kernel name.
        device: String,
        /// What is mounted.
        through: String,
        /// Whose mount it is.
        by: String,
    },
    /// The system swaps to it.
    #[error("{device} is in use as swap (through {through}); run swapoff /dev/{through} first")]
    Swap {
        /// Kernel name.
        device: String,
        /// What is swapped to.
        through: String,
    },
    /// A device-mapper, md or bcache device is on top of it.
    #[error(
        "{device} is part of {holder} (through {through}); take that apart first (vgchange -an, \
         cryptsetup close, mdadm --stop, dmsetup remove)"
    )]
    Held {
        /// Kernel name.
        device: String,
        /// The part of it that is held.
        through: String,
        /// The device on top, with its own name where it has one.
        holder: String,
    },
    /// A loop device is on top of it.
    #[error(
        "{device} is the backing store of {loop_device} (through {through}); \
         detach that first: losetup -d /dev/{loop_device}"
    )]
    LoopOnTop {
        /// Kernel name.
        device: String,
        /// What is attached.
        through: String,
        /// The loop device.
        loop_device: String,
    },
    /// Another program may be writing to it.
    #[error(
        "{device} is open for writing (through {through}) in {program}; end that program first"
    )]
    OpenForWriting {
        /// Kernel name.
        device: String,
        /// What is open.
        through: String,
        /// Name and number of the process.
        program: String,
    },
    /// Another process has locked its disk.
    #[error(
        "{device} is locked by {by}: another run of fslab uses the disk, or a program formats or \
         partitions it; wait until that ends (`lslocks` and `fuser -v /dev/{device}` show it)"
    )]
    Locked {
        /// Kernel name of the whole disk.
        device: String,
        /// Name and number of the process, if the kernel shows it.
        by: String,
    },
    /// The kernel does not grant exclusive use, and nothing else told why.
    #[error(
        "{device} is claimed by the kernel or by another program (a zfs pool, an external journal, \
         a bcache set, an exclusive open); find out by `lsblk /dev/{device}` and \
         `fuser -v /dev/{device}`, and release it"
    )]
    Busy {
        /// Kernel name.
        device: String,
    },
    /// There is something on it, and nobody said that it may go.
    #[error(
        "{device} is not empty and would be overwritten:\n{description}\nif all of this may be \
         lost, say so by name: --destroy '{name}'\n(a /dev path is not accepted: after a reboot it \
         may name another disk; nor is a name that several disks have)"
    )]
    Occupied {
        /// Kernel name.
        device: String,
        /// What [`ClaimedDevice::describe`](super::ClaimedDevice::describe) says of it.
        description: String,
        /// The name that permits it.
        name: String,
    },
    /// The state of the machine cannot be read, so no use can be excluded.
    #[error(
        "cannot tell whether {subject} is in use, for want of {}; \
         check that /proc, /sys and /dev are mounted, and run as root", .path.display()
    )]
    Unreadable {
        /// What was being checked.
        subject: String,
        /// What could not be read.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// An image path that is taken by a folder, a device, a pipe.
    #[error(
        "{} exists and is not a regular file; name a file for the image, \
         or write device = for a block device", .path.display()
    )]
    NotRegularFile {
        /// The path as given.
        path: PathBuf,
    },
    /// An existing file that holds data, but no filesystem: not an image, so never overwritten.
    #[error(
        "{} exists and is not a disk image (it holds data, but no known signature); \
         choose another file name, or delete it yourself", .path.display()
    )]
    NotAnImage {
        /// The path as given.
        path: PathBuf,
    },
    /// An existing image that something uses.
    #[error("the image {} is in use: {by}; release it first", .path.display())]
    ImageInUse {
        /// The path as given.
        path: PathBuf,
        /// By what.
        by: String,
    },
    /// An existing image has further names, under which another program may use it.
    #[error(
        "the image {} has {links} names (hard links), and all of them would be overwritten; \
         choose another file name, or remove the others (`find / -samefile {}`)",
        .path.display(), .path.display()
    )]
    ImageLinks {
        /// The path as given.
        path: PathBuf,
        /// Number of names.
        links: u64,
    },
    /// There is something in an existing image, and nobody said that it may go.
    #[error(
        "the image {} is not empty: it carries {found}; if that may be lost, say so: \
         --destroy '{}'", .path.display(), .path.display()
    )]
    ImageOccupied {
        /// The path as given.
        path: PathBuf,
        /// The signatures in it.
        found: String,
    },
    /// No loop device can offer this size.
    #[error("an image of {size} is not possible; give a multiple of 4KiB, greater than zero")]
    ImageSize {
        /// The size as given.
        size: Bytes,
    },
    /// The filesystem below the images is too full.
    #[error(
        "{} has {free} free, and the images need {needed}; free some space, make the images \
         smaller or choose another directory", .directory.display()
    )]
    Space {
        /// Where the images are to be made.
        directory: PathBuf,
        /// What is left there.
        free: Bytes,
        /// What is wanted, with reserve.
        needed: Bytes,
    },
    /// The images would be kept in memory, which is too small.
    #[error(
        "{} is in memory: the images need {needed} and {available} is available; \
         choose a directory on a disk", .directory.display()
    )]
    Memory {
        /// Where the images are to be made.
        directory: PathBuf,
        /// Memory that can be had without swapping.
        available: Bytes,
        /// What is wanted, with reserve.
        needed: Bytes,
    },
    /// The images would be kept in memory, of which the run may use less than they need.
    #[error(
        "{} is in memory: the images take {needed} of it, which counts against the limit of {limit} \
         (`storage.memory`), and the kernel would kill the run; choose a directory on a disk \
         (`storage.image_directory`), or do not limit the memory", .directory.display()
    )]
    MemoryLimit {
        /// Where the images are to be made.
        directory: PathBuf,
        /// What is written into them at least.
        needed: Bytes,
        /// What the run may use.
        limit: Bytes,
    },
    /// The run would be stored on what it measures.
    #[error(
        "the run's file {} is on the filesystem under test ({}), which would measure its own \
         record keeping; write it elsewhere with -o", .store_file.display(), .target.display()
    )]
    StoreOnTarget {
        /// The run's file.
        store_file: PathBuf,
        /// The mount point, or the device.
        target: PathBuf,
    },
    /// The run would be stored in what it overwrites.
    #[error(
        "{} is both the run's file and the target; write the run elsewhere with -o",
        .path.display()
    )]
    StoreIsTarget {
        /// The path as given.
        path: PathBuf,
    },
}

impl Refusal {
    /// For `map_err`: the state of the machine could not be read from `path`.
    pub(super) fn unreadable(
        subject: &str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let (subject, path) = (subject.to_owned(), path.into());
        move |source| Self::Unreadable { subject, path, source }
    }
}
