//! The first process: it makes the guest usable, starts the worker, and waits for all that end.
//!
//! The job in the archive enters; nothing leaves but the worker's first words, since this process
//! ends with the machine. It does no work itself: whoever waits for a daemon's end (`umount` of a
//! nilfs2 for its cleaner) waits until somebody has taken note of it, and that is the duty of the
//! first process for all that lost their parents.

use std::{
    any::Any,
    fmt::Write as _,
    fs,
    os::unix::process::ExitStatusExt as _,
    process::{Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, WaitOptions},
    time::{ClockId, Timespec},
};

use super::{
    BOOTED, PANICKED, device,
    job::Job,
    load::{self, Loader},
    mailbox_disk, mounts, note, read_job, say, told_in_full,
};
use crate::{GuestError, mailbox::Heartbeat};

/// This binary in the archive.
const PROGRAM: &str = "/init";
/// Where programs of the archive are.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// Bytes of what a worker said that go into a heartbeat, so that what it did has room as well.
const REASON_MAX: usize = 180;

/// Runs the guest, and switches it off.
pub(super) fn run() -> ! {
    // A panic here would be the kernel's, and tell less.
    let end = std::panic::catch_unwind(|| match boot() {
        Ok(worker) => wait_for(worker),
        Err(error) => Some(told_in_full(&error)),
    });
    if let Some(reason) = end.unwrap_or_else(|panic| Some(panic_of_first(&*panic))) {
        say(&reason);
    }
    switch_off()
}

fn panic_of_first(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
    format!("the first process panicked: {text}")
}

fn switch_off() -> ! {
    let _ = rustix::termios::tcdrain(std::io::stderr());
    // Without writing back: a filesystem that hangs would keep the machine on.
    let _ = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
    // The kernel panics when its first process ends, which ends the machine as well.
    #[expect(clippy::exit, reason = "nothing is left to return to")]
    std::process::exit(1)
}

/// How long the parts of booting took, by the guest's clock.
struct Parts {
    text: String,
    last: Duration,
}

impl Parts {
    /// The time since the kernel began to keep time is its own.
    fn new() -> Self {
        let mut parts = Self { text: "up".to_owned(), last: Duration::ZERO };
        parts.end("kernel");
        parts
    }

    fn end(&mut self, part: &str) {
        let now = rustix::time::clock_gettime(ClockId::Monotonic);
        let now = Duration::try_from(now).unwrap_or_default();
        let separator = if self.text == "up" { ": " } else { ", " };
        let took = now.saturating_sub(self.last).as_secs_f64();
        let _ = write!(self.text, "{separator}{part} {took:.3} s");
        self.last = now;
    }
}

fn boot() -> Result<Pid, GuestError> {
    let mut parts = Parts::new();
    let job = read_job()?;
    let mut lacking = mounts::first()?;
    prepare(&job);
    parts.end("mounts");
    let line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let loader = Loader::new(&line, Some(&job));
    let order = Loader::order();
    for module in &order {
        match loader.insert(module) {
            Ok(()) => {}
            // It serves a processor or a device that is not here.
            Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => {}
            // It is missed by name when it is needed.
            Err(error) => note(&format!("cannot load {module}: {error}")),
        }
    }
    parts.end(&format!("{} modules", order.len()));
    for module in job.device.modules() {
        // Built into the kernel, it is in no archive, and the device will tell.
        if let Err(error) = loader.load(module) {
            tracing::debug!("{module}: {error}");
        }
    }
    lacking.extend(mounts::last()?);
    device::make(&job.device)?;
    same_kind_of_disk();
    for lacking in lacking {
        note(&format!("cannot mount {lacking}"));
    }
    // Nobody would hear of a worker without it.
    mailbox_disk()?;
    parts.end("devices");
    load::forget_requests();
    fs::write(BOOTED, &parts.text).map_err(GuestError::io(format!("cannot write {BOOTED}")))?;
    start(&job)
}

/// What needs no success: a guest without a name works.
fn prepare(job: &Job) {
    let complain = |what: &str, result: std::io::Result<()>| {
        if let Err(error) = result {
            note(&format!("cannot {what}: {error}"));
        }
    };
    complain("seed the kernel's randomness", sys::entropy::add(job.seed));
    if let Some(time) = job.unix_time_ns {
        let time = Timespec::try_from(Duration::from_nanos(time)).map_err(std::io::Error::other);
        let set = time.and_then(|t| Ok(rustix::time::clock_settime(ClockId::Realtime, t)?));
        complain("set the clock", set);
    }
    let name = rustix::system::sethostname(job.hostname.as_bytes());
    complain("set the name", name.map_err(Into::into));
    // A kernel that stumbles over a filesystem is to end and say so, not to limp on.
    complain("have it panic", fs::write("/proc/sys/kernel/panic_on_oops", "1"));
    complain("have it end", fs::write("/proc/sys/kernel/panic", "-1"));
}

