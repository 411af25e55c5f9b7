//! Error rates of the methods for scaling and for factors, and what they cost:
//! `cargo bench -p analysis --bench calibrate`. Takes some minutes; `-- costs` (or `flat`,
//! `intervals`, `factors`) does that part alone. Seeds are fixed, so the rates are the same each
//! time; the figures stand in docs/method/statistics.md.
#![expect(clippy::print_stdout, reason = "its output is for people")]
#![expect(clippy::disallowed_methods, reason = "it measures what an analysis costs")]
#![expect(clippy::unwrap_used, reason = "a simulation that fails may stop")]

use std::time::Instant;

use analysis::{
    Comparer,
    factorial::{self, Factor, Observation, Source},
    scaling::{Course, Curve, Fit, Law, Level},
    trend::Repeat,
};
use fastrand::Rng;
use model::{Ratio, metric::Better};

const FIVE: Ratio = Ratio(0.05);
/// Runs behind each rate; its standard error at 95 % is 1.3 points.
const RUNS: u32 = 300;

fn main() {
    let parts: [(&str, fn()); 4] =
        [("costs", costs), ("flat", flat_curves), ("intervals", intervals), ("factors", factors)];
    let named: Vec<String> = std::env::args().collect();
    let any = parts.iter().any(|(name, _)| named.iter().any(|other| other == name));
    for (name, part) in parts {
        if !any || named.iter().any(|other| other == name) {
            part();
        }
    }
}

fn say(what: &str, hits: u32) {
    println!("{:5.1} %  {what}", 100.0 * f64::from(hits) / f64::from(RUNS));
}

/// How trials scatter: a factor around 1.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Normal(f64),
    Bimodal,
    LeftTail,
}

impl Shape {
    const ALL: [Self; 4] = [Self::Normal(0.02), Self::Normal(0.06), Self::Bimodal, Self::LeftTail];

    fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Self::Normal(sd) => 1.0 + sd * normal(rng),
            Self::Bimodal => {
                let mode = if rng.f64() < 0.2 { 0.85 } else { 1.0 };
                mode * (1.0 + 0.01 * normal(rng))
            }
            Self::LeftTail => 1.0 - 0.04 * -(1.0 - rng.f64()).ln(),
        }
    }
}

/// Box and Muller's.
fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos()
}

/// A curve over powers of two, with a drift of 6 % over the run.
fn curve(
    rng: &mut Rng,
    shape: Shape,
    levels: u32,
    repeats: u32,
    rate: impl Fn(f64) -> f64,
) -> Curve {
    let mut level = |at: u32| Level {
        clients: 1 << at,
        repeats: (0..repeats)
            .map(|block| {
                let drift = 1.0 + 0.06 * f64::from(block) / f64::from(repeats);
                let value = rate(f64::from(1u32 << at)) * drift * shape.draw(rng);
                Repeat { block: Some(block), value }
            })
            .collect(),
    };
    Curve::new((0..levels).map(&mut level).collect(), Better::Higher).unwrap()
}

fn law(sigma: f64, kappa: f64) -> Fit {
    Fit { law: Law::Universal, lambda: 100.0, sigma, kappa, squares: 0.0, aicc: 0.0 }
}

fn costs() {
    let mut rng = Rng::with_seed(1);
    let truth = law(0.05, 0.001);
    let curves: Vec<Curve> =
        (0..5).map(|_| curve(&mut rng, Shape::Normal(0.03), 8, 30, |n| truth.at(n))).collect();
    let start = Instant::now();
    let mut comparer = Comparer::new();
    for curve in &curves {
        std::hint::black_box(curve.scaling(&mut comparer, FIVE, 1).unwrap());
    }
    println!("scaling of 5 filesystems, 8 levels, 30 repeats: {:?}", start.elapsed());
    let start = Instant::now();
    for (at, one) in curves.iter().enumerate() {
        for other in &curves[..at] {
            std::hint::black_box(Curve::efficiency_differences(other, one, 1));
        }
    }
    println!("differences of their efficiency, 10 pairs: {:?}", start.elapsed());
    let (factors, observations) = crossed(&mut rng, &[5, 8], 30, 0.03, [0.5, 0.2, 0.1]);
    let start = Instant::now();
    std::hint::black_box(factorial::analyze(&factors, &observations, 1).unwrap());
    println!("their two factors: {:?}", start.elapsed());
    let (factors, observations) = crossed(&mut rng, &[5, 3, 2], 30, 0.03, [0.5, 0.2, 0.1]);
    let start = Instant::now();
    std::hint::black_box(factorial::analyze(&factors, &observations, 1).unwrap());
    println!("three factors of 5, 3, and 2 levels, 30 repeats: {:?}", start.elapsed());
}

/// Flat curves: what is said of rise, fall, and trend that are not there.
fn flat_curves() {
    println!("\nflat curves of 8 levels, 8 repeats, drift 6 %");
    for shape in Shape::ALL {
        let mut rng = Rng::with_seed(2);
        let mut comparer = Comparer::new();
        let (mut shown, mut flat, mut trend) = (0, 0, 0);
        for seed in 0..RUNS {
            let curve = curve(&mut rng, shape, 8, 8, |_| 100.0);
            let told = curve.scaling(&mut comparer, FIVE, u64::from(seed)).unwrap();
            match told.course {
                Ok(Course::Flat) => flat += 1,
                Ok(_) => shown += 1,
                Err(_) => {}
            }
            trend += u32::from(told.trend.unwrap().p <= 0.05);
        }
        say(&format!("rise or fall told, {shape:?}"), shown);
        say(&format!("flat told, {shape:?}"), flat);
        say(&format!("trend at 5 %, {shape:?}"), trend);
    }
}

