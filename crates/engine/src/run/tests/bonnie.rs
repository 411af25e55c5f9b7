//! Streams of IOzone and bonnie++: marks, updates, tickets, single bytes, and one number of
//! operations for all workers.

use super::*;

/// One synced file of `n` blocks of 512 bytes with marks.
fn marks(interface: IoEngineKind, direction: Direction, n: u64) -> Stream {
    Stream {
        direction,
        io_engine: interface,
        data: DataPattern::Marks,
        end_sync: EndSync::Fsync,
        seed: 5,
        ..Stream::new(FileSharing::One("f".into()), Bytes(n * 512), Bytes(512))
    }
}

fn fresh(stream: Stream) -> Stream {
    Stream {
        open: Open { creation: FileCreation::Fresh, exclusive: true, ..Open::default() },
        direction: Direction::Write,
        ..stream
    }
}

/// Content of a file of `n` blocks with marks.
fn marked(n: usize) -> Vec<Vec<u8>> {
    let mut buffer = vec![0u8; 512];
    let next = |block: usize| {
        buffer[block % 512] = buffer[block % 512].wrapping_add(1);
        buffer.clone()
    };
    (0..n).map(next).collect()
}

/// Increments the byte of a block that an update changes.
fn update(blocks: &mut [Vec<u8>], block: usize) {
    let byte = &mut blocks[block][block % 512];
    *byte = byte.wrapping_add(1);
}

#[test]
fn a_rewritten_file_differs_by_one_byte_per_block() {
    // More blocks than bytes per block, so marks start over.
    let (bench, n) = (Bench::new(), 700);
    let write = fresh(marks(IoEngineKind::Position, Direction::Write, n));
    let result = bench.run(&write).unwrap();
    assert_eq!((result.ops(), result.bytes()), (Ops(n), Bytes(n * 512)));
    let mode = fs::metadata(bench.path("f")).unwrap().permissions().mode();
    assert_eq!(mode & 0o177, 0, "no more than 0600");
    let mut expected = marked(700);
    assert!(fs::read(bench.path("f")).unwrap() == expected.concat());

    let rewrite = marks(IoEngineKind::Position, Direction::Update(1.0), n);
    let result = bench.run(&rewrite).unwrap();
    let worker = &result.workers[0];
    assert_eq!((worker.written.ops, worker.written.bytes), (Ops(n), Bytes(n * 512)));
    assert_eq!((worker.read.ops, worker.read.bytes), (Ops(0), Bytes(0)), "counted once");
    assert_eq!(worker.latencies.write.count(), n);
    assert!(worker.end_sync_time > Nanos(0));
    (0..700).for_each(|block| update(&mut expected, block));
    assert!(fs::read(bench.path("f")).unwrap() == expected.concat());

    // Backward, and a fraction: seeks before each block, and back.
    let some = Stream { access_pattern: AccessPattern::Backward, ..rewrite };
    let some = Stream { direction: Direction::Update(0.25), ..some };
    let result = bench.run(&some).unwrap();
    let worker = &result.workers[0];
    assert_eq!(worker.read.ops + worker.written.ops, Ops(n));
    assert!((100..250).contains(&worker.written.ops.0), "{:?}", worker.written.ops);
    let content = fs::read(bench.path("f")).unwrap();
    let mut changed = 0;
    for (block, found) in content.chunks(512).enumerate() {
        if found != expected[block] {
            update(&mut expected, block);
            changed += 1;
        }
        assert!(found == expected[block], "block {block}");
    }
    assert_eq!(Ops(changed), worker.written.ops);
}

#[test]
fn tickets_that_are_multiples_of_ten_are_written_back() {
    let bench = Bench::new();
    bench.run(&fresh(marks(IoEngineKind::Offset, Direction::Write, 20))).unwrap();
    let seeks = Stream {
        access_pattern: AccessPattern::Tickets,
        bound: Bound::Together(600),
        ..marks(IoEngineKind::Position, Direction::Update(0.1), 20)
    };
    let result = bench.run(&seeks).unwrap();
    let worker = &result.workers[0];
    assert_eq!(worker.read.ops + worker.written.ops, Ops(600));
    let content = fs::read(bench.path("f")).unwrap();
    let before = marked(20);
    let mut increments = 0;
    for (block, found) in content.chunks(512).enumerate() {
        let own = block % 512;
        let grown = found[own].wrapping_sub(before[block][own]);
        assert!(grown == 0 || block.is_multiple_of(10), "block {block}");
        assert!(found[..own] == before[block][..own]);
        assert!(found[own + 1..] == before[block][own + 1..]);
        increments += u64::from(grown);
    }
    assert_eq!(Ops(increments), worker.written.ops);
    assert!((30..100).contains(&increments), "{increments} of 600");
}

