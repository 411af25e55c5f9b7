use expect_test::{Expect, expect};
use model::phase::{EntryCount, Role, TreeStep, Work};

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

#[test]
fn defaults_are_the_phases_of_mdtest_in_its_order() {
    shown(
        &[("workers", "2")],
        expect![[r#"
        tree-create Measure Unchanged mdtest 1/1000 z0 b1 Directory TreeDirectories [Mkdir] Process
        directory-create Measure Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: true } [Mkdir] workers=2 Process
        directory-stat Measure Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: true } [Stat] workers=2 Process
        directory-rename Measure Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: true } [RenameRing] workers=2 Process
        directory-remove Measure Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: true } [Rmdir] workers=2 Process
        file-create Measure Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: false } [OpenCreate, Close] workers=2 Process
        file-stat Measure Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: false } [Stat] workers=2 Process
        file-read Measure Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: false } [Open, Close] workers=2 Process
        file-remove Measure Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: false } [Unlink] workers=2 Process
        tree-remove Measure Unchanged mdtest 1/1000 z0 b1 Directory TreeDirectories [Rmdir] Descending Process
    "#]],
    );
}

#[test]
fn shifted_workers_of_separate_trees_use_the_files_of_others() {
    // mdtest -u -L -F -N 1 -z 1 -b 4
    shown(
        &[
            ("workers", "3"),
            ("sharing", "private"),
            ("leaves_only", "true"),
            ("tree_depth", "1"),
            ("tree_branching", "4"),
            ("entries", "103"),
            ("worker_shift", "1"),
            ("operations", "tree-create,file-create,file-stat,file-read,file-remove,tree-remove"),
        ],
        expect![[r#"
            tree-create Measure Unchanged mdtest 5/25 z1 b4 leaves TreeDirectories [Mkdir] workers=3 Process
            file-create Measure Unchanged mdtest 100/25 z1 b4 leaves Mdtest { directories: false } [OpenCreate, Close] workers=3 Process
            file-stat Measure Unchanged mdtest 100/25 z1 b4 leaves Mdtest { directories: false } [Stat] workers=3 Process shift=1
            file-read Measure Unchanged mdtest 100/25 z1 b4 leaves Mdtest { directories: false } [Open, Close] workers=3 Process shift=2
            file-remove Measure Unchanged mdtest 100/25 z1 b4 leaves Mdtest { directories: false } [Unlink] workers=3 Process
            tree-remove Measure Unchanged mdtest 5/25 z1 b4 leaves TreeDirectories [Rmdir] Descending workers=3 Process
        "#]],
    );
}

#[test]
fn files_have_one_write_and_one_read() {
    // mdtest -t -F -N 1 -w 3901 -e 3901 -y -X -R
    shown(
        &[
            ("workers", "2"),
            ("file_size", "3901"),
            ("read_size", "3901"),
            ("fsync_each", "true"),
            ("verify", "true"),
            ("order", "random"),
            ("worker_shift", "1"),
            ("sync_after", "true"),
            ("cache", "cold"),
            ("operations", "file-create,file-stat,file-read,file-remove"),
        ],
        expect![[r#"
            prepare-tree-create Prepare Unchanged mdtest 1/1000 z0 b1 Directory TreeDirectories [Mkdir] Process
            file-create Measure Unchanged mdtest 1000/1000 z0 b1 3901B/3901B Directory Mdtest { directories: false } [OpenCreate, WriteBlock, Fsync, Close] sync workers=2 Process timed-flush
            file-stat Measure Cold mdtest 1000/1000 z0 b1 Directory Mdtest { directories: false } [Stat] Random sync workers=2 Process shift=1 timed-flush
            file-read Measure Cold mdtest 1000/1000 z0 b1 3901B/3901B Directory Mdtest { directories: false } [Open, ReadBlock, VerifyBlock, Close] Random sync workers=2 Process timed-flush
            file-remove Measure Cold mdtest 1000/1000 z0 b1 Directory Mdtest { directories: false } [Unlink] sync workers=2 Process shift=1 timed-flush
        "#]],
    );
}

#[test]
fn the_first_worker_creates_all_and_shared_files_are_removed_once() {
    let files = ("operations", "file-create,file-stat,file-remove");
    shown(
        &[("workers", "4"), ("first_worker_creates", "true"), files],
        expect![[r#"
        prepare-tree-create Prepare Unchanged mdtest 1/1000 z0 b1 Directory TreeDirectories [Mkdir] Process
        file-create Measure Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: false } [OpenCreate, Close] Process owners=4
        file-stat Measure Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: false } [Stat] workers=4 Process
        file-remove Measure Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: false } [Unlink] Process owners=4
    "#]],
    );
    shown(
        &[("workers", "4"), ("sharing", "file"), files],
        expect![[r#"
        prepare-tree-create Prepare Unchanged mdtest 1/1000 z0 b1 File TreeDirectories [Mkdir] Process
        file-create Measure Unchanged mdtest 1000/1000 z0 b1 File Mdtest { directories: false } [OpenCreate, Close] workers=4 Process
        file-stat Measure Unchanged mdtest 1000/1000 z0 b1 File Mdtest { directories: false } [Stat] workers=4 Process
        file-remove Measure Unchanged mdtest 1000/1000 z0 b1 File Mdtest { directories: false } [Unlink] Process
    "#]],
    );
}

#[test]
fn phases_that_are_not_measured_prepare_others() {
    shown(
        &[("operations", "directory-remove,file-read")],
        expect![[r#"
        prepare-tree-create Prepare Unchanged mdtest 1/1000 z0 b1 Directory TreeDirectories [Mkdir] Process
        prepare-directory-create Prepare Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: true } [Mkdir] Process
        directory-remove Measure Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: true } [Rmdir] Process
        prepare-file-create Prepare Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: false } [OpenCreate, Close] Process
        file-read Measure Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: false } [Open, Close] Process
    "#]],
    );
    shown(
        &[("operations", "directory-stat,tree-remove")],
        expect![[r#"
        prepare-tree-create Prepare Unchanged mdtest 1/1000 z0 b1 Directory TreeDirectories [Mkdir] Process
        prepare-directory-create Prepare Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: true } [Mkdir] Process
        directory-stat Measure Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: true } [Stat] Process
        prepare-directory-remove Prepare Unchanged mdtest 1000/1000 z0 b1 Directory Mdtest { directories: true } [Rmdir] Process
        tree-remove Measure Unchanged mdtest 1/1000 z0 b1 Directory TreeDirectories [Rmdir] Descending Process
    "#]],
    );
}

#[test]
fn a_stonewall_determines_the_number_of_files_of_later_phases() {
    let point = refined(&[("stonewall_time", "2s"), ("workers", "2")]).unwrap();
    for phase in script::phases(&point, 1) {
        let Work::Tree(tree) = phase.work else { panic!("a tree") };
        let expected = match phase.name.as_str() {
            "file-create" => EntryCount::Until(Nanos(2_000_000_000)),
            name if name.starts_with("file-") => EntryCount::Stored,
            _ => EntryCount::All,
        };
        assert_eq!(tree.selection.count, expected, "{}", phase.name);
    }
    let stat = refined(&[("stonewall_time", "2s"), ("operations", "file-stat")]).unwrap();
    assert_eq!(stat.time("stonewall_time"), Nanos(0), "files are prepared without a time limit");
}

#[test]
fn entries_are_rounded_down_to_whole_directories() {
    for (settings, entries) in [
        (&[("entries", "100")][..], 100),
        (&[("entries", "100"), ("tree_depth", "1"), ("tree_branching", "3")], 100),
        (&[("entries", "102"), ("tree_depth", "1"), ("tree_branching", "3")], 100),
        (&[("entries", "102"), ("tree_depth", "2")], 102),
        (&[("entries_per_directory", "5"), ("tree_depth", "2"), ("tree_branching", "2")], 35),
        (
            &[
                ("entries_per_directory", "5"),
                ("tree_depth", "2"),
                ("tree_branching", "2"),
                ("leaves_only", "true"),
            ],
            20,
        ),
    ] {
        let point = refined(settings).unwrap();
        assert_eq!(point.count("entries"), entries, "{settings:?}");
        assert_eq!(point.count("entries_per_directory"), 0);
    }
}

#[test]
fn invalid_combinations_have_a_hint() {
    for (settings, message) in [
        (&[("sharing", "file"), ("operations", "directory-stat")][..], "`directory-stat` cannot"),
        (&[("first_worker_creates", "true"), ("sharing", "private")], "no access to the trees"),
        (&[("first_worker_creates", "true"), ("stonewall_time", "1s")], "exclude each other"),
        (&[("read_size", "2"), ("file_size", "1")], "2B cannot be read from files of 1B"),
        (&[("entries", "3"), ("tree_depth", "4")], "3 entries are fewer than the 5 directories"),
        (&[("tree_depth", "40"), ("tree_branching", "9")], "more than 4294967296 directories"),
        (
            &[("entries_per_directory", "4294967296"), ("tree_depth", "4")],
            "more than 4294967296 entries",
        ),
    ] {
        let error = refined(settings).unwrap_err();
        assert!(error.message.contains(message), "{settings:?}: {error:?}");
        assert!(error.hint.is_some(), "{settings:?}");
    }
}

#[test]
fn parameters_without_effect_have_their_defaults() {
    let equal = |one: &[(&str, &str)], other: &[(&str, &str)]| {
        assert_eq!(refined(one).unwrap(), refined(other).unwrap());
    };
    equal(&[("tree_branching", "7"), ("leaves_only", "true")], &[]);
    equal(&[("fsync_each", "true"), ("verify", "true")], &[]);
    equal(&[("worker_type", "thread")], &[]);
    let stat = ("operations", "file-stat");
    equal(
        &[stat, ("stonewall_time", "1s"), ("read_size", "1"), ("file_size", "1")],
        &[stat, ("file_size", "1")],
    );
    let every = PHASES.join(",");
    equal(&[("operations", &every)], &[]);
}

#[test]
fn every_measured_phase_has_one_operation_per_entry() {
    let point = refined(&[("workers", "2"), ("file_size", "10"), ("read_size", "10")]).unwrap();
    for phase in script::phases(&point, 1).into_iter().filter(|it| it.role == Role::Measure) {
        let Work::Tree(tree) = phase.work else { panic!("a tree") };
        let several = matches!(tree.steps[0], TreeStep::OpenCreate | TreeStep::Open);
        assert_eq!(tree.steps.len() > 1, several, "{}", phase.name);
    }
    assert!(script::footprint(&point).0 >= 2 * 1000 * 2 * 4096);
}
