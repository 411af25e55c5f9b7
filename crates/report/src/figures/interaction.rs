//! Chart of the effect of a system setting.

use super::{Figure, Kind, absent, description, qualified};
use crate::units::slug;
use crate::{
    charts::interaction::InteractionChart,
    view::{Across, Interaction, View, metric_label},
};

/// All filesystems over the levels of one setting.
pub(super) fn figure(interaction: &Interaction, across: &Across, view: &View) -> Figure {
    let better = interaction.metric.spec().better.label();
    let quantity = metric_label(interaction.metric);
    let condition = &across.condition;
    let first = across.levels.first().map_or("", String::as_str);
    let margin = view.facts.margin;
    let title = format!("{}: by {condition}", interaction.title);
    let description = description(
        &interaction.findings.findings,
        "No finding is supported by the data. The values are in the tables.",
    );
    let chart = InteractionChart {
        y_axis: format!("{quantity}, {} — {better}", interaction.scale.name),
        ratio_axis: format!(
            "ratio to {condition}={first} of the same filesystem — higher is better ↑"
        ),
        x_axis: condition.clone(),
        levels: &across.levels,
        panels: &across.panels,
        threshold: margin.ratio().0,
    };
    let svg = chart.render().finish(&title, &description);
    Figure {
        id: format!("{}-{}", interaction.id, slug(condition)),
        kind: Kind::Settings,
        wide: false,
        title,
        svg,
        caption: format!(
            "Top: median of n = {} repetitions with 95 % confidence interval. Bottom: ratio to \
             {condition}={first} with 95 % confidence interval (not adjusted); shaded: within ±{}; \
             lines that are not parallel indicate an interaction.{}{}",
            interaction.repetitions,
            margin.label(),
            qualified(&interaction.codes),
            absent(&interaction.absent)
        ),
    }
}
