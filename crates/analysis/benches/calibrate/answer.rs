//! How many trials an answer takes: the stop rule against a fixed number of repeats, with the
//! spreads that a study of 2009 has printed.

use analysis::{Decision, Summary, Verdict, decide, ranks};
use fastrand::Rng;
use model::{Profile, Ratio, metric::Better};

use crate::{
    page::{Section, Table, percent},
    run::{Repeats, comparing, times},
    shapes::normal,
};

/// Printed means and deviations of a study: 8 filesystems, 13 tests, 4 record sizes, 10 runs of
/// each ("IOzone Performance Exploration, Part 2", Linux Magazine, 2009; its tables 1 to 8).
const STUDY: &str = include_str!("../../../report/published/iozone-2009.csv");

/// Runs of each cell in the study.
const STUDY_RUNS: u32 = 10;

/// One cell of the study.
#[derive(Clone, Debug)]
struct Printed {
    filesystem: String,
    record: String,
    test: String,
    mean: f64,
    /// Standard deviation over the mean.
    spread: f64,
}

/// The 416 cells of tables 1 to 8; tables 9 to 12 repeat some of them.
fn study() -> Vec<Printed> {
    let mut cells: Vec<Printed> = Vec::new();
    for line in STUDY.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [table, filesystem, record, test, metric, value, ..] = fields[..] else {
            panic!("a line of six fields or more: {line}");
        };
        if table.parse::<u32>().unwrap() > 8 {
            continue;
        }
        let value: f64 = value.parse().unwrap();
        match metric {
            "throughput_mean" => cells.push(Printed {
                filesystem: filesystem.into(),
                record: record.into(),
                test: test.into(),
                mean: value,
                spread: 0.0,
            }),
            _ => {
                let last = cells.last_mut().unwrap();
                assert_eq!((&*last.filesystem, &*last.test), (filesystem, test));
                last.spread = value / last.mean;
            }
        }
    }
    cells
}

/// A value of one cell as a run would give it: log-normal with the printed spread.
fn draw(rng: &mut Rng, cell: &Printed) -> f64 {
    cell.mean * (cell.spread * normal(rng)).exp()
}

/// What one simulated repetition of the whole study came to.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    trials: f64,
    /// Cells known to ±3 %.
    known: f64,
    /// Claims of a single fastest filesystem, and wrong ones among them.
    claims: f64,
    wrong: f64,
    /// Pairs of filesystems put in an order, and wrongly.
    pairs: f64,
    wrong_pairs: f64,
}

/// How a study reads its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// The highest mean is the fastest, and means are in order.
    Means,
    /// By verdicts.
    Verdicts,
    /// Not at all: only how well cells are known.
    Widths,
}

/// One repetition of the study, test by test and record by record.
fn repetition(rng: &mut Rng, cells: &[Printed], repeats: Repeats, reading: Reading) -> Outcome {
    let mut outcome = Outcome::default();
    for family in families(cells) {
        let lists: Vec<Vec<f64>> = measured(rng, &family, repeats);
        outcome.trials += lists.iter().map(|list| list.len() as f64).sum::<f64>();
        let width = |list: &Vec<f64>| Summary::new(list).ok()?.half_width();
        outcome.known +=
            lists.iter().filter_map(width).filter(|width| *width <= Ratio(0.03)).count() as f64;
        let truth: Vec<f64> = family.iter().map(|cell| cell.mean).collect();
        match reading {
            Reading::Means => by_means(&lists, &truth, &mut outcome),
            Reading::Verdicts => by_verdicts(&lists, &truth, &mut outcome),
            Reading::Widths => {}
        }
    }
    outcome
}

/// The filesystems of each test and record size.
fn families(cells: &[Printed]) -> Vec<Vec<&Printed>> {
    let mut families: Vec<Vec<&Printed>> = Vec::new();
    for cell in cells {
        let same = |family: &&mut Vec<&Printed>| {
            family[0].test == cell.test && family[0].record == cell.record
        };
        match families.iter_mut().find(same) {
            Some(family) => family.push(cell),
            None => families.push(vec![cell]),
        }
    }
    families
}

fn measured(rng: &mut Rng, family: &[&Printed], repeats: Repeats) -> Vec<Vec<f64>> {
    let mut one = |cell: &&Printed| {
        let mut list = Vec::new();
        loop {
            let (profile, fixed) = match repeats {
                Repeats::Adaptive(profile) => (profile, None),
                Repeats::Fixed(n) => (Profile::Standard, Some(n)),
            };
            if let Decision::Enough { .. } = decide(std::slice::from_ref(&list), profile, fixed) {
                return list;
            }
            list.push(draw(rng, cell));
        }
    };
    family.iter().map(&mut one).collect()
}

fn by_means(lists: &[Vec<f64>], truth: &[f64], outcome: &mut Outcome) {
    let mean = |list: &Vec<f64>| list.iter().sum::<f64>() / list.len() as f64;
    let means: Vec<f64> = lists.iter().map(mean).collect();
    outcome.claims += 1.0;
    outcome.wrong += f64::from(u8::from(best(&means) != best(truth)));
    for one in 0..means.len() {
        for other in 0..one {
            outcome.pairs += 1.0;
            let wrong = (means[one] > means[other]) != (truth[one] > truth[other]);
            outcome.wrong_pairs += f64::from(u8::from(wrong));
        }
    }
}

