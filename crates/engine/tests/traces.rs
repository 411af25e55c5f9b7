//! System calls of the phases that repeat a classic tool, compared with fixtures that were written
//! by hand from what that tool does: names, sizes, order, and from where a distance counts.
//!
//! This binary starts itself under strace(1) for each phase ([`strace`]). Without arguments it runs
//! the tests below, one after the other; a failing one panics.
#![expect(clippy::unwrap_used, reason = "a test without the harness, which clippy does not see")]
#![expect(clippy::print_stderr, reason = "the tests that are skipped are counted by this line")]

use std::{env, ffi::OsString, path::Path};

use model::{
    Bytes,
    phase::{
        Access, Amount, Bound, Direction, Files, Fill, Flush, FlushCall, FlushEvery, Interface,
        Open, Presence, Stream, Work, Workers,
    },
};
use tempfile::TempDir;

#[path = "traces/replay.rs"]
mod replay;
#[path = "traces/strace.rs"]
mod strace;
#[path = "traces/tree.rs"]
mod tree;

use strace::{Call, expected, threads, traced};

/// Bytes of a chunk of bonnie++.
const CHUNK: u64 = 8192;

fn main() {
    let arguments: Vec<OsString> = env::args_os().collect();
    if arguments.get(1).is_some_and(|role| role == strace::ROLE) {
        return strace::perform(&arguments[2..]);
    }
    if strace::available() {
        bytes_and_blocks_make_the_calls_of_bonnie();
        seekers_make_the_calls_of_bonnie();
        tree::tests();
        replay::tests();
    }
}

/// A phase of bonnie++ over so many chunks: opened as its own, flushed before it is closed.
fn bonnie(interface: Interface, direction: Direction, chunks: u64) -> Stream {
    Stream {
        direction,
        interface,
        open: Open { own: true, ..Open::default() },
        fill: Fill::Marks,
        flush: Flush::Fsync,
        seed: 1,
        ..Stream::new(Files::One("Bonnie".into()), Bytes(chunks * CHUNK), Bytes(CHUNK))
    }
}

fn created(interface: Interface, chunks: u64) -> Stream {
    let open = Open { presence: Presence::Fresh, own: true, ..Open::default() };
    Stream { open, ..bonnie(interface, Direction::Write, chunks) }
}

/// The calls of a phase on its file, but for the look at its length before the clock starts.
fn calls(stream: Stream, directory: &Path) -> Vec<String> {
    let mut calls = traced(&Work::Stream(stream), directory);
    calls.retain(|call| call != "stat");
    calls
}

/// Calls with those that follow their like counted, which is what one can read when they differ.
fn folded(calls: &[String]) -> Vec<String> {
    let runs = calls.chunk_by(|one, next| one == next);
    runs.map(|run| format!("{} x{}", run[0], run.len())).collect()
}

fn bytes_and_blocks_make_the_calls_of_bonnie() {
    let directory = TempDir::new().unwrap();
    for (phase, stream, fixture) in [
        ("byte write", created(Interface::Bytewise, 2), include_str!("traces/byte-write.txt")),
        ("block write", created(Interface::Position, 8), include_str!("traces/block-write.txt")),
        (
            "rewrite",
            bonnie(Interface::Position, Direction::Update(1.0), 8),
            include_str!("traces/rewrite.txt"),
        ),
        (
            "byte read",
            bonnie(Interface::Bytewise, Direction::Read, 2),
            include_str!("traces/byte-read.txt"),
        ),
        (
            "block read",
            bonnie(Interface::Position, Direction::Read, 8),
            include_str!("traces/block-read.txt"),
        ),
    ] {
        let made = calls(stream, directory.path());
        assert_eq!(folded(&made), folded(&expected(fixture)), "{phase}");
    }
}

/// With a multiple of ten chunks, a place tells whether its ticket is a multiple of ten: those and
/// no others are written back.
fn seekers_make_the_calls_of_bonnie() {
    const CHUNKS: u64 = 20;
    let directory = TempDir::new().unwrap();
    calls(created(Interface::Position, CHUNKS), directory.path());
    let seeks = Stream {
        files: Files::Shared("Bonnie".into()),
        access: Access::Tickets,
        bound: Bound::Together(60),
        workers: Workers::threads(2),
        ..bonnie(Interface::Position, Direction::Update(0.1), CHUNKS)
    };
    let every = FlushEvery { after: Amount::Ops(1), call: FlushCall::Fsync };
    let synced = Stream { flush_every: Some(every), ..seeks.clone() };
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

/// The tickets that a seeker had, and how many of them were updates; everything else is as the
/// four parts of the fixture say.
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
