//! Options of IOzone 3.471.

use crate::commands::front_ends::options::{
    Argument, Program, ProgramOption, done, refused, unused,
};

const NONE: Argument = Argument::None;
const SIZE: Argument = Argument::Required("SIZE");
const COUNT: Argument = Argument::Required("N");

const MMAP: &str = "files are not mapped";
const MMAP_HINT: &str = "use suite `stream` with io_engine=mmap";
const AIO: &str = "there is no POSIX asynchronous I/O";
const AIO_HINT: &str = "use suite `stream` with io_engine=io_uring or io_submit";
const HOSTS: &str = "hosts are not started by a list of clients";
const HOSTS_HINT: &str = "use `fslab run --hosts`";
const OFFSETS: &str = "offsets and times of single operations are not recorded";
const OFFSETS_HINT: &str = "the run file of --fslab-run has histograms";
const DATA: &str = "the data are those of IOzone without options";
const DATA_HINT: &str = "use suite `iozone` with verify=true, or incompressible_fraction";
const REMOVE: &str = "remove it";
const LOCKS: &str = "files and records are not locked";
const PACE: &str = "operations are not delayed";
const PACE_HINT: &str = "use suite `stream` with rate or think_time";
const EXISTING: &str = "files are always created by fslab";
const ALIGNMENT: &str = "it aligns the buffer of IOzone and does not affect the calls";

