//! Making an instance: settings, mkfs, setup, mount, filling up, reading back.

use std::{
    path::Path,
    sync::{Arc, MutexGuard, atomic::AtomicBool},
};

use model::{Bytes, Environment, Fullness, Isolation, Warning, sample::lifecycle};

use super::{Mounted, Space, Wanted, fill, statistics};
use crate::{
    bench::Bench,
    catalogue::{Filesystem, Kind},
    device::{self, Backing, Share, name_of},
    error::RigError,
    guard,
    knobs::{self, Tuning},
    layers::footing,
    mount::holder,
    options::{InForce, in_force},
    probe,
    setup::{self, Ground},
    storage::Rig,
    undo::PREFIX,
};

/// How far the fullness may be off what the plan asks for, in points of percent.
const TOLERANCE: f64 = 2.0;

/// What ext2, ext3, and ext4 answer to statfs(2) (include/uapi/linux/magic.h).
const EXT: u64 = 0xef53;

impl Mounted {
    /// Sees that the instance can be made, and attaches its images anew where that is wanted; what
    /// is told is what the new devices refused.
    pub(crate) fn ready(rig: &Rig, wanted: &Wanted<'_>) -> Result<Vec<Warning>, RigError> {
        fits(rig, wanted)?;
        match wanted.isolation {
            Isolation::Reattach => share(rig, wanted)?.reattach(&rig.shared),
            Isolation::Remount | Isolation::Reboot => Ok(Vec::new()),
        }
    }

    /// Makes the instance, with the warnings there are already. Whatever fails, dropping the
    /// half-made one undoes it and frees the storage.
    pub(crate) fn make(
        rig: &Rig,
        wanted: &Wanted<'_>,
        warnings: Vec<Warning>,
    ) -> Result<Self, RigError> {
        let Wanted { filesystem, becomes, .. } = *wanted;
        // What it is when it is measured.
        let last = becomes.unwrap_or(filesystem);
        let share = share(rig, wanted)?;
        let devices = match filesystem.kind {
            Kind::Block => share.devices(),
            Kind::Memory | Kind::Directory => Vec::new(),
        };
        // The settings are those of the storage's own devices, on which layers are built later.
        let counted: Vec<String> = devices.iter().map(|device| name_of(device)).collect();
        let mut mounted = Self {
            shared: Arc::clone(&rig.shared),
            directory: rig.mount_point.clone(),
            request: None,
            mounted: None,
            steps: Vec::new(),
            weaknesses: Vec::new(),
            faults: None,
            threads: last.background_threads(&counted),
            counted,
            lowest: Vec::new(),
            images: share.images().iter().map(|image| image.path.clone()).collect(),
            devices,
            in_memory: filesystem.kind == Kind::Memory,
            fsck: None,
            lifecycle: Vec::new(),
            space: Space::default(),
            used_before: Bytes(0),
            foreign: Vec::new(),
            options: String::new(),
            environment: Environment::default(),
            warnings,
            quota: None,
        };
        mounted.tune(rig, wanted)?;
        match &rig.backing {
            Backing::Directory(parent) => {
                mounted.make_directory(rig, parent)?;
                mounted.weigh(rig, Bytes(0))?;
            }
            Backing::Images(_) | Backing::Devices(_) => mounted.make_filesystem(rig, wanted)?,
        }
        mounted.look(last);
        Ok(mounted)
    }

    /// Makes the settings that are axes of the plan. All devices have to be there.
    fn tune(&mut self, rig: &Rig, wanted: &Wanted<'_>) -> Result<(), RigError> {
        let shared = Arc::clone(&self.shared);
        let (host, mut bench) = (&*shared.host, shared.bench());
        let own: Vec<String> = rig.backing.devices().iter().map(|device| name_of(device)).collect();
        let devices = knobs::queue::stack(host, &self.counted, &own);
        let mut tuning = Tuning::default();
        let settings = (wanted.scheduler, wanted.factors);
        let answer = tuning
            .machine(&mut bench, host, &rig.options.run_id, wanted.factors)
            .and_then(|()| tuning.devices(&mut bench, host, &devices, settings));
        // What was set before a failure is undone with the rest.
        self.steps.extend(tuning.steps);
        self.warnings.extend(tuning.warnings);
        self.environment.merge(tuning.facts);
        self.quota = tuning.quota;
        answer
    }

    fn make_directory(&mut self, rig: &Rig, parent: &Path) -> Result<(), RigError> {
        let run_id = &rig.options.run_id;
        let tree = parent.join(format!("{PREFIX}{run_id}"));
        // The marker lies beside the workload's directory, not in it.
        self.directory = tree.join("data");
        let mut bench = self.shared.bench();
        let step = bench.tree(&tree, run_id)?;
        self.steps.push((step, format!("directory {}", tree.display())));
        let (made, _) = bench.act(format!("mkdir {}", self.directory.display()), |host| {
            host.make_directory(&self.directory)
        });
        made.map_err(|source| RigError::Directory { path: self.directory.clone(), source })?;
        drop(bench);
        self.counted = probe::device_of(&*self.shared.host, parent).into_iter().collect();
        Ok(())
    }

