//! Charts as files: every figure of a report as a picture that stands alone.
//!
//! A [`View`] enters, or a set of published results; [`charts`] and [`published`] give the figures
//! of the report one after the other, each as an SVG that needs no style sheet of a page (white
//! ground, colors written out, finding or title on top, caption, conditions, and origin below), and
//! [`Chart::png`] draws it with embedded fonts. The same view gives the same bytes. Nothing is
//! written here, and no name that comes from outside becomes the name of a file: [`Chart::name`] is
//! safe on every filesystem.

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

/// One figure of a report, fit to stand alone.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Stem of its file names: lower-case letters, digits, and `-`; unique within the report, and
    /// the same for the same run.
    pub name: String,
    /// What kind of chart it is.
    pub kind: Kind,
    /// What is shown, on one line.
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

/// All charts of a set of published results, made one after the other; each says that it was not
/// measured by fslab.
pub fn published(set: &'static Published) -> impl Iterator<Item = Chart> {
    let sheet = Sheet::new(include_str!("../templates/style.css"));
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
    let sheet = Sheet::new(include_str!("../templates/style.css"));
    let mut names = Names::default();
    figures::all(view).map(move |figure| Chart {
        name: names.take(&figure.id, figure.kind),
        kind: figure.kind,
        title: one_line(&figure.title),
        svg: page::framed(&figure, view, &sheet),
    })
}
