//! Error rates of verdicts on pairs of cells, and of findings on families.

use analysis::{
    Comparison, Repetition, Side, Size, Verdict, blocks,
    drift::{self, CellSeries, PositionedValue},
    ranks,
};
use fastrand::Rng;
use model::{Profile, Ratio, metric::Better};

use crate::{
    page::{Section, Table, held, percent},
    run::{Cell, Repetitions, comparing, run, share, times, values},
    shapes::{Clockwork, Machine, Shape},
};

/// Equivalence margin of the standard profile.
pub(crate) const FIVE: Ratio = Ratio(0.05);

/// Comparison of two cells of a run with profile standard and four other cells. The second cell is
/// better by the factor `better`.
pub(crate) fn compared(
    rng: &mut Rng,
    shapes: [Shape; 2],
    better: f64,
    machine: Machine,
) -> Comparison {
    // Dividing by the median makes the medians of different shapes equal.
    let rate = |at: usize, factor: f64| Cell {
        rate: 100.0 * factor / shapes[at].median(),
        shape: shapes[at],
    };
    let others = [0.7, 0.9, 1.1, 1.3].map(|rate| Cell { rate, shape: Shape::Normal(0.02) });
    let cells: Vec<Cell> = [rate(0, 1.0), rate(1, better)].into_iter().chain(others).collect();
    let trials = run(rng, &cells, machine, Repetitions::Adaptive(Profile::Standard));
    // As in a report, cells are compared in common rounds if the run may have drifted.
    let pair = [trials[0].as_slice(), trials[1].as_slice()];
    let shared = suspected(&trials).then(|| blocks::shared(&pair)).flatten();
    let [a, b] = match &shared {
        Some(shared) => [0, 1].map(|at| shared[at].as_slice()),
        None => pair,
    };
    comparing(|comparer| comparer.compare_repetitions(a, b, Better::Higher, FIVE).unwrap())
}

/// True if a run as a whole may have drifted.
fn suspected(trials: &[Vec<Repetition>]) -> bool {
    // The position of a value within its round is irrelevant if all positions differ.
    let placed = |cell: usize, repetition: &Repetition| PositionedValue {
        block: repetition.block.unwrap(),
        order: repetition.block.unwrap() as usize * trials.len() + cell,
        after: None,
        value: repetition.value,
    };
    let cell = |(cell, repetitions): (usize, &Vec<Repetition>)| CellSeries {
        better: Better::Higher,
        repetitions: repetitions.iter().map(|repetition| placed(cell, repetition)).collect(),
    };
    let cells: Vec<CellSeries> = trials.iter().enumerate().map(cell).collect();
    drift::of_run(&cells, 0, 1).is_ok_and(|drift| drift.suspected())
}

/// Fractions of runs in which the second cell was different, worse, and equivalent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdicts {
    pub(crate) different: f64,
    /// Different by more than the margin.
    pub(crate) matters: f64,
    pub(crate) worse: f64,
    pub(crate) equivalent: f64,
}

/// Verdicts over many runs.
pub(crate) fn result(shapes: [Shape; 2], better: f64, machine: Machine, runs: u32) -> Verdicts {
    let verdicts = times(runs, |rng| compared(rng, shapes, better, machine).verdict);
    let part = |is: fn(&Verdict) -> bool| share(&verdicts.iter().map(is).collect::<Vec<_>>());
    Verdicts {
        different: part(|verdict| matches!(verdict, Verdict::Differs { .. })),
        matters: part(|verdict| {
            matches!(verdict, Verdict::Differs { size: Size::AtLeast | Size::Uncertain, .. })
        }),
        worse: part(|verdict| matches!(verdict, Verdict::Differs { side: Side::Worse, .. })),
        equivalent: part(|verdict| matches!(verdict, Verdict::Equivalent)),
    }
}

/// Pairs of equal shapes, and two pairs of different shapes.
fn pairs() -> Vec<[Shape; 2]> {
    let alike = Shape::ALL.map(|shape| [shape, shape]);
    let unlike =
        [[Shape::Normal(0.02), Shape::Normal(0.06)], [Shape::Normal(0.01), Shape::HeavyTail]];
    alike.into_iter().chain(unlike).collect()
}

fn named([one, other]: [Shape; 2]) -> String {
    if one == other { one.name() } else { format!("{} and {}", one.name(), other.name()) }
}

