//! `fslab demo`: the shortest way to a real result.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use model::GuestKind;
use rig::{Availability, Catalogue, Filesystem, RealHost, catalogue::Kind};

use super::{guest, run::run_until, session};
use crate::{
    cli::{Changes, Demo, Run},
    exit::{Exit, Failure},
    output,
};

/// The filesystems of this kernel on image files.
const NATIVE: &str = "demo";
/// Many filesystems in a guest.
const GUEST: &str = "demo-guest";
/// The filesystem of the current directory, as it is.
const DIRECTORY: &str = "demo-directory";

pub(super) fn run(demo: &Demo, state: &Path) -> Result<Exit, Failure> {
    let interrupt = session::listen()?;
    let possible = || guest::possible(GuestKind::Auto, &interrupt);
    let auto = Some(GuestKind::Auto);
    if demo.guest.is_some() || !demo.kernel.is_empty() {
        return run_until(&interrupt, &plan(demo, GUEST, demo.guest.or(auto)), state);
    }
    if rustix::process::geteuid().is_root() {
        return as_root(demo, &interrupt, state);
    }
    if let Err(lacking) = possible() {
        say(
            demo,
            &format!(
                "not root: no filesystem can be made or mounted here, so the demo measures the \
                 filesystem\nof this directory as it is, without emptying all caches and without \
                 its device's\ncounters. `sudo fslab demo` measures ext2, ext3, ext4, xfs, btrfs \
                 and whatever else\nthis kernel has, side by side on image files. In a guest that \
                 needs no root, but:\n{}",
                lacking.text()
            ),
        );
        return run_until(&interrupt, &plan(demo, DIRECTORY, None), state);
    }
    run_until(&interrupt, &plan(demo, GUEST, auto), state)
}

/// On image files what this kernel has, then in a guest what it lacks: their numbers never stand in
/// one table, so there are two runs.
fn as_root(demo: &Demo, interrupt: &Arc<AtomicBool>, state: &Path) -> Result<Exit, Failure> {
    let first = plan(demo, NATIVE, None);
    let lacking = lacking();
    let names = lacking.join(", ");
    let mut second = plan(demo, GUEST, Some(GuestKind::Auto));
    second.output = first.output.as_deref().map(beside);
    second.view.html = demo.view.html.as_deref().map(beside);
    second.changes.set.push(("filesystem".into(), lacking.join(",")));
    if !lacking.is_empty() {
        // Not found out after minutes.
        second.output.as_deref().map_or(Ok(()), session::free)?;
    }
    let ended = run_until(interrupt, &first, state)?;
    let stopped = || interrupt.load(Ordering::Relaxed);
    if lacking.is_empty() || ended == Exit::Interrupted || stopped() {
        return Ok(ended);
    }
    if let Err(why) = guest::possible(GuestKind::Auto, interrupt) {
        say(demo, &format!("{names} could be measured in a guest, but:\n{}", why.text()));
        return Ok(ended);
    }
    say(demo, &format!("this kernel lacks {names}: they are measured in a guest"));
    // What was measured before stands, whatever becomes of the guest.
    match run_until(interrupt, &second, state) {
        Ok(in_guest) if ended == Exit::Done || in_guest == Exit::Interrupted => Ok(in_guest),
        Ok(_) => Ok(ended),
        Err(why) if why.is_interrupted() => Err(why),
        Err(why) => {
            say(demo, &format!("not measured in a guest: {}", why.text()));
            Ok(ended)
        }
    }
}

/// A run of a ready plan as it is.
fn plan(demo: &Demo, name: &str, guest: Option<GuestKind>) -> Run {
    Run {
        plan: Some(name.into()),
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
    }
}

/// The filesystems that this kernel lacks, and whose tools are here.
fn lacking() -> Vec<String> {
    let catalogue = Catalogue::embedded();
    let lacks = |filesystem: &&Filesystem| {
        let missing =
            matches!(catalogue.availability(filesystem, &RealHost), Availability::Missing { .. });
        let tools = filesystem.programs();
        missing && !tools.is_empty() && catalogue.missing_tools(filesystem, &RealHost).is_none()
    };
    let of_blocks = catalogue.all().iter().filter(|filesystem| filesystem.kind == Kind::Block);
    of_blocks.filter(lacks).map(|filesystem| filesystem.name.clone()).collect()
}

/// The same file of what is measured in a guest: beside `demo.fslab` it is `demo-guest.fslab`.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    name.push("-guest");
    let mut beside = file.with_file_name(name);
    if let Some(extension) = file.extension() {
        beside.add_extension(extension);
    }
    beside
}

fn say(demo: &Demo, text: &str) {
    if !demo.view.quiet {
        output::message(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stand_beside_each_other() {
        let named = |file: &str| beside(Path::new(file)).display().to_string();
        assert_eq!(
            named("fslab-demo-2026-11-22-101500.fslab"),
            "fslab-demo-2026-11-22-101500-guest.fslab"
        );
        assert_eq!(named("/srv/a.b/run"), "/srv/a.b/run-guest");
        assert_eq!(named("report.v2.html"), "report.v2-guest.html");
    }
}
