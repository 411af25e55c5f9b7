use expect_test::{Expect, expect};
use model::{BlockRange, Bytes, Nanos};
use proptest::prelude::*;

use super::*;
use crate::{
    Availability, Catalogue,
    host::{FakeHost, Output},
};

fn md(level: &str) -> Layer {
    Layer::Md { level: level.into(), chunk: Some(Bytes::kib(64)) }
}

fn crypt() -> Layer {
    Layer::Crypt { cipher: "aes-xts-plain64".into(), key_bits: 512 }
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
    let catalogue = Catalogue::embedded();
    let filesystem = catalogue.get(&level.base).unwrap();
    let text = match footing(level, filesystem, None, have) {
        Ok(Footing { devices, tops }) => format!("on {tops} of {devices}"),
        Err(unfit) => unfit.to_string(),
    };
    expected.assert_eq(&text);
}

#[test]
fn a_level_takes_the_first_devices_or_all() {
    check(&level("btrfs", None, &[]), 3, expect!["on 3 of 3"]);
    check(&level("btrfs", Some(2), &[]), 3, expect!["on 2 of 2"]);
    check(&level("ext4", Some(1), &[]), 3, expect!["on 1 of 1"]);
    check(&level("ext4", None, &[]), 1, expect!["on 1 of 1"]);
    check(&level("tmpfs", None, &[]), 3, expect!["on 0 of 3"]);
    check(
        &level("ext4", None, &[]),
        2,
        expect![[
            r#"`ext4` lies on one device and finds 2; add `devices = 1` to it, or `layers` that join them"#
        ]],
    );
    check(
        &level("btrfs", Some(4), &[]),
        3,
        expect![[
            r#"`btrfs` wants 4 devices and the storage has 3; name more devices (`images`), or want fewer (`devices`)"#
        ]],
    );
}

