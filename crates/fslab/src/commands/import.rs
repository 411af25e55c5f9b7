//! `fslab import`: converts results of other benchmarks to a run file.
//!
//! [`report::imports`] recognizes and parses the formats; this module reads and writes files, and
//! names the configurations.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Read},
    path::{Path, PathBuf},
};

use anyhow::Context;
use model::{Nanos, RunRecord};
use regex_lite::Regex;
use report::imports::{self, HEAD, ImportError, Importer, Importing, Measurement};
use store::Store;
use sys::whole::Fresh;

use crate::{
    cli::Import,
    exit::{Exit, Failure},
    output,
    runner::now_unix,
};

/// File name for stdin.
const STDIN: &str = "-";

/// Results of one file.
struct Results {
    importer: &'static Importer,
    measurements: Vec<Measurement>,
}

pub(super) fn run(arguments: &Import) -> Result<Exit, Failure> {
    if let Some(root) = &arguments.root {
        let (file, bytes) = log_of(arguments)?;
        // A log has paths without symbolic links.
        let root = root.canonicalize().or_else(|_| std::path::absolute(root));
        let root = root.map_err(Failure::usage)?;
        return keep_log(arguments, file, trace::import_strace(&bytes, &root));
    }
    if let [file] = &arguments.files[..]
        && is_block_log(file)
    {
        let (file, bytes) = log_of(arguments)?;
        return keep_log(arguments, file, trace::import_block_log(&bytes));
    }
    let pattern = pattern(arguments)?;
    let mut all: Vec<Results> = Vec::new();
    let mut contents: HashMap<u64, &Path> = HashMap::new();
    for file in &arguments.files {
        let (importer, bytes) = read(file)?;
        if trace::is_strace(&bytes[..bytes.len().min(HEAD_OF_LOG)]) {
            return Err(Failure::usage(anyhow::anyhow!(
                "{} is a log of strace; add --root DIR, the directory of the operations to import",
                shown(file)
            )));
        }
        if let Some(same) = contents.insert(hash(&bytes), file) {
            return Err(Failure::usage(anyhow::anyhow!(
                "{} and {} have the same content; import each file once",
                shown(same),
                shown(file)
            )));
        }
        let measurements = importer.read(&bytes).map_err(|error| refused(file, &error))?;
        all.push(Results { importer, measurements });
    }
    check_programs(&all)?;
    for (results, file) in all.iter_mut().zip(&arguments.files) {
        let name = pattern.as_ref().map(|pattern| name(pattern, file)).transpose()?;
        for measurement in &mut results.measurements {
            measurement.fact("import.file", &shown(file));
            measurement.name = name.clone().or_else(|| measurement.name.take());
        }
    }
    if !arguments.names.is_empty() {
        assign(&mut all, &arguments.names)?;
    }
    let now = now_unix();
    let sources: Vec<String> = arguments.files.iter().map(|file| shown(file)).collect();
    let importing = Importing {
        id: format!("imported-{}-{:04x}", report::stamp(now), fastrand::u16(..)),
        source: &sources.join(", "),
        now,
        facts: arguments.state.clone(),
    };
    let measurements = all.into_iter().flat_map(|results| results.measurements).collect();
    let run = imports::assemble(measurements, importing);
    let path = place(arguments);
    keep(&path, &run, now)?;
    let count = match run.trials.len() {
        1 => "one record".to_owned(),
        several => format!("{several} records"),
    };
    output::message(&format!(
        "{count} of {} in {}; show with: fslab report {}",
        run.info.program,
        path.display(),
        path.display()
    ));
    Ok(Exit::Success)
}

/// Bytes by which a log of strace is recognized.
const HEAD_OF_LOG: usize = 8192;

/// Maximum size of a log.
const LARGEST_LOG: u64 = 4 << 30;

/// True if the file begins as a log of block I/O.
fn is_block_log(file: &Path) -> bool {
    let mut head = Vec::new();
    let read = match file.to_str() {
        // The whole input is read later.
        Some(STDIN) => return false,
        Some(_) | None => sys::input::open(file)
            .and_then(|file| file.take(HEAD_OF_LOG as u64).read_to_end(&mut head)),
    };
    read.is_ok() && trace::is_block_log(&head)
}

/// Log of which a recording is made, and its content.
fn log_of(arguments: &Import) -> Result<(&Path, Vec<u8>), Failure> {
    let [file] = &arguments.files[..] else {
        return Err(Failure::usage(anyhow::anyhow!(
            "a recording is made of one log; use one file"
        )));
    };
    super::record::check_new(&recording_of(arguments, file))?;
    let bytes = match file.to_str() {
        Some(STDIN) => sys::input::of(io::stdin().lock(), LARGEST_LOG),
        Some(_) | None => sys::input::bytes(file, LARGEST_LOG),
    };
    let bytes = bytes.with_context(|| format!("cannot read {}; check its path", shown(file)));
    Ok((file, bytes.map_err(Failure::usage)?))
}

/// Path of the recording of a log.
fn recording_of(arguments: &Import, log: &Path) -> PathBuf {
    arguments.output.clone().unwrap_or_else(|| match log.to_str() {
        Some(STDIN) => PathBuf::from("imported.fstrace"),
        Some(_) | None => log.with_extension("fstrace"),
    })
}

/// Writes the operations of a log as a recording.
fn keep_log(
    arguments: &Import,
    file: &Path,
    recording: Result<trace::Recording, trace::TraceError>,
) -> Result<Exit, Failure> {
    let path = recording_of(arguments, file);
    let recording = recording
        .map_err(|error| Failure::usage(anyhow::Error::from(error).context(shown(file))))?;
    let length = super::record::keep(&recording, &path)?;
    output::message(&super::record::report("imported", &recording, &path, length));
    Ok(Exit::Success)
}

