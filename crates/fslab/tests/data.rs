//! Files in data formats, read by other programs.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::{
    made,
    support::{Bench, root},
};

/// Records of two configurations of the study of 2012, twice each.
const RECORDS: &str = "\
1.96,1.96,ext4,1,1337657098,8G,,582,98,59268,6,30754,3,3515,99,104817,4,306.1,1,512,,,,,35092,55,\
520637,91,1054,1,35182,54,791080,100,1664,2,15867us,1456ms,340ms,8997us,50112us,323ms,1232ms,541us,\
14112ms,1189ms,41us,11701ms
1.96,1.96,btrfs,1,1337661202,8G,,468,98,60274,4,29605,4,3629,100,89250,8,301.5,7,512,,,,,26078,60,\
+++++,+++,26027,92,25617,58,754598,99,21935,84,55633us,345ms,196ms,3767us,229ms,1119ms,452us,423us,\
1029us,426us,16us,2314us
";

/// Run file that requires neither root nor a measurement.
fn bench() -> Bench {
    let bench = Bench::new();
    fs::write(bench.path("old.csv"), RECORDS).unwrap();
    bench.ends(0, &["import", "old.csv", "-o", "run.fslab"]);
    bench
}

fn names(bench: &Bench) -> Vec<String> {
    let entries = fs::read_dir(bench.path(".")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn one_call_writes_several_files_with_formats_by_extension() {
    let bench = bench();
    let report = ["report", "run.fslab"];
    let output = bench.ends(0, &[&report[..], &["-o", "a.xlsx", "--html", "a.html"]].concat());
    assert_eq!(output.stdout, "");
    bench.ends(0, &[&report[..], &["-o", "a.parquet"]].concat());
    bench.ends(0, &[&report[..], &["-o", "b.html"]].concat());
    bench.ends(0, &[&report[..], &["-o", "a.csv"]].concat());
    let begins = |name: &str, with: &[u8]| {
        let bytes = fs::read(bench.path(name)).unwrap();
        assert!(bytes.starts_with(with), "{name}: {:?}", &bytes[..8]);
    };
    begins("a.xlsx", b"PK\x03\x04");
    begins("a.parquet", b"PAR1");
    begins("a.html", b"<!");
    assert_eq!(fs::read(bench.path("a.html")).unwrap(), fs::read(bench.path("b.html")).unwrap());
    let csv = bench.ends(0, &[&report[..], &["--format", "csv"]].concat()).stdout;
    assert_eq!(fs::read_to_string(bench.path("a.csv")).unwrap(), csv);
    // A binary format can be written to a pipe.
    let piped = bench.command(&[&report[..], &["--format", "parquet"]].concat()).output().unwrap();
    assert_eq!(piped.stdout, fs::read(bench.path("a.parquet")).unwrap());
    let kept = ["a.csv", "a.html", "a.parquet", "a.xlsx", "b.html"];
    assert_eq!(names(&bench)[..5], kept, "and no other file");
}

#[test]
fn charts_can_be_combined_with_another_output() {
    let bench = Bench::new();
    // Records with one metric give few charts.
    let mut fields = vec![""; 48];
    let known = RECORDS.split(',').take(10).enumerate();
    known.for_each(|(index, field)| fields[index] = field);
    fs::write(bench.path("old.csv"), format!("{}\n", fields.join(","))).unwrap();
    bench.ends(0, &["import", "old.csv", "-o", "run.fslab"]);
    bench.ends(0, &["report", "run.fslab", "--charts", "charts", "-o", "run.md"]);
    assert!(bench.path("run.md").exists());
    let list = fs::read_to_string(bench.path("charts/charts.md")).unwrap();
    assert!(list.contains(".svg") && list.contains(".png"), "{list}");
    let output = bench.ends(2, &["report", "run.fslab", "--charts", "."]);
    assert!(output.stderr.contains("files that are not charts of fslab"), "{}", output.stderr);
}

#[test]
fn a_report_is_never_written_over_its_run() {
    let bench = bench();
    let before = fs::read(bench.path("run.fslab")).unwrap();
    std::os::unix::fs::symlink("run.fslab", bench.path("link.csv")).unwrap();
    for output in [
        &["-o", "run.fslab", "--format", "csv"][..],
        &["-o", "link.csv"],
        &["--html", "./run.fslab"],
        &["-o", "link.csv", "--html", "a.html"],
    ] {
        let output = bench.ends(2, &[&["report", "run.fslab"], output].concat());
        assert!(output.stderr.contains("is the run file itself"), "{}", output.stderr);
    }
    let output = bench.ends(2, &["report", "run.fslab", "-o", "a.html", "--html", "a.html"]);
    assert!(output.stderr.contains("written twice"), "{}", output.stderr);
    let output = bench.ends(2, &["report", "run.fslab", "-o", "a.txt"]);
    assert!(output.stderr.contains("csv, json, md, xlsx, parquet"), "{}", output.stderr);
    let output = bench.ends(2, &["report", "run.fslab", "--html", "missing/a.html"]);
    assert!(output.stderr.contains("the directory missing of the report"), "{}", output.stderr);
    assert!(!bench.path("a.html").exists() && !bench.path("a.txt").exists());
    assert_eq!(fs::read(bench.path("run.fslab")).unwrap(), before);
}

#[test]
fn a_failed_write_keeps_the_existing_file() {
    let bench = bench();
    fs::create_dir(bench.path("a.csv")).unwrap();
    let output = bench.ends(3, &["report", "run.fslab", "-o", "a.csv"]);
    assert!(output.stderr.contains("cannot write the report a.csv"), "{}", output.stderr);
    bench.ends(2, &["report", "run.fslab", "-o", "none/a.csv"]);
    bench.ends(0, &["report", "run.fslab", "-o", "/dev/null", "--format", "xlsx"]);
    let kept: Vec<String> = names(&bench).into_iter().filter(|name| name != "state").collect();
    assert_eq!(kept, ["a.csv", "old.csv", "run.fslab"], "and no other file");
}

#[test]
fn published_results_are_written_to_files() {
    let bench = Bench::new();
    let set = ["report", "bonnie-2012@published"];
    bench.ends(0, &[&set[..], &["-o", "a.csv", "--html", "a.html"]].concat());
    let csv = bench.ends(0, &[&set[..], &["--format", "csv"]].concat()).stdout;
    assert_eq!(fs::read_to_string(bench.path("a.csv")).unwrap(), csv);
    let output = bench.ends(2, &[&set[..], &["-o", "a.xlsx"]].concat());
    assert!(output.stderr.contains("--format csv"), "{}", output.stderr);
    bench.ends(0, &["report", "tasks-2006@published", "--charts", "charts"]);
    let list = fs::read_to_string(bench.path("charts/charts.md")).unwrap();
    assert!(list.contains("# Charts of tasks-2006@published"), "{list}");
    assert_eq!(list.matches(".svg](").count(), 2, "{list}");
    for name in list.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(fs::metadata(bench.path("charts").join(name)).unwrap().len() > 1000, "{name}");
    }
}

/// Code blocks of a guide in one language.
fn blocks(guide: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let found = guide.split(&fence).skip(1);
    found.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// True if a program succeeds. Otherwise the missing requirement is printed once.
fn can(program: &Path, arguments: &[&str], what: &str) -> bool {
    let mut asked = Command::new(program);
    asked.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let can = asked.status().is_ok_and(|status| status.success());
    if !can {
        eprintln!("skipped: {what}: {} {arguments:?}", program.display());
    }
    can
}

/// Functions that print rows in the languages of the guide: one row per line, fields separated by
/// `|`, exact integers.
const PRINT_PYTHON: &str = "
def print(rows):
    import sys
    rows = rows.fetchall() if hasattr(rows, 'fetchall') else rows.reset_index().values.tolist()
    for row in rows:
        sys.stdout.write('|'.join(map(str, row)) + '\\n')
";
const PRINT_R: &str = "print <- function(rows) write.table(rows, sep = '|', quote = FALSE, \
                       row.names = FALSE, col.names = FALSE)\n";

/// Medians of the report, with filesystem, workload, phase, and metric.
fn medians(bench: &Bench) -> Vec<([String; 4], f64)> {
    let json = bench.ends(0, &["report", "run.fslab", "--format", "json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let list = |value: &serde_json::Value| value.as_array().unwrap().clone();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let mut medians = Vec::new();
    for workload in list(&json["workloads"]) {
        for test in list(&workload["tests"]) {
            for result in list(&test["results"]) {
                for (metric, summary) in result["metrics"].as_object().unwrap() {
                    let (filesystem, label) = (&result["filesystem"], &workload["label"]);
                    let names =
                        [text(filesystem), text(label), text(&test["name"]), metric.clone()];
                    medians.push((names, summary["median"].as_f64().unwrap()));
                }
            }
        }
    }
    medians
}

/// Checks that the output of a program contains each median in a separate row.
fn has(printed: &str, medians: &[([String; 4], f64)], code: &str) {
    let rows: Vec<Vec<&str>> = printed.lines().map(|line| line.split('|').collect()).collect();
    for ([filesystem, workload, phase, metric], median) in medians {
        let of = |row: &&Vec<&str>| {
            row.len() == 8
                && [row[0], row[1], row[4], row[5]] == [filesystem, workload, phase, metric]
        };
        let found: Vec<_> = rows.iter().filter(of).collect();
        assert_eq!(found.len(), 1, "{filesystem} {workload} {phase} {metric}:\n{code}\n{printed}");
        let value: f64 = found[0][7].trim().parse().unwrap();
        let near = (value - median).abs() <= 1e-9 * median.abs();
        assert!(near, "{filesystem} {workload} {phase} {metric}: {value}, {median} in the report");
    }
}

/// Checks that the code of the guide reads run files and reproduces the medians of the report.
/// `FSLAB_PYTHON` selects a Python other than `python3`, such as a virtual environment with duckdb.
#[test]
fn the_code_of_the_guide_reproduces_the_medians_of_the_report() {
    let bench = Bench::new();
    let filesystems = ["ext4", "btrfs", "skipped"].map(String::from);
    let record = made::grown(&made::measured(&bench), &filesystems, 4);
    made::keep(&record, &bench.path("run.fslab"));
    for file in ["run.csv", "run.parquet"] {
        bench.ends(0, &["report", "run.fslab", "-o", file]);
    }
    let medians = medians(&bench);
    assert!(medians.len() > 20, "{medians:?}");
    let guide = fs::read_to_string(root().join("docs/guides/data.md")).unwrap();
    let python = std::env::var("FSLAB_PYTHON").unwrap_or_else(|_| "python3".into());
    let run = |program: &str, flag: &str, code: &str| {
        let mut command = Command::new(program);
        let command = command.args([flag, code]).current_dir(bench.path(".")).stdin(Stdio::null());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program}:\n{code}\n{errors}");
        has(&text, &medians, code);
    };
    let python_blocks = blocks(&guide, "python");
    assert_eq!(python_blocks.len(), 3);
    for code in python_blocks {
        let module = if code.contains("duckdb") { "duckdb" } else { "pandas" };
        let import = format!("import {module}");
        if can(Path::new(&python), &["-c", &import], "no Python with the modules of the guide") {
            run(&python, "-c", &format!("{PRINT_PYTHON}{code}"));
        }
    }
    let r = blocks(&guide, "r");
    assert_eq!(r.len(), 1);
    if can(Path::new("Rscript"), &["--version"], "no R") {
        run("Rscript", "-e", &format!("{PRINT_R}{}", r[0]));
    }
    let shell = blocks(&guide, "sh");
    assert_eq!(shell.len(), 1);
    if can(Path::new("sqlite3"), &["--version"], "no sqlite3") {
        run("sh", "-c", &shell[0]);
    }
}