#[rustfmt::skip]
const OPTIONS: &[ProgramOption] = &[
    done(&["-a"], NONE, "All file sizes from 64 kB to 512 MB with all record sizes from 4 kB to 16 MB, doubled at each step. Records below 64 kB are left out for files above 16 MB."),
    done(&["-A"], NONE, "The same as `-a -z -i 0 -i 1`."),
    done(&["-z"], NONE, "With -a, small records for large files as well."),
    done(&["-n"], SIZE, "With -a, minimum file size in kB, or with `k`, `m`, or `g`."),
    done(&["-g"], SIZE, "With -a, maximum file size."),
    done(&["-y"], SIZE, "With -a, minimum record size."),
    done(&["-q"], SIZE, "With -a, maximum record size."),
    done(&["-s"], SIZE, "File size in kB, or with `k`, `m`, or `g`; default is 512 kB. Repeat the option with larger sizes for a sweep."),
    done(&["-r"], SIZE, "Record size in the same units; default is 4 kB. Repeat the option with larger sizes for a sweep."),
    done(&["-i"], COUNT, "Test: 0 write, 1 read, 2 random, 3 backward read, 4 record rewrite, 5 strided read, 6 fwrite, 7 fread, 8 mixed (with -t), 9 pwrite and 10 pread (with -E or -t). Repeat the option for others; default is all."),
    done(&["-E"], NONE, "Tests 9 and 10 without -t."),
    done(&["-t"], COUNT, "Throughput mode with this number of workers, each with its own file. Repeat the option for other numbers."),
    done(&["-l"], COUNT, "Throughput mode from this number of workers up to that of -u."),
    done(&["-u"], COUNT, "Largest number of workers, with -l."),
    done(&["-T"], NONE, "Threads instead of processes in the throughput mode."),
    done(&["-x"], NONE, "In the throughput mode, all workers finish; without it, the measurement stops when the first worker finishes."),
    done(&["-C"], NONE, "In the throughput mode, print bytes and rate of each worker."),
    done(&["-+p"], Argument::Required("PERCENT"), "Percentage of readers in the mixed test."),
    done(&["-+n"], NONE, "Leave out the second pass of each test."),
    done(&["-+x"], COUNT, "Factor between the sizes of -a; only 2 is supported."),
    done(&["-e"], NONE, "Include fsync in the measured time."),
    done(&["-c"], NONE, "Include close in the measured time. Without -e there is then no fsync, as in IOzone."),
    done(&["-I"], NONE, "O_DIRECT. fwrite and fread are buffered, and must be left out by -i."),
    done(&["-o"], NONE, "O_SYNC."),
    done(&["-+D"], NONE, "O_DSYNC."),
    done(&["-f"], Argument::Required("PATH"), "Path of the file. fslab measures its directory, in a subdirectory that is removed; an existing file is not changed."),
    done(&["-F"], Argument::List("PATH..."), "The same for each worker of the throughput mode. All paths are in one directory."),
    done(&["-U"], Argument::Required("MOUNT"), "Empty the caches before each test, without unmounting MOUNT, which contains the files; not with -t. The second pass of a test is not cold."),
    done(&["-R"], NONE, "Print a table of each test after the rows."),
    done(&["-b"], Argument::Required("FILE"), "Write the tables to a new workbook (Excel 2.1). Includes -R."),
    done(&["-O"], NONE, "Print operations per second."),
    done(&["-N"], NONE, "Print microseconds per operation; not with -t."),
    done(&["-j"], COUNT, "Stride of the strided read in records; only 17 is supported."),
    unused(&["-w"], NONE, "files are removed; a test that reads creates its file first"),
    unused(&["-S"], COUNT, ALIGNMENT),
    unused(&["-L"], COUNT, ALIGNMENT),
    unused(&["-m"], NONE, "it changes the buffer of IOzone and does not affect the calls"),
    unused(&["-M"], NONE, "the head of the output has the kernel"),
    refused(&["-B"], MMAP, MMAP_HINT),
    refused(&["-D"], MMAP, MMAP_HINT),
    refused(&["-G"], MMAP, MMAP_HINT),
    refused(&["-Z"], MMAP, MMAP_HINT),
    refused(&["-+A"], MMAP, MMAP_HINT),
    refused(&["-H"], AIO, AIO_HINT),
    refused(&["-k"], AIO, AIO_HINT),
    refused(&["-J"], PACE, PACE_HINT),
    refused(&["-+J"], PACE, PACE_HINT),
    refused(&["-+O"], PACE, PACE_HINT),
    refused(&["-+b"], PACE, PACE_HINT),
    refused(&["-p"], "CPU caches are not purged", REMOVE),
    refused(&["-d"], "workers start together", REMOVE),
    refused(&["-K"], "reads are not disturbed", REMOVE),
    refused(&["-W"], LOCKS, "use suite `dbench`, whose loadfiles lock"),
    refused(&["-+l"], LOCKS, "use suite `dbench`, whose loadfiles lock"),
    refused(&["-+L"], LOCKS, "use suite `dbench`, whose loadfiles lock"),
    refused(&["-X"], "offsets are not read from a file", "use suite `stream` with trace_file"),
    refused(&["-Y"], "offsets are not read from a file", "use suite `stream` with trace_file"),
    refused(&["-V"], DATA, DATA_HINT),
    refused(&["-+d"], DATA, DATA_HINT),
    refused(&["-+w"], DATA, "use suite `stream` with duplicate_fraction"),
    refused(&["-+y"], DATA, "use suite `stream` with duplicate_fraction"),
    refused(&["-+C"], DATA, "use suite `stream` with duplicate_fraction"),
    refused(&["-+S"], DATA, "use suite `stream` with duplicate_fraction"),
    refused(&["-+X"], DATA, DATA_HINT),
    refused(&["-+Z"], DATA, DATA_HINT),
    refused(&["-P"], "workers are not bound to CPUs", "start fslab with taskset(1)"),
    refused(&["-Q"], OFFSETS, OFFSETS_HINT),
    refused(&["-+z"], OFFSETS, OFFSETS_HINT),
    refused(&["-+T"], OFFSETS, OFFSETS_HINT),
    refused(&["-+u"], "there are no tables of the CPU time", "the run file of --fslab-run has the CPU time of each test"),
    refused(&["-+B"], "the mixed test is random", REMOVE),
    refused(&["-+K"], "the number of readers is not set directly", "use -+p PERCENT"),
    refused(&["-+k"], "the file size is that of each worker", "divide -s by the number of workers"),
    refused(&["-+V"], "workers do not share a file", "use suite `stream` with sharing=shared"),
    refused(&["-+E"], EXISTING, REMOVE),
    refused(&["-+N"], EXISTING, REMOVE),
    refused(&["-+q"], "there are no pauses; fslab waits until the device is idle", REMOVE),
    refused(&["-+r"], "there is no O_RSYNC; Linux has no separate implementation", "use -o"),
    refused(&["-+m"], HOSTS, HOSTS_HINT),
    refused(&["-+h"], HOSTS, HOSTS_HINT),
    refused(&["-+i"], HOSTS, HOSTS_HINT),
    refused(&["-+s"], HOSTS, HOSTS_HINT),
    refused(&["-+c"], HOSTS, HOSTS_HINT),
    refused(&["-+t"], HOSTS, HOSTS_HINT),
    refused(&["-v"], "this is not IOzone", "use --version"),
];

/// Command line of IOzone.
pub(in crate::commands) const PROGRAM: Program = Program {
    name: "iozone",
    title: "Run the tests of IOzone, with its command line and its output",
    usage: "[OPTIONS]",
    page: "iozone-options.md",
    manual: "fslab-iozone-options",
    introduction: "Options of IOzone 3.471 in `fslab iozone`, which runs suite `iozone` with \
                   `compat = \"iozone\"` once: data, cache state, timing, and calls are those of \
                   IOzone. Sizes are in kB (1024 bytes). Operands that begin with `#` are ignored. \
                   The combinations of sizes are measured in random order, each with a new file. \
                   [Guide](../guides/other-benchmarks.md#iozone).",
    options: OPTIONS,
    own: &[],
};
