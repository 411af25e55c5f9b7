use expect_test::{Expect, expect, expect_file};

use super::*;
use crate::{mount::Mounting, setup::SetupTarget};

fn level() -> FilesystemLevel {
    FilesystemLevel { mkfs: vec!["-X".into(), "y".into()], ..FilesystemLevel::plain("any") }
}

/// Every command of every filesystem, as executed.
#[test]
fn the_argument_vectors_of_every_filesystem() {
    let devices = ["/dev/A".to_owned(), "/dev/B".to_owned()];
    let mut text = String::new();
    for filesystem in Catalog::embedded().all() {
        let mut line = |what: &str, value: &str| {
            if !value.is_empty() {
                text += &format!("{:9} {what:5} {value}\n", filesystem.name);
            }
        };
        let one = &devices[..1];
        line("mkfs", &filesystem.mkfs_argv(one, &level()).join(" "));
        line("mount", &filesystem.mount_options(one, Bytes::mib(64), &level()));
        line("fsck", &filesystem.fsck_argv(one).unwrap_or_default().join(" "));
        if filesystem.multi_device.is_some() {
            line("mkfs2", &filesystem.mkfs_argv(&devices, &level()).join(" "));
            let options = filesystem.mount_options(&devices, Bytes::mib(64), &level());
            line("from2", &format!("{} {options}", filesystem.mount_source(&devices)));
        }
        let target = SetupTarget {
            devices: one,
            size: Bytes::mib(64),
            mount_point: Path::new("/MOUNT"),
            directory: Path::new("/DATA"),
            name: "fslab-NAME",
        };
        let mut plain = FilesystemLevel::plain(&*filesystem.name);
        plain.commands.source = "SOURCE".into();
        if let Mounting::Command(command) = target.mounting(filesystem, &plain) {
            line("mkfs", &target.mkfs(filesystem, &plain).join(" "));
            line("by", &command.argv.join(" "));
            line("umnt", &command.umount.join(" "));
        }
        line("ver", &filesystem.version.join(" "));
        line("feat", &filesystem.features_argv(one).unwrap_or_default().join(" "));
        line("wait", &filesystem.deferred_threads(&["A".into()]).join(" "));
        line(
            "least",
            &if filesystem.min_size.0 > 0 {
                filesystem.min_size.to_string()
            } else {
                String::new()
            },
        );
        line("kern", &filesystem.kernel.describe());
    }
    expect_file!["argv.txt"].assert_eq(&text);
}

#[test]
fn a_label_of_the_plan_replaces_the_default() {
    let catalog = Catalog::embedded();
    let argv = |name: &str, options: &[&str]| {
        let mkfs = options.iter().map(|option| (*option).to_owned()).collect();
        let level = FilesystemLevel { mkfs, ..FilesystemLevel::plain(name) };
        catalog.get(name).unwrap().mkfs_argv(&["/dev/A".into()], &level).join(" ")
    };
    assert_eq!(argv("xfs", &["-L", "mine"]), "mkfs.xfs -q -f -K -L mine /dev/A");
    assert_eq!(argv("xfs", &[]), "mkfs.xfs -q -f -K -L fslab /dev/A");
    assert!(!argv("bcachefs", &["--fs_label=mine"]).contains("fslab"));
}

#[test]
fn every_entry_is_valid() {
    for filesystem in Catalog::embedded().all() {
        assert_eq!(filesystem.check(), Ok(()), "{}", filesystem.name);
        assert!(filesystem.fsck.is_empty() == filesystem.fsck_clean.is_empty());
        let on_devices = filesystem.kind == Kind::Block;
        assert!(!on_devices || filesystem.magic != 0 && filesystem.min_size.0 > 0);
        let by_command = filesystem.is_mounted_by_command();
        assert!(!on_devices || by_command || !filesystem.label.is_empty());
        assert!(!(on_devices || by_command) || !filesystem.package.is_empty());
        assert!(!filesystem.title.is_empty() && !filesystem.source.is_empty());
    }
}

#[test]
fn the_nearest_name_is_suggested() {
    let catalog = Catalog::embedded();
    let error = |name: &str| catalog.get(name).unwrap_err().to_string();
    expect!["unknown filesystem `brtfs`; did you mean `btrfs`?"].assert_eq(&error("brtfs"));
    assert!(error("nothing-like").contains("use one of: ext2, ext3,"));
}

fn merge(text: &str) -> Result<Catalog, CatalogError> {
    Catalog::embedded().merged(text, Path::new("mine.toml"))
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&merge(text).unwrap_err().to_string());
}

