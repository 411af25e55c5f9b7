//! `fslab demo`: the shortest way to a real result.

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
    session,
};
use crate::{
    cli::{Changes, Demo, Run},
    exit::{Exit, Failure},
    output,
};

/// The filesystems of this kernel on image files.
const NATIVE: &str = "demo";
/// The filesystem of the current directory, as it is.
const DIRECTORY: &str = "demo-directory";
/// Nine filesystems in a guest.
const GUEST: &str = "demo-guest";

/// Times of this machine, then instructions of a guest: numbers that are never in one table, so
/// that there are two runs, on one page.
pub(super) fn run(demo: &Demo, state: &Path) -> Result<Exit, Failure> {
    let interrupt = session::listen()?;
    let kind = demo.guest.unwrap_or(GuestKind::Counted);
    let possible = guest::possible(kind, demo.kernel.first().map(String::as_str), &interrupt);
    if demo.guest.is_some() {
        possible?;
        let part = part(demo, GUEST, Some(kind), demo.output.clone());
        return ended(run::measure(&interrupt, &part, state)?, None);
    }
    let root = rustix::process::geteuid().is_root();
    let native = if root { NATIVE } else { DIRECTORY };
    if !root {
        say(
            demo,
            "not root: the filesystem of this directory is measured as it is, without emptying all \
             caches and\nwithout the counters of its device; `sudo fslab demo` formats and mounts \
             the filesystems of this kernel\non image files",
        );
    }
    let mut first = part(demo, native, None, demo.output.clone());
    let place = if root { session::IMAGE_DIRECTORY } else { "." };
    match sizes::Speed::measure(Path::new(place)) {
        Ok(speed) => first.changes.set = speed.settings(root),
        Err(error) => tracing::warn!("the demo has its default sizes: {place}: {error}"),
    }
    let mut second = part(demo, GUEST, Some(kind), first.output.as_deref().map(beside));
    second.view.html = demo.view.html.as_deref().map(beside);
    if possible.is_ok() {
        // Not found out after minutes.
        second.output.as_deref().map_or(Ok(()), session::free)?;
    }
    let measured = run::measure(&interrupt, &first, state)?;
    let Measured::Run(native) = measured else { return ended(measured, None) };
    let in_guest = match possible {
        _ if interrupt.load(Ordering::Relaxed) => None,
        Ok(()) => in_guest(demo, &interrupt, &second, state),
        Err(why) => {
            say(demo, &format!("nine filesystems are not measured in a guest:\n{}", why.text()));
            None
        }
    };
    match in_guest {
        Some(measured @ Measured::Run(_)) => ended(measured, Some(*native)),
        // What was measured before is kept, and shown.
        Some(Measured::Early(exit)) => {
            run::show(&[&native])?;
            Ok(exit)
        }
        None => ended(Measured::Run(native), None),
    }
}

/// The second part. If it fails, the first one counts alone.
fn in_guest(
    demo: &Demo,
    interrupt: &Arc<AtomicBool>,
    part: &Run,
    state: &Path,
) -> Option<Measured> {
    match run::measure(interrupt, part, state) {
        Ok(measured) => Some(measured),
        Err(why) => {
            say(demo, &format!("not measured in a guest: {}", why.text()));
            None
        }
    }
}

/// Shows what was measured, the earlier part first; the less good ending is that of the demo.
fn ended(measured: Measured, earlier: Option<Finished>) -> Result<Exit, Failure> {
    let finished = match measured {
        Measured::Early(exit) => return Ok(exit),
        Measured::Run(finished) => finished,
    };
    let Some(earlier) = earlier else {
        run::show(&[&finished])?;
        return Ok(finished.exit());
    };
    run::show(&[&earlier, &finished])?;
    Ok(if earlier.exit() == Exit::Done { finished.exit() } else { earlier.exit() })
}

/// A run of a built-in plan as it is.
fn part(demo: &Demo, name: &str, guest: Option<GuestKind>, output: Option<PathBuf>) -> Run {
    let kernel = if guest.is_some() { demo.kernel.clone() } else { Vec::new() };
    Run {
        plan: Some(name.into()),
        changes: Changes {
            scale: "1".into(),
            profile: None,
            set: Vec::new(),
            guest,
            kernel,
            filesystems: None,
        },
        output: Some(output.unwrap_or_else(|| run::free_name("fslab-demo"))),
        resume: None,
        destroy: Vec::new(),
        reboot: false,
        without_reboot: false,
        fail_fast: false,
        pilot: false,
        view: demo.view.clone(),
    }
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
