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
const FLAGS: [&str; 20] = [
    "time_based",
    "thread",
    "group_reporting",
    "norandommap",
    "refill_buffers",
    "scramble_buffers",
    "zero_buffers",
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

/// Options of the program that are accepted without effect, with the values they may have.
const IGNORED: [&str; 9] = [
    "append-terse",
    "terse-version",
    "status-interval",
    "eta",
    "eta-newline",
    "eta-interval",
    "alloc-size",
    "max-jobs",
    "warnings-fatal",
];

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

impl Arguments {
    /// Parses the arguments after `fslab fio`.
    ///
    /// # Errors
    /// If an option of the program is unknown, not supported, or has an invalid value.
    pub(super) fn parse(given: &[String]) -> Result<Parsed, Failure> {
        let mut own = Self { repetitions: 1, ..Self::default() };
        let mut words = given.iter().peekable();
        // Options of a job before its file are not supported, so a name after options is a value.
        while let Some(word) = words.next() {
            let Some(option) = word.strip_prefix("--").filter(|rest| !rest.is_empty()) else {
                match word.as_str() {
                    "-v" => return Ok(Parsed::Print(version())),
                    "-h" => return Ok(Parsed::Print(HELP.into())),
                    "-" => own.files.push(word.clone()),
                    word if word.starts_with('-') => {
                        return Err(wrong(format!(
                            "unknown option `{word}`; use --name=JOB or a job file"
                        )));
                    }
                    _ => own.files.push(word.clone()),
                }
                continue;
            };
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (option, None),
            };
            let mut required = |value: Option<String>| {
                value.or_else(|| words.next_if(|next| !next.starts_with("--")).cloned()).ok_or_else(
                    || wrong(format!("--{name} requires a value, such as --{name}=VALUE")),
                )
            };
            match name {
                "help" => return Ok(Parsed::Print(HELP.into())),
                "version" => return Ok(Parsed::Print(version())),
                "output" => own.output = Some(required(value)?.into()),
                "output-format" => own.formats = formats(&required(value)?)?,
                "minimal" => own.formats = vec![FioFormat::Terse],
                "section" => own.section.push(required(value)?),
                "parse-only" => own.parse_only = true,
                "readonly" => own.read_only = true,
                "fslab-run" => own.run = Some(required(value)?.into()),
                "fslab-repetitions" => {
                    let text = required(value)?;
                    let number = text.parse().ok().filter(|number| (1..=1000).contains(number));
                    own.repetitions = number.ok_or_else(|| {
                        wrong(format!("--fslab-repetitions {text}: use a number from 1 to 1000"))
                    })?;
                }
                "fslab-drop" => own.drop.extend(list(&required(value)?)),
                "fslab-map" => own.map.extend(list(&required(value)?)),
                "fslab-reuse" => own.reuse = true,
                _ if name.starts_with("fslab-") => {
                    return Err(wrong(format!(
                        "unknown option --{name}; own options are --fslab-run, \
                         --fslab-repetitions, --fslab-drop, --fslab-map, and --fslab-reuse"
                    )));
                }
                "terse-version" => {
                    let version = required(value)?;
                    if version != "3" {
                        return Err(wrong(format!(
                            "--terse-version {version} is not supported; use 3"
                        )));
                    }
                }
                _ if IGNORED.contains(&name) => {
                    if value.is_none() && !matches!(name, "append-terse" | "warnings-fatal") {
                        required(None)?;
                    }
                }
                _ => {
                    if let Some((_, hint)) = REFUSED.iter().find(|(own, _)| *own == name) {
                        return Err(wrong(format!("--{name} is not supported; {hint}")));
                    }
                    let value = match value {
                        None if !FLAGS.contains(&name) && takes_value(name) => {
                            Some(required(None)?)
                        }
                        value => value,
                    };
                    own.options.push(match value {
                        Some(value) => format!("--{name}={value}"),
                        None => format!("--{name}"),
                    });
                }
            }
        }
        if own.formats.is_empty() {
            own.formats = vec![FioFormat::Normal];
        }
        if own.files.is_empty() && own.options.is_empty() {
            return Err(wrong(
                "no job is given; use for example `fslab fio --name=r --rw=randread --size=1g`, \
                 or a job file"
                    .into(),
            ));
        }
        if !own.options.is_empty() && !own.options.iter().any(|own| own.starts_with("--name=")) {
            return Err(wrong("options of a job require --name=JOB before them".into()));
        }
        Ok(Parsed::Run(Box::new(own)))
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
