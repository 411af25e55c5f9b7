//! Import of results of fio, IOzone, and bonnie++, and export of bonnie++ records.

use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
};

use crate::support::{Bench, on_path, root, skipped};

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
    for importer in &report::imports::IMPORTERS {
        assert!(output.stderr.contains(importer.program), "{}", output.stderr);
    }
    fs::write(bench.path("table"), "hello,1,2,3,4,5,6\n").unwrap();
    let output = bench.ends(2, &["import", "table"]);
    for words in ["unknown format", "line 1", "`hello`", "1.98", "1.03"] {
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

/// Seed of a fuzz target, an output of another program.
fn seed(name: &str) -> String {
    fs::read_to_string(root().join("fuzz/seeds").join(name)).unwrap()
}

/// Import of three files of fio, with more arguments.
fn import<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["import", "ext4-a.json", "ext4-b.json", "xfs.json"], more].concat()
}

#[test]
fn files_of_fio_are_named_and_grouped() {
    let bench = Bench::new();
    for (file, text) in [
        ("ext4-a.json", seed("fio_json/plain")),
        ("ext4-b.json", seed("fio_json/plain").replace("\"iops\" : ", "\"iops\" : 1")),
        ("xfs.json", seed("fio_json/plus")),
        ("ext4.terse", seed("fio_terse/3.33")),
        ("iozone.txt", seed("iozone/single")),
    ] {
        fs::write(bench.path(file), text).unwrap();
    }
    bench.ends(0, &import(&["--name-from", "^[a-z0-9]+", "-o", "a.fslab"]));
    let text = bench.ends(0, &["report", "a.fslab", "--format", "json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["imported_from"], "fio-3.33");
    let results = &json["workloads"][0]["tests"][0]["results"];
    let counts: Vec<String> = results
        .as_array()
        .unwrap()
        .iter()
        .map(|own| own["metrics"]["ops_rate"]["n"].to_string())
        .collect();
    assert_eq!(counts, ["2", "1"], "{results}");
    bench.ends(0, &import(&["--names", "ext4,ext4,xfs", "-o", "b.fslab"]));
    bench.ends(0, &["import", "ext4.terse", "ext4-a.json", "-o", "c.fslab"]);
    for (arguments, words) in [
        (import(&["--names", "ext4"]), "there are 3 files, but 1 names"),
        (import(&["--name-from", "btrfs"]), "does not match ext4-a.json"),
        (import(&["--name-from", "("]), "invalid pattern `(`"),
        (import(&["ext4-a.json"]), "ext4-a.json and ext4-a.json have the same content"),
        (import(&["iozone.txt"]), "3 files are of fio, 1 file is of IOzone"),
    ] {
        let output = bench.ends(2, &arguments);
        assert!(output.stderr.contains(words), "{words} is missing from\n{}", output.stderr);
    }
}

/// Formats in the help text and on the reference page.
/// Records of bonnie++ of one configuration, one per repetition, with these block write rates.
fn repetitions(name: &str, rates: [u32; 6]) -> String {
    let line = RECORDS.lines().next().unwrap().replace("ext4", name);
    let one = |rate: &u32| line.replace("98,59268,6", &format!("98,{rate},6")) + "\n";
    rates.iter().map(one).collect()
}

#[test]
fn imported_runs_yield_findings_only_if_unknown_differences_are_allowed() {
    let bench = Bench::new();
    let slow = [50_100, 50_200, 50_000, 50_300, 50_150, 50_250];
    for (file, rates) in [("a", slow), ("b", slow.map(|rate| rate * 2))] {
        fs::write(bench.path(&format!("{file}.csv")), repetitions("ext4", rates)).unwrap();
        let output = format!("{file}.fslab");
        bench.ends(0, &["import", &format!("{file}.csv"), "-o", &output]);
    }
    let compared = ["compare", "b.fslab", "a.fslab", "--metric", "throughput"];
    let plain = bench.ends(0, &compared).stdout;
    assert!(plain.contains("No findings") && plain.contains("--allow-differences unknown"));
    assert!(plain.contains("-50"), "the change and its interval are shown: {plain}");
    let gated = [&compared[..], &["--gate", "5%"]].concat();
    bench.ends(6, &gated);
    let unknown = ["--allow-differences", "unknown"];
    let allowed = bench.ends(1, &[&gated[..], &unknown].concat()).stdout;
    assert!(allowed.contains("other conditions are not recorded"), "{allowed}");
    bench.ends(2, &[&compared[..], &["--allow-differences", "unknow"]].concat());
}

#[test]
fn every_import_format_is_documented() {
    let bench = Bench::new();
    let help = bench.ends(0, &["import", "--help"]).stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let page = fs::read_to_string(root().join("docs/reference/import.md")).unwrap();
    let targets = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    for importer in &report::imports::IMPORTERS {
        assert!(help.contains(importer.title), "{}: {help}", importer.title);
        assert!(page.contains(&format!("\n## {}\n", importer.name)), "{}", importer.name);
        let target = match importer.name {
            "bonnie-csv" => "bonnie".to_owned(),
            "iozone-text" => "iozone".to_owned(),
            name @ ("fio-json" | "fio-terse" | "dbench-text") => name.replace('-', "_"),
            _ => "printed".to_owned(),
        };
        assert!(targets.contains(&format!("name = \"{target}\"")), "{target}");
    }
}

#[test]
fn text_of_iozone_is_imported_and_exported() {
    let bench = Bench::new();
    fs::write(bench.path("old.txt"), seed("iozone/single")).unwrap();
    bench.ends(0, &["import", "old.txt", "--names", "ext4"]);
    let text = bench.ends(0, &["report", "old.fslab", "--format", "iozone"]).stdout;
    let row = "            4096      64  3346419  7342434 11409087 12919082 15880734 13086376";
    assert!(text.lines().any(|line| line.starts_with(row)), "{text}");
    assert!(text.starts_with("\tIozone: imported from IOzone 3.471, not measured"), "{text}");
    fs::write(bench.path("again.txt"), text).unwrap();
    bench.ends(0, &["import", "again.txt"]);
    let again = bench.ends(0, &["report", "again.fslab", "--format", "csv"]).stdout;
    assert!(again.lines().skip(1).all(|line| line.contains("ext4")), "{again}");
}

#[test]
fn results_of_the_installed_fio_are_imported() {
    const TEST: &str = "results_of_the_installed_fio_are_imported";
    if !on_path("fio") {
        return skipped(TEST, "fio");
    }
    let bench = Bench::new();
    let mut files = Vec::new();
    for repetition in 0..2 {
        for (format, extension) in [("json+", "json"), ("terse", "terse")] {
            let output = format!("{repetition}.{extension}");
            let mut fio = Command::new("fio");
            fio.current_dir(bench.path(".")).args([
                "--name=small",
                "--rw=randrw",
                "--bs=4k",
                "--size=1m",
                "--ioengine=psync",
                "--terse-version=3",
                &format!("--output-format={format}"),
                &format!("--output={output}"),
            ]);
            let ended = fio.output().unwrap();
            assert!(ended.status.success(), "{ended:?}");
            files.push(output);
        }
    }
    let mut import = vec!["import"];
    import.extend(files.iter().map(String::as_str).filter(|file| file.ends_with("json")));
    bench.ends(0, &[&import[..], &["-o", "json.fslab"]].concat());
    let csv = bench.ends(0, &["report", "json.fslab", "--format", "csv"]).stdout;
    for repetition in 0..2 {
        let text = fs::read_to_string(bench.path(&format!("{repetition}.json"))).unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        for direction in ["read", "write"] {
            let rate = document["jobs"][0][direction]["iops"].as_f64().unwrap();
            let own = |line: &&str| {
                line.contains(",imported,")
                    && line.contains(&format!(",{direction},"))
                    && line.contains(",ops_rate,")
            };
            let values: Vec<f64> = csv
                .lines()
                .filter(own)
                .flat_map(|line| line.split(',').filter_map(|field| field.parse::<f64>().ok()))
                .collect();
            let found = values.iter().any(|value| (value / rate - 1.0).abs() < 1e-9);
            assert!(found, "{direction} {rate}: {csv}");
        }
    }
    bench.ends(0, &["import", "0.terse", "1.terse", "-o", "terse.fslab"]);
    let text = bench.ends(0, &["report", "terse.fslab", "--detail"]).stdout;
    assert!(text.contains("n = 2 repetitions"), "{text}");
}

/// A JSON+ document of 30 MB is imported with four times its size of address space, in addition to
/// that of the program.
#[test]
fn memory_of_an_import_is_bounded() {
    let bench = Bench::new();
    let values = (6..34_u32).flat_map(|octave| (64..128_u64).map(move |at| at << (octave - 6)));
    let bins: Vec<String> = values.map(|value| format!("            \"{value}\" : 7")).collect();
    let (bins, count) = (bins.join(",\n"), 7 * bins.len());
    let job = |number: usize| {
        format!(
            "{{\"jobname\" : \"job{number}\", \"groupid\" : {number}, \"error\" : 0, \"read\" : {{\n\
             \"io_bytes\" : 4096, \"bw\" : 4, \"iops\" : 1.0, \"runtime\" : 1000, \n\
             \"total_ios\" : {count}, \"clat_ns\" : {{ \"min\" : 64, \"max\" : 17179869184, \n\
             \"mean\" : 1000000.0, \"N\" : {count}, \"bins\" : {{\n{bins}\n}} }} }} }}"
        )
    };
    let jobs: Vec<String> = (0..640).map(job).collect();
    let text =
        format!("{{\n\"fio version\" : \"fio-3.33\", \"jobs\" : [\n{}\n] }}", jobs.join(",\n"));
    assert!(text.len() > 30_000_000, "{}", text.len());
    fs::write(bench.path("big.json"), &text).unwrap();
    let limit = (100 << 10) + 4 * text.len() / 1024;
    let program = bench.command(&[]).get_program().to_owned();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {limit} && exec \"$@\""), "sh"]).arg(program);
    command.args(["import", "big.json", "-o", "big.fslab"]).current_dir(bench.path("."));
    let ended = command.output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let kept = fs::metadata(bench.path("big.fslab")).unwrap().len();
    assert!(kept > 1 << 20, "{kept}");
}
