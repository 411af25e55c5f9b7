//! Show: a run becomes text that a person or a program reads.
//!
//! A [`model::RunRecord`] enters; [`View::new`] summarizes, compares and ranks it once, and chooses
//! units and digits; [`terminal()`], [`html()`], [`markdown`] and [`json`] only lay the view out,
//! and [`csv`] gives the samples themselves, as do `parquet` and a sheet of [`xlsx()`]. The same
//! record gives the same bytes. Results that others have published are data of this crate
//! ([`PUBLISHED`]) and are shown apart. Records of bonnie++ are read and written by [`bonnie`];
//! printed tables and statements about them are read and held against each other by [`audit`].
//!
//! What is not here: no clock, no file, no environment (the caller writes what is returned), no
//! statistics (crate `analysis`), and no number without unit, direction, n and interval. Cells that
//! were skipped or failed keep their place in every table, with the reason.
#![forbid(unsafe_code)]

pub mod audit;
mod bench;
pub mod bonnie;
mod charts;
pub mod comparison;
mod explain;
pub mod export;
mod figures;
#[cfg(test)]
mod fixture;
mod formats;
#[doc(hidden)]
pub mod fuzz;
mod html;
mod plain;
mod published;
mod svg;
mod terminal;
#[cfg(test)]
mod tests;
mod units;
mod view;

pub use bench::{Subject, bench};
pub use explain::{Explanation, UnknownWord, explain};
pub use figures::Kind as ChartKind;
#[cfg(feature = "parquet")]
pub use formats::parquet::{ParquetError, parquet};
pub use formats::{
    csv::csv,
    iozone::{NotIozone, iozone},
    json::json,
    markdown::markdown,
    prometheus::prometheus,
    xlsx::{XlsxError, xlsx},
};
pub use html::html;
pub use plain::plain;
pub use published::{PUBLISHED, Published, SUFFIX as PUBLISHED_SUFFIX, published};
pub use terminal::{TerminalOptions, answer, ascii, harmless, terminal};
pub use units::{bandwidth, bytes, duration, is_command, quantity, stamp};
pub use view::{View, views};
