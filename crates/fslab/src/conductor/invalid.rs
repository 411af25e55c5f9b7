//! Which trials are invalid: the closed list of what spoils a measurement, whatever its result.
//!
//! A trial that was measured enters, with what was seen of the machine meanwhile; the reason why it
//! is invalid leaves, if there is one. Samples are not looked at, so that no result is chosen for
//! its value. Whether an invalid trial is made again is up to [`may_repeat`].
//!
//! A reason must be one that passes: what every trial of a cell meets would only double the time of
//! the run. So a setting that reads back otherwise counts only where it did not in the cell's first
//! trial, and what a filesystem puts off only where the plan does not ask for it.

use std::collections::BTreeSet;

use model::{
    Cell, Evidence, Nanos, Ratio, Warning,
    evidence::CpuWork,
    phase::Role,
    record::{PhaseInfo, TrialRecord},
};

/// What is known of a trial besides its record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    /// The cell.
    pub(super) cell: &'a Cell,
    /// Its phases.
    pub(super) phases: &'a [PhaseInfo],
    /// Whether the storage is devices of the run's own: below an image or a directory lies a disk
    /// that others use, too, which W-BACKING says.
    pub(super) own_devices: bool,
    /// Settings that read back otherwise in the cell's first trial that counts; `None` before it.
    pub(super) usual: Option<&'a BTreeSet<String>>,
}

/// One entry of the list.
struct Reason {
    /// As the guide names it.
    #[cfg_attr(not(test), expect(dead_code, reason = "the guide is checked against it"))]
    name: &'static str,
    /// What was seen, in words; `None` where it was not.
    seen: fn(&TrialRecord, &Known<'_>) -> Option<String>,
}

/// The list, in the order in which it is asked.
///
/// Which conditions spoil a trial, and the limits of steal and of foreign I/O, are those of the
/// method (`docs/guides/how-sure.md`); each function says what else it rests on.
const REASONS: [Reason; 7] = [
    Reason { name: "throttling", seen: throttled },
    Reason { name: "steal", seen: stolen },
    Reason { name: "other processes", seen: foreign_cpu },
    Reason { name: "other I/O", seen: foreign_io },
    Reason { name: "the kernel's log", seen: logged },
    Reason { name: "lazy initialization", seen: lazy },
    Reason { name: "a setting that moved", seen: moved },
];

/// Part of the time of all processors that the hypervisor may give to others: four times that at
/// which W-STEAL is told.
const STEAL: Ratio = Ratio(0.02);

/// Part of the time of all processors that other processes may use: five times that at which
/// W-FOREIGN is told. On machines that are not idle by design 2 % is exceeded in nearly every
/// trial, and trials made again would be no better.
const FOREIGN_CPU: Ratio = Ratio(0.10);

/// Part of a device's bytes that may be somebody else's; W-FOREIGNIO is told only where there is
/// more than metadata of the layers explains.
const FOREIGN_IO: Ratio = Ratio(0.01);

/// Below this a tick or one daemon that wakes up makes several percent, so that shorter phases are
/// judged together.
const TELLING: Nanos = Nanos(1_000_000_000);

/// Words of lines that tell of a stall, a reset, or a lack of memory. Errors of the filesystem's
/// own devices have failed the trial before (`rig`, `evidence::log`).
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

/// Why a measured trial is invalid; `None` for one that stands.
pub(super) fn reason(trial: &TrialRecord, known: &Known<'_>) -> Option<String> {
    REASONS.iter().find_map(|reason| (reason.seen)(trial, known))
}

/// Invalid trials of a cell that are made again in any case.
const FREE: u32 = 3;

/// Whether an invalid trial is made again: `again` of the cell's trials were already, and there are
/// `trials` of it with this one.
///
/// Three always are; beyond them one in five of all trials of the cell, the share from which on the
/// method calls an environment unstable. So a machine that spoils every trial makes a run at most
/// three trials or a quarter longer, whichever is more, for each cell, and never endless.
pub(super) fn may_repeat(again: u32, trials: u32) -> bool {
    again < FREE.max(trials / 5)
}

/// Settings that read back otherwise than they were set.
pub(super) fn misread(trial: &TrialRecord) -> BTreeSet<String> {
    let settings = trial.warnings.iter().filter_map(|(_, warning)| {
        let Warning::ReadBack { setting, .. } = warning else { return None };
        Some(setting.clone())
    });
    settings.collect()
}

/// What was seen during the measured phases.
fn measured<'a>(
    trial: &'a TrialRecord,
    known: &'a Known<'_>,
) -> impl Iterator<Item = (&'a str, &'a Evidence)> {
    let measures = |name: &str| {
        known.phases.iter().any(|phase| phase.role == Role::Measure && phase.name == name)
    };
    let all = trial.evidence.iter().map(|(name, evidence)| (name.as_str(), evidence));
    all.filter(move |(name, _)| measures(name))
}

