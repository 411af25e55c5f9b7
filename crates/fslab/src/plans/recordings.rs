//! Recordings of a plan: their absolute paths and hashes become part of the cells.

use std::path::Path;

use model::{Value, WorkloadParameters, phase::Work, workload::ValueError};

/// Replaces the path of a recording by the absolute path, and sets its hash. Other workloads are
/// not changed.
///
/// # Errors
/// If the recording is missing, cannot be read, or has another hash than the plan requires.
pub(super) fn resolve(point: &mut WorkloadParameters) -> Result<(), ValueError> {
    let Some(suite) = suites::find(&point.suite) else { return Ok(()) };
    let phases = (suite.phases)(point, 0);
    let Some(Work::Trace(replay)) = phases.first().map(|phase| &phase.work) else {
        return Ok(());
    };
    if replay.trace.is_empty() {
        return Err(ValueError::new("`trace` is not set").hint(
            "set it to a recording, which `fslab record -o FILE --root DIR -- PROGRAM` writes",
        ));
    }
    let path = Path::new(&replay.trace);
    let failed =
        |error: String| ValueError::new(format!("the recording {}: {error}", path.display()));
    let absolute = path.canonicalize().map_err(|error| failed(error.to_string()))?;
    let (bytes, digest) = trace::digest(&absolute).map_err(|error| failed(error.to_string()))?;
    if !replay.sha256.is_empty() && replay.sha256 != digest {
        return Err(failed(format!("its SHA-256 is {digest}")).hint("correct or remove `sha256`"));
    }
    trace::parse(&bytes).map_err(|error| failed(error.to_string()))?;
    let Some(absolute) = absolute.to_str() else {
        return Err(failed("the path is not UTF-8".to_owned()));
    };
    let parameters = [("trace", absolute), ("sha256", digest.as_str())];
    for (name, value) in parameters {
        point.parameters.insert(name.to_owned(), Value::Text(value.to_owned()));
    }
    Ok(())
}
