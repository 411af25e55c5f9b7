//! Suite `bonnie`: the twelve phases of bonnie++ 2.00, reimplemented from its observed behavior. A
//! large file is written and read by character and by block, rewritten, and read at random. Then
//! small files are created, read, and removed, first with names in order, then with random names.
//! Results are labeled "bonnie workload, fslab", because they are not results of bonnie++.
//!
//! The defaults reproduce bonnie++. Several workers, cold caches, O_DIRECT in every block phase,
//! and random data are additions that are off by default. The reference page, which includes
//! `notes.md`, lists all differences.

mod script;
#[cfg(test)]
mod tests;

use model::{
    Bytes, SuiteSpec, Value, WorkloadParameters,
    phase::Sizes,
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{
    Suite, parameter,
    shared::{has, space, worker_type_parameter, workers_parameter},
};

/// Definition of the suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases: script::phases, footprint };

/// Phases of the large file, in execution order.
const FILE_TESTS: [&str; 6] = ["putc", "put-block", "rewrite", "getc", "get-block", "seeks"];

/// Phases of the small files, in execution order.
const ENTRY_TESTS: [&str; 6] =
    ["seq-create", "seq-stat", "seq-delete", "ran-create", "ran-stat", "ran-delete"];

const TESTS: &[&str] = &[
    "putc",
    "put-block",
    "rewrite",
    "getc",
    "get-block",
    "seeks",
    "seq-create",
    "seq-stat",
    "seq-delete",
    "ran-create",
    "ran-stat",
    "ran-delete",
];

const ALL_TESTS: &str = "putc,put-block,rewrite,getc,get-block,seeks,\
                         seq-create,seq-stat,seq-delete,ran-create,ran-stat,ran-delete";

/// Kinds of sizes: scaled, not scaled, and not scaled with 0 allowed.
const SCALED: Kind = Kind::Size { min: Bytes(1), scales: true };
const FIXED: Kind = Kind::Size { min: Bytes(1), scales: false };
const MAYBE: Kind = Kind::Size { min: Bytes(0), scales: false };

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("file_size", SCALED, "1GiB", "Size of the large file; bonnie++ uses twice the memory (`-s`)."),
    parameter("char_io_size", FIXED, "3MiB", "Bytes moved by putc and getc, at most the file size (`-f`)."),
    parameter("block_size", FIXED, "8KiB", "Bytes per I/O call (bonnie++: chunk size)."),
    parameter("seeks", Kind::Amount { min: 1, max: 1 << 32 }, "8192", "Total number of seeks."),
    parameter("seekers", Kind::Count { min: 1, max: 1024 }, "5", "Threads that seek in the file. With several workers, each worker performs all seeks in its own file instead."),
    parameter("files", Kind::Amount { min: 1, max: 1 << 32 }, "16384", "Number of small files of each worker; bonnie++ counts in units of 1024 (`-n 16`)."),
    parameter("small_file_size_max", MAYBE, "0", "Maximum small-file size."),
    parameter("small_file_size_min", MAYBE, "0", "Minimum small-file size; sizes are uniform between minimum and maximum."),
    parameter("directories", Kind::Count { min: 1, max: 99_999 }, "1", "Directories of the small files, filled one after another: floor(files / directories) + 1 files in each."),
    parameter("small_file_block_size", FIXED, "8KiB", "Bytes per I/O call on small files."),
    parameter("links", Kind::Word(&["none", "hard", "symbolic"]), "none", "Create hard or symbolic links instead of files; they refer to one empty file."),
    parameter("fsync_each", Kind::Flag, "false", "fsync after each change (bonnie++ `-b`): each block modified by a seek, each created file and its directory, and the directory after each link or removal."),
    parameter("tests", Kind::Words(TESTS), ALL_TESTS, "Phases to measure; they run in the order of the suite, and what they require is prepared."),
    workers_parameter("Number of workers, each with its own files; bonnie++ has one, regardless of `-c`."),
    worker_type_parameter("thread", "Kind of worker."),
    parameter("cache", Kind::Word(&["unchanged", "cold"]), "unchanged", "Cache state before each measured phase."),
    parameter("direct", Kind::Flag, "false", "Open with O_DIRECT in all block phases."),
    parameter("direct_create", Kind::Flag, "false", "Open with O_DIRECT in put-block only, as bonnie++ with `-D` and without the tests by character."),
    parameter("content", Kind::Word(&["bonnie", "random"]), "bonnie", "Written data: zeros with one incremented byte per block, as bonnie++ writes, or random blocks."),
    parameter("incompressible_fraction", Kind::Fraction, "1.0", "Fraction of random bytes (rest zero) of random content."),
];

