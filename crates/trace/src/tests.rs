//! Tests of the format, and hostile recordings.

use model::{
    file_type::RUN_FILE,
    phase::{FileCall, TraceOrder},
};
use rusqlite::Connection;

use super::*;

/// Recording with two tasks and some files.
fn sample() -> Recording {
    let facts = [("program", "tar -x"), ("elapsed_ns", "5")];
    let path = |text: &str| text.as_bytes().to_vec();
    let node = |parent, name, kind| Node { parent, name, kind, mode: 0o644, ..Node::default() };
    let root = Node { kind: NodeKind::Directory, mode: 0o755, ..Node::default() };
    let ops = vec![
        Op { begin: 5, length: 3, opened: 1, path: 3, flags: 0o101, ..Op::new(FileCall::Open) },
        Op { begin: 9, length: 3, fd: 1, size: 10, result: 10, ..Op::new(FileCall::Write) },
        Op { begin: 20, length: 1, result: -2, path: 1, ..Op::new(FileCall::Stat) },
    ];
    let read = Op { begin: 30, fd: 1, size: 10, result: 10, ..Op::new(FileCall::Read) };
    Recording {
        facts: facts.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        paths: vec![path("d"), path("f"), path("d/new"), path("../x"), vec![0xff, 0xfe]],
        nodes: vec![root, node(0, 1, NodeKind::Directory), node(1, 2, NodeKind::File)],
        tasks: vec![
            Task { name: "tar".into(), process: 1, ops, ..Task::default() },
            Task { parent: 1, process: 1, begin: 12, name: "tar".into(), ops: vec![read] },
        ],
    }
}

#[test]
fn reading_inverts_writing() {
    let mut recording = sample();
    assert_eq!(parse(&bytes(&recording).unwrap()).unwrap(), recording);
    // More than one chunk.
    let op = |index: u64| Op { begin: 100 + index, size: index, ..Op::new(FileCall::Fsync) };
    recording.tasks[0].ops.extend((0..100_000).map(op));
    let written = bytes(&recording).unwrap();
    assert_eq!(parse(&written).unwrap(), recording);
    assert_eq!(bytes(&recording).unwrap(), written, "equal recordings have equal bytes");
}

#[test]
fn a_read_by_another_task_waits_for_the_write() {
    let program = compile(&sample(), TraceOrder::Resources).unwrap();
    assert_eq!(program.workers.len(), 1, "the tasks did not overlap");
    let mut recording = sample();
    // The second task began earlier, and its read still follows the write.
    recording.tasks[1].ops.insert(0, Op { begin: 2, path: 2, ..Op::new(FileCall::Stat) });
    let program = compile(&recording, TraceOrder::Resources).unwrap();
    assert_eq!(program.workers.len(), 2);
    let reads = program.workers.iter().position(|steps| steps[0].op.call == FileCall::Stat);
    let reads = reads.unwrap();
    let step = program.workers[reads][1];
    let first = step.first_wait as usize;
    let waits = &program.waits[first..first + step.waits as usize];
    let other = u32::try_from(1 - reads).unwrap();
    assert_eq!(waits, [Wait { worker: other, done: 2 }]);
    assert!(compile(&recording, TraceOrder::Tasks).unwrap().waits.is_empty());
}

#[test]
fn a_wait_for_a_child_is_a_wait_for_its_last_operation() {
    let mut recording = sample();
    let fsync = |begin| Op { begin, fd: 1, ..Op::new(FileCall::Fdatasync) };
    recording.tasks[1].ops = vec![Op { begin: 13, path: 2, ..Op::new(FileCall::Stat) }, fsync(30)];
    let wait = Op { begin: 40, size: 2, ..Op::new(FileCall::Wait) };
    recording.tasks[0].ops.push(wait);
    let waits = |recording: &Recording| {
        let program = compile(recording, TraceOrder::Resources).unwrap();
        let step = program.workers[0].last().unwrap();
        let first = step.first_wait as usize;
        program.waits[first..first + step.waits as usize].to_vec()
    };
    assert_eq!(waits(&recording), [Wait { worker: 1, done: 2 }]);
    assert_eq!(parse(&bytes(&recording).unwrap()).unwrap(), recording);
    // Later operations of the child were not waited for.
    recording.tasks[1].ops[1].begin = 41;
    assert_eq!(waits(&recording), [Wait { worker: 1, done: 1 }]);
    // Data that a task sent is waited for until it was sent.
    recording.tasks[1].ops[1].begin = 30;
    recording.tasks[0].ops.last_mut().unwrap().offset = 20;
    assert_eq!(waits(&recording), [Wait { worker: 1, done: 1 }]);
    let of_slice = |from| *slice(&recording, from, 100).tasks[0].ops.last().unwrap();
    assert_eq!(of_slice(13).begin - of_slice(13).offset, 20);
    assert_eq!(of_slice(25).offset, 1);
    recording.tasks[0].ops.last_mut().unwrap().offset = 1;
    assert_eq!(waits(&recording), []);
    for unknown in [0, 1, 3, u64::MAX] {
        recording.tasks[0].ops.last_mut().unwrap().size = unknown;
        assert_eq!(waits(&recording), []);
    }
}

