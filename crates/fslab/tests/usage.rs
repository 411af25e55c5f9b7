//! Usage errors: the message names the argument as typed, the reason, and a hint.

use std::fs;

use expect_test::{Expect, expect};

use crate::support::Bench;

/// Runs invalid command lines and compares their messages. Nothing is measured.
#[track_caller]
fn messages(commands: &[&str], expected: Expect) {
    let bench = Bench::new();
    fs::create_dir(bench.path("data")).unwrap();
    fs::write(bench.path("file"), "text").unwrap();
    let mut text = String::new();
    for command in commands {
        let arguments: Vec<&str> = command.split(' ').collect();
        let output = bench.ends(2, &arguments);
        assert_eq!(output.stdout, "", "{command}");
        text.push_str(&format!("$ fslab {command}\n{}", output.stderr));
    }
    expected.assert_eq(&text);
    assert_eq!(fs::read_dir(bench.path("data")).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(bench.path("file")).unwrap(), "text");
}

#[test]
fn options_of_fio_are_answered_with_those_of_fslab() {
    messages(
        &[
            "bench randread-4k data --bs 4k",
            "bench randread-4k data --size=1G",
            "bench randread-4k data --numjobs 4",
            "bench randread-4k data --iodepth=32",
            "bench randread-4k data --ioengine libaio",
            "bench randread-4k data --ioengine psync",
            "bench randread-4k data --set io_engine=libaio",
            "bench --name=job --rw=randwrite",
            "bench --rw=randwrite",
            "bench randread-4k data --time 5s",
            "run demo --bs 4k",
            "compare a.fslab b.fslab --metric iops",
        ],
        expect![[r#"
            $ fslab bench randread-4k data --bs 4k
            error: fslab bench has no option --bs; use --set block_size=4KiB
            $ fslab bench randread-4k data --size=1G
            error: fslab bench has no option --size; use --file-size 1G
            $ fslab bench randread-4k data --numjobs 4
            error: fslab bench has no option --numjobs; use --set workers=4
            $ fslab bench randread-4k data --iodepth=32
            error: fslab bench has no option --iodepth; use --set queue_depth=32
            $ fslab bench randread-4k data --ioengine libaio
            error: fslab bench has no option --ioengine; use --set io_engine=io_uring
            $ fslab bench randread-4k data --ioengine psync
            error: fslab bench has no option --ioengine; use --set io_engine=pread
            $ fslab bench randread-4k data --set io_engine=libaio
            error: --set io_engine=libaio: `libaio` is not one of pread, read, stdio, preadv2, mmap, io_uring, io_submit, copy_file_range, sendfile, splice, null; did you mean `io_uring`?
            $ fslab bench --name=job --rw=randwrite
            error: fslab bench has no option --name; the job is the workload, and its files are created in DIRECTORY; `fslab list workloads` lists all workloads
            $ fslab bench --rw=randwrite
            error: fslab bench has no option --rw; the workload determines the access pattern; use for example randwrite-4k (`fslab list workloads`)
            $ fslab bench randread-4k data --time 5s
            error: fslab bench has no option --time; use --runtime 5s
            $ fslab run demo --bs 4k
            error: fslab run has no option --bs; use --set block_size=4KiB
            $ fslab compare a.fslab b.fslab --metric iops
            error: --metric iops: unknown metric `iops`; did you mean `ops_rate`? `fslab list metrics` lists all metrics
        "#]],
    );
}

#[test]
fn durations_counts_and_percentages_are_checked() {
    messages(
        &[
            "bench randread-4k data --runtime 0",
            "bench randread-4k data --runtime 1s,0s",
            "bench randread-4k data --runtime -5s",
            "bench randread-4k data --runtime 5",
            "bench randread-4k data --runtime 10sec",
            "bench randread-4k data --runtime 1.5s",
            "bench randread-4k data --runtime",
            "bench randread-4k data --file-size -1",
            "bench randread-4k data --file-size 4kb",
            "bench randread-4k data --repetitions 0",
            "bench randread-4k data --repetitions -1",
            "bench dbench data --runtime 0s",
            "bench dbench data --set runtime=0s",
            "run demo --set time_limit=0s",
            "run demo --set time_limit=-1h",
            "run demo --set repetitions=0",
            "compare a.fslab b.fslab --gate 5",
            "compare a.fslab b.fslab --margin -5%",
            "loadfile --iterations -1",
        ],
        expect![[r#"
            $ fslab bench randread-4k data --runtime 0
            error: --runtime 0: the measured time must be greater than 0; use for example --runtime 10s
            $ fslab bench randread-4k data --runtime 1s,0s
            error: --runtime 1s,0s: the measured time must be greater than 0; use for example --runtime 10s
            $ fslab bench randread-4k data --runtime -5s
            error: --runtime -5s: `-5s` is negative; use a duration such as `10s`
            $ fslab bench randread-4k data --runtime 5
            error: --runtime 5: `5` has no unit; use ns, us, ms, s, min, or h, such as `5s`
            $ fslab bench randread-4k data --runtime 10sec
            error: --runtime 10sec: `10sec` has the unknown unit `sec`; use ns, us, ms, s, min, or h, such as `10s`
            $ fslab bench randread-4k data --runtime 1.5s
            error: --runtime 1.5s: `1.5s` is not an integer number of its unit; use a smaller unit, such as `1500ms`
            $ fslab bench randread-4k data --runtime
            error: --runtime has no value; use --runtime TIME
            $ fslab bench randread-4k data --file-size -1
            error: --file-size -1: `-1` is not a size; use an integer and a unit, such as `4KiB`
            $ fslab bench randread-4k data --file-size 4kb
            error: --file-size 4kb: `4kb` is ambiguous: 4000 or 4096 bytes; write `4KiB` for 4096, or `4000B`
            $ fslab bench randread-4k data --repetitions 0
            error: --repetitions 0: must be an integer from 1 to 1000
            $ fslab bench randread-4k data --repetitions -1
            error: --repetitions -1: must be an integer from 1 to 1000
            $ fslab bench dbench data --runtime 0s
            error: --runtime 0s: the measured time must be greater than 0; use for example --runtime 10s
            $ fslab bench dbench data --set runtime=0s
            error: `runtime` is 0; use a duration such as "60s", or set `replay_count` to at least 1
            $ fslab run demo --set time_limit=0s
            error: --set time_limit=0s: invalid value `0s` for `time_limit`; use a duration greater than 0
            $ fslab run demo --set time_limit=-1h
            error: --set time_limit=-1h: `-1h` is negative; use a duration such as `10s`
            $ fslab run demo --set repetitions=0
            error: --set repetitions=0: invalid value `0` for `repetitions`; expected integer, 1 to 1000
            $ fslab compare a.fslab b.fslab --gate 5
            error: --gate 5: must be a percentage with its sign, greater than 0% and at most 100%, such as 5% or 2.5%
            $ fslab compare a.fslab b.fslab --margin -5%
            error: --margin -5%: must be a percentage with its sign, greater than 0% and at most 100%, such as 5% or 2.5%
            $ fslab loadfile --iterations -1
            error: --iterations -1: must be an integer of at least 0
        "#]],
    );
}

#[test]
fn misspelled_and_contradictory_arguments() {
    messages(
        &[
            "rnu demo",
            "list workload",
            "list everything",
            "bench randread-4k data --repeats 3",
            "bench randread-4k data --pilot",
            "bench randread-4k data --quite",
            "bench randread-4k data extra",
            "run",
            "run plan.toml --resume file",
            "run demo --reboot --no-reboot",
            "run demo --profile fast",
            "run demo --scale 0",
            "run tasks-2006 --scale 1/40",
            "run demo --set filesystem",
            "run demo --set workload=oltp-8k",
            "run demo --set foo=1",
            "compare a.fslab b.fslab --strict",
        ],
        expect![[r#"
            $ fslab rnu demo
            error: fslab has no command `rnu`; did you mean `fslab run`? `fslab --help` lists all commands
            $ fslab list workload
            error: unknown KIND `workload`; did you mean `workloads`?
            $ fslab list everything
            error: unknown KIND `everything`; use filesystems, suites, workloads, plans, settings, metrics, warnings, published, charts, studies
            $ fslab bench randread-4k data --repeats 3
            error: fslab bench has no option --repeats; use --repetitions 3
            $ fslab bench randread-4k data --pilot
            error: fslab bench has no option --pilot; --pilot is an option of `fslab run`
            $ fslab bench randread-4k data --quite
            error: fslab bench has no option --quite; did you mean --quiet?
            $ fslab bench randread-4k data extra
            error: fslab bench: unexpected argument `extra`; see `fslab bench --help`
            $ fslab run
            error: fslab run: PLAN|WORKLOAD is missing; see `fslab run --help`
            $ fslab run plan.toml --resume file
            error: --resume continues with the plan and the options stored in the run file; remove PLAN|WORKLOAD
            $ fslab run demo --reboot --no-reboot
            error: --reboot and --no-reboot exclude each other; remove one of them
            $ fslab run demo --profile fast
            error: --profile fast: unknown value; use quick, standard, rigorous
            $ fslab run demo --scale 0
            error: --scale 0: must be a positive number, such as 2 or 1/64; the plan has no named scales
            $ fslab run tasks-2006 --scale 1/40
            error: the memory limit is about 19.2 MiB at scale 1/40, the minimum is 64MiB; use `--scale 1/12` or a larger scale
            $ fslab run demo --set filesystem
            error: --set filesystem: no `=` in `filesystem`; use KEY=VALUE, such as block_size=64KiB
            $ fslab run demo --set workload=oltp-8k
            error: --set workload=oltp-8k: `workload` cannot be overridden; change it in the text of the plan
            $ fslab run demo --set foo=1
            error: --set foo=1: the plan has no key `foo`; valid keys: filesystem, scheduler, fill_percent, profile, repetitions, aa_control, time_limit, invalid_trials, design, seed, fsck, isolation, guest, guest_device, guest_device_latency, study, memory_limit, external_directory, image_size, image_count, image_directory, image_allocation, device, directory, mount.OPTION, mkfs.OPTION, a name of `fslab list settings`, or a parameter of the plan's suites (`fslab list suites`)
            $ fslab compare a.fslab b.fslab --strict
            error: fslab compare: --gate is missing; see `fslab compare --help`
        "#]],
    );
}

#[test]
fn filesystems_programs_and_values_in_other_places() {
    messages(
        &[
            "run randread-4k --filesystem ext4 XFS",
            "run xfs",
            "run sh",
            "run nosuch",
            "run no/such",
            "run --command ls",
            "run randread-4k --filesystem EXT4 --image 4GiB",
            "run randread-4k --mount noatime",
            "run randread-4k --mkfs-options x",
            "run demo --set mount=noatime",
            "run demo --set mkfs=x",
            "report --json file",
        ],
        expect![[r#"
            $ fslab run randread-4k --filesystem ext4 XFS
            error: `XFS` is a filesystem, not a workload; names of filesystems follow --filesystem and are separated by commas, such as --filesystem ext4,xfs
            $ fslab run xfs
            error: `xfs` is a filesystem, not a workload; names of filesystems follow --filesystem and are separated by commas, such as --filesystem ext4,xfs
            $ fslab run sh
            error: `sh` is a program, not a plan or workload; to measure a program, use the workload `command` with --set run='sh ...'
            $ fslab run nosuch
            error: no plan or workload `nosuch`; use a TOML file, a workload (`fslab list workloads`), or a built-in plan: bonnie-2012, dbench-2012, demo, demo-directory, demo-guest, filesystem-cost, interference, io500-like, iozone-2009, kernel-history, metadata-scaling, smallfiles-2011, tasks-2006
            $ fslab run no/such
            error: cannot read the plan no/such: No such file or directory (os error 2); use a TOML file
            $ fslab run --command ls
            error: fslab run has no option --command; use the workload: `fslab run command --set run='ls'`
            $ fslab run randread-4k --filesystem EXT4 --image 4GiB
            error: --filesystem EXT4: unknown filesystem type `EXT4`; did you mean `ext4`?
            $ fslab run randread-4k --mount noatime
            error: fslab run has no option --mount; use --set mount.OPTION=VALUE, such as --set mount.noatime=true
            $ fslab run randread-4k --mkfs-options x
            error: fslab run has no option --mkfs-options; use --set mkfs.OPTION=VALUE, such as --set mkfs.-b=4096
            $ fslab run demo --set mount=noatime
            error: --set mount=noatime: `mount` cannot be overridden; set one option, such as mount.noatime=true
            $ fslab run demo --set mkfs=x
            error: --set mkfs=x: `mkfs` cannot be overridden; set one option, such as mkfs.-b=4096
            $ fslab report --json file
            error: fslab report has no option --json; use --format json
        "#]],
    );
}

#[test]
fn paths_that_cannot_be_used() {
    messages(
        &[
            "bench /data",
            "bench /data data",
            "bench data randread-4k",
            "bench randread-4k data -o data",
            "bench randread-4k data -o file",
            "bench randread-4k data -o nowhere/run.fslab",
            "run file --catalog nowhere",
            "report data",
            "verify file",
            "audit nowhere",
            "import nowhere",
            "loadfile nowhere",
        ],
        expect![[r#"
            $ fslab bench /data
            error: `/data` is a path, but WORKLOAD comes first, such as `fslab bench randread-4k /data`; workloads are randread-4k, seqwrite-1m, fsync-4k, oltp-8k, mail-spool, and others (`fslab list workloads`)
            $ fslab bench /data data
            error: `/data` is a path, but WORKLOAD comes first, such as `fslab bench randread-4k data`; workloads are randread-4k, seqwrite-1m, fsync-4k, oltp-8k, mail-spool, and others (`fslab list workloads`)
            $ fslab bench data randread-4k
            error: WORKLOAD and DIRECTORY are swapped; use `fslab bench randread-4k data`
            $ fslab bench randread-4k data -o data
            error: data is a directory; use another path with -o, such as data/run.fslab
            $ fslab bench randread-4k data -o file
            error: file exists and is not a run file of this version; use another path with -o
            $ fslab bench randread-4k data -o nowhere/run.fslab
            error: the run file nowhere/run.fslab cannot be written: nowhere is not a directory; use another path with -o, or create the directory
            $ fslab run file --catalog nowhere
            error: cannot read nowhere: No such file or directory (os error 2); --catalog requires a file in the format of filesystems.toml
            $ fslab report data
            error: data is not a run file: it is a directory; use a file written by `fslab run`
            $ fslab verify file
            error: cannot read or write the crash state file: not a crash state; check the path given to --crash-state
            $ fslab audit nowhere
            error: cannot read nowhere: No such file or directory (os error 2); check the path and its permissions
            $ fslab import nowhere
            error: cannot read the records in nowhere: No such file or directory (os error 2); check the path and its permissions
            $ fslab loadfile nowhere
            error: cannot open the loadfile nowhere: No such file or directory (os error 2); check the path and its permissions
        "#]],
    );
}

#[test]
fn an_existing_run_file_is_resumed_only_if_it_is_unfinished() {
    let bench = Bench::new();
    fs::create_dir(bench.path("data")).unwrap();
    let arguments = ["bench", "iozone", "data", "--file-size", "1MiB", "-q", "-o", "run.fslab"];
    bench.ends(0, &arguments);
    let message = bench.ends(2, &arguments).stderr;
    expect![[r#"
        error: run.fslab contains a complete run; use another path with -o, or show the run: fslab report run.fslab
    "#]].assert_eq(&message);
    let mut run = fs::read(bench.path("run.fslab")).unwrap();
    run.truncate(run.len() / 2);
    fs::write(bench.path("run.fslab"), run).unwrap();
    let message = bench.ends(2, &arguments).stderr;
    assert!(!message.contains("--resume"), "{message}");
    expect![[r#"
        error: run.fslab is a damaged run file; use another path with -o
    "#]]
    .assert_eq(&message);
}
