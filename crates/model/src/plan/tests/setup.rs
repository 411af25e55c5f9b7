use super::*;
use crate::cell::{Isolation, SetupStep};

fn level(level: &str) -> String {
    axes(&format!("filesystem = [{level}]\nworkload = [{{ suite = \"toy\" }}]"))
}

#[test]
fn what_is_done_beforehand_is_read_in_order() {
    let text = level(
        r#"{ name = "converted", base = "ext4", becomes = "btrfs", setup = [
            { populate = "linux", files = 39000 },
            { unmounted = ["btrfs-convert", "-q", "{device}"] },
            { mounted = ["btrfs", "subvolume", "delete", "{mount}/ext2_saved"] },
            { remove = "linux" },
        ] }"#,
    );
    let plan = Plan::parse(&text, *VOCABULARY).unwrap();
    let level = &plan.filesystems[0];
    assert_eq!(level.becomes.as_deref(), Some("btrfs"));
    let [SetupStep::Populate { directory, files: 39000 }, SetupStep::Unmounted { argv }, rest @ ..] =
        &level.setup[..]
    else {
        panic!("{:?}", level.setup)
    };
    assert_eq!((directory.as_str(), argv[0].as_str()), ("linux", "btrfs-convert"));
    assert!(matches!(rest, [SetupStep::Mounted { argv }, SetupStep::Remove { directory }]
        if argv[3] == "{mount}/ext2_saved" && directory == "linux"));
    // Trees shrink with the work, to one file at least; so the cell is another one.
    let files = |scale: &str| {
        let cells = plan.cells(Scale::parse(scale).unwrap(), &|point| Ok(vec![point])).unwrap();
        let SetupStep::Populate { files, .. } = cells[0].cell.filesystem.setup[0] else { panic!() };
        files
    };
    assert_eq!([files("1"), files("1/64"), files("1/64000")], [39000, 609, 1]);
}

