//! Streams that the classic tools have: marks, updates, tickets, single bytes, and one number of
//! operations for all workers.

use super::*;

/// One file of `n` records of 512 bytes, with marks, and flushed.
fn marks(interface: Interface, direction: Direction, n: u64) -> Stream {
    Stream {
        direction,
        interface,
        fill: Fill::Marks,
        flush: Flush::Fsync,
        seed: 5,
        ..Stream::new(Files::One("f".into()), Bytes(n * 512), Bytes(512))
    }
}

fn fresh(stream: Stream) -> Stream {
    Stream {
        open: Open { presence: Presence::Fresh, own: true, ..Open::default() },
        direction: Direction::Write,
        ..stream
    }
}

/// What marks make of a file of `n` records.
fn marked(n: usize) -> Vec<Vec<u8>> {
    let mut buffer = vec![0u8; 512];
    let next = |record: usize| {
        buffer[record % 512] = buffer[record % 512].wrapping_add(1);
        buffer.clone()
    };
    (0..n).map(next).collect()
}

/// One more in the byte of a record that is its own.
fn update(records: &mut [Vec<u8>], record: usize) {
    let byte = &mut records[record][record % 512];
    *byte = byte.wrapping_add(1);
}

#[test]
fn a_rewritten_file_differs_by_one_byte_of_each_record() {
    // More records than a record has bytes, so marks are made again from the start.
    let (bench, n) = (Bench::new(), 700);
    let write = fresh(marks(Interface::Position, Direction::Write, n));
    let result = bench.run(&write).unwrap();
    assert_eq!((result.ops(), result.bytes()), (Ops(n), Bytes(n * 512)));
    let mode = fs::metadata(bench.path("f")).unwrap().permissions().mode();
    assert_eq!(mode & 0o177, 0, "no more than 0600");
    let mut expected = marked(700);
    assert!(fs::read(bench.path("f")).unwrap() == expected.concat());

    let rewrite = marks(Interface::Position, Direction::Update(1.0), n);
    let result = bench.run(&rewrite).unwrap();
    let worker = &result.workers[0];
    assert_eq!((worker.written.ops, worker.written.bytes), (Ops(n), Bytes(n * 512)));
    assert_eq!((worker.read.ops, worker.read.bytes), (Ops(0), Bytes(0)), "counted once");
    assert_eq!(worker.latencies.write.count(), n);
    assert!(worker.flush_time > Nanos(0));
    (0..700).for_each(|record| update(&mut expected, record));
    assert!(fs::read(bench.path("f")).unwrap() == expected.concat());

    // Backward and some of it: seeks before each record, and back.
    let some = Stream { access: Access::Backward, ..rewrite };
    let some = Stream { direction: Direction::Update(0.25), ..some };
    let result = bench.run(&some).unwrap();
    let worker = &result.workers[0];
    assert_eq!(worker.read.ops + worker.written.ops, Ops(n));
    assert!((100..250).contains(&worker.written.ops.0), "{:?}", worker.written.ops);
    let content = fs::read(bench.path("f")).unwrap();
    let mut changed = 0;
    for (record, found) in content.chunks(512).enumerate() {
        if found != expected[record] {
            update(&mut expected, record);
            changed += 1;
        }
        assert!(found == expected[record], "record {record}");
    }
    assert_eq!(Ops(changed), worker.written.ops);
}

#[test]
fn tickets_are_written_back_where_they_are_multiples_of_ten() {
    let bench = Bench::new();
    bench.run(&fresh(marks(Interface::Offset, Direction::Write, 20))).unwrap();
    let seeks = Stream {
        access: Access::Tickets,
        bound: Bound::Together(600),
        ..marks(Interface::Position, Direction::Update(0.1), 20)
    };
    let result = bench.run(&seeks).unwrap();
    let worker = &result.workers[0];
    assert_eq!(worker.read.ops + worker.written.ops, Ops(600));
    let content = fs::read(bench.path("f")).unwrap();
    let before = marked(20);
    let mut increments = 0;
    for (record, found) in content.chunks(512).enumerate() {
        let own = record % 512;
        let grown = found[own].wrapping_sub(before[record][own]);
        assert!(grown == 0 || record.is_multiple_of(10), "record {record}");
        assert!(found[..own] == before[record][..own]);
        assert!(found[own + 1..] == before[record][own + 1..]);
        increments += u64::from(grown);
    }
    assert_eq!(Ops(increments), worker.written.ops);
    assert!((30..100).contains(&increments), "{increments} of 600");
}

