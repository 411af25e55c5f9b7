//! Repository rules that can be checked automatically.

use std::fs;

use crate::support::{files, root};

mod circles;
mod scan;

/// Allowed dependencies of each crate within the workspace, as in ARCHITECTURE.md.
const ARROWS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("suites", &["model"]),
    ("sys", &[]),
    ("rig", &["model", "sys"]),
    ("trace", &["model", "sys"]),
    ("engine", &["model", "sys", "trace"]),
    ("store", &["model", "sys"]),
    ("analysis", &["model"]),
    ("report", &["model", "analysis"]),
    ("guest", &["model", "sys"]),
    ("mpi", &[]),
    (
        "fslab",
        &[
            "model", "suites", "sys", "rig", "engine", "store", "analysis", "report", "guest",
            "mpi", "trace",
        ],
    ),
];

/// Maximum number of lines of a file, except tests.
const LINES: usize = 500;
/// Maximum length of a line, in characters.
const COLUMNS: usize = 100;

fn sources() -> Vec<(String, String)> {
    let crates = root().join("crates");
    files(&crates)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            let name = path.strip_prefix(&crates).unwrap().display().to_string();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

fn is_test(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("tests.rs") || name.contains("conformance")
}

#[test]
fn crate_dependencies_match_the_architecture() {
    for (name, allowed) in ARROWS {
        let manifest =
            fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap();
        let dependencies = dependencies.split("\n[").next().unwrap();
        for (other, _) in ARROWS {
            let depends = dependencies.lines().any(|line| line.starts_with(&format!("{other}.")));
            assert!(!depends || allowed.contains(other), "{name} must not depend on {other}");
        }
    }
}

#[test]
fn unsafe_code_is_limited_to_three_crates() {
    for (name, text) in sources() {
        if name.ends_with("src/lib.rs") || name.ends_with("src/main.rs") {
            let walled = text.contains("#![forbid(unsafe_code)]");
            // In `mpi`, only the program may, and only in one module.
            let may = ["sys/", "engine/"].iter().any(|it| name.starts_with(it))
                || name == "mpi/src/main.rs";
            assert!(walled || may, "{name} must forbid unsafe code");
        }
        let calls_mpi = name.starts_with("mpi/src/") && text.contains("expect(unsafe_code");
        assert!(!calls_mpi || name == "mpi/src/library.rs", "{name} must not contain unsafe code");
    }
}

#[test]
fn pure_crates_share_the_list_of_banned_calls() {
    let list = fs::read_to_string(root().join("clippy-pure.toml")).unwrap();
    for name in ["model", "suites", "analysis", "report"] {
        let own = fs::read_to_string(root().join("crates").join(name).join("clippy.toml")).unwrap();
        assert_eq!(own, list, "{name}/clippy.toml links to clippy-pure.toml");
    }
}

#[test]
fn files_and_lines_are_short() {
    let mut over = Vec::new();
    for (name, text) in sources().into_iter().filter(|(name, _)| !is_test(name)) {
        let body = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = body.lines().count();
        if lines > LINES {
            over.push(format!("{name}: {lines} lines; split it"));
        }
        for (number, line) in text.lines().enumerate() {
            // Messages are wrapped when they are shown, and tables cannot be wrapped.
            let kept = line.contains('"') || line.contains("//! |") || line.contains("/// |");
            if line.chars().count() > COLUMNS && !kept {
                over.push(format!("{name}:{}: more than {COLUMNS} columns", number + 1));
            }
        }
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
}

#[test]
fn all_output_uses_one_module() {
    // Module that escapes hostile text, and module that writes data for another program.
    let doors = ["fslab/src/output.rs", "fslab/src/commands/loadfile.rs"];
    for (name, text) in sources().into_iter().filter(|(name, _)| name.starts_with("fslab/src")) {
        let writes = ["stdout().lock", "stderr().lock", "stdout().write", "stderr().write"];
        let writes = writes.iter().any(|call| text.contains(call));
        assert!(!writes || doors.contains(&name.as_str()), "{name} bypasses output.rs");
    }
}

#[test]
fn no_markers_of_unfinished_work_remain() {
    let words = [["to", "do!"].concat(), ["FIX", "ME"].concat(), ["#[ign", "ore]"].concat()];
    for (name, text) in sources() {
        for word in &words {
            assert!(!text.contains(word.as_str()), "{name} has {word}");
        }
    }
}

#[test]
fn every_module_has_a_doc_comment() {
    for (name, text) in sources() {
        let first = text.lines().find(|line| !line.is_empty()).unwrap_or_default();
        let tests = name.ends_with("tests.rs") || name.contains("/tests/");
        assert!(tests || first.starts_with("//!"), "{name} has no doc comment");
    }
}

#[test]
fn the_changelog_uses_the_known_headings() {
    let text = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let allowed = ["Added", "Changed", "Fixed", "Removed", "Measured"];
    for heading in text.lines().filter_map(|line| line.strip_prefix("### ")) {
        assert!(allowed.contains(&heading), "`{heading}` is not one of {allowed:?}");
    }
    assert!(text.contains("## Unreleased"));
}

#[test]
fn links_of_the_pages_exist() {
    let pages = files(root());
    for page in pages.iter().filter(|path| path.extension().is_some_and(|e| e == "md")) {
        let text = fs::read_to_string(page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let path = page.parent().unwrap().join(target);
            assert!(path.exists(), "{}: target of {link} does not exist", page.display());
        }
    }
}