/// Has all disks say that they do not rotate. Drivers differ in what they say, and btrfs chooses by
/// it how to allocate (`Documentation/block/queue-sysfs.rst`; btrfs(5), `ssd`).
fn same_kind_of_disk() {
    for disk in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let name = disk.file_name();
        let name = name.to_string_lossy();
        if ["vd", "ubd", "ram", "nullb"].iter().any(|kind| name.starts_with(kind)) {
            let _ = fs::write(disk.path().join("queue/rotational"), "0");
        }
    }
}

fn start(job: &Job) -> Result<Pid, GuestError> {
    let mut worker = Command::new(PROGRAM);
    worker.args(&job.worker).env_clear().env("PATH", PATH).env("HOME", "/tmp").env("LC_ALL", "C");
    let child = worker.stdin(Stdio::null()).current_dir("/").spawn();
    let child = child.map_err(GuestError::io(format!("cannot start the worker {PROGRAM}")))?;
    Ok(Pid::from_child(&child))
}

/// Waits for every process that ends, until the worker has. Answers why, if it failed.
fn wait_for(worker: Pid) -> Option<String> {
    let status = loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == worker => {
                break ExitStatus::from_raw(status.as_raw());
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Some(format!("cannot wait for the worker: {error}")),
        }
    };
    if status.success() {
        return None;
    }
    let panicked = fs::read_to_string(PANICKED).unwrap_or_default();
    let reason = reason(status, &panicked);
    // The host looks at the heartbeat; the console may be full of other things.
    if let Ok(disk) = mailbox_disk()
        && let Ok(beat) = disk.heartbeat()
    {
        let _ = disk.beat(&last_beat(beat.unwrap_or_default(), &reason));
    }
    Some(reason)
}

fn reason(status: ExitStatus, panicked: &str) -> String {
    let panicked = panicked.replace('\n', " ");
    match panicked.trim() {
        "" => format!("the worker ended with {status}"),
        panicked => format!("the worker {panicked}"),
    }
}

/// The heartbeat after the last one, with the reason behind what was being done.
fn last_beat(beat: Heartbeat, reason: &str) -> Heartbeat {
    let cut = |text: &str, most: usize| text[..text.floor_char_boundary(most)].to_owned();
    let reason = cut(reason, REASON_MAX);
    // 256 bytes are a heartbeat's text.
    let doing = cut(&beat.text, 256 - 2 - REASON_MAX);
    let text = if doing.is_empty() { reason } else { format!("{doing}; {reason}") };
    Heartbeat { count: beat.count + 1, text }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_panic_of_the_first_process_is_told() {
        let number = 7;
        let panic = std::panic::catch_unwind(|| panic!("no {number}")).unwrap_err();
        assert_eq!(panic_of_first(&*panic), "the first process panicked: no 7");
        let panic = std::panic::catch_unwind(|| panic!("nothing")).unwrap_err();
        assert_eq!(panic_of_first(&*panic), "the first process panicked: nothing");
    }

    #[test]
    fn a_worker_that_failed_is_told_with_its_panic_or_its_status() {
        let status = ExitStatus::from_raw(101 << 8);
        assert_eq!(reason(status, ""), "the worker ended with exit status: 101");
        let panicked = "panicked at src/x.rs:1:1:\nno mkfs\n";
        assert_eq!(reason(status, panicked), "the worker panicked at src/x.rs:1:1: no mkfs");
        let killed = reason(ExitStatus::from_raw(9), "");
        assert_eq!(killed, "the worker ended with signal: 9 (SIGKILL)");
    }

    proptest! {
        #[test]
        fn a_last_beat_has_room_for_both(count in 0..u64::MAX, doing: String, reason: String) {
            let beat = last_beat(Heartbeat { count, text: doing }, &reason);
            prop_assert_eq!(beat.count, count + 1);
            prop_assert!(beat.text.len() <= 256);
            let whole = &reason[..reason.floor_char_boundary(REASON_MAX)];
            prop_assert!(beat.text.ends_with(whole));
        }
    }
}
