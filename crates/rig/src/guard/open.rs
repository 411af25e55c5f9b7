//! Processes that have a device or a file open for writing.
//!
//! Sources: proc(5) for `/proc/PID/fd` and `/proc/PID/fdinfo`, statx(2).

use std::{fs, path::Path};

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, makedev, statx};

use super::{Number, Roots, mounts::processes};

/// Identity of an open file, independent of the path by which it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Block(Number),
    Char(Number),
    File { device: u64, inode: u64 },
}

impl Node {
    /// File to which a link in `/proc/PID/fd` leads. Cached attributes are used, because a network
    /// server may not respond.
    fn of_link(link: &Path) -> Option<Self> {
        let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
        let facts = statx(CWD, link, flags, StatxFlags::TYPE | StatxFlags::INO).ok()?;
        let number = Number::of(makedev(facts.stx_rdev_major, facts.stx_rdev_minor));
        match FileType::from_raw_mode(facts.stx_mode.into()) {
            FileType::BlockDevice => Some(Self::Block(number)),
            FileType::CharacterDevice => Some(Self::Char(number)),
            FileType::RegularFile => {
                let device = makedev(facts.stx_dev_major, facts.stx_dev_minor);
                Some(Self::File { device, inode: facts.stx_ino })
            }
            FileType::Directory
            | FileType::Symlink
            | FileType::Fifo
            | FileType::Socket
            | FileType::Unknown => None,
        }
    }
}

/// Index of a file in `wanted` that another process has open for writing, and a description of the
/// process; `None` if there is none. Processes that cannot be read are skipped.
pub(super) fn writer(wanted: &[Node], roots: &Roots) -> Option<(usize, String)> {
    let others = processes(roots).into_iter().filter(|(id, _)| *id != std::process::id());
    for (id, directory) in others {
        let open = fs::read_dir(directory.join("fd")).into_iter().flatten().flatten();
        for link in open.map(|entry| entry.path()) {
            let Some(node) = Node::of_link(&link) else { continue };
            let Some(index) = wanted.iter().position(|wanted| *wanted == node) else { continue };
            let fd = link.file_name().unwrap_or_default();
            if is_writable(&directory.join("fdinfo").join(fd)) {
                let name = fs::read_to_string(directory.join("comm")).unwrap_or_default();
                return Some((index, format!("{} (process {id})", name.trim())));
            }
        }
    }
    None
}

/// True if a file is open for writing, according to the `flags:` line of its fdinfo file. The flags
/// are octal; the two lowest bits are the access mode of open(2), and 0 means read-only.
fn is_writable(fdinfo: &Path) -> bool {
    let text = fs::read_to_string(fdinfo).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).is_some_and(|f| f & 3 != 0)
}