#[test]
fn pauses_are_scaled_down_to_the_cpu_time_without_the_recorder() {
    let mut recording = sample();
    for (op, think) in recording.tasks[0].ops.iter_mut().zip([100, 200, 300]) {
        op.think = think;
    }
    let thinks = |recording: &Recording| -> Vec<u64> {
        let program = compile(recording, TraceOrder::Resources).unwrap();
        program.workers[0].iter().map(|step| step.op.think).collect()
    };
    assert_eq!(thinks(&recording), [100, 200, 300, 0]);
    let unscaled = [100, 200, 300, 0];
    for (user, calls, expected) in [
        ("50", "0", [25, 50, 75, 0]),
        ("501", "0", unscaled),
        // 600 remain without the calls.
        ("1100", "600", unscaled),
        ("800", "600", unscaled),
        // At least the user time.
        ("300", "100", [50, 100, 150, 0]),
        ("150", "1000", [25, 50, 75, 0]),
    ] {
        recording.facts.insert("baseline_user_ns".into(), user.into());
        recording.facts.insert("baseline_system_ns".into(), "100".into());
        recording.facts.insert("calls_cpu_ns".into(), calls.into());
        assert_eq!(thinks(&recording), expected, "{user}");
        assert_eq!(summary(&recording).think, expected.iter().sum::<u64>());
        // A part has the scale of the whole recording.
        let mut long = recording.clone();
        long.tasks[0].ops[2].begin = 1000;
        let part = slice(&long, 100, u64::MAX);
        let think = part.tasks[0].ops[0].think;
        assert_eq!((think, part.think_scale().apply(think)), (expected[2], expected[2]));
    }
}

/// Changes the sample, writes it, and returns the error of its reader.
fn refused(change: impl FnOnce(&mut Recording)) -> String {
    let mut recording = sample();
    change(&mut recording);
    parse(&bytes(&recording).unwrap()).unwrap_err().to_string()
}

#[test]
fn hostile_recordings_are_rejected() {
    type Change = fn(&mut Recording);
    let cases: &[(Change, &str)] = &[
        (|it| it.paths[0] = b"a\0b".to_vec(), "path 1 is not a path"),
        (|it| it.paths[0].clear(), "path 1 is not a path"),
        (|it| it.paths[0] = vec![b'a'; 4096], "path 1 is not a path"),
        (|it| it.paths[1] = b"../x".to_vec(), "not a component"),
        (|it| it.paths[1] = b"..".to_vec(), "not a component"),
        (|it| it.paths[1] = b".".to_vec(), "not a component"),
        (|it| it.paths[1] = b"/".to_vec(), "not a component"),
        (|it| it.paths[1] = vec![b'a'; 256], "not a component"),
        (|it| it.nodes[2].name = 9, "not a component"),
        (|it| it.nodes[2].name = 0, "not a component"),
        (|it| it.nodes[2].parent = 2, "not an earlier directory"),
        (|it| it.nodes[2].parent = u32::MAX, "not an earlier directory"),
        (|it| it.nodes[0].kind = NodeKind::Symlink, "the root is not a directory"),
        (|it| it.nodes[0].name = 1, "the root is not a directory"),
        (|it| it.nodes.push(it.nodes[2]), "occurs twice"),
        (|it| it.nodes[2].mode = 0o10_000, "out of range"),
        (|it| it.nodes[2].size = u64::MAX, "out of range"),
        (|it| it.nodes[2].same = 4, "hard link"),
        (|it| it.nodes[2].same = 2, "hard link"),
        (|it| it.nodes[2].target = 1, "its target is invalid"),
        (|it| it.nodes[2].kind = NodeKind::Symlink, "its target is invalid"),
        (
            |it| (it.nodes[2].kind, it.nodes[2].target) = (NodeKind::Symlink, 99),
            "its target is unknown",
        ),
        (|it| it.tasks[0].parent = 1, "invalid parent"),
        (|it| it.tasks[1].parent = 7, "invalid parent"),
        (|it| it.tasks[1].process = 7, "invalid parent"),
        (|it| it.tasks[0].ops[1].begin = 1, "its time is invalid"),
        (|it| it.tasks[0].ops[2].length = u64::MAX, "its time is invalid"),
        (|it| it.tasks[0].ops[2].think = u64::MAX, "its time is invalid"),
        (|it| it.tasks[0].ops[0].path = 6, "unknown path"),
        (|it| it.tasks[0].ops[0].path2 = u32::MAX, "unknown path"),
        (|it| it.tasks[0].ops[1].fd = 5, "unknown descriptor"),
        (|it| it.tasks[0].ops[1].fd2 = u32::MAX, "unknown descriptor"),
        (|it| it.tasks[0].ops[0].opened = u32::MAX, "unknown descriptor"),
        (|it| it.tasks[0].ops[2].result = -4096, "its result is invalid"),
        (|it| it.tasks[0].ops[1].size = (1 << 30) + 1, "more than 1 GiB"),
        (|it| it.tasks[0].ops[2].opened = 2, "out of range"),
        (
            |it| {
                let op = &mut it.tasks[0].ops[0];
                (op.call, op.path, op.path2) = (FileCall::Rename, NONE, 1);
            },
            "no first path",
        ),
        (|it| it.tasks[0].ops[0].call = FileCall::Symlink, "no second path"),
        (|it| it.tasks[0].ops[0].call = FileCall::Link, "no second path"),
        (|it| it.tasks[0].ops[0].call = FileCall::Rename, "no second path"),
        (|it| it.tasks[0].ops[0].call = FileCall::Mknod, "neither a regular file nor a FIFO"),
    ];
    for (change, expected) in cases {
        let error = refused(*change);
        assert!(error.contains(expected), "{error}, not {expected}");
    }
}

