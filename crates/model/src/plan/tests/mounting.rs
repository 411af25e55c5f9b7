use super::*;
use crate::mount_commands::MountCommands;

const DIRECTORY: &str = "storage.directory = \"/srv\"\n[axes]\nworkload = [\"tiny-read\"]\n";

fn in_directory(level: &str) -> String {
    format!("{DIRECTORY}filesystem = [\n{level}\n]\n")
}

#[test]
fn commands_are_part_of_a_level() {
    let text = in_directory(
        r#"  "directory", "overlayfs",
  { name = "sshfs", type = "fuse.sshfs", source = "host:/srv", mount_options = "ro",
    mount_command = ["sshfs", "-o", "{options}", "{source}", "{mount}"],
    umount_command = ["fusermount3", "-u", "{mount}"],
    setup = [{ run_unmounted = ["mkdir", "{directory}/a"] }] }"#,
    );
    let plan = Plan::parse(&text, *VOCABULARY).unwrap();
    assert_eq!(plan.consistent(), Ok(()));
    let [directory, overlayfs, sshfs] = &plan.filesystems[..] else { panic!() };
    assert!(directory.commands.is_empty() && overlayfs.commands.is_empty());
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let expected = MountCommands {
        mount: words(&["sshfs", "-o", "{options}", "{source}", "{mount}"]),
        umount: words(&["fusermount3", "-u", "{mount}"]),
        mounted_type: String::new(),
        source: "host:/srv".into(),
    };
    assert_eq!((&sshfs.commands, &*sshfs.fs_type), (&expected, "fuse.sshfs"));
    let cell = plan.cells(Scale::ONE, &small).unwrap().pop().unwrap().cell;
    assert!(cell.canonical().contains(r#""commands":{"mount":["sshfs""#), "{}", cell.canonical());
}

#[test]
fn commands_require_a_mount_point_and_known_placeholders() {
    let level = |keys: &str| in_directory(&format!("{{ name = \"x\", {keys} }}"));
    check(
        &level(r#"mount_command = ["sshfs", "host:"]"#),
        expect![[r#"
            5:31 [["sshfs", "host:"]] `mount_command` has no {mount}
              add "{mount}", the directory on which the filesystem is mounted
        "#]],
    );
    check(
        &level(r#"mount_command = ["a", "{mountpoint}"]"#),
        expect![[r#"
            5:31 [["a", "{mountpoint}"]] unknown placeholder in `{mountpoint}`
              the placeholders are {device}, {mount}, {directory}, {name}, {source} and {options}
        "#]],
    );
    check(
        &level(r#"mount_command = ["a", "{source}", "{mount}"]"#),
        expect![[r#"
            5:31 [["a", "{source}", "{mount}"]] `mount_command` has {source}, but the entry has no `source`
              add source = "server:/export"
        "#]],
    );
    check(
        &level(r#"mount_command = ["a", "{mount}"], mount_options = "ro""#),
        expect![[r#"
            5:31 [["a", "{mount}"]] `mount_options` has no effect: `mount_command` has no {options}
              add {options} to an argument, or write the options into `mount_command`
        "#]],
    );
    check(
        &level(r#"mount_command = ["a", "{mount}"], mkfs_options = ["-f"]"#),
        expect![[r#"
            5:31 [["a", "{mount}"]] `mkfs_options` has no effect: there is no mkfs for `x`
              create the filesystem with a `run_unmounted` step of `setup`
        "#]],
    );
    check(
        &level(r#"mount_command = "sshfs host: {mount}""#),
        expect![[r#"
            5:31 ["sshfs host: {mount}"] expected a list of program and arguments, found string
              commands are run without a shell; write ["tune2fs", "-o", "…", "{device}"]
        "#]],
    );
    check(
        &level(r#"type = "directory", mount_command = ["a", "{mount}"]"#),
        expect![[r#"
            5:51 [["a", "{mount}"]] filesystem `directory` is not mounted, so it has no `mount_command`
              set `type` to the type that is mounted
        "#]],
    );
    check(
        &level(r#"type = "ext4", umount_command = ["a"]"#),
        expect![[r#"
            5:47 [["a"]] `umount_command` requires `mount_command`
              add `mount_command`, or remove `umount_command`
        "#]],
    );
    check(
        &level(r#"mount_command = ["a", "{mount}"], setup = [{ remove = "a" }]"#),
        expect![[r#"
            5:1 [{ name = "x", mount_command = ["a", "{mount}"], setup = [{ remove = "a" }] }] storage is a directory: `setup` and `converted_to` require a new filesystem
              remove them, or set `image_size` or `device`
        "#]],
    );
}

#[test]
fn the_storage_must_fit_the_type() {
    let on_image = |level: &str| {
        format!(
            "storage.image_size = \"1GiB\"\n[axes]\nworkload = [\"tiny-read\"]\nfilesystem = [{level}]\n"
        )
    };
    let message = |text: String| Plan::parse(&text, *VOCABULARY).unwrap_err().message;
    assert_eq!(
        message(on_image("\"overlayfs\"")),
        "filesystem `overlayfs` requires `storage.directory`"
    );
    assert_eq!(message(in_directory("\"zfs\"")), "`zfs` cannot be created in a directory");
    let own = r#"{ name = "own", mount_command = ["a", "{mount}"] }"#;
    for text in [on_image(own), in_directory(own), on_image("\"zfs\"")] {
        let mut plan = Plan::parse(&text, *VOCABULARY).unwrap();
        assert_eq!(plan.consistent(), Ok(()), "{text}");
        plan.set("guest", "kvm", *VOCABULARY).unwrap();
        if text == on_image(own) {
            assert_eq!(plan.consistent(), Ok(()));
            continue;
        }
        let error = plan.consistent().unwrap_err();
        assert!(error.message.ends_with(", which guests do not run"), "{error:?}");
    }
    let mut plan = Plan::parse(&in_directory("\"overlayfs\""), *VOCABULARY).unwrap();
    plan.set("image_size", "1GiB", *VOCABULARY).unwrap();
    assert!(plan.consistent().is_err(), "an overlay needs a directory");
}
