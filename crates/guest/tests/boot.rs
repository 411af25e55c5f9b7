//! Boots guests: a stock kernel, this very program as its first process, and programs of the host.
//!
//! It has no harness, since what runs `main` in a guest must not be one. Where an emulator, a
//! kernel's package, or a program is missing, tests say so and are skipped. Packages are looked for
//! in `$FSLAB_KERNELS` (or it names one), otherwise in `target/kernels`, where `scripts/prepare
//! --guest` puts them; with `$FSLAB_CACHE`, a cache, the newest user-mode Linux that was built into it is booted
//! instead of the package's. Nothing here needs root.
#![expect(clippy::unwrap_used, reason = "clippy knows tests by the harness, which this has not")]

use std::{env, process::ExitCode};

#[path = "boot/host.rs"]
mod host;
#[path = "boot/packages.rs"]
mod packages;
mod support;
#[path = "boot/worker.rs"]
mod worker;

fn main() -> ExitCode {
    if let Some(code) = guest::inside::take_over(worker::work) {
        return code;
    }
    let mut arguments = env::args_os().skip(1);
    let first = arguments.next();
    if first.as_ref().is_some_and(|first| first == guest::cage::COMMAND) {
        return guest::cage::main(arguments);
    }
    // As with a harness: words are parts of names of tests, flags are the harness's own.
    let words = first.into_iter().chain(arguments).filter_map(|word| word.into_string().ok());
    let (flags, names): (Vec<_>, Vec<_>) = words.partition(|word| word.starts_with('-'));
    if flags.iter().any(|flag| flag == "--list") {
        return ExitCode::SUCCESS;
    }
    host::run(&names)
}
