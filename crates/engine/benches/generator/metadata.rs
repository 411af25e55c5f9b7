//! Load generator overhead of creating, reading, and removing many files, compared with a bare
//! loop, other benchmarks, and a layout by one thread. All files are on a tmpfs, which has the
//! lowest cost per operation.

mod bare;
mod peers;
mod room;

use std::{
    ffi::CString,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

use engine::{Context, Progress, run_layout, run_tree};
use model::{
    Bytes, Nanos, PhaseResult,
    phase::{
        DataPattern, Item, Layout, Naming, Set, Sharing, Sizes, Spread, Tree, TreeEnd, TreeOrder,
        TreeStep,
    },
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::{
    contest::{Contest, Contestant, Measure, rounds, single},
    ours,
    page::{Row, Section},
    rate::Rate,
};
use room::Room;
pub(crate) use room::peak;

/// Size of the measurements.
pub(crate) struct Extent {
    /// Rounds with a bare loop, and files per round.
    short: (usize, u64),
    /// Rounds with programs that take seconds.
    long: usize,
    /// Files of fs_mark, in thousands.
    fsmark: u64,
    /// Files of bonnie++, in units of 1024. bonnie++ reports no rate for less than 0.5 s.
    bonnie: u64,
    /// Files of a layout.
    layout: u64,
    /// Numbers of files of a small and of a large set, and memory required for the large one.
    memory: (u64, u64, Bytes),
}

/// Size for reliable results.
pub(crate) const FULL: Extent = Extent {
    short: (120, 30_000),
    long: 6,
    fsmark: 200,
    bonnie: 600,
    layout: 1_000_000,
    memory: (1_000_000, 10_000_000, Bytes(14 << 30)),
};

/// Size for a smoke test.
pub(crate) const SMOKE: Extent = Extent {
    short: (1, 200),
    long: 1,
    fsmark: 1,
    bonnie: 1,
    layout: 2000,
    memory: (100, 1000, Bytes(0)),
};

/// Files per directory in sets with several directories.
const EACH: u64 = 1000;

/// Section of the page. Installed programs are included if `peers`; `only` names a single
/// comparison.
pub(crate) fn measure(extent: &Extent, peers: bool, only: Option<&str>) -> Section {
    let room = Room::new();
    let all = sched_getaffinity(None).expect("the CPUs of this process");
    let cpu = (0..CpuSet::MAX_CPU).rfind(|cpu| all.is_set(*cpu)).unwrap_or(0);
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one).expect("one CPU of those allowed");
    let is_asked = |name: &str| only.is_none_or(|only| only == name);
    let (mut rows, mut programs) = (Vec::new(), Vec::new());
    if is_asked("bare") {
        programs.push("a bare loop");
        rows.extend(rounds(&calls(extent, room.path()), extent.short.0).1);
    }
    if peers && is_asked("fs_mark") && peers::is_installed("fs_mark") {
        programs.push("fs_mark");
        rows.extend(rounds(&fs_mark(extent, room.path()), extent.long * 2).1);
    }
    if peers && is_asked("bonnie++") && peers::is_installed("bonnie++") {
        programs.push("bonnie++");
        rows.extend(rounds(&bonnie(extent, room.path()), extent.long + 2).1);
    }
    sched_setaffinity(None, &all).expect("the CPUs as before");
    let fio = peers && is_asked("fio") && crate::fio::version().is_some();
    if fio {
        programs.push("fio");
    }
    if only.is_none() || fio {
        rows.extend(layouts(extent, fio, all.count(), room.path()));
    }
    let mut paragraphs = vec![conditions(&programs, all.count())];
    if only.is_none() {
        paragraphs.push(room::memory(extent.memory, &room));
    }
    Section { rows, paragraphs }
}

fn conditions(programs: &[&str], cpus: u32) -> String {
    format!(
        "This section compares fslab with {}, on a tmpfs. Except for the layouts, all of them run \
         on the same single CPU.\n\n\
         **Bare loop.** Like fslab, it keeps the directory open and does not share its descriptor \
         table. Its names are in a table that is created before the measurement, and it counts \
         nothing; fslab generates each name in its loop. The bare loop with clock reads also calls \
         clock_gettime(2) once per call, because a latency requires a clock. If the kernel \
         uses the tick counter of the CPU as its clock, fslab reads the counter instead, which \
         costs less.\n\n\
         **fs_mark** calls mkdir for every file. It uses names of 40 bytes, and so does fslab in \
         this comparison. Its rate does not include removals.\n\n\
         **bonnie++** works in one directory. In its sequential phases it uses the order of \
         readdir. It ends creating and deleting with a sync(2) of the whole machine. fslab does \
         the same, and the time of its sync counts.\n\n\
         **Layouts** are the untimed creation of file sets. fslab creates a set for one owner on \
         {cpus} CPUs, with {EACH} files per directory. It is compared with one thread that opens \
         and closes each file of the same set, with names from a table, and with fio. fio creates \
         no empty files, so both create files of one byte in this comparison. The time of a fio \
         run with one file is subtracted.",
        programs.join(", ")
    )
}

fn set(name: &str, files: u64) -> Set {
    Set {
        name: name.into(),
        sharing: Sharing::Private,
        files,
        spread: Spread::Flat,
        naming: Naming::Numbers,
        sizes: Sizes::Fixed(Bytes(0)),
        block_size: Bytes(4096),
        data: DataPattern::default(),
        seed: 1,
    }
}

/// Runs the steps on each file of a set, in this order, and the work at the end.
fn tree(set: &Set, order: TreeOrder, steps: &[TreeStep], end: TreeEnd, at: &Path) -> PhaseResult {
    let tree = Tree { order, end, ..Tree::new(set.clone(), steps.to_vec()) };
    let context = Context {
        directory: at,
        progress: &Progress::default(),
        interrupt: &AtomicBool::new(false),
        state: None,
        worker_command: &[],
        start: None,
    };
    run_tree(&tree, &context).expect("the phase runs")
}

const MAKE: [TreeStep; 2] = [TreeStep::Create, TreeStep::Close];
const PLAIN: TreeEnd = TreeEnd { remove_directories: false, sync: false };

/// Create and close, stat, and unlink, compared with the same calls in a bare loop.
fn calls<'a>(extent: &Extent, directory: &'a Path) -> Contest<'a> {
    let set = set("calls", extent.short.1);
    let names: Vec<CString> =
        (0..set.files).map(|entry| CString::new(entry.to_string()).expect("digits")).collect();
    let ours = move || {
        let step = |steps: &[TreeStep]| {
            Some(ours::rate(&tree(&set, TreeOrder::Creation, steps, PLAIN, directory)))
        };
        vec![step(&MAKE), step(&[TreeStep::Stat]), step(&[TreeStep::Unlink])]
    };
    let names = Arc::new(names);
    let bare = |reads_clock: bool| -> Measure<'a> {
        let names = Arc::clone(&names);
        let path = directory.join("bare");
        Box::new(move || bare::calls(&path, &names, reads_clock).map(Some).into())
    };
    Contest {
        items: ["create and close", "stat", "unlink"].map(|what| format!("{what}, tmpfs")).into(),
        ours: Box::new(ours),
        others: vec![
            ("bare loop", Some(0.95), bare(false)),
            ("bare loop with clock reads", None, bare(true)),
        ],
    }
}

