//! Error rates for flat scaling curves, and coverage of the intervals of fitted scaling laws.

use analysis::{
    scaling::{Curve, Fit, Law, Level, ScalingShape},
    trend::Repetition,
};
use fastrand::Rng;
use model::metric::Better;

use crate::{
    page::{Section, Table, percent},
    run::{comparing, share, times},
    shapes::Shape,
    verdicts::FIVE,
};

const SHAPES: [Shape; 4] =
    [Shape::Normal(0.02), Shape::Normal(0.06), Shape::Bimodal, Shape::LeftTail];

/// Simulated curve over powers of two, with a drift of 6 % over the run.
pub(crate) fn curve(
    rng: &mut Rng,
    shape: Shape,
    levels: u32,
    repetitions: u32,
    rate: impl Fn(f64) -> f64,
) -> Curve {
    let mut level = |at: u32| Level {
        clients: 1 << at,
        repetitions: (0..repetitions)
            .map(|block| {
                let drift = 1.0 + 0.06 * f64::from(block) / f64::from(repetitions);
                let value = rate(f64::from(1u32 << at)) * drift * shape.draw(rng);
                Repetition { block: Some(block), value }
            })
            .collect(),
    };
    Curve::new((0..levels).map(&mut level).collect(), Better::Higher).unwrap()
}

pub(crate) fn law(sigma: f64, kappa: f64) -> Fit {
    Fit { law: Law::Universal, lambda: 100.0, sigma, kappa, squares: 0.0, aicc: 0.0 }
}

/// Flat curves: fractions of runs with a false rise or fall, with a flat shape, and with a false
/// trend.
fn flat(shape: Shape, runs: u32) -> [f64; 3] {
    let all = times(runs, |rng| {
        let curve = curve(rng, shape, 8, 8, |_| 100.0);
        let result = comparing(|comparer| curve.scaling(comparer, FIVE, rng.u64(..)).unwrap());
        let flat = matches!(result.shape, Ok(ScalingShape::Flat));
        [!flat && result.shape.is_ok(), flat, result.trend.unwrap().p <= 0.05]
    });
    [0, 1, 2].map(|at| share(&all.iter().map(|run| run[at]).collect::<Vec<_>>()))
}

/// Coverage of 95 % intervals for a curve with its maximum at 31 of 128 clients. The fifth value is
/// the fraction of runs that report a maximum.
fn laws(shape: Shape, repetitions: u32, runs: u32) -> [f64; 6] {
    let truth = law(0.05, 0.001);
    let peak = (0.95f64 / 0.001).sqrt();
    let all = times(runs, |rng| {
        let one = curve(rng, shape, 8, repetitions, |n| truth.at(n));
        let other = curve(rng, shape, 8, repetitions, |n| truth.at(n));
        let seed = rng.u64(..);
        let result = comparing(|comparer| one.scaling(comparer, FIVE, seed).unwrap());
        let efficiency = result.points[5].efficiency.unwrap().interval.unwrap();
        let difference = Curve::efficiency_differences(&one, &other, seed)[5].interval.unwrap();
        let laws = result.laws.unwrap();
        [
            efficiency.contains(truth.at(32.0) / 3200.0),
            difference.contains(0.0),
            laws.sigma.unwrap().contains(0.05),
            laws.kappa.unwrap().contains(0.001),
            laws.peak.is_ok(),
            laws.peak.is_ok_and(|result| result.clients_interval.contains(peak)),
        ]
    });
    [0, 1, 2, 3, 4, 5].map(|at| share(&all.iter().map(|run| run[at]).collect::<Vec<_>>()))
}

pub(crate) fn section(runs: u32) -> Section {
    let runs = (runs / 5).max(1);
    let mut none = Table::new(&["distribution", "rise or fall", "flat", "trend at 5 %"])
        .with_intro(
            "Flat curves with 8 repetitions: fraction of runs in which a rise or fall is reported, \
             in which the curve is reported as flat, and in which the trend is significant at 5 %.",
        );
    for shape in SHAPES {
        let mut row = vec![shape.name()];
        row.extend(flat(shape, runs).map(percent));
        none.rows.push(row);
    }
    let mut table = Table::new(&[
        "distribution",
        "repetitions",
        "E(32)",
        "difference of E(32)",
        "σ",
        "κ",
        "peak reported",
        "peak covered",
    ])
    .with_intro(
        "Curves of the universal scalability law with a peak at 31 clients: coverage of the 95 % \
         intervals of the efficiency E(32), of the difference between the E(32) of two such \
         curves, of the coefficients σ and κ, and of the peak.",
    );
    for repetitions in [8, 20] {
        for shape in SHAPES {
            let mut row = vec![shape.name(), repetitions.to_string()];
            row.extend(laws(shape, repetitions, runs).map(percent));
            table.rows.push(row);
        }
    }
    Section {
        title: "Scaling with clients",
        intro: format!(
            "The simulated curves have 8 numbers of clients, from 1 to 128, and the machine drifts \
             by 6 % over the run. Each rate comes from {runs} runs."
        ),
        tables: vec![none, table],
    }
}
