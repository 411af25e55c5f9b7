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
        Access, Advice, Bound, CallFlags, Calls, Direction, Files, Fill, Flush, Interface, Naming,
        Open, Presence, Ring, Set, Sharing, Sizes, Spread, Stream, Tree, TreeEnd, TreeOrder,
        TreeStep, Workers,
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
    classics(&context);
    trees(&context);
}

/// Single bytes, marks, updates, tickets, and a number of operations for all workers.
fn classics(context: &Context<'_>) {
    let marks = |interface, direction, records| Stream {
        record: Bytes(64),
        size: Bytes(64 * records),
        fill: Fill::Marks,
        verify: false,
        ..stream(interface, direction, Access::Sequential, records)
    };
    let tickets = |ops| Stream {
        access: Access::Tickets,
        bound: Bound::Together(ops),
        ..marks(Interface::Position, Direction::Update(0.1), 200)
    };
    for (interface, direction) in [
        (Interface::Bytewise, Direction::Write),
        (Interface::Bytewise, Direction::Read),
        (Interface::Position, Direction::Update(0.5)),
    ] {
        calls(context, &marks(Interface::Offset, Direction::Write, 2000), 4000);
        let few = calls(context, &marks(interface, direction, 200), 400);
        let many = calls(context, &marks(interface, direction, 2000), 4000);
        assert_eq!(few, many, "{interface:?} {direction:?}");
    }
    assert_eq!(calls(context, &tickets(400), 400), calls(context, &tickets(4000), 4000));
}

/// Files of a tree: every step there is, first few, then many.
fn trees(context: &Context<'_>) {
    use TreeStep::{
        Allocate, Append, Chmod, Chown, Close, Create, Fetch, Fsync, FsyncDirectory, Link,
        LinkFirst, List, MakeParent, Mkdir, Mknod, Open, OpenRead, Read, Rename, RenameBack, Rmdir,
        SetTimes, Stat, StatMissing, Symlink, Truncate, Unlink, UnlinkLink, Write,
    };
    let all = [
        vec![
            Create,
            Write,
            Fsync,
            Close,
            Open,
            Read,
            Append,
            Close,
            FsyncDirectory,
            Stat,
            Fetch,
            StatMissing,
            Chmod,
            Chown,
            SetTimes,
            Rename,
            RenameBack,
            Link,
            UnlinkLink,
            List,
            Open,
            Allocate,
            Close,
            Truncate,
            Unlink,
        ],
        vec![Mknod, Unlink, Mkdir, Rmdir, Symlink, Unlink],
    ];
    for steps in &all {
        same(context, steps, TreeOrder::Shuffled);
    }
    same(context, &[MakeParent, LinkFirst], TreeOrder::Created);
    same(context, &[Unlink], TreeOrder::Listed);
    same(context, &[Create, Write, Close], TreeOrder::Created);
    same(context, &[Stat, Fetch], TreeOrder::Listed);
    same(context, &[MakeParent, Unlink, Create, Write, Close], TreeOrder::Listed);
    same(context, &[OpenRead, Read, Close, Unlink], TreeOrder::Listed);
    rings(context);
}

/// The same through a ring: every request there is.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn rings(context: &Context<'_>) {
    use TreeStep::{
        Allocate, Close, Create, Fsync, Link, Mkdir, Open, Read, Rename, RenameAcross, RenameBack,
        Rmdir, Stat, StatMissing, Symlink, Unlink, UnlinkLink, Write,
    };
    if io_uring::IoUring::new(1).is_err() {
        return eprintln!("skipped: io_uring is not available");
    }
    let files = [
        Create,
        Write,
        Fsync,
        Close,
        Open,
        Read,
        Allocate,
        Close,
        Stat,
        StatMissing,
        Rename,
        RenameBack,
        Link,
        UnlinkLink,
        RenameAcross,
    ];
    for depth in [1, 16] {
        let ring = Calls::Ring { depth };
        similar(context, &files, TreeOrder::Shuffled, ring);
        similar(context, &[Mkdir, Rmdir, Symlink, Unlink], TreeOrder::Created, ring);
    }
}

/// A tree of few entries and one of many allocate as often.
fn same(context: &Context<'_>, steps: &[TreeStep], order: TreeOrder) {
    similar(context, steps, order, Calls::Plain);
}

/// The same with these calls.
fn similar(context: &Context<'_>, steps: &[TreeStep], order: TreeOrder, how: Calls) {
    let tree = |files| Tree {
        set: Set {
            // As long for all: a path takes as many steps to grow.
            name: format!("tree-{files:04}"),
            sharing: Sharing::Private,
            files,
            spread: Spread::Directories { each: 100 },
            naming: Naming::Ordered,
            sizes: Sizes::Fixed(Bytes(10_000)),
            record: if how == Calls::Plain { Bytes::kib(4) } else { Bytes(10_000) },
            fill: Fill::default(),
            seed: 1,
        },
        passes: 1,
        end: TreeEnd::default(),
        calls: how,
        order,
        steps: steps.to_vec(),
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
    assert_eq!(calls(30), calls(300), "{steps:?} {order:?} {how:?}");
}
