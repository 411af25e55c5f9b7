//! Outputs of one call of `fslab report`, and their targets.
//!
//! Input: arguments. Output: the list of outputs, or a usage error before anything is read or
//! written.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use clap::ValueEnum;

use super::{apart, same};
use crate::{
    cli::{Format, Report},
    exit::Failure,
};

/// Target of an output.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) enum To {
    /// stdout.
    Stdout,
    /// A file.
    File(PathBuf),
}

/// All outputs of one call.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) struct Outputs {
    /// Output in a format, or tables for the terminal (no format), with its target. `None` if only
    /// HTML files or charts are requested.
    pub(in crate::commands) text: Option<(Option<Format>, To)>,
    /// HTML files.
    pub(in crate::commands) html: Vec<PathBuf>,
    /// Directory of charts.
    pub(in crate::commands) charts: Option<PathBuf>,
}

impl Outputs {
    /// Outputs that the arguments request. The default is tables on the terminal.
    ///
    /// # Errors
    /// If the format is unknown, a binary format would be written to a terminal, or two outputs
    /// have the same file.
    pub(in crate::commands) fn of(arguments: &Report) -> Result<Self, Failure> {
        let mut html: Vec<PathBuf> = arguments.html.iter().cloned().collect();
        let charts = arguments.charts.clone();
        let file = arguments.output.as_deref().filter(|path| *path != Path::new("-"));
        let text = match (arguments.format, file) {
            (Some(format), file) => Some((Some(format), file.map_or(To::Stdout, into_file))),
            (None, Some(file)) if is_html(file) => {
                html.push(file.to_owned());
                None
            }
            (None, Some(file)) => Some((Some(by_ending(file)?), into_file(file))),
            (None, None) if arguments.output.is_some() => return Err(unnamed(Path::new("-"))),
            (None, None) if html.is_empty() && charts.is_none() => Some((None, To::Stdout)),
            (None, None) => None,
        };
        let outputs = Self { text, html, charts };
        outputs.once()?;
        outputs.binary(io::stdout().is_terminal())?;
        Ok(outputs)
    }

    /// All files to write.
    fn files(&self) -> impl Iterator<Item = &Path> {
        let text = self.text.iter().filter_map(|(_, to)| match to {
            To::File(path) => Some(path.as_path()),
            To::Stdout => None,
        });
        text.chain(self.html.iter().map(PathBuf::as_path))
    }

    /// Rejects two outputs in one file.
    fn once(&self) -> Result<(), Failure> {
        let files: Vec<&Path> = self.files().collect();
        for (index, file) in files.iter().enumerate() {
            if files[..index].iter().any(|other| same(file, other)) {
                return Err(Failure::usage(anyhow::anyhow!(
                    "{} would be written twice; use one file per output",
                    file.display()
                )));
            }
        }
        Ok(())
    }

