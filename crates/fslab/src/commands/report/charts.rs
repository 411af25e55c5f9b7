//! `fslab report --charts`: exports all charts of a report as SVG and PNG to a directory, with a
//! list.
//!
//! The first line of the list, `charts.md`, identifies the run of the charts. A directory without
//! such a line must be empty. A directory with charts of another run is rejected. In a directory
//! with charts of the same run, only listed files are replaced. Each file is written under a
//! temporary name and renamed, so readers see complete files only.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    panic,
    path::Path,
    thread,
};

use anyhow::Context;
use report::export::{Chart, PIXELS_PER_UNIT, PngError};
use sys::whole::Fresh;

use crate::{exit::Failure, output};

/// List of the charts, in their directory.
const LIST: &str = "charts.md";

/// Maximum size of the list in bytes.
const LONGEST: u64 = 16 << 20;

/// First line of a list, before the run ID.
const MARK: &str = "<!-- charts of fslab run ";

/// Number of charts drawn concurrently. A PNG takes up to several hundred megabytes of memory.
const TOGETHER: usize = 2;

/// Second line of a list while charts are being written.
const UNFINISHED: &str = "<!-- unfinished -->";

/// Writes all charts of a run (`of`: its ID) or of published results (`of`: their name) to a
/// directory, which is created if necessary.
///
/// # Errors
/// If the directory contains files that are not charts of this run, or cannot be written.
pub(in crate::commands) fn write(
    of: &str,
    charts: impl Iterator<Item = Chart>,
    directory: &Path,
) -> Result<(), Failure> {
    let shown = directory.display();
    fs::create_dir_all(directory).with_context(|| {
        format!("cannot create the directory {shown}; use another path with --charts")
    })?;
    let mark = format!("{MARK}{of} -->");
    let old = ours(directory, &mark)?;
    // From here on, an incomplete directory is recognized as a directory of this run.
    place(directory, LIST, format!("{mark}\n{UNFINISHED}\n").as_bytes())?;
    let mut list = format!("{mark}\n\n# Charts of {}\n\n", plain(of));
    list.push_str("| title | kind | file | picture |\n|---|---|---|---|\n");
    let mut new = BTreeSet::new();
    let charts: Vec<Chart> = charts.collect();
    output::message(&format!("drawing {} charts into {shown}", charts.len()));
    for some in charts.chunks(TOGETHER) {
        for (chart, picture) in some.iter().zip(drawn(some)) {
            let row = one(chart, picture, directory, &old, &mut new)?;
            list.push_str(&row);
        }
    }
    for stale in old.names.difference(&new) {
        remove(&directory.join(stale))?;
    }
    if new.is_empty() {
        list.push_str("\nThis run has no charts.\n");
    }
    place(directory, LIST, list.as_bytes())?;
    let charts = new.iter().filter(|name| name.ends_with(".svg")).count();
    output::message(&format!("{charts} charts in {shown}, listed in {LIST}"));
    Ok(())
}

/// Draws several charts, each in its own thread.
fn drawn(charts: &[Chart]) -> Vec<Result<Vec<u8>, PngError>> {
    thread::scope(|scope| {
        let draw = |chart| scope.spawn(move || Chart::png(chart, PIXELS_PER_UNIT));
        let threads: Vec<_> = charts.iter().map(draw).collect();
        let result = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
        };
        threads.into_iter().map(result).collect()
    })
}

