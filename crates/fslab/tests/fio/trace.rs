//! System calls on the files of jobs: of fio and of fslab, each traced by strace.

use std::{collections::HashMap, fs, path::Path, process::Command};

use super::FIO;
use crate::support::Bench;

/// Sections: name, options, and the comparison of their calls.
const SECTIONS: &[(&str, &str, Compared)] = &[
    ("write", "rw=write\nsize=16k", Exact),
    ("read", "rw=read\nsize=16k", Exact),
    ("read-rest", "rw=read\nsize=10k", Job),
    ("write-rest", "rw=write\nsize=10k", Exact),
    ("write-sync", "rw=write\nsize=16k\nioengine=sync", Exact),
    ("read-sync", "rw=read\nsize=16k\nioengine=sync", Exact),
    ("read-pvsync2", "rw=read\nsize=16k\nioengine=pvsync2", Exact),
    ("write-pvsync2", "rw=write\nsize=16k\nioengine=pvsync2", Exact),
    ("write-fsync-2", "rw=write\nsize=24k\nfsync=2", Exact),
    ("write-fsync-1", "rw=write\nsize=12k\nfsync=1", Exact),
    ("write-fdatasync", "rw=write\nsize=24k\nfdatasync=4", Exact),
    ("write-range", "rw=write\nsize=24k\nsync_file_range=wait_before,write,wait_after:2", Exact),
    ("write-end", "rw=write\nsize=16k\nend_fsync=1", Exact),
    ("write-close", "rw=write\nsize=16k\nfsync_on_close=1", Exact),
    ("mixed", "rw=rw\nsize=32k\nrwmixread=50", Mixed),
    ("mixed-70", "rw=rw\nsize=64k\nrwmixread=70", Mixed),
    ("loops", "rw=read\nsize=8k\nloops=2", Exact),
    ("io-size-more", "rw=read\nsize=8k\nio_size=16k", Exact),
    ("io-size-write", "rw=write\nsize=20k\nio_size=28k", Exact),
    ("io-size-less", "rw=write\nsize=20k\nio_size=10k", Exact),
    ("sizes", "rw=rw\nsize=256k\nbs=4k,8k\nnumber_ios=20", Count),
    ("sizes-random", "rw=randrw\nsize=256k\nbs=4k,8k\nnorandommap\nnumber_ios=20", Count),
    ("one-size", "rw=write\nsize=64k\nbs=4k,16k", Exact),
    ("create-sync-not", "rw=read\nsize=16k\ncreate_fsync=0", Exact),
    ("number-ios", "rw=write\nsize=16k\nnumber_ios=2", Exact),
    ("filesize", "rw=write\nfilesize=32k\nsize=8k", Exact),
    ("offset", "rw=write\nsize=8k\noffset=8k", Exact),
    ("offset-read", "rw=read\nsize=8k\noffset=8k", Exact),
    ("no-invalidate", "rw=write\nsize=8k\ninvalidate=0", Exact),
    ("no-hint", "rw=write\nsize=8k\nfadvise_hint=0", Exact),
    ("hint-random", "rw=write\nsize=8k\nfadvise_hint=random", Exact),
    ("no-fallocate", "rw=write\nsize=8k\nfallocate=none", Exact),
    ("keep", "rw=write\nsize=8k\nfallocate=keep", Exact),
    ("truncate", "rw=write\nsize=8k\nfallocate=truncate", Exact),
    ("posix", "rw=write\nsize=8k\nfallocate=posix", Exact),
    ("overwrite", "rw=write\nsize=8k\noverwrite=1", Exact),
    ("o-sync", "rw=write\nsize=8k\nsync=1", Exact),
    ("o-dsync", "rw=write\nsize=8k\nsync=dsync", Exact),
    ("direct", "rw=write\nsize=16k\ndirect=1", Exact),
    ("large-blocks", "rw=write\nsize=64k\nbs=16k", Exact),
    ("random-read", "rw=randread\nsize=32k", Multiset),
    ("random-write", "rw=randwrite\nsize=32k", Multiset),
    ("random-loops", "rw=randwrite\nsize=16k\nloops=2", Multiset),
    ("random-fsync", "rw=randwrite\nsize=32k\nfsync=3", Multiset),
    ("aio-write", "rw=write\nsize=24k\nioengine=libaio\niodepth=4", Exact),
    ("aio-read-direct", "rw=read\nsize=24k\nioengine=libaio\niodepth=4\ndirect=1", Job),
    ("aio-random", "rw=randwrite\nsize=32k\nioengine=libaio\niodepth=2", Multiset),
    ("clones", "rw=write\nsize=8k\nnumjobs=2", Exact),
    ("two", "rw=write\nsize=16k\nnrfiles=2", Exact),
    ("two-read", "rw=read\nsize=16k\nnrfiles=2", Exact),
    ("two-rest", "rw=write\nsize=20k\nnrfiles=2", Exact),
    ("two-sync", "rw=write\nsize=16k\nnrfiles=2\nioengine=sync", Exact),
    ("two-pvsync2", "rw=write\nsize=16k\nnrfiles=2\nioengine=pvsync2", Exact),
    ("two-aio", "rw=write\nsize=24k\nnrfiles=2\nioengine=libaio\niodepth=4", Exact),
    ("two-turns", "rw=write\nsize=32k\nnrfiles=2\nfile_service_type=roundrobin:2", Exact),
    ("two-sequential", "rw=write\nsize=16k\nnrfiles=2\nfile_service_type=sequential", Exact),
    ("two-random", "rw=write\nsize=32k\nnrfiles=2\nfile_service_type=random", PerFile),
    ("two-random-write", "rw=randwrite\nsize=32k\nnrfiles=2", Multiset),
    ("two-mixed", "rw=rw\nsize=64k\nnrfiles=2", Mixed),
    ("two-fsync", "rw=write\nsize=24k\nnrfiles=2\nfsync=2", Exact),
    ("two-end", "rw=write\nsize=16k\nnrfiles=2\nend_fsync=1", Exact),
    ("two-close", "rw=write\nsize=16k\nnrfiles=2\nfsync_on_close=1", Exact),
    ("two-loops", "rw=write\nsize=16k\nnrfiles=2\nloops=2", Exact),
    ("two-io-size", "rw=write\nsize=16k\nnrfiles=2\nio_size=24k", Exact),
    ("two-number", "rw=write\nsize=16k\nnrfiles=2\nnumber_ios=3", Exact),
    ("two-filesize", "rw=write\nsize=16k\nfilesize=16k\nnrfiles=2", Exact),
    ("two-filesize-all", "rw=write\nfilesize=16k\nnrfiles=2", Exact),
    ("two-offset", "rw=write\nsize=16k\nnrfiles=2\noffset=4k", Exact),
    ("two-overwrite", "rw=write\nsize=16k\nnrfiles=2\noverwrite=1", Exact),
    ("two-clones", "rw=write\nsize=16k\nnrfiles=2\nnumjobs=2", Exact),
    ("format", "rw=write\nsize=16k\nnrfiles=2\nfilename_format=$jobname.0.$filenum", Exact),
    ("list", "rw=write\nsize=16k\nfilename=list.0.0:list.0.1", Exact),
    ("three-open", "rw=write\nsize=24k\nnrfiles=3\nopenfiles=2", Exact),
    ("time", "rw=read\nsize=8k\ntime_based\nruntime=1\nthinktime=80000", Start),
    ("two-time", "rw=read\nsize=16k\nnrfiles=2\ntime_based\nruntime=1\nthinktime=80000", Start),
    ("directories", "rw=write\nsize=8k\nnumjobs=3\ndirectory=d1:d2", Exact),
    ("range-write", "rw=write\nsize=24k\nsync_file_range=write:4", Exact),
    ("range-before", "rw=write\nsize=24k\nsync_file_range=wait_before,write:2", Exact),
    ("range-after", "rw=write\nsize=24k\nsync_file_range=wait_after:3", Exact),
    ("holes", "rw=read:8k\nsize=32k", Exact),
    ("holes-write", "rw=write:8k\nsize=32k", Exact),
    ("holes-offset", "rw=write:8k\nsize=32k\noffset=8k\nio_size=12k", Exact),
    ("holes-loops", "rw=write:4k\nsize=32k\nio_size=8k\nloops=2", Exact),
    ("holes-part", "rw=write:8k\noffset=4k\nfilesize=64k\nsize=64k\nio_size=16k", Exact),
    (
        "holes-clones",
        "rw=write:8k\noffset_increment=4k\nfilesize=64k\nsize=64k\nio_size=8k\nnumjobs=2",
        Exact,
    ),
    (
        "holes-backlog",
        "rw=write:4k\nsize=32k\nio_size=8k\nloops=2\nverify=crc32c\nverify_backlog=1",
        Backlog,
    ),
    ("holes-end", "rw=write:4k\nsize=36k", Exact),
    ("back", "rw=read:-8k\nsize=32k", Exact),
    ("back-far", "rw=write:-12k\nsize=32k", Exact),
    ("back-none", "rw=write:-4k\nsize=16k", Exact),
    ("percent-none", "rw=randwrite\nsize=32k\npercentage_random=0", Exact),
    ("percent", "rw=randwrite\nsize=32k\npercentage_random=50", Count),
    ("runs", "rw=randwrite:4\nsize=64k", Count),
    ("identical", "rw=randread:4\nsize=64k\nrw_sequencer=identical", Count),
    ("zones", "rw=randwrite\nsize=64k\nrandom_distribution=zoned:50/25:50/75", Count),
    ("aligned", "rw=randread\nsize=64k\nbs=16k\nba=4k", Count),
    ("aligned-more", "rw=randwrite\nsize=64k\nba=8k", Count),
    (
        "aligned-split",
        "rw=randwrite\nsize=64k\nbssplit=4k/100\nba=8k\nnumber_ios=20\nio_size=1m",
        Count,
    ),
    ("aligned-not", "rw=write\nsize=64k\nbs=16k\nba=4k", Exact),
    ("repeated", "rw=randwrite\nsize=16k\nnorandommap\nio_size=64k", Count),
    ("repeated-loops", "rw=randwrite\nsize=16k\nnorandommap\nloops=3\nio_size=32k", Count),
    ("repeated-two", "rw=randwrite\nsize=32k\nnrfiles=2\nnorandommap\nloops=3", Count),
    ("zipf-more", "rw=randwrite\nsize=16k\nrandom_distribution=zipf:1.1\nio_size=64k", Count),
    ("runs-more", "rw=randwrite:4\nsize=64k\nnorandommap\nio_size=256k", Count),
    ("normal", "rw=randwrite\nsize=64k\nrandom_distribution=normal:20", Count),
    ("think", "rw=write\nsize=24k\nthinktime=9000", Exact),
    ("aio-think", "rw=write\nsize=24k\nioengine=libaio\niodepth=4\nthinktime=9000", Exact),
    ("rate", "rw=write\nsize=24k\nrate_iops=200", Exact),
    ("rate-mixed", "rw=rw\nsize=64k\nrate_iops=400,200", Mixed),
    ("verify", "rw=write\nsize=24k\nverify=crc32c", Verified),
    ("verify-random", "rw=randwrite\nsize=32k\nverify=md5", Verified),
    ("verify-part", "rw=write\nsize=32k\nio_size=16k\nverify=md5", Verified),
    ("backlog", "rw=write\nsize=32k\nverify=crc32c\nverify_backlog=3", Backlog),
    ("backlog-one", "rw=write\nsize=16k\nverify=crc32c\nverify_backlog=1", Backlog),
    (
        "backlog-batch",
        "rw=write\nsize=32k\nverify=crc32c\nverify_backlog=4\nverify_backlog_batch=2",
        Backlog,
    ),
    (
        "backlog-more",
        "rw=write\nsize=40k\nverify=crc32c\nverify_backlog=3\nverify_backlog_batch=5",
        Backlog,
    ),
    ("backlog-random", "rw=randwrite\nsize=32k\nverify=md5\nverify_backlog=3", Verified),
    ("backlog-two", "rw=write\nsize=32k\nnrfiles=2\nverify=md5\nverify_backlog=2", Backlog),
    ("backlog-not", "rw=write\nsize=16k\nverify=md5\nverify_backlog=3\ndo_verify=0", Exact),
    ("unlink-loops", "rw=write\nsize=8k\nloops=2\nunlink_each_loop=1", Exact),
    ("unlink-io-size", "rw=write\nsize=8k\nio_size=16k\nunlink_each_loop=1", Exact),
    ("unlink-two", "rw=write\nsize=8k\nnrfiles=2\nloops=2\nunlink_each_loop=1", Exact),
    ("seq-sizes", "rw=write\nsize=64k\nbs=8k,4k\nbs_is_seq_rand=1", Exact),
    ("random-sizes", "rw=randwrite\nsize=64k\nbs=8k,4k\nbs_is_seq_rand=1", Multiset),
    (
        "random-sizes-read",
        "rw=randread\nsize=1m\nbs=4k,8k\nbs_is_seq_rand=1\nnorandommap\nnumber_ios=8",
        Count,
    ),
    (
        "runs-sizes",
        "rw=randread:4\nsize=4m\nbs=4k,16k\nbs_is_seq_rand=1\nnorandommap\nnumber_ios=16",
        Count,
    ),
    ("append-new", "rw=write\nsize=8k\nfile_append=1", Exact),
    ("numa", "rw=write\nsize=8k\nnuma_cpu_nodes=0", Exact),
    ("falloc", "rw=write\nsize=16k\nioengine=falloc", Exact),
    ("falloc-read", "rw=read\nsize=16k\nioengine=falloc", Job),
    ("falloc-two", "rw=write\nsize=16k\nnrfiles=2\nioengine=falloc", Exact),
    ("ftruncate", "rw=write\nsize=16k\nioengine=ftruncate", Exact),
    ("create", "filesize=4k\nnrfiles=3\nopenfiles=1\nioengine=filecreate", Exact),
    ("verify-not", "rw=write\nsize=16k\nverify=crc32c\ndo_verify=0", Exact),
];

