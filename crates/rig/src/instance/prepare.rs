//! Executes the `setup` of a plan, between mkfs and the workload.
//!
//! All of it is one lifecycle step. Its time is that of the programs, trees, and removals, without
//! the mounts between them. Their unwritten data is written back by the unmounts and by a final
//! flush of the devices, which are part of the system activity but not of the time, as with mkfs.

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

/// General hint.
const MANUALLY: &str = "run the command manually, or change `setup` in the plan";

/// Hint if a converter runs out of space: it writes its metadata in addition to the old one
/// (btrfs-convert(8)).
const SPACE: &str = "a converter needs free space in the old filesystem; use larger storage, or \
                     run the command manually";

/// Hint if the blocks of the old filesystem are too small: mke2fs uses 1 KiB below 512 MiB
/// (mke2fs(8), -T, `small`), and btrfs has no sectors below 4 KiB (btrfs-convert(8)).
const BLOCKS: &str = "use 4 KiB blocks for the old filesystem (mkfs_options = [\"-b\", \"4096\"]), \
                      or use storage of at least 512MiB";

impl MountedFilesystem {
    /// Executes the stages, and drops their data from memory.
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
                Stage::Mount { filesystem, request } => {
                    self.request = Some(request.clone());
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
    /// Adds the cost of a program.
    fn add(&mut self, output: &Output) {
        self.elapsed = self.elapsed + output.elapsed;
        if let Some(cpu) = output.cpu {
            let sum = self.program.unwrap_or(ProgramTime { user: Nanos(0), system: Nanos(0) });
            self.program =
                Some(ProgramTime { user: sum.user + cpu.user, system: sum.system + cpu.system });
        }
    }
}
