//! Command lines of other programs: options, outputs, and exit statuses compared with the installed
//! programs.

mod bonnie;
mod dbench;
mod iozone;
mod mdtest;

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Stdio},
};

use crate::support::{Bench, Finished, finished, root};

/// Runs a command of fslab in the directory `data` of the bench.
fn in_data(bench: &Bench, arguments: &[&str]) -> Finished {
    fs::create_dir_all(bench.path("data")).unwrap();
    let mut command = bench.command(arguments);
    finished(command.current_dir(bench.path("data")).output().unwrap())
}

/// The same, with exit status 0 and no remaining file.
#[track_caller]
fn done(bench: &Bench, arguments: &[&str]) -> Finished {
    let ended = in_data(bench, arguments);
    assert_eq!(ended.status, Some(0), "{arguments:?} {ended:?}");
    assert_eq!(fs::read_dir(bench.path("data")).unwrap().count(), 0, "all files are removed");
    ended
}

/// Runs an installed program in the directory `data` of the bench.
fn installed(bench: &Bench, program: &str, arguments: &[&str]) -> Finished {
    fs::create_dir_all(bench.path("data")).unwrap();
    let mut command = Command::new(program);
    command.args(arguments).current_dir(bench.path("data")).stdin(Stdio::null());
    finished(command.output().unwrap())
}

/// Names of the options in a reference page.
fn documented(page: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("docs/reference").join(page)).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| `-"));
    let cells = rows.filter_map(|line| line.trim_start_matches("| ").split(" | ").next());
    let codes = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    codes.map(|code| code.split([' ', '=', '[']).next().unwrap().to_owned()).collect()
}

/// Options that a text names.
fn options_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| c.is_whitespace() || "[]|,".contains(c));
    let words = words.map(|word| word.split('=').next().unwrap());
    let is_option = |word: &&str| {
        word.starts_with('-') && word.len() > 1 && word.chars().any(char::is_alphanumeric)
    };
    words.filter(is_option).map(str::to_owned).collect()
}

#[test]
fn a_link_with_the_name_of_a_program_is_its_command() {
    let bench = Bench::new();
    for (name, first_line) in [
        ("bonnie++", "Run the phases of bonnie++"),
        ("iozone", "Run the tests of IOzone"),
        ("mdtest", "Run the phases of mdtest"),
    ] {
        let link = bench.path(name);
        symlink(env!("CARGO_BIN_EXE_fslab"), &link).unwrap();
        let help = installed(&bench, link.to_str().unwrap(), &["--help"]);
        assert!(help.stdout.starts_with(first_line), "{help:?}");
        let version = installed(&bench, link.to_str().unwrap(), &["--version"]);
        assert!(version.stdout.starts_with("fslab-"), "{version:?}");
        // Any other name is fslab itself.
        let other = bench.path(&format!("my-{name}"));
        symlink(env!("CARGO_BIN_EXE_fslab"), &other).unwrap();
        let version = installed(&bench, other.to_str().unwrap(), &["--version"]);
        assert!(version.stdout.starts_with("fslab "), "{version:?}");
    }
}

/// Checks that command lines are errors in fslab, with a hint, and in the installed program.
fn are_errors(program: &str, path: &str, lines: &[&str]) {
    assert!(lines.len() >= 20, "{}", lines.len());
    let bench = Bench::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let all: Vec<&str> = [program].iter().chain(&words).copied().collect();
        let ours = in_data(&bench, &all);
        assert_eq!((ours.status, ours.stdout.as_str()), (Some(1), ""), "{line}: {ours:?}");
        let hints = ["; ", ": use ", ", such as "];
        assert!(hints.iter().any(|hint| ours.stderr.contains(hint)), "{line}: {}", ours.stderr);
        if Path::new(path).exists() {
            let theirs = installed(&bench, path, &words);
            assert_ne!(theirs.status, Some(0), "{line}: {theirs:?}");
        }
    }
    assert_eq!(fs::read_dir(bench.path("data")).unwrap().count(), 0);
    bench.has_nothing_to_undo();
}