/// Writes one chart as SVG and PNG, and returns its row of the list.
fn one(
    chart: &Chart,
    picture: Result<Vec<u8>, PngError>,
    directory: &Path,
    old: &ExistingCharts,
    new: &mut BTreeSet<String>,
) -> Result<String, Failure> {
    let files = [format!("{}.svg", chart.name), format!("{}.png", chart.name)];
    for name in &files {
        let path = directory.join(name);
        if !old.may_replace(name) && path.symlink_metadata().is_ok() {
            return Err(Failure::usage(anyhow::anyhow!(
                "{} is not a chart listed in {LIST} and would be overwritten; move it, or use \
                 another directory with --charts",
                path.display()
            )));
        }
    }
    let [svg, png] = files;
    place(directory, &svg, chart.svg.as_bytes())?;
    let picture = match picture {
        Ok(bytes) => {
            place(directory, &png, &bytes)?;
            let link = format!("[{png}]({png})");
            new.insert(png);
            link
        }
        Err(error) => {
            let error = format!("{:#}", anyhow::Error::from(error));
            output::message(&format!("no {png}: {error}"));
            plain(&error)
        }
    };
    let mut row = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        row,
        "| {} | {} | [{svg}]({svg}) | {picture} |",
        plain(&chart.title),
        chart.kind.name()
    );
    new.insert(svg);
    Ok(row)
}

/// Charts of an earlier export in a directory.
struct ExistingCharts {
    /// Listed files.
    names: BTreeSet<String>,
    /// True if the list is incomplete, so that every chart in the directory may belong to the
    /// export.
    unfinished: bool,
}

impl ExistingCharts {
    fn may_replace(&self, name: &str) -> bool {
        self.unfinished || self.names.contains(name)
    }
}

/// Reads the list of a directory.
///
/// # Errors
/// If the files of the directory are not charts of fslab, or belong to another run.
fn ours(directory: &Path, mark: &str) -> Result<ExistingCharts, Failure> {
    let shown = directory.display();
    let reading = || format!("reading the directory {shown}");
    let list = match sys::input::bytes(&directory.join(LIST), LONGEST) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(anyhow::Error::from(error).context(reading()).into()),
    };
    let Some(list) = list.filter(|list| list.starts_with(MARK)) else {
        if fs::read_dir(directory).with_context(reading)?.next().is_none() {
            return Ok(ExistingCharts { names: BTreeSet::new(), unfinished: false });
        }
        return Err(Failure::usage(anyhow::anyhow!(
            "{shown} contains files that are not charts of fslab; use a new or empty directory \
             with --charts"
        )));
    };
    if list.lines().next() != Some(mark) {
        return Err(Failure::usage(anyhow::anyhow!(
            "{shown} contains the charts of another run; use another directory with --charts, or \
             remove it first"
        )));
    }
    let links = list.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    // A list can be edited, so its names are validated.
    let names = links.filter(|name| is_ours(name)).map(str::to_owned).collect();
    Ok(ExistingCharts { names, unfinished: list.lines().nth(1) == Some(UNFINISHED) })
}

/// Reports whether a name has the format of chart files, which contains no path separator.
fn is_ours(name: &str) -> bool {
    let stem = name.strip_suffix(".svg").or_else(|| name.strip_suffix(".png"));
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    stem.is_some_and(|stem| !stem.is_empty() && stem.chars().all(letter))
}

/// Replaces a file of the directory atomically. A link with the name of the file is replaced, not
/// followed.
///
/// # Errors
/// If the file cannot be written or renamed.
fn place(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    let path = directory.join(name);
    let fresh = Fresh::beside(&path, 0o666);
    let written = fresh.and_then(|fresh| {
        fresh.file().write_all(bytes)?;
        fresh.replace()
    });
    written.with_context(|| format!("writing {}", path.display()))?;
    Ok(())
}

/// Removes a chart that the run no longer has.
///
/// # Errors
/// If the file exists and cannot be removed.
fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(anyhow::Error::from(error).context(format!("removing {}", path.display())).into())
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Text escaped for a Markdown table.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => plain.push_str("&lt;"),
            '&' => plain.push_str("&amp;"),
            '\\' | '|' | '[' | ']' | '(' | ')' | '*' | '_' | '`' | '#' | '!' | '~' => {
                plain.extend(['\\', c]);
            }
            c if c.is_control() => plain.push(' '),
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests;
