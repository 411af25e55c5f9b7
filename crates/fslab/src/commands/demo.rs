//! `fslab demo`: the shortest way to a real result.

use std::{path::Path, sync::atomic::AtomicBool};

use model::GuestKind;

use super::guest;
use crate::{
    cli::{Changes, Demo, Run},
    exit::{Exit, Failure},
    output,
};

pub(super) fn run(demo: &Demo, state: &Path) -> Result<Exit, Failure> {
    let root = rustix::process::geteuid().is_root();
    let (plan, guest) = match demo.guest {
        Some(kind) => ("demo-guest", Some(kind)),
        None if !demo.kernel.is_empty() => ("demo-guest", Some(GuestKind::Auto)),
        None if root => ("demo", None),
        None => match guest::possible(GuestKind::Auto, &AtomicBool::new(false)) {
            Ok(()) => ("demo-guest", Some(GuestKind::Auto)),
            Err(lacking) => {
                say_what_is_missing(demo, &lacking);
                ("demo-directory", None)
            }
        },
    };
    let run = Run {
        plan: Some(plan.into()),
        changes: Changes {
            scale: "1".into(),
            profile: None,
            set: Vec::new(),
            guest,
            kernel: demo.kernel.clone(),
            filesystems: None,
        },
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

fn say_what_is_missing(demo: &Demo, lacking: &Failure) {
    if demo.view.quiet {
        return;
    }
    output::message(&format!(
        "not root: no filesystem can be made or mounted here, so the demo measures the filesystem\n\
         of this directory as it is, without emptying all caches and without its device's\n\
         counters. `sudo fslab demo` measures ext2, ext3, ext4, xfs, btrfs and whatever else\n\
         this kernel has, side by side on image files. In a guest that needs no root, but:\n{}",
        lacking.text()
    ));
}