use Compared::{Backlog, Count, Exact, Job, Mixed, Multiset, PerFile, Start, Verified};

/// Comparison of the calls of a section.
#[derive(Clone, Copy, PartialEq)]
enum Compared {
    /// The same calls in the same order, with those that create the file. Transfers of a worker
    /// are in the same order on all of its files.
    Exact,
    /// As `Exact`, in any order of the files.
    PerFile,
    /// As `Exact`, from the open of the section.
    Job,
    /// As `Job`, only the first calls: a time ends the section.
    Start,
    /// The same calls, with transfers in any order.
    Multiset,
    /// The same number of transfers; reads in order, and writes in order.
    Mixed,
    /// The same number of transfers.
    Count,
    /// As `Multiset`, without syncs: fslab drops clean pages before it verifies. Reads are in the
    /// order of the writes. fslab opens the files for reading only to verify them.
    Verified,
    /// As `Verified`, with transfers in the same order.
    Backlog,
}

const CALLS: &str = "open,openat,close,unlink,unlinkat,fallocate,ftruncate,fadvise64,pread64,pwrite64,\
                     read,write,lseek,fsync,fdatasync,sync_file_range,io_submit,preadv2,pwritev2,\
                     preadv,pwritev";

pub(super) fn compare() {
    let bench = Bench::new();
    let mut job = String::from("[global]\nbs=4k\n");
    for (name, options, _) in SECTIONS {
        job.push_str(&format!("[{name}]\nstonewall\n{options}\n"));
    }
    let theirs = traced(&bench, "theirs", &[FIO, "job.fio"], &job);
    let ours = traced(&bench, "ours", &[env!("CARGO_BIN_EXE_fslab"), "fio", "job.fio"], &job);
    let mut different = Vec::new();
    let mut count = 0;
    for (name, options, compared) in SECTIONS.iter().copied() {
        let number = |option: &str| {
            let value = options.lines().find_map(|line| line.strip_prefix(option));
            value.map_or(1, |number| number.parse::<usize>().unwrap())
        };
        let files = number("nrfiles=").max(options.matches(".0.").count());
        for worker in 0..number("numjobs=") {
            let names: Vec<String> = (0..files)
                .map(|file| match options.contains("directory=") {
                    true => format!("d{}/{name}.{worker}.{file}", worker % 2 + 1),
                    false => format!("{name}.{worker}.{file}"),
                })
                .collect();
            for file in &names {
                let [own, other] = [&ours, &theirs].map(|all| normalized(all.of(file), compared));
                assert!(!other.is_empty(), "no call of fio on {file}");
                count += 1;
                if own != other {
                    different.push(format!("{file}\n  fio:   {other:?}\n  fslab: {own:?}"));
                }
            }
            let [own, other] = [&ours, &theirs].map(|all| all.transfers(&names));
            if matches!(compared, Exact | Job) && names.len() > 1 && own != other {
                different.push(format!("{name}\n  fio:   {other:?}\n  fslab: {own:?}"));
            }
        }
    }
    assert!(
        different.is_empty(),
        "{} of {count} differ\n{}",
        different.len(),
        different.join("\n")
    );
}

