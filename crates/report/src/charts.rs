//! Charts: each draws data in display units as an [`Svg`](crate::svg::Svg).

pub(crate) mod axis;
pub(crate) mod capped;
pub(crate) mod changes;
pub(crate) mod data;
pub(crate) mod ecdf;
pub(crate) mod editions;
pub(crate) mod heatmap;
pub(crate) mod intervals;
pub(crate) mod lines;
pub(crate) mod normalized;
pub(crate) mod origins;
mod plot;
pub(crate) mod texture;
pub(crate) mod totals;
