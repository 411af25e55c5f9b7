//! What can be typed. The reference page and the help golden are made from this table.

mod guest;
mod parse;

use std::path::PathBuf;

use analysis::conditions::Way;
use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use guest::{Build as BuildKernel, Guest, GuestCommand, KernelCommand};
use model::{GuestKind, Metric, Ratio, plan::Profile};
use parse::{guest, pair, percent, setting, way};

/// Measures what a Linux filesystem really does, on your disk, kernel and options, and says only
/// what the data support.
#[derive(Debug, Parser)]
#[command(name = "fslab", version, max_term_width = 100)]
#[command(arg_required_else_help = true)]
#[command(
    after_help = "Start with `fslab demo`. Exit status: 0 done, 1 the answer is no, 2 wrong \
    usage or plan, 3 the rig failed, 4 some cells failed, 5 goes on after a boot, 6 the data \
    cannot say, 130 interrupted."
)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Say more on stderr; twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Where undo journals are kept [default: $FSLAB_STATE, else /var/lib/fslab as root and
    /// ~/.local/state/fslab otherwise].
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state_directory: Option<PathBuf>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure the filesystems of this kernel on image files, in minutes, and end with a report.
    ///
    /// What this kernel lacks is measured in a throw-away machine, for an ordinary user all of
    /// them; where none can be had, that user gets the current directory, and is told what is
    /// missing.
    Demo(Demo),
    /// Run a plan: a TOML file, or a ready plan by name (`fslab list plans`).
    Run(Run),
    /// Run one workload on a directory, now, and show all that was measured of it.
    ///
    /// Nothing is formatted: the files lie in a directory of their own there and are removed
    /// afterwards. The run is forgotten unless -o names a run file.
    Bench(Bench),
    /// Show what a plan would do: its commands, cells and space. Touches nothing.
    Show(Show),
    /// Report on a run: tables on the terminal, or files: HTML, CSV, JSON, Markdown, XLSX, Parquet.
    Report(Report),
    /// Say what a run can answer, and what is missing where it cannot.
    ///
    /// Each question (which filesystem is best at a test, which is last, what durability costs) is
    /// answered with its sentence, or with the guard that fails and what would supply it, such as
    /// how many more repeats. A run may still be going on.
    Explain(Explain),
    /// Make a run file of what another program has recorded: CSV of bonnie++.
    ///
    /// The result can be reported like a run, and says everywhere that fslab did not measure it: it
    /// has no intervals that could support a claim, no evidence, and no conditions beyond what the
    /// records tell.
    Import(Import),
    /// Tell what a load file of dbench holds, or write one.
    ///
    /// Suite `dbench` replays such files. Our own, `office`, is made from a seed; written into a
    /// file, other programs can replay it as well.
    Loadfile(Loadfile),
    /// Compare runs test by test: what changed, by how much, and whether what else differed allows
    /// to say so.
    ///
    /// Cells are paired by what they are; runs that differ in one way (kernel, machine, storage,
    /// filesystem, settings, program, plan) are compared for it, and of runs that differ in
    /// several ways at once nothing is claimed unless --allow names them. With --gate the exit
    /// status is the verdict: 0 no test is shown worse, 1 one is, 6 the data cannot say, 2 the runs
    /// cannot be compared.
    Compare(Compare),
    /// Check printed tables and what is said of them against each other: published results, or a
    /// table of your own.
    ///
    /// Finds malformed numbers, values that differ between two places that print the same thing,
    /// cells that repeat another's value beyond chance, holes, and statements that the numbers
    /// contradict. Exit status 0 if there is nothing of this, 1 if there is.
    Audit(Audit),
    /// List what there is, and for filesystems whether it can be measured here.
    List(List),
    /// Say what this machine can measure, what is missing, and how to get it.
    Doctor,
    /// Say which throw-away guests run here, and list or build kernels for them.
    #[command(arg_required_else_help = true)]
    Guest(Guest),
    /// Say whether what was durable survived a crash: reads the blocks that `fslab bench` with
    /// --crash-state had written and flushed. Exit status 1 if some are lost.
    ///
    /// Mount the filesystem again at the same place first, and do not run `fslab clean` before: it
    /// removes the files.
    Verify(Verify),
    /// Undo what a killed run left behind: mounts, loop devices, images, changed settings.
    Clean,
    /// Print the version; with -v the compiler, target and SQLite too.
    Version,
    /// Write the reference pages.
    #[command(hide = true)]
    Docs(Docs),
    /// Be one worker process of a phase.
    #[command(hide = true)]
    Worker,
}

