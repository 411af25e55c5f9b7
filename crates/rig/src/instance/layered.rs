//! Building what stands between an instance's devices and its filesystem.

use model::{Bytes, Environment, Warning};

use super::{Mounted, Wanted, make::least};
use crate::{
    bench::Bench,
    device::{self, Share, name_of},
    error::RigError,
    layers::{self, Ground, Told, Top},
    storage::Rig,
};

impl Mounted {
    /// Builds the layers of the level on its devices, which must be empty. From here on the
    /// instance lies on what they leave, whose size together is told.
    pub(super) fn stand_on(
        &mut self,
        bench: &mut Bench,
        rig: &Rig,
        wanted: &Wanted<'_>,
        share: Share<'_>,
    ) -> Result<Bytes, RigError> {
        let host = std::sync::Arc::clone(&self.shared.host);
        let sizes = share.sizes().into_iter().map(|(_, size)| size);
        let devices = share.devices().into_iter().zip(sizes);
        let devices = devices.map(|(path, size)| Top { name: name_of(&path), path, size });
        let run_id = &rig.options.run_id;
        let ground = Ground { host: &*host, run_id, devices: devices.collect() };
        let mut told = Told::default();
        let tops = layers::build(bench, ground, &wanted.level.layers, &mut told);
        // What was built before an error is undone with the instance.
        self.steps.extend(told.steps);
        self.environment.merge(told.facts);
        self.warnings.extend(told.warnings);
        self.weaknesses = told.weaknesses;
        let tops = tops?;
        let min = least(wanted);
        if let Some(Top { path, size, .. }) = tops.iter().find(|top| top.size < min) {
            let filesystem = wanted.filesystem.name.clone();
            return Err(RigError::TooSmall { filesystem, device: path.clone(), size: *size, min });
        }
        let last = wanted.becomes.unwrap_or(wanted.filesystem);
        self.counted = tops.iter().map(|top| top.name.clone()).collect();
        self.threads = last.background_threads(&self.counted);
        let lowest =
            std::mem::replace(&mut self.devices, tops.iter().map(|top| top.path.clone()).collect());
        self.lowest = lowest;
        device::flush(bench, &self.devices)?;
        Ok(tops.iter().map(|top| top.size).sum())
    }

    /// What layers are to do from the first measured phase on begins: devices fail, a log gets its
    /// mark. The first call does it; the caches are as the phase wants them, and all is written
    /// back.
    ///
    /// # Errors
    /// [`RigError::Layer`] when the device mapper refuses; what has begun ends with the instance.
    pub fn begin_faults(&mut self) -> Result<(), RigError> {
        if self.faults.is_some() {
            return Ok(());
        }
        let shared = std::sync::Arc::clone(&self.shared);
        let mut bench = shared.bench();
        let faults = self.faults.insert(Vec::new());
        for weakness in &self.weaknesses {
            faults.extend(weakness.begin(&mut bench)?);
        }
        Ok(())
    }

    /// Ends the faults, newest first, now that nothing is mounted; tells what was logged.
    pub(super) fn end_faults(
        &mut self,
        bench: &mut Bench,
    ) -> Result<(Environment, Vec<Warning>), RigError> {
        let (mut facts, mut warnings) = (Environment::default(), Vec::new());
        for weakness in &self.weaknesses {
            if let Some(end) = weakness.log(bench)? {
                facts.merge(end.facts());
                warnings.extend(end.warning());
            }
        }
        let mut faults = self.faults.take().unwrap_or_default();
        while let Some((step, what)) = faults.pop() {
            bench.undo(step, what)?;
        }
        Ok((facts, warnings))
    }
}
