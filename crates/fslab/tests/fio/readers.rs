//! Outputs of `fslab fio`, read as programs of fio's users read them: by fields of JSON, jq, Python,
//! patterns of the text, and positions in the terse line.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use regex_lite::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::fslab_fio;
use crate::support::{Bench, on_path, skipped};

const JOB: [&str; 4] = ["--name=r", "--rw=randread", "--size=8m", "--bs=4k"];

/// Values of one repetition.
#[derive(Clone, Copy, Debug, Default)]
struct Values {
    bytes: f64,
    ops: f64,
    /// Bytes per second.
    throughput: f64,
    ops_rate: f64,
    /// Nanoseconds.
    mean: f64,
    p50: f64,
    p99: f64,
}

/// The job is run once, and its run file is printed in each format, so all have the same values.
struct Measured {
    bench: Bench,
    run: String,
    expected: Values,
}

fn measured() -> Measured {
    let bench = Bench::new();
    let run = bench.path("r.fslab").display().to_string();
    let keep = format!("--fslab-run={run}");
    let arguments: Vec<&str> = JOB.into_iter().chain([keep.as_str()]).collect();
    assert_eq!(fslab_fio(&bench, &arguments).status, Some(0));
    let text = bench.ends(0, &["report", &run, "--format", "json"]).stdout;
    let report: Value = serde_json::from_str(&text).unwrap();
    let metrics = &report["workloads"][0]["tests"][0]["results"][0]["metrics"];
    let value = |name: &str| metrics[name]["median"].as_f64().unwrap_or_else(|| panic!("{name}"));
    let seconds = value("loop_time") / 1e9;
    let expected = Values {
        bytes: (value("throughput") * seconds).round(),
        ops: (value("ops_rate") * seconds).round(),
        throughput: value("throughput"),
        ops_rate: value("ops_rate"),
        mean: value("latency_mean"),
        p50: value("latency_p50"),
        p99: value("latency_p99"),
    };
    assert_eq!((expected.bytes, expected.ops), (8_388_608.0, 2048.0));
    Measured { bench, run, expected }
}

impl Measured {
    fn output(&self, format: &str) -> String {
        self.bench.ends(0, &["report", &self.run, "--format", format]).stdout
    }

    /// Compares values that a reader found; `rate` is its relative precision of rates.
    fn equal(&self, reader: &str, found: Values, rate: f64) {
        let own = self.expected;
        assert_eq!((found.bytes, found.ops), (own.bytes, own.ops), "{reader}");
        for (name, found, own, limit) in [
            ("throughput", found.throughput, own.throughput, rate),
            ("ops_rate", found.ops_rate, own.ops_rate, rate),
            ("mean", found.mean, own.mean, 0.012),
            ("p50", found.p50, own.p50, 0.012),
            ("p99", found.p99, own.p99, 0.012),
        ] {
            // Some outputs have whole microseconds.
            let allowed = (own * limit).max(if name.starts_with('p') { 1000.0 } else { 0.0 });
            assert!((found - own).abs() <= allowed, "{reader} {name}: {found}, not {own}");
        }
    }
}

/// Numbers that a program prints for this input.
fn numbers(program: &str, arguments: &[&str], input: &str) -> Vec<f64> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

fn of_list(list: &[f64]) -> Values {
    let [bytes, ops, throughput, ops_rate, mean, p50, p99] = list else { panic!("{list:?}") };
    let (bytes, ops, throughput) = (*bytes, *ops, *throughput);
    Values { bytes, ops, throughput, ops_rate: *ops_rate, mean: *mean, p50: *p50, p99: *p99 }
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "fio version")]
    version: String,
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    jobname: String,
    error: i64,
    read: Side,
    write: Side,
    usr_cpu: f64,
    ctx: u64,
}

#[derive(Deserialize)]
struct Side {
    io_bytes: u64,
    io_kbytes: u64,
    bw: u64,
    bw_bytes: u64,
    iops: f64,
    runtime: u64,
    total_ios: u64,
    clat_ns: Times,
    lat_ns: Times,
}

