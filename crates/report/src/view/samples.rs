//! The samples themselves, for outputs that carry them along where they are few.

use model::RunRecord;

use crate::csv;

/// Rows that a report carries at most: some 100 bytes each as CSV, so that they stay below a
/// megabyte.
const ROWS: usize = 8_000;

/// Every sample of the run.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    /// How many there are.
    pub(crate) rows: usize,
    /// All of them as [`csv()`] writes them; `None` where they are many.
    pub(crate) csv: Option<String>,
}

impl Samples {
    /// Those of a run.
    pub(crate) fn new(record: &RunRecord) -> Self {
        let rows = record.trials.iter().map(|trial| trial.samples.len()).sum();
        Self { rows, csv: (rows <= ROWS).then(|| csv(record)) }
    }
}
