//! Check of a plan after overrides.

use super::{Plan, parse};
use crate::{cell::FilesystemLevel, design::Design, storage::StorageKind, workload::ValueError};

impl Plan {
    /// Checks that filesystems, isolation, guest disk, schedulers, fill levels, and device settings
    /// fit the storage after overrides.
    ///
    /// # Errors
    /// [`ValueError`] if the overrides contradict each other.
    pub fn consistent(&self) -> Result<(), ValueError> {
        let directory = matches!(self.storage.kind, StorageKind::Directory { .. });
        let misfit =
            |level: &&FilesystemLevel| parse::misfit(level, directory, &self.mounted_types);
        if let Some(level) = self.filesystems.iter().find(misfit) {
            let error =
                ValueError::new(format!("filesystem `{}` does not match the storage", level.name));
            return Err(error.hint(match directory {
                true => "set image_size or device to create filesystems",
                false => "set directory=PATH to measure a directory, or filesystem=NAME",
            }));
        }
        // In a guest, a command may mount a filesystem that is created on a device of the guest.
        let mounted = |level: &&FilesystemLevel| {
            let by_type = self.mounted_types.iter().any(|known| known.name == level.fs_type);
            by_type || (directory && parse::is_mounted(level, &self.mounted_types))
        };
        if let Some(level) = self.filesystems.iter().find(mounted).filter(|_| self.guest.is_some())
        {
            let message = match directory {
                true => {
                    format!("filesystem `{}` is mounted by a command on a directory", level.name)
                }
                false => format!("filesystems of type `{}` are mounted by commands", level.fs_type),
            };
            return Err(ValueError::new(format!("{message}, which guests do not run"))
                .hint("remove `guest` to measure it on this machine"));
        }
        let busy = |level: &&FilesystemLevel| parse::needs_device(level, &self.mounted_types);
        if let Some(level) = self.filesystems.iter().find(busy).filter(|_| directory) {
            let message = format!(
                "filesystem `{}` has setup steps, but the storage is a directory",
                level.name
            );
            return Err(ValueError::new(message).hint("set image_size or device"));
        }
        if let Some((message, hint)) = parse::conditions::unfit(self.isolation, &self.storage) {
            return Err(ValueError::new(message).hint(hint));
        }
        let disk = parse::conditions::unfit_disk(self.guest, self.guest_disk, &self.storage);
        if let Some((message, hint)) = disk {
            return Err(ValueError::new(message).hint(hint));
        }
        if self.cluster.is_some() && self.guest.is_some() {
            return Err(ValueError::new("guests have no network, so they cannot mount a cluster")
                .hint("remove `guest`"));
        }
        let workloads = self.workloads.iter().flat_map(|entry| &entry.system_settings);
        let mut settings = self.system_settings.iter().chain(workloads);
        if let (None, Some((setting, _))) =
            (&self.cluster, settings.find(|(setting, _)| setting.is_cluster()))
        {
            return Err(ValueError::new(format!("`{setting}` requires several hosts"))
                .hint("set storage.cluster, a directory that all hosts mount"));
        }
        self.fits_axes(directory)
    }

    /// Checks the axes other than filesystem and workload.
    fn fits_axes(&self, directory: bool) -> Result<(), ValueError> {
        if directory && !self.schedulers.is_empty() {
            return Err(ValueError::new("storage is a directory: `scheduler` requires a device")
                .hint("remove `scheduler` from the plan"));
        }
        let own = self.workloads.iter();
        let unknown = |entry| parse::conditions::unknown_level(entry, &self.storage);
        if let Some((message, hint)) = own.clone().find_map(unknown) {
            return Err(ValueError::new(message).hint(hint));
        }
        if directory && own.clone().any(|entry| entry.schedulers.is_some()) {
            let (message, hint) = parse::conditions::no_device("scheduler");
            return Err(ValueError::new(message).hint(hint));
        }
        let mut sizes = self.system_settings.iter();
        let unfit = |own| parse::conditions::unfit_size(own, &self.storage);
        if let Some((message, hint)) = sizes.find_map(unfit) {
            return Err(ValueError::new(message).hint(hint));
        }
        let all = self.system_settings.iter().chain(own.flat_map(|entry| &entry.system_settings));
        let mut of_devices = all.filter(|(factor, _)| factor.of_devices());
        if let Some((factor, _)) = of_devices.next().filter(|_| directory) {
            let (message, hint) = parse::conditions::no_device(factor.spec().name);
            return Err(ValueError::new(message).hint(hint));
        }
        if let Some(option) = self.options.first().filter(|_| directory) {
            let (message, hint) = parse::options::no_filesystem(&option.key);
            return Err(ValueError::new(message).hint(hint));
        }
        Design::combinations(self.design, &self.options)?;
        if directory && self.fill_levels.iter().any(|full| !full.is_empty()) {
            return Err(ValueError::new(
                "storage is a directory: `fill_percent` requires a new filesystem",
            )
            .hint("remove `fill_percent` from the plan"));
        }
        Ok(())
    }
}
