//! The loop of a replay does not allocate: a load file that is replayed ten times as often
//! allocates exactly as often.
#![expect(unsafe_code, reason = "a global allocator that counts is an unsafe trait")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use engine::{Context, Progress, run_replay};
use model::{
    Bytes, Ops,
    phase::{Durability, Load, Replay, Until, Workers},
};

/// The system's allocator with a count of its calls.
struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator, which upholds the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Relaxed);
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        CALLS.fetch_add(1, Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocator calls of a replay, and what it did.
fn calls(replay: &Replay, directory: &Path) -> (u64, Ops) {
    let context = Context {
        directory,
        progress: &Progress::default(),
        interrupt: &AtomicBool::new(false),
        state: None,
        worker_command: &[],
    };
    let before = CALLS.load(Relaxed);
    let result = run_replay(replay, &context).expect("it is replayed");
    (CALLS.load(Relaxed) - before, result.ops())
}

#[test]
fn allocations_do_not_grow_with_operations() {
    let directory = tempfile::TempDir::new_in("/var/tmp").unwrap();
    let load = directory.path().join("load");
    std::fs::write(&load, include_str!("traces/replay.load")).unwrap();
    let every = Durability { files: true, directories: true, writes: true };
    for (attributes, durability) in [(false, Durability::default()), (true, every)] {
        let replayed = |times| {
            let replay = Replay {
                load: Load::File { path: Some(load.to_str().unwrap().into()) },
                until: Until::Replayed(times),
                resolve: true,
                durability,
                attributes,
                rate: Some(Bytes(u64::MAX)),
                paced: false,
                line_call: true,
                workers: Workers::threads(2),
            };
            let (calls, ops) = calls(&replay, directory.path());
            assert_eq!(ops, Ops(35 * 2 * times));
            calls
        };
        let (few, many) = (replayed(3), replayed(30));
        assert!(few > 0, "the count works");
        // Histograms are put together at the end, from as many counters as there were times.
        assert!(many.abs_diff(few) < 150, "{few} and {many} for 1890 more operations");
    }
}
