use expect_test::{Expect, expect};

use super::*;
use crate::host::{FakeHost, Output};

fn says(stdout: &str, stderr: &str, status: i32) -> [Output; 1] {
    let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
    [Output { status: Some(status), stdout, stderr, ..Output::default() }]
}

fn machine(folder: &tempfile::TempDir) -> FakeHost {
    FakeHost::new(folder.path())
        .file("/proc/filesystems", "nodev\ttmpfs\n\text4\n\tbtrfs\n")
        .file("/proc/sys/kernel/osrelease", "6.18.4-test\n")
        .file("/etc/os-release", "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n")
        .program("mkfs.ext4", says("", "\nmke2fs 1.47.0 (5-Feb-2023)\n\tUsing\n", 0))
        .program("e2fsck", [])
}

fn check(host: &FakeHost, name: &str, expected: Expect) {
    let catalogue = Catalogue::embedded();
    let text = match catalogue.availability(catalogue.get(name).unwrap(), host) {
        Availability::Usable { version } => format!("usable: {version:?}"),
        Availability::Missing { reason, cure } => format!("{reason}\n{cure}"),
    };
    expected.assert_eq(&text);
}

#[test]
fn what_is_missing_is_told_with_a_cure() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(&folder);
    check(&host, "ext4", expect![[r#"usable: Some("mke2fs 1.47.0 (5-Feb-2023)")"#]]);
    check(&host, "tmpfs", expect!["usable: None"]);
    check(&host, "directory", expect!["usable: None"]);
    check(
        &host,
        "btrfs",
        expect![[r#"
        mkfs.btrfs and btrfs not found
        apt-get install btrfs-progs"#]],
    );
    check(
        &host,
        "reiserfs",
        expect![[r#"
        the running kernel 6.18.4-test has no reiserfs; mkreiserfs and reiserfsck not found
        it needs a kernel that has it (in mainline since 2.4.1, removed in 6.13); apt-get install reiserfsprogs"#]],
    );
    check(
        &host,
        "reiser4",
        expect![[r#"
        the running kernel 6.18.4-test has no reiser4; mkfs.reiser4 and fsck.reiser4 not found
        it needs a kernel that has it (never in mainline: a patch outside the mainline kernel); apt-get install reiser4progs"#]],
    );
    assert_eq!(host.done(), ["mkfs.ext4 -V"]);
}

#[test]
fn an_ordinary_user_is_told_so_but_for_directories() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(&folder).unprivileged();
    check(
        &host,
        "ext4",
        expect![[r#"
        not root
        run as root"#]],
    );
    check(&host, "directory", expect!["usable: None"]);
}

#[test]
fn a_distribution_without_the_package_hears_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(&folder)
        .file("/etc/os-release", "ID=alpine\n")
        .file("/proc/filesystems", "\treiserfs\n\tbtrfs\n");
    check(
        &host,
        "reiserfs",
        expect![[r#"
        mkreiserfs and reiserfsck not found
        install its tools (elsewhere the package is reiserfsprogs or reiserfs)"#]],
    );
    check(
        &host,
        "btrfs",
        expect![[r#"
        mkfs.btrfs and btrfs not found
        apk add btrfs-progs"#]],
    );
    let host = host.file("/etc/os-release", "ID=\"opensuse-leap\"\n");
    check(
        &host,
        "btrfs",
        expect![[r#"
        mkfs.btrfs and btrfs not found
        zypper install btrfsprogs"#]],
    );
}

#[test]
fn a_module_counts_and_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(&folder)
        .program("mkfs.xfs", says("mkfs.xfs version 6.1.0\n", "", 0))
        .program("xfs_repair", [])
        .file("/lib/modules/6.18.4-test/modules.dep", "kernel/fs/xfs/xfs.ko.xz: kernel/lib/c.ko\n");
    check(&host, "xfs", expect![[r#"usable: Some("mkfs.xfs version 6.1.0")"#]]);
    host.done();
    let refused = host.program("modprobe", says("", "", 1));
    check(
        &refused,
        "xfs",
        expect![[r#"
        the running kernel 6.18.4-test has no xfs
        it needs a kernel that has it (in mainline since 2.4.25)"#]],
    );
    let found = refused.program("modprobe", says("", "", 0));
    check(&found, "xfs", expect![[r#"usable: Some("mkfs.xfs version 6.1.0")"#]]);
    let done = found.done();
    assert!(done.contains(&"modprobe -n -q fs-xfs".to_owned()), "{done:?}");
    assert!(done.iter().all(|what| !what.starts_with("modprobe fs") && !what.starts_with("mount")));
}

#[test]
fn a_level_needs_the_programs_of_its_setup_and_what_it_becomes() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(&folder).program("tune2fs", []);
    let catalogue = Catalogue::embedded();
    let step = |program: &str| SetupStep::Unmounted { argv: vec![program.into()] };
    let told = |level: &FilesystemLevel| match catalogue.level(level, &host).unwrap() {
        Availability::Usable { .. } => "usable".into(),
        Availability::Missing { reason, cure } => format!("{reason}\n{cure}"),
    };
    let tuned = FilesystemLevel { setup: vec![step("tune2fs")], ..FilesystemLevel::plain("ext4") };
    assert_eq!(told(&tuned), "usable");
    let converted = FilesystemLevel {
        setup: vec![step("btrfs-convert"), step("no-such-tool"), step("btrfs-convert")],
        becomes: Some("btrfs".into()),
        ..FilesystemLevel::plain("ext4")
    };
    expect![[r#"
        mkfs.btrfs and btrfs not found; btrfs-convert and no-such-tool not found
        apt-get install btrfs-progs; install no-such-tool, or take it out of `setup`"#]]
    .assert_eq(&told(&converted));
    let unknown = FilesystemLevel { becomes: Some("btfrs".into()), ..converted };
    assert!(catalogue.level(&unknown, &host).is_err());
}
