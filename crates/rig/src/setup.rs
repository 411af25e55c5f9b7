//! What is done to a filesystem between mkfs and the workload, as a list of stages.
//!
//! The steps of a plan enter, with what the filesystem is and becomes; out comes every mount,
//! unmount, tree, and program in order, exactly as it is carried out by an instance and shown by
//! `fslab show`. The filesystem is mounted or unmounted only where the next step needs it, and the
//! last stage leaves it unmounted.
//!
//! A filesystem that becomes another is that from the last step on that is run unmounted: only such
//! a program has the device to itself. Until then it is mounted as the entry it was made from, with
//! the options that this entry always has, since those of the plan are meant for what it becomes.
//! Without `becomes`, all mounts have the plan's options.

use std::path::{Path, PathBuf};

use model::{Bytes, FilesystemLevel, SetupStep};

use crate::{catalogue::Filesystem, mount::MountRequest};

/// One thing that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage<'a> {
    /// It is mounted.
    Mount {
        /// As what.
        filesystem: &'a Filesystem,
        /// How.
        request: MountRequest,
    },
    /// It is unmounted.
    Unmount,
    /// A source tree is written.
    Populate {
        /// The directory, which is made.
        directory: PathBuf,
        /// Files of the tree.
        files: u64,
    },
    /// A directory is removed with all that is in it.
    Remove {
        /// The directory.
        directory: PathBuf,
    },
    /// A program is run.
    Run {
        /// Program and arguments.
        argv: Vec<String>,
    },
}

/// Where and of what size an instance is.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    /// Its devices, in the order of the plan.
    pub devices: &'a [String],
    /// The size of the devices together.
    pub size: Bytes,
    /// Where it is mounted.
    pub target: &'a Path,
}

impl Ground<'_> {
    /// How a filesystem is mounted here, with the options of a level.
    pub fn request(&self, filesystem: &Filesystem, level: &FilesystemLevel) -> MountRequest {
        MountRequest {
            source: filesystem.mount_source(self.devices),
            target: self.target.to_owned(),
            fstype: filesystem.fstype.clone(),
            options: filesystem.mount_options(self.devices, self.size, level),
        }
    }

    /// An argument vector of the plan with its placeholders filled in.
    fn filled(&self, argv: &[String]) -> Vec<String> {
        let device = self.devices.first().map_or("", String::as_str);
        let target = self.target.display().to_string();
        let fill =
            |argument: &String| argument.replace("{device}", device).replace("{mount}", &target);
        argv.iter().map(fill).collect()
    }
}

/// The stages of a level; none where its `setup` is empty.
pub fn stages<'a>(
    level: &FilesystemLevel,
    filesystem: &'a Filesystem,
    becomes: Option<&'a Filesystem>,
    ground: Ground<'_>,
) -> Vec<Stage<'a>> {
    let unmounted = |step: &SetupStep| matches!(step, SetupStep::Unmounted { .. });
    let turn = level.setup.iter().rposition(unmounted);
    let mut stages = Vec::new();
    let mut is_mounted = false;
    for (index, step) in level.setup.iter().enumerate() {
        if unmounted(step) && is_mounted {
            stages.push(Stage::Unmount);
        } else if !unmounted(step) && !is_mounted {
            let (filesystem, request) = match becomes {
                Some(becomes) if turn.is_some_and(|turn| index > turn) => {
                    (becomes, ground.request(becomes, level))
                }
                Some(_) => {
                    let plain = FilesystemLevel::plain(&*level.base);
                    (filesystem, ground.request(filesystem, &plain))
                }
                None => (filesystem, ground.request(filesystem, level)),
            };
            stages.push(Stage::Mount { filesystem, request });
        }
        is_mounted = !unmounted(step);
        stages.push(match step {
            SetupStep::Populate { directory, files } => {
                Stage::Populate { directory: ground.target.join(directory), files: *files }
            }
            SetupStep::Remove { directory } => {
                Stage::Remove { directory: ground.target.join(directory) }
            }
            SetupStep::Unmounted { argv } | SetupStep::Mounted { argv } => {
                Stage::Run { argv: ground.filled(argv) }
            }
        });
    }
    if is_mounted {
        stages.push(Stage::Unmount);
    }
    stages
}