#[test]
fn other_databases_are_rejected() {
    let changed = |sql: &str| {
        let mut connection = Connection::open_in_memory().unwrap();
        let bytes = bytes(&sample()).unwrap();
        connection.deserialize_read_exact("main", &bytes[..], bytes.len(), false).unwrap();
        connection.execute_batch(sql).unwrap();
        parse(&connection.serialize("main").unwrap()).map(|_| ()).unwrap_err().to_string()
    };
    for (sql, expected) in [
        ("PRAGMA application_id = 1", "application ID"),
        (
            &format!("PRAGMA application_id = {RUN_FILE}"),
            "it is a run file, which `fslab report` reads",
        ),
        ("PRAGMA user_version = 2", "version 2; this fslab reads version 1 only"),
        ("CREATE TABLE other (a)", "the table `other`"),
        ("CREATE VIEW v AS SELECT 1", "the view `v`"),
        ("CREATE TRIGGER t AFTER INSERT ON meta BEGIN SELECT 1; END", "the trigger `t`"),
        ("DROP TABLE chunk", "other tables"),
        ("DROP TABLE node; CREATE VIEW node AS SELECT * FROM path", "the view `node`"),
        ("UPDATE path SET id = 100 WHERE id = 1", "not numbered from 1"),
        ("UPDATE chunk SET count = 1000000", "too long"),
        ("UPDATE chunk SET count = -1", "damaged"),
        ("UPDATE chunk SET count = 2", "too many numbers"),
        ("UPDATE chunk SET task = 9", "names task 9"),
        ("UPDATE chunk SET columns = zeroblob(100)", "chunk of operations"),
        ("UPDATE node SET kind = 7 WHERE id = 2", "kind of a node"),
        ("UPDATE node SET parent = -1 WHERE id = 2", "damaged"),
        ("DELETE FROM task WHERE id = 1", "not numbered from 1"),
        ("INSERT INTO meta VALUES ('k', CAST(zeroblob(1048577) AS TEXT))", "a fact is too long"),
        ("UPDATE task SET name = CAST(zeroblob(1048577) AS TEXT)", "name of a task is too long"),
        // Refused before any chunk is decoded.
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1100) INSERT INTO \
             chunk (task, count, columns) SELECT 1, 65536, x'' FROM n",
            "too many operations",
        ),
    ] {
        let error = changed(sql);
        assert!(error.contains(expected), "{sql}: {error}");
    }
    for bytes in [&b""[..], b"SQLite format 3\0", &[7; 5000]] {
        assert!(parse(bytes).is_err());
    }
}

#[test]
fn a_recording_that_does_not_fit_in_memory_is_refused() {
    assert!(read::bounded(1000, 2 << 20).is_ok());
    let error = read::bounded(1 << 20, 1 << 30).unwrap_err().to_string();
    assert!(error.contains("1048576 operations need 320 MiB of memory"), "{error}");
}

#[test]
fn a_recording_that_is_cut_or_overwritten_is_an_error_or_another_recording() {
    let whole = bytes(&sample()).unwrap();
    for length in (0..whole.len()).step_by(97).chain([whole.len() - 1]) {
        assert!(parse(&whole[..length]).is_err(), "{length} of {} bytes", whole.len());
    }
    for place in (0..whole.len()).step_by(31) {
        for value in [0, 0xff, whole[place] ^ 1] {
            let mut changed = whole.clone();
            changed[place] = value;
            if let Ok(recording) = parse(&changed) {
                let _ = compile(&recording, TraceOrder::Resources);
            }
        }
    }
}

