use expect_test::{Expect, expect};
use model::phase::Presence;

use super::*;

fn point(settings: &[(&str, &str)]) -> Point {
    let mut point = SPEC.defaults();
    for (name, text) in settings {
        let kind = SPEC.parameter(name).unwrap().kind;
        point.parameters.insert((*name).into(), kind.read(text).unwrap());
    }
    point
}

/// One line a phase: what a reader of the original's documentation would want to compare.
fn check(settings: &[(&str, &str)], expected: Expect) {
    let refined = refine(point(settings)).unwrap().remove(0);
    let line = |phase: Phase| {
        let Work::Stream(stream) = &phase.work else { unreachable!("only streams here") };
        let open = [
            (stream.open.presence == Presence::Fresh, "fresh"),
            (stream.open.presence == Presence::Any, "any"),
            (stream.open.direct, "direct"),
            (stream.open.sync, "sync"),
            (stream.open.fsync, "fsync"),
            (stream.open.prime, "prime"),
            (stream.flush == Flush::Fsync, "| flush"),
            (phase.timed.flush, "timed-flush"),
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
            stream.access,
            stream.interface,
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
        rewrite             Measure AsLeft Write Sequential Offset Off fsync | flush
        read                Measure Cold Read Sequential Offset Off fsync
        reread              Measure AsLeft Read Sequential Offset Off fsync
        random-read         Measure Cold Read Shuffled Offset Off 
        random-write        Measure Cold Write Shuffled Offset Off any | flush
        backward-read       Measure Cold Read Backward Offset Off 
        record-rewrite      Measure Cold Write SameRecord Offset Off any | flush
        strided-read        Measure Cold Read Stride { records: 17 } Offset Off 
        fwrite              Measure Cold Write Sequential Stdio Off any | flush
        frewrite            Measure AsLeft Write Sequential Stdio Off any | flush
        fread               Measure Cold Read Sequential Stdio Off fsync
        freread             Measure AsLeft Read Sequential Stdio Off fsync
    "#]],
    );
}

#[test]
fn the_thirteen_tests_as_the_original_runs_them() {
    check(
        &[("compat", "iozone")],
        expect![[r#"
        write               Measure AsLeft Write Sequential Position Off fresh fsync | flush tick
        rewrite             Measure AsLeft Write Sequential Position Off fsync | flush tick
        read                Measure AsLeft Read Sequential Position Off fsync prime tick
        reread              Measure AsLeft Read Sequential Position Off fsync prime tick
        random-read         Measure AsLeft Read Shuffled Position Off tick
        random-write        Measure AsLeft Write Shuffled Position Off any | flush tick
        backward-read       Measure AsLeft Read Backward Position Off tick
        backward-read-again Prepare AsLeft Read Backward Position Off tick
        record-rewrite      Measure AsLeft Write SameRecord Position Off any | flush tick
        strided-read        Measure AsLeft Read Stride { records: 17 } Position Off tick
        fwrite              Measure AsLeft Write Sequential Stdio Off any | flush tick
        frewrite            Measure AsLeft Write Sequential Stdio Off any | flush tick
        fread               Measure AsLeft Read Sequential Stdio Off fsync tick
        freread             Measure AsLeft Read Sequential Stdio Off fsync tick
    "#]],
    );
}

#[test]
fn flags_reach_the_tests_the_original_gives_them_to() {
    check(
        &[
            ("tests", "write,read,random,record-rewrite,pwrite,pread"),
            ("direct", "true"),
            ("sync", "true"),
            ("include_flush", "true"),
            ("include_close", "true"),
        ],
        expect![[r#"
            write               Measure Cold Write Sequential Offset Off fresh direct sync fsync | flush timed-flush timed-close
            rewrite             Measure AsLeft Write Sequential Offset Off direct sync fsync | flush timed-flush timed-close
            read                Measure Cold Read Sequential Offset Off direct fsync timed-flush timed-close
            reread              Measure AsLeft Read Sequential Offset Off direct fsync timed-flush timed-close
            random-read         Measure Cold Read Shuffled Offset Off direct sync timed-flush timed-close
            random-write        Measure Cold Write Shuffled Offset Off any direct sync | flush timed-flush timed-close
            record-rewrite      Measure Cold Write SameRecord Offset Off any direct sync | flush timed-flush timed-close
            pwrite              Measure Cold Write Sequential Offset Off any direct sync | flush timed-flush timed-close
            repwrite            Measure AsLeft Write Sequential Offset Off any direct sync | flush timed-flush timed-close
            pread               Measure Cold Read Sequential Offset Off direct timed-flush timed-close
            repread             Measure AsLeft Read Sequential Offset Off direct timed-flush timed-close
        "#]],
    );
}

#[test]
fn close_without_flush_issues_none_in_the_original() {
    check(
        &[("tests", "write"), ("include_close", "true"), ("compat", "iozone")],
        expect![[r#"
        write               Measure AsLeft Write Sequential Position Off fresh fsync timed-close tick
        rewrite             Measure AsLeft Write Sequential Position Off fsync timed-close tick
    "#]],
    );
}

#[test]
fn throughput_mode() {
    check(
        &[("processes", "4"), ("tests", &TESTS.join(","))],
        expect![[r#"
        initial-write       Measure Cold Write Sequential Offset Finish any | flush
        rewrite             Measure AsLeft Write Sequential Offset Stop any | flush
        read                Measure Cold Read Sequential Offset Stop 
        reread              Measure AsLeft Read Sequential Offset Stop 
        backward-read       Measure Cold Read Backward Offset Stop 
        strided-read        Measure Cold Read Stride { records: 17 } Offset Stop 
        random-read         Measure Cold Read Shuffled Offset Stop 
        mixed               Measure Cold Alternate Shuffled Offset Stop | flush
        random-write        Measure Cold Write Shuffled Offset Finish any | flush
        pwrite              Measure Cold Write Sequential Offset Finish any | flush
        pread               Measure Cold Read Sequential Offset Stop 
        fwrite              Measure Cold Write Sequential Stdio Off any | flush
        fread               Measure Cold Read Sequential Stdio Off 
    "#]],
    );
}

#[test]
fn a_test_that_needs_a_file_gets_one() {
    check(
        &[("tests", "read"), ("retest", "false")],
        expect![[r#"
        layout              Prepare AsLeft Write Sequential Offset Off fresh | flush
        read                Measure Cold Read Sequential Offset Off fsync
    "#]],
    );
    check(
        &[("tests", "read"), ("retest", "false"), ("processes", "2")],
        expect![[r#"
        layout              Prepare AsLeft Write Sequential Offset Off fresh | flush
        read                Measure Cold Read Sequential Offset Stop 
    "#]],
    );
}

#[test]
fn the_automatic_sweep_has_the_rows_of_the_original() {
    let rows = |sweep| refine(point(&[("sweep", sweep)])).unwrap().len();
    assert_eq!((rows("auto"), rows("full")), (126, 146));
}

#[test]
fn combinations_that_cannot_be_are_refused_with_a_cure() {
    let refused = |settings: &[(&str, &str)]| {
        let error = refine(point(settings)).unwrap_err();
        format!("{error}; {}", error.cure.clone().unwrap_or_default())
    };
    expect!["a record of 1GiB does not fit into a file of 512MiB; make `file` at least as large as `record`"]
        .assert_eq(&refused(&[("record", "1GiB")]));
    expect!["the mixed test has workers that read and workers that write; set `processes` to 2 or more, or leave `mixed` out of `tests`"]
        .assert_eq(&refused(&[("tests", "mixed")]));
    expect!["`direct` does not reach fwrite and fread: stdio is buffered; leave `fwrite` and `fread` out of `tests`, or give them a workload of their own"]
        .assert_eq(&refused(&[("direct", "true")]));
    expect!["`verify` needs stamped data, which `compat` does not write; leave one of them out"]
        .assert_eq(&refused(&[("verify", "true"), ("compat", "iozone")]));
}
