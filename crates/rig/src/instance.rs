//! One instance: a freshly made filesystem, mounted for one trial, and taken away again.

mod fill;
mod layered;
mod make;
mod prepare;
mod step;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use model::{
    Bytes, Environment, Factors, FilesystemLevel, Fullness, Isolation, Nanos, Warning,
    record::Action, sample::lifecycle,
};

use self::step::Running;
pub use self::step::{ProgramTime, Step};
use crate::{
    bench::Bench,
    caches,
    catalogue::Filesystem,
    device::{DeviceCounters, DeviceStat, name_of},
    error::RigError,
    evidence::{Listener, Watch},
    host::{Host, Statistics, Unread},
    knobs::Quota,
    layers::Weakness,
    mount::MountRequest,
    storage::Shared,
    undo,
};

/// Nothing is set.
static NO_FACTORS: Factors = Factors::new();

/// What an instance is to be.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The catalogue entry it is made from.
    pub filesystem: &'a Filesystem,
    /// The level of the plan's axis.
    pub level: &'a FilesystemLevel,
    /// The entry named by [`FilesystemLevel::becomes`].
    pub becomes: Option<&'a Filesystem>,
    /// The I/O scheduler of every device of the stack; `None` leaves it alone.
    pub scheduler: Option<&'a str>,
    /// Settings of the machine; those that are not there are left alone.
    pub factors: &'a Factors,
    /// How full it is before the workload starts.
    pub fullness: Fullness,
    /// Whether images are attached anew before it is made.
    pub isolation: Isolation,
    /// Writes a source tree of so many files into a directory, which it makes; the error says why
    /// not.
    pub populate: &'a dyn Fn(&Path, u64) -> Result<(), String>,
}

impl<'a> Wanted<'a> {
    /// A catalogue entry as it is, with nothing else asked for; a level that populates fails.
    pub fn plain(filesystem: &'a Filesystem, level: &'a FilesystemLevel) -> Self {
        Self {
            filesystem,
            level,
            becomes: None,
            scheduler: None,
            factors: &NO_FACTORS,
            fullness: Fullness(0),
            isolation: Isolation::Remount,
            populate: &|_, _| Err("nothing here writes source trees".into()),
        }
    }
}

/// What a filesystem offers right after it was made and set up, and what filling it up leaves of
/// that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// What an ordinary user can fill, beside what the plan's `setup` has put there.
    pub usable: Bytes,
    /// What of it is left when the workload starts: all, unless the plan fills the filesystem up.
    pub left: Bytes,
    /// The devices of the storage that it lies on, together and whatever layers make of them;
    /// without devices what the filesystem says of itself.
    pub total: Bytes,
    /// Inodes; `None` where they are made on demand.
    pub inodes: Option<u64>,
}

/// What the files of a workload take.
///
/// The two are not asked of the same source: `used` is statfs(2)'s, which counts metadata, journal
/// and whatever the filesystem sets aside for later; it is 0 where less is taken than before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Space taken beyond what was taken when the workload started: right after the first mount, or
    /// after filling up.
    pub used: Bytes,
    /// Sizes of all regular files together, each once however many names it has.
    pub data: Bytes,
}

/// How an instance ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finish {
    /// The steps around the phases, named as in [`model::sample::lifecycle`], in their order.
    pub lifecycle: Vec<Step>,
    /// What the check found, if it found damage.
    pub damage: Option<String>,
    /// Facts that are known in the end only: what a log of writes holds.
    pub facts: Environment,
    /// What must be known of the end.
    pub warnings: Vec<Warning>,
}

/// A mounted filesystem under test. [`Mounted::finish`] takes it away and tells how that went;
/// dropping it takes it away as well as it can.
#[derive(Debug)]
pub struct Mounted {
    shared: Arc<Shared>,
    /// Directory below which workloads work.
    directory: PathBuf,
    /// How it is mounted; `None` for a directory of somebody else's filesystem.
    request: Option<MountRequest>,
    mounted: Option<undo::Step>,
    /// Further changes, oldest first.
    steps: Vec<(undo::Step, String)>,
    /// What begins to fail with the first measured phase.
    weaknesses: Vec<Weakness>,
    /// What ends the faults that have begun.
    faults: Option<Vec<(undo::Step, String)>>,
    /// Devices it lies on, which layers may have made; empty when it has none, or none of its own.
    devices: Vec<PathBuf>,
    /// The devices of the storage below layers; empty without layers.
    lowest: Vec<PathBuf>,
    images: Vec<PathBuf>,
    /// Names of the devices whose counters tell what it moves: of those it lies on. What is below
    /// them, a watch finds.
    counted: Vec<String>,
    /// Names of the kernel threads that do what the filesystem puts off.
    threads: Vec<String>,
    in_memory: bool,
    fsck: Option<(Vec<String>, Vec<i32>)>,
    lifecycle: Vec<Step>,
    space: Space,
    /// Space taken when the workload starts.
    used_before: Bytes,
    /// Names in the root that are not the workload's: what the filesystem, its setup, and filling
    /// it up have put there.
    foreign: Vec<String>,
    options: String,
    environment: Environment,
    warnings: Vec<Warning>,
    /// What stands in for the speed of the processors, if anything does.
    quota: Option<Quota>,
}

