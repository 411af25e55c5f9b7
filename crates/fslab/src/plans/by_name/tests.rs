use expect_test::expect;

use super::*;
use crate::cli::Axes;

fn changes(axes: Axes, set: &[(&str, &str)]) -> Changes {
    let set = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Changes {
        axes,
        scale: "1".into(),
        profile: None,
        set,
        guest: None,
        kernel: Vec::new(),
        catalog: None,
    }
}

fn on_image(size: &str) -> Axes {
    let filesystem = vec!["ext4".into(), "xfs".into()];
    Axes { filesystem, image: Some(size.into()), ..Axes::default() }
}

fn plan(names: &[&str], changes: &Changes) -> Result<ResolvedPlan, Failure> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    ResolvedPlan::new(&names, changes, &Catalog::embedded())
}

#[track_caller]
fn refused(names: &[&str], changes: &Changes) -> String {
    plan(names, changes).expect_err("the options are rejected").message()
}

#[test]
fn options_become_a_plan() {
    let set = [("runtime", "1s"), ("block_size", "4KiB,8KiB"), ("fsck", "false"), ("seed", "7")];
    let storage = [("memory_limit", "1GiB"), ("scheduler", "none"), ("fill_percent", "0,50")];
    let options = [("mount.noatime", "false,true"), ("mkfs.-I", "256")];
    let rest = [("repetitions", "3"), ("direct", "true")];
    let set = [&set[..], &storage[..], &options[..], &rest[..]].concat();
    let chosen = plan(&["randread-4k", "stream"], &changes(on_image("4GiB"), &set));
    let chosen = chosen.expect("a valid plan");
    assert!(chosen.overrides.is_empty() && chosen.from_options);
    expect![[r#"
        title = "randread-4k, stream on ext4, xfs"
        fsck = false
        seed = 7
        repetitions = 3

        [storage]
        image_size = "4GiB"
        memory_limit = "1GiB"

        [axes]
        filesystem = ["ext4", "xfs"]
        scheduler = ["none"]
        fill_percent = [0, 50]
        mount.noatime = [false, true]
        mkfs.-I = ["256"]
        workload = [
            { preset = "randread-4k", runtime = "1s", block_size = ["4KiB", "8KiB"], direct = true },
            { suite = "stream", runtime = "1s", block_size = ["4KiB", "8KiB"], direct = true },
        ]
    "#]].assert_eq(&chosen.text);
    // The text is a plan like any other, with the same cells.
    let again = ResolvedPlan::read(
        "again".into(),
        "again.toml",
        chosen.text.clone(),
        Vec::new(),
        chosen.scale,
        &Catalog::embedded(),
    );
    assert_eq!(again.expect("a valid plan").cells, chosen.cells);
}

#[test]
fn limits_of_a_sweep_remain_overrides() {
    let set = [("clients", "1,5,20"), ("clients", "..5")];
    let chosen = plan(&["dbench"], &changes(on_image("8GiB"), &set)).expect("a valid plan");
    assert_eq!(chosen.overrides.len(), 2);
    assert_eq!(chosen.cells.iter().filter(|cell| !cell.cell.aa_duplicate).count(), 4);
}

#[test]
fn every_preset_and_suite_is_a_plan() {
    // A replay requires a recording, and members are written in a plan.
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/trace/mail.fstrace");
    for name in names().filter(|name| *name != "together") {
        let set: &[(&str, &str)] = if name == "replay" { &[("trace", trace)] } else { &[] };
        let chosen = plan(&[name], &changes(on_image("1048576TiB"), set));
        let chosen = chosen.map_err(|failure| failure.message()).expect(name);
        assert!(!chosen.cells.is_empty() && chosen.name == name);
    }
}

#[test]
fn no_plan_has_the_name_of_a_workload() {
    for name in names() {
        assert!(BUILTIN_PLANS.iter().all(|plan| plan.name != name), "{name}");
    }
}

#[test]
fn errors_name_the_option() {
    let sizes = refused(&["oltp-8k"], &changes(on_image("512MB"), &[]));
    assert!(sizes.starts_with("--image 512MB: `512MB` is ambiguous"), "{sizes}");
    let mut axes = on_image("4GiB");
    axes.filesystem = vec!["ext5".into()];
    let unknown = refused(&["oltp-8k"], &changes(axes, &[]));
    assert!(
        unknown.starts_with("--filesystem ext5: ") && unknown.contains("did you mean `ext"),
        "{unknown}"
    );
    let small = refused(&["iozone"], &changes(on_image("16MiB"), &[]));
    assert!(small.starts_with("iozone: the workload needs"), "{small}");
    let set = refused(&["oltp-8k"], &changes(on_image("8GiB"), &[("bs", "4KiB")]));
    assert!(set.starts_with("--set bs=4KiB: ") && set.contains("`block_size`"), "{set}");
}

#[test]
fn storage_and_filesystems_are_required() {
    let none = refused(&["oltp-8k"], &changes(Axes::default(), &[]));
    for option in ["--image", "--device", "--directory"] {
        assert!(none.contains(option), "{none}");
    }
    let alone = Axes { filesystem: Vec::new(), ..on_image("4GiB") };
    let alone = refused(&["oltp-8k"], &changes(alone, &[]));
    assert!(alone.contains("--filesystem ext4,xfs"), "{alone}");
    let directory = Axes { directory: Some("/srv".into()), image: None, ..on_image("4GiB") };
    let both = refused(&["oltp-8k"], &changes(directory, &[]));
    assert!(both.contains("--directory /srv measures a mounted filesystem"), "{both}");
    let two = refused(&["oltp-8k"], &changes(on_image("4GiB"), &[("device", "/dev/null")]));
    assert!(two.contains("both --image 4GiB and --set device=/dev/null"), "{two}");
}

#[test]
fn names_that_are_not_workloads_are_explained() {
    let axes = || changes(on_image("4GiB"), &[]);
    let near = refused(&["maildir-delivry"], &axes());
    assert!(near.contains("did you mean the workload `maildir-delivery`"), "{near}");
    let near = refused(&["oltp-8k", "oltp-lgo"], &axes());
    assert!(near.contains("did you mean `oltp-log`?"), "{near}");
    let directory = refused(&["oltp-8k", "/tmp"], &axes());
    assert!(directory.contains("--directory /tmp"), "{directory}");
    let plan = refused(&["oltp-8k", "demo"], &axes());
    assert!(plan.contains("`demo` is a plan"), "{plan}");
}
