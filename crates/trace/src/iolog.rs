//! Iologs of fio, written from recordings.
#![expect(clippy::wildcard_enum_match_arm, reason = "an iolog has only transfers and syncs")]

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write,
};

use model::phase::FileCall;

use crate::{NONE, Op, Recording, simulation::Simulation};

/// Text of an iolog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Iolog {
    /// Lines of version 2: `FILE ACTION` and `FILE ACTION OFFSET LENGTH`.
    pub text: String,
    /// Number of transfers and syncs.
    pub operations: u64,
    /// Number of calls that an iolog cannot express, by name. Failed calls are not counted.
    pub left_out: BTreeMap<&'static str, u64>,
}

/// Iolog of the transfers and syncs of a recording, in the order in which they ended. A file has
/// the last component of the name by which it was opened first, and a number if others have the
/// same name; its blanks are underscores.
pub fn iolog(recording: &Recording) -> Iolog {
    let mut simulation = Simulation::new(recording);
    let mut ops: Vec<&Op> = recording.tasks.iter().flat_map(|task| &task.ops).collect();
    ops.sort_by_key(|op| (op.end(), op.begin));
    let mut log = Iolog { text: "fio version 2 iolog\n".to_owned(), ..Iolog::default() };
    let mut names = Names::default();
    for op in ops {
        let place = simulation.transfer(op);
        simulation.apply(op);
        if !op.succeeded() {
            continue;
        }
        if let (true, Some(held)) = (op.opened != NONE, simulation.open.get(&op.opened)) {
            names.add(held.inode, recording.path(op.path));
        }
        let action = match op.call {
            FileCall::Read | FileCall::Pread => "read",
            FileCall::Write | FileCall::Pwrite => "write",
            FileCall::Fsync => "sync",
            FileCall::Fdatasync => "datasync",
            FileCall::Open | FileCall::Close | FileCall::Release | FileCall::Dup => continue,
            FileCall::Seek => continue,
            call => {
                *log.left_out.entry(call.name()).or_default() += 1;
                continue;
            }
        };
        let transfers = matches!(action, "read" | "write");
        // A read at the end of a file transfers nothing.
        let (Some((inode, offset)), false) = (place, transfers && op.result == 0) else { continue };
        let (offset, length) = if transfers { (offset, op.bytes()) } else { (0, 0) };
        let name = names.begin(inode, &mut log.text);
        // Writing to a text does not fail.
        let _ = writeln!(log.text, "{name} {action} {offset} {length}");
        log.operations += 1;
    }
    for name in names.begun.values() {
        let _ = writeln!(log.text, "{name} close");
    }
    log
}

/// Names of files.
#[derive(Default)]
struct Names {
    all: HashMap<u32, String>,
    used: BTreeSet<String>,
    /// Last number of each name.
    numbers: HashMap<String, u32>,
    /// Files with an operation.
    begun: BTreeMap<u32, String>,
}

impl Names {
    fn add(&mut self, inode: u32, path: &[u8]) {
        if self.all.contains_key(&inode) {
            return;
        }
        let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let base: String = String::from_utf8_lossy(last)
            .chars()
            .map(|c| if c.is_whitespace() || c.is_control() || c == ':' { '_' } else { c })
            .take(200)
            .collect();
        let base = if base.is_empty() { "file".to_owned() } else { base };
        let number = self.numbers.entry(base.clone()).or_insert(1);
        let mut name = base.clone();
        while !self.used.insert(name.clone()) {
            *number += 1;
            name = format!("{base}-{number}");
        }
        self.all.insert(inode, name);
    }

    /// Name of a file, which is added and opened in the log before its first operation.
    fn begin(&mut self, inode: u32, text: &mut String) -> &str {
        self.add(inode, b"file");
        let name = &self.all[&inode];
        self.begun.entry(inode).or_insert_with(|| {
            let _ = writeln!(text, "{name} add\n{name} open");
            name.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import_block_log;

    #[test]
    fn an_imported_iolog_is_written_again() {
        let text = "fio version 2 iolog\na.db add\na.db open\na.db read 4096 4096\n\
                    a.db write 8192 512\nlog add\nlog open\nlog write 0 100\nlog sync 0 0\n\
                    a.db datasync 0 0\na.db close\nlog close\n";
        let recording = import_block_log(text.as_bytes()).unwrap();
        let written = iolog(&recording);
        assert_eq!(written.operations, 5);
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&written.text), sorted(text));
        assert!(written.left_out.is_empty(), "{:?}", written.left_out);
    }

    #[test]
    fn names_are_unique_and_have_no_blanks() {
        let mut names = Names::default();
        let mut text = String::new();
        for (inode, path) in [(1, "d/a b"), (2, "e/a b"), (1, "d/other"), (3, "")] {
            names.add(inode, path.as_bytes());
        }
        let found = [1, 2, 3, 4].map(|inode| names.begin(inode, &mut text).to_owned());
        assert_eq!(found, ["a_b", "a_b-2", "file", "file-2"]);
        assert!(text.starts_with("a_b add\na_b open\na_b-2 add\n"), "{text}");
    }
}
