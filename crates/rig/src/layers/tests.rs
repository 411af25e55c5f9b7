use expect_test::{Expect, expect};
use model::{BlockRange, Bytes, Nanos};
use proptest::prelude::*;

use super::*;
use crate::{
    Availability, Catalog,
    host::{FakeHost, Output},
};

fn md(level: &str) -> Layer {
    Layer::Md { level: level.into(), chunk: Some(Bytes::kib(64)) }
}

fn crypt() -> Layer {
    Layer::Crypt { cipher: "aes-xts-plain64".into(), key_size: 512 }
}

fn thin() -> Layer {
    Layer::Thin { block: Bytes::kib(64) }
}

fn cache() -> Layer {
    Layer::Cache { mode: "writeback".into(), block: Bytes::kib(256) }
}

fn delay() -> Layer {
    Layer::Delay { read: Nanos(20_000_000), write: Nanos(0) }
}

fn flakey() -> Layer {
    let (up, down) = (Nanos(0), Nanos(1_000_000_000));
    Layer::Flakey { fault: "error".into(), up, down }
}

fn dust() -> Layer {
    let bad = vec![BlockRange { first: 7, last: 7 }, BlockRange { first: 16, last: 63 }];
    Layer::Dust { bad, block: Bytes::mib(1) }
}

fn level(name: &str, devices: Option<u32>, layers: &[Layer]) -> FilesystemLevel {
    FilesystemLevel { devices, layers: layers.to_vec(), ..FilesystemLevel::plain(name) }
}

fn check(level: &FilesystemLevel, have: usize, expected: Expect) {
    let catalog = Catalog::embedded();
    let filesystem = catalog.get(&level.fs_type).unwrap();
    let text = match device_requirement(level, filesystem, None, have) {
        Ok(DeviceRequirement { devices, tops }) => format!("on {tops} of {devices}"),
        Err(unfit) => unfit.to_string(),
    };
    expected.assert_eq(&text);
}

#[test]
fn a_level_uses_the_first_devices_or_all() {
    check(&level("btrfs", None, &[]), 3, expect!["on 3 of 3"]);
    check(&level("btrfs", Some(2), &[]), 3, expect!["on 2 of 2"]);
    check(&level("ext4", Some(1), &[]), 3, expect!["on 1 of 1"]);
    check(&level("ext4", None, &[]), 1, expect!["on 1 of 1"]);
    check(&level("tmpfs", None, &[]), 3, expect!["on 0 of 3"]);
    check(
        &level("ext4", None, &[]),
        2,
        expect![
            "`ext4` supports one device only, but there are 2; set `device_count = 1`, or add `layers` that combine the devices"
        ],
    );
    check(
        &level("btrfs", Some(4), &[]),
        3,
        expect![
            "`btrfs` requires 4 devices, but the storage has 3; add devices (`image_count`), or lower `device_count`"
        ],
    );
}

#[test]
fn layers_combine_devices_or_report_their_requirement() {
    check(&level("ext4", None, &[md("raid0")]), 4, expect!["on 1 of 4"]);
    check(&level("ext4", None, &[crypt(), md("raid1")]), 2, expect!["on 1 of 2"]);
    check(&level("btrfs", None, &[crypt()]), 2, expect!["on 2 of 2"]);
    check(&level("xfs", None, &[md("raid5"), thin()]), 3, expect!["on 1 of 3"]);
    check(&level("xfs", None, &[cache()]), 2, expect!["on 1 of 2"]);
    check(&level("xfs", Some(1), &[thin()]), 2, expect!["on 1 of 1"]);
    check(&level("btrfs", None, &[delay(), flakey(), dust()]), 2, expect!["on 2 of 2"]);
    check(&level("xfs", None, &[delay(), Layer::LogWrites]), 2, expect!["on 1 of 2"]);
    check(
        &level("xfs", None, &[Layer::LogWrites]),
        1,
        expect![
            "log-writes of `xfs` requires two devices, found 1; add devices, or remove the layer"
        ],
    );
    check(
        &level("xfs", None, &[cache()]),
        1,
        expect![
            "cache writeback 256KiB of `xfs` requires two devices, found 1; add devices, or remove the layer"
        ],
    );
    check(
        &level("xfs", None, &[md("raid6")]),
        3,
        expect![
            "md raid6 chunk 64KiB of `xfs` requires at least four devices, found 3; add devices, or remove the layer"
        ],
    );
    check(
        &level("ext4", None, &[crypt()]),
        2,
        expect![
            "`ext4` supports one device only, but there are 2; set `device_count = 1`, or add `layers` that combine the devices"
        ],
    );
    check(
        &level("ext4", None, &[thin()]),
        3,
        expect![
            "thin 64KiB of `ext4` requires one or two devices, found 3; combine them with an md layer below, or lower `device_count`"
        ],
    );
    check(
        &level("tmpfs", None, &[crypt()]),
        1,
        expect!["`tmpfs` has no device, so it cannot have layers; remove `layers`"],
    );
}