/// Calls of a program: file and call, in the order of time.
struct Trace(Vec<(String, Call)>);

impl Trace {
    /// Calls on a file.
    fn of(&self, file: &str) -> Vec<Call> {
        self.0.iter().filter(|(own, _)| own == file).map(|(_, call)| call.clone()).collect()
    }

    /// Transfers on files, after the last one was created.
    fn transfers(&self, files: &[String]) -> Vec<String> {
        let own = self.0.iter().filter(|(file, _)| files.contains(file));
        let mut opened = HashMap::<&str, u32>::new();
        let mut found = Vec::new();
        for (file, call) in own {
            if call.0.starts_with("open ") {
                *opened.entry(file).or_default() += 1;
            }
            let is_measured = opened.get(file.as_str()).is_some_and(|count| *count > 1);
            if is_measured && is_transfer(&call.0) {
                found.push(format!("{file} {}", call.0));
            }
        }
        found
    }
}

fn is_transfer(call: &str) -> bool {
    ["read ", "write ", "aio ", "vector "].iter().any(|kind| call.starts_with(kind))
}

/// Call on a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Call(String);

/// Calls on each file, in the order of time.
fn traced(bench: &Bench, name: &str, program: &[&str], job: &str) -> Trace {
    let directory = bench.path(name);
    for own in ["d1", "d2"] {
        fs::create_dir_all(directory.join(own)).unwrap();
    }
    fs::write(directory.join("job.fio"), job).unwrap();
    let traces = bench.path(&format!("{name}-trace"));
    fs::create_dir_all(&traces).unwrap();
    let output = Command::new("strace")
        // -A: a later thread may have the number of one that ended, and must not replace its trace.
        .args(["-ff", "-A", "-ttt", "-v", "-s", "0", "-e", &format!("trace={CALLS}"), "-o"])
        .arg(traces.join("t"))
        .args(program)
        .current_dir(&directory)
        .env("FSLAB_STATE", bench.state())
        .output()
        .unwrap();
    assert!(output.status.success(), "{program:?}: {output:?}");
    let mut all: Vec<(f64, String, Call)> = Vec::new();
    for file in fs::read_dir(&traces).unwrap() {
        all.extend(calls(&file.unwrap().path()));
    }
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    Trace(all.into_iter().map(|(_, file, call)| (file, call)).collect())
}

