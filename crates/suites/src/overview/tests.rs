use expect_test::expect;

use super::*;

fn refined(settings: &[(&str, &str)]) -> Result<Vec<WorkloadParameters>, ValueError> {
    let mut point = SPEC.defaults();
    for (name, text) in settings {
        let kind = SPEC.parameter(name).unwrap().kind;
        point.parameters.insert((*name).into(), kind.read(text).unwrap());
    }
    refine(point)
}

fn shown(settings: &[(&str, &str)]) -> String {
    let point = refined(settings).unwrap().remove(0);
    phases(&point, 7).iter().map(crate::described).collect()
}

#[test]
fn each_operation_is_one_phase() {
    expect![[r#"
        write Measure Unchanged One("file") 512MiB/1MiB direction="write" end_sync="fsync" open={creation:"fresh"}
        read Measure Cold One("file") 512MiB/1MiB
        random-read Measure Unchanged One("file") 512MiB/4KiB access_pattern="random" bound={"time":{"ramp":0,"run":1000000000}} open={direct:true}
        random-write Measure Unchanged One("file") 512MiB/4KiB access_pattern="random" bound={"time":{"ramp":0,"run":1000000000}} direction="write" end_sync="fsync" open={direct:true}
        log-append Measure Unchanged One("log") 512MiB/8KiB access_pattern="append" bound={"time":{"ramp":0,"run":1000000000}} direction="write" open={creation:"fresh"} sync_every={"after":{"ops":1},"call":"fdatasync"}
        create Measure Unchanged small 5000 4KiB/4KiB [Create, Write, Close] sync timed-flush
        small-read Measure Cold small 5000 4KiB/4KiB [OpenRead, Read, Close] Random
        unlink Measure Unchanged small 5000 4KiB/4KiB [Unlink] Random sync timed-flush
        mail-delivery Measure Unchanged mail 300 16KiB/16KiB [Create, Write, Fsync, Close, Rename, FsyncDirectory]
    "#]].assert_eq(&shown(&[]));
}

#[test]
fn empty_files_are_not_written() {
    let phases = shown(&[("small_file_size", "0"), ("files", "1")]);
    assert!(phases.contains("[Create, Close]"), "{phases}");
    assert!(!phases.contains("Random"), "a single file has no order: {phases}");
}

#[test]
fn a_runtime_of_zero_is_rejected() {
    let error = refined(&[("runtime", "0s")]).unwrap_err();
    assert!(error.to_string().contains("runtime"), "{error}");
}

#[test]
fn the_footprint_covers_the_file_the_log_and_the_larger_set() {
    let point = refined(&[
        ("file_size", "100MiB"),
        ("runtime", "1s"),
        ("files", "10"),
        ("messages", "1000"),
        ("message_size", "16KiB"),
    ]);
    let bytes = footprint(&point.unwrap()[0]).0;
    let mail = 1000 * (16 + 1) * 1024;
    assert_eq!(bytes, (100 << 20) + 50_000 * 8192 + mail);
}
