use expect_test::{Expect, expect};

use super::*;

fn refined(settings: &[(&str, &str)]) -> WorkloadParameters {
    let mut point = SPEC.defaults();
    for (name, text) in settings {
        let kind = SPEC.parameter(name).unwrap().kind;
        point.parameters.insert((*name).into(), kind.read(text).unwrap());
    }
    refine(point).unwrap().remove(0)
}

fn shown(settings: &[(&str, &str)], expected: Expect) {
    let phases = phases(&refined(settings), 7);
    expected.assert_eq(&phases.iter().map(crate::described).collect::<String>());
}

#[test]
fn the_five_operations_of_the_study() {
    shown(
        &[("files", "350000"), ("workers", "4")],
        expect![[r#"
            write Measure Cold small-files 350000/200 Uniform { min: Bytes(0), max: Bytes(100000) }/64KiB [MakeParent, Create, Write, Close, Chown, Chmod] workers=4 Process
            stat Measure Cold small-files 350000/200 Uniform { min: Bytes(0), max: Bytes(100000) }/64KiB [Stat] Listed workers=4 Process
            read Measure Cold small-files 350000/200 Uniform { min: Bytes(0), max: Bytes(100000) }/64KiB [OpenRead, Read, Close] Listed workers=4 Process
            rewrite Measure Cold small-files 350000/200 Uniform { min: Bytes(0), max: Bytes(100000) }/64KiB [MakeParent, Unlink, Create, Write, Close, Chown, Chmod] Listed workers=4 Process
            unlink Measure Cold small-files 350000/200 Uniform { min: Bytes(0), max: Bytes(100000) }/64KiB [Unlink] Listed workers=4 Process
        "#]],
    );
}

#[test]
fn warm_operations_have_an_untimed_pass() {
    shown(
        &[("cache", "warm"), ("file_size_distribution", "fixed"), ("order", "random")],
        expect![[r#"
            write Measure Cold small-files 5000/200 50000B/50000B [MakeParent, Create, Write, Close, Chown, Chmod] Process
            warm-stat Prepare Unchanged small-files 5000/200 50000B/50000B [Stat] Random Process
            stat Measure Warm small-files 5000/200 50000B/50000B [Stat] Random Process
            warm-read Prepare Unchanged small-files 5000/200 50000B/50000B [OpenRead, Read, Close] Random Process
            read Measure Warm small-files 5000/200 50000B/50000B [OpenRead, Read, Close] Random Process
            warm-rewrite Prepare Unchanged small-files 5000/200 50000B/50000B [Stat] Random Process
            rewrite Measure Warm small-files 5000/200 50000B/50000B [Unlink, Create, Write, Close, Chown, Chmod] Random Process
            warm-unlink Prepare Unchanged small-files 5000/200 50000B/50000B [Stat] Random Process
            unlink Measure Warm small-files 5000/200 50000B/50000B [Unlink] Random Process
        "#]],
    );
}

#[test]
fn sets_without_write_have_a_layout() {
    let settings = [
        ("operations", "unlink"),
        ("cache", "warm"),
        ("file_size_distribution", "log-normal"),
        ("sync_after", "true"),
        ("workers", "2"),
        ("worker_type", "thread"),
        ("order", "name"),
    ];
    shown(
        &settings,
        expect![[r#"
            layout Prepare Unchanged small-files 5000/200 LogNormal { mean: Bytes(50000), sigma: 1.0 }/64KiB File owners=2
            warm-unlink Prepare Unchanged small-files 5000/200 LogNormal { mean: Bytes(50000), sigma: 1.0 }/64KiB [Stat] workers=2
            unlink Measure Warm small-files 5000/200 LogNormal { mean: Bytes(50000), sigma: 1.0 }/64KiB [Unlink] sync workers=2 timed-flush
        "#]],
    );
}

/// A random order does not show which file is the first of its directory.
#[test]
fn rewrite_creates_directories_except_in_random_order() {
    for (order, makes) in [("readdir", true), ("name", true), ("random", false)] {
        let point = refined(&[("operations", "rewrite"), ("order", order)]);
        let measured = phases(&point, 7).pop().expect("it is there");
        let Work::Tree(tree) = measured.work else { panic!("a tree") };
        assert_eq!(tree.steps.contains(&TreeStep::MakeParent), makes, "{order}");
    }
}

#[test]
fn equal_workloads_have_equal_parameters() {
    let same = |one: &[(&str, &str)], other: &[(&str, &str)]| {
        let (one, other) = (refined(one), refined(other));
        assert_eq!(refine(one.clone()).unwrap(), vec![one.clone()], "refining is done once");
        assert_eq!(one, other);
    };
    same(
        &[("operations", "write,read")],
        &[("operations", "read,write"), ("file_size_sigma", "2")],
    );
    same(
        &[("operations", "write")],
        &[("operations", "write"), ("cache", "warm"), ("order", "name")],
    );
    same(&[("operations", "stat")], &[("operations", "stat"), ("sync_after", "true")]);
    same(&[], &[("worker_type", "thread")]);
    same(
        &[("file_size_distribution", "fixed")],
        &[("file_size_distribution", "fixed"), ("block_size", "50000")],
    );
    same(&[("files", "10")], &[("files", "10"), ("files_per_directory", "10")]);
    assert_ne!(refined(&[]), refined(&[("cache", "warm")]));
}

/// Operations may be listed in any order. The files exist in each phase that requires them.
#[test]
fn required_files_exist() {
    for chosen in 1..1 << OPERATIONS.len() {
        let words: Vec<_> = (0..OPERATIONS.len())
            .rev()
            .filter(|i| chosen >> i & 1 == 1)
            .map(|i| OPERATIONS[i])
            .collect();
        let mut there = false;
        for phase in phases(&refined(&[("operations", &words.join(","))]), 7) {
            let Work::Tree(tree) = phase.work else {
                assert!(matches!(phase.work, Work::Layout(_)));
                there = true;
                continue;
            };
            for step in tree.steps {
                assert!(there != (step == TreeStep::Create) || step == TreeStep::MakeParent);
                there = match step == TreeStep::Create || step == TreeStep::Unlink {
                    true => !there,
                    false => there,
                };
            }
        }
    }
}

#[test]
fn footprint_is_estimated() {
    let takes = |settings: &[(&str, &str)]| footprint(&refined(settings));
    let one = takes(&[("files", "1000"), ("file_size_distribution", "fixed")]);
    assert_eq!(one, Bytes(1000 * (53_248 + 1024)), "13 blocks of 4 KiB, and the inode");
    assert_eq!(takes(&[("files", "1000")]).0, one.0 + 1000 * 4096);
    assert_eq!(takes(&[("files", "1000"), ("workers", "3")]).0, 3 * (one.0 + 1000 * 4096));
}
