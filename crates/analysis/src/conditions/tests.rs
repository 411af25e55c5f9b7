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
        let Difference { severity, what, first, second } = difference;
        let told = |value: &Option<String>| value.clone().unwrap_or_else(|| "·".into());
        format!("{} {what}: {} | {}\n", severity.name(), told(first), told(second))
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
        severe device.loop[0].queue.rotational: 0 | 1
        severe filesystem.ext4.mounted: rw,noatime | rw,relatime
        severe filesystem.ext4.options: ext4, mkfs defaults, mount noatime | ext4, mkfs defaults, mount defaults
        severe kernel.release: 6.8 | 6.9
        severe run.profile: quick | rigorous
        other cpu.turbo_off: · | 1
        other memory.total_bytes: 16800000000 | 16800400000
        other set.record: · | 4KiB
        other vm.swappiness: 60 | ·
    "#]].assert_eq(&told(&conditions));
    assert_eq!(conditions.shared, ["ext4 · iozone"]);
    assert_eq!(conditions.only_first, ["xfs · iozone"]);
    assert_eq!(conditions.only_second, ["btrfs · iozone"]);
    assert_eq!(conditions.at(Severity::Other).count(), 4);
}

#[test]
fn another_amount_of_memory_is_severe() {
    let of = |bytes: &str| run(&[], &[("memory.total_bytes", bytes)]);
    let conditions = Conditions::of(&of("16000000000"), &of("8000000000"));
    assert_eq!(conditions.at(Severity::Severe).count(), 1);
}
