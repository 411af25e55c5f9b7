use expect_test::{Expect, expect};
use model::phase::Work;

use super::*;

fn refined(settings: &[(&str, &str)]) -> Result<WorkloadParameters, ValueError> {
    let mut point = SPEC.defaults();
    for (name, text) in settings {
        let kind = SPEC.parameter(name).unwrap().kind;
        point.parameters.insert((*name).into(), kind.read(text).unwrap());
    }
    refine(point).map(|mut points| points.remove(0))
}

fn shown(settings: &[(&str, &str)], expected: Expect) {
    let phases = script::phases(&refined(settings).unwrap(), 7);
    expected.assert_eq(&phases.iter().map(crate::described).collect::<String>());
}

const ENTRIES: &str = "seq-create,seq-stat,seq-delete,ran-create,ran-stat,ran-delete";

#[test]
fn defaults_are_the_twelve_phases_of_bonnie() {
    shown(
        &[],
        expect![[r#"
            putc Measure Unchanged One("bonnie.tmp") 3MiB/8KiB data="marks" direction="write" end_sync="fsync" io_engine="bytewise" open={creation:"fresh",exclusive:true}
            put-block Measure Unchanged One("bonnie.tmp") 1GiB/8KiB data="marks" direction="write" end_sync="fsync" io_engine="position" open={creation:"fresh",exclusive:true}
            rewrite Measure Unchanged One("bonnie.tmp") 1GiB/8KiB data="marks" direction={"update":1.0} end_sync="fsync" io_engine="position" open={exclusive:true}
            getc Measure Unchanged One("bonnie.tmp") 3MiB/8KiB data="marks" end_sync="fsync" io_engine="bytewise" open={exclusive:true}
            get-block Measure Unchanged One("bonnie.tmp") 1GiB/8KiB data="marks" end_sync="fsync" io_engine="position" open={exclusive:true}
            seeks Measure Unchanged Shared("bonnie.tmp") 1GiB/8KiB access_pattern="tickets" bound={"together":8192} data="marks" direction={"update":0.1} end_sync="fsync" io_engine="position" open={exclusive:true} workers={count:5}
            remove-file Prepare Unchanged remove One("bonnie.tmp") 1
            seq-create Measure Unchanged bonnie 16384 Ordered [Create, Close] sync timed-flush
            seq-stat Measure Unchanged bonnie 16384 Ordered [Stat] Listed
            seq-delete Measure Unchanged bonnie 16384 Ordered [Unlink] Listed rmdir sync timed-flush
            ran-create Measure Unchanged bonnie 16384 Scrambled [Create, Close] sync timed-flush
            ran-stat Measure Unchanged bonnie 16384 Scrambled [Stat] Random
            ran-delete Measure Unchanged bonnie 16384 Scrambled [Unlink] Random rmdir sync timed-flush
        "#]],
    );
}

#[test]
fn direct_create_applies_to_the_block_write_only() {
    let blocks = [("tests", "put-block,rewrite,get-block,seeks"), ("direct_create", "true")];
    let point = refined(&blocks).unwrap();
    let direct: Vec<String> = script::phases(&point, 7)
        .into_iter()
        .filter(|phase| matches!(&phase.work, Work::Stream(stream) if stream.open.direct))
        .map(|phase| phase.name)
        .collect();
    assert_eq!(direct, ["put-block"]);
    let both = refined(&[&blocks[..], &[("direct", "true")]].concat()).unwrap();
    assert!(!both.flag("direct_create"), "`direct` includes it");
    assert!(refined(&[("direct_create", "true"), ("block_size", "256")]).is_err());
}

#[test]
fn sized_files_and_synced_directories() {
    let sized = [
        ("tests", ENTRIES),
        ("files", "2048"),
        ("small_file_size_max", "8192"),
        ("small_file_size_min", "1024"),
    ];
    let more = [("directories", "4"), ("fsync_each", "true")];
    shown(
        &[&sized[..], &more[..]].concat(),
        expect![[r#"
            seq-create Measure Unchanged bonnie 2048/513 Uniform { min: Bytes(1024), max: Bytes(8192) }/8KiB Ordered Marks [Create, Write, Fsync, FsyncDirectory, Close] sync timed-flush
            seq-stat Measure Unchanged bonnie 2048/513 Uniform { min: Bytes(1024), max: Bytes(8192) }/8KiB Ordered Marks [Stat, Fetch] Listed
            seq-delete Measure Unchanged bonnie 2048/513 Uniform { min: Bytes(1024), max: Bytes(8192) }/8KiB Ordered Marks [Unlink, FsyncDirectory] Listed rmdir sync timed-flush
            ran-create Measure Unchanged bonnie 2048/513 Uniform { min: Bytes(1024), max: Bytes(8192) }/8KiB Scrambled Marks [Create, Write, Fsync, FsyncDirectory, Close] sync timed-flush
            ran-stat Measure Unchanged bonnie 2048/513 Uniform { min: Bytes(1024), max: Bytes(8192) }/8KiB Scrambled Marks [Stat, Fetch] Random
            ran-delete Measure Unchanged bonnie 2048/513 Uniform { min: Bytes(1024), max: Bytes(8192) }/8KiB Scrambled Marks [Unlink, FsyncDirectory] Random rmdir sync timed-flush
        "#]],
    );
    shown(
        &[("tests", "seq-stat"), ("links", "symbolic")],
        expect![[r#"
            seq-create Prepare Unchanged bonnie 16384 Ordered [SymlinkFirst] sync timed-flush
            seq-stat Measure Unchanged bonnie 16384 Ordered [Stat] Listed
            seq-delete Prepare Unchanged bonnie 16384 Ordered [Unlink] Listed rmdir sync timed-flush
        "#]],
    );
    shown(
        &[("tests", "ran-delete"), ("links", "hard"), ("fsync_each", "true")],
        expect![[r#"
            ran-create Prepare Unchanged bonnie 16384 Scrambled [LinkFirst, FsyncDirectory] sync timed-flush
            ran-delete Measure Unchanged bonnie 16384 Scrambled [Unlink, FsyncDirectory] Random rmdir sync timed-flush
        "#]],
    );
}

#[test]
fn additions_to_bonnie() {
    let beyond = [
        ("workers", "4"),
        ("worker_type", "process"),
        ("cache", "cold"),
        ("direct", "true"),
        ("content", "random"),
        ("fsync_each", "true"),
        ("tests", "put-block,getc,seeks,seq-create"),
    ];
    shown(
        &beyond,
        expect![[r#"
            put-block Measure Cold PerWorker("bonnie.tmp") 1GiB/8KiB direction="write" end_sync="fsync" io_engine="position" open={creation:"fresh",direct:true,exclusive:true} workers={count:4,kind:"process"}
            getc Measure Cold PerWorker("bonnie.tmp") 3MiB/8KiB end_sync="fsync" io_engine="bytewise" open={exclusive:true} workers={count:4,kind:"process"}
            seeks Measure Cold PerWorker("bonnie.tmp") 1GiB/8KiB access_pattern="tickets" bound={"ops":8192} data="marks" direction={"update":0.1} end_sync="fsync" io_engine="position" open={direct:true,exclusive:true} sync_every={"after":{"ops":1},"call":"fsync"} workers={count:4,kind:"process"}
            remove-file Prepare Unchanged remove PerWorker("bonnie.tmp") 4
            seq-create Measure Cold bonnie 16384 Ordered [Create, Fsync, FsyncDirectory, Close] sync workers=4 Process timed-flush
            seq-delete Prepare Unchanged bonnie 16384 Ordered [Unlink, FsyncDirectory] Listed rmdir sync workers=4 Process timed-flush
        "#]],
    );
}

#[test]
fn requirements_of_phases_are_prepared() {
    shown(
        &[("tests", "seeks,putc")],
        expect![[r#"
            putc Measure Unchanged One("bonnie.tmp") 3MiB/8KiB data="marks" direction="write" end_sync="fsync" io_engine="bytewise" open={creation:"fresh",exclusive:true}
            put-block Prepare Unchanged One("bonnie.tmp") 1GiB/8KiB data="marks" direction="write" end_sync="fsync" io_engine="position" open={creation:"fresh",exclusive:true}
            seeks Measure Unchanged Shared("bonnie.tmp") 1GiB/8KiB access_pattern="tickets" bound={"together":8192} data="marks" direction={"update":0.1} end_sync="fsync" io_engine="position" open={exclusive:true} workers={count:5}
            remove-file Prepare Unchanged remove One("bonnie.tmp") 1
        "#]],
    );
    shown(
        &[("tests", "putc")],
        expect![[r#"
            putc Measure Unchanged One("bonnie.tmp") 3MiB/8KiB data="marks" direction="write" end_sync="fsync" io_engine="bytewise" open={creation:"fresh",exclusive:true}
            remove-file Prepare Unchanged remove One("bonnie.tmp") 1
        "#]],
    );
}

/// The original's 2048 files in 4 directories: 513, 513, 513, and 509.
#[test]
fn directories_are_filled_one_after_the_other() {
    let point = refined(&[("files", "2048"), ("directories", "4")]).unwrap();
    let create = script::phases(&point, 7).into_iter().find(|phase| phase.name == "seq-create");
    let Some(model::Phase { work: model::phase::Work::Tree(tree), .. }) = create else {
        panic!("there is a tree")
    };
    assert_eq!(tree.set.spread, model::phase::Spread::Directories { each: 513 });
}

#[test]
fn equal_workloads_have_equal_parameters() {
    let same = |one: &[(&str, &str)], other: &[(&str, &str)]| {
        let (one, other) = (refined(one).unwrap(), refined(other).unwrap());
        assert_eq!(refine(one.clone()).unwrap(), vec![one.clone()], "refining is done once");
        assert_eq!(one, other);
    };
    same(&[("file_size", "1MiB")], &[("file_size", "1MiB"), ("char_io_size", "1GiB")]);
    same(&[("tests", "putc,seeks")], &[("tests", "seeks,putc"), ("files", "1")]);
    same(&[("tests", ENTRIES)], &[("tests", ENTRIES), ("file_size", "1KiB"), ("direct", "true")]);
    same(
        &[("tests", ENTRIES)],
        &[("tests", ENTRIES), ("content", "random"), ("incompressible_fraction", "0.1")],
    );
    same(
        &[],
        &[
            ("incompressible_fraction", "0.5"),
            ("worker_type", "process"),
            ("small_file_block_size", "1KiB"),
        ],
    );
    same(&[("workers", "2")], &[("workers", "2"), ("seekers", "9")]);
    same(&[("tests", "put-block")], &[("tests", "put-block"), ("fsync_each", "true")]);
    let sized = [("small_file_size_max", "4KiB"), ("small_file_size_min", "4KiB")];
    same(&sized, &[&sized[..], &[("small_file_block_size", "64KiB")]].concat());
}

#[test]
fn invalid_combinations_are_rejected_with_a_hint() {
    let refused = |settings: &[(&str, &str)]| {
        let error = refined(settings).unwrap_err();
        format!("{error}; {}\n", error.hint.clone().unwrap_or_default())
    };
    let lines = [
        refused(&[("file_size", "4KiB")]),
        refused(&[("char_io_size", "4KiB")]),
        refused(&[("direct", "true"), ("block_size", "1000")]),
        refused(&[("small_file_size_min", "4KiB")]),
        refused(&[("small_file_size_max", "4KiB"), ("links", "hard")]),
    ];
    expect![[r#"
        a block of 8KiB does not fit into a file of 4KiB; set `file_size` to at least `block_size`
        `char_io_size` 4KiB is less than one block; set `char_io_size` to at least `block_size`, or remove putc and getc from `tests`
        blocks of 1000B cannot be written with O_DIRECT; set `block_size` to a multiple of 512 bytes, or 4096 on disks with such sectors
        `small_file_size_min` 4KiB is greater than `small_file_size_max` 0B; set `small_file_size_max` to at least `small_file_size_min`
        links have no data: they refer to an empty file; remove `small_file_size_max` and `small_file_size_min`, or set `links` to "none"
    "#]].assert_eq(&lines.concat());
}

#[test]
fn footprint_is_estimated() {
    let takes = |settings: &[(&str, &str)]| footprint(&refined(settings).unwrap());
    assert_eq!(takes(&[]), Bytes::mib(1024));
    assert_eq!(takes(&[("workers", "3")]), Bytes::mib(3072));
    assert_eq!(takes(&[("tests", "seq-create")]), Bytes::mib(16), "1 KiB for each");
    let sized = [("tests", "seq-create"), ("files", "10"), ("small_file_size_max", "4KiB")];
    assert_eq!(takes(&sized), Bytes::kib(90), "half of 4 KiB, a block, and the inode");
    let fixed = [&sized[..], &[("small_file_size_min", "4KiB")]].concat();
    assert_eq!(takes(&fixed), Bytes::kib(50));
}
