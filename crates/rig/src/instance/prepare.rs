//! Execution of the `setup` of a plan, between mkfs and the workload.
//!
//! The whole `setup` is one lifecycle step. Its duration is the sum of the durations of the
//! programs, source trees, and removals. The mounts and unmounts between these stages, and the
//! final flush of the devices, also write back data. They are part of the system activity of the
//! step, but not of its duration. Lifecycle step mkfs is recorded in the same way.

use std::sync::atomic::{AtomicBool, Ordering};

use model::{Nanos, sample::lifecycle};

use super::{InstanceSpec, MountedFilesystem, step::StepCost};
use crate::{
    device,
    error::RigError,
    host::{Output, ProgramTime},
    journaled_host::JournaledHost,
    setup::Stage,
};

/// Hint for other errors.
const MANUALLY: &str = "run the command manually, or change `setup` in the plan";

/// Hint if a converter has too little space. A converter writes the new metadata in addition to the
/// old metadata (btrfs-convert(8)).
const SPACE: &str = "a converter needs free space in the old filesystem; use larger storage, or \
                     run the command manually";

/// Hint if the blocks of the old filesystem are too small. mke2fs uses blocks of 1 KiB on devices
/// below 512 MiB (mke2fs(8), -T, `small`), and btrfs requires at least 4 KiB (btrfs-convert(8)).
const BLOCKS: &str = "use 4 KiB blocks for the old filesystem (mkfs_options = [\"-b\", \"4096\"]), \
                      or use storage of at least 512MiB";

impl MountedFilesystem {
    /// Executes the stages, and drops the page cache of the devices.
    pub(super) fn prepare(
        &mut self,
        journaled: &mut JournaledHost,
        stages: &[Stage<'_>],
        spec: &InstanceSpec<'_>,
        stop: &AtomicBool,
    ) -> Result<(), RigError> {
        let running = self.begin(lifecycle::SETUP);
        let mut cost = StepCost::default();
        for stage in stages {
            if stop.load(Ordering::Relaxed) {
                let what = "set up the filesystem".to_owned();
                return Err(RigError::Tree { what, why: "interrupted".into() });
            }
            match stage {
                Stage::Mount { filesystem, mounting } => {
                    self.mounting = Some(mounting.clone());
                    self.mount(journaled)?;
                    self.check_magic(filesystem)?;
                }
                Stage::Unmount => {
                    self.unmount(journaled)?;
                }
                Stage::Populate { directory, files } => {
                    let what = format!("write {files} files into {}", directory.display());
                    let populate = |_: &dyn crate::Host| (spec.populate)(directory, *files);
                    let (done, elapsed) = journaled.execute(&*what, populate);
                    done.map_err(|why| RigError::Tree { what, why })?;
                    cost.elapsed = cost.elapsed + elapsed;
                }
                Stage::Remove { directory } => {
                    let what = format!("remove {} with its contents", directory.display());
                    let (done, elapsed) =
                        journaled.execute(&*what, |host| host.remove_tree(directory));
                    done.map_err(|why| RigError::Tree { what, why: why.to_string() })?;
                    cost.elapsed = cost.elapsed + elapsed;
                }
                Stage::Run { argv } => {
                    let output = journaled.run(argv)?;
                    if !output.success() {
                        return Err(failed(argv, &output));
                    }
                    cost.add(&output);
                }
            }
        }
        device::flush(journaled, &self.devices)?;
        self.lifecycle.push(running.finish_stages(cost));
        Ok(())
    }
}

fn failed(argv: &[String], output: &Output) -> RigError {
    let verdict = output.verdict();
    let converts = argv.first().is_some_and(|program| program.contains("convert"));
    let mentions = |words: &[&str]| converts && words.iter().any(|word| verdict.contains(word));
    let hint = match () {
        () if mentions(&["block size is too small"]) => BLOCKS,
        () if mentions(&["space", "ENOSPC"]) => SPACE,
        () => MANUALLY,
    };
    RigError::Setup { command: argv.join(" "), verdict, hint }
}

impl StepCost {
    /// Adds the duration and the CPU time of a program.
    fn add(&mut self, output: &Output) {
        self.elapsed = self.elapsed + output.elapsed;
        if let Some(cpu) = output.cpu {
            let sum = self.program.unwrap_or(ProgramTime { user: Nanos(0), system: Nanos(0) });
            self.program =
                Some(ProgramTime { user: sum.user + cpu.user, system: sum.system + cpu.system });
        }
    }
}
