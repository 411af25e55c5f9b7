//! Chart kinds, as listed by `fslab list charts`.

/// Defines the kinds in the order of a report: name in lists and file names, and content.
macro_rules! kinds {
    ($($kind:ident $name:literal $description:literal;)*) => {
        /// Chart kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $(#[doc = $description] $kind,)*
        }

        impl Kind {
            /// All kinds in the order of a report.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Name in lists and file names.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// Content of the chart.
            pub const fn description(self) -> &'static str {
                match self { $(Self::$kind => $description,)* }
            }
        }
    };
}

kinds! {
    Totals "totals" "total time by task";
    ClippedBars "clipped-bars" "time per file set, cold and warm";
    Normalized "normalized" "schedulers relative to a reference";
    Heatmap "heatmap" "ratio to the best of each test";
    Ranking "ranking" "repetitions, medians, top group";
    LatencyPercentiles "latency-percentiles" "latency by percentile";
    LatencyDistribution "latency-distribution" "distribution of operation times";
    RateOverTime "rate-over-time" "rate during a test";
    CpuTime "cpu-time" "CPU time by consumer";
    Scaling "scaling" "throughput by clients or workers";
    Settings "settings" "effect of a system setting";
    ParameterSweep "parameter-sweep" "metric by parameter";
}
