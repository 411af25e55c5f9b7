//! Steps on names, links, and directories.

use super::*;

fn mode(path: &std::path::Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn each_step_on_names_has_its_documented_effect() {
    use TreeStep::{
        Chown, GetXattr, Mkdir, Mknod, RenameAcross, Rmdir, SetTimes, SetXattr, Stat, StatMissing,
        Symlink, Truncate, Unlink,
    };
    let bench = Bench::new();
    bench.run(&tree(&MAKE)).unwrap();
    assert_eq!((mode(&bench.path("")), mode(&bench.path("0"))), (0o700, 0o700));
    assert_eq!(mode(&bench.path("0/0")), 0o600);
    let looked = bench.run(&tree(&[Stat, StatMissing])).unwrap();
    assert_eq!((looked.workers[0].read.ops, looked.workers[0].written.ops), (Ops(10), Ops(0)));
    bench.run(&tree(&[Chown, SetTimes])).unwrap();
    assert_eq!(fs::metadata(bench.path("2/9")).unwrap().mtime(), 946_684_800);
    bench.run(&tree(&[Truncate])).unwrap();
    assert_eq!(bench.length("2/9"), Some(5000));
    match bench.run(&tree(&[SetXattr])) {
        Ok(_) => {
            bench.run(&tree(&[GetXattr])).unwrap();
            let mut value = [0; 20];
            let path = bench.path("1/4");
            assert_eq!(rustix::fs::getxattr(&path, "user.fslab", &mut value[..]), Ok(16));
        }
        Err(EngineError::Unsupported { what, .. }) => {
            assert_eq!(what, "user extended attributes");
        }
        Err(other) => panic!("{other}"),
    }
    fs::write(bench.path("1/4.none"), "").unwrap();
    let there = bench.refusal(&tree(&[StatMissing]));
    let path = bench.path("1/4.none").display().to_string();
    assert!(there.starts_with(&format!("examining {path}: the name already exists")), "{there}");
    bench.run(&tree(&[RenameAcross])).unwrap();
    assert_eq!((bench.length("across/9"), bench.length("2/9")), (Some(5000), None));
    bench.run(&tree(&[Mknod])).unwrap();
    assert_eq!((bench.length("2/9"), mode(&bench.path("2/9"))), (Some(0), 0o600));
    bench.run(&tree(&[Unlink, Mkdir])).unwrap();
    assert_eq!(mode(&bench.path("2/9")), 0o700);
    bench.run(&tree(&[Rmdir, Symlink])).unwrap();
    assert_eq!(fs::read_link(bench.path("2/9")).unwrap().to_str(), Some("target"));
}

#[test]
fn steps_on_open_files_have_their_documented_effects() {
    use TreeStep::{Allocate, Close, Create, Fetch, Open, PunchHole, Stat, Write};
    let bench = Bench::new();
    bench.run(&tree(&[Create, Allocate, Close])).unwrap();
    assert_eq!(bench.length("0/0"), Some(4096));
    bench.run(&tree(&[Open, Write, Close])).unwrap();
    assert_eq!(fs::read(bench.path("0/0")).unwrap().len(), 10_000);
    match bench.run(&tree(&[Open, PunchHole, Close])) {
        Ok(_) => {
            let bytes = fs::read(bench.path("0/0")).unwrap();
            assert!(bytes[..4096].iter().all(|byte| *byte == 0));
            assert!(bytes[4096..].iter().any(|byte| *byte != 0));
            assert_eq!(bytes.len(), 10_000);
        }
        Err(EngineError::Unsupported { .. }) => {}
        Err(other) => panic!("{other}"),
    }
    let fetched = bench.run(&tree(&[Stat, Fetch])).unwrap();
    assert_eq!((fetched.ops(), fetched.bytes()), (Ops(10), Bytes(100_000)));
    assert_eq!(fetched.workers[0].latencies.read.count(), 10);
    fs::write(bench.path("0/0"), "").unwrap();
    assert_eq!(bench.run(&tree(&[Stat, Fetch])).unwrap().bytes(), Bytes(90_000));
}

#[test]
fn links_point_to_the_first_entry() {
    let bench = Bench::new();
    for spread in [Spread::Flat, Spread::Directories { each: 4 }] {
        for step in [TreeStep::LinkFirst, TreeStep::SymlinkFirst] {
            let make = with(&[step], |tree| tree.set.spread = spread);
            bench.run(&make).unwrap();
            let path = |entry: u64| match spread {
                Spread::Flat => bench.path(&entry.to_string()),
                Spread::Tree(_) => unreachable!(),
                Spread::Directories { each } => bench.path(&format!("{}/{entry}", entry / each)),
            };
            let first = fs::metadata(path(0)).unwrap();
            assert_eq!(first.nlink(), if step == TreeStep::LinkFirst { 10 } else { 1 });
            for entry in 0..10 {
                assert_eq!(fs::metadata(path(entry)).unwrap().ino(), first.ino(), "{spread:?}");
            }
            let mut remove = Tree { steps: vec![TreeStep::Unlink], ..make };
            remove.order = TreeOrder::Listed;
            remove.end.remove_directories = true;
            bench.run(&remove).unwrap();
            assert!(!bench.path("").exists());
        }
    }
}

const NAMINGS: [Naming; 4] =
    [Naming::Numbers, Naming::Padded { length: 30 }, Naming::Ordered, Naming::Scrambled];

#[test]
fn order_listed_has_every_entry_once_in_directory_order() {
    let bench = Bench::new();
    for naming in NAMINGS {
        for spread in [Spread::Flat, Spread::Directories { each: 70 }] {
            let base = with(&MAKE, |tree| {
                (tree.set.naming, tree.set.spread, tree.set.files) = (naming, spread, 300);
                tree.set.sizes = Sizes::Uniform { min: Bytes(0), max: Bytes(9000) };
            });
            let made = bench.run(&base).unwrap();
            let foreign = if spread == Spread::Flat { "lost+found" } else { "00002/lost+found" };
            let foreign = bench.path(foreign);
            let unsupported_type = foreign.parent().unwrap().exists();
            if unsupported_type {
                fs::write(&foreign, "").unwrap();
            }
            let listed = |steps: &[TreeStep]| Tree {
                steps: steps.to_vec(),
                order: TreeOrder::Listed,
                ..base.clone()
            };
            // Sizes follow from the names found.
            use TreeStep::{Close, Create, Fetch, OpenRead, Read, Stat, Unlink, Write};
            let read = bench.run(&listed(&[OpenRead, Read, Close])).unwrap();
            assert_eq!((read.ops(), read.bytes()), (Ops(300), made.bytes()), "{naming:?}");
            let fetched = bench.run(&listed(&[Stat, Fetch])).unwrap();
            assert_eq!((fetched.ops(), fetched.bytes()), (Ops(300), made.bytes()));
            let twice = Tree { passes: 2, ..listed(&[Stat]) };
            assert_eq!(bench.run(&twice).unwrap().ops(), Ops(600));
            let rewritten = bench.run(&listed(&[Unlink, Create, Write, Close])).unwrap();
            assert_eq!((rewritten.ops(), rewritten.bytes()), (Ops(300), made.bytes()));
            if unsupported_type {
                fs::remove_file(&foreign).unwrap();
            }
            let mut remove = listed(&[Unlink]);
            remove.end = TreeEnd { remove_directories: true, sync: false };
            let removed = bench.run(&remove).unwrap();
            assert_eq!(removed.ops(), Ops(300));
            assert!(removed.workers[0].end_sync_time > model::Nanos(0));
            assert!(!bench.path("").exists());
        }
    }
}

#[test]
fn a_directory_with_missing_entries_is_reported_with_its_counts() {
    let bench = Bench::new();
    bench.run(&tree(&MAKE)).unwrap();
    fs::remove_file(bench.path("1/6")).unwrap();
    for steps in [vec![TreeStep::Stat], vec![TreeStep::Unlink, TreeStep::Mknod]] {
        let listed = Tree { order: TreeOrder::Listed, steps, ..tree(&[]) };
        let refusal = bench.refusal(&listed);
        let path = bench.path("1").display().to_string();
        let expected = format!("the directory {path} has 3 of 4 entries of the file set; run ");
        assert!(refusal.starts_with(&expected), "{refusal}");
    }
}

#[test]
fn parents_are_created_with_their_first_entry() {
    use TreeStep::{Close, Create, MakeParent, Unlink, Write};
    let bench = Bench::new();
    let make = tree(&[MakeParent, Create, Write, Close]);
    bench.run(&make).unwrap();
    assert_eq!(bench.length("2/8"), Some(10_000));
    let mut rewrite = tree(&[MakeParent, Unlink, Create, Write, Close]);
    rewrite.order = TreeOrder::Listed;
    assert_eq!(bench.run(&rewrite).unwrap().bytes(), Bytes(100_000));
    let refusal = bench.refusal(&make);
    let path = bench.path("0/0").display().to_string();
    assert!(refusal.starts_with(&format!("opening {path}: the name already exists")), "{refusal}");
    let flat = with(&[MakeParent, Create, Close], |tree| {
        (tree.set.name, tree.set.spread) = ("f".into(), Spread::Flat);
    });
    assert_eq!(bench.run(&flat).unwrap().ops(), Ops(10));
}
