//! Randomly damaged loadfiles: the parser never panics, and accepted programs satisfy their
//! invariants, as an independent checker verifies.
//!
//! `FSLAB_FUZZ_SECONDS` sets the duration (default 5), and `FSLAB_FUZZ_SEED` sets the seed of the
//! damage (default 1). A failure prints the seed and the number of the case; the same seed
//! reproduces it.
#![expect(clippy::print_stdout, reason = "reports the seed of a failure and the number of texts")]

use std::{
    collections::BTreeSet,
    env,
    time::{Duration, Instant},
};

use fastrand::Rng;

use super::*;

/// Small enough that a text with loops takes milliseconds.
const LIMITS: Limits = Limits { names: NameLimits::FULL, ops: 3_000, work: 1 << 20 };

/// Valid and invalid lines.
const LINES: &str = r#"LOOP 3
ENDLOOP
REPEAT 4
RANDOMSTRING 1 "\clients\client1\[abc]/[/.][.]"
RANDOMSTRING 2 "[ab]*"
NTCreateX "$1$2" 0x40 2 *%5 *
NTCreateX "\a" 0x40 2 +1 SUCCESS
Close *%5 SUCCESS
ReadX +0 *%2000000000000 *%2000000000 0 *
WriteX 7 +4096 4096 4096 ERROR
Mkdir "..\..\etc" NT_STATUS_OK
Mkdir "\\server\share" NT_STATUS_OK
Mkdir "\a\.\..\b" NT_STATUS_OK
Unlink "\client1client1client1/client1" 0x6 *
QUERY_PATH_INFORMATION "/etc/passwd" 1 NT_STATUS_OK
FIND_FIRST "*" 260 1366 0 NT_STATUS_NO_SUCH_FILE
Sleep 18446744073709551615 NT_STATUS_OK
SMBopenX 1 2
SETSP 1
SLEEP 5
"#;

const WORDS: [&str; 30] = [
    "..",
    "\\..",
    "../..",
    "//",
    "\\\\",
    "client1",
    "\"",
    "\"\"",
    "*",
    "*%",
    "+",
    "+1",
    "0",
    "0x",
    "0x0",
    "-1",
    "7",
    "1000",
    "4294967295",
    "4294967296",
    "1073741824",
    "1099511627777",
    "18446744073709551616",
    "NT_STATUS_OK",
    "NT_STATUS_",
    "\0",
    "\r",
    "#",
    "$1",
    "1.5",
];

struct Case {
    seed: u64,
    number: u64,
}

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { seed, number } = self;
            println!("case {number} of FSLAB_FUZZ_SEED={seed}");
        }
    }
}

fn variable(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |value| value.parse().expect("an integer"))
}

#[test]
fn damaged_loadfiles_never_break_the_parser_or_its_invariants() {
    let seconds = variable("FSLAB_FUZZ_SECONDS", 5);
    let mut case = Case { seed: variable("FSLAB_FUZZ_SEED", 1), number: 0 };
    let mut random = Rng::with_seed(case.seed);
    let mut office = Vec::new();
    write_load(&Load::Office { iterations: 1, seed: 1 }, &mut office, Path::new("-")).unwrap();
    let office: Vec<&[u8]> = office.split_inclusive(|byte| *byte == b'\n').collect();
    let sources: [Vec<&[u8]>; 3] = [ALL.as_bytes(), LINES.as_bytes()]
        .map(|text| text.split_inclusive(|byte| *byte == b'\n').collect())
        .into_iter()
        .chain([office])
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut accepted = 0_u64;
    while Instant::now() < end || accepted < 20 {
        case.number += 1;
        let text = damaged(&sources, &mut random);
        match read::read(&text, LIMITS) {
            Err(refusal) => {
                let lines = text.split(|byte| *byte == b'\n').count() as u64;
                assert!(refusal.line.is_none_or(|line| (1..=lines).contains(&line)));
                assert!(!refusal.problem.what.is_empty() && refusal.problem.what.len() < 1000);
            }
            Ok((builder, lines)) => {
                accepted += 1;
                check(&finish(builder, lines, Environment::default()).unwrap(), lines);
                if !text.windows(12).any(|word| word == b"RANDOMSTRING") {
                    reread(&text);
                }
            }
        }
    }
    println!("{} texts, of which {accepted} were accepted", case.number);
}