    fn make_filesystem(&mut self, rig: &Rig, wanted: &Wanted<'_>) -> Result<(), RigError> {
        let Wanted { filesystem, becomes, fullness, .. } = *wanted;
        let share = share(rig, wanted)?;
        let whole = share.sizes().into_iter().map(|(_, size)| size).sum();
        let shared = Arc::clone(&self.shared);
        let InForce { level, gone, kept } =
            in_force(wanted.level, filesystem, becomes, &*shared.host);
        self.warnings.extend(gone);
        if !kept.is_empty() {
            self.environment.set("filesystem.options", kept.join("; "));
        }
        let directory = self.directory.clone();
        let last = becomes.unwrap_or(filesystem);
        let mut bench = shared.bench();
        let mut size = whole;
        if filesystem.kind == Kind::Block {
            share.renew(&mut bench)?;
            share.recheck(&mut bench)?;
            if !level.layers.is_empty() {
                size = self.stand_on(&mut bench, rig, wanted, share)?;
            }
        }
        let devices: Vec<String> =
            self.devices.iter().map(|device| device.display().to_string()).collect();
        let ground = Ground { devices: &devices, size, target: &directory };
        if filesystem.kind == Kind::Block {
            self.mkfs(&mut bench, &filesystem.mkfs_argv(&devices, &level))?;
            let stages = setup::stages(&level, filesystem, becomes, ground);
            if !stages.is_empty() {
                self.prepare(&mut bench, &stages, wanted, &rig.options.interrupt)?;
            }
            self.features(&mut bench, last, &devices)?;
        }
        self.request = Some(ground.request(last, &level));
        self.fsck = last.fsck_argv(&devices).map(|argv| (argv, last.fsck_clean.clone()));
        if fullness.is_empty() || self.in_memory {
            self.mount_timed(&mut bench)?;
        } else {
            self.mount(&mut bench)?;
        }
        self.check_magic(last)?;
        self.weigh(rig, whole)?;
        if !fullness.is_empty() {
            self.fill(bench, fullness, &rig.options.interrupt)?;
        }
        // Whoever asks later finds the workload's own files beside these.
        self.foreign = shared.host.list(&self.directory).unwrap_or_default();
        self.foreign.extend(["lost+found", fill::FOLDER].map(str::to_owned));
        self.warnings.extend(share.unreserved(&*self.shared.host));
        Ok(())
    }

    /// Makes the filesystem. What the program leaves in the page cache of the devices is written
    /// back before the watching ends, though the time told is the program's own: some programs
    /// flush, and some leave that to the kernel. It also makes every first mount read the devices.
    fn mkfs(&mut self, bench: &mut Bench, argv: &[String]) -> Result<(), RigError> {
        let running = self.begin(lifecycle::MKFS);
        let output = bench.run(argv)?;
        if !output.success() {
            let (command, verdict) = (argv.join(" "), output.verdict());
            return Err(RigError::Mkfs { command, verdict });
        }
        device::flush(bench, &self.devices)?;
        self.lifecycle.push(running.ran(&output));
        Ok(())
    }

    /// Asks the filesystem's own tool what it was made with, before the kernel changes any of it. A
    /// tool that is missing or fails tells nothing, and that is no reason to stop. What it has read
    /// is dropped again.
    fn features(
        &mut self,
        bench: &mut Bench,
        filesystem: &Filesystem,
        devices: &[String],
    ) -> Result<(), RigError> {
        let host = Arc::clone(&self.shared.host);
        let there = |argv: &Vec<String>| argv.first().is_some_and(|name| host.find(name).is_some());
        let argv = filesystem.features_argv(devices).filter(there);
        let Some(argv) = argv else { return Ok(()) };
        if let Ok(output) = bench.run(&argv)
            && output.success()
        {
            let told = filesystem.features_in(&output.stdout, devices);
            self.environment.set("filesystem.features", told);
        }
        device::flush(bench, &self.devices)
    }

    /// Fills the filesystem up; then the page cache forgets it, and its next mount is the one that
    /// is timed. One in memory would lose its files, so it stays mounted.
    fn fill(
        &mut self,
        mut bench: MutexGuard<'_, Bench>,
        fullness: Fullness,
        stop: &AtomicBool,
    ) -> Result<(), RigError> {
        let host = Arc::clone(&self.shared.host);
        let before = statistics(&*host, &self.directory)?;
        fill::fill(&mut bench, &*host, &self.directory, fullness, stop)?;
        if !self.in_memory {
            self.unmount(&mut bench)?;
            device::flush(&mut bench, &self.devices)?;
            self.mount_timed(&mut bench)?;
        }
        let now = statistics(&*host, &self.directory)?;
        let reached = fill::reached(before, now);
        self.space.left = now.usable;
        self.used_before = now.used();
        self.environment.set("fill.reached_percent", format!("{reached:.1}"));
        if (reached - f64::from(fullness.0)).abs() > TOLERANCE {
            self.warnings.push(Warning::ReadBack {
                setting: "full".into(),
                wanted: fullness.to_string(),
                found: fill::text(reached),
            });
        }
        Ok(())
    }

