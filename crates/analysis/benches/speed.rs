//! Duration of the analysis of a large run: `cargo bench -p analysis --bench speed`.
//!
//! 1,000,000 values in 10,000 cells (1000 tests of 10 filesystems, 100 repetitions each) are
//! summarized, compared in all 45 pairs of each test, checked, and ranked with Holm's adjustment
//! and resampled ranks, by two threads. The program prints seconds and its peak memory. Target:
//! below 5 s and 300 MB on two idle cores. Seeds are fixed, so every run does the same work.
#![expect(clippy::print_stdout, reason = "its output is for people")]
#![expect(clippy::disallowed_methods, reason = "it measures what an analysis costs")]
#![expect(clippy::unwrap_used, reason = "a measurement that fails may stop")]

use std::time::Instant;

use analysis::{Comparer, Ranking, Repetition, Summary, ranks};
use fastrand::Rng;
use model::{Ratio, metric::Better};

const TESTS: usize = 1000;
const FILESYSTEMS: usize = 10;
const REPETITIONS: u32 = 100;

type Test = Vec<Vec<Repetition>>;

fn main() {
    let start = Instant::now();
    let mut rng = Rng::with_seed(1);
    let tests: Vec<Test> = (0..TESTS).map(|_| test(&mut rng)).collect();
    println!("{:6.2} s to make the data", start.elapsed().as_secs_f64());
    let (start, used) = (Instant::now(), cpu_seconds());
    let (left, right) = tests.split_at(TESTS / 2);
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let threads = [left, right].map(|half| scope.spawn(move || analyze(half)));
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (elapsed, used) = (start.elapsed().as_secs_f64(), cpu_seconds() - used);
    let summaries: usize = outcomes.iter().map(|outcome| outcome.summaries.len()).sum();
    let rankings = || outcomes.iter().flat_map(|outcome| &outcome.rankings);
    let comparisons: usize = rankings().map(|ranking| ranking.pairs.len()).sum();
    let winners = rankings().filter(|ranking| ranking.top.len() == 1).count();
    println!("{elapsed:6.2} s for {summaries} cells, {comparisons} comparisons, {TESTS} rankings");
    println!("{used:6.2} s of processor time; {winners} tests have a single winner");
    println!("{:6.0} MB of memory at most", status("VmHWM:") / 1024.0);
}

/// Ten filesystems that differ by a few percent, measured in rounds.
fn test(rng: &mut Rng) -> Test {
    let blocks: Vec<f64> = (0..REPETITIONS).map(|_| 1.0 + 0.01 * normal(rng)).collect();
    let cell = |rng: &mut Rng| {
        let (center, spread) = (1e5 * (1.0 + 0.05 * normal(rng)), 0.01 + 0.05 * rng.f64());
        let repetition = |(block, factor): (u32, &f64)| Repetition {
            block: Some(block),
            value: center * factor * (spread * normal(rng)).exp(),
        };
        (0..REPETITIONS).zip(&blocks).map(repetition).collect()
    };
    (0..FILESYSTEMS).map(|_| cell(rng)).collect()
}

struct Outcome {
    summaries: Vec<Summary>,
    rankings: Vec<Ranking>,
}

fn analyze(tests: &[Test]) -> Outcome {
    let mut comparer = Comparer::new();
    let mut outcome = Outcome { summaries: Vec::new(), rankings: Vec::new() };
    for test in tests {
        for cell in test {
            let values: Vec<f64> = cell.iter().map(|repetition| repetition.value).collect();
            outcome.summaries.push(Summary::new(&values).unwrap());
        }
        let cells: Vec<&[Repetition]> = test.iter().map(Vec::as_slice).collect();
        let ranking = ranks::rank_repetitions(&mut comparer, &cells, Better::Higher, Ratio(0.05));
        outcome.rankings.push(ranking.unwrap());
    }
    outcome
}

fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

/// Value in kB from `/proc/self/status`.
fn status(name: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// CPU time of the process in seconds, from fields 14 and 15 of `/proc/self/stat`
/// (proc_pid_stat(5)), which Linux reports in ticks of 10 ms.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, after_name) = text.rsplit_once(')').unwrap();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks.map(|field| field.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}
