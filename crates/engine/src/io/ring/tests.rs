use std::{
    io::Write as _,
    os::{fd::AsRawFd, unix::fs::FileExt},
    path::{Path, PathBuf},
    thread,
};

use model::{
    Bytes,
    phase::{Direction, Ring as Settings, Stream},
};
use tempfile::TempDir;

use super::*;
use crate::{
    buffer::{Class, Slots},
    io::conformance::{battery, stream, turn, uring_is_available, with},
};

const PLAIN: Settings = Settings { fixed_buffers: false, ..Settings::of(8) };
const LINKED: Settings = Settings { linked_fdatasync: true, ..Settings::of(8) };

fn plan(ring: Settings, direction: Direction, records: u64) -> Stream {
    stream(model::phase::IoEngineKind::Ring(ring), direction, records)
}

fn pipe(ring: Settings, then: impl for<'p> FnOnce(Ring<'p>, Slots<'p>, std::io::PipeWriter)) {
    let (reader, writer) = std::io::pipe().unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
    let mut plan = plan(ring, Direction::Read, 1);
    plan.open.creation = model::phase::FileCreation::Existing;
    with(&ring, &plan, &path, AccessMode::Read, |engine, slots| {
        then(engine.unwrap(), slots, writer)
    });
}

fn read<'p>(slots: &mut Slots<'p>, block: u64) -> Op<'p> {
    let (slot, buffer) = slots.take(Class::Read).unwrap();
    Op { kind: Kind::Read, offset: block * 4096, len: 4096, slot, buffer }
}

fn queued(submitted: Submitted<'_>) -> bool {
    matches!(submitted, Submitted::Queued)
}

#[test]
fn rings_conform() {
    if !uring_is_available() {
        return;
    }
    battery(&Settings::of(8));
    battery(&PLAIN);
    battery(&LINKED);
    battery(&Settings { fixed_buffers: false, ..LINKED });
    battery(&Settings { submit_batch: 1, ..PLAIN });
}

/// `depth` operations are in flight, each at another offset.
#[test]
fn the_queue_depth_is_reached_and_completions_match_operations() {
    if !uring_is_available() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("f");
    let bytes: Vec<u8> = (0..32u8).flat_map(|block| [block; 4096]).collect();
    std::fs::write(&path, bytes).unwrap();
    for ring in [Settings::of(8), PLAIN] {
        with(
            &ring,
            &plan(ring, Direction::Read, 32),
            &path,
            AccessMode::Read,
            |engine, mut slots| {
                let mut engine = engine.unwrap();
                let mut seen = Vec::new();
                for (round, expected) in (0..4).zip([8, 16, 24, 32]) {
                    for block in 0..8 {
                        assert!(queued(engine.submit(read(&mut slots, round * 8 + block))));
                    }
                    let buffer = &mut [][..];
                    let more = Op { kind: Kind::Read, offset: 0, len: 0, slot: 0, buffer };
                    assert!(matches!(engine.submit(more), Submitted::Full(_)));
                    engine.commit().unwrap();
                    while seen.len() < expected {
                        assert!(engine.reap(Wait::Some).unwrap(), "one was waited for");
                        while let Some(Completion { mut op, result }) = engine.next() {
                            assert_eq!(result, Ok(()));
                            let block = op.offset / 4096;
                            assert!(op.bytes().iter().all(|byte| u64::from(*byte) == block));
                            seen.push(block);
                            slots.give(op.slot, op.buffer);
                        }
                    }
                }
                seen.sort_unstable();
                assert!(seen.into_iter().eq(0..32));
                engine.close().unwrap();
            },
        );
    }
}

#[test]
fn a_full_batch_accepts_operations_after_a_commit() {
    if !uring_is_available() {
        return;
    }
    let ring = Settings { submit_batch: 2, nop: true, ..Settings::of(5) };
    let plan = plan(ring, Direction::Read, 5);
    with(&ring, &plan, Path::new("/does/not/exist"), AccessMode::Read, |engine, mut slots| {
        let mut engine = engine.unwrap();
        let mut refused = None;
        for expected in [2, 2, 1] {
            let mut taken = 0;
            while taken < 5 {
                let op = refused.take().or_else(|| {
                    slots.take(Class::Read).map(|(slot, buffer)| Op {
                        kind: Kind::Read,
                        offset: 0,
                        len: 4096,
                        slot,
                        buffer,
                    })
                });
                let Some(op) = op else { break };
                match engine.submit(op) {
                    Submitted::Queued => taken += 1,
                    Submitted::Full(op) => {
                        refused = Some(op);
                        break;
                    }
                    Submitted::Done(_) => panic!("the engine has a queue"),
                }
            }
            assert_eq!(taken, expected);
            engine.commit().unwrap();
        }
        assert!(engine.reap(Wait::No).unwrap());
        let done = std::iter::from_fn(|| engine.next()).count();
        assert_eq!(done, 5, "a NOP completes on submission");
        assert_eq!(engine.make_durable(SyncCall::Fsync, (0, 0)), Ok(()));
        engine.close().unwrap();
    });
}