#[derive(Deserialize)]
struct Times {
    mean: f64,
    #[serde(rename = "N")]
    count: u64,
    #[serde(default)]
    percentile: std::collections::HashMap<String, u64>,
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn readers_with_structures_get_the_values_of_the_report() {
    let measured = measured();
    for format in ["fio-json", "fio-json+"] {
        let document: Document = serde_json::from_str(&measured.output(format)).unwrap();
        assert!(document.version.starts_with("fslab-"));
        let [job] = &document.jobs[..] else { panic!("one job") };
        let read = &job.read;
        assert_eq!((job.jobname.as_str(), job.error, job.write.total_ios), ("r", 0, 0));
        assert_eq!(read.io_kbytes, 8192);
        assert!(job.usr_cpu >= 0.0 && job.ctx < 1 << 40 && read.runtime > 0);
        assert_eq!((read.clat_ns.count, read.lat_ns.count), (2048, 2048));
        assert_eq!(read.bw, read.bw_bytes / 1024);
        let percentile = |percent: &str| read.clat_ns.percentile[percent] as f64;
        let found = Values {
            bytes: read.io_bytes as f64,
            ops: read.total_ios as f64,
            throughput: read.bw_bytes as f64,
            ops_rate: read.iops,
            mean: read.lat_ns.mean,
            p50: percentile("50.000000"),
            p99: percentile("99.000000"),
        };
        measured.equal(format, found, 0.001);
    }
}

#[test]
fn jq_and_python_get_the_values_of_the_report() {
    let test = "jq_and_python_get_the_values_of_the_report";
    let measured = measured();
    let json = measured.output("fio-json");
    if on_path("jq") {
        let filter = ".jobs[] | select(.jobname == \"r\") | .read | .io_bytes, .total_ios, (.bw * 1024), \
                      .iops, .clat_ns.mean, .clat_ns.percentile[\"50.000000\"], \
                      .clat_ns.percentile[\"99.000000\"]";
        measured.equal("jq", of_list(&numbers("jq", &[filter], &json)), 0.001);
    } else {
        skipped(test, "jq");
    }
    if !on_path("python3") {
        return skipped(test, "python3");
    }
    // Some scripts skip everything before the line of the version.
    let program = "\
import json, sys
text = sys.stdin.read()
assert '\"fio version\"' in text[:1024]
lines = text.splitlines(True)
first = next(at for at, line in enumerate(lines) if line.startswith('  \"fio version\" : \"'))
document = json.loads('{' + ''.join(lines[first:]))
for job in document['jobs']:
    side = job['read']
    latency = side['clat_ns']
    percentiles = sorted((float(key), value) for key, value in latency['percentile'].items())
    of = dict(percentiles)
    print(side['io_kbytes'] * 1024, side['total_ios'], side['bw_bytes'], side['iops'],
          latency['mean'], of[50.0], of[99.0])
";
    let noise = format!("note: a line before the document\n{json}");
    measured.equal("python", of_list(&numbers("python3", &["-c", program], &noise)), 0.001);
}

/// Number with a suffix of fio, such as `12.3k` or `47.5MiB`.
fn scaled(text: &str) -> f64 {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let factor = match &text[end..] {
        "" | "B" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        other => panic!("{other}"),
    };
    text[..end].parse::<f64>().unwrap() * factor
}

#[test]
fn patterns_of_the_text_find_the_values_of_the_report() {
    let measured = measured();
    let text = measured.output("fio");
    let find = |pattern: &str| {
        let found = Regex::new(pattern).unwrap().captures(&text);
        let found = found.unwrap_or_else(|| panic!("{pattern}: {text}"));
        found.get(1).unwrap().as_str().to_owned()
    };
    let unit = match find(r"clat percentiles \((\w+)\)").as_str() {
        "nsec" => 1.0,
        "usec" => 1e3,
        "msec" => 1e6,
        other => panic!("{other}"),
    };
    let percentile = |percent: &str| find(&format!(r"{percent}th=\[ *(\d+)\]")).parse::<f64>();
    let found = Values {
        bytes: scaled(&find(r"read: IOPS=\S+ BW=\S+ \([^)]*\)\(([0-9.]+[KMG]iB)/\d+msec\)")),
        ops: find(r"issued rwts: total=(\d+),").parse().unwrap(),
        throughput: scaled(&find(r"(?m)^  read: IOPS=[^,]+, BW=([0-9.]+[KMG]?i?B)/s")),
        ops_rate: scaled(&find(r"IOPS=([0-9.]+[kM]?),")),
        mean: find(r"clat \(\wsec\): min=\d+, max=\d+, avg=([0-9.]+),").parse::<f64>().unwrap()
            * unit,
        p50: percentile("50.00").unwrap() * unit,
        p99: percentile("99.00").unwrap() * unit,
    };
    // The text has three digits.
    measured.equal("text", found, 0.006);
    let sum = scaled(&find(r"READ: bw=([0-9.]+[KMG]?i?B)/s"));
    assert!((sum / measured.expected.throughput - 1.0).abs() < 0.01, "{sum}");
    let decimal = scaled(&find(r"BW=\S+ \(([0-9.]+[kMG]?B)/s\)"));
    assert!((decimal / measured.expected.throughput - 1.0).abs() < 0.01, "{decimal}");
}

#[test]
fn terse_fields_have_the_values_of_the_report() {
    let measured = measured();
    let text = measured.output("fio-terse");
    let fields: Vec<&str> = text.trim_end().split(';').collect();
    assert_eq!((fields[0], fields[2], fields[4]), ("3", "r", "0"));
    let number = |place: usize| fields[place].parse::<f64>().unwrap();
    let percentile = |percent: &str| {
        let field = fields[17..37].iter().find_map(|field| field.strip_prefix(percent));
        field.unwrap().parse::<f64>().unwrap() * 1e3
    };
    let found = Values {
        bytes: number(5) * 1024.0,
        ops: measured.expected.ops,
        throughput: number(6) * 1024.0,
        ops_rate: number(7),
        mean: number(39) * 1e3,
        p50: percentile("50.000000%="),
        p99: percentile("99.000000%="),
    };
    measured.equal("terse", found, 0.001);
    let rounded = found.ops_rate * number(8) / 1000.0;
    assert!((rounded / measured.expected.ops - 1.0).abs() < 0.02, "{rounded}");
    let classes: f64 = fields[99..121].iter().map(|own| scaled(own.trim_end_matches('%'))).sum();
    assert!((classes - 100.0).abs() < 0.2, "{classes}");
}
