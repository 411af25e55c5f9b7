//! Job files of fio: their canonical text becomes part of the cells.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    thread,
};

use model::{WorkloadParameters, workload::ValueError};
use suites::fio::{self, Included, Line, Mistakes};

/// Reads the job file of a workload of suite `fio`, with included files and variables. Other
/// workloads are not changed.
///
/// # Errors
/// If the file cannot be read, or the job has mistakes.
pub(super) fn resolve(point: WorkloadParameters) -> Result<WorkloadParameters, ValueError> {
    if point.suite != fio::NAME || point.text(fio::JOB).is_empty() {
        return Ok(point);
    }
    let path = point.text(fio::JOB);
    let changes = fio::Changes { variables: variables(), ..fio::changes(&point) };
    let wrong = |mistakes: Mistakes| ValueError::new(mistakes.to_string());
    let lines = read(Path::new(path)).map_err(wrong)?;
    let job = fio::parse(&lines, &changes).map_err(wrong)?;
    Ok(fio::with_job(&point, &job))
}

/// Variables of the environment that are UTF-8, and the keywords of job files.
pub(crate) fn variables() -> BTreeMap<String, String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let memory = rustix::system::sysinfo();
    let megabytes = memory.totalram.saturating_mul(u64::from(memory.mem_unit)) >> 20;
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let values = [rustix::param::page_size().to_string(), megabytes.to_string(), cpus.to_string()];
    let keywords = fio::KEYWORDS.into_iter().map(str::to_owned).zip(values);
    env::vars_os().filter_map(text).chain(keywords).collect()
}

/// Lines of a job file and of the files that it includes, relative to the including file.
///
/// # Errors
/// [`Mistakes`] if a file cannot be read or is too large.
pub(crate) fn read(path: &Path) -> Result<Vec<Line>, Mistakes> {
    let name = path.display().to_string();
    let text = content(path)
        .map_err(|reason| Mistakes::one(&name, 0, format!("cannot read the job file: {reason}")))?;
    let mut include = |above: &str, own: &str| -> Included {
        let directory = Path::new(above).parent().unwrap_or(Path::new(""));
        let path: PathBuf = directory.join(own);
        Ok((path.display().to_string(), content(&path)?))
    };
    fio::expand(&name, &text, &mut include)
}

fn content(path: &Path) -> Result<String, String> {
    sys::input::text(path, fio::MOST_BYTES as u64).map_err(|error| error.to_string())
}
