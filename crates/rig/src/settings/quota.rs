//! CPU quota that emulates a CPU frequency.
//!
//! This process is moved into a control group with a quota (Documentation/scheduler/sched-bwc.rst;
//! version 2: `cpu.max` in cgroup-v2.rst). Programs that this process starts are in the same group.
//! Kernel threads, which write back data and complete I/O, are not limited.
//!
//! A quota applies to the whole group. Example: to emulate half of the speed on two CPUs, a quota
//! of 100 % of one CPU seems right, but a single worker would then run at full speed. The quota is
//! therefore 50 % times the current number of workers, but at most 50 % times the number of online
//! CPUs.
//!
//! A group that has used its quota is stopped until the end of the period, so the workload pauses
//! for up to one period. The period is 10 ms instead of the 100 ms that the kernel uses by default.
//! A pause is then about as long as one disk access. The cost is 100 timer ticks per second. CPUs
//! fetch their part of the quota in slices of 5 ms (`sched_cfs_bandwidth_slice_us`), so a period
//! still has two slices.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use super::cpu;
use crate::{
    cgroup::{self, Version},
    error::RigError,
    host::Host,
    journaled_host::JournaledHost,
    undo::{PREFIX, Step},
};

/// Period of the quota, in microseconds.
const PERIOD: u64 = 10_000;

/// Minimum quota (`min_cfs_quota_period` in kernel/sched/core.c), in microseconds.
const MIN_QUOTA: u64 = 1_000;

/// Value that removes the quota of a group of version 1.
const NO_QUOTA: &str = "-1";

/// Control group with a quota, which contains this process.
#[derive(Debug)]
pub(crate) struct Quota {
    group: PathBuf,
    version: Version,
    percent: u8,
    /// Number of online CPUs when the quota was set.
    processors: u32,
    /// Current number of workers; 0 if the last change failed and the old quota could not be
    /// restored.
    workers: AtomicU32,
    /// Undo step of the quota if `group` is the group that limits the memory of this process;
    /// `None` for a dedicated group.
    borrowed: Option<Step>,
}

impl Quota {
    /// Sets the quota for one worker: moves this process into a dedicated group, or uses the group
    /// that limits its memory. The inner error is the reason why no quota can be set.
    ///
    /// # Errors
    /// [`RigError::Journal`].
    pub(crate) fn enter(
        journaled: &mut JournaledHost,
        host: &dyn Host,
        run_id: &str,
        percent: u8,
    ) -> Result<Result<(Self, Step), String>, RigError> {
        if !host.is_root() {
            return Ok(Err("not root".into()));
        }
        let (version, home) = match cgroup::home(host, "cpu") {
            Ok(home) => home,
            Err(why) => return Ok(Err(why)),
        };
        let processors = cpu::online_now(host).len().max(1);
        let mut quota = Self {
            group: home.clone(),
            version,
            percent,
            processors: u32::try_from(processors).unwrap_or(u32::MAX),
            workers: AtomicU32::new(1),
            borrowed: None,
        };
        let named = |name: &str| name.starts_with(&format!("{PREFIX}{run_id}"));
        let ours = home.file_name().is_some_and(|name| named(&name.to_string_lossy()));
        if version == Version::V2 && ours {
            return quota.borrow_group(journaled, host, &home);
        }
        Ok(quota.make_group(journaled, host, run_id, &home).map(|step| (quota, step)))
    }

    /// Creates a dedicated group with the quota and moves this process into it.
    fn make_group(
        &mut self,
        journaled: &mut JournaledHost,
        host: &dyn Host,
        run_id: &str,
        home: &Path,
    ) -> Result<Step, String> {
        let parent = match self.version {
            Version::V1 => home.to_owned(),
            Version::V2 => cgroup::parent(journaled, host, home, "cpu")?,
        };
        self.group = parent.join(format!("{PREFIX}{run_id}-cpu"));
        journaled
            .group(&self.group, home, |host| {
                let mut writes = self.writes(self.amounts()).into_iter();
                writes.try_for_each(|(path, text)| host.write(&path, &text))
            })
            .map_err(|error| format!("{}: {error}", self.group.display()))
    }

