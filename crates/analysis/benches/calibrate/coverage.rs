//! How often the interval of a cell holds its true median.

use analysis::{Decision, Summary, decide};
use model::Profile;

use crate::{
    page::{Section, Table, held, percent},
    run::{Cell, Repeats, run, share, times, values},
    shapes::{Machine, Shape},
};

/// The part of runs whose interval of a fixed number of repeats holds the truth.
pub(crate) fn fixed(shape: Shape, n: u32, runs: u32) -> f64 {
    let cell = Cell { rate: 100.0, shape };
    share(&times(runs, |rng| {
        let trials = run(rng, &[cell], Machine::Still, Repeats::Fixed(n));
        let interval = Summary::new(&values(&trials[0])).unwrap().interval.unwrap();
        interval.contains(100.0 * shape.median())
    }))
}

/// What the stop rule does to a cell.
pub(crate) struct Stopped {
    pub(crate) coverage: f64,
    pub(crate) repeats: f64,
    /// Closed at the last look, still too wide.
    pub(crate) capped: f64,
}

/// Runs of one cell under the stop rule.
pub(crate) fn stopped(shape: Shape, profile: Profile, runs: u32) -> Stopped {
    let cell = Cell { rate: 100.0, shape };
    let all = times(runs, |rng| {
        let trials = run(rng, &[cell], Machine::Still, Repeats::Adaptive(profile));
        let values = values(&trials[0]);
        let interval = Summary::new(&values).unwrap().interval.unwrap();
        let wide = match decide(std::slice::from_ref(&values), profile, None) {
            Decision::Enough { warnings, .. } => !warnings.is_empty(),
            Decision::More { .. } => unreachable!("the run has ended"),
        };
        (interval.contains(100.0 * shape.median()), values.len() as f64, wide)
    });
    let part = |of: fn(&(bool, f64, bool)) -> bool| share(&all.iter().map(of).collect::<Vec<_>>());
    Stopped {
        coverage: part(|run| run.0),
        repeats: all.iter().map(|run| run.1).sum::<f64>() / f64::from(runs),
        capped: part(|run| run.2),
    }
}

pub(crate) fn section(runs: u32) -> Section {
    let sizes = [6, 8, 10, 15, 20, 30];
    let mut header = vec!["scatter".to_owned()];
    header.extend(sizes.map(|n| format!("n = {n}")));
    let mut table = Table { header, rows: Vec::new(), held: String::new() };
    let mut all = Vec::new();
    for shape in Shape::ALL {
        let shares = sizes.map(|n| fixed(shape, n, runs));
        all.extend(shares);
        let mut row = vec![shape.name()];
        row.extend(shares.map(percent));
        table.rows.push(row);
    }
    table.held = held("Coverage", &all, 0.93, 0.97);
    let mut rule = Table::new(&["scatter", "profile", "coverage", "repeats", "closed too wide"]);
    let mut covered = Vec::new();
    for shape in Shape::ALL {
        for profile in Profile::ALL {
            let told = stopped(shape, profile, runs);
            covered.push(told.coverage);
            rule.rows.push(vec![
                shape.name(),
                profile.name().to_owned(),
                percent(told.coverage),
                format!("{:.1}", told.repeats),
                percent(told.capped),
            ]);
        }
    }
    rule.held = held("Coverage after the stop rule", &covered, 0.93, 0.97);
    Section {
        title: "Intervals of a cell",
        intro:
            "How often the 95 % interval of a cell's median holds the true median: with a fixed \
                number of repeats, and when the stop rule has looked several times and stopped at \
                the first look that satisfied it, which costs a little."
                .into(),
        tables: vec![table, rule],
    }
}