#[test]
fn short_reads_of_the_kernel_are_resumed() {
    if !uring_is_available() {
        return;
    }
    for ring in [Settings::of(1), Settings { depth: 1, ..PLAIN }] {
        pipe(ring, |mut engine, mut slots, mut writer| {
            let feeder = thread::spawn(move || {
                for part in [&[1u8; 1000][..], &[2; 3000], &[3; 96]] {
                    writer.write_all(part).unwrap();
                }
            });
            let (result, bytes) = turn(&mut engine, &mut slots, Kind::Read, (0, 4096), 0);
            assert_eq!(result, Ok(()));
            feeder.join().unwrap();
            assert_eq!((bytes[999], bytes[1000], bytes[4000]), (1, 2, 3));
        });
    }
}

#[test]
fn waiting_ends_at_the_timeout_or_with_a_completion() {
    if !uring_is_available() {
        return;
    }
    pipe(PLAIN, |mut engine, mut slots, mut writer| {
        assert!(queued(engine.submit(read(&mut slots, 0))));
        assert!(!engine.reap(Wait::No).unwrap());
        for wait in [1, 2_000_000] {
            let instant = Nanos(now().0 + wait);
            assert!(!engine.reap(Wait::Until(instant)).unwrap());
            assert!(engine.next().is_none() && now() >= instant);
        }
        writer.write_all(&[7; 4096]).unwrap();
        assert!(engine.reap(Wait::Until(Nanos(u64::MAX / 2))).unwrap());
        assert_eq!(engine.next().unwrap().result, Ok(()));
    });
}

/// The kernel writes to a buffer until its operation completes, so the engine must not be dropped
/// before.
#[test]
fn dropping_waits_for_operations_in_flight() {
    if !uring_is_available() {
        return;
    }
    pipe(PLAIN, |mut engine, mut slots, mut writer| {
        assert!(queued(engine.submit(read(&mut slots, 0))));
        engine.commit().unwrap();
        assert!(queued(engine.submit(read(&mut slots, 0))), "queued, but not committed");
        let feeder = thread::spawn(move || {
            writer.write_all(&[7; 8192]).unwrap();
            writer
        });
        drop(engine);
        drop(feeder.join().unwrap());
    });
}

#[test]
fn a_linked_sync_is_part_of_its_write() {
    if !uring_is_available() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("f");
    let plan = plan(LINKED, Direction::Write, 8);
    with(&LINKED, &plan, &path, AccessMode::Write, |engine, mut slots| {
        let mut engine = engine.unwrap();
        for block in 0..8 {
            let (slot, buffer) = slots.take(Class::Write).unwrap();
            let op = Op { kind: Kind::Write, offset: block * 4096, len: 4096, slot, buffer };
            assert!(queued(engine.submit(op)), "all pairs fit into the queue");
        }
        engine.commit().unwrap();
        let mut out = Vec::new();
        while out.len() < 8 {
            engine.reap(Wait::Some).unwrap();
            out.extend(std::iter::from_fn(|| engine.next()));
        }
        assert!(out.iter().all(|completion| completion.result == Ok(())));
        engine.close().unwrap();
    });
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 8 * 4096);
    // A pipe can be written to, but not synced.
    let (reader, writer) = std::io::pipe().unwrap();
    let pipe = PathBuf::from(format!("/proc/self/fd/{}", writer.as_raw_fd()));
    with(&LINKED, &plan, &pipe, AccessMode::Write, |engine, mut slots| {
        let mut engine = engine.unwrap();
        let (result, _) = turn(&mut engine, &mut slots, Kind::Write, (0, 4096), 1);
        let cause = Cause::Os(Errno::INVAL);
        assert_eq!(result, Err(IoFault { operation: Operation::Sync, moved: 0, cause }));
    });
    drop(reader);
}

#[test]
fn a_polling_thread_works_or_reports_a_missing_cpu() {
    if !uring_is_available() {
        return;
    }
    let ring = Settings { sqpoll: true, ..Settings::of(8) };
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("f");
    let plan = plan(ring, Direction::Write, 1);
    let refusal = with(&ring, &plan, &path, AccessMode::Write, |engine, _| engine.map(drop).err());
    match refusal {
        None => {
            battery(&ring);
            battery(&Settings {
                submit_batch: 3,
                linked_fdatasync: true,
                fixed_buffers: false,
                ..ring
            });
        }
        Some(fault) => {
            assert_eq!(fault, Fault::whole(Operation::PollThread, Errno::BUSY));
            let text = crate::EngineError::from(fault.of_stream(&plan, &path)).to_string();
            assert!(text.contains("the process has only one; "), "{text}");
        }
    }
}