impl Mounted {
    /// The directory below which workloads work. It may hold what the filesystem itself put there,
    /// such as `lost+found`, what the plan's `setup` left, and `fslab-fill` if it was filled up.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The steps so far: mkfs, setup, and mount, where there were any.
    pub fn lifecycle(&self) -> &[Step] {
        &self.lifecycle
    }

    /// What the filesystem offered right after it was made and set up.
    pub fn space(&self) -> Space {
        self.space
    }

    /// The mount options in force, as the kernel tells them.
    pub fn options(&self) -> &str {
        &self.options
    }

    /// Facts that hold for this instance: mount options, settings of its devices.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// What must be known of this instance before believing a number.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Tells how many workers what comes next has: where a share of the processors' time stands in
    /// for their speed, it is that of so many. `Some` says why that could not be changed.
    pub fn expect_workers(&self, workers: u32) -> Option<Warning> {
        let quota = self.quota.as_ref()?;
        let changed = quota.share_among(&mut self.shared.bench(), workers);
        changed.err().map(|found| Warning::ReadBack {
            setting: "cpu_speed".into(),
            wanted: format!("a share for {workers} workers"),
            found,
        })
    }

    /// What was done to the machine since the last call.
    pub fn take_actions(&self) -> Vec<Action> {
        self.shared.bench().take_actions()
    }

    /// What its devices have moved; `None` where the device is not known or keeps no account. For a
    /// directory that is all that was moved on its device, by anybody.
    pub fn counters(&self) -> Option<DeviceCounters> {
        let mut sum = DeviceCounters::default();
        for name in &self.counted {
            let counters = DeviceStat::read(&*self.shared.host, name)?.counters;
            sum.read = sum.read + counters.read;
            sum.written = sum.written + counters.written;
        }
        (!self.counted.is_empty()).then_some(sum)
    }

    /// Begins to listen to the kernel's log.
    pub fn listen(&self) -> Listener {
        Listener::start(Arc::clone(&self.shared.host), &self.counted, &self.shared.roster)
    }

    /// Begins to look at the machine.
    pub fn watch(&self) -> Watch {
        Watch::start(Arc::clone(&self.shared.host), &self.counted, &self.shared.roster)
    }

    /// Begins a step.
    fn begin(&self, name: &'static str) -> Running {
        Running::begin(name, self.watch())
    }

    /// Mounts, and keeps it as a step.
    fn mount_timed(&mut self, bench: &mut Bench) -> Result<(), RigError> {
        let running = self.begin(lifecycle::MOUNT);
        let elapsed = self.mount(bench)?;
        self.lifecycle.push(running.called(elapsed));
        Ok(())
    }

    fn mount(&mut self, bench: &mut Bench) -> Result<Nanos, RigError> {
        let Some(request) = &self.request else { return Ok(Nanos(0)) };
        let (step, elapsed) = bench.mount(request)?;
        self.mounted = Some(step);
        Ok(elapsed)
    }

    fn unmount(&mut self, bench: &mut Bench) -> Result<Nanos, RigError> {
        let target = || self.directory.clone();
        let step = self.mounted.ok_or_else(|| RigError::NotMounted { target: target() })?;
        let elapsed = bench.unmount(step, &self.directory)?;
        self.mounted = None;
        Ok(elapsed)
    }

    /// What the files that are there now take, after a flush; `None` where the filesystem is
    /// somebody else's. Looking at every file leaves their inodes in memory, where an unmount then
    /// finds them.
    ///
    /// # Errors
    /// [`RigError::Ask`] when the filesystem or a directory cannot be read, and
    /// [`RigError::Caches`] when writing back fails.
    pub fn occupancy(&mut self) -> Result<Option<Occupancy>, RigError> {
        if self.request.is_none() {
            return Ok(None);
        }
        let mut bench = self.shared.bench();
        caches::sync(&mut bench, &self.directory)?;
        let used = statistics(&*self.shared.host, &self.directory)?.used() - self.used_before;
        let what = format!("add up the files below {}", self.directory.display());
        let foreign: Vec<&str> = self.foreign.iter().map(String::as_str).collect();
        let (data, _) = bench.act(what, |host| host.sizes(&self.directory, &foreign));
        let data = data.map_err(|Unread { path, source }| RigError::Ask { path, source })?;
        Ok(Some(Occupancy { used, data }))
    }

