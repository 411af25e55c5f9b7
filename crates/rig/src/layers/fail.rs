//! Fault injection: devices that fail during the measured phases.
//!
//! The filesystem is created, set up, filled, and mounted while the devices have no faults, because
//! mkfs would fail otherwise. The faults start right before the clock of the first measured phase
//! starts, when the files of the phase exist. The faults end after the unmount and before fsck, so
//! that fsck checks the data on the device and does not fail because of read errors.
//!
//! A fault starts as follows. For a `flakey` device, a table with faults replaces the table without
//! faults, and its intervals start. For a `dust` device, the bad blocks, which were registered when
//! the device was created, are enabled. A `log-writes` device has no fault; a mark is written to
//! its log.

use model::{BlockRange, Bytes, Environment, Warning};

use crate::{
    error::RigError,
    host::{Host, Output},
    journaled_host::JournaledHost,
    undo::{Change, Step},
};

/// Text of the mark that is written to the write log when the first measured phase starts.
const MARK: &str = "measured";

/// Device whose faults start with the first measured phase, or whose log gets a mark then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FaultTarget {
    /// `flakey` device, whose faults start with another table.
    Table {
        /// Device-mapper name (dmsetup(8)).
        name: String,
        /// Device-mapper UUID.
        uuid: String,
        /// Description of the layer.
        what: String,
        /// Table without faults, which is active before the first measured phase.
        sound: String,
        /// Table with faults.
        failing: String,
    },
    /// `dust` device with registered bad blocks, which are not enabled yet.
    Blocks {
        /// Device-mapper name.
        name: String,
        /// Device-mapper UUID.
        uuid: String,
        /// Description of the layer.
        what: String,
    },
    /// `log-writes` device.
    Log {
        /// Device-mapper name.
        name: String,
    },
}

impl FaultTarget {
    /// Starts the faults, or writes the mark to the log. Returns the undo step of the faults and
    /// its description; `None` for a log.
    pub(crate) fn begin(
        &self,
        journaled: &mut JournaledHost,
    ) -> Result<Option<(Step, String)>, RigError> {
        let change = |name: &str, uuid: &str, table: Option<&String>| Change::Fault {
            name: name.to_owned(),
            uuid: uuid.to_owned(),
            sound: table.cloned(),
        };
        let step = match self {
            Self::Table { name, uuid, what, sound, failing } => {
                let change = change(name, uuid, Some(sound));
                let load = (argv(&["load", name]), failing.as_str());
                journaled.fault(
                    change,
                    what,
                    &[load, (argv(&["resume", "--nolockfs", name]), "")],
                )?
            }
            Self::Blocks { name, uuid, what } => {
                let enable = (argv(&["message", name, "0", "enable"]), "");
                journaled.fault(change(name, uuid, None), what, &[enable])?
            }
            Self::Log { name } => {
                let argv = argv(&["message", name, "0", &format!("mark {MARK}")]);
                let output = journaled.run(&argv)?;
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

    /// Reads the state of the write log; `None` for a device without a log.
    pub(crate) fn log(&self, journaled: &mut JournaledHost) -> Result<Option<LogEnd>, RigError> {
        let Self::Log { name } = self else { return Ok(None) };
        let output = journaled.run(&argv(&["status", name]))?;
        match LogEnd::read(&output.stdout).filter(|_| output.success()) {
            Some(end) => Ok(Some(end)),
            None => Err(failed("log-writes", &output)),
        }
    }
}

/// State of a write log at the end of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEnd {
    /// Number of entries: writes, flushes, discards, and marks.
    entries: u64,
    /// Offset of the end of the log on the log device.
    end: Bytes,
    /// True if the kernel stopped logging, because the log device was full or a write failed.
    stopped: bool,
}

impl LogEnd {
    /// Parses `0 LENGTH log-writes ENTRIES HIGHEST_SECTOR`, followed by `logging_disabled` if
    /// logging stopped (`log_writes_status` in drivers/md/dm-log-writes.c).
    fn read(status: &str) -> Option<Self> {
        let words: Vec<&str> = status.split_whitespace().collect();
        let [_, _, "log-writes", entries, sector, rest @ ..] = &words[..] else { return None };
        Some(Self {
            entries: entries.parse().ok()?,
            end: Bytes(sector.parse::<u64>().ok()?.saturating_mul(super::table::SECTOR)),
            stopped: rest.contains(&"logging_disabled"),
        })
    }

    /// Environment facts about the log.
    pub(crate) fn facts(self) -> Environment {
        let mut facts = Environment::default();
        facts.set("layers.log-writes.entries", self.entries.to_string());
        facts.set("layers.log-writes.end_bytes", self.end.0.to_string());
        facts
    }

    /// Warning if the log is incomplete.
    pub(crate) fn warning(self) -> Option<Warning> {
        self.stopped.then(|| Warning::SettingNotApplied {
            setting: "log_writes".into(),
            wanted: "every write".into(),
            found: format!("the first {} only; use a larger second device", self.entries),
        })
    }
}

/// Registers the bad blocks of a `dust` device without enabling them. Kernel messages for each
/// block are turned off.
pub(super) fn add_bad_blocks(
    journaled: &mut JournaledHost,
    name: &str,
    bad: &[BlockRange],
) -> Result<(), String> {
    let blocks: u64 = bad.iter().map(|range| range.count()).sum();
    let what = format!("dmsetup message {name} 0 addbadblock, for {blocks} blocks");
    let message = |host: &dyn Host, text: &str| -> Result<(), String> {
        let output = host.run(&argv(&["message", name, "0", text]));
        let output = output.map_err(|error| error.to_string())?;
        if output.success() { Ok(()) } else { Err(format!("{text}: {}", output.verdict())) }
    };
    let (done, _) = journaled.execute(what, |host| {
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
    let hint = "see the kernel log, or remove the layer from the plan";
    RigError::Layer { layer: layer.into(), why: output.verdict(), hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_state_is_parsed_from_the_status() {
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