/// The greatest part of the time of all processors in a phase of [`TELLING`] length, or in the
/// shorter ones together, and where that was.
fn greatest(
    trial: &TrialRecord,
    known: &Known<'_>,
    part: fn(&CpuWork) -> Nanos,
) -> Option<(Ratio, String)> {
    let (mut short, mut short_part, mut short_all) = (Nanos(0), 0.0, 0.0);
    let mut shares = Vec::new();
    for (name, evidence) in measured(trial, known) {
        let Some(cpu) = &evidence.cpu else { continue };
        let all = evidence.window.seconds() * f64::from(cpu.host.processors);
        let part = part(cpu).seconds();
        if evidence.window >= TELLING {
            shares.push((Ratio(part / all), name.to_owned()));
        } else {
            short = short + evidence.window;
            (short_part, short_all) = (short_part + part, short_all + all);
        }
    }
    if short >= TELLING {
        shares.push((Ratio(short_part / short_all), "its short phases".into()));
    }
    let told = shares.into_iter().filter(|(share, _)| share.0.is_finite());
    told.max_by(|one, other| one.0.0.total_cmp(&other.0.0))
}

fn percent(share: Ratio) -> String {
    format!("{:.1} %", share.0 * 100.0)
}

/// Any event counts: a processor below its speed is another machine
/// (Documentation/admin-guide/thermal/intel_powerclamp.rst; the counters are those of
/// drivers/thermal/intel/therm_throt.c).
fn throttled(trial: &TrialRecord, known: &Known<'_>) -> Option<String> {
    let events: u64 = measured(trial, known).filter_map(|(_, evidence)| evidence.throttled).sum();
    (events > 0).then(|| format!("a processor was throttled ({events} events)"))
}

/// `steal` of /proc/stat, proc_stat(5).
fn stolen(trial: &TrialRecord, known: &Known<'_>) -> Option<String> {
    let (share, at) = greatest(trial, known, |cpu| cpu.host.steal)?;
    (share > STEAL).then(|| {
        format!("the hypervisor gave {} of the processors' time to others in {at}", percent(share))
    })
}

fn foreign_cpu(trial: &TrialRecord, known: &Known<'_>) -> Option<String> {
    let (share, at) = greatest(trial, known, |cpu| cpu.others_total)?;
    (share > FOREIGN_CPU)
        .then(|| format!("other processes used {} of the processors' time in {at}", percent(share)))
}

/// Layers move more than what is above them by design: a mirror writes twice.
fn foreign_io(trial: &TrialRecord, known: &Known<'_>) -> Option<String> {
    if !known.own_devices || !known.cell.filesystem.layers.is_empty() {
        return None;
    }
    trial.warnings.iter().find_map(|(_, warning)| {
        let Warning::ForeignIo { device, share, .. } = warning else { return None };
        let told = || format!("others moved {} of the bytes of {device}", percent(*share));
        (*share > FOREIGN_IO).then(told)
    })
}

fn logged(trial: &TrialRecord, known: &Known<'_>) -> Option<String> {
    let mut lines = measured(trial, known).flat_map(|(_, evidence)| &evidence.log);
    let line = lines.find(|line| LOG.iter().any(|words| line.text.contains(words)))?;
    Some(format!("the kernel told: {}", line.text))
}

/// The catalogue has mkfs write what ext4 would else initialize after the first mount
/// (`lazy_itable_init`, mkfs.ext4(8)); a plan that asks for it measures it.
fn lazy(trial: &TrialRecord, known: &Known<'_>) -> Option<String> {
    let level = &known.cell.filesystem;
    let asked = level.mkfs.iter().any(|argument| argument.contains("lazy_"));
    trial.warnings.iter().find_map(|(at, warning)| {
        let Warning::Background { who, .. } = warning else { return None };
        let at = at.as_deref().unwrap_or("the trial");
        let told = || format!("{who} initialized the filesystem during {at}");
        (!asked && who.starts_with("ext4lazyinit")).then(told)
    })
}

fn moved(trial: &TrialRecord, known: &Known<'_>) -> Option<String> {
    let usual = known.usual?;
    let setting = misread(trial).into_iter().find(|setting| !usual.contains(setting))?;
    Some(format!("{setting} read back otherwise than in the trials before"))
}

#[cfg(test)]
mod tests;
