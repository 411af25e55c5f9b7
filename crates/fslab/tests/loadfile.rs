//! `fslab loadfile`: our own load as facts, and as a file that is read back as the same.

use crate::support::Bench;

#[test]
fn our_own_load_is_told_and_written() {
    let bench = Bench::new();
    let told = bench.ends(0, &["loadfile", "--iterations", "2"]).stdout;
    assert!(told.contains("fslab-office v1 seed 1, 2 iterations"), "{told}");
    bench.ends(0, &["loadfile", "--iterations", "2", "-o", "office.txt"]);
    let read = bench.ends(0, &["loadfile", "office.txt"]).stdout;
    let fact = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{name} in {text}"))
    };
    assert_eq!(fact(&told, "load.mix"), fact(&read, "load.mix"));
    assert!(fact(&read, "load.label").contains("user's load file"), "{read}");
    let again = bench.ends(2, &["loadfile", "-o", "office.txt"]);
    assert!(again.stderr.contains("office.txt"), "what is there is left alone: {}", again.stderr);
}

#[test]
fn a_writer_that_is_killed_leaves_no_part_of_a_load_under_its_name() {
    let bench = Bench::new();
    let mut command = bench.command(&["loadfile", "--iterations", "400", "-o", "office.txt"]);
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    let names = || std::fs::read_dir(bench.path(".")).unwrap().map(|it| it.unwrap().file_name());
    // It has begun when it has made a file, and then takes seconds.
    while !names().any(|name| name.to_string_lossy().contains("office.txt")) {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it was killed");
    }
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "it ended before it was killed");
    assert!(!bench.path("office.txt").exists());
    bench.ends(0, &["loadfile", "--iterations", "2", "-o", "office.txt"]);
}

#[test]
fn a_hostile_load_file_is_refused_with_its_line() {
    let bench = Bench::new();
    let text = "Mkdir \"\\clients\" NT_STATUS_OK\n\
                Unlink \"\\clients\\..\\..\\etc\\passwd\" 6 NT_STATUS_OK\n";
    std::fs::write(bench.path("bad.txt"), text).unwrap();
    let said = bench.ends(2, &["loadfile", "bad.txt"]);
    assert!(said.stderr.contains("line 2") && said.stderr.contains(".."), "{}", said.stderr);
}