    pub(super) fn check_magic(&self, filesystem: &Filesystem) -> Result<(), RigError> {
        let found = statistics(&*self.shared.host, &self.directory)?.magic;
        if filesystem.magic == 0 || filesystem.magic == found {
            return Ok(());
        }
        Err(RigError::Magic {
            filesystem: filesystem.name.clone(),
            target: self.directory.clone(),
            wanted: filesystem.magic,
            found,
        })
    }

    /// Takes down what the filesystem offers before anything is in it, on devices of that size
    /// together.
    fn weigh(&mut self, rig: &Rig, devices: Bytes) -> Result<(), RigError> {
        guard::store_outside(&rig.options.store_file, &self.directory)?;
        let statistics = statistics(&*self.shared.host, &self.directory)?;
        self.space = Space {
            usable: statistics.usable,
            left: statistics.usable,
            total: if self.devices.is_empty() { statistics.total } else { devices },
            inodes: Some(statistics.inodes).filter(|inodes| *inodes > 0),
        };
        self.used_before = statistics.used();
        Ok(())
    }

    /// Reads back what came of it: options, settings.
    fn look(&mut self, filesystem: &Filesystem) {
        let host = Arc::clone(&self.shared.host);
        if let Ok(mounts) = host.mounts()
            && let Some(mount) = holder(&mounts, &self.directory)
        {
            self.options = mount.resolved_options();
            self.environment.set("mount.options", &self.options);
            self.environment.set("mount.fstype", &mount.fstype);
            self.environment.merge(probe::cleaner(&*host, mount));
        }
        // ext4 leaves out what its superblock makes a default, and tells all of it here
        // (ext4_seq_options_show in fs/ext4/super.c).
        if let [name, ..] = &self.counted[..]
            && filesystem.magic == EXT
            && let Ok(all) = host.read(&Path::new("/proc/fs/ext4").join(name).join("options"))
        {
            let all = all.lines().collect::<Vec<_>>().join(",");
            self.environment.set("mount.options.with_defaults", all);
        }
        if !filesystem.background.is_empty() {
            self.environment.set("background", &filesystem.background);
        }
        self.environment.merge(probe::profiles(&*host, &self.counted));
        for name in &self.counted {
            self.environment.merge(probe::device(&*host, name));
        }
    }
}

/// The devices that the instance lies on.
fn share<'a>(rig: &'a Rig, wanted: &Wanted<'_>) -> Result<Share<'a>, RigError> {
    let have = rig.backing.devices().len();
    let footing = footing(wanted.level, wanted.filesystem, wanted.becomes, have)?;
    Ok(rig.backing.first(footing.devices))
}

/// The least device that what is made, and what it becomes, take.
pub(super) fn least(wanted: &Wanted<'_>) -> Bytes {
    let min = wanted.filesystem.min;
    wanted.becomes.map_or(min, |becomes| becomes.min.max(min))
}

/// Whether the filesystem can be made on the storage at all, and as the plan wants it.
fn fits(rig: &Rig, wanted: &Wanted<'_>) -> Result<(), RigError> {
    let filesystem = wanted.filesystem;
    let unfit = |cure| {
        let (filesystem, storage) = (filesystem.name.clone(), rig.describe());
        Err(RigError::Storage { filesystem, storage, cure })
    };
    let changes = !wanted.level.setup.is_empty() || wanted.becomes.is_some();
    match (&rig.backing, filesystem.kind) {
        (Backing::Directory(_), Kind::Directory) => {}
        (Backing::Directory(_), Kind::Block | Kind::Memory) => {
            return unfit("name an image or devices as storage, or take filesystem `directory`");
        }
        (Backing::Images(_) | Backing::Devices(_), Kind::Directory) => {
            return unfit("name a directory as storage");
        }
        (Backing::Images(_) | Backing::Devices(_), Kind::Block | Kind::Memory) => {}
    }
    if changes && filesystem.kind != Kind::Block {
        return unfit("a setup needs a filesystem on a device; take `setup` out");
    }
    let share = share(rig, wanted)?;
    if wanted.isolation == Isolation::Reattach && share.images().is_empty() {
        return unfit("only images can be attached anew; use isolation remount or reboot");
    }
    let min = least(wanted);
    let small = share.sizes().into_iter().find(|(_, size)| *size < min);
    // What layers make of small devices may be large enough.
    match small.filter(|_| wanted.level.layers.is_empty()) {
        Some((device, size)) => {
            Err(RigError::TooSmall { filesystem: filesystem.name.clone(), device, size, min })
        }
        None => Ok(()),
    }
}
