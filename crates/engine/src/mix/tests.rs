use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use model::{
    Ops,
    phase::{DataPattern, Item, Layout, Naming, Set, Sizes, Spread, Stonewall, Workers},
};
use tempfile::TempDir;

use super::{draw::Draw, *};
use crate::{
    Progress, run_layout,
    set::{Lengths, Names, WorkerEntries},
};

/// Directory with a population, and context of a phase.
struct Bench {
    directory: TempDir,
    progress: Progress,
    interrupt: AtomicBool,
}

impl Bench {
    fn new(mix: &Mix) -> Self {
        let interrupt = AtomicBool::new(false);
        let bench =
            Self { directory: TempDir::new().unwrap(), progress: Progress::default(), interrupt };
        let owners = mix.workers.count;
        let layout = Layout { set: mix.set.clone(), item: Item::File, owners };
        run_layout(&layout, &bench.context()).unwrap();
        bench
    }

    fn context(&self) -> Context<'_> {
        Context {
            directory: self.directory.path(),
            progress: &self.progress,
            interrupt: &self.interrupt,
            state: None,
            worker_command: &[],
            start: None,
        }
    }

    fn run(&self, mix: &Mix) -> Result<PhaseResult, EngineError> {
        run_mix(mix, &self.context())
    }

    /// Sizes of the files of a worker by number.
    fn files(&self, mix: &Mix, worker: u32) -> BTreeMap<u64, u64> {
        let place = WorkerEntries::new(&mix.set, worker, self.directory.path());
        let names = Names::new(&mix.set, place.owner);
        let mut files = BTreeMap::new();
        let mut directories = vec![place.root];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let status = entry.metadata().unwrap();
                if status.is_dir() {
                    directories.push(entry.path());
                } else if let Some(number) = names.entry(entry.file_name().as_encoded_bytes()) {
                    files.insert(number, status.len());
                }
            }
        }
        files
    }
}

/// All operations, each with a different weight, on 100 files of two workers.
fn mix() -> Mix {
    let set = Set {
        name: "t".into(),
        sharing: Sharing::Private,
        files: 100,
        spread: Spread::Directories { each: 9 },
        naming: Naming::Numbers,
        sizes: Sizes::Uniform { min: Bytes(0), max: Bytes(9000) },
        block_size: Bytes(4096),
        data: DataPattern::default(),
        seed: 3,
    };
    let weights = MixOp::ALL.into_iter().map(|(op, _)| op).zip(4..).collect();
    Mix { set, ops: 2000, time: None, weights, workers: Workers::threads(2) }
}

/// Expected effect of the operations of a worker.
#[derive(Debug, Default, PartialEq)]
struct Ledger {
    files: BTreeMap<u64, u64>,
    reads: u64,
    writes: u64,
    read: u64,
    written: u64,
}

fn ledger(mix: &Mix, worker: u32) -> Ledger {
    let lengths = Lengths::new(&mix.set, worker);
    let mut ledger = Ledger {
        files: (0..mix.set.files).map(|entry| (entry, lengths.of(entry))).collect(),
        ..Ledger::default()
    };
    let mut draw = Draw::new(mix, worker);
    for _ in 0..mix.ops {
        let (op, entry) = draw.next();
        match op {
            MixOp::Stat | MixOp::Open => assert!(ledger.files.contains_key(&entry)),
            MixOp::Read => ledger.read += ledger.files[&entry],
            MixOp::Chmod => assert!(ledger.files.contains_key(&entry)),
            MixOp::Create => {
                assert_eq!(ledger.files.insert(entry, lengths.of(entry)), None);
                ledger.written += lengths.of(entry);
            }
            MixOp::Unlink => assert!(ledger.files.remove(&entry).is_some()),
            MixOp::Rename => {
                let size = ledger.files.remove(&entry).unwrap();
                ledger.files.insert(draw.window.end - 1, size);
            }
        }
        match op {
            MixOp::Stat | MixOp::Open | MixOp::Read => ledger.reads += 1,
            MixOp::Chmod | MixOp::Create | MixOp::Unlink | MixOp::Rename => ledger.writes += 1,
        }
        assert!(ledger.files.keys().copied().eq(draw.window.clone()), "a window without gaps");
    }
    ledger
}

