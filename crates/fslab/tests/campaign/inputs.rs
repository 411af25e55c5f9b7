//! Hostile inputs: files and plans that no correct program writes. Each must give a typed error or
//! a result within a memory limit that the kernel enforces.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use super::Section;
use crate::support::Bench;

/// Maximum private writable memory of a command in KiB (RLIMIT_DATA). Allocations beyond it fail,
/// and a signal ends the command.
const MEMORY: u64 = 256 << 10;

/// Time after which a command is considered to hang.
const HANGS: Duration = Duration::from_secs(120);

/// Command that reads an input, and a part of the expected error. `None` if the command must
/// succeed.
struct Case {
    class: &'static str,
    name: &'static str,
    arguments: Vec<String>,
    refused: Option<&'static str>,
}

/// Result of a command for an input.
struct Ended {
    status: Option<i32>,
    stderr: String,
    millis: u128,
    peak_kib: u64,
}

fn case(
    class: &'static str,
    name: &'static str,
    arguments: &[&str],
    refused: impl Into<Option<&'static str>>,
) -> Case {
    let arguments = arguments.iter().map(ToString::to_string).collect();
    Case { class, name, arguments, refused: refused.into() }
}

/// Child process that is killed on drop, so that it ends if a check fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Runs a command with the memory limit. The peak is the largest resident set size that polling
/// found.
fn run(bench: &Bench, arguments: &[String]) -> Ended {
    let errors = bench.path("stderr");
    let mut command = Command::new("/bin/sh");
    let limited = format!("ulimit -d {MEMORY}; exec \"$0\" \"$@\"");
    command.args(["-c", &limited, env!("CARGO_BIN_EXE_fslab")]).args(arguments);
    command.current_dir(bench.path(".")).env("FSLAB_STATE", bench.state());
    // A panic backtrace would take most of the time of a command.
    command.env("RUST_BACKTRACE", "0").stdin(Stdio::null()).stdout(Stdio::null());
    let started = Instant::now();
    let mut child = Killed(command.stderr(fs::File::create(&errors).unwrap()).spawn().unwrap());
    let mut peak_kib = 0;
    let status = loop {
        let status = fs::read_to_string(format!("/proc/{}/status", child.0.id()));
        let peak = status.unwrap_or_default().lines().find_map(|line| {
            line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        });
        peak_kib = peak.unwrap_or_default().max(peak_kib);
        if let Some(status) = child.0.try_wait().unwrap() {
            break status;
        }
        assert!(started.elapsed() < HANGS, "{arguments:?} does not end");
        std::thread::sleep(Duration::from_millis(1));
    };
    let stderr = String::from_utf8_lossy(&fs::read(&errors).unwrap()).into_owned();
    Ended { status: status.code(), stderr, millis: started.elapsed().as_millis(), peak_kib }
}

/// File types that are rejected: name of the file, and error.
const KINDS: [(&str, &str); 4] = [
    ("fifo", "a FIFO, not a regular file"),
    ("directory", "a directory, not a regular file"),
    ("socket", "a socket, not a regular file"),
    ("/dev/zero", "a device, not a regular file"),
];

/// Commands that read a file, by the class of the input.
const READERS: [(&str, &[&str]); 7] = [
    ("plan", &["show"]),
    ("catalog", &["list", "filesystems", "--catalog"]),
    ("loadfile", &["loadfile"]),
    ("import", &["import"]),
    ("audit", &["audit"]),
    ("statements", &["audit", "bonnie.csv", "--statements"]),
    ("kernel source", &["guest", "kernel", "build", "--source"]),
];

fn list(item: impl Fn(usize) -> String, count: usize) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(",")
}

/// Writes the inputs.
fn inputs(bench: &Bench) {
    let write = |name: &str, bytes: &[u8]| fs::write(bench.path(name), bytes).unwrap();
    let fifo = Command::new("mkfifo").arg(bench.path("fifo")).status().unwrap();
    assert!(fifo.success());
    fs::create_dir(bench.path("directory")).unwrap();
    // The socket file remains after the listener is closed.
    drop(std::os::unix::net::UnixListener::bind(bench.path("socket")).unwrap());
    fs::File::create(bench.path("huge.toml")).unwrap().set_len(1 << 40).unwrap();
    write("bonnie.csv", b"filesystem,value\na,1\n");
    plans(&write);
    tables(&write);
    // 1 GiB of line ends in about 1 MiB: a gzip file with 1,024 members.
    let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    member.write_all(&vec![b'\n'; 1 << 20]).unwrap();
    let member = member.finish().unwrap();
    let bomb = member.repeat(1024);
    write("bomb.gz", &bomb);
    write("cut.gz", &member[..member.len() / 2]);
    write(
        "loop.txt",
        &[&b"LOOP 4294967295\nREPEAT 4294967295\n"[..], &b"LOOP 9999\n"[..]].concat(),
    );
    write("names.txt", format!("Mkdir \"{}\" SUCCESS\n", "\\a".repeat(1 << 24)).as_bytes());
}

