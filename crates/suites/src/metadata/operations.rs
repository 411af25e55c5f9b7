//! Table of the operations of the suite and their requirements.

use model::phase::{Item, TreeStep};

/// Operation of the suite.
#[derive(Debug)]
pub(super) struct Operation {
    /// Name in a plan, and name of the phase.
    pub(super) word: &'static str,
    /// Table group.
    pub(super) group: &'static str,
    /// Entries on which the operation is performed.
    pub(super) entries: Entries,
    /// Type of the entries before the operation; `None` if the operation creates them.
    pub(super) item: Option<Item>,
    /// Untimed steps per entry before the operation.
    pub(super) before: &'static [TreeStep],
    /// Measured steps per entry; empty for the mix. `Write` is omitted if files are empty.
    pub(super) steps: &'static [TreeStep],
    /// Untimed steps that remove each entry afterwards. Empty if no entry is left, or if no step
    /// can remove it.
    pub(super) after: &'static [TreeStep],
    /// True if the operation can be repeated on the same entries, so that several passes are
    /// possible.
    pub(super) repeatable: bool,
    /// True if workers can share the entries.
    pub(super) shared: bool,
    /// True if io_uring(7) supports all steps.
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
    /// `files` empty files, each with `extent_size` allocated bytes.
    Reserved,
    /// `fsync_files` files of `file_size`.
    Durable,
    /// Directory of [`SMALL`] empty files, which is listed `files` times.
    Small,
    /// Directory of `large_directory_entries` empty files, which is listed until as many names were
    /// read as from the small directory.
    Large,
    /// Population that starts with `files` files of `file_size`.
    Population,
}

/// Operation that lists the directories and performs stat(2) on each name, as find(1) with a
/// condition on times or sizes does.
pub(super) const FIND: &str = "find";

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

/// Operation that can be repeated on the same files: it modifies at most their attributes.
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
        read_only(FIND, FOUND, &[Stat]),
        Operation { after: &[RenameBack, Unlink], ..once("rename", MOVED, &[Rename]) },
        // No step moves the entries back, so they cannot be removed.
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
