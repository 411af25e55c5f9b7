//! Number of trials needed for a result: the stopping rule compared with a fixed number of
//! repetitions, with the spreads of a study published in 2009.

use analysis::{Decision, Summary, Verdict, decide, ranks};
use fastrand::Rng;
use model::{Profile, Ratio, metric::Better};

use crate::{
    page::{Section, Table, percent},
    run::{Repetitions, comparing, times},
    shapes::normal,
};

/// Printed means and deviations of a study: 8 filesystems, 13 tests, 4 record lengths, 10 runs of
/// each ("IOzone Performance Exploration, Part 2", Linux Magazine, 2009; tables 1 to 8).
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
    /// Standard deviation divided by the mean.
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

/// Simulated value of one cell: log-normal with the printed spread.
fn draw(rng: &mut Rng, cell: &Printed) -> f64 {
    cell.mean * (cell.spread * normal(rng)).exp()
}

/// Result of one simulated repetition of the whole study.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    trials: f64,
    /// Cells with a confidence interval of at most ±3 %.
    known: f64,
    /// Findings of a single fastest filesystem, and wrong ones among them.
    claims: f64,
    wrong: f64,
    /// Ordered pairs of filesystems, and wrongly ordered ones.
    pairs: f64,
    wrong_pairs: f64,
}

/// Method of evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// By means: the highest mean is the fastest, and each pair is ordered by its means.
    Means,
    /// By the tests of fslab.
    Verdicts,
    /// No evaluation, only the precision of the cells.
    Widths,
}

/// Simulates the study once, by test and record length.
fn repetition(
    rng: &mut Rng,
    cells: &[Printed],
    repetitions: Repetitions,
    reading: Reading,
) -> Outcome {
    let mut outcome = Outcome::default();
    for family in families(cells) {
        let lists: Vec<Vec<f64>> = measured(rng, &family, repetitions);
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

/// Cells of each test and record length.
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

fn measured(rng: &mut Rng, family: &[&Printed], repetitions: Repetitions) -> Vec<Vec<f64>> {
    let mut one = |cell: &&Printed| {
        let mut list = Vec::new();
        loop {
            let (profile, fixed) = match repetitions {
                Repetitions::Adaptive(profile) => (profile, None),
                Repetitions::Fixed(n) => (Profile::Standard, Some(n)),
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
        if pair.is_significant() && matches!(pair.comparison.verdict, Verdict::Differs { .. }) {
            outcome.pairs += 1.0;
            outcome.wrong_pairs += f64::from(u8::from(truth[pair.better] < truth[pair.other]));
        }
    }
}

fn best(values: &[f64]) -> usize {
    (0..values.len()).max_by(|a, b| values[*a].total_cmp(&values[*b])).unwrap_or(0)
}

/// Mean results of many simulations of the study.
fn outcome(cells: &[Printed], repetitions: Repetitions, reading: Reading, runs: u32) -> Outcome {
    let all = times(runs, |rng| repetition(rng, cells, repetitions, reading));
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

/// Sentences on the number of trials that the stopping rule saves.
fn conclusion(n: u32, found: Outcome, standard: Outcome) -> String {
    let sure = match found.known >= standard.known {
        true => format!(
            "With a fixed number of repetitions, {n} per cell are required to bring as many cells \
             within ±3 % as profile standard does."
        ),
        false => format!(
            "Even with {n} repetitions of each cell, fewer cells are within ±3 % than with \
             profile standard."
        ),
    };
    format!(
        "{sure} Profile standard runs {} of the trials of this design, because it repeats only the \
         cells that need more repetitions. At most 60 % is required.",
        percent(standard.trials / found.trials)
    )
}

pub(crate) fn section(runs: u32) -> Section {
    let cells = study();
    let runs = (runs / 20).max(1);
    let mut table = Table::new(&[
        "design",
        "trials",
        "of 10 each",
        "cells within ±3 %",
        "fastest",
        "wrong",
        "ordered pairs",
        "wrong",
    ]);
    let fixed = f64::from(STUDY_RUNS) * cells.len() as f64;
    let count = |n: f64, read: f64| if read > 0.0 { format!("{n:.1}") } else { "-".into() };
    let mut row = |name: String, found: Outcome| {
        let of = |part: f64, all: f64| if all > 0.0 { percent(part / all) } else { "-".into() };
        table.rows.push(vec![
            name,
            format!("{:.0}", found.trials),
            percent(found.trials / fixed),
            percent(found.known / cells.len() as f64),
            count(found.claims, found.pairs),
            of(found.wrong, found.claims),
            count(found.pairs, found.pairs),
            of(found.wrong_pairs, found.pairs),
        ]);
    };
    let of = |repetitions, reading| outcome(&cells, repetitions, reading, runs);
    row("10 each, by means".into(), of(Repetitions::Fixed(STUDY_RUNS), Reading::Means));
    row("10 each, by tests".into(), of(Repetitions::Fixed(STUDY_RUNS), Reading::Verdicts));
    row("quick".into(), of(Repetitions::Adaptive(Profile::Quick), Reading::Verdicts));
    let standard = of(Repetitions::Adaptive(Profile::Standard), Reading::Verdicts);
    row("standard".into(), standard);
    // Adds fixed designs until one has equal precision, or up to the maximum.
    let mut last = None;
    for n in Profile::Standard.interim_analyses().iter().filter(|n| **n > STUDY_RUNS) {
        let found = of(Repetitions::Fixed(*n), Reading::Widths);
        row(format!("{n} each"), found);
        last = Some((*n, found));
        if found.known >= standard.known {
            break;
        }
    }
    table.held = last.map_or_else(String::new, |(n, found)| conclusion(n, found, standard));
    Section {
        title: "Efficiency of the stopping rule",
        intro: format!(
            "This section shows how many trials the stopping rule saves. The simulation takes the \
             printed means and standard deviations of a study of 2009 as true values: {} cells, \
             from 8 filesystems, 13 tests, and 4 record sizes (10 runs each; \"IOzone Performance \
             Exploration, Part 2\", Linux Magazine). The data are log-normal. Each cell is \
             repeated separately, as if a trial had one test only. Each design is simulated {runs} \
             times:\n\n\
             *10 each, by means*: 10 repetitions of each cell, and the filesystem with the highest \
             mean is the fastest, as in the study. *10 each, by tests*: 10 repetitions and the \
             tests of fslab. *quick* and *standard*: the stopping rule of the profile, and the \
             tests of fslab. *N each*: N repetitions, without tests.\n\n\
             The columns are means over the simulations. *Of 10 each*: trials relative to 10 \
             repetitions of each cell. *Cells within ±3 %*: cells with a confidence interval of at \
             most this half-width. *Fastest*: number of the {} families (8 filesystems in one test \
             at one record size) in which one filesystem is called the fastest. *Ordered pairs*: \
             pairs of filesystems of which one is called better. *Wrong*: fraction of the results \
             in the preceding column that contradict the printed means.",
            cells.len(),
            families(&cells).len()
        ),
        tables: vec![table],
    }
}
