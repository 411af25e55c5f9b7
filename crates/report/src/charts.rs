//! Charts: data in display units enters, one SVG element as text leaves.

pub(crate) mod axis;
pub(crate) mod interaction;
pub(crate) mod intervals;
pub(crate) mod scaling;
pub(crate) mod sweep;
