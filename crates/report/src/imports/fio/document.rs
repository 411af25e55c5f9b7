//! JSON documents of fio.

use std::{collections::BTreeMap, fmt};

use model::Histogram;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny, MapAccess, Visitor},
};

use super::job;
use crate::imports::{ImportError, Measurement};

/// Document: the results of one run of fio.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    #[serde(rename = "fio version")]
    pub(super) version: String,
    /// Time of the output in seconds since 1970.
    #[serde(default, deserialize_with = "optional")]
    pub(super) timestamp: Option<f64>,
    #[serde(rename = "global options", default)]
    pub(super) global: Options,
    pub(super) jobs: Option<Vec<Entry>>,
    client_stats: Option<Vec<Entry>>,
    #[serde(default)]
    pub(super) disk_util: Vec<Disk>,
}

/// Options by name, as written in the job file.
pub(super) type Options = BTreeMap<String, serde_json::Value>;

/// Results of a job, or of one of its workers.
#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    #[serde(default)]
    pub(super) jobname: String,
    #[serde(default, deserialize_with = "number")]
    pub(super) groupid: f64,
    /// Error number, 0 for success.
    #[serde(default)]
    pub(super) error: f64,
    /// Seconds since the start of fio.
    #[serde(default, deserialize_with = "number")]
    pub(super) elapsed: f64,
    /// Start in milliseconds since 1970; since 3.36.
    #[serde(default, deserialize_with = "optional")]
    pub(super) job_start: Option<f64>,
    /// Run time in milliseconds.
    #[serde(default, deserialize_with = "optional")]
    pub(super) job_runtime: Option<f64>,
    #[serde(rename = "job options", default)]
    pub(super) options: Options,
    pub(super) read: Option<Side>,
    pub(super) write: Option<Side>,
    pub(super) trim: Option<Side>,
    pub(super) mixed: Option<Side>,
    pub(super) sync: Option<SyncSide>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) usr_cpu: Option<f64>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) sys_cpu: Option<f64>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) ctx: Option<f64>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) majf: Option<f64>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) minf: Option<f64>,
}

/// Results of one direction.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Side {
    /// Bytes; KiB up to 2.20.
    #[serde(default, deserialize_with = "number")]
    pub(super) io_bytes: f64,
    /// KiB per second.
    #[serde(default, deserialize_with = "number")]
    pub(super) bw: f64,
    /// Bytes per second; since 3.4.
    #[serde(default, deserialize_with = "optional")]
    pub(super) bw_bytes: Option<f64>,
    #[serde(default, deserialize_with = "number")]
    pub(super) iops: f64,
    /// Milliseconds.
    #[serde(default, deserialize_with = "number")]
    pub(super) runtime: f64,
    #[serde(default, deserialize_with = "number")]
    pub(super) total_ios: f64,
    pub(super) slat_ns: Option<Times>,
    pub(super) clat_ns: Option<Times>,
    pub(super) lat_ns: Option<Times>,
    /// Microseconds, up to 2.21.
    pub(super) slat: Option<Times>,
    pub(super) clat: Option<Times>,
    pub(super) lat: Option<Times>,
}

/// Results of the sync calls; since 3.4.
#[derive(Debug, Deserialize)]
pub(super) struct SyncSide {
    #[serde(default, deserialize_with = "number")]
    pub(super) total_ios: f64,
    pub(super) lat_ns: Option<Times>,
}

/// Distribution of a latency.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Times {
    #[serde(default, deserialize_with = "optional")]
    pub(super) min: Option<f64>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) max: Option<f64>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) mean: Option<f64>,
    /// Number of values; since 3.x.
    #[serde(rename = "N", default, deserialize_with = "optional")]
    pub(super) count: Option<f64>,
    /// Values by percentage, such as `99.000000`.
    #[serde(default)]
    pub(super) percentile: BTreeMap<String, Number>,
    /// Histogram; JSON+ only.
    #[serde(default)]
    pub(super) bins: Bins,
}

/// Device in `disk_util`.
#[derive(Debug, Deserialize)]
pub(super) struct Disk {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default, deserialize_with = "optional")]
    pub(super) read_ios: Option<f64>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) write_ios: Option<f64>,
    /// Sectors of 512 bytes; since 3.36.
    #[serde(default, deserialize_with = "optional")]
    pub(super) read_sectors: Option<f64>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) write_sectors: Option<f64>,
    /// Percent.
    #[serde(default, deserialize_with = "optional")]
    pub(super) util: Option<f64>,
}

/// Number in the range of [`number`].
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Number(#[serde(deserialize_with = "number")] pub(super) f64);

/// Largest number in a document: 30 years in nanoseconds, or an exabyte.
const LARGEST: f64 = 1e18;

/// Number from 0 to [`LARGEST`].
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    match (0.0..=LARGEST).contains(&number) {
        true => Ok(number),
        false => Err(D::Error::custom(format!("expected a number from 0 to 1e18, found {number}"))),
    }
}

/// Like [`number`], or `null`.
fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(Option::<Number>::deserialize(deserializer)?.map(|number| number.0))
}

/// Counts by index of a counter of [`Histogram`], in any order. Bins of fio are converted while
/// they are read, to limit memory.
#[derive(Debug, Default)]
pub(super) struct Bins(pub(super) Vec<(u32, u64)>);

impl<'de> Deserialize<'de> for Bins {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BinsVisitor)
    }
}

struct BinsVisitor;

