//! Who used the processors during one test.

use std::collections::BTreeSet;

use model::metric::Unit;

use super::{Figure, Kind, absent, qualified};
use crate::{
    charts::origins::{OriginBar, OriginChart},
    units::{Scale, alone, percent},
    view::{
        View,
        origins::{FOREIGN, OriginLine, Origins, PARTS},
    },
};

/// The bars of a test; `None` where nobody told.
pub(super) fn figure(view: &View, suite: usize, point: usize, test: usize) -> Option<Figure> {
    let flat = view.flat(suite, point, test);
    let own = &view.suites[suite].points[point].tests[test];
    let origins = view.origins[suite][flat].as_ref()?;
    let name = |filesystem: usize| view.filesystems[filesystem].name.clone();
    let sums = origins.lines.iter().map(|line| line.parts[..FOREIGN].iter().sum());
    let scale = Scale::of(origins.unit, sums.collect::<Vec<f64>>().into_iter());
    let title = format!("{}: {}", view.ranked[suite][flat].title, finding(origins, &name));
    let quantity = if origins.unit == Unit::Instructions {
        format!("guest instructions per operation, {}", scale.name)
    } else if origins.unit == Unit::Nanoseconds {
        format!("CPU time for each operation, {}", scale.name)
    } else {
        "CPU time over the time of the test, % of one processor".to_owned()
    };
    let bar = |line: &OriginLine| OriginBar {
        name: name(line.filesystem),
        series: line.filesystem,
        pieces: line.parts.iter().map(|part| scale.number(*part)).collect(),
        shown: shown(line, scale),
    };
    let id = format!("{}--processors", own.id);
    let chart = OriginChart {
        id: format!("{id}-chart"),
        description: format!("{title}. The numbers are in the table of evidence."),
        title: title.clone(),
        axis: format!("{quantity} — evidence, no direction"),
        parts: &PARTS,
        marked: FOREIGN,
        bars: origins.lines.iter().map(bar).collect(),
    };
    let ns: BTreeSet<u32> = origins.lines.iter().map(|line| line.caused.n).collect();
    let n = match (ns.first(), ns.last()) {
        (Some(least), Some(most)) if least != most => format!("{least} to {most}"),
        (Some(n), _) => n.to_string(),
        (None, _) => "0".into(),
    };
    let unattributed = match origins.unattributed {
        true => "unattributed: interrupts, and tasks that came and went between two looks",
        false => "what no task accounts for is not told of tests shorter than 0.2 s",
    };
    let codes = own.entries.iter().flat_map(|entry| entry.measured_codes.iter().copied());
    let missing = origins.absent.iter();
    let missing: Vec<_> = missing.map(|(at, reason)| (name(*at), reason.clone())).collect();
    Some(Figure {
        id,
        kind: Kind::Processors,
        title,
        svg: chart.render(),
        caption: format!(
            "Pieces: means over n = {n} repeats, which add up; each kind has its own texture and \
             letter. The bar is what the workload and the kernel threads it caused used; at its \
             end the median of that with the 95 % interval of the median where there are enough \
             repeats, and the mean of what others used meanwhile, which is not drawn. \
             Counted from before the workers are set up until the last is done; \
             {unattributed}.{}{}",
            qualified(&codes.collect()),
            absent(&missing)
        ),
    })
}

/// The median of what was caused, with its interval.
fn shown(line: &OriginLine, scale: Scale) -> String {
    let shown = scale.shown(&line.caused);
    let caused = match shown.interval {
        Some((low, high)) => format!("{} [{low}, {high}] {}", shown.value, scale.name),
        None => format!("{} {}", shown.value, scale.name),
    };
    let others: f64 = line.parts[FOREIGN..].iter().sum();
    match others > 0.0 {
        true => format!("{caused}; others {} {}", scale.rough(others), scale.name),
        false => caused,
    }
}

/// Least and most of what was caused, and who leaves most of it to the kernel's threads.
fn finding(origins: &Origins, name: &dyn Fn(usize) -> String) -> String {
    let median = |line: &&OriginLine| line.caused.median;
    let by = |a: &&OriginLine, b: &&OriginLine| median(a).total_cmp(&median(b));
    let words = |line: &OriginLine| {
        format!("{} ({})", alone(origins.unit, line.caused.median), name(line.filesystem))
    };
    let what = if origins.unit == Unit::Instructions {
        "guest instructions for an operation"
    } else if origins.unit == Unit::Nanoseconds {
        "CPU time for an operation"
    } else {
        "processors used"
    };
    let (least, most) = (origins.lines.iter().min_by(by), origins.lines.iter().max_by(by));
    let amounts = match (least, most) {
        (Some(least), Some(most)) if origins.lines.len() > 1 => {
            format!("{what} from {} to {}", words(least), words(most))
        }
        (Some(only), _) => format!("{what} {}", words(only)),
        (None, _) => what.into(),
    };
    let beside = |a: &&OriginLine, b: &&OriginLine| a.beside().total_cmp(&b.beside());
    match origins.lines.iter().max_by(beside).filter(|line| line.beside() >= 0.005) {
        Some(line) => format!(
            "{amounts}; kernel threads have up to {} of it ({})",
            percent(line.beside()),
            name(line.filesystem)
        ),
        None => amounts,
    }
}

#[cfg(test)]
mod tests;
