//! The operations: what each needs, does, and leaves.

use model::phase::{Item, TreeStep};

/// One operation of the suite.
#[derive(Debug)]
pub(super) struct Operation {
    /// Its word in a plan and the name of its phase.
    pub(super) word: &'static str,
    /// The heading of its table.
    pub(super) group: &'static str,
    /// The entries it works on.
    pub(super) entries: Entries,
    /// What these are before it begins; `None`: they are not there.
    pub(super) item: Option<Item>,
    /// What is done to each of them beforehand, untimed.
    pub(super) before: &'static [TreeStep],
    /// What is done to each and measured. Empty: operations are drawn. Files without data are not
    /// written.
    pub(super) steps: &'static [TreeStep],
    /// What removes each afterwards, untimed; empty where nothing is left, or nothing can.
    pub(super) after: &'static [TreeStep],
    /// It leaves things as they are, so that workers can go over their entries again, and several
    /// workers over the same.
    pub(super) again: bool,
    /// Workers can do it to the same entries.
    pub(super) shared: bool,
    /// There are calls of io_uring(7) for all its steps.
    pub(super) ring: bool,
}

/// Which entries an operation works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entries {
    /// `files` files of `size`.
    Files,
    /// `files` entries that have no data.
    Bare,
    /// `files` files of `extent`.
    Extents,
    /// `files` empty files that get an `extent`.
    Reserved,
    /// `durable_files` files of `size`.
    Durable,
    /// A directory of [`SMALL`] empty files, listed `files` times.
    Small,
    /// One of `large_directory` empty files, listed as often as makes as many names.
    Large,
    /// A population that begins with `files` files of `size`.
    Population,
}

/// Entries of a small directory.
pub(super) const SMALL: u64 = 100;

const MADE: &str = "entries made";
const FOUND: &str = "entries found";
const MOVED: &str = "entries moved and removed";
const ATTRIBUTES: &str = "attributes";
const SPACE: &str = "space";
const DURABLE: &str = "made durable";

const FILE: Option<Item> = Some(Item::File);
const UNLINK: &[TreeStep] = &[TreeStep::Unlink];

/// Something done once to each file, by a call of its own.
const fn once(word: &'static str, group: &'static str, steps: &'static [TreeStep]) -> Operation {
    Operation {
        word,
        group,
        entries: Entries::Files,
        item: FILE,
        before: &[],
        steps,
        after: UNLINK,
        again: false,
        shared: false,
        ring: true,
    }
}

/// Something that leaves files as they are.
const fn look(word: &'static str, group: &'static str, steps: &'static [TreeStep]) -> Operation {
    Operation { again: true, shared: true, ring: false, ..once(word, group, steps) }
}

/// Something that makes entries.
const fn make(word: &'static str, group: &'static str, steps: &'static [TreeStep]) -> Operation {
    Operation { item: None, ..once(word, group, steps) }
}

/// All of them, in the order they run.
pub(super) const OPERATIONS: &[Operation] = {
    use TreeStep::{
        Allocate, Chmod, Chown, Close, Create, Fsync, FsyncDirectory, GetXattr, Link, List, Mkdir,
        Open, OpenRead, PunchHole, Read, Rename, RenameAcross, RenameBack, Rmdir, SetTimes,
        SetXattr, Stat, StatMissing, Symlink, Truncate, Unlink, UnlinkLink, Write,
    };
    &[
        make("create", MADE, &[Create, Write, Close]),
        Operation { ring: true, ..look("open", FOUND, &[OpenRead, Close]) },
        look("read", FOUND, &[OpenRead, Read, Close]),
        Operation { ring: true, ..look("stat", FOUND, &[Stat]) },
        Operation { ring: true, ..look("stat-missing", FOUND, &[StatMissing]) },
        Operation { entries: Entries::Small, ..look("readdir-small", FOUND, &[List]) },
        Operation { entries: Entries::Large, ..look("readdir-large", FOUND, &[List]) },
        Operation { after: &[RenameBack, Unlink], ..once("rename", MOVED, &[Rename]) },
        // No step leads back from there.
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
        look("chmod", ATTRIBUTES, &[Chmod]),
        look("chown", ATTRIBUTES, &[Chown]),
        look("utimens", ATTRIBUTES, &[SetTimes]),
        Operation { ring: true, ..look("setxattr", ATTRIBUTES, &[SetXattr]) },
        Operation { before: &[SetXattr], ring: true, ..look("getxattr", ATTRIBUTES, &[GetXattr]) },
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
