use std::collections::{BTreeMap, BTreeSet};

use expect_test::expect;
use model::phase::Load;

use super::{
    super::{load::load, program::NO_NAME},
    *,
};

const SEEDS: [u64; 4] = [0, 1, 20_261_122, u64::MAX];
const ITERATIONS: u32 = 129;

fn ops(iterations: u64, seed: u64) -> Vec<Op> {
    office(iterations, seed).unwrap().ops().to_vec()
}

/// Operations before the first iteration, those of each iteration, and the last one.
fn split(seed: u64) -> (Vec<Op>, Vec<Vec<Op>>) {
    let mut all = ops(ITERATIONS.into(), seed);
    let one = ops(1, seed).len();
    let len = (all.len() - one) / (ITERATIONS as usize - 1);
    assert_eq!(all.len(), one + len * (ITERATIONS as usize - 1), "all are of one length");
    assert_eq!(all.pop().unwrap().kind(), ReplayOp::Deltree);
    let rest = all.split_off(one - len - 1);
    (all, rest.chunks(len).map(<[Op]>::to_vec).collect())
}

/// Totals of a group of operations by name.
fn tally(ops: &[Op]) -> BTreeMap<String, u64> {
    let mut tally = BTreeMap::new();
    let mut ends: BTreeMap<u16, u64> = BTreeMap::new();
    for op in ops {
        let mut add = |name: &str, count: u64| {
            *tally.entry(name.to_owned()).or_default() += count;
        };
        let kind = op.kind().name();
        add(kind, 1);
        if op.expected() == Expected::Failure {
            add(&format!("{kind} missing"), 1);
        } else if op.kind() == ReplayOp::NTCreateX && op.size == 2 {
            add("created", 1);
        }
        if matches!(op.kind(), ReplayOp::ReadX | ReplayOp::WriteX) {
            add(&format!("{kind} bytes"), op.size.into());
            add(&format!("{kind} of {}", op.size), 1);
            if ends.insert(op.slot, op.offset + u64::from(op.size)) == Some(op.offset) {
                add(&format!("{kind} next"), 1);
            }
        }
        if op.kind() == ReplayOp::Close {
            ends.remove(&op.slot);
        }
    }
    tally
}

fn within(found: u64, target: f64, what: &str) {
    let off = found as f64 / target - 1.0;
    assert!(off.abs() <= 0.02, "{what}: {found} instead of {target}, off by {:.1} %", off * 100.0);
}

/// Published column: operations per iteration, bytes, and missing names.
const PUBLISHED: [(&str, f64); 19] = [
    ("ReadX", 962.0),
    ("NTCreateX", 613.0),
    ("NTCreateX missing", 163.0),
    ("created", 124.0),
    ("Qpathinfo", 556.7),
    ("Qpathinfo missing", 556.7 / 3.0),
    ("Close", 450.0),
    ("WriteX", 303.0),
    ("Find", 215.0),
    ("Find missing", 215.0 * 0.52),
    ("Unlink", 124.0),
    ("Qfsinfo", 102.0),
    ("Qfileinfo", 97.0),
    ("Sfileinfo", 50.0),
    ("Flush", 43.0),
    ("Rename", 26.0),
    ("LockX", 2.0),
    ("UnlockX", 2.0),
    ("ReadX bytes", 11.4e6),
];

/// Percentages of sizes: operation, bytes, percent.
const SIZES: [(&str, u32, f64); 10] = [
    ("ReadX", 4096, 67.0),
    ("ReadX", 61_440, 13.0),
    ("ReadX", 2048, 3.7),
    ("ReadX", 8192, 3.7),
    ("ReadX", 16_384, 1.6),
    ("WriteX", 65_536, 32.0),
    ("WriteX", 4096, 25.0),
    ("WriteX", 1, 19.0),
    ("WriteX", 2048, 4.2),
    ("WriteX", 8192, 2.9),
];

