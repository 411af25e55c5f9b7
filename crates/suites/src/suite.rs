//! Definition of a suite as a value, and of the rows of its parameter table.

use model::{
    Bytes, Phase, SuiteSpec, WorkloadParameters,
    workload::{Kind, ParameterSpec, ValueError},
};

/// Suite: parameter table and three pure functions.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// Name, source, and parameters.
    pub spec: &'static SuiteSpec,
    /// Checks parameters. If they select an automatic sweep, expands them into several
    /// combinations.
    pub refine: fn(WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError>,
    /// Phases of a trial with refined parameters. The seed determines written data and random
    /// choices.
    pub phases: fn(&WorkloadParameters, u64) -> Vec<Phase>,
    /// Maximum space of the files of a trial.
    pub footprint: fn(&WorkloadParameters) -> Bytes,
}

/// Row of a parameter table.
pub(crate) const fn parameter(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    doc: &'static str,
) -> ParameterSpec {
    ParameterSpec { name, kind, default, doc }
}
