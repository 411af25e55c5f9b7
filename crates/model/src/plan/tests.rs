use std::sync::LazyLock;

use expect_test::{Expect, expect};

use super::*;
use crate::{
    cell::Cell,
    units::{Bytes, Scale},
    workload::{Kind, ParameterSpec, Point, Recipe, ValueError},
};

const SUITE: SuiteSpec = SuiteSpec {
    name: "toy",
    title: "A suite for tests.",
    source: "here",
    notes: "",
    clients: None,
    parameters: &[
        ParameterSpec {
            name: "file",
            kind: Kind::Size { min: Bytes(512), scales: true },
            default: "1MiB",
            doc: "Size of the file.",
        },
        ParameterSpec {
            name: "record",
            kind: Kind::Size { min: Bytes(512), scales: true },
            default: "64KiB",
            doc: "Size of a record.",
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

/// The toy's tiny-read: small, reading only.
static RECIPES: LazyLock<[Recipe; 1]> = LazyLock::new(|| {
    let mut point = SUITE.defaults();
    point.parameters.insert("file".into(), Value::Size(Bytes::kib(64)));
    point.parameters.insert("record".into(), Value::Size(Bytes::kib(4)));
    point.parameters.insert("tests".into(), Value::Words(vec!["read".into()]));
    let (name, title, source) = ("tiny-read".into(), "Little.".into(), "here".into());
    [Recipe { name, title, source, point }]
});

static VOCABULARY: LazyLock<Vocabulary<'static>> = LazyLock::new(|| Vocabulary {
    suites: &[&SUITE],
    recipes: &*RECIPES,
    filesystems: &["ext4", "xfs", "btrfs", "directory"],
});

fn small(point: Point) -> Result<Vec<Point>, ValueError> {
    match point.size("record") > point.size("file") {
        true => Err(ValueError::new("the record is larger than the file")),
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
            let cure = error.cure.clone().unwrap_or_default();
            format!("{line}:{column} [{}] {error}\n  {cure}\n", &plan[error.span.clone()])
        }
    };
    expected.assert_eq(&answer);
}

const STORAGE: &str = "[storage]\nimage = \"1GiB\"\n";

fn axes(axes: &str) -> String {
    format!("{STORAGE}[axes]\n{axes}\n")
}

