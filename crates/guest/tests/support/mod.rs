//! What tests of all kinds say when they cannot run.

use std::{env, fs::OpenOptions, io::Write as _};

/// Says that a test did not run for want of something, and has `scripts/test` count it.
#[expect(clippy::print_stderr, reason = "what is skipped has to be said")]
pub(crate) fn skipped(test: &str, needs: &str) {
    eprintln!("skipped: needs {needs}: {test}");
    if let Some(log) = env::var_os("FSLAB_SKIP_LOG") {
        let mut log = OpenOptions::new().append(true).create(true).open(log).unwrap();
        writeln!(log, "guest {test} (needs {needs})").unwrap();
    }
}
