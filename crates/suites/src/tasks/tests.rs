use expect_test::{Expect, expect};
use model::phase::{Role, TaskOperation, Work};

use super::*;

fn refined(settings: &[(&str, &str)]) -> WorkloadParameters {
    let mut point = SPEC.defaults();
    for (name, text) in settings {
        let kind = SPEC.parameter(name).unwrap().kind;
        point.parameters.insert((*name).into(), kind.read(text).unwrap());
    }
    refine(point).unwrap().remove(0)
}

/// One line per phase. An arrow marks a measured phase.
fn shown(settings: &[(&str, &str)], expected: Expect) {
    let line = |phase: &Phase| {
        let mark = if phase.role == Role::Measure { '>' } else { ' ' };
        let Work::Task(task) = &phase.work else { unreachable!("only tasks here") };
        let operation = serde_json::to_value(&task.operation).unwrap();
        let (operation, rest) = operation.as_object().unwrap().iter().next().unwrap();
        let word = |(name, value): (&String, &serde_json::Value)| match value.get("at") {
            Some(at) => format!(
                "{name}={}{}",
                if at == "external" { "external:" } else { "" },
                value["name"].as_str().unwrap()
            ),
            None => format!("{name}={}", value.to_string().trim_matches('"')),
        };
        let rest: Vec<_> = rest.as_object().unwrap().iter().map(word).collect();
        let (name, cache, group) = (&phase.name, phase.cache.name(), &phase.group);
        format!("{mark} {name:<22} {cache} [{group}] {operation} {}\n", rest.join(" "))
    };
    let phases = phases(&refined(settings), 7);
    expected.assert_eq(&phases.iter().map(line).collect::<String>());
}

