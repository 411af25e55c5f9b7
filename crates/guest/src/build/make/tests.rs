use std::fs;

use super::*;
use crate::kernel::testing::NEVER;

/// Runs a shell script like make.
fn run(script: &str, interrupt: &AtomicBool) -> (Result<(), GuestError>, Vec<u64>, String) {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log");
    let mut counts = Vec::new();
    let make = Make { tree: place.path(), log: &log, interrupt };
    let outcome = make.command("sh", &["-c", script], &mut |count| counts.push(count));
    (outcome, counts, fs::read_to_string(log).unwrap())
}

#[test]
fn output_is_logged_and_compiled_files_are_counted() {
    let script = "echo '  CC      init/main.o'; echo '  LD      x'; echo '  AS      y.o' >&2; pwd";
    let (outcome, counts, log) = run(script, &NEVER);
    outcome.unwrap();
    assert_eq!(counts.last(), Some(&2));
    assert!(log.starts_with("$ sh -c echo"), "{log}");
    assert!(log.contains("  LD      x\n") && log.contains("  AS      y.o\n"), "{log}");
}

#[test]
fn a_failure_reports_the_error_lines() {
    let script = "echo '  CC a.o'; echo 'a.c:1: error: no such thing'; echo '  CC b.o'; exit 2";
    let error = run(script, &NEVER).0.unwrap_err();
    let GuestError::Build { status, last, .. } = &error else { panic!("{error}") };
    assert_eq!((status.as_str(), last.as_str()), ("exit status: 2", "a.c:1: error: no such thing"));
    assert!(error.to_string().contains("/log"), "{error}");
}

#[test]
fn the_build_environment_is_fixed() {
    let (outcome, _, log) = run("env", &NEVER);
    outcome.unwrap();
    let names: Vec<&str> = log.lines().skip(1).filter_map(|line| line.split('=').next()).collect();
    let known = |name: &&str| {
        sys::program::environment().iter().any(|(ours, _)| ours == name)
            || FIXED.iter().any(|(fixed, _)| fixed == name)
            || ["PWD", "OLDPWD", "SHLVL", "_"].contains(name)
    };
    assert!(names.iter().all(known), "{names:?}");
    assert!(names.contains(&"KBUILD_BUILD_TIMESTAMP"));
}

#[test]
fn an_interrupt_ends_all_processes() {
    let stop = AtomicBool::new(false);
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log");
    // The background process holds the pipe, so reading ends when both have ended.
    let shell = ["-c", "echo '  CC x.o'; sleep 100000 & sleep 100000"];
    let make = Make { tree: place.path(), log: &log, interrupt: &stop };
    let outcome = make.command("sh", &shell, &mut |count| stop.store(count > 0, Relaxed));
    assert!(matches!(outcome, Err(GuestError::Interrupted)), "{outcome:?}");
}

#[test]
fn error_lines_are_selected() {
    let before = "$ make defconfig\nold error: not this\n$ make linux\n";
    assert_eq!(error_lines(&format!("{before}a\n\nb\n")), "a\n  b");
    let many: String = (0..9).map(|n| format!("x.c:{n}: error: y\x1b\n")).collect();
    let lines = error_lines(&format!("{before}  CC x.o\n{many}"));
    assert_eq!(lines.lines().count(), LINES_MAX);
    assert!(lines.starts_with("x.c:0: error: y?\n  x.c:1"), "{lines:?}");
    assert_eq!(error_lines(""), "");
}

#[test]
fn missing_programs_are_reported_with_their_packages() {
    let place = tempfile::tempdir().unwrap();
    for (name, _) in TOOLS {
        fs::write(place.path().join(name), "").unwrap();
    }
    check_tools(place.path().as_os_str(), &[]).unwrap();
    let error = check_tools(place.path().as_os_str(), &[PATCH]).unwrap_err().to_string();
    assert!(error.contains("not on PATH: patch; install them (apt-get install patch;"), "{error}");
    for name in ["flex", "ld", "strip"] {
        fs::remove_file(place.path().join(name)).unwrap();
    }
    let error = check_tools(place.path().as_os_str(), &[]).unwrap_err().to_string();
    assert_eq!(
        error,
        "programs required to build a kernel are not on PATH: flex, ld, strip; install them \
         (apt-get install flex binutils; package names of other distributions are similar)"
    );
}
