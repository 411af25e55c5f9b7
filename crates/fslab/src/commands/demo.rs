//! `fslab demo`: the shortest way to a real result.

use std::path::Path;

use crate::{
    cli::{Changes, Demo, Run},
    exit::{Exit, Failure},
    output,
};

pub(super) fn run(demo: &Demo, state: &Path) -> Result<Exit, Failure> {
    let root = rustix::process::geteuid().is_root();
    if !root && !demo.view.quiet {
        output::message(
            "not root: no filesystem can be made or mounted, so the demo measures the filesystem\n\
             of this directory as it is, without emptying all caches and without its device's\n\
             counters. `sudo fslab demo` measures ext2, ext3, ext4, xfs, btrfs and whatever else\n\
             this kernel has, side by side on image files.",
        );
    }
    let plan = if root { "demo" } else { "demo-directory" };
    let run = Run {
        plan: Some(plan.into()),
        changes: Changes::default(),
        output: Some(match &demo.output {
            Some(path) => path.clone(),
            None => super::run::free_name("fslab-demo"),
        }),
        resume: None,
        destroy: Vec::new(),
        reboot: false,
        without_reboot: false,
        fail_fast: false,
        pilot: false,
        view: demo.view.clone(),
    };
    super::run::run(&run, state)
}
