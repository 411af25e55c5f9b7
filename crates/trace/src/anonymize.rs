//! Recordings without names.
//!
//! Each component of a path becomes a pseudonym with the same length: a hash with a random key,
//! which is not kept. Equal components have equal pseudonyms, and different components different
//! ones. Common endings, such as `.c`, remain, because some filesystems and programs treat files by
//! them. The operations, sizes, times, and the shape of the tree remain unchanged, so a replay does
//! the same work; they may identify a program.

use std::collections::{HashMap, HashSet};

use model::phase::FileCall;
use sha2::{Digest, Sha256};

use crate::{NONE, Recording, paths::Paths};

/// Endings that remain.
const ENDINGS: [&[u8]; 60] = [
    b".a", b".bak", b".bin", b".bz2", b".c", b".cc", b".cfg", b".conf", b".cpp", b".css", b".csv",
    b".dat", b".db", b".deb", b".doc", b".eml", b".go", b".gz", b".h", b".hpp", b".htm", b".html",
    b".idx", b".img", b".ini", b".iso", b".java", b".jpeg", b".jpg", b".js", b".json", b".ldb",
    b".lock", b".log", b".md", b".mp3", b".mp4", b".o", b".pack", b".pdf", b".png", b".py",
    b".pyc", b".rpm", b".rs", b".sh", b".so", b".sql", b".sqlite", b".sst", b".svg", b".swp",
    b".tar", b".tmp", b".toml", b".txt", b".xml", b".xz", b".zip", b".zst",
];

/// Extended attributes with a meaning for the kernel, which remain.
const ATTRIBUTES: [&[u8]; 8] = [
    b"security.capability",
    b"security.evm",
    b"security.ima",
    b"security.selinux",
    b"security.SMACK64",
    b"system.nfs4_acl",
    b"system.posix_acl_access",
    b"system.posix_acl_default",
];

/// Facts that remain, besides the numbers of calls that were not recorded.
const FACTS: [&str; 15] = [
    "baseline_elapsed_ns",
    "baseline_system_ns",
    "baseline_user_ns",
    "calls_cpu_ns",
    "calls_stopped",
    "call_cost_ns",
    "elapsed_ns",
    "mapped_bytes",
    "mapped_writable_bytes",
    "processes_killed",
    "recorder",
    "rings_denied",
    "status",
    "stop_cost_ns",
    "user",
];

/// Hashes of a name before bytes other than letters and digits are used, because all names of this
/// length are taken.
const ATTEMPTS: u32 = 64;

/// Recording with pseudonyms that depend on a key. Two keys give different pseudonyms.
pub fn anonymize(recording: &Recording, key: &[u8; 32]) -> Recording {
    let mut names = Pseudonyms {
        key,
        all: HashMap::new(),
        taken: HashSet::new(),
        originals: recording.paths.iter().flat_map(|path| path.split(is_slash)).collect(),
    };
    let mut paths = Paths::default();
    let mut path = |number: u32| match number {
        NONE => NONE,
        _ => paths.number(&names.path(recording.path(number))),
    };
    let mut nodes = recording.nodes.clone();
    for node in &mut nodes {
        (node.name, node.target) = (path(node.name), path(node.target));
    }
    let mut tasks = recording.tasks.clone();
    for op in tasks.iter_mut().flat_map(|task| &mut task.ops) {
        op.path = path(op.path);
        if !is_attribute(op.call) {
            op.path2 = path(op.path2);
        }
    }
    for op in tasks.iter_mut().flat_map(|task| &mut task.ops) {
        if is_attribute(op.call) && op.path2 != NONE {
            op.path2 = paths.number(&names.attribute(recording.path(op.path2)));
        }
    }
    for task in &mut tasks {
        let name = names.component(task.name.as_bytes());
        task.name = String::from_utf8_lossy(&name).into_owned();
    }
    let keeps = |key: &str| FACTS.contains(&key) || key.starts_with("not_recorded.");
    let mut facts = recording.facts.clone();
    facts.retain(|key, _| keeps(key));
    // A version of a kernel may end with the name of its owner.
    let version = recording.facts.get("kernel").map(|text| text.split(is_text).next());
    if let Some(version) = version.flatten() {
        facts.insert("kernel".into(), version.trim_end_matches('.').to_owned());
    }
    facts.insert("anonymized".into(), "names".into());
    Recording { facts, paths: paths.all, nodes, tasks }
}

