//! Coverage of the confidence interval of a cell.

use analysis::{Decision, Summary, decide};
use model::Profile;

use crate::{
    page::{Section, Table, held, percent},
    run::{Cell, Repetitions, run, share, times, values},
    shapes::{Machine, Shape},
};

/// Fraction of runs with n repetitions whose interval contains the true median.
pub(crate) fn fixed(shape: Shape, n: u32, runs: u32) -> f64 {
    let cell = Cell { rate: 100.0, shape };
    share(&times(runs, |rng| {
        let trials = run(rng, &[cell], Machine::Still, Repetitions::Fixed(n));
        let interval = Summary::new(&values(&trials[0])).unwrap().interval.unwrap();
        interval.contains(100.0 * shape.median())
    }))
}

/// Effect of the stopping rule on a cell.
pub(crate) struct Stopped {
    pub(crate) coverage: f64,
    pub(crate) repetitions: f64,
    /// Fraction of runs closed at the last interim analysis although the interval is too wide.
    pub(crate) capped: f64,
}

/// Simulates one cell with the stopping rule.
pub(crate) fn stopped(shape: Shape, profile: Profile, runs: u32) -> Stopped {
    let cell = Cell { rate: 100.0, shape };
    let all = times(runs, |rng| {
        let trials = run(rng, &[cell], Machine::Still, Repetitions::Adaptive(profile));
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
        repetitions: all.iter().map(|run| run.1).sum::<f64>() / f64::from(runs),
        capped: part(|run| run.2),
    }
}

pub(crate) fn section(runs: u32) -> Section {
    let sizes = [6, 8, 10, 15, 20, 30];
    let mut header = vec!["distribution".to_owned()];
    header.extend(sizes.map(|n| format!("n = {n}")));
    let intro = "With a fixed number of repetitions n:";
    let mut table = Table { intro, header, rows: Vec::new(), held: String::new() };
    let mut all = Vec::new();
    for shape in Shape::ALL {
        let shares = sizes.map(|n| fixed(shape, n, runs));
        all.extend(shares);
        let mut row = vec![shape.name()];
        row.extend(shares.map(percent));
        table.rows.push(row);
    }
    table.held = held("Coverage", &all, 0.93, 0.97);
    let mut rule = Table::new(&[
        "distribution",
        "profile",
        "coverage",
        "repetitions",
        "too wide at the maximum",
    ])
    .with_intro(
        "With the stopping rule. The rule ends the repetitions of a cell at the first interim \
         analysis whose interval is narrow enough, which reduces the coverage slightly. *Too wide \
         at the maximum* is the fraction of runs in which the interval is too wide even after the \
         maximum number of repetitions of the profile.",
    );
    let mut covered = Vec::new();
    for shape in Shape::ALL {
        for profile in Profile::ALL {
            let result = stopped(shape, profile, runs);
            covered.push(result.coverage);
            rule.rows.push(vec![
                shape.name(),
                profile.name().to_owned(),
                percent(result.coverage),
                format!("{:.1}", result.repetitions),
                percent(result.capped),
            ]);
        }
    }
    rule.held = held("Coverage after the stopping rule", &covered, 0.93, 0.97);
    Section {
        title: "Confidence intervals of a cell",
        intro: "Coverage is the fraction of simulated runs in which the 95 % confidence interval \
                of the median contains the true median."
            .into(),
        tables: vec![table, rule],
    }
}
