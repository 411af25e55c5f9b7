//! Sections whose files exist, or are only created.

use std::{fs, path::Path};

use super::{FIO, fio_is_missing, fslab_fio, in_data, json};
use crate::support::Bench;

pub(super) fn append() {
    let options = ["--name=own", "--rw=write", "--size=16k", "--bs=4k", "--file_append=1"];
    let ours = Bench::new();
    let benches = [(&ours, true), (&Bench::new(), false)];
    let mut lengths = Vec::new();
    for (bench, own) in benches {
        if !own && fio_is_missing("a_section_appends_to_existing_files") {
            continue;
        }
        fs::create_dir_all(bench.path("data")).unwrap();
        let file = bench.path("data").join("own.0.0");
        fs::write(&file, [b'x'; 8192]).unwrap();
        let ran = match own {
            true => {
                let all: Vec<&str> = ["--fslab-reuse"].iter().chain(&options).copied().collect();
                fslab_fio(bench, &all)
            }
            false => in_data(bench, Path::new(FIO), &options),
        };
        assert_eq!(ran.status, Some(0), "{ran:?}");
        let content = fs::read(&file).unwrap();
        assert!(content[..8192].iter().all(|byte| *byte == b'x'), "the start is unchanged");
        assert!(content[8192..].iter().any(|byte| *byte != 0));
        lengths.push(content.len());
    }
    assert!(lengths.iter().all(|length| *length == 8192 + 16384), "{lengths:?}");
    for (option, reason) in
        [("--offset=4k", "file_append requires"), ("--overwrite=1", "would replace")]
    {
        let all: Vec<&str> = ["--fslab-reuse", option].iter().chain(&options).copied().collect();
        let refused = fslab_fio(&ours, &all);
        assert_eq!(refused.status, Some(1));
        assert!(refused.stderr.contains(reason), "{}", refused.stderr);
    }
}

pub(super) fn create_only() {
    let bench = Bench::new();
    let options = ["--name=own", "--rw=randread", "--size=32k", "--bs=4k", "--output-format=json"];
    let all: Vec<&str> = options.iter().chain(&["--create_only=1"]).copied().collect();
    let created = json(&fslab_fio(&bench, &all));
    assert_eq!(created["jobs"][0]["write"]["io_bytes"], 32 << 10);
    assert_eq!(created["jobs"][0]["read"]["io_bytes"], 0);
    let file = bench.path("data").join("own.0.0");
    let before = fs::metadata(&file).unwrap();
    assert_eq!(before.len(), 32 << 10);
    let read = json(&fslab_fio(&bench, &options));
    assert_eq!(read["jobs"][0]["read"]["io_bytes"], 32 << 10);
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), before.modified().unwrap());
}

pub(super) fn partial() {
    let bench = Bench::new();
    for options in [
        ["--number_ios=4", "--fallocate=none", "--verify=crc32c"],
        ["--io_size=16k", "--fallocate=keep", "--verify=crc32c"],
        ["--rw=write:4k", "--fallocate=none", "--verify=crc32c"],
        ["--filename=shared", "--numjobs=2", "--unlink=1"],
    ] {
        let start = ["--name=own", "--rw=write", "--size=1m", "--bs=4k"];
        let all: Vec<&str> = start.iter().chain(&options).copied().collect();
        let ran = fslab_fio(&bench, &all);
        assert_eq!(ran.status, Some(0), "{options:?} {ran:?}");
        let _ = fs::remove_file(bench.path("data").join("own.0.0"));
    }
    assert!(!bench.path("data").join("shared").exists());
}
