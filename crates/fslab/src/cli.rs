//! Command line. The reference page and the help golden are generated from it.

mod axes;
mod cluster;
mod crosscheck;
mod guest;
mod import;
mod list;
mod parse;
mod program;
mod record;
mod report;
mod setup;
mod usage;

use std::path::PathBuf;

use analysis::conditions::Aspect;
pub(crate) use axes::{Axes, Comparison};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use cluster::{Cluster, ClusterCheck, ClusterCommand, Hosts};
pub(crate) use crosscheck::{Crosscheck, Export};
pub(crate) use guest::{Build as BuildKernel, Guest, GuestCommand, KernelCommand};
pub(crate) use import::Import;
pub(crate) use list::{List, Listed};
use model::{GuestKind, Metric, Ratio, plan::Profile};
use parse::{aspect, guest, pair, percent, repetitions, setting, whole};
pub(crate) use program::ProgramArguments;
pub(crate) use record::{Record, Trace, TraceCommand};
pub(crate) use report::{Format, Report};
pub(crate) use setup::{Complete, Completions, Docs, Doctor, Shell};
pub(crate) use usage::{message, parse as parse_arguments};

/// Benchmark Linux filesystems and report statistically supported results only.
#[derive(Debug, Parser)]
#[command(name = "fslab", version, max_term_width = 100)]
#[command(arg_required_else_help = true)]
#[command(
    after_help = "Start with `fslab demo`. Exit status: 0 success, 1 difference found, 2 usage \
    error, 3 environment error, 4 some cells failed, 5 reboot required, 6 inconclusive, 130 \
    interrupted."
)]
pub(crate) struct Arguments {
    /// Command.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Print more on stderr; repeat for debug output.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Directory in which fslab records its changes to the system (mounts, loop devices, settings),
    /// so that `fslab clean` can undo them [default: $FSLAB_STATE, or /var/lib/fslab as root, or
    /// ~/.local/state/fslab].
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state_directory: Option<PathBuf>,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Benchmark this machine's filesystems on image files and write a report.
    ///
    /// The first part measures times: of each filesystem that the running kernel supports, or,
    /// without root, of the filesystem of the current directory. The second part counts the
    /// instructions of nine filesystems in a guest (a temporary virtual machine). If no guest can
    /// run, it is omitted, and the demo lists what is missing.
    Demo(Demo),
    /// Run a plan: a TOML file or a built-in plan (`fslab list plans`).
    ///
    /// Workloads and suites can replace the plan: `fslab run oltp-8k --filesystem ext4,xfs --image
    /// 4GiB`. They require --image, --device, or --directory. `fslab show` with the same arguments
    /// prints the resulting plan. If a plan and a workload have the same name, the plan runs.
    Run(Run),
    /// Run one workload in a directory and print the results.
    ///
    /// Nothing is formatted. Files are created in a subdirectory and removed afterwards.
    Bench(Bench),
    /// Run jobs of fio, with its command line and its output formats.
    ///
    /// Files are created in the current directory and stay there. Existing files that fslab did not
    /// write are not overwritten, and devices are not opened. A link `fio` to fslab does the same.
    /// `fslab fio --help` lists the options. Exit status: 0 success, 1 error, 130 interrupted.
    #[command(disable_help_flag = true)]
    Fio(ProgramArguments),
    /// Run the phases of bonnie++, with its command line and its output.
    ///
    /// Files are created in a subdirectory and removed afterwards. A link `bonnie++` to fslab does
    /// the same. `fslab bonnie++ --help` lists the options. Exit status: 0 success, 1 error, 130
    /// interrupted.
    #[command(name = "bonnie++", disable_help_flag = true)]
    Bonnie(ProgramArguments),
    /// Replay loadfiles of dbench, with its command line and its output.
    ///
    /// Files are created in a subdirectory and removed afterwards. A link `dbench` to fslab does
    /// the same. `fslab dbench --help` lists the options. Exit status: 0 success, 1 error, 130
    /// interrupted.
    #[command(disable_help_flag = true)]
    Dbench(ProgramArguments),
    /// Run the tests of IOzone, with its command line and its output.
    ///
    /// Files are created in a subdirectory of that of -f and removed afterwards. A link `iozone` to
    /// fslab does the same. `fslab iozone --help` lists the options. Exit status: 0 success, 1
    /// error, 130 interrupted.
    #[command(disable_help_flag = true)]
    Iozone(ProgramArguments),
    /// Run the phases of mdtest, with its command line and its output.
    ///
    /// Files are created in a subdirectory of that of -d and removed afterwards. A link `mdtest` to
    /// fslab does the same. `fslab mdtest --help` lists the options. Exit status: 0 success, 1
    /// error, 130 interrupted.
    #[command(disable_help_flag = true)]
    Mdtest(ProgramArguments),
    /// Show what a plan would do, without changing anything.
    Show(Show),
    /// Print a run, or export it as HTML, CSV, JSON, Markdown, XLSX, or Parquet.
    Report(Report),
    /// List the questions that a run can answer, with the finding or the reason why there is none.
    ///
    /// Questions are for example which filesystem is fastest, or how much durability costs. The run
    /// may be unfinished.
    Explain(Explain),
    /// Convert results of other benchmarks to a run file.
    ///
    /// The format is recognized by the content of the file. Records with the same name and workload
    /// are repetitions. Imported runs have no findings, system activity, or recorded conditions.
    Import(Import),
    /// Summarize or write a dbench loadfile.
    Loadfile(Loadfile),
    /// Record the file operations of a program.
    ///
    /// `fslab bench replay DIR --set trace=FILE` replays them on another filesystem, without the
    /// program. Recording requires no root. It slows the program: each file operation takes some
    /// microseconds longer. The exit status is that of the program.
    Record(Record),
    /// Summarize, check, or print a recording.
    #[command(arg_required_else_help = true)]
    Trace(Trace),
    /// Compare runs test by test.
    ///
    /// Tests of the same filesystem, workload, and settings are compared. The runs should differ in
    /// one aspect only: kernel, machine, storage, filesystem, settings, program, or plan. If they
    /// differ in more, no finding is reported unless --allow-differences lists these aspects.
    ///
    /// Exit status with --gate: 0 no regression, 1 regression, 6 inconclusive, 2 not comparable.
    Compare(Compare),
    /// Check that fslab and an installed fio measure the same speed.
    ///
    /// Both perform the same operations on a directory, in pairs in random order. First the work is
    /// compared (operations, bytes, sync calls), then the speed. Exit status: 0 equivalent, 1
    /// different speed or different work, 6 inconclusive, or bound by the load generators.
    Crosscheck(Crosscheck),
    /// Convert workloads to job files of fio.
    Export(Export),
    /// Check published tables for errors and contradictions.
    ///
    /// Detects malformed numbers, conflicting values, duplicated or missing cells, and contradicted
    /// statements. Exit status 1 if anything is found.
    Audit(Audit),
    /// List filesystems, suites, workloads, plans, settings, metrics, warnings, published results,
    /// charts, and studies.
    List(List),
    /// Check what this machine can measure and how to install what is missing.
    Doctor(Doctor),
    /// Check guest support; list or build guest kernels.
    #[command(arg_required_else_help = true)]
    Guest(Guest),
    /// Check the hosts of a run on several hosts.
    #[command(arg_required_else_help = true)]
    Cluster(Cluster),
    /// Check after a crash whether synced data survived.
    ///
    /// Reads the blocks that `fslab bench --crash-state` listed. Mount the filesystem at the same
    /// path before, and run `fslab clean` only afterwards. Exit status 1 if blocks are lost.
    Verify(Verify),
    /// Undo the changes of a killed run: mounts, loop devices, images, settings.
    Clean,
    /// Print the version (-v: commit, target, profile, features, compiler, SQLite).
    Version,
    /// Print a completion script for a shell.
    Completions(Completions),
    /// Write the reference pages or the manual pages.
    Docs(Docs),
    /// Print the completions of a command line.
    #[command(hide = true)]
    Complete(Complete),
    /// Run one worker process of a phase.
    #[command(hide = true)]
    Worker,
    /// Run the trials of one host; fslab-mpi starts this command.
    #[command(hide = true)]
    Agent,
}

