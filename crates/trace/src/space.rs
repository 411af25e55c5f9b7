//! Simulated name space below the root: directories, links, and open descriptors.
//!
//! The simulation finds the file that a name or a descriptor refers to at each time, so that
//! operations on the same file are known, although their names differ. It starts with the nodes of
//! the recording and applies successful operations in the order in which they ended. If an
//! operation found a file that the simulation does not have, because operations overlapped or
//! another program created the file, the file is added.

use std::collections::HashMap;

use crate::{NodeKind, Recording};

/// File of the simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inode {
    pub(crate) kind: NodeKind,
    /// Entries of a directory: component and file.
    entries: HashMap<u32, u32>,
    /// Directory and component of a directory.
    parent: (u32, u32),
    /// Target of a symbolic link.
    target: Vec<u8>,
    /// Size of a file, as far as calls with an offset show it.
    pub(crate) size: u64,
    /// Size of a file, from all calls. Maintained by the module `slice`.
    pub(crate) length: u64,
    /// Permission bits.
    pub(crate) mode: u32,
}

/// Root directory.
pub(crate) const ROOT: u32 = 0;

/// Maximum number of symbolic links of a path (path_resolution(7)).
const LINKS: u32 = 40;

/// Maximum depth at which a directory is entered. Deeper ones have no path that a call accepts, and
/// their simulation takes time for each level.
const DEEPEST: usize = 4096;

/// Maximum length of a path (`PATH_MAX` without the NUL byte).
const LONGEST: usize = 4095;

/// Result of the resolution of a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walk {
    /// Names that were looked up, as directory and component.
    pub(crate) seen: Vec<(u32, u32)>,
    /// Deepest directory that was found.
    pub(crate) directory: u32,
    /// Last component; `None` for a missing directory before it, and for the root.
    pub(crate) last: Option<u32>,
    /// File, if it exists.
    pub(crate) found: Option<u32>,
    /// Components that remain below [`Self::directory`].
    rest: Vec<u8>,
    /// True if a symbolic link was followed, or `..` was used.
    pub(crate) turns: bool,
    /// True if the path leaves the root.
    pub(crate) leaves: bool,
}

/// Name space.
pub(crate) struct Space {
    inodes: Vec<Inode>,
    components: HashMap<Vec<u8>, u32>,
    /// Component 0 is unused.
    names: Vec<Vec<u8>>,
}

impl Space {
    /// Name space with the nodes of a recording.
    pub(crate) fn new(recording: &Recording) -> Self {
        let mut space =
            Self { inodes: Vec::new(), components: HashMap::new(), names: vec![b".".to_vec()] };
        space.add(NodeKind::Directory);
        space.inodes[ROOT as usize].mode = recording.nodes.first().map_or(0o755, |root| root.mode);
        let mut of_node: Vec<u32> = vec![ROOT];
        for node in recording.nodes.iter().skip(1) {
            let directory = of_node[node.parent as usize];
            let component = space.component(recording.path(node.name));
            let inode = match node.same {
                crate::NONE => space.add(node.kind),
                same => of_node[same as usize - 1],
            };
            let own = space.inode_mut(inode);
            (own.size, own.length, own.mode) = (node.size, node.size, node.mode);
            own.target = recording.path(node.target).to_vec();
            space.enter(directory, component, inode);
            of_node.push(inode);
        }
        space
    }

    fn component(&mut self, name: &[u8]) -> u32 {
        if let Some(number) = self.components.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.components.insert(name.to_vec(), number);
        self.names.push(name.to_vec());
        number
    }

    pub(crate) fn inode(&self, number: u32) -> &Inode {
        &self.inodes[number as usize]
    }

    pub(crate) fn inode_mut(&mut self, number: u32) -> &mut Inode {
        &mut self.inodes[number as usize]
    }

