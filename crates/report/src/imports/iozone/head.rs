//! Lines of an output of IOzone before its results.

use std::collections::BTreeMap;

use model::Value;

/// Unit of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// KiB per second.
    KiloBytes,
    /// Operations per second (`-O`).
    Operations,
    /// Microseconds per operation (`-N`).
    Micros,
}

/// Facts of an output.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// Version, or `unknown`.
    pub(super) version: String,
    /// True if fslab measured.
    is_of_fslab: bool,
    /// True if fslab wrote the output.
    is_written_by_fslab: bool,
    pub(super) unit: Unit,
    /// Command line.
    pub(super) command: Option<String>,
    /// Parameters by the names of suite `iozone`.
    pub(super) parameters: BTreeMap<String, Value>,
    /// Configuration; only outputs of fslab have it.
    pub(super) name: Option<String>,
    /// File size in KiB, 0 if not printed.
    pub(super) file: u64,
    /// Block size in KiB, 0 if not printed.
    pub(super) block: u64,
}

impl Head {
    pub(super) fn new(lines: &[(usize, &str)]) -> Self {
        let mut head = Self {
            version: "unknown".into(),
            is_of_fslab: false,
            is_written_by_fslab: false,
            unit: Unit::KiloBytes,
            command: None,
            parameters: BTreeMap::new(),
            name: None,
            file: 0,
            block: 0,
        };
        for (_, line) in lines {
            head.read(line.trim());
        }
        head
    }

    fn read(&mut self, line: &str) {
        let kib = |text: &str| text.split_whitespace().next().and_then(|own| own.parse().ok());
        if let Some(revision) = line.strip_prefix("Version $Revision:") {
            self.version = revision.trim_end_matches('$').trim().to_owned();
        } else if let Some((program, version)) =
            line.strip_prefix("Version ").and_then(|rest| rest.split_once(' '))
        {
            // Outputs that fslab wrote; the results may be imported.
            self.is_of_fslab = program == "fslab";
            self.is_written_by_fslab = true;
            let version = version.split([' ', ',']).next().unwrap_or_default();
            self.version = version.to_owned();
        } else if let Some(command) = line.strip_prefix("Command line used:") {
            self.command = Some(command.trim().to_owned());
        } else if let Some(size) = line.strip_prefix("File size set to ").and_then(kib) {
            self.file = size;
        } else if let Some(size) = line.strip_prefix("Record Size ").and_then(kib) {
            self.block = size;
        } else if let (true, Some(name)) =
            (self.is_written_by_fslab, line.strip_prefix("Filesystem "))
        {
            let name = name.split(';').next().unwrap_or_default();
            self.name = Some(name.trim().to_owned());
        } else {
            self.option(line);
        }
    }

    /// Options that change the timed region or the unit.
    fn option(&mut self, line: &str) {
        let lower = line.to_ascii_lowercase();
        let flags = [
            ("include fsync in write timing", "include_fsync"),
            ("include close in write timing", "include_close"),
            ("o_direct feature enabled", "direct"),
            ("sync mode", "o_sync"),
            ("using mmap files", "mmap"),
        ];
        if lower.starts_with("ops mode") {
            self.unit = Unit::Operations;
        } else if lower.starts_with("microseconds/op mode") {
            self.unit = Unit::Micros;
        } else if let Some((_, name)) = flags.iter().find(|(text, _)| lower.starts_with(text)) {
            self.parameters.insert((*name).to_owned(), Value::Flag(true));
        }
    }

    /// Program with its version.
    pub(super) fn program(&self) -> String {
        match self.is_of_fslab {
            true => format!("fslab {}, IOzone format", self.version),
            false => format!("IOzone {}", self.version),
        }
    }
}
