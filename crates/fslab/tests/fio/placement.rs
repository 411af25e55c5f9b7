//! CPUs of workers, order of sections, and logs, compared with an installed fio.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use super::{FIO, fio_is_missing, fslab_fio, in_data};
use crate::support::{Bench, on_path, skipped};

/// CPUs of the process that opened each file, and the time of its first and last call.
#[derive(Debug, Default, PartialEq)]
struct Process {
    cpus: String,
    first: f64,
    last: f64,
}

/// Processes by the file that they transfer to.
fn processes(bench: &Bench, name: &str, program: &[&str]) -> BTreeMap<String, Process> {
    let (data, traces) = (bench.path(name), bench.path(&format!("{name}-trace")));
    fs::create_dir_all(&data).unwrap();
    fs::create_dir_all(&traces).unwrap();
    let calls = "trace=sched_setaffinity,open,openat,pwrite64";
    let output = Command::new("strace")
        // -A: a later process may have the number of one that ended, and must not replace its trace.
        .args(["-ff", "-A", "-ttt", "-s", "0", "-e", calls, "-o"])
        .arg(traces.join("t"))
        .args(program)
        .current_dir(&data)
        .env("FSLAB_STATE", bench.state())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut found = BTreeMap::new();
    for file in fs::read_dir(&traces).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let (mut cpus, mut open) = (String::new(), BTreeMap::new());
        for line in text.lines() {
            let time: f64 = line.split(' ').next().unwrap().parse().unwrap();
            let result = line.rsplit(" = ").next().unwrap_or_default().to_owned();
            if line.contains("sched_setaffinity(") {
                cpus = line.split(['[', ']']).nth(1).unwrap_or_default().to_owned();
            } else if line.contains(" open(") || line.contains(" openat(") {
                let path = line.split('"').nth(1).unwrap_or_default();
                open.insert(result, path.rsplit('/').next().unwrap_or_default().to_owned());
            } else if let Some((_, rest)) = line.split_once("pwrite64(") {
                let file = rest.split(',').next().and_then(|number| open.get(number));
                let Some(file) = file.filter(|file| file.ends_with(".0")) else { continue };
                let own: &mut Process = found.entry(file.clone()).or_default();
                if own.first == 0.0 {
                    own.first = time;
                }
                own.last = time;
                own.cpus.clone_from(&cpus);
            }
        }
    }
    found
}

const JOB: &str = "[global]\nrw=write\nsize=16k\n[one]\ncpus_allowed=1\n[mask]\ncpumask=1\n[all]\ncpus_allowed=0-1\n\
                   [split]\ncpus_allowed=0,1\ncpus_allowed_policy=split\nnumjobs=2\n[free]\n\
                   thinktime=20000\n[after]\nwait_for=free\n[last]\nwait_for=after\n";

#[test]
fn workers_run_on_the_cpus_and_in_the_order_of_an_installed_fio() {
    let test = "workers_run_on_the_cpus_and_in_the_order_of_an_installed_fio";
    if fio_is_missing(test) {
        return;
    }
    if !on_path("strace") {
        return skipped(test, "strace");
    }
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return skipped(test, "two CPUs");
    }
    let bench = Bench::new();
    let job = bench.path("job.fio");
    fs::write(&job, JOB).unwrap();
    let job = job.display().to_string();
    let theirs = processes(&bench, "theirs", &[FIO, &job]);
    let ours = processes(&bench, "ours", &[env!("CARGO_BIN_EXE_fslab"), "fio", &job]);
    let cpus = |all: &BTreeMap<String, Process>| -> BTreeMap<String, String> {
        all.iter().map(|(file, own)| (file.clone(), own.cpus.clone())).collect()
    };
    assert_eq!(theirs.len(), 8, "{theirs:?}");
    assert_eq!(cpus(&ours), cpus(&theirs));
    for all in [&ours, &theirs] {
        let [free, after, last] =
            ["free", "after", "last"].map(|name| &all[&format!("{name}.0.0")]);
        assert!(after.first > free.last && last.first > after.last, "{all:?}");
        assert!(all["all.0.0"].first < free.last, "others do not wait: {all:?}");
    }
}