fn by_verdicts(lists: &[Vec<f64>], truth: &[f64], outcome: &mut Outcome) {
    let lists: Vec<&[f64]> = lists.iter().map(Vec::as_slice).collect();
    let ranking =
        comparing(|comparer| ranks::rank(comparer, &lists, Better::Higher, Ratio(0.05)).unwrap());
    if let [winner] = ranking.top[..] {
        outcome.claims += 1.0;
        outcome.wrong += f64::from(u8::from(winner != best(truth)));
    }
    for pair in &ranking.pairs {
        if pair.separated() && matches!(pair.comparison.verdict, Verdict::Differs { .. }) {
            outcome.pairs += 1.0;
            outcome.wrong_pairs += f64::from(u8::from(truth[pair.better] < truth[pair.other]));
        }
    }
}

fn best(values: &[f64]) -> usize {
    (0..values.len()).max_by(|a, b| values[*a].total_cmp(&values[*b])).unwrap_or(0)
}

/// Means over repetitions of the study.
fn outcome(cells: &[Printed], repeats: Repeats, reading: Reading, runs: u32) -> Outcome {
    let all = times(runs, |rng| repetition(rng, cells, repeats, reading));
    let mean = |of: fn(&Outcome) -> f64| all.iter().map(of).sum::<f64>() / f64::from(runs);
    Outcome {
        trials: mean(|run| run.trials),
        known: mean(|run| run.known),
        claims: mean(|run| run.claims),
        wrong: mean(|run| run.wrong),
        pairs: mean(|run| run.pairs),
        wrong_pairs: mean(|run| run.wrong_pairs),
    }
}

/// What the stop rule saves.
fn conclusion(n: u32, told: Outcome, standard: Outcome) -> String {
    let sure = match told.known >= standard.known {
        true => format!("To be as sure of as many cells, a fixed number has to be {n} of each"),
        false => format!("Even {n} of each, the last look, is sure of fewer cells"),
    };
    format!(
        "{sure}: the standard profile makes {} of those trials, since it repeats the cells that \
         need it and no others. Asked was for at most 60 %.",
        percent(standard.trials / told.trials)
    )
}

pub(crate) fn section(runs: u32) -> Section {
    let cells = study();
    let runs = (runs / 20).max(1);
    let mut table = Table::new(&[
        "design",
        "trials",
        "of 10 each",
        "cells known to ±3 %",
        "called fastest",
        "wrongly",
        "pairs in order",
        "wrongly",
    ]);
    let fixed = f64::from(STUDY_RUNS) * cells.len() as f64;
    let count = |n: f64, read: f64| if read > 0.0 { format!("{n:.1}") } else { "-".into() };
    let mut row = |name: String, told: Outcome| {
        let of = |part: f64, all: f64| if all > 0.0 { percent(part / all) } else { "-".into() };
        table.rows.push(vec![
            name,
            format!("{:.0}", told.trials),
            percent(told.trials / fixed),
            percent(told.known / cells.len() as f64),
            count(told.claims, told.pairs),
            of(told.wrong, told.claims),
            count(told.pairs, told.pairs),
            of(told.wrong_pairs, told.pairs),
        ]);
    };
    let of = |repeats, reading| outcome(&cells, repeats, reading, runs);
    row("10 each, by means".into(), of(Repeats::Fixed(STUDY_RUNS), Reading::Means));
    row("10 each, by verdicts".into(), of(Repeats::Fixed(STUDY_RUNS), Reading::Verdicts));
    row("quick".into(), of(Repeats::Adaptive(Profile::Quick), Reading::Verdicts));
    let standard = of(Repeats::Adaptive(Profile::Standard), Reading::Verdicts);
    row("standard".into(), standard);
    // The fixed design that knows as many cells as well, or else the largest.
    let mut last = None;
    for n in Profile::Standard.looks().iter().filter(|n| **n > STUDY_RUNS) {
        let told = of(Repeats::Fixed(*n), Reading::Widths);
        row(format!("{n} each"), told);
        last = Some((*n, told));
        if told.known >= standard.known {
            break;
        }
    }
    table.held = last.map_or_else(String::new, |(n, told)| conclusion(n, told, standard));
    Section {
        title: "Time to an answer",
        intro: format!(
            "The means and standard deviations that a study of 2009 printed of {} cells (8 \
             filesystems, 13 tests, 4 record sizes, 10 runs each; \"IOzone Performance \
             Exploration, Part 2\", Linux Magazine) taken as the truth, with log-normal scatter, and \
             the study made {runs} times over: with 10 runs each and the highest mean called the \
             fastest, as the study reads them; with 10 runs each and our verdicts; and with the \
             stop rule of the profiles. Each cell is repeated on its own, as if a trial were one \
             test. *Called fastest* counts the {} families of 8 filesystems for which one was \
             named, \
             *pairs in order* the pairs of filesystems of which one was called better; *wrongly* \
             is the part of those in which the printed means say otherwise.",
            cells.len(),
            families(&cells).len()
        ),
        tables: vec![table],
    }
}
