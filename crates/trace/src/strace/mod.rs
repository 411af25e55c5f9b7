//! Import of logs of strace(1).
//!
//! The calls of the log are handled by the code of the recorder, as if they happened now. A log
//! must have times, and should be written by `strace -f -ttt -T -y`: tasks, times, lengths, and
//! paths of descriptors. Calls that another task interrupted have two lines, which are joined.
//!
//! A log has no files that existed before the program started; the module `initial` derives them
//! from the operations. It has no CPU times: the pause before an operation is the time since the
//! previous one of its task. The times include the cost of strace.

mod arguments;
mod initial;
mod line;
mod words;

use std::{borrow::Cow, collections::HashMap, path::Path};

use sys::ptrace::{ARCHITECTURE, Syscall};

use self::{
    arguments::{Arguments, Status},
    line::{CallText, Event},
};
use crate::{
    Recording, TraceError, check, paths,
    record::{
        Recorder, chosen,
        process::{Clock, Tracee},
        tasks::Tasks,
    },
};

/// Mask of the program, which a log does not show.
const UMASK: u32 = 0o022;

/// Largest number of a process.
const LARGEST: i32 = 1 << 22;

/// True if the begin of a file looks like a log of strace with times.
pub fn is_strace(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines().take(20).filter_map(line::line);
    lines.any(|line| match line.event {
        Event::Call(text) => line::call(text).is_some(),
        Event::Begin(_) => true,
        Event::End(_) | Event::Exited(_) | Event::Other => false,
    })
}

/// Recording of the operations below a directory in a log of strace. The directory need not exist.
///
/// # Errors
/// [`TraceError::Log`] if the log has no calls with times.
pub fn import(log: &[u8], root: &Path) -> Result<Recording, TraceError> {
    use std::os::unix::ffi::OsStrExt;
    let root = paths::normal(root.as_os_str().as_bytes());
    let text = String::from_utf8_lossy(log);
    let calls = calls(&text);
    let Some(first) = calls.calls.first() else {
        let what = "it has no calls with times; write it by `strace -f -ttt -T -y -o FILE PROGRAM`";
        return Err(TraceError::Log(what.to_owned()));
    };
    let tasks = Tasks {
        recorder: Recorder::of_log(vec![root.clone()]),
        tracees: HashMap::new(),
        ended: HashMap::new(),
    };
    let mut import = Import {
        tasks,
        start: first.begin,
        directory: directory(&calls.calls).unwrap_or_else(|| root.clone()),
        ended: HashMap::new(),
        running: HashMap::new(),
        statuses: HashMap::new(),
        targets: HashMap::new(),
        program: None,
    };
    for event in &calls.events {
        match *event {
            Step::Begin(at) => import.begin(&calls.calls[at]),
            Step::End(at, time) => import.end(&calls.calls[at], time),
            Step::Exited(tid) => import.exited(tid),
        }
    }
    let Import { mut tasks, statuses, targets, program, .. } = import;
    let running: Vec<i32> = tasks.tracees.keys().copied().collect();
    running.into_iter().for_each(|tid| tasks.ended(tid));
    let elapsed = tasks.recorder.instant();
    let mut recording = tasks.recorder.finish(Vec::new())?;
    initial::files(&mut recording, &statuses, &targets);
    let mut set = |key: &str, value: String| recording.facts.insert(key.to_owned(), value);
    set("program", program.unwrap_or_else(|| "unknown".into()));
    set("root", String::from_utf8_lossy(&root).into_owned());
    set("elapsed_ns", elapsed.to_string());
    set("recorder", "strace".into());
    if let Some(status) = calls.status {
        set("status", status.to_string());
    }
    check::check(&recording).map_err(|error| TraceError::Log(error.to_string()))?;
    Ok(recording)
}

/// Call of the log.
struct Call<'a> {
    tid: i32,
    begin: u64,
    text: Cow<'a, str>,
}

enum Step {
    /// Begin of a call, by its place.
    Begin(usize),
    /// End of a call; its time if it has a separate line.
    End(usize, Option<u64>),
    Exited(i32),
}

