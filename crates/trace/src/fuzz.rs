//! Fuzz targets for recordings and for logs. They accept any bytes, and must neither panic nor use
//! unbounded time or memory.

use model::phase::{FileCall, TraceOrder};

use crate::{NODE_TYPES, Node, NodeKind, Op, Recording, Task, check, compile, parse};

/// Reads and compiles a recording: a file, or a sequence of numbers that become nodes, tasks, and
/// operations, because mutations of compressed columns hardly ever are valid.
pub fn recording(bytes: &[u8]) {
    let recording = match parse(bytes) {
        Ok(recording) => recording,
        Err(_) if bytes.starts_with(b"SQLite") => return,
        Err(_) => from_numbers(bytes),
    };
    if check::check(&recording).is_err() {
        return;
    }
    let _summary = crate::summary(&recording);
    let begins = recording.tasks.iter().flat_map(|task| task.ops.iter().map(|op| op.begin));
    let begins: Vec<u64> = begins.collect();
    let cut = begins.get(begins.len() / 2).copied().unwrap_or(0);
    for part in [crate::slice(&recording, cut, u64::MAX), crate::slice(&recording, 0, cut)] {
        assert!(check::check(&part).is_ok(), "a slice is not valid: {:?}", check::check(&part));
    }
    let anonymous = crate::anonymize(&recording, &[1; 32]);
    assert!(check::check(&anonymous).is_ok(), "{:?}", check::check(&anonymous));
    for order in TraceOrder::ALL {
        let Ok(program) = compile(&recording, order) else { continue };
        for step in program.workers.iter().flatten() {
            for number in [step.op.path, step.op.path2, step.straight, step.straight2] {
                assert!(number as usize <= program.paths.len(), "unknown path");
            }
            let last = (step.first_wait + step.waits) as usize;
            assert!(last <= program.waits.len(), "unknown wait");
            assert!(step.op.opened <= program.descriptors, "unknown descriptor");
        }
    }
}

/// Imports a log of strace, and compiles the recording.
pub fn strace(bytes: &[u8]) {
    let root = std::path::Path::new("/srv/mail");
    if let Ok(recording) = crate::import_strace(bytes, root) {
        assert!(check::check(&recording).is_ok(), "an imported recording is not valid");
        let _program = compile(&recording, TraceOrder::Resources);
    }
}

/// Imports a log of block I/O, and compiles the recording.
pub fn block_log(bytes: &[u8]) {
    let _is_log = crate::is_block_log(bytes);
    if let Ok(recording) = crate::import_block_log(bytes) {
        assert!(check::check(&recording).is_ok(), "an imported recording is not valid");
        let _program = compile(&recording, TraceOrder::Resources);
    }
}

/// Names of the recordings of [`from_numbers`].
const NAMES: [&str; 8] = ["a", "b", "c", "a/b", "..", "../a", "/a", "a/../b/."];

fn from_numbers(bytes: &[u8]) -> Recording {
    let paths: Vec<Vec<u8>> = NAMES.iter().map(|name| name.as_bytes().to_vec()).collect();
    let root = Node { kind: NodeKind::Directory, ..Node::default() };
    let mut recording = Recording {
        paths,
        nodes: vec![root],
        tasks: vec![Task::default(); 3],
        ..Recording::default()
    };
    let (nodes, ops) = bytes.split_at(bytes.len().min(15));
    for row in nodes.chunks_exact(5) {
        let kind = NodeKind::ALL[usize::from(row[2]) % NodeKind::ALL.len()];
        recording.nodes.push(Node {
            parent: row[0].into(),
            name: row[1].into(),
            kind,
            size: row[3].into(),
            mode: 0o644,
            same: row[4].into(),
            target: if kind == NodeKind::Symlink { row[3].into() } else { 0 },
        });
    }
    let mut opened = 0;
    for row in ops.chunks_exact(10) {
        let task = &mut recording.tasks[usize::from(row[0] % 3)];
        let call = FileCall::ALL[usize::from(row[1]) % FileCall::ALL.len()];
        let begin = task.ops.last().map_or(0, Op::end) + u64::from(row[2]);
        let opens = matches!(call, FileCall::Open | FileCall::Dup | FileCall::Chdir);
        opened += u32::from(opens);
        task.ops.push(Op {
            begin,
            length: row[3].into(),
            result: if row[4] > 200 { -2 } else { row[4].into() },
            fd: row[5].into(),
            fd2: row[6].into(),
            opened: if opens && row[4] <= 200 { opened } else { 0 },
            path: row[7].into(),
            path2: row[8].into(),
            flags: if call == FileCall::Mknod {
                NODE_TYPES[usize::from(row[9] % 3)]
            } else {
                u64::from(row[9]) << (row[9] % 20)
            },
            size: if call == FileCall::Wait { 1 + u64::from(row[9] % 3) } else { row[9].into() },
            ..Op::new(call)
        });
    }
    recording
}
