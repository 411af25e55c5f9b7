//! Options of mdtest 4.1.

use crate::commands::front_ends::options::{
    Argument, Program, ProgramOption, done, refused, unused,
};

pub(super) const WORKERS: &str = "--fslab-workers";

const NONE: Argument = Argument::None;
const COUNT: Argument = Argument::Required("N");
const SIZE: Argument = Argument::Required("BYTES");

const TASKS: &str = "all workers take part";
const TASKS_HINT: &str = "use a plan with `workers` as an axis";
const RECORDS: &str = "the files of mdtest are not written";
const RECORDS_HINT: &str = "the run file of --fslab-run has histograms and the rate of each worker";
const COMMANDS: &str = "no programs are run between the phases";
const COMMANDS_HINT: &str = "use suite `command` in a plan";
const GPU: &str = "data is in main memory";
const REMOVE: &str = "remove it";

#[rustfmt::skip]
const OPTIONS: &[ProgramOption] = &[
    done(&["-n"], COUNT, "Number of directories and of files of each worker, rounded down to a multiple of the number of directories that contain them. Numbers may end with k, m, g, or t for powers of 1024, and follow an equals sign, as in -n=1k."),
    done(&["-I"], COUNT, "Number of entries of each worker per directory, instead of -n. With -n, mdtest uses several test directories; that is not supported."),
    done(&["-z"], COUNT, "Levels of directories below the root of the tree, 0 to 64."),
    done(&["-b"], COUNT, "Subdirectories of each directory of the tree."),
    done(&["-L"], NONE, "Entries only in directories of the lowest level."),
    done(&["-u"], NONE, "A tree of directories for each worker."),
    done(&["-S"], NONE, "All workers use the same files; requires -F."),
    done(&["-c"], NONE, "The first worker creates and removes the entries of all; not with -u or -W."),
    done(&["-F"], NONE, "Files only."),
    done(&["-D"], NONE, "Directories only."),
    done(&["-C"], NONE, "Measure creation. With -C, -T, -E, -r, or -U, only the named phases are measured; what they need is created before, untimed."),
    done(&["-T"], NONE, "Measure stat."),
    done(&["-E"], NONE, "Measure reading of files."),
    done(&["-r"], NONE, "Measure removal."),
    done(&["-U"], NONE, "Measure renaming of directories, which is also part of a run without -C, -T, -E, and -r."),
    done(&["-w"], SIZE, "Bytes written to each new file, in one call; default is 0."),
    done(&["-e"], SIZE, "Bytes read from each file, in one call, at most those of -w. With 0, the default, files are only opened and closed."),
    done(&["-y"], NONE, "fsync after each write."),
    done(&["-X"], NONE, "Check the bytes read."),
    done(&["-N"], COUNT, "Number of workers by which stat, read, and removal are shifted, times 1, 2, and 3."),
    done(&["-R"], NONE, "Random order of stat and read."),
    done(&["--random-seed"], Argument::Required("SEED"), "Seed of -R and of the data. The numbers are not those of mdtest with the same seed."),
    done(&["-Y"], NONE, "sync(2) by each worker at the end of each phase, included in its time."),
    done(&["-i"], COUNT, "Number of repetitions, 1 to 1000, each in a new directory. The tables summarize all of them."),
    done(&["-W"], Argument::Required("SECONDS"), "Stonewall of file creation: after this time, each worker continues up to the largest number of files that any worker had created by then."),
    done(&["-x"], Argument::Required("FILE"), "File for the number of files of each worker. A run that creates files writes it; a run without -C reads it, if it exists, and prepares as many files."),
    done(&["-P"], NONE, "Print a table of times after that of rates: milliseconds per operation. The table of mdtest has this title as well, but its numbers are seconds per phase."),
    done(&["-Z"], NONE, "Print the table of times only."),
    done(&["-d"], Argument::Required("DIR"), "Directory to measure; default is the current directory. Files are created in a subdirectory and removed."),
    done(&["-a"], Argument::Required("API"), "Interface; only POSIX is supported."),
    unused(&["-t"], NONE, "the directory of a worker is opened before the time starts, and names are relative to it"),
    unused(&["-p"], Argument::Required("SECONDS"), "fslab waits before each phase until the device is idle"),
    unused(&["-v"], NONE, "the run file of --fslab-run has all results"),
    unused(&["-V"], COUNT, "the run file of --fslab-run has all results"),
    unused(&["-G"], COUNT, "the data depends on the seed and the file"),
    unused(&["--warningAsErrors"], NONE, "warnings are part of the run file of --fslab-run"),
    refused(&["-B"], "workers always start each phase together, so that each phase has a result and a record of system activity", REMOVE),
    refused(&["-k"], "files are created by open(2)", "use suite `files` or `metadata`"),
    refused(&["-f"], TASKS, TASKS_HINT),
    refused(&["-l"], TASKS, TASKS_HINT),
    refused(&["-s"], TASKS, TASKS_HINT),
    refused(&["--dataPacketType"], "data is random, different for each file", REMOVE),
    refused(&["--run-cmd-before-phase"], COMMANDS, COMMANDS_HINT),
    refused(&["--run-cmd-after-phase"], COMMANDS, COMMANDS_HINT),
    refused(&["--savePerOpDataCSV"], RECORDS, RECORDS_HINT),
    refused(&["--saveRankPerformanceDetails"], RECORDS, RECORDS_HINT),
    refused(&["--showRankStatistics"], RECORDS, RECORDS_HINT),
    refused(&["--allocateBufferOnGPU"], GPU, REMOVE),
    refused(&["--gpuDirect"], GPU, REMOVE),
    refused(&["--posix.odirect"], "files are opened as mdtest does by default", "use suite `files`"),
];

/// Command line of mdtest.
pub(in crate::commands) const PROGRAM: Program = Program {
    name: "mdtest",
    title: "Run the phases of mdtest, with its command line and its output",
    usage: "[OPTIONS] -n N",
    page: "mdtest-options.md",
    manual: "fslab-mdtest-options",
    introduction: "Options of mdtest 4.1 in `fslab mdtest`, which runs suite `mdtest`. Ranks are \
                   worker processes of this host; a plan with suite `mdtest` also runs on several \
                   hosts. The output has the tables of mdtest. [Guide](../guides/mdtest.md).",
    options: OPTIONS,
    own: &[done(&[WORKERS], COUNT, "Number of workers (ranks of mdtest); default is 1.")],
};
