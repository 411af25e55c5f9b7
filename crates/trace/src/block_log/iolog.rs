//! Iologs of fio, versions 2 and 3: lines of `FILE ACTION` and `FILE ACTION OFFSET LENGTH`. Lines
//! of version 3 start with a time in microseconds (fio 3.33). In version 2, `FILE wait TIME 0` is a
//! pause in microseconds.

use model::phase::FileCall;

use super::{Access, Log};

/// Version of an iolog; `None` if the text is none.
pub(super) fn version(text: &str) -> Option<u32> {
    let version = text.lines().next()?.strip_prefix("fio version ")?.strip_suffix(" iolog")?;
    version.parse().ok()
}

/// Operations of an iolog.
pub(super) fn read(text: &str, version: u32) -> Result<Log, String> {
    if !(2..=3).contains(&version) {
        return Err(format!("iologs of version {version} are not supported, only 2 and 3"));
    }
    let mut log = Log::default();
    let mut clock: u64 = 0;
    for (number, line) in (1..).zip(text.lines()).skip(1) {
        let mut words = line.split_whitespace();
        let wrong = |what: &str| format!("line {number}: {what}");
        if version == 3 {
            let Some(time) = words.next() else { continue };
            let time: u64 = time.parse().map_err(|_| wrong("it has no time"))?;
            clock = nanoseconds(time);
        }
        let Some(name) = words.next() else { continue };
        let action = words.next().ok_or_else(|| wrong("it has no action"))?;
        let mut place = || words.next().unwrap_or("0").parse::<u64>();
        let (offset, size) = match (place(), place()) {
            (Ok(offset), Ok(size)) => (offset, size),
            _ => return Err(wrong("its offset or length is not a number")),
        };
        let call = match action {
            "read" => FileCall::Pread,
            "write" => FileCall::Pwrite,
            "sync" => FileCall::Fsync,
            "datasync" => FileCall::Fdatasync,
            "add" | "open" | "close" => continue,
            "wait" => {
                clock = clock.saturating_add(nanoseconds(offset));
                continue;
            }
            "trim" => {
                log.leave_out("trim");
                continue;
            }
            _ => return Err(wrong("its action is unknown")),
        };
        let file = log.file(name);
        let (offset, size) = if call == FileCall::Pread || call == FileCall::Pwrite {
            (offset, size)
        } else {
            (0, 0)
        };
        log.add(Access { begin: clock, end: clock, file, call, offset, size }).map_err(wrong)?;
    }
    Ok(log)
}

/// Nanoseconds of microseconds, at most 36 years.
fn nanoseconds(microseconds: u64) -> u64 {
    microseconds.saturating_mul(1000).min(1 << 60)
}
