//! Calls of the phases on many files, compared with fixtures: those of bonnie++, and the five
//! operations of the small-file study.
//!
//! A call is reported with its path relative to the directory under test. A fixture contains `NAME`
//! in place of the entry, and is expanded for each entry of the trace; the order of entries depends
//! on the filesystem.

use std::path::Path;

use model::{
    Bytes,
    phase::{
        DataPattern, Naming, Set, Sharing, Sizes, Spread, Tree, TreeEnd, TreeOrder, TreeStep, Work,
    },
};
use tempfile::TempDir;

use crate::strace::{expected, threads};

/// Entries of a set, and of one of its directories.
const FILES: usize = 3;

pub(crate) fn tests() {
    bonnie_phases_make_the_calls_of_bonnie();
    links_point_to_the_first_file();
    small_files_are_processed_by_directory();
}

fn set(naming: Naming, size: u64) -> Set {
    Set {
        name: "Bonnie".into(),
        sharing: Sharing::Private,
        files: FILES as u64,
        spread: Spread::Flat,
        naming,
        sizes: Sizes::Fixed(Bytes(size)),
        block_size: Bytes(8192),
        data: DataPattern::PagePattern,
        seed: 1,
    }
}

/// Calls of a tree with paths relative to the set, `.` being the set itself. Opening that directory
/// once, which every phase does before the clock starts, is omitted.
fn calls(tree: Tree, directory: &Path) -> Vec<String> {
    let threads = threads(&Work::Tree(tree), directory);
    // The thread that probes features and calibrates the clock is not the worker.
    let worker = threads.last().unwrap();
    let mut calls: Vec<String> = worker
        .iter()
        .map(|call| {
            let path = call.path.strip_prefix("Bonnie.0").unwrap_or(&call.path);
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            format!("{} {} {}", call.name, path.display(), call.details).trim_end().to_owned()
        })
        .collect();
    if let Some(made) = calls.iter().position(|call| call == "mkdir . 0700") {
        calls.remove(made);
    }
    let opened = calls.iter().position(|call| call.starts_with("open . ")).unwrap();
    calls.remove(opened);
    // The end of the process closes it.
    calls.retain(|call| call != "close .");
    calls
}

/// Part of a fixture between two lines `---`, expanded for these names.
fn unfolded(part: &str, names: &[String]) -> Vec<String> {
    let lines = expected(part);
    let each = |name: &String| lines.iter().map(|line| line.replace("NAME", name)).collect();
    names.iter().flat_map(|name| -> Vec<String> { each(name) }).collect()
}

/// Entries of a trace in order: the paths of the calls `call`.
fn names(calls: &[String], call: &str) -> Vec<String> {
    let mut names: Vec<String> = calls
        .iter()
        .filter_map(|line| line.strip_prefix(call)?.strip_prefix(' '))
        .map(|rest| rest.split(' ').next().unwrap().to_owned())
        .collect();
    names.dedup();
    assert_eq!(names.len(), FILES, "{calls:#?}");
    names
}

/// Compares a trace with the head, the part per entry, and the tail of a fixture.
fn compare(phase: &str, calls: &[String], call: &str, fixture: &str) {
    let parts: Vec<&str> = fixture.split("---").collect();
    let [head, each, tail] = parts.try_into().unwrap();
    let names = names(calls, call);
    let fixture = [expected(head), unfolded(each, &names), expected(tail)].concat();
    assert_eq!(calls, fixture, "{phase}");
}

fn bonnie_phases_make_the_calls_of_bonnie() {
    use TreeStep::{Close, Create, Fetch, Fsync, FsyncDirectory, Stat, Unlink, Write};
    let directory = TempDir::new().unwrap();
    let sync = TreeEnd { remove_directories: false, sync: true };
    let remove = TreeEnd { remove_directories: true, sync: true };
    let plain = |set: &Set, steps: &[TreeStep]| Tree::new(set.clone(), steps.to_vec());
    for (naming, order, fixtures) in [
        (
            Naming::Ordered,
            TreeOrder::Listed,
            [
                include_str!("create.txt"),
                include_str!("stat-listed.txt"),
                include_str!("delete-listed.txt"),
            ],
        ),
        (
            Naming::Scrambled,
            TreeOrder::Random,
            [
                include_str!("create.txt"),
                include_str!("stat-shuffled.txt"),
                include_str!("delete-shuffled.txt"),
            ],
        ),
    ] {
        let set = set(naming, 20_000);
        let [create, stat, delete] = fixtures;
        let made = Tree { end: sync, ..plain(&set, &[Create, Write, Close]) };
        compare("create", &calls(made, directory.path()), "open", create);
        let reported = Tree { order, ..plain(&set, &[Stat, Fetch]) };
        compare("stat", &calls(reported, directory.path()), "stat", stat);
        let gone = Tree { order, end: remove, ..plain(&set, &[Unlink]) };
        compare("delete", &calls(gone, directory.path()), "unlink", delete);
    }
    let empty = set(Naming::Ordered, 0);
    let flushed = plain(&empty, &[Create, Fsync, FsyncDirectory, Close]);
    let flushed = Tree { end: sync, ..flushed };
    let fixture = include_str!("create-flushed.txt");
    compare("create -b", &calls(flushed, directory.path()), "open", fixture);
    let reported = Tree { order: TreeOrder::Listed, ..plain(&empty, &[Stat, Fetch]) };
    let fixture = include_str!("stat-empty.txt");
    compare("stat", &calls(reported, directory.path()), "stat", fixture);
    let gone = plain(&empty, &[Unlink, FsyncDirectory]);
    let gone = Tree { order: TreeOrder::Listed, end: remove, ..gone };
    let fixture = include_str!("delete-flushed.txt");
    compare("delete -b", &calls(gone, directory.path()), "unlink", fixture);
}

fn links_point_to_the_first_file() {
    for (step, fixture) in [
        (TreeStep::LinkFirst, include_str!("links.txt")),
        (TreeStep::SymlinkFirst, include_str!("symlinks.txt")),
    ] {
        let directory = TempDir::new().unwrap();
        let make = Tree::new(set(Naming::Numbers, 0), vec![step]);
        assert_eq!(calls(make, directory.path()), expected(fixture), "{step:?}");
    }
}

fn small_files_are_processed_by_directory() {
    use TreeStep::{Chmod, Chown, Close, Create, MakeParent, OpenRead, Read, Stat, Unlink, Write};
    let directory = TempDir::new().unwrap();
    let mut set = set(Naming::Numbers, 5000);
    set.spread = Spread::Directories { each: FILES as u64 };
    let write = [MakeParent, Create, Write, Close, Chown, Chmod];
    // It opens the old file without reading it.
    let rewrite = [MakeParent, OpenRead, Close, Unlink, Create, Write, Close, Chown, Chmod];
    for (phase, steps, order, fixture) in [
        ("write", &write[..], TreeOrder::Creation, include_str!("small-write.txt")),
        ("rewrite", &rewrite, TreeOrder::Listed, include_str!("small-rewrite.txt")),
        ("read", &[OpenRead, Read, Close], TreeOrder::Listed, include_str!("small-read.txt")),
        ("stat", &[Stat], TreeOrder::Listed, include_str!("small-stat.txt")),
        ("unlink", &[Unlink], TreeOrder::Listed, include_str!("small-unlink.txt")),
    ] {
        let tree = Tree { order, ..Tree::new(set.clone(), steps.to_vec()) };
        let calls = calls(tree, directory.path());
        let entry = match phase {
            "write" | "rewrite" => "chmod",
            "read" => "read",
            _ => phase,
        };
        compare(phase, &calls, entry, fixture);
    }
}
