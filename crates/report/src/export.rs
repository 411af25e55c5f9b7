//! Export of charts as SVG and PNG.
//!
//! [`charts`] and [`published`] yield the figures of a [`View`] or of published results. Each SVG
//! is complete without a style sheet: white background, inlined colors, finding or title above the
//! chart, caption, conditions, and source below it. [`Chart::png`] renders it with embedded fonts.
//! The same view gives the same bytes. The module writes no files. [`Chart::name`] is a valid file
//! name on every filesystem, even if it comes from an untrusted name.

mod absolute;
mod measure;
mod names;
mod page;
mod png;
mod style;
#[cfg(test)]
mod tests;

pub use png::PngError;

use crate::{
    figures::{self, Kind},
    published::Published,
    units::one_line,
    view::View,
};
use names::Names;
use style::Sheet;

/// Recommended resolution of PNG files, in pixels per unit of the SVG. Most charts are then about
/// 1600 pixels wide.
pub const PIXELS_PER_UNIT: f32 = 2.0;

/// Exported figure of a report.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Stem of the file names: lower-case letters, digits, and `-`. It is unique within the report
    /// and the same for the same run.
    pub name: String,
    /// Chart kind.
    pub kind: Kind,
    /// Title on one line.
    pub title: String,
    /// Complete SVG document.
    pub svg: String,
}

impl Chart {
    /// Renders the chart as PNG with `pixels_per_unit` pixels per unit of the SVG
    /// ([`PIXELS_PER_UNIT`]). This takes tens of milliseconds.
    ///
    /// # Errors
    /// [`PngError`] if the picture would be empty or have more than 100 million pixels, or if the
    /// SVG cannot be rendered or encoded.
    pub fn png(&self, pixels_per_unit: f32) -> Result<Vec<u8>, PngError> {
        png::png(&self.svg, pixels_per_unit)
    }
}

/// Charts of published results, labeled as not measured by fslab.
pub fn published(set: &'static Published) -> impl Iterator<Item = Chart> {
    let sheet = Sheet::new(&[]);
    let mut names = Names::default();
    set.charts().into_iter().map(move |drawn| Chart {
        name: names.take(&drawn.id, drawn.kind),
        kind: drawn.kind,
        title: one_line(&drawn.title),
        svg: page::framed_published(&drawn, set, &sheet),
    })
}

/// Figures of a report in its order, rendered when the iterator reaches them.
pub fn charts(view: &View) -> impl Iterator<Item = Chart> {
    let systems: Vec<String> = view.filesystems.iter().map(|own| own.name.clone()).collect();
    let sheet = Sheet::new(&systems);
    let mut names = Names::default();
    figures::all(view).map(move |figure| Chart {
        name: names.take(&figure.id, figure.kind),
        kind: figure.kind,
        title: one_line(&figure.title),
        svg: page::framed(&figure, view, &sheet),
    })
}