#[test]
fn mistakes_of_a_setup_have_a_place_and_a_cure() {
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
            4:41 [{ populate = "linux" }] `populate` does not say how many files
              add files = 39000, about what the source of Linux 3.4 has
        "#]],
    );
    let none = setup(r#"[{ populate = "linux", files = 0 }]"#);
    let error = Plan::parse(&none, *VOCABULARY).unwrap_err();
    assert_eq!((error.position(&none), &none[error.span]), ((4, 71), "0"));
    for bad in ["a/b", "..", ".", "", "/"] {
        let text = setup(&format!("[{{ remove = \"{bad}\" }}]"));
        let error = Plan::parse(&text, *VOCABULARY).unwrap_err();
        assert_eq!(error.message, format!("`{bad}` is not the name of a directory"));
    }
    check(
        &setup(r#"[{ remove = "linux", files = 3 }]"#),
        expect![[r#"
            4:69 [3] `files` says how many `populate` writes
              take it out of this step
        "#]],
    );
    check(
        &setup(r#"[{ mounted = ["ls"], remove = "linux" }]"#),
        expect![[r#"
            4:41 [{ mounted = ["ls"], remove = "linux" }] this step has both `remove` and `mounted`
              make two steps of it
        "#]],
    );
    check(
        &setup("[{}]"),
        expect![[r#"
            4:41 [{}] this step does nothing
              give it one of populate, remove, unmounted, mounted
        "#]],
    );
    check(
        &setup(r#"["tune2fs"]"#),
        expect![[r#"
            4:41 ["tune2fs"] expected a table with one step, found string
              write one of { populate = "linux", files = 39000 }, { remove = "linux" }, { unmounted = ["tune2fs", …] }, { mounted = ["btrfs", …] }
        "#]],
    );
}

#[test]
fn mistakes_of_programs_have_a_place_and_a_cure() {
    let setup = |steps: &str| level(&format!("{{ name = \"ext4\", setup = [{steps}] }}"));
    check(
        &setup("{ unmounted = [] }"),
        expect![[r#"
            4:55 [[]] the step names no program
              write the program and its arguments: ["e2fsck", "-f", "{device}"]
        "#]],
    );
    check(
        &setup(r#"{ mounted = ["", "-v"] }"#),
        expect![[r#"
            4:54 [""] the name of the program is empty
              write the program first, then its arguments
        "#]],
    );
    check(
        &setup(r#"{ unmounted = "tune2fs -l {device}" }"#),
        expect![[r#"
            4:55 ["tune2fs -l {device}"] expected a list of program and arguments, found string
              no shell is involved; write ["tune2fs", "-o", "…", "{device}"]
        "#]],
    );
    check(
        &setup(r#"{ unmounted = ["ls", "{mount}"] }"#),
        expect![[r#"
            4:55 [["ls", "{mount}"]] `{mount}` is nowhere while the filesystem is not mounted
              make it a `mounted` step, or write {device}
        "#]],
    );
}

#[test]
fn what_it_becomes_is_known_and_something_makes_it_that() {
    check(
        &level(r#"{ name = "ext4", becomes = "btfrs", setup = [{ unmounted = ["convert"] }] }"#),
        expect![[r#"
            4:42 ["btfrs"] there is no filesystem `btfrs`
              did you mean `btrfs`?
        "#]],
    );
    check(
        &level(r#"{ name = "ext4", becomes = "btrfs", setup = [{ remove = "linux" }] }"#),
        expect![[r#"
            4:42 ["btrfs"] nothing in `setup` makes it `btrfs`
              add the program: { unmounted = ["btrfs-convert", "{device}"] }
        "#]],
    );
    check(
        &level(r#"{ name = "ext4", becomes = "directory", setup = [{ unmounted = ["x"] }] }"#),
        expect![[r#"
            4:42 ["directory"] no filesystem becomes a directory
              name the filesystem that the device holds after `setup`
        "#]],
    );
    let directory = "[storage]\ndirectory = \"/srv\"\n[axes]\nworkload = [{ suite = \"toy\" }]\n";
    check(
        &format!(
            "{directory}filesystem = [{{ name = \"directory\", setup = [{{ remove = \"x\" }}] }}]"
        ),
        expect![[r#"
            5:15 [{ name = "directory", setup = [{ remove = "x" }] }] nothing is done to somebody else's filesystem beforehand
              take `setup` and `becomes` out, or name an image or a device
        "#]],
    );
}

#[test]
fn isolation_fits_the_storage_and_is_a_setting() {
    let head = |isolation: &str, storage: &str| {
        let storage = format!("[storage]\n{storage}\n[axes]\nfilesystem = [\"ext4\"]");
        format!("isolation = \"{isolation}\"\n{storage}\nworkload = [{{ suite = \"toy\" }}]\n")
    };
    check(
        &head("reattach", "device = \"/dev/sdb\""),
        expect![[r#"
            1:13 ["reattach"] only images can be attached anew
              use remount or reboot, or name an image
        "#]],
    );
    check(
        &head("reatach", "image = \"1GiB\""),
        expect![[r#"
            1:13 ["reatach"] there is no isolation `reatach`
              use remount, reattach, reboot
        "#]],
    );
    let mut plan = Plan::parse(&head("reattach", "image = \"1GiB\""), *VOCABULARY).unwrap();
    assert_eq!((plan.isolation, plan.consistent()), (Isolation::Reattach, Ok(())));
    plan.set("device", "/dev/sdb", *VOCABULARY).unwrap();
    assert!(plan.consistent().unwrap_err().message.contains("only images"));
    plan.set("isolation", "reboot", *VOCABULARY).unwrap();
    assert_eq!((plan.isolation, plan.consistent()), (Isolation::Reboot, Ok(())));
    assert!(plan.set("isolation", "restart", *VOCABULARY).unwrap_err().cure.is_some());
}
