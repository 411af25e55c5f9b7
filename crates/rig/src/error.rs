//! What can fail between a plan and a mounted filesystem.

use std::{io, path::PathBuf};

use model::{Bytes, Fullness};
use thiserror::Error;

use crate::{
    catalogue::CatalogueError, guard::Refusal, layers::Unfit, mount::MountRefusal, undo::Stuck,
};

/// An operation of the rig that failed. What was changed before it is undone.
#[derive(Debug, Error)]
pub enum RigError {
    /// The guard refused a device, an image or the place of the run's file.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The catalogue has no such filesystem, or cannot be read.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// There is no place for the state directory.
    #[error("no place for the undo journal; set HOME or XDG_STATE_HOME, or name a state directory")]
    NoHome,
    /// Another user could change or replace the state directory.
    #[error(
        "the state directory {path} is not safe: {why}; use another one with --state-directory or \
         FSLAB_STATE, or change its owner and permissions"
    )]
    State {
        /// The directory.
        path: PathBuf,
        /// Who could change it.
        why: String,
    },
    /// The id of a run is not fit to be part of a file name.
    #[error("`{id}` is no id for a run; use lower-case letters, digits and dashes")]
    RunId {
        /// The id as given.
        id: String,
    },
    /// The undo journal cannot be kept.
    #[error(
        "cannot keep the undo journal {path}, without which nothing is changed; make it writable"
    )]
    Journal {
        /// The journal, or the folder of journals.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Only root may do this.
    #[error("{what} needs root; run as root, or measure a directory of yours instead")]
    NotRoot {
        /// What was asked for.
        what: &'static str,
    },
    /// A directory cannot be made or found.
    #[error("cannot use the directory {path}; name one that exists and that you may write to")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The image file cannot be made or made anew.
    #[error("cannot make the image file {path}; name another directory for images")]
    Image {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The image file cannot become a block device.
    #[error("cannot attach {path} to a loop device; see that the kernel has any (modprobe loop)")]
    Loop {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The loop device of an image shows another file by now, or none.
    #[error(
        "{device} no longer shows the image {image}, so nothing is made on it; see who detached \
         it, then start again"
    )]
    Detached {
        /// The loop device.
        device: PathBuf,
        /// The image.
        image: PathBuf,
    },
    /// The device cannot be emptied.
    #[error("cannot empty {device}; see that nothing uses it")]
    Erase {
        /// The device.
        device: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The same device is named twice, or a disk and a partition of it.
    #[error("{device} is named twice, or is part of another one; name each device once")]
    Twice {
        /// The device.
        device: PathBuf,
    },
    /// The storage is too small for the filesystem.
    #[error("{filesystem} needs at least {min}, {device} has {size}; make the storage larger")]
    TooSmall {
        /// The filesystem.
        filesystem: String,
        /// The device or image.
        device: PathBuf,
        /// Its size.
        size: Bytes,
        /// What mkfs accepts.
        min: Bytes,
    },
    /// The filesystem does not fit the kind of storage.
    #[error("{filesystem} cannot be made on {storage}; {cure}")]
    Storage {
        /// The filesystem.
        filesystem: String,
        /// The storage in words.
        storage: String,
        /// What would fit.
        cure: &'static str,
    },
    /// The level wants other devices than there are.
    #[error(transparent)]
    Footing(#[from] Unfit),
    /// What stands between devices and filesystem cannot be built.
    #[error("cannot build the layer {layer}: {why}; {cure}")]
    Layer {
        /// The layer, in words.
        layer: String,
        /// Why not.
        why: String,
        /// What to do.
        cure: &'static str,
    },
    /// An earlier instance is still mounted.
    #[error("the storage holds an earlier instance; finish it, or see why it does not come off")]
    Busy,
    /// A program cannot be started.
    #[error("cannot start {program}; install it (`fslab list filesystems` names the package)")]
    Program {
        /// The program.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// The filesystem could not be made.
    #[error("`{command}`: {verdict}; try the command by hand, or change `mkfs` in the plan")]
    Mkfs {
        /// The command.
        command: String,
        /// Its exit status and last words.
        verdict: String,
    },
    /// A program of the plan's `setup` failed.
    #[error("`{command}`: {verdict}; {cure}")]
    Setup {
        /// The command.
        command: String,
        /// Its exit status and last words.
        verdict: String,
        /// What to do.
        cure: &'static str,
    },
    /// A step of the plan's `setup` that is no program failed.
    #[error("cannot {what}: {why}; change `setup` in the plan, or make the storage larger")]
    Tree {
        /// The step, in words.
        what: String,
        /// Why not.
        why: String,
    },
    /// The filesystem could not be mounted.
    #[error("cannot mount: `{command}`; see the kernel log, or change `mount` in the plan")]
    Mount {
        /// The same as mount(8) would be told.
        command: String,
        /// The kernel's answer.
        source: MountRefusal,
    },
    /// Another filesystem than asked for answered the mount.
    #[error(
        "{filesystem} should have magic {wanted:#x}, but {target} says {found:#x}; \
             correct `fstype` or `magic` in the catalogue"
    )]
    Magic {
        /// The filesystem.
        filesystem: String,
        /// The mount point.
        target: PathBuf,
        /// As in the catalogue.
        wanted: u64,
        /// As `statfs(2)` says.
        found: u64,
    },
    /// The filesystem could not be filled up as the plan wants it.
    #[error(
        "cannot fill {directory} to {wanted}: it came to {reached}; ask for less, or make the \
         storage larger"
    )]
    Fill {
        /// The mount point.
        directory: PathBuf,
        /// As in the plan.
        wanted: Fullness,
        /// How far it came, in words.
        reached: String,
        /// Why not further.
        source: io::Error,
    },
    /// The directory on another filesystem is none, or not on another one.
    #[error(
        "cannot use {path} as the directory elsewhere: {why}; set `elsewhere` to another place"
    )]
    Elsewhere {
        /// The directory.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The filesystem does not come off.
    #[error("cannot unmount {target}; `fuser -vm {target}` tells who uses it")]
    Unmount {
        /// The mount point.
        target: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The filesystem was unmounted to empty the caches, and could not be mounted again.
    #[error("nothing is mounted on {target} any more; finish the trial")]
    NotMounted {
        /// The mount point.
        target: PathBuf,
    },
    /// The filesystem does not answer.
    #[error("cannot ask the filesystem at {path}; see the kernel log")]
    Ask {
        /// The mount point or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Data cannot be written back or dropped from memory.
    #[error("cannot write back or drop what memory holds of {path}; see the kernel log")]
    Caches {
        /// Filesystem, device or kernel file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A change of the machine stays.
    #[error("cannot undo: {}: {}", .0.what, .0.why)]
    Undo(Stuck),
}
