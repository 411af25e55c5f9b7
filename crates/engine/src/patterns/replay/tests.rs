use model::{
    Bytes,
    phase::{Access, Bound, Files, Length, Workers},
};
use proptest::prelude::*;

use super::*;
use crate::patterns::{Order, Prepared};

/// A stream over ten records of 512 bytes that replays this list, in the directory given.
fn plan(directory: &tempfile::TempDir, list: impl AsRef<[u8]>) -> Stream {
    let path = directory.path().join("list");
    std::fs::write(&path, list).unwrap();
    Stream {
        access: Access::Replay,
        direction: Direction::Mixed(0.5),
        list: path.to_str().unwrap().into(),
        ..Stream::new(Files::One("f".into()), Bytes(5300), Bytes(512))
    }
}

fn replay(plan: &Stream, worker: u32) -> Result<Vec<Visit>, Fault> {
    let prepared = Prepared::new(plan)?;
    let mut order = Order::new(plan, worker, 0, &prepared)?;
    Ok(std::iter::from_fn(|| order.next()).collect())
}

const LIST: &str = "# recorded\n\nread 0 512\n  write 4608 512 # the last\r\nread\t100 7";

fn read(offset: u64, len: usize) -> Visit {
    Visit { offset, len, kind: Kind::Read }
}

#[test]
fn a_list_is_replayed_as_it_stands_and_again() {
    let directory = tempfile::TempDir::new().unwrap();
    let plan = plan(&directory, LIST);
    let listed = [read(0, 512), Visit { kind: Kind::Write, ..read(4608, 512) }, read(100, 7)];
    assert_eq!(replay(&plan, 0).unwrap(), listed);
    let again = Stream { bound: Bound::Ops(7), ..plan };
    assert!(replay(&again, 0).unwrap().iter().eq(listed.iter().cycle().take(7)));
}

#[test]
fn a_split_file_is_replayed_by_part() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut plan = plan(&directory, "read 512 512");
    (plan.files, plan.workers) = (Files::Split("f".into()), Workers::threads(2));
    assert_eq!(replay(&plan, 1).unwrap(), [read(6 * 512, 512)]);
    std::fs::write(&plan.list, "read 2400 512").unwrap();
    let problem = ListProblem::Beyond { end: 2560 };
    assert_eq!(replay(&plan, 0).unwrap_err(), Fault::List { line: 1, problem });
}

#[test]
fn the_longest_length_of_the_stream_is_the_limit() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut plan = plan(&directory, "read 0 1024");
    let problem = ListProblem::Long { longest: 512 };
    assert_eq!(replay(&plan, 0).unwrap_err(), Fault::List { line: 1, problem });
    plan.lengths = vec![Length { records: 2, weight: 1 }];
    assert_eq!(replay(&plan, 0).unwrap(), [read(0, 1024)]);
}

#[test]
fn a_bad_line_is_told_by_its_number() {
    let directory = tempfile::TempDir::new().unwrap();
    for (list, line, problem) in [
        ("", 0, ListProblem::Empty),
        ("# nothing\n\n", 2, ListProblem::Empty),
        ("read 0 512\nread 0", 2, ListProblem::Syntax),
        ("read 0 512 512", 1, ListProblem::Syntax),
        ("\ntrim 0 512", 2, ListProblem::Syntax),
        ("read 0 4k", 1, ListProblem::Syntax),
        ("read -512 512", 1, ListProblem::Syntax),
        ("read 0 99999999999999999999", 1, ListProblem::Syntax),
        ("read 0 0", 1, ListProblem::Nothing),
        ("write 0 513", 1, ListProblem::Long { longest: 512 }),
        ("write 5000 512", 1, ListProblem::Beyond { end: 5120 }),
        ("write 18446744073709551615 1", 1, ListProblem::Beyond { end: 5120 }),
    ] {
        let found = replay(&plan(&directory, list), 0).unwrap_err();
        assert_eq!(found, Fault::List { line, problem }, "{list}");
    }
    let found = replay(&plan(&directory, b"read 0 512\n\xff\xfe 0 1"), 0).unwrap_err();
    assert_eq!(found, Fault::List { line: 2, problem: ListProblem::Syntax });
}

#[test]
fn a_list_that_goes_another_way_than_the_worker_is_refused() {
    let directory = tempfile::TempDir::new().unwrap();
    let plan = plan(&directory, LIST);
    let refusal = |direction, worker| {
        replay(&Stream { direction, ..plan.clone() }, worker).map(|visits| visits.len())
    };
    let fault = |line, problem| Err(Fault::List { line, problem });
    assert_eq!(refusal(Direction::Mixed(0.01), 0), Ok(3));
    assert_eq!(refusal(Direction::Read, 0), fault(4, ListProblem::Writes));
    assert_eq!(refusal(Direction::Write, 0), fault(3, ListProblem::Reads));
    assert_eq!(refusal(Direction::Mixed(1.0), 0), fault(4, ListProblem::Writes));
    assert_eq!(refusal(Direction::FirstRead(1), 1), fault(3, ListProblem::Reads));
}

#[test]
fn faults_of_a_list_name_it_its_line_and_the_cure() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut plan = plan(&directory, "read 0 513");
    let text = |plan: &Stream| {
        let fault = replay(plan, 0).unwrap_err();
        fault.into_error(plan, std::path::Path::new("/mnt/f")).to_string()
    };
    let expected = format!(
        "line 1 of the list {}: the operation is longer than the longest of the stream, 512 \
         bytes; use a record as long as the longest operation of the list",
        plan.list
    );
    assert_eq!(text(&plan), expected);
    plan.list = "/nowhere/list".into();
    assert_eq!(replay(&plan, 0), Err(Fault::ListFile { errno: libc::ENOENT }));
    assert_eq!(
        text(&plan),
        "reading the list /nowhere/list; check that it is a file that this user may read"
    );
    plan.list = directory.path().to_str().unwrap().into();
    assert_eq!(replay(&plan, 0), Err(Fault::ListFile { errno: libc::EINVAL }));
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
            prop_assert_eq!(visit, Visit { offset, len, kind });
        }
    }
}
