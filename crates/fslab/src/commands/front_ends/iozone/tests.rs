use super::{super::options::Parsed, *};

fn work(line: &str) -> Result<Work, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match PROGRAM.parse(&words) {
        Ok(Parsed::Run(given)) => Work::new(&given).map_err(|error| error.message()),
        Ok(Parsed::Print(text)) => Err(text),
        Err(failure) => Err(failure.message()),
    }
}

/// Workloads without the keys of all command lines.
fn workloads(line: &str) -> Vec<String> {
    let work = work(line).unwrap();
    let start = "suite = \"iozone\", compat = \"iozone\", ";
    work.workloads.iter().map(|own| own.strip_prefix(start).unwrap().to_owned()).collect()
}

/// File size and block size of each workload.
fn points(line: &str) -> Vec<(u64, u64)> {
    let size = |text: &str, key: &str| -> u64 {
        let rest = text.split(&format!("{key} = \"")).nth(1).unwrap();
        rest.split("KiB").next().unwrap().parse().unwrap()
    };
    let all = workloads(line);
    all.iter().map(|text| (size(text, "file_size"), size(text, "block_size"))).collect()
}

#[test]
fn options_become_parameters_of_the_suite() {
    let end = "file_size = \"512KiB\", block_size = \"4KiB\"";
    let all = "tests = [\"write\", \"read\", \"random\", \"backward-read\", \"record-rewrite\", \
               \"strided-read\", \"fwrite\", \"fread\"";
    let write = "tests = [\"write\"]";
    for (line, expected) in [
        ("", format!("{all}], {end}")),
        ("-E", format!("{all}, \"pwrite\", \"pread\"], {end}")),
        ("-i 0 -i 1", format!("tests = [\"write\", \"read\"], {end}")),
        ("-i 1 -i0", format!("tests = [\"write\", \"read\"], {end}")),
        ("-Ei 9 -i 10", format!("tests = [\"pwrite\", \"pread\"], {end}")),
        ("-i0 -e", format!("include_fsync = true, {write}, {end}")),
        ("-i0 -c", format!("include_close = true, {write}, {end}")),
        ("-i0 -I", format!("direct = true, {write}, {end}")),
        ("-i0 -o", format!("o_sync = true, {write}, {end}")),
        ("-i0 -+D", format!("o_dsync = true, {write}, {end}")),
        ("-i0 -+n", format!("second_pass = false, {write}, {end}")),
        (
            "-ceIoi 0",
            format!(
                "include_fsync = true, include_close = true, direct = true, o_sync = true, {write}, {end}"
            ),
        ),
        ("-i0 -s 1g -r64k", format!("{write}, file_size = \"1048576KiB\", block_size = \"64KiB\"")),
        (
            "-i0 -s 8M -r 16 #READ",
            format!("{write}, file_size = \"8192KiB\", block_size = \"16KiB\""),
        ),
        ("-i0 -w -S 2048 -L 64 -m -M -j 17 -+x 2", format!("{write}, {end}")),
        ("-i0 -t 4", format!("{write}, workers = 4, worker_type = \"process\", {end}")),
        (
            "-i0 -t4 -T -x",
            format!("stonewall = false, {write}, workers = 4, worker_type = \"thread\", {end}"),
        ),
        (
            "-i 0 -i 8 -t 4 -+p 50",
            format!(
                "tests = [\"write\", \"mixed\"], workers = 4, worker_type = \"process\", mixed_readers = 2, {end}"
            ),
        ),
        ("-i 0 -i 4 -t 2", format!("{write}, workers = 2, worker_type = \"process\", {end}")),
    ] {
        assert_eq!(workloads(line), [expected], "{line}");
    }
    let throughput = workloads("-t 2");
    assert!(throughput[0].contains("\"fread\", \"mixed\", \"pwrite\", \"pread\"], workers = 2"));
    assert!(!throughput[0].contains("record-rewrite"), "{throughput:?}");
    assert!(!workloads("-t 1")[0].contains("mixed"), "one worker cannot be mixed");
    let counts: Vec<String> = workloads("-i0 -l 2 -u 4 -t 8 -t 3");
    let counts: Vec<&str> =
        counts.iter().map(|text| text.split("workers = ").nth(1).unwrap()).collect();
    let counts: Vec<&str> = counts.iter().map(|text| text.split(',').next().unwrap()).collect();
    assert_eq!(counts, ["2", "3", "4", "8"]);
}

