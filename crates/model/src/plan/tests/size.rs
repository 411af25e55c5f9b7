//! Tests of the axis `size`.

use super::*;
use crate::{
    StorageKind,
    setting::{SystemSetting, SystemSettings},
    workload::Value,
};

/// Plan with two sizes, with these storage keys and axes.
fn text(storage: &str, axes: &str) -> String {
    format!(
        "[storage]\n{storage}\n[axes]\nfilesystem = [\"ext4\"]\nsize = [\"1GiB\", \"4TiB\"]\n\
         workload = [{{ suite = \"toy\" }}]\n{axes}"
    )
}

const SPARSE: &str = "image_allocation = \"sparse\"";

fn size(kind: &StorageKind) -> Bytes {
    match kind {
        StorageKind::Image { size, .. } => *size,
        StorageKind::Devices { .. }
        | StorageKind::Directory { .. }
        | StorageKind::Levels { .. } => {
            panic!("{kind:?}")
        }
    }
}

#[test]
fn sizes_are_levels_of_an_axis() {
    let plan = Plan::parse(&text(SPARSE, ""), *VOCABULARY).unwrap();
    let cells = plan.cells(Scale::parse("1/64").unwrap(), &small).unwrap();
    let labels: Vec<&str> = cells.iter().map(|cell| cell.label.as_str()).collect();
    assert_eq!(labels, ["toy size=1GiB", "toy size=4TiB"]);
    let storage = plan.storage_at(Scale::parse("1/64").unwrap(), Bytes(0));
    assert_eq!(size(&storage.kind), Bytes::gib(4096), "the largest, not scaled");
    let of = |at: usize| size(&storage.kind.of(&cells[at].cell.settings));
    assert_eq!([of(0), of(1)], [Bytes::gib(1), Bytes::gib(4096)]);
    assert_eq!(size(&storage.kind.of(&SystemSettings::new())), Bytes::gib(4096));
}

#[test]
fn sizes_cross_the_levels_of_the_axis_device() {
    let device = "device = [{ name = \"a\", image_directory = \"/a\" }, \
                  { name = \"b\", image_directory = \"/b\" }]\n";
    let text = text("", device).replace("[storage]\n\n", "");
    let plan = Plan::parse(&text, *VOCABULARY).unwrap();
    let cells = plan.cells(Scale::ONE, &small).unwrap();
    assert_eq!(cells.len(), 4);
    let kinds = plan.storage.kind.each();
    assert!(kinds.iter().all(|(_, kind)| size(kind) == Bytes::gib(4096)), "{kinds:?}");
}

#[test]
fn the_storage_of_sizes_is_images_without_a_size() {
    let conflict =
        |storage: &str| Plan::parse(&text(storage, ""), *VOCABULARY).unwrap_err().to_string();
    let both = "the plan has both `axes.size` and";
    assert_eq!(conflict("image_size = \"1GiB\""), format!("{both} `image_size`"));
    assert_eq!(conflict("device = \"/dev/sdb\""), format!("{both} `device`"));
    assert_eq!(conflict("directory = \"/srv\""), format!("{both} `directory`"));
    let small = text(SPARSE, "").replace("1GiB", "1KiB");
    let error = Plan::parse(&small, *VOCABULARY).unwrap_err().to_string();
    assert!(error.contains("1MiB"), "{error}");
}

#[test]
fn sizes_can_be_overridden() {
    let mut plan = Plan::parse(&text(SPARSE, ""), *VOCABULARY).unwrap();
    let error = plan.set("image_size", "2GiB", *VOCABULARY).unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("use --set size=2GiB"));
    plan.set("size", "2GiB,8GiB", *VOCABULARY).unwrap();
    assert_eq!(size(&plan.storage.kind), Bytes::gib(8));
    plan.consistent().unwrap();
    plan.set("device", "/dev/sdb", *VOCABULARY).unwrap();
    let error = plan.consistent().unwrap_err();
    assert_eq!(error.to_string(), "`size` requires image files");
}

#[test]
fn a_workload_may_have_its_own_sizes_within_the_images() {
    let own = |size: &str| {
        let workload = format!("{{ suite = \"toy\", size = [\"{size}\"] }}");
        let text = text(SPARSE, "").replace("{ suite = \"toy\" }", &workload);
        Plan::parse(&text, *VOCABULARY)
    };
    let plan = own("2GiB").unwrap();
    let cells = plan.cells(Scale::ONE, &small).unwrap();
    let settings = &cells[0].cell.settings;
    assert_eq!(settings[&SystemSetting::Size], Value::Size(Bytes::gib(2)));
    let error = own("8TiB").unwrap_err();
    assert_eq!(error.to_string(), "`size` 8TiB is larger than the images of the plan");
}
