//! Charts over several workload points: parameter sweeps, scaling, and system settings.

use model::metric::Better;

use super::{Figure, Kind, absent, description, qualified};
use crate::{
    charts::{
        changes::{ChangeRow, changes},
        lines,
    },
    units::{capital, slug},
    view::{Across, BySize, EffectRow, Interaction, Scaled, Sweep, View, metric_label},
};

/// All filesystems over the levels of a parameter.
pub(super) fn sweep(sweep: &Sweep) -> Figure {
    let (metric, better) = (metric_label(sweep.metric), sweep.metric.spec().better.label());
    let title = format!("{} by {}", capital(&sweep.test), sweep.parameter);
    let description = format!(
        "{} of {} filesystems at {} tested levels. The data are in the tables by filesystem.",
        capital(&metric),
        sweep.series.len(),
        sweep.levels.len()
    );
    let y_axis = format!("{metric}, {} — {better}", sweep.scale.name);
    let x_axis = format!("{} (tested levels, logarithmic)", sweep.parameter);
    let chart = lines::sweep(&y_axis, &x_axis, &sweep.levels, &sweep.series);
    let withheld = sweep.withheld.iter().map(|reason| format!(" {}.", capital(reason)));
    let caption = format!(
        "Median of n = {} repetitions with 95 % confidence band; lines connect tested levels \
         only.{}{}{}",
        sweep.repetitions,
        qualified(&sweep.codes),
        absent(&sweep.absent),
        withheld.collect::<String>()
    );
    Figure::new(Kind::ParameterSweep, &sweep.id, chart, (title, &description), caption)
}

/// All filesystems over the size of the filesystem.
pub(super) fn by_size(own: &BySize) -> Figure {
    let quantity = own.quantity;
    let title = format!("Size of the filesystem: {quantity}");
    let description = description(
        &own.findings.findings,
        "No finding is supported by the data. The values are in the tables.",
    );
    let x_axis = "size (measured sizes, logarithmic)";
    let (chart, axis) = match own.is_time {
        true => {
            let y_axis = format!("{quantity} (logarithmic) — lower is better ↓");
            (lines::times(&y_axis, x_axis, &own.levels, &own.series), "Both axes are logarithmic")
        }
        false => {
            let y_axis = format!("{quantity}, % — higher is better ↑");
            let chart = lines::sweep(&y_axis, x_axis, &own.levels, &own.series);
            (chart, "The horizontal axis is logarithmic")
        }
    };
    let caption = format!(
        "Median of n = {} repetitions of all workloads with 95 % confidence band; lines connect \
         measured sizes only. {axis}.",
        own.repetitions
    );
    Figure::new(Kind::ParameterSweep, &own.id, chart, (title, &description), caption)
}

/// Scaling with the number of clients: values, and ratios to the first level.
pub(super) fn scaling(scaled: &Scaled) -> Figure {
    let (metric, better) = (metric_label(scaled.metric), scaled.metric.spec().better.label());
    let first = scaled.levels.first().map_or("", |level| level.label.as_str());
    let clients = scaled.clients.0;
    let y_axis = format!("{metric}, {} — {better}", scaled.scale.name);
    let ratio_axis =
        format!("{metric}, ratio to {clients}={first} of the same filesystem — {better}");
    let x_axis = format!("{clients} (tested levels, logarithmic)");
    let chart = lines::scaling((&y_axis, &ratio_axis, &x_axis), &scaled.levels, &scaled.lines);
    let caption = format!(
        "Top: median of n = {} repetitions and 95 % confidence band; ring: smallest number of \
         {clients} with 95 % of the maximum; thin line: fitted scaling law, if no median deviates \
         by more than 10 %. Bottom: relative to {clients}={first}, 95 % confidence interval by \
         resampling rounds; dashed: linear scaling. Thick lines connect tested levels only.{}{}",
        scaled.repetitions,
        qualified(&scaled.codes),
        absent(&scaled.absent)
    );
    let description =
        description(&scaled.findings.findings, "No finding is supported by the data.");
    let title = scaled.title.clone();
    Figure::new(Kind::Scaling, &scaled.id, chart, (title, &description), caption)
}

/// Effects of options; `None` if none are varied.
pub(super) fn effects(own: &Interaction, view: &View) -> Option<Figure> {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let row = |effect: &EffectRow| ChangeRow {
        name: effect.name.clone(),
        change: percent(effect.ratio.0),
        interval: Some((percent(effect.interval.low), percent(effect.interval.high))),
        shown: effect.text().split(" [").next().unwrap_or_default().to_owned(),
        class: match (effect.is_significant(), own.metric.spec().better) {
            (false, _) | (true, Better::Neither) => "even",
            (true, better) if (effect.ratio.0 > 1.0) == (better == Better::Higher) => "better",
            (true, _) => "worse",
        },
    };
    let rows: Vec<ChangeRow> = own.effects.iter().map(row).collect();
    let metric = metric_label(own.metric);
    let (better, margin) = (own.metric.spec().better.label(), view.facts.margin);
    let axis = format!("change of {metric}, % — {better}");
    let description = description(
        &own.findings.findings,
        "No finding is supported by the data. The values are in the tables.",
    );
    let caption = format!(
        "Change between two values of a factor, averaged over the others, with 95 % confidence \
         interval; shaded: within ±{}; colored: significant after Holm's adjustment; \
         significant interactions follow the factors.{}{}",
        margin.label(),
        qualified(&own.codes),
        absent(&own.absent)
    );
    let title = format!("{}: effects", own.title);
    let id = format!("{}-effects", own.id);
    (!rows.is_empty()).then(|| {
        let chart = changes(&axis, margin.ratio().0 * 100.0, &rows);
        Figure::new(Kind::Settings, id, chart, (title, &description), caption)
    })
}

/// All filesystems over the levels of one system setting.
pub(super) fn settings(interaction: &Interaction, across: &Across, view: &View) -> Figure {
    let better = interaction.metric.spec().better.label();
    let condition = &across.condition;
    let first = across.levels.first().map_or("", String::as_str);
    let margin = view.facts.margin;
    let title = format!("{}: by {condition}", interaction.title);
    let description = description(
        &interaction.findings.findings,
        "No finding is supported by the data. The values are in the tables.",
    );
    let y_axis =
        format!("{}, {} — {better}", metric_label(interaction.metric), interaction.scale.name);
    let ratio_axis =
        format!("ratio to {condition}={first} of the same filesystem — higher is better ↑");
    let axes = (y_axis.as_str(), ratio_axis.as_str(), condition.as_str());
    let chart = lines::settings(axes, &across.levels, &across.panels, margin.ratio().0);
    let caption = format!(
        "Top: median of n = {} repetitions with 95 % confidence interval. Bottom: ratio to \
         {condition}={first} with 95 % confidence interval (not adjusted); shaded: within ±{}; \
         lines that are not parallel indicate an interaction.{}{}",
        interaction.repetitions,
        margin.label(),
        qualified(&interaction.codes),
        absent(&interaction.absent)
    );
    let id = format!("{}-{}", interaction.id, slug(condition));
    Figure::new(Kind::Settings, id, chart, (title, &description), caption)
}
