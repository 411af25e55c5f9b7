use super::{super::options::Parsed, *};

fn work(line: &str) -> Result<Work, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match PROGRAM.parse(&words) {
        Ok(Parsed::Run(given)) => Work::new(&given).map_err(|error| error.message()),
        Ok(Parsed::Print(text)) => Err(text),
        Err(failure) => Err(failure.message()),
    }
}

/// Keys of a command line after the phases.
fn keys(line: &str) -> String {
    let work = work(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let (_, keys) = work.workload.split_once("], ").unwrap();
    keys.to_owned()
}

/// Phases of a command line.
fn operations(line: &str) -> String {
    let work = work(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let (_, rest) = work.workload.split_once('[').unwrap();
    rest.split(']').next().unwrap().replace('"', "")
}

#[test]
fn options_become_parameters_of_the_suite() {
    for (line, expected) in [
        ("-n 10", "entries = 10"),
        ("-n=1k", "entries = 1024"),
        ("-n10", "entries = 10"),
        ("-I 5", "entries_per_directory = 5"),
        ("-n 10 --fslab-workers 3", "workers = 3, entries = 10"),
        ("-n 10 -z 2 -b 3", "entries = 10, tree_depth = 2, tree_branching = 3"),
        ("-n 10 -z2 -L", "entries = 10, tree_depth = 2, leaves_only = true"),
        ("-n 10 -u", "entries = 10, sharing = \"private\""),
        ("-n 10 -S -F", "entries = 10, sharing = \"file\""),
        ("-n 10 -w 2k -e 100", "entries = 10, file_size = \"2048B\", read_size = \"100B\""),
        ("-n 10 -w=1 -y", "entries = 10, file_size = \"1B\", fsync_each = true"),
        (
            "-n 10 -w 1 -e 1 -X",
            "entries = 10, file_size = \"1B\", read_size = \"1B\", verify = true",
        ),
        ("-n 10 -W 3", "entries = 10, stonewall_time = \"3s\""),
        ("-n 10 -c", "entries = 10, first_worker_creates = true"),
        ("-n 10 -R", "entries = 10, order = \"random\""),
        ("-n 10 -Y", "entries = 10, sync_after = true"),
        ("-n 10 -N 1", "entries = 10, worker_shift = 1"),
        ("-n 10 -t -v -p 3 -V 2 -G 1 -a POSIX -d /srv", "entries = 10"),
        ("-n 10 --warningAsErrors -P -Z -i 2", "entries = 10"),
    ] {
        assert_eq!(keys(line), expected, "{line}");
    }
    assert_eq!(work("-n 1 -i 4").unwrap().repetitions, 4);
    assert_eq!(work("-n 1 --fslab-repetitions 6").unwrap().repetitions, 6);
    assert_eq!(work("-n 1 -R --random-seed=9").unwrap().seed, Some(9));
    for (line, tables) in [
        ("-n 1", MdtestTables::Rates),
        ("-n 1 -P", MdtestTables::Both),
        ("-n 1 -Z", MdtestTables::Times),
        ("-n 1 -ZP", MdtestTables::Times),
    ] {
        assert_eq!(work(line).unwrap().command.tables, tables, "{line}");
    }
}

#[test]
fn options_select_phases() {
    let all = suites::MDTEST_PHASES.join(", ");
    for (line, expected) in [
        ("-n 1", all.as_str()),
        ("-n 1 -F -D", all.as_str()),
        ("-n 1 -F", "tree-create, file-create, file-stat, file-read, file-remove, tree-remove"),
        (
            "-n 1 -D",
            "tree-create, directory-create, directory-stat, directory-rename, directory-remove, \
             tree-remove",
        ),
        ("-n 1 -C -F", "tree-create, file-create"),
        ("-n 1 -T", "directory-stat, file-stat"),
        ("-n 1 -E", "file-read"),
        ("-n 1 -r -F", "file-remove, tree-remove"),
        ("-n 1 -U", "directory-rename"),
        ("-n 1 -CTF", "tree-create, file-create, file-stat"),
    ] {
        assert_eq!(operations(line), expected, "{line}");
    }
}

#[test]
fn a_status_file_replaces_the_number_of_files() {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = place.path().join("status").display().to_string();
    let line = |options: &str| format!("-n 10 -F -x {path} {options}");
    assert_eq!(keys(&line("-T")), "entries = 10", "there is no file yet");
    fs::write(&path, "7\n").unwrap();
    assert_eq!(keys(&line("-T")), "entries = 7");
    assert_eq!(keys(&line("-C -W 1")), "entries = 10, stonewall_time = \"1s\"");
    let creates = work(&line("-C -W 1")).unwrap();
    assert!(creates.status.is_some() && !creates.uses_status);
    fs::write(&path, "many").unwrap();
    assert!(work(&line("-T")).unwrap_err().contains("the file contains no number"));
}

#[test]
fn wrong_command_lines_have_a_hint() {
    for (line, message) in [
        ("", "the number of files is missing; use for example -n 1000"),
        ("-n", "-n requires an argument"),
        ("-n 0", "-n 0: use a number from 1"),
        ("-n x", "-n x: use a number"),
        ("-n 1 -z 65", "-z 65: use a number from 0 to 64"),
        ("-n 1 -b 0", "-b 0: use a number from 1"),
        ("-n 1 -I 1", "-n and -I exclude each other"),
        ("-n 1 -u -S -F", "-u and -S exclude each other"),
        ("-n 1 -S", "-S requires -F"),
        ("-n 1 -S -D", "-S and -D exclude each other"),
        ("-n 1 -E -D", "leave no phase"),
        ("-n 1 -w 99999999999t", "use a number from 0 to"),
        ("-n 1 -a HDFS", "-a HDFS: only POSIX is supported"),
        ("-n 1 -d a@b", "several directories are not supported"),
        ("-n 1 dir", "use -d dir for a directory"),
        ("-n 1 -i 0", "-i 0: use a number from 1"),
        ("-n 1 -i 2 --fslab-repetitions 2", "exclude each other"),
        ("-n 1 --fslab-workers 0", "--fslab-workers 0: use a number from 1 to 1024"),
        ("-n 1 -W x", "-W x: use a number"),
        ("-n 1 -N x", "-N x: use a number"),
        ("-n 1 --random-seed x", "--random-seed x: use a number"),
        ("-n 1 -B", "-B is not supported"),
        ("-n 1 -k", "-k is not supported"),
        ("-n 1 -f 1", "-f is not supported: all workers take part"),
        ("-n 1 -l 1", "-l is not supported"),
        ("-n 1 -s 1", "-s is not supported"),
        ("-n 1 --savePerOpDataCSV=x", "--savePerOpDataCSV is not supported"),
        ("-n 1 --saveRankPerformanceDetails x", "is not supported"),
        ("-n 1 --showRankStatistics", "is not supported"),
        ("-n 1 --run-cmd-before-phase x", "use suite `command`"),
        ("-n 1 --run-cmd-after-phase x", "use suite `command`"),
        ("-n 1 --dataPacketType=t", "is not supported"),
        ("-n 1 --allocateBufferOnGPU", "is not supported"),
        ("-n 1 --gpuDirect", "is not supported"),
        ("-n 1 --posix.odirect", "is not supported"),
        ("-n 1 --random-sed=1", "did you mean `--random-seed`?"),
    ] {
        let error = work(line).unwrap_err();
        assert!(error.contains(message), "{line}: {error}");
    }
}

#[test]
fn every_option_of_the_table_is_tested() {
    let tests = include_str!("tests.rs");
    for option in PROGRAM.all() {
        let name = option.names[0];
        let plain = name.strip_prefix('-').filter(|letter| letter.len() == 1);
        let bundled = |letter: &str| tests.contains(&format!("-{letter}"));
        let found = tests.contains(name) || plain.is_some_and(bundled);
        assert!(found || name == "--fslab-run", "{name}");
    }
}

#[test]
fn the_suite_accepts_every_workload() {
    let catalog = rig::Catalog::embedded();
    for line in [
        "-n 10",
        "-I 3 -z 2 -b 2 -L -u --fslab-workers 2 -N 1",
        "-n 10 -F -S -c --fslab-workers 2",
        "-n 10 -F -w 3901 -e 3901 -yXY -W 1 -R",
        "-n 10 -D -c --fslab-workers 3",
        "-n 10 -E -w 10 -e 10",
    ] {
        let order = Order {
            program: "mdtest",
            title: "mdtest",
            repetitions: 1,
            seed: None,
            directory: "/var/tmp",
            workloads: vec![work(line).unwrap().workload],
            run: None,
        };
        let plan = order.plan(&catalog).map_err(|failure| failure.message()).unwrap();
        assert_eq!(plan.cells.len(), 1, "{line}");
    }
}
