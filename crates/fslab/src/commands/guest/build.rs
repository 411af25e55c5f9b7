//! `fslab guest kernel build`: builds a user-mode Linux kernel from distribution source.

use std::time::Duration;

use anyhow::Context;
use guest::{
    Cache, GuestError,
    build::{BuildSpec, BuiltKernel, Progress, build},
};
use model::Bytes;

use crate::{
    cli::BuildKernel,
    commands::signals,
    exit::{Exit, Failure},
    output,
};

/// Number of compiled files between two progress lines.
const FILES: u64 = 200;

pub(super) fn run(wanted: &BuildKernel) -> Result<Exit, Failure> {
    let interrupt = signals::handle_signals()?;
    let cache = Cache::new(Cache::default_directory());
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = wanted.jobs.map_or_else(processors, usize::from);
    let order = BuildSpec {
        source: wanted.source.as_deref(),
        patches: &wanted.patch,
        options: &wanted.config,
        jobs,
        cache: &cache,
        interrupt: &interrupt,
    };
    let mut compiled = 0;
    let outcome = match build(&order, &mut |progress| report(progress, &mut compiled)) {
        Ok(outcome) => outcome,
        Err(GuestError::Interrupted) => {
            output::message("interrupted; the build directory was removed");
            return Ok(Exit::Interrupted);
        }
        Err(error @ (GuestError::Build { .. } | GuestError::Io { .. })) => {
            return Err(Failure::from(error));
        }
        Err(error) => return Err(Failure::usage(error)),
    };
    let BuiltKernel { release, image, duration: took } = outcome;
    let length = std::fs::metadata(&image).context("reading the kernel")?.len();
    let how = took.map_or_else(
        || "is already built".to_owned(),
        |took| format!("built in {}", duration(took)),
    );
    let select = match wanted.patch.is_empty() && wanted.config.is_empty() {
        true => format!("use it with `--guest uml`, or select it with --kernel {release}"),
        false => format!("select it with --kernel {release}"),
    };
    output::result(&format!(
        "kernel {release} {how}: {}, {}\n{select}",
        image.display(),
        Bytes(length).rough()
    ))?;
    Ok(Exit::Success)
}

fn report(progress: Progress, compiled: &mut u64) {
    let text = match progress {
        Progress::Source(path) => format!("source: {}", path.display()),
        Progress::Unpacking => "unpacking".to_owned(),
        Progress::Unpacked { files, bytes } => {
            format!("unpacked {files} files, {}", bytes.rough())
        }
        Progress::Patched(name) => format!("applied {name}"),
        Progress::RegisterSizeNotFound => {
            "the source does not define the size of the CPU registers at the expected place; the \
             kernel may not run on CPUs with AMX"
                .to_owned()
        }
        Progress::Configuring => "configuring".to_owned(),
        Progress::UnknownOptions(options) => {
            format!("the source has no {}; skipped", options.join(", "))
        }
        Progress::Compiling { files } if files >= *compiled => {
            *compiled = files.next_multiple_of(FILES).max(FILES);
            if files == *compiled {
                *compiled += FILES;
            }
            format!("compiling: {files} files done")
        }
        Progress::Compiling { .. } => return,
        Progress::Linked { size } => format!("linked: {}", size.rough()),
    };
    output::message(&text);
}

/// Elapsed time in seconds or minutes.
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
    fn durations_are_printed_in_minutes() {
        assert_eq!(duration(Duration::from_millis(59_900)), "59 s");
        assert_eq!(duration(Duration::from_secs(754)), "12 min 34 s");
    }

    #[test]
    fn compilation_progress_is_printed_periodically() {
        let mut next = 0;
        let mut counts = Vec::new();
        for files in [0, 3, 150, 199, 205, 210, 400, 401, 599, 600] {
            let before = next;
            report(Progress::Compiling { files }, &mut next);
            if next != before {
                counts.push(files);
            }
        }
        assert_eq!(counts, [0, 205, 400, 600]);
    }
}
