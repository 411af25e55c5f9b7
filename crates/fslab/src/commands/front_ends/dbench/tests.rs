use super::{super::options::Parsed, *};

fn work(line: &str) -> Result<String, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match PROGRAM.parse(&words) {
        Ok(Parsed::Run(given)) => workload(&given).map_err(|error| error.message()),
        Ok(Parsed::Print(text)) => Err(text),
        Err(failure) => Err(failure.message()),
    }
}

#[test]
fn options_become_parameters_of_the_suite() {
    let start = "suite = \"dbench\", clients = 2, loadfile = \"office\"";
    for (line, expected) in [
        ("", "runtime = \"600s\""),
        ("-t 5", "runtime = \"5s\""),
        ("--timelimit=5 --warmup 0", "runtime = \"5s\", ramp_time = \"0s\""),
        ("-t5 -s", "runtime = \"5s\", o_sync = true"),
        ("-t 5 -S", "runtime = \"5s\", sync_directories = true"),
        ("-t 5 -F", "runtime = \"5s\", fsync_writes = true"),
        ("-t 5 -x", "runtime = \"5s\", xattr = true"),
        ("-t 5 --no-resolve", "runtime = \"5s\", resolve = false"),
        ("-t 5 -R 2.5", "runtime = \"5s\", rate = \"2500000B\""),
        ("--run-once -t 5", "replay_count = 1"),
        ("-t 5 -B fileio --clients-per-process=1 --skip-cleanup", "runtime = \"5s\""),
        ("-t 5 --machine-readable -D /srv", "runtime = \"5s\""),
        (
            "-t 5 --sync --sync-dir --fsync --xattr",
            "runtime = \"5s\", o_sync = true, sync_directories = true, fsync_writes = true, xattr = true",
        ),
    ] {
        let line = format!("2 --fslab-office {line}");
        assert_eq!(work(&line).unwrap(), format!("{start}, {expected}"), "{line}");
    }
}

#[test]
fn timestamps_of_a_loadfile_are_used_without_a_rate() {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let plain = file("plain", "# 1 comment\nDeltree \"/clients/client1\" 0x00000000\n");
    let timed = file("timed", "\n0.5 Deltree \"/clients/client1\" 0x00000000\n");
    assert!(!work(&format!("1 -c {plain}")).unwrap().contains("timestamps"));
    assert!(work(&format!("1 -c {timed}")).unwrap().ends_with("use_timestamps = true"));
    let paced = work(&format!("1 --loadfile={timed} -R 1")).unwrap();
    assert!(paced.ends_with("rate = \"1000000B\""), "{paced}");
}

#[test]
fn wrong_command_lines_have_a_hint() {
    for (line, message) in [
        ("", "the number of clients is missing; use for example"),
        ("0", "CLIENTS 0: use a number from 1 to 1000"),
        ("many", "CLIENTS many: use a number"),
        ("1 2", "unknown argument `2`"),
        ("1 -t 0", "-t 0: use a number from 1"),
        ("1 --warmup x", "--warmup x: use a number from 0"),
        ("1 -R 0", "use a number of MB/s above 0"),
        ("1 -R x", "use a number of MB/s above 0"),
        ("1 -B nfs", "-B nfs is not supported"),
        ("1 --clients-per-process 2", "each client is a process; use 1"),
        ("1 -c /nonexistent", "cannot read the loadfile /nonexistent"),
        ("1 -c x --fslab-office", "exclude each other"),
        ("1 --per-client-results", "is not supported: operations are not recorded per client"),
        ("1 -T x", "-T is not supported"),
        ("1 --fake-io", "--fake-io is not supported"),
        ("1 --xatr", "did you mean `--xattr`?"),
    ] {
        let error = if line.contains("-c") || line.is_empty() {
            work(line).unwrap_err()
        } else {
            work(&format!("{line} --fslab-office")).unwrap_err()
        };
        assert!(error.contains(message), "{line}: {error}");
    }
}

#[test]
fn the_suite_accepts_every_workload() {
    let catalog = rig::Catalog::embedded();
    for line in ["4", "4 --run-once", "1 -t 1 -sSFx --no-resolve --warmup=0", "2 -R 0.5"] {
        let order = Order {
            program: "dbench",
            title: "dbench",
            repetitions: 1,
            seed: None,
            directory: "/var/tmp",
            workloads: vec![work(&format!("{line} --fslab-office")).unwrap()],
            run: None,
        };
        let plan = order.plan(&catalog).map_err(|failure| failure.message()).unwrap();
        assert_eq!(plan.cells.len(), 1, "{line}");
    }
}
