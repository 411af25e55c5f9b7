//! Console output of a machine, kept for reports.

use std::{
    collections::VecDeque,
    io::Read,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Number of bytes of the output that are kept, from its end: some thousand lines.
const KEPT: usize = 256 << 10;
/// Maximum length of a quoted line, in bytes.
const QUOTED: usize = 200;
/// Kernel message of a panic (`panic` in kernel/panic.c).
const PANIC: &str = "Kernel panic - not syncing";
/// Messages of kernels, emulators, and the supervisor about failures; the earliest such line is
/// closest to the cause. Sources of kernels: `__die_header` (arch/x86/kernel/dumpstack.c),
/// `show_fault_oops` (arch/x86/mm/fault.c), `check_hung_task` (kernel/hung_task.c),
/// `__oom_kill_process` (mm/oom_kill.c), `mount_block_root` (init/do_mounts.c), and `kernel_init`
/// (init/main.c). Source of QEMU: `error_vreport` (util/qemu-error.c), which begins with the
/// program name. The last four are from user-mode Linux (arch/um/os-Linux/start_up.c, mem.c,
/// skas/process.c). Kernel warnings are not included because a kernel continues after a warning.
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
    "guest-supervisor:",
    "qemu-system",
    "check_ptrace",
    "ptrace set",
    "ran out of space",
    "Couldn't",
];

/// Prefix of the reason that the guest's init process prints when it ends. This reason is more
/// specific than all other messages.
const OWN: &str = "fslab: ";

/// Console whose output a thread reads.
#[derive(Debug, Default)]
pub struct Console {
    state: Mutex<State>,
    end: Condvar,
}

#[derive(Debug, Default)]
struct State {
    kept: VecDeque<u8>,
    received: u64,
    ended: bool,
    panicked: Option<Instant>,
}

impl Console {
    /// Reads the output until its end and keeps the last [`KEPT`] bytes.
    pub(super) fn follow(&self, mut from: impl Read) {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => self.append(&buffer[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.state().ended = true;
        self.end.notify_all();
    }

    pub(super) fn append(&self, new: &[u8]) {
        let mut state = self.state();
        // The message may arrive in two pieces.
        let before = state.kept.len().saturating_sub(PANIC.len());
        state.kept.extend(new);
        state.received += new.len() as u64;
        if state.panicked.is_none() {
            let recent: Vec<u8> = state.kept.iter().skip(before).copied().collect();
            if recent.windows(PANIC.len()).any(|window| window == PANIC.as_bytes()) {
                state.panicked = Some(Instant::now());
            }
        }
        let surplus = state.kept.len().saturating_sub(KEPT);
        state.kept.drain(..surplus);
    }

    /// Waits until all writers have closed the console, but at most `time`.
    pub(super) fn wait_for_end(&self, time: Duration) {
        let ended = self.end.wait_timeout_while(self.state(), time, |state| !state.ended);
        drop(ended);
    }

    /// Time since the guest kernel panicked, if it did.
    #[must_use]
    pub fn panicked(&self) -> Option<Duration> {
        self.state().panicked.map(|when| when.elapsed())
    }

    /// The last 256 KiB, without control characters other than line feeds and tabs.
    #[must_use]
    pub fn text(&self) -> String {
        self.since(0)
    }

    /// Total number of bytes received.
    #[must_use]
    pub fn bytes_received(&self) -> u64 {
        self.state().received
    }

    /// Like [`Self::text`], but without the first `bytes` bytes received.
    #[must_use]
    pub fn since(&self, bytes: u64) -> String {
        let state = self.state();
        let new = usize::try_from(state.received.saturating_sub(bytes)).unwrap_or(usize::MAX);
        let old = state.kept.len().saturating_sub(new);
        let kept: Vec<u8> = state.kept.iter().skip(old).copied().collect();
        drop(state);
        let text = String::from_utf8_lossy(&kept);
        text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
    }

    /// The line that best explains the end of a guest, followed by the panic message if the message
    /// is another line. If no line explains the end, the last line.
    #[must_use]
    pub fn error_line(&self) -> String {
        error_line(&self.text())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave an update incomplete.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Console::error_line`].
pub(super) fn error_line(text: &str) -> String {
    let lines = || text.lines().map(without_time).filter(|line| !line.is_empty());
    let own = lines().find(|line| line.starts_with(OWN));
    let cause =
        own.or_else(|| lines().find(|line| CAUSES.iter().any(|cause| line.contains(cause))));
    let panic = lines().find(|line| line.contains(PANIC));
    match (cause, panic) {
        (Some(cause), Some(panic)) if cause != panic => {
            format!("{}; {}", quoted(cause), quoted(panic))
        }
        (Some(line), _) | (None, Some(line)) => quoted(line),
        (None, None) => lines().next_back().map_or("the console is empty".into(), quoted),
    }
}

/// Line without the kernel's time stamp (`[    1.234567] `).
fn without_time(line: &str) -> &str {
    let line = line.trim();
    let time = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    time.filter(|(time, _)| time.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ' '))
        .map_or(line, |(_, rest)| rest.trim())
}

fn quoted(line: &str) -> String {
    format!("\u{201c}{}\u{201d}", &line[..line.floor_char_boundary(QUOTED)])
}
