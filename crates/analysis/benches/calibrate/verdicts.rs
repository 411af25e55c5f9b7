//! How often two cells are called different, alike, or neither; and what is said of families.

use analysis::{
    Comparison, Repeat, Side, Size, Verdict, blocks,
    drift::{self, OfCell, Placed},
    ranks,
};
use fastrand::Rng;
use model::{Profile, Ratio, metric::Better};

use crate::{
    page::{Section, Table, held, percent},
    run::{Cell, Repeats, comparing, run, share, times, values},
    shapes::{Clockwork, Machine, Shape},
};

/// The practical threshold of the standard profile.
pub(crate) const FIVE: Ratio = Ratio(0.05);

/// Two cells of a run of the standard profile with four others, the second better by a factor.
pub(crate) fn compared(
    rng: &mut Rng,
    shapes: [Shape; 2],
    better: f64,
    machine: Machine,
) -> Comparison {
    // The medians of unlike shapes differ on their own.
    let rate = |at: usize, factor: f64| Cell {
        rate: 100.0 * factor / shapes[at].median(),
        shape: shapes[at],
    };
    let others = [0.7, 0.9, 1.1, 1.3].map(|rate| Cell { rate, shape: Shape::Normal(0.02) });
    let cells: Vec<Cell> = [rate(0, 1.0), rate(1, better)].into_iter().chain(others).collect();
    let trials = run(rng, &cells, machine, Repeats::Adaptive(Profile::Standard));
    // A report does so, too: where the whole run may have drifted, cells are compared in shared
    // blocks.
    let pair = [trials[0].as_slice(), trials[1].as_slice()];
    let shared = suspected(&trials).then(|| blocks::shared(&pair)).flatten();
    let [a, b] = match &shared {
        Some(shared) => [0, 1].map(|at| shared[at].as_slice()),
        None => pair,
    };
    comparing(|comparer| comparer.compare_repeats(a, b, Better::Higher, FIVE).unwrap())
}

/// Whether a run as a whole may have drifted.
fn suspected(trials: &[Vec<Repeat>]) -> bool {
    // Which trial of its block a value is from does not matter, only that each is one of its own.
    let placed = |cell: usize, repeat: &Repeat| Placed {
        block: repeat.block.unwrap(),
        order: repeat.block.unwrap() as usize * trials.len() + cell,
        after: None,
        value: repeat.value,
    };
    let cell = |(cell, repeats): (usize, &Vec<Repeat>)| OfCell {
        better: Better::Higher,
        repeats: repeats.iter().map(|repeat| placed(cell, repeat)).collect(),
    };
    let cells: Vec<OfCell> = trials.iter().enumerate().map(cell).collect();
    drift::of_run(&cells, 0, 1).is_ok_and(|drift| drift.suspected())
}

/// Parts of runs in which the second cell was called different, worse, and equivalent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) different: f64,
    /// Different by an amount that may matter.
    pub(crate) matters: f64,
    pub(crate) worse: f64,
    pub(crate) equivalent: f64,
}

/// Verdicts over many runs.
pub(crate) fn told(shapes: [Shape; 2], better: f64, machine: Machine, runs: u32) -> Told {
    let verdicts = times(runs, |rng| compared(rng, shapes, better, machine).verdict);
    let part = |is: fn(&Verdict) -> bool| share(&verdicts.iter().map(is).collect::<Vec<_>>());
    Told {
        different: part(|verdict| matches!(verdict, Verdict::Differs { .. })),
        matters: part(|verdict| {
            matches!(verdict, Verdict::Differs { size: Size::AtLeast | Size::Uncertain, .. })
        }),
        worse: part(|verdict| matches!(verdict, Verdict::Differs { side: Side::Worse, .. })),
        equivalent: part(|verdict| matches!(verdict, Verdict::Equivalent)),
    }
}

/// All pairs of shapes that are tried: alike, and two that are not.
fn pairs() -> Vec<[Shape; 2]> {
    let alike = Shape::ALL.map(|shape| [shape, shape]);
    let unlike =
        [[Shape::Normal(0.02), Shape::Normal(0.06)], [Shape::Normal(0.01), Shape::HeavyTail]];
    alike.into_iter().chain(unlike).collect()
}

