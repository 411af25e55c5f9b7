//! Command line of fio: options of the program, options of jobs, and job files.

use std::path::PathBuf;

use report::FioFormat;

use crate::exit::Failure;

/// Parsed command line.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// Job files; `-` is stdin.
    pub(super) files: Vec<String>,
    /// Options of jobs, as given.
    pub(super) options: Vec<String>,
    pub(super) formats: Vec<FioFormat>,
    pub(super) output: Option<PathBuf>,
    pub(super) section: Vec<String>,
    pub(super) parse_only: bool,
    pub(super) read_only: bool,
    pub(super) run: Option<PathBuf>,
    pub(super) repetitions: u32,
    pub(super) drop: Vec<String>,
    pub(super) map: Vec<String>,
    pub(super) reuse: bool,
}

/// Result of parsing.
#[derive(Debug)]
pub(super) enum Parsed {
    /// Text to print.
    Print(String),
    /// Jobs to run.
    Run(Box<Arguments>),
}

/// Options of jobs whose value, if any, follows an equals sign.
const FLAGS: [&str; 21] = [
    "time_based",
    "thread",
    "group_reporting",
    "norandommap",
    "refill_buffers",
    "scramble_buffers",
    "zero_buffers",
    "verify_only",
    "stonewall",
    "wait_for_previous",
    "new_group",
    "exitall",
    "exitall_on_error",
    "hipri",
    "fixedbufs",
    "registerfiles",
    "sqthread_poll",
    "gtod_reduce",
    "disable_lat",
    "disable_clat",
    "disable_slat",
];

/// Options of the program with a value that are accepted without effect.
const IGNORED: [&str; 6] =
    ["status-interval", "eta", "eta-newline", "eta-interval", "alloc-size", "max-jobs"];

/// Options of the program that are not supported, with what to do.
const REFUSED: [(&str, &str); 16] = [
    ("client", "measure on the other host"),
    ("server", "measure on the other host"),
    ("remote-config", "measure on the other host"),
    ("daemonize", "use nohup(1)"),
    ("showcmd", "`fslab export` writes job files"),
    ("cmdhelp", "docs/reference/fio-options.md lists all options"),
    ("enghelp", "docs/reference/fio-options.md lists all engines"),
    ("crctest", "fslab has no such test"),
    ("cpuclock-test", "`fslab doctor` checks the clock"),
    ("debug", "use `fslab -vv fio`"),
    ("bandwidth-log", "the run file has a time series"),
    ("idle-prof", "system activity has the CPU time"),
    ("inflate-log", "fslab writes no such logs"),
    ("trigger-file", "fslab has no triggers"),
    ("profile", "write the options of the profile into a job"),
    ("merge-blktrace-only", "fslab replays no such traces"),
];

/// Words of the command line that are not parsed yet.
type Words<'a> = std::iter::Peekable<std::slice::Iter<'a, String>>;

/// Option of the program or of a job.
struct Given<'a, 'w> {
    name: &'a str,
    value: Option<String>,
    words: &'w mut Words<'a>,
}

impl Given<'_, '_> {
    /// Value after the equals sign, or the next word.
    fn required(&mut self) -> Result<String, Failure> {
        let next = |words: &mut Words<'_>| words.next_if(|next| !next.starts_with("--")).cloned();
        self.value.take().or_else(|| next(self.words)).ok_or_else(|| {
            let name = self.name;
            wrong(format!("--{name} requires a value, such as --{name}=VALUE"))
        })
    }
}

