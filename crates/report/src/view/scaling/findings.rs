//! Findings C9 and C10: scaling limit of a filesystem.

use crate::view::FindingKind;
use analysis::{
    Comparison, Interval, NotEstimable,
    scaling::{Scaling, ScalingShape},
};
use model::metric::Unit;

use super::{Analyzed, tables::Input};
use crate::{
    units::{capital, percents, ratio},
    view::{
        findings::{Answer, PointFindings},
        sweeps::{Cut, TOO_FEW},
    },
};

/// One answer per filesystem whose levels are all ranked; none for a filesystem with too few
/// repetitions.
pub(super) fn findings(view: &Input) -> PointFindings {
    let mut answers = Vec::new();
    for line in view.lines.iter().filter(|line| line.sound) {
        let withheld = |reason: &str, hint: &str| {
            let question = format!("scaling limit of {} on {}", line.name, view.what());
            Answer::withheld(FindingKind::C9, &view.id, question, reason, hint)
        };
        if line.cut == Cut::TooFew {
            answers.push(withheld(TOO_FEW.0, TOO_FEW.1));
            continue;
        }
        match &line.scaling.shape {
            Ok(shape) => {
                let (kind, text) = text(view, line, *shape);
                answers.push(Answer::found(kind, &view.id, text));
            }
            Err(NotEstimable::Repetitions { .. }) => {}
            Err(absent) => answers.push(withheld(&absent.to_string(), "")),
        }
    }
    PointFindings::new(view.title, answers)
}

/// Notes for the caption: reasons for missing findings, and filesystems of which only common rounds
/// were evaluated.
pub(super) fn withheld(view: &Input) -> Option<String> {
    let few = view.lines.iter().find_map(|line| match &line.scaling.shape {
        Err(absent @ NotEstimable::Repetitions { .. }) => Some(absent.to_string()),
        Err(_) | Ok(_) => None,
    });
    let unsound = view.lines.iter().filter(|line| !line.sound).map(|line| line.name.as_str());
    let unsound: Vec<&str> = unsound.collect();
    let unsound = (!unsound.is_empty()).then(|| {
        let names = unsound.join(", ");
        format!("no finding for {names}: a level failed or is blocked by warnings")
    });
    let few = few.map(|reason| format!("no findings: {reason}"));
    let cut = view.lines.iter().filter(|line| line.cut == Cut::Shared);
    let cut: Vec<&str> = cut.map(|line| line.name.as_str()).collect();
    let cut =
        (!cut.is_empty()).then(|| format!("{} evaluated{}", cut.join(", "), Cut::Shared.suffix()));
    let all: Vec<String> = few.into_iter().chain(unsound).chain(cut).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Template and text of a finding.
fn text(view: &Input, line: &Analyzed, shape: ScalingShape) -> (FindingKind, String) {
    let scaling = &line.scaling;
    let name = &line.name;
    let (first, last) = (count(view, scaling, 0), count(view, scaling, scaling.points.len() - 1));
    let what = view.what();
    let limit = || {
        let level = count(view, scaling, scaling.saturation);
        let verb = if level.starts_with("1 ") { "reaches" } else { "reach" };
        format!(
            "{name} scales up to {level}{} on {what}: {level} {verb} at least 95 % of the maximum, \
             {}{}.",
            range(scaling),
            best(view, scaling),
            efficiency(scaling),
        )
    };
    match shape {
        ScalingShape::Rises => (
            FindingKind::C10,
            format!(
                "{name} still scales at {last}, the largest level tested, on {what}: {}, {} \
                 relative to {first}{}.",
                best(view, scaling),
                scaling.rise.as_ref().map_or_else(String::new, of),
                efficiency(scaling),
            ),
        ),
        ScalingShape::Saturates => {
            (FindingKind::C9, format!("{} No significant drop up to {last}.", limit()))
        }
        ScalingShape::RisesAndFalls => {
            let drop = drop_of(view, scaling);
            (FindingKind::C9, format!("{} {} at {last}.", limit(), capital(&drop)))
        }
        ScalingShape::Falls => (
            FindingKind::C9,
            format!(
                "{name} does not scale on {what}: {} from {first} to {last}.",
                drop_of(view, scaling)
            ),
        ),
        ScalingShape::Flat => (
            FindingKind::C9,
            format!(
                "{name} does not scale on {what}: {first} and {last} are within {} of the maximum.",
                view.margin.label()
            ),
        ),
    }
}

/// Number of clients of a level: `64 clients`.
fn count(view: &Input, scaling: &Scaling, level: usize) -> String {
    let point = scaling.points.get(level);
    point.map_or_else(String::new, |point| view.clients.count(point.clients))
}

/// Range of the saturation level over the resamples: ` [32 to 64]`; empty if all resamples agree.
pub(super) fn range(scaling: &Scaling) -> String {
    match &scaling.saturation_range {
        Ok((low, high)) if low < high => format!(" [{low} to {high}]"),
        Ok(_) | Err(_) => String::new(),
    }
}

/// Maximum median with its number of clients: `812 MiB/s [805, 820] at 64 clients, n = 8`.
fn best(view: &Input, scaling: &Scaling) -> String {
    let Some(point) = scaling.points.get(scaling.peak) else { return String::new() };
    let shown = view.scale.shown(&point.summary);
    let ends = shown.interval.map_or(String::new(), |(low, high)| format!(" [{low}, {high}]"));
    format!(
        "{} {}{ends} at {}, n = {}",
        shown.value,
        view.scale.name,
        view.clients.count(point.clients),
        point.summary.n
    )
}

/// `; efficiency 21.2 % [18.3 to 23.1 %]` at the saturation level; empty if that is the first level
/// or the efficiency is unknown.
fn efficiency(scaling: &Scaling) -> String {
    let point = scaling.points.get(scaling.saturation).filter(|_| scaling.saturation > 0);
    let found = point.and_then(|point| point.efficiency.as_ref().ok());
    found.map_or_else(String::new, |efficiency| {
        let ends = efficiency.interval.as_ref().ok().copied();
        format!("; efficiency {}", percents(efficiency.value.0, ends))
    })
}

/// `×3.2 [3.1, 3.3]`.
fn of(comparison: &Comparison) -> String {
    ratio(comparison.ratio.0, comparison.interval)
}

/// `performance drops by 12.1 % [9.2 to 15.3 %]`.
fn drop_of(view: &Input, scaling: &Scaling) -> String {
    let what = match view.all.metric.spec().unit == Unit::Instructions {
        true => "efficiency in instructions",
        false => "performance",
    };
    match &scaling.fall {
        Some(fall) => format!("{what} drops by {}", loss(fall)),
        None => format!("{what} drops"),
    }
}

/// Loss of a ratio below 1: `12.1 % [9.2 to 15.3 %]`.
fn loss(comparison: &Comparison) -> String {
    let lost = |ratio: f64| 1.0 - ratio;
    let ends = comparison.interval.map(|ends| Interval {
        low: lost(ends.high),
        high: lost(ends.low),
        level: ends.level,
    });
    percents(lost(comparison.ratio.0), ends)
}
