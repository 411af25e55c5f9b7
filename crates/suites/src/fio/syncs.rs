//! Syncs within a section.

use model::phase::{RangeSync, SyncCall, SyncEvery, SyncInterval};

use super::{
    job::Section,
    values::{Base, MOST, number, word},
};

/// Interval and flags of sync_file_range(2): `write,wait_after:N`.
pub(super) fn read_range_sync(text: &str, _: Base) -> Result<String, String> {
    let Some((modes, count)) = text.rsplit_once(':') else {
        return Err(format!("`{text}` is not MODE:NUMBER, such as write:16"));
    };
    let mut flags = RangeSync { wait_before: false, write: false, wait_after: false };
    let known = ["wait_before", "write", "wait_after"].map(|name| (name, name));
    for mode in modes.split(',') {
        match word(mode, &known)?.as_str() {
            "wait_before" => flags.wait_before = true,
            "write" => flags.write = true,
            _ => flags.wait_after = true,
        }
    }
    Ok(format!("{}:{}", flags.names(), number(count, 1, MOST)?))
}

impl Section {
    /// Flags and interval of sync_file_range(2).
    pub(super) fn range_sync(&self) -> Option<(RangeSync, u64)> {
        let (modes, count) = self.text("sync_file_range").rsplit_once(':')?;
        let has = |mode: &str| modes.split(',').any(|own| own == mode);
        let flags = RangeSync {
            wait_before: has("wait_before"),
            write: has("write"),
            wait_after: has("wait_after"),
        };
        Some((flags, count.parse().ok()?))
    }

    /// Syncs before the next operation.
    pub(super) fn sync_every(&self) -> Option<SyncEvery> {
        let every = |ops, call| {
            let own = SyncEvery { after: SyncInterval::Ops(ops), call, before_next: true };
            (ops > 0).then_some(own)
        };
        every(self.number("fsync"), SyncCall::Fsync)
            .or_else(|| every(self.number("fdatasync"), SyncCall::Fdatasync))
            .or_else(|| {
                let (flags, ops) = self.range_sync()?;
                every(ops, SyncCall::Range(flags))
            })
    }
}
