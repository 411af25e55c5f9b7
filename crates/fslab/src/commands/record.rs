//! `fslab record`: records the file operations of a program.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use model::units::plural;
use sys::whole::Fresh;
use trace::{Recorded, Recording, Settings, TraceError};

use crate::{
    cli::Record,
    exit::{Exit, Failure},
    output,
};

pub(super) fn run(arguments: &Record) -> Result<Exit, Failure> {
    let path = path(arguments);
    // Before the program runs.
    check_new(&path)?;
    let root = arguments.root.clone().unwrap_or_else(|| PathBuf::from("."));
    if root.canonicalize().is_ok_and(|root| root.parent().is_none()) {
        return Err(Failure::usage(anyhow!(
            "the root of the recording is /: each replay would create all files of this system \
             first; use --root DIRECTORY"
        )));
    }
    let settings = Settings {
        root,
        command: arguments.command.clone(),
        baseline: arguments.baseline,
        waiting: Some(report_waiting),
    };
    let Recorded { recording, status } = trace::record(&settings).map_err(|error| {
        let usage = matches!(error, TraceError::Program { .. } | TraceError::Root { .. });
        if usage { Failure::usage(error) } else { Failure::from(error) }
    })?;
    let length = keep(&recording, &path)?;
    output::message(&report("recorded", &recording, &path, length));
    Ok(Exit::Program(u8::try_from(status).unwrap_or(u8::MAX)))
}

fn exists(path: &Path) -> Failure {
    Failure::usage(anyhow!("{} already exists; use another file", path.display()))
}

/// Returns an error if the file exists.
pub(super) fn check_new(path: &Path) -> Result<(), Failure> {
    if path.symlink_metadata().is_ok() { Err(exists(path)) } else { Ok(()) }
}

/// Writes a new file with a recording, and returns its size.
pub(super) fn keep(recording: &Recording, path: &Path) -> Result<usize, Failure> {
    let bytes = trace::bytes(recording)?;
    let failed = |source| TraceError::File { path: path.to_owned(), source };
    let fresh = Fresh::beside(path, 0o666).map_err(failed)?;
    std::io::Write::write_all(&mut fresh.file(), &bytes).map_err(failed)?;
    match fresh.place_new() {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(exists(path)),
        placed => Ok(placed.map(|_| bytes.len()).map_err(failed)?),
    }
}

/// Message if processes still run when the program has ended.
fn report_waiting(count: usize) {
    output::message(&format!(
        "the program has ended; {count} of its processes still run and are recorded (Ctrl-C kills \
         them)"
    ));
}

/// Path of the recording: by default the name of the program, in the current directory.
fn path(arguments: &Record) -> PathBuf {
    arguments.output.clone().unwrap_or_else(|| {
        let program = arguments.command.first().map(Path::new).and_then(Path::file_name);
        let mut name = program.unwrap_or("program".as_ref()).to_owned();
        name.push(".fstrace");
        PathBuf::from(name)
    })
}

/// Message after a recording: its size, and warnings.
pub(super) fn report(done: &str, recording: &Recording, path: &Path, bytes: usize) -> String {
    let count = recording.operations();
    let size = report::bytes(model::Bytes(bytes as u64));
    let mut lines = vec![format!(
        "{done} {} into {} ({size})",
        plural(count as u64, "operation"),
        path.display()
    )];
    if count == 0 {
        let root = recording.facts.get("root").map_or("the root", String::as_str);
        lines.push(format!(
            "warning: no operation was below {root}; set --root to the directory that the program \
             uses"
        ));
    }
    let summary = trace::summary(recording);
    if summary.share.is_some() {
        lines.push(format!("file calls: {}", super::trace::share(&summary)));
    }
    lines.extend(super::trace::warnings(recording).iter().map(|text| format!("warning: {text}")));
    lines.join("\n")
}
