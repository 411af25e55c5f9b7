use model::{
    Environment, FilesystemLevel, FillLevel, Metric, WorkloadParameters,
    activity::{HostCpu, LogLine},
    record::Outcome,
};

use super::*;

fn cell() -> Cell {
    Cell {
        filesystem: FilesystemLevel::plain("ext4"),
        workload: WorkloadParameters { suite: "iozone".into(), parameters: Default::default() },
        scheduler: None,
        fill_level: FillLevel(0),
        settings: Default::default(),
        options: Default::default(),
        aa_duplicate: false,
    }
}

fn phases() -> Vec<PhaseInfo> {
    let phase = |name: &str, role| PhaseInfo {
        name: name.into(),
        group: "writing".into(),
        role,
        primary: Metric::Throughput,
        cache: None,
    };
    vec![
        phase("prepare", Role::Prepare),
        phase("write", Role::Measure),
        phase("read", Role::Measure),
    ]
}

fn trial() -> TrialRecord {
    TrialRecord {
        cell: 0,
        repetition: 0,
        attempt: 0,
        started_unix: Nanos(0),
        elapsed: Nanos(0),
        outcome: Outcome::Measured,
        samples: Vec::new(),
        histograms: Vec::new(),
        series: Vec::new(),
        activity: Vec::new(),
        warnings: Vec::new(),
        actions: Vec::new(),
        environment: Environment::default(),
        hosts: Vec::new(),
    }
}

/// Phase of this many milliseconds on two CPUs, with this much CPU time of other processes.
fn seen(millis: u64, steal: u64, others: u64) -> SystemActivity {
    let of = |millis: u64| Nanos(millis * 1_000_000);
    let host = HostCpu { processors: 2, steal: of(steal), ..HostCpu::default() };
    let cpu = Some(CpuActivity { host, others_total: of(others), ..CpuActivity::default() });
    SystemActivity { window: of(millis), cpu, ..SystemActivity::default() }
}

/// Reason for a trial with this system activity and these warnings.
fn verdict(
    activity: &[(&str, SystemActivity)],
    warnings: &[Warning],
    own_devices: bool,
) -> Option<String> {
    let (cell, phases) = (cell(), phases());
    let located = |warning: &Warning| (Some("write".to_owned()), warning.clone());
    let trial = TrialRecord {
        activity: activity.iter().map(|(at, seen)| ((*at).to_owned(), seen.clone())).collect(),
        warnings: warnings.iter().map(located).collect(),
        ..trial()
    };
    reason(&trial, &TrialContext { cell: &cell, phases: &phases, own_devices, usual: None })
}

#[test]
fn steal_counts_above_two_percent_of_all_cpus() {
    assert_eq!(verdict(&[("write", seen(2000, 79, 0))], &[], true), None);
    let why = verdict(&[("write", seen(2000, 81, 0))], &[], true).unwrap();
    assert_eq!(why, "the hypervisor stole 2.0 % of the CPU time in write");
}

#[test]
fn a_delay_in_a_short_phase_does_not_invalidate_a_trial() {
    assert_eq!(verdict(&[("write", seen(100, 50, 100))], &[], true), None);
    // Several short phases together are long enough.
    let short = ("write", seen(600, 60, 0));
    let why = verdict(&[short.clone(), ("read", short.1)], &[], true).unwrap();
    assert!(why.ends_with("in its short phases"), "{why}");
}

#[test]
fn only_measured_phases_are_judged() {
    let disturbed = seen(2000, 1000, 1000);
    for unmeasured in ["prepare", "mkfs"] {
        assert_eq!(verdict(&[(unmeasured, disturbed.clone())], &[], true), None);
    }
}

#[test]
fn ordinary_background_load_is_accepted() {
    // 9 % of two CPUs used by other processes, which `other-cpu-load` reports.
    assert_eq!(verdict(&[("write", seen(2000, 0, 360))], &[], true), None);
    let why = verdict(&[("write", seen(2000, 0, 440))], &[], true).unwrap();
    assert_eq!(why, "other processes used 11.0 % of the CPU time in write");
}

#[test]
fn cpu_throttling_invalidates_a_trial() {
    let throttled = SystemActivity { throttled: Some(3), ..seen(10, 0, 0) };
    let why = verdict(&[("write", throttled)], &[], true).unwrap();
    assert_eq!(why, "the CPU was throttled (3 events)");
}

#[test]
fn other_io_counts_on_dedicated_devices_only() {
    let foreign = |share| Warning::OtherIoLoad {
        device: "sda".into(),
        bytes: model::Bytes::mib(9),
        share: Ratio(share),
    };
    let why = verdict(&[], &[foreign(0.08)], true).unwrap();
    assert_eq!(why, "other I/O on sda: 8.0 % of its bytes");
    assert_eq!(verdict(&[], &[foreign(0.08)], false), None, "an image on a shared disk");
    assert_eq!(verdict(&[], &[], true), None);
}

