//! Runs a phase in a separate process under strace(1), and returns its system calls on the files
//! below a directory.
//!
//! The input are a phase and its directory, the output [`Call`]s: those of each thread separately,
//! in order. Transferred data and results are ignored, except for short transfers. `O_CLOEXEC` and
//! `O_LARGEFILE` are omitted, because they are irrelevant here. Calls for the same purpose have one
//! name: `openat` is reported as `open`, `newfstatat` as `stat`, and so on.

use std::{
    env,
    ffi::OsString,
    fmt, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::AtomicBool,
};

use engine::{Context, Progress};
use model::phase::Work;
use tempfile::TempDir;

/// Argument that makes the test binary run a phase, followed by directory and phase.
pub(crate) const ROLE: &str = "--role-phase";

/// Traced calls: all that take a file or its name. The question mark permits calls that the
/// architecture does not have.
const CALLS: &str = "?open ?openat ?openat2 ?creat ?close ?read ?write ?pread64 ?pwrite64 ?readv \
    ?writev ?preadv ?pwritev ?preadv2 ?pwritev2 ?lseek ?fsync ?fdatasync ?sync_file_range ?sync \
    ?syncfs ?stat ?lstat ?fstat ?newfstatat ?statx ?access ?faccessat ?faccessat2 ?unlink ?unlinkat \
    ?mkdir ?mkdirat ?rmdir ?link ?linkat ?symlink ?symlinkat ?rename ?renameat ?renameat2 \
    ?getdents64 ?truncate ?ftruncate ?fallocate ?mmap ?chmod ?fchmod ?fchmodat ?chown ?fchown ?fchownat ?utimensat \
    ?mknod ?mknodat ?chdir ?fstatfs ?fcntl ?setxattr \
    ?fsetxattr ?getxattr ?fgetxattr ?listxattr ?flistxattr";

/// Call on a file below the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Usual name: `open`, `read`, `stat`.
    pub(crate) name: String,
    /// Path of the file, empty for the directory itself and for sync(2).
    pub(crate) path: PathBuf,
    /// Other arguments: flags and mode, length, offset and origin.
    pub(crate) details: String,
}

/// Without the path.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.details.is_empty() { Ok(()) } else { write!(f, " {}", self.details) }
    }
}

/// True if strace(1) is installed and may trace; prints a message if not.
pub(crate) fn available() -> bool {
    let mut probe = Command::new("strace");
    probe.args(["-o", "/dev/null", "true"]).stdin(Stdio::null()).stderr(Stdio::null());
    let available = probe.status().is_ok_and(|status| status.success());
    if !available {
        eprintln!("skipped: needs strace");
    }
    available
}

/// Calls of all threads that made any, per thread, in the order of their start.
pub(crate) fn threads(work: &Work, directory: &Path) -> Vec<Vec<Call>> {
    let directory = fs::canonicalize(directory).unwrap();
    let traces = TempDir::new().unwrap();
    let output = Command::new("strace")
        .args(["--seccomp-bpf", "-f", "-ff", "-qq", "-y", "-s", "0", "-e"])
        .arg(format!("trace={}", CALLS.split_whitespace().collect::<Vec<_>>().join(",")))
        .arg("-o")
        .arg(traces.path().join("thread"))
        .arg(env::current_exe().unwrap())
        .arg(ROLE)
        .arg(&directory)
        .arg(serde_json::to_string(work).unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the phase under strace failed: {said}");
    let mut files: Vec<(u32, PathBuf)> = fs::read_dir(traces.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.extension().unwrap().to_str().unwrap().parse().unwrap(), path))
        .collect();
    files.sort();
    let calls = |(_, path): &(u32, PathBuf)| {
        let text = fs::read_to_string(path).unwrap();
        text.lines().filter_map(|line| parse(line, &directory)).collect::<Vec<_>>()
    };
    files.iter().map(calls).filter(|calls| !calls.is_empty()).collect()
}

/// Calls of a phase, one thread after the other; see [`Call`] for the format.
pub(crate) fn traced(work: &Work, directory: &Path) -> Vec<String> {
    threads(work, directory).iter().flatten().map(Call::to_string).collect()
}

/// Entry point of the traced process: `arguments` are those after [`ROLE`].
pub(crate) fn perform(arguments: &[OsString]) {
    let [directory, work] = arguments else { panic!("a directory and a phase") };
    let work: Work = serde_json::from_str(work.to_str().unwrap()).unwrap();
    let context = Context {
        directory: Path::new(directory),
        progress: &Progress::default(),
        interrupt: &AtomicBool::new(false),
        state: None,
        worker_command: &[],
        start: None,
    };
    let result = match &work {
        Work::Stream(stream) => engine::run(stream, &context),
        Work::Tree(tree) => engine::run_tree(tree, &context),
        Work::Mix(mix) => engine::run_mix(mix, &context),
        Work::Replay(replay) => engine::run_replay(replay, &context),
        Work::Layout(layout) => engine::run_layout(layout, &context),
        Work::Remove { files, workers } => engine::remove(files, *workers, &context),
        Work::Sqlite(sqlite) => engine::run_sqlite(sqlite, &context),
        Work::Mail(mail) => engine::run_mail(mail, &context),
        Work::Task(_)
        | Work::Command(_)
        | Work::Trace(_)
        | Work::Maintenance(_)
        | Work::Coherence(_) => {
            panic!("tasks, commands, recordings, maintenance, and coherence have no fixtures")
        }
    };
    result.unwrap();
}

