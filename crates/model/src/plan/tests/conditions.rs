//! Settings of the machine, conditions of one workload, scales with names, layers.

use super::*;
use crate::{clock::Clock, factor::Factor, guest::GuestDisk, units::Nanos};

const STORAGE: &str = "[storage]\nimage = \"1GiB\"\nimages = 2\n";

fn axes(axes: &str, expected: Expect) {
    check(&format!("{STORAGE}[axes]\nfilesystem = [\"ext4\"]\n{axes}"), expected);
}

#[test]
fn a_setting_of_the_machine_is_an_axis() {
    axes(
        r#"
workload = [{ suite = "toy" }]
read_ahead = ["128KiB", "4MiB"]
cpu_speed = ["100%", "50%"]
cpus = [2]
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
            7:14 ["fast"] `fast` is no share
              write whole percents: "50%"
        "#]],
    );
}

#[test]
fn a_workload_may_have_conditions_of_its_own() {
    axes(
        r#"
workload = [
    { suite = "toy", record = ["4KiB", "8KiB"] },
    { suite = "toy", record = "64KiB", scheduler = ["none", "bfq"], cpu_speed = ["100%", "50%"] },
]
"#,
        expect![[r"
            ext4: toy record=4KiB
            ext4: toy record=8KiB
            ext4: toy record=64KiB scheduler=none cpu_speed=100%
            ext4: toy record=64KiB scheduler=none cpu_speed=50%
            ext4: toy record=64KiB scheduler=bfq cpu_speed=100%
            ext4: toy record=64KiB scheduler=bfq cpu_speed=50%
        "]],
    );
}

fn plan(text: &str) -> Plan {
    Plan::parse(text, *VOCABULARY).unwrap()
}

#[test]
fn workloads_that_differ_in_conditions_alone_are_cells_of_their_own() {
    axes(
        r#"
workload = [
    { suite = "toy" },
    { suite = "toy", dirty = ["5%"] },
    { suite = "toy", dirty = ["9%", "5%"] },
]
"#,
        expect![[r#"
            ext4: toy
            ext4: toy dirty=5%
            ext4: toy dirty=9%
        "#]],
    );
}

#[test]
fn what_is_set_later_stands_for_all_workloads() {
    let text = format!(
        "{STORAGE}[axes]\nfilesystem = [\"ext4\"]\nworkload = [{{ suite = \"toy\", \
         scheduler = [\"none\"], cpus = [1] }}, {{ suite = \"toy\", record = [\"4KiB\", \"8KiB\"] }}]\n"
    );
    let mut plan = plan(&text);
    plan.set("cpus", "1,2", *VOCABULARY).unwrap();
    plan.set("scheduler", "bfq", *VOCABULARY).unwrap();
    plan.set("record", "..1KiB", *VOCABULARY).unwrap_err();
    plan.set("record", "..64KiB", *VOCABULARY).unwrap();
    let cells = plan.cells(Scale::ONE, &small).unwrap();
    let labels: Vec<_> = cells.iter().map(|cell| cell.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "toy record=64KiB cpus=1",
            "toy record=64KiB cpus=2",
            "toy record=4KiB cpus=1",
            "toy record=4KiB cpus=2",
            "toy record=8KiB cpus=1",
            "toy record=8KiB cpus=2"
        ]
    );
    assert!(cells.iter().all(|cell| cell.cell.scheduler.as_deref() == Some("bfq")));
    assert!(cells[1].cell.factors.contains_key(&Factor::Cpus));
    plan.set("record", "..4KiB", *VOCABULARY).unwrap();
    let cells = plan.cells(Scale::ONE, &small).unwrap();
    assert_eq!(cells.len(), 2, "a workload without any such value is left out");
}

#[test]
fn a_cell_without_settings_has_the_id_it_always_had() {
    let text =
        format!("{STORAGE}[axes]\nfilesystem = [\"ext4\"]\nworkload = [{{ suite = \"toy\" }}]\n");
    let cells = plan(&text).cells(Scale::ONE, &small).unwrap();
    let canonical = cells[0].cell.canonical();
    assert!(!canonical.contains("factors") && !canonical.contains("layers"), "{canonical}");
}

#[test]
fn scales_have_names() {
    let text = format!(
        "{STORAGE}[axes]\nfilesystem = [\"ext4\"]\nworkload = [{{ suite = \"toy\" }}]\n\
         [scales.small]\nrepeats = 3\nrecord = [\"4KiB\", \"8KiB\"]\nfsck = false\n"
    );
    let parsed = plan(&text);
    let small = parsed.named_scale("small").unwrap();
    let settings: Vec<_> = small.settings.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(settings, ["repeats=3", "record=4KiB,8KiB", "fsck=false"]);
    let numbered = text.replace("scales.small", "scales.\"1/64\"");
    let error = Plan::parse(&numbered, *VOCABULARY).unwrap_err();
    assert_eq!(error.message, "`1/64` is a scale already");
}

#[test]
fn layers_and_devices_are_read() {
    let level = |layers: &str| {
        let text = format!(
            "{STORAGE}[axes]\nfilesystem = [{{ name = \"a\", base = \"ext4\", devices = 2, \
             layers = [{layers}] }}]\nworkload = [{{ suite = \"toy\" }}]\n"
        );
        Plan::parse(&text, *VOCABULARY)
    };
    let good = level(
        "{ md = \"raid0\", chunk = \"64KiB\" }, { crypt = \"aes-xts-plain64\" }, \
         { thin = \"64KiB\" }, { cache = \"writeback\" }, { delay = \"20ms\" }, \
         { delay = \"5ms\", write = \"0s\" }, { flakey = \"drop_writes\", up = \"5s\" }, \
         { dust = \"16-63, 7\", block = \"1MiB\" }, { log_writes = true }",
    );
    let level_of = good.unwrap().filesystems.remove(0);
    assert_eq!(level_of.devices, Some(2));
    let text = serde_json::to_string(&level_of.layers).unwrap();
    expect![[r#"[{"md":{"level":"raid0","chunk":65536}},{"crypt":{"cipher":"aes-xts-plain64","key_bits":512}},{"thin":{"block":65536}},{"cache":{"mode":"writeback","block":262144}},{"delay":{"read":20000000,"write":20000000}},{"delay":{"read":5000000,"write":0}},{"flakey":{"fault":"drop_writes","up":5000000000,"down":1000000000}},{"dust":{"bad":[{"first":7,"last":7},{"first":16,"last":63}],"block":1048576}},"log-writes"]"#]].assert_eq(&text);
    let wrong = |layers: &str| {
        let error = level(layers).unwrap_err();
        format!("{}: {}\n", error.message, error.cure.unwrap_or_default())
    };
    let all: String = [
        "{ }",
        "{ md = \"raid7\" }",
        "{ md = \"raid0\", block = \"4KiB\" }",
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
        "{ dust = \"7\", block = \"3KiB\" }",
        "{ log_writes = false }",
    ]
    .map(wrong)
    .concat();
    expect![[r#"
        this layer is nothing: give it one of md, crypt, thin, cache, delay, flakey, dust, log_writes
        there is no `raid7` here: use raid0, raid1, raid4, raid5, raid6, raid10, linear
        `md` has no `block`: take it out of this layer
        a block of 100KiB: take a multiple of 64KiB
        a chunk of 5KiB: take a power of two from 4KiB on
        this layer has both `md` and `thin`: make two layers of it
        `delay` has no `up`: take it out of this layer
        a time of 1500us: take a multiple of 1ms, at most 1min
        a time of 2min: take a multiple of 1ms, at most 1min
        there is no `error_all` here: use error, drop_writes, error_writes
        this layer never fails: give it a `down` from 1s on, or take it out
        a time of 500ms: take a multiple of 1s, at most 1h
        `7-` names no blocks: name numbers and ranges, such as "7, 16-63"
        `9-8` names no blocks: name numbers and ranges, such as "7, 16-63"
        5-9 and 7 have blocks in common: name each block once
        1025 bad blocks, and 1024 is the most: make `block` larger, so that they are fewer
        0-18446744073709551615 and 3 have blocks in common: name each block once
        a block of 3KiB: take a power of two from 512 on
        this layer logs nothing: take it out, or say `log_writes = true`
    "#]]
    .assert_eq(&all);
}

#[test]
fn a_directory_has_no_devices_to_set() {
    let on = |axes: &str| {
        let text = format!("[storage]\ndirectory = \"/srv\"\n[axes]\n{axes}\n");
        Plan::parse(&text, *VOCABULARY)
    };
    for setting in
        ["read_ahead = [\"1MiB\"]", "queue_depth = [64]", "write_cache = [\"write back\"]"]
    {
        let error = on(&format!("workload = [{{ suite = \"toy\" }}]\n{setting}")).unwrap_err();
        assert!(error.message.starts_with("a directory has no device"), "{}", error.message);
        let own = on(&format!("workload = [{{ suite = \"toy\", {setting} }}]")).unwrap_err();
        assert_eq!(error.message, own.message);
    }
    let own = on("workload = [{ suite = \"toy\", scheduler = [\"none\"] }]").unwrap_err();
    assert!(own.message.contains("`scheduler`"), "{}", own.message);
    let machine = "workload = [{ suite = \"toy\", cpus = [1] }]\ncpu_speed = [\"50%\"]\n\
                   dirty = [\"1%\"]\nhuge_pages = [\"never\"]\ncpu_governor = [\"powersave\"]";
    let mut plan = on(machine).unwrap();
    assert_eq!(plan.consistent(), Ok(()));
    plan.set("read_ahead", "1MiB", *VOCABULARY).unwrap();
    assert!(plan.consistent().unwrap_err().message.contains("`read_ahead`"));
}

const ONE: &str = "[storage]\nimage = \"1GiB\"\n[axes]\nfilesystem = [\"ext4\"]\n\
                   workload = [{ suite = \"toy\" }]\n";

#[test]
fn how_sure_a_run_wants_to_be_decides_what_it_controls() {
    let of = |head: &str| {
        let plan = plan(&format!("{head}\n{ONE}"));
        (plan.twins(), plan.spoiled())
    };
    assert_eq!(of("profile = \"quick\""), (Twins::None, Spoiled::Keep));
    assert_eq!(of(""), (Twins::One, Spoiled::Repeat));
    assert_eq!(of("repeats = 5"), (Twins::None, Spoiled::Keep));
    assert_eq!(of("repeats = 6"), (Twins::One, Spoiled::Repeat));
    assert_eq!(of("profile = \"rigorous\""), (Twins::Each, Spoiled::Repeat));
    let said = "profile = \"quick\"\ntwins = \"each\"\ninvalid = \"repeat\"";
    assert_eq!(of(said), (Twins::Each, Spoiled::Repeat));
}

#[test]
fn a_budget_is_a_time_and_none_is_refused() {
    let budget = |text: &str| Plan::parse(&format!("budget = {text}\n{ONE}"), *VOCABULARY);
    assert_eq!(budget("\"2h\"").unwrap().budget, Some(Nanos(7_200_000_000_000)));
    assert!(budget("\"0s\"").is_err());
    let mut set = budget("\"2h\"").unwrap();
    set.set("budget", "90s", *VOCABULARY).unwrap();
    assert_eq!(set.budget, Some(Nanos(90_000_000_000)));
    assert!(set.set("budget", "0s", *VOCABULARY).is_err());
}

#[test]
fn what_becomes_of_spoiled_trials_can_be_said_and_set() {
    let said = Plan::parse(&format!("invalid = \"drop\"\n{ONE}"), *VOCABULARY).unwrap_err();
    assert_eq!(said.message, "`invalid` cannot be `drop`");
    assert_eq!(said.cure.as_deref(), Some("use repeat, keep"));
    let mut set = plan(ONE);
    set.set("invalid", "keep", *VOCABULARY).unwrap();
    assert_eq!(set.spoiled(), Spoiled::Keep);
    assert!(set.set("invalid", "drop", *VOCABULARY).is_err());
}

#[test]
fn the_disk_of_a_guest_that_counts_is_named_in_storage() {
    let text = |guest: &str, storage: &str| {
        let axes = "[axes]\nfilesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\" }]\n";
        format!("{guest}[storage]\nimage = \"1GiB\"\n{storage}{axes}")
    };
    let counted = "guest = \"counted\"\n";
    let usual = plan(&text(counted, ""));
    assert_eq!(usual.clock(), Clock::Instructions);
    assert_eq!((usual.guest_disk, usual.consistent()), (GuestDisk::default(), Ok(())));
    let late = plan(&text(counted, "guest_device = \"null_blk\"\nguest_latency = \"100us\"\n"));
    assert_eq!((late.clock(), late.guest_disk.latency()), (Clock::Virtual, Nanos(100_000)));
    assert_eq!(late.consistent(), Ok(()));
    assert_eq!(plan(&text("", "")).clock(), Clock::Wall);
    let refused =
        |guest: &str, storage: &str| plan(&text(guest, storage)).consistent().unwrap_err().message;
    let tcg = refused("guest = \"tcg\"\n", "guest_latency = \"1ms\"\n");
    assert_eq!(tcg, "`guest_latency` is of guests that count instructions, and the plan's is not");
    let here = refused("", "guest_device = \"brd\"\n");
    assert_eq!(here, "`guest_device` is of guests that count instructions, and the plan's is not");
    let brd = refused(counted, "guest_device = \"brd\"\nguest_latency = \"1ms\"\n");
    assert_eq!(brd, "brd answers at once and has no `guest_latency`");
    let several = refused(counted, "images = 2\n");
    assert!(several.starts_with("a guest that counts instructions has one disk"), "{several}");
    check(
        &text(counted, "guest_device = \"loop\"\n"),
        expect![[r#"
        4:16 ["loop"] there is no guest device `loop`
          use null_blk, brd
    "#]],
    );
    check(
        &text(counted, "guest_latency = \"2s\"\n"),
        expect![[r#"
        4:17 ["2s"] a guest latency of 2s is too long
          the most is 1s
    "#]],
    );
}

#[test]
fn the_guest_and_its_disk_are_set_from_outside() {
    let text = "[storage]\nimage = \"1GiB\"\n[axes]\nfilesystem = [\"ext4\"]\n\
                workload = [{ suite = \"toy\" }]\n";
    let mut plan = plan(text);
    for (key, value) in
        [("guest", "counted"), ("guest_device", "null_blk"), ("guest_latency", "20us")]
    {
        plan.set(key, value, *VOCABULARY).unwrap();
    }
    assert_eq!((plan.clock(), plan.consistent()), (Clock::Virtual, Ok(())));
    plan.set("guest_latency", "0", *VOCABULARY).unwrap();
    assert_eq!(plan.clock(), Clock::Instructions);
    let error = plan.set("guest_device", "disk", *VOCABULARY).unwrap_err();
    assert_eq!(error.cure.as_deref(), Some("use null_blk, brd"));
    plan.set("guest", "uml", *VOCABULARY).unwrap();
    assert!(plan.consistent().is_err());
}

#[test]
fn several_kernels_are_set_by_one_text() {
    let text = "[axes]\nfilesystem = [\"ext4\"]\nworkload = [{ suite = \"toy\" }]\n";
    let mut plan = plan(&format!("{STORAGE}{text}"));
    plan.set("kernel", "6.1, /k/linux.deb", *VOCABULARY).unwrap();
    let word = |text: &str| Value::Text(text.into());
    assert_eq!(plan.factors, [(Factor::Kernel, vec![word("6.1"), word("/k/linux.deb")])]);
    for wrong in ["", "6.1,", "6.1,,6.12"] {
        plan.set("kernel", wrong, *VOCABULARY).unwrap_err();
    }
}

#[test]
fn the_number_of_cells_is_checked_before_any_is_made() {
    let sizes = |count: usize| {
        (1..=count).map(|size| format!("\"{size}KiB\"")).collect::<Vec<_>>().join(", ")
    };
    let axes = |file: usize, record: usize| {
        format!(
            "[storage]\nimage = \"1GiB\"\n[axes]\nscheduler = [\"none\", \"bfq\"]\n\
             filesystem = [\"ext4\", \"xfs\"]\nworkload = [\n{{ suite = \"toy\" }},\n\
             {{ suite = \"toy\", file = [{}], record = [{}] }}]",
            sizes(file),
            sizes(record)
        )
    };
    let refused = |text: &str| {
        let error = plan(text).cells(Scale::ONE, &|_| panic!("a point was made")).unwrap_err();
        (error.position(text).0, error.message, error.cure.unwrap())
    };
    let hint = "shorten its lists, or split the plan".to_owned();
    let message = "the plan has at least 16000004 cells, the limit is 10000: filesystem 2 × \
                   scheduler 2 × file 2000 × record 2000 in the largest of 2 workloads";
    assert_eq!(refused(&axes(2000, 2000)), (8, message.to_owned(), hint));
    let most = plan(&axes(50, 49)).cells(Scale::ONE, &|point| Ok(vec![point])).unwrap();
    assert_eq!(most.len(), 4 + 4 * 50 * 49);
    // A suite may make several points of one.
    let error = plan(&axes(50, 49)).cells(Scale::ONE, &|point| Ok(vec![point; 3])).unwrap_err();
    assert!(error.message.starts_with("the plan has at least 10"), "{error}");
}
