use model::phase::{FileCall, TraceOrder};

use super::*;

const IOLOG: &str = "fio version 3 iolog
20 /srv/f add
122 /srv/f open
126 /srv/f read 4096 4096
20346 /data/f write 28672 4096
20400 /srv/f sync 28672 0
20500 /srv/f trim 0 4096
20600 /srv/f close
";

/// Written by blkparse of blktrace 1.3: one request is merged from two operations.
const BLKPARSE: &str = "  8,0    3        1     0.000000100   697  Q   W 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  G   W 223490 + 8 [kjournald]
  8,0    3        3     0.000002000   697  Q  WS 223498 + 8 [kjournald]
  8,0    3        4     0.000002500   697  Q   R 16 + 16 [cat]
  8,0    3        5     0.000003000   697  D   W 223490 + 16 [kjournald]
  8,0    1        6     0.000900000     0  C   W 223490 + 16 [0]
  8,0    1        7     0.000950000   697  Q FWFS 1000 + 8 [kjournald]
  8,0    1        8     0.000960000   697  Q   D 5000 + 8 [fstrim]
  8,16   1        9     0.001000000   697  Q   R 0 + 8 [cat]
  8,0    1       10     0.002000000     0  C   R 16 + 16 [0]
CPU0 (8,0):
 Reads Queued:           1,        8KiB\t Writes Queued:           3,       12KiB
";

fn imported(log: &str) -> Recording {
    assert!(is_block_log(log.as_bytes()));
    let recording = import_block_log(log.as_bytes()).unwrap();
    crate::compile(&recording, TraceOrder::Resources).unwrap();
    recording
}

fn refused(log: &str) -> String {
    import_block_log(log.as_bytes()).unwrap_err().to_string()
}

/// Call, begin, length, file, offset, and size of each operation of a task.
fn ops(recording: &Recording, task: usize) -> Vec<(FileCall, u64, u64, u32, u64, u64)> {
    let own = |op: &Op| (op.call, op.begin, op.length, op.fd, op.offset, op.size);
    recording.tasks[task].ops.iter().map(own).collect()
}

#[test]
fn iologs_become_one_task() {
    let recording = imported(IOLOG);
    assert_eq!(recording.tasks.len(), 1);
    let open = (FileCall::Open, 0, 0, 0, 0, 0);
    let expected = [
        open,
        open,
        (FileCall::Pread, 126_000, 0, 1, 4096, 4096),
        (FileCall::Pwrite, 20_346_000, 0, 2, 28_672, 4096),
        (FileCall::Fsync, 20_400_000, 0, 1, 0, 0),
    ];
    assert_eq!(ops(&recording, 0), expected);
    let names: Vec<&[u8]> = recording.nodes.iter().map(|node| recording.path(node.name)).collect();
    assert_eq!(names, [&b""[..], b"f", b"f-2"], "files of two directories");
    assert_eq!(recording.nodes[2].size, 32_768, "up to the last byte");
    assert_eq!(recording.facts["not_recorded.trim"], "1");
    assert_eq!(recording.facts["recorder"], "fio");
    assert_eq!(crate::summary(&recording).share, None, "the times of calls are unknown");
}

#[test]
fn waits_of_version_2_are_pauses() {
    let recording = imported(
        "fio version 2 iolog\nf add\nf open\nf write 0 512\nf wait 250 0\nf read 0 512\nf datasync 0 0\n",
    );
    let thinks: Vec<u64> = recording.tasks[0].ops.iter().map(|op| op.think).collect();
    assert_eq!(thinks, [0, 0, 250_000, 0]);
}

#[test]
fn operations_in_flight_at_the_same_time_are_of_several_tasks() {
    let recording = imported(BLKPARSE);
    let sector = 512;
    let first = ops(&recording, 0);
    assert_eq!(first[2], (FileCall::Pwrite, 100, 899_900, 1, 223_490 * sector, 8 * sector));
    assert_eq!(first[3], (FileCall::Fdatasync, 950_000, 0, 1, 0, 0), "a flush before the write");
    assert_eq!(first[4], (FileCall::Pwrite, 950_000, 0, 1, 1000 * sector, 8 * sector));
    assert_eq!(first[5], (FileCall::Pread, 1_000_000, 0, 2, 0, 8 * sector));
    let merged = (FileCall::Pwrite, 2000, 898_000, 1, 223_498 * sector, 8 * sector);
    assert_eq!(ops(&recording, 1), [merged]);
    let read = (FileCall::Pread, 2500, 1_997_500, 1, 16 * sector, 16 * sector);
    assert_eq!(ops(&recording, 2), [read]);
    assert_eq!(recording.facts["not_recorded.discard"], "1");
    assert_eq!(recording.facts["not_recorded.forced unit access"], "1");
    assert_eq!(recording.facts["elapsed_ns"], "2000000");
}

#[test]
fn other_texts_and_absurd_numbers_are_rejected() {
    assert!(!is_block_log(b"fio version 3.33\n") && !is_block_log(b"1,2 3\n"));
    for (log, reason) in [
        ("fio version 1 iolog\n", "version 1"),
        ("fio version 3 iolog\n", "no reads"),
        ("fio version 3 iolog\nx f read 0 1\n", "line 2: it has no time"),
        ("fio version 2 iolog\nf erase 0 1\n", "line 2: its action is unknown"),
        ("fio version 2 iolog\nf read -1 1\n", "line 2: its offset"),
        ("fio version 2 iolog\nf read 0 9999999999\n", "line 2: the operation has more than 1 GiB"),
        (
            "fio version 2 iolog\nf read 18446744073709551615 1\n",
            "line 2: the operation is beyond 8 EiB",
        ),
    ] {
        assert!(refused(log).contains(reason), "{log}: {}", refused(log));
    }
}