fn plans(write: &dyn Fn(&str, &[u8])) {
    let plan = |axes: &str| format!("[storage]\nimage_size = \"64MiB\"\n[axes]\n{axes}\n");
    let workload = |parameters: &str| {
        plan(&format!(
            "filesystem = [\"ext2\"]\nworkload = [{{ suite = \"iozone\", {parameters} }}]"
        ))
    };
    let sizes = |count: usize| list(|size| format!("{}", 4096 * size + 4096), count);
    write("nested.toml", format!("x = {}", "[".repeat(200_000)).as_bytes());
    write("tables.toml", format!("x = {}", "{a=".repeat(80_000)).as_bytes());
    write("keys.toml", format!("{}a = 1", "a.".repeat(120_000)).as_bytes());
    write("long.toml", format!("title = \"{}\"", "x".repeat(100 << 20)).as_bytes());
    let four = format!("file_size = [{}], block_size = [{}]", sizes(2000), sizes(2000));
    write("cells.toml", workload(&four).as_bytes());
    let axes = ["file_size", "block_size"];
    let five = list(|at| format!("{} = [{}]", axes[at], sizes(1 << 12)), 2);
    write("product.toml", workload(&five).as_bytes());
    let entries = list(|_| "{suite=\"iozone\"}".to_owned(), 14_000);
    let entries = plan(&format!("filesystem = [\"ext2\"]\nworkload = [{entries}]"));
    write("entries.toml", entries.as_bytes());
    let levels = list(|at| format!("{{name=\"{at}\",type=\"xfs\"}}"), 10_001);
    let levels = plan(&format!("filesystem = [{levels}]\nworkload = [{{ suite = \"iozone\" }}]"));
    write("levels.toml", levels.as_bytes());
    let tests = list(|_| "\"read\"".to_owned(), 30_000);
    write("tests.toml", workload(&format!("tests = [{tests}]")).as_bytes());
    write("number.toml", format!("repetitions = {}", "9".repeat(1 << 17)).as_bytes());
    write("nul.toml", b"title = \"a\0b\"\n");
    write("bytes.toml", b"title = \"\xff\xed\xa0\x80\"\n");
    write("cr.toml", b"title = \"x\"\rrepetitions = 1\r");
    let level = |keys: &str| {
        plan(&format!(
            "filesystem = [{{ name = \"a\", type = \"ext2\", {keys} }}]\n\
             workload = [{{ suite = \"iozone\", file_size = \"1MiB\", tests = [\"write\"] }}]"
        ))
    };
    write("dust.toml", level("layers = [{ dust = \"0-18446744073709551615\" }]").as_bytes());
    write(
        "setup.toml",
        level("setup = [{ run_unmounted = [\"true\", \"a\\nb\", \"{device}\"] }]").as_bytes(),
    );
    let small = workload("file_size = \"1MiB\", tests = [\"write\"]");
    let dots = small.replace("64MiB\"\n", "64MiB\"\nimage_directory = \"/var/tmp/../../etc/..\"\n");
    write("dots.toml", dots.as_bytes());
}

fn tables(write: &dyn Fn(&str, &[u8])) {
    write("commas.csv", &vec![b','; 15 << 20]);
    write("commas-196.csv", &[&b"1.96,1.96,x"[..], &vec![b','; 15 << 20]].concat());
    write("line.csv", &vec![b'x'; 15 << 20]);
    write("over.csv", &vec![b'\n'; 40 << 20]);
    write("lines.csv", &vec![b'\n'; 15 << 20]);
    write("cr.csv", b"filesystem,value\ra,1\rb,2\r");
    write("bom.csv", b"\xef\xbb\xbffilesystem,value\na,1.5\nb,2.5\n");
    write("lone.csv", b"filesystem,value\n\xed\xa0\x80,1\n");
    write("nul.csv", b"filesystem,value\n\0,1\n");
    write("quote.csv", &[&b"filesystem,value\n\""[..], &vec![b'a'; 15 << 20]].concat());
    let rows: String = (0..20_000).map(|at| format!("{at},{at}\n")).collect();
    write("rows.csv", format!("filesystem,value\n{rows}").as_bytes());
    write("number.csv", format!("filesystem,value\na,{}\n", "9".repeat(4000)).as_bytes());
}

