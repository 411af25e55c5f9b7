//! Jobs of fio: options, system calls, and amounts compared with an installed fio.

mod blocks;
mod examples;
mod existing;
mod flows;
mod histograms;
mod placement;
mod queues;
mod readers;
mod trace;

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use serde_json::Value;

use crate::support::{Bench, Finished, root, skipped};

/// Program of fio, if it is installed. This is not the link of a test.
const FIO: &str = "/usr/bin/fio";

fn fio_is_missing(test: &str) -> bool {
    let missing = !Path::new(FIO).is_file();
    if missing {
        skipped(test, "fio");
    }
    missing
}

/// Runs a program in the directory `data` of the bench.
fn in_data(bench: &Bench, program: &Path, arguments: &[&str]) -> Finished {
    fs::create_dir_all(bench.path("data")).unwrap();
    let output = Command::new(program)
        .args(arguments)
        .current_dir(bench.path("data"))
        .env("FSLAB_STATE", bench.state())
        .env("SIZE", "64k")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Finished {
        status: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}

fn fslab_fio(bench: &Bench, arguments: &[&str]) -> Finished {
    let all: Vec<&str> = ["fio"].iter().chain(arguments).copied().collect();
    in_data(bench, Path::new(env!("CARGO_BIN_EXE_fslab")), &all)
}

fn json(finished: &Finished) -> Value {
    assert_eq!(finished.status, Some(0), "{finished:?}");
    serde_json::from_str(&finished.stdout).unwrap()
}

#[test]
fn flows_have_the_proportions_of_fio() {
    flows::proportions();
}

#[test]
fn sections_of_a_flow_that_end_do_not_delay_the_others() {
    flows::ends();
}

#[test]
fn logs_of_histograms_have_the_form_of_fio() {
    histograms::compare();
}

#[test]
fn a_section_appends_to_existing_files() {
    existing::append();
}

#[test]
fn parts_of_files_are_verified_and_shared_files_removed() {
    existing::partial();
}

#[test]
fn create_only_creates_the_files() {
    existing::create_only();
}

#[test]
fn every_option_of_an_installed_fio_is_in_the_table() {
    if fio_is_missing("every_option_of_an_installed_fio_is_in_the_table") {
        return;
    }
    let names = |argument: &str| {
        let output = Command::new(FIO).arg(argument).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let name =
            |line: &str| line.trim_start().split([' ', ':']).next().unwrap_or_default().to_owned();
        text.lines().map(name).filter(|name| !name.is_empty()).collect::<Vec<_>>()
    };
    let mut all = names("--cmdhelp=all");
    assert!(all.len() > 200, "{}", all.len());
    for engine in ["libaio", "io_uring", "pvsync2", "mmap", "filestat"] {
        all.extend(names(&format!("--enghelp={engine}")));
    }
    let known = |name: &String| {
        suites::fio::OPTIONS
            .iter()
            .any(|own| own.name == name || own.aliases.contains(&name.as_str()))
    };
    let missing: Vec<String> = all.into_iter().filter(|name| !known(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn jobs_make_the_system_calls_of_an_installed_fio() {
    let test = "jobs_make_the_system_calls_of_an_installed_fio";
    if fio_is_missing(test) {
        return;
    }
    if Command::new("strace").arg("--version").output().is_err() {
        return skipped(test, "strace");
    }
    trace::compare();
    queues::compare();
}

/// Entries of a job, and the files that it leaves.
#[test]
fn calls_on_files_are_those_of_an_installed_fio() {
    if fio_is_missing("calls_on_files_are_those_of_an_installed_fio") {
        return;
    }
    let job = "[global]\nfilesize=4k\nnrfiles=5\nnumjobs=2\nthread\ngroup_reporting\n\
               [create]\nioengine=filecreate\ncreate_on_open=1\nopenfiles=1\n\
               [stat]\nstonewall\nioengine=filestat\n\
               [delete]\nstonewall\nioengine=filedelete\n\
               [all]\nstonewall\nioengine=filecreate\n";
    let found = [Path::new(FIO), Path::new(env!("CARGO_BIN_EXE_fslab"))].map(|program| {
        let bench = Bench::new();
        fs::create_dir_all(bench.path("data")).unwrap();
        fs::write(bench.path("data/job.fio"), job).unwrap();
        let mut arguments = vec!["job.fio", "--output-format=json"];
        if program != Path::new(FIO) {
            arguments.insert(0, "fio");
        }
        let document = json(&in_data(&bench, program, &arguments));
        let entries = document["jobs"].as_array().unwrap().iter().map(|job| {
            let (read, write) = (&job["read"], &job["write"]);
            format!(
                "{} {} {} {}",
                job["jobname"], read["io_bytes"], read["total_ios"], write["total_ios"]
            )
        });
        let entries: Vec<String> = entries.collect();
        let names = fs::read_dir(bench.path("data")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        (entries, names)
    });
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0].0[0], "\"create\" 40960 10 0");
    assert_eq!(found[0].1.len(), 31, "those of filedelete are gone: {:?}", found[0].1);
}

/// Amounts with both values of `kb_base`: io_bytes of the null engine.
#[test]
fn sizes_are_those_of_an_installed_fio() {
    if fio_is_missing("sizes_are_those_of_an_installed_fio") {
        return;
    }
    let sizes = [
        ("64k", "4k"),
        ("10k", "4k"),
        ("10KiB", "1k"),
        ("1m", "64k"),
        ("1mib", "64k"),
        ("1mb", "100k"),
        ("10MiB", "1m"),
        ("2MB", "1kib"),
        ("0x10000", "0x1000"),
        ("100000", "1000"),
        ("96kib", "32kb"),
        ("7m", "1mib"),
        ("512b", "512"),
        ("33k", "16k"),
        ("1g", "64m"),
        ("1gib", "64m"),
        ("1000000", "4096"),
        ("12345k", "3k"),
        ("5mib", "5k"),
        ("3000kb", "4kib"),
    ];
    let mut job = String::from("[global]\nioengine=null\nrw=read\nthread\n");
    let mut count = 0;
    for base in ["1024", "1000"] {
        for (size, block) in sizes {
            job.push_str(&format!(
                "[size-{count}]\nstonewall\nkb_base={base}\nsize={size}\nbs={block}\n"
            ));
            count += 1;
        }
        for (amount, loops) in [
            ("io_size=100k", 1),
            ("io_size=10m", 1),
            ("number_ios=7", 1),
            ("loops=3", 3),
            ("io_size=900k", 2),
            ("loops=10", 10),
            ("io_size=33333", 1),
            ("number_ios=100000", 1),
            ("io_size=4k", 1),
            ("io_size=0", 1),
        ] {
            let loops = if amount.starts_with("loops") { 1 } else { loops };
            job.push_str(&format!(
                "[amount-{count}]\nstonewall\nkb_base={base}\nsize=1m\nbs=12k\n{amount}\nloops={}\n",
                if amount.starts_with("loops") { amount.trim_start_matches("loops=").parse().unwrap() } else { loops }
            ));
            count += 1;
        }
    }
    assert_eq!(count, 60);
    let bench = Bench::new();
    fs::create_dir_all(bench.path("data")).unwrap();
    fs::write(bench.path("data/sizes.fio"), &job).unwrap();
    let arguments = ["--output-format=json", "sizes.fio"];
    let theirs = json(&in_data(&bench, Path::new(FIO), &arguments));
    let ours = json(&fslab_fio(&bench, &arguments));
    let bytes = |document: &Value| {
        let jobs = document["jobs"].as_array().unwrap();
        let one = |job: &Value| {
            format!("{} {} {}", job["jobname"], job["read"]["io_bytes"], job["read"]["total_ios"])
        };
        jobs.iter().map(one).collect::<Vec<_>>()
    };
    assert_eq!(bytes(&ours), bytes(&theirs));
}

#[test]
fn the_command_line_of_fio_has_the_outputs_of_fio() {
    let bench = Bench::new();
    let arguments = [
        "--name=a",
        "--rw=randrw",
        "--size=64k",
        "--name=b",
        "--stonewall",
        "--rw=write",
        "--size=32k",
        "--end_fsync=1",
    ];
    let with = |format: &str| {
        let format = format!("--output-format={format}");
        let all: Vec<&str> = [format.as_str()].into_iter().chain(arguments).collect();
        fslab_fio(&bench, &all)
    };
    let document = json(&with("json"));
    assert!(document["fio version"].as_str().unwrap().starts_with("fslab-"));
    let jobs = document["jobs"].as_array().unwrap();
    let names: Vec<&str> = jobs.iter().map(|job| job["jobname"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b"]);
    let both = |key: &str| {
        jobs[0]["read"][key].as_u64().unwrap() + jobs[0]["write"][key].as_u64().unwrap()
    };
    assert_eq!((both("io_bytes"), both("total_ios")), (65_536, 16));
    assert_eq!(jobs[1]["write"]["io_bytes"], 32_768);
    assert_eq!(jobs[1]["job options"]["rw"], "write");
    assert_eq!([&jobs[0]["groupid"], &jobs[1]["groupid"]], [0, 1]);
    let plus = json(&with("json+"));
    assert!(plus["jobs"][1]["write"]["clat_ns"]["bins"].as_object().unwrap().len() > 1);
    let terse = with("terse");
    let lines: Vec<Vec<&str>> =
        terse.stdout.lines().map(|line| line.split(';').collect()).collect();
    assert_eq!(lines.iter().map(Vec::len).collect::<Vec<_>>(), [121, 121]);
    assert_eq!(lines[1][2], "b");
    assert_eq!(lines[1][46], "32", "KiB written");
    let normal = with("normal").stdout;
    for line in [
        "b: (groupid=1, jobs=1): err= 0",
        "  write: IOPS=",
        "    clat percentiles (",
        "Run status group 1 (all jobs):",
        "  WRITE: bw=",
        "issued rwts: total=0,8,0,0",
    ] {
        assert!(normal.contains(line), "{line}: {normal}");
    }
    assert_eq!(with("json").stderr, "", "messages would break scripts that join both");
    let data: Vec<_> =
        fs::read_dir(bench.path("data")).unwrap().map(|own| own.unwrap().file_name()).collect();
    assert_eq!(data.len(), 2, "files stay, as with fio: {data:?}");
    bench.has_nothing_to_undo();
}

#[test]
fn a_link_named_fio_is_the_command() {
    let bench = Bench::new();
    let link = bench.path("fio");
    symlink(env!("CARGO_BIN_EXE_fslab"), &link).unwrap();
    let version = in_data(&bench, &link, &["--version"]);
    assert!(version.stdout.starts_with("fslab-"), "{version:?}");
    let ran = in_data(&bench, &link, &["--name=x", "--size=4k", "--minimal", "--rw=write"]);
    assert!(ran.stdout.starts_with("3;fslab-"), "{ran:?}");
}

#[test]
fn errors_of_jobs_have_exit_status_1_and_an_empty_stdout() {
    let bench = Bench::new();
    for (arguments, reason) in [
        (&["--name=a", "--rw=read", "--sise=4k"][..], "did you mean `size`"),
        (&["--name=a", "--filename=/dev/null", "--size=4k"], "is a device"),
        (&["missing.fio"], "cannot read the job file"),
        (&["--bs=4k"], "--name"),
        (&["--client=host", "--name=a"], "not supported"),
        (&["--output-format=xml", "--name=a"], "use normal, json"),
        (&["--readonly", "--name=a", "--rw=write", "--size=4k"], "--readonly"),
        (&[], "no job is given"),
    ] {
        let ended = fslab_fio(&bench, arguments);
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(1), ""), "{arguments:?} {ended:?}");
        assert!(ended.stderr.contains(reason), "{arguments:?}: {}", ended.stderr);
    }
    assert_eq!(fs::read_dir(bench.path("data")).unwrap().count(), 0);
}

#[test]
fn files_of_others_are_not_overwritten_without_the_option() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("data")).unwrap();
    let file = bench.path("data/db.img");
    fs::write(&file, vec![7; 65_536]).unwrap();
    let write = ["--name=w", "--rw=write", "--size=64k", "--filename=db.img"];
    let refused = fslab_fio(&bench, &write);
    assert_eq!(refused.status, Some(1));
    assert!(refused.stderr.contains("--fslab-reuse lets the job overwrite it"), "{refused:?}");
    assert!(fs::read(&file).unwrap().iter().all(|byte| *byte == 7));
    let read = ["--name=r", "--rw=read", "--size=64k", "--filename=db.img"];
    assert_eq!(fslab_fio(&bench, &read).status, Some(0), "a large file is read as it is");
    let larger = ["--name=r", "--rw=read", "--size=128k", "--filename=db.img"];
    assert_eq!(fslab_fio(&bench, &larger).status, Some(1), "it would be replaced");
    let reuse: Vec<&str> = write.into_iter().chain(["--fslab-reuse"]).collect();
    assert_eq!(fslab_fio(&bench, &reuse).status, Some(0));
    assert!(fs::read(&file).unwrap().iter().any(|byte| *byte != 7));
    assert_eq!(fslab_fio(&bench, &write).status, Some(0), "fslab wrote the file");
    symlink("/etc/hostname", bench.path("data/link")).unwrap();
    let link = ["--name=w", "--rw=write", "--size=4k", "--filename=link"];
    assert_eq!(fslab_fio(&bench, &link).status, Some(1), "the target is not from fslab");
}

#[test]
fn job_files_run_with_includes_variables_and_sections() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("data/common")).unwrap();
    fs::write(bench.path("data/common/global.inc"), "[global]\nsize=${SIZE}\nbs=8k\n").unwrap();
    let job = "include common/global.inc\n[a]\nrw=write\n[b]\nstonewall\nrw=read\nzonemode=zbd\n";
    fs::write(bench.path("data/db.fio"), job).unwrap();
    let refused = fslab_fio(&bench, &["db.fio"]);
    assert!(refused.stderr.contains("db.fio:7: zonemode is not supported"), "{refused:?}");
    let run = bench.path("kept.fslab").display().to_string();
    let keep = format!("--fslab-run={run}");
    let arguments = [
        "db.fio",
        "--fslab-drop=zonemode",
        "--section=b",
        &keep,
        "--fslab-repetitions=2",
        "--output-format=json",
    ];
    let document = json(&fslab_fio(&bench, &arguments));
    assert_eq!(document["jobs"][0]["jobname"], "b");
    assert_eq!(document["jobs"][0]["read"]["total_ios"], 8);
    assert_eq!(document["fslab"]["jobs"][0]["repetitions"], 2);
    let record = store::read(Path::new(&run)).unwrap();
    assert_eq!(record.trials.len(), 2);
    fs::write(bench.path("data/cycle.fio"), "include cycle.fio\n").unwrap();
    let cycle = fslab_fio(&bench, &["cycle.fio"]);
    assert!(cycle.stderr.contains("cycle.fio:1: files include each other"), "{cycle:?}");
}

