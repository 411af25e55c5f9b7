//! Suite `tasks`: the 21 everyday tasks of a study of 2004 and 2006, in the order of their numbers:
//! create, find, and remove many files; copy, unpack, pack, and remove a source tree; write, copy,
//! and read a large file; split a file.
//!
//! Each task is a measured phase. Untimed phases prepare files that no earlier task has created,
//! and remove files that are no longer required. Module [`script`] creates the phases. The
//! reference page, which includes `notes.md`, lists the details that the study does not specify.

mod script;
#[cfg(test)]
mod tests;

use model::{
    Bytes, Phase, SuiteSpec, Value, WorkloadParameters,
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{Suite, parameter};
use script::Script;

/// Definition of the suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

/// Values of the parameter `tasks`: all tasks, or numbers of tasks.
const TASKS: &[&str] = &[
    ALL, "001", "002", "003", "004", "005", "006", "007", "008", "009", "010", "011", "012", "013",
    "014", "015", "016", "017", "018", "019", "020", "021",
];
const ALL: &str = "all";

/// Value of `archive` for the generated archive.
const GENERATED: &str = "generated";

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("tasks", Kind::Words(TASKS), ALL, "Tasks by number; what they require of other tasks is prepared."),
    parameter("method", Kind::Word(&["native", "coreutils", "coreutils-per-file"]), "native", "fslab's own system calls; standard programs (GNU coreutils, tar, findutils); standard programs with one process per file."),
    parameter("files", Kind::Amount { min: 1, max: 1 << 32 }, "10000", "Files of task 001 and directories of task 004."),
    parameter("archive", Kind::Text { takes: "\"generated\" or the absolute path of a tar archive", read: read_archive }, GENERATED, "Archive to unpack: generated, or a path, plain or gzip."),
    parameter("source_files", Kind::Amount { min: 1, max: 1 << 32 }, "78579", "Files of the generated source tree; Linux 6.1 has 78579."),
    parameter("compression", Kind::Word(&["none", "gzip"]), "none", "Compression of the generated archive and of the archive of task 010."),
    parameter("copies", Kind::Count { min: 1, max: 1000 }, "10", "Copies in task 012."),
    parameter("large_file_size", SIZE, "1GiB", "Size of the large file."),
    parameter("split_file_size", SIZE, "10MiB", "Size of the file that is split."),
    parameter("block_size", Kind::Size { min: Bytes(1), scales: false }, "128KiB", "Bytes per I/O call (method native)."),
    parameter("cache", Kind::Word(&["study", "unchanged", "cold"]), "study", "Cache state before each measured phase. study: unchanged, but cold before tasks 014 and 021, because their file exceeded the memory of the study's machine."),
];

const SIZE: Kind = Kind::Size { min: Bytes(512), scales: true };

const SPEC: SuiteSpec = SuiteSpec {
    name: "tasks",
    title: "21 everyday file tasks: copy, unpack, find, remove, split.",
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
    Err(ValueError::new(format!("`{text}` is not an absolute path"))
        .hint("use the absolute path of a tar archive, or \"generated\""))
}

/// Numbers of the selected tasks, ascending.
fn numbers(point: &WorkloadParameters) -> Vec<u8> {
    let given = point.words("tasks");
    let all = given.iter().any(|word| word == ALL);
    (1..=21).filter(|number| all || given.iter().any(|word| *word == word_of(*number))).collect()
}

fn word_of(number: u8) -> String {
    format!("{number:03}")
}

fn refine(mut point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
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
    // Only tasks 001 and 004 start a process per file.
    if point.word("method") == "coreutils-per-file" && !any(&[1, 4]) {
        point.parameters.insert("method".into(), Value::Word("coreutils".into()));
    }
    let mut unused = Vec::new();
    let mut unless = |effective: bool, name: &'static str| {
        if !effective {
            unused.push(name);
        }
    };
    let of_source = any(&[7, 8, 9, 10, 11, 12, 20]);
    unless(native, "block_size");
    unless(any(&[1, 2, 3, 4, 5, 6]), "files");
    unless(of_source, "archive");
    unless(of_source && generated, "source_files");
    unless(any(&[10]) || of_source && generated, "compression");
    unless(any(&[12]), "copies");
    unless(any(&[13, 14, 21]), "large_file_size");
    unless(any(&[15, 16, 17, 18, 19]), "split_file_size");
    point.reset(&SPEC.defaults(), &unused);
    Ok(vec![point])
}

fn script(point: &WorkloadParameters, seed: u64) -> Script<'_> {
    let mut script = Script::new(point, seed);
    numbers(point).into_iter().for_each(|number| script.task(number));
    script
}

fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    script(point, seed).phases
}

/// Maximum space at one time. An archive of the user and its tree count as 0, because their sizes
/// are unknown.
fn footprint(point: &WorkloadParameters) -> Bytes {
    script(point, 0).peak
}
