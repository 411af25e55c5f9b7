//! Text of blkparse(1) in its default format: `DEVICE CPU SEQUENCE TIME PID ACTION RWBS SECTOR +
//! SECTORS [PROCESS]`.
//!
//! An operation begins when it is queued (action Q), and ends when a request that contains it
//! completes (action C). An operation without an end has no length.

use std::collections::BTreeMap;

use model::phase::FileCall;

use super::{Access, Log};

/// Unit of positions and lengths (blkparse(1)).
const SECTOR: u64 = 512;

/// Queued or completed request.
struct Event<'a> {
    device: &'a str,
    time: u64,
    action: &'a str,
    kind: &'a str,
    sector: u64,
    sectors: u64,
}

/// True for a line of a request.
pub(super) fn is_event(line: &str) -> bool {
    event(line).is_some()
}

fn event(line: &str) -> Option<Event<'_>> {
    let mut words = line.split_whitespace();
    let device = words.next()?;
    let (major, minor) = device.split_once(',')?;
    let numbers = [major, minor, words.next()?, words.next()?];
    if numbers.iter().any(|number| number.parse::<u32>().is_err()) {
        return None;
    }
    let time = time(words.next()?)?;
    words.next()?.parse::<u32>().ok()?;
    let (action, kind) = (words.next()?, words.next()?);
    // Flushes have no place.
    let sector = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let sectors = match (words.next(), words.next()) {
        (Some("+"), Some(count)) => count.parse().ok()?,
        _ => 0,
    };
    let is_kind = kind.bytes().all(|byte| b"RWDFASMNPEZ".contains(&byte));
    is_kind.then_some(Event { device, time, action, kind, sector, sectors })
}

/// Nanoseconds of seconds with a fraction of nine digits.
fn time(text: &str) -> Option<u64> {
    let (seconds, nanoseconds) = text.split_once('.')?;
    let (seconds, part) = (seconds.parse::<u32>().ok()?, nanoseconds.parse::<u64>().ok()?);
    (nanoseconds.len() == 9).then_some(u64::from(seconds) * 1_000_000_000 + part)
}

/// Operations of a log.
pub(super) fn read(text: &str) -> Result<Log, String> {
    let mut log = Log::default();
    // Operations without an end, by device and first sector: their place, and their last sector.
    let mut open: BTreeMap<(usize, u64), (usize, u64)> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some(event) = event(line) else { continue };
        let end = event.sector.saturating_add(event.sectors);
        match event.action {
            "Q" => {
                let file = log.file(&event.device.replace(',', "-"));
                queue(&mut log, file, &event).map_err(|what| format!("line {number}: {what}"))?;
                if event.sectors > 0 && !log.accesses.is_empty() {
                    open.insert((file, event.sector), (log.accesses.len() - 1, end));
                }
            }
            "C" if event.sectors > 0 => {
                let file = log.file(&event.device.replace(',', "-"));
                let within = open.range((file, event.sector)..(file, end));
                let done: Vec<_> = within.map(|(key, own)| (*key, *own)).collect();
                for (key, (place, last)) in done {
                    if last <= end {
                        open.remove(&key);
                        let access = &mut log.accesses[place];
                        access.end = access.end.max(event.time);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(log)
}

/// Adds the operations of a queued request: a flush before it, and the transfer.
fn queue(log: &mut Log, file: usize, event: &Event<'_>) -> Result<(), &'static str> {
    let Event { time, sector, sectors, .. } = *event;
    let flush =
        Access { begin: time, end: time, file, call: FileCall::Fdatasync, offset: 0, size: 0 };
    let (before, rest) = match event.kind.strip_prefix('F') {
        Some(rest) => (true, rest),
        None => (false, event.kind),
    };
    if before {
        log.add(flush)?;
    }
    let call = match rest.bytes().next() {
        Some(b'R') => FileCall::Pread,
        Some(b'W') => FileCall::Pwrite,
        Some(b'D') => {
            log.leave_out("discard");
            return Ok(());
        }
        _ => return Ok(()),
    };
    if sectors == 0 {
        return Ok(());
    }
    let bytes = |sectors: u64| sectors.checked_mul(SECTOR).ok_or("the position is beyond 8 EiB");
    let (offset, size) = (bytes(sector)?, bytes(sectors)?);
    if rest[1..].contains('F') {
        log.leave_out("forced unit access");
    }
    log.add(Access { call, offset, size, ..flush })
}
