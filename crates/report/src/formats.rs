//! Formats for programs and for other documents: one file each.

pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod markdown;