/// Numbers of rows as IOzone 3.471 prints them.
#[test]
fn sweeps_have_the_rows_of_iozone() {
    assert_eq!(points("-a").len(), 126);
    assert_eq!(points("-a -g 16m").len(), 81);
    assert_eq!(points("-az").len(), 146);
    assert_eq!(points("-A").len(), 146);
    assert!(workloads("-A")[0].starts_with("tests = [\"write\", \"read\"]"));
    assert_eq!(points("-a -n 1m -g 2m -y 64k -q 512k").len(), 8);
    assert_eq!(points("-a -s 32m").first(), Some(&(32_768, 4)), "no cross-over with -s");
    assert_eq!(points("-a -n 32m -g 32m").first(), Some(&(32_768, 64)));
    assert_eq!(
        points("-a -g 128 -q 16"),
        [(64, 4), (64, 8), (64, 16), (128, 4), (128, 8), (128, 16)]
    );
    assert_eq!(
        points("-s 64 -s 128 -r 32 -r 64 -r 128"),
        [(64, 32), (64, 64), (128, 32), (128, 64), (128, 128)]
    );
    assert_eq!(points("-r 64k -s 64k -s 128k"), [(64, 64), (128, 64)]);
    assert_eq!(points("-i0 -t 2 -t 4 -s 1m -r 64"), [(1024, 64), (1024, 64)]);
}

#[test]
fn each_option_has_its_line_in_the_head() {
    let command = work("-RazeI -i 0 -n 64 -g 1m -y4 -q 64k -+n -O -b x.wks -f f").unwrap().command;
    assert_eq!(
        command.options,
        [
            "Excel chart generation enabled",
            "Auto Mode",
            "Cross over of record size disabled.",
            "Include fsync in write timing",
            "O_DIRECT feature enabled",
            "Using minimum file size of 64 kilobytes.",
            "Using maximum file size of 1024 kilobytes.",
            "Using Minimum Record Size 4 kB",
            "Using Maximum Record Size 64 kB",
            "No retest option selected",
            "OPS Mode. Output is in operations per second.",
        ]
    );
    assert_eq!(
        command.words,
        "fslab iozone -RazeI -i 0 -n 64 -g 1m -y4 -q 64k -+n -O -b x.wks -f f"
    );
    assert!(command.tables && !command.workers && command.unit == IozoneUnit::Operations);
    let command = work("-i0 -t 2 -s 1m -r 4 -C -c -x -o").unwrap().command;
    assert_eq!(
        command.options,
        [
            "File size set to 1024 kB",
            "Record Size 4 kB",
            "Include close in write timing",
            "Stonewall disabled",
            "SYNC Mode. ",
        ]
    );
    assert!(!command.tables && command.workers && command.unit == IozoneUnit::KiloBytes);
    assert_eq!(work("-N").unwrap().command.unit, IozoneUnit::Micros);
    assert!(work("-b x.wks").unwrap().command.tables);
}

