//! Reasons for which the guard rejects a device, an image, or a path.

use std::{io, path::PathBuf};

use model::Bytes;
use thiserror::Error;

/// Names the device that is in use, if it is not the rejected device.
fn in_use(device: &str, through: &str) -> String {
    match through == device {
        true => String::new(),
        false => format!(" (through {through})"),
    }
}

/// Reason for a rejection, with a hint in the message. `device` is the kernel name of the rejected
/// device, such as `sda`. `through` is the device that is in use: `device` itself, one of its
/// partitions, its whole disk, or a device above or below it.
#[derive(Debug, Error)]
pub enum Refusal {
    /// The path cannot be opened or read.
    #[error("cannot open {}; check the path, and run as root for devices", .path.display())]
    Open {
        /// Path as given.
        path: PathBuf,
        /// Error of the system call.
        #[source]
        source: io::Error,
    },
    /// The path is not a block device.
    #[error(
        "{} is not a block device; use image_file for a file, or directory for a \
         directory", .path.display()
    )]
    NotBlockDevice {
        /// Path as given.
        path: PathBuf,
    },
    /// The path leads to another device or another medium than at the time of the claim.
    #[error(
        "{} no longer leads to the device that was checked (was {device}, {was}; is {is}); \
         find out what changed it, and start again", .path.display()
    )]
    Changed {
        /// Path as given.
        path: PathBuf,
        /// Kernel name at the time of the claim.
        device: String,
        /// Identity at the time of the claim.
        was: String,
        /// Current identity.
        is: String,
    },
    /// The device has no medium.
    #[error("{device} has a size of zero; insert or attach a medium")]
    Empty {
        /// Kernel name.
        device: String,
    },
    /// The device is read-only.
    #[error(
        "{device} is read-only; check the write-protect switch, `blockdev --setrw /dev/{device}`, \
         or attach the loop device without -r"
    )]
    ReadOnly {
        /// Kernel name.
        device: String,
    },
    /// The root filesystem of this system is on the device. No permission overrides this.
    #[error(
        "{device} contains the root filesystem of this system{} and is never overwritten; use \
         another disk, or an image file (image_size = \"4GiB\")",
        in_use(device, through)
    )]
    UnderRoot {
        /// Kernel name.
        device: String,
        /// Device that contains `/`.
        through: String,
    },
    /// The device, a partition, or a device on top of it is mounted.
    #[error(
        "{device} is mounted{} at {at}; unmount it first: umount {at}",
        in_use(device, through)
    )]
    Mounted {
        /// Kernel name.
        device: String,
        /// Mounted device.
        through: String,
        /// Mount point.
        at: String,
    },
    /// The device is mounted in another mount namespace, or as a member of a filesystem with
    /// several devices.
    #[error(
        "{device} is in use by a mounted filesystem{}: {by}; unmount it there first",
        in_use(device, through)
    )]
    MountedElsewhere {
        /// Kernel name.
        device: String,
        /// Mounted device.
        through: String,
        /// Description of the mount, or name of the filesystem with several devices.
        by: String,
    },
    /// The device is used as swap.
    #[error(
        "{device} is in use as swap{}; run swapoff /dev/{through} first",
        in_use(device, through)
    )]
    Swap {
        /// Kernel name.
        device: String,
        /// Swap device.
        through: String,
    },
    /// A device-mapper, md, or bcache device is on top of the device.
    #[error(
        "{device} is part of {holder}{}; remove that first (vgchange -an, cryptsetup close, mdadm \
         --stop, dmsetup remove)",
        in_use(device, through)
    )]
    Held {
        /// Kernel name.
        device: String,
        /// Device below the holder.
        through: String,
        /// Device on top, followed by its device-mapper name if there is one.
        holder: String,
    },
    /// A loop device is attached to the device.
    #[error(
        "{device} is the backing store of {loop_device}{}; detach that first: losetup -d \
         /dev/{loop_device}",
        in_use(device, through)
    )]
    LoopOnTop {
        /// Kernel name.
        device: String,
        /// Device below the loop device.
        through: String,
        /// Loop device.
        loop_device: String,
    },
    /// Another process has the device open for writing.
    #[error(
        "{device} is open for writing{} in {program}; stop that program first",
        in_use(device, through)
    )]
    OpenForWriting {
        /// Kernel name.
        device: String,
        /// Open device.
        through: String,
        /// Name and ID of the process.
        program: String,
    },
    /// Another process has locked the disk of the device.
    #[error(
        "{device} is locked by {by}: another fslab run is using the disk, or a program formats or \
         partitions it; wait until it exits (see `lslocks` and `fuser -v /dev/{device}`)"
    )]
    Locked {
        /// Kernel name of the whole disk.
        device: String,
        /// Name and ID of the process, or "another process" if the kernel does not show it.
        by: String,
    },
    /// The kernel denies exclusive use, for a reason that no other check found.
    #[error(
        "{device} is claimed by the kernel or by another program (a zfs pool, an external journal, \
         a bcache set, an exclusive open); find it with `lsblk /dev/{device}` and \
         `fuser -v /dev/{device}`, and release it"
    )]
    Busy {
        /// Kernel name.
        device: String,
    },
    /// The device contains data, and overwriting it was not allowed.
    #[error(
        "{device} contains data that would be overwritten:
{description}
to allow this, identify \
         the device: --overwrite-device '{name}'
