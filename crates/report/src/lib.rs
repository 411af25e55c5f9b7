//! Reports of runs: text, HTML, charts, and data formats.
//!
//! [`View::new`] summarizes, compares, and ranks a [`model::RunRecord`] once, and selects units and
//! digits. [`terminal()`], [`html()`], [`markdown`], and [`json`] only format the view. [`csv`],
//! `parquet`, and a sheet of [`xlsx()`] contain the samples. The same record gives the same bytes.
//! Published results ([`PUBLISHED`]) are built in and shown separately. [`bonnie`] reads and writes
//! bonnie++ records. [`imports`] converts results of other programs to runs. [`audit`] checks
//! printed tables and statements about them.
//!
//! The crate reads no clock, file, or environment; the caller writes the output. Statistics are in
//! crate `analysis`. Numbers have a unit, a direction, n, and an interval if there are enough
//! repetitions. Cells that were skipped or failed are listed in every table with the reason.
#![forbid(unsafe_code)]

pub mod audit;
mod bench;
pub mod bonnie;
mod charts;
pub mod comparison;
mod crosscheck;
mod document;
mod explain;
pub mod export;
mod figures;
#[cfg(test)]
mod fixture;
mod formats;
#[doc(hidden)]
pub mod fuzz;
mod html;
pub mod imports;
mod iozone_layout;
mod mdtest_layout;
mod plain;
mod program_layout;
mod published;
mod run;
mod samples;
mod svg;
mod terminal;
#[cfg(test)]
mod tests;
mod units;
mod view;

pub use bench::{Subject, bench};
pub use crosscheck::{Programs, crosscheck, crosscheck_json};
pub use document::{
    Kind as ChartKind,
    terminal::{TerminalOptions, ascii, harmless, wrap},
};
pub use explain::{Explanation, UnknownWord, explain};
#[cfg(feature = "parquet")]
pub use formats::parquet::{ParquetError, parquet};
pub use formats::{
    dbench::{DbenchForm, dbench},
    fio::{FioFormat, fio},
    iozone::{IozoneCommand, IozoneUnit, iozone, iozone_output, iozone_workbook},
    json::json,
    mdtest::{MdtestCommand, MdtestTables, mdtest, mdtest_files},
    prometheus::prometheus,
    xlsx::{XlsxError, xlsx},
};
pub use html::{Part, html};
pub use plain::plain;
pub use program_layout::NotInLayout;
pub use published::audit::{AUDITED, Audited, published as audited};
pub use published::{PUBLISHED, Published, SUFFIX as PUBLISHED_SUFFIX, published};
pub use run::markdown;
pub use samples::csv::csv;
pub use terminal::{RunningTest, answer, running, terminal};
pub use units::{bandwidth, bytes, duration, is_command, quantity, stamp};
pub use view::{View, views};
