//! The loop of a replay does not allocate: a loadfile that is replayed ten times as many times has
//! the same number of allocations.
#![expect(unsafe_code, reason = "a counting global allocator implements an unsafe trait")]

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

/// System allocator that counts its calls.
struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed unchanged to the system allocator, which satisfies the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Relaxed);
        // SAFETY: the caller satisfies the requirements of `System`.
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

/// Allocator calls of a replay, and its operations.
fn calls(replay: &Replay, directory: &Path) -> (u64, Ops) {
    let context = Context {
        directory,
        progress: &Progress::default(),
        interrupt: &AtomicBool::new(false),
        state: None,
        worker_command: &[],
        start: None,
    };
    let before = CALLS.load(Relaxed);
    let result = run_replay(replay, &context).expect("the replay succeeds");
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
                loadfile: Load::File { path: Some(load.to_str().unwrap().into()) },
                until: Until::Replayed(times),
                resolve: true,
                durability,
                xattr: attributes,
                rate: Some(Bytes(u64::MAX)),
                use_timestamps: false,
                parent_check: true,
                workers: Workers::threads(2),
            };
            let (calls, ops) = calls(&replay, directory.path());
            assert_eq!(ops, Ops(35 * 2 * times));
            calls
        };
        let (few, many) = (replayed(3), replayed(30));
        assert!(few > 0, "the count works");
        // Histograms are merged at the end, from a number of counters that depends on the times.
        assert!(many.abs_diff(few) < 150, "{few} and {many} for 1890 more operations");
    }
}
