use expect_test::{Expect, expect, expect_file};

use super::*;

fn level() -> FilesystemLevel {
    FilesystemLevel { mkfs: vec!["-X".into(), "y".into()], ..FilesystemLevel::plain("any") }
}

/// Every command of every filesystem, as it would be run.
#[test]
fn the_argument_vectors_of_every_filesystem() {
    let devices = ["/dev/A".to_owned(), "/dev/B".to_owned()];
    let mut text = String::new();
    for filesystem in Catalogue::embedded().all() {
        let mut line = |what: &str, value: &str| {
            if !value.is_empty() {
                text += &format!("{:9} {what:5} {value}\n", filesystem.name);
            }
        };
        let one = &devices[..1];
        line("mkfs", &filesystem.mkfs_argv(one, &level()).join(" "));
        line("mount", &filesystem.mount_options(one, Bytes::mib(64), &level()));
        line("fsck", &filesystem.fsck_argv(one).unwrap_or_default().join(" "));
        if filesystem.many.is_some() {
            line("mkfs2", &filesystem.mkfs_argv(&devices, &level()).join(" "));
            let options = filesystem.mount_options(&devices, Bytes::mib(64), &level());
            line("from2", &format!("{} {options}", filesystem.mount_source(&devices)));
        }
        line("ver", &filesystem.version.join(" "));
        line("feat", &filesystem.features_argv(one).unwrap_or_default().join(" "));
        line("wait", &filesystem.background_threads(&["A".into()]).join(" "));
        line(
            "least",
            &if filesystem.min.0 > 0 { filesystem.min.to_string() } else { String::new() },
        );
        line("kern", &filesystem.kernel.describe());
    }
    expect_file!["argv.txt"].assert_eq(&text);
}

#[test]
fn a_label_of_the_plan_replaces_ours() {
    let catalogue = Catalogue::embedded();
    let argv = |name: &str, options: &[&str]| {
        let mkfs = options.iter().map(|option| (*option).to_owned()).collect();
        let level = FilesystemLevel { mkfs, ..FilesystemLevel::plain(name) };
        catalogue.get(name).unwrap().mkfs_argv(&["/dev/A".into()], &level).join(" ")
    };
    assert_eq!(argv("xfs", &["-L", "mine"]), "mkfs.xfs -q -f -K -L mine /dev/A");
    assert_eq!(argv("xfs", &[]), "mkfs.xfs -q -f -K -L fslab /dev/A");
    assert!(!argv("bcachefs", &["--fs_label=mine"]).contains("fslab"));
}

#[test]
fn every_entry_is_sound() {
    for filesystem in Catalogue::embedded().all() {
        assert_eq!(filesystem.check(), Ok(()), "{}", filesystem.name);
        assert!(filesystem.fsck.is_empty() == filesystem.fsck_clean.is_empty());
        let on_devices = filesystem.kind == Kind::Block;
        assert!(!on_devices || filesystem.magic != 0 && filesystem.min.0 > 0);
        assert!(!on_devices || !filesystem.label.is_empty() && !filesystem.package.is_empty());
        assert!(!filesystem.title.is_empty() && !filesystem.source.is_empty());
    }
}

#[test]
fn an_unknown_name_is_told_the_nearest() {
    let catalogue = Catalogue::embedded();
    let error = |name: &str| catalogue.get(name).unwrap_err().to_string();
    expect!["no filesystem is called `brtfs`; did you mean `btrfs`?"].assert_eq(&error("brtfs"));
    assert!(error("nothing-like").contains("there are: ext2, ext3,"));
}

fn merge(text: &str) -> Result<Catalogue, CatalogueError> {
    Catalogue::embedded().merged(text, Path::new("mine.toml"))
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&merge(text).unwrap_err().to_string());
}

