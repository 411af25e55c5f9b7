use std::collections::BTreeMap;

use expect_test::expect;
use model::{
    Cell, Environment, FilesystemLevel, Fullness, Nanos, Point, Profile, Scale,
    record::{CellState, Outcome, RunInfo, TrialRecord},
};

use super::*;

fn cell(filesystem: &str) -> CellRecord {
    let workload = Point { suite: "iozone".into(), parameters: BTreeMap::new() };
    let cell = Cell {
        filesystem: FilesystemLevel::plain(filesystem),
        workload,
        scheduler: None,
        fullness: Fullness(0),
        factors: Default::default(),
        twin: false,
    };
    CellRecord {
        id: cell.id(),
        cell,
        label: "iozone".into(),
        state: CellState::Open,
        phases: Vec::new(),
    }
}

fn trial(cell: usize, options: &str) -> TrialRecord {
    let mut environment = Environment::default();
    environment.set("mount.options", options);
    TrialRecord {
        cell,
        repeat: 0,
        attempt: 0,
        started_unix: Nanos(0),
        elapsed: Nanos(1),
        outcome: Outcome::Measured,
        samples: Vec::new(),
        histograms: Vec::new(),
        series: Vec::new(),
        evidence: Vec::new(),
        warnings: Vec::new(),
        actions: Vec::new(),
        environment,
    }
}

fn run(filesystems: &[&str], facts: &[(&str, &str)]) -> RunRecord {
    let mut environment = Environment::default();
    for (name, value) in facts {
        environment.set(*name, *value);
    }
    RunRecord {
        info: RunInfo {
            id: format!("run-{}", facts.len()),
            title: "a run".into(),
            plan_name: "plan".into(),
            plan_text: String::new(),
            amendments: Vec::new(),
            scale: Scale::ONE,
            profile: Profile::Quick,
            repeats: None,
            seed: facts.len() as u64,
            view: None,
            storage: "image file of 1GiB (full allocation) on a loop device".into(),
            started_unix: Nanos(facts.len() as u64),
            ended_unix: None,
            program: "fslab 0.1.0".into(),
        },
        environment,
        cells: filesystems.iter().map(|name| cell(name)).collect(),
        trials: Vec::new(),
        warnings: Vec::new(),
    }
}

fn told(conditions: &Conditions) -> String {
    let line = |difference: &Difference| {
        let Difference { severity, what, first, second, way } = difference;
        let way = way.map_or("", Way::name);
        let told = |value: &Option<String>| value.clone().unwrap_or_else(|| "·".into());
        let word = format!("{} {way}", severity.name());
        format!("{} {what}: {} | {}\n", word.trim_end(), told(first), told(second))
    };
    conditions.differences.iter().map(line).collect()
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let run = run(&["ext4"], &[("kernel.release", "6.8")]);
    let conditions = Conditions::of(&run, &run);
    assert_eq!(conditions.differences, []);
    assert_eq!(conditions.shared, ["ext4 · iozone"]);
    assert!(conditions.only_first.is_empty() && conditions.only_second.is_empty());
}

#[test]
fn what_always_differs_is_not_told() {
    let first = run(
        &["ext4"],
        &[
            ("device.loop3.queue.scheduler", "none"),
            ("device.loop12.queue.scheduler", "bfq"),
            ("device.loop3.loop.backing_file", "/var/tmp/fslab-a-0.img"),
            ("generator.null_engine_4KiB_ns_per_op", "31"),
            ("clock.cost_ns", "22"),
            ("backing.device", "vda1"),
            ("backing.usable_bytes", "1000"),
            ("device.vda1.queue.rotational", "0"),
        ],
    );
    let second = run(
        &["ext4"],
        &[
            ("device.loop0.queue.scheduler", "none"),
            ("device.loop1.queue.scheduler", "bfq"),
            ("device.loop0.loop.backing_file", "/var/tmp/fslab-b-0.img"),
            ("backing.device", "sda2"),
            ("device.sda2.queue.rotational", "0"),
        ],
    );
    expect![""].assert_eq(&told(&Conditions::of(&first, &second)));
}

