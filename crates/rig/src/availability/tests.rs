use expect_test::{Expect, expect};

use super::*;
use crate::host::{FakeHost, Output};

fn output(stdout: &str, stderr: &str, status: i32) -> [Output; 1] {
    let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
    [Output { status: Some(status), stdout, stderr, ..Output::default() }]
}

fn machine(temp: &tempfile::TempDir) -> FakeHost {
    FakeHost::new(temp.path())
        .file("/proc/filesystems", "nodev\ttmpfs\n\text4\n\tbtrfs\n")
        .file("/proc/sys/kernel/osrelease", "6.18.4-test\n")
        .file("/etc/os-release", "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n")
        .program("mkfs.ext4", output("", "\nmke2fs 1.47.0 (5-Feb-2023)\n\tUsing\n", 0))
        .program("e2fsck", [])
}

fn check(host: &FakeHost, name: &str, expected: Expect) {
    let catalog = Catalog::embedded();
    let text = match catalog.availability(catalog.get(name).unwrap(), host) {
        Availability::Usable { version } => format!("usable: {version:?}"),
        Availability::Missing { reason, hint, .. } => format!("{reason}\n{hint}"),
    };
    expected.assert_eq(&text);
}

#[test]
fn missing_parts_are_reported_with_a_hint() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(&temp);
    check(&host, "ext4", expect![[r#"usable: Some("mke2fs 1.47.0 (5-Feb-2023)")"#]]);
    check(&host, "tmpfs", expect!["usable: None"]);
    check(&host, "directory", expect!["usable: None"]);
    check(&host, "none", expect!["usable: None"]);
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
            the running kernel 6.18.4-test does not support reiserfs; mkreiserfs and reiserfsck not found
            use a kernel that supports it (in mainline since 2.4.1, removed in 6.13), or a guest with one (--guest auto); apt-get install reiserfsprogs"#]],
    );
    check(
        &host,
        "reiser4",
        expect![[r#"
            the running kernel 6.18.4-test does not support reiser4; mkfs.reiser4 and fsck.reiser4 not found
            use a kernel that supports it (never in mainline: a patch outside the mainline kernel); apt-get install reiser4progs"#]],
    );
    assert_eq!(host.done(), ["mkfs.ext4 -V"]);
}

#[test]
fn unprivileged_users_can_use_directories_only() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(&temp).unprivileged();
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
fn unknown_distributions_get_all_package_names() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(&temp)
        .file("/etc/os-release", "ID=alpine\n")
        .file("/proc/filesystems", "\treiserfs\n\tbtrfs\n");
    check(
        &host,
        "reiserfs",
        expect![[r#"
            mkreiserfs and reiserfsck not found
            install its tools (package name on other distributions: reiserfsprogs or reiserfs)"#]],
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
fn a_loadable_module_counts_and_is_not_loaded() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(&temp)
        .program("mkfs.xfs", output("mkfs.xfs version 6.1.0\n", "", 0))
        .program("xfs_repair", [])
        .file("/lib/modules/6.18.4-test/modules.dep", "kernel/fs/xfs/xfs.ko.xz: kernel/lib/c.ko\n");
    check(&host, "xfs", expect![[r#"usable: Some("mkfs.xfs version 6.1.0")"#]]);
    host.done();
    let refused = host.program("modprobe", output("", "", 1));
    check(
        &refused,
        "xfs",
        expect![[r#"
            the running kernel 6.18.4-test does not support xfs
            use a kernel that supports it (in mainline since 2.4.25), or a guest with one (--guest auto)"#]],
    );
    let found = refused.program("modprobe", output("", "", 0));
    check(&found, "xfs", expect![[r#"usable: Some("mkfs.xfs version 6.1.0")"#]]);
    let done = found.done();
    assert!(done.contains(&"modprobe -n -q fs-xfs".to_owned()), "{done:?}");
    assert!(done.iter().all(|what| !what.starts_with("modprobe fs") && !what.starts_with("mount")));
}

#[test]
fn a_level_requires_its_setup_programs_and_its_converted_type() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(&temp).program("tune2fs", []);
    let catalog = Catalog::embedded();
    let step = |program: &str| SetupStep::Unmounted { argv: vec![program.into()] };
    let reported = |level: &FilesystemLevel| match catalog.level(level, &host).unwrap() {
        Availability::Usable { .. } => "usable".into(),
        Availability::Missing { reason, hint, .. } => format!("{reason}\n{hint}"),
    };
    let tuned = FilesystemLevel { setup: vec![step("tune2fs")], ..FilesystemLevel::plain("ext4") };
    assert_eq!(reported(&tuned), "usable");
    let converted = FilesystemLevel {
        setup: vec![step("btrfs-convert"), step("no-such-tool"), step("btrfs-convert")],
        converted_to: Some("btrfs".into()),
        ..FilesystemLevel::plain("ext4")
    };
    expect![[r#"
        mkfs.btrfs and btrfs not found; btrfs-convert and no-such-tool not found
        apt-get install btrfs-progs; install no-such-tool, or remove it from `setup`"#]]
    .assert_eq(&reported(&converted));
    let unknown = FilesystemLevel { converted_to: Some("btfrs".into()), ..converted };
    assert!(catalog.level(&unknown, &host).is_err());
}
