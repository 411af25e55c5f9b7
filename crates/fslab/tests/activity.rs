//! System activity of known workloads on real filesystems.

use std::{
    collections::BTreeMap,
    fs,
    process::{Child, Command, Stdio},
};

use crate::support::{Bench, needs_root, skipped};

/// Values of one metric of a run, by (filesystem, phase).
fn values(csv: &str, metric: &str) -> BTreeMap<(String, String), f64> {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| names.iter().position(|known| *known == name).expect("a column");
    let [filesystem, phase, of, value] = ["filesystem", "phase", "metric", "value"].map(column);
    let rows = lines.map(|line| line.split(',').collect::<Vec<_>>());
    rows.filter(|row| row.len() == names.len() && row[of] == metric)
        .map(|row| ((row[filesystem].to_owned(), row[phase].to_owned()), row[value]))
        .map(|(key, value)| (key, value.parse().unwrap()))
        .collect()
}

fn plan(filesystems: &str, workload: &str) -> String {
    format!(
        "title = \"system activity\"\nrepetitions = 1\nseed = 11\n[storage]\nimage_size = \"1GiB\"\n[axes]\n\
         filesystem = [{filesystems}]\nworkload = [{workload}]\n"
    )
}

const SIZE: f64 = 268_435_456.0;

#[test]
fn synced_bytes_equal_the_bytes_written_by_the_device() {
    if !needs_root("synced_bytes_equal_the_bytes_written_by_the_device") {
        return;
    }
    let bench = Bench::new();
    let write = "{ suite = \"stream\", file_size = \"256MiB\", block_size = \"1MiB\", direction = \"write\", \
                 overwrite = false }";
    let plan = bench.plan(&plan("\"ext4\", \"xfs\", \"btrfs\"", write));
    bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    let csv = bench.ends(0, &["report", "run.fslab", "--format", "csv"]).stdout;
    let written = values(&csv, "device_bytes_written");
    let amplification = values(&csv, "write_amplification");
    for filesystem in ["ext4", "xfs", "btrfs"] {
        let key = (filesystem.to_owned(), "write".to_owned());
        // The data is incompressible, so at least its bytes are written, plus metadata and journal.
        let bytes = written[&key];
        assert!((SIZE..SIZE * 1.05).contains(&bytes), "{filesystem} wrote {bytes} bytes");
        assert!((amplification[&key] - bytes / SIZE).abs() < 1e-9, "{filesystem}");
        let made = (filesystem.to_owned(), "mkfs".to_owned());
        assert!(written[&made] > 0.0, "{filesystem}: mkfs writes");
    }
    assert!(!csv.contains("reduced-writes"));
}

#[test]
fn cold_reads_come_from_the_device_and_warm_ones_from_memory() {
    if !needs_root("cold_reads_come_from_the_device_and_warm_ones_from_memory") {
        return;
    }
    let bench = Bench::new();
    let read =
        "{ suite = \"stream\", file_size = \"256MiB\", block_size = \"1MiB\", cache = \"CACHE\" }";
    let both = format!("{}, {}", read.replace("CACHE", "cold"), read.replace("CACHE", "warm"));
    let plan = bench.plan(&plan("\"ext4\", \"xfs\", \"btrfs\"", &both));
    bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    let csv = bench.ends(0, &["report", "run.fslab", "--format", "csv"]).stdout;
    let of = |cache: &str| {
        let lines = csv.lines().enumerate();
        // Labels do not contain the default value.
        let warm = |line: &str| line.contains("cache=warm");
        let lines = lines.filter(|(i, line)| *i == 0 || warm(line) == (cache == "warm"));
        lines.map(|(_, line)| line).collect::<Vec<_>>().join("\n")
    };
    let record = store::read(&bench.path("run.fslab")).unwrap();
    let warned = |trial: &&model::record::TrialRecord| {
        let mut warnings = trial.warnings.iter();
        warnings.any(|(_, warning)| matches!(warning, model::Warning::CacheNotWarm { .. }))
    };
    let names = record.trials.iter().filter(warned).map(|trial| &record.cells[trial.cell].cell);
    let not_warm: Vec<&str> = names.map(|cell| cell.filesystem.name.as_str()).collect();
    for (cache, cached) in [("cold", 0.0..=0.01), ("warm", 0.99..=1.0)] {
        let shares = values(&of(cache), "cache_hit_ratio");
        for filesystem in ["ext4", "xfs", "btrfs"] {
            let share = shares[&(filesystem.to_owned(), "read".to_owned())];
            // Other tests may drop the caches of the machine. A warning then reports the cold
            // cache.
            let warned = cache == "warm" && not_warm.contains(&filesystem);
            let kept = cached.contains(&share);
            assert!(
                kept != warned,
                "{filesystem} {cache}: {share} came from memory, reported: {warned}"
            );
        }
    }
}

#[test]
fn compression_reduces_the_bytes_written_by_the_device() {
    if !needs_root("compression_reduces_the_bytes_written_by_the_device") {
        return;
    }
    let bench = Bench::new();
    let write = "{ suite = \"stream\", file_size = \"256MiB\", block_size = \"1MiB\", direction = \"write\", \
                 overwrite = false, incompressible_fraction = 0.0 }";
    let level =
        "{ name = \"btrfs-zstd\", type = \"btrfs\", mount_options = \"compress-force=zstd\" }";
    let plan = bench.plan(&plan(level, write));
    bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    let csv = bench.ends(0, &["report", "run.fslab", "--format", "csv"]).stdout;
    let amplification = values(&csv, "write_amplification");
    let amplification = amplification[&("btrfs-zstd".to_owned(), "write".to_owned())];
    assert!(amplification < 0.5, "{amplification}");
    let output = bench.ends(0, &["report", "run.fslab", "--detail"]).stdout;
    assert!(output.contains("reduced-writes"), "{output}");
}

/// Process that uses one CPU until it is dropped.
struct Burner(Child);

impl Burner {
    fn start() -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Self(command.spawn().expect("sh starts"))
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it was killed");
    }
}

#[test]
fn other_cpu_load_is_named() {
    // Process 2 is the parent of all kernel threads (`rest_init`, `init/main.c`).
    if fs::read_to_string("/proc/2/comm").ok().as_deref() != Some("kthreadd\n") {
        skipped("other_cpu_load_is_named", "kernel threads in /proc; a PID namespace hides them");
        return;
    }
    let bench = Bench::new();
    let burner = Burner::start();
    bench.ends(
        0,
        &[
            "bench",
            "randread-4k",
            ".",
            "--runtime",
            "1s",
            "--file-size",
            "16MiB",
            "-o",
            "run.fslab",
        ],
    );
    drop(burner);
    let output = bench.ends(0, &["report", "run.fslab", "--detail"]).stdout;
    assert!(output.contains("other-cpu-load"), "{output}");
}
