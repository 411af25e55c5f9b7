use expect_test::{Expect, expect};
use model::workload::ValueError;

use super::*;

fn point(settings: &[(&str, &str)]) -> WorkloadParameters {
    let mut point = table::SPEC.defaults();
    for (name, text) in settings {
        let kind = table::SPEC.parameter(name).unwrap().kind;
        point.parameters.insert((*name).into(), kind.read(text).unwrap());
    }
    point
}

fn refined(settings: &[(&str, &str)]) -> Result<WorkloadParameters, ValueError> {
    check::refine(point(settings)).map(|mut points| points.remove(0))
}

/// Compares one-line descriptions of the phases.
fn shown(settings: &[(&str, &str)], expected: Expect) {
    let phases = phases(&refined(settings).unwrap(), 7);
    expected.assert_eq(&phases.iter().map(crate::described).collect::<String>());
}

fn refused(settings: &[(&str, &str)]) -> String {
    let error = refined(settings).unwrap_err();
    format!("{error}; {}", error.hint.clone().unwrap_or_default())
}

#[test]
fn files_are_created_and_read() {
    shown(
        &[],
        expect![[r#"
            layout Prepare Unchanged PerWorker("file") 512MiB/1MiB direction="write" end_sync="fsync" open={creation:"fresh"}
            read Measure Cold PerWorker("file") 512MiB/4KiB
        "#]],
    );
    shown(
        &[("file_size", "1128192"), ("block_size", "47008"), ("verify", "true")],
        expect![[r#"
            layout Prepare Unchanged PerWorker("file") 1128192B/47008B direction="write" end_sync="fsync" open={creation:"fresh"}
            read Measure Cold PerWorker("file") 1128192B/47008B verify=true
        "#]],
    );
}

#[test]
fn writes_of_new_files_have_no_layout() {
    shown(
        &[("direction", "write"), ("overwrite", "false"), ("workers", "2")],
        expect![[r#"
            write Measure Cold PerWorker("file") 512MiB/4KiB direction="write" end_sync="fsync" open={creation:"fresh"} workers={count:2}
        "#]],
    );
    shown(
        &[
            ("direction", "write"),
            ("overwrite", "false"),
            ("workers", "2"),
            ("sharing", "segmented"),
        ],
        expect![[r#"
            write Measure Cold Segmented("file") 512MiB/4KiB direction="write" end_sync="fsync" open={creation:"any"} workers={count:2}
        "#]],
    );
    shown(
        &[("direction", "write"), ("access_pattern", "append"), ("overwrite", "false")],
        expect![[r#"
            append Measure Cold PerWorker("file") 512MiB/4KiB access_pattern="append" direction="write" end_sync="fsync" open={creation:"fresh"}
        "#]],
    );
}

#[test]
fn copies_have_the_source_names_of_the_engine() {
    shown(
        &[("io_engine", "splice"), ("direction", "write"), ("workers", "2")],
        expect![[r#"
            layout-0 Prepare Unchanged One("file.0.source") 512MiB/1MiB direction="write" end_sync="fsync" open={creation:"fresh"}
            layout-1 Prepare Unchanged One("file.1.source") 512MiB/1MiB direction="write" end_sync="fsync" open={creation:"fresh"}
            copy Measure Cold PerWorker("file") 512MiB/4KiB direction="write" end_sync="fsync" io_engine={"copy":"splice"} open={creation:"fresh"} workers={count:2}
        "#]],
    );
    shown(
        &[
            ("io_engine", "copy_file_range"),
            ("direction", "write"),
            ("workers", "2"),
            ("sharing", "segmented"),
            ("cache", "warm"),
        ],
        expect![[r#"
            layout Prepare Unchanged One("file.source") 512MiB/1MiB direction="write" end_sync="fsync" open={creation:"fresh"}
            warm Prepare Unchanged One("file.source") 512MiB/1MiB
            copy Measure Warm Segmented("file") 512MiB/4KiB direction="write" end_sync="fsync" io_engine={"copy":"copy-file-range"} open={creation:"any"} workers={count:2}
        "#]],
    );
}

#[test]
fn parameters_set_stream_fields() {
    shown(
        &[
            ("direction", "mixed"),
            ("read_fraction", "0.25"),
            ("block_size_split", "4k:2,64k:2"),
            ("access_pattern", "zipf"),
            ("zipf_theta", "1.2"),
            ("io_engine", "io_uring"),
            ("queue_depth", "32"),
            ("submit_batch", "8"),
            ("sqpoll", "true"),
            ("linked_fdatasync", "true"),
            ("fixed_buffers", "false"),
            ("direct", "true"),
            ("o_dsync", "true"),
            ("fsync_every", "1MiB"),
            ("fsync_call", "sync_file_range"),
            ("end_fsync", "fdatasync"),
            ("rate", "1000/s"),
            ("arrivals", "poisson"),
            ("runtime", "10s"),
            ("ramp_time", "2s"),
            ("workers", "4"),
            ("worker_type", "process"),
            ("stonewall", "finish"),
            ("pin", "true"),
            ("io_priority", "be-6"),
            ("cache", "unchanged"),
            ("incompressible_fraction", "0.5"),
            ("duplicate_fraction", "0.25"),
            ("sharing", "shared"),
        ],
        expect![[r#"
            layout Prepare Unchanged One("file") 512MiB/1MiB data={random:{"duplicate_fraction":0.25,"incompressible_fraction":0.5}} direction="write" end_sync="fsync" open={creation:"fresh"}
            mixed Measure Unchanged Shared("file") 512MiB/4KiB access_pattern={"zipf":{"theta":1.2}} block_sizes=[{"blocks":1,"weight":1},{"blocks":16,"weight":1}] bound={"time":{"ramp":2000000000,"run":10000000000}} data={random:{"duplicate_fraction":0.25,"incompressible_fraction":0.5}} direction={"mixed":0.25} end_sync="fdatasync" io_engine={"ring":{"depth":32,"fixed_buffers":false,"iopoll":false,"linked_fdatasync":true,"nop":false,"sqpoll":true,"submit_batch":8}} open={direct:true,dsync:true} pace={"open":{"arrivals":"poisson","rate":{"ops":1000}}} sync_every={"after":{"bytes":1048576},"call":{"range":{"wait_after":true,"wait_before":true,"write":true}}} workers={count:4,io_priority:{"best-effort":6},kind:"process",pin:"each",stonewall:"finish"}
        "#]],
    );
}

#[test]
fn parameters_of_other_engines_set_stream_fields() {
    shown(
        &[
            ("io_engine", "preadv2"),
            ("direction", "separate"),
            ("readers", "1"),
            ("workers", "3"),
            ("access_pattern", "hotspot"),
            ("nowait", "true"),
            ("uncached", "true"),
            ("o_dsync", "true"),
            ("think_time", "5ms"),
            ("think_time_every", "3"),
            ("operations", "100"),
            ("fsync_every", "8"),
            ("end_fsync", "none"),
            ("read_first_block", "true"),
            ("fsync_after_open", "true"),
        ],
        expect![[r#"
            layout Prepare Unchanged PerWorker("file") 512MiB/1MiB direction="write" end_sync="fsync" open={creation:"fresh"} workers={count:3}
            mixed Measure Cold PerWorker("file") 512MiB/4KiB access_pattern={"hotspot":{"space":0.1,"visits":0.9}} bound={"ops":100} direction={"first_read":1} io_engine={"vector":{"dsync":true,"hipri":false,"nowait":true,"uncached":true}} open={fsync:true,read_first_block:true} pace={"think":{"ops":3,"pause":5000000}} sync_every={"after":{"ops":8},"call":"fdatasync"} workers={count:3}
        "#]],
    );
    shown(
        &[("io_engine", "io_uring"), ("iopoll", "true"), ("direct", "true")],
        expect![[r#"
            layout Prepare Unchanged PerWorker("file") 512MiB/1MiB direction="write" end_sync="fsync" open={creation:"fresh"}
            read Measure Cold PerWorker("file") 512MiB/4KiB io_engine={"ring":{"depth":1,"fixed_buffers":true,"iopoll":true,"linked_fdatasync":false,"nop":false,"sqpoll":false,"submit_batch":1}} open={direct:true}
        "#]],
    );
    shown(
        &[("io_engine", "null"), ("rate", "10MiB/s"), ("access_pattern", "strided")],
        expect![[r#"
            read Measure Cold PerWorker("file") 512MiB/4KiB access_pattern={"stride":{"blocks":17}} io_engine="null" open={creation:"any"} pace={"limit":{"bytes":10485760}}
        "#]],
    );
    shown(
        &[("io_engine", "mmap"), ("madvise", "willneed"), ("access_pattern", "pareto")],
        expect![[r#"
            layout Prepare Unchanged PerWorker("file") 512MiB/1MiB direction="write" end_sync="fsync" open={creation:"fresh"}
            read Measure Cold PerWorker("file") 512MiB/4KiB access_pattern={"pareto":{"share":0.2}} io_engine={"mmap":"will-need"}
        "#]],
    );
    shown(
        &[("access_pattern", "trace"), ("trace_file", "/tmp/list"), ("cache", "warm")],
        expect![[r#"
            layout Prepare Unchanged PerWorker("file") 512MiB/1MiB direction="write" end_sync="fsync" open={creation:"fresh"}
            warm Prepare Unchanged PerWorker("file") 512MiB/1MiB
            replay Measure Warm PerWorker("file") 512MiB/4KiB access_pattern="trace" direction={"mixed":0.5} end_sync="fsync" trace_file="/tmp/list"
        "#]],
    );
}

#[test]
fn equal_workloads_have_equal_parameters() {
    let plain = refined(&[]).unwrap();
    let unused = [
        ("queue_depth", "32"),
        ("zipf_theta", "2"),
        ("hotspot_data_fraction", "0.3"),
        ("end_fsync", "none"),
        ("read_fraction", "0.1"),
        ("ramp_time", "1s"),
        ("madvise", "random"),
        ("sharing", "segmented"),
        ("stonewall", "stop"),
        ("block_size_split", "4KiB:3"),
        ("fsync_every", "1"),
        ("trace_file", "/tmp/list"),
    ];
    for setting in unused {
        assert_eq!(refined(&[setting]).unwrap(), plain, "{setting:?}");
    }
    let mixed = refined(&[("direction", "mixed"), ("read_fraction", "1.0")]).unwrap();
    assert_eq!(mixed, plain, "only reads");
    let synced =
        refined(&[("direction", "write"), ("o_sync", "true"), ("o_dsync", "true")]).unwrap();
    assert!(!synced.flag("o_dsync"), "O_SYNC includes it");
    let refined_again = check::refine(synced.clone()).unwrap();
    assert_eq!(refined_again, [synced], "refining is idempotent");
}

#[test]
fn texts_have_one_canonical_form() {
    let sizes = |text: &str| text::read_block_sizes(text).map_err(|error| error.message);
    assert_eq!(sizes("4k:6, 65536:2").unwrap(), "4KiB:3,64KiB:1");
    assert_eq!(sizes("8KiB").unwrap(), "8KiB:1");
    assert_eq!(sizes(" ").unwrap(), "");
    assert_eq!(sizes("4k:0").unwrap_err(), "invalid weight `0`");
    assert_eq!(sizes("4k,4096:2").unwrap_err(), "duplicate block size 4KiB");
    assert_eq!(sizes("0").unwrap_err(), "the block size is 0");
    let rate = |text: &str| text::read_rate(text).map_err(|error| error.message);
    assert_eq!(rate(" 1000/s ").unwrap(), "1000/s");
    assert_eq!(rate("1024KiB/s").unwrap(), "1MiB/s");
    assert_eq!((rate("0").unwrap(), rate("0/s").unwrap()), ("0".into(), "0".into()));
    assert_eq!(rate("1000").unwrap_err(), "`1000` is not a rate");
    assert_eq!(text::rate("1MiB/s"), Some(model::phase::Rate::Bytes(Bytes::mib(1))));
    assert_eq!(text::rate("7/s"), Some(model::phase::Rate::Ops(7)));
    let interval = |text: &str| text::read_interval(text).map_err(|error| error.message);
    assert_eq!(interval("1024 KiB").unwrap(), "1MiB");
    assert_eq!(interval("08").unwrap(), "8");
    assert!(interval("often").is_err());
}

const WRITE: (&str, &str) = ("direction", "write");

const CONTRADICTIONS: &[&[(&str, &str)]] = &[
    &[("rate", "5/s"), ("think_time", "1s")],
    &[("arrivals", "poisson")],
    &[("runtime", "1s"), ("operations", "5")],
    &[("access_pattern", "pareto"), ("pareto_h", "0.5")],
    &[("access_pattern", "hotspot"), ("hotspot_data_fraction", "1.0")],
    &[("access_pattern", "append")],
    &[("access_pattern", "append"), WRITE, ("io_engine", "mmap")],
    &[("access_pattern", "append"), WRITE, ("io_engine", "io_uring"), ("queue_depth", "2")],
    &[("access_pattern", "trace")],
    &[("direction", "separate")],
    &[("direction", "separate"), ("workers", "2"), ("readers", "2")],
    &[("overwrite", "false")],
    &[WRITE, ("overwrite", "false"), ("cache", "warm")],
    &[("block_size_split", "6KiB")],
    &[("file_size", "1MiB"), ("block_size", "2MiB")],
    &[("file_size", "1MiB"), ("block_size", "512KiB"), ("sharing", "segmented"), ("workers", "3")],
    &[("sharing", "interleaved"), ("workers", "2"), ("block_size_split", "8KiB")],
    &[("sharing", "interleaved"), ("workers", "2"), ("access_pattern", "append"), WRITE],
    &[("direct", "true"), ("block_size", "1000")],
    &[("io_engine", "stdio"), ("direct", "true")],
    &[("io_engine", "stdio"), ("block_size_split", "8KiB")],
    &[("io_engine", "mmap"), ("direct", "true")],
    &[("io_engine", "mmap"), WRITE, ("o_dsync", "true")],
    &[("io_engine", "io_uring"), ("queue_depth", "2"), ("submit_batch", "3")],
    &[("io_engine", "sendfile")],
    &[("io_engine", "sendfile"), WRITE, ("access_pattern", "append")],
    &[("io_engine", "io_uring"), ("iopoll", "true")],
    &[("io_engine", "preadv2"), ("hipri", "true")],
    &[("io_engine", "preadv2"), ("uncached", "true"), ("direct", "true")],
    &[("io_engine", "io_uring"), ("linked_fdatasync", "true")],
    &[
        ("io_engine", "io_uring"),
        WRITE,
        ("direct", "true"),
        ("iopoll", "true"),
        ("linked_fdatasync", "true"),
    ],
    &[("direction", "mixed"), ("verify", "true")],
    &[("io_engine", "null"), ("verify", "true")],
    &[("io_engine", "splice"), WRITE, ("verify", "true"), ("workers", "2")],
    &[("block_size", "32"), ("verify", "true")],
];

#[test]
fn contradictions_are_rejected_with_a_hint() {
    let lines: Vec<_> = CONTRADICTIONS.iter().map(|settings| refused(settings)).collect();
    expect![[r#"
        `rate` and `think_time` exclude each other; set one of them to 0
        `arrivals` requires `rate`; set `rate` to a value such as "1000/s", or `arrivals` to "closed-loop"
        `runtime` and `operations` exclude each other; set `runtime` to "0s" or `operations` to 0
        `pareto_h` is out of range; use a number greater than 0 and less than 0.5
        `hotspot_data_fraction` is out of range; use a number greater than 0 and less than 1
        access pattern `append` requires writes; set `direction` to "write", or use another `access_pattern`
        mmap cannot append; use another `io_engine`
        appends in flight are not ordered; set `queue_depth` to 1
        access pattern `trace` requires `trace_file`; set `trace_file` to a path
        `separate` requires at least one reader and one writer; use at least 2 `workers`, and fewer `readers` than `workers`
        `separate` requires at least one reader and one writer; use at least 2 `workers`, and fewer `readers` than `workers`
        `overwrite` = false creates new files, which cannot be read; set `overwrite` to true, or `direction` to "write"
        a warm cache requires existing files; set `cache` to "unchanged"
        6KiB in `block_size_split` is not a multiple of `block_size`, 4KiB; set `block_size` to a common divisor of all sizes
        a block of 2MiB does not fit into a file of 1MiB; use larger files, smaller blocks, or fewer workers
        a block of 512KiB does not fit into a segment of 349525B; use larger files, smaller blocks, or fewer workers
        interleaved blocks have one size; remove `block_size_split`, or set `sharing` to "segmented"
        `append` does not interleave blocks; set `sharing` to "segmented", or use another `access_pattern`
        direct I/O requires whole sectors; `block_size` is 1000B; use a multiple of 512 (4KiB suits most devices)
        stdio does not support O_DIRECT, O_SYNC, and O_DSYNC; set `direct`, `o_sync`, and `o_dsync` to false, or use another `io_engine`
        stdio has a buffer of one block; remove `block_size_split`, or use another `io_engine`
        mmap does not support direct I/O; set `direct` to false
        mmap does not support O_SYNC and O_DSYNC; set `o_sync` and `o_dsync` to false, and use `fsync_every`
        `submit_batch` is larger than `queue_depth`; use at most `queue_depth`
        copy engines require writes; set `direction` to "write"
        copy engines do not support this access pattern; use another `access_pattern`
        polling requires direct I/O; set `direct` to true
        polling requires direct I/O; set `direct` to true
        `uncached` and `direct` exclude each other; set one of them to false
        `linked_fdatasync` requires writes; set `linked_fdatasync` to false
        fdatasync does not support polling; set `iopoll` or `linked_fdatasync` to false
        `verify` does not support writes; use `verify` with a workload that only reads
        `verify` requires reads; set `verify` to false
        `verify` cannot distinguish copies of several files; set `sharing` to "segmented", or use one worker
        blocks below 64 bytes have no headers; use a larger `block_size`"#]].assert_eq(&lines.join("\n"));
}

#[test]
fn footprint_includes_copies_and_appends() {
    let takes = |settings: &[(&str, &str)]| footprint(&refined(settings).unwrap());
    let write = ("direction", "write");
    assert_eq!(takes(&[("workers", "4")]), Bytes::gib(2));
    assert_eq!(takes(&[("workers", "4"), ("sharing", "shared")]), Bytes::mib(512));
    assert_eq!(takes(&[("io_engine", "sendfile"), write]), Bytes::gib(1));
    assert_eq!(takes(&[("io_engine", "null")]), Bytes(0));
    assert_eq!(takes(&[("access_pattern", "append"), write]), Bytes::gib(1));
    let few = [("access_pattern", "append"), write, ("overwrite", "false"), ("operations", "10")];
    assert_eq!(takes(&few), Bytes::kib(40));
}

#[test]
fn layouts_use_large_blocks() {
    let layout = |settings: &[(&str, &str)]| {
        let phases = phases(&refined(settings).unwrap(), 1);
        let Work::Stream(layout) = phases[0].work.clone() else { unreachable!("a stream") };
        let Work::Stream(measured) = phases[1].work.clone() else { unreachable!("a stream") };
        let whole = |stream: &Stream| stream.size.0 / stream.block_size.0 * stream.block_size.0;
        assert_eq!(whole(&layout), whole(&measured), "{settings:?}");
        layout.block_size
    };
    assert_eq!(layout(&[]), Bytes::mib(1));
    assert_eq!(layout(&[("block_size", "4MiB")]), Bytes::mib(4));
    assert_eq!(layout(&[("file_size", "20KiB"), ("block_size", "8KiB")]), Bytes::kib(16));
    assert_eq!(layout(&[("file_size", "1128192"), ("block_size", "47008")]), Bytes(47008 * 12));
    let odd = [("file_size", "1128192"), ("block_size", "47008"), ("verify", "true")];
    assert_eq!(layout(&odd), Bytes(47008), "layout blocks equal verified blocks");
}