/// Calls of a thread on files of sections: time, file, and call.
fn calls(trace: &Path) -> Vec<(f64, String, Call)> {
    let text = fs::read_to_string(trace).unwrap();
    let mut open: HashMap<String, String> = HashMap::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let Some((time, rest)) = line.split_once(' ') else { continue };
        let Some((name, rest)) = rest.split_once('(') else { continue };
        let Some((arguments, result)) = rest.rsplit_once(") = ").or_else(|| rest.rsplit_once(')'))
        else {
            continue;
        };
        let time: f64 = time.parse().unwrap_or(0.0);
        let result = result.trim_start_matches([' ', '=']).split(' ').next().unwrap_or_default();
        let parts: Vec<&str> = arguments.split(", ").collect();
        let path = |place: usize| {
            let path = parts.get(place).copied().unwrap_or_default().trim_matches('"');
            let mut names = path.rsplit('/');
            let name = names.next().unwrap_or_default();
            let above = names.next().filter(|above| ["d1", "d2"].contains(above));
            let number = name.rsplit('.').next().unwrap_or_default();
            let is_file = number.len() == 1 && number.chars().all(|own| own.is_ascii_digit());
            is_file.then(|| above.map_or(name.to_owned(), |above| format!("{above}/{name}")))
        };
        let mut add = |file: &str, call: String| found.push((time, file.to_owned(), Call(call)));
        match name {
            "open" | "openat" => {
                let place = usize::from(name == "openat");
                let Some(file) = path(place) else { continue };
                if result.starts_with('-') {
                    continue;
                }
                let mut flags: Vec<&str> = parts[place + 1]
                    .split('|')
                    .filter(|flag| {
                        // fslab creates files exclusively instead of truncating an unlinked one.
                        !["O_CLOEXEC", "O_NOATIME", "O_LARGEFILE", "O_EXCL", "O_TRUNC"]
                            .contains(flag)
                    })
                    .collect();
                flags.sort_unstable();
                add(&file, format!("open {}", flags.join("|")));
                open.insert(result.to_owned(), file);
            }
            "close" => drop(open.remove(parts[0])),
            "io_submit" => {
                for (file, call) in submitted(arguments, &open) {
                    add(&file, call);
                }
            }
            _ => {
                let Some(file) = parts.first().and_then(|own| open.get(*own)).cloned() else {
                    continue;
                };
                let all = |from: usize| parts[from..].join(" ");
                match name {
                    "fallocate" | "ftruncate" | "fadvise64" | "fsync" | "fdatasync"
                    | "sync_file_range" => add(&file, format!("{name} {}", all(1))),
                    "pread64" => add(&file, format!("read {}", parts[2..].join(" "))),
                    "pwrite64" => add(&file, format!("write {}", parts[2..].join(" "))),
                    "read" | "write" => add(&file, format!("{name} {result}")),
                    "lseek" => add(&file, format!("seek {}", all(1))),
                    "preadv" | "preadv2" | "pwritev" | "pwritev2" => {
                        let kind = if name.starts_with("pread") { "read" } else { "write" };
                        add(&file, format!("vector {kind} {result} {}", parts[parts.len() - 2]));
                    }
                    _ => {}
                }
            }
        }
    }
    found
}

