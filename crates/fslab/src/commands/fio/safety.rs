//! Checks of the files of a job before anything is changed: no devices, and no data of others.

use std::{fs, io, path::Path};

use suites::fio::{Job, JobFile};

use crate::exit::Failure;

/// Checks all files of a job. With `reuse`, files with other data may be overwritten.
///
/// # Errors
/// If a file is not regular, or would be overwritten without `reuse`.
pub(super) fn check(job: &Job, reuse: bool) -> Result<(), Failure> {
    job.files().iter().try_for_each(|file| one(file, reuse))
}

fn one(file: &JobFile, reuse: bool) -> Result<(), Failure> {
    let path = Path::new(&file.path);
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(wrong(format!("cannot examine {}: {error}", file.path))),
    };
    if !metadata.is_file() {
        return Err(wrong(format!(
            "{} is not a regular file, and jobs access regular files only; use another filename",
            file.path
        )));
    }
    let length = metadata.len();
    let is_changed = file.written || length < file.size.0;
    if !is_changed || reuse || length == 0 {
        return Ok(());
    }
    let own = engine::is_written_by_fslab(path, file.block);
    match own.map_err(|error| wrong(format!("cannot read {}: {error}", file.path)))? {
        true => Ok(()),
        false => Err(wrong(format!(
            "{} exists ({}) and was not written by fslab; --fslab-reuse lets the job overwrite it",
            file.path,
            report::bytes(model::Bytes(length))
        ))),
    }
}

fn wrong(message: String) -> Failure {
    Failure::usage(anyhow::Error::msg(message))
}