impl Arguments {
    /// Parses the arguments after `fslab fio`.
    ///
    /// # Errors
    /// If an option of the program is unknown, not supported, or has an invalid value.
    pub(super) fn parse(given: &[String]) -> Result<Parsed, Failure> {
        let mut own = Self { repetitions: 1, ..Self::default() };
        let mut words = given.iter().peekable();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-v" | "--version" => return Ok(Parsed::Print(version())),
                "-h" | "--help" => return Ok(Parsed::Print(HELP.into())),
                _ => {}
            }
            match word.strip_prefix("--").filter(|rest| !rest.is_empty()) {
                Some(option) => {
                    let (name, value) = match option.split_once('=') {
                        Some((name, value)) => (name, Some(value.to_owned())),
                        None => (option, None),
                    };
                    own.option(Given { name, value, words: &mut words })?;
                }
                None if word.starts_with('-') && word != "-" => {
                    let message = "use --name=JOB or a job file";
                    return Err(wrong(format!("unknown option `{word}`; {message}")));
                }
                None => own.files.push(word.clone()),
            }
        }
        own.complete().map(|own| Parsed::Run(Box::new(own)))
    }

    /// Checks that there is a job.
    fn complete(mut self) -> Result<Self, Failure> {
        if self.formats.is_empty() {
            self.formats = vec![FioFormat::Normal];
        }
        if self.files.is_empty() && self.options.is_empty() {
            return Err(wrong(
                "no job is given; use for example `fslab fio --name=r --rw=randread --size=1g`, \
                 or a job file"
                    .into(),
            ));
        }
        let named = self.options.iter().any(|own| own.starts_with("--name="));
        if let Some(first) = self.options.first().filter(|_| !named) {
            let hint = "`fslab fio --help` lists the other options";
            return Err(wrong(format!("{first}: options of a job require --name=JOB; {hint}")));
        }
        Ok(self)
    }

    /// Option of the program, or else of a job.
    fn option(&mut self, mut given: Given<'_, '_>) -> Result<(), Failure> {
        match given.name {
            "output" => self.output = Some(given.required()?.into()),
            "output-format" => self.formats = formats(&given.required()?)?,
            "minimal" => self.formats = vec![FioFormat::Terse],
            "section" => self.section.push(given.required()?),
            "parse-only" => self.parse_only = true,
            "readonly" => self.read_only = true,
            "terse-version" => {
                let version = given.required()?;
                if version != "3" {
                    let message = "is not supported; use 3";
                    return Err(wrong(format!("--terse-version {version} {message}")));
                }
            }
            "append-terse" | "warnings-fatal" => {}
            name if IGNORED.contains(&name) => drop(given.required()?),
            name if name.starts_with("fslab-") => self.own_option(given)?,
            name => {
                if let Some((_, hint)) = REFUSED.iter().find(|(own, _)| *own == name) {
                    return Err(wrong(format!("--{name} is not supported; {hint}")));
                }
                if given.value.is_none() && !FLAGS.contains(&name) && takes_value(name) {
                    given.value = Some(given.required()?);
                }
                self.options.push(match given.value {
                    Some(value) => format!("--{name}={value}"),
                    None => format!("--{name}"),
                });
            }
        }
        Ok(())
    }

    /// Option of fslab.
    fn own_option(&mut self, mut given: Given<'_, '_>) -> Result<(), Failure> {
        match given.name {
            "fslab-run" => self.run = Some(given.required()?.into()),
            "fslab-repetitions" => {
                let text = given.required()?;
                let number = text.parse().ok().filter(|number| (1..=1000).contains(number));
                self.repetitions = number.ok_or_else(|| {
                    wrong(format!("--fslab-repetitions {text}: use a number from 1 to 1000"))
                })?;
            }
            "fslab-drop" => self.drop.extend(list(&given.required()?)),
            "fslab-map" => self.map.extend(list(&given.required()?)),
            "fslab-reuse" => self.reuse = true,
            name => {
                return Err(wrong(format!(
                    "unknown option --{name}; own options are --fslab-run, --fslab-repetitions, \
                     --fslab-drop, --fslab-map, and --fslab-reuse"
                )));
            }
        }
        Ok(())
    }
}

/// True if an option of a job is known and takes a value. Unknown options are reported later.
fn takes_value(name: &str) -> bool {
    let known = suites::fio::OPTIONS.iter();
    let mut found = known.filter(|own| own.name == name || own.aliases.contains(&name));
    name == "name" || found.next().is_some()
}

fn list(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(',').filter(|part| !part.is_empty()).map(str::to_owned)
}

fn formats(text: &str) -> Result<Vec<FioFormat>, Failure> {
    let format = |name: &str| match name.trim() {
        "normal" => Ok(FioFormat::Normal),
        "json" => Ok(FioFormat::Json),
        "json+" => Ok(FioFormat::JsonPlus),
        "terse" | "minimal" => Ok(FioFormat::Terse),
        other => Err(wrong(format!(
            "--output-format {other} is not supported; use normal, json, json+, or terse"
        ))),
    };
    text.split(',').map(format).collect()
}

fn wrong(message: String) -> Failure {
    Failure::usage(anyhow::Error::msg(message))
}

fn version() -> String {
    format!("fslab-{}\n", env!("CARGO_PKG_VERSION"))
}

const HELP: &str = "\
Run jobs of fio, with its command line and its output formats

Usage: fslab fio [OPTIONS] JOB.fio...
       fslab fio [OPTIONS] --name=JOB --rw=randread --size=1g ...

Files are created in the current directory and stay there, as with fio. Exit status: 0 success,
1 error, 130 interrupted. docs/reference/fio-options.md lists the options of jobs.

Options of fio:
  --output=FILE               Write the result to FILE instead of stdout
  --output-format=FORMAT,...  normal, json, json+, or terse
  --minimal                   The same as --output-format=terse
  --section=NAME              Run only this section; repeat for others
  --parse-only                Check the job and exit
  --readonly                  Reject jobs that write
  --version, --help

Options of fslab:
  --fslab-run=FILE            Keep the results in this run file
  --fslab-repetitions=N       Number of repetitions; the output is the median one
  --fslab-drop=OPTION,...     Leave out options of the job
  --fslab-map=DEVICE=FILE:SIZE,...
                              Use a file in the place of a device
  --fslab-reuse               Overwrite existing files that fslab did not write
";
