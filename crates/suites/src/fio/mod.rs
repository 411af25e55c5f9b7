//! Suite `fio`: jobs of fio.
//!
//! A job is text with sections. The suite is pure: the caller reads files, included files, and
//! variables, and passes their text ([`expand`], [`parse`]). The canonical text of the job is the
//! parameter `text`, so equal jobs have equal cell IDs on all hosts. The table [`OPTIONS`] defines
//! all options. The parser, the reference page, and the completeness test use it.

mod calls;
mod check;
mod content;
mod files;
mod groups;
mod job;
mod lists;
mod mistakes;
mod names;
mod options;
mod order;
mod pace;
mod parse;
mod phases;
mod reference;
mod steady;
mod syncs;
#[cfg(test)]
mod tests;
mod values;
mod verify;

use model::{
    Bytes, Phase, SuiteSpec, Value, WorkloadParameters,
    phase::{Role, Work},
    workload::{Kind, ParameterSpec, ValueError},
};

pub use files::JobFile;
pub use job::{Job, Section};
pub use mistakes::{Mistake, Mistakes};
pub use options::{FioOption, Handling, OPTIONS};
pub use parse::{Changes, Included, KEYWORDS, Line, MOST_BYTES, expand, of_arguments, parse};
pub use reference::reference;
#[doc(hidden)]
pub use values::{Base, Read};

use crate::{
    Suite,
    load_generator::{self, GENERATOR, PROGRAM},
    parameter, stream,
};

/// Name of the suite.
pub const NAME: &str = "fio";

/// Definition of the suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

/// Parameter with the path of the job file.
pub const JOB: &str = "job";
/// Parameter with the text of the job.
pub const TEXT: &str = "text";
/// Parameter with the directory of the files.
pub const DIRECTORY: &str = "directory";

const EXAMPLE: &str = "[read]\nbs=4k\nrw=randread\nsize=64m\n";

const PATH: Kind = Kind::Text { takes: "the path of a job file", read: text };
const JOB_TEXT: Kind = Kind::Text { takes: "a job of fio", read: text };
const CHANGE: Kind = Kind::Text { takes: "an option such as \"bs=8k\"", read: text };
const LIST: Kind = Kind::Text { takes: "names separated by blanks or commas", read: text };
const MAP: Kind = Kind::Text { takes: "DEVICE=FILE:SIZE, separated by commas", read: text };
const PLACE: Kind = Kind::Text { takes: "an absolute path, or an empty text", read: text };

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter(JOB, PATH, "", "Job file, relative to the current directory. Cells keep its name without the directory."),
    parameter(TEXT, JOB_TEXT, EXAMPLE, "Text of the job, instead of a file. Cells have it in canonical form."),
    parameter("set", CHANGE, "", "Options that replace those of all sections, separated by blanks."),
    parameter("drop", LIST, "", "Options to leave out."),
    parameter("map", MAP, "", "Files in the place of devices."),
    parameter("section", LIST, "", "Sections to run; empty: all."),
    parameter(DIRECTORY, PLACE, "", "Directory of the files, for measurements in a directory. Empty: the directory of the trial; names then lose their directories."),
    GENERATOR,
    PROGRAM,
];

const SPEC: SuiteSpec = SuiteSpec {
    name: NAME,
    title: "Jobs of fio: sections of block I/O, one after the other or at the same time.",
    source: "job files of fio 3.33 and 3.42, with the same meaning",
    notes: include_str!("notes.md"),
    clients: None,
    parameters: PARAMETERS,
};

#[expect(clippy::unnecessary_wraps, reason = "same signature as other readers")]
fn text(text: &str) -> Result<String, ValueError> {
    Ok(text.to_owned())
}

