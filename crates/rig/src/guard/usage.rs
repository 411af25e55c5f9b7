//! Detection of the current use of a block device or a file: mounts, swap, devices on top, and
//! processes that write.
//!
//! Each check reads the tables of the kernel again; nothing is cached. Source: proc(5) for
//! `/proc/swaps`.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::{
    Number, Refusal, Roots,
    block::Block,
    mounts::{MountUse, Mounts},
    open::{Node, writer},
};
use crate::mount::unescape;

/// Relation of a device to the device below it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    Holder,
    Loop,
    /// A partition of a device that is on top of the checked device.
    Partition,
}

/// Device on top of the checked device or of one of the devices in its [`footprint`].
struct Upper {
    /// Name of the device in the [`footprint`] on which this device depends.
    base: String,
    block: Block,
    link: Link,
}

/// Checks that neither `block` nor a device that would be overwritten together with it
/// ([`footprint`]) is in use.
///
/// # Errors
/// The first use found. The checks are ordered by severity, starting with the root filesystem.
pub(super) fn check_free(block: &Block, roots: &Roots) -> Result<(), Refusal> {
    let device = block.name();
    let mounts = Mounts::read(roots)
        .map_err(Refusal::unreadable(&device, roots.proc.join("self/mountinfo")))?;
    let footprint = footprint(block, roots);
    let upper = above(&footprint, roots);
    let all: Vec<&Block> = footprint.iter().chain(upper.iter().map(|upper| &upper.block)).collect();

    let root = mounts.under_root();
    if let Some(part) = all.iter().find(|part| root.contains(&part.number)) {
        return Err(Refusal::UnderRoot { device, through: part.title() });
    }
    for part in &all {
        let through = part.title();
        match mounts.use_of(part.number) {
            Some(MountUse::Local(at)) => {
                return Err(Refusal::Mounted { device, through, at: at.display().to_string() });
            }
            Some(MountUse::Other(by)) => {
                return Err(Refusal::MountedElsewhere { device, through, by });
            }
            None => {}
        }
    }
    let swaps = swaps(roots).map_err(Refusal::unreadable(&device, roots.proc.join("swaps")))?;
    let stores = |part: &Block, swap: &Path| {
        let file = part.backing_file().map(|file| roots.resolve(Path::new(&file)));
        is_node_of(swap, part, roots) || file.is_some_and(|file| is_same_file(&file, swap))
    };
    if let Some(part) = all.iter().find(|part| swaps.iter().any(|swap| stores(part, swap))) {
        return Err(Refusal::Swap { device, through: part.name() });
    }
    if let Some(Upper { base: through, block, link }) = upper.into_iter().next() {
        return Err(match link {
            Link::Loop => Refusal::LoopOnTop { device, through, loop_device: block.name() },
            Link::Holder | Link::Partition => {
                Refusal::Held { device, through, holder: block.title() }
            }
        });
    }
    let open: Vec<_> = footprint.iter().flat_map(|part| nodes(part, roots)).collect();
    let nodes: Vec<_> = open.iter().map(|(_, node)| *node).collect();
    if let Some((index, program)) = persistent(|| writer(&nodes, roots)) {
        return Err(Refusal::OpenForWriting { device, through: open[index].0.clone(), program });
    }
    Ok(())
}

/// Devices that are overwritten together with `block`. The first one is `block` itself.
///
/// For a whole disk, its partitions are included. For a partition, its whole disk is included,
/// because a filesystem or a loop device may use the whole disk; other partitions are not included.
/// For a loop device, its backing device and all loop devices with the same backing file are
/// included, because the kernel does not claim the backing device or file.
fn footprint(block: &Block, roots: &Roots) -> Vec<Block> {
    let loops = Block::attached_loops(roots);
    let mut found: Vec<Block> = Vec::new();
    let mut todo = vec![block.clone()];
    while let Some(block) = todo.pop() {
        if found.iter().any(|known| known.number == block.number) {
            continue;
        }
        let disk = block.disk();
        let shows = disk.as_ref().unwrap_or(&block);
        let below = shows.backing_device(roots).and_then(|number| Block::find(number, roots).ok());
        let file = shows.backing_identity(roots);
        let same = |other: &&Block| file.is_some() && other.backing_identity(roots) == file;
        todo.extend(below.into_iter().chain(loops.iter().filter(same).cloned()));
        let partitions = block.partitions();
        found.push(block);
        found.extend(partitions.into_iter().chain(disk));
    }
    found
}

