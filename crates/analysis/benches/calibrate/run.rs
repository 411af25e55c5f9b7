//! Simulated run: cells in randomized blocks, closed by the stopping rule, as in the runner.

use std::sync::Mutex;

use analysis::{Comparer, Decision, decide, trend::Repetition};
use fastrand::Rng;
use model::Profile;

use crate::shapes::{Clockwork, Machine, Shape};

/// Cell: its rate and the scatter of its trials.
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

/// Trials of each cell, by block.
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

/// Values without blocks.
pub(crate) fn values(trials: &[Repetition]) -> Vec<f64> {
    trials.iter().map(|trial| trial.value).collect()
}

/// Runs a function this many times on all CPUs, each time with a separate generator seeded by the
/// index; the results are in that order.
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

/// Unused comparers; each keeps its tables.
static COMPARERS: Mutex<Vec<Comparer>> = Mutex::new(Vec::new());

/// Calls a function with a comparer that may have its tables already.
pub(crate) fn comparing<T>(with: impl FnOnce(&mut Comparer) -> T) -> T {
    let kept = COMPARERS.lock().unwrap().pop();
    let mut comparer = kept.unwrap_or_default();
    let answer = with(&mut comparer);
    COMPARERS.lock().unwrap().push(comparer);
    answer
}
