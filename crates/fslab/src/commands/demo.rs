//! `fslab demo`: benchmarks the filesystems of this machine.

mod sizes;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use model::GuestKind;

use super::{
    guest,
    run::{self, Finished, Measured},
    run_setup, signals,
};
use crate::{
    cli::{Changes, Demo, Run},
    exit::{Exit, Failure},
    output,
};

/// Filesystems of this kernel on image files.
const NATIVE: &str = "demo";
/// Filesystem of the current directory.
const DIRECTORY: &str = "demo-directory";
/// Nine filesystems in a guest.
const GUEST: &str = "demo-guest";

/// Measures times on this machine, then instructions in a guest. Times and instructions are never
/// in the same table, so there are two runs in one report. With `--guest`, only the guest is
/// measured.
pub(super) fn run(demo: &Demo, state: &Path) -> Result<Exit, Failure> {
    let interrupt = signals::handle_signals()?;
    let kind = demo.guest.unwrap_or(GuestKind::Icount);
    let possible =
        guest::check_available(kind, demo.kernel.first().map(String::as_str), &interrupt);
    if demo.guest.is_some() {
        possible?;
        let part = part(demo, GUEST, Some(kind), demo.output.clone());
        return ended(demo, run::measure(&interrupt, &part, state)?, None);
    }
    let root = rustix::process::geteuid().is_root();
    let native = if root { NATIVE } else { DIRECTORY };
    if !root {
        say(
            demo,
            "not root: the filesystem of this directory is measured as mounted, without dropping \
             all caches and\nwithout device counters; `sudo fslab demo` formats and mounts the \
             filesystems of this kernel\non image files",
        );
    }
    let mut first = part(demo, native, None, demo.output.clone());
    let place = if root { crate::cells::IMAGE_DIRECTORY } else { "." };
    match sizes::Speed::measure(Path::new(place)) {
        Ok(speed) => first.changes.set = speed.settings(root),
        Err(error) => tracing::warn!("the demo has its default sizes: {place}: {error}"),
    }
    let mut second = part(demo, GUEST, Some(kind), first.output.as_deref().map(beside));
    second.view.html = demo.view.html.as_deref().map(beside);
    if possible.is_ok() {
        // Checked before the first part, which takes minutes.
        second.output.as_deref().map_or(Ok(()), run_setup::check_new_file)?;
    }
    let measured = run::measure(&interrupt, &first, state)?;
    let Measured::Run(native) = measured else { return ended(demo, measured, None) };
    let in_guest = match possible {
        _ if interrupt.load(Ordering::Relaxed) => None,
        Ok(()) => in_guest(demo, &interrupt, &second, state),
        Err(why) => {
            say(demo, &format!("nine filesystems are not measured in a guest:\n{}", why.message()));
            None
        }
    };
    match in_guest {
        Some(measured @ Measured::Run(_)) => ended(demo, measured, Some(*native)),
        // The second part was interrupted; the results of the first part are shown.
        Some(Measured::Early(exit)) => {
            run::show(&[&native], demo.view.json)?;
            Ok(exit)
        }
        None => ended(demo, Measured::Run(native), None),
    }
}

/// Measures the second part. If this fails, only the first part is reported.
fn in_guest(
    demo: &Demo,
    interrupt: &Arc<AtomicBool>,
    part: &Run,
    state: &Path,
) -> Option<Measured> {
    match run::measure(interrupt, part, state) {
        Ok(measured) => Some(measured),
        Err(why) => {
            say(demo, &format!("not measured in a guest: {}", why.message()));
            None
        }
    }
}

/// Prints the results of the parts in their order, and returns the first exit status that is not
/// success.
fn ended(demo: &Demo, measured: Measured, earlier: Option<Finished>) -> Result<Exit, Failure> {
    let finished = match measured {
        Measured::Early(exit) => return Ok(exit),
        Measured::Run(finished) => finished,
    };
    match earlier {
        None => run::show(&[&finished], demo.view.json),
        Some(earlier) => run::show(&[&earlier, &finished], demo.view.json),
    }
}

/// Run of a built-in plan without overrides.
fn part(demo: &Demo, name: &str, guest: Option<GuestKind>, output: Option<PathBuf>) -> Run {
    let kernel = if guest.is_some() { demo.kernel.clone() } else { Vec::new() };
    Run {
        plan: vec![name.into()],
        changes: Changes {
            axes: Default::default(),
            scale: "1".into(),
            profile: None,
            set: Vec::new(),
            guest,
            kernel,
            catalog: None,
        },
        output: Some(output.unwrap_or_else(|| run::free_name("fslab-demo"))),
        resume: None,
        overwrite_device: Vec::new(),
        reboot: false,
        no_reboot: false,
        fail_fast: false,
        pilot: false,
        hosts: Default::default(),
        view: demo.view.clone(),
    }
}

/// Path of the guest results: `demo-guest.fslab` next to `demo.fslab`.
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
    fn the_guest_file_is_next_to_the_run_file() {
        let named = |file: &str| beside(Path::new(file)).display().to_string();
        assert_eq!(
            named("fslab-demo-2026-11-22-101500.fslab"),
            "fslab-demo-2026-11-22-101500-guest.fslab"
        );
        assert_eq!(named("/srv/a.b/run"), "/srv/a.b/run-guest");
        assert_eq!(named("report.v2.html"), "report.v2-guest.html");
    }
}