#[test]
fn differences_come_by_severity() {
    let mut first = run(
        &["ext4", "xfs"],
        &[
            ("kernel.release", "6.8"),
            ("vm.swappiness", "60"),
            ("memory.total_bytes", "16800000000"),
            ("device.loop3.queue.rotational", "0"),
        ],
    );
    let mut second = run(
        &["ext4", "btrfs"],
        &[
            ("kernel.release", "6.9"),
            ("memory.total_bytes", "16800400000"),
            ("device.loop0.queue.rotational", "1"),
            ("cpu.turbo_off", "1"),
        ],
    );
    second.info.profile = Profile::Rigorous;
    second.info.amendments = vec![("record".into(), "4KiB".into()), ("seed".into(), "7".into())];
    first.cells[0].cell.filesystem.mount = "noatime".into();
    first.trials = vec![trial(0, "rw,noatime"), trial(0, "rw,noatime"), trial(1, "rw")];
    second.trials = vec![trial(0, "rw,relatime")];
    let conditions = Conditions::of(&first, &second);
    expect![[r#"
        severe storage device.loop[0].queue.rotational: 0 | 1
        severe filesystem filesystem.ext4.mounted: rw,noatime | rw,relatime
        severe filesystem filesystem.ext4.options: ext4, mkfs defaults, mount noatime | ext4, mkfs defaults, mount defaults
        severe kernel kernel.release: 6.8 | 6.9
        other cpu.turbo_off: · | 1
        other memory.total_bytes: 16800000000 | 16800400000
        other run.profile: quick | rigorous
        other set.record: · | 4KiB
        other vm.swappiness: 60 | ·
    "#]].assert_eq(&told(&conditions));
    assert_eq!(conditions.shared, ["ext4 · iozone"]);
    assert_eq!(conditions.only_first, ["xfs · iozone"]);
    assert_eq!(conditions.only_second, ["btrfs · iozone"]);
    assert_eq!(conditions.at(Severity::Other).count(), 5);
}

#[test]
fn another_amount_of_memory_is_severe() {
    let of = |bytes: &str| run(&[], &[("memory.total_bytes", bytes)]);
    let conditions = Conditions::of(&of("16000000000"), &of("8000000000"));
    assert_eq!(conditions.at(Severity::Severe).count(), 1);
}

/// The ways that two lists of facts belong to.
fn ways(first: &[(&str, &str)], second: &[(&str, &str)]) -> Vec<&'static str> {
    let conditions = Conditions::of(&run(&["ext4"], first), &run(&["ext4"], second));
    conditions.ways().into_iter().map(Way::name).collect()
}

#[test]
fn a_severe_difference_belongs_to_one_way() {
    let cases: [(&str, &str, &str, &[&str]); 13] = [
        ("kernel.release", "6.1", "6.12", &["kernel"]),
        ("kernel.version", "#1 SMP", "#2 SMP", &["kernel"]),
        ("kernel.command_line", "BOOT_IMAGE=/a ro", "BOOT_IMAGE=/b rw", &[]),
        ("kernel.command_line", "ro", "ro mitigations=off", &["kernel"]),
        ("cpu.mitigation.meltdown", "Mitigation: PTI", "Vulnerable", &["kernel"]),
        ("cpu.model", "one", "other", &["machine"]),
        ("memory.total_bytes", "16000000000", "32000000000", &["machine"]),
        ("memory.limit_bytes", "134217728", "268435456", &["settings"]),
        ("cpu.governor", "performance", "powersave", &["settings"]),
        ("device.sda.queue.scheduler", "none", "bfq", &["settings"]),
        ("device.sda.model", "one", "other", &["storage"]),
        ("backing.fstype", "ext4", "xfs", &["storage"]),
        ("memory.swap_in_use", "no", "yes", &[]),
    ];
    for (name, first, second, expected) in cases {
        assert_eq!(ways(&[(name, first)], &[(name, second)]), expected, "{name}");
        assert_eq!(ways(&[(name, second)], &[(name, first)]), expected, "{name} the other way");
    }
}

#[test]
fn what_makes_trials_count_is_a_way_and_what_makes_them_many_is_none() {
    let with = |key: &str, value: &str| {
        let mut run = run(&["ext4"], &[]);
        run.info.amendments = vec![(key.into(), value.into())];
        run
    };
    let ways =
        |other: &RunRecord| Vec::from_iter(Conditions::of(&run(&["ext4"], &[]), other).ways());
    assert_eq!(ways(&with("invalid", "keep")), [Way::Plan]);
    for (key, value) in [("budget", "2h"), ("twins", "each"), ("fsck", "false"), ("repeats", "9")] {
        assert_eq!(ways(&with(key, value)), [], "{key}");
    }
    let mut other = run(&["ext4"], &[]);
    other.info.profile = Profile::Rigorous;
    assert_eq!(ways(&other), []);
}

#[test]
fn what_follows_from_another_condition_belongs_to_its_way() {
    let facts = |model, meltdown| [("cpu.model", model), ("cpu.mitigation.meltdown", meltdown)];
    assert_eq!(ways(&facts("one", "Not affected"), &facts("other", "PTI")), ["machine"]);
    let mut first = run(&["ext4"], &[("kernel.release", "6.1")]);
    let mut second = run(&["ext4"], &[("kernel.release", "6.12")]);
    first.trials = vec![trial(0, "rw,relatime")];
    second.trials = vec![trial(0, "rw,relatime,more")];
    assert_eq!(Vec::from_iter(Conditions::of(&first, &second).ways()), [Way::Kernel]);
    second.cells[0].cell.filesystem.mount = "more".into();
    let ways = Conditions::of(&first, &second).ways();
    assert_eq!(Vec::from_iter(ways), [Way::Kernel, Way::Filesystem]);
}

#[test]
fn a_measured_directory_is_told_by_what_is_mounted_there() {
    let of = |place: &str, source: &str, kind: &str| {
        let facts = [("backing.source", source), ("backing.fstype", kind)];
        let mut run = run(&["directory"], &facts);
        run.info.storage = format!("directory {place}");
        run
    };
    let ways =
        |one: &RunRecord, other: &RunRecord| Vec::from_iter(Conditions::of(one, other).ways());
    let first = of("/a", "/dev/sda1", "ext4");
    assert_eq!(ways(&first, &of("/b", "/dev/sda1", "ext4")), []);
    assert_eq!(ways(&first, &of("/a", "/dev/sda1", "xfs")), [Way::Filesystem]);
    let both = [Way::Storage, Way::Filesystem];
    assert_eq!(ways(&first, &of("/b", "/dev/sdb1", "xfs")), both);
}

#[test]
fn the_memory_limit_is_no_matter_of_the_storage() {
    let of = |words: &str| {
        let mut run = run(&["ext4"], &[]);
        run.info.storage = format!("image file of 1GiB on a loop device{words}");
        run
    };
    let conditions = Conditions::of(&of(", memory limited to 1GiB"), &of(""));
    assert_eq!(Vec::from_iter(conditions.ways()), [Way::Settings]);
}

#[test]
fn every_way_has_its_name() {
    for way in Way::ALL {
        assert_eq!(Way::named(way.name()), Some(way));
    }
    assert_eq!(Way::named("weather"), None);
}
