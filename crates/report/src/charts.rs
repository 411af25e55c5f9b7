//! Charts: each draws data in display units as an [`Svg`](crate::svg::Svg).

pub(crate) mod axis;
pub(crate) mod capped;
pub(crate) mod changes;
pub(crate) mod data;
pub(crate) mod decades;
pub(crate) mod ecdf;
pub(crate) mod editions;
pub(crate) mod heatmap;
pub(crate) mod interaction;
pub(crate) mod intervals;
pub(crate) mod normalized;
pub(crate) mod origins;
pub(crate) mod percentiles;
mod plot;
pub(crate) mod rate;
pub(crate) mod scaling;
pub(crate) mod sweep;
pub(crate) mod texture;
pub(crate) mod totals;