/// Plans: description, file, and part of the error message.
const PLANS: [(&str, &str, &str); 14] = [
    ("200,000 nested lists", "nested.toml", "cannot recurse further"),
    ("80,000 nested tables", "tables.toml", "cannot recurse further"),
    ("a key of 120,000 parts", "keys.toml", ""),
    ("a title of 100 MiB", "long.toml", "larger than 256 KiB"),
    ("4 million cells", "cells.toml", "at least 4000000 cells; the maximum is 10000"),
    ("17 million cells", "product.toml", "at least 16777216 cells"),
    ("14,000 workloads", "entries.toml", "at least 14000 cells"),
    ("10,001 filesystems", "levels.toml", "at least 10001 cells"),
    ("30,000 equal tests", "tests.toml", "duplicate value"),
    ("a number of 131,072 digits", "number.toml", ""),
    ("NUL", "nul.toml", ""),
    ("bytes that are not UTF-8", "bytes.toml", "it is not UTF-8"),
    ("bare carriage returns", "cr.toml", ""),
    ("every block is dust", "dust.toml", ""),
];

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (class, command) in READERS {
        for (name, refused) in KINDS {
            // A name without a slash or an extension could be that of a built-in plan or a version.
            let path = if name.starts_with('/') { name.to_owned() } else { format!("./{name}") };
            let arguments = [command, &[&*path]].concat();
            let refused = match (class, name) {
                ("kernel source", _) => "",
                _ => refused,
            };
            cases.push(case(class, name, &arguments, refused));
        }
        let refused = match class {
            "kernel source" => "",
            "loadfile" => "longer than 96MiB",
            _ => "is larger than",
        };
        cases.push(case(
            class,
            "sparse file of 1 TiB",
            &[command, &["huge.toml"]].concat(),
            refused,
        ));
    }
    for (name, file, refused) in PLANS {
        cases.push(case("plan", name, &["show", file], refused));
    }
    cases.push(case("plan", "path with ..", &["show", "dots.toml"], None));
    cases.push(case("plan", "setup with a line break", &["show", "setup.toml"], None));
    for (name, file, refused) in [
        ("gzip bomb of 1 GiB", "bomb.gz", "longer than 96MiB"),
        ("gzip file that is cut", "cut.gz", ""),
        ("loops of loops", "loop.txt", ""),
        ("a name of 32 MiB", "names.txt", ""),
    ] {
        cases.push(case("loadfile", name, &["loadfile", file], refused));
    }
    for (name, file) in [
        ("15 million columns", "commas.csv"),
        ("15 million columns of a known version", "commas-196.csv"),
        ("a line of 15 MiB", "line.csv"),
        ("15 million empty lines", "lines.csv"),
        ("40 MiB", "over.csv"),
        ("bare carriage returns", "cr.csv"),
        ("lone surrogate", "lone.csv"),
        ("NUL", "nul.csv"),
        ("quote without an end", "quote.csv"),
    ] {
        cases.push(case("import", name, &["import", file], ""));
        cases.push(case("audit", name, &["audit", file], ""));
    }
    cases.push(case("audit", "byte order mark", &["audit", "bom.csv"], None));
    cases.push(case("audit", "20,000 rows", &["audit", "rows.csv"], None));
    cases.push(case("audit", "a number of 4,000 digits", &["audit", "number.csv"], None));
    for (name, file) in [
        ("200,000 nested lists", "nested.toml"),
        ("80,000 nested tables", "tables.toml"),
        ("a key of 120,000 parts", "keys.toml"),
        ("a title of 100 MiB", "long.toml"),
        ("NUL", "nul.toml"),
    ] {
        let statements = ["audit", "bonnie.csv", "--statements", file];
        cases.push(case("statements", name, &statements, ""));
        let filesystems = ["list", "filesystems", "--catalog", file];
        cases.push(case("catalog", name, &filesystems, ""));
    }
    cases
}

/// Difference between the expected and the actual result of a command.
fn wrong(case: &Case, ended: &Ended) -> Option<String> {
    let first = ended.stderr.lines().next().unwrap_or_default();
    let first: String = first.chars().take(200).collect();
    match (ended.status, case.refused) {
        (Some(0), None) => None,
        (Some(2), Some(part)) if ended.stderr.contains(part) && !ended.stderr.is_empty() => None,
        (status, _) => Some(format!("status {status:?}: {first}")),
    }
}

#[test]
fn hostile_input_yields_an_error_or_a_bounded_result() {
    let bench = Bench::new();
    inputs(&bench);
    let mut section = Section::new(
        4,
        "inputs",
        "Hostile inputs",
        "\
Each input must lead to an error with exit status 2 (*refused*) or to a result (*accepted*), with at
most 256 MiB of private memory.",
        &["input", "case", "time, ms", "peak, MiB", "result"],
    );
    let mut failures = Vec::new();
    let cases = cases();
    for case in &cases {
        let ended = run(&bench, &case.arguments);
        let result = match wrong(case, &ended) {
            None if case.refused.is_some() => "refused".to_owned(),
            None => "accepted".to_owned(),
            Some(why) => {
                failures.push(format!("{} {}: {why}", case.class, case.name));
                format!("FAILED: {why}")
            }
        };
        let (millis, peak) = (ended.millis.to_string(), (ended.peak_kib >> 10).to_string());
        section.row([case.class, case.name, &millis, &peak, &result]);
    }
    section.note(format!("Total: {} inputs, {} failures.", cases.len(), failures.len()));
    section.write();
    assert!(failures.is_empty(), "{}\n{}", failures.join("\n"), section.text());
    assert!(Path::new("/etc/passwd").exists() && bench.left_behind().is_empty());
}
