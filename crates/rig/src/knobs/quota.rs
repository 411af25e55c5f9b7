//! A share of the processors' time, where their speed cannot be set.
//!
//! This process is moved into a control group with a quota (Documentation/scheduler/sched-bwc.rst;
//! version 2: `cpu.max` in cgroup-v2.rst); the programs that it starts begin there. The kernel's
//! own threads, which write back and complete I/O, are not held back.
//!
//! A quota is one for the whole group: half of the time of two processors would be all of one, and
//! one worker alone would run at full speed. So the group has the share of as many processors as
//! there are workers at the time, and of no more than are online.
//!
//! A group that has used its quota stands still until the period is over, so a period shows as a
//! pause of up to its length. 10 ms, instead of the kernel's 100 ms, keep that pause about as short
//! as one access of a disk, cost 100 ticks of a timer a second, and leave room for two slices of
//! 5 ms, by which processors fetch their part of the quota (`sched_cfs_bandwidth_slice_us`).

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use super::cpu;
use crate::{
    bench::Bench,
    cgroup::{self, Version},
    error::RigError,
    host::Host,
    undo::{PREFIX, Step},
};

/// The period, in microseconds.
const PERIOD: u64 = 10_000;

/// The least quota (`min_cfs_quota_period` in kernel/sched/core.c), in microseconds.
const LEAST: u64 = 1_000;

/// What lifts the quota of a group of version 1.
const LIFTED: &str = "-1";

/// A group with a quota that this process is in.
#[derive(Debug)]
pub(crate) struct Quota {
    group: PathBuf,
    version: Version,
    share: u8,
    /// Processors that were online when it was made.
    processors: u32,
    /// Workers that it is for now; 0 where it could not be set for any.
    workers: AtomicU32,
    /// What undoes the quota, where the group is not its own.
    lent: Option<Step>,
}