#[test]
fn the_remaining_files_are_the_window_and_all_operations_count() {
    let namings =
        [Naming::Numbers, Naming::Padded { length: 30 }, Naming::Ordered, Naming::Scrambled];
    let spreads = [Spread::Flat, Spread::Directories { each: 9 }, Spread::Directories { each: 1 }];
    for sharing in [Sharing::Private, Sharing::Directory] {
        for (naming, spread) in namings.into_iter().zip(spreads.into_iter().cycle()) {
            let set = Set { sharing, naming, spread, ..mix().set };
            let mix = Mix { set, ..mix() };
            let bench = Bench::new(&mix);
            let result = bench.run(&mix).unwrap();
            for worker in 0..2 {
                let reported = ledger(&mix, worker);
                assert_eq!(bench.files(&mix, worker), reported.files, "{sharing:?} {naming:?}");
                let found = &result.workers[worker as usize];
                assert_eq!(
                    (found.read.ops.0, found.written.ops.0),
                    (reported.reads, reported.writes)
                );
                assert_eq!(
                    (found.read.bytes.0, found.written.bytes.0),
                    (reported.read, reported.written)
                );
                assert_eq!(found.latencies.read.count(), reported.reads);
                assert_eq!(found.latencies.write.count(), reported.writes);
                assert_eq!(found.series.ops.iter().sum::<u64>(), 2000);
            }
            let snapshot = bench.progress.snapshot();
            assert_eq!((snapshot.ops, snapshot.done), (Ops(4000), result.bytes()));
        }
    }
}

#[test]
fn workers_draw_different_operations() {
    assert_ne!(ledger(&mix(), 0), ledger(&mix(), 1));
    assert_eq!(ledger(&mix(), 0), ledger(&mix(), 0));
    let other = Mix { set: Set { seed: 4, ..mix().set }, ..mix() };
    assert_ne!(ledger(&mix(), 0), ledger(&other, 0));
}

#[test]
fn operations_follow_their_weights_and_files_are_uniform() {
    // As many creations as removals: the size of the window is about constant.
    let weights = [1, 5, 10, 2, 20, 20, 7];
    let weights: Vec<_> = MixOp::ALL.into_iter().map(|(op, _)| op).zip(weights).collect();
    let set = Set { files: 1_000_000, ..mix().set };
    let mix = Mix { weights: weights.clone(), set, ..mix() };
    let mut draw = Draw::new(&mix, 0);
    let (mut counts, mut tenths) = (BTreeMap::new(), [0.0; 10]);
    for _ in 0..65_000 {
        let window = draw.window.clone();
        let (op, entry) = draw.next();
        *counts.entry(op).or_insert(0.0) += 1.0;
        if op == MixOp::Read {
            let place = (entry - window.start) * 10 / (window.end - window.start);
            tenths[usize::try_from(place).unwrap()] += 1.0;
        }
    }
    let square = |found: f64, wanted: f64| (found - wanted).powi(2) / wanted;
    let ops: f64 = weights.iter().map(|(op, w)| square(counts[op], f64::from(*w) * 1e3)).sum();
    // The quantile 0.999 of chi-square with 6 degrees of freedom is 22.5, with 9 it is 27.9.
    assert!(ops < 22.5, "{ops}: {counts:?}");
    let each = counts[&MixOp::Read] / 10.0;
    let files: f64 = tenths.iter().map(|found| square(*found, each)).sum();
    assert!(files < 27.9, "{files}: {tenths:?}");
}

#[test]
fn an_empty_population_gets_a_new_file() {
    let set = Set { files: 5, ..mix().set };
    let weights = vec![(MixOp::Unlink, 1)];
    let mix = Mix { set, ops: 24, time: None, weights, workers: Workers::ONE };
    let bench = Bench::new(&mix);
    let result = bench.run(&mix).unwrap();
    assert_eq!(result.ops(), Ops(24));
    // Five files are removed, then one is created and removed nine times, then one is created.
    assert!(bench.files(&mix, 0).into_keys().eq([14]));
}

