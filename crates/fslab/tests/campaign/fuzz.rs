//! Readers of untrusted input, called with damaged seeds for five seconds in total.
//!
//! `FSLAB_FUZZ_SECONDS` sets the time per target, `FSLAB_FUZZ_TARGET` selects a target, and
//! `FSLAB_FUZZ_SEED` sets the seed of the damage. A failure prints seed and case, and saves the
//! input. `scripts/fuzz` calls the same readers with coverage guidance.

use std::{
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{Section, tries};
use crate::support::{files, root};

/// Reader, and its seeds: files below these paths of the repository.
struct Target {
    name: &'static str,
    read: fn(&[u8]),
    seeds: &'static [&'static str],
}

const fn target(name: &'static str, read: fn(&[u8]), seeds: &'static [&'static str]) -> Target {
    Target { name, read, seeds }
}

const TARGETS: [Target; 25] = [
    target("run_file", run_file, &["fuzz/seeds/run_file"]),
    target("plan", suites::fuzz::plan, &["plans", "fuzz/seeds/plan"]),
    target("load_file", engine::fuzz::load_file, &["fuzz/seeds/load_file"]),
    target("load_file_on_disk", engine::fuzz::load_file_on_disk, &["fuzz/seeds/load_file"]),
    target("crash_state", engine::fuzz::crash_state, &["fuzz/seeds/crash_state"]),
    target("trace", trace::fuzz::recording, &["fuzz/seeds/trace"]),
    target("strace", trace::fuzz::strace, &["fuzz/seeds/strace"]),
    target("block_log", trace::fuzz::block_log, &["fuzz/seeds/block_log"]),
    target("bonnie", report::fuzz::bonnie, &["fuzz/seeds/bonnie"]),
    target("fio_job", suites::fuzz::fio_job, &["fuzz/seeds/fio_job"]),
    target("fio_json", report::fuzz::fio_json, &["fuzz/seeds/fio_json"]),
    target("fio_terse", report::fuzz::fio_terse, &["fuzz/seeds/fio_terse"]),
    target("iozone", report::fuzz::iozone, &["fuzz/seeds/iozone"]),
    target("dbench_text", report::fuzz::dbench_text, &["fuzz/seeds/dbench_text"]),
    target("printed", report::fuzz::printed, &["fuzz/seeds/printed"]),
    target("audit", report::fuzz::audit, &["fuzz/seeds/audit"]),
    target("kernel", guest::fuzz::kernel, &["fuzz/seeds/kernel"]),
    target("stream", guest::fuzz::stream, &["fuzz/seeds/stream"]),
    target("elf", guest::fuzz::elf, &["fuzz/seeds/elf"]),
    target("modules", guest::fuzz::modules, &["fuzz/seeds/modules"]),
    target("mailbox", guest::fuzz::mailbox, &["fuzz/seeds/mailbox"]),
    target("signature", rig::fuzz::signature, &["fuzz/seeds/signature"]),
    target("machine", rig::fuzz::machine, &["fuzz/seeds/machine"]),
    target("catalog", rig::fuzz::catalog, &["crates/rig/filesystems.toml"]),
    target("journal", rig::fuzz::journal, &["fuzz/seeds/journal"]),
];

fn run_file(bytes: &[u8]) {
    store::fuzz::run_file(bytes, report::fuzz::shown);
}

/// Maximum size of a damaged input.
const LONGEST: usize = 64 << 10;

/// Fragments inserted into an input: extreme numbers and delimiters.
const PIECES: [&[u8]; 24] = [
    b"0",
    b"-1",
    b"1e309",
    b"18446744073709551615",
    b"18446744073709551616",
    b"4294967296",
    b"NaN",
    b"..",
    b"/../",
    b"\0",
    b"\r",
    b"\n",
    b"\"",
    b"\\u0000",
    b"\x1b[2J",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\0\0\0\0\0\0\0\x80",
    b"[[[[[[[[",
    b"{\"a\":",
    b",",
    b"=",
    b" ",
];

impl Target {
    fn seeds(&self) -> Vec<Vec<u8>> {
        let paths = self.seeds.iter().map(|path| root().join(path));
        let paths = paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] });
        let read = |path: PathBuf| {
            let mut bytes = fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
            bytes.truncate(LONGEST);
            bytes
        };
        paths.map(read).collect()
    }
}