impl Quota {
    /// Moves this process into a group with the share of one processor; the inner error says why
    /// it cannot be.
    ///
    /// # Errors
    /// [`RigError::Journal`].
    pub(crate) fn enter(
        bench: &mut Bench,
        host: &dyn Host,
        run_id: &str,
        share: u8,
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
            share,
            processors: u32::try_from(processors).unwrap_or(u32::MAX),
            workers: AtomicU32::new(1),
            lent: None,
        };
        let named = |name: &str| name.starts_with(&format!("{PREFIX}{run_id}"));
        let ours = home.file_name().is_some_and(|name| named(&name.to_string_lossy()));
        if version == Version::V2 && ours {
            return quota.borrow_group(bench, host, &home);
        }
        Ok(quota.make_group(bench, host, run_id, &home).map(|step| (quota, step)))
    }

    /// Makes a group for the quota alone.
    fn make_group(
        &mut self,
        bench: &mut Bench,
        host: &dyn Host,
        run_id: &str,
        home: &Path,
    ) -> Result<Step, String> {
        let parent = match self.version {
            Version::V1 => home.to_owned(),
            Version::V2 => cgroup::parent(bench, host, home, "cpu")?,
        };
        self.group = parent.join(format!("{PREFIX}{run_id}-cpu"));
        bench
            .group(&self.group, home, |host| {
                let mut writes = self.writes(self.amounts()).into_iter();
                writes.try_for_each(|(path, text)| host.write(&path, &text))
            })
            .map_err(|error| format!("{}: {error}", self.group.display()))
    }

    /// Gives the group that limits the memory of this process the quota, too: in version 2 a
    /// process is in one group only.
    fn borrow_group(
        mut self,
        bench: &mut Bench,
        host: &dyn Host,
        home: &Path,
    ) -> Result<Result<(Self, Step), String>, RigError> {
        let writes = self.writes(self.amounts());
        let Some((path, text)) = writes.first() else { return Ok(Err("nothing to write".into())) };
        if host.entry(path).is_err()
            && let Some(parent) = home.parent()
            && let Err(error) = bench.order(&parent.join("cgroup.subtree_control"), "+cpu", "-cpu")
        {
            return Ok(Err(format!("the cpu controller cannot be switched on: {error}")));
        }
        let (step, warning) = bench.set("cpu_speed", path, text)?;
        Ok(match step {
            Some(step) => {
                self.lent = Some(step);
                Ok((self, step))
            }
            None => Err(warning.map_or_else(String::new, |warning| warning.message())),
        })
    }

    /// Quota and period in microseconds for the workers there are now.
    fn amounts(&self) -> (u64, u64) {
        self.amounts_for(self.workers.load(Ordering::Relaxed))
    }

    /// The same for so many workers.
    fn amounts_for(&self, workers: u32) -> (u64, u64) {
        let workers = workers.clamp(1, self.processors);
        let parts = u64::from(self.share) * u64::from(workers);
        // Each hundredth of a processor and of the period.
        let quota = PERIOD * parts / 100;
        if quota >= LEAST { (quota, PERIOD) } else { (LEAST, LEAST * 100 / parts.max(1)) }
    }

    /// What sets a quota and its period, in order.
    fn writes(&self, (quota, period): (u64, u64)) -> Vec<(PathBuf, String)> {
        match self.version {
            // Lifted first: at no time may the share be above that of a group above.
            Version::V1 => vec![
                (self.group.join("cpu.cfs_quota_us"), LIFTED.into()),
                (self.group.join("cpu.cfs_period_us"), period.to_string()),
                (self.group.join("cpu.cfs_quota_us"), quota.to_string()),
            ],
            Version::V2 => vec![(self.group.join("cpu.max"), format!("{quota} {period}"))],
        }
    }

    /// Changes it for so many workers. What fails leaves the quota as it was, and the next call
    /// tries again.
    ///
    /// # Errors
    /// Why it cannot be, in words.
    pub(crate) fn share_among(&self, bench: &mut Bench, workers: u32) -> Result<(), String> {
        let workers = workers.max(1);
        let (before, after) = (self.amounts(), self.amounts_for(workers));
        if after != before || self.workers.load(Ordering::Relaxed) == 0 {
            let writes = self.writes(after);
            match (self.lent, writes.first()) {
                (Some(step), Some((path, text))) => bench
                    .adjust(step, text)
                    .map_err(|error| error.to_string())?
                    .map_err(|error| format!("{}: {error}", path.display()))?,
                _ => carry_out(bench, &writes).map_err(|why| self.restore(bench, before, why))?,
            }
        }
        self.workers.store(workers, Ordering::Relaxed);
        Ok(())
    }

    /// Puts a quota back after writes of another one failed, of which some may have come off, and
    /// adds to the reason what that came to.
    fn restore(&self, bench: &mut Bench, amounts: (u64, u64), why: String) -> String {
        // Each for itself: under a wrong period a quota is still better than none. It is lifted
        // already, or else has not changed.
        let troubles: Vec<_> = self
            .writes(amounts)
            .into_iter()
            .filter(|(_, text)| text != LIFTED)
            .filter_map(|write| carry_out(bench, &[write]).err())
            .collect();
        if troubles.is_empty() {
            return why;
        }
        self.workers.store(0, Ordering::Relaxed);
        format!("{why}; nor is the quota as it was: {}", troubles.join("; "))
    }

    /// What it is for one worker.
    pub(crate) fn in_words(&self) -> String {
        let (quota, period) = self.amounts();
        format!("{quota} us of each {period} us for each worker, on {} processors", self.processors)
    }
}

/// Writes one after the other, up to the first that fails.
fn carry_out(bench: &mut Bench, writes: &[(PathBuf, String)]) -> Result<(), String> {
    writes.iter().try_for_each(|(path, text)| {
        let what = format!("write {text} to {}", path.display());
        let (written, _) = bench.act(what, |host| host.write(path, text));
        written.map_err(|error| format!("{}: {error}", path.display()))
    })
}

#[cfg(test)]
mod tests;
