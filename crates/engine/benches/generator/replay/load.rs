//! Minimal loadfile parser for the bare loop.

use std::{
    collections::HashMap,
    ffi::CString,
    fs,
    path::{Path, PathBuf},
};

use crate::rate::Rate;

/// Operation on an open file.
#[derive(Clone, Copy)]
pub(super) enum OnFile {
    Close,
    Read { size: usize, offset: u64 },
    Write { size: usize, offset: u64 },
    Flush,
    Lock { take: bool, size: u64, offset: u64 },
    Query,
    SetTimes { name: usize },
}

/// Operation on a name.
#[derive(Clone, Copy)]
pub(super) enum OnName {
    Create { options: u64, disposition: u64, slot: Option<usize> },
    Rename { to: usize },
    Unlink,
    Rmdir,
    Mkdir,
    Query,
    Find { most: usize, lists: bool },
}

/// Line of a loadfile.
#[derive(Clone, Copy)]
pub(super) enum Line {
    File(usize, OnFile),
    Name(usize, OnName),
    Space,
    DeleteTree(usize),
}

/// Name, its directory, and its last component.
pub(super) struct Name {
    pub(super) path: CString,
    pub(super) parent: CString,
    pub(super) base: Vec<u8>,
}

/// Parsed loadfile.
pub(super) struct Lines {
    pub(super) lines: Vec<Line>,
    pub(super) names: Vec<Name>,
    pub(super) slots: usize,
    /// Mean bytes per operation.
    mean: f64,
}

impl Lines {
    pub(super) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a loadfile").replace('\\', "/");
        let mut reader = Reader::default();
        let lines: Vec<Line> = text.lines().filter_map(|line| reader.line(line)).collect();
        let moved = |line: &Line| match line {
            Line::File(_, OnFile::Read { size, .. } | OnFile::Write { size, .. }) => *size,
            Line::File(..) | Line::Name(..) | Line::Space | Line::DeleteTree(_) => 0,
        };
        let bytes: usize = lines.iter().map(moved).sum();
        #[expect(clippy::cast_precision_loss, reason = "a few gigabytes, and a million lines")]
        let mean = bytes as f64 / lines.len() as f64;
        Self { lines, names: reader.names, slots: reader.slots.len(), mean }
    }

    /// Operations per second that correspond to bytes per second.
    pub(super) fn rate(&self, bytes: f64) -> Rate {
        Rate { per_second: bytes / self.mean }
    }
}

#[derive(Default)]
struct Reader {
    names: Vec<Name>,
    known: HashMap<String, usize>,
    // Slot and name of each handle.
    slots: HashMap<String, (usize, usize)>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Option<Line> {
        let mut words: Vec<&str> = Vec::new();
        for (index, part) in line.split('"').enumerate() {
            if index % 2 == 1 { words.push(part) } else { words.extend(part.split_whitespace()) }
        }
        if words.len() < 2 || line.starts_with('#') {
            return None;
        }
        let is_expected = words.last() == Some(&"NT_STATUS_OK");
        let number = |index: usize| {
            let word: &str = words[index];
            let hexadecimal = word.strip_prefix("0x").map(|word| u64::from_str_radix(word, 16));
            hexadecimal.unwrap_or_else(|| word.parse()).expect("a number")
        };
        let size = |index| usize::try_from(number(index)).expect("a size");
        let on = |reader: &Self, what| Some(Line::File(reader.slots[words[1]].0, what));
        Some(match words[0] {
            "Close" => return on(self, OnFile::Close),
            "ReadX" => return on(self, OnFile::Read { size: size(3), offset: number(2) }),
            "WriteX" => return on(self, OnFile::Write { size: size(3), offset: number(2) }),
            "Flush" => return on(self, OnFile::Flush),
            "LockX" | "UnlockX" => {
                let take = words[0] == "LockX";
                return on(self, OnFile::Lock { take, size: number(3), offset: number(2) });
            }
            "QUERY_FILE_INFORMATION" => return on(self, OnFile::Query),
            "SET_FILE_INFORMATION" => {
                let name = self.slots[words[1]].1;
                return on(self, OnFile::SetTimes { name });
            }
            "QUERY_FS_INFORMATION" => Line::Space,
            "Deltree" => Line::DeleteTree(self.name(words[1])),
            "NTCreateX" => {
                let name = self.name(words[1]);
                let slot = self.slots.len();
                let slot = is_expected
                    .then(|| self.slots.entry(words[4].to_owned()).or_insert((slot, name)))
                    .map(|slot| {
                        slot.1 = name;
                        slot.0
                    });
                let (options, disposition) = (number(2), number(3));
                Line::Name(name, OnName::Create { options, disposition, slot })
            }
            "Rename" => {
                let to = self.name(words[2]);
                Line::Name(self.name(words[1]), OnName::Rename { to })
            }
            "FIND_FIRST" => {
                let lists = words[1].contains(['<', '>', '*', '?']);
                Line::Name(self.name(words[1]), OnName::Find { most: size(3), lists })
            }
            "Unlink" => Line::Name(self.name(words[1]), OnName::Unlink),
            "Rmdir" => Line::Name(self.name(words[1]), OnName::Rmdir),
            "Mkdir" => Line::Name(self.name(words[1]), OnName::Mkdir),
            "QUERY_PATH_INFORMATION" => Line::Name(self.name(words[1]), OnName::Query),
            other => panic!("unknown operation {other}"),
        })
    }

    fn name(&mut self, name: &str) -> usize {
        if let Some(index) = self.known.get(name) {
            return *index;
        }
        let path = name.trim_start_matches('/').replace("client1", "client0");
        let (parent, base) = path.rsplit_once('/').unwrap_or((".", &path));
        let text = |text: &str| CString::new(text).expect("no NUL");
        self.names.push(Name { path: text(&path), parent: text(parent), base: base.into() });
        self.known.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }
}

/// Writes a small loadfile, for use if none is installed.
pub(super) fn small(directory: &Path) -> PathBuf {
    let path = directory.join("load.txt");
    fs::write(&path, include_str!("../../../tests/traces/replay.load"))
        .expect("the file is written");
    path
}
