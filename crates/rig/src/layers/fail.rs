//! What fails on purpose, and when.
//!
//! A filesystem is made, set up, filled, and mounted on sound devices, and files are laid out on
//! them. The devices begin to fail when the first measured phase is ready, right before its clock
//! starts. They go on through whatever comes after, the unmounting too, and are sound again before
//! the filesystem is checked: a check then finds what the device holds, and not that it cannot be
//! read. A layer that failed from the start would only fail mkfs.
//!
//! A device of `flakey` gets another table by one call, which the kernel carries out between two
//! requests; its intervals count from there. A device of `dust` is told of its bad blocks when it
//! is made, and at that moment that they count. One of `log-writes` gets a mark of that moment.

use model::{BlockRange, Bytes, Environment, Warning};

use crate::{
    bench::Bench,
    error::RigError,
    host::{Host, Output},
    undo::{Change, Step},
};

/// The name of the mark that a log of writes gets when the devices begin to fail.
const MARK: &str = "measured";

/// A device for which something begins with the first measured phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Weakness {
    /// It fails under another table.
    Table {
        /// What dmsetup(8) calls it.
        name: String,
        /// Its id.
        uuid: String,
        /// The layer in words.
        what: String,
        /// The table that it has.
        sound: String,
        /// The table under which it fails.
        failing: String,
    },
    /// It has bad blocks that do not count yet.
    Blocks {
        /// As above.
        name: String,
        /// As above.
        uuid: String,
        /// As above.
        what: String,
    },
    /// It logs what is written.
    Log {
        /// As above.
        name: String,
    },
}

impl Weakness {
    /// Begins; `Some` is what ends it, with words for it.
    pub(crate) fn begin(&self, bench: &mut Bench) -> Result<Option<(Step, String)>, RigError> {
        let change = |name: &str, uuid: &str, table: Option<&String>| Change::Fault {
            name: name.to_owned(),
            uuid: uuid.to_owned(),
            sound: table.cloned(),
        };
        let step = match self {
            Self::Table { name, uuid, what, sound, failing } => {
                let change = change(name, uuid, Some(sound));
                let load = (argv(&["load", name]), failing.as_str());
                bench.fault(change, what, &[load, (argv(&["resume", "--nolockfs", name]), "")])?
            }
            Self::Blocks { name, uuid, what } => {
                let enable = (argv(&["message", name, "0", "enable"]), "");
                bench.fault(change(name, uuid, None), what, &[enable])?
            }
            Self::Log { name } => {
                let argv = argv(&["message", name, "0", &format!("mark {MARK}")]);
                let output = bench.run(&argv)?;
                return if output.success() {
                    Ok(None)
                } else {
                    Err(failed("log-writes", &output))
                };
            }
        };
        Ok(Some((step, format!("faults of {}", self.name()))))
    }

    fn name(&self) -> &str {
        match self {
            Self::Table { name, .. } | Self::Blocks { name, .. } | Self::Log { name } => name,
        }
    }

    /// How far the log has come, of a device that has one.
    pub(crate) fn log(&self, bench: &mut Bench) -> Result<Option<LogEnd>, RigError> {
        let Self::Log { name } = self else { return Ok(None) };
        let output = bench.run(&argv(&["status", name]))?;
        match LogEnd::read(&output.stdout).filter(|_| output.success()) {
            Some(end) => Ok(Some(end)),
            None => Err(failed("log-writes", &output)),
        }
    }
}

/// What a log of writes holds in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEnd {
    /// Entries: writes, flushes, discards, and marks.
    entries: u64,
    /// How far it reaches into its device.
    end: Bytes,
    /// Whether the kernel has given it up: for want of room, or since it could not be written.
    given_up: bool,
}

impl LogEnd {
    /// From `0 LENGTH log-writes ENTRIES HIGHEST_SECTOR`, with `logging_disabled` behind it where
    /// that is so (`log_writes_status` in drivers/md/dm-log-writes.c).
    fn read(status: &str) -> Option<Self> {
        let words: Vec<&str> = status.split_whitespace().collect();
        let [_, _, "log-writes", entries, sector, rest @ ..] = &words[..] else { return None };
        Some(Self {
            entries: entries.parse().ok()?,
            end: Bytes(sector.parse::<u64>().ok()?.saturating_mul(super::table::SECTOR)),
            given_up: rest.contains(&"logging_disabled"),
        })
    }

    /// As facts.
    pub(crate) fn facts(self) -> Environment {
        let mut facts = Environment::default();
        facts.set("layers.log-writes.entries", self.entries.to_string());
        facts.set("layers.log-writes.end_bytes", self.end.0.to_string());
        facts
    }

    /// That it is not whole.
    pub(crate) fn warning(self) -> Option<Warning> {
        self.given_up.then(|| Warning::ReadBack {
            setting: "log_writes".into(),
            wanted: "every write".into(),
            found: format!("the first {} only; make the second device larger", self.entries),
        })
    }
}

/// Tells a device of `dust` which of its blocks are bad; none fails yet. It says nothing of each in
/// the kernel's log.
pub(super) fn spoil(bench: &mut Bench, name: &str, bad: &[BlockRange]) -> Result<(), String> {
    let blocks: u64 = bad.iter().map(|range| range.count()).sum();
    let what = format!("dmsetup message {name} 0 addbadblock, for {blocks} blocks");
    let message = |host: &dyn Host, text: &str| -> Result<(), String> {
        let output = host.run(&argv(&["message", name, "0", text]));
        let output = output.map_err(|error| error.to_string())?;
        if output.success() { Ok(()) } else { Err(format!("{text}: {}", output.verdict())) }
    };
    let (done, _) = bench.act(what, |host| {
        message(host, "quiet")?;
        let mut blocks = bad.iter().flat_map(|range| range.first..=range.last);
        blocks.try_for_each(|block| message(host, &format!("addbadblock {block}")))
    });
    done
}

fn argv(words: &[&str]) -> Vec<String> {
    std::iter::once("dmsetup").chain(words.iter().copied()).map(str::to_owned).collect()
}

fn failed(layer: &str, output: &Output) -> RigError {
    let cure = "see the kernel log, or take the layer out of the plan";
    RigError::Layer { layer: layer.into(), why: output.verdict(), cure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_read_from_its_status() {
        let whole = LogEnd::read("0 131072 log-writes 16520 90112\n").unwrap();
        assert_eq!((whole.entries, whole.end, whole.warning()), (16_520, Bytes::mib(44), None));
        assert_eq!(whole.facts().get("layers.log-writes.entries"), Some("16520"));
        let cut = LogEnd::read("0 131072 log-writes 7 131064 logging_disabled").unwrap();
        let warning = cut.warning().unwrap();
        assert!(warning.message().contains("the first 7 only"), "{}", warning.message());
        for other in ["", "0 131072 linear", "0 131072 log-writes many 3"] {
            assert_eq!(LogEnd::read(other), None);
        }
    }
}
