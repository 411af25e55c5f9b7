use model::{
    Bytes,
    phase::{AccessPattern, Bound, FileSharing, Length, Workers},
};
use proptest::prelude::*;

use super::*;
use crate::patterns::{Order, Prepared};

/// Stream on ten blocks of 512 bytes with this trace, in the given directory.
fn plan(directory: &tempfile::TempDir, list: impl AsRef<[u8]>) -> Stream {
    let path = directory.path().join("list");
    std::fs::write(&path, list).unwrap();
    Stream {
        access_pattern: AccessPattern::Trace,
        direction: Direction::Mixed(0.5),
        trace_file: path.to_str().unwrap().into(),
        ..Stream::new(FileSharing::One("f".into()), Bytes(5300), Bytes(512))
    }
}

fn replay(plan: &Stream, worker: u32) -> Result<Vec<PlannedOp>, Fault> {
    let prepared = Prepared::new(plan)?;
    let mut order = Order::new(plan, worker, 0, &prepared)?;
    Ok(std::iter::from_fn(|| order.next()).collect())
}

const LIST: &str = "# recorded\n\nread 0 512\n  write 4608 512 # the last\r\nread\t100 7";

fn read(offset: u64, len: usize) -> PlannedOp {
    PlannedOp { offset, len, kind: Kind::Read }
}

#[test]
fn a_trace_is_run_in_order_and_repeated() {
    let directory = tempfile::TempDir::new().unwrap();
    let plan = plan(&directory, LIST);
    let listed = [read(0, 512), PlannedOp { kind: Kind::Write, ..read(4608, 512) }, read(100, 7)];
    assert_eq!(replay(&plan, 0).unwrap(), listed);
    let again = Stream { bound: Bound::Ops(7), ..plan };
    assert!(replay(&again, 0).unwrap().iter().eq(listed.iter().cycle().take(7)));
}

#[test]
fn a_trace_of_a_segmented_file_applies_to_each_segment() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut plan = plan(&directory, "read 512 512");
    (plan.files, plan.workers) = (FileSharing::Segmented("f".into()), Workers::threads(2));
    assert_eq!(replay(&plan, 1).unwrap(), [read(6 * 512, 512)]);
    std::fs::write(&plan.trace_file, "read 2400 512").unwrap();
    let problem = TraceProblem::Beyond { end: 2560 };
    assert_eq!(replay(&plan, 0).unwrap_err(), Fault::Trace { line: 1, problem });
}

#[test]
fn the_longest_length_of_the_stream_is_the_limit() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut plan = plan(&directory, "read 0 1024");
    let problem = TraceProblem::Long { longest: 512 };
    assert_eq!(replay(&plan, 0).unwrap_err(), Fault::Trace { line: 1, problem });
    plan.block_sizes = vec![Length { blocks: 2, weight: 1 }];
    assert_eq!(replay(&plan, 0).unwrap(), [read(0, 1024)]);
}

#[test]
fn an_invalid_line_is_reported_with_its_number() {
    let directory = tempfile::TempDir::new().unwrap();
    for (list, line, problem) in [
        ("", 0, TraceProblem::Empty),
        ("# nothing\n\n", 2, TraceProblem::Empty),
        ("read 0 512\nread 0", 2, TraceProblem::Syntax),
        ("read 0 512 512", 1, TraceProblem::Syntax),
        ("\ntrim 0 512", 2, TraceProblem::Syntax),
        ("read 0 4k", 1, TraceProblem::Syntax),
        ("read -512 512", 1, TraceProblem::Syntax),
        ("read 0 99999999999999999999", 1, TraceProblem::Syntax),
        ("read 0 0", 1, TraceProblem::Nothing),
        ("write 0 513", 1, TraceProblem::Long { longest: 512 }),
        ("write 5000 512", 1, TraceProblem::Beyond { end: 5120 }),
        ("write 18446744073709551615 1", 1, TraceProblem::Beyond { end: 5120 }),
    ] {
        let found = replay(&plan(&directory, list), 0).unwrap_err();
        assert_eq!(found, Fault::Trace { line, problem }, "{list}");
    }
    let found = replay(&plan(&directory, b"read 0 512\n\xff\xfe 0 1"), 0).unwrap_err();
    assert_eq!(found, Fault::Trace { line: 2, problem: TraceProblem::Syntax });
}

#[test]
fn a_trace_with_another_direction_than_the_worker_is_rejected() {
    let directory = tempfile::TempDir::new().unwrap();
    let plan = plan(&directory, LIST);
    let refusal = |direction, worker| {
        replay(&Stream { direction, ..plan.clone() }, worker).map(|visits| visits.len())
    };
    let fault = |line, problem| Err(Fault::Trace { line, problem });
    assert_eq!(refusal(Direction::Mixed(0.01), 0), Ok(3));
    assert_eq!(refusal(Direction::Read, 0), fault(4, TraceProblem::Writes));
    assert_eq!(refusal(Direction::Write, 0), fault(3, TraceProblem::Reads));
    assert_eq!(refusal(Direction::Mixed(1.0), 0), fault(4, TraceProblem::Writes));
    assert_eq!(refusal(Direction::FirstRead(1), 1), fault(3, TraceProblem::Reads));
}

#[test]
fn trace_errors_have_path_line_and_hint() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut plan = plan(&directory, "read 0 513");
    let text = |plan: &Stream| {
        let fault = replay(plan, 0).unwrap_err();
        crate::EngineError::from(fault.of_stream(plan, std::path::Path::new("/mnt/f"))).to_string()
    };
    let expected = format!(
        "line 1 of the trace {}: the operation is longer than 512 bytes, the longest operation of \
         the stream; use a block_size of at least the longest operation of the trace",
        plan.trace_file
    );
    assert_eq!(text(&plan), expected);
    plan.trace_file = "/nowhere/list".into();
    assert_eq!(replay(&plan, 0), Err(Fault::TraceFile { errno: libc::ENOENT }));
    assert_eq!(
        text(&plan),
        "reading the trace /nowhere/list; check that it is a file readable by this user"
    );
    plan.trace_file = directory.path().to_str().unwrap().into();
    assert_eq!(replay(&plan, 0), Err(Fault::TraceFile { errno: libc::EINVAL }));
}

proptest! {
    #[test]
    fn any_list_that_fits_is_read_back(
        operations in prop::collection::vec((any::<bool>(), 0u64..4608, 1usize..=512), 1..50),
    ) {
        let directory = tempfile::TempDir::new().unwrap();
        let line = |(reads, offset, len): &(bool, u64, usize)| {
            format!("{} {offset} {len}\n", if *reads { "read" } else { "write" })
        };
        let plan = plan(&directory, operations.iter().map(line).collect::<String>());
        let visits = replay(&plan, 0).unwrap();
        prop_assert_eq!(visits.len(), operations.len());
        for (visit, (reads, offset, len)) in visits.into_iter().zip(operations) {
            let kind = if reads { Kind::Read } else { Kind::Write };
            prop_assert_eq!(visit, PlannedOp { offset, len, kind });
        }
    }
}
