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

/// Writes a result byte for byte.
///
/// # Errors
/// As [`result()`].
pub(crate) fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// Prints a message for a person. A stderr that is gone is no reason to stop measuring.
///
/// Messages name files, and files may have any name: what a terminal would take for a command is
/// printed as its escape, and so is what turns the direction of writing.
pub(crate) fn message(text: &str) {
    let _gone = writeln!(io::stderr().lock(), "{}", harmless(text));
}

fn harmless(text: &str) -> String {
    let command = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match command(letter) {
            true => shown.extend(letter.escape_unicode()),
            false => shown.push(letter),
        }
    }
    shown
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

/// Whether stdout may carry color, by the environment and by whether it is a terminal.
pub(crate) fn color() -> bool {
    colored(io::stdout().is_terminal(), |name| std::env::var(name).ok())
}

/// Whether to write color. `NO_COLOR` says no to everything (no-color.org); `CLICOLOR_FORCE` says
/// yes even where stdout is no terminal, and `CLICOLOR=0` no where it is one
/// (bixense.com/clicolors); a terminal that calls itself `dumb` has none.
fn colored(terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    let value = |name: &str| variable(name).filter(|value| !value.is_empty());
    if value("NO_COLOR").is_some() {
        return false;
    }
    if value("CLICOLOR_FORCE").is_some_and(|value| value != "0") {
        return true;
    }
    let refused = value("CLICOLOR").is_some_and(|value| value == "0");
    terminal && !refused && value("TERM").is_none_or(|value| value != "dumb")
}

/// A report as the terminal can show it: in ASCII where the locale is not one of UTF-8.
pub(crate) fn shown(report: String) -> String {
    match unicode(|name| std::env::var(name).ok()) {
        true => report,
        false => report::ascii(&report),
    }
}

/// Whether the locale of characters is one of UTF-8: the first variable that is set and not empty
/// decides (POSIX.1-2024, Base Definitions 8.2). Where none is, as in many containers, nothing is
/// known of the terminal, and today's are of UTF-8.
fn unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let locale = names.iter().filter_map(|name| variable(name)).find(|value| !value.is_empty());
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn with<'a>(set: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn color_is_for_terminals_that_want_it() {
        for (terminal, set, expected) in [
            (true, &[][..], true),
            (false, &[], false),
            (true, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], false),
            (true, &[("NO_COLOR", "")], true),
            (false, &[("CLICOLOR_FORCE", "1"), ("TERM", "dumb")], true),
            (false, &[("CLICOLOR_FORCE", "0")], false),
            (true, &[("CLICOLOR", "0")], false),
            (true, &[("TERM", "dumb")], false),
            (true, &[("TERM", "xterm-256color")], true),
        ] {
            assert_eq!(colored(terminal, with(set)), expected, "{terminal} {set:?}");
        }
    }

    #[test]
    fn the_first_locale_that_is_set_decides() {
        for (set, expected) in [
            (&[][..], true),
            (&[("LANG", "C")], false),
            (&[("LANG", "en_US.UTF-8")], true),
            (&[("LANG", "de_DE.utf8"), ("LC_ALL", "POSIX")], false),
            (&[("LANG", "C"), ("LC_CTYPE", "C.UTF-8"), ("LC_ALL", "")], true),
            (&[("LC_CTYPE", "en_US.ISO-8859-1"), ("LANG", "en_US.UTF-8")], false),
        ] {
            assert_eq!(unicode(with(set)), expected, "{set:?}");
        }
    }
}
