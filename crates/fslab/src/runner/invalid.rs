//! Invalid trials: the predefined list of disturbances that invalidate a trial regardless of its
//! result.
//!
//! Input: a measured trial with its system activity. Output: the reason why the trial is invalid,
//! if any. Samples are not evaluated, so that results are not selected by their values.
//! [`may_rerun`] decides whether an invalid trial is rerun.
//!
//! Only transient conditions are listed. A condition of every trial would only increase the
//! duration of the run. A setting that was not applied invalidates a trial only if it was applied
//! in the first trial of the cell. Lazy initialization invalidates a trial only if the plan does
//! not enable it.

use std::collections::BTreeSet;

use model::{
    Cell, Nanos, Ratio, SystemActivity, Warning,
    activity::CpuActivity,
    phase::{Role, is_group},
    record::{PhaseInfo, TrialRecord},
};

/// Context of a trial besides its record.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrialContext<'a> {
    /// Cell of the trial.
    pub(super) cell: &'a Cell,
    /// Phases of the cell.
    pub(super) phases: &'a [PhaseInfo],
    /// True if the storage is dedicated devices. The disk below an image or a directory has other
    /// users, which warning `shared-storage` reports.
    pub(super) own_devices: bool,
    /// Settings that were not applied in the first valid trial of the cell; `None` if there is none
    /// yet.
    pub(super) usual: Option<&'a BTreeSet<String>>,
}

/// Entry of the list.
struct Reason {
    /// Name in the guide.
    #[cfg_attr(not(test), expect(dead_code, reason = "the guide is checked against it"))]
    name: &'static str,
    /// Description of the disturbance; `None` if it did not occur.
    seen: fn(&TrialRecord, &TrialContext<'_>) -> Option<String>,
}

/// Disturbances in the order of evaluation.
///
/// The conditions and the limits of CPU steal and other I/O are defined in
/// `docs/guides/precision.md`. The functions document the sources of the counters.
const REASONS: [Reason; 7] = [
    Reason { name: "throttling", seen: throttled },
    Reason { name: "steal", seen: stolen },
    Reason { name: "other processes", seen: other_cpu },
    Reason { name: "other I/O", seen: other_io },
    Reason { name: "kernel message", seen: logged },
    Reason { name: "lazy initialization", seen: lazy },
    Reason { name: "a changed setting", seen: moved },
];

/// Limit of the CPU time stolen by the hypervisor, as a fraction of all CPUs: four times the limit
/// of warning `cpu-steal`.
const STEAL: Ratio = Ratio(0.02);

/// Limit of the CPU time of other processes, as a fraction of all CPUs: five times the limit of
/// warning `other-cpu-load`. Machines that are not dedicated exceed 2 % in nearly every trial, so a
/// rerun would not help.
const OTHER_CPU: Ratio = Ratio(0.10);

/// Minimum duration of a phase that is evaluated alone. Shorter phases are evaluated together,
/// because one timer tick or daemon wakeup can be several percent of their time.
const LONG_PHASE: Nanos = Nanos(1_000_000_000);

/// Fragments of kernel messages about a stall, a reset, or a lack of memory. Errors of the devices
/// under test have already failed the trial (`rig`, `activity::log`).
const LOG: [&str; 9] = [
    // `check_hung_task`, kernel/hung_task.c.
    "blocked for more than",
    // `watchdog_timer_fn`, kernel/watchdog.c.
    "soft lockup",
    // `print_other_cpu_stall` and `print_cpu_stall`, kernel/rcu/tree_stall.h.
    "detected stall",
    // `blk_print_req_error`, block/blk-mq.c.
    "I/O error",
    // `ata_eh_link_report`, drivers/ata/libata-eh.c.
    "exception Emask",
    // `scsi_report_sense`, drivers/scsi/scsi_error.c.
    "device reset occurred",
    // `nvme_timeout`, drivers/nvme/host/pci.c.
    "reset controller",
    // `__oom_kill_process`, mm/oom_kill.c.
    "Killed process",
    // `dump_header`, mm/oom_kill.c.
    "oom-killer",
];

/// Reason why a measured trial is invalid; `None` if it is valid.
pub(super) fn reason(trial: &TrialRecord, known: &TrialContext<'_>) -> Option<String> {
    REASONS.iter().find_map(|reason| (reason.seen)(trial, known))
}

/// Reruns of a cell that are always allowed.
const FREE: u32 = 3;

/// Reports whether an invalid trial may be rerun. The cell has had `again` reruns so far, and
/// `trials` trials including this one.
///
/// Three reruns are always allowed. Beyond that, at most one in five trials of the cell may be a
/// rerun; with more reruns, the environment is regarded as unstable. On a machine that disturbs
/// every trial, a cell therefore gets three additional trials, or a quarter of its counted trials
/// if that is more.
pub(super) fn may_rerun(again: u32, trials: u32) -> bool {
    again < FREE.max(trials / 5)
}

/// Settings that were not applied in a trial.
pub(super) fn misread(trial: &TrialRecord) -> BTreeSet<String> {
    let settings = trial.warnings.iter().filter_map(|(_, warning)| {
        let Warning::SettingNotApplied { setting, .. } = warning else { return None };
        Some(setting.clone())
    });
    settings.collect()
}

/// System activity of the measured phases.
fn measured<'a>(
    trial: &'a TrialRecord,
    known: &'a TrialContext<'_>,
) -> impl Iterator<Item = (&'a str, &'a SystemActivity)> {
    let measures = |name: &str| {
        is_group(name)
            || known.phases.iter().any(|phase| phase.role == Role::Measure && phase.name == name)
    };
    let all = trial.activity.iter().map(|(name, activity)| (name.as_str(), activity));
    all.filter(move |(name, _)| measures(name))
}