/// Logs in a directory: name, and the columns of its lines.
fn logs(directory: &Path) -> BTreeMap<String, Vec<Vec<u64>>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|own| own != "log") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let columns = |line: &str| line.split(", ").map(|own| own.parse().unwrap()).collect();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        all.insert(name, text.lines().map(columns).collect());
        fs::remove_file(path).unwrap();
    }
    all
}

#[test]
fn logs_have_the_form_of_an_installed_fio() {
    if fio_is_missing("logs_have_the_form_of_an_installed_fio") {
        return;
    }
    let all = "write_bw_log=x\nwrite_iops_log=x\nwrite_lat_log=x\n";
    for (options, own) in [
        ("rw=write\nsize=64k", ""),
        ("rw=write\nsize=64k\nioengine=libaio\niodepth=4", ""),
        ("rw=write\nsize=64k\nnumjobs=2", "log_offset=1"),
        ("rw=read\nsize=64k\nnrfiles=2", "log_offset=1"),
        ("rw=write\nsize=32k\nnumjobs=2", "per_job_logs=0"),
    ] {
        let bench = Bench::new();
        fs::create_dir_all(bench.path("data")).unwrap();
        fs::write(bench.path("data/j.fio"), format!("[a]\n{options}\n{all}{own}\n")).unwrap();
        assert_eq!(in_data(&bench, Path::new(FIO), &["j.fio"]).status, Some(0));
        let theirs = logs(&bench.path("data"));
        assert_eq!(fslab_fio(&bench, &["j.fio", "--fslab-reuse"]).status, Some(0), "{options}");
        let ours = logs(&bench.path("data"));
        // Times, rates, and latencies differ; the rest of a line does not.
        let form = |all: &BTreeMap<String, Vec<Vec<u64>>>| -> BTreeMap<String, Vec<Vec<u64>>> {
            let rest =
                |lines: &Vec<Vec<u64>>| lines.iter().map(|line| line[2..].to_vec()).collect();
            all.iter().map(|(name, lines)| (name.clone(), rest(lines))).collect()
        };
        assert_eq!(form(&ours), form(&theirs), "{options} {own}");
        assert_eq!(
            theirs.len(),
            if options.contains("numjobs") && own != "per_job_logs=0" { 10 } else { 5 }
        );
        for (name, lines) in &ours {
            for line in lines {
                match name.split(['_', '.']).nth(1).unwrap() {
                    "iops" => assert_eq!(line[1], 1),
                    "slat" | "bw" | "lat" | "clat" => assert!(line[1] > 0 || name.contains("slat")),
                    other => panic!("{other}"),
                }
            }
        }
    }
}

#[test]
fn logs_of_intervals_have_means() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("data")).unwrap();
    let job = "[a]\nrw=randrw\nsize=64k\ntime_based\nruntime=450ms\nthinktime=500\nlog_avg_msec=100\n\
               write_lat_log\nwrite_iops_log=logs\n";
    fs::write(bench.path("data/j.fio"), job).unwrap();
    assert_eq!(fslab_fio(&bench, &["j.fio"]).status, Some(0));
    let all = logs(&bench.path("data"));
    let names: Vec<&str> = all.keys().map(String::as_str).collect();
    assert_eq!(names, ["a_clat.1.log", "a_lat.1.log", "a_slat.1.log", "logs_iops.1.log"]);
    let (rates, latencies) = (&all["logs_iops.1.log"], &all["a_lat.1.log"]);
    assert!((2..=8).contains(&rates.len()), "{rates:?}");
    assert!(latencies.len() > rates.len(), "the incomplete interval has latencies: {all:?}");
    assert!(rates.iter().all(|line| line[0] >= 100 && (1..=4000).contains(&line[1])), "{rates:?}");
    assert!(latencies.iter().all(|line| line[1] > 0 && line[2] <= 1 && line[3..] == [0, 0]));
}

#[test]
fn plans_write_no_logs() {
    let bench = Bench::new();
    let job = bench.path("db.fio").display().to_string();
    fs::write(&job, "[a]\nrw=write\nsize=16k\nwrite_lat_log=x\n").unwrap();
    fs::create_dir_all(bench.path("data")).unwrap();
    let data = bench.path("data").display().to_string();
    bench.ends(0, &["bench", &job, &data]);
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0);
}