/// `fslab demo`
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Run file [default: fslab-demo-TIME.fslab]. Results of a guest are written to a second file,
    /// whose name ends in -guest.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Measure all filesystems in a temporary virtual machine: auto (the best kind that runs here),
    /// kvm, tcg (QEMU emulation), icount (QEMU emulation that counts instructions), or uml
    /// (user-mode Linux).
    #[arg(long, value_name = "KIND", value_parser = guest)]
    pub(crate) guest: Option<GuestKind>,
    /// Kernel to boot in the guest: an installed version such as 6.1, a kernel package, or an image
    /// file.
    #[arg(long, value_name = "VERSION|FILE")]
    pub(crate) kernel: Vec<String>,
    #[command(flatten)]
    pub(crate) view: View,
}

/// `fslab run`
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Plan file, built-in plan, or workloads and suites.
    #[arg(required_unless_present = "resume", value_name = "PLAN|WORKLOAD")]
    pub(crate) plan: Vec<String>,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Run file to write [default: PLAN-TIME.fslab].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Continue an interrupted run with the plan stored in its run file.
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = ["plan", "output", "scale", "profile", "set", "filesystem", "image",
            "device", "directory", "repetitions"]
    )]
    pub(crate) resume: Option<PathBuf>,
    /// Overwrite a device of the plan although it contains data. ID is its serial number, WWID, or
    /// model (`lsblk -o NAME,SERIAL,WWN,MODEL`), its device-mapper name, the file of a loop device,
    /// or the name that the error message states.
    #[arg(long, value_name = "ID")]
    pub(crate) overwrite_device: Vec<String>,
    /// Reboot the machine after each repetition of each cell, and continue the run by a systemd
    /// unit. Only for plans with the key isolation = "reboot". Without --reboot, such a run stops
    /// so that you can reboot.
    #[arg(long, conflicts_with = "no_reboot")]
    pub(crate) reboot: bool,
    /// Ignore isolation = "reboot" of the plan: the run neither reboots nor stops. The results get
    /// the warning `not-rebooted`.
    #[arg(long)]
    pub(crate) no_reboot: bool,
    /// Stop when the first cell fails. A cell is a combination of filesystem, workload, and
    /// settings.
    #[arg(long)]
    pub(crate) fail_fast: bool,
    /// Stop after two repetitions of every cell, and print the estimated duration of the whole run
    /// and the smallest difference that the whole run can detect. --resume continues the run.
    #[arg(long)]
    pub(crate) pilot: bool,
    #[command(flatten)]
    pub(crate) hosts: Hosts,
    #[command(flatten)]
    pub(crate) view: View,
}