/// Create and close with names as long as those of fs_mark.
fn fs_mark<'a>(extent: &Extent, directory: &'a Path) -> Contest<'a> {
    let files = extent.fsmark * 1000;
    let set = Set { naming: Naming::Padded { length: 40 }, ..set("marks", files) };
    let ours = move || {
        let made = ours::rate(&tree(&set, TreeOrder::Creation, &MAKE, PLAIN, directory));
        tree(&set, TreeOrder::Creation, &[TreeStep::Unlink], PLAIN, directory);
        made
    };
    let theirs = move || peers::fs_mark(files, &directory.join("fs_mark"));
    Contest {
        items: vec!["create and close, names of 40 bytes, tmpfs".into()],
        ours: single(ours),
        others: vec![("fs_mark", Some(1.0), single(theirs))],
    }
}

/// Phases of bonnie++ on files with ordered names and on files with random names.
fn bonnie<'a>(extent: &Extent, directory: &'a Path) -> Contest<'a> {
    let units = extent.bonnie;
    let phases = move |naming, order| {
        let set = Set { naming, ..set("bonnie", units * 1024) };
        let step = |order, steps: &[TreeStep], end| {
            Some(with_flush(&tree(&set, order, steps, end, directory)))
        };
        let sync = TreeEnd { sync: true, ..PLAIN };
        [
            step(TreeOrder::Creation, &MAKE, sync),
            step(order, &[TreeStep::Stat], PLAIN),
            step(order, &[TreeStep::Unlink], TreeEnd { remove_directories: true, ..sync }),
        ]
    };
    let ours = move || {
        let sequential = phases(Naming::Ordered, TreeOrder::Listed);
        [sequential, phases(Naming::Scrambled, TreeOrder::Random)].concat()
    };
    let theirs: Measure<'a> = Box::new(move || peers::bonnie(units, directory));
    let items = ["sequential", "random"].into_iter().flat_map(|word| {
        ["create and close", "stat", "unlink"].map(|what| format!("{what}, {word}, tmpfs"))
    });
    let others: Vec<Contestant<'a>> = vec![("bonnie++", Some(1.0), theirs)];
    Contest { items: items.collect(), ours: Box::new(ours), others }
}