/// How often 95 % intervals hold the truth.
fn intervals() {
    let truth = law(0.05, 0.001);
    let peak = (0.95f64 / 0.001).sqrt();
    for repeats in [8, 20] {
        println!(
            "\nuniversal law with its peak at 31 of 128 clients, {repeats} repeats, drift 6 %"
        );
        for shape in Shape::ALL {
            let mut rng = Rng::with_seed(3);
            let mut comparer = Comparer::new();
            let mut hits = [0; 6];
            for seed in 0..RUNS {
                let one = curve(&mut rng, shape, 8, repeats, |n| truth.at(n));
                let other = curve(&mut rng, shape, 8, repeats, |n| truth.at(n));
                let told = one.scaling(&mut comparer, FIVE, u64::from(seed)).unwrap();
                let efficiency = told.points[5].efficiency.unwrap().interval.unwrap();
                let difference =
                    Curve::efficiency_differences(&one, &other, 1)[5].interval.unwrap();
                let laws = told.laws.unwrap();
                hits[0] += u32::from(efficiency.contains(truth.at(32.0) / 3200.0));
                hits[1] += u32::from(difference.contains(0.0));
                hits[2] += u32::from(laws.sigma.unwrap().contains(0.05));
                hits[3] += u32::from(laws.kappa.unwrap().contains(0.001));
                hits[4] += u32::from(laws.peak.is_ok());
                hits[5] +=
                    u32::from(laws.peak.is_ok_and(|told| told.clients_interval.contains(peak)));
            }
            let what = ["E(32)", "difference of E(32)", "σ", "κ", "(peak told)", "peak"];
            for (what, hits) in what.into_iter().zip(hits) {
                say(&format!("{what}, {shape:?}"), hits);
            }
        }
    }
}

/// A crossed run; effects are the sizes of the first factor, the second, and their interaction.
fn crossed(
    rng: &mut Rng,
    levels: &[usize],
    blocks: u32,
    sd: f64,
    [first, second, both]: [f64; 3],
) -> (Vec<Factor>, Vec<Observation>) {
    let factor = |levels: &usize| Factor {
        name: "factor".to_owned(),
        levels: (0..*levels).map(|level| level.to_string()).collect(),
    };
    let mut observations = Vec::new();
    for block in 0..blocks {
        let mut place = vec![0; levels.len()];
        loop {
            let of = |at: usize| place[at] as f64 / (levels[at] - 1) as f64 - 0.5;
            let ln = first * of(0)
                + second * of(1)
                + both * 4.0 * of(0) * of(1)
                + 0.06 * f64::from(block) / f64::from(blocks)
                + sd * normal(rng);
            observations.push(Observation {
                levels: place.clone(),
                block: Some(block),
                value: ln.exp(),
            });
            let Some(at) = (0..levels.len()).find(|at| place[*at] + 1 < levels[*at]) else { break };
            place[at] += 1;
            place[..at].fill(0);
        }
    }
    (levels.iter().map(factor).collect(), observations)
}

fn factors() {
    let levels = [5, 3];
    for (what, effects) in [("no effects", [0.0; 3]), ("effects", [0.10, 0.05, 0.03])] {
        for blocks in [8, 20] {
            println!("\n{what} of 5 by 3 levels, error 4 %, {blocks} blocks, drift 6 %");
            let sources = [Source::Main(0), Source::Main(1), Source::Interaction(0, 1)];
            let truth = truth(&levels, effects, 0.04);
            let (mut hits, mut rejected) = ([0; 3], [0; 3]);
            let mut rng = Rng::with_seed(4);
            for seed in 0..RUNS {
                let (factors, observations) = crossed(&mut rng, &levels, blocks, 0.04, effects);
                let told = factorial::analyze(&factors, &observations, u64::from(seed)).unwrap();
                for (at, term) in told.terms.iter().enumerate() {
                    hits[at] += u32::from(term.interval.unwrap().contains(truth[at]));
                    rejected[at] += u32::from(term.p <= 0.05);
                }
            }
            for (at, source) in sources.iter().enumerate() {
                say(&format!("{source:?}: interval holds ω² = {:.3}", truth[at]), hits[at]);
                say(&format!("{source:?}: p at 5 %"), rejected[at]);
            }
        }
    }
}

/// The shares of variance that the effects have, for a drift of 6 % over many blocks.
fn truth(levels: &[usize; 2], [first, second, both]: [f64; 3], sd: f64) -> [f64; 3] {
    let variance = |levels: usize| {
        let places = (0..levels).map(|at| at as f64 / (levels - 1) as f64 - 0.5);
        places.map(|place| place * place).sum::<f64>() / levels as f64
    };
    let [a, b] = levels.map(variance);
    let own = [first * first * a, second * second * b, both * both * 16.0 * a * b];
    let all = own.iter().sum::<f64>() + sd * sd + 0.06 * 0.06 / 12.0;
    own.map(|own| own / all)
}
