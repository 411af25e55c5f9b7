//! Data formats and text layouts of other programs, one file each.

pub(crate) mod dbench;
pub(crate) mod fio;
pub(crate) mod iozone;
pub(crate) mod json;
pub(crate) mod mdtest;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
pub(crate) mod prometheus;
pub(crate) mod xlsx;
