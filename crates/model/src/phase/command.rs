//! Commands: programs of the user as a workload.

use serde::{Deserialize, Serialize};

use crate::{metric::Metric, units::Nanos, workload::ValueError};

/// User name of the programs of a command: the user who runs fslab.
pub const SAME_USER: &str = "same";

/// Program and its arguments, with placeholders ([`fill`]).
pub type Argv = Vec<String>;

/// Programs of a phase, and the quantities that they report.
///
/// ```text
/// serve, ready │ run  │ settle │ syncfs │ end of serve, check
///  not timed   t0     t1       t2       t3     not timed
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Programs that are measured, one after the other.
    pub run: Vec<Argv>,
    /// Server that runs during the phase.
    pub serve: Option<Argv>,
    /// Program that is repeated until it succeeds, before `run`.
    pub ready: Option<Argv>,
    /// Programs that complete the work, timed separately.
    pub settle: Vec<Argv>,
    /// Programs that must succeed afterwards.
    pub check: Vec<Argv>,
    /// User of the programs: a name, a number, [`SAME_USER`], or empty for the default.
    pub user: String,
    /// True if the programs may use the network of the host.
    pub network: bool,
    /// Additional environment variables, as `NAME=VALUE`.
    pub environment: Vec<String>,
    /// Directory for temporary files (`TMPDIR`).
    pub temporary: Temporary,
    /// Input of the programs.
    pub input: Input,
    /// Exit status that the last program of `run` must have.
    pub expect: u8,
    /// Maximum time of each program.
    pub timeout: Nanos,
    /// Numbers in the output of `run`.
    pub numbers: Vec<Number>,
    /// File with latencies.
    pub latencies: Option<LatencyLog>,
    /// Results of fio, if `run` is fio. They replace those of the programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fio: Option<FioOutput>,
    /// True if the file calls of `run` are counted in an additional trial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub calls: bool,
    /// Recordings that `run` writes, if this is the additional trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recordings: Vec<String>,
    /// Primary metric.
    pub judge: Judge,
    /// Amount of work, for `{amount}`.
    pub amount: u64,
    /// Time for which the programs shall work, for `{runtime}`, in seconds.
    pub runtime: u64,
    /// Seed of the run, for `{seed}`.
    pub seed: u64,
}

impl Command {
    /// Programs that need nothing but themselves, without a limit.
    pub fn plain(run: Vec<Argv>) -> Self {
        Self {
            run,
            serve: None,
            ready: None,
            settle: Vec::new(),
            check: Vec::new(),
            user: String::new(),
            network: false,
            environment: Vec::new(),
            temporary: Temporary::Target,
            input: Input::None,
            expect: 0,
            timeout: Nanos(u64::MAX),
            numbers: Vec::new(),
            latencies: None,
            fio: None,
            calls: false,
            recordings: Vec::new(),
            judge: Judge::Durable,
            amount: 1,
            runtime: 0,
            seed: 0,
        }
    }

    /// The same programs under the recorder of fslab, whose path is `fslab`. Numbers are not read,
    /// because recorded programs are slower.
    pub fn recorded(&self, fslab: &str) -> Self {
        let recordings: Vec<String> =
            (1..=self.run.len()).map(|number| format!("{{scratch}}/calls-{number}")).collect();
        let run = self.run.iter().zip(&recordings).map(|(program, recording)| {
            let recorder = [fslab, "record", "-o", recording, "--root", "{target}", "--"];
            recorder.map(str::to_owned).into_iter().chain(program.iter().cloned()).collect()
        });
        Self {
            run: run.collect(),
            recordings,
            numbers: Vec::new(),
            latencies: None,
            fio: None,
            judge: Judge::Durable,
            ..self.clone()
        }
    }

    /// All programs, in the order of their first execution.
    pub fn programs(&self) -> impl Iterator<Item = &Argv> {
        let server = self.serve.iter().chain(&self.ready);
        server.chain(&self.run).chain(&self.settle).chain(&self.check)
    }

    /// True if the time of the operations includes a final sync.
    pub fn syncs_within_run_time(&self) -> bool {
        self.fio.as_ref().is_some_and(|fio| fio.end_sync)
    }

    /// Numbers with separate results: all except the one that is the primary metric.
    pub fn other_numbers(&self) -> impl Iterator<Item = &Number> {
        self.numbers.iter().filter(|number| self.judge != Judge::Number(number.name.clone()))
    }

    /// Primary metric.
    pub fn primary(&self) -> Metric {
        match &self.judge {
            Judge::Fio(metric) => *metric,
            Judge::Durable => Metric::DurableElapsed,
            Judge::Elapsed => Metric::Elapsed,
            Judge::Number(name) => {
                let number = self.numbers.iter().find(|number| number.name == *name);
                number.map_or(Metric::DurableElapsed, |number| number.kind.metric())
            }
        }
    }
}

/// Directory for temporary files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Temporary {
    /// Directory under test.
    Target,
    /// Directory on another filesystem.
    Scratch,
}

/// Input of the programs, `{input}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// No input.
    None,
    /// Path on the host.
    Path(String),
    /// Directory with `source.tar`, a generated source tree.
    Generated,
}