#[derive(Default)]
struct Calls<'a> {
    calls: Vec<Call<'a>>,
    events: Vec<Step>,
    /// Exit status of the first task.
    status: Option<i32>,
}

/// Joins the lines of each call.
fn calls(text: &str) -> Calls<'_> {
    let mut all = Calls::default();
    let mut open: HashMap<i32, usize> = HashMap::new();
    for line in text.lines().filter_map(line::line) {
        let at = all.calls.len();
        let tid = line.tid.clamp(0, LARGEST).max(1);
        let mut add = |text| {
            all.calls.push(Call { tid, begin: line.time, text: Cow::Borrowed(text) });
            all.events.push(Step::Begin(at));
        };
        match line.event {
            Event::Call(text) => {
                add(text);
                all.events.push(Step::End(at, None));
            }
            Event::Begin(text) => {
                add(text);
                open.insert(tid, at);
            }
            Event::End(rest) => {
                if let Some(begun) = open.remove(&tid) {
                    all.calls[begun].text.to_mut().push_str(rest);
                    all.events.push(Step::End(begun, Some(line.time)));
                }
            }
            Event::Exited(status) => {
                if all.calls.first().is_some_and(|first| first.tid == tid) {
                    all.status = Some(status);
                }
                all.events.push(Step::Exited(tid));
            }
            Event::Other => {}
        }
    }
    all
}