/// `fslab demo`
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Run file [default: fslab-demo-TIME.fslab]; that of the guest is named demo-guest.fslab.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Measure nine filesystems in a guest of this kind only. By default they are measured in a
    /// guest that counts instructions, after the filesystems of the running kernel.
    #[arg(long, value_name = "KIND", value_parser = guest)]
    pub(crate) guest: Option<GuestKind>,
    /// Kernel of the guest: version of an installed one, a package, or an image [default: the
    /// newest].
    #[arg(long, value_name = "VERSION|FILE")]
    pub(crate) kernel: Vec<String>,
    #[command(flatten)]
    pub(crate) view: View,
}

/// `fslab run`
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// A plan file, or the name of a ready plan.
    #[arg(required_unless_present = "resume")]
    pub(crate) plan: Option<String>,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// The run file [default: PLAN-TIME.fslab].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Go on with a run that was interrupted or killed; its plan is in the file.
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = ["plan", "output", "scale", "profile", "set"]
    )]
    pub(crate) resume: Option<PathBuf>,
    /// Allow a device that carries data to be overwritten, named by its model or serial.
    #[arg(long, value_name = "MODEL-or-SERIAL")]
    pub(crate) destroy: Vec<String>,
    /// For a plan with isolation = "reboot": boot this machine after each trial, and go on by
    /// itself, by a unit of systemd that is taken away again.
    #[arg(long, conflicts_with = "without_reboot")]
    pub(crate) reboot: bool,
    /// For such a plan: go on without booting; every trial but the first says so.
    #[arg(long)]
    pub(crate) without_reboot: bool,
    /// Stop at the first cell that fails.
    #[arg(long)]
    pub(crate) fail_fast: bool,
    /// Make the first two blocks, say how long the rest takes and which differences it will tell,
    /// and end; `--resume` goes on, and these trials count.
    #[arg(long)]
    pub(crate) pilot: bool,
    #[command(flatten)]
    pub(crate) view: View,
}

/// `fslab bench`
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// The workload: a recipe of `fslab list workloads`, or a suite with its defaults.
    pub(crate) workload: Option<String>,
    /// The directory to measure; it exists and can be written to.
    pub(crate) directory: Option<PathBuf>,
    /// How long to measure, such as 10s; for workloads that are bound by time.
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Size of each file, such as 1GiB.
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    /// Set another parameter of the workload; several values, separated by commas, are all run.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
    /// How often; six give an interval.
    #[arg(long, value_name = "N", default_value = "1")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeats: u32,
    /// Keep in this file what `fslab verify` needs to judge, after a crash, what was written. Not
    /// on the filesystem under test.
    #[arg(long, value_name = "FILE")]
    pub(crate) crash_state: Option<PathBuf>,
    /// Keep the run in this file, for `fslab report`.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// No progress; only the result.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Progress as JSON lines on stderr, the result as JSON on stdout.
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) json: bool,
}

/// `fslab verify`
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The file that was given to `fslab bench --crash-state`.
    pub(crate) state: PathBuf,
}

/// How a run is shown.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct View {
    /// The HTML report [default: the run file with .html].
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// No progress; only the result.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Progress as JSON lines on stderr.
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) json: bool,
}