#[test]
fn jobs_are_workloads_of_plans_run_and_bench() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("data")).unwrap();
    let job = bench.path("db.fio").display().to_string();
    fs::write(
        &job,
        "[log]\nrw=write\nsize=64k\nfsync=1\nfilename=/srv/x/log\n[data]\nrw=randread\nsize=64k\n",
    )
    .unwrap();
    let data = bench.path("data").display().to_string();
    bench.ends(0, &["bench", &job, &data, "-o", "bench.fslab"]);
    let record = store::read(&bench.path("bench.fslab")).unwrap();
    let phases: Vec<&str> = record.cells[0].phases.iter().map(|own| own.name.as_str()).collect();
    assert!(phases.contains(&"log") && phases.contains(&"data"), "{phases:?}");
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0, "all files are removed");
    let shown = bench.ends(0, &["show", &job, "--directory", &data]).stdout;
    assert!(shown.contains("fio"), "{shown}");
    let plan = bench.plan(&format!(
        "repetitions = 1\nseed = 1\n[storage]\ndirectory = \"{data}\"\n[axes]\nworkload = \
         [{{ suite = \"fio\", job = \"{job}\", set = [\"bs=4k\", \"bs=8k\"], section = \"data\" }}]\n"
    ));
    bench.ends(0, &["run", &plan, "-o", "plan.fslab"]);
    let record = store::read(&bench.path("plan.fslab")).unwrap();
    let labels: Vec<&str> = record.cells.iter().map(|cell| cell.label.as_str()).collect();
    assert_eq!(labels.len(), 2);
    assert!(labels[0].contains("bs=4k") && labels[1].contains("bs=8k"), "{labels:?}");
    assert!(record.trials.iter().all(|own| own.outcome == model::record::Outcome::Measured));
    let wrong = bench.plan(&format!(
        "[storage]\ndirectory = \"{data}\"\n[axes]\nworkload = [{{ suite = \"fio\", text = \
         \"[a]\\nsize=1m\\nsise=2\" }}]\n"
    ));
    let refused = bench.ends(2, &["show", &wrong]);
    assert!(refused.stderr.contains("text:3: unknown option `sise`"), "{refused:?}");
}

