//! What a machine writes: its console, kept for reports.

use std::{
    collections::VecDeque,
    io::Read,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// What is kept of it: the last of these many bytes, which is some thousand lines.
const KEPT: usize = 256 << 10;
/// The longest line that is quoted.
const QUOTED: usize = 200;
/// How kernels say that they are at their end (`panic` in kernel/panic.c).
const PANIC: &str = "Kernel panic - not syncing";
/// How kernels, emulators, and the cage say what went wrong; the earliest such line is nearest to
/// the cause. Sources: `__die_header` (arch/x86/kernel/dumpstack.c), `show_fault_oops`
/// (arch/x86/mm/fault.c), `check_hung_task` (kernel/hung_task.c), `__oom_kill_process`
/// (mm/oom_kill.c), `mount_block_root` (init/do_mounts.c), and `kernel_init` (init/main.c) of
/// kernels; `error_vreport` of QEMU (util/qemu-error.c) puts the program's name first; the last
/// four are said by user-mode Linux (arch/um/os-Linux/start_up.c, mem.c, skas/process.c). Warnings
/// are not among them, since a kernel goes on after one.
const CAUSES: [&str; 18] = [
    "Oops",
    "BUG:",
    "kernel BUG at",
    "general protection fault",
    "blocked for more than",
    "Out of memory",
    "Unable to mount root",
    "Cannot open root device",
    "Failed to execute",
    "soft lockup",
    "rcu_sched detected stalls",
    "Initramfs unpacking failed",
    "guest-cage:",
    "qemu-system",
    "check_ptrace",
    "ptrace set",
    "ran out of space",
    "Couldn't",
];

/// How the guest's own first process says why it ends, which it knows best.
const OWN: &str = "fslab: ";

/// A console that a thread follows.
#[derive(Debug, Default)]
pub struct Console {
    state: Mutex<State>,
    end: Condvar,
}

#[derive(Debug, Default)]
struct State {
    kept: VecDeque<u8>,
    heard: u64,
    ended: bool,
    panicked: Option<Instant>,
}

impl Console {
    /// Reads until the end, and keeps the last of it.
    pub(super) fn follow(&self, mut from: impl Read) {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => self.hear(&buffer[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.state().ended = true;
        self.end.notify_all();
    }

    pub(super) fn hear(&self, new: &[u8]) {
        let mut state = self.state();
        // The words may come in two pieces.
        let before = state.kept.len().saturating_sub(PANIC.len());
        state.kept.extend(new);
        state.heard += new.len() as u64;
        if state.panicked.is_none() {
            let recent: Vec<u8> = state.kept.iter().skip(before).copied().collect();
            if recent.windows(PANIC.len()).any(|words| words == PANIC.as_bytes()) {
                state.panicked = Some(Instant::now());
            }
        }
        let surplus = state.kept.len().saturating_sub(KEPT);
        state.kept.drain(..surplus);
    }

    /// Waits until nobody can write to it any more, but not longer than this.
    pub(super) fn wait_for_end(&self, time: Duration) {
        let ended = self.end.wait_timeout_while(self.state(), time, |state| !state.ended);
        drop(ended);
    }

    /// How long ago the guest's kernel panicked, if it did.
    #[must_use]
    pub fn panicked(&self) -> Option<Duration> {
        self.state().panicked.map(|when| when.elapsed())
    }

    /// Its last 256 KiB, without control characters but line feeds and tabs.
    #[must_use]
    pub fn text(&self) -> String {
        self.since(0)
    }

    /// Bytes that came until now.
    #[must_use]
    pub fn heard(&self) -> u64 {
        self.state().heard
    }

    /// As [`Self::text`], but only what came after so many bytes.
    #[must_use]
    pub fn since(&self, bytes: u64) -> String {
        let state = self.state();
        let new = usize::try_from(state.heard.saturating_sub(bytes)).unwrap_or(usize::MAX);
        let old = state.kept.len().saturating_sub(new);
        let kept: Vec<u8> = state.kept.iter().skip(old).copied().collect();
        drop(state);
        let text = String::from_utf8_lossy(&kept);
        text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
    }

    /// The line that tells best why a guest ended, with the words of its panic if it is another;
    /// otherwise the last line.
    #[must_use]
    pub fn telling(&self) -> String {
        telling(&self.text())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing here can be left half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Console::telling`].
pub(super) fn telling(text: &str) -> String {
    let lines = || text.lines().map(without_time).filter(|line| !line.is_empty());
    let own = lines().find(|line| line.starts_with(OWN));
    let cause =
        own.or_else(|| lines().find(|line| CAUSES.iter().any(|words| line.contains(words))));
    let panic = lines().find(|line| line.contains(PANIC));
    match (cause, panic) {
        (Some(cause), Some(panic)) if cause != panic => {
            format!("{}; {}", quoted(cause), quoted(panic))
        }
        (Some(line), _) | (None, Some(line)) => quoted(line),
        (None, None) => lines().next_back().map_or("its console is empty".into(), quoted),
    }
}

/// A line without the time that kernels put before it: `[    1.234567] `.
fn without_time(line: &str) -> &str {
    let line = line.trim();
    let time = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    time.filter(|(time, _)| time.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ' '))
        .map_or(line, |(_, rest)| rest.trim())
}

fn quoted(line: &str) -> String {
    let mut end = line.len().min(QUOTED);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    format!("\u{201c}{}\u{201d}", &line[..end])
}
