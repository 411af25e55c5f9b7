//! Suite as a value, and rows of its parameter table.

use model::{
    Bytes, Phase, SuiteSpec, WorkloadParameters,
    workload::{Kind, ParameterSpec, ValueError},
};

/// Suite: parameter table and three pure functions.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// Name, source, and parameters.
    pub spec: &'static SuiteSpec,
    /// Checks parameters, and expands them if one selects an automatic sweep.
    pub refine: fn(WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError>,
    /// Phases of a trial with refined parameters; the seed is that of the written data.
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
