//! Verification of blocks, and minimum rates, which end a job with an error.

use std::{fs::File, os::unix::fs::FileExt};

use super::fslab_fio;
use crate::support::Bench;

#[test]
fn a_later_job_finds_damaged_and_missing_blocks() {
    let bench = Bench::new();
    let job = ["--name=v", "--size=64k", "--verify=crc32c"];
    let run = |more: &[&str]| fslab_fio(&bench, &[job.as_slice(), more].concat());
    for more in [
        &["--rw=randwrite", "--do_verify=0"][..],
        &["--rw=randwrite", "--verify_only"],
        &["--rw=randread", "--bs=8k"],
        &["--rw=randwrite", "--output-format=json"],
    ] {
        let ended = run(more);
        assert_eq!(ended.status, Some(0), "{more:?}: {ended:?}");
        assert_eq!(ended.stdout.contains("v-verify"), more.contains(&"--output-format=json"));
    }
    let file = File::options().write(true).open(bench.path("data/v.0.0")).unwrap();
    file.write_all_at(b"x", 20_000).unwrap();
    for (more, offset) in [(&["--rw=read"][..], 16_384), (&["--rw=write", "--verify_only"], 16_384)]
    {
        let found = run(more);
        assert_eq!(found.status, Some(1), "{found:?}");
        let text = format!("v.0.0 at offset {offset}");
        assert!(
            found.stderr.contains(&text) && found.stderr.contains("checksum mismatch"),
            "{found:?}"
        );
    }
    file.write_all_at(&[0; 4096], 8192).unwrap();
    let found = run(&["--rw=read"]);
    assert!(found.stderr.contains("at offset 8192"), "{found:?}");
    let again = run(&["--rw=write"]);
    assert_eq!(again.status, Some(0), "all blocks are written again: {again:?}");
}

#[test]
fn blocks_with_a_pattern_have_headers() {
    let bench = Bench::new();
    let job =
        ["--name=p", "--size=8k", "--rw=write", "--buffer_pattern=0xdeadface", "--verify=md5"];
    assert_eq!(fslab_fio(&bench, &job).status, Some(0));
    let content = std::fs::read(bench.path("data/p.0.0")).unwrap();
    for block in content.chunks(4096) {
        assert!(block[32..].chunks(4).all(|own| own == [0xde, 0xad, 0xfa, 0xce]));
    }
}

#[test]
fn a_rate_below_its_minimum_ends_the_job() {
    let bench = Bench::new();
    let job = ["--name=m", "--size=64k", "--rw=write", "--time_based", "--runtime=20"];
    let rates = ["--rate_iops=5", "--rate_iops_min=50", "--rate_cycle=300"];
    let slow = fslab_fio(&bench, &[job.as_slice(), &rates].concat());
    assert_eq!(slow.status, Some(1), "{slow:?}");
    assert!(slow.stderr.contains("less than its minimum of 50"), "{}", slow.stderr);
}
