//! Seconds for sets of files.

use super::{Figure, Kind, absent, qualified};
use crate::{
    charts::capped::CappedChart,
    units::{Scale, fixed},
    view::Capped,
};

/// Bars for each operation and filesystem.
pub(super) fn figure(capped: &Capped) -> Figure {
    let title = format!("Seconds for the set: {}", capped.place);
    let operations = capped.panels.first().map_or(0, |panel| panel.groups.len());
    let chart = CappedChart {
        id: format!("{}-chart", capped.id),
        title: title.clone(),
        description: format!(
            "Seconds of {operations} operations, lower is better; the data are in the tables \
             beside."
        ),
        axis: format!("elapsed, {} — lower is better ↓", Scale::SECONDS.name),
        capped,
    };
    let cut = match capped.cut {
        Some(cut) => format!(
            "Bars are cut at {} s, twice the upper quartile of all medians shown, since the \
             longest is more than 1.5 times that; a cut bar has a broken end, and its length \
             tells nothing.",
            fixed(cut, if cut < 10.0 { 3 } else { 1 })
        ),
        None => "No bar is cut: none is more than three times the upper quartile of all medians \
                 shown."
            .to_owned(),
    };
    let line = match capped.intervals {
        true => "thin line: its 95 % interval, without a mark at an end that lies beyond the plot",
        false => "too few repeats for intervals at all bars",
    };
    Figure {
        id: capped.id.clone(),
        kind: Kind::Capped,
        title,
        svg: chart.render(),
        caption: format!(
            "Bar: median over n = {} repeats, from zero; {line}; the number behind it is the \
             median. {cut}{}{}",
            capped.repeats,
            qualified(&capped.codes),
            absent(&capped.absent)
        ),
    }
}