impl<'de> Visitor<'de> for BinsVisitor {
    type Value = Bins;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with counts by nanoseconds")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Bins, A::Error> {
        let mut bins: Vec<(u32, u64)> = Vec::new();
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            // Up to 2.x, the object also has the parameters of the histogram.
            let Ok(value) = key.parse::<u64>() else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let count = map.next_value::<u64>()?;
            let Ok(index) = u32::try_from(Histogram::counter(value)) else { continue };
            match bins.last_mut() {
                _ if count == 0 => {}
                Some(last) if last.0 == index => last.1 = last.1.saturating_add(count),
                _ => bins.push((index, count)),
            }
        }
        bins.shrink_to_fit();
        Ok(Bins(bins))
    }
}

/// Reads the measurements of a file.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Measurement>, ImportError> {
    let (document, number) = last(bytes)?;
    let Document { version, timestamp, global, jobs, client_stats, disk_util } = document;
    let (name, mut entries) = match (jobs, client_stats) {
        (Some(jobs), _) => ("jobs", jobs),
        (None, Some(clients)) => ("client_stats", clients),
        (None, None) => {
            return Err(ImportError::Nothing {
                place: "the document".into(),
                what: "it has neither `jobs` nor `client_stats`; export it again with \
                       --output-format=json",
            });
        }
    };
    if name == "client_stats" && entries.len() > 1 {
        // Sum of the other entries, which are merged below.
        entries.retain(|entry| entry.jobname != "All clients");
    }
    if entries.is_empty() {
        return Err(ImportError::Nothing { place: format!("`{name}`"), what: "it has no job" });
    }
    job::measurements(&job::Source {
        version: &version,
        timestamp,
        global: &global,
        list: name,
        entries: &entries,
        disks: &disk_util,
        documents: number,
    })
}

/// Last document of a file, and the number of documents. Several documents are states of one run
/// (`--status-interval`).
pub(super) fn last(bytes: &[u8]) -> Result<(Document, usize), ImportError> {
    let mut found: Option<Document> = None;
    let (mut at, mut number) = (0, 0);
    // Position up to which lines were counted, and their number.
    let (mut counted, mut before) = (0, 0);
    while let Some(start) = start(bytes, at) {
        before += bytes[counted..start].iter().filter(|byte| **byte == b'\n').count();
        counted = start;
        let mut documents =
            serde_json::Deserializer::from_slice(&bytes[start..]).into_iter::<Document>();
        let document = match documents.next() {
            None => break,
            Some(Ok(document)) => document,
            Some(Err(error)) => return Err(syntax(&error, before)),
        };
        at = start + documents.byte_offset();
        number += 1;
        if let Some(earlier) = &found {
            follows(earlier, &document, before + 1)?;
        }
        found = Some(document);
    }
    if number > 0 && bytes[at..].contains(&b'{') {
        return Err(ImportError::Nothing {
            place: format!("document {number} of the file"),
            what: "another document begins in the same line; write each run of fio to a separate \
                   file",
        });
    }
    let nothing = || ImportError::Nothing {
        place: "the file".into(),
        what: "it has no JSON document of fio; export it with --output-format=json",
    };
    found.map(|document| (document, number)).ok_or_else(nothing)
}

/// Start of the next document: a brace at the start of a line, or the first brace of the file.
fn start(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = &bytes[from..];
    let at_line = rest.iter().enumerate().position(|(index, byte)| {
        *byte == b'{' && (from + index == 0 || bytes[from + index - 1] == b'\n')
    });
    let any = || (from == 0).then(|| rest.iter().position(|byte| *byte == b'{')).flatten();
    at_line.or_else(any).map(|index| from + index)
}

fn syntax(error: &serde_json::Error, before: usize) -> ImportError {
    let line = before + error.line();
    if error.is_eof() {
        return ImportError::Truncated { line };
    }
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    ImportError::Json { line, column: error.column(), what: what.to_owned() }
}

/// Checks that a document is a later state of the run of the document before it.
fn follows(earlier: &Document, later: &Document, line: usize) -> Result<(), ImportError> {
    let entries = |document: &Document| {
        let own = document.jobs.as_ref().or(document.client_stats.as_ref());
        let entries = own.map_or(&[][..], Vec::as_slice).iter();
        let bytes = |side: &Option<Side>| side.as_ref().map_or(0.0, |side| side.io_bytes);
        let state = |entry: &Entry| {
            let moved = bytes(&entry.read) + bytes(&entry.write) + bytes(&entry.mixed);
            (entry.jobname.clone(), moved, entry.elapsed)
        };
        entries.map(state).collect::<Vec<_>>()
    };
    let (before, after) = (entries(earlier), entries(later));
    let elapsed = |all: &[(String, f64, f64)]| all.iter().map(|own| own.2).fold(0.0, f64::max);
    // The same interval by the clock and by the time since the start, within their resolution.
    let same_time = match (earlier.timestamp, later.timestamp) {
        (Some(one), Some(other)) => {
            ((other - one) - (elapsed(&after) - elapsed(&before))).abs() <= 2.0
        }
        _ => true,
    };
    let grows = before.iter().zip(&after).all(|(one, other)| one.0 == other.0 && one.1 <= other.1);
    match same_time && grows && before.len() <= after.len() {
        true => Ok(()),
        false => Err(ImportError::Contradiction {
            place: format!("line {line}"),
            what: "this document is not a later state of the document before it; write each run \
                   of fio to a separate file"
                .into(),
        }),
    }
}
