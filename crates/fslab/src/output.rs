//! All output to stdout and stderr: results on stdout, everything else on stderr.
//!
//! Text may contain file names, plan titles, or lines of the kernel log. Control characters in such
//! text are printed as escapes ([`plain`], [`line`]), so the only control sequences that reach a
//! terminal are styles of crate `report` ([`styled`]). JSON has its own escapes ([`json`]). Bytes
//! of other machine formats are not changed ([`bytes`]), because these formats have their own
//! escapes.

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use report::is_command;

/// Prints a result.
///
/// # Errors
/// If stdout cannot be written; [`is_broken_pipe`] identifies a closed pipe.
pub(crate) fn result(text: &str) -> io::Result<()> {
    print(&plain(text))
}

/// Prints a result with one item per line, even if a name contains line breaks.
///
/// # Errors
/// As [`result()`].
pub(crate) fn lines<T: AsRef<str>>(lines: &[T]) -> io::Result<()> {
    print(&lines.iter().map(|text| line(text.as_ref())).collect::<Vec<_>>().join("\n"))
}

/// Prints a text of crate `report`; its styles may be colored.
///
/// # Errors
/// As [`result()`].
pub(crate) fn styled(text: &str) -> io::Result<()> {
    print(&report::harmless(text, color()))
}

/// Prints a result as JSON.
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

/// Prints a message. A closed stderr does not stop the measurement.
pub(crate) fn message(text: &str) {
    let _gone = writeln!(io::stderr().lock(), "{}", plain(text));
}

/// Prints a message as one JSON object.
pub(crate) fn event(json: &serde_json::Value) {
    let _gone = writeln!(io::stderr().lock(), "{}", escaped(&json.to_string()));
}

/// Prints help, the version, or an argument error, and returns the exit status. `own` is the
/// message of an error; by default, the message of clap is printed.
pub(crate) fn usage(error: &clap::Error, own: Option<String>) -> ExitCode {
    if let Some(text) = own {
        message(&text);
        return ExitCode::from(2);
    }
    // An error message repeats arguments. If they contain control characters, the message is
    // printed without styles.
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

/// Text in which control characters other than line breaks and tabs are escaped.
pub(crate) fn plain(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|text| match text.strip_suffix("\r\n") {
            Some(text) => shown(text, &['\t']) + "\n",
            None => shown(text, &['\t', '\n']),
        })
        .collect()
}

/// Line of a progress display, wrapped to the terminal of stderr.
pub(crate) fn wrapped(text: &str) -> String {
    let columns = screen().map_or(usize::MAX, |(_, columns)| columns);
    report::wrap(&line(text), columns, "", "  ").join("\n")
}

/// Text as one line, with control characters escaped.
pub(crate) fn line(text: &str) -> String {
    shown(text, &[])
}

fn shown(text: &str, kept: &[char]) -> String {
    replaced(text, kept, |letter| letter.escape_unicode().to_string())
}

/// JSON with control characters in strings escaped (RFC 8259, section 7). Outside strings, line
/// breaks are the only control characters in JSON.
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

/// Reports whether the reader of stdout exited, as in `fslab … | head`, which is not an error.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Columns of the terminal of stdout. If stdout is not a terminal, the value of `COLUMNS`, or 100.
pub(crate) fn width() -> usize {
    let columns = rustix::termios::tcgetwinsize(io::stdout()).map(|size| size.ws_col);
    let columns = match columns {
        Ok(columns) if columns > 0 => columns,
        _ => std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).unwrap_or(100),
    };
    usize::from(columns).clamp(60, 200)
}

/// Rows and columns of the terminal of stderr.
pub(crate) fn screen() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then(|| (size.ws_row.into(), size.ws_col.into()))
}

/// Reports whether stdout may be colored, according to the environment and its type.
pub(crate) fn color() -> bool {
    colored(io::stdout().is_terminal(), |name| std::env::var(name).ok())
}

/// Decides whether output is colored. `NO_COLOR` disables color (no-color.org). `CLICOLOR_FORCE`
/// enables it even if stdout is not a terminal, and `CLICOLOR=0` disables it on a terminal
/// (bixense.com/clicolors). A terminal of type `dumb` has no color.
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

/// Report in the encoding of the terminal: ASCII unless the locale uses UTF-8.
pub(crate) fn legible(report: String) -> String {
    match unicode(|name| std::env::var(name).ok()) {
        true => report,
        false => report::ascii(&report),
    }
}

/// Reports whether the character locale uses UTF-8. The first variable that is set and not empty
/// decides (POSIX.1-2024, Base Definitions 8.2). If no variable is set, as in many containers,
/// UTF-8 is assumed.
fn unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let locale = names.iter().filter_map(|name| variable(name)).find(|value| !value.is_empty());
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Starts logging to stderr: warnings, with `-v` also info messages, and with `-vv` also debug
/// messages.
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
        // A closed stderr must not stop or panic the program.
        .log_internal_errors(false)
        .without_time()
        .init();
}

/// Log writer on stderr. Each write is a whole line.
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
    fn control_characters_are_escaped_and_json_keeps_its_values() {
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
    fn color_requires_a_terminal_that_supports_it() {
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
    fn the_first_locale_variable_that_is_set_decides() {
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