#[test]
fn every_combination_is_a_cell_named_by_what_varies() {
    check(
        &axes(
            r#"filesystem = ["ext4", { name = "xfs-big", base = "xfs", mkfs = ["-d", "agcount=32"] }]
workload = [{ suite = "toy", record = ["4KiB", "64k"], tests = ["write"] }]"#,
        ),
        expect![[r#"
            ext4: toy record=4KiB
            ext4: toy record=64KiB
            xfs-big: toy record=4KiB
            xfs-big: toy record=64KiB
        "#]],
    );
}

#[test]
fn words_and_flags_are_told_where_they_are_not_the_default() {
    check(
        &axes(
            r#"filesystem = ["ext4"]
workload = [{ suite = "toy" }, { suite = "toy", direct = true, file = "2MiB" }]"#,
        ),
        expect![[r#"
            ext4: toy file=1MiB
            ext4: toy direct=true file=2MiB
        "#]],
    );
}

#[test]
fn a_directory_needs_no_filesystem_axis() {
    check(
        "[storage]\ndirectory = \"/srv\"\n[axes]\nworkload = [{ suite = \"toy\" }]",
        expect![[r#"
            directory: toy
        "#]],
    );
}

#[test]
fn mistakes_of_the_storage_have_a_place_and_a_cure() {
    check(
        "title = ",
        expect![[r#"
        1:9 [] string values must be quoted, expected literal string
          a plan is TOML: `key = "value"`, `[table]`, lists in brackets
    "#]],
    );
    check(
        "[storage]\nimage = \"1GiB\"\n[axis]\n",
        expect![[r#"
        3:2 [axis] a plan has no key `axis`
          did you mean `axes`?
    "#]],
    );
    check(
        "memory = \"1GiB\"\n",
        expect![[r#"
        1:1 [memory] a plan has no key `memory`
          `memory` belongs into `[storage]`
    "#]],
    );
    check(
        "[storage]\nimage = \"4KB\"\n[axes]\n",
        expect![[r#"
        2:9 ["4KB"] `4KB` is ambiguous: 4KB may mean 4000 or 4096 bytes; write `4KiB` for 4096 bytes, or `4000B` for 4000
          
    "#]],
    );
    check(
        "[storage]\nimage = \"4KiB\"\n[axes]\n",
        expect![[r#"
        2:9 ["4KiB"] an image of 4KiB holds no filesystem; the least is 1MiB
          
    "#]],
    );
    check(
        "[storage]\n[axes]\n",
        expect![[r#"
        1:1 [[storage]] `storage` names nothing to measure on
          give one of image = "4GiB", device = "/dev/…", directory = "/…"
    "#]],
    );
    check(
        "[storage]\ndevice = \"/dev/sdb\"\nimages = 2\n[axes]\n",
        expect![[r#"
        3:10 [2] `images` says something of images, and `storage` has no `image`
          take one of them out
    "#]],
    );
}

#[test]
fn mistakes_on_the_axes_have_a_place_and_a_cure() {
    check(
        &axes("filesystem = [\"etx4\"]"),
        expect![[r#"
        4:15 ["etx4"] there is no filesystem `etx4`
          did you mean `ext4`?
    "#]],
    );
    check(
        &axes("filesystem = [\"ext4\", \"ext4\"]"),
        expect![[r#"
        4:23 ["ext4"] the filesystem name `ext4` is there twice
          give each its own name
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
        &axes("filesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\", recrod = 1 }]"),
        expect![[r#"
        5:30 [recrod] suite `toy` has no parameter `recrod`
          did you mean `record`?
    "#]],
    );
    check(
        &axes("filesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\", record = 1 }]"),
        expect![[r#"
        5:39 [1] 1B is too small; the least is 512B
          
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
        &axes("filesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\", record = \"2MiB\" }]"),
        expect![[r#"
            5:13 [{ suite = "toy", record = "2MiB" }] the record is larger than the file
              
        "#]],
    );
}

#[test]
fn settings_replace_axes_and_parameters() {
    let text = axes("filesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\" }]");
    let mut plan = Plan::parse(&text, *VOCABULARY).unwrap();
    plan.set("filesystem", "xfs, btrfs", *VOCABULARY).unwrap();
    plan.set("record", "4k,8k", *VOCABULARY).unwrap();
    plan.set("repeats", "3", *VOCABULARY).unwrap();
    assert_eq!((plan.cells(Scale::ONE, &small).unwrap().len(), plan.repeats), (4, Some(3)));
    plan.set("images", "2", *VOCABULARY).unwrap();
    assert!(plan.set("allocation", "some", *VOCABULARY).is_err());
    plan.set("device", "/dev/sdb,/dev/sdc", *VOCABULARY).unwrap();
    assert_eq!(plan.storage.to_string(), "/dev/sdb + /dev/sdc");
    assert!(plan.set("images", "2", *VOCABULARY).is_err(), "devices are no images");
    assert_eq!(plan.consistent(), Ok(()));
    plan.set("directory", "/srv", *VOCABULARY).unwrap();
    assert_eq!(plan.consistent(), Ok(()));
    plan.set("filesystem", "ext4", *VOCABULARY).unwrap();
    assert!(plan.consistent().is_err(), "a directory is not formatted");
    plan.set("image", "1GiB", *VOCABULARY).unwrap();
    assert_eq!(plan.consistent(), Ok(()));
    plan.set("filesystem", "xfs,btrfs,xfs", *VOCABULARY).unwrap();
    let error = plan.set("recrod", "4k", *VOCABULARY).unwrap_err();
    assert_eq!(error.cure.as_deref(), Some("did you mean `record`?"));
    assert!(plan.set("repeats", "0", *VOCABULARY).is_err());
    assert!(plan.set("filesystem", "etx4", *VOCABULARY).is_err());
}

#[test]
fn scaling_keeps_ratios_and_an_image_that_can_be_formatted() {
    let text = axes("filesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\", file = \"16MiB\" }]")
        .replace("\"1GiB\"", "\"40GiB\"\nmemory = \"8GiB\"");
    let plan = Plan::parse(&text, *VOCABULARY).unwrap();
    let scale = Scale::parse("1/64").unwrap();
    let cell = plan.cells(scale, &small).unwrap().remove(0).cell;
    assert_eq!(cell.workload.size("file"), Bytes::kib(256));
    assert_eq!(cell.workload.size("record"), Bytes::kib(1));
    let tiny = plan.cells(Scale::parse("1/1048576").unwrap(), &small).unwrap_err();
    assert!(tiny.message.contains("would be 16B; the least is 512B"), "{tiny}");
    let storage = plan.storage_at(scale);
    assert_eq!(storage.memory, Some(Bytes::mib(128)));
    assert!(storage.to_string().starts_with("image file of 640MiB"), "{storage}");
}

#[test]
fn a_cell_has_the_same_id_everywhere() {
    let text = axes("filesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\" }]");
    let cell =
        Plan::parse(&text, *VOCABULARY).unwrap().cells(Scale::ONE, &small).unwrap().remove(0).cell;
    expect![[r#"{"filesystem":{"base":"ext4","name":"ext4"},"workload":{"parameters":{"direct":{"flag":false},"file":{"size":1048576},"record":{"size":65536},"tests":{"words":["write","read"]}},"suite":"toy"}}"#]]
        .assert_eq(&cell.canonical());
    expect!["8c5b97314a6245fc"].assert_eq(&cell.id().to_string());
    let back: Cell = serde_json::from_str(&cell.canonical()).unwrap();
    assert_eq!(back.id(), cell.id());
}

#[test]
fn a_recipe_is_a_workload_by_name_and_its_parameters_can_be_changed() {
    check(
        &axes(
            r#"filesystem = ["ext4"]
workload = ["tiny-read", { recipe = "tiny-read", record = ["8KiB", "16KiB"], direct = true }, { suite = "toy" }]"#,
        ),
        expect![[r#"
            ext4: tiny-read record=4KiB
            ext4: tiny-read direct=true record=8KiB
            ext4: tiny-read direct=true record=16KiB
            ext4: toy
        "#]],
    );
}

#[test]
fn a_recipe_and_its_parameters_written_out_are_one_cell() {
    check(
        &axes(
            r#"filesystem = ["ext4"]
workload = [{ suite = "toy", file = "64KiB", record = "4KiB", tests = ["read"] }, "tiny-read"]"#,
        ),
        expect![[r#"
            ext4: toy
        "#]],
    );
}

#[test]
fn mistakes_about_recipes_have_a_place_and_a_cure() {
    let workload =
        |workload: &str| axes(&format!("filesystem = [\"ext4\"]\nworkload = [{workload}]"));
    check(
        &workload("\"tiny-raed\""),
        expect![[r#"
        5:13 ["tiny-raed"] there is no workload `tiny-raed`
          did you mean `tiny-read`?
    "#]],
    );
    check(
        &workload("\"toyy\""),
        expect![[r#"
        5:13 ["toyy"] there is no workload `toyy`
          did you mean { suite = "toy" }?
    "#]],
    );
    check(
        &workload("\"elephant\""),
        expect![[r#"
        5:13 ["elephant"] there is no workload `elephant`
          `fslab list workloads` shows those known; or write { suite = "…" } with one of: toy
    "#]],
    );
    check(
        &workload("{ recipe = \"tiny-reed\" }"),
        expect![[r#"
        5:24 ["tiny-reed"] there is no workload `tiny-reed`
          did you mean `tiny-read`?
    "#]],
    );
    check(
        &workload("{ recipe = \"tiny-read\", suite = \"toy\" }"),
        expect![[r#"
        5:24 ["tiny-read"] this workload has both `suite` and `recipe`
          keep one of them: a recipe names its suite itself
    "#]],
    );
    check(
        &workload("{ recipe = \"tiny-read\", recrod = 1 }"),
        expect![[r#"
        5:37 [recrod] suite `toy` has no parameter `recrod`
          did you mean `record`?
    "#]],
    );
}

#[test]
fn a_recipe_scales_and_says_so_when_it_cannot() {
    let text = axes("filesystem = [\"ext4\"]\nworkload = [\"tiny-read\"]");
    let plan = Plan::parse(&text, *VOCABULARY).unwrap();
    let cells = plan.cells(Scale::parse("1/4").unwrap(), &small).unwrap();
    assert_eq!(cells[0].cell.workload.size("file"), Bytes::kib(16));
    assert_eq!(cells[0].label, "tiny-read");
    let error = plan.cells(Scale::parse("1/1024").unwrap(), &small).unwrap_err();
    assert!(error.message.contains("would be 64B; the least is 512B"), "{error}");
}

const FULL: &str = "filesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\" }]\n";

#[test]
fn how_full_is_an_axis() {
    check(
        &axes(&format!("{FULL}full = [0, 50, 90]")),
        expect![[r#"
            ext4: toy full=0%
            ext4: toy full=50%
            ext4: toy full=90%
        "#]],
    );
    check(
        &axes(&format!("{FULL}full = [50]\nscheduler = [\"none\", \"bfq\"]")),
        expect![[r#"
            ext4: toy scheduler=none
            ext4: toy scheduler=bfq
        "#]],
    );
    let cells = |plan: &str| {
        Plan::parse(&axes(plan), *VOCABULARY).unwrap().cells(Scale::ONE, &small).unwrap()
    };
    let full = cells(&format!("{FULL}full = [0, 50]"));
    let levels: Vec<_> = full.iter().map(|cell| cell.cell.fullness.0).collect();
    assert_eq!(levels, [0, 50]);
    assert_ne!(full[0].cell.id(), full[1].cell.id());
    assert_eq!(full[0].cell.id(), cells(FULL)[0].cell.id(), "nothing is as if not said");
}

#[test]
fn mistakes_about_how_full_have_a_place_and_a_cure() {
    check(
        &axes(&format!("{FULL}full = [96]")),
        expect![[r#"
            6:9 [96] 96 is not within 0..=95
              write whole percents: full = [0, 50, 90]
        "#]],
    );
    check(
        &axes(&format!("{FULL}full = 50")),
        expect![[r#"
            6:8 [50] expected a list, found integer
              write whole percents: full = [0, 50, 90]
        "#]],
    );
    check(
        "[storage]\ndirectory = \"/srv\"\n[axes]\nworkload = [{ suite = \"toy\" }]\nfull = [50]",
        expect![[r#"
            5:8 [[50]] somebody else's filesystem is not filled up
              take `full` out, or name an image or a device
        "#]],
    );
    check(
        &axes(&format!("{FULL}elsewhere = \"/mnt\"")),
        expect![[r#"
        6:1 [elsewhere] `axes` has no key `elsewhere`
          `elsewhere` belongs into `[storage]`
    "#]],
    );
}

#[test]
fn how_full_and_elsewhere_are_settings() {
    let mut plan = Plan::parse(&axes(FULL), *VOCABULARY).unwrap();
    plan.set("full", "50", *VOCABULARY).unwrap();
    assert_eq!(plan.fullness, [Fullness(50)]);
    plan.set("full", "0, 90", *VOCABULARY).unwrap();
    assert_eq!(plan.cells(Scale::ONE, &small).unwrap().len(), 2);
    for bad in ["96", "-1", "half", "", "50%"] {
        assert!(plan.set("full", bad, *VOCABULARY).is_err(), "{bad}");
    }
    assert_eq!(plan.fullness.len(), 2, "a refused setting changes nothing");
    plan.set("elsewhere", "/mnt", *VOCABULARY).unwrap();
    assert_eq!(plan.storage.elsewhere.as_deref(), Some("/mnt"));
    assert_eq!(plan.consistent(), Ok(()));
    plan.set("directory", "/srv", *VOCABULARY).unwrap();
    let error = plan.consistent().unwrap_err();
    assert_eq!(error.cure.as_deref(), Some("take `full` out of the plan"));
    plan.set("full", "0", *VOCABULARY).unwrap();
    assert_eq!(plan.consistent(), Ok(()));
    let text = axes(FULL).replace("image =", "elsewhere = \"/mnt\"\nimage =");
    let plan = Plan::parse(&text, *VOCABULARY).unwrap();
    assert_eq!(plan.storage.elsewhere.as_deref(), Some("/mnt"));
}

mod conditions;
mod setup;

#[test]
fn a_view_is_a_study_by_its_name() {
    let plan = |view: &str| {
        format!(
            "view = \"{view}\"\nstorage.directory = \"/srv\"\naxes.workload = [{{ suite = \"toy\" }}]\n"
        )
    };
    let mut parsed = Plan::parse(&plan("tasks-2006"), *VOCABULARY).unwrap();
    assert_eq!(parsed.view, Some(crate::Study::Tasks2006));
    parsed.set("view", "dbench-2012", *VOCABULARY).unwrap();
    assert_eq!(parsed.view, Some(crate::Study::Dbench2012));
    let error = parsed.set("view", "dbench", *VOCABULARY).unwrap_err();
    assert!(error.cure.is_some_and(|cure| cure.contains("dbench-2012")));
    check(
        &plan("task-2006"),
        expect![[r#"
            1:8 ["task-2006"] there is no view `task-2006`
              did you mean `tasks-2006`?
        "#]],
    );
}
