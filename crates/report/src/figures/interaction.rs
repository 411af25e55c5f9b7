//! One test under a condition that varies.

use super::{Figure, Kind, absent, description, qualified};
use crate::{
    charts::interaction::InteractionChart,
    view::{Across, Interaction, View, slug, words},
};

/// All filesystems over the levels of one condition.
pub(super) fn figure(interaction: &Interaction, across: &Across, view: &View) -> Figure {
    let better = interaction.metric.spec().better.words();
    let quantity = words(interaction.metric);
    let condition = &across.condition;
    let first = across.levels.first().map_or("", String::as_str);
    let threshold = view.facts.threshold;
    let title = format!("{}: over {condition}", interaction.title);
    let chart = InteractionChart {
        id: format!("{}-{}-chart", interaction.id, slug(condition)),
        description: description(
            &interaction.claims.claims,
            "No sentence is supported by the data; the values are in the tables below.",
        ),
        title: title.clone(),
        y_axis: format!("{quantity}, {} — {better}", interaction.scale.name),
        ratio_axis: format!("× {condition}={first} of the same filesystem — higher is better ↑"),
        x_axis: condition.clone(),
        levels: &across.levels,
        panels: &across.panels,
        threshold: threshold.ratio().0,
    };
    Figure {
        id: format!("{}-{}", interaction.id, slug(condition)),
        kind: Kind::Conditions,
        title,
        svg: chart.render(),
        caption: format!(
            "Above: median over n = {} repeats; line: its 95 % interval. Below: ratio to \
             {condition}={first} of the same filesystem and panel (Hodges–Lehmann) with the 95 % \
             interval of the inverted test; shaded: differences below {}. Lines that are \
             not parallel depend on the condition.{}{}",
            interaction.repeats,
            threshold.words(),
            qualified(&interaction.codes),
            absent(&interaction.absent)
        ),
    }
}
