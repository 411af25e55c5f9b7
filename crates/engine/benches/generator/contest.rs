//! Contests: the same thing done by several, in turn, and the rows of the page that follow.

use crate::{
    page::{Row, summary},
    rate::Rate,
};

/// One measurement: a rate for each thing that the contest is about; none where the contestant does
/// not tell it.
pub(crate) type Measure<'a> = Box<dyn Fn() -> Vec<Option<Rate>> + Sync + 'a>;

/// A contestant: its name, the ratio to it that we ask of ourselves, and one measurement.
pub(crate) type Contestant<'a> = (&'static str, Option<f64>, Measure<'a>);

/// Things that all contestants do; the first of them is ours.
pub(crate) struct Contest<'a> {
    /// What is done.
    pub(crate) whats: Vec<String>,
    /// One measurement of ours.
    pub(crate) ours: Measure<'a>,
    /// Those that we are compared with.
    pub(crate) others: Vec<Contestant<'a>>,
}

/// A measurement of one thing.
pub(crate) fn single<'a>(measure: impl Fn() -> Rate + Sync + 'a) -> Measure<'a> {
    Box::new(move || vec![Some(measure())])
}

/// Everyone in turn, the first of a round by rotation: for each thing the median cost of our
/// operations in nanoseconds, and a row for each of the others who told it in all rounds.
pub(crate) fn rounds(contest: &Contest<'_>, rounds: usize) -> (Vec<f64>, Vec<Row>) {
    let contestants = contest.others.len() + 1;
    let mut told = vec![Vec::new(); contestants];
    for round in 0..rounds {
        for turn in 0..contestants {
            let who = (round + turn) % contestants;
            let rates = match who {
                0 => (contest.ours)(),
                other => in_a_thread(&*contest.others[other - 1].2),
            };
            told[who].push(rates);
        }
        eprint!(".");
    }
    let (mut costs, mut rows) = (Vec::new(), Vec::new());
    for (index, what) in contest.whats.iter().enumerate() {
        let of = |who: usize| -> Option<Vec<Rate>> {
            told[who].iter().map(|rates| rates.get(index).copied().flatten()).collect()
        };
        let Some(ours) = of(0) else { continue };
        costs.push(median(&ours));
        for (other, (name, least, _)) in contest.others.iter().enumerate() {
            let Some(theirs) = of(other + 1) else {
                eprintln!(" {what} / {name}: not told");
                continue;
            };
            let pairs = ours.iter().zip(&theirs);
            let ratios: Vec<f64> = pairs.map(|(a, b)| a.per_second / b.per_second).collect();
            let text = ratios.iter().map(|r| format!("{r:.3}")).collect::<Vec<_>>().join(" ");
            eprintln!(" {what} / {name}: {text}");
            let nanos = (median(&ours), median(&theirs));
            let (what, least) = (what.clone(), *least);
            rows.push(Row { what, other: (*name).to_owned(), ratios, nanos, least });
        }
    }
    (costs, rows)
}

fn median(rates: &[Rate]) -> f64 {
    summary(&rates.iter().map(|rate| rate.nanos()).collect::<Vec<_>>()).median
}

/// In a thread, as our workers are: a process with several threads pays for each call with a
/// counted reference to the open file (`fdget` in fs/file.c), which a lone thread is spared.
fn in_a_thread(measure: &(dyn Fn() -> Vec<Option<Rate>> + Sync)) -> Vec<Option<Rate>> {
    std::thread::scope(|scope| scope.spawn(measure).join().expect("the loop runs"))
}
