use super::*;
use crate::cell::{Isolation, SetupStep};

fn level(level: &str) -> String {
    axes(&format!("filesystem = [{level}]\nworkload = [{{ suite = \"toy\" }}]"))
}

#[test]
fn setup_steps_are_parsed_in_order() {
    let text = level(
        r#"{ name = "converted", type = "ext4", converted_to = "btrfs", setup = [
            { populate = "linux", populate_files = 39000 },
            { run_unmounted = ["btrfs-convert", "-q", "{device}"] },
            { run_mounted = ["btrfs", "subvolume", "delete", "{mount}/ext2_saved"] },
            { remove = "linux" },
        ] }"#,
    );
    let plan = Plan::parse(&text, *VOCABULARY).unwrap();
    let level = &plan.filesystems[0];
    assert_eq!(level.converted_to.as_deref(), Some("btrfs"));
    let [SetupStep::Populate { directory, files: 39000 }, SetupStep::Unmounted { argv }, rest @ ..] =
        &level.setup[..]
    else {
        panic!("{:?}", level.setup)
    };
    assert_eq!((directory.as_str(), argv[0].as_str()), ("linux", "btrfs-convert"));
    assert!(matches!(rest, [SetupStep::Mounted { argv }, SetupStep::Remove { directory }]
        if argv[3] == "{mount}/ext2_saved" && directory == "linux"));
    // Trees are scaled, to at least one file, so the cell differs.
    let files = |scale: &str| {
        let cells = plan.cells(Scale::parse(scale).unwrap(), &|point| Ok(vec![point])).unwrap();
        let SetupStep::Populate { files, .. } = cells[0].cell.filesystem.setup[0] else { panic!() };
        files
    };
    assert_eq!([files("1"), files("1/64"), files("1/64000")], [39000, 609, 1]);
}

