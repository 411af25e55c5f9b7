use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use model::phase::{Calls, Item, Role, Sharing, TreeOrder, TreeStep, Work};
use proptest::prelude::*;

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
#[expect(clippy::too_many_lines, reason = "phases of all operations")]
fn operations_have_their_own_entries() {
    shown(
        &[],
        expect![[r#"
            create Measure Unchanged create 10000 [Create, Close]
            create-removal Prepare Unchanged create 10000 [Unlink]
            open-layout Prepare Unchanged open 10000 File owners=1
            open Measure Warm open 10000 [OpenRead, Close] passes=10
            open-removal Prepare Unchanged open 10000 [Unlink]
            stat-layout Prepare Unchanged stat 10000 File owners=1
            stat Measure Warm stat 10000 [Stat] passes=10
            stat-removal Prepare Unchanged stat 10000 [Unlink]
            stat-missing-layout Prepare Unchanged stat-missing 10000 File owners=1
            stat-missing Measure Warm stat-missing 10000 [StatMissing] passes=10
            stat-missing-removal Prepare Unchanged stat-missing 10000 [Unlink]
            readdir-small-layout Prepare Unchanged readdir-small 100 File owners=1
            readdir-small Measure Warm readdir-small 1 [List] passes=10000
            readdir-small-removal Prepare Unchanged readdir-small 100 [Unlink]
            readdir-large-layout Prepare Unchanged readdir-large 100000 File owners=1
            readdir-large Measure Warm readdir-large 1 [List] passes=10
            readdir-large-removal Prepare Unchanged readdir-large 100000 [Unlink]
            find-layout Prepare Unchanged find 10000 File owners=1
            find Measure Warm find 10000 [Stat] Listed passes=10
            find-removal Prepare Unchanged find 10000 [Unlink]
            rename-layout Prepare Unchanged rename 10000 File owners=1
            rename Measure Warm rename 10000 [Rename]
            rename-removal Prepare Unchanged rename 10000 [RenameBack, Unlink]
            rename-across-layout Prepare Unchanged rename-across 10000 File owners=1
            rename-across Measure Warm rename-across 10000 [RenameAcross]
            link-layout Prepare Unchanged link 10000 File owners=1
            link Measure Warm link 10000 [Link]
            link-removal Prepare Unchanged link 10000 [UnlinkLink, Unlink]
            unlink-layout Prepare Unchanged unlink 10000 File owners=1
            unlink Measure Warm unlink 10000 [Unlink]
            symlink Measure Unchanged symlink 10000 [Symlink]
            symlink-removal Prepare Unchanged symlink 10000 [Unlink]
            mkdir Measure Unchanged mkdir 10000 [Mkdir]
            mkdir-removal Prepare Unchanged mkdir 10000 [Rmdir]
            rmdir-layout Prepare Unchanged rmdir 10000 Directory owners=1
            rmdir Measure Warm rmdir 10000 [Rmdir]
            chmod-layout Prepare Unchanged chmod 10000 File owners=1
            chmod Measure Warm chmod 10000 [Chmod] passes=10
            chmod-removal Prepare Unchanged chmod 10000 [Unlink]
            chown-layout Prepare Unchanged chown 10000 File owners=1
            chown Measure Warm chown 10000 [Chown] passes=10
            chown-removal Prepare Unchanged chown 10000 [Unlink]
            utimens-layout Prepare Unchanged utimens 10000 File owners=1
            utimens Measure Warm utimens 10000 [SetTimes] passes=10
            utimens-removal Prepare Unchanged utimens 10000 [Unlink]
            setxattr-layout Prepare Unchanged setxattr 10000 File owners=1
            setxattr Measure Warm setxattr 10000 [SetXattr] passes=10
            setxattr-removal Prepare Unchanged setxattr 10000 [Unlink]
            getxattr-layout Prepare Unchanged getxattr 10000 File owners=1
            getxattr-before Prepare Unchanged getxattr 10000 [SetXattr]
            getxattr Measure Warm getxattr 10000 [GetXattr] passes=10
            getxattr-removal Prepare Unchanged getxattr 10000 [Unlink]
            truncate-layout Prepare Unchanged truncate 10000 4KiB/4KiB File owners=1
            truncate Measure Warm truncate 10000 4KiB/4KiB [Truncate]
            truncate-removal Prepare Unchanged truncate 10000 4KiB/4KiB [Unlink]
            fallocate-layout Prepare Unchanged fallocate 10000 File owners=1
            fallocate Measure Warm fallocate 10000 [Open, Allocate, Close]
            fallocate-removal Prepare Unchanged fallocate 10000 [Unlink]
            punch-hole-layout Prepare Unchanged punch-hole 10000 4KiB/4KiB File owners=1
            punch-hole Measure Warm punch-hole 10000 4KiB/4KiB [Open, PunchHole, Close]
            punch-hole-removal Prepare Unchanged punch-hole 10000 4KiB/4KiB [Unlink]
            fsync-create Measure Unchanged fsync-create 1000 [Create, Fsync, Close]
            fsync-create-removal Prepare Unchanged fsync-create 1000 [Unlink]
            fsync-directory Measure Unchanged fsync-directory 1000 [Create, Close, FsyncDirectory]
            fsync-directory-removal Prepare Unchanged fsync-directory 1000 [Unlink]
            mix-layout Prepare Unchanged mix 10000 File owners=1
            mix Measure Warm mix 10000 50000 [(Stat, 60), (Open, 15), (Read, 10), (Chmod, 5), (Create, 4), (Unlink, 4), (Rename, 2)] workers=1
        "#]],
    );
}

#[test]
fn workers_share_a_directory() {
    let shared = [
        ("operations", "create,stat,readdir-small,fsync-create,mix"),
        ("sharing", "directory"),
        ("workers", "4"),
        ("pin", "true"),
        ("file_size", "100KiB"),
        ("entries_per_directory", "500"),
        ("name_length", "64"),
        ("order", "random"),
        ("sync_after", "true"),
    ];
    shown(
        &shared,
        expect![[r#"
            create Measure Unchanged create 10000/500 100KiB/64KiB Directory Padded { length: 64 } [Create, Write, Close] Random sync workers=4 pinned timed-flush
            create-removal Prepare Unchanged create 10000/500 100KiB/64KiB Directory Padded { length: 64 } [Unlink] workers=4 pinned
            stat-layout Prepare Unchanged stat 10000/500 100KiB/64KiB Directory Padded { length: 64 } File owners=4
            stat Measure Warm stat 10000/500 100KiB/64KiB Directory Padded { length: 64 } [Stat] Random passes=10 workers=4 pinned
            stat-removal Prepare Unchanged stat 10000/500 100KiB/64KiB Directory Padded { length: 64 } [Unlink] workers=4 pinned
            readdir-small-layout Prepare Unchanged readdir-small 100 File Padded { length: 64 } File owners=4
            readdir-small Measure Warm readdir-small 1 File Padded { length: 64 } [List] passes=10000 workers=4 pinned
            readdir-small-removal Prepare Unchanged readdir-small 100 File Padded { length: 64 } [Unlink]
            fsync-create Measure Unchanged fsync-create 1000/500 100KiB/64KiB Directory Padded { length: 64 } [Create, Write, Fsync, Close] Random sync workers=4 pinned timed-flush
            fsync-create-removal Prepare Unchanged fsync-create 1000/500 100KiB/64KiB Directory Padded { length: 64 } [Unlink] workers=4 pinned
            mix-layout Prepare Unchanged mix 10000/500 100KiB/64KiB Directory Padded { length: 64 } File owners=4
            mix Measure Warm mix 10000/500 100KiB/64KiB Directory Padded { length: 64 } 50000 [(Stat, 60), (Open, 15), (Read, 10), (Chmod, 5), (Create, 4), (Unlink, 4), (Rename, 2)] workers=4
        "#]],
    );
}

#[test]
fn workers_share_files() {
    let shared =
        [("sharing", "file"), ("workers", "2"), ("worker_type", "process"), ("cache", "cold")];
    shown(
        &shared,
        expect![[r#"
            open-layout Prepare Unchanged open 10000 File File owners=2
            open Measure Cold open 10000 File [OpenRead, Close] workers=2 Process
            open-removal Prepare Unchanged open 10000 File [Unlink]
            stat-layout Prepare Unchanged stat 10000 File File owners=2
            stat Measure Cold stat 10000 File [Stat] workers=2 Process
            stat-removal Prepare Unchanged stat 10000 File [Unlink]
            stat-missing-layout Prepare Unchanged stat-missing 10000 File File owners=2
            stat-missing Measure Cold stat-missing 10000 File [StatMissing] workers=2 Process
            stat-missing-removal Prepare Unchanged stat-missing 10000 File [Unlink]
            readdir-small-layout Prepare Unchanged readdir-small 100 File File owners=2
            readdir-small Measure Cold readdir-small 1 File [List] workers=2 Process
            readdir-small-removal Prepare Unchanged readdir-small 100 File [Unlink]
            readdir-large-layout Prepare Unchanged readdir-large 100000 File File owners=2
            readdir-large Measure Cold readdir-large 1 File [List] workers=2 Process
            readdir-large-removal Prepare Unchanged readdir-large 100000 File [Unlink]
            find-layout Prepare Unchanged find 10000 File File owners=2
            find Measure Cold find 10000 File [Stat] Listed workers=2 Process
            find-removal Prepare Unchanged find 10000 File [Unlink]
            chmod-layout Prepare Unchanged chmod 10000 File File owners=2
            chmod Measure Cold chmod 10000 File [Chmod] workers=2 Process
            chmod-removal Prepare Unchanged chmod 10000 File [Unlink]
            chown-layout Prepare Unchanged chown 10000 File File owners=2
            chown Measure Cold chown 10000 File [Chown] workers=2 Process
            chown-removal Prepare Unchanged chown 10000 File [Unlink]
            utimens-layout Prepare Unchanged utimens 10000 File File owners=2
            utimens Measure Cold utimens 10000 File [SetTimes] workers=2 Process
            utimens-removal Prepare Unchanged utimens 10000 File [Unlink]
            setxattr-layout Prepare Unchanged setxattr 10000 File File owners=2
            setxattr Measure Cold setxattr 10000 File [SetXattr] workers=2 Process
            setxattr-removal Prepare Unchanged setxattr 10000 File [Unlink]
            getxattr-layout Prepare Unchanged getxattr 10000 File File owners=2
            getxattr-before Prepare Unchanged getxattr 10000 File [SetXattr]
            getxattr Measure Cold getxattr 10000 File [GetXattr] workers=2 Process
            getxattr-removal Prepare Unchanged getxattr 10000 File [Unlink]
            truncate-layout Prepare Unchanged truncate 10000 4KiB/4KiB File File owners=2
            truncate Measure Cold truncate 10000 4KiB/4KiB File [Truncate] workers=2 Process
            truncate-removal Prepare Unchanged truncate 10000 4KiB/4KiB File [Unlink]
            fallocate-layout Prepare Unchanged fallocate 10000 File File owners=2
            fallocate Measure Cold fallocate 10000 File [Open, Allocate, Close] workers=2 Process
            fallocate-removal Prepare Unchanged fallocate 10000 File [Unlink]
            punch-hole-layout Prepare Unchanged punch-hole 10000 4KiB/4KiB File File owners=2
            punch-hole Measure Cold punch-hole 10000 4KiB/4KiB File [Open, PunchHole, Close] workers=2 Process
        "#]],
    );
}

#[test]
fn calls_use_io_uring() {
    let point = refined(&[("io_engine", "io_uring"), ("queue_depth", "8")]).unwrap();
    let words: Vec<_> = chosen(&point).iter().map(|operation| operation.word).collect();
    expect!["create open stat stat-missing rename rename-across link unlink symlink mkdir rmdir setxattr getxattr fallocate punch-hole fsync-create"].assert_eq(&words.join(" "));
    for phase in script::phases(&point, 7) {
        let Work::Tree(tree) = phase.work else { continue };
        let measured = phase.role == Role::Measure;
        let calls = if measured { Calls::Ring { depth: 8 } } else { Calls::Syscall };
        assert_eq!(tree.calls, calls, "{}", phase.name);
    }
}

#[test]
fn parameter_values_match_the_operations() {
    let words: Vec<_> = OPERATIONS.iter().map(|operation| operation.word).collect();
    assert_eq!(words, WORDS[1..]);
}

/// Follows each kind of name through all phases of a trial.
#[test]
fn steps_find_required_entries_and_no_others() {
    for sharing in ["private", "directory", "file"] {
        for phase in per_set(&refined(&[("sharing", sharing), ("workers", "3")]).unwrap()) {
            let (name, steps) = phase;
            let mut there: BTreeSet<&str> = BTreeSet::new();
            for step in steps {
                follow(&mut there, step, &name);
            }
        }
    }
}

/// For each set, the steps that the phases perform on an entry of the set, in order.
fn per_set(point: &WorkloadParameters) -> Vec<(String, Vec<Step>)> {
    let mut sets: Vec<(String, Vec<Step>)> = Vec::new();
    for phase in script::phases(point, 7) {
        let (set, steps) = if let Work::Tree(tree) = phase.work {
            let steps = tree.steps.iter().map(|step| Step::Done(*step)).collect();
            (tree.set.name, steps)
        } else if let Work::Layout(layout) = phase.work {
            (layout.set.name, vec![Step::Laid(layout.item)])
        } else {
            continue;
        };
        match sets.iter_mut().find(|(name, _)| *name == set) {
            Some((_, all)) => all.extend(steps),
            None => sets.push((set, steps)),
        }
    }
    sets
}

enum Step {
    Laid(Item),
    Done(TreeStep),
}

type Things = &'static [&'static str];

/// Objects that a step requires, adds, and removes. A step that is not listed requires an entry,
/// adds nothing, and removes nothing.
const CHANGES: &[(TreeStep, Things, Things, Things)] = {
    use TreeStep as S;
    &[
        (S::Create, &[], &["entry"], &[]),
        (S::Symlink, &[], &["entry"], &[]),
        (S::Mkdir, &[], &["directory"], &[]),
        (S::Rmdir, &["directory"], &[], &["directory"]),
        (S::Rename, &["entry"], &["renamed"], &["entry"]),
        (S::RenameBack, &["renamed"], &["entry"], &["renamed"]),
        (S::RenameAcross, &["entry"], &["across"], &["entry"]),
        (S::Link, &["entry"], &["link"], &[]),
        (S::UnlinkLink, &["link"], &[], &["link"]),
        (S::Unlink, &["entry"], &[], &["entry"]),
        (S::SetXattr, &["entry"], &["attribute"], &[]),
        (S::GetXattr, &["attribute"], &[], &[]),
    ]
};

fn follow(there: &mut BTreeSet<&str>, step: Step, set: &str) {
    let (needs, adds, takes): (Things, Things, Things) = match step {
        Step::Laid(Item::File) => (&[], &["entry"], &[]),
        Step::Laid(Item::Directory | Item::Symlink) => (&[], &["directory"], &[]),
        Step::Done(step) => CHANGES
            .iter()
            .find(|(other, ..)| *other == step)
            .map_or((&["entry"], &[], &[]), |(_, needs, adds, takes)| (needs, adds, takes)),
    };
    for need in needs {
        assert!(there.contains(need), "{set} has no {need}");
    }
    for taken in takes {
        there.remove(taken);
    }
    for added in adds {
        // An attribute is set again as it was.
        assert!(there.insert(added) || *added == "attribute", "{set} has the {added} already");
    }
}

#[test]
fn listings_of_small_and_large_directories_read_equally_many_names() {
    let listing = |settings: &[(&str, &str)]| {
        let point = refined(settings).unwrap();
        let phases = script::phases(&point, 7);
        let lists = |word: &str| {
            let phase = phases.iter().find(|phase| phase.name == word).expect("it is there");
            let Work::Tree(tree) = &phase.work else { panic!("a tree") };
            assert_eq!((tree.set.files, tree.order), (1, TreeOrder::Creation));
            tree.passes
        };
        (lists("readdir-small"), lists("readdir-large"))
    };
    assert_eq!(listing(&[]), (10_000, 10));
    assert_eq!(listing(&[("files", "100")]), (100, 1));
    assert_eq!(listing(&[("cache", "cold")]), (1, 1));
}

#[test]
fn workers_of_a_shared_listed_directory_share_its_entries() {
    let settings = [("operations", "readdir-small"), ("sharing", "directory"), ("workers", "4")];
    for phase in script::phases(&refined(&settings).unwrap(), 7) {
        let set = if let Work::Tree(tree) = phase.work {
            tree.set
        } else if let Work::Layout(layout) = phase.work {
            layout.set
        } else {
            panic!("{}", phase.name)
        };
        assert_eq!(set.sharing, Sharing::File);
    }
}

#[test]
fn equal_workloads_have_equal_parameters() {
    let same = |one: &[(&str, &str)], other: &[(&str, &str)]| {
        let (one, other) = (refined(one).unwrap(), refined(other).unwrap());
        assert_eq!(refine(one.clone()).unwrap(), vec![one.clone()], "refining is done once");
        assert_eq!(one, other);
    };
    same(&[], &[("operations", &WORDS[1..].join(","))]);
    same(&[("operations", "stat,open")], &[("operations", "open,stat"), ("extent_size", "1MiB")]);
    same(&[("cache", "cold")], &[("cache", "cold"), ("passes", "1000")]);
    same(
        &[],
        &[("queue_depth", "7"), ("worker_type", "process"), ("entries_per_directory", "10000")],
    );
    same(&[("operations", "mix")], &[("operations", "mix"), ("order", "random")]);
    same(
        &[("operations", "mix"), ("weights", "open=1,stat=3")],
        &[("operations", "mix"), ("weights", "stat=75, open=25, create=0")],
    );
    same(&[("operations", "fsync-create")], &[("operations", "fsync-create"), ("files", "7")]);
}

#[test]
fn invalid_combinations_are_rejected_with_a_hint() {
    let refused = |settings: &[(&str, &str)]| {
        let error = refined(settings).unwrap_err();
        format!("{error}; {}\n", error.hint.clone().unwrap_or_default())
    };
    let lines = [
        refused(&[("operations", "stat,unlink"), ("sharing", "file")]),
        refused(&[("operations", "chmod"), ("io_engine", "io_uring")]),
        refused(&[("operations", "create"), ("io_engine", "io_uring"), ("file_size", "65KiB")]),
    ];
    expect![[r#"
        `unlink` cannot be performed by several workers on the same entries; remove it from `operations`, or set `sharing` to "private" or "directory"
        `chmod` is not supported by io_uring; remove it from `operations`, or set `io_engine` to "syscall"
        `create` requires files of at most 64KiB with io_uring; remove it from `operations`, or set `file_size` to at most 64KiB, or `io_engine` to "syscall"
    "#]].assert_eq(&lines.concat());
}

#[test]
fn weights_are_parsed_with_a_hint() {
    let wrong = |text: &str| {
        let error = weights::read(text).unwrap_err();
        format!("{error}; {}\n", error.hint.clone().unwrap_or_default())
    };
    let texts = ["stat", "stats=1", "stat=x", "stat=1,stat=2", "stat=0"];
    expect![[r#"
        invalid weighted operation `stat`; use a list such as `stat=60,open=15`
        `stats` is not one of stat, open, read, chmod, create, unlink, rename; 
        invalid weight `x`; use an integer; 0 removes the operation
        duplicate operation `stat`; list it once, with the sum of the weights
        all weights are 0; use a weight greater than 0
    "#]]
    .assert_eq(&texts.map(wrong).concat());
    assert_eq!(weights::read(WEIGHTS).unwrap(), WEIGHTS, "the default is canonical");
}

#[test]
fn footprint_is_estimated() {
    let takes = |settings: &[(&str, &str)]| script::footprint(&refined(settings).unwrap());
    let stat = [("operations", "stat"), ("files", "1000")];
    assert_eq!(takes(&stat), Bytes::kib(1000));
    assert_eq!(takes(&[&stat[..], &[("workers", "4")]].concat()), Bytes::kib(4000));
    let shared = [&stat[..], &[("workers", "4"), ("sharing", "file")]].concat();
    assert_eq!(takes(&shared), Bytes::kib(1000));
    let left = [("operations", "rename-across,unlink"), ("files", "1000")];
    assert_eq!(takes(&left), Bytes::kib(2000), "what is across stays");
    assert_eq!(takes(&[("operations", "mkdir"), ("files", "10")]), Bytes::kib(50));
    assert_eq!(takes(&[("operations", "punch-hole"), ("files", "10")]), Bytes::kib(50));
}

proptest! {
    /// Weights stay as they are when they are read again, and keep their ratios.
    #[test]
    fn weights_have_one_spelling(given in proptest::collection::vec(0_u32..1000, 7)) {
        let words = model::phase::MixOp::ALL.map(|(_, word)| word);
        let text: Vec<_> =
            words.iter().zip(&given).map(|(word, weight)| format!("{word}={weight}")).collect();
        let Ok(canonical) = weights::read(&text.join(",")) else {
            prop_assert!(given.iter().all(|weight| *weight == 0));
            return Ok(());
        };
        prop_assert_eq!(&weights::read(&canonical).unwrap(), &canonical);
        let read = weights::weights(&canonical);
        let left: Vec<_> = given.iter().filter(|weight| **weight > 0).collect();
        prop_assert_eq!(read.len(), left.len());
        let total: u32 = read.iter().map(|(_, weight)| weight).sum();
        let given_total: u32 = given.iter().sum();
        for ((_, weight), given) in read.iter().zip(left) {
            prop_assert_eq!(weight * given_total, given * total);
        }
    }
}