    /// Sets the quota of the group that limits the memory of this process. With version 2, a
    /// process can be in one group only.
    fn borrow_group(
        mut self,
        journaled: &mut JournaledHost,
        host: &dyn Host,
        home: &Path,
    ) -> Result<Result<(Self, Step), String>, RigError> {
        let writes = self.writes(self.amounts());
        let Some((path, text)) = writes.first() else { return Ok(Err("nothing to write".into())) };
        if host.entry(path).is_err()
            && let Some(parent) = home.parent()
            && let Err(error) =
                journaled.write_command(&parent.join("cgroup.subtree_control"), "+cpu", "-cpu")
        {
            return Ok(Err(format!("the cpu controller cannot be enabled: {error}")));
        }
        let (step, warning) = journaled.set("cpu_speed", path, text)?;
        Ok(match step {
            Some(step) => {
                self.borrowed = Some(step);
                Ok((self, step))
            }
            None => Err(warning.map_or_else(String::new, |warning| warning.message())),
        })
    }

    /// Quota and period in microseconds for the current number of workers.
    fn amounts(&self) -> (u64, u64) {
        self.amounts_for(self.workers.load(Ordering::Relaxed))
    }

    /// Quota and period in microseconds for this number of workers.
    fn amounts_for(&self, workers: u32) -> (u64, u64) {
        let workers = workers.clamp(1, self.processors);
        let parts = u64::from(self.percent) * u64::from(workers);
        // `parts` is the CPU time per period, in hundredths of a period.
        let quota = PERIOD * parts / 100;
        if quota >= MIN_QUOTA {
            (quota, PERIOD)
        } else {
            (MIN_QUOTA, MIN_QUOTA * 100 / parts.max(1))
        }
    }

    /// Files and texts that set a quota and its period, in the order of the writes.
    fn writes(&self, (quota, period): (u64, u64)) -> Vec<(PathBuf, String)> {
        match self.version {
            // The quota is removed first, because at no time may the ratio of quota and period
            // exceed that of the parent group.
            Version::V1 => vec![
                (self.group.join("cpu.cfs_quota_us"), NO_QUOTA.into()),
                (self.group.join("cpu.cfs_period_us"), period.to_string()),
                (self.group.join("cpu.cfs_quota_us"), quota.to_string()),
            ],
            Version::V2 => vec![(self.group.join("cpu.max"), format!("{quota} {period}"))],
        }
    }

    /// Changes the quota to that for this number of workers. If this fails, the old quota is
    /// restored, and the next call tries again.
    ///
    /// # Errors
    /// The reason as text.
    pub(crate) fn set_workers(
        &self,
        journaled: &mut JournaledHost,
        workers: u32,
    ) -> Result<(), String> {
        let workers = workers.max(1);
        let (before, after) = (self.amounts(), self.amounts_for(workers));
        if after != before || self.workers.load(Ordering::Relaxed) == 0 {
            let writes = self.writes(after);
            match (self.borrowed, writes.first()) {
                (Some(step), Some((path, text))) => journaled
                    .adjust(step, text)
                    .map_err(|error| error.to_string())?
                    .map_err(|error| format!("{}: {error}", path.display()))?,
                _ => {
                    apply(journaled, &writes).map_err(|why| self.restore(journaled, before, why))?
                }
            }
        }
        self.workers.store(workers, Ordering::Relaxed);
        Ok(())
    }

    /// Restores the old quota after a change that failed and may have been applied partly. Returns
    /// `why`, followed by the errors of the restoration.
    fn restore(&self, journaled: &mut JournaledHost, amounts: (u64, u64), why: String) -> String {
        // All writes are tried, because a quota with a wrong period is better than none. The write
        // that removes the quota is omitted: the quota was removed already, or it is unchanged.
        let errors: Vec<_> = self
            .writes(amounts)
            .into_iter()
            .filter(|(_, text)| text != NO_QUOTA)
            .filter_map(|write| apply(journaled, &[write]).err())
            .collect();
        if errors.is_empty() {
            return why;
        }
        self.workers.store(0, Ordering::Relaxed);
        format!("{why}; the old quota was not restored: {}", errors.join("; "))
    }

    /// Description of the quota for the current number of workers, which is initially 1.
    pub(crate) fn describe(&self) -> String {
        let (quota, period) = self.amounts();
        format!("{quota} us per {period} us and worker, on {} CPUs", self.processors)
    }
}

/// Writes the files in order, up to the first failure.
fn apply(journaled: &mut JournaledHost, writes: &[(PathBuf, String)]) -> Result<(), String> {
    writes.iter().try_for_each(|(path, text)| {
        let what = format!("write {text} to {}", path.display());
        let (written, _) = journaled.execute(what, |host| host.write(path, text));
        written.map_err(|error| format!("{}: {error}", path.display()))
    })
}

#[cfg(test)]
mod tests;