/// There is no fallback to interrupts: completions are polled, or the phase fails.
#[test]
fn polling_for_completions_works_or_reports_the_missing_feature() {
    if !uring_is_available() {
        return;
    }
    let ring = Settings { iopoll: true, ..Settings::of(2) };
    let directory = TempDir::new_in("/var/tmp").unwrap();
    let path = directory.path().join("f");
    let mut plan = plan(ring, Direction::Write, 2);
    plan.open.direct = true;
    let result = with(&ring, &plan, &path, AccessMode::Write, |engine, mut slots| {
        let (result, _) = turn(&mut engine?, &mut slots, Kind::Write, (0, 4096), 1);
        result.map_err(|fault| fault.at(0))
    });
    if let Err(fault) = result {
        let text = crate::EngineError::from(fault.of_stream(&plan, &path)).to_string();
        let direct = text.contains("with direct I/O: ");
        assert!(direct || text.contains("the device has no poll queues, "), "{text}");
    }
}

#[test]
fn many_slots_are_registered_and_used() {
    if !uring_is_available() {
        return;
    }
    let ring = Settings::of(4);
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("f");
    let plan = Stream { block_size: Bytes(1536), ..plan(ring, Direction::Write, 300) };
    with(&ring, &plan, &path, AccessMode::Write, |engine, mut slots| {
        let mut engine = engine.unwrap();
        for block in 0..700u16 {
            let place = (u64::from(block) * 1536, 1536);
            let byte = (block % 251) as u8;
            assert_eq!(turn(&mut engine, &mut slots, Kind::Write, place, byte).0, Ok(()));
        }
        engine.close().unwrap();
    });
    let mut last = [0; 1536];
    std::fs::File::open(&path).unwrap().read_exact_at(&mut last, 699 * 1536).unwrap();
    assert!(last.iter().all(|byte| *byte == (699 % 251) as u8));
}

/// Results for a write of ten bytes in flight.
fn verdicts(data: u64, answers: &[(u64, i32)]) -> Vec<Verdict> {
    let mut buffer = [0; 10];
    let op = Op { kind: Kind::Write, offset: 0, len: 10, slot: 0, buffer: &mut buffer };
    let mut flight =
        InFlight { op: Some(op), moved: 0, expected: 10, buffer: 0, awaited: 2, other: 0 };
    let options = SqeOptions {
        first: 0,
        nop: false,
        registered: false,
        linked_sync: data != 0,
        iopoll: true,
        descriptor: 0,
    };
    answers.iter().map(|(which, answer)| flight.classify(*which, *answer, options)).collect()
}

fn faulty(operation: Operation, moved: u64, errno: Errno) -> Verdict {
    Verdict::Over(Err(IoFault { operation, moved, cause: Cause::Os(errno) }))
}

#[test]
fn results_are_classified() {
    let one = |answers: &[i32]| {
        let answers: Vec<(u64, i32)> = answers.iter().map(|answer| (0, *answer)).collect();
        verdicts(0, &answers).pop().unwrap()
    };
    assert_eq!(one(&[4]), Verdict::Again);
    assert_eq!(one(&[4, 6]), Verdict::Over(Ok(())));
    assert_eq!(one(&[-libc::EINTR]), Verdict::Again);
    assert_eq!(one(&[-libc::EAGAIN]), Verdict::Again);
    assert_eq!(one(&[4, -libc::ENOSPC]), faulty(Operation::Write, 4, Errno::NOSPC));
    assert_eq!(one(&[-libc::EOPNOTSUPP]), faulty(Operation::Poll, 0, Errno::OPNOTSUPP));
    let fault = IoFault { operation: Operation::Write, moved: 3, cause: Cause::Nothing };
    assert_eq!(one(&[3, 0]), Verdict::Over(Err(fault)));
}

#[test]
fn a_canceled_sync_does_not_hide_the_cause() {
    let pair = |written, synced| {
        let forward = verdicts(1, &[(LINKED_WRITE, written), (LINKED_SYNC, synced)]).pop().unwrap();
        let mut backward = verdicts(1, &[(LINKED_SYNC, synced), (LINKED_WRITE, written)]);
        assert_eq!(backward.first(), Some(&Verdict::Pending));
        assert_eq!(backward.pop().unwrap(), forward, "the order does not matter");
        forward
    };
    assert_eq!(pair(10, 0), Verdict::Over(Ok(())));
    assert_eq!(pair(-libc::ENOSPC, -libc::ECANCELED), faulty(Operation::Write, 0, Errno::NOSPC));
    assert_eq!(pair(6, -libc::ECANCELED), Verdict::Again);
    assert_eq!(pair(10, -libc::EIO), faulty(Operation::Sync, 0, Errno::IO));
    assert_eq!(pair(10, -libc::EINTR), Verdict::Again);
}
