//! Tests of system settings, conditions of single workloads, named scales, and layers.

use super::*;
use crate::{clock::Clock, guest::GuestDisk, setting::SystemSetting, units::Nanos};

const STORAGE: &str = "[storage]\nimage_size = \"1GiB\"\nimage_count = 2\n";

fn axes(axes: &str, expected: Expect) {
    check(&format!("{STORAGE}[axes]\nfilesystem = [\"ext4\"]\n{axes}"), expected);
}

#[test]
fn system_settings_are_axes() {
    axes(
        r#"
workload = [{ suite = "toy" }]
read_ahead = ["128KiB", "4MiB"]
cpu_speed = ["100%", "50%"]
online_cpus = [2]
"#,
        expect![[r"
            ext4: toy read_ahead=128KiB cpu_speed=100%
            ext4: toy read_ahead=128KiB cpu_speed=50%
            ext4: toy read_ahead=4MiB cpu_speed=100%
            ext4: toy read_ahead=4MiB cpu_speed=50%
        "]],
    );
    axes(
        "workload = [{ suite = \"toy\" }]\ncpu_speed = [\"fast\"]\n",
        expect![[r#"
            7:14 ["fast"] `fast` is not a percentage
              use a whole percentage such as "50%"
        "#]],
    );
}

#[test]
fn workloads_have_their_own_conditions() {
    axes(
        r#"
workload = [
    { suite = "toy", block_size = ["4KiB", "8KiB"] },
    { suite = "toy", block_size = "64KiB", scheduler = ["none", "bfq"], cpu_speed = ["100%", "50%"] },
]
"#,
        expect![[r"
            ext4: toy block_size=4KiB
            ext4: toy block_size=8KiB
            ext4: toy block_size=64KiB scheduler=none cpu_speed=100%
            ext4: toy block_size=64KiB scheduler=none cpu_speed=50%
            ext4: toy block_size=64KiB scheduler=bfq cpu_speed=100%
            ext4: toy block_size=64KiB scheduler=bfq cpu_speed=50%
        "]],
    );
}

fn plan(text: &str) -> Plan {
    Plan::parse(text, *VOCABULARY).unwrap()
}

#[test]
fn workloads_with_different_conditions_are_different_cells() {
    axes(
        r#"
workload = [
    { suite = "toy" },
    { suite = "toy", dirty_threshold = ["5%"] },
    { suite = "toy", dirty_threshold = ["9%", "5%"] },
]
"#,
        expect![[r#"
            ext4: toy
            ext4: toy dirty_threshold=5%
            ext4: toy dirty_threshold=9%
        "#]],
    );
}

#[test]
fn overrides_apply_to_all_workloads() {
    let text = format!(
        "{STORAGE}[axes]\nfilesystem = [\"ext4\"]\nworkload = [{{ suite = \"toy\", \
         scheduler = [\"none\"], online_cpus = [1] }}, {{ suite = \"toy\", block_size = [\"4KiB\", \"8KiB\"] }}]\n"
    );
    let mut plan = plan(&text);
    plan.set("online_cpus", "1,2", *VOCABULARY).unwrap();
    plan.set("scheduler", "bfq", *VOCABULARY).unwrap();
    plan.set("block_size", "..1KiB", *VOCABULARY).unwrap_err();
    plan.set("block_size", "..64KiB", *VOCABULARY).unwrap();
    let cells = plan.cells(Scale::ONE, &small).unwrap();
    let labels: Vec<_> = cells.iter().map(|cell| cell.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "toy block_size=64KiB online_cpus=1",
            "toy block_size=64KiB online_cpus=2",
            "toy block_size=4KiB online_cpus=1",
            "toy block_size=4KiB online_cpus=2",
            "toy block_size=8KiB online_cpus=1",
            "toy block_size=8KiB online_cpus=2"
        ]
    );
    assert!(cells.iter().all(|cell| cell.cell.scheduler.as_deref() == Some("bfq")));
    assert!(cells[1].cell.settings.contains_key(&SystemSetting::OnlineCpus));
    plan.set("block_size", "..4KiB", *VOCABULARY).unwrap();
    let cells = plan.cells(Scale::ONE, &small).unwrap();
    assert_eq!(cells.len(), 2, "workloads without such values are removed");
}

#[test]
fn cells_without_settings_omit_them() {
    let text =
        format!("{STORAGE}[axes]\nfilesystem = [\"ext4\"]\nworkload = [{{ suite = \"toy\" }}]\n");
    let cells = plan(&text).cells(Scale::ONE, &small).unwrap();
    let canonical = cells[0].cell.canonical();
    assert!(!canonical.contains("settings") && !canonical.contains("layers"), "{canonical}");
}

#[test]
fn named_scales_are_parsed() {
    let text = format!(
        "{STORAGE}[axes]\nfilesystem = [\"ext4\"]\nworkload = [{{ suite = \"toy\" }}]\n\
         [scales.small]\nrepetitions = 3\nblock_size = [\"4KiB\", \"8KiB\"]\nfsck = false\n"
    );
    let parsed = plan(&text);
    let small = parsed.named_scale("small").unwrap();
    let settings: Vec<_> = small.settings.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(settings, ["repetitions=3", "block_size=4KiB,8KiB", "fsck=false"]);
    let numbered = text.replace("scales.small", "scales.\"1/64\"");
    let error = Plan::parse(&numbered, *VOCABULARY).unwrap_err();
    assert_eq!(error.message, "invalid scale name `1/64`: it is a number");
}

#[test]
fn layers_are_parsed() {
    let level = |layers: &str| {
        let text = format!(
            "{STORAGE}[axes]\nfilesystem = [{{ name = \"a\", type = \"ext4\", device_count = 2, \
             layers = [{layers}] }}]\nworkload = [{{ suite = \"toy\" }}]\n"
        );
        Plan::parse(&text, *VOCABULARY)
    };
    let good = level(
        "{ md = \"raid0\", chunk = \"64KiB\" }, { crypt = \"aes-xts-plain64\" }, \
         { thin = \"64KiB\" }, { cache = \"writeback\" }, { delay = \"20ms\" }, \
         { delay = \"5ms\", write_delay = \"0s\" }, { flakey = \"drop_writes\", up = \"5s\" }, \
         { dust = \"16-63, 7\", block_size = \"1MiB\" }, { log_writes = true }",
    );
    let level_of = good.unwrap().filesystems.remove(0);
    assert_eq!(level_of.devices, Some(2));
    let text = serde_json::to_string(&level_of.layers).unwrap();
    expect![[r#"[{"md":{"level":"raid0","chunk":65536}},{"crypt":{"cipher":"aes-xts-plain64","key_size":512}},{"thin":{"block":65536}},{"cache":{"mode":"writeback","block":262144}},{"delay":{"read":20000000,"write":20000000}},{"delay":{"read":5000000,"write":0}},{"flakey":{"fault":"drop_writes","up":5000000000,"down":1000000000}},{"dust":{"bad":[{"first":7,"last":7},{"first":16,"last":63}],"block":1048576}},"log-writes"]"#]].assert_eq(&text);
    let wrong = |layers: &str| {
        let error = level(layers).unwrap_err();
        format!("{}: {}\n", error.message, error.hint.unwrap_or_default())
    };
    let all: String = [
        "{ }",
        "{ md = \"raid7\" }",
        "{ md = \"raid0\", block_size = \"4KiB\" }",
        "{ thin = \"100KiB\" }",
        "{ md = \"raid0\", chunk = \"5KiB\" }",
        "{ md = \"raid0\", thin = \"64KiB\" }",
        "{ delay = \"5ms\", up = \"1s\" }",
        "{ delay = \"1500us\" }",
        "{ delay = \"2min\" }",
        "{ flakey = \"error_all\" }",
        "{ flakey = \"error\", down = \"0s\" }",
        "{ flakey = \"error\", up = \"500ms\" }",
        "{ dust = \"7-\" }",
        "{ dust = \"9-8\" }",
        "{ dust = \"7, 5-9\" }",
        "{ dust = \"0-1024\" }",
        "{ dust = \"0-18446744073709551615, 3\" }",
        "{ dust = \"7\", block_size = \"3KiB\" }",
        "{ log_writes = false }",
    ]
    .map(wrong)
    .concat();
    expect![[r#"
        this layer has no type: set one of md, crypt, thin, cache, delay, flakey, dust, log_writes
        unknown value `raid7`: use raid0, raid1, raid4, raid5, raid6, raid10, linear
        `md` does not have the key `block_size`: remove it from this layer
        invalid block size 100KiB: use a multiple of 64KiB
        invalid chunk 5KiB: use a power of two of at least 4KiB
        this layer has both `md` and `thin`: use two layers
        `delay` does not have the key `up`: remove it from this layer
        invalid duration 1500us: use a multiple of 1ms, at most 1min
        invalid duration 2min: use a multiple of 1ms, at most 1min
        unknown value `error_all`: use error, drop_writes, error_writes
        `down` is 0: set `down` to at least 1s, or remove the layer
        invalid duration 500ms: use a multiple of 1s, at most 1h
        invalid block numbers `7-`: use numbers and ranges such as "7, 16-63"
        invalid block numbers `9-8`: use numbers and ranges such as "7, 16-63"
        block ranges 5-9 and 7 overlap: list each block once
        1025 bad blocks; the maximum is 1024: increase `block_size`, so that there are fewer blocks
        block ranges 0-18446744073709551615 and 3 overlap: list each block once
        invalid block size 3KiB: use a power of two of at least 512
        `log_writes` is false: remove the layer, or set `log_writes = true`
    "#]]
    .assert_eq(&all);
}

#[test]
fn directories_reject_device_settings() {
    let on = |axes: &str| {
        let text = format!("[storage]\ndirectory = \"/srv\"\n[axes]\n{axes}\n");
        Plan::parse(&text, *VOCABULARY)
    };
    for setting in
        ["read_ahead = [\"1MiB\"]", "nr_requests = [64]", "write_cache = [\"write back\"]"]
    {
        let error = on(&format!("workload = [{{ suite = \"toy\" }}]\n{setting}")).unwrap_err();
        assert!(error.message.starts_with("storage is a directory"), "{}", error.message);
        let own = on(&format!("workload = [{{ suite = \"toy\", {setting} }}]")).unwrap_err();
        assert_eq!(error.message, own.message);
    }
    let own = on("workload = [{ suite = \"toy\", scheduler = [\"none\"] }]").unwrap_err();
    assert!(own.message.contains("`scheduler`"), "{}", own.message);
    let machine = "workload = [{ suite = \"toy\", online_cpus = [1] }]\ncpu_speed = [\"50%\"]\n\
                   dirty_threshold = [\"1%\"]\ntransparent_hugepage = [\"never\"]\ncpu_governor = [\"powersave\"]";
    let mut plan = on(machine).unwrap();
    assert_eq!(plan.consistent(), Ok(()));
    plan.set("read_ahead", "1MiB", *VOCABULARY).unwrap();
    assert!(plan.consistent().unwrap_err().message.contains("`read_ahead`"));
}

const ONE: &str = "[storage]\nimage_size = \"1GiB\"\n[axes]\nfilesystem = [\"ext4\"]\n\
                   workload = [{ suite = \"toy\" }]\n";

#[test]
fn defaults_depend_on_the_profile() {
    let of = |head: &str| {
        let plan = plan(&format!("{head}\n{ONE}"));
        (plan.aa_control(), plan.invalid_trials())
    };
    assert_eq!(of("profile = \"quick\""), (AaControl::None, InvalidTrials::Keep));
    assert_eq!(of(""), (AaControl::One, InvalidTrials::Rerun));
    assert_eq!(of("repetitions = 5"), (AaControl::None, InvalidTrials::Keep));
    assert_eq!(of("repetitions = 6"), (AaControl::One, InvalidTrials::Rerun));
    assert_eq!(of("profile = \"rigorous\""), (AaControl::PerWorkload, InvalidTrials::Rerun));
    let said = "profile = \"quick\"\naa_control = \"per-workload\"\ninvalid_trials = \"rerun\"";
    assert_eq!(of(said), (AaControl::PerWorkload, InvalidTrials::Rerun));
}

#[test]
fn time_limit_is_greater_than_0() {
    let time_limit = |text: &str| Plan::parse(&format!("time_limit = {text}\n{ONE}"), *VOCABULARY);
    assert_eq!(time_limit("\"2h\"").unwrap().time_limit, Some(Nanos(7_200_000_000_000)));
    assert!(time_limit("\"0s\"").is_err());
    let mut set = time_limit("\"2h\"").unwrap();
    set.set("time_limit", "90s", *VOCABULARY).unwrap();
    assert_eq!(set.time_limit, Some(Nanos(90_000_000_000)));
    assert!(set.set("time_limit", "0s", *VOCABULARY).is_err());
}

#[test]
fn invalid_trials_can_be_set_and_overridden() {
    let said = Plan::parse(&format!("invalid_trials = \"drop\"\n{ONE}"), *VOCABULARY).unwrap_err();
    assert_eq!(said.message, "unknown invalid_trials `drop`");
    assert_eq!(said.hint.as_deref(), Some("use rerun, keep"));
    let mut set = plan(ONE);
    set.set("invalid_trials", "keep", *VOCABULARY).unwrap();
    assert_eq!(set.invalid_trials(), InvalidTrials::Keep);
    assert!(set.set("invalid_trials", "drop", *VOCABULARY).is_err());
}

#[test]
fn guest_device_requires_an_icount_guest() {
    let text = |guest: &str, storage: &str| {
        let axes = "[axes]\nfilesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\" }]\n";
        format!("{guest}[storage]\nimage_size = \"1GiB\"\n{storage}{axes}")
    };
    let icount = "guest = \"icount\"\n";
    let usual = plan(&text(icount, ""));
    assert_eq!(usual.clock(), Clock::Instructions);
    assert_eq!((usual.guest_disk, usual.consistent()), (GuestDisk::default(), Ok(())));
    let late =
        plan(&text(icount, "guest_device = \"null_blk\"\nguest_device_latency = \"100us\"\n"));
    assert_eq!((late.clock(), late.guest_disk.latency()), (Clock::Virtual, Nanos(100_000)));
    assert_eq!(late.consistent(), Ok(()));
    assert_eq!(plan(&text("", "")).clock(), Clock::Wall);
    let refused =
        |guest: &str, storage: &str| plan(&text(guest, storage)).consistent().unwrap_err().message;
    let tcg = refused("guest = \"tcg\"\n", "guest_device_latency = \"1ms\"\n");
    assert_eq!(tcg, "`guest_device_latency` applies to icount guests only");
    let here = refused("", "guest_device = \"brd\"\n");
    assert_eq!(here, "`guest_device` applies to icount guests only");
    let brd = refused(icount, "guest_device = \"brd\"\nguest_device_latency = \"1ms\"\n");
    assert_eq!(brd, "brd does not support `guest_device_latency`");
    let several = refused(icount, "image_count = 2\n");
    assert!(several.starts_with("icount guests have one disk"), "{several}");
    check(
        &text(icount, "guest_device = \"loop\"\n"),
        expect![[r#"
            4:16 ["loop"] unknown guest_device `loop`
              use null_blk, brd
        "#]],
    );
    check(
        &text(icount, "guest_device_latency = \"2s\"\n"),
        expect![[r#"
            4:24 ["2s"] guest_device_latency is 2s
              the maximum is 1s
        "#]],
    );
}

#[test]
fn guest_keys_can_be_overridden() {
    let text = "[storage]\nimage_size = \"1GiB\"\n[axes]\nfilesystem = [\"ext4\"]\n\
                workload = [{ suite = \"toy\" }]\n";
    let mut plan = plan(text);
    for (key, value) in
        [("guest", "icount"), ("guest_device", "null_blk"), ("guest_device_latency", "20us")]
    {
        plan.set(key, value, *VOCABULARY).unwrap();
    }
    assert_eq!((plan.clock(), plan.consistent()), (Clock::Virtual, Ok(())));
    plan.set("guest_device_latency", "0", *VOCABULARY).unwrap();
    assert_eq!(plan.clock(), Clock::Instructions);
    let error = plan.set("guest_device", "disk", *VOCABULARY).unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("use null_blk, brd"));
    plan.set("guest", "uml", *VOCABULARY).unwrap();
    assert!(plan.consistent().is_err());
}

#[test]
fn kernels_are_separated_by_commas() {
    let text = "[axes]\nfilesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\" }]\n";
    let mut plan = plan(&format!("{STORAGE}{text}"));
    plan.set("kernel", "6.1, /k/linux.deb", *VOCABULARY).unwrap();
    let word = |text: &str| Value::Text(text.into());
    assert_eq!(
        plan.system_settings,
        [(SystemSetting::Kernel, vec![word("6.1"), word("/k/linux.deb")])]
    );
    for wrong in ["", "6.1,", "6.1,,6.12"] {
        plan.set("kernel", wrong, *VOCABULARY).unwrap_err();
    }
}

#[test]
fn cell_count_is_checked_before_cells_are_created() {
    let sizes = |count: usize| {
        (1..=count).map(|size| format!("\"{size}KiB\"")).collect::<Vec<_>>().join(", ")
    };
    let axes = |file: usize, block_size: usize| {
        format!(
            "[storage]\nimage_size = \"1GiB\"\n[axes]\nscheduler = [\"none\", \"bfq\"]\n\
             filesystem = [\"ext4\", \"xfs\"]\nworkload = [\n{{ suite = \"toy\" }},\n\
             {{ suite = \"toy\", file_size = [{}], block_size = [{}] }}]",
            sizes(file),
            sizes(block_size)
        )
    };
    let refused = |text: &str| {
        let error =
            plan(text).cells(Scale::ONE, &|_| panic!("parameters were expanded")).unwrap_err();
        (error.position(text).0, error.message, error.hint.unwrap())
    };
    let hint = "shorten the lists, or split the plan".to_owned();
    let message = "the plan has at least 16000004 cells; the maximum is 10000: filesystem 2 × \
                   scheduler 2 × file_size 2000 × block_size 2000 in the largest of 2 workloads";
    assert_eq!(refused(&axes(2000, 2000)), (8, message.to_owned(), hint));
    let most = plan(&axes(50, 49)).cells(Scale::ONE, &|point| Ok(vec![point])).unwrap();
    assert_eq!(most.len(), 4 + 4 * 50 * 49);
    // A suite may expand parameters into several combinations.
    let error = plan(&axes(50, 49)).cells(Scale::ONE, &|point| Ok(vec![point; 3])).unwrap_err();
    assert!(error.message.starts_with("the plan has at least 10"), "{error}");
}