#[test]
fn sections_that_exit_all_end_together() {
    let bench = Bench::new();
    let job = "[global]\nsize=1m\nexitall\nioengine=null\n[short]\nrw=read\n[long]\nrw=read\ntime_based\n\
               runtime=100\n";
    fs::create_dir_all(bench.path("data")).unwrap();
    fs::write(bench.path("data/all.fio"), job).unwrap();
    let document = json(&fslab_fio(&bench, &["all.fio", "--output-format=json"]));
    assert!(document["jobs"][1]["read"]["runtime"].as_u64().unwrap() < 50_000, "{document}");
}

#[test]
fn plans_in_the_guide_to_fio_and_its_commands_work() {
    let guide = fs::read_to_string(root().join("docs/guides/fio.md")).unwrap();
    let block = |language: &str| {
        let start = format!("```{language}\n");
        let found = guide.split(&start).skip(1).filter_map(|rest| rest.split_once("\n```"));
        found.map(|(block, _)| block.to_owned()).collect::<Vec<_>>()
    };
    let bench = Bench::new();
    fs::create_dir_all(bench.path("data")).unwrap();
    let jobs = block("ini");
    assert!(!jobs.is_empty());
    fs::write(bench.path("data/db.fio"), &jobs[0]).unwrap();
    for job in &jobs {
        fs::write(bench.path("data/own.fio"), job).unwrap();
        let checked = fslab_fio(&bench, &["own.fio", "--parse-only"]);
        assert_eq!(checked.status, Some(0), "{job}: {checked:?}");
    }
    for plan in block("toml") {
        let plan = plan.replace("db.fio", &bench.path("data/db.fio").display().to_string());
        bench.ends(0, &["show", &bench.plan(&plan)]);
    }
    for command in block("sh").iter().flat_map(|own| own.lines()) {
        let Some(arguments) = command.strip_prefix("fslab fio ") else { continue };
        let arguments: Vec<&str> = arguments.split_whitespace().chain(["--parse-only"]).collect();
        let checked = fslab_fio(&bench, &arguments);
        assert_eq!(checked.status, Some(0), "{command}: {checked:?}");
    }
}