#[test]
fn every_iteration_has_the_published_totals() {
    for seed in SEEDS {
        let (_, iterations) = split(seed);
        for iteration in &iterations {
            let tally = tally(iteration);
            for (what, target) in PUBLISHED.into_iter().chain([("WriteX bytes", 7.7e6)]) {
                within(tally[what], target, what);
            }
            for (kind, size, percent) in SIZES.into_iter().filter(|(.., share)| *share > 10.0) {
                let what = format!("{kind} of {size}");
                within(tally[&what], tally[kind] as f64 * percent / 100.0, &what);
            }
            assert_eq!(tally["created"], tally["Unlink"], "as many files are created as removed");
            assert_eq!(tally["NTCreateX"] - tally["NTCreateX missing"], tally["Close"]);
        }
    }
}

#[test]
fn the_whole_loadfile_has_the_published_totals() {
    for seed in SEEDS {
        let (prologue, iterations) = split(seed);
        let tally_of_begin = tally(&prologue);
        within(tally_of_begin["WriteX bytes"], 21.2e6, "bytes written before");
        assert!((600..800).contains(&prologue.len()), "{}", prologue.len());
        let all = tally(&iterations.concat());
        for (kind, size, percent) in SIZES {
            let what = format!("{kind} of {size}");
            within(all[&what], all[kind] as f64 * percent / 100.0, &what);
        }
        // Half of the reads, and 29 % of the writes, are sequential. This is not planned exactly,
        // so it is approximate.
        let next = |kind: &str| all[&format!("{kind} next")] as f64 / all[kind] as f64;
        assert!((0.47..0.53).contains(&next("ReadX")), "{}", next("ReadX"));
        assert!((0.26..0.36).contains(&next("WriteX")), "{}", next("WriteX"));
    }
}

/// Model of a filesystem with names and sizes.
#[derive(Default)]
struct Model {
    files: BTreeMap<String, u64>,
    directories: BTreeSet<String>,
    open: BTreeMap<u16, String>,
}

impl Model {
    fn is(&self, name: &str) -> bool {
        self.files.contains_key(name) || self.directories.contains(name)
    }

    fn parent(name: &str) -> &str {
        name.rsplit_once('/').map_or(".", |(parent, _)| parent)
    }

    /// Returns true if the operation succeeds.
    fn does(&mut self, op: &Op, name: &str, second: &str) -> bool {
        match op.kind() {
            ReplayOp::Deltree => self.files.retain(|file, _| !file.starts_with(name)),
            ReplayOp::Mkdir => {
                self.directories.insert(name.to_owned());
            }
            ReplayOp::NTCreateX => return self.opens(op, name),
            ReplayOp::Close => {
                assert_eq!(self.open.remove(&op.slot).as_deref(), Some(name));
            }
            ReplayOp::Rename => {
                assert!(!self.is(second), "{second} is replaced");
                let Some(size) = self.files.remove(name) else { return false };
                self.files.insert(second.to_owned(), size);
            }
            ReplayOp::Unlink => {
                assert!(self.open.values().all(|open| open != name), "{name} is open");
                return self.files.remove(name).is_some();
            }
            ReplayOp::Qpathinfo => return self.is(name),
            ReplayOp::Find => return self.finds(name, second),
            ReplayOp::ReadX => {
                return op.offset + u64::from(op.size) <= self.files[&self.open[&op.slot]];
            }
            ReplayOp::WriteX => {
                let size = self.files.get_mut(&self.open[&op.slot]).unwrap();
                *size = (*size).max(op.offset + u64::from(op.size));
            }
            ReplayOp::Qfileinfo
            | ReplayOp::Sfileinfo
            | ReplayOp::Flush
            | ReplayOp::LockX
            | ReplayOp::UnlockX => assert_eq!(self.open[&op.slot], name),
            ReplayOp::Qfsinfo => {}
            ReplayOp::Rmdir | ReplayOp::Sleep => panic!("{op:?} is not of an office"),
        }
        true
    }

