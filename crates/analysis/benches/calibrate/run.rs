//! A simulated run: cells in randomized blocks, closed by the stop rule, as the conductor does it.

use std::sync::Mutex;

use analysis::{Comparer, Decision, decide, trend::Repeat};
use fastrand::Rng;
use model::Profile;

use crate::shapes::{Clockwork, Machine, Shape};

/// One cell: its rate and how its trials scatter around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) rate: f64,
    pub(crate) shape: Shape,
}

/// How often cells are repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Repeats {
    /// By the stop rule of a profile, each cell until it is closed.
    Adaptive(Profile),
    /// Exactly as often.
    Fixed(u32),
}

/// The trials of each cell, by block.
pub(crate) fn run(
    rng: &mut Rng,
    cells: &[Cell],
    machine: Machine,
    repeats: Repeats,
) -> Vec<Vec<Repeat>> {
    let mut trials: Vec<Vec<Repeat>> = vec![Vec::new(); cells.len()];
    let mut open: Vec<usize> = (0..cells.len()).collect();
    let mut speed = Clockwork::new(machine, cells.len());
    for block in 0.. {
        open.retain(|cell| !enough(&trials[*cell], repeats));
        if open.is_empty() {
            break;
        }
        rng.shuffle(&mut open);
        for cell in &open {
            let Cell { rate, shape } = cells[*cell];
            let value = rate * shape.draw(rng) * speed.next(rng);
            trials[*cell].push(Repeat { block: Some(block), value });
        }
    }
    trials
}

fn enough(trials: &[Repeat], repeats: Repeats) -> bool {
    let (profile, fixed) = match repeats {
        Repeats::Adaptive(profile) => (profile, None),
        Repeats::Fixed(n) => (Profile::Standard, Some(n)),
    };
    let decision = decide(&[values(trials)], profile, fixed);
    matches!(decision, Decision::Enough { .. })
}

/// The values alone.
pub(crate) fn values(trials: &[Repeat]) -> Vec<f64> {
    trials.iter().map(|trial| trial.value).collect()
}

/// Does something so many times on all processors, each time with a generator of its own, whose
/// seed is the number of the time; the answers come in that order.
pub(crate) fn times<T: Send>(runs: u32, each: impl Fn(&mut Rng) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let part = |thread: usize| {
        let mine = (0..runs).skip(thread).step_by(threads);
        mine.map(|seed| each(&mut Rng::with_seed(u64::from(seed)))).collect::<Vec<T>>()
    };
    let mut parts: Vec<std::vec::IntoIter<T>> = std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || part(thread))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap().into_iter()).collect()
    });
    (0..runs as usize).filter_map(|run| parts[run % threads].next()).collect()
}

/// The part of answers that are true.
pub(crate) fn share(answers: &[bool]) -> f64 {
    answers.iter().filter(|answer| **answer).count() as f64 / answers.len() as f64
}

/// Comparers that are not in use; each keeps the tables it has made.
static COMPARERS: Mutex<Vec<Comparer>> = Mutex::new(Vec::new());

/// Does something with a comparer that may have its tables already.
pub(crate) fn comparing<T>(with: impl FnOnce(&mut Comparer) -> T) -> T {
    let kept = COMPARERS.lock().unwrap().pop();
    let mut comparer = kept.unwrap_or_default();
    let answer = with(&mut comparer);
    COMPARERS.lock().unwrap().push(comparer);
    answer
}
