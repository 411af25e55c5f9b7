//! The loops of layouts and mixes do not allocate: ten times as many entries or operations have the
//! same number of allocations.
#![expect(unsafe_code, reason = "a counting global allocator implements an unsafe trait")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use engine::{Context, Progress, run_layout, run_mix};
use model::{
    Bytes, Ops,
    phase::{self, DataPattern, Item, Mix, MixOp, Naming, Set, Sharing, Sizes, Spread, Workers},
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

fn set(name: &str, files: u64, spread: Spread) -> Set {
    Set {
        name: name.into(),
        sharing: Sharing::Private,
        files,
        spread,
        naming: Naming::Scrambled,
        sizes: Sizes::Uniform { min: Bytes(0), max: Bytes(10_000) },
        block_size: Bytes::kib(4),
        data: DataPattern::default(),
        seed: 1,
    }
}

/// Allocator calls of a phase.
fn calls<T>(phase: impl FnOnce(&Context<'_>) -> T, directory: &Path) -> (u64, T) {
    let context = Context {
        directory,
        progress: &Progress::default(),
        interrupt: &AtomicBool::new(false),
        state: None,
        worker_command: &[],
        start: None,
    };
    let before = CALLS.load(Relaxed);
    let result = phase(&context);
    (CALLS.load(Relaxed) - before, result)
}

#[test]
fn allocations_do_not_grow_with_entries_or_operations() {
    let directory = tempfile::TempDir::new().unwrap();
    let directory = directory.path();
    // One directory is created by one thread, so the allocations are the same each time.
    let make = |name, files| {
        let set = set(name, files, Spread::Flat);
        let layout = phase::Layout { set, item: Item::File, owners: 1 };
        let (calls, result) = calls(|context| run_layout(&layout, context), directory);
        assert_eq!(result.expect("the layout succeeds").ops(), Ops(files));
        calls
    };
    // The harness allocates, too, while it starts this test.
    make("first", 100);
    let (few, many) = (make("a", 300), make("b", 3000));
    assert!(few > 0, "the count works");
    assert_eq!(few, many, "entries of a layout");

    let mix = |name, ops| {
        let set = set(name, 300, Spread::Directories { each: 10 });
        let workers = Workers::threads(2);
        let layout = phase::Layout { set: set.clone(), item: Item::File, owners: workers.count };
        calls(|context| run_layout(&layout, context), directory).1.expect("the layout succeeds");
        let weights = MixOp::ALL.map(|(op, _)| (op, 1)).to_vec();
        let mix = Mix { set, ops, time: None, weights, workers };
        let (calls, result) = calls(|context| run_mix(&mix, context), directory);
        assert_eq!(result.expect("the mix succeeds").ops(), Ops(ops * 2));
        calls
    };
    assert_eq!(mix("c", 300), mix("d", 3000), "operations of a mix");
}