/// Damaged input: a seed or parts of two seeds, changed in a few places.
fn damaged(seeds: &[Vec<u8>], random: &mut fastrand::Rng) -> Vec<u8> {
    let one = |random: &mut fastrand::Rng| seeds[random.usize(..seeds.len())].clone();
    let mut bytes = one(random);
    if random.u8(..4) == 0 {
        let other = one(random);
        bytes.truncate(random.usize(..=bytes.len()));
        bytes.extend_from_slice(&other[random.usize(..=other.len())..]);
    }
    for _ in 0..1 << random.u8(..5) {
        let at = random.usize(..=bytes.len());
        let end = (at + (1 << random.u8(..8))).min(bytes.len());
        match random.u8(..8) {
            0 => bytes.insert(at, random.u8(..)),
            1 => drop(bytes.drain(at..end)),
            2 => bytes.truncate(at.max(1)),
            3 => {
                let piece = PIECES[random.usize(..PIECES.len())];
                drop(bytes.splice(at..at, piece.iter().copied()));
            }
            4 => {
                let piece = PIECES[random.usize(..PIECES.len())];
                let end = (at + piece.len()).min(bytes.len());
                bytes[at..end].copy_from_slice(&piece[..end - at]);
            }
            5 => {
                let copy = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, copy));
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.u8(..8);
                }
            }
        }
    }
    bytes.truncate(LONGEST);
    bytes
}

fn variable(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |value| value.parse().expect("a whole number"))
}

#[test]
fn readers_of_untrusted_input_do_not_panic() {
    let seed = variable("FSLAB_FUZZ_SEED", 1);
    let share = u64::try_from(tries(5_000 / TARGETS.len(), 60_000)).unwrap();
    let time = match env::var_os("FSLAB_FUZZ_SECONDS") {
        Some(_) => Duration::from_secs(variable("FSLAB_FUZZ_SECONDS", 5)),
        None => Duration::from_millis(share),
    };
    let only = env::var("FSLAB_FUZZ_TARGET").ok();
    let columns = ["target", "seeds", "inputs", "longest, ms", "failures"];
    let intro = "\
Each reader of untrusted input reads valid examples (*seeds*), and then randomly damaged copies of
them. A failure is a panic.";
    let mut section = Section::new(6, "fuzz", "Damaged input", intro, &columns);
    let mut failures = Vec::new();
    if !Path::new("/dev/shm").is_dir() {
        section.skipped("kernel, modules, machine, journal", "/dev/shm");
    }
    for target in TARGETS.iter().filter(|it| only.as_deref().is_none_or(|name| name == it.name)) {
        let seeds = target.seeds();
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        let mut random = fastrand::Rng::with_seed(seed);
        let (start, mut inputs, mut longest) = (Instant::now(), 0, Duration::ZERO);
        let mut failed = 0;
        while inputs < seeds.len() || start.elapsed() < time {
            let input = match seeds.get(inputs) {
                Some(seed) => seed.clone(),
                None => damaged(&seeds, &mut random),
            };
            let begun = Instant::now();
            let panicked = catch_unwind(AssertUnwindSafe(|| (target.read)(&input))).is_err();
            longest = longest.max(begun.elapsed());
            if panicked {
                let path = root().join(format!("target/fuzz-{}-{seed}-{inputs}", target.name));
                fs::write(&path, &input).unwrap();
                failures.push(format!("case {inputs} of seed {seed}: {}", path.display()));
                failed += 1;
                if failed == 5 {
                    break;
                }
            }
            inputs += 1;
        }
        let numbers = [seeds.len() as u128, inputs as u128, longest.as_millis(), failed];
        section.row([target.name.to_owned()].into_iter().chain(numbers.map(|it| it.to_string())));
    }
    section.write();
    assert!(failures.is_empty(), "{}\n{}", failures.join("\n"), section.text());
    if only.is_some() {
        eprintln!("{}", section.text());
    }
}

#[test]
fn every_fuzz_target_has_seeds_and_a_program() {
    let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    let names = TARGETS.iter().map(|target| target.name).chain(["run_file"]);
    for name in names {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        assert!(root().join(format!("fuzz/fuzz_targets/{name}.rs")).exists(), "{name}");
    }
    let all = files(&root().join("fuzz/seeds"));
    let bytes: u64 = all.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert!(bytes < 2 << 20, "{bytes} bytes of seeds");
}