#[test]
fn layers_join_devices_or_say_what_they_need() {
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
        expect![[
            r#"log-writes of `xfs` needs two devices and finds 1; name more devices, or take the layer out"#
        ]],
    );
    check(
        &level("xfs", None, &[cache()]),
        1,
        expect![[
            r#"cache writeback 256KiB of `xfs` needs two devices and finds 1; name more devices, or take the layer out"#
        ]],
    );
    check(
        &level("xfs", None, &[md("raid6")]),
        3,
        expect![[
            r#"md raid6 chunk 64KiB of `xfs` needs four devices at least and finds 3; name more devices, or take the layer out"#
        ]],
    );
    check(
        &level("ext4", None, &[crypt()]),
        2,
        expect![[
            r#"`ext4` lies on one device and finds 2; add `devices = 1` to it, or `layers` that join them"#
        ]],
    );
    check(
        &level("ext4", None, &[thin()]),
        3,
        expect![[
            r#"thin 64KiB of `ext4` needs one device or two and finds 3; join them by a layer of md below it, or want fewer (`devices`)"#
        ]],
    );
    check(
        &level("tmpfs", None, &[crypt()]),
        1,
        expect![[r#"`tmpfs` lies on no device, so nothing can stand below it; take `layers` out"#]],
    );
}

#[test]
fn what_becomes_another_filesystem_lies_on_one_device() {
    let catalogue = Catalogue::embedded();
    let btrfs = catalogue.get("btrfs").unwrap();
    let two = level("btrfs", None, &[]);
    assert!(footing(&two, btrfs, Some(btrfs), 2).is_err());
    assert!(footing(&two, btrfs, Some(btrfs), 1).is_ok());
}

#[test]
fn layers_leave_room() {
    let sizes = [Bytes::mib(100), Bytes::mib(80), Bytes::mib(90), Bytes::mib(80)];
    let left = |layers: &[Layer], devices: usize| room(layers, &sizes[..devices]);
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
fn what_is_built_is_told_in_words() {
    let devices = ["/dev/sda", "/dev/sdb"].map(str::to_owned);
    let (lines, tops) = in_words(&[md("raid1"), crypt(), thin()], &devices);
    let text = format!("{}\n{}", lines.join("\n"), tops.join(" "));
    expect![[r#"
        $ mdadm --create /dev/md/fslab-·-0 --run --level=raid1 --raid-devices=2 --metadata=1.2 --uuid=· --chunk=64 --assume-clean --bitmap=none /dev/sda /dev/sdb
        dmsetup: crypt aes-xts-plain64, a key of 512 bits drawn anew for each, on /dev/md/fslab-·-0
        dmsetup: a thin volume of blocks of 64KiB on /dev/mapper/fslab-·-1-crypt-0, its metadata at the start of /dev/mapper/fslab-·-1-crypt-0
        /dev/mapper/fslab-·-2-thin"#]]
    .assert_eq(&text);
    let (lines, tops) = in_words(&[cache()], &devices);
    expect![[r#"dmsetup: writeback cache of blocks of 256KiB on /dev/sda before /dev/sdb"#]]
        .assert_eq(&lines.join("\n"));
    assert_eq!(tops, ["/dev/mapper/fslab-·-0-cache"]);
    let (lines, tops) = in_words(&[delay(), flakey(), dust(), Layer::LogWrites], &devices);
    expect![[r#"
        dmsetup: delay read 20ms write 0s on /dev/sda /dev/sdb
        dmsetup: flakey error up 0s down 1s on /dev/mapper/fslab-·-0-delay-0 /dev/mapper/fslab-·-0-delay-1, from the first measured phase on
        dmsetup: dust 7,16-63 of 1MiB on /dev/mapper/fslab-·-1-flakey-0 /dev/mapper/fslab-·-1-flakey-1, from the first measured phase on
        dmsetup: all that is written to /dev/mapper/fslab-·-2-dust-0 is logged on /dev/mapper/fslab-·-2-dust-1
        /dev/mapper/fslab-·-3-log-writes"#]].assert_eq(&format!("{}\n{}", lines.join("\n"), tops.join(" ")));
}

fn told(host: &FakeHost, layer: &Layer, expected: Expect) {
    let lines = lacks(layer, host).into_iter().map(|(reason, cure)| format!("{reason}; {cure}"));
    expected.assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn what_kernel_and_tools_lack_is_told_with_a_cure() {
    let folder = tempfile::tempdir().unwrap();
    let bare = FakeHost::new(folder.path())
        .file("/proc/sys/kernel/osrelease", "6.18.4-test\n")
        .file("/proc/misc", "237 loop-control\n")
        .file("/etc/os-release", "ID=fedora\n");
    told(
        &bare,
        &md("raid5"),
        expect![[r#"
            the running kernel 6.18.4-test has no arrays (md); it needs a kernel with CONFIG_BLK_DEV_MD
            mdadm not found; dnf install mdadm"#]],
    );
    told(
        &bare,
        &crypt(),
        expect![[r#"
            the running kernel 6.18.4-test has no device mapper; it needs a kernel with CONFIG_BLK_DEV_DM
            dmsetup not found; dnf install device-mapper"#]],
    );
    let names = abilities(&bare).into_iter().map(|(name, answer)| {
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
fn drivers_are_found_loaded_built_in_or_loadable() {
    let folder = tempfile::tempdir().unwrap();
    let targets = Output {
        status: Some(0),
        stdout: "thin-pool        v1.23.0\nlinear           v1.4.0\n".into(),
        ..Output::default()
    };
    let host = FakeHost::new(folder.path())
        .file("/proc/sys/kernel/osrelease", "6.18.4-test\n")
        .file("/proc/misc", "236 device-mapper\n")
        .file("/proc/mdstat", "Personalities : [raid0] [raid1]\nunused devices: <none>\n")
        .file("/sys/module/dm_crypt/.keep", "")
        .file("/lib/modules/6.18.4-test/modules.dep", "kernel/drivers/md/raid10.ko.zst:\n")
        .program("mdadm", [])
        .program("dmsetup", [targets]);
    for layer in [md("raid0"), md("raid10"), crypt(), thin()] {
        assert_eq!(lacks(&layer, &host), [], "{layer:?}");
    }
    told(
        &host,
        &cache(),
        expect![[
            r#"the running kernel 6.18.4-test has no target cache of the device mapper; it needs a kernel with CONFIG_DM_CACHE"#
        ]],
    );
    told(
        &host,
        &dust(),
        expect![[
            r#"the running kernel 6.18.4-test has no target dust of the device mapper; it needs a kernel with CONFIG_DM_DUST"#
        ]],
    );
    told(
        &host,
        &md("raid6"),
        expect![[
            r#"the running kernel 6.18.4-test has no md raid6; it needs a kernel with CONFIG_MD_RAID456"#
        ]],
    );
    // A level that needs it is left out with the reason, each part once.
    let catalogue = Catalogue::embedded();
    let two = level("directory", None, &[md("raid6"), cache(), md("raid6")]);
    let Ok(Availability::Missing { reason, .. }) = catalogue.level(&two, &host) else {
        panic!("raid6 and cache are missing");
    };
    assert_eq!(reason.matches("raid6").count(), 1, "{reason}");
    assert_eq!(reason.matches("target cache").count(), 1, "{reason}");
}

#[test]
fn versions_are_those_of_the_programs_that_build() {
    let folder = tempfile::tempdir().unwrap();
    let says = |stdout: &str, stderr: &str| {
        let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
        [Output { status: Some(0), stdout, stderr, ..Output::default() }]
    };
    let host = FakeHost::new(folder.path())
        .program("mdadm", says("", "mdadm - v4.3 - 2024-02-15\n"))
        .program("dmsetup", says("Library version:   1.02.185 (2022-05-18)\n", ""));
    let facts = versions(&[md("raid0"), crypt(), thin()], &host);
    assert_eq!(facts.get("layers.mdadm.tools"), Some("mdadm - v4.3 - 2024-02-15"));
    assert_eq!(facts.get("layers.dmsetup.tools"), Some("Library version:   1.02.185 (2022-05-18)"));
    assert_eq!(host.done(), ["mdadm --version", "dmsetup --version"]);
    assert_eq!(versions(&[], &host), model::Environment::default());
}

proptest! {
    /// What is set aside holds what the documents ask for, and what follows is aligned to a MiB.
    #[test]
    fn metadata_has_room(sectors in 1u64 << 12..1 << 40, blocks in 1u64..512) {
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

    /// A table is of one line, of whole sectors, and names what it lies on; times are in the units
    /// of the kernel, and a sound device is never down.
    #[test]
    fn tables_of_what_fails_are_as_the_kernel_documents_them(
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

    /// Whatever fits is told in as many lines as there are layers, and leaves as many devices as
    /// was said.
    #[test]
    fn words_agree_with_the_footing(picked in prop::collection::vec(0usize..8, 0..4), have in 1usize..6) {
        let log = Layer::LogWrites;
        let kinds = [md("raid0"), crypt(), thin(), cache(), delay(), flakey(), dust(), log];
        let layers: Vec<Layer> = picked.into_iter().map(|kind| kinds[kind].clone()).collect();
        let level = level("btrfs", None, &layers);
        let catalogue = Catalogue::embedded();
        if let Ok(footing) = footing(&level, catalogue.get("btrfs").unwrap(), None, have) {
            let devices: Vec<String> = (0..have).map(|n| format!("/dev/sd{n}")).collect();
            let (lines, tops) = in_words(&layers, &devices);
            prop_assert_eq!((lines.len(), tops.len()), (layers.len(), footing.tops));
        }
    }
}
