use expect_test::{Expect, expect};
use model::workload::ValueError;

use super::*;

fn point(settings: &[(&str, &str)]) -> Point {
    let mut point = table::SPEC.defaults();
    for (name, text) in settings {
        let kind = table::SPEC.parameter(name).unwrap().kind;
        point.parameters.insert((*name).into(), kind.read(text).unwrap());
    }
    point
}

fn refined(settings: &[(&str, &str)]) -> Result<Point, ValueError> {
    check::refine(point(settings)).map(|mut points| points.remove(0))
}

/// Each phase with what differs from one worker that reads the file once, sequentially.
fn shown(settings: &[(&str, &str)], expected: Expect) {
    let phases = phases(&refined(settings).unwrap(), 7);
    expected.assert_eq(&phases.iter().map(crate::described).collect::<String>());
}

fn refused(settings: &[(&str, &str)]) -> String {
    let error = refined(settings).unwrap_err();
    format!("{error}; {}", error.cure.clone().unwrap_or_default())
}

#[test]
fn files_are_laid_out_and_read() {
    shown(
        &[],
        expect![[r#"
        layout Prepare AsLeft PerWorker("file") 512MiB/1MiB direction="write" flush="fsync" open={presence:"fresh"}
        read Measure Cold PerWorker("file") 512MiB/4KiB
    "#]],
    );
    shown(
        &[("file", "1128192"), ("record", "47008"), ("verify", "true")],
        expect![[r#"
        layout Prepare AsLeft PerWorker("file") 1128192B/47008B direction="write" flush="fsync" open={presence:"fresh"}
        read Measure Cold PerWorker("file") 1128192B/47008B verify=true
    "#]],
    );
}

#[test]
fn fresh_writes_lay_nothing_out() {
    shown(
        &[("direction", "write"), ("fresh", "true"), ("workers", "2")],
        expect![[r#"
        write Measure Cold PerWorker("file") 512MiB/4KiB direction="write" flush="fsync" open={presence:"fresh"} workers={count:2}
    "#]],
    );
    shown(
        &[("direction", "write"), ("fresh", "true"), ("workers", "2"), ("files", "split")],
        expect![[r#"
            write Measure Cold Split("file") 512MiB/4KiB direction="write" flush="fsync" open={presence:"any"} workers={count:2}
        "#]],
    );
    shown(
        &[("direction", "write"), ("access", "append"), ("fresh", "true")],
        expect![[r#"
        append Measure Cold PerWorker("file") 512MiB/4KiB access="append" direction="write" flush="fsync" open={presence:"fresh"}
    "#]],
    );
}

#[test]
fn a_copy_has_sources_of_the_names_that_the_engine_expects() {
    shown(
        &[("engine", "splice"), ("direction", "write"), ("workers", "2")],
        expect![[r#"
        layout-0 Prepare AsLeft One("file.0.source") 512MiB/1MiB direction="write" flush="fsync" open={presence:"fresh"}
        layout-1 Prepare AsLeft One("file.1.source") 512MiB/1MiB direction="write" flush="fsync" open={presence:"fresh"}
        copy Measure Cold PerWorker("file") 512MiB/4KiB direction="write" flush="fsync" interface={"copy":"splice"} open={presence:"fresh"} workers={count:2}
    "#]],
    );
    shown(
        &[
            ("engine", "copy_file_range"),
            ("direction", "write"),
            ("workers", "2"),
            ("files", "split"),
            ("cache", "warm"),
        ],
        expect![[r#"
            layout Prepare AsLeft One("file.source") 512MiB/1MiB direction="write" flush="fsync" open={presence:"fresh"}
            warm Prepare AsLeft One("file.source") 512MiB/1MiB
            copy Measure Warm Split("file") 512MiB/4KiB direction="write" flush="fsync" interface={"copy":"copy-file-range"} open={presence:"any"} workers={count:2}
        "#]],
    );
}

#[test]
fn every_parameter_reaches_its_field() {
    shown(
        &[
            ("direction", "mixed"),
            ("read_share", "0.25"),
            ("lengths", "4k:2,64k:2"),
            ("access", "zipf"),
            ("theta", "1.2"),
            ("engine", "io_uring"),
            ("depth", "32"),
            ("batch", "8"),
            ("sqpoll", "true"),
            ("linked_sync", "true"),
            ("registered", "false"),
            ("direct", "true"),
            ("dsync", "true"),
            ("flush_every", "1MiB"),
            ("flush_call", "range"),
            ("flush", "fdatasync"),
            ("rate", "1000/s"),
            ("arrivals", "poisson"),
            ("time", "10s"),
            ("ramp", "2s"),
            ("workers", "4"),
            ("worker", "process"),
            ("stonewall", "finish"),
            ("pin", "true"),
            ("io_priority", "be-6"),
            ("cache", "as-left"),
            ("entropy", "0.5"),
            ("duplicates", "0.25"),
            ("files", "shared"),
        ],
        expect![[r#"
            layout Prepare AsLeft One("file") 512MiB/1MiB direction="write" fill={random:{"duplicates":0.25,"entropy":0.5}} flush="fsync" open={presence:"fresh"}
            mixed Measure AsLeft Shared("file") 512MiB/4KiB access={"zipf":{"theta":1.2}} bound={"time":{"ramp":2000000000,"run":10000000000}} direction={"mixed":0.25} fill={random:{"duplicates":0.25,"entropy":0.5}} flush="fdatasync" flush_every={"after":{"bytes":1048576},"call":"range"} interface={"ring":{"batch":8,"depth":32,"iopoll":false,"linked_sync":true,"nop":false,"registered":false,"sqpoll":true}} lengths=[{"records":1,"weight":1},{"records":16,"weight":1}] open={direct:true,dsync:true} pace={"open":{"arrivals":"poisson","rate":{"ops":1000}}} workers={count:4,io_priority:{"best-effort":6},kind:"process",pin:"each",stonewall:"finish"}
        "#]],
    );
}

#[test]
fn the_parameters_of_other_engines_and_paces_reach_their_fields() {
    shown(
        &[
            ("engine", "preadv2"),
            ("direction", "apart"),
            ("readers", "1"),
            ("workers", "3"),
            ("access", "hot"),
            ("nowait", "true"),
            ("uncached", "true"),
            ("dsync", "true"),
            ("think", "5ms"),
            ("think_every", "3"),
            ("operations", "100"),
            ("flush_every", "8"),
            ("flush", "none"),
            ("prime", "true"),
            ("open_fsync", "true"),
        ],
        expect![[r#"
            layout Prepare AsLeft PerWorker("file") 512MiB/1MiB direction="write" flush="fsync" open={presence:"fresh"} workers={count:3}
            mixed Measure Cold PerWorker("file") 512MiB/4KiB access={"hot":{"space":0.1,"visits":0.9}} bound={"ops":100} direction={"first_read":1} flush_every={"after":{"ops":8},"call":"fdatasync"} interface={"vector":{"dsync":true,"hipri":false,"nowait":true,"uncached":true}} open={fsync:true,prime:true} pace={"think":{"ops":3,"pause":5000000}} workers={count:3}
        "#]],
    );
    shown(
        &[("engine", "io_uring"), ("iopoll", "true"), ("direct", "true")],
        expect![[r#"
        layout Prepare AsLeft PerWorker("file") 512MiB/1MiB direction="write" flush="fsync" open={presence:"fresh"}
        read Measure Cold PerWorker("file") 512MiB/4KiB interface={"ring":{"batch":0,"depth":1,"iopoll":true,"linked_sync":false,"nop":false,"registered":true,"sqpoll":false}} open={direct:true}
    "#]],
    );
    shown(
        &[("engine", "null"), ("rate", "10MiB/s"), ("access", "strided")],
        expect![[r#"
        read Measure Cold PerWorker("file") 512MiB/4KiB access={"stride":{"records":17}} interface="null" open={presence:"any"} pace={"limit":{"bytes":10485760}}
    "#]],
    );
    shown(
        &[("engine", "mmap"), ("advice", "will-need"), ("access", "pareto")],
        expect![[r#"
        layout Prepare AsLeft PerWorker("file") 512MiB/1MiB direction="write" flush="fsync" open={presence:"fresh"}
        read Measure Cold PerWorker("file") 512MiB/4KiB access={"pareto":{"share":0.2}} interface={"mmap":"will-need"}
    "#]],
    );
    shown(
        &[("access", "replay"), ("list", "/tmp/list"), ("cache", "warm")],
        expect![[r#"
            layout Prepare AsLeft PerWorker("file") 512MiB/1MiB direction="write" flush="fsync" open={presence:"fresh"}
            warm Prepare AsLeft PerWorker("file") 512MiB/1MiB
            replay Measure Warm PerWorker("file") 512MiB/4KiB access="replay" direction={"mixed":0.5} flush="fsync" list="/tmp/list"
        "#]],
    );
}

#[test]
fn equal_work_has_equal_parameters() {
    let plain = refined(&[]).unwrap();
    let idle = [
        ("depth", "32"),
        ("theta", "2"),
        ("hot_space", "0.3"),
        ("flush", "none"),
        ("read_share", "0.1"),
        ("ramp", "1s"),
        ("advice", "random"),
        ("files", "split"),
        ("stonewall", "stop"),
        ("lengths", "4KiB:3"),
        ("flush_every", "1"),
        ("list", "/tmp/list"),
    ];
    for setting in idle {
        assert_eq!(refined(&[setting]).unwrap(), plain, "{setting:?}");
    }
    let mixed = refined(&[("direction", "mixed"), ("read_share", "1.0")]).unwrap();
    assert_eq!(mixed, plain, "a mix of reads alone");
    let synced = refined(&[("direction", "write"), ("sync", "true"), ("dsync", "true")]).unwrap();
    assert!(!synced.flag("dsync"), "O_SYNC includes it");
    let refined_again = check::refine(synced.clone()).unwrap();
    assert_eq!(refined_again, [synced], "refining is done once");
}

#[test]
fn texts_have_one_spelling() {
    let lengths = |text: &str| text::read_lengths(text).map_err(|error| error.message);
    assert_eq!(lengths("4k:6, 65536:2").unwrap(), "4KiB:3,64KiB:1");
    assert_eq!(lengths("8KiB").unwrap(), "8KiB:1");
    assert_eq!(lengths(" ").unwrap(), "");
    assert_eq!(lengths("4k:0").unwrap_err(), "`0` is no weight");
    assert_eq!(lengths("4k,4096:2").unwrap_err(), "the length 4KiB is listed twice");
    assert_eq!(lengths("0").unwrap_err(), "an operation of no length moves nothing");
    let rate = |text: &str| text::read_rate(text).map_err(|error| error.message);
    assert_eq!(rate(" 1000/s ").unwrap(), "1000/s");
    assert_eq!(rate("1024KiB/s").unwrap(), "1MiB/s");
    assert_eq!((rate("0").unwrap(), rate("0/s").unwrap()), ("0".into(), "0".into()));
    assert_eq!(rate("1000").unwrap_err(), "`1000` is not a rate");
    assert_eq!(text::rate("1MiB/s"), Some(model::phase::Rate::Bytes(Bytes::mib(1))));
    assert_eq!(text::rate("7/s"), Some(model::phase::Rate::Ops(7)));
    let amount = |text: &str| text::read_amount(text).map_err(|error| error.message);
    assert_eq!(amount("1024 KiB").unwrap(), "1MiB");
    assert_eq!(amount("08").unwrap(), "8");
    assert!(amount("often").is_err());
}

const WRITE: (&str, &str) = ("direction", "write");

const CONTRADICTIONS: &[&[(&str, &str)]] = &[
    &[("rate", "5/s"), ("think", "1s")],
    &[("arrivals", "poisson")],
    &[("time", "1s"), ("operations", "5")],
    &[("access", "pareto"), ("pareto_share", "0.5")],
    &[("access", "hot"), ("hot_space", "1.0")],
    &[("access", "append")],
    &[("access", "append"), WRITE, ("engine", "mmap")],
    &[("access", "append"), WRITE, ("engine", "io_uring"), ("depth", "2")],
    &[("access", "replay")],
    &[("direction", "apart")],
    &[("direction", "apart"), ("workers", "2"), ("readers", "2")],
    &[("fresh", "true")],
    &[WRITE, ("fresh", "true"), ("cache", "warm")],
    &[("lengths", "6KiB")],
    &[("file", "1MiB"), ("record", "2MiB")],
    &[("file", "1MiB"), ("record", "512KiB"), ("files", "split"), ("workers", "3")],
    &[("direct", "true"), ("record", "1000")],
    &[("engine", "stdio"), ("direct", "true")],
    &[("engine", "stdio"), ("lengths", "8KiB")],
    &[("engine", "mmap"), ("direct", "true")],
    &[("engine", "mmap"), WRITE, ("dsync", "true")],
    &[("engine", "io_uring"), ("depth", "2"), ("batch", "3")],
    &[("engine", "sendfile")],
    &[("engine", "sendfile"), WRITE, ("access", "append")],
    &[("engine", "io_uring"), ("iopoll", "true")],
    &[("engine", "preadv2"), ("hipri", "true")],
    &[("engine", "preadv2"), ("uncached", "true"), ("direct", "true")],
    &[("engine", "io_uring"), ("linked_sync", "true")],
    &[
        ("engine", "io_uring"),
        WRITE,
        ("direct", "true"),
        ("iopoll", "true"),
        ("linked_sync", "true"),
    ],
    &[("direction", "mixed"), ("verify", "true")],
    &[("engine", "null"), ("verify", "true")],
    &[("engine", "splice"), WRITE, ("verify", "true"), ("workers", "2")],
    &[("record", "32"), ("verify", "true")],
];

#[test]
fn contradictions_are_refused_with_a_cure() {
    let lines: Vec<_> = CONTRADICTIONS.iter().map(|settings| refused(settings)).collect();
    expect![[r#"
        `rate` and `think` both say when operations begin; set one of them to 0
        `arrivals` says how operations are spread, and there is no `rate`; give a rate such as "1000/s", or set arrivals to "closed"
        `time` and `operations` both say when the loop ends; set time to "0s" or operations to 0
        `pareto_share` is out of bounds; use a number above 0 and below 0.5
        the hot part is no part of the file; use a `hot_space` above 0 and below 1
        an append is a write; set direction to "write", or take another access
        a mapping cannot grow its file; append with another engine
        appends in flight have no order; use a depth of 1
        replay has no `list` to go through; give the path of a list
        there are no workers both to read and to write; use 2 workers or more, and fewer `readers` than workers
        there are no workers both to read and to write; use 2 workers or more, and fewer `readers` than workers
        it reads files that are not there yet; set fresh to false, or direction to "write"
        there are no files to read into the cache; set cache to "as-left"
        a length of 6KiB is not a multiple of the record, 4KiB; make the record a common divisor of all lengths
        an operation of 2MiB does not fit into a file of 1MiB; use larger files, shorter operations, or fewer workers
        an operation of 512KiB does not fit into a worker's part of 349525B; use larger files, shorter operations, or fewer workers
        direct I/O moves whole sectors, which 1000B is not; use a record that is a multiple of 512 (4KiB suits most devices)
        streams of the C library open without O_DIRECT, O_SYNC, and O_DSYNC; set direct, sync, and dsync to false, or use another engine
        streams of the C library have a buffer of one record; leave `lengths` empty, or use another engine
        a mapping is the page cache; set direct to false
        stores into a mapping do not heed O_SYNC and O_DSYNC; set sync and dsync to false, and flush with `flush_every`
        the batch is larger than the queue; use a batch within 0..=depth
        a copy is a write; set direction to "write"
        a copy goes to where its data come from; take another access
        polling for completions is for direct I/O; set direct to true
        polling for completions is for direct I/O; set direct to true
        `uncached` is about the page cache, which direct I/O goes around; set one of them to false
        there are no writes to link with a flush; set linked_sync to false
        a sync cannot be polled for; set iopoll or linked_sync to false
        it verifies while it writes; verify a workload that only reads
        nothing is read that could be verified; set verify to false
        copies of several files cannot be told from each other; set files to "split", or verify with one worker
        blocks below 64 bytes have no headers; use larger records"#]].assert_eq(&lines.join("\n"));
}

#[test]
fn the_space_it_takes_is_known() {
    let takes = |settings: &[(&str, &str)]| footprint(&refined(settings).unwrap());
    let write = ("direction", "write");
    assert_eq!(takes(&[("workers", "4")]), Bytes::gib(2));
    assert_eq!(takes(&[("workers", "4"), ("files", "shared")]), Bytes::mib(512));
    assert_eq!(takes(&[("engine", "sendfile"), write]), Bytes::gib(1));
    assert_eq!(takes(&[("engine", "null")]), Bytes(0));
    assert_eq!(takes(&[("access", "append"), write]), Bytes::gib(1));
    let few = [("access", "append"), write, ("fresh", "true"), ("operations", "10")];
    assert_eq!(takes(&few), Bytes::kib(40));
}

#[test]
fn layouts_write_large_records_that_cover_what_is_read() {
    let layout = |settings: &[(&str, &str)]| {
        let phases = phases(&refined(settings).unwrap(), 1);
        let Work::Stream(layout) = phases[0].work.clone() else { unreachable!("a stream") };
        let Work::Stream(measured) = phases[1].work.clone() else { unreachable!("a stream") };
        let whole = |stream: &Stream| stream.size.0 / stream.record.0 * stream.record.0;
        assert_eq!(whole(&layout), whole(&measured), "{settings:?}");
        layout.record
    };
    assert_eq!(layout(&[]), Bytes::mib(1));
    assert_eq!(layout(&[("record", "4MiB")]), Bytes::mib(4));
    assert_eq!(layout(&[("file", "20KiB"), ("record", "8KiB")]), Bytes::kib(16));
    assert_eq!(layout(&[("file", "1128192"), ("record", "47008")]), Bytes(47008 * 12));
    let odd = [("file", "1128192"), ("record", "47008"), ("verify", "true")];
    assert_eq!(layout(&odd), Bytes(47008), "blocks are as long as records there");
}