#[test]
fn files_are_in_the_directory_of_the_paths() {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let at = place.path().display();
    let real = place.path().canonicalize().unwrap();
    assert_eq!(work(&format!("-f {at}/f")).unwrap().directory, real);
    assert_eq!(work(&format!("-t 2 -F {at}/a {at}/b")).unwrap().directory, real);
    let cold = work(&format!("-i 0 -U {at} -f {at}/f")).unwrap().workloads;
    assert!(cold[0].starts_with("suite = \"iozone\", compat = \"iozone-cold\", "), "{cold:?}");
    let other = tempfile::tempdir_in("/var/tmp").unwrap();
    for (line, message) in [
        (format!("-f {at}"), "is a directory; use a file in it"),
        (format!("-f {at}/missing/f"), "use an existing directory"),
        (format!("-t 2 -F {at}/a {}/b", other.path().display()), "use one directory"),
        (format!("-t 3 -F {at}/a {at}/b"), "-F has 2 paths for 3 workers"),
        (format!("-U {at} -f {}/f", other.path().display()), "which is not below it"),
        (format!("-U {at}/missing -f {at}/f"), "use an existing directory"),
        (format!("-U {at} -t 2 -f {at}/f"), "-U does not apply to the throughput mode"),
    ] {
        let error = work(&line).unwrap_err();
        assert!(error.contains(message), "{line}: {error}");
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn wrong_command_lines_have_a_hint() {
    for (line, message) in [
        ("-i 11", "-i 11: use a number from 0 to 10"),
        ("-i 8", "-i 8 requires -t N"),
        ("-i 9", "-i 9 requires -E or -t N"),
        ("-i 4 -t 2", "-i 4 is not a test of the throughput mode"),
        ("-i 8 -t 1", "use -t 2 or more"),
        ("-I", "leave them out: -i 0 -i 1 -i 2 -i 3 -i 4 -i 5"),
        ("-I -i 6", "leave them out"),
        ("-s 256 -s 64", "-s 64 after -s 256: sizes must be ascending"),
        ("-r 64 -r 64", "sizes must be ascending"),
        ("-s 4 -r 64", "a record of 64 kB does not fit into a file of 4 kB"),
        ("-s 0", "use a size in kB"),
        ("-s 1x", "use a size in kB"),
        ("-n 64", "-n requires a sweep; add -a"),
        ("-z", "-z requires a sweep; add -a"),
        ("-a -n 2m -g 1m", "-n 2048 is greater than -g 1024"),
        ("-t 0", "use a number from 1 to 1024"),
        ("-l 2", "-l requires -u"),
        ("-u 2", "-u requires -l"),
        ("-l 4 -u 2", "-l 4 is greater than -u 2"),
        ("-x", "-x requires the throughput mode; use -t N"),
        ("-C", "-C requires the throughput mode"),
        ("-T", "-T requires the throughput mode"),
        ("-t 2 -N", "-N does not apply to the throughput mode"),
        ("-O -N", "exclude each other"),
        ("-j 16", "only a stride of 17"),
        ("-+x 4", "only a factor of 2"),
        ("-t 2 -i 8 -+p 10", "less than one reader; use at least 50"),
        ("-t 2 -i 8 -+p 100", "use a percentage from 1 to 99"),
        ("file", "use -f PATH for a file"),
        ("-H 4", "-H is not supported"),
        ("-RaB", "-B is not supported: files are not mapped"),
        ("-+m hosts", "-+m is not supported"),
    ] {
        let error = work(line).unwrap_err();
        assert!(error.contains(message), "{line}: {error}");
    }
}

#[test]
fn the_suite_accepts_every_workload() {
    let catalog = rig::Catalog::embedded();
    for (line, cells) in [
        ("", 1),
        ("-A", 146),
        ("-E -e -c -o", 1),
        ("-I -i 0 -i 5", 1),
        ("-t 1", 1),
        ("-t 3 -+p 40 -T -x -+n -+D", 1),
        ("-s 64 -s 128 -r 4 -r 8", 4),
    ] {
        let order = Order {
            program: "iozone",
            title: "iozone",
            repetitions: 1,
            seed: None,
            directory: "/var/tmp",
            workloads: work(line).unwrap().workloads,
            run: None,
        };
        let plan = order.plan(&catalog).map_err(|failure| failure.message()).unwrap();
        assert_eq!(plan.cells.len(), cells, "{line}");
    }
}
