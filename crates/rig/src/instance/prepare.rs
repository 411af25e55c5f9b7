//! Carrying out what a plan does to a filesystem between mkfs and the workload.
//!
//! All of it is one step of the life cycle. Its time is that of the programs, trees, and removals
//! alone, without the mounts between them; what they leave in memory is written back by those, and
//! by a flush of the devices at the end, which the evidence covers and the time does not, as with
//! mkfs.

use std::sync::atomic::{AtomicBool, Ordering};

use model::{Nanos, sample::lifecycle};

use super::{Mounted, ProgramTime, Wanted, step::Spent};
use crate::{bench::Bench, device, error::RigError, host::Output, setup::Stage};

/// What helps against most failures.
const BY_HAND: &str = "try the command by hand, or change `setup` in the plan";

/// What helps when a converter finds no room: it writes metadata of its own beside the old ones
/// (btrfs-convert(8)).
const ROOM: &str = "a converter needs free space beside the old filesystem; make the storage larger, or try the \
     command by hand";

/// What helps when the blocks of the old filesystem are too small: mke2fs takes 1 KiB below 512 MiB
/// (mke2fs(8), -T, `small`), and btrfs has no sectors below 4 KiB (btrfs-convert(8)).
const BLOCKS: &str = "give the old filesystem blocks of 4 KiB (mkfs = [\"-b\", \"4096\"]), or make \
                      the storage 512MiB and larger";

impl Mounted {
    /// Carries the stages out, and leaves nothing of them in memory.
    pub(super) fn prepare(
        &mut self,
        bench: &mut Bench,
        stages: &[Stage<'_>],
        wanted: &Wanted<'_>,
        stop: &AtomicBool,
    ) -> Result<(), RigError> {
        let running = self.begin(lifecycle::SETUP);
        let mut spent = Spent::default();
        for stage in stages {
            if stop.load(Ordering::Relaxed) {
                let what = "set the filesystem up".to_owned();
                return Err(RigError::Tree { what, why: "interrupted".into() });
            }
            match stage {
                Stage::Mount { filesystem, request } => {
                    self.request = Some(request.clone());
                    self.mount(bench)?;
                    self.check_magic(filesystem)?;
                }
                Stage::Unmount => {
                    self.unmount(bench)?;
                }
                Stage::Populate { directory, files } => {
                    let what = format!("write {files} files into {}", directory.display());
                    let deed = |_: &dyn crate::Host| (wanted.populate)(directory, *files);
                    let (done, elapsed) = bench.act(&*what, deed);
                    done.map_err(|why| RigError::Tree { what, why })?;
                    spent.elapsed = spent.elapsed + elapsed;
                }
                Stage::Remove { directory } => {
                    let what = format!("remove {} with all below it", directory.display());
                    let (done, elapsed) = bench.act(&*what, |host| host.remove_tree(directory));
                    done.map_err(|why| RigError::Tree { what, why: why.to_string() })?;
                    spent.elapsed = spent.elapsed + elapsed;
                }
                Stage::Run { argv } => {
                    let output = bench.run(argv)?;
                    if !output.success() {
                        return Err(failed(argv, &output));
                    }
                    spent.add(&output);
                }
            }
        }
        device::flush(bench, &self.devices)?;
        self.lifecycle.push(running.spent(spent));
        Ok(())
    }
}

fn failed(argv: &[String], output: &Output) -> RigError {
    let verdict = output.verdict();
    let converts = argv.first().is_some_and(|program| program.contains("convert"));
    let says = |words: &[&str]| converts && words.iter().any(|word| verdict.contains(word));
    let cure = match () {
        () if says(&["block size is too small"]) => BLOCKS,
        () if says(&["space", "ENOSPC"]) => ROOM,
        () => BY_HAND,
    };
    RigError::Setup { command: argv.join(" "), verdict, cure }
}

impl Spent {
    /// Adds what a program took.
    fn add(&mut self, output: &Output) {
        self.elapsed = self.elapsed + output.elapsed;
        if let Some(cpu) = output.cpu {
            let sum = self.program.unwrap_or(ProgramTime { user: Nanos(0), system: Nanos(0) });
            self.program =
                Some(ProgramTime { user: sum.user + cpu.user, system: sum.system + cpu.system });
        }
    }
}
