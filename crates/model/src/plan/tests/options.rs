//! Tests of the varied options of mkfs and mount.

use super::*;
use crate::{design::Design, workload::Value};

/// Plan with these axes on ext4, and these top-level keys.
fn text(top: &str, axes: &str) -> String {
    format!(
        "{top}\n[storage]\nimage_size = \"1GiB\"\n[axes]\nfilesystem = [\"ext4\"]\n\
         workload = [{{ suite = \"toy\" }}]\n{axes}"
    )
}

fn labels(plan: &Plan) -> Vec<String> {
    let cells = plan.cells(Scale::ONE, &small).unwrap();
    cells.into_iter().map(|cell| cell.label).collect()
}

fn error(text: &str) -> String {
    let error = Plan::parse(text, *VOCABULARY).unwrap_err();
    format!("{}; {}", error.message, error.hint.unwrap_or_default())
}

const TWO: &str = "mount.data = [\"ordered\", \"writeback\"]\nmkfs.-I = [256, 512]\n";

#[test]
fn options_are_factors_of_all_cells() {
    let plan = Plan::parse(&text("", TWO), *VOCABULARY).unwrap();
    assert_eq!(
        labels(&plan),
        [
            "toy mount.data=ordered mkfs.-I=256",
            "toy mount.data=ordered mkfs.-I=512",
            "toy mount.data=writeback mkfs.-I=256",
            "toy mount.data=writeback mkfs.-I=512",
        ]
    );
    let cells = plan.cells(Scale::ONE, &small).unwrap();
    let last = cells[3].cell.level();
    assert_eq!((last.name.as_str(), last.mount.as_str()), ("ext4", "data=writeback"));
    assert_eq!(last.mkfs, ["-I", "512"]);
    assert_eq!(cells[3].cell.filesystem.mount, "", "the level of the plan is unchanged");
    let plain = Plan::parse(&text("", ""), *VOCABULARY).unwrap();
    let plain = plain.cells(Scale::ONE, &small).unwrap();
    assert!(!plain[0].cell.canonical().contains("options"), "IDs of other cells do not change");
}

#[test]
fn a_constant_option_is_applied_and_not_part_of_the_label() {
    let plan = Plan::parse(&text("", "mount.noatime = [true]\n"), *VOCABULARY).unwrap();
    let cells = plan.cells(Scale::ONE, &small).unwrap();
    assert_eq!((cells.len(), cells[0].label.as_str()), (1, "toy"));
    assert_eq!(cells[0].cell.options["mount.noatime"], Value::Flag(true));
}

#[test]
fn the_block_device_has_no_options() {
    let names = |text: &str| text.replace("[\"ext4\"]", "[\"none\", \"ext4\"]");
    let known = KnownNames { filesystems: &["none", "ext4"], ..*VOCABULARY };
    let plan = Plan::parse(&names(&text("", TWO)), known).unwrap();
    let cells = plan.cells(Scale::ONE, &small).unwrap();
    let raw = cells.iter().filter(|cell| cell.cell.filesystem.is_raw());
    assert_eq!(raw.map(|cell| cell.cell.options.len()).collect::<Vec<_>>(), [0]);
    assert_eq!(cells.len(), 5);
}

#[test]
fn screening_designs_measure_a_fraction() {
    let eight: String = (0..8).map(|at| format!("mount.o{at} = [false, true]\n")).collect();
    assert!(error(&text("", &eight)).contains("design = \"screen\" for 16 of them"));
    let plan = Plan::parse(&text("design = \"screen\"", &eight), *VOCABULARY).unwrap();
    assert_eq!((plan.design, labels(&plan).len()), (Some(Design::Screen), 16));
    let plan = Plan::parse(&text("design = \"full\"", &eight), *VOCABULARY).unwrap();
    assert_eq!(labels(&plan).len(), 256);
}

#[test]
fn invalid_options_are_rejected() {
    let of = |axes: &str| error(&text("", axes));
    assert!(of("mount.data = []\n").contains("the list is empty"));
    assert!(of("mount.data = [\"a\", \"a\"]\n").contains("duplicate value `a`"));
    assert!(of("mount.data = [\"a,b\"]\n").contains("is not one value"));
    assert!(of("mount.\"data=a\" = [true]\n").contains("is not an option"));
    assert!(of("mount.\"a b\" = [true]\n").contains("is not an option"));
    assert!(of("mount = [\"noatime\"]\n").contains("expected a table of options"));
    assert!(of("mount.data = [1.5]\n").contains("expected true, false, an integer, or a string"));
    assert!(error(&text("design = \"screen\"", "")).contains("`design` requires options"));
    assert!(error(&text("design = \"half\"", TWO)).contains("unknown design `half`; use full"));
    let directory = text("", TWO).replace("image_size = \"1GiB\"", "directory = \"/srv\"");
    let directory = directory.replace("filesystem = [\"ext4\"]\n", "");
    assert!(error(&directory).contains("requires a new filesystem"));
}

#[test]
fn options_can_be_overridden() {
    let mut plan = Plan::parse(&text("", TWO), *VOCABULARY).unwrap();
    plan.set("mount.data", "journal", *VOCABULARY).unwrap();
    plan.set("mount.sync", "false,true", *VOCABULARY).unwrap();
    plan.set("mkfs.-I", "256", *VOCABULARY).unwrap();
    plan.consistent().unwrap();
    assert_eq!(labels(&plan), ["toy mount.sync=false", "toy mount.sync=true"]);
    let seven = (0..6).map(|at| (format!("mount.o{at}"), "false,true"));
    seven.for_each(|(key, values)| plan.set(&key, values, *VOCABULARY).unwrap());
    assert!(plan.consistent().is_err(), "more than 64 combinations");
    plan.set("design", "screen", *VOCABULARY).unwrap();
    plan.consistent().unwrap();
    assert_eq!(labels(&plan).len(), 16);
    plan.set("directory", "/srv", *VOCABULARY).unwrap();
    assert!(plan.consistent().unwrap_err().to_string().contains("requires a new filesystem"));
}
