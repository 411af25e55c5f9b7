use std::collections::BTreeMap;

use expect_test::expect;
use model::{
    Cell, Environment, FilesystemLevel, FillLevel, Nanos, Profile, Scale, WorkloadParameters,
    record::{CellState, Outcome, RunInfo, TrialRecord},
};

use super::*;

fn cell(filesystem: &str) -> CellRecord {
    let workload = WorkloadParameters { suite: "iozone".into(), parameters: BTreeMap::new() };
    let cell = Cell {
        filesystem: FilesystemLevel::plain(filesystem),
        workload,
        scheduler: None,
        fill_level: FillLevel(0),
        settings: Default::default(),
        options: Default::default(),
        aa_duplicate: false,
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
        repetition: 0,
        attempt: 0,
        started_unix: Nanos(0),
        elapsed: Nanos(1),
        outcome: Outcome::Measured,
        samples: Vec::new(),
        histograms: Vec::new(),
        series: Vec::new(),
        activity: Vec::new(),
        warnings: Vec::new(),
        actions: Vec::new(),
        environment,
        hosts: Vec::new(),
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
            overrides: Vec::new(),
            scale: Scale::ONE,
            profile: Profile::Quick,
            repetitions: None,
            seed: facts.len() as u64,
            study: None,
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

fn result(conditions: &Conditions) -> String {
    let line = |difference: &Difference| {
        let Difference { severity, what, first, second, aspect } = difference;
        let aspect = aspect.map_or("", Aspect::name);
        let result = |value: &Option<String>| value.clone().unwrap_or_else(|| "·".into());
        let word = format!("{} {aspect}", severity.name());
        format!("{} {what}: {} | {}\n", word.trim_end(), result(first), result(second))
    };
    conditions.differences.iter().map(line).collect()
}

#[test]
fn run_does_not_differ_from_itself() {
    let run = run(&["ext4"], &[("kernel.release", "6.8")]);
    let conditions = Conditions::between(&run, &run);
    assert_eq!(conditions.differences, []);
    assert_eq!(conditions.shared, ["ext4 · iozone"]);
    assert!(conditions.only_first.is_empty() && conditions.only_second.is_empty());
}

#[test]
fn always_different_facts_are_omitted() {
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
    expect![""].assert_eq(&result(&Conditions::between(&first, &second)));
}

#[test]
fn differences_are_sorted_by_severity() {
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
    second.info.overrides = vec![("block_size".into(), "4KiB".into()), ("seed".into(), "7".into())];
    first.cells[0].cell.filesystem.mount = "noatime".into();
    first.trials = vec![trial(0, "rw,noatime"), trial(0, "rw,noatime"), trial(1, "rw")];
    second.trials = vec![trial(0, "rw,relatime")];
    let conditions = Conditions::between(&first, &second);
    expect![[r#"
        severe storage device.loop[0].queue.rotational: 0 | 1
        severe filesystem filesystem.ext4.mounted: rw,noatime | rw,relatime
        severe filesystem filesystem.ext4.options: ext4, mkfs defaults, mount noatime | ext4, mkfs defaults, mount defaults
        severe kernel kernel.release: 6.8 | 6.9
        other cpu.turbo_off: · | 1
        other memory.total_bytes: 16800000000 | 16800400000
        other run.profile: quick | rigorous
        other set.block_size: · | 4KiB
        other vm.swappiness: 60 | ·
    "#]].assert_eq(&result(&conditions));
    assert_eq!(conditions.shared, ["ext4 · iozone"]);
    assert_eq!(conditions.only_first, ["xfs · iozone"]);
    assert_eq!(conditions.only_second, ["btrfs · iozone"]);
    assert_eq!(conditions.with_severity(Severity::Other).count(), 5);
}

#[test]
fn memory_size_difference_is_severe() {
    let of = |bytes: &str| run(&[], &[("memory.total_bytes", bytes)]);
    let conditions = Conditions::between(&of("16000000000"), &of("8000000000"));
    assert_eq!(conditions.with_severity(Severity::Severe).count(), 1);
}

/// Aspects of the differences between two lists of facts.
fn aspects(first: &[(&str, &str)], second: &[(&str, &str)]) -> Vec<&'static str> {
    let conditions = Conditions::between(&run(&["ext4"], first), &run(&["ext4"], second));
    conditions.aspects().into_iter().map(Aspect::name).collect()
}

#[test]
fn severe_difference_belongs_to_one_aspect() {
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
        assert_eq!(aspects(&[(name, first)], &[(name, second)]), expected, "{name}");
        assert_eq!(aspects(&[(name, second)], &[(name, first)]), expected, "{name} reversed");
    }
}

#[test]
fn trial_validity_is_an_aspect_and_repetition_count_is_not() {
    let with = |key: &str, value: &str| {
        let mut run = run(&["ext4"], &[]);
        run.info.overrides = vec![(key.into(), value.into())];
        run
    };
    let aspects = |other: &RunRecord| {
        Vec::from_iter(Conditions::between(&run(&["ext4"], &[]), other).aspects())
    };
    assert_eq!(aspects(&with("invalid_trials", "keep")), [Aspect::Plan]);
    for (key, value) in [
        ("time_limit", "2h"),
        ("aa_control", "per-workload"),
        ("fsck", "false"),
        ("repetitions", "9"),
    ] {
        assert_eq!(aspects(&with(key, value)), [], "{key}");
    }
    let mut other = run(&["ext4"], &[]);
    other.info.profile = Profile::Rigorous;
    assert_eq!(aspects(&other), []);
}

#[test]
fn derived_condition_belongs_to_aspect_of_its_cause() {
    let facts = |model, meltdown| [("cpu.model", model), ("cpu.mitigation.meltdown", meltdown)];
    assert_eq!(aspects(&facts("one", "Not affected"), &facts("other", "PTI")), ["machine"]);
    let mut first = run(&["ext4"], &[("kernel.release", "6.1")]);
    let mut second = run(&["ext4"], &[("kernel.release", "6.12")]);
    first.trials = vec![trial(0, "rw,relatime")];
    second.trials = vec![trial(0, "rw,relatime,more")];
    assert_eq!(Vec::from_iter(Conditions::between(&first, &second).aspects()), [Aspect::Kernel]);
    second.cells[0].cell.filesystem.mount = "more".into();
    let aspects = Conditions::between(&first, &second).aspects();
    assert_eq!(Vec::from_iter(aspects), [Aspect::Kernel, Aspect::Filesystem]);
}

#[test]
fn measured_directory_is_identified_by_its_mount() {
    let of = |place: &str, source: &str, kind: &str| {
        let facts = [("backing.source", source), ("backing.fstype", kind)];
        let mut run = run(&["directory"], &facts);
        run.info.storage = format!("directory {place}");
        run
    };
    let aspects = |one: &RunRecord, other: &RunRecord| {
        Vec::from_iter(Conditions::between(one, other).aspects())
    };
    let first = of("/a", "/dev/sda1", "ext4");
    assert_eq!(aspects(&first, &of("/b", "/dev/sda1", "ext4")), []);
    assert_eq!(aspects(&first, &of("/a", "/dev/sda1", "xfs")), [Aspect::Filesystem]);
    let both = [Aspect::Storage, Aspect::Filesystem];
    assert_eq!(aspects(&first, &of("/b", "/dev/sdb1", "xfs")), both);
}

#[test]
fn memory_limit_is_not_a_storage_difference() {
    let limited = run(&["ext4"], &[("memory.limit_bytes", "1073741824")]);
    let conditions = Conditions::between(&limited, &run(&["ext4"], &[]));
    assert_eq!(Vec::from_iter(conditions.aspects()), [Aspect::Settings]);
}

#[test]
fn every_aspect_has_a_name() {
    for aspect in Aspect::ALL {
        assert_eq!(Aspect::from_name(aspect.name()), Some(aspect));
    }
    assert_eq!(Aspect::from_name("weather"), None);
}
