use expect_test::{Expect, expect};
use model::phase::{Deed, Role, Work};

use super::*;

fn refined(settings: &[(&str, &str)]) -> Point {
    let mut point = SPEC.defaults();
    for (name, text) in settings {
        let kind = SPEC.parameter(name).unwrap().kind;
        point.parameters.insert((*name).into(), kind.read(text).unwrap());
    }
    refine(point).unwrap().remove(0)
}

/// One line a phase: an arrow before what is measured.
fn shown(settings: &[(&str, &str)], expected: Expect) {
    let line = |phase: &Phase| {
        let mark = if phase.role == Role::Measure { '>' } else { ' ' };
        let Work::Task(task) = &phase.work else { unreachable!("only tasks here") };
        let deed = serde_json::to_value(&task.deed).unwrap();
        let (deed, rest) = deed.as_object().unwrap().iter().next().unwrap();
        let word = |(name, value): (&String, &serde_json::Value)| match value.get("at") {
            Some(at) => format!(
                "{name}={}{}",
                if at == "elsewhere" { "elsewhere:" } else { "" },
                value["name"].as_str().unwrap()
            ),
            None => format!("{name}={}", value.to_string().trim_matches('"')),
        };
        let rest: Vec<_> = rest.as_object().unwrap().iter().map(word).collect();
        let (name, cache, group) = (&phase.name, phase.cache.name(), &phase.group);
        format!("{mark} {name:<22} {cache} [{group}] {deed} {}\n", rest.join(" "))
    };
    let phases = phases(&refined(settings), 7);
    expected.assert_eq(&phases.iter().map(line).collect::<String>());
}