#[test]
fn errors_have_a_line_and_a_hint() {
    const HEAD: &str =
        "[[filesystem]]\nname = \"new\"\ntitle = \"\"\nsource = \"\"\nfstype = \"new\"\n";
    check(
        &format!("{HEAD}mkfz = []\n"),
        expect![
            "mine.toml:6: unknown field `mkfz`, expected one of `name`, `title`, `kind`, `fstype`, `magic`, `min_size`, `mkfs`, `mkfs_writes`, `mkfs_mounts`, `mount_command`, `umount_command`, `helpers`, `label`, `mount`, `fsck`, `fsck_clean`, `version`, `deferred_work`, `threads`, `features`, `multi_device`, `package`, `tools`, `kernel`, `source`; did you mean `mkfs`?"
        ],
    );
    check(
        &format!("{HEAD}kind = \"blokc\"\n"),
        expect![
            "mine.toml:6: unknown variant `blokc`, expected one of `block`, `device`, `memory`, `directory`, `command`; did you mean `block`?"
        ],
    );
    check(
        &format!("{HEAD}min_size = \"4KB\"\n"),
        expect![
            "mine.toml:6: `4KB` is ambiguous: 4000 or 4096 bytes; write `4KiB` for 4096, or `4000B`; see filesystems.toml for the format of an entry"
        ],
    );
    check(
        &format!("{HEAD}mkfs = \"mkfs.new\"\n"),
        expect![[
            r#"mine.toml:6: invalid type: string "mkfs.new", expected a sequence; see filesystems.toml for the format of an entry"#
        ]],
    );
    check(
        &format!("{HEAD}mkfs = [\"mkfs.new\", \"{{devcie}}\"]\n"),
        expect!["mine.toml:1: unknown placeholder `{devcie}`; did you mean `{device}`?"],
    );
    check(
        &format!("{HEAD}mkfs = [\"mkfs.new\"]\n"),
        expect![[r#"mine.toml:1: mkfs of `new` has no device argument; add "{device}""#]],
    );
    check(
        HEAD,
        expect![[
            r#"mine.toml:1: `new` has no `mkfs` or no `fstype`; set both, or use kind = "memory" or "directory""#
        ]],
    );
    check(
        &HEAD.replace("new\"\nt", "New FS\"\nt"),
        expect![
            "mine.toml:1: `New FS` is not a valid filesystem name; use lower-case letters, digits, and dashes"
        ],
    );
    check(
        "\n\nfilesystems = 1\n",
        expect![
            "mine.toml:3: unknown field `filesystems`, expected `filesystem`; did you mean `filesystem`?"
        ],
    );
    check(
        "[[filesystem]\n",
        expect![
            "mine.toml:1: unclosed array table, expected `]`; see filesystems.toml for the format of an entry"
        ],
    );
    let whole = format!("{HEAD}mkfs = [\"mkfs.new\", \"{{device}}\"]\n");
    check(
        &format!("{whole}{whole}"),
        expect!["mine.toml:7: `new` is defined twice; rename one of them"],
    );
}

#[test]
fn a_user_file_adds_and_replaces_entries() {
    let text = "
[[filesystem]]
name = \"ext4\"
title = \"my ext4\"
fstype = \"ext4\"
mkfs = [\"/opt/mkfs\", \"{device}\", \"{options}\"]
source = \"mine\"
[[filesystem]]
name = \"new\"
title = \"new\"
kind = \"memory\"
fstype = \"new\"
source = \"mine\"
";
    let catalog = merge(text).unwrap();
    let before = Catalog::embedded().all().len();
    assert_eq!(catalog.all().len(), before + 1);
    let ext4 = catalog.get("ext4").unwrap();
    assert_eq!(ext4.mkfs_argv(&["/dev/A".into()], &level()), ["/opt/mkfs", "/dev/A", "-X", "y"]);
    assert_eq!(catalog.all().last().map(|last| last.name.as_str()), Some("new"));
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("mine.toml");
    std::fs::write(&path, text).unwrap();
    assert_eq!(Catalog::with_file(&path).unwrap().all(), catalog.all());
    let missing = Catalog::with_file(&temp.path().join("none")).unwrap_err();
    assert!(matches!(missing, CatalogError::Read { .. }), "{missing}");
}

#[test]
fn features_omit_values_that_differ_between_runs() {
    let catalog = Catalog::embedded();
    let reported = |name: &str, text: &str| {
        catalog.get(name).unwrap().features_in(text, &["/dev/loop0".into()])
    };
    let ext4 =
        "Filesystem UUID:   1-2\nFilesystem features:   has_journal  extent\nBlock size:  4096\n";
    assert_eq!(reported("ext4", ext4), "Filesystem features: has_journal extent; Block size: 4096");
    let btrfs = "fsid\t1-2\nflags\t0x1\n\t\t( WRITTEN )\nincompat_flags\t0x341\n\t\t( MIXED_BACKREF |\n\t\t  EXTENDED_IREF |\n\t\t  NO_HOLES )\n";
    let words = "incompat_flags 0x341; ( MIXED_BACKREF |; EXTENDED_IREF |; NO_HOLES )";
    assert_eq!(reported("btrfs", btrfs), words);
    let xfs = "meta-data=/dev/loop0 isize=512\n         =    sectsz=512\n";
    assert_eq!(reported("xfs", xfs), "meta-data={device} isize=512; = sectsz=512");
    assert_eq!(catalog.get("vfat").unwrap().features_argv(&["/dev/A".into()]), None);
}

#[test]
fn thread_names_are_expanded_for_each_device() {
    let catalog = Catalog::embedded();
    let threads = |name: &str, devices: &[&str]| {
        let devices: Vec<_> = devices.iter().map(|device| (*device).to_owned()).collect();
        catalog.get(name).unwrap().deferred_threads(&devices)
    };
    assert_eq!(threads("ext4", &["a", "b"]), ["ext4lazyinit"]);
    assert_eq!(threads("xfs", &["a", "b"])[..2], ["xfsaild/a", "xfsaild/b"]);
    assert_eq!(threads("tmpfs", &[]), [""; 0]);
}
