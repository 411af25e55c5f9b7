//! Layers of an instance: their creation, and their faults.

use model::{Bytes, Environment, Warning};

use super::{InstanceSpec, MountedFilesystem, make::min_size};
use crate::{
    base::Base,
    device::{self, Share},
    error::RigError,
    journaled_host::JournaledHost,
    layers::{self, BuildContext, BuildFacts, TopDevice},
    sysfs::name_of,
};

impl MountedFilesystem {
    /// Creates the layers of the filesystem level on the storage devices, whose contents must have
    /// been removed before. The filesystem is then created on the devices on top of the layers.
    /// Returns the total size of these devices.
    pub(super) fn build_layers(
        &mut self,
        journaled: &mut JournaledHost,
        rig: &Base,
        spec: &InstanceSpec<'_>,
        share: Share<'_>,
    ) -> Result<Bytes, RigError> {
        let host = std::sync::Arc::clone(&self.shared.host);
        let sizes = share.sizes().into_iter().map(|(_, size)| size);
        let devices = share.devices().into_iter().zip(sizes);
        let devices = devices.map(|(path, size)| TopDevice { name: name_of(&path), path, size });
        let run_id = &rig.options.run_id;
        let context = BuildContext { host: &*host, run_id, devices: devices.collect() };
        let mut facts = BuildFacts::default();
        let tops = layers::build(journaled, context, &spec.level.layers, &mut facts);
        // Layers created before an error are undone with the instance.
        self.steps.extend(facts.steps);
        self.environment.merge(facts.environment);
        self.warnings.extend(facts.warnings);
        self.fault_targets = facts.fault_targets;
        let tops = tops?;
        let min = min_size(spec);
        if let Some(TopDevice { path, size, .. }) = tops.iter().find(|top| top.size < min) {
            let filesystem = spec.filesystem.name.clone();
            return Err(RigError::TooSmall { filesystem, device: path.clone(), size: *size, min });
        }
        let last = spec.converted_to.unwrap_or(spec.filesystem);
        self.counted = tops.iter().map(|top| top.name.clone()).collect();
        self.threads = last.deferred_threads(&self.counted);
        let lowest =
            std::mem::replace(&mut self.devices, tops.iter().map(|top| top.path.clone()).collect());
        self.lowest = lowest;
        device::flush(journaled, &self.devices)?;
        Ok(tops.iter().map(|top| top.size).sum())
    }

    /// Starts the faults of the layers, and writes the mark to the write log. To be called right
    /// before the first measured phase, when caches are prepared and all data is written back. Only
    /// the first call has an effect.
    ///
    /// # Errors
    /// [`RigError::Layer`] if the device mapper reports an error. Faults that were started before
    /// the error end with the instance.
    pub fn begin_faults(&mut self) -> Result<(), RigError> {
        if self.faults.is_some() {
            return Ok(());
        }
        let shared = std::sync::Arc::clone(&self.shared);
        let mut journaled = shared.journaled();
        let faults = self.faults.insert(Vec::new());
        for target in &self.fault_targets {
            faults.extend(target.begin(&mut journaled)?);
        }
        Ok(())
    }

    /// Ends the faults after the unmount, newest first. Returns environment facts and warnings
    /// about the write log.
    pub(super) fn end_faults(
        &mut self,
        journaled: &mut JournaledHost,
    ) -> Result<(Environment, Vec<Warning>), RigError> {
        let (mut facts, mut warnings) = (Environment::default(), Vec::new());
        for target in &self.fault_targets {
            if let Some(end) = target.log(journaled)? {
                facts.merge(end.facts());
                warnings.extend(end.warning());
            }
        }
        let mut faults = self.faults.take().unwrap_or_default();
        while let Some((step, what)) = faults.pop() {
            journaled.undo(step, what)?;
        }
        Ok((facts, warnings))
    }
}