    /// Rejects binary output on a terminal.
    fn binary(&self, terminal: bool) -> Result<(), Failure> {
        match &self.text {
            Some((Some(format @ (Format::Xlsx | Format::Parquet)), To::Stdout)) if terminal => {
                let name = name(*format);
                Err(Failure::usage(anyhow::anyhow!(
                    "{name} is a binary format; write it to a file: -o FILE.{name}"
                )))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Rejects overwriting the run file.
    ///
    /// # Errors
    /// If an output is the run file.
    pub(super) fn apart_from(&self, run_file: &Path) -> Result<(), Failure> {
        self.files().try_for_each(|file| apart(file, run_file))
    }
}

fn into_file(path: &Path) -> To {
    To::File(path.to_owned())
}

fn ending(path: &Path) -> Option<String> {
    path.extension()?.to_str().map(str::to_lowercase)
}

fn is_html(path: &Path) -> bool {
    matches!(ending(path).as_deref(), Some("html" | "htm"))
}

/// Format that a file name extension selects.
fn by_ending(path: &Path) -> Result<Format, Failure> {
    match ending(path).as_deref() {
        Some("csv") => Ok(Format::Csv),
        Some("json") => Ok(Format::Json),
        Some("md" | "markdown") => Ok(Format::Md),
        Some("xlsx") => Ok(Format::Xlsx),
        Some("parquet") => Ok(Format::Parquet),
        Some("prom") => Ok(Format::Prometheus),
        Some(_) | None => Err(unnamed(path)),
    }
}

/// Error about an unknown format.
fn unnamed(path: &Path) -> Failure {
    let all: Vec<String> = Format::value_variants().iter().copied().map(name).collect();
    if path == Path::new("-") {
        return Failure::usage(anyhow::anyhow!(
            "unknown output format of stdout; remove -o for tables, or use --format {}",
            all.join(", ")
        ));
    }
    Failure::usage(anyhow::anyhow!(
        "unknown output format of {}; use --format {}, or the extension .csv, .json, .md, .xlsx, \
         .parquet, .prom, or .html",
        path.display(),
        all.join(", ")
    ))
}

/// Name of a format on the command line.
fn name(format: Format) -> String {
    format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(output: Option<&str>, format: Option<Format>) -> Report {
        Report {
            run: "run.fslab".into(),
            html: None,
            charts: None,
            output: output.map(PathBuf::from),
            format,
            detail: false,
        }
    }

    #[test]
    fn the_extension_determines_the_format() {
        for (file, format) in [
            ("a.csv", Format::Csv),
            ("a.b.JSON", Format::Json),
            ("dir.x/a.md", Format::Md),
            ("a.xlsx", Format::Xlsx),
            ("a.parquet", Format::Parquet),
            ("a.prom", Format::Prometheus),
        ] {
            let outputs = Outputs::of(&report(Some(file), None)).unwrap();
            assert_eq!(outputs.text, Some((Some(format), To::File(file.into()))), "{file}");
        }
        let named = Outputs::of(&report(Some("a.txt"), Some(Format::Csv))).unwrap();
        assert_eq!(named.text, Some((Some(Format::Csv), To::File("a.txt".into()))));
        let page = Outputs::of(&report(Some("a.html"), None)).unwrap();
        assert_eq!((page.text, page.html), (None, vec![PathBuf::from("a.html")]));
    }

    #[test]
    fn an_unknown_format_lists_all_formats() {
        for file in ["a", "a.txt", "-", "csv", ".csv"] {
            let refused = Outputs::of(&report(Some(file), None)).unwrap_err();
            let text = format!("{refused:?}");
            for format in Format::value_variants() {
                assert!(text.contains(&name(*format)), "{text}");
            }
        }
    }

    #[test]
    fn several_outputs_need_different_files() {
        let mut all = report(Some("a.csv"), None);
        all.html = Some("b.html".into());
        all.charts = Some("c".into());
        let outputs = Outputs::of(&all).unwrap();
        assert_eq!(outputs.files().count(), 2);
        let only = Report { output: None, ..all };
        assert_eq!(Outputs::of(&only).unwrap().text, None);
        let twice = Report { output: Some("x/../b.html".into()), ..report(None, None) };
        let twice = Report { html: Some("x/../b.html".into()), ..twice };
        assert!(Outputs::of(&twice).is_err());
        assert_eq!(Outputs::of(&report(None, None)).unwrap().text, Some((None, To::Stdout)));
    }

    #[test]
    fn a_terminal_gets_no_binary() {
        for (format, refused) in
            [(Format::Xlsx, true), (Format::Parquet, true), (Format::Csv, false)]
        {
            let text = |to| Outputs { text: Some((Some(format), to)), html: vec![], charts: None };
            assert_eq!(text(To::Stdout).binary(true).is_err(), refused);
            assert!(text(To::Stdout).binary(false).is_ok());
            assert!(text(To::File("a".into())).binary(true).is_ok());
        }
    }
}
