//! The two ways out: results on stdout, everything else on stderr.

use std::io::{self, IsTerminal, Write};

/// Prints a result.
///
/// # Errors
/// When stdout cannot be written; a closed pipe is told apart by [`is_broken_pipe`].
pub(crate) fn result(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        stdout.write_all(b"\n")?;
    }
    stdout.flush()
}

/// Prints a message for a person. A stderr that is gone is no reason to stop measuring.
pub(crate) fn message(text: &str) {
    let _gone = writeln!(io::stderr().lock(), "{text}");
}

/// Whether stdout's reader went away, which ends `fslab … | head` and is no error.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Columns of stdout's terminal, or 100 when it is none.
pub(crate) fn width() -> usize {
    let columns = rustix::termios::tcgetwinsize(io::stdout()).map(|size| size.ws_col);
    match columns {
        Ok(columns) if columns > 0 => usize::from(columns).clamp(60, 200),
        _ => 100,
    }
}

/// Whether stdout may carry colour: a terminal, and NO_COLOR unset (no-color.org).
pub(crate) fn color() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Sends the log of the libraries to stderr: warnings, or more with `-v` and `-vv`.
pub(crate) fn start_log(verbose: u8) {
    let level = match verbose {
        0 => tracing::Level::WARN,
        1 => tracing::Level::INFO,
        _ => tracing::Level::DEBUG,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        .with_target(false)
        // A stderr that is gone is no reason to stop, nor to panic.
        .log_internal_errors(false)
        .without_time()
        .init();
}
