//! Storage of a run, as far as the filesystem instances of the run need it.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
};

use model::{Environment, Storage};

use crate::{
    activity::MonitorCache, device::Backing, guard::ClaimedDevice, host::Host,
    journaled_host::JournaledHost, probe, sysfs::name_of,
};

/// Options of a run that are not part of its storage description.
#[derive(Clone, Debug)]
pub struct RigOptions {
    /// Directory that contains the undo journal and the mount point; `None` for
    /// [`crate::undo::default_state_directory`].
    pub state_directory: Option<PathBuf>,
    /// Unique name of the run: lower-case letters, digits, and dashes.
    pub run_id: String,
    /// Devices whose data may be overwritten; see [`crate::guard::Permission::overwrite`].
    pub overwrite: Vec<String>,
    /// Run file. A run file on the filesystem under test is refused.
    pub store_file: PathBuf,
    /// Directory for images if the plan has no `image_directory`. A missing directory is created.
    pub default_image_directory: PathBuf,
    /// Flag that interrupts `setup` and the filling of a filesystem. The caller may set it from any
    /// thread or signal handler.
    pub interrupt: Arc<AtomicBool>,
}

/// State shared by the rig and the current filesystem instance.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) journaled: Mutex<JournaledHost>,
    /// True while an instance exists.
    pub(crate) occupied: AtomicBool,
    pub(crate) monitor_cache: MonitorCache,
}

impl Shared {
    pub(crate) fn journaled(&self) -> MutexGuard<'_, JournaledHost> {
        // The journal is valid even if a thread panicked with the lock, because each line is
        // written before its operation.
        self.journaled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Storage of a run, after the devices were claimed and the images were created.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) shared: Arc<Shared>,
    pub(crate) backing: Backing,
    pub(crate) options: RigOptions,
    pub(crate) mount_point: PathBuf,
    pub(crate) storage: Storage,
    /// Name of the level of the axis `device`; `None` if the storage is not an axis.
    pub(crate) level: Option<String>,
}

impl Base {
    /// Description of the storage, on one line for a level of the axis `device`.
    pub(crate) fn describe(&self) -> String {
        match (&self.level, &self.backing) {
            (Some(name), _) => format!("device {name}: {}", self.describe_level()),
            (None, Backing::Devices(devices)) => {
                let lines: Vec<_> = devices.iter().map(ClaimedDevice::describe).collect();
                lines.join("\n")
            }
            (None, Backing::Images(_) | Backing::Directory(_)) => self.storage.to_string(),
        }
    }

    /// `sdb, model ST4000, 4.0 TB, rotational`, or `image file of 4 GiB (preallocated) on a loop
    /// device, on sdb1, model ST4000, rotational`.
    fn describe_level(&self) -> String {
        let host = &*self.shared.host;
        let mut text = match &self.backing {
            Backing::Devices(devices) => {
                devices.iter().map(ClaimedDevice::summary).collect::<Vec<_>>().join(" + ")
            }
            Backing::Images(_) | Backing::Directory(_) => self.storage.to_string(),
        };
        let facts = self.facts();
        let own = self.backing.devices();
        let device = match (&self.backing, facts.get(&self.key("backing.device"))) {
            (Backing::Images(_) | Backing::Directory(_), Some(below)) => {
                text += &format!(", on {below}");
                let model = probe::disks(host, below);
                let model = model.iter().find_map(|disk| probe::model(host, disk));
                text += &model.map(|model| format!(", model {model}")).unwrap_or_default();
                Some(below.to_owned())
            }
            _ => own.first().map(|device| name_of(device)),
        };
        let rotational = device.and_then(|name| probe::rotational(host, &name));
        text + match rotational {
            Some(true) => ", rotational",
            Some(false) => ", not rotational",
            None => "",
        }
    }

    /// Environment facts about the devices, and about the filesystem that contains the images or
    /// the directory. The facts about this filesystem have the prefix `level.NAME.` for a level of
    /// the axis `device`.
    pub(crate) fn facts(&self) -> Environment {
        let host = &*self.shared.host;
        let mut facts = Environment::default();
        let below = match &self.backing {
            Backing::Images(images) => images.first().map(|image| image.path.as_path()),
            Backing::Directory(path) => Some(path.as_path()),
            Backing::Devices(_) => None,
        };
        let holder = below.map(|path| probe::holder(host, path)).unwrap_or_default();
        for (name, value) in &holder.0 {
            match name.starts_with("backing.") {
                true => facts.set(self.key(name), value),
                false => facts.set(name, value),
            }
        }
        let devices: Vec<String> =
            self.backing.devices().iter().map(|device| name_of(device)).collect();
        for name in &devices {
            facts.merge(probe::device(host, name));
        }
        if self.level.is_some() {
            facts.set(self.key("devices"), devices.join(" "));
        }
        facts
    }

    /// Name of a fact about the storage.
    fn key(&self, fact: &str) -> String {
        match &self.level {
            Some(level) => format!("level.{level}.{fact}"),
            None => fact.to_owned(),
        }
    }
}