fn list(text: &str) -> Vec<String> {
    let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

/// Changes that the parameters of a workload of this suite request.
pub fn changes(point: &WorkloadParameters) -> Changes {
    Changes {
        variables: Default::default(),
        set: point.text("set").split_whitespace().map(str::to_owned).collect(),
        drop: list(point.text("drop")),
        map: list(point.text("map")),
        section: list(point.text("section")),
        directory: point.text(DIRECTORY).to_owned(),
        size_of: None,
    }
}

/// Job of a workload of this suite.
///
/// # Errors
/// [`Mistakes`] of its text.
pub fn job(point: &WorkloadParameters) -> Result<Job, Mistakes> {
    let refuse = |_: &str, _: &str| Err("the text of a plan cannot include files".to_owned());
    let lines = expand("text", point.text(TEXT), &mut { refuse })?;
    parse(&lines, &changes(point))
}

/// Workload of this suite with a job in canonical form.
pub fn with_job(point: &WorkloadParameters, job: &Job) -> WorkloadParameters {
    let mut point = point.clone();
    point.parameters.insert(TEXT.into(), Value::Text(job.text()));
    let name = point.text(JOB).rsplit('/').next().unwrap_or_default().to_owned();
    point.parameters.insert(JOB.into(), Value::Text(name));
    point
}

fn refine(point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    let directory = point.text(DIRECTORY);
    if !directory.is_empty() && !directory.starts_with('/') {
        return Err(ValueError::new(format!("`{directory}` is not an absolute path"))
            .hint("use an absolute path, or remove `directory`"));
    }
    let job = job(&point).map_err(|mistakes| ValueError::new(mistakes.to_string()))?;
    let mut point = with_job(&point, &job);
    match load_generator::is_fio(&point) {
        true => check_fio(&job)?,
        false => point.reset(&SPEC.defaults(), &[PROGRAM.name]),
    }
    Ok(vec![point])
}

/// Checks that fio can perform the job with comparable results.
fn check_fio(job: &Job) -> Result<(), ValueError> {
    if job.sections.len() > 1 {
        let message = "fio as the load generator performs one section";
        return Err(ValueError::new(message).hint("set `section` to its name"));
    }
    if job.sections.iter().any(|section| section.sharing().several().is_some()) {
        let message = "fio as the load generator has one file per worker";
        return Err(ValueError::new(message).hint("use one file, or the load generator fslab"));
    }
    if job.sections.iter().any(Section::verifies) {
        let message = "fio as the load generator does not know the headers of verified blocks";
        return Err(ValueError::new(message).hint("leave out `verify` with `drop`"));
    }
    let phases = phases::phases(job, 0);
    match phases.iter().find_map(load_generator::incomparable) {
        Some(reason) => Err(ValueError::new(format!("fio cannot be compared: {reason}"))
            .hint("leave out `end_fsync` with `drop`")),
        None => Ok(()),
    }
}

fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    let Ok(job) = job(point) else { return Vec::new() };
    let mut phases = phases::phases(&job, seed);
    if let (true, [section]) = (load_generator::is_fio(point), &job.sections[..]) {
        let measured = phases.iter_mut().filter(|phase| phase.role == Role::Measure);
        measured.for_each(|phase| phase.work = fio_program(point, section, phase));
    }
    phases
}

/// Options that depend on the directory of the trial, or on the order of sections.
const REPLACED: [&str; 10] = [
    "directory",
    "filename",
    "filename_format",
    "unlink",
    "startdelay",
    "wait_for",
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
    "write_hist_log",
];

/// fio with the options of a section, as the work of a phase.
fn fio_program(point: &WorkloadParameters, section: &Section, phase: &Phase) -> Work {
    let Work::Stream(stream) = &phase.work else { return phase.work.clone() };
    let own = section.options().filter(|(name, _)| !REPLACED.contains(name));
    let own = own.map(|(name, value)| (name, value.to_owned()));
    let options = std::iter::once(stream::file_names(&stream.files)).chain(own);
    load_generator::program(point, phase, options)
}

/// Largest size of all files, each counted once.
fn footprint(point: &WorkloadParameters) -> Bytes {
    let Ok(job) = job(point) else { return Bytes(0) };
    let mut files: Vec<(files::Names, u64)> = Vec::new();
    for section in job.sections.iter().filter(|section| section.touches()) {
        let (names, size) = section.space();
        match files.iter_mut().find(|(own, _)| *own == names) {
            Some((_, own)) => *own = size.max(*own),
            None => files.push((names, size)),
        }
    }
    Bytes(files.iter().fold(0, |sum, (_, size)| sum.saturating_add(*size)))
}