    fn opens(&mut self, op: &Op, name: &str) -> bool {
        let parent = Self::parent(name);
        if op.second == 1 {
            assert!(name == "clients" || self.directories.contains(parent), "{name}");
            self.directories.insert(name.to_owned());
        } else if op.size == 2 {
            assert!(self.directories.contains(parent), "{name}");
            assert!(self.files.insert(name.to_owned(), 0).is_none(), "{name} exists");
        } else if !self.is(name) {
            assert_eq!(op.slot, NO_SLOT);
            return false;
        }
        assert!(self.open.insert(op.slot, name.to_owned()).is_none());
        true
    }

    fn finds(&self, pattern: &str, directory: &str) -> bool {
        assert!(self.directories.contains(directory) && Self::parent(pattern) == directory);
        let pattern = pattern.rsplit_once('/').unwrap().1.as_bytes();
        let here = self.files.keys().chain(&self.directories);
        here.filter(|name| Self::parent(name) == directory)
            .any(|name| matches(pattern, &name.as_bytes()[directory.len() + 1..]))
    }
}

/// `?` matches any character, `*` any number of them.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern {
        [] => name.is_empty(),
        [b'*', rest @ ..] => (0..=name.len()).any(|skip| matches(rest, &name[skip..])),
        [first, rest @ ..] => {
            name.first().is_some_and(|byte| *first == b'?' || first == byte)
                && matches(rest, &name[1..])
        }
    }
}

#[test]
fn every_operation_has_its_expected_status_also_when_repeated() {
    for seed in SEEDS {
        let builder = office(4, seed).unwrap();
        let names = builder.names();
        let path = |name| match name {
            NO_NAME => String::new(),
            name => names.get(name).path(1).into_string().unwrap(),
        };
        let mut model = Model::default();
        let mut most = 0;
        for round in 0..2 {
            for (index, op) in builder.ops().iter().enumerate() {
                let second = if matches!(op.kind(), ReplayOp::Rename | ReplayOp::Find) {
                    path(op.second)
                } else {
                    String::new()
                };
                let success = model.does(op, &path(op.name), &second);
                assert!(op.expected().allows(success), "round {round}, {index}: {op:?}");
                most = most.max(model.open.len());
            }
            assert!(model.open.is_empty() && model.files.is_empty());
        }
        assert!((8..=40).contains(&most), "{most} handles");
        assert!((100..=250).contains(&names.len()), "{} names", names.len());
    }
}

#[test]
fn the_operations_depend_on_the_seed() {
    let facts =
        |iterations, seed| load(&Load::Office { iterations, seed }).unwrap().facts().clone();
    assert_eq!(facts(2, 7), facts(2, 7));
    assert_ne!(facts(2, 7).get("loadfile.sha256"), facts(2, 8).get("loadfile.sha256"));
    // Changed operations need another version, because results would not be comparable.
    expect![[r#"
        loadfile.label fslab-office v1 seed 7, 2 iterations
        loadfile.lines 7798
        loadfile.mix ReadX 24.67 %, NTCreateX 16.89 %, Qpathinfo 14.29 %, WriteX 13.43 %, Close 12.71 %, Find 5.51 %, Qfileinfo 3.51 %, Unlink 3.18 %, Qfsinfo 2.62 %, Sfileinfo 1.28 %, Flush 1.10 %, Rename 0.67 %, LockX 0.05 %, UnlockX 0.05 %, Deltree 0.03 %, Mkdir 0.01 %
        loadfile.operations 7798
        loadfile.sha256 b60e09030f6095f7b4b3beda6def1d8bcd289b564f4f71bfc07d78565aecbf45
    "#]].assert_eq(
        &facts(2, 7).0.iter().map(|(name, fact)| format!("{name} {fact}\n")).collect::<String>(),
    );
}

#[test]
fn zero_or_too_many_iterations_are_rejected() {
    let message = |iterations| load(&Load::Office { iterations, seed: 0 }).unwrap_err().to_string();
    expect!["the loadfile office: iterations is 0, not 1 to 14000; use 129, as in the dbench loadfile; a replay repeats a loadfile that ends"].assert_eq(&message(0));
    assert!(message(MOST + 1).contains("iterations is 14001, not 1 to 14000"));
}