/// Working directory of the program: the first one that the log shows.
fn directory(calls: &[Call<'_>]) -> Option<Vec<u8>> {
    let tid = calls.first()?.tid;
    let own = calls.iter().filter(|call| call.tid == tid).take(10_000);
    own.filter_map(|call| {
        let (_, rest) = call.text.split_once("AT_FDCWD<")?;
        let (path, _) = rest.split_once('>')?;
        path.starts_with('/').then(|| words::unescape(path))
    })
    .next()
}

struct Import {
    tasks: Tasks,
    start: u64,
    directory: Vec<u8>,
    /// Ends of the last operations of the threads.
    ended: HashMap<i32, u64>,
    running: HashMap<i32, Arguments>,
    /// Statuses that operations returned, by task and place.
    statuses: HashMap<(usize, usize), Status>,
    /// Targets of symbolic links, as far as the log has them.
    targets: HashMap<(usize, usize), Vec<u8>>,
    program: Option<String>,
}

impl Import {
    fn begin(&mut self, call: &Call<'_>) {
        let recorder = &mut self.tasks.recorder;
        recorder.advance(call.begin.saturating_sub(self.start));
        let Some(parsed) = line::call(&call.text) else { return };
        if !self.tasks.tracees.contains_key(&call.tid) {
            let name = "program".to_owned();
            let place = (self.directory.clone(), UMASK);
            self.tasks.first(call.tid, name, place, Clock::None);
        }
        if parsed.name == "execve" && self.program.is_none() {
            let words = parsed.arguments.get(1).map(|text| program(text));
            self.program = words.filter(|words| !words.is_empty());
        }
        let mut arguments = Arguments::new(&parsed.arguments);
        let number = words::call_number(parsed.name)
            .filter(|number| chosen::stops(*number, &arguments.values));
        if let Some(number) = number
            && let Some(mut tracee) = self.tasks.tracees.remove(&call.tid)
        {
            self.set_directory(&tracee, parsed.name, &mut arguments);
            let args = arguments.values;
            let number = number.cast_unsigned();
            let syscall = Syscall { arch: ARCHITECTURE, number, args, result: 0 };
            let mut pending = self.tasks.entry(&mut tracee, &arguments, &syscall);
            if let Some(op) = pending.as_mut().and_then(|pending| pending.op.as_mut()) {
                op.begin = self.tasks.recorder.instant();
                let ended = self.ended.get(&call.tid).copied().unwrap_or(op.begin);
                op.think = op.begin.saturating_sub(ended);
            }
            tracee.pending = pending;
            self.tasks.tracees.insert(call.tid, tracee);
        }
        // The child may appear in the log before the call returns.
        let creates = matches!(parsed.name, "clone" | "clone3" | "fork" | "vfork");
        let child = parsed.result.and_then(|result| i32::try_from(result).ok());
        if let (true, Some(child @ 1..)) = (creates, child) {
            self.tasks.created(call.tid, child, |_| "program".into(), |_, _| Clock::None);
        }
        self.running.insert(call.tid, arguments);
    }

    /// Notes the working directory after chdir(2) or fchdir(2).
    fn set_directory(&self, tracee: &Tracee, name: &str, arguments: &mut Arguments) {
        let directory = match name {
            "chdir" => {
                let own = tracee.place.borrow().path.clone();
                arguments.text(0).map(|path| paths::normal(&paths::join(&own, path)))
            }
            "fchdir" => arguments.link_of(0).cloned(),
            _ => None,
        };
        arguments.directory = directory;
    }

    fn end(&mut self, call: &Call<'_>, time: Option<u64>) {
        let Some(parsed) = line::call(&call.text) else { return };
        let Some(arguments) = self.running.remove(&call.tid) else { return };
        let length = parsed.length.map(|length| call.begin.saturating_add(length));
        let end = length.or(time).unwrap_or(call.begin);
        self.tasks.recorder.advance(end.saturating_sub(self.start));
        let Some(result) = parsed.result else {
            if let Some(tracee) = self.tasks.tracees.get_mut(&call.tid) {
                tracee.pending = None;
            }
            return;
        };
        if parsed.name == "execve" && result == 0 {
            let name = arguments.text(0).unwrap_or_default();
            let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            self.tasks.executed(call.tid, call.tid, name);
            return;
        }
        let Some(mut tracee) = self.tasks.tracees.remove(&call.tid) else { return };
        if let Some(pending) = tracee.pending.take() {
            let before = self.tasks.recorder.operations(tracee.task);
            let optional = pending.is_optional();
            let instant = self.tasks.recorder.instant();
            self.tasks.complete(&tracee, &arguments, pending, (result, instant));
            let recorded = self.tasks.recorder.operations(tracee.task) > before;
            if recorded {
                self.note(&parsed, &arguments, (tracee.task, before), result);
            }
            // Otherwise the pause continues.
            if recorded || !optional {
                self.ended.insert(call.tid, self.tasks.recorder.instant());
            }
        }
        self.tasks.tracees.insert(call.tid, tracee);
    }

    /// Keeps what a call returned about a file.
    fn note(
        &mut self,
        parsed: &CallText<'_>,
        arguments: &Arguments,
        at: (usize, usize),
        result: i64,
    ) {
        if let Some(status) = arguments.status {
            self.statuses.insert(at, status);
        }
        let target = match parsed.name {
            "readlink" => arguments.text(1),
            "readlinkat" => arguments.text(2),
            _ => None,
        };
        if let (Some(target), Ok(length @ 1..=4095)) = (target, usize::try_from(result)) {
            // The log may have the begin of the target only.
            let mut target: Vec<u8> = target.iter().copied().filter(|byte| *byte != 0).collect();
            target.resize(length, b'x');
            self.targets.insert(at, target);
        }
    }

    fn exited(&mut self, tid: i32) {
        self.running.remove(&tid);
        self.tasks.ended(tid);
    }
}

/// Program and arguments of execve(2).
fn program(text: &str) -> String {
    let mut all = Vec::new();
    let mut rest = text.trim_start_matches('[');
    while let Some(after) = rest.trim_start_matches([',', ' ']).strip_prefix('"') {
        let end = after
            .char_indices()
            .find(|(at, letter)| *letter == '"' && !after[..*at].ends_with('\\'))
            .map_or(after.len(), |(at, _)| at);
        all.push(String::from_utf8_lossy(&words::unescape(&after[..end])).into_owned());
        rest = after.get(end + 1..).unwrap_or_default();
    }
    model::words::join(&all)
}
