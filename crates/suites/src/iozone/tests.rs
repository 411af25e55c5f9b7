use expect_test::{Expect, expect};
use model::phase::FileCreation;

use super::*;

fn point(settings: &[(&str, &str)]) -> WorkloadParameters {
    let mut point = SPEC.defaults();
    for (name, text) in settings {
        let kind = SPEC.parameter(name).unwrap().kind;
        point.parameters.insert((*name).into(), kind.read(text).unwrap());
    }
    point
}

/// One line per phase, with the properties that the documentation of IOzone describes.
fn check(settings: &[(&str, &str)], expected: Expect) {
    let refined = refine(point(settings)).unwrap().remove(0);
    let line = |phase: Phase| {
        let Work::Stream(stream) = &phase.work else { unreachable!("only streams here") };
        let open = [
            (stream.open.creation == FileCreation::Fresh, "fresh"),
            (stream.open.creation == FileCreation::Any, "any"),
            (stream.open.direct, "direct"),
            (stream.open.sync, "o_sync"),
            (stream.open.fsync, "fsync"),
            (stream.open.read_first_block, "prime"),
            (stream.end_sync == EndSync::Fsync, "| flush"),
            (phase.timed.sync, "timed-flush"),
            (phase.timed.close, "timed-close"),
            (phase.timed.tick_subtracted, "tick"),
        ];
        let flags: Vec<_> = open.into_iter().filter(|(on, _)| *on).map(|(_, word)| word).collect();
        format!(
            "{:<19} {:?} {:?} {:?} {:?} {:?} {:?} {}\n",
            phase.name,
            phase.role,
            phase.cache,
            stream.direction,
            stream.access_pattern,
            stream.io_engine,
            stream.workers.stonewall,
            flags.join(" ")
        )
    };
    expected.assert_eq(&phases(&refined, 7).into_iter().map(line).collect::<String>());
}

