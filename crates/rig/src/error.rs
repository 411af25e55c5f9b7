//! Errors of creating, mounting, and removing a filesystem.

use std::{io, path::PathBuf};

use model::{Bytes, FillLevel};
use thiserror::Error;

use crate::{catalog::CatalogError, guard::Refusal, mount::MountRefusal};

/// Change that was not undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotUndone {
    /// Description of the change.
    pub what: String,
    /// Reason, followed by a hint if the user has to do something.
    pub why: String,
}

/// Mismatch between the number of devices of the storage and the number that an entry of
/// `filesystem` in the plan requires.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{why}; {hint}")]
pub struct DeviceMismatch {
    /// Requirement that is not met.
    pub why: String,
    /// Hint.
    pub hint: String,
}

impl DeviceMismatch {
    /// Mismatch with this requirement and hint.
    pub(crate) fn new(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { why: why.into(), hint: hint.into() }
    }
}

/// Failed operation of the rig. Changes made before the failure are undone.
#[derive(Debug, Error)]
pub enum RigError {
    /// The guard rejected a device, an image, or the path of the run file.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The filesystem is not in the catalog, or the catalog cannot be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// No state directory can be determined.
    #[error(
        "no directory for the undo journal; set HOME or XDG_STATE_HOME, or use --state-directory"
    )]
    NoHome,
    /// Another user could modify or replace the state directory.
    #[error(
        "the state directory {path} is not secure: {why}; use another one with --state-directory \
         or FSLAB_STATE, or change its owner and permissions"
    )]
    State {
        /// Directory.
        path: PathBuf,
        /// Cause.
        why: String,
    },
    /// The run ID is not valid as part of a file name.
    #[error("invalid run ID `{id}`; use lower-case letters, digits, and dashes")]
    RunId {
        /// ID as given.
        id: String,
    },
    /// The undo journal cannot be written.
    #[error(
        "cannot write the undo journal {path}; nothing is changed without it; make it writable"
    )]
    Journal {
        /// Journal, or the directory of journals.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The operation requires root.
    #[error("{what} requires root; run as root, or measure a directory that you own")]
    NotRoot {
        /// Requested operation.
        what: &'static str,
    },
    /// A directory cannot be created or found.
    #[error("cannot use the directory {path}; use an existing writable directory")]
    Directory {
        /// Directory.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The image file cannot be created or reset.
    #[error("cannot create the image file {path}; use another `image_directory`")]
    Image {
        /// Image file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The image file cannot be attached to a loop device.
    #[error("cannot attach {path} to a loop device; load the driver (modprobe loop)")]
    Loop {
        /// Image file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The loop device of an image has been detached, or attached to another file.
    #[error(
        "{device} is no longer attached to the image {image}, so it is not formatted; find out \
         which process detached it, and start again"
    )]
    Detached {
        /// Loop device.
        device: PathBuf,
        /// Image.
        image: PathBuf,
    },
    /// The contents of the device cannot be removed.
    #[error("cannot discard or overwrite {device}; stop the processes that use it")]
    Erase {
        /// Device.
        device: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A device is listed twice, or together with one of its partitions.
    #[error("{device} is listed twice, or is part of another listed device; list each device once")]
    DuplicateDevice {
        /// Device.
        device: PathBuf,
    },
    /// A trial names a level that the axis `device` does not have.
    #[error("the storage has no level `{name}`; use the levels of `axes.device`")]
    UnknownLevel {
        /// Name of the level; empty if the trial names none.
        name: String,
    },
    /// The axis `device` has no level.
    #[error("`axes.device` has no entry; add a device or an image")]
    NoLevel,
    /// The storage is too small for the filesystem.
    #[error(
        "{filesystem} requires at least {min}, {device} has {}; use larger storage", .size.rough()
    )]
    TooSmall {
        /// Filesystem.
        filesystem: String,
        /// Device or image.
        device: PathBuf,
        /// Size of the device.
        size: Bytes,
        /// Smallest size that the filesystem supports, according to the catalog.
        min: Bytes,
    },
    /// The filesystem does not support this kind of storage.
    #[error("{filesystem} cannot be created on {storage}; {hint}")]
    Storage {
        /// Filesystem.
        filesystem: String,
        /// Description of the storage.
        storage: String,
        /// Change of the plan that resolves the problem.
        hint: &'static str,
    },
    /// The filesystem entry of the plan requires another number of devices than the storage has.
    #[error(transparent)]
    DeviceMismatch(#[from] DeviceMismatch),
    /// A device layer cannot be created.
    #[error("cannot create the layer {layer}: {why}; {hint}")]
    Layer {
        /// Description of the layer.
        layer: String,
        /// Cause.
        why: String,
        /// Hint.
        hint: &'static str,
    },
    /// An earlier instance of this rig still exists or could not be removed.
    #[error(
        "the storage is in use by an earlier filesystem instance; finish it, or find out why it \
         cannot be unmounted"
    )]
    Busy,
    /// A program cannot be started.
    #[error("cannot start {program}; install it (`fslab list filesystems` shows the package)")]
    Program {
        /// Program.
        program: String,
        /// Cause.
        source: io::Error,
    },
    /// mkfs failed.
    #[error(
        "`{command}`: {verdict}; run the command manually, or change `mkfs_options` in the plan"
    )]
    Mkfs {
        /// Command line.
        command: String,
        /// Exit status and last output.
        verdict: String,
    },
    /// A program of the plan's `setup` failed.
    #[error("`{command}`: {verdict}; {hint}")]
    Setup {
        /// Command line.
        command: String,
        /// Exit status and last output.
        verdict: String,
        /// Hint.
        hint: &'static str,
    },
    /// A step of the plan's `setup` that does not run a program failed.
    #[error("cannot {what}: {why}; change `setup` in the plan, or use larger storage")]
    Tree {
        /// Description of the step.
        what: String,
        /// Cause.
        why: String,
    },
    /// The filesystem cannot be mounted.
    #[error("cannot mount: `{command}`; see the kernel log, or change `mount_options` in the plan")]
    Mount {
        /// Equivalent mount(8) command.
        command: String,
        /// The kernel's message.
        source: MountRefusal,
    },
    /// The mount command of a plan failed, or did not mount the filesystem that the plan names. The
    /// mounts that it made are undone.
    #[error("`{command}`: {why}; run the command manually, or correct `mount_command` in the plan")]
    MountCommand {
        /// Command line.
        command: String,
        /// Cause.
        why: String,
    },
    /// The unmount command of a plan failed, or did not unmount the filesystem.
    #[error("`{command}`: {why}; stop the processes that use it, or correct `umount_command`")]
    UmountCommand {
        /// Command line.
        command: String,
        /// Cause.
        why: String,
    },
    /// The mounted filesystem is of another type than requested.
    #[error(
        "{filesystem} has magic {wanted:#x}, but statfs of {target} returned {found:#x}; \
             correct `fstype` or `magic` in the catalog"
    )]
    Magic {
        /// Filesystem.
        filesystem: String,
        /// Mount point.
        target: PathBuf,
        /// Magic number in the catalog.
        wanted: u64,
        /// Magic number returned by `statfs(2)`.
        found: u64,
    },
    /// The filesystem cannot be filled to the level of the plan.
    #[error(
        "cannot fill {directory} to {wanted}: it reached {reached}; lower `fill_percent`, or use \
         larger storage"
    )]
    Fill {
        /// Mount point.
        directory: PathBuf,
        /// Fill level of the plan.
        wanted: FillLevel,
        /// Fill level reached.
        reached: String,
        /// Cause.
        source: io::Error,
    },
    /// The external directory of the plan shares a filesystem or a disk with the storage under
    /// test.
    #[error(
        "cannot use {path} as the external directory: {why}; set `external_directory` to another \
         path"
    )]
    ExternalDirectory {
        /// Directory.
        path: PathBuf,
        /// Cause.
        why: String,
    },
    /// The filesystem cannot be unmounted.
    #[error("cannot unmount {target}; `fuser -vm {target}` lists the processes that use it")]
    Unmount {
        /// Mount point.
        target: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The filesystem was unmounted to drop the caches, and the second mount failed.
    #[error("nothing is mounted on {target} anymore; finish the trial")]
    NotMounted {
        /// Mount point.
        target: PathBuf,
    },
    /// The filesystem cannot be read.
    #[error("cannot read the filesystem at {path}; see the kernel log")]
    Unreadable {
        /// Mount point or directory.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// Data cannot be written back or dropped from memory.
    #[error("cannot write back or drop the caches of {path}; see the kernel log")]
    Caches {
        /// Filesystem, device, or kernel file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A change of the machine cannot be undone.
    #[error("cannot undo: {}: {}", .0.what, .0.why)]
    Undo(NotUndone),
}