(a /dev path is not accepted, because it may \
         be another disk after a reboot; a name that several disks share is not accepted either)"
    )]
    Occupied {
        /// Kernel name.
        device: String,
        /// Result of [`ClaimedDevice::describe`](super::ClaimedDevice::describe).
        description: String,
        /// Name that allows overwriting the device if given with `--overwrite-device`.
        name: String,
    },
    /// The state of the machine cannot be read, so the device or file may be in use.
    #[error(
        "cannot check whether {subject} is in use, because {} cannot be read; \
         check that /proc, /sys, and /dev are mounted, and run as root", .path.display()
    )]
    Unreadable {
        /// Checked device or file.
        subject: String,
        /// Unreadable file.
        path: PathBuf,
        /// Error of the system call.
        #[source]
        source: io::Error,
    },
    /// The image path leads to a directory, a device, a pipe, or a dangling symbolic link.
    #[error(
        "{} exists and is not a regular file; use another name for the image, \
         or device = for a block device", .path.display()
    )]
    NotRegularFile {
        /// Path as given.
        path: PathBuf,
    },
    /// The existing file contains data without a known signature. Such a file is not treated as an
    /// image and is never overwritten.
    #[error(
        "{} exists and is not a disk image (it contains data, but no known signature); \
         use another file name, or delete it manually", .path.display()
    )]
    NotAnImage {
        /// Path as given.
        path: PathBuf,
    },
    /// The existing image is in use.
    #[error("the image {} is in use: {by}; release it first", .path.display())]
    ImageInUse {
        /// Path as given.
        path: PathBuf,
        /// Description of the use.
        by: String,
    },
    /// The existing image has several hard links. Another program may use the image by another
    /// name.
    #[error(
        "the image {} has {links} names (hard links), and all of them would be overwritten; \
         use another file name, or remove the others (`find / -samefile {}`)",
        .path.display(), .path.display()
    )]
    ImageLinks {
        /// Path as given.
        path: PathBuf,
        /// Number of hard links.
        links: u64,
    },
    /// The existing image contains data, and overwriting it was not allowed.
    #[error(
        "the image {} contains data: {found}; to allow overwriting it: \
         --overwrite-device '{}'", .path.display(), .path.display()
    )]
    ImageOccupied {
        /// Path as given.
        path: PathBuf,
        /// Signatures found.
        found: String,
    },
    /// The image size is zero or not a multiple of 4 KiB.
    #[error("an image of {size} is not supported; use a multiple of 4KiB, greater than zero")]
    ImageSize {
        /// Size as given.
        size: Bytes,
    },
    /// The filesystem that contains the images has too little free space.
    #[error(
        "{} has {} free, but the images need {}; free some space, use smaller images, or use \
         another directory", .directory.display(), .free.rough(), .needed.rough()
    )]
    Space {
        /// Directory for the images.
        directory: PathBuf,
        /// Free space.
        free: Bytes,
        /// Required space, including the reserve.
        needed: Bytes,
    },
    /// The images would be kept in memory, and too little memory is available.
    #[error(
        "{} is in memory: the images need {}, but {} is available; use a directory on a disk",
        .directory.display(), .needed.rough(), .available.rough()
    )]
    Memory {
        /// Directory for the images.
        directory: PathBuf,
        /// Memory available without swapping.
        available: Bytes,
        /// Required memory, including the reserve.
        needed: Bytes,
    },
    /// The images would be kept in memory, and the memory limit of the run is too low for them.
    #[error(
        "{} is in memory: the images need {}, which counts towards the limit of {} \
         (`storage.memory_limit`), and the kernel would kill the run; use a directory on a disk \
         (`storage.image_directory`), or remove the limit",
        .directory.display(), .needed.rough(), .limit.rough()
    )]
    MemoryLimit {
        /// Directory for the images.
        directory: PathBuf,
        /// Estimate of the data written to the images before any workload.
        needed: Bytes,
        /// Memory limit of the run.
        limit: Bytes,
    },
    /// The run file would be on the filesystem under test.
    #[error(
        "the run file {} is on the filesystem under test ({}), so writing it would affect the \
         results; use another path with -o", .store_file.display(), .target.display()
    )]
    StoreOnTarget {
        /// Run file.
        store_file: PathBuf,
        /// Mount point or device.
        target: PathBuf,
    },
    /// The run file is a device or image that the run overwrites.
    #[error(
        "{} is both the run file and the target; use another run file with -o",
        .path.display()
    )]
    StoreIsTarget {
        /// Path as given.
        path: PathBuf,
    },
}

impl Refusal {
    /// Returns a function for `map_err` that converts the error of reading `path`.
    pub(super) fn unreadable(
        subject: &str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let (subject, path) = (subject.to_owned(), path.into());
        move |source| Self::Unreadable { subject, path, source }
    }
}