#[test]
fn setup_errors_have_a_position_and_a_hint() {
    let setup = |steps: &str| level(&format!("{{ name = \"ext4\", setup = {steps} }}"));
    check(
        &setup(r#"[{ populat = "linux" }]"#),
        expect![[r#"
            4:43 [populat] `setup` has no key `populat`
              did you mean `populate`?
        "#]],
    );
    check(
        &setup(r#"[{ populate = "linux" }]"#),
        expect![[r#"
            4:41 [{ populate = "linux" }] `populate` requires `populate_files`
              add populate_files = 39000, about the size of the source of Linux 3.4
        "#]],
    );
    let none = setup(r#"[{ populate = "linux", populate_files = 0 }]"#);
    let error = Plan::parse(&none, *VOCABULARY).unwrap_err();
    assert_eq!((error.position(&none), &none[error.span]), ((4, 80), "0"));
    for bad in ["a/b", "..", ".", "", "/"] {
        let text = setup(&format!("[{{ remove = \"{bad}\" }}]"));
        let error = Plan::parse(&text, *VOCABULARY).unwrap_err();
        assert_eq!(error.message, format!("`{bad}` is not the name of a directory"));
    }
    check(
        &setup(r#"[{ remove = "linux", populate_files = 3 }]"#),
        expect![[r#"
            4:78 [3] `populate_files` requires `populate`
              remove it from this step
        "#]],
    );
    check(
        &setup(r#"[{ run_mounted = ["ls"], remove = "linux" }]"#),
        expect![[r#"
            4:41 [{ run_mounted = ["ls"], remove = "linux" }] this step has both `remove` and `run_mounted`
              use two steps
        "#]],
    );
    check(
        &setup("[{}]"),
        expect![[r#"
            4:41 [{}] this step has no operation
              set one of populate, remove, run_unmounted, run_mounted
        "#]],
    );
    check(
        &setup(r#"["tune2fs"]"#),
        expect![[r#"
            4:41 ["tune2fs"] expected a table with one step, found string
              write one of { populate = "linux", populate_files = 39000 }, { remove = "linux" }, { run_unmounted = ["tune2fs", …] }, { run_mounted = ["btrfs", …] }
        "#]],
    );
}

#[test]
fn command_errors_have_a_position_and_a_hint() {
    let setup = |steps: &str| level(&format!("{{ name = \"ext4\", setup = [{steps}] }}"));
    check(
        &setup("{ run_unmounted = [] }"),
        expect![[r#"
            4:59 [[]] the command is empty
              write the program and its arguments: ["e2fsck", "-f", "{device}"]
        "#]],
    );
    check(
        &setup(r#"{ run_mounted = ["", "-v"] }"#),
        expect![[r#"
            4:58 [""] the program name is empty
              write the program first, then its arguments
        "#]],
    );
    check(
        &setup(r#"{ run_unmounted = "tune2fs -l {device}" }"#),
        expect![[r#"
            4:59 ["tune2fs -l {device}"] expected a list of program and arguments, found string
              commands are run without a shell; write ["tune2fs", "-o", "…", "{device}"]
        "#]],
    );
    check(
        &setup(r#"{ run_unmounted = ["ls", "{mount}"] }"#),
        expect![[r#"
            4:59 [["ls", "{mount}"]] `{mount}` is not available while the filesystem is unmounted
              use `run_mounted`, or {device}
        "#]],
    );
}

#[test]
fn converted_to_requires_a_known_type_and_a_program() {
    check(
        &level(
            r#"{ name = "ext4", converted_to = "btfrs", setup = [{ run_unmounted = ["convert"] }] }"#,
        ),
        expect![[r#"
            4:47 ["btfrs"] unknown filesystem type `btfrs`
              did you mean `btrfs`?
        "#]],
    );
    check(
        &level(r#"{ name = "ext4", converted_to = "btrfs", setup = [{ remove = "linux" }] }"#),
        expect![[r#"
            4:47 ["btrfs"] `setup` has no step that converts it to `btrfs`
              add the program: { run_unmounted = ["btrfs-convert", "{device}"] }
        "#]],
    );
    check(
        &level(
            r#"{ name = "ext4", converted_to = "directory", setup = [{ run_unmounted = ["x"] }] }"#,
        ),
        expect![[r#"
            4:47 ["directory"] a filesystem cannot be converted to `directory`
              use the type of the filesystem on the device after `setup`
        "#]],
    );
    let directory = "[storage]\ndirectory = \"/srv\"\n[axes]\nworkload = [{ suite = \"toy\" }]\n";
    check(
        &format!(
            "{directory}filesystem = [{{ name = \"directory\", setup = [{{ remove = \"x\" }}] }}]"
        ),
        expect![[r#"
            5:15 [{ name = "directory", setup = [{ remove = "x" }] }] storage is a directory: `setup` and `converted_to` require a new filesystem
              remove them, or set `image_size` or `device`
        "#]],
    );
}

#[test]
fn isolation_matches_the_storage() {
    let head = |isolation: &str, storage: &str| {
        let storage = format!("[storage]\n{storage}\n[axes]\nfilesystem = [\"ext4\"]");
        format!("isolation = \"{isolation}\"\n{storage}\nworkload = [{{ suite = \"toy\" }}]\n")
    };
    check(
        &head("reattach", "device = \"/dev/sdb\""),
        expect![[r#"
            1:13 ["reattach"] isolation `reattach` requires an image
              use remount or reboot, or set `image_size`
        "#]],
    );
    check(
        &head("reatach", "image_size = \"1GiB\""),
        expect![[r#"
            1:13 ["reatach"] unknown isolation `reatach`
              use remount, reattach, reboot
        "#]],
    );
    let mut plan = Plan::parse(&head("reattach", "image_size = \"1GiB\""), *VOCABULARY).unwrap();
    assert_eq!((plan.isolation, plan.consistent()), (Isolation::Reattach, Ok(())));
    plan.set("device", "/dev/sdb", *VOCABULARY).unwrap();
    assert!(plan.consistent().unwrap_err().message.contains("requires an image"));
    plan.set("isolation", "reboot", *VOCABULARY).unwrap();
    assert_eq!((plan.isolation, plan.consistent()), (Isolation::Reboot, Ok(())));
    assert!(plan.set("isolation", "restart", *VOCABULARY).unwrap_err().hint.is_some());
}
