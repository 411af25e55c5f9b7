//! The kinds of charts, as `fslab list charts` tells them.

/// A kind of chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All tests of a suite.
    HeatMap,
    /// Filesystems at one test.
    Ranking,
    /// Percentiles of the times of the operations of one test.
    Latency,
    /// Distributions of them.
    Distribution,
    /// The work of one test over time.
    Course,
    /// Who used the processors during one test.
    Processors,
    /// One test over a swept parameter.
    Sweep,
    /// One test over the number of clients.
    Scaling,
    /// One test under conditions that vary.
    Conditions,
    /// All tasks together.
    Totals,
    /// Seconds for sets of files.
    Capped,
    /// Schedulers against one configuration.
    Normalized,
}

impl Kind {
    /// All of them, in the order of a report.
    pub const ALL: &[Self] = &[
        Self::Totals,
        Self::Capped,
        Self::Normalized,
        Self::HeatMap,
        Self::Ranking,
        Self::Latency,
        Self::Distribution,
        Self::Course,
        Self::Processors,
        Self::Scaling,
        Self::Conditions,
        Self::Sweep,
    ];

    /// Its word: in lists, and in the names of files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HeatMap => "heat-map",
            Self::Ranking => "ranking",
            Self::Latency => "latency",
            Self::Distribution => "distribution",
            Self::Course => "course",
            Self::Processors => "processors",
            Self::Sweep => "sweep",
            Self::Scaling => "scaling",
            Self::Conditions => "conditions",
            Self::Totals => "totals",
            Self::Capped => "capped",
            Self::Normalized => "normalized",
        }
    }

    /// The question it answers, and how.
    pub const fn what(self) -> &'static str {
        match self {
            Self::HeatMap => {
                "who is how far from the best, over all tests of a suite: the ratio and the \
                 verdict in each cell, on a ramp that survives gray print"
            }
            Self::Ranking => {
                "which filesystem is best at a test: every repeat as a faint dot, median with 95 % \
                 interval, letters of those that were not told apart, the top group bracketed"
            }
            Self::Latency => {
                "how long operations took, and how much longer the slowest did: percentiles by the \
                 number of nines, with a band over the repeats"
            }
            Self::Distribution => {
                "how the times of operations are distributed: for each time the part that took at \
                 most as long"
            }
            Self::Course => {
                "whether a test ran evenly: its rate over time, median of the repeats with a band \
                 from least to most, a panel for each filesystem on the same axes"
            }
            Self::Processors => {
                "what a test costs the processors, and who used them: bars from zero cut into the \
                 workload, the kernel's threads by origin, and others, told by texture and letter"
            }
            Self::Sweep => {
                "how a test changes over a parameter: median with a band of 95 %, tested levels only"
            }
            Self::Scaling => {
                "how a test scales with clients: values, and multiples of the first level with the \
                 line of perfect scaling, the knee, and the law of scaling where it holds"
            }
            Self::Conditions => {
                "whether a setting of the machine matters, and alike for all: values, and ratios to \
                 the first setting with 95 % intervals"
            }
            Self::Totals => {
                "how long all tasks take together, and which of them: a bar from zero made of the \
                 tasks, with the 95 % interval of the total"
            }
            Self::Capped => {
                "how many seconds sets of files take, cold and warm: bars from zero, cut by a stated \
                 rule where one hides the others, every value written"
            }
            Self::Normalized => {
                "which I/O scheduler suits which filesystem: ratios to one named configuration with \
                 95 % intervals, on a logarithmic axis"
            }
        }
    }
}