/// Files per second, including the time of the sync.
fn with_flush(result: &PhaseResult) -> Rate {
    let time: Nanos =
        result.workers.iter().map(|w| w.loop_time + w.end_sync_time).max().expect("one");
    Rate::new(result.ops().0, time)
}

/// Layouts on all CPUs, compared with one thread and with fio.
fn layouts(extent: &Extent, fio: bool, cpus: u32, directory: &Path) -> Vec<Row> {
    let files = extent.layout;
    let spread = Spread::Directories { each: EACH };
    let empty = Set { spread, ..set("empty", files) };
    let small = Set { sizes: Sizes::Fixed(Bytes(1)), ..empty.clone() };
    let names: Vec<CString> =
        (0..files).map(|entry| CString::new(entry.to_string()).expect("digits")).collect();
    let names = &names;
    let measure = |set: Set| single(move || layout(&set, directory));
    let serial = move || {
        let path = directory.join("serial");
        let rate = bare::layout(&path, names, EACH);
        std::fs::remove_dir_all(path).expect("it was just made");
        rate
    };
    let wanted = Some(f64::from(cpus));
    let contest = |what: String, set: Set, other: Contestant<'_>, times: usize| {
        let contest = Contest { items: vec![what], ours: measure(set), others: vec![other] };
        rounds(&contest, times).1
    };
    let other: Contestant<'_> = ("one thread, open and close", wanted, single(serial));
    let what = format!("layout of {files} empty files, tmpfs");
    let mut rows = contest(what, empty, other, extent.long);
    if fio {
        let theirs = move || peers::fio(files, &directory.join("fio"));
        let other: Contestant<'_> = ("fio", wanted, single(theirs));
        let what = format!("layout of {files} files of 1 byte, tmpfs");
        // fio takes 30 s, so there are fewer rounds.
        rows.extend(contest(what, small, other, extent.long.div_ceil(2)));
    }
    rows
}

/// Rate of one layout by fslab, which is removed afterwards.
fn layout(set: &Set, directory: &Path) -> Rate {
    let context = Context {
        directory,
        progress: &Progress::default(),
        interrupt: &AtomicBool::new(false),
        state: None,
        worker_command: &[],
        start: None,
    };
    let layout = Layout { set: set.clone(), item: Item::File, owners: 1 };
    let result = run_layout(&layout, &context).expect("the layout is made");
    let path = directory.join(format!("{}.0", set.name));
    std::fs::remove_dir_all(path).expect("it was just made");
    Rate::new(result.ops().0, result.wall_time)
}
