//! Settings of the machine that a plan may change: what is written where, and that it is read back
//! and put back.
//!
//! A scheduler or a factor with its value enters; an [`Intent`] comes out, which says what would be
//! written, what would be left alone, and what is known to fail. It changes nothing: `fslab show`
//! prints it. [`Tuning`] carries intents out through the journal, and keeps what undoes them, what
//! must be known of them, and what the settings read as afterwards.
//!
//! All settings are made before mkfs and undone after the check: every number of a trial, the time
//! of mkfs and fsck included, was then measured under what its label says. Processors come first,
//! since their number decides what there is to set; the scheduler comes before the depth of the
//! queue, which it resets (`elevator_switch` in `block/elevator.c`).
//!
//! A setting that the kernel refuses or rounds is a [`Warning::ReadBack`], not an error: the trial
//! goes on with what the kernel says, and the report shows it.

pub(crate) mod ability;
pub(crate) mod cpu;
mod memory;
pub(crate) mod queue;
mod quota;

use std::path::{Path, PathBuf};

use model::{Environment, Factor, Factors, Value, Warning};

use self::queue::Device;
pub(crate) use self::quota::Quota;
use crate::{
    bench::Bench,
    error::RigError,
    host::Host,
    undo::{Step, selected},
};

/// One file that a setting writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The setting in words, such as `read_ahead of sda (KiB)`.
    pub setting: String,
    /// The file.
    pub path: PathBuf,
    /// What is written, which is also what it reads as if all goes well.
    pub text: String,
    /// The file that holds the setting now and that the kernel empties when this one is written.
    pub from: Option<PathBuf>,
    /// Whether the kernel may move it by itself, so that it is put back whatever it reads as.
    pub moves: bool,
    /// The file of the setting that it belongs to, and with which it is put back.
    pub basis: Option<PathBuf>,
}

/// Settings that writes may disturb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Their files.
    pub files: Vec<PathBuf>,
    /// The file of the setting that they belong to, and with which they are put back.
    pub basis: Option<PathBuf>,
}

/// What a setting would do to the machine as it is now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Intent {
    /// Settings that the writes may disturb and that are put back with them.
    pub keeps: Vec<Keep>,
    /// The writes, in order.
    pub writes: Vec<Write>,
    /// The share of the processors' time that is given instead of a share of their speed.
    pub share: Option<u8>,
    /// What is known before.
    pub warnings: Vec<Warning>,
    /// What may go wrong, though it is not known.
    pub notes: Vec<String>,
    /// What is left alone, and why.
    pub left: Vec<(String, String)>,
    /// Facts that the machine tells afterwards: name, file, and unit.
    pub facts: Vec<(String, PathBuf, &'static str)>,
}

impl Intent {
    /// One that does nothing, since the machine cannot.
    fn refused(setting: impl Into<String>, wanted: impl Into<String>, why: &str) -> Self {
        let (setting, wanted, found) = (setting.into(), wanted.into(), why.to_owned());
        let warnings = vec![Warning::ReadBack { setting, wanted, found }];
        Self { warnings, ..Self::default() }
    }

    /// Adds a write of a file of its own.
    fn write(&mut self, setting: impl Into<String>, path: PathBuf, text: impl Into<String>) {
        self.writes.push(Write {
            setting: setting.into(),
            path,
            text: text.into(),
            from: None,
            moves: false,
            basis: None,
        });
    }

    /// Adds a fact, `factor.` and the name.
    fn fact(&mut self, name: &str, path: PathBuf, unit: &'static str) {
        self.facts.push((format!("factor.{name}"), path, unit));
    }
}

/// What a factor would do; `devices` are those below the filesystem.
pub(crate) fn intend(host: &dyn Host, devices: &[Device], factor: Factor, value: &Value) -> Intent {
    match factor {
        Factor::ReadAhead | Factor::QueueDepth | Factor::WriteCache => {
            queue::intend(host, devices, factor, value)
        }
        Factor::CpuSpeed => cpu::speed(host, value),
        Factor::CpuGovernor => cpu::governor(host, value),
        Factor::Cpus => cpu::online(host, value),
        Factor::Dirty => memory::dirty(host, "dirty", value),
        Factor::DirtyBackground => memory::dirty(host, "dirty_background", value),
        Factor::HugePages => memory::huge_pages(value),
        // Settled when the guest was booted.
        Factor::Kernel => Intent::default(),
    }
}

/// Factors of the machine as a whole, in the order in which they are set.
const OF_THE_MACHINE: [Factor; 6] = [
    Factor::Cpus,
    Factor::CpuGovernor,
    Factor::CpuSpeed,
    Factor::Dirty,
    Factor::DirtyBackground,
    Factor::HugePages,
];

/// Factors of devices, likewise.
const OF_DEVICES: [Factor; 3] = [Factor::ReadAhead, Factor::QueueDepth, Factor::WriteCache];

/// Settings that were made, and what came of them.
#[derive(Debug, Default)]
pub(crate) struct Tuning {
    /// What undoes them, oldest first, with what it is.
    pub(crate) steps: Vec<(Step, String)>,
    /// Those that are not as wanted.
    pub(crate) warnings: Vec<Warning>,
    /// What they read as.
    pub(crate) facts: Environment,
    /// The quota that stands in for the speed of the processors.
    pub(crate) quota: Option<Quota>,
}