#[test]
fn workers_together_run_exactly_the_given_number_of_operations() {
    let bench = Bench::new();
    for interface in interfaces() {
        let mut write = stream(interface, Direction::Write, 8);
        write.files = FileSharing::Shared("shared".into());
        bench.run(&write).unwrap();
        for workers in 1..=5 {
            // Fewer operations than workers, fewer than blocks, and more than blocks.
            for ops in [1, 7, 500] {
                let together = Stream {
                    direction: Direction::Read,
                    access_pattern: AccessPattern::Random,
                    bound: Bound::Together(ops),
                    workers: threads(workers, Stonewall::Off),
                    ..write.clone()
                };
                let result = bench.run(&together).unwrap();
                assert_eq!(result.ops(), Ops(ops), "{interface:?}, {workers} workers");
                assert_eq!(result.bytes(), Bytes(ops * 4096));
            }
        }
    }
}

#[test]
fn single_byte_io_counts_and_times_blocks() {
    let bench = Bench::new();
    let write = fresh(marks(IoEngineKind::Bytewise, Direction::Write, 4));
    let result = bench.run(&write).unwrap();
    assert_eq!((result.ops(), result.bytes()), (Ops(4), Bytes(2048)));
    assert_eq!(result.latencies().write.count(), 4);
    let content = fs::read(bench.path("f")).unwrap();
    let expected: Vec<u8> = (0..2048u32).map(|byte| (byte & 0x7f) as u8).collect();
    assert!(content == expected);
    for access in [AccessPattern::Sequential, AccessPattern::Backward, AccessPattern::Random] {
        let direction = Direction::Read;
        let read = Stream { access_pattern: access, ..marks(IoEngineKind::Bytewise, direction, 4) };
        let result = bench.run(&read).unwrap();
        assert_eq!((result.ops(), result.bytes()), (Ops(4), Bytes(2048)));
        assert!(result.workers[0].end_sync_time > Nanos(0), "a reader syncs, too");
    }
    // Headers are written and verified with single bytes, too.
    let mut write = stream(IoEngineKind::Bytewise, Direction::Write, 3);
    write.access_pattern = AccessPattern::Permutation;
    bench.run(&write).unwrap();
    let read = Stream { direction: Direction::Read, verify: true, ..write };
    assert_eq!(bench.run(&read).unwrap().ops(), Ops(3));
}

#[test]
fn invalid_updates_and_marks_are_rejected() {
    let bench = Bench::new();
    let good = marks(IoEngineKind::Position, Direction::Update(0.5), 4);
    for (plan, said) in [
        (
            Stream { io_engine: IoEngineKind::Offset, ..good.clone() },
            "updates need an I/O engine with a file position",
        ),
        (
            Stream { io_engine: IoEngineKind::Bytewise, ..good.clone() },
            "updates need an I/O engine with a file position",
        ),
        (Stream { data: DataPattern::default(), ..good.clone() }, "content with block headers"),
        (Stream { direction: Direction::Update(1.5), ..good.clone() }, "is out of range"),
        (Stream { direction: Direction::Update(f64::NAN), ..good.clone() }, "is out of range"),
        (Stream { direction: Direction::Update(0.0), ..good.clone() }, "update fraction is 0"),
        (
            Stream {
                access_pattern: AccessPattern::Trace,
                trace_file: "/dev/null".into(),
                ..good.clone()
            },
            "combined with a trace",
        ),
        (
            Stream { access_pattern: AccessPattern::Append, ..good.clone() },
            "appending workers cannot read",
        ),
        (Stream { verify: true, ..good.clone() }, "verify is set while"),
        (
            Stream {
                open: Open { creation: FileCreation::Fresh, ..Open::default() },
                direction: Direction::Update(1.0),
                ..good.clone()
            },
            "reads files that it creates itself",
        ),
        (marks(IoEngineKind::Ring(Ring::of(2)), Direction::Write, 4), "marks uses one buffer"),
    ] {
        let refusal = bench.refusal(&plan);
        assert!(refusal.contains(said), "{refusal}");
    }
    let missing = bench.run(&good).unwrap_err();
    assert!(matches!(missing, EngineError::NotLaidOut { .. }), "{missing}");
}
