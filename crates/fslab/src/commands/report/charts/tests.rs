use std::fs;

use super::*;

const MINE: &str = "<!-- charts of fslab run r1 -->";

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn an_empty_directory_is_accepted() {
    let directory = directory();
    let found = ours(directory.path(), MINE).ok().unwrap();
    assert!(found.names.is_empty() && !found.unfinished);
}

#[test]
fn foreign_files_are_rejected() {
    let directory = directory();
    fs::write(directory.path().join("thesis.svg"), "mine").unwrap();
    assert!(ours(directory.path(), MINE).is_err());
    fs::write(directory.path().join(LIST), "# my own list\n").unwrap();
    assert!(ours(directory.path(), MINE).is_err());
    fs::write(directory.path().join(LIST), "<!-- charts of fslab run r2 -->\n").unwrap();
    assert!(ours(directory.path(), MINE).is_err());
}

#[test]
fn only_listed_files_of_the_same_run_are_replaced() {
    let directory = directory();
    let list = format!("{MINE}\n\n| a | ranking | [a.svg](a.svg) | [b](../b.png) |\n");
    fs::write(directory.path().join(LIST), list).unwrap();
    let found = ours(directory.path(), MINE).ok().unwrap();
    assert!(found.may_replace("a.svg") && !found.may_replace("thesis.svg"));
    assert_eq!(found.names.len(), 1, "a name that leads out is not a chart");
}

#[test]
fn an_interrupted_export_is_completed() {
    let directory = directory();
    fs::write(directory.path().join(LIST), format!("{MINE}\n{UNFINISHED}\n")).unwrap();
    assert!(ours(directory.path(), MINE).ok().unwrap().may_replace("a.svg"));
    place(directory.path(), "a.svg", b"whole").ok().unwrap();
    assert_eq!(fs::read(directory.path().join("a.svg")).unwrap(), b"whole");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn a_link_in_the_way_is_replaced_and_not_followed() {
    let (directory, other) = (directory(), directory());
    let target = other.path().join("kept");
    fs::write(&target, "kept").unwrap();
    for name in ["a.svg", "a.svg.partial"] {
        std::os::unix::fs::symlink(&target, directory.path().join(name)).unwrap();
    }
    fs::write(directory.path().join("b.svg.partial"), "mine").unwrap();
    place(directory.path(), "b.svg", b"chart").ok().unwrap();
    assert_eq!(fs::read(directory.path().join("b.svg.partial")).unwrap(), b"mine");
    place(directory.path(), "a.svg", b"chart").ok().unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"kept");
    assert_eq!(fs::read(directory.path().join("a.svg")).unwrap(), b"chart");
}

#[test]
fn titles_stay_text() {
    assert_eq!(plain("a|b [x](y)\n<i>"), "a\\|b \\[x\\]\\(y\\) &lt;i>");
}
