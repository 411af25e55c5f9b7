//! Import of results of other programs as a run, with their source stated in all reports.
//!
//! [`IMPORTERS`] lists the formats: their names, contents, and limits, and the functions that
//! recognize and read them. Help text, reference page, and tests use the table. [`recognize`]
//! selects the importer by the content of a file. [`Importer::read`] parses one file to
//! [`Measurement`]s, each of which is one repetition of a cell. [`assemble`] creates the run.
//!
//! Data that a file does not contain are omitted: the workload has the recorded parameters only,
//! storage and machine are unknown, and a missing number has a warning instead of a sample. The run
//! and every trial have [`Warning::Imported`], so that reports derive no findings. The module opens
//! no files.

mod assemble;
mod bonnie;
mod dbench;
mod elbencho;
mod error;
mod filebench;
mod fio;
mod fs_mark;
mod io500;
mod ior;
mod iozone;
mod mdtest;
mod pgbench;
mod phoronix;
mod sysbench;
mod text;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::{
    Environment, Metric, Nanos, Sample, Value, Warning,
    phase::Role,
    record::{Outcome, PhaseHistogram, PhaseInfo},
};

use crate::units::distinct;

pub(crate) use assemble::UNNAMED;
pub use assemble::{Importing, assemble};
pub use error::ImportError;
pub use fio::{FioTotals, fio_totals};

/// Format of results of another program.
#[derive(Debug)]
pub struct Importer {
    /// Name of the format.
    pub name: &'static str,
    /// Program that writes the format. One run has results of one program.
    pub program: &'static str,
    /// Format with its versions, for help and error messages.
    pub title: &'static str,
    /// Content by which the format is recognized, as Markdown.
    pub recognized_by: &'static str,
    /// Parts of the file that identify a cell, as Markdown.
    pub cell: &'static str,
    /// Metrics and the fields that they are read from, as Markdown.
    pub metrics: &'static str,
    /// Parts of the file that are not imported, as Markdown.
    pub omitted: &'static str,
    /// Suite of the cells.
    pub suite: &'static str,
    /// Definitions of the numbers, for the method of a report.
    pub method: &'static str,
    /// Maximum file size in bytes.
    pub longest: u64,
    /// True if a file is of one configuration, so that it has one name. Otherwise, each record has
    /// a name.
    pub is_one_configuration: bool,
    recognize: fn(&str) -> bool,
    read: fn(&[u8]) -> Result<Vec<Measurement>, ImportError>,
}

/// All formats, in the order in which they are tried. The last one is also used for files that no
/// importer recognizes, because CSV of bonnie++ may have any first field.
pub const IMPORTERS: [Importer; 16] = [
    fio::JSON,
    fio::TERSE,
    phoronix::XML,
    iozone::TEXT,
    dbench::TEXT,
    mdtest::TEXT,
    ior::TEXT,
    ior::JSON,
    io500::TEXT,
    fs_mark::TEXT,
    filebench::TEXT,
    sysbench::TEXT,
    elbencho::CSV,
    pgbench::TEXT,
    pgbench::LOG,
    bonnie::CSV,
];

/// Number of bytes at the start of a file that [`recognize`] needs.
pub const HEAD: u64 = 64 << 10;

/// Importer of a file that starts with these bytes.
pub fn recognize(head: &[u8]) -> &'static Importer {
    static TABLE: [Importer; IMPORTERS.len()] = IMPORTERS;
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches('\u{feff}');
    let found = TABLE.iter().find(|importer| (importer.recognize)(text));
    found.unwrap_or(&TABLE[IMPORTERS.len() - 1])
}

/// Programs of all formats, each once, for error messages.
pub fn programs() -> Vec<&'static str> {
    distinct(IMPORTERS.iter().map(|importer| importer.program))
}

/// Titles of all formats, for help.
pub fn titles() -> String {
    let titles: Vec<&str> = IMPORTERS.iter().map(|importer| importer.title).collect();
    titles.join("; ")
}

/// Definition of the numbers of an imported suite.
pub(crate) fn method(suite: &str) -> Option<&'static str> {
    let mut known = IMPORTERS.into_iter();
    known.find(|importer| importer.suite == suite).map(|importer| importer.method)
}

impl Importer {
    /// Reads all measurements of a file.
    ///
    /// # Errors
    /// [`ImportError`] with the place in the file.
    pub fn read(&self, bytes: &[u8]) -> Result<Vec<Measurement>, ImportError> {
        (self.read)(bytes)
    }
}

/// One repetition of a cell, as a file states it.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// Name of the configuration; `None` if the file has none.
    pub name: Option<String>,
    /// Program that measured, with its version, such as `fio-3.33`.
    pub program: String,
    /// Suite of the cell.
    suite: &'static str,
    /// Workload parameters as far as recorded.
    parameters: BTreeMap<String, Value>,
    /// Short name of the workload, without the suite.
    label: String,
    /// Phases with results, with their positions in the cell.
    phases: Vec<(usize, PhaseInfo)>,
    /// Outcome.
    outcome: Outcome,
    /// Samples in base units.
    samples: Vec<Sample>,
    /// Histograms.
    histograms: Vec<PhaseHistogram>,
    /// Warnings with their phases.
    warnings: Vec<(Option<String>, Warning)>,
    /// Facts in the file.
    facts: Environment,
    /// Start of the measurement, in nanoseconds since 1970-01-01 UTC.
    started_unix: Option<Nanos>,
    /// Duration of the measurement.
    elapsed: Nanos,
}

impl Measurement {
    /// Measurement without results.
    fn new(
        suite: &'static str,
        program: String,
        label: String,
        parameters: BTreeMap<String, Value>,
    ) -> Self {
        Self {
            name: None,
            program,
            suite,
            parameters,
            label,
            phases: Vec::new(),
            outcome: Outcome::Measured,
            samples: Vec::new(),
            histograms: Vec::new(),
            warnings: Vec::new(),
            facts: Environment::default(),
            started_unix: None,
            elapsed: Nanos(0),
        }
    }

    /// Adds a fact, such as the name of the file.
    pub fn fact(&mut self, name: &str, value: &str) {
        self.facts.set(name, value);
    }

    /// Adds a sample for all workers together. Values that are not finite are omitted.
    fn sample(&mut self, phase: &str, metric: Metric, value: f64) {
        if value.is_finite() {
            self.samples.push(Sample { phase: phase.into(), metric, worker: None, value });
        }
    }

    /// Adds the samples of a phase that have a value.
    fn samples<const N: usize>(&mut self, phase: &str, all: [(Metric, Option<f64>); N]) {
        for (metric, value) in all {
            value.into_iter().for_each(|value| self.sample(phase, metric, value));
        }
    }

    /// Adds a warning instead of a number that the file does not contain.
    fn not_available(&mut self, phase: Option<&str>, what: &str, why: &str) {
        let warning = Warning::NotAvailable { what: what.into(), why: why.into() };
        self.warnings.push((phase.map(str::to_owned), warning));
    }
}

/// Measured phase of an imported cell. Its cache state is unknown.
fn phase(name: &str, group: &str, primary: Metric) -> PhaseInfo {
    PhaseInfo { name: name.into(), group: group.into(), role: Role::Measure, primary, cache: None }
}

/// Label of the recorded parameters among these: `file_size=4GiB workers=2`.
fn label(parameters: &BTreeMap<String, Value>, names: &[&str]) -> String {
    let known = names.iter().filter_map(|name| Some(format!("{name}={}", parameters.get(*name)?)));
    known.collect::<Vec<_>>().join(" ")
}
