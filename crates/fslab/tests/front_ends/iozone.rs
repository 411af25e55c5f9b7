//! `fslab iozone`: its output is read as programs read outputs of IOzone.

use std::{fs, path::Path};

use super::{are_errors, done, in_data};
use crate::support::Bench;

fn iozone(bench: &Bench, line: &str) -> String {
    let words: Vec<&str> = ["iozone"].into_iter().chain(line.split_whitespace()).collect();
    done(bench, &words).stdout
}

/// Converter of an output to fields and rows. It finds fields by their distance from the first line
/// and from the heads of the columns, as converters to CSV do.
struct Converted {
    version: String,
    build: String,
    unit: String,
    resolution: f64,
    caches: [u64; 2],
    stride: u64,
    /// Line of the first row, from 1.
    first_row: usize,
    rows: Vec<Vec<u64>>,
}

fn convert(text: &str) -> Converted {
    let lines: Vec<&str> = text.lines().collect();
    let is_head = |line: &&str| line.contains("random") && line.contains("bkwd");
    let heads = lines.iter().position(is_head).expect("heads");
    let find = |lines: &[&str], words: &str| -> String {
        let line = lines.iter().find(|line| line.to_lowercase().contains(words));
        line.unwrap_or_else(|| panic!("{words} in {lines:?}")).to_string()
    };
    let word = |line: String, from_end: usize| -> String {
        line.split_whitespace().rev().nth(from_end).unwrap().to_owned()
    };
    let last = &lines[heads - 10..heads];
    let number = |words: &str| word(find(last, words), 1).parse().unwrap();
    let rows = lines[heads + 2..].iter().take_while(|line| !line.trim().is_empty());
    Converted {
        version: find(&lines[..4], "version"),
        build: word(find(&lines[..5], "build"), 0),
        unit: word(find(last, "output is in"), 0),
        resolution: word(find(last, "time resolution"), 1).parse().unwrap(),
        caches: [number("processor cache size"), number("processor cache line size")],
        stride: word(find(&lines[heads - 5..heads], "stride size"), 3).parse().unwrap(),
        first_row: heads + 3,
        rows: rows
            .map(|row| row.split_whitespace().map(|word| word.parse().unwrap()).collect())
            .collect(),
    }
}

#[test]
fn a_converter_reads_the_output_and_the_report_of_its_run() {
    let bench = Bench::new();
    let run = bench.path("sweep.fslab").display().to_string();
    let line = format!("-a -n 1m -g 2m -y 64k -q 512k -i 0 -i 1 -i 2 -R --fslab-run {run}");
    let text = iozone(&bench, &line);
    let report = bench.ends(0, &["report", &run, "--format", "iozone"]).stdout;
    for text in [&text, &report] {
        let found = convert(text);
        assert!(text.lines().next().unwrap().contains("measured by fslab, not by IOzone"));
        assert!(found.version.contains("fslab") && found.version.contains('.'));
        assert!(found.build.starts_with("fslab-"));
        assert_eq!((found.unit.as_str(), found.resolution), ("kBytes/sec", 0.000_001));
        assert_eq!((found.caches, found.stride), ([1024, 32], 17));
        let sizes: Vec<[u64; 2]> = found.rows.iter().map(|row| [row[0], row[1]]).collect();
        let expected = [1024, 2048].map(|file| [64, 128, 256, 512].map(|block| [file, block]));
        assert_eq!(sizes, expected.concat());
        assert!(found.rows.iter().all(|row| row.len() == 8), "{text}");
    }
    assert_eq!(convert(&text).rows, convert(&report).rows);
    let table = text.split("\"Writer report\"\n").nth(1).unwrap();
    let first: Vec<&str> = table.lines().take(2).collect();
    assert_eq!(first[0], "        \"64\"  \"128\"  \"256\"  \"512\"");
    assert!(first[1].starts_with("\"1024\"   "), "{table}");
    let kept = store::read(Path::new(&run)).unwrap();
    assert_eq!((kept.cells.len(), kept.trials.len()), (8, 8));
    assert!(kept.info.title.starts_with("iozone -a -n 1m"), "{}", kept.info.title);
}

/// IOzone 3.471 has the first row in line 26 without options, and one more line per option that it
/// prints.
#[test]
fn the_first_row_is_in_the_line_of_iozone() {
    let bench = Bench::new();
    for (line, options) in [
        ("-i 0", 0),
        ("-s 64 -i 0", 1),
        ("-s 64 -r 16 -i 0", 2),
        ("-e -c -s 64 -r 16 -i 0", 4),
        ("-e -c -o -s 64 -r 16 -i 0 -i 1", 5),
        ("-R -+n -s 64 -r 16 -i 0", 4),
        ("-a -n 64 -g 64 -y 32 -q 64 -i 0", 5),
        ("-s 64 -s 128 -r 64 -i 0", 3),
    ] {
        let found = convert(&iozone(&bench, line));
        assert_eq!(found.first_row, 26 + options, "{line}");
    }
}