#[test]
fn a_converted_filesystem_has_one_device() {
    let catalog = Catalog::embedded();
    let btrfs = catalog.get("btrfs").unwrap();
    let two = level("btrfs", None, &[]);
    assert!(device_requirement(&two, btrfs, Some(btrfs), 2).is_err());
    assert!(device_requirement(&two, btrfs, Some(btrfs), 1).is_ok());
}

#[test]
fn layers_leave_capacity() {
    let sizes = [Bytes::mib(100), Bytes::mib(80), Bytes::mib(90), Bytes::mib(80)];
    let left = |layers: &[Layer], devices: usize| capacity(layers, &sizes[..devices]);
    assert_eq!(left(&[], 2), [Bytes::mib(100), Bytes::mib(80)]);
    assert_eq!(left(&[md("raid0")], 2), [Bytes::mib(180)]);
    assert_eq!(left(&[md("raid1")], 2), [Bytes::mib(80)]);
    assert_eq!(left(&[md("raid5")], 3), [Bytes::mib(160)]);
    assert_eq!(left(&[md("raid6")], 4), [Bytes::mib(160)]);
    assert_eq!(left(&[md("raid10")], 3), [Bytes::mib(120)]);
    assert_eq!(left(&[crypt()], 2), [Bytes::mib(100), Bytes::mib(80)]);
    assert_eq!(left(&[thin()], 1), [Bytes::mib(98)]);
    assert_eq!(left(&[thin()], 2), [Bytes::mib(80)]);
    assert_eq!(left(&[cache()], 2), [Bytes::mib(80)]);
    assert_eq!(left(&[md("raid0"), thin()], 2), [Bytes::mib(178)]);
    assert_eq!(left(&[delay(), flakey(), dust()], 2), [Bytes::mib(100), Bytes::mib(80)]);
    assert_eq!(left(&[Layer::LogWrites], 2), [Bytes::mib(100)]);
}

