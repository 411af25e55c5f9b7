//! Chart of CPU time by consumer.

use model::metric::Unit;

use super::{Figure, Kind, absent_of, qualified, repetitions};
use crate::{
    charts::origins::{OriginBar, origins as charts},
    units::{Scale, alone, percent},
    view::{
        View,
        origins::{FOREIGN, OriginLine, Origins, PARTS},
    },
};

/// Bars of a test; `None` if CPU time is not available.
pub(super) fn figure(view: &View, suite: usize, point: usize, test: usize) -> Option<Figure> {
    let own = &view.suites[suite].points[point].tests[test];
    let details = view.details(suite, point, test);
    let origins = details.origins.as_ref()?;
    let name = |filesystem: usize| view.filesystems[filesystem].name.clone();
    let sums = origins.lines.iter().map(|line| line.parts[..FOREIGN].iter().sum());
    let scale = Scale::of(origins.unit, sums.collect::<Vec<f64>>().into_iter());
    let title = format!("{}: {}", details.ranked.title, finding(origins, &name));
    let quantity = if origins.unit == Unit::Instructions {
        format!("guest instructions per operation, {}", scale.name)
    } else if origins.unit == Unit::Nanoseconds {
        format!("CPU time per operation, {}", scale.name)
    } else {
        "CPU time over elapsed time, % of one CPU".to_owned()
    };
    let bar = |line: &OriginLine| OriginBar {
        name: name(line.filesystem),
        series: line.filesystem,
        pieces: line.parts.iter().map(|part| scale.number(*part)).collect(),
        shown: shown(line, scale),
    };
    let bars: Vec<OriginBar> = origins.lines.iter().map(bar).collect();
    let chart = charts(&format!("{quantity} — informational"), &PARTS[..FOREIGN], &bars);
    let unattributed = match origins.unattributed {
        true => "unattributed: interrupts, and tasks that existed only between two samples",
        false => "unattributed time is not available for tests shorter than 0.2 s",
    };
    let caption = format!(
        "Segments: means of {}, each with texture and letter. Bar: workload and attributed kernel \
         threads; at its end the median with its 95 % confidence interval, and the mean of other \
         processes, which is not drawn. Measured from worker setup to the end of the last worker; \
         {unattributed}.{}{}",
        repetitions(origins.lines.iter().map(|line| line.attributed.n)),
        qualified(&own.measured_codes()),
        absent_of(view, &origins.absent)
    );
    let id = format!("{}--cpu-time", own.id);
    let description = format!("{title}. The data are in the system activity table.");
    Some(Figure::new(Kind::CpuTime, id, chart, (title, &description), caption))
}

/// Median of the attributed CPU time with its interval.
fn shown(line: &OriginLine, scale: Scale) -> String {
    let shown = scale.shown(&line.attributed);
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

/// Range of the attributed CPU time, and the filesystem with the largest fraction in kernel
/// threads.
fn finding(origins: &Origins, name: &dyn Fn(usize) -> String) -> String {
    let median = |line: &&OriginLine| line.attributed.median;
    let by = |a: &&OriginLine, b: &&OriginLine| median(a).total_cmp(&median(b));
    let words = |line: &OriginLine| {
        format!("{} ({})", alone(origins.unit, line.attributed.median), name(line.filesystem))
    };
    let what = if origins.unit == Unit::Instructions {
        "guest instructions per operation"
    } else if origins.unit == Unit::Nanoseconds {
        "CPU time per operation"
    } else {
        "CPUs used"
    };
    let (least, most) = (origins.lines.iter().min_by(by), origins.lines.iter().max_by(by));
    let amounts = match (least, most) {
        (Some(least), Some(most)) if origins.lines.len() > 1 => {
            format!("{what} from {} to {}", words(least), words(most))
        }
        (Some(only), _) => format!("{what} {}", words(only)),
        (None, _) => what.into(),
    };
    let beside = |a: &&OriginLine, b: &&OriginLine| {
        a.kernel_thread_fraction().total_cmp(&b.kernel_thread_fraction())
    };
    match origins.lines.iter().max_by(beside).filter(|line| line.kernel_thread_fraction() >= 0.005)
    {
        Some(line) => format!(
            "{amounts}; kernel threads have up to {} of it ({})",
            percent(line.kernel_thread_fraction()),
            name(line.filesystem)
        ),
        None => amounts,
    }
}

#[cfg(test)]
mod tests;