/// `fslab bench`
#[derive(Clone, Debug, Args)]
pub(crate) struct Bench {
    /// Workload (`fslab list workloads`), or suite with its default parameters (`fslab list
    /// suites`).
    #[arg(required = true)]
    pub(crate) workload: Option<String>,
    /// Writable directory to measure.
    #[arg(required = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Measure this program instead of a workload, such as 'git clone /srv/r.git {target}/r'. It is
    /// split into words at blanks outside quotes; there is no shell. `fslab list suites command`
    /// lists the parameters for --set.
    #[arg(long, value_name = "PROGRAM", allow_hyphen_values = true)]
    pub(crate) command: Option<String>,
    /// Measured time, such as 10s.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) runtime: Option<String>,
    /// Size of each file, such as 1GiB.
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) file_size: Option<String>,
    /// Set a parameter of the workload, such as block_size=64KiB. Each value of a list such as
    /// block_size=4KiB,64KiB is measured.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
    /// Number of repetitions; 6 or more give a confidence interval.
    #[arg(long, value_name = "N", default_value = "1")]
    #[arg(value_parser = repetitions, allow_hyphen_values = true)]
    pub(crate) repetitions: u32,
    /// Write a list of the synced blocks to FILE. After a crash, `fslab verify FILE` checks whether
    /// they survived. FILE must not be on the measured filesystem.
    #[arg(long, value_name = "FILE")]
    pub(crate) crash_state: Option<PathBuf>,
    /// Keep the results in this run file.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print only the result.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print progress as JSON lines on stderr, and the result as JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) comparison: Comparison,
}

/// `fslab verify`
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// File given to --crash-state.
    pub(crate) state: PathBuf,
}

/// Output options of a run.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct View {
    /// Path of the HTML report [default: run file with .html].
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print only the result.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print progress as JSON lines on stderr, and the result as JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options that change a plan.
#[derive(Clone, Debug, Args)]
pub(crate) struct Changes {
    #[command(flatten)]
    pub(crate) axes: Axes,
    /// Multiply the sizes of files and images (also of --image) and the memory limit of the plan
    /// by a number, such as 2 or 1/64. A
    /// NAME applies the section `[scales.NAME]` of the plan instead.
    #[arg(long, value_name = "N|N/D|NAME", default_value = "1", allow_hyphen_values = true)]
    pub(crate) scale: String,
    /// Precision: the smallest difference that is important in practice, and the repetitions
    /// [default: set by the plan].
    #[arg(long, value_enum)]
    pub(crate) profile: Option<ProfileName>,
    /// Set a plan key or a workload parameter, such as block_size=64KiB.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
    /// Measure in a temporary virtual machine, without root: auto (the best kind that runs here),
    /// kvm, tcg (QEMU emulation), icount (QEMU emulation that counts instructions), or uml
    /// (user-mode Linux).
    #[arg(long, value_name = "KIND", value_parser = guest)]
    pub(crate) guest: Option<GuestKind>,
    /// Kernel to boot in the guest: an installed version such as 6.1, a kernel package, or an image
    /// file. Repeat the option to compare kernels.
    #[arg(long, value_name = "VERSION|FILE")]
    pub(crate) kernel: Vec<String>,
    /// Additional filesystem definitions (TOML).
    #[arg(long, value_name = "FILE")]
    pub(crate) catalog: Option<PathBuf>,
}