/// Importer and content of a file, or of stdin.
fn read(file: &Path) -> Result<(&'static Importer, Vec<u8>), Failure> {
    let found = match file.to_str() {
        Some(STDIN) => recognized(io::stdin().lock()),
        Some(_) | None => sys::input::open(file).and_then(recognized),
    };
    let found = found.with_context(|| {
        format!("cannot read the records in {}; check the path and its permissions", shown(file))
    });
    found.map_err(Failure::usage)
}

/// Importer of a reader, by its first bytes, and its content up to the limit of the format.
fn recognized(mut reader: impl Read) -> io::Result<(&'static Importer, Vec<u8>)> {
    let mut head = Vec::new();
    reader.by_ref().take(HEAD).read_to_end(&mut head)?;
    let importer = imports::recognize(&head);
    let bytes = sys::input::of(head.as_slice().chain(reader), importer.longest)?;
    Ok((importer, bytes))
}

/// Hash by which equal contents are recognized.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

fn shown(file: &Path) -> String {
    if file == Path::new(STDIN) { "stdin".into() } else { file.display().to_string() }
}

/// Parse error of a file, with the supported formats if the file may have another one.
fn refused(file: &Path, error: &ImportError) -> Failure {
    let file = shown(file);
    if !error.is_of_format() {
        return Failure::usage(anyhow::anyhow!("{file}: {error}"));
    }
    let programs = imports::programs().join(", ");
    let known = format!(
        "{file}: unknown format; fslab imports results of {programs} (see `fslab import --help`)"
    );
    Failure::usage(match error.is_table() {
        true => anyhow::anyhow!("{known}; read as CSV of bonnie++, {error}"),
        false => anyhow::anyhow!("{known}"),
    })
}

/// Checks that all files are of one program, because numbers of several programs are not
/// repetitions of each other.
fn check_programs(all: &[Results]) -> Result<(), Failure> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for results in all {
        let program = results.importer.program;
        match counts.iter_mut().find(|(known, _)| *known == program) {
            Some((_, count)) => *count += 1,
            None => counts.push((program, 1)),
        }
    }
    if counts.len() < 2 {
        return Ok(());
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(program, count)| match count {
            1 => format!("1 file is of {program}"),
            several => format!("{several} files are of {program}"),
        })
        .collect();
    Err(Failure::usage(anyhow::anyhow!(
        "{}; import the results of each program to a separate run file",
        counts.join(", ")
    )))
}

/// Pattern of `--name-from`.
fn pattern(arguments: &Import) -> Result<Option<Regex>, Failure> {
    let Some(text) = &arguments.name_from else { return Ok(None) };
    let pattern = Regex::new(text).with_context(|| {
        format!("invalid pattern `{text}` in --name-from; use one such as '(?<name>ext4|xfs)'")
    });
    pattern.map(Some).map_err(Failure::usage)
}

/// Name of a configuration in the path of a file: the group `name`, the first group, or the match.
fn name(pattern: &Regex, file: &Path) -> Result<String, Failure> {
    let path = shown(file);
    let groups = pattern.captures(&path);
    let found = groups
        .as_ref()
        .and_then(|groups| groups.name("name").or_else(|| groups.get(1)).or_else(|| groups.get(0)));
    match found.map(|found| found.as_str()).filter(|name| !name.is_empty()) {
        Some(name) => Ok(name.to_owned()),
        None => Err(Failure::usage(anyhow::anyhow!(
            "the pattern of --name-from does not match {path}; change the pattern, or use --names"
        ))),
    }
}

/// Assigns the given names to files or records.
fn assign(all: &mut [Results], names: &[String]) -> Result<(), Failure> {
    let by_file = all.iter().all(|results| results.importer.is_one_configuration);
    let mut groups: Vec<&mut [Measurement]> = Vec::new();
    for results in all {
        match results.importer.is_one_configuration {
            true => groups.push(&mut results.measurements),
            false => groups.extend(results.measurements.chunks_mut(1)),
        }
    }
    let what = if by_file { "file" } else { "record" };
    if groups.len() != names.len() {
        return Err(Failure::usage(anyhow::anyhow!(
            "there are {} {what}s, but {} names; use --names with one name per {what}, in the order \
             of the {what}s",
            groups.len(),
            names.len()
        )));
    }
    for (group, name) in groups.into_iter().zip(names) {
        for measurement in group {
            measurement.name = Some(name.clone());
        }
    }
    Ok(())
}

/// Path of the run file: the given path, or a path next to the first file.
fn place(arguments: &Import) -> PathBuf {
    match (&arguments.output, arguments.files.first()) {
        (Some(path), _) => path.clone(),
        (None, Some(file)) if file != Path::new(STDIN) => file.with_extension("fslab"),
        (None, _) => PathBuf::from("imported.fslab"),
    }
}

/// Writes the run under a temporary name and renames it when it is complete.
fn keep(path: &Path, run: &RunRecord, now: Nanos) -> Result<(), Failure> {
    let there = || {
        Failure::usage(anyhow::anyhow!(
            "{} already exists; use another file with -o",
            path.display()
        ))
    };
    if path.symlink_metadata().is_ok() {
        return Err(there());
    }
    let making = || format!("creating {}", path.display());
    let part = Fresh::name(path).with_context(making)?;
    let mut store = Store::create(&part, &run.info, &run.cells, &run.environment, &run.warnings)?;
    let made = Fresh::adopt(part, path).with_context(making)?;
    for trial in &run.trials {
        store.trial(trial, None)?;
    }
    store.finish(now)?;
    match made.place_new() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(there()),
        placed => Ok(placed.map(drop).with_context(making)?),
    }
}
