//! Runs a phase in a process of its own under strace(1), and tells the system calls that it made on
//! the files below a directory.
//!
//! In go a phase and its directory, out come [`Call`]s: those of each thread apart, in the order in
//! which it made them. What a call moved is not looked at, nor what it answered, but for transfers
//! that were short. `O_CLOEXEC` and `O_LARGEFILE` are left out, as they make no difference here.
//! Calls for the same purpose have one name: `openat` is told as `open`, `newfstatat` as `stat`,
//! and so on.

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

/// The argument that makes the test binary do a phase: then come the directory and the phase.
pub(crate) const ROLE: &str = "--role-phase";

/// The calls that are looked at: all that take a file or its name. One that the processor at hand
/// does not have is no error with the question mark.
const CALLS: &str = "?open ?openat ?openat2 ?creat ?close ?read ?write ?pread64 ?pwrite64 ?readv \
    ?writev ?preadv ?pwritev ?preadv2 ?pwritev2 ?lseek ?fsync ?fdatasync ?sync_file_range ?sync \
    ?syncfs ?stat ?lstat ?fstat ?newfstatat ?statx ?access ?faccessat ?faccessat2 ?unlink ?unlinkat \
    ?mkdir ?mkdirat ?rmdir ?link ?linkat ?symlink ?symlinkat ?rename ?renameat ?renameat2 \
    ?getdents64 ?truncate ?ftruncate ?fallocate ?mmap ?chmod ?fchmod ?fchmodat ?chown ?fchown ?fchownat ?utimensat \
    ?mknod ?mknodat ?chdir ?fstatfs ?fcntl ?setxattr \
    ?fsetxattr ?getxattr ?fgetxattr ?listxattr ?flistxattr";

/// A call on something below the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Its usual name: `open`, `read`, `stat`.
    pub(crate) name: String,
    /// What it was made on, the directory itself being empty; what sync(2) is made on, too.
    pub(crate) path: PathBuf,
    /// What else it was told: flags and mode, a length, a distance and from where.
    pub(crate) details: String,
}

/// Without the path.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.details.is_empty() { Ok(()) } else { write!(f, " {}", self.details) }
    }
}

/// Whether strace(1) is there and allowed to trace; says so if not.
pub(crate) fn available() -> bool {
    let mut probe = Command::new("strace");
    probe.args(["-o", "/dev/null", "true"]).stdin(Stdio::null()).stderr(Stdio::null());
    let available = probe.status().is_ok_and(|status| status.success());
    if !available {
        eprintln!("skipped: needs strace");
    }
    available
}

/// The calls of all threads that made any, each thread's apart, in the order of their start.
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

/// The calls of a phase one by one, one thread's after the other's: see [`Call`] for the form.
pub(crate) fn traced(work: &Work, directory: &Path) -> Vec<String> {
    threads(work, directory).iter().flatten().map(Call::to_string).collect()
}

/// The life of the process that is traced: `arguments` are those after [`ROLE`].
pub(crate) fn perform(arguments: &[OsString]) {
    let [directory, work] = arguments else { panic!("a directory and a phase") };
    let work: Work = serde_json::from_str(work.to_str().unwrap()).unwrap();
    let context = Context {
        directory: Path::new(directory),
        progress: &Progress::default(),
        interrupt: &AtomicBool::new(false),
        state: None,
        worker_command: &[],
    };
    let result = match &work {
        Work::Stream(stream) => engine::run(stream, &context),
        Work::Tree(tree) => engine::run_tree(tree, &context),
        Work::Mix(mix) => engine::run_mix(mix, &context),
        Work::Replay(replay) => engine::run_replay(replay, &context),
        Work::Layout(layout) => engine::run_layout(layout, &context),
        Work::Remove { files, workers } => engine::remove(files, *workers, &context),
        Work::Task(_) => panic!("tasks have no fixtures"),
    };
    result.unwrap();
}

/// The lines of a fixture, one for each call: without blank lines and what follows a `#`, and with
/// `LINE xN` as N lines.
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

/// A line of strace(1); `None` for what is not below the directory.
fn parse(line: &str, directory: &Path) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    let (told, answer) = rest.rsplit_once(" = ")?;
    let mut arguments = split(told.trim_end().strip_suffix(')')?);
    if name.starts_with("symlink") {
        // What it refers to comes before the name that is made.
        arguments.remove(0);
    }
    let removes_directory = arguments.last() == Some(&"AT_REMOVEDIR");
    let argument = |index: usize| arguments.get(index).copied().unwrap_or_default();
    let name = if removes_directory { "rmdir" } else { usual(name) };
    if name == "sync" {
        return Some(Call { name: name.into(), path: PathBuf::new(), details: String::new() });
    }
    // `3</path>`, `AT_FDCWD</path>, "name"`, or `"/path"`: where it is, and what follows.
    let (path, next) = match (opened(argument(0)), quoted(argument(0)), quoted(argument(1))) {
        (Some(at), _, Some(name)) if !moves(name_of(line)) => (Path::new(at).join(name), 2),
        (Some(file), _, _) => (file.into(), 1),
        (None, Some(name), _) => (name.into(), 1),
        (None, None, _) if name == "mmap" => (opened(argument(4))?.into(), 2),
        (None, None, _) => return None,
    };
    // The standard library looks whether a descriptor is open before it closes it, in debug builds.
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

/// Whether the second argument is data, and no name.
fn moves(name: &str) -> bool {
    ["read", "write", "pread", "pwrite"].iter().any(|call| name.starts_with(call))
}

/// One name for the calls that do the same.
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

/// The file of `3</path>` or `AT_FDCWD</path>`, also where it was removed meanwhile.
fn opened(argument: &str) -> Option<&str> {
    argument.trim_end_matches("(deleted)").strip_suffix('>')?.split_once('<').map(|(_, path)| path)
}

/// The text of `"text"`; strings that are data are cut to nothing and followed by dots.
fn quoted(argument: &str) -> Option<&str> {
    argument.strip_prefix('"')?.strip_suffix('"')
}

/// The arguments, parted at the commas that are in no brackets, braces, or quotes.
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