/// Profiles on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ProfileName {
    /// 10 %; 6 to 10 repetitions.
    Quick,
    /// 5 %; 8 to 30 repetitions.
    Standard,
    /// 2 %; 10 to 50 repetitions.
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
    /// Plan file, built-in plan, or workloads and suites.
    #[arg(required = true, value_name = "PLAN|WORKLOAD")]
    pub(crate) plan: Vec<String>,
    /// Print the text of the plan.
    #[arg(long)]
    pub(crate) text: bool,
    #[command(flatten)]
    pub(crate) changes: Changes,
}

/// `fslab loadfile`
#[derive(Debug, Args)]
pub(crate) struct Loadfile {
    /// office (built-in), dbench (installed package), or a path.
    #[arg(value_name = "LOAD", default_value = "office")]
    pub(crate) load: String,
    /// Number of iterations of the built-in loadfile.
    #[arg(long, value_name = "N", default_value_t = 129)]
    #[arg(value_parser = whole, allow_hyphen_values = true)]
    pub(crate) iterations: u64,
    /// Random seed of the built-in loadfile.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = whole, allow_hyphen_values = true)]
    pub(crate) seed: u64,
    /// Write a version-4 loadfile, or `-` for stdout.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `fslab explain`
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Run file.
    pub(crate) run: PathBuf,
    /// Print only questions that contain all words: a test, a filesystem, a suite, or a question
    /// code such as C3.
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
    /// Output format.
    #[arg(long, value_enum)]
    pub(crate) format: Option<ExplanationFormat>,
}

/// Formats of an explanation.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ExplanationFormat {
    /// One JSON object.
    Json,
}

/// `fslab compare`
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Two or more run files; each is compared with the file before it. Published results are shown
    /// next to a run, without a statistical test.
    #[arg(required = true, num_args = 1.., value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Compare filesystem A of the first run with filesystem B of the second.
    #[arg(long, value_name = "A=B", value_parser = pair)]
    pub(crate) pair: Vec<(String, String)>,
    /// Metric to compare (`fslab list metrics`) [default: the first metric of each test].
    #[arg(long, value_name = "METRIC", conflicts_with = "all")]
    pub(crate) metric: Option<Metric>,
    /// Compare all metrics that have a better direction.
    #[arg(long)]
    pub(crate) all: bool,
    /// Smallest difference that matters, such as 5% [default: the larger of the profiles of the
    /// runs].
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_hyphen_values = true)]
    pub(crate) margin: Option<Ratio>,
    /// Aspects in which the runs may differ, such as kernel,machine. unknown: conditions that an
    /// imported run does not record.
    #[arg(long, value_name = "ASPECT,...", value_delimiter = ',', value_parser = aspect)]
    pub(crate) allow_differences: Vec<Aspect>,
    /// Exit with status 1 if a test is significantly worse by more than PERCENT.
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_hyphen_values = true)]
    pub(crate) gate: Option<Ratio>,
    /// Exit with status 6 unless each test is significantly non-inferior: at most PERCENT of --gate
    /// worse.
    #[arg(long, requires = "gate")]
    pub(crate) strict: bool,
    /// Output format.
    #[arg(long, value_enum)]
    pub(crate) format: Option<ComparisonFormat>,
    /// Write an HTML page with charts.
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    pub(crate) html: Option<PathBuf>,
}

/// Formats of a comparison.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ComparisonFormat {
    /// One JSON object.
    Json,
    /// Tables.
    Md,
}

/// `fslab audit`
#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// CSV file with one number per row, `-` for stdin, name of published results, or run file.
    pub(crate) table: PathBuf,
    /// File with column definitions and statements to check (TOML). For a run file: name of the
    /// study whose statements are checked [default: the study of the plan].
    #[arg(long, value_name = "FILE|STUDY")]
    pub(crate) statements: Option<PathBuf>,
    /// Output format.
    #[arg(long, value_enum)]
    pub(crate) format: Option<ComparisonFormat>,
    /// Include every number and finding.
    #[arg(long)]
    pub(crate) detail: bool,
}
