//! The loop does not allocate: a phase of ten times as many operations allocates exactly as often.
#![expect(unsafe_code, reason = "a global allocator that counts is an unsafe trait")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ffi::OsString,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use engine::{Context, Progress, run, run_tree};
use model::{
    Bytes, Ops,
    phase::{
        Access, Advice, CallFlags, Direction, Files, Fill, Flush, Interface, Open, Presence, Ring,
        Stream, Tree, TreeOrder, TreeStep, Workers,
    },
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

fn stream(interface: Interface, direction: Direction, access: Access, records: u64) -> Stream {
    Stream {
        direction,
        access,
        interface,
        open: Open { presence: Presence::Any, ..Open::default() },
        verify: direction == Direction::Read && interface != Interface::Null,
        flush: Flush::Fsync,
        workers: Workers::threads(2),
        ..Stream::new(Files::PerWorker("f".into()), Bytes(records * 4096), Bytes::kib(4))
    }
}

/// Allocator calls of one phase of so many operations.
fn calls(context: &Context<'_>, stream: &Stream, ops: u64) -> u64 {
    let before = CALLS.load(Relaxed);
    let result = run(stream, context).expect("the phase runs");
    let after = CALLS.load(Relaxed);
    assert_eq!(result.ops(), Ops(ops));
    after - before
}

/// All of them; a ring where the kernel has it.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn interfaces() -> Vec<Interface> {
    let mut all = vec![
        Interface::Offset,
        Interface::Position,
        Interface::Stdio,
        Interface::Vector(CallFlags::default()),
        Interface::Mmap(Advice::Normal),
        Interface::Null,
    ];
    if io_uring::IoUring::new(1).is_ok() {
        all.push(Interface::Ring(Ring::of(8)));
    } else {
        eprintln!("skipped: io_uring is not available");
    }
    all
}

#[test]
fn allocations_do_not_grow_with_operations() {
    let directory = tempfile::TempDir::new().unwrap();
    let command: [OsString; 0] = [];
    let context = Context {
        directory: directory.path(),
        progress: &Progress::default(),
        interrupt: &AtomicBool::new(false),
        state: None,
        worker_command: &command,
    };
    let orders = [Access::Sequential, Access::Stride { records: 17 }, Access::Shuffled];
    for interface in interfaces() {
        for direction in [Direction::Write, Direction::Read] {
            for access in orders {
                if direction == Direction::Write {
                    // Strided writes leave holes, which a later comparison would find.
                    let whole = stream(interface, direction, Access::Sequential, 2000);
                    calls(&context, &whole, 4000);
                }
                let few = calls(&context, &stream(interface, direction, access, 200), 400);
                let many = calls(&context, &stream(interface, direction, access, 2000), 4000);
                assert!(few > 0, "the count works");
                assert_eq!(few, many, "{interface:?} {direction:?} {access:?}");
            }
        }
    }
    trees(&context);
}

/// Files of a tree: every step there is, first few, then many.
fn trees(context: &Context<'_>) {
    let steps = vec![
        TreeStep::Create,
        TreeStep::Write,
        TreeStep::Fsync,
        TreeStep::Close,
        TreeStep::Open,
        TreeStep::Read,
        TreeStep::Append,
        TreeStep::Close,
        TreeStep::FsyncDirectory,
        TreeStep::Stat,
        TreeStep::Chmod,
        TreeStep::Rename,
        TreeStep::RenameBack,
        TreeStep::Link,
        TreeStep::UnlinkLink,
        TreeStep::List,
        TreeStep::Unlink,
    ];
    let tree = |files| Tree {
        name: "tree".into(),
        files,
        per_directory: 100,
        size: Bytes(10_000),
        record: Bytes::kib(4),
        order: TreeOrder::Shuffled,
        steps: steps.clone(),
        fill: Fill::default(),
        seed: 1,
        workers: Workers::threads(2),
    };
    let calls = |files| {
        let tree = tree(files);
        let before = CALLS.load(Relaxed);
        let result = run_tree(&tree, context).expect("the phase runs");
        let after = CALLS.load(Relaxed);
        assert_eq!(result.ops(), Ops(files * 2));
        after - before
    };
    assert_eq!(calls(20), calls(200), "files of a tree");
}
