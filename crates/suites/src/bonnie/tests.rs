use expect_test::{Expect, expect};

use super::*;

fn refined(settings: &[(&str, &str)]) -> Result<Point, ValueError> {
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
fn the_twelve_phases_of_the_original() {
    shown(
        &[],
        expect![[r#"
            putc Measure AsLeft One("bonnie.tmp") 3MiB/8KiB direction="write" fill="marks" flush="fsync" interface="bytewise" open={own:true,presence:"fresh"}
            put-block Measure AsLeft One("bonnie.tmp") 1GiB/8KiB direction="write" fill="marks" flush="fsync" interface="position" open={own:true,presence:"fresh"}
            rewrite Measure AsLeft One("bonnie.tmp") 1GiB/8KiB direction={"update":1.0} fill="marks" flush="fsync" interface="position" open={own:true}
            getc Measure AsLeft One("bonnie.tmp") 3MiB/8KiB fill="marks" flush="fsync" interface="bytewise" open={own:true}
            get-block Measure AsLeft One("bonnie.tmp") 1GiB/8KiB fill="marks" flush="fsync" interface="position" open={own:true}
            seeks Measure AsLeft Shared("bonnie.tmp") 1GiB/8KiB access="tickets" bound={"together":8192} direction={"update":0.1} fill="marks" flush="fsync" interface="position" open={own:true} workers={count:5}
            remove-file Prepare AsLeft remove One("bonnie.tmp") 1
            seq-create Measure AsLeft bonnie 16384 Ordered [Create, Close] sync timed-flush
            seq-stat Measure AsLeft bonnie 16384 Ordered [Stat] Listed
            seq-delete Measure AsLeft bonnie 16384 Ordered [Unlink] Listed rmdir sync timed-flush
            ran-create Measure AsLeft bonnie 16384 Scrambled [Create, Close] sync timed-flush
            ran-stat Measure AsLeft bonnie 16384 Scrambled [Stat] Shuffled
            ran-delete Measure AsLeft bonnie 16384 Scrambled [Unlink] Shuffled rmdir sync timed-flush
        "#]],
    );
}

#[test]
fn files_with_sizes_and_directories_that_are_synced() {
    let sized = [("tests", ENTRIES), ("files", "2048"), ("max_size", "8192"), ("min_size", "1024")];
    let more = [("directories", "4"), ("sync", "true")];
    shown(
        &[&sized[..], &more[..]].concat(),
        expect![[r#"
        seq-create Measure AsLeft bonnie 2048/513 Uniform { min: Bytes(1024), max: Bytes(8192) }/8KiB Ordered Marks [Create, Write, Fsync, FsyncDirectory, Close] sync timed-flush
        seq-stat Measure AsLeft bonnie 2048/513 Uniform { min: Bytes(1024), max: Bytes(8192) }/8KiB Ordered Marks [Stat, Fetch] Listed
        seq-delete Measure AsLeft bonnie 2048/513 Uniform { min: Bytes(1024), max: Bytes(8192) }/8KiB Ordered Marks [Unlink, FsyncDirectory] Listed rmdir sync timed-flush
        ran-create Measure AsLeft bonnie 2048/513 Uniform { min: Bytes(1024), max: Bytes(8192) }/8KiB Scrambled Marks [Create, Write, Fsync, FsyncDirectory, Close] sync timed-flush
        ran-stat Measure AsLeft bonnie 2048/513 Uniform { min: Bytes(1024), max: Bytes(8192) }/8KiB Scrambled Marks [Stat, Fetch] Shuffled
        ran-delete Measure AsLeft bonnie 2048/513 Uniform { min: Bytes(1024), max: Bytes(8192) }/8KiB Scrambled Marks [Unlink, FsyncDirectory] Shuffled rmdir sync timed-flush
    "#]],
    );
    shown(
        &[("tests", "seq-stat"), ("links", "symbolic")],
        expect![[r#"
        seq-create Prepare AsLeft bonnie 16384 Ordered [SymlinkFirst] sync timed-flush
        seq-stat Measure AsLeft bonnie 16384 Ordered [Stat] Listed
        seq-delete Prepare AsLeft bonnie 16384 Ordered [Unlink] Listed rmdir sync timed-flush
    "#]],
    );
    shown(
        &[("tests", "ran-delete"), ("links", "hard"), ("sync", "true")],
        expect![[r#"
        ran-create Prepare AsLeft bonnie 16384 Scrambled [LinkFirst, FsyncDirectory] sync timed-flush
        ran-delete Measure AsLeft bonnie 16384 Scrambled [Unlink, FsyncDirectory] Shuffled rmdir sync timed-flush
    "#]],
    );
}

#[test]
fn beyond_the_original() {
    let beyond = [
        ("workers", "4"),
        ("worker", "process"),
        ("cache", "cold"),
        ("direct", "true"),
        ("content", "random"),
        ("sync", "true"),
        ("tests", "put-block,getc,seeks,seq-create"),
    ];
    shown(
        &beyond,
        expect![[r#"
            put-block Measure Cold PerWorker("bonnie.tmp") 1GiB/8KiB direction="write" flush="fsync" interface="position" open={direct:true,own:true,presence:"fresh"} workers={count:4,kind:"process"}
            getc Measure Cold PerWorker("bonnie.tmp") 3MiB/8KiB flush="fsync" interface="bytewise" open={own:true} workers={count:4,kind:"process"}
            seeks Measure Cold PerWorker("bonnie.tmp") 1GiB/8KiB access="tickets" bound={"ops":8192} direction={"update":0.1} fill="marks" flush="fsync" flush_every={"after":{"ops":1},"call":"fsync"} interface="position" open={direct:true,own:true} workers={count:4,kind:"process"}
            remove-file Prepare AsLeft remove PerWorker("bonnie.tmp") 4
            seq-create Measure Cold bonnie 16384 Ordered [Create, Fsync, FsyncDirectory, Close] sync workers=4 Process timed-flush
            seq-delete Prepare AsLeft bonnie 16384 Ordered [Unlink, FsyncDirectory] Listed rmdir sync workers=4 Process timed-flush
        "#]],
    );
}

#[test]
fn what_a_phase_needs_is_prepared() {
    shown(
        &[("tests", "seeks,putc")],
        expect![[r#"
            putc Measure AsLeft One("bonnie.tmp") 3MiB/8KiB direction="write" fill="marks" flush="fsync" interface="bytewise" open={own:true,presence:"fresh"}
            put-block Prepare AsLeft One("bonnie.tmp") 1GiB/8KiB direction="write" fill="marks" flush="fsync" interface="position" open={own:true,presence:"fresh"}
            seeks Measure AsLeft Shared("bonnie.tmp") 1GiB/8KiB access="tickets" bound={"together":8192} direction={"update":0.1} fill="marks" flush="fsync" interface="position" open={own:true} workers={count:5}
            remove-file Prepare AsLeft remove One("bonnie.tmp") 1
        "#]],
    );
    shown(
        &[("tests", "putc")],
        expect![[r#"
            putc Measure AsLeft One("bonnie.tmp") 3MiB/8KiB direction="write" fill="marks" flush="fsync" interface="bytewise" open={own:true,presence:"fresh"}
            remove-file Prepare AsLeft remove One("bonnie.tmp") 1
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
fn equal_work_has_equal_parameters() {
    let same = |one: &[(&str, &str)], other: &[(&str, &str)]| {
        let (one, other) = (refined(one).unwrap(), refined(other).unwrap());
        assert_eq!(refine(one.clone()).unwrap(), vec![one.clone()], "refining is done once");
        assert_eq!(one, other);
    };
    same(&[("file", "1MiB")], &[("file", "1MiB"), ("byte_part", "1GiB")]);
    same(&[("tests", "putc,seeks")], &[("tests", "seeks,putc"), ("files", "1")]);
    same(&[("tests", ENTRIES)], &[("tests", ENTRIES), ("file", "1KiB"), ("direct", "true")]);
    same(&[("tests", ENTRIES)], &[("tests", ENTRIES), ("content", "random"), ("entropy", "0.1")]);
    same(&[], &[("entropy", "0.5"), ("worker", "process"), ("file_chunk", "1KiB")]);
    same(&[("workers", "2")], &[("workers", "2"), ("seekers", "9")]);
    same(&[("tests", "put-block")], &[("tests", "put-block"), ("sync", "true")]);
    let sized = [("max_size", "4KiB"), ("min_size", "4KiB")];
    same(&sized, &[&sized[..], &[("file_chunk", "64KiB")]].concat());
}

#[test]
fn combinations_that_cannot_be_are_refused_with_a_cure() {
    let refused = |settings: &[(&str, &str)]| {
        let error = refined(settings).unwrap_err();
        format!("{error}; {}\n", error.cure.clone().unwrap_or_default())
    };
    let lines = [
        refused(&[("file", "4KiB")]),
        refused(&[("byte_part", "4KiB")]),
        refused(&[("direct", "true"), ("chunk", "1000")]),
        refused(&[("min_size", "4KiB")]),
        refused(&[("max_size", "4KiB"), ("links", "hard")]),
    ];
    expect![[r#"
        a chunk of 8KiB does not fit into a file of 4KiB; make `file` at least as large as `chunk`
        4KiB for putc and getc are less than one chunk; make `byte_part` at least as large as `chunk`, or leave both out of `tests`
        chunks of 1000B cannot be written with O_DIRECT; make `chunk` a multiple of 512 bytes, or 4096 on disks with such sectors
        the smallest size, 4KiB, is above the largest, 0B; make `max_size` at least as large as `min_size`
        links have no sizes: the one file they lead to is empty; leave `max_size` and `min_size` out, or set `links` to "none"
    "#]].assert_eq(&lines.concat());
}

#[test]
fn the_space_it_takes_is_known() {
    let takes = |settings: &[(&str, &str)]| footprint(&refined(settings).unwrap());
    assert_eq!(takes(&[]), Bytes::mib(1024));
    assert_eq!(takes(&[("workers", "3")]), Bytes::mib(3072));
    assert_eq!(takes(&[("tests", "seq-create")]), Bytes::mib(16), "1 KiB for each");
    let sized = [("tests", "seq-create"), ("files", "10"), ("max_size", "4KiB")];
    assert_eq!(takes(&sized), Bytes::kib(90), "half of 4 KiB, a block, and the inode");
    let fixed = [&sized[..], &[("min_size", "4KiB")]].concat();
    assert_eq!(takes(&fixed), Bytes::kib(50));
}
