use std::sync::LazyLock;

use expect_test::{Expect, expect};

use super::*;
use crate::{
    cell::Cell,
    units::{Bytes, Scale},
    workload::{Kind, ParameterSpec, Preset, ValueError, WorkloadParameters},
};

const SUITE: SuiteSpec = SuiteSpec {
    name: "toy",
    title: "A suite for tests.",
    source: "here",
    notes: "",
    clients: None,
    parameters: &[
        ParameterSpec {
            name: "file_size",
            kind: Kind::Size { min: Bytes(512), scales: true },
            default: "1MiB",
            doc: "Size of the file.",
        },
        ParameterSpec {
            name: "block_size",
            kind: Kind::Size { min: Bytes(512), scales: true },
            default: "64KiB",
            doc: "Size of a block_size.",
        },
        ParameterSpec {
            name: "tests",
            kind: Kind::Words(&["write", "read"]),
            default: "write,read",
            doc: "Which tests.",
        },
        ParameterSpec {
            name: "direct",
            kind: Kind::Flag,
            default: "false",
            doc: "Around the page cache.",
        },
    ],
};

/// Preset tiny-read of suite toy.
static PRESETS: LazyLock<[Preset; 1]> = LazyLock::new(|| {
    let mut point = SUITE.defaults();
    point.parameters.insert("file_size".into(), Value::Size(Bytes::kib(64)));
    point.parameters.insert("block_size".into(), Value::Size(Bytes::kib(4)));
    point.parameters.insert("tests".into(), Value::Words(vec!["read".into()]));
    let (name, title, source) = ("tiny-read".into(), "Little.".into(), "here".into());
    [Preset { name, title, source, workload: point }]
});

static MOUNTED: LazyLock<[MountedType; 2]> = LazyLock::new(|| {
    let mounted = |name: &str, in_directory| MountedType { name: name.into(), in_directory };
    [mounted("zfs", false), mounted("overlayfs", true)]
});

static VOCABULARY: LazyLock<KnownNames<'static>> = LazyLock::new(|| KnownNames {
    suites: &[&SUITE],
    presets: &*PRESETS,
    filesystems: &["ext4", "xfs", "btrfs", "directory", "zfs", "overlayfs"],
    mounted: &*MOUNTED,
});

fn small(point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    match point.size("block_size") > point.size("file_size") {
        true => Err(ValueError::new("the block_size is larger than the file")),
        false => Ok(vec![point]),
    }
}

fn check(plan: &str, expected: Expect) {
    let cells = Plan::parse(plan, *VOCABULARY).and_then(|plan| plan.cells(Scale::ONE, &small));
    let answer = match cells {
        Ok(cells) => cells
            .iter()
            .map(|cell| format!("{}: {}\n", cell.cell.filesystem.name, cell.label))
            .collect(),
        Err(error) => {
            let (line, column) = error.position(plan);
            let hint = error.hint.clone().unwrap_or_default();
            let text = format!("{line}:{column} [{}] {error}\n  {hint}", &plan[error.span.clone()]);
            format!("{}\n", text.trim_end())
        }
    };
    expected.assert_eq(&answer);
}

const STORAGE: &str = "[storage]\nimage_size = \"1GiB\"\n";

fn axes(axes: &str) -> String {
    format!("{STORAGE}[axes]\n{axes}\n")
}