#[test]
fn workers_together_do_so_many_operations_and_no_more() {
    let bench = Bench::new();
    for interface in interfaces() {
        let mut write = stream(interface, Direction::Write, 8);
        write.files = Files::Shared("shared".into());
        bench.run(&write).unwrap();
        for workers in 1..=5 {
            // More and less than there are records, and fewer than there are workers.
            for ops in [1, 7, 500] {
                let together = Stream {
                    direction: Direction::Read,
                    access: Access::Random,
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
fn a_byte_at_a_time_counts_and_times_records() {
    let bench = Bench::new();
    let write = fresh(marks(Interface::Bytewise, Direction::Write, 4));
    let result = bench.run(&write).unwrap();
    assert_eq!((result.ops(), result.bytes()), (Ops(4), Bytes(2048)));
    assert_eq!(result.latencies().write.count(), 4);
    let content = fs::read(bench.path("f")).unwrap();
    let expected: Vec<u8> = (0..2048u32).map(|byte| (byte & 0x7f) as u8).collect();
    assert!(content == expected);
    for access in [Access::Sequential, Access::Backward, Access::Random] {
        let direction = Direction::Read;
        let read = Stream { access, ..marks(Interface::Bytewise, direction, 4) };
        let result = bench.run(&read).unwrap();
        assert_eq!((result.ops(), result.bytes()), (Ops(4), Bytes(2048)));
        assert!(result.workers[0].flush_time > Nanos(0), "a reader flushes as well");
    }
    // Headers are written and found a byte at a time as well.
    let mut write = stream(Interface::Bytewise, Direction::Write, 3);
    write.access = Access::Permuted;
    bench.run(&write).unwrap();
    let read = Stream { direction: Direction::Read, verify: true, ..write };
    assert_eq!(bench.run(&read).unwrap().ops(), Ops(3));
}

#[test]
fn updates_and_marks_that_contradict_themselves_are_refused() {
    let bench = Bench::new();
    let good = marks(Interface::Position, Direction::Update(0.5), 4);
    for (plan, said) in [
        (
            Stream { interface: Interface::Offset, ..good.clone() },
            "done at the position of an open file",
        ),
        (
            Stream { interface: Interface::Bytewise, ..good.clone() },
            "done at the position of an open file",
        ),
        (Stream { fill: Fill::default(), ..good.clone() }, "content that has headers"),
        (Stream { direction: Direction::Update(1.5), ..good.clone() }, "is not a share"),
        (Stream { direction: Direction::Update(f64::NAN), ..good.clone() }, "is not a share"),
        (Stream { direction: Direction::Update(0.0), ..good.clone() }, "updates nothing"),
        (
            Stream { access: Access::Replay, list: "/dev/null".into(), ..good.clone() },
            "what a list says",
        ),
        (Stream { access: Access::Append, ..good.clone() }, "appends and reads"),
        (Stream { verify: true, ..good.clone() }, "verifies what it overwrites"),
        (
            Stream {
                open: Open { presence: Presence::Fresh, ..Open::default() },
                direction: Direction::Update(1.0),
                ..good.clone()
            },
            "reads files that it has just created",
        ),
        (marks(Interface::Ring(Ring::of(2)), Direction::Write, 4), "one buffer for their marks"),
    ] {
        let refusal = bench.refusal(&plan);
        assert!(refusal.contains(said), "{refusal}");
    }
    let missing = bench.run(&good).unwrap_err();
    assert!(matches!(missing, EngineError::NotLaidOut { .. }), "{missing}");
}
