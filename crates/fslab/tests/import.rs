//! Import and export of bonnie++ records.

use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
};

use crate::support::Bench;

/// Records of two configurations of the study of 2012, with a phase that was too short for a
/// result.
const RECORDS: &str = "\
1.96,1.96,ext4,1,1337657098,8G,,582,98,59268,6,30754,3,3515,99,104817,4,306.1,1,512,,,,,35092,55,\
520637,91,1054,1,35182,54,791080,100,1664,2,15867us,1456ms,340ms,8997us,50112us,323ms,1232ms,541us,\
14112ms,1189ms,41us,11701ms
1.96,1.96,btrfs,1,1337661202,8G,,468,98,60274,4,29605,4,3629,100,89250,8,301.5,7,512,,,,,26078,60,\
+++++,+++,26027,92,25617,58,754598,99,21935,84,55633us,345ms,196ms,3767us,229ms,1119ms,452us,423us,\
1029us,426us,16us,2314us
";

fn bench() -> Bench {
    let bench = Bench::new();
    fs::write(bench.path("old.csv"), RECORDS).unwrap();
    bench
}

#[test]
fn imported_records_are_distinguished_from_runs() {
    let bench = bench();
    let output = bench.ends(0, &["import", "old.csv"]);
    assert!(output.stderr.contains("fslab report old.fslab"), "{}", output.stderr);
    let report = ["report", "old.fslab"];
    let text = bench.ends(0, &["report", "old.fslab", "--detail"]).stdout;
    for words in
        ["Imported, not measured by fslab: bonnie++ 1.96", "57.9", "- not recorded", "plus signs"]
    {
        assert!(text.contains(words), "{words} is missing from\n{text}");
    }
    assert!(!text.contains("Findings") && !text.contains('▲'), "nothing is claimed:\n{text}");
    let format = |name| bench.ends(0, &[&report[..], &["--format", name]].concat()).stdout;
    let json: serde_json::Value = serde_json::from_str(&format("json")).unwrap();
    assert_eq!(json["measured_by_fslab"], false);
    assert!(format("csv").lines().skip(1).all(|line| line.contains(",imported,")));
    assert!(format("md").contains("Imported from bonnie++ 1.96, not measured by fslab"));
    assert_eq!(format("bonnie-1.96"), RECORDS);
    bench.ends(0, &["report", "old.fslab", "--html", "old.html"]);
    let html = fs::read_to_string(bench.path("old.html")).unwrap();
    assert!(html.contains("Imported from bonnie++ 1.96, not measured by fslab"));
}

/// A file size limit (SIGXFSZ, setrlimit(2)) kills the program while it stores the records.
#[test]
fn a_killed_import_leaves_no_partial_run() {
    let bench = bench();
    fs::write(bench.path("old.csv"), RECORDS.repeat(30)).unwrap();
    let import = ["import", "old.csv", "-o", "a.fslab"];
    let program = bench.command(&[]).get_program().to_owned();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 400 && exec \"$@\"", "sh"]).arg(program).args(import);
    let killed = command.current_dir(bench.path(".")).output().unwrap();
    assert_eq!(killed.status.code(), None, "{killed:?}");
    assert!(!bench.path("a.fslab").exists());
    bench.ends(0, &import);
}

#[test]
fn an_import_is_neither_resumed_nor_overwritten() {
    let bench = bench();
    bench.ends(0, &["import", "old.csv", "-o", "a.fslab"]);
    let output = bench.ends(2, &["run", "--resume", "a.fslab"]);
    assert!(output.stderr.contains("was imported"), "{}", output.stderr);
    let output = bench.ends(2, &["import", "old.csv", "-o", "a.fslab"]);
    assert!(
        output.stderr.contains("already exists; use another file with -o"),
        "{}",
        output.stderr
    );
    // Imported results give no findings, but differences between two imports are shown.
    bench.ends(0, &["import", "old.csv", "-o", "b.fslab"]);
    let output = bench.ends(0, &["compare", "a.fslab", "b.fslab"]).stdout;
    assert!(!output.contains("regressed") && !output.contains("improved"), "{output}");
    bench.ends(2, &["compare", "a.fslab", "a.fslab"]);
}

#[test]
fn invalid_records_are_rejected_with_the_supported_formats() {
    let bench = bench();
    fs::write(bench.path("text"), "hello\n").unwrap();
    let output = bench.ends(2, &["import", "text"]);
    for words in ["line 1", "`hello`", "1.98", "1.03"] {
        assert!(output.stderr.contains(words), "{words} is missing from\n{}", output.stderr);
    }
    fs::write(bench.path("bad.csv"), RECORDS.replace("26078", "many")).unwrap();
    let output = bench.ends(2, &["import", "bad.csv"]);
    assert!(output.stderr.contains("line 2, field 25 (seq-create)"), "{}", output.stderr);
    bench.ends(2, &["import", "none.csv"]);
    bench.ends(2, &["import"]);
    assert!(!bench.path("bad.fslab").exists() && !bench.path("none.fslab").exists());
}

