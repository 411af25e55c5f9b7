//! Comparisons: several programs do the same task in turn, and the results are rows of a table.

use crate::{
    page::{Row, summary},
    rate::Rate,
};

/// Function that measures once and returns a rate per item; `None` if a rate is not available.
pub(crate) type Measure<'a> = Box<dyn Fn() -> Vec<Option<Rate>> + Sync + 'a>;

/// Other program in a comparison: name, required ratio, and measurement.
pub(crate) type Contestant<'a> = (&'static str, Option<f64>, Measure<'a>);

/// Comparison of fslab with other programs in several items.
pub(crate) struct Contest<'a> {
    /// Operations that are compared.
    pub(crate) items: Vec<String>,
    /// Measurement of fslab.
    pub(crate) ours: Measure<'a>,
    /// Other programs.
    pub(crate) others: Vec<Contestant<'a>>,
}

/// Measurement of one item.
pub(crate) fn single<'a>(measure: impl Fn() -> Rate + Sync + 'a) -> Measure<'a> {
    Box::new(move || vec![Some(measure())])
}

/// Runs all programs in turn, starting with another one in each round. Returns the median cost of
/// an fslab operation per item in nanoseconds, and a row for each other program with a value in all
/// rounds.
pub(crate) fn rounds(contest: &Contest<'_>, rounds: usize) -> (Vec<f64>, Vec<Row>) {
    let contestants = contest.others.len() + 1;
    let mut reported = vec![Vec::new(); contestants];
    for round in 0..rounds {
        for turn in 0..contestants {
            let who = (round + turn) % contestants;
            let rates = match who {
                0 => (contest.ours)(),
                other => in_a_thread(&*contest.others[other - 1].2),
            };
            reported[who].push(rates);
        }
        eprint!(".");
    }
    let (mut costs, mut rows) = (Vec::new(), Vec::new());
    for (index, item) in contest.items.iter().enumerate() {
        let of = |who: usize| -> Option<Vec<Rate>> {
            reported[who].iter().map(|rates| rates.get(index).copied().flatten()).collect()
        };
        let Some(ours) = of(0) else { continue };
        costs.push(median(&ours));
        for (other, (name, least, _)) in contest.others.iter().enumerate() {
            let Some(theirs) = of(other + 1) else {
                eprintln!(" {item} / {name}: not available");
                continue;
            };
            let pairs = ours.iter().zip(&theirs);
            let ratios: Vec<f64> = pairs.map(|(a, b)| a.per_second / b.per_second).collect();
            let text = ratios.iter().map(|r| format!("{r:.3}")).collect::<Vec<_>>().join(" ");
            eprintln!(" {item} / {name}: {text}");
            let nanos = (median(&ours), median(&theirs));
            let (item, least) = (item.clone(), *least);
            rows.push(Row { item, other: (*name).to_owned(), ratios, nanos, least });
        }
    }
    (costs, rows)
}

fn median(rates: &[Rate]) -> f64 {
    summary(&rates.iter().map(|rate| rate.nanos()).collect::<Vec<_>>()).median
}

/// Measures in a thread, as the workers of fslab run in threads. In a process with several threads,
/// each call takes a reference to the open file (`fdget` in fs/file.c).
fn in_a_thread(measure: &(dyn Fn() -> Vec<Option<Rate>> + Sync)) -> Vec<Option<Rate>> {
    std::thread::scope(|scope| scope.spawn(measure).join().expect("the loop runs"))
}
