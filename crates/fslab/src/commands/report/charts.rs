//! `fslab report --charts`: every figure of a report as SVG and PNG in one directory, with a list.
//!
//! The list, `charts.md`, says by its first line whose charts the directory holds. A directory
//! without such a line must be empty, one with the charts of another run is left alone, and in one
//! of the same run only what the list names is replaced. Each file is written beside its place and
//! then renamed, so that whoever looks sees the old one or the new one whole.

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

/// The list of the charts, in their directory.
const LIST: &str = "charts.md";

/// Bytes of the longest list.
const LONGEST: u64 = 16 << 20;

/// The first line of a list, before the run's id.
const MARK: &str = "<!-- charts of fslab run ";

/// Charts that are drawn at the same time; a picture takes up to some hundred megabytes.
const TOGETHER: usize = 2;

/// The second line of a list as long as charts are being written.
const UNFINISHED: &str = "<!-- unfinished -->";

/// Writes all charts of a run, by its id, or of published results, by their name, into a directory,
/// which is made if it is not there.
///
/// # Errors
/// When the directory holds other files than charts of this run, or cannot be written.
pub(in crate::commands) fn write(
    of: &str,
    charts: impl Iterator<Item = Chart>,
    directory: &Path,
) -> Result<(), Failure> {
    let shown = directory.display();
    fs::create_dir_all(directory).with_context(|| format!("making the directory {shown}"))?;
    let mark = format!("{MARK}{of} -->");
    let old = ours(directory, &mark)?;
    // From here on a directory that is left half written is known as ours.
    place(directory, LIST, format!("{mark}\n{UNFINISHED}\n").as_bytes())?;
    let mut list = format!("{mark}\n\n# Charts of {}\n\n", plain(of));
    list.push_str("| shows | kind | file | picture |\n|---|---|---|---|\n");
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
        list.push_str("\nThis run has nothing to draw.\n");
    }
    place(directory, LIST, list.as_bytes())?;
    let charts = new.iter().filter(|name| name.ends_with(".svg")).count();
    output::message(&format!("{charts} charts in {shown}, listed in {LIST}"));
    Ok(())
}

/// Draws a few charts, each in a thread of its own.
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

/// Writes one chart twice, and gives its row of the list.
fn one(
    chart: &Chart,
    picture: Result<Vec<u8>, PngError>,
    directory: &Path,
    old: &Ours,
    new: &mut BTreeSet<String>,
) -> Result<String, Failure> {
    let files = [format!("{}.svg", chart.name), format!("{}.png", chart.name)];
    for name in &files {
        let path = directory.join(name);
        if !old.may_replace(name) && path.symlink_metadata().is_ok() {
            return Err(Failure::usage(anyhow::anyhow!(
                "{} is none of the charts that {LIST} lists and would be overwritten; move it \
                 away, or name another directory with --charts",
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

/// What a directory holds of an earlier time.
struct Ours {
    /// Files that the list names.
    names: BTreeSet<String>,
    /// The list was never finished, so that every chart in the directory may be one of it.
    unfinished: bool,
}

impl Ours {
    fn may_replace(&self, name: &str) -> bool {
        self.unfinished || self.names.contains(name)
    }
}

/// Looks whose files a directory holds.
///
/// # Errors
/// When they are somebody else's, or of another run.
fn ours(directory: &Path, mark: &str) -> Result<Ours, Failure> {
    let shown = directory.display();
    let reading = || format!("reading the directory {shown}");
    let list = match sys::input::bytes(&directory.join(LIST), LONGEST) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(anyhow::Error::from(error).context(reading()).into()),
    };
    let Some(list) = list.filter(|list| list.starts_with(MARK)) else {
        if fs::read_dir(directory).with_context(reading)?.next().is_none() {
            return Ok(Ours { names: BTreeSet::new(), unfinished: false });
        }
        return Err(Failure::usage(anyhow::anyhow!(
            "{shown} holds files that are no charts of fslab; name a new or an empty directory \
             with --charts"
        )));
    };
    if list.lines().next() != Some(mark) {
        return Err(Failure::usage(anyhow::anyhow!(
            "{shown} holds the charts of another run; name another directory with --charts, or \
             remove it first"
        )));
    }
    let links = list.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    // A list can be edited; what it names must be a name of ours.
    let names = links.filter(|name| is_ours(name)).map(str::to_owned).collect();
    Ok(Ours { names, unfinished: list.lines().nth(1) == Some(UNFINISHED) })
}

/// Whether a name has the form of those we give, which leads out of no directory.
fn is_ours(name: &str) -> bool {
    let stem = name.strip_suffix(".svg").or_else(|| name.strip_suffix(".png"));
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    stem.is_some_and(|stem| !stem.is_empty() && stem.chars().all(letter))
}

/// Replaces a file of the directory, whole; a link under its name is replaced and not followed.
///
/// # Errors
/// When it cannot be written or renamed.
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

/// Removes a chart that the run has no more.
///
/// # Errors
/// When it is there and cannot be removed.
fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(anyhow::Error::from(error).context(format!("removing {}", path.display())).into())
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Text that stays text in a table of Markdown.
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