/// Some lines of one or several sources, with zero or a few modifications.
fn damaged(sources: &[Vec<&[u8]>], random: &mut Rng) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..random.usize(1..4) {
        let source = random.choice(sources).unwrap();
        let begin = if random.bool() { 0 } else { random.usize(..source.len()) };
        let len = random.usize(1..60);
        source[begin..].iter().take(len).for_each(|line| text.extend_from_slice(line));
        if random.u8(..3) == 0 {
            break;
        }
    }
    for _ in 0..random.usize(..6) {
        let at = random.usize(..=text.len());
        match random.u8(..6) {
            0 => text.insert(at, random.u8(..)),
            1 => text.truncate(at),
            2 => {
                let end = (at + random.usize(..20)).min(text.len());
                text.drain(at..end);
            }
            3 => {
                let word = random.choice(WORDS).unwrap();
                text.splice(at..at, word.bytes());
            }
            4 => {
                // The word after a blank is replaced.
                let Some(from) = text[at..].iter().position(|byte| *byte == b' ') else { continue };
                let from = at + from + 1;
                let len =
                    text[from..].iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
                let word = random.choice(WORDS).unwrap();
                text.splice(from..from + len, word.bytes());
            }
            _ => {
                if let Some(byte) = text.get_mut(at) {
                    *byte ^= 1 << random.u8(..8);
                }
            }
        }
    }
    text
}

/// Checks the invariants of a program as clients depend on them.
fn check(program: &Program, lines: u64) {
    let ops = program.ops();
    assert!((1..=LIMITS.ops).contains(&ops.len()));
    let names = program.names();
    for client in [1, u32::MAX] {
        for name in names.iter() {
            let path = name.path(client).into_bytes();
            assert!(!path.is_empty() && path.len() <= 4095 && path[0] != b'/');
            for part in path.split(|byte| *byte == b'/') {
                assert!(!part.is_empty() && part.len() <= 255 && part != b"..");
                assert!(part != b"." || path == b".");
            }
            if name.parent == NO_NAME {
                continue;
            }
            let parent = names.get(name.parent).path(client).into_bytes();
            let directory = match path.iter().rposition(|byte| *byte == b'/') {
                Some(slash) => &path[..slash],
                None => b".",
            };
            assert_eq!(directory, parent);
        }
    }
    let mut open = BTreeSet::new();
    let (mut largest, mut timestamped) = (0, false);
    for (index, op) in ops.iter().enumerate() {
        assert!((1..=lines).contains(&program.line(index)));
        timestamped |= op.due().is_some();
        let named = |index: u32| {
            assert!((index as usize) < names.len() && names.get(index).parent != NO_NAME);
        };
        match op.kind() {
            ReplayOp::NTCreateX => {
                named(op.name);
                let opens = op.expected() != Expected::Failure;
                assert_eq!(opens, op.slot != NO_SLOT);
                assert!(!opens || open.insert(op.slot));
            }
            ReplayOp::Close => assert!(open.remove(&op.slot)),
            ReplayOp::Flush | ReplayOp::Qfileinfo | ReplayOp::Sfileinfo => {
                assert!(open.contains(&op.slot));
            }
            ReplayOp::ReadX | ReplayOp::WriteX => {
                assert!(open.contains(&op.slot) && op.size <= 1 << 30 && op.offset <= 1 << 40);
                largest = largest.max(op.size as usize);
            }
            ReplayOp::LockX | ReplayOp::UnlockX => {
                assert!(open.contains(&op.slot) && op.offset <= 1 << 40);
            }
            ReplayOp::Rename => {
                named(op.name);
                named(op.second);
            }
            ReplayOp::Find => {
                named(op.name);
                assert!(op.second == NO_NAME || op.second == names.get(op.name).parent);
            }
            ReplayOp::Unlink
            | ReplayOp::Deltree
            | ReplayOp::Rmdir
            | ReplayOp::Mkdir
            | ReplayOp::Qpathinfo => named(op.name),
            ReplayOp::Qfsinfo => {}
            ReplayOp::Sleep => assert!(op.offset <= 3_600_000_000),
        }
        assert!(
            open.len() <= 10_000 && open.iter().all(|slot| usize::from(*slot) < program.slots())
        );
    }
    assert_eq!((program.largest(), program.timestamped()), (largest, timestamped));
}

/// Checks that a program written as text and parsed again is the same.
fn reread(text: &[u8]) {
    let (first, _) = read::read(text, LIMITS).unwrap();
    let mut again = Vec::new();
    text::write(first.ops(), first.names(), &mut again).unwrap();
    let limits = Limits { work: 1 << 30, ..LIMITS };
    let (second, lines) = read::read(&again, limits).unwrap();
    assert_eq!(lines, first.ops().len() as u64);
    assert_same((first.ops(), first.names()), (second.ops(), second.names()));
}