#[test]
fn units_and_left_out_tests_have_their_columns() {
    let bench = Bench::new();
    let text = iozone(&bench, "-N -i 0 -i 5 -+n -s 128 -r 64 -f ./x");
    assert!(text.contains("\tMicroseconds/op Mode."), "{text}");
    assert!(!text.contains("kBytes/sec"), "{text}");
    let row = text.lines().find(|line| line.starts_with("             128")).unwrap();
    let ends = [33, 107];
    for end in ends {
        assert!(row[end - 9..end].trim().parse::<u64>().is_ok(), "{row}");
    }
    assert_eq!(row.split_whitespace().count(), 4, "{row}");
    let text = iozone(&bench, "-U . -i 0 -i 1 -s 128 -r 64");
    assert!(text.contains("Cache state before the tests: cold"), "{text}");
    let text = iozone(&bench, "-E -i 9 -i 10 -s 128 -r 64");
    assert_eq!(convert_rows(&text), [6], "{text}");
}

/// Number of values in each row.
fn convert_rows(text: &str) -> Vec<usize> {
    let rows = text.lines().filter(|line| line.starts_with("             128"));
    rows.map(|row| row.split_whitespace().count()).collect()
}

#[test]
fn the_throughput_mode_has_the_lines_of_iozone() {
    let bench = Bench::new();
    let text = iozone(&bench, "-t 2 -T -x -i 0 -i 1 -s 256 -r 64 -CR -+n");
    assert!(text.contains("\tThroughput test with 2 threads\n"), "{text}");
    let number = |start: &str| -> Vec<f64> {
        let lines = text.lines().filter(|line| line.trim_start().starts_with(start));
        lines.map(|line| line.split_whitespace().rev().nth(1).unwrap().parse().unwrap()).collect()
    };
    let [children, parents, least, most, average, bytes] = [
        "Children see throughput for  2 ",
        "Parent sees throughput for  2 ",
        "Min throughput per thread",
        "Max throughput per thread",
        "Avg throughput per thread",
        "Min xfer",
    ]
    .map(number);
    for at in 0..2 {
        assert!(parents[at] <= children[at] * 1.001, "{text}");
        assert!((least[at] + most[at] - children[at]).abs() < 0.03, "{text}");
        assert!((2.0 * average[at] - children[at]).abs() < 0.03, "{text}");
        assert!((bytes[at] - 256.0).abs() < 0.01, "all workers finish: {text}");
    }
    assert_eq!(text.matches("\tChild[").count(), 4, "{text}");
    let row = text.split("\"  Initial write \" ").nth(1).unwrap().lines().next().unwrap();
    assert_eq!(row.trim(), format!("{:.2}", children[0]), "{text}");
    fs::write(bench.path("text.txt"), &text).unwrap();
    let input = bench.path("text.txt").display().to_string();
    bench.ends(0, &["import", &input, "-o", "imported.fslab"]);
    let imported = store::read(&bench.path("imported.fslab")).unwrap();
    assert_eq!(imported.cells[0].cell.workload.count("workers"), 2);
}

#[test]
fn a_workbook_is_written_and_files_of_others_are_not_changed() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("data")).unwrap();
    let book = bench.path("x.wks").display().to_string();
    let text = iozone(&bench, &format!("-i 0 -s 64 -r 4 -b {book}"));
    assert!(text.contains("\"Writer report\""), "-b includes -R: {text}");
    let bytes = fs::read(&book).unwrap();
    assert_eq!(bytes[..8], [9, 0, 4, 0, 2, 0, 16, 0]);
    assert_eq!(bytes[bytes.len() - 4..], [10, 0, 0, 0]);
    let again = in_data(&bench, &["iozone", "-i", "0", "-b", &book]);
    assert_eq!(again.status, Some(1), "{again:?}");
    assert!(again.stderr.contains("already exists"), "{again:?}");
    fs::write(bench.path("data/mine"), "mine").unwrap();
    let kept = in_data(&bench, &["iozone", "-i", "0", "-s", "64", "-f", "mine"]);
    assert_eq!(kept.status, Some(0), "{kept:?}");
    assert_eq!(fs::read_to_string(bench.path("data/mine")).unwrap(), "mine");
    assert_eq!(fs::read_dir(bench.path("data")).unwrap().count(), 1);
}

#[test]
fn wrong_command_lines_of_iozone_are_errors() {
    are_errors(
        "iozone",
        "",
        &[
            "-Q",
            "-?",
            "-s",
            "-s 0",
            "-s 4 -r 64",
            "-s 64 -s 4",
            "-i 12",
            "-i x",
            "-i 8",
            "-i 9",
            "-t 0",
            "-l 1",
            "-n 64",
            "-z",
            "-x",
            "-I",
            "-f /nonexistent/f",
            "-f /",
            "-H 4",
            "-+m hosts",
            "-j 3",
            "file",
        ],
    );
}
