//! The loop does not allocate: a phase with ten times as many operations has the same number of
//! allocations.
#![expect(unsafe_code, reason = "a counting global allocator implements an unsafe trait")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ffi::OsString,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use engine::{Context, Progress, run, run_tree};
use model::{
    Bytes, Ops,
    phase::{
        AccessPattern, Advice, Aio, Bound, CallFlags, Calls, DataPattern, Direction, EndSync,
        FileCreation, FileSharing, IoEngineKind, Naming, Open, Ring, Selection, Set, Sharing,
        Sizes, Spread, Stream, Tree, TreeEnd, TreeOrder, TreeStep, Workers,
    },
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

fn stream(
    interface: IoEngineKind,
    direction: Direction,
    access: AccessPattern,
    records: u64,
) -> Stream {
    Stream {
        direction,
        access_pattern: access,
        io_engine: interface,
        open: Open { creation: FileCreation::Any, ..Open::default() },
        verify: direction == Direction::Read && interface != IoEngineKind::Null,
        end_sync: EndSync::Fsync,
        workers: Workers::threads(2),
        ..Stream::new(FileSharing::PerWorker("f".into()), Bytes(records * 4096), Bytes::kib(4))
    }
}

/// Allocator calls of one phase with this number of operations.
fn calls(context: &Context<'_>, stream: &Stream, ops: u64) -> u64 {
    let before = CALLS.load(Relaxed);
    let result = run(stream, context).expect("the phase runs");
    let after = CALLS.load(Relaxed);
    assert_eq!(result.ops(), Ops(ops));
    after - before
}

/// All I/O engines; io_uring if available.
#[expect(clippy::print_stderr, reason = "reports that the test is skipped")]
fn interfaces() -> Vec<IoEngineKind> {
    let mut all = vec![
        IoEngineKind::Offset,
        IoEngineKind::Position,
        IoEngineKind::Stdio,
        IoEngineKind::Vector(CallFlags::default()),
        IoEngineKind::Mmap(Advice::Normal),
        IoEngineKind::Null,
        IoEngineKind::Aio(Aio::of(8, 1)),
    ];
    if io_uring::IoUring::new(1).is_ok() {
        all.push(IoEngineKind::Ring(Ring::of(8)));
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
        start: None,
    };
    let orders = [
        AccessPattern::Sequential,
        AccessPattern::Stride { blocks: 17 },
        AccessPattern::IozonePermutation,
    ];
    for interface in interfaces() {
        for direction in [Direction::Write, Direction::Read] {
            for access in orders {
                if direction == Direction::Write {
                    // Strided writes leave holes, which a later verification would report.
                    let whole = stream(interface, direction, AccessPattern::Sequential, 2000);
                    calls(&context, &whole, 4000);
                }
                let few = calls(&context, &stream(interface, direction, access, 200), 400);
                let many = calls(&context, &stream(interface, direction, access, 2000), 4000);
                assert!(few > 0, "the count works");
                assert_eq!(few, many, "{interface:?} {direction:?} {access:?}");
            }
        }
    }
    bonnie_streams(&context);
    trees(&context);
}

/// Single bytes, marks, updates, tickets, and a number of operations for all workers.
fn bonnie_streams(context: &Context<'_>) {
    let marks = |interface, direction, records| Stream {
        block_size: Bytes(64),
        size: Bytes(64 * records),
        data: DataPattern::Marks,
        verify: false,
        ..stream(interface, direction, AccessPattern::Sequential, records)
    };
    let tickets = |ops| Stream {
        access_pattern: AccessPattern::Tickets,
        bound: Bound::Together(ops),
        ..marks(IoEngineKind::Position, Direction::Update(0.1), 200)
    };
    for (interface, direction) in [
        (IoEngineKind::Bytewise, Direction::Write),
        (IoEngineKind::Bytewise, Direction::Read),
        (IoEngineKind::Position, Direction::Update(0.5)),
    ] {
        calls(context, &marks(IoEngineKind::Offset, Direction::Write, 2000), 4000);
        let few = calls(context, &marks(interface, direction, 200), 400);
        let many = calls(context, &marks(interface, direction, 2000), 4000);
        assert_eq!(few, many, "{interface:?} {direction:?}");
    }
    assert_eq!(calls(context, &tickets(400), 400), calls(context, &tickets(4000), 4000));
}

/// Trees with every step, first with few files, then with many.
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
        same(context, steps, TreeOrder::Random);
    }
    same(context, &[MakeParent, LinkFirst], TreeOrder::Creation);
    same(context, &[Unlink], TreeOrder::Listed);
    same(context, &[Create, Write, Close], TreeOrder::Creation);
    same(context, &[Stat, Fetch], TreeOrder::Listed);
    same(context, &[MakeParent, Unlink, Create, Write, Close], TreeOrder::Listed);
    same(context, &[OpenRead, Read, Close, Unlink], TreeOrder::Listed);
    rings(context);
}

/// The same by io_uring, with every request.
#[expect(clippy::print_stderr, reason = "reports that the test is skipped")]
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
        similar(context, &files, TreeOrder::Random, ring);
        similar(context, &[Mkdir, Rmdir, Symlink, Unlink], TreeOrder::Creation, ring);
    }
}

/// Checks that a tree of few entries and one of many have the same number of allocations.
fn same(context: &Context<'_>, steps: &[TreeStep], order: TreeOrder) {
    similar(context, steps, order, Calls::Syscall);
}

/// The same with these calls.
fn similar(context: &Context<'_>, steps: &[TreeStep], order: TreeOrder, how: Calls) {
    let tree = |files| Tree {
        set: Set {
            // Names of equal length: the growth of a path takes the same number of steps.
            name: format!("tree-{files:04}"),
            sharing: Sharing::Private,
            files,
            spread: Spread::Directories { each: 100 },
            naming: Naming::Ordered,
            sizes: Sizes::Fixed(Bytes(10_000)),
            block_size: if how == Calls::Syscall { Bytes::kib(4) } else { Bytes(10_000) },
            data: DataPattern::default(),
            seed: 1,
        },
        passes: 1,
        selection: Selection::default(),
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
