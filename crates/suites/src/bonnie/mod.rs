//! A large file written and read byte by byte, in blocks, rewritten, and sought in; then many small
//! files created, looked at, and removed, by names in order and at random: the twelve phases of
//! version 2.00 of the tool whose name the suite carries, written anew from its observed behavior.
//! Results are "bonnie workload, fslab", never results of that program.
//!
//! The defaults do what the original does. What goes beyond it (several workers, cold caches,
//! O_DIRECT in every block phase, random data) is off; `notes.md`, which is part of the reference
//! page, lists every difference.

mod script;
#[cfg(test)]
mod tests;

use model::{
    Bytes, Point, SuiteSpec, Value,
    phase::Sizes,
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{
    Suite, parameter,
    shared::{has, space, worker_parameter, workers_parameter},
};

/// The suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases: script::phases, footprint };

/// Phases of the large file, in the order they run.
const FILE_TESTS: [&str; 6] = ["putc", "put-block", "rewrite", "getc", "get-block", "seeks"];

/// Phases of the small files, in the order they run.
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

/// A size that shrinks with the plan's scale, and one that does not.
const SCALED: Kind = Kind::Size { min: Bytes(1), scales: true };
const FIXED: Kind = Kind::Size { min: Bytes(1), scales: false };
const MAYBE: Kind = Kind::Size { min: Bytes(0), scales: false };

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("file", SCALED, "1GiB", "Size of the large file; the original takes twice the memory (-s)."),
    parameter("byte_part", FIXED, "3MiB", "How much of it putc and getc move, at most the whole file (-f)."),
    parameter("chunk", FIXED, "8KiB", "Bytes of one call of the block phases."),
    parameter("seeks", Kind::Amount { min: 1, max: 1 << 32 }, "8192", "Seeks of all seekers together."),
    parameter("seekers", Kind::Count { min: 1, max: 1024 }, "5", "Threads that seek in the one file. With several workers each seeks in its own file instead, so many times each."),
    parameter("files", Kind::Amount { min: 1, max: 1 << 32 }, "16384", "Small files of each worker; the original counts them in units of 1024 (-n 16)."),
    parameter("max_size", MAYBE, "0", "Largest size of a small file; 0 makes empty files."),
    parameter("min_size", MAYBE, "0", "Smallest size of a small file; sizes are uniform from it to the largest."),
    parameter("directories", Kind::Count { min: 1, max: 99_999 }, "1", "Directories that the small files are spread over, one after the other: floor(files / directories) + 1 in each."),
    parameter("file_chunk", FIXED, "8KiB", "Bytes of one call that writes or reads a small file."),
    parameter("links", Kind::Word(&["none", "hard", "symbolic"]), "none", "Instead of files: hard or symbolic links to the first of them, which is empty."),
    parameter("sync", Kind::Flag, "false", "fsync after each block that a seek changed, of each created file and its directory, and of the directory after each link or removal (-b as it really is)."),
    parameter("tests", Kind::Words(TESTS), ALL_TESTS, "Which phases; what they need is prepared. They run in the suite's order."),
    workers_parameter("How many work at the same time, with a large file and small files each; the original has one whatever its -c says."),
    worker_parameter("thread", "What they are if there are several."),
    parameter("cache", Kind::Word(&["as-left", "cold"]), "as-left", "Leave the caches as the phase before did, or empty them before each phase."),
    parameter("direct", Kind::Flag, "false", "Open with O_DIRECT in all block phases; the original's -D reaches the writing ones only."),
    parameter("content", Kind::Word(&["classic", "random"]), "classic", "Zeros with one byte more for each block, as the original; or random, stamped blocks."),
    parameter("entropy", Kind::Share, "1.0", "Share of random bytes in random content; the rest is zero."),
];

const SPEC: SuiteSpec = SuiteSpec {
    name: "bonnie",
    title: "A large file by bytes and blocks, rewritten, and sought in; many small files by names \
            in order and at random.",
    source: "behavior of bonnie++ 2.00a, observed; bonnie++(8)",
    notes: include_str!("notes.md"),
    clients: Some("workers"),
    parameters: PARAMETERS,
};