    /// Leaves nothing of the filesystem in memory, and looks that it is so.
    ///
    /// With devices: written back, unmounted, device caches flushed, kernel caches dropped, mounted
    /// again with the same options. The check is made while unmounted: neither the devices nor the
    /// images may have pages in memory. In a directory: written back and dropped file by file, and
    /// the kernel's caches too as root; without root, names and inodes stay in memory. `Some` says
    /// what stayed.
    ///
    /// # Errors
    /// [`RigError`] when it cannot be unmounted, or not mounted again; only finishing is left then.
    pub fn make_cold(&mut self) -> Result<Option<Warning>, RigError> {
        if self.in_memory {
            let reason = "the filesystem lives in memory".into();
            return Ok(Some(Warning::CacheKept { reason }));
        }
        let shared = Arc::clone(&self.shared);
        let mut bench = shared.bench();
        if self.request.is_none() {
            return caches::evict(&mut bench, &self.directory);
        }
        if self.mounted.is_none() {
            return Err(RigError::NotMounted { target: self.directory.clone() });
        }
        caches::sync(&mut bench, &self.directory)?;
        self.unmount(&mut bench)?;
        let devices = [&self.devices[..], &self.lowest[..]].concat();
        let kept = caches::drop_devices(&mut bench, &devices, &self.images)?;
        self.mount(&mut bench)?;
        Ok(kept)
    }

    /// Writes back and waits until the devices are idle (nothing in flight, and nothing completed
    /// over three short looks in a row), and until the kernel threads that do what the filesystem
    /// has put off use next to no CPU time over the same looks. `Some` when that does not come
    /// within `limit`.
    ///
    /// # Errors
    /// [`RigError::Caches`] when writing back fails.
    pub fn settle(&mut self, limit: Nanos) -> Result<Option<Warning>, RigError> {
        let shared = Arc::clone(&self.shared);
        let mut bench = shared.bench();
        caches::sync(&mut bench, &self.directory)?;
        // A cache or an array may work on below when the filesystem has long been at rest.
        let below = self.lowest.iter().map(|device| name_of(device));
        let working: Vec<String> = self.counted.iter().cloned().chain(below).collect();
        let rest = caches::settle(&*shared.host, &working, &self.threads, limit);
        if !rest.restless.is_empty() {
            let names = rest.restless.into_iter().collect::<Vec<_>>().join(" ");
            self.environment.set("background.waited_for", &names);
            bench.note(format!("wait for {names}"), rest.waited);
        }
        Ok(rest.warning)
    }

    /// Unmounts, checks if asked to, and undoes what was changed for this instance.
    ///
    /// # Errors
    /// [`RigError::Unmount`] or [`RigError::Undo`]; what is left then is undone with the rig or by
    /// `fslab clean`.
    pub fn finish(mut self, fsck: bool) -> Result<Finish, RigError> {
        let shared = Arc::clone(&self.shared);
        let mut bench = shared.bench();
        if self.mounted.is_some() {
            let running = self.begin(lifecycle::UMOUNT);
            let elapsed = self.unmount(&mut bench)?;
            self.lifecycle.push(running.called(elapsed));
        }
        let (facts, warnings) = self.end_faults(&mut bench)?;
        let mut damage = None;
        if let Some((argv, clean)) = self.fsck.take().filter(|_| fsck) {
            let running = self.begin(lifecycle::FSCK);
            let output = bench.run(&argv)?;
            self.lifecycle.push(running.ran(&output));
            let is_clean = output.status.is_some_and(|status| clean.contains(&status));
            damage = (!is_clean).then(|| format!("{} {}", argv[0], output.verdict()));
        }
        let undone = self.undo(&mut bench);
        drop(bench);
        undone?;
        let lifecycle = std::mem::take(&mut self.lifecycle);
        Ok(Finish { lifecycle, damage, facts, warnings })
    }

    /// Undoes what is open, newest first; goes on after a failure and tells the first. Devices are
    /// sound again before anything is unmounted: what could not be measured is to come off.
    fn undo(&mut self, bench: &mut Bench) -> Result<(), RigError> {
        let mut answer = Ok(());
        let mounted = self.mounted.take().map(|step| (step, "mount".to_owned()));
        let faults = self.faults.take().unwrap_or_default();
        for (step, what) in self.steps.drain(..).chain(mounted).chain(faults).rev() {
            answer = answer.and(bench.undo(step, what));
        }
        answer
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let shared = Arc::clone(&self.shared);
        let undone = self.undo(&mut shared.bench());
        match undone {
            Ok(()) => shared.occupied.store(false, Ordering::Release),
            // The storage stays occupied: nothing may be made on what may still be mounted.
            Err(error) => tracing::warn!(%error, "an instance was not taken away in full"),
        }
    }
}

fn statistics(host: &dyn Host, path: &Path) -> Result<Statistics, RigError> {
    host.statistics(path).map_err(|source| RigError::Ask { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