#[test]
fn mistakes_are_told_with_line_and_cure() {
    const HEAD: &str =
        "[[filesystem]]\nname = \"new\"\ntitle = \"\"\nsource = \"\"\nfstype = \"new\"\n";
    check(
        &format!("{HEAD}mkfz = []\n"),
        expect![
            "mine.toml:6: unknown field `mkfz`, expected one of `name`, `title`, `kind`, `fstype`, `magic`, `min`, `mkfs`, `label`, `mount`, `fsck`, `fsck_clean`, `version`, `background`, `threads`, `features`, `many`, `package`, `tools`, `kernel`, `source`; did you mean `mkfs`?"
        ],
    );
    check(
        &format!("{HEAD}kind = \"blokc\"\n"),
        expect![
            "mine.toml:6: unknown variant `blokc`, expected one of `block`, `memory`, `directory`; did you mean `block`?"
        ],
    );
    check(
        &format!("{HEAD}min = \"4KB\"\n"),
        expect![
            "mine.toml:6: `4KB` is ambiguous: 4KB may mean 4000 or 4096 bytes; write `4KiB` for 4096 bytes, or `4000B` for 4000; see filesystems.toml for the form of an entry"
        ],
    );
    check(
        &format!("{HEAD}mkfs = \"mkfs.new\"\n"),
        expect![[
            r#"mine.toml:6: invalid type: string "mkfs.new", expected a sequence; see filesystems.toml for the form of an entry"#
        ]],
    );
    check(
        &format!("{HEAD}mkfs = [\"mkfs.new\", \"{{devcie}}\"]\n"),
        expect!["mine.toml:1: `{devcie}` stands for nothing; did you mean `{device}`?"],
    );
    check(
        &format!("{HEAD}mkfs = [\"mkfs.new\"]\n"),
        expect![[
            r#"mine.toml:1: mkfs of `new` does not name its device; put "{device}" where the device goes"#
        ]],
    );
    check(
        HEAD,
        expect![[
            r#"mine.toml:1: `new` lacks `mkfs` or `fstype`; write both, or kind = "memory" or "directory""#
        ]],
    );
    check(
        &HEAD.replace("new\"\nt", "New FS\"\nt"),
        expect![
            "mine.toml:1: `New FS` is not a name for a filesystem; use lower-case letters, digits and dashes"
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
            "mine.toml:1: unclosed array table, expected `]`; see filesystems.toml for the form of an entry"
        ],
    );
    let whole = format!("{HEAD}mkfs = [\"mkfs.new\", \"{{device}}\"]\n");
    check(
        &format!("{whole}{whole}"),
        expect!["mine.toml:7: `new` is there twice; give one of them another name"],
    );
}

#[test]
fn a_file_of_the_user_adds_and_replaces() {
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
    let catalogue = merge(text).unwrap();
    let before = Catalogue::embedded().all().len();
    assert_eq!(catalogue.all().len(), before + 1);
    let ext4 = catalogue.get("ext4").unwrap();
    assert_eq!(ext4.mkfs_argv(&["/dev/A".into()], &level()), ["/opt/mkfs", "/dev/A", "-X", "y"]);
    assert_eq!(catalogue.all().last().map(|last| last.name.as_str()), Some("new"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, text).unwrap();
    assert_eq!(Catalogue::with_file(&path).unwrap().all(), catalogue.all());
    let missing = Catalogue::with_file(&folder.path().join("none")).unwrap_err();
    assert!(matches!(missing, CatalogueError::Read { .. }), "{missing}");
}

#[test]
fn features_are_told_without_what_differs_each_time() {
    let catalogue = Catalogue::embedded();
    let told = |name: &str, text: &str| {
        catalogue.get(name).unwrap().features_in(text, &["/dev/loop0".into()])
    };
    let ext4 =
        "Filesystem UUID:   1-2\nFilesystem features:   has_journal  extent\nBlock size:  4096\n";
    assert_eq!(told("ext4", ext4), "Filesystem features: has_journal extent; Block size: 4096");
    let btrfs = "fsid\t1-2\nflags\t0x1\n\t\t( WRITTEN )\nincompat_flags\t0x341\n\t\t( MIXED_BACKREF |\n\t\t  EXTENDED_IREF |\n\t\t  NO_HOLES )\n";
    let words = "incompat_flags 0x341; ( MIXED_BACKREF |; EXTENDED_IREF |; NO_HOLES )";
    assert_eq!(told("btrfs", btrfs), words);
    let xfs = "meta-data=/dev/loop0 isize=512\n         =    sectsz=512\n";
    assert_eq!(told("xfs", xfs), "meta-data={device} isize=512; = sectsz=512");
    assert_eq!(catalogue.get("vfat").unwrap().features_argv(&["/dev/A".into()]), None);
}

#[test]
fn threads_that_carry_a_device_in_their_name_are_those_of_each_device() {
    let catalogue = Catalogue::embedded();
    let threads = |name: &str, devices: &[&str]| {
        let devices: Vec<_> = devices.iter().map(|device| (*device).to_owned()).collect();
        catalogue.get(name).unwrap().background_threads(&devices)
    };
    assert_eq!(threads("ext4", &["a", "b"]), ["ext4lazyinit"]);
    assert_eq!(threads("xfs", &["a", "b"])[..2], ["xfsaild/a", "xfsaild/b"]);
    assert_eq!(threads("tmpfs", &[]), [""; 0]);
}