/// Operations of io_submit(2): file and call.
fn submitted(arguments: &str, open: &HashMap<String, String>) -> Vec<(String, String)> {
    let one = |block: &str| {
        let value = |key: &str| {
            let rest = block.split_once(key)?.1;
            Some(rest.split([',', '}']).next()?.to_owned())
        };
        let file = open.get(&value("fildes=")?)?.clone();
        let kind = if block.contains("PREAD") { "read" } else { "write" };
        let [bytes, offset] = ["nbytes=", "offset="].map(|key| value(key).unwrap_or_default());
        Some((file, format!("aio {kind} {bytes} {offset}")))
    };
    arguments.split("{aio_").skip(1).filter_map(one).collect()
}

/// Calls in the form that is compared.
fn normalized(calls: Vec<Call>, compared: Compared) -> Vec<String> {
    let mut all: Vec<String> = calls.into_iter().map(|call| call.0).collect();
    // The last open before the transfers is that of the worker. What creates a file before it is
    // the layout: its writes are compared by their total, because fio uses write(2).
    let opens: Vec<usize> = (0..all.len()).filter(|at| all[*at].starts_with("open ")).collect();
    let laid_out =
        all.iter().take(opens.get(1).copied().unwrap_or(0)).any(|own| own.starts_with("fsync"));
    let first = opens.get(1).copied().unwrap_or(0);
    let mut head = Vec::new();
    if !matches!(compared, Job | Start) {
        let mut written = 0u64;
        for call in &all[..first] {
            let words: Vec<&str> = call.split(' ').collect();
            match words[0] {
                "open" => head.push("create".to_owned()),
                "write" => written += words[1].parse::<u64>().unwrap_or(0),
                // The size after fallocate is that of ftruncate.
                "ftruncate" if laid_out => {}
                _ => {
                    if words[0] == "fsync" {
                        head.push(format!("written {written}"));
                    }
                    head.push(call.clone());
                }
            }
        }
    }
    let mut rest = all.split_off(first);
    // Seeks of the sync engine are only needed if the position differs.
    rest.retain(|call| !call.starts_with("seek"));
    match compared {
        Exact | Job | PerFile => {}
        Count => {
            let count = rest.iter().filter(|own| is_transfer(own)).count();
            rest.retain(|own| !is_transfer(own));
            rest.push(format!("{count} transfers"));
        }
        Start => rest.truncate(8),
        Verified | Backlog => {
            rest.retain(|own| !own.starts_with("fsync"));
            if let Some(last) = rest.iter_mut().rev().find(|own| own.starts_with("open ")) {
                "open".clone_into(last);
            }
            let places = |kind: &str| -> Vec<String> {
                rest.iter().filter_map(|own| own.strip_prefix(kind)).map(str::to_owned).collect()
            };
            assert_eq!(places("read "), places("write "), "reads are in the order of the writes");
            if compared == Verified {
                sort_transfers(&mut rest);
            }
        }
        Multiset => sort_transfers(&mut rest),
        Mixed => {
            let count = rest.iter().filter(|own| is_transfer(own)).count();
            for kind in ["read ", "write "] {
                let offsets: Vec<u64> = rest
                    .iter()
                    .filter(|own| own.starts_with(kind))
                    .map(|own| own.rsplit(' ').next().unwrap().parse().unwrap())
                    .collect();
                let expected: Vec<u64> = (0..offsets.len() as u64).map(|at| at * 4096).collect();
                assert_eq!(offsets, expected, "{kind}is sequential");
            }
            rest.retain(|own| !is_transfer(own));
            rest.push(format!("{count} transfers"));
        }
    }
    head.extend(rest);
    head
}

/// Sorts the transfers among the places of transfers.
fn sort_transfers(calls: &mut [String]) {
    let mut sorted: Vec<String> = calls.iter().filter(|own| is_transfer(own)).cloned().collect();
    sorted.sort_unstable();
    let places = calls.iter_mut().filter(|own| is_transfer(own));
    places.zip(sorted).for_each(|(place, call)| *place = call);
}
