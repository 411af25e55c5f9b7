//! `fslab guest kernel build`: a kernel for user-mode Linux, from a distribution's source.

use std::time::Duration;

use anyhow::Context;
use guest::{
    Cache, GuestError,
    build::{Order, Outcome, Progress, build},
};
use model::Bytes;

use super::session;
use crate::{
    cli::BuildKernel,
    exit::{Exit, Failure},
    output,
};

/// How many more files are compiled each time that it is told.
const FILES: u64 = 200;

pub(super) fn run(wanted: &BuildKernel) -> Result<Exit, Failure> {
    let interrupt = session::listen()?;
    let cache = Cache::new(Cache::default_directory());
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = wanted.jobs.map_or_else(processors, usize::from);
    let order =
        Order { source: wanted.source.as_deref(), jobs, cache: &cache, interrupt: &interrupt };
    let mut compiled = 0;
    let outcome = match build(&order, &mut |progress| tell(progress, &mut compiled)) {
        Ok(outcome) => outcome,
        Err(GuestError::Interrupted) => {
            output::message("interrupted; what was made is removed");
            return Ok(Exit::Interrupted);
        }
        Err(error @ (GuestError::Build { .. } | GuestError::Io { .. })) => {
            return Err(Failure::from(error));
        }
        Err(error) => return Err(Failure::usage(error)),
    };
    let Outcome { release, image, took } = outcome;
    let length = std::fs::metadata(&image).context("reading the kernel")?.len();
    let how = took.map_or_else(
        || "was built before".to_owned(),
        |took| format!("built in {}", duration(took)),
    );
    output::result(&format!(
        "kernel {release} {how}: {}, {}\n\
         take it by `--guest uml`, or by its name where there are several: --kernel {release}",
        image.display(),
        Bytes(length).rough()
    ))?;
    Ok(Exit::Done)
}

fn tell(progress: Progress, compiled: &mut u64) {
    let text = match progress {
        Progress::Source(path) => format!("source: {}", path.display()),
        Progress::Unpacking => "unpacking it".to_owned(),
        Progress::Unpacked { files, bytes } => {
            format!("unpacked {files} files, {}", bytes.rough())
        }
        Progress::NoRoom => {
            "this source does not say where expected how many registers a processor \
                             has; the kernel may not run on processors with AMX"
                .to_owned()
        }
        Progress::Configuring => "configuring".to_owned(),
        Progress::Without(options) => {
            format!("this source has no {}; left out", options.join(", "))
        }
        Progress::Compiling { files } if files >= *compiled => {
            *compiled = files.next_multiple_of(FILES).max(FILES);
            if files == *compiled {
                *compiled += FILES;
            }
            format!("compiling: {files} files are done")
        }
        Progress::Compiling { .. } => return,
        Progress::Linked { size } => format!("linked: {}", size.rough()),
    };
    output::message(&text);
}

/// A time that a person waited.
fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 60 {
        0 => format!("{seconds} s"),
        minutes => format!("{minutes} min {} s", seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_minutes() {
        assert_eq!(duration(Duration::from_millis(59_900)), "59 s");
        assert_eq!(duration(Duration::from_secs(754)), "12 min 34 s");
    }

    #[test]
    fn compiling_is_told_now_and_then() {
        let mut next = 0;
        let mut told = Vec::new();
        for files in [0, 3, 150, 199, 205, 210, 400, 401, 599, 600] {
            let before = next;
            tell(Progress::Compiling { files }, &mut next);
            if next != before {
                told.push(files);
            }
        }
        assert_eq!(told, [0, 205, 400, 600]);
    }
}
