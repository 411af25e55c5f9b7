//! Tests of the axis `device`.

use super::*;
use crate::{
    Isolation, StorageKind,
    setting::{SystemSetting, SystemSettings},
};

/// A device and an image as levels.
const DEVICES: &str = "device = [\n    { name = \"hdd\", device = \"/dev/sdb\" },\n    \
                       { name = \"ssd\", image_size = \"1GiB\", image_directory = \"/mnt/ssd\" },\n]\n";

fn text(axes: &str) -> String {
    format!("[axes]\nfilesystem = [\"ext4\"]\nworkload = [{{ suite = \"toy\" }}]\n{axes}")
}

fn plan(text: &str) -> Plan {
    Plan::parse(text, *VOCABULARY).unwrap()
}

fn labels(plan: &Plan) -> Vec<String> {
    let cells = plan.cells(Scale::ONE, &small).unwrap();
    cells.into_iter().map(|cell| format!("{}: {}", cell.cell.filesystem.name, cell.label)).collect()
}

#[test]
fn devices_are_levels_of_an_axis() {
    let text = text(DEVICES).replace("[\"ext4\"]", "[\"ext4\", \"xfs\"]");
    let plan = plan(&format!("{text}read_ahead = [\"0B\", \"128KiB\"]\n"));
    assert_eq!(
        labels(&plan),
        [
            "ext4: toy device=hdd read_ahead=0B",
            "ext4: toy device=hdd read_ahead=128KiB",
            "ext4: toy device=ssd read_ahead=0B",
            "ext4: toy device=ssd read_ahead=128KiB",
            "xfs: toy device=hdd read_ahead=0B",
            "xfs: toy device=hdd read_ahead=128KiB",
            "xfs: toy device=ssd read_ahead=0B",
            "xfs: toy device=ssd read_ahead=128KiB",
        ]
    );
    assert_eq!(
        plan.storage.to_string(),
        "device hdd: /dev/sdb; device ssd: image file of 1GiB (preallocated) on a loop device"
    );
}

#[test]
fn cells_name_their_level() {
    let plan = plan(&text(DEVICES));
    let cells = plan.cells(Scale::ONE, &small).unwrap();
    let kinds: Vec<_> =
        cells.iter().map(|cell| plan.storage.kind.of(&cell.cell.settings)).collect();
    assert!(matches!(&kinds[0], StorageKind::Devices { paths } if paths == &["/dev/sdb"]));
    assert!(matches!(kinds[1], StorageKind::Image { size: Bytes(0x4000_0000), .. }));
    assert_ne!(cells[0].cell.id(), cells[1].cell.id());
    let paths = text(DEVICES).replace("/dev/sdb", "/dev/sdc");
    let moved = self::plan(&paths).cells(Scale::ONE, &small).unwrap();
    assert_eq!(cells[0].cell.id(), moved[0].cell.id(), "the path is not part of a cell");
    let single = StorageKind::Devices { paths: Vec::new() };
    assert_eq!(single.of(&SystemSettings::new()), single);
    assert!(single.is_devices() && !plan.storage.kind.is_devices());
}

