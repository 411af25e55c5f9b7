//! System settings that a plan varies: writing, verifying, and restoring them.
//!
//! The input is an I/O scheduler, or a setting and its value. The output is a [`SettingChange`], a
//! plan of writes with the devices that are skipped and the problems that are known before; `fslab
//! show` prints it. [`AppliedSettings`] executes these writes through the undo journal and collects
//! the undo steps, the warnings, and the values read back.
//!
//! All settings are applied before mkfs and undone after fsck. All results of a trial, including
//! the times of mkfs and fsck, are therefore measured with the same settings. The number of online
//! CPUs is set first, because the other CPU settings depend on it. The scheduler is set before
//! `nr_requests`, because a change of the scheduler resets `nr_requests` (`elevator_switch` in
//! `block/elevator.c`).
//!
//! If the kernel rejects or rounds a value, this is not an error but a
//! [`Warning::SettingNotApplied`]. The trial continues with the value in effect, and the report
//! shows this value.

pub(crate) mod cpu;
mod memory;
pub(crate) mod queue;
mod quota;
pub(crate) mod support;

use std::path::PathBuf;

use model::{Environment, SystemSetting, SystemSettings, Value, Warning};

use self::queue::Device;
pub(crate) use self::quota::Quota;
use crate::{
    error::RigError,
    host::Host,
    journaled_host::{JournaledHost, SavedSettings, Write},
    sysfs::{queue, selected},
    undo::Step,
};

/// Planned change of one setting, for the current state of this machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingChange {
    /// Settings that the writes may alter, and that are therefore restored as well.
    pub saved: Vec<SavedSettings>,
    /// Writes, in order.
    pub writes: Vec<Write>,
    /// CPU quota, in percent per worker, that emulates a CPU frequency; `None` if no quota is used.
    pub percent: Option<u8>,
    /// Problems that are known before the writes.
    pub warnings: Vec<Warning>,
    /// Problems that may occur.
    pub notes: Vec<String>,
    /// Facts with the reason why a device was skipped: name and reason.
    pub skipped: Vec<(String, String)>,
    /// Facts to read back after the writes: name, file, and unit.
    pub facts: Vec<(String, PathBuf, &'static str)>,
}

impl SettingChange {
    /// Change without writes, for a setting that this machine does not support. The warning
    /// contains the reason.
    fn refused(setting: impl Into<String>, wanted: impl Into<String>, why: &str) -> Self {
        let (setting, wanted, found) = (setting.into(), wanted.into(), why.to_owned());
        let warnings = vec![Warning::SettingNotApplied { setting, wanted, found }];
        Self { warnings, ..Self::default() }
    }

    /// Adds a write of one file.
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

    /// Adds a fact to read back, with the prefix `setting.` before its name.
    fn fact(&mut self, name: &str, path: PathBuf, unit: &'static str) {
        self.facts.push((format!("setting.{name}"), path, unit));
    }
}

/// Plans the change of a setting. `devices` are the devices of the filesystem and all devices below
/// them.
pub(crate) fn plan_change(
    host: &dyn Host,
    devices: &[Device],
    setting: SystemSetting,
    value: &Value,
) -> SettingChange {
    match setting {
        SystemSetting::ReadAhead | SystemSetting::NrRequests | SystemSetting::WriteCache => {
            queue::plan_change(host, devices, setting, value)
        }
        SystemSetting::CpuSpeed => cpu::frequency_change(host, value),
        SystemSetting::CpuGovernor => cpu::governor(host, value),
        SystemSetting::OnlineCpus => cpu::online(host, value),
        SystemSetting::DirtyThreshold | SystemSetting::DirtyBackgroundThreshold => {
            memory::dirty(host, setting, value)
        }
        SystemSetting::TransparentHugepage => memory::transparent_hugepage(value),
        // The device and its size are set when the filesystem is created, the kernel was chosen
        // when the guest was booted, and the hosts when the trial started.
        SystemSetting::Device
        | SystemSetting::Size
        | SystemSetting::Kernel
        | SystemSetting::Hosts
        | SystemSetting::ReaderShift => SettingChange::default(),
    }
}

/// Settings of the whole machine, in the order in which they are applied.
const MACHINE_SETTINGS: [SystemSetting; 6] = [
    SystemSetting::OnlineCpus,
    SystemSetting::CpuGovernor,
    SystemSetting::CpuSpeed,
    SystemSetting::DirtyThreshold,
    SystemSetting::DirtyBackgroundThreshold,
    SystemSetting::TransparentHugepage,
];

/// Settings of devices, in the order in which they are applied.
const DEVICE_SETTINGS: [SystemSetting; 3] =
    [SystemSetting::ReadAhead, SystemSetting::NrRequests, SystemSetting::WriteCache];