#[test]
fn the_thirteen_tests() {
    check(
        &[],
        expect![[r#"
            write               Measure Cold Write Sequential Offset Off fresh fsync | flush
            rewrite             Measure Unchanged Write Sequential Offset Off fsync | flush
            read                Measure Cold Read Sequential Offset Off fsync
            reread              Measure Unchanged Read Sequential Offset Off fsync
            random-read         Measure Cold Read IozonePermutation Offset Off 
            random-write        Measure Cold Write IozonePermutation Offset Off any | flush
            backward-read       Measure Cold Read Backward Offset Off 
            record-rewrite      Measure Cold Write SameBlock Offset Off any | flush
            strided-read        Measure Cold Read Stride { blocks: 17 } Offset Off 
            fwrite              Measure Cold Write Sequential Stdio Off any | flush
            frewrite            Measure Unchanged Write Sequential Stdio Off any | flush
            fread               Measure Cold Read Sequential Stdio Off fsync
            freread             Measure Unchanged Read Sequential Stdio Off fsync
        "#]],
    );
}

#[test]
fn compat_reproduces_iozone() {
    check(
        &[("compat", "iozone")],
        expect![[r#"
            write               Measure Unchanged Write Sequential Position Off fresh fsync | flush tick
            rewrite             Measure Unchanged Write Sequential Position Off fsync | flush tick
            read                Measure Unchanged Read Sequential Position Off fsync prime tick
            reread              Measure Unchanged Read Sequential Position Off fsync prime tick
            random-read         Measure Unchanged Read IozonePermutation Position Off tick
            random-write        Measure Unchanged Write IozonePermutation Position Off any | flush tick
            backward-read       Measure Unchanged Read Backward Position Off tick
            backward-read-again Prepare Unchanged Read Backward Position Off tick
            record-rewrite      Measure Unchanged Write SameBlock Position Off any | flush tick
            strided-read        Measure Unchanged Read Stride { blocks: 17 } Position Off tick
            fwrite              Measure Unchanged Write Sequential Stdio Off any | flush tick
            frewrite            Measure Unchanged Write Sequential Stdio Off any | flush tick
            fread               Measure Unchanged Read Sequential Stdio Off fsync tick
            freread             Measure Unchanged Read Sequential Stdio Off fsync tick
        "#]],
    );
}

#[test]
fn iozone_cold_empties_the_caches_before_each_test() {
    check(
        &[("compat", "iozone-cold"), ("cache", "unchanged"), ("tests", "write,read")],
        expect![[r#"
            write               Measure Cold Write Sequential Position Off fresh fsync | flush tick
            rewrite             Measure Unchanged Write Sequential Position Off fsync | flush tick
            read                Measure Cold Read Sequential Position Off fsync prime tick
            reread              Measure Unchanged Read Sequential Position Off fsync prime tick
        "#]],
    );
}

#[test]
fn flags_apply_to_the_same_tests_as_in_iozone() {
    check(
        &[
            ("tests", "write,read,random,record-rewrite,pwrite,pread"),
            ("direct", "true"),
            ("o_sync", "true"),
            ("include_fsync", "true"),
            ("include_close", "true"),
        ],
        expect![[r#"
            write               Measure Cold Write Sequential Offset Off fresh direct o_sync fsync | flush timed-flush timed-close
            rewrite             Measure Unchanged Write Sequential Offset Off direct o_sync fsync | flush timed-flush timed-close
            read                Measure Cold Read Sequential Offset Off direct fsync timed-flush timed-close
            reread              Measure Unchanged Read Sequential Offset Off direct fsync timed-flush timed-close
            random-read         Measure Cold Read IozonePermutation Offset Off direct o_sync timed-flush timed-close
            random-write        Measure Cold Write IozonePermutation Offset Off any direct o_sync | flush timed-flush timed-close
            record-rewrite      Measure Cold Write SameBlock Offset Off any direct o_sync | flush timed-flush timed-close
            pwrite              Measure Cold Write Sequential Offset Off any direct o_sync | flush timed-flush timed-close
            repwrite            Measure Unchanged Write Sequential Offset Off any direct o_sync | flush timed-flush timed-close
            pread               Measure Cold Read Sequential Offset Off direct timed-flush timed-close
            repread             Measure Unchanged Read Sequential Offset Off direct timed-flush timed-close
        "#]],
    );
}

#[test]
fn include_close_without_include_fsync_does_not_sync() {
    check(
        &[("tests", "write"), ("include_close", "true"), ("compat", "iozone")],
        expect![[r#"
            write               Measure Unchanged Write Sequential Position Off fresh fsync timed-close tick
            rewrite             Measure Unchanged Write Sequential Position Off fsync timed-close tick
        "#]],
    );
}

#[test]
fn throughput_mode() {
    check(
        &[("workers", "4"), ("tests", &TESTS.join(","))],
        expect![[r#"
            initial-write       Measure Cold Write Sequential Offset Finish any | flush
            rewrite             Measure Unchanged Write Sequential Offset Stop any | flush
            read                Measure Cold Read Sequential Offset Stop 
            reread              Measure Unchanged Read Sequential Offset Stop 
            backward-read       Measure Cold Read Backward Offset Stop 
            strided-read        Measure Cold Read Stride { blocks: 17 } Offset Stop 
            random-read         Measure Cold Read IozonePermutation Offset Stop 
            mixed               Measure Cold Alternate IozonePermutation Offset Stop | flush
            random-write        Measure Cold Write IozonePermutation Offset Finish any | flush
            pwrite              Measure Cold Write Sequential Offset Finish any | flush
            pread               Measure Cold Read Sequential Offset Stop 
            fwrite              Measure Cold Write Sequential Stdio Off any | flush
            fread               Measure Cold Read Sequential Stdio Off 
        "#]],
    );
}

#[test]
fn tests_that_require_a_file_get_a_layout() {
    check(
        &[("tests", "read"), ("second_pass", "false")],
        expect![[r#"
            layout              Prepare Unchanged Write Sequential Offset Off fresh | flush
            read                Measure Cold Read Sequential Offset Off fsync
        "#]],
    );
    check(
        &[("tests", "read"), ("second_pass", "false"), ("workers", "2")],
        expect![[r#"
            layout              Prepare Unchanged Write Sequential Offset Off fresh | flush
            read                Measure Cold Read Sequential Offset Stop 
        "#]],
    );
}

#[test]
fn the_automatic_sweep_has_the_rows_of_iozone() {
    let rows = |sweep| refine(point(&[("sweep", sweep)])).unwrap().len();
    assert_eq!((rows("auto"), rows("full")), (126, 146));
}

#[test]
fn invalid_combinations_are_rejected_with_a_hint() {
    let refused = |settings: &[(&str, &str)]| {
        let error = refine(point(settings)).unwrap_err();
        format!("{error}; {}", error.hint.clone().unwrap_or_default())
    };
    expect!["a block of 1GiB does not fit into a file of 512MiB; set `file_size` to at least `block_size`"]
        .assert_eq(&refused(&[("block_size", "1GiB")]));
    expect!["the mixed test requires readers and writers; set `workers` to at least 2, or remove `mixed` from `tests`"]
        .assert_eq(&refused(&[("tests", "mixed")]));
    expect!["`direct` does not apply to fwrite and fread, which are buffered; remove `fwrite` and `fread` from `tests`, or use a separate workload for them"]
        .assert_eq(&refused(&[("direct", "true")]));
    expect!["`verify` needs stamped data, which `compat` does not write; remove one of them"]
        .assert_eq(&refused(&[("verify", "true"), ("compat", "iozone")]));
}