#[test]
fn records_can_be_named_and_read_from_stdin() {
    let bench = bench();
    let output = bench.ends(2, &["import", "old.csv", "--names", "one"]);
    assert!(output.stderr.contains("there are 2 records, but 1 names"), "{}", output.stderr);
    let mut command = bench.command(&["import", "-", "--names", "tuned,tuned", "-o", "in.fslab"]);
    command.stdin(Stdio::from(fs::File::open(bench.path("old.csv")).unwrap()));
    assert!(command.status().unwrap().success());
    let text = bench.ends(0, &["report", "in.fslab", "--detail"]).stdout;
    assert!(text.contains("tuned") && text.contains("n = 2 repetitions"), "{text}");
}

#[test]
fn only_bonnie_runs_are_exported_as_records() {
    let bench = Bench::new();
    fs::create_dir(bench.path("data")).unwrap();
    let plan = bench.plan(
        "title = \"other\"\nrepetitions = 1\n[storage]\ndirectory = \"data\"\n[axes]\n\
         workload = [{ suite = \"iozone\", file_size = \"64KiB\", block_size = \"64KiB\", \
         tests = [\"write\"] }]\n",
    );
    bench.ends(0, &["run", &plan, "-q", "-o", "other.fslab"]);
    let output = bench.ends(2, &["report", "other.fslab", "--format", "bonnie"]);
    assert!(output.stderr.contains("suite = \"bonnie\""), "{}", output.stderr);
    let output = bench.ends(2, &["report", "tasks-2006@published", "--format", "bonnie"]);
    assert!(output.stderr.contains("--format csv"), "{}", output.stderr);
    for (format, fields) in [("bonnie", 50), ("bonnie-1.96", 48)] {
        let set = ["report", "bonnie-2012@published", "--format", format];
        let records = bench.ends(0, &set).stdout;
        assert_eq!(records.lines().count(), 11);
        assert!(records.lines().all(|record| record.split(',').count() == fields), "{records}");
    }
}

#[test]
fn a_bonnie_run_is_exported_with_one_record_per_repetition() {
    let bench = Bench::new();
    fs::create_dir(bench.path("data")).unwrap();
    let plan = bench.plan(
        "title = \"small\"\nrepetitions = 2\n[storage]\ndirectory = \"data\"\n[axes]\n\
         workload = [{ suite = \"bonnie\", file_size = \"1MiB\", char_io_size = \"8KiB\", seeks = 50, \
         files = 1500 }]\n",
    );
    bench.ends(0, &["run", &plan, "-q", "-o", "run.fslab"]);
    let records = bench.ends(0, &["report", "run.fslab", "--format", "bonnie"]).stdout;
    assert_eq!(records.lines().count(), 2);
    for record in records.lines() {
        let fields: Vec<&str> = record.split(',').collect();
        assert_eq!((fields.len(), fields[0]), (50, "1.98"));
        assert!(fields[1].starts_with("fslab-") && fields[2].starts_with("directory"), "{record}");
        assert_eq!(fields[5..9], ["1M", "", "50", "5"]);
        assert_eq!(fields[21], "2", "in units of 1024, rounded up");
        let (rates, times) = ([&fields[9..21], &fields[26..38]].concat(), &fields[38..]);
        assert!(rates.iter().all(|field| !field.is_empty()), "{record}");
        assert!(times.iter().all(|field| field.ends_with('s')), "{record}");
    }
    fs::write(bench.path("again.csv"), records).unwrap();
    bench.ends(0, &["import", "again.csv"]);
    let text = bench.ends(0, &["report", "again.fslab", "--detail"]).stdout;
    assert!(
        text.contains("fslab 0.2.0, bonnie++ format") && text.contains("n = 2 repetitions"),
        "{text}"
    );
}

/// Tables made from exported records by programs of the bonnie++ package contain the same numbers.
#[test]
fn programs_of_bonnie_accept_exported_records() {
    let bench = bench();
    bench.ends(0, &["import", "old.csv"]);
    let records = bench.ends(0, &["report", "old.fslab", "--format", "bonnie"]).stdout;
    assert!(records.lines().all(|line| line.split(',').count() == 50), "{records}");
    for program in ["bon_csv2txt", "bon_csv2html"] {
        let Some(output) = fed(program, &records) else {
            eprintln!("skipped: {program} is not installed (package bonnie++)");
            continue;
        };
        for number in ["ext4", "btrfs", "306.1", "35092", "754598", "1456ms", "14112ms", "+++++"] {
            assert!(output.contains(number), "{program}: {number} is missing from\n{output}");
        }
    }
}

/// Output of a program for this input; `None` if the program is not installed.
fn fed(program: &str, text: &str) -> Option<String> {
    let mut command = Command::new(program);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