/// Recording of operations that follow each other.
fn of(paths: &[&str], mut ops: Vec<Op>) -> Recording {
    for (begin, op) in (0u64..).zip(&mut ops) {
        op.begin = begin;
    }
    let paths = paths.iter().map(|path| path.as_bytes().to_vec()).collect();
    let root = Node { kind: NodeKind::Directory, mode: 0o755, ..Node::default() };
    let task = Task { process: 1, ops, ..Task::default() };
    Recording { paths, nodes: vec![root], tasks: vec![task], ..Recording::default() }
}

#[test]
fn directories_of_any_depth_take_bounded_time_and_memory() {
    let directory = 0o200_000;
    let deep = 6000u32;
    let mut ops = Vec::new();
    for number in 0..deep {
        ops.push(Op { fd: number, path: 1, ..Op::new(FileCall::Mkdir) });
        let opened = number + 1;
        let open = Op { fd: number, path: 1, opened, flags: directory, ..Op::new(FileCall::Open) };
        ops.push(open);
        // A path that a replay without root resolves itself.
        ops.push(Op { fd: opened, path: 2, ..Op::new(FileCall::Stat) });
    }
    let name = "d".repeat(255);
    let recording = of(&[&name, &format!("../{name}")], ops);
    let recording = parse(&bytes(&recording).unwrap()).unwrap();
    let program = compile(&recording, TraceOrder::Resources).unwrap();
    assert!(program.left_out > u64::from(deep) / 2, "{}", program.left_out);
    let longest = program.paths.iter().map(|path| path.as_bytes().len()).max();
    assert!(longest <= Some(4095), "{longest:?}");
}

#[test]
fn links_and_renamed_directories_do_not_leave_the_root() {
    let link = |path, path2| Op { path, path2, ..Op::new(FileCall::Symlink) };
    let stat = |path| Op { path, ..Op::new(FileCall::Stat) };
    let make = |path| Op { path, ..Op::new(FileCall::Mkdir) };
    let names = ["l", "/etc", "l/passwd", "..", "d", "d/up", "d/up/x"];
    let left_out = |ops: Vec<Op>| {
        let recording = of(&names, ops);
        let recording = parse(&bytes(&recording).unwrap()).unwrap();
        compile(&recording, TraceOrder::Resources).unwrap().left_out
    };
    // An absolute target, and one above the root.
    assert_eq!(left_out(vec![link(1, 2), stat(3)]), 1);
    assert_eq!(left_out(vec![link(1, 4), stat(3)]), 1);
    assert_eq!(left_out(vec![make(5), link(6, 4), stat(7)]), 0);
    // The link leaves the root only after its directory was moved.
    let paths = ["d", "d/e", "d/e/up", "../..", "e", "e/up/x", "d/e/up/x"];
    let rename = Op { path: 2, path2: 5, ..Op::new(FileCall::Rename) };
    let before = vec![make(1), make(2), link(3, 4), stat(7)];
    let after = vec![make(1), make(2), link(3, 4), stat(7), rename, stat(6)];
    let left_out = |ops| compile(&of(&paths, ops), TraceOrder::Resources).unwrap().left_out;
    assert_eq!((left_out(before), left_out(after)), (0, 1));
    // Links that refer to each other.
    let loops = of(&["a", "b", "a/x"], vec![link(1, 2), link(2, 1), stat(3)]);
    assert_eq!(compile(&loops, TraceOrder::Resources).unwrap().left_out, 1);
}

#[test]
fn a_column_that_expands_without_bound_is_rejected() {
    use std::io::Write;
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&vec![0; 64 << 20]).unwrap();
    let packed = packed.finish().unwrap();
    let mut blob = u32::try_from(packed.len()).unwrap().to_le_bytes().to_vec();
    blob.extend(packed);
    assert!(columns::decode(&blob, 10).unwrap_err().to_string().contains("too many numbers"));
}

#[test]
fn operations_that_leave_the_root_are_left_out() {
    let mut recording = sample();
    recording.tasks[0].ops[2].path = 4;
    let program = compile(&recording, TraceOrder::Resources).unwrap();
    assert_eq!(program.left_out, 1);
    assert_eq!(program.workers[0].len(), 3);
}

#[test]
fn random_recordings_are_compiled_or_rejected() {
    let mut state = 7u64;
    for _ in 0..3000 {
        let bytes: Vec<u8> = (0..150)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Small numbers are valid more often.
                let byte = (state >> 56) as u8;
                if state >> 40 & 3 == 0 { byte } else { byte % 7 }
            })
            .collect();
        fuzz::recording(&bytes);
    }
}
