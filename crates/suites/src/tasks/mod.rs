//! The 21 everyday tasks of a study of 2004 and 2006, in the order of their numbers, on one
//! filesystem: make, find, and remove many names; copy, unpack, pack, and remove a source tree;
//! write, copy, and read a large file; cut a file into many pieces.
//!
//! Each task is a measured phase. What a task needs and no task before it has made is prepared, and
//! what is only in the way afterwards is removed, both untimed: [`script`]. `notes.md`, which is
//! part of the reference page, lists what the study leaves open and what is done here.

mod script;
#[cfg(test)]
mod tests;

use model::{
    Bytes, Phase, Point, SuiteSpec, Value,
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{Suite, parameter};
use script::Script;

/// The suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

/// The words of the parameter `tasks`: all of them, or their numbers.
const TASKS: &[&str] = &[
    ALL, "001", "002", "003", "004", "005", "006", "007", "008", "009", "010", "011", "012", "013",
    "014", "015", "016", "017", "018", "019", "020", "021",
];
const ALL: &str = "all";

/// The word for an archive that is made here.
const GENERATED: &str = "generated";

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("tasks", Kind::Words(TASKS), ALL, "Which tasks, by their numbers; what they need of others is prepared."),
    parameter("method", Kind::Word(&["native", "coreutils", "coreutils-each"]), "native", "Who does them: fslab by system calls; the everyday programs (GNU coreutils, tar, findutils); or these with one process for each file that touch and directory that mkdir makes."),
    parameter("files", Kind::Amount { min: 1, max: 1 << 32 }, "10000", "Files of 001, and directories of 004."),
    parameter("archive", Kind::Text { takes: "\"generated\" or the absolute path of a tar archive", read: read_archive }, GENERATED, "The archive of the source tree: made by fslab, or one you have, plain or in gzip."),
    parameter("source_files", Kind::Amount { min: 1, max: 1 << 32 }, "78579", "Files of the generated source tree; Linux 6.1 has 78579."),
    parameter("compression", Kind::Word(&["none", "gzip"]), "none", "How the generated archive and that of 010 are compressed."),
    parameter("copies", Kind::Count { min: 1, max: 1000 }, "10", "Copies of the archive in 012."),
    parameter("large", SIZE, "1GiB", "Size of the large file."),
    parameter("split", SIZE, "10MiB", "Size of the file that is cut into pieces."),
    parameter("buffer", Kind::Size { min: Bytes(1), scales: false }, "128KiB", "Bytes of one call that reads or writes, where fslab does the task."),
    parameter("cache", Kind::Word(&["study", "as-left", "cold"]), "study", "Leave the caches as the task before did, but empty them before 014 and 021, whose file exceeded the study's memory; leave them always; or empty them before each task."),
];

const SIZE: Kind = Kind::Size { min: Bytes(512), scales: true };

const SPEC: SuiteSpec = SuiteSpec {
    name: "tasks",
    title: "21 everyday tasks: many names, copies, a source tree, a large file, many pieces.",
    source: "Justin Piszcz, \"Benchmarking Filesystems\" (2004) and \"Benchmarking Filesystems \
             Part II\" (Linux Gazette 122, January 2006)",
    notes: include_str!("notes.md"),
    clients: None,
    parameters: PARAMETERS,
};

fn read_archive(text: &str) -> Result<String, ValueError> {
    let text = text.trim();
    if text == GENERATED || text.starts_with('/') {
        return Ok(text.to_owned());
    }
    Err(ValueError::new(format!("`{text}` is no absolute path"))
        .cure("write the whole path of a tar archive, beginning with `/`, or \"generated\""))
}

/// The numbers of the tasks that are measured, ascending.
fn numbers(point: &Point) -> Vec<u8> {
    let given = point.words("tasks");
    let all = given.iter().any(|word| word == ALL);
    (1..=21).filter(|number| all || given.iter().any(|word| *word == word_of(*number))).collect()
}

fn word_of(number: u8) -> String {
    format!("{number:03}")
}

fn refine(mut point: Point) -> Result<Vec<Point>, ValueError> {
    let numbers = numbers(&point);
    let words = if numbers.len() == 21 {
        vec![ALL.to_owned()]
    } else {
        numbers.iter().copied().map(word_of).collect()
    };
    point.parameters.insert("tasks".into(), Value::Words(words));

    let any = |tasks: &[u8]| numbers.iter().any(|number| tasks.contains(number));
    let native = point.word("method") == "native";
    let generated = point.text("archive") == GENERATED;
    // Without those that make many names there is nothing to start a process each for.
    if point.word("method") == "coreutils-each" && !any(&[1, 4]) {
        point.parameters.insert("method".into(), Value::Word("coreutils".into()));
    }
    let mut idle = Vec::new();
    let mut unless = |effective: bool, name: &'static str| {
        if !effective {
            idle.push(name);
        }
    };
    let of_source = any(&[7, 8, 9, 10, 11, 12, 20]);
    unless(native, "buffer");
    unless(any(&[1, 2, 3, 4, 5, 6]), "files");
    unless(of_source, "archive");
    unless(of_source && generated, "source_files");
    unless(any(&[10]) || of_source && generated, "compression");
    unless(any(&[12]), "copies");
    unless(any(&[13, 14, 21]), "large");
    unless(any(&[15, 16, 17, 18, 19]), "split");
    point.settle(&SPEC.defaults(), &idle);
    Ok(vec![point])
}

fn script(point: &Point, seed: u64) -> Script<'_> {
    let mut script = Script::new(point, seed);
    numbers(point).into_iter().for_each(|number| script.task(number));
    script
}

fn phases(point: &Point, seed: u64) -> Vec<Phase> {
    script(point, seed).phases
}

/// The most that is there at one time. An archive of the user's is taken to be as large as that of
/// the whole generated tree.
fn footprint(point: &Point) -> Bytes {
    script(point, 0).peak
}
