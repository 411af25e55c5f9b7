//! The one door to stdout and stderr: results on stdout, everything else on stderr.
//!
//! Text that leaves as text may hold names of files, titles of plans, or lines of the kernel log.
//! A character in it that commands a terminal is printed as its escape ([`plain`], [`line`]), so
//! only styles of crate `report` reach a terminal ([`styled`]). JSON gets escapes of its own
//! ([`json`]); bytes of other machine formats, which escape for themselves, pass ([`bytes`]).

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use report::is_command;

/// Prints a result.
///
/// # Errors
/// When stdout cannot be written; a closed pipe is told apart by [`is_broken_pipe`].
pub(crate) fn result(text: &str) -> io::Result<()> {
    print(&plain(text))
}

/// Prints a result of which each item is one line, even if a name in it contains line breaks.
///
/// # Errors
/// As [`result()`].
pub(crate) fn lines<T: AsRef<str>>(lines: &[T]) -> io::Result<()> {
    print(&lines.iter().map(|text| line(text.as_ref())).collect::<Vec<_>>().join("\n"))
}

/// Prints a text of crate `report`, in whose styles stdout may be colored.
///
/// # Errors
/// As [`result()`].
pub(crate) fn styled(text: &str) -> io::Result<()> {
    print(&report::harmless(text, color()))
}

/// Prints a result in JSON.
///
/// # Errors
/// As [`result()`].
pub(crate) fn json(text: &str) -> io::Result<()> {
    print(&escaped(text))
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

fn print(text: &str) -> io::Result<()> {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    bytes(format!("{text}{end}").as_bytes())
}

/// Prints a message for a person. A stderr that is gone is no reason to stop measuring.
pub(crate) fn message(text: &str) {
    let _gone = writeln!(io::stderr().lock(), "{}", plain(text));
}

/// Prints a message for a program: one object of JSON.
pub(crate) fn event(json: &serde_json::Value) {
    let _gone = writeln!(io::stderr().lock(), "{}", escaped(&json.to_string()));
}

/// Prints help, the version, or an error about arguments, and gives the status.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // An error repeats arguments, in which styles would pass as well.
    let hostile = std::env::args_os().any(|it| it.to_string_lossy().contains(is_command));
    let terminal = match error.use_stderr() {
        true => io::stderr().is_terminal(),
        false => io::stdout().is_terminal(),
    };
    let rendered = error.render();
    let text = match !hostile && colored(terminal, |name| std::env::var(name).ok()) {
        true => rendered.ansi().to_string(),
        false => plain(&rendered.to_string()),
    };
    let _gone = match error.use_stderr() {
        true => io::stderr().write_all(text.as_bytes()),
        false => bytes(text.as_bytes()),
    };
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// A text whose lines and tabs remain, and in which nothing commands a terminal.
pub(crate) fn plain(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|text| match text.strip_suffix("\r\n") {
            Some(text) => shown(text, &['\t']) + "\n",
            None => shown(text, &['\t', '\n']),
        })
        .collect()
}

/// A text as one line, in which nothing commands a terminal.
pub(crate) fn line(text: &str) -> String {
    shown(text, &[])
}

fn shown(text: &str, kept: &[char]) -> String {
    replaced(text, kept, |letter| letter.escape_unicode().to_string())
}

/// JSON whose texts have escapes for all that commands a terminal (RFC 8259, section 7). Outside
/// texts JSON has no such characters but line breaks.
fn escaped(json: &str) -> String {
    let escape = |letter: char| {
        let mut units = [0; 2];
        letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
    };
    replaced(json, &['\n'], escape)
}

fn replaced(text: &str, kept: &[char], escape: impl Fn(char) -> String) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_command(letter) && !kept.contains(&letter) {
            true => shown.push_str(&escape(letter)),
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
pub(crate) fn legible(report: String) -> String {
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
        .with_writer(|| Log)
        .with_target(false)
        // A stderr that is gone is no reason to stop, nor to panic.
        .log_internal_errors(false)
        .without_time()
        .init();
}

/// The log on stderr. Each write is a whole line.
struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = plain(&String::from_utf8_lossy(bytes));
        io::stderr().write_all(text.as_bytes()).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_commands_a_terminal_and_json_stays_equal() {
        let hostile = "a\tb\r\nc\r\u{1b}[2J\u{9b}m\u{202e}\u{200b}\u{e0041}\u{7f}\u{2028}é\u{5d0}";
        let shown = "\\u{d}\\u{1b}[2J\\u{9b}m\\u{202e}\\u{200b}\\u{e0041}\\u{7f}\\u{2028}é\u{5d0}";
        assert_eq!(plain(hostile), format!("a\tb\nc{shown}"));
        assert_eq!(line(hostile), format!("a\\u{{9}}b\\u{{d}}\\u{{a}}c{shown}"));
        let value = serde_json::json!({ hostile: hostile });
        let json = escaped(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!json.contains(|c| is_command(c) && c != '\n'), "{json}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), value);
    }

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