#[test]
fn the_twenty_one_tasks() {
    shown(
        &[],
        expect![[r#"
            > 001-touch-files        as-left [files and directories] touch count=10000 directory=files
            > 002-find-files         as-left [files and directories] find directory=files
            > 003-remove-files       as-left [files and directories] remove_tree directory=files
            > 004-make-directories   as-left [files and directories] make_directories count=10000 directory=directories
            > 005-find-directories   as-left [files and directories] find directory=directories
            > 006-remove-directories as-left [files and directories] remove_tree directory=directories
              007-prepare-archive    as-left [copying] archive archive=elsewhere:source.tar compression=none files=78579
            > 007-copy-in            as-left [copying] copy from=elsewhere:source.tar times=1 to=source.tar
              007-tidy               as-left [copying] remove_tree directory=elsewhere:source.tar
            > 008-copy-out           as-left [copying] copy from=source.tar times=1 to=elsewhere:copy.tar
              008-tidy               as-left [copying] remove_tree directory=elsewhere:copy.tar
            > 009-unpack-tree        as-left [source tree] unpack archive=source.tar into=tree
            > 010-pack-tree          as-left [source tree] pack archive=packed.tar compression=none directory=tree
              010-tidy               as-left [source tree] remove_tree directory=packed.tar
            > 011-remove-tree        as-left [source tree] remove_tree directory=tree
              012-prepare-directory  as-left [copying] make_directories count=0 directory=copies
            > 012-copy-repeatedly    as-left [copying] copy from=source.tar times=10 to=copies/source.tar
              012-tidy               as-left [copying] remove_tree directory=copies
            > 013-write-zeros        as-left [large file] zeros file=large size=1073741824
            > 014-copy-file          cold [large file] copy from=large times=1 to=large-copy
              014-tidy               as-left [large file] remove_tree directory=large-copy
              015-prepare-whole      as-left [splitting] random file=whole size=10485760
            > 015-split-1000         as-left [splitting] split file=whole into=pieces piece=1000
              015-tidy               as-left [splitting] remove_tree directory=pieces
            > 016-split-1024         as-left [splitting] split file=whole into=pieces piece=1024
              016-tidy               as-left [splitting] remove_tree directory=pieces
            > 017-split-2048         as-left [splitting] split file=whole into=pieces piece=2048
              017-tidy               as-left [splitting] remove_tree directory=pieces
            > 018-split-4096         as-left [splitting] split file=whole into=pieces piece=4096
              018-tidy               as-left [splitting] remove_tree directory=pieces
            > 019-split-8192         as-left [splitting] split file=whole into=pieces piece=8192
              019-tidy               as-left [splitting] remove_tree directory=pieces
              020-prepare-tree       as-left [source tree] unpack archive=source.tar into=tree
            > 020-copy-tree          as-left [source tree] copy_tree from=tree to=tree-copy
            > 021-read-file          cold [large file] read file=large
        "#]],
    );
}

#[test]
fn tasks_get_what_they_need_and_no_more() {
    shown(
        &[("tasks", "021,003,011,012"), ("cache", "cold")],
        expect![[r#"
          003-prepare-files      as-left [files and directories] touch count=10000 directory=files
        > 003-remove-files       cold [files and directories] remove_tree directory=files
          011-prepare-archive    as-left [source tree] archive archive=source.tar compression=none files=78579
          011-prepare-tree       as-left [source tree] unpack archive=source.tar into=tree
        > 011-remove-tree        cold [source tree] remove_tree directory=tree
          012-prepare-directory  as-left [copying] make_directories count=0 directory=copies
        > 012-copy-repeatedly    cold [copying] copy from=source.tar times=10 to=copies/source.tar
          012-tidy               as-left [copying] remove_tree directory=copies
          021-prepare-large      as-left [large file] zeros file=large size=1073741824
        > 021-read-file          cold [large file] read file=large
    "#]],
    );
    shown(
        &[("tasks", "020,010,011"), ("compression", "gzip")],
        expect![[r#"
          010-prepare-archive    as-left [source tree] archive archive=source.tar compression=gzip files=78579
          010-prepare-tree       as-left [source tree] unpack archive=source.tar into=tree
        > 010-pack-tree          as-left [source tree] pack archive=packed.tar compression=gzip directory=tree
          010-tidy               as-left [source tree] remove_tree directory=packed.tar
        > 011-remove-tree        as-left [source tree] remove_tree directory=tree
          020-prepare-tree       as-left [source tree] unpack archive=source.tar into=tree
        > 020-copy-tree          as-left [source tree] copy_tree from=tree to=tree-copy
    "#]],
    );
    shown(
        &[("tasks", "007,009"), ("archive", "/srv/linux.tar.gz")],
        expect![[r#"
          007-prepare-archive    as-left [copying] fetch archive=elsewhere:source.tar path=/srv/linux.tar.gz
        > 007-copy-in            as-left [copying] copy from=elsewhere:source.tar times=1 to=source.tar
          007-tidy               as-left [copying] remove_tree directory=elsewhere:source.tar
        > 009-unpack-tree        as-left [source tree] unpack archive=source.tar into=tree
    "#]],
    );
    shown(
        &[("tasks", "017"), ("split", "1MiB")],
        expect![[r#"
          017-prepare-whole      as-left [splitting] random file=whole size=1048576
        > 017-split-2048         as-left [splitting] split file=whole into=pieces piece=2048
          017-tidy               as-left [splitting] remove_tree directory=pieces
    "#]],
    );
}

#[test]
fn each_task_alone_is_one_measured_phase_with_the_number_of_the_task() {
    for number in 1..=21 {
        let word = word_of(number);
        let phases = phases(&refined(&[("tasks", &word)]), 7);
        let measured: Vec<_> = phases.iter().filter(|p| p.role == Role::Measure).collect();
        assert_eq!(measured.len(), 1);
        assert!(measured[0].name.starts_with(&word), "{}", measured[0].name);
        assert!(phases.iter().all(|phase| phase.name.starts_with(&word)));
    }
}

/// The second place outlives a trial, so each trial must leave it empty.
#[test]
fn nothing_is_left_elsewhere() {
    let places = |deed: &Deed| {
        if let Deed::Copy { from, to, .. } = deed {
            return vec![from.clone(), to.clone()];
        }
        let one = match deed {
            Deed::Archive { archive, .. } | Deed::Fetch { archive, .. } => Some(archive),
            Deed::RemoveTree { directory } => Some(directory),
            Deed::Unpack { archive: spot, .. }
            | Deed::Pack { archive: spot, .. }
            | Deed::CopyTree { to: spot, .. }
            | Deed::Split { into: spot, .. }
            | Deed::Touch { directory: spot, .. }
            | Deed::MakeDirectories { directory: spot, .. }
            | Deed::Find { directory: spot }
            | Deed::Zeros { file: spot, .. }
            | Deed::Read { file: spot }
            | Deed::Random { file: spot, .. }
            | Deed::Copy { from: spot, .. } => {
                assert_eq!(spot.at, model::phase::At::Target);
                None
            }
        };
        one.cloned().into_iter().collect()
    };
    for tasks in ["all", "007", "008", "007,008"] {
        let mut left = std::collections::BTreeSet::new();
        for phase in phases(&refined(&[("tasks", tasks)]), 7) {
            let Work::Task(task) = &phase.work else { unreachable!("only tasks here") };
            let removes = matches!(task.deed, Deed::RemoveTree { .. });
            for spot in places(&task.deed) {
                match (spot.at == model::phase::At::Elsewhere, removes) {
                    (true, false) => drop(left.insert(spot.name)),
                    (true, true) => assert!(left.remove(&spot.name), "{tasks}: {}", spot.name),
                    (false, _) => {}
                }
            }
        }
        assert!(left.is_empty(), "{tasks}: {left:?}");
    }
}

#[test]
fn equal_work_has_equal_parameters() {
    let same = |one: &[(&str, &str)], other: &[(&str, &str)]| {
        assert_eq!(refined(one), refined(other), "{one:?} {other:?}");
    };
    same(&[("tasks", "all")], &[("tasks", "all,003")]);
    same(&[("tasks", "009,003")], &[("tasks", "003,009")]);
    let every = TASKS[1..].join(",");
    same(&[("tasks", &every)], &[]);
    same(
        &[("tasks", "013"), ("method", "coreutils-each")],
        &[("tasks", "013"), ("method", "coreutils")],
    );
    same(&[("method", "coreutils"), ("buffer", "1MiB")], &[("method", "coreutils")]);
    same(&[("archive", "/a.tar"), ("source_files", "10")], &[("archive", "/a.tar")]);
    for name in ["files", "source_files", "copies"] {
        same(&[("tasks", "013"), (name, "5")], &[("tasks", "013")]);
    }
    same(&[("tasks", "013"), ("archive", "/a.tar")], &[("tasks", "013")]);
    same(&[("tasks", "013"), ("compression", "gzip")], &[("tasks", "013")]);
    same(
        &[("tasks", "009"), ("archive", "/a.tar"), ("compression", "gzip")],
        &[("tasks", "009"), ("archive", "/a.tar")],
    );
    same(&[("tasks", "001"), ("large", "1MiB"), ("split", "1MiB")], &[("tasks", "001")]);
    let point = refined(&[("tasks", "007,013"), ("method", "coreutils")]);
    assert_eq!(refine(point.clone()).unwrap(), [point], "refining is done once");
}

#[test]
fn an_archive_is_named_by_its_whole_path() {
    let kind = SPEC.parameter("archive").unwrap().kind;
    let error = kind.read("linux.tar").unwrap_err();
    assert_eq!(error.to_string(), "`linux.tar` is no absolute path");
    assert!(error.cure.unwrap().contains("beginning with `/`"));
}

#[test]
fn the_space_it_takes_is_known() {
    let takes = |settings: &[(&str, &str)]| footprint(&refined(settings)).0;
    let small = [("files", "10"), ("source_files", "1000"), ("large", "1MiB"), ("split", "1MiB")];
    // The archive and ten copies of it.
    let archive = 18_000_000 + 10_240;
    assert_eq!(takes(&small), 11 * archive);
    assert_eq!(takes(&[&small[..], &[("copies", "1")]].concat()), {
        // The archive, the large file, the file to be cut, the tree, and its copy.
        archive + (2 << 20) + 2 * 20_000_000
    });
    assert_eq!(takes(&[&small[..], &[("tasks", "010"), ("compression", "gzip")]].concat()), {
        2 * (archive / 5) + 20_000_000
    });
    assert_eq!(takes(&[("tasks", "014"), ("large", "1MiB")]), 2 << 20);
    assert_eq!(takes(&[("tasks", "001")]), 10_000 << 10);
    assert_eq!(takes(&[("tasks", "005")]), 10_000 * (5 << 10));
    assert_eq!(takes(&[("tasks", "015"), ("split", "1MiB")]), (1 << 20) + 1049 * (5 << 10));
    let mine = [("tasks", "009"), ("archive", "/a.tar")];
    assert_eq!(takes(&mine), 0, "nobody has looked into it");
}