    /// Adds a file without a name.
    pub(crate) fn add(&mut self, kind: NodeKind) -> u32 {
        let number = u32::try_from(self.inodes.len()).unwrap_or(u32::MAX);
        self.inodes.push(Inode { kind, ..Inode::default() });
        number
    }

    /// Adds a symbolic link without a name.
    pub(crate) fn add_link(&mut self, target: &[u8]) -> u32 {
        let number = self.add(NodeKind::Symlink);
        self.inodes[number as usize].target = target.to_vec();
        number
    }

    /// Gives a file a name. A directory has one name; a cycle of directories is not created, nor
    /// directories below [`DEEPEST`] others.
    pub(crate) fn enter(&mut self, directory: u32, component: u32, inode: u32) {
        if self.inode(inode).kind == NodeKind::Directory {
            let ancestors = self.ancestors(directory);
            if ancestors.len() > DEEPEST || ancestors.contains(&inode) {
                return;
            }
            self.inodes[inode as usize].parent = (directory, component);
        }
        self.inodes[directory as usize].entries.insert(component, inode);
    }

    /// Removes a name.
    pub(crate) fn remove(&mut self, directory: u32, component: u32) -> Option<u32> {
        self.inodes[directory as usize].entries.remove(&component)
    }

    /// Entries of a directory in the order of their names.
    pub(crate) fn entries(&self, directory: u32) -> Vec<(&[u8], u32)> {
        let entries = self.inode(directory).entries.iter();
        let named =
            |(component, inode): (&u32, &u32)| (self.names[*component as usize].as_slice(), *inode);
        let mut entries: Vec<(&[u8], u32)> = entries.map(named).collect();
        entries.sort_unstable();
        entries
    }

    /// Name of a component.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn name(&self, component: u32) -> &[u8] {
        &self.names[component as usize]
    }

    /// Target of a symbolic link; empty for other files.
    pub(crate) fn target(&self, inode: u32) -> &[u8] {
        &self.inode(inode).target
    }

    /// A directory and its ancestors up to the root.
    fn ancestors(&self, directory: u32) -> Vec<u32> {
        let mut path = vec![directory];
        let mut at = directory;
        // A removed directory keeps its last parent, so the path always ends at the root.
        while at != ROOT && path.len() < self.inodes.len() + 1 {
            at = self.inode(at).parent.0;
            path.push(at);
        }
        path
    }

    /// Path of a directory from the root.
    fn path(&self, directory: u32) -> Vec<u8> {
        let mut parts = Vec::new();
        for inode in self.ancestors(directory) {
            if inode != ROOT {
                parts.push(self.names[self.inode(inode).parent.1 as usize].as_slice());
            }
        }
        parts.reverse();
        parts.join(&b'/')
    }

    /// Path of the result of a walk from the root, without links and without `..`. `None` if it is
    /// too long for a call.
    pub(crate) fn straight(&self, walk: &Walk) -> Option<Vec<u8>> {
        let mut path = self.path(walk.directory);
        if !path.is_empty() && !walk.rest.is_empty() {
            path.push(b'/');
        }
        path.extend(&walk.rest);
        if path.is_empty() {
            path.push(b'.');
        }
        (path.len() <= LONGEST).then_some(path)
    }

    /// Resolves a path from a directory. `follow`: a link as the last component is followed.
    pub(crate) fn walk(&mut self, from: u32, path: &[u8], follow: bool) -> Walk {
        let mut walk = Walk { directory: from, ..Walk::default() };
        // Components that remain, last first.
        let mut rest: Vec<Vec<u8>> = split(path);
        let mut links = 0;
        walk.found = Some(from);
        while let Some(name) = rest.pop() {
            let Some(at) = walk.found else { break };
            if self.inode(at).kind != NodeKind::Directory {
                // The rest of the path is below a file: ENOTDIR.
                rest.push(name);
                walk.found = None;
                break;
            }
            walk.directory = at;
            match name.as_slice() {
                b"." => {
                    walk.last = None;
                    walk.rest = if rest.is_empty() { b".".to_vec() } else { Vec::new() };
                    continue;
                }
                b".." => {
                    walk.turns = true;
                    walk.last = None;
                    walk.leaves |= at == ROOT;
                    let parent = self.inode(at).parent.0;
                    walk.found = Some(if at == ROOT { ROOT } else { parent });
                    walk.directory = walk.found.unwrap_or(ROOT);
                    walk.rest = b".".to_vec();
                    continue;
                }
                _ => {}
            }
            let component = self.component(&name);
            walk.seen.push((at, component));
            walk.last = Some(component);
            walk.rest = name;
            walk.found = self.inode(at).entries.get(&component).copied();
            let Some(inode) = walk.found else { break };
            if self.inode(inode).kind == NodeKind::Symlink && (follow || !rest.is_empty()) {
                links += 1;
                walk.turns = true;
                let target = self.inode(inode).target.clone();
                walk.leaves |= target.first() == Some(&b'/') || links > LINKS;
                if walk.leaves {
                    walk.found = None;
                    break;
                }
                rest.extend(split(&target));
                walk.found = Some(at);
                walk.last = None;
                walk.rest = b".".to_vec();
            }
        }
        if walk.found.is_none() && !rest.is_empty() {
            walk.last = None;
            for name in rest.iter().rev() {
                if !walk.rest.is_empty() {
                    walk.rest.push(b'/');
                }
                walk.rest.extend(name);
            }
        }
        walk
    }
}

