//! Boot tests of guests: a distribution kernel, this program as the init process, and programs of
//! the host.
//!
//! The tests have no harness, because `main` also runs in a guest, as its init process. Tests are
//! skipped if an emulator, a kernel package, or a program is missing. Packages are searched in
//! `$FSLAB_KERNELS` (a package or a directory), by default in `target/kernels`, where
//! `scripts/prepare --kernel` stores them. With `$FSLAB_CACHE`, a cache directory, the newest
//! user-mode Linux built into it is booted instead of the package. No test requires root.
#![expect(
    clippy::unwrap_used,
    reason = "clippy detects tests by the harness, which is missing here"
)]

use std::{env, process::ExitCode};

#[path = "boot/host.rs"]
mod host;
#[path = "boot/packages.rs"]
mod packages;
mod support;
#[path = "boot/worker.rs"]
mod worker;

fn main() -> ExitCode {
    if let Some(code) = guest::in_guest::run_if_guest(worker::work) {
        return code;
    }
    let mut arguments = env::args_os().skip(1);
    let first = arguments.next();
    if first.as_ref().is_some_and(|first| first == guest::supervisor::COMMAND) {
        return guest::supervisor::main(arguments);
    }
    // As with a harness: words are parts of test names, flags are those of the harness.
    let words = first.into_iter().chain(arguments).filter_map(|word| word.into_string().ok());
    let (flags, names): (Vec<_>, Vec<_>) = words.partition(|word| word.starts_with('-'));
    if flags.iter().any(|flag| flag == "--list") {
        return ExitCode::SUCCESS;
    }
    host::run(&names)
}
