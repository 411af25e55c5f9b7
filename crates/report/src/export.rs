//! Export of charts as files.
//!
//! [`charts`] and [`published`] return the figures of a [`View`] or of published results one after
//! the other, each as an SVG that needs no style sheet (white background, colors inlined, finding
//! or title on top; caption, conditions, and source below); [`Chart::png`] renders it with embedded
//! fonts. The same view gives the same bytes. No file is written here, and untrusted names never
//! become file names: [`Chart::name`] is safe on every filesystem.

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

/// Pixels for each unit of a chart at which PNG files are sharp on screens and in print: an
/// ordinary chart becomes some 1600 pixels wide.
pub const PIXELS_PER_UNIT: f32 = 2.0;

/// Exported figure of a report.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Stem of its file names: lower-case letters, digits, and `-`; unique within the report, and
    /// the same for the same run.
    pub name: String,
    /// Chart kind.
    pub kind: Kind,
    /// Title on one line.
    pub title: String,
    /// The whole picture.
    pub svg: String,
}

impl Chart {
    /// The picture in pixels, `pixels_per_unit` for each unit of the SVG ([`PIXELS_PER_UNIT`]).
    /// Cost: some tens of milliseconds.
    ///
    /// # Errors
    /// When the picture would be larger than a hundred million pixels, or cannot be drawn.
    pub fn png(&self, pixels_per_unit: f32) -> Result<Vec<u8>, PngError> {
        png::png(&self.svg, pixels_per_unit)
    }
}

/// All charts of published results, created lazily; each is labeled as not measured by fslab.
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

/// All figures of a report in its order, made one after the other.
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
