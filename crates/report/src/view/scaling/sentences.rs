//! C9 and C10: how far a filesystem scales, or why that is not told.

use analysis::{
    Absent, Comparison, Interval,
    scaling::{Course, Scaling},
};
use model::metric::{Better, Unit};

use super::{Analyzed, tables::Input};
use crate::{
    units::{percents, ratio},
    view::{
        claims::{Answer, Claim, PointClaims, Withheld},
        sweeps::{Cut, TOO_FEW},
    },
};

/// One sentence for each filesystem whose levels may all carry a claim, and what is not decided.
/// Where repeats are too few there is nothing.
pub(super) fn claims(view: &Input) -> PointClaims {
    let mut answers = Vec::new();
    for line in view.lines.iter().filter(|line| line.sound) {
        if line.cut == Cut::TooFew {
            answers.push(Answer::Withheld(Withheld {
                template: "C9",
                test: view.id.clone(),
                about: format!("how {} scales on {}", line.name, view.what()),
                missing: TOO_FEW.0.into(),
                cure: TOO_FEW.1.into(),
            }));
            continue;
        }
        match &line.scaling.course {
            Ok(course) => {
                let (template, text) = sentence(view, line, *course);
                answers.push(Answer::Said(Claim { template, test: view.id.clone(), text }));
            }
            Err(Absent::Repeats { .. }) => {}
            Err(absent) => answers.push(Answer::Withheld(Withheld {
                template: "C9",
                test: view.id.clone(),
                about: format!("how {} scales on {}", line.name, view.what()),
                missing: absent.to_string(),
                cure: String::new(),
            })),
        }
    }
    PointClaims::new(view.title, answers)
}

/// Why there are no sentences about some filesystems, for the caption.
pub(super) fn withheld(view: &Input) -> Option<String> {
    let few = view.lines.iter().find_map(|line| match &line.scaling.course {
        Err(absent @ Absent::Repeats { .. }) => Some(absent.to_string()),
        Err(_) | Ok(_) => None,
    });
    let unsound = view.lines.iter().filter(|line| !line.sound).map(|line| line.name.as_str());
    let unsound: Vec<&str> = unsound.collect();
    let unsound = (!unsound.is_empty()).then(|| {
        format!("no sentence on {}: a level failed or must not carry a claim", unsound.join(", "))
    });
    let few = few.map(|reason| format!("no sentence on how they scale: {reason}"));
    let cut = view.lines.iter().filter(|line| line.cut == Cut::Shared);
    let cut: Vec<&str> = cut.map(|line| line.name.as_str()).collect();
    let cut = (!cut.is_empty())
        .then(|| format!("how {} scales: told{}", cut.join(", "), Cut::Shared.words()));
    let all: Vec<String> = few.into_iter().chain(unsound).chain(cut).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn sentence(view: &Input, line: &Analyzed, course: Course) -> (&'static str, String) {
    let scaling = &line.scaling;
    let name = &line.name;
    let (first, last) = (count(view, scaling, 0), count(view, scaling, scaling.points.len() - 1));
    let reached = format!(
        "{}{} on {} (at least 95 % of its best, {}{})",
        count(view, scaling, scaling.saturation),
        range(scaling),
        view.what(),
        best(view, scaling),
        efficiency(view, scaling),
    );
    match course {
        Course::Rises => (
            "C10",
            format!(
                "{name} rises to the last level tested, {last}, on {}: {}, {} of {first}{}.",
                view.what(),
                best(view, scaling),
                scaling.rise.as_ref().map_or_else(String::new, of),
                efficiency(view, scaling),
            ),
        ),
        Course::Saturates => {
            ("C9", format!("{name} scales up to {reached}; no fall is shown until {last}."))
        }
        Course::RisesAndFalls => (
            "C9",
            format!("{name} scales up to {reached}, then {} until {last}.", fall(view, scaling)),
        ),
        Course::Falls => (
            "C9",
            format!(
                "No more than {first} pays with {name} on {}: it {} until {last}.",
                view.what(),
                fall(view, scaling)
            ),
        ),
        Course::Flat => (
            "C9",
            format!(
                "No more than {first} pays with {name} on {}: {first} and {last} are within {} of \
                 the best.",
                view.what(),
                view.threshold.words()
            ),
        ),
    }
}

/// How many clients a level has, in words.
fn count(view: &Input, scaling: &Scaling, level: usize) -> String {
    let point = scaling.points.get(level);
    point.map_or_else(String::new, |point| view.clients.count(point.clients))
}

/// ` [32 to 64]`, where resampling leaves more than one level.
pub(super) fn range(scaling: &Scaling) -> String {
    match &scaling.saturation_range {
        Ok((low, high)) if low < high => format!(" [{low} to {high}]"),
        Ok(_) | Err(_) => String::new(),
    }
}

/// The best median with its clients: `812 MiB/s at 64 clients`.
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

/// `; efficiency of 64 clients 21.2 % [18.3 to 23.1 %]`, of the level that is enough.
fn efficiency(view: &Input, scaling: &Scaling) -> String {
    let point = scaling.points.get(scaling.saturation).filter(|_| scaling.saturation > 0);
    let told = point.and_then(|point| Some((point.clients, point.efficiency.as_ref().ok()?)));
    told.map_or_else(String::new, |(clients, efficiency)| {
        let ends = efficiency.interval.as_ref().ok().copied();
        let clients = view.clients.count(clients);
        format!("; efficiency of {clients} {}", percents(efficiency.value.0, ends))
    })
}

/// `×3.2 [3.1, 3.3]`.
fn of(comparison: &Comparison) -> String {
    ratio(comparison.ratio.0, comparison.interval)
}

/// `falls by 12.1 % [9.2 to 15.3 %]`.
fn fall(view: &Input, scaling: &Scaling) -> String {
    let word = match view.metric.spec().better {
        Better::Higher | Better::Neither => "falls by",
        Better::Lower if view.metric.spec().unit == Unit::Instructions => "loses",
        Better::Lower => "loses in speed",
    };
    let Some(fall) = &scaling.fall else { return word.to_owned() };
    format!("{word} {}", loss(fall))
}

/// What a ratio below 1 loses: `12.1 % [9.2 to 15.3 %]`.
fn loss(comparison: &Comparison) -> String {
    let lost = |ratio: f64| 1.0 - ratio;
    let ends = comparison.interval.map(|ends| Interval {
        low: lost(ends.high),
        high: lost(ends.low),
        level: ends.level,
    });
    percents(lost(comparison.ratio.0), ends)
}