fn refine(mut point: Point) -> Result<Vec<Point>, ValueError> {
    let any = |point: &Point, tests: &[&str]| tests.iter().any(|test| has(point, "tests", test));
    let (of_file, of_entries) = (any(&point, &FILE_TESTS), any(&point, &ENTRY_TESTS));
    let mut idle = Vec::new();
    let mut unless = |effective: bool, names: &[&'static str]| {
        if !effective {
            idle.extend_from_slice(names);
        }
    };
    unless(of_file, &["file", "chunk", "direct"]);
    unless(any(&point, &["putc", "getc"]), &["byte_part"]);
    unless(has(&point, "tests", "seeks"), &["seeks", "seekers"]);
    unless(of_entries, &["files", "max_size", "min_size", "directories", "links"]);
    unless(point.count("workers") > 1, &["worker"]);
    unless(point.count("workers") == 1, &["seekers"]);
    unless(point.word("content") == "random", &["entropy"]);
    unless(of_entries || has(&point, "tests", "seeks"), &["sync"]);
    point.settle(&SPEC.defaults(), &idle);
    // Only now is it known whether small files have data, and whether anything has.
    let sized = of_entries && point.size("max_size").0 > 0;
    let mut idle = Vec::new();
    if !sized {
        idle.push("file_chunk");
    }
    if !sized && !of_file {
        idle.extend(["content", "entropy"]);
    }
    point.settle(&SPEC.defaults(), &idle);
    if of_file {
        file_is_sensible(&point)?;
        let part = point.size("byte_part").min(point.size("file"));
        point.parameters.insert("byte_part".into(), Value::Size(part));
    }
    entries_are_sensible(&point)?;
    if sized {
        let chunk = point.size("file_chunk").min(point.size("max_size"));
        point.parameters.insert("file_chunk".into(), Value::Size(chunk));
    }
    Ok(vec![point])
}

fn file_is_sensible(point: &Point) -> Result<(), ValueError> {
    let (file, part, chunk) = (point.size("file"), point.size("byte_part"), point.size("chunk"));
    if chunk > file {
        return Err(ValueError::new(format!(
            "a chunk of {chunk} does not fit into a file of {file}"
        ))
        .cure("make `file` at least as large as `chunk`"));
    }
    let bytewise = point.words("tests").iter().any(|test| test == "putc" || test == "getc");
    if bytewise && chunk > part {
        return Err(ValueError::new(format!("{part} for putc and getc are less than one chunk"))
            .cure("make `byte_part` at least as large as `chunk`, or leave both out of `tests`"));
    }
    if point.flag("direct") && chunk.0 % 512 != 0 {
        return Err(ValueError::new(format!("chunks of {chunk} cannot be written with O_DIRECT"))
            .cure("make `chunk` a multiple of 512 bytes, or 4096 on disks with such sectors"));
    }
    Ok(())
}

fn entries_are_sensible(point: &Point) -> Result<(), ValueError> {
    let (min, max) = (point.size("min_size"), point.size("max_size"));
    if min > max {
        return Err(ValueError::new(format!(
            "the smallest size, {min}, is above the largest, {max}"
        ))
        .cure("make `max_size` at least as large as `min_size`"));
    }
    if point.word("links") != "none" && max.0 > 0 {
        return Err(ValueError::new("links have no sizes: the one file they lead to is empty")
            .cure("leave `max_size` and `min_size` out, or set `links` to \"none\""));
    }
    Ok(())
}

/// How large the small files are.
fn sizes(point: &Point) -> Sizes {
    match (point.size("min_size"), point.size("max_size")) {
        (min, max) if min == max => Sizes::Fixed(max),
        (min, max) => Sizes::Uniform { min, max },
    }
}

/// The large file is gone before the small ones come.
fn footprint(point: &Point) -> Bytes {
    let any = |tests: &[&str]| tests.iter().any(|test| has(point, "tests", test));
    let file = if any(&FILE_TESTS) { point.size("file") } else { Bytes(0) };
    let entries = match any(&ENTRY_TESTS) {
        true => space(point.count("files"), sizes(point)),
        false => Bytes(0),
    };
    Bytes(file.max(entries).0.saturating_mul(point.count("workers")))
}