pub(crate) fn section(runs: u32) -> Section {
    let mut wrong =
        Table::new(&["distribution", "machine", "significant", "and not negligible", "equivalent"])
            .with_intro(
                "The two cells are equal, so every significant difference is false. A false \
                 difference is *not negligible* if it is not shown to be below δ.",
            );
    let mut power = Table::new(&[
        "distribution",
        "detected at 5 %",
        "detected at 10 %",
        "wrong direction at 5 %",
    ])
    .with_intro(
        "The second cell is better by 5 or by 10 %, on a stable machine. *Detected* is the \
         fraction of runs in which the difference is significant.",
    );
    let mut boundary = Table::new(&["distribution", "equivalent at a true 5 %"])
        .with_intro("The true difference is exactly δ, so the result *equivalent* is wrong.");
    let (mut false_ones, mut alike_ones) = (Vec::new(), Vec::new());
    for shapes in pairs() {
        for machine in Machine::ALL {
            let same = result(shapes, 1.0, machine, runs);
            false_ones.push(same.different);
            wrong.rows.push(vec![
                named(shapes),
                machine.name().to_owned(),
                percent(same.different),
                percent(same.matters),
                percent(same.equivalent),
            ]);
        }
        let five = result(shapes, 1.05, Machine::Still, runs);
        let ten = result(shapes, 1.10, Machine::Still, runs);
        power.rows.push(vec![
            named(shapes),
            percent(five.different),
            percent(ten.different),
            percent(five.worse),
        ]);
        alike_ones.push(five.equivalent);
        boundary.rows.push(vec![named(shapes), percent(five.equivalent)]);
    }
    wrong.held = held("False differences", &false_ones, 0.0, 0.06);
    boundary.held = held("Wrongly equivalent", &alike_ones, 0.0, 0.05);
    Section {
        title: "Comparison of two cells",
        intro: "A run of profile standard with six cells is simulated, with random order within \
                rounds and the stopping rule for each cell. Then two of the cells are compared \
                with an equivalence margin δ of 5 %."
            .into(),
        tables: vec![wrong, power, boundary],
    }
}

/// Fraction of runs in which some pair of equal cells differs significantly, and in which one of
/// them becomes the only winner.
pub(crate) fn family(cells: usize, runs: u32) -> (f64, f64) {
    let cells = vec![Cell { rate: 100.0, shape: Shape::Normal(0.05) }; cells];
    let all = times(runs, |rng| {
        let trials = run(rng, &cells, Machine::Still, Repetitions::Fixed(8));
        let lists: Vec<Vec<f64>> = trials.iter().map(|trials| values(trials)).collect();
        let lists: Vec<&[f64]> = lists.iter().map(Vec::as_slice).collect();
        let ranking =
            comparing(|comparer| ranks::rank(comparer, &lists, Better::Higher, FIVE).unwrap());
        (ranking.pairs.iter().any(ranks::Pair::is_significant), ranking.top.len() == 1)
    });
    let part = |of: fn(&(bool, bool)) -> bool| share(&all.iter().map(of).collect::<Vec<_>>());
    (part(|run| run.0), part(|run| run.1))
}

/// Fractions of false differences: if all repetitions of A precede those of B, and if both are
/// measured in rounds.
fn order(shape: Shape, machine: Machine, n: u32, runs: u32) -> (f64, f64) {
    let differs = |verdict: Verdict| matches!(verdict, Verdict::Differs { .. });
    let compare = |a: &[f64], b: &[f64]| {
        comparing(|comparer| comparer.compare(a, b, Better::Higher, FIVE).unwrap().verdict)
    };
    let apart = times(runs, |rng| {
        let mut speed = Clockwork::new(machine, 2);
        let mut all = || (0..n).map(|_| shape.draw(rng) * speed.next(rng)).collect::<Vec<f64>>();
        let (a, b) = (all(), all());
        differs(compare(&a, &b))
    });
    let blocks = times(runs, |rng| {
        let trials = run(rng, &[Cell { rate: 1.0, shape }; 2], machine, Repetitions::Fixed(n));
        differs(compare(&values(&trials[0]), &values(&trials[1])))
    });
    (share(&apart), share(&blocks))
}

pub(crate) fn families(runs: u32) -> Section {
    let mut table = Table::new(&["equal cells", "a significant pair", "a single fastest cell"])
        .with_intro(
            "Cells with a standard deviation of 5 % and 8 repetitions: fraction of runs in which \
             any pair differs significantly after Holm's adjustment, and in which one cell is \
             called the fastest.",
        );
    let mut shares = Vec::new();
    for cells in [3, 5, 8] {
        let (pair, winner) = family(cells, runs);
        shares.push(pair);
        table.rows.push(vec![cells.to_string(), percent(pair), percent(winner)]);
    }
    table.held = held("Families with a false difference", &shares, 0.0, 0.06);
    let mut orders = Table::new(&["machine", "repetitions", "all of A, then all of B", "rounds"])
        .with_intro(
            "Two cells with a standard deviation of 2 % on an unstable machine: fraction of runs \
             with a significant difference, if all repetitions of A precede those of B, and if \
             both are measured in rounds.",
        );
    for machine in [Machine::Drifts, Machine::Wanders] {
        for n in [8, 10] {
            let (apart, blocks) = order(Shape::Normal(0.02), machine, n, runs);
            let name = machine.name().to_owned();
            orders.rows.push(vec![name, n.to_string(), percent(apart), percent(blocks)]);
        }
    }
    Section {
        title: "Families and trial order",
        intro: "All cells are equal, so every significant difference is false.".into(),
        tables: vec![table, orders],
    }
}