/// Components of a path, last first.
fn split(path: &[u8]) -> Vec<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = path
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    // A slash at the end requires a directory.
    if path.last() == Some(&b'/') {
        parts.push(b".".to_vec());
    }
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> (Space, u32, u32) {
        let mut space = Space::new(&Recording::default());
        let directory = space.add(NodeKind::Directory);
        let (d, f, l) = (space.component(b"d"), space.component(b"f"), space.component(b"l"));
        space.enter(ROOT, d, directory);
        let file = space.add(NodeKind::File);
        space.enter(directory, f, file);
        let link = space.add_link(b"../d/f");
        space.enter(directory, l, link);
        (space, directory, file)
    }

    #[test]
    fn links_and_dots_are_resolved() {
        let (mut space, directory, file) = space();
        for path in ["d/f", "d/./f", "d/../d/f", "d//f", "d/l"] {
            let walk = space.walk(ROOT, path.as_bytes(), true);
            assert_eq!((walk.found, walk.leaves), (Some(file), false), "{path}");
            assert_eq!(space.straight(&walk).unwrap(), b"d/f", "{path}");
        }
        let walk = space.walk(ROOT, b"d/l", false);
        assert_ne!(walk.found, Some(file));
        assert_eq!(space.straight(&walk).unwrap(), b"d/l");
        assert_eq!(space.walk(directory, b"f", true).found, Some(file));
        assert!(space.walk(ROOT, b"d/../../d", true).leaves);
        assert!(space.walk(directory, b"../..", true).leaves);
    }

    #[test]
    fn a_missing_name_is_looked_up_as_far_as_it_exists() {
        let (mut space, directory, _) = space();
        let walk = space.walk(ROOT, b"d/x/y", true);
        assert_eq!((walk.found, walk.last, walk.directory), (None, None, directory));
        assert_eq!(walk.seen.len(), 2);
        assert_eq!(space.straight(&walk).unwrap(), b"d/x/y");
        assert_eq!(space.walk(ROOT, b"d/f/y", true).found, None);
        assert_eq!(space.walk(ROOT, b"d/f/", true).found, None);
    }

    #[test]
    fn directories_cannot_contain_themselves() {
        let (mut space, directory, _) = space();
        let x = space.component(b"x");
        space.enter(directory, x, directory);
        assert_eq!(space.walk(directory, b"x", true).found, None);
    }
}
