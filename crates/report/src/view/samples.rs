//! All samples as CSV, embedded in reports of small runs.

use model::RunRecord;

use crate::csv;

/// Maximum number of embedded rows. A row has about 100 bytes, so the rows stay below one megabyte.
const ROWS: usize = 8_000;

/// Samples of a run.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    /// Number of samples.
    pub(crate) rows: usize,
    /// All samples as written by [`csv()`]; `None` if there are more than [`ROWS`].
    pub(crate) csv: Option<String>,
}

impl Samples {
    pub(crate) fn new(record: &RunRecord) -> Self {
        let rows = record.trials.iter().map(|trial| trial.samples.len()).sum();
        Self { rows, csv: (rows <= ROWS).then(|| csv(record)) }
    }
}
