//! Coverage of the intervals of explained variance.

use analysis::factorial::{self, Factor, Observation};
use fastrand::Rng;

use crate::{
    page::{Section, Table, percent},
    run::{share, times},
    shapes::normal,
};

/// Simulated run with crossed factors. `first`, `second`, and `both` are the sizes of the effects
/// of the first factor, the second factor, and their interaction.
pub(crate) fn crossed(
    rng: &mut Rng,
    levels: &[usize],
    blocks: u32,
    sd: f64,
    [first, second, both]: [f64; 3],
) -> (Vec<Factor>, Vec<Observation>) {
    let factor = |levels: &usize| Factor {
        name: "factor".to_owned(),
        levels: (0..*levels).map(|level| level.to_string()).collect(),
    };
    let mut observations = Vec::new();
    for block in 0..blocks {
        let mut place = vec![0; levels.len()];
        loop {
            let of = |at: usize| place[at] as f64 / (levels[at] - 1) as f64 - 0.5;
            let ln = first * of(0)
                + second * of(1)
                + both * 4.0 * of(0) * of(1)
                + 0.06 * f64::from(block) / f64::from(blocks)
                + sd * normal(rng);
            observations.push(Observation {
                levels: place.clone(),
                block: Some(block),
                value: ln.exp(),
            });
            let Some(at) = (0..levels.len()).find(|at| place[*at] + 1 < levels[*at]) else { break };
            place[at] += 1;
            place[..at].fill(0);
        }
    }
    (levels.iter().map(factor).collect(), observations)
}

/// True fractions of the variance, with a drift of 6 % over many rounds.
fn truth(levels: &[usize; 2], [first, second, both]: [f64; 3], sd: f64) -> [f64; 3] {
    let variance = |levels: usize| {
        let places = (0..levels).map(|at| at as f64 / (levels - 1) as f64 - 0.5);
        places.map(|place| place * place).sum::<f64>() / levels as f64
    };
    let [a, b] = levels.map(variance);
    let own = [first * first * a, second * second * b, both * both * 16.0 * a * b];
    let all = own.iter().sum::<f64>() + sd * sd + 0.06 * 0.06 / 12.0;
    own.map(|own| own / all)
}

pub(crate) fn section(runs: u32) -> Section {
    let runs = (runs / 10).max(1);
    let levels = [5, 3];
    let mut table = Table::new(&["effects", "rounds", "term", "ω²", "coverage", "p at 5 %"]);
    for (what, effects) in [("none", [0.0; 3]), ("10, 5, and 3 %", [0.10, 0.05, 0.03])] {
        for blocks in [8, 20] {
            let truth = truth(&levels, effects, 0.04);
            let all = times(runs, |rng| {
                let (factors, observations) = crossed(rng, &levels, blocks, 0.04, effects);
                let result = factorial::analyze(&factors, &observations, rng.u64(..)).unwrap();
                let held = |at: usize| result.terms[at].interval.unwrap().contains(truth[at]);
                [0, 1, 2].map(|at| (held(at), result.terms[at].p <= 0.05))
            });
            for (at, term) in ["first", "second", "interaction"].into_iter().enumerate() {
                let part = |of: fn(&(bool, bool)) -> bool| {
                    percent(share(&all.iter().map(|run| of(&run[at])).collect::<Vec<_>>()))
                };
                table.rows.push(vec![
                    what.to_owned(),
                    blocks.to_string(),
                    term.to_owned(),
                    format!("{:.3}", truth[at]),
                    part(|run| run.0),
                    part(|run| run.1),
                ]);
            }
        }
    }
    Section {
        title: "Variance explained by factors",
        intro: format!(
            "The simulated runs have two factors of 5 and 3 values, an error of 4 %, and a drift \
             of 6 % over the run. There are {runs} runs of each kind. *Effects* are those of the \
             first factor, the second factor, and their interaction. ω² is the true fraction of \
             the variance that a term explains. *Coverage* is the fraction of runs whose 95 % \
             interval contains ω². The last column is the fraction of p-values of at most 5 %."
        ),
        tables: vec![table],
    }
}