/// What is changed about a plan.
#[derive(Clone, Debug, Args)]
pub(crate) struct Changes {
    /// Shrink or grow all sizes of work and memory, keeping their ratios; or the name of one of the
    /// plan's own scales.
    #[arg(long, value_name = "N|N/D|NAME", default_value = "1")]
    pub(crate) scale: String,
    /// How sure to be: differences of 10, 5 or 2 % matter.
    #[arg(long, value_enum)]
    pub(crate) profile: Option<ProfileName>,
    /// Replace a setting: filesystem=ext4,xfs repeats=3 record=64KiB memory=1GiB …
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
    /// Measure in a throw-away machine that boots a kernel of its own; no root is needed, and the
    /// images are its disks.
    #[arg(long, value_name = "KIND", value_parser = guest)]
    pub(crate) guest: Option<GuestKind>,
    /// The kernel that a guest boots: the version of an installed one, a package, or an image; more
    /// than one become an axis.
    #[arg(long, value_name = "VERSION|FILE")]
    pub(crate) kernel: Vec<String>,
    /// Further filesystems, in the format of the built-in catalogue.
    #[arg(long, value_name = "FILE")]
    pub(crate) filesystems: Option<PathBuf>,
}

/// The profiles as the command line spells them.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ProfileName {
    /// Differences of 10 % matter; 6 to 10 repeats.
    Quick,
    /// Differences of 5 % matter; 8 to 30 repeats.
    Standard,
    /// Differences of 2 % matter; 10 to 50 repeats.
    Rigorous,
}

impl ProfileName {
    pub(crate) fn profile(self) -> Profile {
        match self {
            Self::Quick => Profile::Quick,
            Self::Standard => Profile::Standard,
            Self::Rigorous => Profile::Rigorous,
        }
    }
}

/// `fslab show`
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A plan file, or the name of a ready plan.
    pub(crate) plan: String,
    /// Print the plan's own text instead: a ready plan to start from.
    #[arg(long)]
    pub(crate) text: bool,
    #[command(flatten)]
    pub(crate) changes: Changes,
}

/// `fslab report`
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The run file; or published results by name: tasks-2004@published, tasks-2006@published,
    /// iozone-2009@published, bonnie-2012@published.
    pub(crate) run: PathBuf,
    /// Write the HTML report to this file. Beside -o, --charts, and --format: one run, several
    /// outputs.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write every chart of the report into this directory, as SVG and PNG, with a list.
    #[arg(long, value_name = "DIR")]
    pub(crate) charts: Option<PathBuf>,
    /// Write to this file instead of stdout, whole or not at all; without --format its ending tells
    /// the format: .csv, .json, .md, .xlsx, .parquet, .prom, .html. `-` is stdout.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print in this format instead of tables for the terminal.
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Print everything after the first page as well.
    #[arg(long)]
    pub(crate) detail: bool,
}

/// Formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One row a sample, base units.
    Csv,
    /// Summaries, verdicts and warnings; its schema is docs/schemas/report-1.json.
    Json,
    /// The tables.
    Md,
    /// A workbook: one sheet a table, matrices and charts over what is swept, samples.
    Xlsx,
    /// The rows of csv in typed columns.
    Parquet,
    /// Metrics in the text format of Prometheus.
    Prometheus,
    /// Tables laid out as IOzone prints them; of runs of suite iozone.
    Iozone,
    /// Records of bonnie++ in its format 1.98, one for each repeat; of runs of suite bonnie.
    Bonnie,
    /// The same in format 1.96.
    #[value(name = "bonnie-1.96")]
    Bonnie196,
}

/// `fslab import`
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Files of records: CSV of bonnie++ 1.03, 1.96, 1.97, 1.98, 2.00; `-` reads stdin.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Names of the configurations, one for each record in order, separated by commas; a name that
    /// comes again is a repeat [default: the names in the records, often that of the machine].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) names: Vec<String>,
    /// The run file [default: the first file with .fslab].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `fslab loadfile`
#[derive(Debug, Args)]
pub(crate) struct Loadfile {
    /// `office` is our own, `dbench` the one that the package of that name has installed; or a
    /// path, of a plain file or one that gzip has compressed.
    #[arg(value_name = "LOAD", default_value = "office")]
    pub(crate) load: String,
    /// How often the day of our own goes by.
    #[arg(long, value_name = "N", default_value_t = 129)]
    pub(crate) iterations: u64,
    /// What our own is drawn from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write its operations here, as a load file of version 4; `-` for stdout.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `fslab explain`
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The run file.
    pub(crate) run: PathBuf,
    /// Only questions that all of these words are about: a test, a filesystem, a suite, or the name
    /// of a template such as C3.
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
    /// Print in this format instead.
    #[arg(long, value_enum)]
    pub(crate) format: Option<ExplanationFormat>,
}