#[test]
fn the_twenty_one_tasks() {
    shown(
        &[],
        expect![[r#"
            > 001-touch-files        unchanged [files and directories] touch count=10000 directory={"name":"files","root":"target"}
            > 002-find-files         unchanged [files and directories] find directory={"name":"files","root":"target"}
            > 003-remove-files       unchanged [files and directories] remove_tree directory={"name":"files","root":"target"}
            > 004-make-directories   unchanged [files and directories] make_directories count=10000 directory={"name":"directories","root":"target"}
            > 005-find-directories   unchanged [files and directories] find directory={"name":"directories","root":"target"}
            > 006-remove-directories unchanged [files and directories] remove_tree directory={"name":"directories","root":"target"}
              007-prepare-archive    unchanged [copying] archive archive={"name":"source.tar","root":"external"} compression=none files=78579
            > 007-copy-in            unchanged [copying] copy from={"name":"source.tar","root":"external"} times=1 to={"name":"source.tar","root":"target"}
              007-tidy               unchanged [copying] remove_tree directory={"name":"source.tar","root":"external"}
            > 008-copy-out           unchanged [copying] copy from={"name":"source.tar","root":"target"} times=1 to={"name":"copy.tar","root":"external"}
              008-tidy               unchanged [copying] remove_tree directory={"name":"copy.tar","root":"external"}
            > 009-unpack-tree        unchanged [source tree] unpack archive={"name":"source.tar","root":"target"} into={"name":"tree","root":"target"}
            > 010-pack-tree          unchanged [source tree] pack archive={"name":"packed.tar","root":"target"} compression=none directory={"name":"tree","root":"target"}
              010-tidy               unchanged [source tree] remove_tree directory={"name":"packed.tar","root":"target"}
            > 011-remove-tree        unchanged [source tree] remove_tree directory={"name":"tree","root":"target"}
              012-prepare-directory  unchanged [copying] make_directories count=0 directory={"name":"copies","root":"target"}
            > 012-copy-repeatedly    unchanged [copying] copy from={"name":"source.tar","root":"target"} times=10 to={"name":"copies/source.tar","root":"target"}
              012-tidy               unchanged [copying] remove_tree directory={"name":"copies","root":"target"}
            > 013-write-zeros        unchanged [large file] zeros file={"name":"large","root":"target"} size=1073741824
            > 014-copy-file          cold [large file] copy from={"name":"large","root":"target"} times=1 to={"name":"large-copy","root":"target"}
              014-tidy               unchanged [large file] remove_tree directory={"name":"large-copy","root":"target"}
              015-prepare-whole      unchanged [splitting] random file={"name":"whole","root":"target"} size=10485760
            > 015-split-1000         unchanged [splitting] split file={"name":"whole","root":"target"} into={"name":"pieces","root":"target"} piece=1000
              015-tidy               unchanged [splitting] remove_tree directory={"name":"pieces","root":"target"}
            > 016-split-1024         unchanged [splitting] split file={"name":"whole","root":"target"} into={"name":"pieces","root":"target"} piece=1024
              016-tidy               unchanged [splitting] remove_tree directory={"name":"pieces","root":"target"}
            > 017-split-2048         unchanged [splitting] split file={"name":"whole","root":"target"} into={"name":"pieces","root":"target"} piece=2048
              017-tidy               unchanged [splitting] remove_tree directory={"name":"pieces","root":"target"}
            > 018-split-4096         unchanged [splitting] split file={"name":"whole","root":"target"} into={"name":"pieces","root":"target"} piece=4096
              018-tidy               unchanged [splitting] remove_tree directory={"name":"pieces","root":"target"}
            > 019-split-8192         unchanged [splitting] split file={"name":"whole","root":"target"} into={"name":"pieces","root":"target"} piece=8192
              019-tidy               unchanged [splitting] remove_tree directory={"name":"pieces","root":"target"}
              020-prepare-tree       unchanged [source tree] unpack archive={"name":"source.tar","root":"target"} into={"name":"tree","root":"target"}
            > 020-copy-tree          unchanged [source tree] copy_tree from={"name":"tree","root":"target"} to={"name":"tree-copy","root":"target"}
            > 021-read-file          cold [large file] read file={"name":"large","root":"target"}
        "#]],
    );
}

#[test]
fn tasks_prepare_only_their_requirements() {
    shown(
        &[("tasks", "021,003,011,012"), ("cache", "cold")],
        expect![[r#"
              003-prepare-files      unchanged [files and directories] touch count=10000 directory={"name":"files","root":"target"}
            > 003-remove-files       cold [files and directories] remove_tree directory={"name":"files","root":"target"}
              011-prepare-archive    unchanged [source tree] archive archive={"name":"source.tar","root":"target"} compression=none files=78579
              011-prepare-tree       unchanged [source tree] unpack archive={"name":"source.tar","root":"target"} into={"name":"tree","root":"target"}
            > 011-remove-tree        cold [source tree] remove_tree directory={"name":"tree","root":"target"}
              012-prepare-directory  unchanged [copying] make_directories count=0 directory={"name":"copies","root":"target"}
            > 012-copy-repeatedly    cold [copying] copy from={"name":"source.tar","root":"target"} times=10 to={"name":"copies/source.tar","root":"target"}
              012-tidy               unchanged [copying] remove_tree directory={"name":"copies","root":"target"}
              021-prepare-large      unchanged [large file] zeros file={"name":"large","root":"target"} size=1073741824
            > 021-read-file          cold [large file] read file={"name":"large","root":"target"}
        "#]],
    );
    shown(
        &[("tasks", "020,010,011"), ("compression", "gzip")],
        expect![[r#"
              010-prepare-archive    unchanged [source tree] archive archive={"name":"source.tar","root":"target"} compression=gzip files=78579
              010-prepare-tree       unchanged [source tree] unpack archive={"name":"source.tar","root":"target"} into={"name":"tree","root":"target"}
            > 010-pack-tree          unchanged [source tree] pack archive={"name":"packed.tar","root":"target"} compression=gzip directory={"name":"tree","root":"target"}
              010-tidy               unchanged [source tree] remove_tree directory={"name":"packed.tar","root":"target"}
            > 011-remove-tree        unchanged [source tree] remove_tree directory={"name":"tree","root":"target"}
              020-prepare-tree       unchanged [source tree] unpack archive={"name":"source.tar","root":"target"} into={"name":"tree","root":"target"}
            > 020-copy-tree          unchanged [source tree] copy_tree from={"name":"tree","root":"target"} to={"name":"tree-copy","root":"target"}
        "#]],
    );
    shown(
        &[("tasks", "007,009"), ("archive", "/srv/linux.tar.gz")],
        expect![[r#"
              007-prepare-archive    unchanged [copying] fetch archive={"name":"source.tar","root":"external"} path=/srv/linux.tar.gz
            > 007-copy-in            unchanged [copying] copy from={"name":"source.tar","root":"external"} times=1 to={"name":"source.tar","root":"target"}
              007-tidy               unchanged [copying] remove_tree directory={"name":"source.tar","root":"external"}
            > 009-unpack-tree        unchanged [source tree] unpack archive={"name":"source.tar","root":"target"} into={"name":"tree","root":"target"}
        "#]],
    );
    shown(
        &[("tasks", "017"), ("split_file_size", "1MiB")],
        expect![[r#"
              017-prepare-whole      unchanged [splitting] random file={"name":"whole","root":"target"} size=1048576
            > 017-split-2048         unchanged [splitting] split file={"name":"whole","root":"target"} into={"name":"pieces","root":"target"} piece=2048
              017-tidy               unchanged [splitting] remove_tree directory={"name":"pieces","root":"target"}
        "#]],
    );
}

#[test]
fn one_task_is_one_measured_phase_with_its_number() {
    for number in 1..=21 {
        let word = word_of(number);
        let phases = phases(&refined(&[("tasks", &word)]), 7);
        let measured: Vec<_> = phases.iter().filter(|p| p.role == Role::Measure).collect();
        assert_eq!(measured.len(), 1);
        assert!(measured[0].name.starts_with(&word), "{}", measured[0].name);
        assert!(phases.iter().all(|phase| phase.name.starts_with(&word)));
    }
}

/// The external directory outlives a trial, so each trial must leave it empty.
#[test]
fn external_directory_is_empty_after_a_trial() {
    let paths = |operation: &TaskOperation| {
        if let TaskOperation::Copy { from, to, .. } = operation {
            return vec![from.clone(), to.clone()];
        }
        let one = match operation {
            TaskOperation::Archive { archive, .. } | TaskOperation::Fetch { archive, .. } => {
                Some(archive)
            }
            TaskOperation::RemoveTree { directory } => Some(directory),
            TaskOperation::Unpack { archive: spot, .. }
            | TaskOperation::Pack { archive: spot, .. }
            | TaskOperation::CopyTree { to: spot, .. }
            | TaskOperation::Split { into: spot, .. }
            | TaskOperation::Touch { directory: spot, .. }
            | TaskOperation::MakeDirectories { directory: spot, .. }
            | TaskOperation::Find { directory: spot }
            | TaskOperation::Zeros { file: spot, .. }
            | TaskOperation::Read { file: spot }
            | TaskOperation::Random { file: spot, .. }
            | TaskOperation::Copy { from: spot, .. } => {
                assert_eq!(spot.root, model::phase::TaskRoot::Target);
                None
            }
        };
        one.cloned().into_iter().collect()
    };
    for tasks in ["all", "007", "008", "007,008"] {
        let mut left = std::collections::BTreeSet::new();
        for phase in phases(&refined(&[("tasks", tasks)]), 7) {
            let Work::Task(task) = &phase.work else { unreachable!("only tasks here") };
            let removes = matches!(task.operation, TaskOperation::RemoveTree { .. });
            for spot in paths(&task.operation) {
                match (spot.root == model::phase::TaskRoot::External, removes) {
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
fn equal_workloads_have_equal_parameters() {
    let same = |one: &[(&str, &str)], other: &[(&str, &str)]| {
        assert_eq!(refined(one), refined(other), "{one:?} {other:?}");
    };
    same(&[("tasks", "all")], &[("tasks", "all,003")]);
    same(&[("tasks", "009,003")], &[("tasks", "003,009")]);
    let every = TASKS[1..].join(",");
    same(&[("tasks", &every)], &[]);
    same(
        &[("tasks", "013"), ("method", "coreutils-per-file")],
        &[("tasks", "013"), ("method", "coreutils")],
    );
    same(&[("method", "coreutils"), ("block_size", "1MiB")], &[("method", "coreutils")]);
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
    same(
        &[("tasks", "001"), ("large_file_size", "1MiB"), ("split_file_size", "1MiB")],
        &[("tasks", "001")],
    );
    let point = refined(&[("tasks", "007,013"), ("method", "coreutils")]);
    assert_eq!(refine(point.clone()).unwrap(), [point], "refining is done once");
}

#[test]
fn archives_have_absolute_paths() {
    let kind = SPEC.parameter("archive").unwrap().kind;
    let error = kind.read("linux.tar").unwrap_err();
    assert_eq!(error.to_string(), "`linux.tar` is not an absolute path");
    assert!(error.hint.unwrap().contains("absolute path"));
}

#[test]
fn footprint_is_estimated() {
    let takes = |settings: &[(&str, &str)]| footprint(&refined(settings)).0;
    let small = [
        ("files", "10"),
        ("source_files", "1000"),
        ("large_file_size", "1MiB"),
        ("split_file_size", "1MiB"),
    ];
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
    assert_eq!(takes(&[("tasks", "014"), ("large_file_size", "1MiB")]), 2 << 20);
    assert_eq!(takes(&[("tasks", "001")]), 10_000 << 10);
    assert_eq!(takes(&[("tasks", "005")]), 10_000 * (5 << 10));
    assert_eq!(
        takes(&[("tasks", "015"), ("split_file_size", "1MiB")]),
        (1 << 20) + 1049 * (5 << 10)
    );
    let mine = [("tasks", "009"), ("archive", "/a.tar")];
    assert_eq!(takes(&mine), 0, "the content of a given archive is unknown");
}
