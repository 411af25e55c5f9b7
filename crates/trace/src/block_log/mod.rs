//! Import of logs of block I/O: iologs of fio, and the text of blkparse(1).
//!
//! Both have reads, writes, and syncs with their offsets, and no calls. Each file of an iolog, and
//! each device of a log of blkparse, becomes a file that is opened once. It exists before the first
//! operation, up to the last byte that is accessed.
//!
//! The operations of a task do not overlap. Operations that were in flight at the same time are
//! divided among as many tasks as necessary. Logs have no CPU times: the pause before an operation
//! is the time since the previous one of its task.

mod blkparse;
mod iolog;

use std::collections::{BTreeMap, HashMap};

use model::phase::FileCall;

use crate::{
    NONE, Node, NodeKind, Op, Recording, Task, TraceError,
    check::{self, NAME, TRANSFER},
    paths::Paths,
};

/// `O_RDWR`.
const READ_WRITE: u64 = 2;

/// True if the begin of a file looks like an iolog of fio, or like the text of blkparse.
pub fn is_block_log(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    iolog::version(&text).is_some() || text.lines().take(100).any(blkparse::is_event)
}

/// Recording of the operations in a log.
///
/// # Errors
/// [`TraceError::Log`] if it has no operations, or one that cannot be replayed.
pub fn import_block_log(log: &[u8]) -> Result<Recording, TraceError> {
    let text = String::from_utf8_lossy(log);
    let (program, log) = match iolog::version(&text) {
        Some(version) => (FIO, iolog::read(&text, version)),
        None => (BLKTRACE, blkparse::read(&text)),
    };
    let log = log.map_err(TraceError::Log)?;
    if log.accesses.is_empty() {
        return Err(TraceError::Log("it has no reads, writes, and syncs".into()));
    }
    let recording = log.recording(program);
    check::check(&recording).map_err(|error| TraceError::Log(error.to_string()))?;
    Ok(recording)
}

/// Programs whose logs are imported here.
const FIO: &str = "fio";
const BLKTRACE: &str = "blktrace";

/// True if a recording was imported from a log of block I/O.
pub(crate) fn has_made(recording: &Recording) -> bool {
    recording.facts.get("recorder").is_some_and(|recorder| [FIO, BLKTRACE].contains(&&**recorder))
}

/// Operation of a log.
#[derive(Clone, Copy, Debug)]
struct Access {
    /// Begin and end in nanoseconds since the log started.
    begin: u64,
    end: u64,
    /// Index of the file.
    file: usize,
    call: FileCall,
    offset: u64,
    size: u64,
}

/// Operations of a log, in the order of their begins.
#[derive(Debug, Default)]
struct Log {
    files: Vec<String>,
    numbers: HashMap<String, usize>,
    accesses: Vec<Access>,
    /// Number of operations that are left out, by kind.
    left_out: BTreeMap<&'static str, u64>,
}

impl Log {
    /// Index of a file.
    fn file(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.files.push(name.to_owned());
        self.numbers.insert(name.to_owned(), self.files.len() - 1);
        self.files.len() - 1
    }

    /// Adds an operation that begins after the previous ones.
    ///
    /// # Errors
    /// Reason why it cannot be replayed.
    fn add(&mut self, mut access: Access) -> Result<(), &'static str> {
        if access.size > TRANSFER {
            return Err("the operation has more than 1 GiB");
        }
        if access.offset.checked_add(access.size).is_none_or(|end| i64::try_from(end).is_err()) {
            return Err("the operation is beyond 8 EiB");
        }
        let last = self.accesses.last().map_or(0, |last| last.begin);
        access.begin = access.begin.max(last);
        access.end = access.end.max(access.begin);
        self.accesses.push(access);
        Ok(())
    }

    fn leave_out(&mut self, what: &'static str) {
        *self.left_out.entry(what).or_default() += 1;
    }

    fn recording(self, program: &str) -> Recording {
        let mut paths = Paths::default();
        let names: Vec<u32> = unique(&self.files).iter().map(|name| paths.number(name)).collect();
        let root = Node { kind: NodeKind::Directory, mode: 0o755, ..Node::default() };
        let mut nodes = vec![root];
        for name in &names {
            nodes.push(Node { name: *name, mode: 0o644, ..Node::default() });
        }
        let mut tasks = vec![Task { process: 1, name: program.into(), ..Task::default() }];
        for (file, name) in (1u32..).zip(&names) {
            let open =
                Op { opened: file, path: *name, flags: READ_WRITE, ..Op::new(FileCall::Open) };
            tasks[0].ops.push(open);
        }
        for access in &self.accesses {
            let node = &mut nodes[access.file + 1];
            node.size = node.size.max(access.offset + access.size);
            let ended = |task: &Task| task.ops.last().map_or(0, Op::end) <= access.begin;
            let task = tasks.iter().position(ended).unwrap_or_else(|| {
                let name = program.into();
                tasks.push(Task { parent: 1, process: 1, begin: 0, name, ops: Vec::new() });
                tasks.len() - 1
            });
            let ops = &mut tasks[task].ops;
            ops.push(Op {
                begin: access.begin,
                length: access.end - access.begin,
                think: access.begin - ops.last().map_or(0, Op::end),
                result: i64::try_from(access.size).unwrap_or(i64::MAX),
                fd: u32::try_from(access.file + 1).unwrap_or(NONE),
                offset: access.offset,
                size: access.size,
                ..Op::new(access.call)
            });
        }
        let elapsed = self.accesses.iter().map(|access| access.end).max().unwrap_or(0);
        let mut facts = BTreeMap::from([
            ("program".to_owned(), self.files.join(" ")),
            ("root".to_owned(), "/".to_owned()),
            ("elapsed_ns".to_owned(), elapsed.to_string()),
            ("recorder".to_owned(), program.to_owned()),
        ]);
        for (what, count) in self.left_out {
            facts.insert(format!("not_recorded.{what}"), count.to_string());
        }
        Recording { facts, paths: paths.all, nodes, tasks }
    }
}

/// Last components of the names, with a number after those that occur more than once.
fn unique(names: &[String]) -> Vec<Vec<u8>> {
    let mut known = HashMap::<Vec<u8>, u32>::new();
    let mut unique = Vec::with_capacity(names.len());
    for name in names {
        let last = name.rsplit('/').next().unwrap_or_default();
        let last = if matches!(last, "" | "." | "..") { "file" } else { last };
        let base: Vec<u8> = last.bytes().filter(|byte| *byte != 0).take(NAME - 20).collect();
        let mut own = base.clone();
        while known.contains_key(&own) {
            let count = known.entry(base.clone()).or_default();
            *count += 1;
            own = [base.as_slice(), format!("-{}", *count + 1).as_bytes()].concat();
        }
        known.insert(own.clone(), 0);
        unique.push(own);
    }
    unique
}

#[cfg(test)]
mod tests;