#[test]
fn kernel_messages_about_stalls_or_resets_count() {
    let logged = |text: &str| {
        let line = LogLine { level: 3, fatal: false, text: text.into() };
        verdict(&[("write", SystemActivity { log: vec![line], ..seen(10, 0, 0) })], &[], true)
    };
    for spoiling in [
        "INFO: task kworker/0:1:55 blocked for more than 120 seconds.",
        "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [fslab:99]",
        "rcu: INFO: rcu_preempt self-detected stall on CPU",
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "I/O error, dev sdb, sector 2048 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2",
        "ata3.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen",
        "sd 0:0:0:0: Power-on or device reset occurred",
        "nvme nvme0: I/O 960 QID 26 timeout, reset controller",
        "Out of memory: Killed process 99 (fslab) total-vm:1kB",
        "fslab invoked oom-killer: gfp_mask=0x0, order=0, oom_score_adj=0",
    ] {
        assert!(logged(spoiling).is_some_and(|why| why.contains(spoiling)), "{spoiling}");
    }
    for harmless in [
        "EXT4-fs (loop0): mounted filesystem r/w with ordered data mode",
        "operation not supported error, dev loop0, sector 0 op 0x9:(WRITE_ZEROES)",
        "loop0: detected capacity change from 0 to 2097152",
    ] {
        assert_eq!(logged(harmless), None, "{harmless}");
    }
}

#[test]
fn lazy_initialization_counts_unless_the_plan_enables_it() {
    let background = |who: &str| Warning::DeferredWork { who: who.into(), time: Nanos(20_000_000) };
    assert!(verdict(&[], &[background("ext4lazyinit")], true).is_some());
    // Deferred work of btrfs recurs in every trial: it is part of the workload.
    assert_eq!(verdict(&[], &[background("btrfs-cleaner")], true), None);
    let (mut cell, phases) = (cell(), phases());
    cell.filesystem.mkfs = vec!["-E".into(), "lazy_itable_init=1".into()];
    let warnings = vec![(Some("write".into()), background("ext4lazyinit"))];
    let known = TrialContext { cell: &cell, phases: &phases, own_devices: true, usual: None };
    assert_eq!(reason(&TrialRecord { warnings, ..trial() }, &known), None);
}

#[test]
fn a_changed_setting_invalidates_a_trial_unless_it_was_never_applied() {
    let misread = |setting: &str| {
        let (wanted, found) = ("1".into(), "2".into());
        (None, Warning::SettingNotApplied { setting: setting.into(), wanted, found })
    };
    let (cell, phases) = (cell(), phases());
    let usual = BTreeSet::from(["read_ahead".to_owned()]);
    let verdict = |setting, usual| {
        let known = TrialContext { cell: &cell, phases: &phases, own_devices: true, usual };
        reason(&TrialRecord { warnings: vec![misread(setting)], ..trial() }, &known)
    };
    assert_eq!(verdict("read_ahead", None), None, "the first trial has no predecessor");
    assert_eq!(verdict("read_ahead", Some(&usual)), None);
    let why = verdict("scheduler", Some(&usual)).unwrap();
    assert_eq!(why, "scheduler was not applied, unlike in earlier trials");
}

#[test]
fn damage_and_slow_results_are_valid() {
    let damaged = Warning::FsckFailed { verdict: "4: bad block bitmap".into() };
    let short = Warning::ShortPhase { elapsed: Nanos(1) };
    let steal = Warning::CpuSteal { share: Ratio(0.01) };
    assert_eq!(verdict(&[("write", seen(2000, 0, 0))], &[damaged, short, steal], true), None);
}

#[test]
fn three_trials_are_rerun_and_beyond_them_one_in_five() {
    assert!((0..3).all(|again| may_rerun(again, again + 1)));
    assert!(!may_rerun(3, 4) && !may_rerun(3, 19));
    assert!(may_rerun(3, 20) && !may_rerun(4, 24) && may_rerun(4, 25));
    // A machine that disturbs every trial of a cell of 50 repetitions.
    let (mut trials, mut again, mut counted) = (0u32, 0, 0);
    while counted < 50 {
        trials += 1;
        match may_rerun(again, trials) {
            true => again += 1,
            false => counted += 1,
        }
    }
    assert_eq!((trials, again), (62, 12));
}

#[test]
fn the_guide_names_every_reason() {
    let guide = include_str!("../../../../../docs/guides/precision.md");
    for Reason { name, .. } in REASONS {
        assert!(guide.contains(&format!("| {name} |")), "{name} is missing in the guide");
    }
}