#[test]
fn labels_contain_varied_parameters() {
    check(
        &axes(
            r#"filesystem = ["ext4", { name = "xfs-big", type = "xfs", mkfs_options = ["-d", "agcount=32"] }]
workload = [{ suite = "toy", block_size = ["4KiB", "64k"], tests = ["write"] }]"#,
        ),
        expect![[r#"
            ext4: toy block_size=4KiB
            ext4: toy block_size=64KiB
            xfs-big: toy block_size=4KiB
            xfs-big: toy block_size=64KiB
        "#]],
    );
}

#[test]
fn labels_contain_keywords_and_booleans_other_than_the_default() {
    check(
        &axes(
            r#"filesystem = ["ext4"]
workload = [{ suite = "toy" }, { suite = "toy", direct = true, file_size = "2MiB" }]"#,
        ),
        expect![[r#"
            ext4: toy file_size=1MiB
            ext4: toy direct=true file_size=2MiB
        "#]],
    );
}

#[test]
fn labels_contain_the_file_names_of_recordings_instead_of_their_hashes() {
    const TEXT: Kind = Kind::Text { takes: "a text", read: |text| Ok(text.to_owned()) };
    const fn text(name: &'static str) -> ParameterSpec {
        ParameterSpec { name, kind: TEXT, default: "", doc: "For tests." }
    }
    const REPLAY: SuiteSpec =
        SuiteSpec { name: "toy", parameters: &[text("trace"), text("sha256")], ..SUITE };
    let labels = |traces: &str| -> Vec<String> {
        let plan = format!("workload = [{{ suite = \"toy\", trace = [{traces}] }}]");
        let vocabulary = KnownNames { suites: &[&REPLAY], ..*VOCABULARY };
        let hashed = |mut point: WorkloadParameters| {
            let hash = format!("hash of {}", point.text("trace"));
            point.parameters.insert("sha256".into(), Value::Text(hash));
            Ok(vec![point])
        };
        let plan = Plan::parse(&axes(&format!("filesystem = [\"ext4\"]\n{plan}")), vocabulary);
        let cells = plan.unwrap().cells(Scale::ONE, &hashed).unwrap();
        cells.into_iter().map(|cell| cell.label).collect()
    };
    assert_eq!(labels(r#""/a/mail", "/b/tar""#), ["toy trace=mail", "toy trace=tar"]);
    assert_eq!(labels(r#""/a/mail", "/b/mail""#), ["toy trace=/a/mail", "toy trace=/b/mail"]);
    assert_eq!(labels(r#""/a/mail""#), ["toy"]);
}

#[test]
fn directories_require_no_filesystem_axis() {
    check(
        "[storage]\ndirectory = \"/srv\"\n[axes]\nworkload = [{ suite = \"toy\" }]",
        expect![[r#"
            directory: toy
        "#]],
    );
}

#[test]
fn storage_errors_have_a_position_and_a_hint() {
    check(
        "title = ",
        expect![[r#"
        1:9 [] string values must be quoted, expected literal string
          a plan is TOML: `key = "value"`, `[table]`, lists in brackets
    "#]],
    );
    check(
        "[storage]\nimage_size = \"1GiB\"\n[axis]\n",
        expect![[r#"
            3:2 [axis] the plan has no key `axis`
              did you mean `axes`?
        "#]],
    );
    check(
        "memory_limit = \"1GiB\"\n",
        expect![[r#"
            1:1 [memory_limit] the plan has no key `memory_limit`
              `memory_limit` belongs to `[storage]`
        "#]],
    );
    check(
        "[storage]\nimage_size = \"4KB\"\n[axes]\n",
        expect![[r#"
            2:14 ["4KB"] `4KB` is ambiguous: 4000 or 4096 bytes; write `4KiB` for 4096, or `4000B`
        "#]],
    );
    check(
        "[storage]\nimage_size = \"4KiB\"\n[axes]\n",
        expect![[r#"
            2:14 ["4KiB"] image_size is 4KiB; the minimum is 1MiB
        "#]],
    );
    check(
        "[storage]\n[axes]\n",
        expect![[r#"
            1:1 [[storage]] `storage` has no device, image, or directory
              set one of image_size = "4GiB", device = "/dev/…", directory = "/…"
        "#]],
    );
    check(
        "[storage]\ndevice = \"/dev/sdb\"\nimage_count = 2\n[axes]\n",
        expect![[r#"
            3:15 [2] `image_count` requires `image_size`
              remove `image_count`, or set `image_size`
        "#]],
    );
}

#[test]
fn axes_errors_have_a_position_and_a_hint() {
    check(
        &axes("filesystem = [\"etx4\"]"),
        expect![[r#"
            4:15 ["etx4"] unknown filesystem type `etx4`
              did you mean `ext4`?
        "#]],
    );
    check(
        &axes("filesystem = [\"ext4\", \"ext4\"]"),
        expect![[r#"
            4:23 ["ext4"] duplicate filesystem name `ext4`
              give each filesystem its own name
        "#]],
    );
    check(
        &axes("filesystem = [\"ext4\"]\nworkload = [\"toy\"]"),
        expect![[r#"
        5:13 ["toy"] `toy` is a suite, not a workload
          write { suite = "toy" } and add its parameters
    "#]],
    );
    check(
        &axes("filesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\", blokc_size = 1 }]"),
        expect![[r#"
        5:30 [blokc_size] suite `toy` has no parameter `blokc_size`
          did you mean `block_size`?
    "#]],
    );
    check(
        &axes("filesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\", block_size = 1 }]"),
        expect![[r#"
            5:43 [1] 1B is too small; the minimum is 512B
        "#]],
    );
    check(
        &axes("filesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\", tests = [\"wrte\"] }]"),
        expect![[r#"
            5:38 [["wrte"]] `wrte` is not one of write, read
              did you mean `write`?
        "#]],
    );
    check(
        &axes("filesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\", block_size = \"2MiB\" }]"),
        expect![[r#"
            5:13 [{ suite = "toy", block_size = "2MiB" }] the block_size is larger than the file
        "#]],
    );
}

#[test]
fn overrides_replace_axes_and_parameters() {
    let text = axes("filesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\" }]");
    let mut plan = Plan::parse(&text, *VOCABULARY).unwrap();
    plan.set("filesystem", "xfs, btrfs", *VOCABULARY).unwrap();
    plan.set("block_size", "4k,8k", *VOCABULARY).unwrap();
    plan.set("repetitions", "3", *VOCABULARY).unwrap();
    assert_eq!((plan.cells(Scale::ONE, &small).unwrap().len(), plan.repetitions), (4, Some(3)));
    plan.set("image_count", "2", *VOCABULARY).unwrap();
    assert!(plan.set("image_allocation", "some", *VOCABULARY).is_err());
    plan.set("device", "/dev/sdb,/dev/sdc", *VOCABULARY).unwrap();
    assert_eq!(plan.storage.to_string(), "/dev/sdb + /dev/sdc");
    assert!(plan.set("image_count", "2", *VOCABULARY).is_err(), "devices are not images");
    assert_eq!(plan.consistent(), Ok(()));
    plan.set("directory", "/srv", *VOCABULARY).unwrap();
    assert_eq!(plan.consistent(), Ok(()));
    plan.set("filesystem", "ext4", *VOCABULARY).unwrap();
    assert!(plan.consistent().is_err(), "a directory is not formatted");
    plan.set("image_size", "1GiB", *VOCABULARY).unwrap();
    assert_eq!(plan.consistent(), Ok(()));
    plan.set("filesystem", "xfs,btrfs,xfs", *VOCABULARY).unwrap();
    let error = plan.set("blokc_size", "4k", *VOCABULARY).unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("did you mean `block_size`?"));
    assert!(plan.set("repetitions", "0", *VOCABULARY).is_err());
    assert!(plan.set("filesystem", "etx4", *VOCABULARY).is_err());
}

#[test]
fn scaling_keeps_ratios_and_the_minimum_image_size() {
    let text =
        axes("filesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\", file_size = \"16MiB\" }]")
            .replace("\"1GiB\"", "\"40GiB\"\nmemory_limit = \"8GiB\"");
    let plan = Plan::parse(&text, *VOCABULARY).unwrap();
    let scale = Scale::parse("1/64").unwrap();
    let cell = plan.cells(scale, &small).unwrap().remove(0).cell;
    assert_eq!(cell.workload.size("file_size"), Bytes::kib(256));
    assert_eq!(cell.workload.size("block_size"), Bytes::kib(1));
    let tiny = plan.cells(Scale::parse("1/1048576").unwrap(), &small).unwrap_err();
    assert!(tiny.message.contains("would be 16B; the minimum is 512B"), "{tiny}");
    let storage = plan.storage_at(scale, Bytes(0));
    assert_eq!(storage.memory_limit, Some(Bytes::mib(128)));
    assert!(storage.to_string().starts_with("image file of 640MiB"), "{storage}");
    let storage = plan.storage_at(scale, Bytes(Bytes::gib(1).0 + 1));
    assert!(storage.to_string().starts_with("image file of 1025MiB"), "{storage}");
    let storage = plan.storage_at(scale, Bytes::gib(100));
    assert!(storage.to_string().starts_with("image file of 40GiB"), "as in the plan: {storage}");
}

#[test]
fn cell_ids_are_stable() {
    let text = axes("filesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\" }]");
    let cell =
        Plan::parse(&text, *VOCABULARY).unwrap().cells(Scale::ONE, &small).unwrap().remove(0).cell;
    expect![[r#"{"filesystem":{"fs_type":"ext4","name":"ext4"},"workload":{"parameters":{"block_size":{"size":65536},"direct":{"flag":false},"file_size":{"size":1048576},"tests":{"words":["write","read"]}},"suite":"toy"}}"#]]
        .assert_eq(&cell.canonical());
    expect!["b82c8f92d2b22dee"].assert_eq(&cell.id().to_string());
    let back: Cell = serde_json::from_str(&cell.canonical()).unwrap();
    assert_eq!(back.id(), cell.id());
}

#[test]
fn presets_accept_parameters() {
    check(
        &axes(
            r#"filesystem = ["ext4"]
workload = ["tiny-read", { preset = "tiny-read", block_size = ["8KiB", "16KiB"], direct = true }, { suite = "toy" }]"#,
        ),
        expect![[r#"
            ext4: tiny-read block_size=4KiB
            ext4: tiny-read block_size=8KiB direct=true
            ext4: tiny-read block_size=16KiB direct=true
            ext4: toy
        "#]],
    );
}

#[test]
fn equal_workloads_are_one_cell() {
    check(
        &axes(
            r#"filesystem = ["ext4"]
workload = [{ suite = "toy", file_size = "64KiB", block_size = "4KiB", tests = ["read"] }, "tiny-read"]"#,
        ),
        expect![[r#"
            ext4: toy
        "#]],
    );
}

#[test]
fn preset_errors_have_a_position_and_a_hint() {
    let workload =
        |workload: &str| axes(&format!("filesystem = [\"ext4\"]\nworkload = [{workload}]"));
    check(
        &workload("\"tiny-raed\""),
        expect![[r#"
            5:13 ["tiny-raed"] unknown workload `tiny-raed`
              did you mean `tiny-read`?
        "#]],
    );
    check(
        &workload("\"toyy\""),
        expect![[r#"
            5:13 ["toyy"] unknown workload `toyy`
              did you mean { suite = "toy" }?
        "#]],
    );
    check(
        &workload("\"elephant\""),
        expect![[r#"
            5:13 ["elephant"] unknown workload `elephant`
              use a name of `fslab list workloads`, or { suite = "…" } with one of: toy
        "#]],
    );
    check(
        &workload("{ preset = \"tiny-reed\" }"),
        expect![[r#"
            5:24 ["tiny-reed"] unknown workload `tiny-reed`
              did you mean `tiny-read`?
        "#]],
    );
    check(
        &workload("{ preset = \"tiny-read\", suite = \"toy\" }"),
        expect![[r#"
            5:24 ["tiny-read"] this workload has both `suite` and `preset`
              remove `suite`: a preset includes its suite
        "#]],
    );
    check(
        &workload("{ preset = \"tiny-read\", blokc_size = 1 }"),
        expect![[r#"
        5:37 [blokc_size] suite `toy` has no parameter `blokc_size`
          did you mean `block_size`?
    "#]],
    );
}

#[test]
fn presets_scale_down_to_their_minimum() {
    let text = axes("filesystem = [\"ext4\"]\nworkload = [\"tiny-read\"]");
    let plan = Plan::parse(&text, *VOCABULARY).unwrap();
    let cells = plan.cells(Scale::parse("1/4").unwrap(), &small).unwrap();
    assert_eq!(cells[0].cell.workload.size("file_size"), Bytes::kib(16));
    assert_eq!(cells[0].label, "tiny-read");
    let error = plan.cells(Scale::parse("1/1024").unwrap(), &small).unwrap_err();
    assert!(error.message.contains("would be 4B; the minimum is 512B"), "{error}");
}

const FULL: &str = "filesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\" }]\n";

#[test]
fn fill_percent_is_an_axis() {
    check(
        &axes(&format!("{FULL}fill_percent = [0, 50, 90]")),
        expect![[r#"
            ext4: toy fill_percent=0
            ext4: toy fill_percent=50
            ext4: toy fill_percent=90
        "#]],
    );
    check(
        &axes(&format!("{FULL}fill_percent = [50]\nscheduler = [\"none\", \"bfq\"]")),
        expect![[r#"
            ext4: toy scheduler=none
            ext4: toy scheduler=bfq
        "#]],
    );
    let cells = |plan: &str| {
        Plan::parse(&axes(plan), *VOCABULARY).unwrap().cells(Scale::ONE, &small).unwrap()
    };
    let full = cells(&format!("{FULL}fill_percent = [0, 50]"));
    let levels: Vec<_> = full.iter().map(|cell| cell.cell.fill_level.0).collect();
    assert_eq!(levels, [0, 50]);
    assert_ne!(full[0].cell.id(), full[1].cell.id());
    assert_eq!(full[0].cell.id(), cells(FULL)[0].cell.id(), "level 0 is the default");
}

#[test]
fn fill_percent_errors_have_a_position_and_a_hint() {
    check(
        &axes(&format!("{FULL}fill_percent = [96]")),
        expect![[r#"
            6:17 [96] 96 is out of range; use an integer from 0 to 95
              use whole percentages: fill_percent = [0, 50, 90]
        "#]],
    );
    check(
        &axes(&format!("{FULL}full = 50")),
        expect![[r#"
            6:1 [full] `axes` has no key `full`
              did you mean `fill_percent`?
        "#]],
    );
    check(
        "[storage]\ndirectory = \"/srv\"\n[axes]\nworkload = [{ suite = \"toy\" }]\nfill_percent = [50]",
        expect![[r#"
            5:16 [[50]] storage is a directory: `fill_percent` requires a new filesystem
              remove `fill_percent`, or set `image_size` or `device`
        "#]],
    );
    check(
        &axes(&format!("{FULL}external_directory = \"/mnt\"")),
        expect![[r#"
            6:1 [external_directory] `axes` has no key `external_directory`
              `external_directory` belongs to `[storage]`
        "#]],
    );
}

#[test]
fn fill_percent_and_external_directory_can_be_overridden() {
    let mut plan = Plan::parse(&axes(FULL), *VOCABULARY).unwrap();
    plan.set("fill_percent", "50", *VOCABULARY).unwrap();
    assert_eq!(plan.fill_levels, [FillLevel(50)]);
    plan.set("fill_percent", "0, 90", *VOCABULARY).unwrap();
    assert_eq!(plan.cells(Scale::ONE, &small).unwrap().len(), 2);
    for bad in ["96", "-1", "half", "", "50%"] {
        assert!(plan.set("fill_percent", bad, *VOCABULARY).is_err(), "{bad}");
    }
    assert_eq!(plan.fill_levels.len(), 2, "a rejected override changes nothing");
    plan.set("external_directory", "/mnt", *VOCABULARY).unwrap();
    assert_eq!(plan.storage.external_directory.as_deref(), Some("/mnt"));
    assert_eq!(plan.consistent(), Ok(()));
    plan.set("directory", "/srv", *VOCABULARY).unwrap();
    let error = plan.consistent().unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("remove `fill_percent` from the plan"));
    plan.set("fill_percent", "0", *VOCABULARY).unwrap();
    assert_eq!(plan.consistent(), Ok(()));
    let text = axes(FULL).replace("image_size =", "external_directory = \"/mnt\"\nimage_size =");
    let plan = Plan::parse(&text, *VOCABULARY).unwrap();
    assert_eq!(plan.storage.external_directory.as_deref(), Some("/mnt"));
}

mod conditions;
mod device;
mod mounting;
mod options;
mod setup;
mod size;
mod together;

#[test]
fn studies_are_selected_by_name() {
    let plan = |view: &str| {
        format!(
            "study = \"{view}\"\nstorage.directory = \"/srv\"\naxes.workload = [{{ suite = \"toy\" }}]\n"
        )
    };
    let mut parsed = Plan::parse(&plan("tasks-2006"), *VOCABULARY).unwrap();
    assert_eq!(parsed.study, Some(crate::Study::Tasks2006));
    parsed.set("study", "dbench-2012", *VOCABULARY).unwrap();
    assert_eq!(parsed.study, Some(crate::Study::Dbench2012));
    let error = parsed.set("study", "dbench", *VOCABULARY).unwrap_err();
    assert!(error.hint.is_some_and(|hint| hint.contains("dbench-2012")));
    check(
        &plan("task-2006"),
        expect![[r#"
            1:9 ["task-2006"] unknown study `task-2006`
              did you mean `tasks-2006`?
        "#]],
    );
}