fn named([one, other]: [Shape; 2]) -> String {
    if one == other { one.name() } else { format!("{} against {}", one.name(), other.name()) }
}

pub(crate) fn section(runs: u32) -> Section {
    let mut wrong = Table::new(&[
        "scatter",
        "machine",
        "called different",
        "by what may matter",
        "called equivalent",
    ]);
    let mut power =
        Table::new(&["scatter", "found at 5 %", "found at 10 %", "called worse at 5 %"]);
    let mut boundary = Table::new(&["scatter", "called equivalent at a true 5 %"]);
    let (mut false_ones, mut alike_ones) = (Vec::new(), Vec::new());
    for shapes in pairs() {
        for machine in Machine::ALL {
            let same = told(shapes, 1.0, machine, runs);
            false_ones.push(same.different);
            wrong.rows.push(vec![
                named(shapes),
                machine.name().to_owned(),
                percent(same.different),
                percent(same.matters),
                percent(same.equivalent),
            ]);
        }
        let five = told(shapes, 1.05, Machine::Still, runs);
        let ten = told(shapes, 1.10, Machine::Still, runs);
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
        title: "Verdicts on two cells, end to end",
        intro: "Two cells of a run of six under the standard profile: random order within blocks, \
                the stop rule for each, then the verdict at δ = 5 %. First without a difference, \
                then with the second better by 5 and by 10 %. A difference of exactly δ is at the \
                boundary of what counts as equivalent, where the verdict *equivalent* is wrong by \
                definition."
            .into(),
        tables: vec![wrong, power, boundary],
    }
}

/// The part of runs in which some pair of equal cells is told apart, and in which one of them
/// becomes the only winner.
pub(crate) fn family(cells: usize, runs: u32) -> (f64, f64) {
    let cells = vec![Cell { rate: 100.0, shape: Shape::Normal(0.05) }; cells];
    let all = times(runs, |rng| {
        let trials = run(rng, &cells, Machine::Still, Repeats::Fixed(8));
        let lists: Vec<Vec<f64>> = trials.iter().map(|trials| values(trials)).collect();
        let lists: Vec<&[f64]> = lists.iter().map(Vec::as_slice).collect();
        let ranking =
            comparing(|comparer| ranks::rank(comparer, &lists, Better::Higher, FIVE).unwrap());
        (ranking.pairs.iter().any(ranks::Pair::separated), ranking.top.len() == 1)
    });
    let part = |of: fn(&(bool, bool)) -> bool| share(&all.iter().map(of).collect::<Vec<_>>());
    (part(|run| run.0), part(|run| run.1))
}

/// False differences when all of A runs before all of B, and in blocks.
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
        let trials = run(rng, &[Cell { rate: 1.0, shape }; 2], machine, Repeats::Fixed(n));
        differs(compare(&values(&trials[0]), &values(&trials[1])))
    });
    (share(&apart), share(&blocks))
}

pub(crate) fn families(runs: u32) -> Section {
    let mut table = Table::new(&["equal cells", "some pair told apart", "a single winner"]);
    let mut shares = Vec::new();
    for cells in [3, 5, 8] {
        let (pair, winner) = family(cells, runs);
        shares.push(pair);
        table.rows.push(vec![cells.to_string(), percent(pair), percent(winner)]);
    }
    table.held = held("Families with a false difference", &shares, 0.0, 0.06);
    let mut orders = Table::new(&["machine", "repeats", "all of A, then all of B", "blocks"]);
    for machine in [Machine::Drifts, Machine::Wanders] {
        for n in [8, 10] {
            let (apart, blocks) = order(Shape::Normal(0.02), machine, n, runs);
            let name = machine.name().to_owned();
            orders.rows.push(vec![name, n.to_string(), percent(apart), percent(blocks)]);
        }
    }
    Section {
        title: "Families and order",
        intro: "Equal cells with a scatter of 5 % and 8 repeats: how often Holm's correction lets \
                any pair be told apart, and how often one cell becomes the only winner. Then two \
                equal cells with a scatter of 2 % on a machine that does not stand still, measured \
                one after the other or in blocks: how often they are told apart."
            .into(),
        tables: vec![table, orders],
    }
}