/// Formats of an explanation on stdout.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ExplanationFormat {
    /// One object.
    Json,
}

/// `fslab compare`
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Run files, at least two, in their order; each is compared with the one before it. Or a run
    /// file and published results, such as tasks-2006@published, or two of these: both values
    /// beside each other, what else differs first, and no verdict.
    #[arg(required = true, num_args = 1.., value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Compare this filesystem of the first run with that of the second; may be given again.
    #[arg(long, value_name = "A=B", value_parser = pair)]
    pub(crate) pair: Vec<(String, String)>,
    /// Compare this metric of each test instead of the one it is judged by, such as latency_p99;
    /// `fslab list metrics` has them.
    #[arg(long, value_name = "METRIC", conflicts_with = "all")]
    pub(crate) metric: Option<Metric>,
    /// Compare every metric that has a direction.
    #[arg(long)]
    pub(crate) all: bool,
    /// What difference matters [default: that of the less sure profile of the runs].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) threshold: Option<Ratio>,
    /// Ways in which the runs may differ together, separated by commas: kernel, machine, storage,
    /// filesystem, settings, program, plan.
    #[arg(long, value_name = "WAY,...", value_delimiter = ',', value_parser = way)]
    pub(crate) allow: Vec<Way>,
    /// End with status 1 if a test is shown worse by more than this, such as 5%.
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_hyphen_values = true)]
    pub(crate) gate: Option<Ratio>,
    /// Let the gate pass only if every test is shown not worse.
    #[arg(long, requires = "gate")]
    pub(crate) strict: bool,
    /// Print in this format instead of tables.
    #[arg(long, value_enum)]
    pub(crate) format: Option<ComparisonFormat>,
    /// Write an HTML page here, with charts; where one side is published.
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    pub(crate) html: Option<PathBuf>,
}

/// Formats of a comparison on stdout.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ComparisonFormat {
    /// One object.
    Json,
    /// The tables.
    Md,
}

/// `fslab audit`
#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// A table as CSV, one number a row, `-` for stdin; or published results by name:
    /// tasks-2006@published, iozone-2009@published, bonnie-2012@published.
    pub(crate) table: PathBuf,
    /// What the columns mean and what is said of the numbers, as TOML.
    #[arg(long, value_name = "FILE")]
    pub(crate) statements: Option<PathBuf>,
    /// Print in this format instead of text.
    #[arg(long, value_enum)]
    pub(crate) format: Option<ComparisonFormat>,
    /// The numbers of every place, and every finding.
    #[arg(long)]
    pub(crate) detail: bool,
}

/// `fslab list`
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct List {
    /// What to list.
    #[arg(value_enum)]
    pub(crate) what: Listed,
    /// Further filesystems, in the format of the built-in catalogue.
    #[arg(long, value_name = "FILE")]
    pub(crate) filesystems: Option<PathBuf>,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Listed {
    /// The catalogue: usable here, or why not and what would help.
    Filesystems,
    /// The suites and their parameters.
    Suites,
    /// The workloads with names, for axes.workload of a plan.
    Workloads,
    /// The ready plans.
    Plans,
    /// Settings of the machine that a plan may vary, and whether this machine has them.
    Factors,
    /// Every metric with unit, direction and meaning.
    Metrics,
    /// Every warning with its cure.
    Warnings,
    /// The published results that are built in.
    Published,
    /// The kinds of charts, and the question each answers.
    Charts,
    /// The views of published studies, for `view` of a plan.
    Views,
}

/// `fslab docs`
#[derive(Debug, Args)]
pub(crate) struct Docs {
    /// The directory of the pages.
    pub(crate) directory: PathBuf,
    /// Only say whether they are in step.
    #[arg(long)]
    pub(crate) check: bool,
}
