//! Chart kinds, as listed by `fslab list charts`.

/// Chart kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Total time by task.
    Totals,
    /// Time per file set, cold and warm.
    ClippedBars,
    /// Schedulers relative to a reference.
    Normalized,
    /// Ratio to the best of each test.
    Heatmap,
    /// Repetitions, medians, top group.
    Ranking,
    /// Latency by percentile.
    LatencyPercentiles,
    /// Distribution of operation times.
    LatencyDistribution,
    /// Rate during a test.
    RateOverTime,
    /// CPU time by consumer.
    CpuTime,
    /// Throughput by clients or workers.
    Scaling,
    /// Effect of a system setting.
    Settings,
    /// Metric by parameter.
    ParameterSweep,
}

impl Kind {
    /// All kinds in the order of a report.
    pub const ALL: &[Self] = &[
        Self::Totals,
        Self::ClippedBars,
        Self::Normalized,
        Self::Heatmap,
        Self::Ranking,
        Self::LatencyPercentiles,
        Self::LatencyDistribution,
        Self::RateOverTime,
        Self::CpuTime,
        Self::Scaling,
        Self::Settings,
        Self::ParameterSweep,
    ];

    /// Name in lists and file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Totals => "totals",
            Self::ClippedBars => "clipped-bars",
            Self::Normalized => "normalized",
            Self::Heatmap => "heatmap",
            Self::Ranking => "ranking",
            Self::LatencyPercentiles => "latency-percentiles",
            Self::LatencyDistribution => "latency-distribution",
            Self::RateOverTime => "rate-over-time",
            Self::CpuTime => "cpu-time",
            Self::Scaling => "scaling",
            Self::Settings => "settings",
            Self::ParameterSweep => "parameter-sweep",
        }
    }

    /// Content of the chart.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Totals => "total time by task",
            Self::ClippedBars => "time per file set, cold and warm",
            Self::Normalized => "schedulers relative to a reference",
            Self::Heatmap => "ratio to the best of each test",
            Self::Ranking => "repetitions, medians, top group",
            Self::LatencyPercentiles => "latency by percentile",
            Self::LatencyDistribution => "distribution of operation times",
            Self::RateOverTime => "rate during a test",
            Self::CpuTime => "CPU time by consumer",
            Self::Scaling => "throughput by clients or workers",
            Self::Settings => "effect of a system setting",
            Self::ParameterSweep => "metric by parameter",
        }
    }
}
