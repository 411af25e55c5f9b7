//! Whether anything uses a block device or a file now: a mount, swap, a device on top, a program.
//!
//! Each check reads the kernel's tables again and keeps nothing. Source: proc(5) for `/proc/swaps`.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::{
    Refusal, Roots,
    block::{Block, Number},
    mounts::{Mounts, Place, unescape},
    open::{Node, writer},
};

/// How a device is on top of another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    Holder,
    Loop,
    /// A partition of a device that is on top.
    Partition,
}

/// A device on top of the one that is checked.
struct Upper {
    /// The part of the checked device that it stands on.
    base: String,
    block: Block,
    link: Link,
}

/// Makes sure that nothing uses `block`.
///
/// All that would be overwritten with it counts ([`footprint`]).
///
/// # Errors
/// The first use that is found, the gravest first.
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
        match mounts.place_of(part.number) {
            Some(Place::Here(at)) => {
                return Err(Refusal::Mounted { device, through, at: at.display().to_string() });
            }
            Some(Place::Elsewhere(by)) => {
                return Err(Refusal::MountedElsewhere { device, through, by });
            }
            None => {}
        }
    }
    let swaps = swaps(roots).map_err(Refusal::unreadable(&device, roots.proc.join("swaps")))?;
    if let Some(part) = all.iter().find(|part| swaps.iter().any(|swap| is(swap, part, roots))) {
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
    if let Some((index, program)) = lasting(|| writer(&nodes, roots)) {
        return Err(Refusal::OpenForWriting { device, through: open[index].0.clone(), program });
    }
    Ok(())
}

/// Devices that are overwritten together with `block`, which is the first of them.
///
/// A whole disk has its partitions, and a partition has its disk as a whole (a filesystem or a loop
/// device over all of it), but not the other partitions. A loop device has the device or file that
/// it shows, with all other loop devices that show the same: the kernel claims none of them for it.
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

/// All by which a program may write to a device, with its name: the device, the character devices
/// that reach its disk, and the file of a loop device.
fn nodes(part: &Block, roots: &Roots) -> Vec<(String, Node)> {
    let generic = part.generic().into_iter().map(|(name, number)| (name, Node::Char(number)));
    let file = part.backing_identity(roots).map(|file| (part.name(), file));
    [(part.name(), Node::Block(part.number))].into_iter().chain(generic).chain(file).collect()
}

/// What uses a regular file as storage, in words; `None` if nothing does.
///
/// # Errors
/// When the kernel's tables cannot be read.
pub(super) fn user_of_file(path: &Path, roots: &Roots) -> Result<Option<String>, Refusal> {
    let subject = path.display().to_string();
    let wanted = fs::metadata(path).map_err(Refusal::unreadable(&subject, path))?;
    let same = |other: &Path| {
        fs::metadata(other)
            .is_ok_and(|other| other.dev() == wanted.dev() && other.ino() == wanted.ino())
    };
    let attached = Block::attached_loops(roots);
    if let Some(block) = attached.iter().find(|block| {
        block.backing_file().is_some_and(|file| same(&roots.resolve(Path::new(&file))))
    }) {
        return Ok(Some(format!("attached to /dev/{}", block.name())));
    }
    let swaps = swaps(roots).map_err(Refusal::unreadable(&subject, roots.proc.join("swaps")))?;
    if swaps.iter().any(|swap| same(swap)) {
        return Ok(Some("swap of this system".into()));
    }
    let node = Node::File { device: wanted.dev(), inode: wanted.ino() };
    let program = lasting(|| writer(&[node], roots));
    Ok(program.map(|(_, program)| format!("open in {program}")))
}

/// What `look` finds, unless it passes by itself.
///
/// Programs that search for a device open others for a moment: losetup(8) tries loop devices for
/// writing and claims them until it finds a free one. What is found ten times in half a second
/// stays.
pub(super) fn lasting<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    const LOOKS: u32 = 10;
    const PAUSE: Duration = Duration::from_millis(50);
    let mut found = look()?;
    for _ in 1..LOOKS {
        thread::sleep(PAUSE);
        found = look()?;
    }
    Some(found)
}

/// All that stands on `footprint`, directly or further up.
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

/// The files and devices that the system swaps to; the list is one for all namespaces.
fn swaps(roots: &Roots) -> io::Result<Vec<PathBuf>> {
    let text = fs::read_to_string(roots.proc.join("swaps"))?;
    let names = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    Ok(names.map(|name| roots.resolve(&unescape(name))).collect())
}

/// Whether `path` is the node of `block`; by name where the path leads to nothing here.
fn is(path: &Path, block: &Block, roots: &Roots) -> bool {
    match Number::at(path) {
        Some(number) => number == block.number,
        None => path == roots.dev.join(block.name()),
    }
}