/// Largest fraction of the time of all CPUs in a phase, with the name of the phase. Phases shorter
/// than [`LONG_PHASE`] are combined, and ignored if their total duration is also shorter.
fn greatest(
    trial: &TrialRecord,
    known: &TrialContext<'_>,
    part: fn(&CpuActivity) -> Nanos,
) -> Option<(Ratio, String)> {
    let (mut short, mut short_part, mut short_all) = (Nanos(0), 0.0, 0.0);
    let mut shares = Vec::new();
    for (name, activity) in measured(trial, known) {
        let Some(cpu) = &activity.cpu else { continue };
        let all = activity.window.seconds() * f64::from(cpu.host.processors);
        let part = part(cpu).seconds();
        if activity.window >= LONG_PHASE {
            shares.push((Ratio(part / all), name.to_owned()));
        } else {
            short = short + activity.window;
            (short_part, short_all) = (short_part + part, short_all + all);
        }
    }
    if short >= LONG_PHASE {
        shares.push((Ratio(short_part / short_all), "its short phases".into()));
    }
    let finite = shares.into_iter().filter(|(share, _)| share.0.is_finite());
    finite.max_by(|one, other| one.0.0.total_cmp(&other.0.0))
}

fn percent(share: Ratio) -> String {
    format!("{:.1} %", share.0 * 100.0)
}

/// Reports any throttling event, because a throttled CPU is slower for an unknown time
/// (Documentation/admin-guide/thermal/intel_powerclamp.rst; counters of
/// drivers/thermal/intel/therm_throt.c).
fn throttled(trial: &TrialRecord, known: &TrialContext<'_>) -> Option<String> {
    let events: u64 = measured(trial, known).filter_map(|(_, activity)| activity.throttled).sum();
    (events > 0).then(|| format!("the CPU was throttled ({events} events)"))
}

/// Reports CPU time stolen by the hypervisor: `steal` of /proc/stat, proc_stat(5).
fn stolen(trial: &TrialRecord, known: &TrialContext<'_>) -> Option<String> {
    let (share, at) = greatest(trial, known, |cpu| cpu.host.steal)?;
    (share > STEAL)
        .then(|| format!("the hypervisor stole {} of the CPU time in {at}", percent(share)))
}

fn other_cpu(trial: &TrialRecord, known: &TrialContext<'_>) -> Option<String> {
    let (share, at) = greatest(trial, known, |cpu| cpu.others_total)?;
    (share > OTHER_CPU)
        .then(|| format!("other processes used {} of the CPU time in {at}", percent(share)))
}

/// Reports other I/O on dedicated devices, if it exceeds what warning `other-io-load` allows for
/// metadata. Filesystems on layers are excluded, because layers can
/// move more bytes than the filesystem above them: a mirror writes each byte twice.
fn other_io(trial: &TrialRecord, known: &TrialContext<'_>) -> Option<String> {
    if !known.own_devices || !known.cell.filesystem.layers.is_empty() {
        return None;
    }
    trial.warnings.iter().find_map(|(_, warning)| {
        let Warning::OtherIoLoad { device, share, .. } = warning else { return None };
        Some(format!("other I/O on {device}: {} of its bytes", percent(*share)))
    })
}

fn logged(trial: &TrialRecord, known: &TrialContext<'_>) -> Option<String> {
    let mut lines = measured(trial, known).flat_map(|(_, activity)| &activity.log);
    let line = lines.find(|line| LOG.iter().any(|words| line.text.contains(words)))?;
    Some(format!("kernel log: {}", line.text))
}

/// Reports lazy initialization of ext4 (`lazy_itable_init`, mkfs.ext4(8)), which the catalog
/// disables. If the plan enables it, it is part of the measurement.
fn lazy(trial: &TrialRecord, known: &TrialContext<'_>) -> Option<String> {
    let level = known.cell.level();
    let asked = level.mkfs.iter().any(|argument| argument.contains("lazy_"));
    trial.warnings.iter().find_map(|(at, warning)| {
        let Warning::DeferredWork { who, .. } = warning else { return None };
        let at = at.as_deref().unwrap_or("the trial");
        let reason = || format!("{who} initialized the filesystem during {at}");
        (!asked && who.starts_with("ext4lazyinit")).then(reason)
    })
}

fn moved(trial: &TrialRecord, known: &TrialContext<'_>) -> Option<String> {
    let usual = known.usual?;
    let setting = misread(trial).into_iter().find(|setting| !usual.contains(setting))?;
    Some(format!("{setting} was not applied, unlike in earlier trials"))
}

#[cfg(test)]
mod tests;
