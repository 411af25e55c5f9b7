//! Lines of a log of strace(1): tasks, times, calls, and their arguments as text.

/// Line of a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Thread; 0 if the log has no IDs.
    pub(super) tid: i32,
    /// Time since the epoch in nanoseconds.
    pub(super) time: u64,
    pub(super) event: Event<'a>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    /// Complete call: name, arguments, result.
    Call(&'a str),
    /// Begin of a call, up to the arguments that the kernel has not returned.
    Begin(&'a str),
    /// Rest of a call that began earlier.
    End(&'a str),
    /// End of the thread, with its exit status.
    Exited(i32),
    /// Signal, or another message.
    Other,
}

/// Parses a line; `None` if it has no time.
pub(super) fn line(text: &str) -> Option<Line<'_>> {
    let (mut tid, mut rest) = (0, text.trim_end());
    if let Some(after) = rest.strip_prefix("[pid") {
        let (number, after) = after.split_once(']')?;
        (tid, rest) = (number.trim().parse().ok()?, after.trim_start());
    }
    let (mut first, mut after) = rest.split_once(' ')?;
    if let (Ok(number), 0) = (first.parse(), tid) {
        tid = number;
        (first, after) = after.trim_start().split_once(' ')?;
    }
    let time = time(first)?;
    let rest = after.trim_start();
    let event = match rest.as_bytes().first()? {
        b'+' => {
            let status = rest.strip_prefix("+++ exited with ").and_then(|it| it.split_once(' '));
            let killed = rest.starts_with("+++ killed");
            match status.and_then(|(status, _)| status.parse().ok()) {
                Some(status) => Event::Exited(status),
                None if killed => Event::Exited(128),
                None => Event::Other,
            }
        }
        b'<' => match rest.strip_prefix("<... ").and_then(|it| it.split_once(" resumed>")) {
            Some((_, rest)) => Event::End(rest),
            None => Event::Other,
        },
        byte if byte.is_ascii_alphabetic() || *byte == b'_' => {
            match rest.strip_suffix("<unfinished ...>") {
                Some(begin) => Event::Begin(begin),
                None if rest.contains('(') => Event::Call(rest),
                None => Event::Other,
            }
        }
        _ => Event::Other,
    };
    Some(Line { tid, time, event })
}

/// Seconds with a fraction, as nanoseconds.
pub(super) fn time(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - u32::try_from(fraction.len()).ok()?);
    let fraction = fraction.parse::<u64>().ok()?.checked_mul(scale)?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// Call: name, arguments as text, and result.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallText<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: Vec<&'a str>,
    /// Result; `None` if the call did not return, or will be restarted.
    pub(super) result: Option<i64>,
    /// Time of the call in nanoseconds, if the log has it.
    pub(super) length: Option<u64>,
}

/// Parses a complete call.
pub(super) fn call(text: &str) -> Option<CallText<'_>> {
    let (name, rest) = text.split_once('(')?;
    let (arguments, rest) = arguments(rest)?;
    let rest = rest.trim_start().strip_prefix('=')?.trim();
    let (rest, length) = match rest.strip_suffix('>').and_then(|it| it.rsplit_once('<')) {
        Some((before, text)) if time(text).is_some() => (before.trim_end(), time(text)),
        _ => (rest, None),
    };
    let mut words = rest.split([' ', '<']);
    let first = words.next()?;
    let result = match (first, words.next()) {
        ("-1", Some(error)) => Some(-i64::from(super::words::error(error)?)),
        (number, _) => super::words::number(number).map(u64::cast_signed),
    };
    Some(CallText { name: name.trim(), arguments, result, length })
}

/// Splits arguments at commas outside of quotes, brackets, and names of descriptors. Returns them
/// and the text after the closing bracket.
fn arguments(text: &str) -> Option<(Vec<&str>, &str)> {
    let bytes = text.as_bytes();
    let (mut all, mut start, mut depth, mut at) = (Vec::new(), 0, 0u32, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = quoted(bytes, at)?,
            b'<' if at > 0 && bytes[at - 1].is_ascii_alphanumeric() => at = named(bytes, at)?,
            b'/' if bytes[at..].starts_with(b"/*") => at += text[at..].find("*/")? + 1,
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                let last = text[start..at].trim();
                if !last.is_empty() {
                    all.push(last);
                }
                return Some((all, &text[at + 1..]));
            }
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                all.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Position of the quote that ends a text.
fn quoted(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'"' => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Position of the bracket that ends the name of a descriptor.
fn named(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0u32;
    for (at, byte) in bytes.iter().enumerate().skip(start) {
        match byte {
            b'<' => depth += 1,
            b'>' if depth == 1 => return Some(at),
            b'>' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_task_a_time_and_an_event() {
        let own = |text| line(text).map(|line| (line.tid, line.time, line.event));
        let time = 1_700_000_000_250_000_000;
        let called = Event::Call("sync() = 0");
        assert_eq!(own("12 1700000000.25 sync() = 0"), Some((12, time, called)));
        let called = Event::Call("sync() = 0");
        assert_eq!(own("[pid  7] 1700000000.250000 sync() = 0"), Some((7, time, called)));
        assert_eq!(own("1700000000.25 +++ exited with 3 +++"), Some((0, time, Event::Exited(3))));
        let begin = Event::Begin("read(3</a b>,  ");
        assert_eq!(own("5 1700000000.25 read(3</a b>,  <unfinished ...>"), Some((5, time, begin)));
        let end = Event::End("\"x\", 1) = 1 <0.5>");
        assert_eq!(
            own("5 1700000000.25 <... read resumed>\"x\", 1) = 1 <0.5>"),
            Some((5, time, end))
        );
        for other in ["--- SIGCHLD {si_signo=SIGCHLD} ---", "+++ superseded +++"] {
            let text = format!("5 1700000000.25 {other}");
            assert_eq!(line(&text).unwrap().event, Event::Other);
        }
        for text in ["", "x", "strace: Process 5 attached", "12:30:01 sync() = 0"] {
            assert_eq!(line(text), None, "{text}");
        }
    }

    #[test]
    fn arguments_are_split_outside_of_texts_structures_and_names() {
        let own = call(
            "openat(3</a, b (x)>, \"n\\\"a,(m\", {a=1, b=[2, 3]} /* 1, 2 */, 0666) = 4</a, b/n> <0.000012>",
        )
        .unwrap();
        let found = own.arguments;
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!((found[0], found[1], found[3]), ("3</a, b (x)>", "\"n\\\"a,(m\"", "0666"));
        assert_eq!((own.name, own.result, own.length), ("openat", Some(4), Some(12_000)));
        let failed =
            call("stat(\"x\", 0x7f) = -1 ENOENT (No such file or directory) <0.1>").unwrap();
        assert_eq!((failed.result, failed.length), (Some(-2), Some(100_000_000)));
        assert_eq!(call("sync() = ?").unwrap().result, None);
        let restarted = call("read(3</a>, 0x7f, 5) = ? ERESTARTSYS (To be restarted)").unwrap();
        assert_eq!(restarted.result, None);
        for text in ["", "x", "read(3</a", "read(3)", "read(\"x) = 0", "f(}) = 0", "f() = -1 EWHAT"]
        {
            assert!(call(text).is_none(), "{text}");
        }
    }
}
