//! Clock of a run: time, virtual time, or guest instructions.

use std::fmt;

use crate::{environment::Environment, metric::Metric, metric::Unit};

/// Quantity that the clock of the trials counts in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Time, on the host or in a guest.
    #[default]
    Wall,
    /// Virtual time: one nanosecond per guest instruction, plus a simulated latency per device
    /// request. The clock skips this latency while the guest is idle.
    Virtual,
    /// Guest instructions, one per nanosecond; the device has no latency.
    Instructions,
}

impl Clock {
    /// Environment fact that states the clock of a run; absent for [`Self::Wall`].
    pub const FACT: &str = "guest.clock";

    /// Value of the environment fact.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Virtual => "virtual",
            Self::Instructions => "instructions",
        }
    }

    /// Clock of a run according to its facts.
    pub fn of(facts: &Environment) -> Self {
        let named = facts.get(Self::FACT).unwrap_or_default();
        let known = [Self::Virtual, Self::Instructions];
        known.into_iter().find(|clock| clock.name() == named).unwrap_or_default()
    }

    /// Unit of the clock.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Wall | Self::Virtual => Unit::Nanoseconds,
            Self::Instructions => Unit::Instructions,
        }
    }

    /// Metric under which a measured value of `metric` is stored; the value is not changed. If the
    /// clock counts guest instructions, a duration becomes an instruction count, and a metric that
    /// does not depend on time is unchanged. `None` for rates and fractions of time, which have no
    /// meaning then.
    pub fn convert_metric(self, metric: Metric) -> Option<Metric> {
        match self {
            Self::Wall | Self::Virtual => Some(metric),
            Self::Instructions => metric.in_instructions(),
        }
    }

    /// Primary metric of a phase whose primary metric in wall-clock time is `usual`.
    pub fn primary_metric(self, usual: Metric) -> Metric {
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
    fn instruction_clocks_have_no_time_metrics() {
        for row in metric::ALL {
            let kept = Clock::Instructions.convert_metric(row.metric).map(|metric| metric.spec());
            let timeless = |unit| {
                let times = [
                    Unit::Nanoseconds,
                    Unit::BytesPerSecond,
                    Unit::OpsPerSecond,
                    Unit::CommitsPerSecond,
                    Unit::DeliveriesPerSecond,
                ];
                !times.contains(&unit) && unit != Unit::Hertz
            };
            assert!(kept.is_none_or(|kept| timeless(kept.unit)), "{}", row.name);
            let judged = Clock::Instructions.primary_metric(row.metric).spec();
            assert!(timeless(judged.unit), "{}", row.name);
            assert_eq!(Clock::Wall.convert_metric(row.metric), Some(row.metric));
        }
        let shares = metric::ALL.iter().filter(|row| row.unit == Unit::Fraction);
        let kept = shares.filter_map(|row| Clock::Instructions.convert_metric(row.metric));
        assert_eq!(
            kept.map(Metric::name).collect::<Vec<_>>(),
            ["eagain_fraction", "cache_hit_ratio"],
            "all other shares are of time"
        );
    }

    #[test]
    fn primary_metrics_of_instruction_clocks_are_costs() {
        let judged = |usual| Clock::Instructions.primary_metric(usual).name();
        assert_eq!(judged(Metric::OpsRate), "instructions_per_op");
        assert_eq!(judged(Metric::CommitRate), "instructions_per_op");
        assert_eq!(judged(Metric::DeliveryRate), "instructions_per_op");
        assert_eq!(judged(Metric::Throughput), "instructions_per_op");
        assert_eq!(judged(Metric::DurableThroughput), "durable_instructions_per_op");
        assert_eq!(judged(Metric::Elapsed), "step_instructions");
        assert_eq!(Clock::Virtual.primary_metric(Metric::OpsRate), Metric::OpsRate);
    }

    #[test]
    fn clock_is_read_from_the_facts() {
        let mut facts = Environment::default();
        assert_eq!(Clock::of(&facts), Clock::Wall);
        for clock in [Clock::Virtual, Clock::Instructions] {
            facts.set(Clock::FACT, clock.name());
            assert_eq!(Clock::of(&facts), clock);
        }
    }
}