#[test]
fn planned_layers_are_described() {
    let devices = ["/dev/sda", "/dev/sdb"].map(str::to_owned);
    let (lines, tops) = describe(&[md("raid1"), crypt(), thin()], &devices);
    let text = format!("{}\n{}", lines.join("\n"), tops.join(" "));
    expect![[r#"
        $ mdadm --create /dev/md/fslab-·-0 --run --level=raid1 --raid-devices=2 --metadata=1.2 --uuid=· --chunk=64 --assume-clean --bitmap=none /dev/sda /dev/sdb
        dmsetup: crypt aes-xts-plain64, with a new random 512-bit key per device, on /dev/md/fslab-·-0
        dmsetup: thin volume with 64KiB blocks on /dev/mapper/fslab-·-1-crypt-0, metadata at the start of /dev/mapper/fslab-·-1-crypt-0
        /dev/mapper/fslab-·-2-thin"#]]
    .assert_eq(&text);
    let (lines, tops) = describe(&[cache()], &devices);
    expect!["dmsetup: writeback cache with 256KiB blocks on /dev/sda for /dev/sdb"]
        .assert_eq(&lines.join("\n"));
    assert_eq!(tops, ["/dev/mapper/fslab-·-0-cache"]);
    let (lines, tops) = describe(&[delay(), flakey(), dust(), Layer::LogWrites], &devices);
    expect![[r#"
        dmsetup: delay read 20ms write 0s on /dev/sda /dev/sdb
        dmsetup: flakey error up 0s down 1s on /dev/mapper/fslab-·-0-delay-0 /dev/mapper/fslab-·-0-delay-1, active from the first measured phase
        dmsetup: dust 7,16-63 of 1MiB on /dev/mapper/fslab-·-1-flakey-0 /dev/mapper/fslab-·-1-flakey-1, active from the first measured phase
        dmsetup: writes to /dev/mapper/fslab-·-2-dust-0 are logged on /dev/mapper/fslab-·-2-dust-1
        /dev/mapper/fslab-·-3-log-writes"#]].assert_eq(&format!("{}\n{}", lines.join("\n"), tops.join(" ")));
}

fn check_missing(host: &FakeHost, layer: &Layer, expected: Expect) {
    let lines = missing(layer, host).into_iter().map(|(reason, hint)| format!("{reason}; {hint}"));
    expected.assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn missing_features_are_reported_with_a_hint() {
    let temp = tempfile::tempdir().unwrap();
    let bare = FakeHost::new(temp.path())
        .file("/proc/sys/kernel/osrelease", "6.18.4-test\n")
        .file("/proc/misc", "237 loop-control\n")
        .file("/etc/os-release", "ID=fedora\n");
    check_missing(
        &bare,
        &md("raid5"),
        expect![[r#"
            the running kernel 6.18.4-test does not support arrays (md); use a kernel with CONFIG_BLK_DEV_MD
            mdadm not found; dnf install mdadm"#]],
    );
    check_missing(
        &bare,
        &crypt(),
        expect![[r#"
            the running kernel 6.18.4-test does not support device mapper; use a kernel with CONFIG_BLK_DEV_DM
            dmsetup not found; dnf install device-mapper"#]],
    );
    let names = layer_support(&bare).into_iter().map(|(name, answer)| {
        assert!(matches!(answer, Availability::Missing { .. }), "{name}");
        name
    });
    assert_eq!(
        names.collect::<Vec<_>>().join(", "),
        "md raid0, md raid1, md raid5, md raid6, md raid10, crypt, thin, cache, delay, flakey, dust, \
         log-writes"
    );
}

#[test]
fn loaded_built_in_and_loadable_drivers_are_found() {
    let temp = tempfile::tempdir().unwrap();
    let targets = Output {
        status: Some(0),
        stdout: "thin-pool        v1.23.0\nlinear           v1.4.0\n".into(),
        ..Output::default()
    };
    let host = FakeHost::new(temp.path())
        .file("/proc/sys/kernel/osrelease", "6.18.4-test\n")
        .file("/proc/misc", "236 device-mapper\n")
        .file("/proc/mdstat", "Personalities : [raid0] [raid1]\nunused devices: <none>\n")
        .file("/sys/module/dm_crypt/.keep", "")
        .file("/lib/modules/6.18.4-test/modules.dep", "kernel/drivers/md/raid10.ko.zst:\n")
        .program("mdadm", [])
        .program("dmsetup", [targets]);
    for layer in [md("raid0"), md("raid10"), crypt(), thin()] {
        assert_eq!(missing(&layer, &host), [], "{layer:?}");
    }
    check_missing(
        &host,
        &cache(),
        expect![
            "the running kernel 6.18.4-test does not support device-mapper target cache; use a kernel with CONFIG_DM_CACHE"
        ],
    );
    check_missing(
        &host,
        &dust(),
        expect![
            "the running kernel 6.18.4-test does not support device-mapper target dust; use a kernel with CONFIG_DM_DUST"
        ],
    );
    check_missing(
        &host,
        &md("raid6"),
        expect![
            "the running kernel 6.18.4-test does not support md raid6; use a kernel with CONFIG_MD_RAID456"
        ],
    );
    // A level with missing layers is skipped. The reason lists each missing part once.
    let catalog = Catalog::embedded();
    let two = level("directory", None, &[md("raid6"), cache(), md("raid6")]);
    let Ok(Availability::Missing { reason, .. }) = catalog.level(&two, &host) else {
        panic!("raid6 and cache are missing");
    };
    assert_eq!(reason.matches("raid6").count(), 1, "{reason}");
    assert_eq!(reason.matches("target cache").count(), 1, "{reason}");
}

#[test]
fn versions_of_the_programs_are_reported() {
    let temp = tempfile::tempdir().unwrap();
    let says = |stdout: &str, stderr: &str| {
        let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
        [Output { status: Some(0), stdout, stderr, ..Output::default() }]
    };
    let host = FakeHost::new(temp.path())
        .program("mdadm", says("", "mdadm - v4.3 - 2024-02-15\n"))
        .program("dmsetup", says("Library version:   1.02.185 (2022-05-18)\n", ""));
    let facts = versions(&[md("raid0"), crypt(), thin()], &host);
    assert_eq!(facts.get("layers.mdadm.tools"), Some("mdadm - v4.3 - 2024-02-15"));
    assert_eq!(facts.get("layers.dmsetup.tools"), Some("Library version:   1.02.185 (2022-05-18)"));
    assert_eq!(host.done(), ["mdadm --version", "dmsetup --version"]);
    assert_eq!(versions(&[], &host), model::Environment::default());
}

proptest! {
    /// Metadata space has the documented size, and the following data is aligned to a MiB.
    #[test]
    fn metadata_has_space(sectors in 1u64 << 12..1 << 40, blocks in 1u64..512) {
        let block = Bytes(blocks << 16);
        let aside = table::pool_metadata(sectors, block) * 512;
        prop_assert_eq!(aside % (1 << 20), 0);
        prop_assert!(aside >= (48 * (sectors * 512 / block.0)).clamp(2 << 20, 16 << 30));
        let aside = table::cache_metadata(sectors) * 512;
        prop_assert_eq!(aside % (1 << 20), 0);
        prop_assert!(aside >= (sectors * 512 / 1000).clamp(8 << 20, 16 << 30));
        let whole = table::whole(sectors, block) * 512;
        prop_assert!(whole <= sectors * 512 && whole.is_multiple_of(block.0));
        prop_assert!(sectors * 512 - whole < block.0);
    }

    /// A table has one line, whole sectors, and the names of its devices; times are in the kernel's
    /// units, and a sound device is never down.
    #[test]
    fn fault_tables_match_the_kernel_documentation(
        sectors in 8u64..1 << 40, up in 0u64..100, down in 1u64..100, ms in 0u64..1000, log in 9u32..17,
    ) {
        let (seconds, dev) = (|n: u64| Nanos(n * 1_000_000_000), "/dev/sdb");
        let of = |fault: &str| table::flakey(dev, sectors, fault, seconds(up), seconds(down));
        let plain = format!("0 {sectors} flakey {dev} 0 {up} {down}");
        prop_assert_eq!(of("error"), plain.clone());
        prop_assert_eq!(of("drop_writes"), format!("{plain} 1 drop_writes"));
        prop_assert_eq!(table::sound(dev, sectors), format!("0 {sectors} flakey {dev} 0 1 0"));
        let (read, write) = (Nanos(ms * 1_000_000), Nanos(0));
        prop_assert_eq!(
            table::delay(dev, sectors, read, write),
            format!("0 {sectors} delay {dev} 0 {ms} {dev} 0 0")
        );
        let block = Bytes(1 << log);
        let table = table::dust(dev, sectors, block);
        prop_assert_eq!(table, format!("0 {sectors} dust {dev} 0 {}", block.0));
    }

    /// The description has one line per layer, and the number of devices matches the requirement.
    #[test]
    fn descriptions_agree_with_the_requirement(picked in prop::collection::vec(0usize..8, 0..4), have in 1usize..6) {
        let log = Layer::LogWrites;
        let kinds = [md("raid0"), crypt(), thin(), cache(), delay(), flakey(), dust(), log];
        let layers: Vec<Layer> = picked.into_iter().map(|kind| kinds[kind].clone()).collect();
        let level = level("btrfs", None, &layers);
        let catalog = Catalog::embedded();
        if let Ok(device_requirement) = device_requirement(&level, catalog.get("btrfs").unwrap(), None, have) {
            let devices: Vec<String> = (0..have).map(|n| format!("/dev/sd{n}")).collect();
            let (lines, tops) = describe(&layers, &devices);
            prop_assert_eq!((lines.len(), tops.len()), (layers.len(), device_requirement.tops));
        }
    }
}