const SPEC: SuiteSpec = SuiteSpec {
    name: "bonnie",
    title: "bonnie++ phases: large-file I/O, seeks, small files.",
    source: "behavior of bonnie++ 2.00a, observed; bonnie++(8)",
    notes: include_str!("notes.md"),
    clients: Some("workers"),
    parameters: PARAMETERS,
};

fn refine(mut point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    let any = |point: &WorkloadParameters, tests: &[&str]| {
        tests.iter().any(|test| has(point, "tests", test))
    };
    let (of_file, of_entries) = (any(&point, &FILE_TESTS), any(&point, &ENTRY_TESTS));
    let mut unused = Vec::new();
    let mut unless = |effective: bool, names: &[&'static str]| {
        if !effective {
            unused.extend_from_slice(names);
        }
    };
    unless(of_file, &["file_size", "block_size", "direct"]);
    unless(of_file && !point.flag("direct"), &["direct_create"]);
    unless(any(&point, &["putc", "getc"]), &["char_io_size"]);
    unless(has(&point, "tests", "seeks"), &["seeks", "seekers"]);
    unless(
        of_entries,
        &["files", "small_file_size_max", "small_file_size_min", "directories", "links"],
    );
    unless(point.count("workers") > 1, &["worker_type"]);
    unless(point.count("workers") == 1, &["seekers"]);
    unless(point.word("content") == "random", &["incompressible_fraction"]);
    unless(of_entries || has(&point, "tests", "seeks"), &["fsync_each"]);
    point.reset(&SPEC.defaults(), &unused);
    // Only after this reset, `small_file_size_max` shows if any file has data.
    let sized = of_entries && point.size("small_file_size_max").0 > 0;
    let mut unused = Vec::new();
    if !sized {
        unused.push("small_file_block_size");
    }
    if !sized && !of_file {
        unused.extend(["content", "incompressible_fraction"]);
    }
    point.reset(&SPEC.defaults(), &unused);
    if of_file {
        check_file(&point)?;
        let part = point.size("char_io_size").min(point.size("file_size"));
        point.parameters.insert("char_io_size".into(), Value::Size(part));
    }
    check_entries(&point)?;
    if sized {
        let block = point.size("small_file_block_size").min(point.size("small_file_size_max"));
        point.parameters.insert("small_file_block_size".into(), Value::Size(block));
    }
    Ok(vec![point])
}

fn check_file(point: &WorkloadParameters) -> Result<(), ValueError> {
    let (file, part, block) =
        (point.size("file_size"), point.size("char_io_size"), point.size("block_size"));
    if block > file {
        return Err(ValueError::new(format!(
            "a block of {block} does not fit into a file of {file}"
        ))
        .hint("set `file_size` to at least `block_size`"));
    }
    let bytewise = point.words("tests").iter().any(|test| test == "putc" || test == "getc");
    if bytewise && block > part {
        return Err(ValueError::new(format!("`char_io_size` {part} is less than one block")).hint(
            "set `char_io_size` to at least `block_size`, or remove putc and getc from `tests`",
        ));
    }
    let direct = point.flag("direct") || point.flag("direct_create");
    if direct && block.0 % 512 != 0 {
        return Err(ValueError::new(format!("blocks of {block} cannot be written with O_DIRECT"))
            .hint(
                "set `block_size` to a multiple of 512 bytes, or 4096 on disks with such sectors",
            ));
    }
    Ok(())
}

fn check_entries(point: &WorkloadParameters) -> Result<(), ValueError> {
    let (min, max) = (point.size("small_file_size_min"), point.size("small_file_size_max"));
    if min > max {
        return Err(ValueError::new(format!(
            "`small_file_size_min` {min} is greater than `small_file_size_max` {max}"
        ))
        .hint("set `small_file_size_max` to at least `small_file_size_min`"));
    }
    if point.word("links") != "none" && max.0 > 0 {
        return Err(ValueError::new("links have no data: they refer to an empty file").hint(
            "remove `small_file_size_max` and `small_file_size_min`, or set `links` to \"none\"",
        ));
    }
    Ok(())
}

/// Sizes of the small files.
fn sizes(point: &WorkloadParameters) -> Sizes {
    match (point.size("small_file_size_min"), point.size("small_file_size_max")) {
        (min, max) if min == max => Sizes::Fixed(max),
        (min, max) => Sizes::Uniform { min, max },
    }
}

/// Maximum space of a trial. The large file does not count in addition to the small files, because
/// it is removed before they are created.
fn footprint(point: &WorkloadParameters) -> Bytes {
    let any = |tests: &[&str]| tests.iter().any(|test| has(point, "tests", test));
    let file = if any(&FILE_TESTS) { point.size("file_size") } else { Bytes(0) };
    let entries = match any(&ENTRY_TESTS) {
        true => space(point.count("files"), sizes(point)),
        false => Bytes(0),
    };
    Bytes(file.max(entries).0.saturating_mul(point.count("workers")))
}
