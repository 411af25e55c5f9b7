use super::{super::options::Parsed, *};

/// Work of a command line on a machine with 256 MiB.
fn work(line: &str) -> Result<Work, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match PROGRAM.parse(&words) {
        Ok(Parsed::Run(given)) => Work::new(&given, Memory(256)).map_err(|error| error.message()),
        Ok(Parsed::Print(text)) => Err(text),
        Err(failure) => Err(failure.message()),
    }
}

const FILE: &str = "file_size = \"512MiB\", block_size = \"8KiB\", seeks = 8192, seekers = 5";
const SMALL: &str =
    "\"seq-create\", \"seq-stat\", \"seq-delete\", \"ran-create\", \"ran-stat\", \"ran-delete\"";

#[test]
fn options_become_parameters_of_the_suite() {
    let blocks = "\"put-block\", \"rewrite\", \"get-block\", \"seeks\"";
    let both = "\"putc\", \"put-block\", \"rewrite\", \"getc\", \"get-block\", \"seeks\"";
    let bytewise = "char_io_size = \"3MiB\"";
    for (line, expected) in [
        ("", format!("{FILE}, {bytewise}, files = 16384, tests = [{both}, {SMALL}]")),
        ("-n 0", format!("{FILE}, {bytewise}, tests = [{both}]")),
        ("-s 0", format!("files = 16384, tests = [{SMALL}]")),
        ("-n0 -f", format!("{FILE}, tests = [{blocks}]")),
        ("-n0 -f20", format!("{FILE}, char_io_size = \"20MiB\", tests = [{both}]")),
        ("-n0 -fD", String::new()),
        ("-n0 -f -D", format!("{FILE}, direct_create = true, tests = [{blocks}]")),
        ("-n0 -f -b", format!("{FILE}, tests = [{blocks}], fsync_each = true")),
        (
            "-n 0 -f -s 1g:64k:2k:3",
            format!(
                "file_size = \"1GiB\", block_size = \"64KiB\", seeks = 2048, seekers = 3, tests = \
                 [{blocks}]"
            ),
        ),
        (
            "-n 0 -f -s 100::10 -r 50",
            format!(
                "file_size = \"100MiB\", block_size = \"8KiB\", seeks = 10, seekers = 5, tests = \
                 [{blocks}]"
            ),
        ),
        (
            "-n 0 -f -r0",
            format!(
                "file_size = \"300MiB\", block_size = \"8KiB\", seeks = 8192, seekers = 5, tests = \
                 [{blocks}]"
            ),
        ),
        (
            "-s 0 -n 2:8k:1024:4:16k",
            format!(
                "files = 2048, small_file_size_max = \"8KiB\", small_file_size_min = \"1KiB\", \
                 small_file_block_size = \"16KiB\", directories = 4, tests = [{SMALL}]"
            ),
        ),
        ("-s 0 -n 1m", format!("files = 1048576, tests = [{SMALL}]")),
        ("-s 0 -n 1:-1", format!("files = 1024, links = \"hard\", tests = [{SMALL}]")),
        ("-s 0 -n 1:-2", format!("files = 1024, links = \"symbolic\", tests = [{SMALL}]")),
        ("-s 0 -n 1 --fslab-workers 4", format!("files = 1024, tests = [{SMALL}], workers = 4")),
        ("-s 0 -n 1 -c 4", format!("files = 1024, tests = [{SMALL}]")),
    ] {
        if expected.is_empty() {
            assert!(work(line).unwrap_err().contains("-f D"), "an attached size, as in bonnie++");
            continue;
        }
        assert_eq!(
            work(line).unwrap().workload,
            format!("suite = \"bonnie\", {expected}"),
            "{line}"
        );
    }
}

#[test]
fn numbers_of_a_command_line_are_read() {
    let own = work("-x 3 -z 7 -c 4").unwrap();
    assert_eq!((own.repetitions, own.seed, own.concurrency, own.csv), (3, Some(7), Some(4), true));
    let own = work("--fslab-repetitions=2").unwrap();
    assert_eq!((own.repetitions, own.seed, own.concurrency, own.csv), (2, None, None, false));
    // With 4 GiB, the default of 8 GiB; with 3.3 GiB, 6.6 GiB are rounded up to 7 GiB.
    assert!(work("-r 4096").unwrap().workload.contains("\"8GiB\""));
    assert!(work("-r 3379").unwrap().workload.contains("\"7GiB\""));
    assert!(work("-s 128 -c 4").is_ok(), "the check multiplies by -c, as in bonnie++");
}

#[test]
fn wrong_command_lines_have_a_hint() {
    for (line, message) in [
        ("-s 100", "-s: 100 MiB is less than twice the memory (256 MiB)"),
        ("-s 100", "use -s 512 or -r 0"),
        ("-s 0 -n 0", "leave nothing to measure"),
        ("-s 1g:100", "a power of two from 256 bytes to 1 MiB"),
        ("-s 1g:2m", "a power of two"),
        ("-s 1g:8k:0", "use at least 1 seek"),
        ("-s 1g:8k:1:0", "use a number from 1 to 1024"),
        ("-s 1g:1:1:1:1", "use SIZE[:CHUNK"),
        ("-s many", "-s many: use a number, or a number with `m` or `g` or `t`"),
        ("-s 99999999t", "use less than 1024 TiB"),
        ("-n 1:2:3", "the minimum size 3B is greater than the maximum 2B"),
        ("-n 1:2:3:4:5:6", "use NUM[:MAX"),
        ("-n 1:0:0:100000", "use a number from 0 to 99999"),
        ("-n x", "use a number from 0"),
        ("-D", "-D requires -f without a size"),
        ("-x 0", "use a number from 1 to 1000"),
        ("-x 2 --fslab-repetitions 2", "exclude each other"),
        ("-c 201", "use a number from 1 to 200"),
        ("-z x", "-z x: use a number"),
        ("-p 2", "-p is not supported"),
        ("-ys", "-y is not supported"),
        ("-Z seeds", "-Z is not supported"),
        ("/mnt", "use -d /mnt for a directory"),
        ("-k", "unknown option `-k`"),
    ] {
        let error = work(line).unwrap_err();
        assert!(error.contains(message), "{line}: {error}");
    }
}

#[test]
fn the_suite_accepts_every_workload() {
    let catalog = rig::Catalog::embedded();
    for line in
        ["", "-n 0", "-s 0", "-f -D", "-n 1:-2", "-n 1:100:50:3:64 -b", "-f100 --fslab-workers 3"]
    {
        let own = work(line).unwrap();
        let order = Order {
            program: "bonnie++",
            title: "bonnie workload",
            repetitions: own.repetitions,
            seed: own.seed,
            directory: "/var/tmp",
            workloads: vec![own.workload],
            run: None,
        };
        let plan = order.plan(&catalog).map_err(|failure| failure.message()).unwrap();
        assert_eq!(plan.cells.len(), 1, "{line}");
    }
}