/// Applied settings and their results.
#[derive(Debug, Default)]
pub(crate) struct AppliedSettings {
    /// Undo steps with descriptions, oldest first.
    pub(crate) steps: Vec<(Step, String)>,
    /// Warnings about settings that were not applied as requested.
    pub(crate) warnings: Vec<Warning>,
    /// Values read back.
    pub(crate) facts: Environment,
    /// Quota that emulates a CPU frequency; `None` if no quota was set.
    pub(crate) quota: Option<Quota>,
}

impl AppliedSettings {
    /// Applies the settings of the whole machine.
    ///
    /// # Errors
    /// [`RigError::Journal`]; `steps` contains the settings applied so far.
    pub(crate) fn machine(
        &mut self,
        journaled: &mut JournaledHost,
        host: &dyn Host,
        run_id: &str,
        settings: &SystemSettings,
    ) -> Result<(), RigError> {
        for setting in MACHINE_SETTINGS {
            let Some(value) = settings.get(&setting) else { continue };
            let change = plan_change(host, &[], setting, value);
            self.apply(journaled, host, &change)?;
            if let Some(percent) = change.percent {
                self.apply_quota(journaled, host, run_id, percent)?;
            }
        }
        Ok(())
    }

    /// Applies the scheduler and the settings of the devices of a filesystem.
    ///
    /// # Errors
    /// [`RigError::Journal`]; `steps` contains the settings applied so far.
    pub(crate) fn devices(
        &mut self,
        journaled: &mut JournaledHost,
        host: &dyn Host,
        devices: &[Device],
        (scheduler, settings): (Option<&str>, &SystemSettings),
    ) -> Result<(), RigError> {
        if let Some(scheduler) = scheduler {
            self.apply(journaled, host, &queue::scheduler(host, devices, scheduler))?;
        }
        for setting in DEVICE_SETTINGS {
            let Some(value) = settings.get(&setting) else { continue };
            self.apply(journaled, host, &plan_change(host, devices, setting, value))?;
        }
        Ok(())
    }

    fn apply(
        &mut self,
        journaled: &mut JournaledHost,
        host: &dyn Host,
        change: &SettingChange,
    ) -> Result<(), RigError> {
        for saved in &change.saved {
            let kept = journaled.save(saved)?;
            self.steps.extend(kept.map(|step| (step, "disturbed settings".to_owned())));
        }
        let first = self.steps.len();
        for write in &change.writes {
            let (step, warning) = journaled.switch(write)?;
            self.steps.extend(step.map(|step| (step, write.setting.clone())));
            self.warnings.extend(warning);
        }
        // A later write may have altered an earlier setting. For example, writing the minimum
        // frequency may change the maximum frequency.
        self.steps[first..].iter().try_for_each(|(step, _)| journaled.reread(*step))?;
        self.warnings.extend(change.warnings.iter().cloned());
        for (name, why) in &change.skipped {
            self.facts.set(format!("setting.{name}"), why);
        }
        for (name, path, unit) in &change.facts {
            if let Ok(text) = host.read(path) {
                self.facts.set(name, format!("{}{unit}", selected(&text)));
            }
        }
        Ok(())
    }

    fn apply_quota(
        &mut self,
        journaled: &mut JournaledHost,
        host: &dyn Host,
        run_id: &str,
        percent: u8,
    ) -> Result<(), RigError> {
        match Quota::enter(journaled, host, run_id, percent)? {
            Ok((quota, step)) => {
                self.steps.push((step, "CPU quota".to_owned()));
                self.facts.set("setting.cpu_speed.quota", quota.describe());
                self.warnings.push(cpu::emulate_frequency(percent));
                self.quota = Some(quota);
            }
            Err(why) => self.warnings.push(Warning::SettingNotApplied {
                setting: "cpu_speed".into(),
                wanted: format!("{percent}%"),
                found: format!("no frequency to set, and no CPU quota: {why}"),
            }),
        }
        Ok(())
    }
}

/// Disables discard on a loop device that was created for an image, so that neither mkfs nor mount
/// releases the allocated space of the image. Returns a warning if this failed.
///
/// This change is not journaled, because it cannot be undone. At a limit of 0, the kernel sets the
/// granularity to 0, and then rejects any other limit (`queue_max_discard_sectors_store` in
/// `block/blk-sysfs.c`). Call this only for a loop device that is removed at the end.
pub(crate) fn disable_discard(
    journaled: &mut JournaledHost,
    host: &dyn Host,
    name: &str,
) -> Option<Warning> {
    let path = queue(host, name).join("discard_max_bytes");
    let what = format!("write 0 to {}", path.display());
    let (written, _) = journaled.execute(what, |host| host.write(&path, "0"));
    let found = match written.and_then(|()| host.read(&path)) {
        Ok(found) => found.trim().to_owned(),
        Err(error) => error.to_string(),
    };
    (found != "0").then(|| Warning::SettingNotApplied {
        setting: format!("discard_max_bytes of {name}"),
        wanted: "0".into(),
        found,
    })
}

#[cfg(test)]
mod tests;
