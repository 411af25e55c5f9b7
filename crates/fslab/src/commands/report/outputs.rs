//! Which outputs a call of `fslab report` asks for, and where each goes.
//!
//! Arguments enter; a list leaves, or what is wrong with them, before anything is read or written.

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

/// Where a text or a file goes.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) enum To {
    /// To whoever called.
    Stdout,
    /// Into a file.
    File(PathBuf),
}

/// All outputs of one call.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) struct Outputs {
    /// A format, or tables for the terminal; `None` if only what follows is wanted.
    pub(in crate::commands) text: Option<(Option<Format>, To)>,
    /// Files of HTML.
    pub(in crate::commands) html: Vec<PathBuf>,
    /// The directory of charts.
    pub(in crate::commands) charts: Option<PathBuf>,
}

impl Outputs {
    /// What the arguments ask for: tables on the terminal if nothing else.
    ///
    /// # Errors
    /// When a file's ending tells no format and none is named, when a binary format would go to a
    /// terminal, or when two outputs are one file.
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

    /// Every file that is to be written.
    fn files(&self) -> impl Iterator<Item = &Path> {
        let text = self.text.iter().filter_map(|(_, to)| match to {
            To::File(path) => Some(path.as_path()),
            To::Stdout => None,
        });
        text.chain(self.html.iter().map(PathBuf::as_path))
    }

    /// Refuses two outputs in one file.
    fn once(&self) -> Result<(), Failure> {
        let files: Vec<&Path> = self.files().collect();
        for (index, file) in files.iter().enumerate() {
            if files[..index].iter().any(|other| same(file, other)) {
                return Err(Failure::usage(anyhow::anyhow!(
                    "{} would be written twice; name one file for each output",
                    file.display()
                )));
            }
        }
        Ok(())
    }

    /// Refuses to write what no terminal can show on one.
    fn binary(&self, terminal: bool) -> Result<(), Failure> {
        match &self.text {
            Some((Some(format @ (Format::Xlsx | Format::Parquet)), To::Stdout)) if terminal => {
                let name = name(*format);
                Err(Failure::usage(anyhow::anyhow!(
                    "{name} is no text for a terminal; name a file: -o FILE.{name}"
                )))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses to write over the run that is read.
    ///
    /// # Errors
    /// When an output is the run file.
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

/// The format that the ending of a file's name tells.
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

/// No format is known for a file.
fn unnamed(path: &Path) -> Failure {
    let all: Vec<String> = Format::value_variants().iter().copied().map(name).collect();
    if path == Path::new("-") {
        return Failure::usage(anyhow::anyhow!(
            "nothing tells what to print on stdout; leave -o away for tables, or name a format \
             with --format: {}",
            all.join(", ")
        ));
    }
    Failure::usage(anyhow::anyhow!(
        "nothing tells in which format to write {}; name it with --format: {}; or end its name in \
         .csv, .json, .md, .xlsx, .parquet, .prom, or .html",
        path.display(),
        all.join(", ")
    ))
}

/// The word of a format on the command line.
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
    fn the_ending_of_a_file_tells_its_format() {
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
    fn without_a_format_every_one_is_named() {
        for file in ["a", "a.txt", "-", "csv", ".csv"] {
            let refused = Outputs::of(&report(Some(file), None)).unwrap_err();
            let text = format!("{refused:?}");
            for format in Format::value_variants() {
                assert!(text.contains(&name(*format)), "{text}");
            }
        }
    }

    #[test]
    fn outputs_stand_beside_each_other_but_not_in_one_file() {
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
