//! Formats for programs and for other documents: one file each.

pub(crate) mod iozone;
pub(crate) mod json;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
pub(crate) mod prometheus;
pub(crate) mod xlsx;