#[test]
fn shared_files_can_be_read_by_all_workers() {
    let weights: Vec<_> = mix().weights.into_iter().take(4).collect();
    let set = Set { sharing: Sharing::File, ..mix().set };
    let looks = Mix { set: set.clone(), weights, ..mix() };
    let bench = Bench::new(&looks);
    assert_eq!(bench.run(&looks).unwrap().ops(), Ops(4000));
    let one = Mix { set, workers: Workers::ONE, ..mix() };
    assert_eq!(bench.run(&one).unwrap().ops(), Ops(2000));
    assert_eq!(bench.files(&one, 0), ledger(&one, 0).files);
}

#[test]
fn the_first_worker_to_finish_may_end_the_phase() {
    for stonewall in [Stonewall::Stop, Stonewall::Finish] {
        let workers = Workers { stonewall, ..Workers::threads(2) };
        let mix = Mix { workers, ..mix() };
        let bench = Bench::new(&mix);
        let result = bench.run(&mix).unwrap();
        let ops: BTreeSet<_> = result.workers.iter().map(|worker| worker.ops().0).collect();
        assert_eq!(ops.last(), Some(&2000));
        if stonewall == Stonewall::Finish {
            assert_eq!(bench.progress.snapshot().ops, Ops(4000), "all operations ran");
        }
    }
}

#[test]
fn a_missing_population_is_reported_with_its_path() {
    let mix = Mix { workers: Workers::ONE, ..mix() };
    let bench = Bench::new(&mix);
    fs::remove_dir_all(bench.directory.path().join("t.0")).unwrap();
    let text = bench.run(&mix).unwrap_err().to_string();
    assert!(text.contains("/t.0/") && text.contains("run the phase that writes it"), "{text}");
}

#[test]
fn an_interrupt_ends_a_mix() {
    let mix = Mix { ops: u64::MAX, ..mix() };
    let bench = Bench::new(&mix);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| bench.run(&mix));
        // Operations of the mix, not of the layout, which is another phase.
        while bench.progress.snapshot().phase < 2 || bench.progress.snapshot().ops < Ops(10) {
            std::thread::yield_now();
        }
        bench.interrupt.store(true, Relaxed);
        assert!(matches!(running.join().unwrap(), Err(EngineError::Interrupted)));
    });
    assert!(matches!(bench.run(&mix), Err(EngineError::Interrupted)));
}

#[test]
fn invalid_mixes_are_rejected() {
    let bench = Bench::new(&mix());
    let refusal = |mix: &Mix| bench.run(mix).unwrap_err().to_string();
    let process = Workers { kind: WorkerKind::Process, ..Workers::ONE };
    for (mix, text) in [
        (Mix { ops: 0, ..mix() }, "operations is 0; set it to at least 1"),
        (Mix { weights: vec![], ..mix() }, "all weights are 0; "),
        (Mix { weights: vec![(MixOp::Stat, 0)], ..mix() }, "all weights are 0"),
        (
            Mix { weights: vec![(MixOp::Stat, 1), (MixOp::Stat, 1)], ..mix() },
            "an operation has two weights; ",
        ),
        (
            Mix { workers: process, ..mix() },
            "mixes do not support processes; use worker_type thread",
        ),
        (Mix { workers: Workers::threads(0), ..mix() }, "workers is 0; "),
        (Mix { set: Set { block_size: Bytes(0), ..mix().set }, ..mix() }, "block_size is 0; "),
        (
            Mix { set: Set { sharing: Sharing::File, ..mix().set }, ..mix() },
            "workers would remove each other's files; ",
        ),
        (Mix { set: Set { files: 0, ..mix().set }, ..mix() }, "files is 0; "),
    ] {
        assert!(refusal(&mix).contains(text), "{text}: {}", refusal(&mix));
    }
}