impl Tuning {
    /// Sets what is no setting of devices.
    ///
    /// # Errors
    /// [`RigError::Journal`]; what was set before is in `steps`.
    pub(crate) fn machine(
        &mut self,
        bench: &mut Bench,
        host: &dyn Host,
        run_id: &str,
        factors: &Factors,
    ) -> Result<(), RigError> {
        for factor in OF_THE_MACHINE {
            let Some(value) = factors.get(&factor) else { continue };
            let intent = intend(host, &[], factor, value);
            self.carry_out(bench, host, &intent)?;
            if let Some(share) = intent.share {
                self.ration(bench, host, run_id, share)?;
            }
        }
        Ok(())
    }

    /// Sets the devices below a filesystem.
    ///
    /// # Errors
    /// [`RigError::Journal`]; what was set before is in `steps`.
    pub(crate) fn devices(
        &mut self,
        bench: &mut Bench,
        host: &dyn Host,
        devices: &[Device],
        (scheduler, factors): (Option<&str>, &Factors),
    ) -> Result<(), RigError> {
        if let Some(scheduler) = scheduler {
            self.carry_out(bench, host, &queue::scheduler(host, devices, scheduler))?;
        }
        for factor in OF_DEVICES {
            let Some(value) = factors.get(&factor) else { continue };
            self.carry_out(bench, host, &intend(host, devices, factor, value))?;
        }
        Ok(())
    }

    fn carry_out(
        &mut self,
        bench: &mut Bench,
        host: &dyn Host,
        intent: &Intent,
    ) -> Result<(), RigError> {
        for keep in &intent.keeps {
            let kept = bench.keep(keep)?;
            self.steps.extend(kept.map(|step| (step, "settings that others disturb".to_owned())));
        }
        let first = self.steps.len();
        for write in &intent.writes {
            let (step, warning) = bench.switch(write)?;
            self.steps.extend(step.map(|step| (step, write.setting.clone())));
            self.warnings.extend(warning);
        }
        // A later one may have moved an earlier one, as the least frequency may move the highest.
        self.steps[first..].iter().try_for_each(|(step, _)| bench.reread(*step))?;
        self.warnings.extend(intent.warnings.iter().cloned());
        for (name, why) in &intent.left {
            self.facts.set(format!("factor.{name}"), why);
        }
        for (name, path, unit) in &intent.facts {
            if let Ok(text) = host.read(path) {
                self.facts.set(name, format!("{}{unit}", selected(&text)));
            }
        }
        Ok(())
    }

    fn ration(
        &mut self,
        bench: &mut Bench,
        host: &dyn Host,
        run_id: &str,
        share: u8,
    ) -> Result<(), RigError> {
        match Quota::enter(bench, host, run_id, share)? {
            Ok((quota, step)) => {
                self.steps.push((step, "share of the processors' time".to_owned()));
                self.facts.set("factor.cpu_speed.quota", quota.in_words());
                self.warnings.push(cpu::stand_in(share));
                self.quota = Some(quota);
            }
            Err(why) => self.warnings.push(Warning::ReadBack {
                setting: "cpu_speed".into(),
                wanted: format!("{share}%"),
                found: format!("no frequency to set, and no quota instead: {why}"),
            }),
        }
        Ok(())
    }
}

/// The queue directory of a block device in sysfs; for a partition that of its disk.
pub(crate) fn queue(host: &dyn Host, name: &str) -> PathBuf {
    let node = Path::new("/sys/class/block").join(name);
    if host.entry(&node.join("queue")).is_ok() {
        return node.join("queue");
    }
    // A partition's directory lies in that of its disk (Documentation/ABI/testing/sysfs-block).
    match host.follow(&node) {
        Ok(path) if path.join("partition").exists() => path.parent().unwrap_or(&path).join("queue"),
        _ => node.join("queue"),
    }
}

/// Makes a loop device of our own offer no discard, so that neither mkfs nor mount gives back the
/// reserved space of an image.
///
/// This is not journaled, since it cannot be undone: with a limit of 0 the kernel forgets the
/// granularity and takes no other limit any more (`queue_max_discard_sectors_store` in
/// `block/blk-sysfs.c`). It goes with the device, and is therefore done only to one that is
/// removed.
pub(crate) fn switch_discard_off(
    bench: &mut Bench,
    host: &dyn Host,
    name: &str,
) -> Option<Warning> {
    let path = queue(host, name).join("discard_max_bytes");
    let what = format!("write 0 to {}", path.display());
    let (written, _) = bench.act(what, |host| host.write(&path, "0"));
    let found = match written.and_then(|()| host.read(&path)) {
        Ok(found) => found.trim().to_owned(),
        Err(error) => error.to_string(),
    };
    (found != "0").then(|| Warning::ReadBack {
        setting: format!("discard_max_bytes of {name}"),
        wanted: "0".into(),
        found,
    })
}

#[cfg(test)]
mod tests;