#[test]
fn storage_has_no_device_besides_the_axis() {
    let with = |storage: &str| format!("{}[storage]\n{storage}\n", text(DEVICES));
    let limit = plan(&with("memory_limit = \"1GiB\"")).storage.memory_limit;
    assert_eq!(limit, Some(Bytes(1 << 30)));
    check(
        &with("image_size = \"1GiB\""),
        expect![[r#"
            9:14 ["1GiB"] the plan has both `axes.device` and `storage.image_size`
              move `image_size` to the entries of `axes.device`, or remove one of them
        "#]],
    );
}

#[test]
fn errors_in_devices_have_a_position_and_a_hint() {
    let of = |devices: &str| text(&format!("device = [{devices}]\n"));
    check(
        &of("\"/dev/sdb\""),
        expect![[r#"
            4:11 ["/dev/sdb"] expected a table with a name and a device, found string
              write { name = "hdd", device = "/dev/…" }
        "#]],
    );
    check(
        &of("{ device = \"/dev/sdb\" }"),
        expect![[r#"
            4:11 [{ device = "/dev/sdb" }] this device has no `name`
              add name = "hdd"
        "#]],
    );
    check(
        &of("{ name = \"a,b\", device = \"/dev/sdb\" }"),
        expect![[r#"
            4:20 ["a,b"] `a,b` is not the name of a device
              use letters, digits, `-`, and `_`
        "#]],
    );
    check(
        &of("{ name = \"hdd\" }"),
        expect![[r#"
            4:11 [{ name = "hdd" }] this entry of `axes.device` has no device or image
              set one of device = "/dev/…", devices = ["/dev/…"], image_size = "4GiB"
        "#]],
    );
    check(
        &of("{ name = \"hdd\", directory = \"/mnt\" }"),
        expect![[r#"
            4:27 [directory] `device` has no key `directory`
              `directory` belongs to `[storage]`
        "#]],
    );
    check(
        &of("{ name = \"a\", device = \"/dev/sdb\" }, { name = \"a\", device = \"/dev/sdc\" }"),
        expect![[r#"
            4:48 [{ name = "a", device = "/dev/sdc" }] duplicate device name `a`
              give each device its own name
        "#]],
    );
    check(
        &of("{ name = \"a\", device = \"/dev/sdb\" }, { name = \"b\", device = \"/dev/sdb\" }"),
        expect![[r#"
            4:48 [{ name = "b", device = "/dev/sdb" }] devices `a` and `b` both use /dev/sdb
              list each device once
        "#]],
    );
    check(
        &of(""),
        expect![[r#"
        4:10 [[]] the list is empty
    "#]],
    );
}

#[test]
fn a_workload_selects_devices() {
    let own = |names: &str| {
        text(DEVICES)
            .replace("{ suite = \"toy\" }", &format!("{{ suite = \"toy\", device = {names} }}"))
    };
    assert_eq!(labels(&plan(&own("[\"ssd\"]"))), ["ext4: toy"]);
    let error = Plan::parse(&own("[\"tape\"]"), *VOCABULARY).unwrap_err();
    assert_eq!(error.message, "`axes.device` has no device `tape`");
    assert_eq!(error.hint.as_deref(), Some("use hdd, ssd"));
}

#[test]
fn isolation_by_reattach_requires_images_of_all_levels() {
    let reattach =
        |text: &str| Plan::parse(&format!("isolation = \"reattach\"\n{text}"), *VOCABULARY);
    assert!(reattach(&text(DEVICES)).is_err());
    let images = text(&DEVICES.replace("device = \"/dev/sdb\"", "image_size = \"1GiB\""));
    assert_eq!(reattach(&images).unwrap().isolation, Isolation::Reattach);
}

#[test]
fn overrides_select_or_replace_devices() {
    let mut selected = plan(&text(DEVICES));
    selected.set("device", "ssd", *VOCABULARY).unwrap();
    selected.set("image_size", "2GiB", *VOCABULARY).unwrap();
    let cells = selected.cells(Scale::ONE, &small).unwrap();
    assert_eq!(cells.len(), 1);
    assert_eq!(cells[0].cell.settings[&SystemSetting::Device].to_string(), "ssd");
    let size = |kind: &StorageKind| matches!(kind, StorageKind::Image { size: Bytes(s), .. } if *s == 2 << 30);
    assert!(size(&selected.storage.kind.of(&cells[0].cell.settings)));
    let mut replaced = plan(&text(DEVICES));
    replaced.set("device", "/dev/sdd", *VOCABULARY).unwrap();
    assert_eq!(replaced.storage.kind, StorageKind::Devices { paths: vec!["/dev/sdd".into()] });
    assert!(replaced.cells(Scale::ONE, &small).unwrap()[0].cell.settings.is_empty());
    assert_eq!(labels(&replaced), ["ext4: toy"]);
}

#[test]
fn a_scale_applies_to_the_images_of_all_levels() {
    let text = text(DEVICES).replace("device = \"/dev/sdb\"", "image_size = \"8GiB\"");
    let storage = plan(&text).storage_at(Scale::parse("1/4").unwrap(), Bytes(0));
    assert_eq!(
        storage.to_string(),
        "device hdd: image file of 2GiB (preallocated) on a loop device; \
         device ssd: image file of 512MiB (preallocated) on a loop device"
    );
}
