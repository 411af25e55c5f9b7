//! What the clock counts by which a plan is measured.

use std::fmt;

use crate::{environment::Environment, metric::Metric, metric::Unit};

/// What a nanosecond of the clock stands for where trials are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Time, or what a guest takes for it.
    #[default]
    Wall,
    /// Virtual time: one guest instruction a nanosecond, and a device that takes a chosen time for
    /// each request, over which the clock jumps while nothing else is to be done.
    Virtual,
    /// Guest instructions, one a nanosecond: the device answers at once.
    Instructions,
}

impl Clock {
    /// The fact of a run that tells it; absent of runs by the clock of the machine.
    pub const FACT: &str = "guest.clock";

    /// Its name as that fact has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Virtual => "virtual",
            Self::Instructions => "instructions",
        }
    }

    /// What a run was measured by, from its facts.
    pub fn of(facts: &Environment) -> Self {
        let named = facts.get(Self::FACT).unwrap_or_default();
        let known = [Self::Virtual, Self::Instructions];
        known.into_iter().find(|clock| clock.name() == named).unwrap_or_default()
    }

    /// The unit of what it shows.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Wall | Self::Virtual => Unit::Nanoseconds,
            Self::Instructions => Unit::Instructions,
        }
    }

    /// The metric as which a value of another is kept, unchanged but for its name: where
    /// instructions are counted a time is so many of them, a rate and a share of time are nothing,
    /// and what is no matter of time stays what it is.
    pub fn keeps(self, metric: Metric) -> Option<Metric> {
        match self {
            Self::Wall | Self::Virtual => Some(metric),
            Self::Instructions => metric.in_instructions(),
        }
    }

    /// The metric that a phase is judged by, whose metric by the clock of a machine is `usual`.
    pub fn judged(self, usual: Metric) -> Metric {
        match self {
            Self::Wall | Self::Virtual => usual,
            Self::Instructions if usual == Metric::DurableThroughput => {
                Metric::DurableInstructionsPerOp
            }
            Self::Instructions => usual.in_instructions().unwrap_or(Metric::InstructionsPerOp),
        }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric;

    #[test]
    fn where_instructions_are_counted_nothing_of_time_is_kept() {
        for row in metric::ALL {
            let kept = Clock::Instructions.keeps(row.metric).map(|metric| metric.spec());
            let timeless = |unit| {
                let times = [Unit::Nanoseconds, Unit::BytesPerSecond, Unit::OpsPerSecond];
                !times.contains(&unit) && unit != Unit::Hertz
            };
            assert!(kept.is_none_or(|kept| timeless(kept.unit)), "{}", row.name);
            let judged = Clock::Instructions.judged(row.metric).spec();
            assert!(timeless(judged.unit), "{}", row.name);
            assert_eq!(Clock::Wall.keeps(row.metric), Some(row.metric));
        }
        let shares = metric::ALL.iter().filter(|row| row.unit == Unit::Share);
        let kept = shares.filter_map(|row| Clock::Instructions.keeps(row.metric));
        assert_eq!(
            kept.map(Metric::name).collect::<Vec<_>>(),
            ["would_block_share", "cached_share"],
            "all other shares are of time"
        );
    }

    #[test]
    fn a_phase_is_judged_by_what_is_better_if_there_is_less_of_it() {
        let judged = |usual| Clock::Instructions.judged(usual).name();
        assert_eq!(judged(Metric::OpsRate), "instructions_per_op");
        assert_eq!(judged(Metric::Throughput), "instructions_per_op");
        assert_eq!(judged(Metric::DurableThroughput), "durable_instructions_per_op");
        assert_eq!(judged(Metric::Elapsed), "step_instructions");
        assert_eq!(Clock::Virtual.judged(Metric::OpsRate), Metric::OpsRate);
    }

    #[test]
    fn a_run_tells_its_clock() {
        let mut facts = Environment::default();
        assert_eq!(Clock::of(&facts), Clock::Wall);
        for clock in [Clock::Virtual, Clock::Instructions] {
            facts.set(Clock::FACT, clock.name());
            assert_eq!(Clock::of(&facts), clock);
        }
    }
}