fn is_slash(byte: &u8) -> bool {
    *byte == b'/'
}

fn is_text(letter: char) -> bool {
    !letter.is_ascii_digit() && letter != '.'
}

fn is_attribute(call: FileCall) -> bool {
    matches!(call, FileCall::Getxattr | FileCall::Setxattr | FileCall::Removexattr)
}

struct Pseudonyms<'a> {
    key: &'a [u8; 32],
    all: HashMap<Vec<u8>, Vec<u8>>,
    taken: HashSet<Vec<u8>>,
    originals: HashSet<&'a [u8]>,
}

impl Pseudonyms<'_> {
    /// Path in which each component is a pseudonym, except `.` and `..`.
    fn path(&mut self, path: &[u8]) -> Vec<u8> {
        let parts: Vec<Vec<u8>> = path.split(is_slash).map(|part| self.component(part)).collect();
        parts.join(&b'/')
    }

    /// Name of an extended attribute: the namespace remains.
    fn attribute(&mut self, name: &[u8]) -> Vec<u8> {
        let dot = name.iter().position(|byte| *byte == b'.');
        match dot {
            _ if ATTRIBUTES.contains(&name) => name.to_vec(),
            Some(dot) => [&name[..=dot], &self.component(&name[dot + 1..])].concat(),
            None => self.component(name),
        }
    }

    fn component(&mut self, name: &[u8]) -> Vec<u8> {
        if matches!(name, b"" | b"." | b"..") {
            return name.to_vec();
        }
        if let Some(known) = self.all.get(name) {
            return known.clone();
        }
        let ends = |ending: &&&[u8]| name.len() > ending.len() && name.ends_with(ending);
        let ending = ENDINGS.iter().filter(ends).max_by_key(|ending| ending.len());
        let ending = ending.copied().unwrap_or_default();
        let stem = name.len() - ending.len();
        let mut attempt = 0u32;
        let pseudonym = loop {
            let mut own = self.letters(name, attempt, stem);
            own.extend(ending);
            // Short names may have no free pseudonym that is not a name of the recording.
            let original = attempt < ATTEMPTS && self.originals.contains(own.as_slice());
            let dots = matches!(own.as_slice(), b"." | b"..");
            if !original && !dots && !self.taken.contains(&own) {
                break own;
            }
            attempt += 1;
        };
        self.taken.insert(pseudonym.clone());
        self.all.insert(name.to_vec(), pseudonym.clone());
        pseudonym
    }

    /// Bytes that depend on the key, a name, and the number of the attempt.
    fn letters(&self, name: &[u8], attempt: u32, length: usize) -> Vec<u8> {
        const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        let mut letters = Vec::with_capacity(length + 32);
        let mut block = 0u32;
        while letters.len() < length {
            let mut hash = Sha256::new();
            hash.update(self.key);
            hash.update(attempt.to_le_bytes());
            hash.update(block.to_le_bytes());
            hash.update(name);
            let letter = |byte: u8| match attempt {
                ..ATTEMPTS => LETTERS[usize::from(byte & 31)],
                // Any byte but NUL and the slash.
                _ if byte == 0 || byte == b'/' => b'a',
                _ => byte,
            };
            letters.extend(hash.finalize().iter().map(|byte| letter(*byte)));
            block += 1;
        }
        letters.truncate(length);
        letters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Node, NodeKind, Op, Task, TraceError, bytes, parse};

    const KEY: [u8; 32] = [7; 32];

    fn sample() -> Recording {
        let names: [&[u8]; 9] = [
            b"customer",
            b"customer/invoice.c",
            b"../customer/./secret",
            b"user.customer",
            b"security.selinux",
            b"x",
            b"/srv/customer",
            b"caf\xe9",
            b"customer/invoice.zzz",
        ];
        let root = Node { kind: NodeKind::Directory, mode: 0o755, ..Node::default() };
        let link = Node { kind: NodeKind::Symlink, name: 8, target: 7, ..Node::default() };
        let directory = Node { kind: NodeKind::Directory, name: 1, ..Node::default() };
        let open = Op { path: 2, opened: 1, ..Op::new(FileCall::Open) };
        let set = |path2| Op { fd: 1, path2, ..Op::new(FileCall::Setxattr) };
        let symlink = Op { path: 3, path2: 7, ..Op::new(FileCall::Symlink) };
        let stat = |path| Op { path, result: -2, ..Op::new(FileCall::Stat) };
        let mut ops = vec![open, set(4), set(5), symlink, stat(1), stat(6), stat(9)];
        for (begin, op) in (0u64..).zip(&mut ops) {
            op.begin = begin;
        }
        let facts = [
            ("program", "invoice --of customer"),
            ("root", "/srv/customer"),
            ("kernel", "6.18.5-customer"),
            ("elapsed_ns", "5"),
            ("not_recorded.splice", "3"),
        ];
        Recording {
            facts: facts.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            paths: names.map(<[u8]>::to_vec).into(),
            nodes: vec![root, directory, link],
            tasks: vec![Task { process: 1, name: "invoice".into(), ops, ..Task::default() }],
        }
    }

    fn contains(text: &[u8], part: &[u8]) -> bool {
        text.windows(part.len()).any(|window| window == part)
    }

    #[test]
    fn the_file_has_no_name_of_the_original() -> Result<(), TraceError> {
        let written = bytes(&anonymize(&sample(), &KEY))?;
        let names: [&[u8]; 6] = [b"customer", b"invoice", b"secret", b"/srv", b"srv/", b"caf\xe9"];
        for name in names {
            assert!(contains(&bytes(&sample())?, name));
            assert!(!contains(&written, name), "{}", String::from_utf8_lossy(name));
        }
        for kept in [&b"security.selinux"[..], b"user.", b"6.18.5", b"not_recorded.splice"] {
            assert!(contains(&written, kept), "{}", String::from_utf8_lossy(kept));
        }
        let read = parse(&written)?;
        assert_eq!(read.facts["kernel"], "6.18.5");
        assert!(!read.facts.contains_key("program") && !read.facts.contains_key("root"));
        Ok(())
    }

    #[test]
    fn names_keep_their_length_their_ending_and_their_equality() {
        let (own, other) = (sample(), anonymize(&sample(), &KEY));
        let pairs = own.tasks[0].ops.iter().zip(&other.tasks[0].ops);
        for (one, two) in pairs {
            for (one_path, two_path) in [(one.path, two.path), (one.path2, two.path2)] {
                assert_eq!(own.path(one_path).len(), other.path(two_path).len());
            }
            assert_eq!(Op { path: 0, path2: 0, ..*one }, Op { path: 0, path2: 0, ..*two });
        }
        let path = |at: usize| other.path(other.tasks[0].ops[at].path).to_vec();
        let directory = other.path(other.nodes[1].name).to_vec();
        assert_eq!(path(4), directory);
        assert!(path(0).starts_with(&directory) && path(0).ends_with(b".c"));
        assert!(path(3).starts_with(&[b"../", &directory[..], b"/./"].concat()));
        assert!(!path(6).ends_with(b".zzz"));
        let target = other.path(other.nodes[2].target);
        assert_eq!((target[0], target[4]), (b'/', b'/'));
        assert!(target.ends_with(&directory));
    }

    #[test]
    fn keys_give_different_names() {
        let paths = |key| anonymize(&sample(), &key).paths;
        assert_eq!(paths(KEY), paths(KEY));
        assert!(
            paths(KEY)
                .iter()
                .zip(paths([8; 32]))
                .all(|(one, other)| *one != other || one == b"security.selinux")
        );
    }

    #[test]
    fn all_names_of_a_length_stay_different() {
        let all: Vec<Vec<u8>> =
            (1..=255u8).filter(|byte| !b"/.".contains(byte)).map(|byte| vec![byte]).collect();
        let stat = |path| Op { path, begin: path.into(), ..Op::new(FileCall::Stat) };
        let ops = (1..).take(all.len()).map(stat).collect();
        let own = Recording {
            paths: all.clone(),
            nodes: vec![Node { kind: NodeKind::Directory, ..Node::default() }],
            tasks: vec![Task { process: 1, ops, ..Task::default() }],
            ..Recording::default()
        };
        let other = anonymize(&own, &KEY);
        let names: HashSet<&Vec<u8>> = other.paths.iter().collect();
        assert_eq!(names.len(), all.len());
        assert!(names.iter().all(|name| name.len() == 1 && !b"/.\0".contains(&name[0])));
    }
}
