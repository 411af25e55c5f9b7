//! Results of fio as measurements of suite `fio`.
//!
//! A job of a document is one measurement. Entries with the same name and reporting group are the
//! workers of one job (`numjobs`), and are merged. Each direction is a phase. Sources: fio(1)
//! (output formats, terse version 3), and outputs of fio 3.33.

mod document;
mod job;
mod options;
mod terse;
mod times;
mod totals;

pub use totals::{FioTotals, fio_totals};

use super::Importer;

/// Suite of imported cells.
const SUITE: &str = "fio";

/// Definitions of the numbers, for the method of a report.
const METHOD: &str = "Rates are those of fio: bytes and operations over the run time of a job, which includes a \
     final fsync if the job has one. Latency is measured from the start of the operation to its \
     completion. Percentiles of the completion latency (clat) are those of the latency only if fio \
     measured no submission, as with synchronous I/O engines. Percentiles and histograms of fio \
     have a relative error of at most 0.8 %.";

/// Importer of JSON and JSON+.
pub(super) const JSON: Importer = Importer {
    name: "fio-json",
    program: "fio",
    title: "JSON and JSON+ of fio 2.0 to 3.x",
    recognized_by: "key `\"fio version\"`; text before the document is skipped",
    cell: "name of the job and its options, without paths; jobs that ran at the same time",
    metrics: "`throughput` and `ops_rate` by direction; `lat_ns`: `latency_mean`, `latency_max`, \
              percentiles; `clat_ns`: percentiles of `completion_latency`, or of `latency` for \
              synchronous engines; `slat_ns`: percentiles of `submission_latency`; `sync`: \
              `sync_calls`, `sync_latency`; bins of JSON+: histograms; CPU; with one job and one \
              disk: `device_…`",
    omitted: "standard deviations, `bw_*` and `iops_*` of intervals, `iodepth_*`, `latency_us` and \
              similar, bins before 2.99",
    suite: SUITE,
    method: METHOD,
    longest: 512 << 20,
    is_one_configuration: true,
    recognize: |text| text.contains("\"fio version\""),
    read: document::read,
};

/// Importer of terse version 3.
pub(super) const TERSE: Importer = Importer {
    name: "fio-terse",
    program: "fio",
    title: "terse version 3 of fio (--minimal)",
    recognized_by: "first field `3` and a second field that begins with `fio-`",
    cell: "name of the job; the format has no options",
    metrics: "as JSON; `latency_mean`, `latency_max`, percentiles of `completion_latency`",
    omitted: "standard deviations, depths, latency classes",
    suite: SUITE,
    method: METHOD,
    longest: 64 << 20,
    is_one_configuration: true,
    recognize: |text| text.lines().any(terse::is_record),
    read: terse::read,
};

/// First part of the version of documents that fslab wrote.
const OF_FSLAB: &str = "fslab-";

/// First two numbers of a version such as `fio-3.33-12-gab`; `None` if it has none, or if fslab
/// wrote the document.
fn version(text: &str) -> Option<(u32, u32)> {
    if text.starts_with(OF_FSLAB) {
        return None;
    }
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let mut numbers = text[start..].split(|c: char| !c.is_ascii_digit());
    let first = numbers.next()?.parse().ok()?;
    Some((first, numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0)))
}

/// Name of the program with its version.
fn program(version: &str) -> String {
    match version.strip_prefix(OF_FSLAB) {
        Some(version) => format!("fslab {version}, fio format"),
        None => version.to_owned(),
    }
}
