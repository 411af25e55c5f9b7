//! Reports of tests that cannot run.

use std::{env, fs::OpenOptions, io::Write as _};

/// Reports that a test was skipped because something is missing. `scripts/test` counts these.
#[expect(clippy::print_stderr, reason = "skipped tests are reported")]
pub(crate) fn skipped(test: &str, needs: &str) {
    eprintln!("skipped: needs {needs}: {test}");
    if let Some(log) = env::var_os("FSLAB_SKIP_LOG") {
        let mut log = OpenOptions::new().append(true).create(true).open(log).unwrap();
        writeln!(log, "guest {test} (needs {needs})").unwrap();
    }
}
