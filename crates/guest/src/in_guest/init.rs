//! Init process of the guest: prepares the guest, starts the worker, and reaps all processes that
//! end.
//!
//! The input is the configuration in the initramfs. The process runs until the machine is switched
//! off, and does no work itself. It reaps orphans because some programs wait until a daemon is
//! reaped, such as `umount` of nilfs2 for its cleaner.

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
    BOOTED, PANICKED,
    config::GuestConfig,
    device, error_chain,
    load::{self, Loader},
    mailbox_disk, mounts, print_error, print_note, read_config,
};
use crate::{GuestError, mailbox::Heartbeat};

/// This binary in the initramfs.
const PROGRAM: &str = "/init";
/// Search path for programs of the initramfs.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// Maximum size in bytes of the text that states why a worker ended. The heartbeat that contains
/// this text must also have space for the current step.
const REASON_MAX: usize = 180;

/// Runs the guest, then switches it off.
pub(super) fn run() -> ! {
    // A panic of init would become a kernel panic, which is less informative.
    let end = std::panic::catch_unwind(|| match boot() {
        Ok(worker) => wait_for(worker),
        Err(error) => Some(error_chain(&error)),
    });
    if let Some(reason) = end.unwrap_or_else(|panic| Some(init_panic_message(&*panic))) {
        print_error(&reason);
    }
    switch_off()
}

fn init_panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
    format!("the init process panicked: {text}")
}

fn switch_off() -> ! {
    let _ = rustix::termios::tcdrain(std::io::stderr());
    // Without sync(2), which would block on a filesystem that hangs.
    let _ = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
    // The kernel panics when its init process ends, which also ends the machine.
    #[expect(clippy::exit, reason = "nothing is left to return to")]
    std::process::exit(1)
}

/// Durations of the parts of booting, by the guest's clock.
struct BootTimes {
    text: String,
    last: Duration,
}

impl BootTimes {
    /// Starts with the first part, which is the time since the start of the kernel's clock.
    fn new() -> Self {
        let mut times = Self { text: "up".to_owned(), last: Duration::ZERO };
        times.end("kernel");
        times
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
    let mut times = BootTimes::new();
    let config = read_config()?;
    let mut failed = mounts::mount_early()?;
    prepare(&config);
    times.end("mounts");
    let line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let loader = Loader::new(&line, Some(&config));
    let modules = Loader::load_order();
    for module in &modules {
        match loader.insert(module) {
            Ok(()) => {}
            // The module is for a CPU or a device that this guest does not have.
            Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => {}
            // A program that needs the module reports an error.
            Err(error) => print_note(&format!("cannot load {module}: {error}")),
        }
    }
    times.end(&format!("{} modules", modules.len()));
    for module in config.device.modules() {
        // A module that is built into the kernel is not in the initramfs; any error then occurs
        // when the device is created.
        if let Err(error) = loader.load(module) {
            tracing::debug!("{module}: {error}");
        }
    }
    failed.extend(mounts::mount_late()?);
    device::make(&config.device)?;
    mark_disks_nonrotational();
    for failed in failed {
        print_note(&format!("cannot mount {failed}"));
    }
    // Without the mailbox, the worker could not report anything.
    mailbox_disk()?;
    times.end("devices");
    load::forget_requests();
    fs::write(BOOTED, &times.text).map_err(GuestError::io(format!("cannot write {BOOTED}")))?;
    start(&config)
}

/// Sets random numbers, clock, host name, and panic behavior. A failure does not end the guest.
fn prepare(config: &GuestConfig) {
    let report = |what: &str, result: std::io::Result<()>| {
        if let Err(error) = result {
            print_note(&format!("cannot {what}: {error}"));
        }
    };
    report("seed the kernel's random number generator", sys::entropy::add(config.seed));
    if let Some(time) = config.unix_time_ns {
        let time = Timespec::try_from(Duration::from_nanos(time)).map_err(std::io::Error::other);
        let set = time.and_then(|t| Ok(rustix::time::clock_settime(ClockId::Realtime, t)?));
        report("set the clock", set);
    }
    let name = rustix::system::sethostname(config.hostname.as_bytes());
    report("set the host name", name.map_err(Into::into));
    // After an oops in a filesystem, the kernel must end instead of continuing in an undefined
    // state.
    report("set panic_on_oops", fs::write("/proc/sys/kernel/panic_on_oops", "1"));
    report("set panic", fs::write("/proc/sys/kernel/panic", "-1"));
}

/// Marks all disks as non-rotational. Drivers have different defaults, by which btrfs selects its
/// allocation (`Documentation/ABI/stable/sysfs-block`; btrfs(5), `ssd`).
fn mark_disks_nonrotational() {
    for disk in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let name = disk.file_name();
        let name = name.to_string_lossy();
        if ["vd", "ubd", "ram", "nullb"].iter().any(|kind| name.starts_with(kind)) {
            let _ = fs::write(disk.path().join("queue/rotational"), "0");
        }
    }
}

