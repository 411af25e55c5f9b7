//! `fslab loadfile`: summary of the built-in loadfile, and a loadfile that is written and read
//! again.

use crate::support::Bench;

#[test]
fn the_builtin_loadfile_is_summarized_and_written() {
    let bench = Bench::new();
    let text = bench.ends(0, &["loadfile", "--iterations", "2"]).stdout;
    assert!(text.contains("fslab-office v1 seed 1, 2 iterations"), "{text}");
    bench.ends(0, &["loadfile", "--iterations", "2", "-o", "office.txt"]);
    let read = bench.ends(0, &["loadfile", "office.txt"]).stdout;
    let fact = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{name} in {text}"))
    };
    assert_eq!(fact(&text, "loadfile.mix"), fact(&read, "loadfile.mix"));
    assert!(fact(&read, "loadfile.label").contains("user's loadfile"), "{read}");
    let before = std::fs::read(bench.path("office.txt")).unwrap();
    let again = bench.ends(2, &["loadfile", "-o", "office.txt"]);
    assert!(again.stderr.contains("office.txt already exists"), "{}", again.stderr);
    assert!(std::fs::read(bench.path("office.txt")).unwrap() == before);
}

#[test]
fn a_killed_writer_leaves_no_partial_loadfile() {
    let bench = Bench::new();
    let mut command = bench.command(&["loadfile", "--iterations", "400", "-o", "office.txt"]);
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    let names = || std::fs::read_dir(bench.path(".")).unwrap().map(|it| it.unwrap().file_name());
    // The temporary file exists when the program starts to write, which takes seconds.
    while !names().any(|name| name.to_string_lossy().contains("office.txt")) {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it was killed");
    }
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "it ended before it was killed");
    assert!(!bench.path("office.txt").exists());
    bench.ends(0, &["loadfile", "--iterations", "2", "-o", "office.txt"]);
}

#[test]
fn a_hostile_loadfile_is_rejected_with_its_line() {
    let bench = Bench::new();
    let text = "Mkdir \"\\clients\" NT_STATUS_OK\n\
                Unlink \"\\clients\\..\\..\\etc\\passwd\" 6 NT_STATUS_OK\n";
    std::fs::write(bench.path("bad.txt"), text).unwrap();
    let output = bench.ends(2, &["loadfile", "bad.txt"]);
    assert!(output.stderr.contains("line 2") && output.stderr.contains(".."), "{}", output.stderr);
}
