//! Simulated run: cells in randomized rounds, closed by the stopping rule as in a measured run.

use std::sync::Mutex;

use analysis::{Comparer, Decision, decide, trend::Repetition};
use fastrand::Rng;
use model::Profile;

use crate::shapes::{Clockwork, Machine, Shape};

/// Rate of a cell, and distribution of its trials.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) rate: f64,
    pub(crate) shape: Shape,
}

/// Number of repetitions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Repetitions {
    /// By the stopping rule of a profile, each cell until it is closed.
    Adaptive(Profile),
    /// Fixed number.
    Fixed(u32),
}

/// Trials of each cell, by round.
pub(crate) fn run(
    rng: &mut Rng,
    cells: &[Cell],
    machine: Machine,
    repetitions: Repetitions,
) -> Vec<Vec<Repetition>> {
    let mut trials: Vec<Vec<Repetition>> = vec![Vec::new(); cells.len()];
    let mut open: Vec<usize> = (0..cells.len()).collect();
    let mut speed = Clockwork::new(machine, cells.len());
    for block in 0.. {
        open.retain(|cell| !enough(&trials[*cell], repetitions));
        if open.is_empty() {
            break;
        }
        rng.shuffle(&mut open);
        for cell in &open {
            let Cell { rate, shape } = cells[*cell];
            let value = rate * shape.draw(rng) * speed.next(rng);
            trials[*cell].push(Repetition { block: Some(block), value });
        }
    }
    trials
}

fn enough(trials: &[Repetition], repetitions: Repetitions) -> bool {
    let (profile, fixed) = match repetitions {
        Repetitions::Adaptive(profile) => (profile, None),
        Repetitions::Fixed(n) => (Profile::Standard, Some(n)),
    };
    let decision = decide(&[values(trials)], profile, fixed);
    matches!(decision, Decision::Enough { .. })
}

/// Values without their rounds.
pub(crate) fn values(trials: &[Repetition]) -> Vec<f64> {
    trials.iter().map(|trial| trial.value).collect()
}

/// Calls a function this many times, on up to 8 CPUs, each time with a random number generator
/// seeded by the index. The results are in the order of the index.
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

/// Fraction of true results.
pub(crate) fn share(answers: &[bool]) -> f64 {
    answers.iter().filter(|answer| **answer).count() as f64 / answers.len() as f64
}

/// Comparers that are not in use. Each one keeps its tables.
static COMPARERS: Mutex<Vec<Comparer>> = Mutex::new(Vec::new());

/// Calls a function with a comparer, which may have computed its tables before.
pub(crate) fn comparing<T>(with: impl FnOnce(&mut Comparer) -> T) -> T {
    let kept = COMPARERS.lock().unwrap().pop();
    let mut comparer = kept.unwrap_or_default();
    let answer = with(&mut comparer);
    COMPARERS.lock().unwrap().push(comparer);
    answer
}