fn start(config: &GuestConfig) -> Result<Pid, GuestError> {
    let mut worker = Command::new(PROGRAM);
    worker
        .args(&config.worker)
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", "/tmp")
        .env("LC_ALL", "C");
    let child = worker.stdin(Stdio::null()).current_dir("/").spawn();
    let child = child.map_err(GuestError::io(format!("cannot start the worker {PROGRAM}")))?;
    Ok(Pid::from_child(&child))
}

/// Reaps all processes until the worker ends. Returns the reason if the worker failed.
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
    // The host reads the heartbeat; the console may be full of other output.
    if let Ok(disk) = mailbox_disk()
        && let Ok(beat) = disk.heartbeat()
    {
        let _ = disk.send_heartbeat(&final_heartbeat(beat.unwrap_or_default(), &reason));
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

/// Final heartbeat, whose text is that of the last heartbeat `beat`, followed by the reason.
fn final_heartbeat(beat: Heartbeat, reason: &str) -> Heartbeat {
    let cut = |text: &str, max: usize| text[..text.floor_char_boundary(max)].to_owned();
    let reason = cut(reason, REASON_MAX);
    // A heartbeat has 256 bytes of text.
    let step = cut(&beat.text, 256 - 2 - REASON_MAX);
    let text = if step.is_empty() { reason } else { format!("{step}; {reason}") };
    Heartbeat { count: beat.count + 1, text }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_panic_of_init_is_reported() {
        let number = 7;
        let panic = std::panic::catch_unwind(|| panic!("no {number}")).unwrap_err();
        assert_eq!(init_panic_message(&*panic), "the init process panicked: no 7");
        let panic = std::panic::catch_unwind(|| panic!("nothing")).unwrap_err();
        assert_eq!(init_panic_message(&*panic), "the init process panicked: nothing");
    }

    #[test]
    fn a_failed_worker_is_reported_with_its_panic_or_status() {
        let status = ExitStatus::from_raw(101 << 8);
        assert_eq!(reason(status, ""), "the worker ended with exit status: 101");
        let panicked = "panicked at src/x.rs:1:1:\nno mkfs\n";
        assert_eq!(reason(status, panicked), "the worker panicked at src/x.rs:1:1: no mkfs");
        let killed = reason(ExitStatus::from_raw(9), "");
        assert_eq!(killed, "the worker ended with signal: 9 (SIGKILL)");
    }

    proptest! {
        #[test]
        fn a_final_heartbeat_holds_step_and_reason(
            count in 0..u64::MAX,
            step: String,
            reason: String,
        ) {
            let beat = final_heartbeat(Heartbeat { count, text: step }, &reason);
            prop_assert_eq!(beat.count, count + 1);
            prop_assert!(beat.text.len() <= 256);
            let whole = &reason[..reason.floor_char_boundary(REASON_MAX)];
            prop_assert!(beat.text.ends_with(whole));
        }
    }
}