/// Lines of a fixture, one per call: without blank lines and text after `#`, and with `LINE xN` as
/// N lines.
pub(crate) fn expected(fixture: &str) -> Vec<String> {
    let lines = fixture.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let times = |line: &str| {
        let (call, times) = line.rsplit_once(" x")?;
        Some((call.to_owned(), times.parse().ok()?))
    };
    lines
        .filter(|line| !line.is_empty())
        .flat_map(|line| {
            let (call, times) = times(line).unwrap_or((line.to_owned(), 1));
            std::iter::repeat_n(call, times)
        })
        .collect()
}

/// Parses a line of strace(1); `None` for calls outside the directory.
fn parse(line: &str, directory: &Path) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    let (reported, answer) = rest.rsplit_once(" = ")?;
    let mut arguments = split(reported.trim_end().strip_suffix(')')?);
    if name.starts_with("symlink") {
        // The target precedes the new name.
        arguments.remove(0);
    }
    let removes_directory = arguments.last() == Some(&"AT_REMOVEDIR");
    let argument = |index: usize| arguments.get(index).copied().unwrap_or_default();
    let name = if removes_directory { "rmdir" } else { usual(name) };
    if name == "sync" {
        return Some(Call { name: name.into(), path: PathBuf::new(), details: String::new() });
    }
    // `3</path>`, `AT_FDCWD</path>, "name"`, or `"/path"`: the path, and the index of the next
    // argument.
    let (path, next) = match (opened(argument(0)), quoted(argument(0)), quoted(argument(1))) {
        (Some(at), _, Some(name)) if !moves(name_of(line)) => (Path::new(at).join(name), 2),
        (Some(file), _, _) => (file.into(), 1),
        (None, Some(name), _) => (name.into(), 1),
        (None, None, _) if name == "mmap" => (opened(argument(4))?.into(), 2),
        (None, None, _) => return None,
    };
    // In debug builds, std checks a descriptor before it closes it.
    if name == "fcntl" && argument(next) == "F_GETFD" {
        return None;
    }
    let path = path.strip_prefix(directory).ok()?.to_path_buf();
    let details = match name {
        "open" => {
            let flags = argument(next).split('|');
            let kept: Vec<_> =
                flags.filter(|flag| !["O_CLOEXEC", "O_LARGEFILE"].contains(flag)).collect();
            format!("{} {}", kept.join("|"), argument(next + 1)).trim_end().to_owned()
        }
        "read" | "write" => {
            let short = if answer == argument(2) { "" } else { answer };
            format!("{} {short}", argument(2)).trim_end().to_owned()
        }
        "pread" | "pwrite" => format!("{} at {}", argument(2), argument(3)),
        "stat" | "getdents64" | "unlink" | "rmdir" | "link" | "symlink" | "rename" | "chown"
        | "fstatfs" => String::new(),
        _ => arguments.get(next..).unwrap_or_default().join(" "),
    };
    Some(Call { name: name.into(), path, details })
}

fn name_of(line: &str) -> &str {
    line.split('(').next().unwrap_or_default()
}

/// True if the second argument is data, not a name.
fn moves(name: &str) -> bool {
    ["read", "write", "pread", "pwrite"].iter().any(|call| name.starts_with(call))
}

/// Common name of calls with the same effect.
fn usual(name: &str) -> &str {
    match name {
        "openat" | "openat2" | "creat" => "open",
        "lstat" | "fstat" | "newfstatat" | "statx" => "stat",
        "pread64" => "pread",
        "pwrite64" => "pwrite",
        "unlinkat" => "unlink",
        "mkdirat" => "mkdir",
        "linkat" => "link",
        "symlinkat" => "symlink",
        "renameat" | "renameat2" => "rename",
        "fchmodat" => "chmod",
        "fchownat" => "chown",
        "mknodat" => "mknod",
        name => name,
    }
}

/// File of `3</path>` or `AT_FDCWD</path>`, also if it was removed.
fn opened(argument: &str) -> Option<&str> {
    argument.trim_end_matches("(deleted)").strip_suffix('>')?.split_once('<').map(|(_, path)| path)
}

/// Text of `"text"`; data strings are truncated to zero length and followed by dots.
fn quoted(argument: &str) -> Option<&str> {
    argument.strip_prefix('"')?.strip_suffix('"')
}

/// Arguments, separated at commas outside of brackets, braces, and quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut depth, mut quotes) = (Vec::new(), 0, 0, false);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quotes = !quotes,
            b'{' | b'[' | b'(' if !quotes => depth += 1,
            b'}' | b']' | b')' if !quotes => depth -= 1,
            b',' if !quotes && depth == 0 => {
                parts.push(text[from..index].trim());
                from = index + 1;
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}
