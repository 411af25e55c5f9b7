//! System calls of the phases that reproduce bonnie++, dbench, and smallfile, compared with
//! fixtures derived from these programs: names, sizes, order, and origins of offsets. The calls of
//! SQLite transactions and of deliveries of mail are counted.
//!
//! This binary starts itself under strace(1) for each phase ([`strace`]). Without arguments it runs
//! the tests below in sequence; a failing one panics.
#![expect(clippy::unwrap_used, reason = "a test without the harness, which clippy does not see")]
#![expect(clippy::print_stderr, reason = "reports that the test is skipped")]

use std::{env, ffi::OsString, path::Path};

use model::{
    Bytes,
    phase::{
        AccessPattern, Bound, DataPattern, Direction, EndSync, FileCreation, FileSharing,
        IoEngineKind, Open, Stream, SyncCall, SyncEvery, SyncInterval, Work, Workers,
    },
};
use tempfile::TempDir;

#[path = "traces/mail.rs"]
mod mail;
#[path = "traces/replay.rs"]
mod replay;
#[path = "traces/sqlite.rs"]
mod sqlite;
#[path = "traces/strace.rs"]
mod strace;
#[path = "traces/tree.rs"]
mod tree;

use strace::{Call, expected, threads, traced};

/// Chunk size of bonnie++ in bytes.
const CHUNK: u64 = 8192;

fn main() {
    let arguments: Vec<OsString> = env::args_os().collect();
    if arguments.get(1).is_some_and(|role| role == strace::ROLE) {
        return strace::perform(&arguments[2..]);
    }
    if strace::available() {
        byte_and_block_phases_make_the_calls_of_bonnie();
        seekers_make_the_calls_of_bonnie();
        tree::tests();
        replay::tests();
        mail::deliveries_make_the_calls_of_the_reference_page();
        sqlite::transactions_make_the_calls_of_the_reference_page();
    }
}

/// Phase of bonnie++ over this number of chunks: opened exclusively, synced before it is closed.
fn bonnie(interface: IoEngineKind, direction: Direction, chunks: u64) -> Stream {
    Stream {
        direction,
        io_engine: interface,
        open: Open { exclusive: true, ..Open::default() },
        data: DataPattern::Marks,
        end_sync: EndSync::Fsync,
        seed: 1,
        ..Stream::new(FileSharing::One("Bonnie".into()), Bytes(chunks * CHUNK), Bytes(CHUNK))
    }
}

fn created(interface: IoEngineKind, chunks: u64) -> Stream {
    let open = Open { creation: FileCreation::Fresh, exclusive: true, ..Open::default() };
    Stream { open, ..bonnie(interface, Direction::Write, chunks) }
}

/// Calls of a phase on its file, except for the fstat before the clock starts.
fn calls(stream: Stream, directory: &Path) -> Vec<String> {
    let mut calls = traced(&Work::Stream(stream), directory);
    calls.retain(|call| call != "stat");
    calls
}

/// Calls with repetitions counted, for readable differences.
fn folded(calls: &[String]) -> Vec<String> {
    let runs = calls.chunk_by(|one, next| one == next);
    runs.map(|run| format!("{} x{}", run[0], run.len())).collect()
}

fn byte_and_block_phases_make_the_calls_of_bonnie() {
    let directory = TempDir::new().unwrap();
    for (phase, stream, fixture) in [
        ("byte write", created(IoEngineKind::Bytewise, 2), include_str!("traces/byte-write.txt")),
        ("block write", created(IoEngineKind::Position, 8), include_str!("traces/block-write.txt")),
        (
            "rewrite",
            bonnie(IoEngineKind::Position, Direction::Update(1.0), 8),
            include_str!("traces/rewrite.txt"),
        ),
        (
            "byte read",
            bonnie(IoEngineKind::Bytewise, Direction::Read, 2),
            include_str!("traces/byte-read.txt"),
        ),
        (
            "block read",
            bonnie(IoEngineKind::Position, Direction::Read, 8),
            include_str!("traces/block-read.txt"),
        ),
    ] {
        let made = calls(stream, directory.path());
        assert_eq!(folded(&made), folded(&expected(fixture)), "{phase}");
    }
}

/// With a multiple of ten chunks, an offset determines if its ticket is a multiple of ten: only
/// those are written back.
fn seekers_make_the_calls_of_bonnie() {
    const CHUNKS: u64 = 20;
    let directory = TempDir::new().unwrap();
    calls(created(IoEngineKind::Position, CHUNKS), directory.path());
    let seeks = Stream {
        files: FileSharing::Shared("Bonnie".into()),
        access_pattern: AccessPattern::Tickets,
        bound: Bound::Together(60),
        workers: Workers::threads(2),
        ..bonnie(IoEngineKind::Position, Direction::Update(0.1), CHUNKS)
    };
    let every =
        SyncEvery { after: SyncInterval::Ops(1), call: SyncCall::Fsync, before_next: false };
    let synced = Stream { sync_every: Some(every), ..seeks.clone() };
    for (stream, fixture) in [
        (seeks, include_str!("traces/seeks.txt")),
        (synced, include_str!("traces/seeks-synced.txt")),
    ] {
        let parts: Vec<Vec<String>> = fixture.split("---").map(expected).collect();
        let parts: [Vec<String>; 4] = parts.try_into().unwrap();
        let seekers = threads(&Work::Stream(stream), directory.path());
        assert_eq!(seekers.len(), 2);
        let counts: Vec<_> = seekers.iter().map(|calls| seeker(calls, &parts)).collect();
        let (tickets, updates) =
            counts.iter().fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1));
        assert_eq!(tickets, 60);
        assert!(updates > 0, "none of 60 tickets was an update");
    }
}

/// Number of tickets of a seeker, and number of updates; all other calls match the four parts of
/// the fixture.
fn seeker(calls: &[Call], parts: &[Vec<String>; 4]) -> (u64, u64) {
    let [head, ticket, update, tail] = parts;
    let calls: Vec<&Call> = calls.iter().filter(|call| call.name != "stat").collect();
    let lines: Vec<String> = calls.iter().map(|call| call.to_string()).collect();
    let (first, rest) = lines.split_at(head.len());
    assert_eq!(first, head);
    let (mut rest, last) = rest.split_at(rest.len() - tail.len());
    assert_eq!(last, tail);
    let (mut tickets, mut updates) = (0, 0);
    while let Some((seek, _)) = rest.split_first() {
        let place: u64 = seek.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(place.is_multiple_of(CHUNK), "{seek}");
        let due = (place / CHUNK).is_multiple_of(10);
        let part = if due { update } else { ticket };
        let part: Vec<String> =
            part.iter().map(|line| line.replace("PLACE", &place.to_string())).collect();
        let (made, others) = rest.split_at(part.len().min(rest.len()));
        assert_eq!(made, part);
        (tickets, updates) = (tickets + 1, updates + u64::from(due));
        rest = others;
    }
    (tickets, updates)
}
