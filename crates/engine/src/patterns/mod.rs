//! Orders of records: for each kind of access an iterator over the record numbers of a file.
//!
//! `n` is the number of whole records; each order has exactly `n` visits. Everything that takes
//! time or memory (the permutation of the shuffled order) is made by [`permutation`] before the
//! clock starts; an iterator itself adds, compares, or loads. An order does not know sizes or
//! offsets.

mod linear;
mod shuffled;
mod stride;

pub(crate) use linear::Linear;
pub(crate) use shuffled::permutation;
pub(crate) use stride::Stride;

#[cfg(test)]
mod tests;
