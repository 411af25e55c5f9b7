//! Table of the operations with their requirements.

use model::phase::{Item, TreeStep};

/// Operation of the suite.
#[derive(Debug)]
pub(super) struct Operation {
    /// Name in a plan and of the phase.
    pub(super) word: &'static str,
    /// Table group.
    pub(super) group: &'static str,
    /// Entries of the operation.
    pub(super) entries: Entries,
    /// Type of the entries before the operation; `None` if they do not exist.
    pub(super) item: Option<Item>,
    /// Untimed steps per entry before the operation.
    pub(super) before: &'static [TreeStep],
    /// Measured steps per entry; empty for the mix. `Write` is skipped for empty files.
    pub(super) steps: &'static [TreeStep],
    /// Untimed steps that remove each entry afterwards; empty if nothing is left or can be removed.
    pub(super) after: &'static [TreeStep],
    /// The operation does not modify the entries, so passes can be repeated.
    pub(super) repeatable: bool,
    /// Workers can share the entries.
    pub(super) shared: bool,
    /// io_uring(7) supports all steps.
    pub(super) ring: bool,
}

/// Entries of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entries {
    /// `files` files of `file_size`.
    Files,
    /// `files` entries without data.
    Bare,
    /// `files` files of `extent_size`.
    Extents,
    /// `files` empty files that get `extent_size` bytes.
    Reserved,
    /// `fsync_files` files of `file_size`.
    Durable,
    /// A directory of [`SMALL`] empty files, listed `files` times.
    Small,
    /// A directory of `large_directory_entries` empty files, listed until as many names were read.
    Large,
    /// Population that starts with `files` files of `file_size`.
    Population,
}

/// Entries of a small directory.
pub(super) const SMALL: u64 = 100;

const MADE: &str = "entry creation";
const FOUND: &str = "entry lookup";
const MOVED: &str = "entry rename and removal";
const ATTRIBUTES: &str = "attributes";
const SPACE: &str = "space";
const DURABLE: &str = "fsync";

const FILE: Option<Item> = Some(Item::File);
const UNLINK: &[TreeStep] = &[TreeStep::Unlink];

/// Operation that modifies each file once.
const fn once(word: &'static str, group: &'static str, steps: &'static [TreeStep]) -> Operation {
    Operation {
        word,
        group,
        entries: Entries::Files,
        item: FILE,
        before: &[],
        steps,
        after: UNLINK,
        repeatable: false,
        shared: false,
        ring: true,
    }
}

/// Operation that does not modify the files.
const fn read_only(
    word: &'static str,
    group: &'static str,
    steps: &'static [TreeStep],
) -> Operation {
    Operation { repeatable: true, shared: true, ring: false, ..once(word, group, steps) }
}

/// Operation that creates entries.
const fn make(word: &'static str, group: &'static str, steps: &'static [TreeStep]) -> Operation {
    Operation { item: None, ..once(word, group, steps) }
}

/// All operations, in execution order.
pub(super) const OPERATIONS: &[Operation] = {
    use TreeStep::{
        Allocate, Chmod, Chown, Close, Create, Fsync, FsyncDirectory, GetXattr, Link, List, Mkdir,
        Open, OpenRead, PunchHole, Read, Rename, RenameAcross, RenameBack, Rmdir, SetTimes,
        SetXattr, Stat, StatMissing, Symlink, Truncate, Unlink, UnlinkLink, Write,
    };
    &[
        make("create", MADE, &[Create, Write, Close]),
        Operation { ring: true, ..read_only("open", FOUND, &[OpenRead, Close]) },
        read_only("read", FOUND, &[OpenRead, Read, Close]),
        Operation { ring: true, ..read_only("stat", FOUND, &[Stat]) },
        Operation { ring: true, ..read_only("stat-missing", FOUND, &[StatMissing]) },
        Operation { entries: Entries::Small, ..read_only("readdir-small", FOUND, &[List]) },
        Operation { entries: Entries::Large, ..read_only("readdir-large", FOUND, &[List]) },
        Operation { after: &[RenameBack, Unlink], ..once("rename", MOVED, &[Rename]) },
        // No step reverses it.
        Operation { after: &[], ..once("rename-across", MOVED, &[RenameAcross]) },
        Operation { after: &[UnlinkLink, Unlink], ..once("link", MADE, &[Link]) },
        Operation { after: &[], ..once("unlink", MOVED, &[Unlink]) },
        Operation { entries: Entries::Bare, ..make("symlink", MADE, &[Symlink]) },
        Operation { entries: Entries::Bare, after: &[Rmdir], ..make("mkdir", MADE, &[Mkdir]) },
        Operation {
            entries: Entries::Bare,
            item: Some(Item::Directory),
            after: &[],
            ..once("rmdir", MOVED, &[Rmdir])
        },
        read_only("chmod", ATTRIBUTES, &[Chmod]),
        read_only("chown", ATTRIBUTES, &[Chown]),
        read_only("utimens", ATTRIBUTES, &[SetTimes]),
        Operation { ring: true, ..read_only("setxattr", ATTRIBUTES, &[SetXattr]) },
        Operation {
            before: &[SetXattr],
            ring: true,
            ..read_only("getxattr", ATTRIBUTES, &[GetXattr])
        },
        Operation {
            entries: Entries::Extents,
            shared: true,
            ring: false,
            ..once("truncate", SPACE, &[Truncate])
        },
        Operation {
            entries: Entries::Reserved,
            shared: true,
            ..once("fallocate", SPACE, &[Open, Allocate, Close])
        },
        Operation {
            entries: Entries::Extents,
            shared: true,
            ..once("punch-hole", SPACE, &[Open, PunchHole, Close])
        },
        Operation {
            entries: Entries::Durable,
            ..make("fsync-create", DURABLE, &[Create, Write, Fsync, Close])
        },
        Operation {
            entries: Entries::Durable,
            ring: false,
            ..make("fsync-directory", DURABLE, &[Create, Write, Close, FsyncDirectory])
        },
        Operation {
            entries: Entries::Population,
            after: &[],
            ring: false,
            ..once("mix", "mix", &[])
        },
    ]
};
