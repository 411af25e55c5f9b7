//! Distributions of simulated trials, and effects of the machine.

use fastrand::Rng;

/// Distribution of the values of a cell relative to its rate. The median of every shape is at most
/// 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    /// Normal, with this standard deviation.
    Normal(f64),
    /// Normal on logarithms, with this standard deviation.
    LogNormal(f64),
    /// Four of five values around 1, the others 15 % below, each with a standard deviation of 1 %,
    /// as with two layouts of one filesystem.
    Bimodal,
    /// 1 minus an exponential variable of mean 4 %, as with stalls.
    LeftTail,
    /// Student's t with 3 degrees of freedom times 2 %, on logarithms: occasional extreme values in
    /// both directions.
    HeavyTail,
}

impl Shape {
    /// All shapes.
    pub(crate) const ALL: [Self; 8] = [
        Self::Normal(0.01),
        Self::Normal(0.02),
        Self::Normal(0.04),
        Self::Normal(0.06),
        Self::LogNormal(0.10),
        Self::Bimodal,
        Self::LeftTail,
        Self::HeavyTail,
    ];

    /// Name of the shape.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Normal(sd) => format!("normal {:.0} %", sd * 100.0),
            Self::LogNormal(sd) => format!("log-normal {:.0} %", sd * 100.0),
            Self::Bimodal => "bimodal".into(),
            Self::LeftTail => "left tail".into(),
            Self::HeavyTail => "heavy tail".into(),
        }
    }

    /// Draws one value.
    pub(crate) fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Self::Normal(sd) => 1.0 + sd * normal(rng),
            Self::LogNormal(sd) => (sd * normal(rng)).exp(),
            Self::Bimodal => {
                let mode = if rng.f64() < 0.2 { 0.85 } else { 1.0 };
                mode * (1.0 + 0.01 * normal(rng))
            }
            // The bound is reached once in 5e10 draws. It keeps the rate above zero.
            Self::LeftTail => (1.0 - 0.04 * exponential(rng)).max(0.01),
            Self::HeavyTail => {
                let squares: f64 = (0..3).map(|_| normal(rng).powi(2)).sum();
                (0.02 * normal(rng) / (squares / 3.0).sqrt()).clamp(-2.0, 2.0).exp()
            }
        }
    }

    /// True median.
    pub(crate) fn median(self) -> f64 {
        match self {
            Self::Normal(_) | Self::LogNormal(_) | Self::HeavyTail => 1.0,
            // 5/8 of the upper mode are above the median: z = -0.31864 (`scipy.stats.norm.ppf(3 /
            // 8)`). The lower mode is 15 of its standard deviations below and contributes nothing
            // there.
            Self::Bimodal => 1.0 - 0.01 * 0.318_639_363_964_375_1,
            Self::LeftTail => 1.0 - 0.04 * std::f64::consts::LN_2,
        }
    }
}

/// Standard normal value (Box and Muller).
pub(crate) fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos()
}

/// Exponential value with mean 1.
fn exponential(rng: &mut Rng) -> f64 {
    -(1.0 - rng.f64()).ln()
}

/// Effect of the machine on all cells over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    /// No effect.
    Still,
    /// The rate rises by 0.6 % of its initial value per round.
    Drifts,
    /// Random walk with a standard deviation of 3 % in ten rounds.
    Wanders,
}

impl Machine {
    /// All effects.
    pub(crate) const ALL: [Self; 3] = [Self::Still, Self::Drifts, Self::Wanders];

    /// Name of the effect.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Still => "stable",
            Self::Drifts => "drift of 6 % in ten rounds",
            Self::Wanders => "random walk, 3 % in ten rounds",
        }
    }
}

/// Speed of the machine from one trial to the next.
pub(crate) struct Clockwork {
    machine: Machine,
    cells: f64,
    trials: f64,
    walked: f64,
}

impl Clockwork {
    /// Speed for rounds of this many cells.
    pub(crate) fn new(machine: Machine, cells: usize) -> Self {
        Self { machine, cells: cells as f64, trials: 0.0, walked: 0.0 }
    }

    /// Factor of the next trial.
    pub(crate) fn next(&mut self, rng: &mut Rng) -> f64 {
        self.trials += 1.0;
        match self.machine {
            Machine::Still => 1.0,
            Machine::Drifts => 1.0 + 0.006 * self.trials / self.cells,
            Machine::Wanders => {
                self.walked += 0.03 / (10.0 * self.cells).sqrt() * normal(rng);
                self.walked.exp()
            }
        }
    }
}
