//! Storage of a run, as far as the filesystem instances of the run need it.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
};

use model::Storage;

use crate::{
    activity::MonitorCache, device::Backing, guard::ClaimedDevice, host::Host,
    journaled_host::JournaledHost,
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
}

impl Base {
    pub(crate) fn describe(&self) -> String {
        match &self.backing {
            Backing::Devices(devices) => {
                let lines: Vec<_> = devices.iter().map(ClaimedDevice::describe).collect();
                lines.join("\n")
            }
            Backing::Images(_) | Backing::Directory(_) => self.storage.to_string(),
        }
    }
}