/// Primary metric of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judge {
    /// Time until all data is synced.
    Durable,
    /// Time until the last program of `run` ended.
    Elapsed,
    /// Number with this name.
    Number(String),
    /// Metric of the results of fio.
    Fio(Metric),
}

/// File with the results of fio in its format JSON+.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FioOutput {
    /// Path with placeholders.
    pub file: String,
    /// True if the run time of fio includes a final sync.
    pub end_sync: bool,
}

/// Number in the output of `run`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Number {
    /// Name: lower-case letters, digits, and dashes.
    pub name: String,
    /// Meaning.
    pub kind: NumberKind,
    /// Output.
    pub from: OutputStream,
    /// Text of a line around the number.
    pub pattern: Pattern,
    /// True if the last line counts when several match. Otherwise exactly one line must match.
    pub last: bool,
}

/// Meaning of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumberKind {
    /// Operations per second.
    Rate,
    /// Time in units of this many nanoseconds.
    Time(u64),
    /// Bytes.
    Bytes,
    /// Count.
    Count,
}

impl NumberKind {
    /// Metric of the number.
    pub const fn metric(self) -> Metric {
        match self {
            Self::Rate => Metric::ReportedRate,
            Self::Time(_) => Metric::ReportedTime,
            Self::Bytes => Metric::ReportedBytes,
            Self::Count => Metric::ReportedCount,
        }
    }

    /// Base units per unit of the number.
    pub const fn scale(self) -> u64 {
        match self {
            Self::Time(unit) => unit,
            Self::Rate | Self::Bytes | Self::Count => 1,
        }
    }
}

/// Output of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// Standard output.
    #[default]
    Stdout,
    /// Standard error.
    Stderr,
}

/// Text of a line with `{}` in place of a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern(String);

impl Pattern {
    /// Place of the number in the text.
    const PLACE: &str = "{}";

    /// Checks a pattern.
    ///
    /// # Errors
    /// [`ValueError`] if it does not contain `{}` once.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        match text.matches(Self::PLACE).count() {
            1 => Ok(Self(text.to_owned())),
            _ => Err(ValueError::new(format!("`{text}` does not contain {{}} exactly once"))
                .hint("write {} in place of the number, such as \"tps = {} \"")),
        }
    }

    /// Text of the pattern.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Number in a line that contains the pattern. The number may have a sign, a fraction, and an
    /// exponent.
    pub fn number_in(&self, line: &str) -> Option<f64> {
        let (before, after) = self.0.split_once(Self::PLACE)?;
        line.match_indices(before).find_map(|(at, _)| {
            let rest = &line[at + before.len()..];
            let part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E');
            let end = rest.find(|c| !part(c)).unwrap_or(rest.len());
            let number = rest[..end].parse::<f64>().ok().filter(|number| number.is_finite())?;
            rest[end..].starts_with(after).then_some(number)
        })
    }
}

/// File or files in which a program writes one latency per line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyLog {
    /// Path with placeholders. A `*` in the last component matches any text.
    pub file: String,
    /// Column of the latency, from 1. Columns are separated by blanks or commas.
    pub column: u32,
    /// Nanoseconds per unit of the column.
    pub unit: u64,
}

/// Names of the placeholders.
pub const PLACEHOLDERS: [&str; 7] =
    ["target", "input", "scratch", "amount", "runtime", "cpus", "seed"];

/// Replaces each placeholder such as `{target}` by its value. `{{` is a brace.
///
/// # Errors
/// [`ValueError`] for a placeholder without a value.
pub fn fill(word: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, ValueError> {
    let mut filled = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        if let Some(after) = after.strip_prefix('{') {
            filled.push('{');
            rest = after;
            continue;
        }
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        let Some(value) = value(name) else {
            return Err(ValueError::new(format!(
                "`{word}` has the unknown placeholder {{{name}}}"
            ))
            .hint(format!("use {{{}}}, or {{{{ for a brace", PLACEHOLDERS.join("}, {"))));
        };
        filled.push_str(&value);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced() {
        let value = |name: &str| (name == "target").then(|| "/mnt".to_owned());
        let fill = |word| fill(word, value).map_err(|error| error.message);
        assert_eq!(fill("--dir={target}/a").as_deref(), Ok("--dir=/mnt/a"));
        assert_eq!(fill("{{print $1}").as_deref(), Ok("{print $1}"));
        assert_eq!(fill("{{{target}}").as_deref(), Ok("{/mnt}"));
        let unknown = "`{traget}` has the unknown placeholder {traget}";
        assert_eq!(fill("{traget}"), Err(unknown.to_owned()));
        assert!(fill("{target").is_ok());
    }

    #[test]
    fn a_pattern_finds_the_number_of_its_line() {
        let pattern = Pattern::parse("tps = {} (without").unwrap();
        let line = "tps = 1234.5 (without initial connection time)";
        assert_eq!(pattern.number_in(line), Some(1234.5));
        assert_eq!(pattern.number_in("tps = 1234.5 (with"), None);
        assert_eq!(pattern.number_in("tps = many (without"), None);
        let last = Pattern::parse("copied, {} s").unwrap();
        assert_eq!(last.number_in("1 MB copied, 2.5e-3 s, 4 GB/s"), Some(0.0025));
        assert!(Pattern::parse("tps = ").is_err() && Pattern::parse("{} {}").is_err());
    }
}