/// Files through which a process may write to a device, with names for messages: the device node,
/// the character devices of its disk, and the backing file of a loop device.
fn nodes(part: &Block, roots: &Roots) -> Vec<(String, Node)> {
    let generic = part.generic().into_iter().map(|(name, number)| (name, Node::Char(number)));
    let file = part.backing_identity(roots).map(|file| (part.name(), file));
    [(part.name(), Node::Block(part.number))].into_iter().chain(generic).chain(file).collect()
}

/// Description of the current use of a regular file: attached to a loop device, used as swap, or
/// open for writing in another process. `None` if the file is not in use.
///
/// # Errors
/// [`Refusal::Unreadable`] if the file or `/proc/swaps` cannot be read.
pub(super) fn user_of_file(path: &Path, roots: &Roots) -> Result<Option<String>, Refusal> {
    let subject = path.display().to_string();
    let wanted = fs::metadata(path).map_err(Refusal::unreadable(&subject, path))?;
    let same = |other: &Path| is_same_file(path, other);
    let attached = Block::attached_loops(roots);
    if let Some(block) = attached.iter().find(|block| {
        block.backing_file().is_some_and(|file| same(&roots.resolve(Path::new(&file))))
    }) {
        return Ok(Some(format!("attached to /dev/{}", block.name())));
    }
    let swaps = swaps(roots).map_err(Refusal::unreadable(&subject, roots.proc.join("swaps")))?;
    if swaps.iter().any(|swap| same(swap)) {
        return Ok(Some("swap space of this system".into()));
    }
    let node = Node::File { device: wanted.dev(), inode: wanted.ino() };
    let program = persistent(|| writer(&[node], roots));
    Ok(program.map(|(_, program)| format!("open in {program}")))
}

/// Last result of `check` if ten calls within half a second all returned a use; `None` as soon as
/// one call returns `None`.
///
/// Some programs use other devices briefly while they search for one. For example, losetup(8) opens
/// loop devices for writing and claims them until it finds a free one. Such uses are ignored.
pub(super) fn persistent<T>(mut check: impl FnMut() -> Option<T>) -> Option<T> {
    const CHECKS: u32 = 10;
    const PAUSE: Duration = Duration::from_millis(50);
    let mut found = check()?;
    for _ in 1..CHECKS {
        thread::sleep(PAUSE);
        found = check()?;
    }
    Some(found)
}

/// Devices on top of `footprint`, directly or indirectly.
fn above(footprint: &[Block], roots: &Roots) -> Vec<Upper> {
    let loops: Vec<_> = Block::attached_loops(roots)
        .into_iter()
        .filter_map(|block| Some((block.backing_device(roots)?, block)))
        .collect();
    let directly = |block: &Block| {
        let holders = block.holders().into_iter().map(|holder| (holder, Link::Holder));
        let loops = loops.iter().filter(|(backing, _)| *backing == block.number);
        holders.chain(loops.map(|(_, block)| (block.clone(), Link::Loop))).collect::<Vec<_>>()
    };
    let mut found: Vec<Upper> = Vec::new();
    let mut todo: Vec<(String, Block, Link)> = footprint
        .iter()
        .flat_map(|part| directly(part).into_iter().map(|(block, link)| (part.name(), block, link)))
        .collect();
    while let Some((base, block, link)) = todo.pop() {
        let known = footprint.iter().chain(found.iter().map(|upper| &upper.block));
        if known.into_iter().any(|known| known.number == block.number) {
            continue;
        }
        let partitions = block.partitions().into_iter().map(|part| (part, Link::Partition));
        let next = directly(&block).into_iter().chain(partitions);
        todo.extend(next.map(|(block, link)| (base.clone(), block, link)));
        found.push(Upper { base, block, link });
    }
    found
}

/// Swap files and devices. The kernel shows the same list in all namespaces.
fn swaps(roots: &Roots) -> io::Result<Vec<PathBuf>> {
    let text = fs::read_to_string(roots.proc.join("swaps"))?;
    let names = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    Ok(names.map(|name| roots.resolve(Path::new(&unescape(name)))).collect())
}

/// True if both paths lead to one file, by any of its names.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

/// True if `path` is a device node of `block`. If there is no block device at `path`, its name is
/// compared with the name of `block`.
fn is_node_of(path: &Path, block: &Block, roots: &Roots) -> bool {
    match Number::at(path) {
        Some(number) => number == block.number,
        None => path == roots.dev.join(block.name()),
    }
}
