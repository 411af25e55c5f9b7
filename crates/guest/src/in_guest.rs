//! Roles of this binary in a guest: init process, module loader, and worker.
//!
//! A binary calls [`run_if_guest`] before anything else. On a host, the call does nothing. In a
//! guest, the kernel starts the binary as the init process. The init process prepares the guest
//! according to the [`GuestConfig`] in the initramfs, starts the binary again as the worker, and
//! reaps all processes that end. The kernel also starts the binary as `/sbin/modprobe`. The worker
//! gets a [`GuestChannel`] to receive requests and to send replies.
//!
//! Until the worker has reported that the guest is up, errors are printed on the console, in a line
//! that begins with `fslab: `. Errors that do not end the guest begin with `fslab note: `. If the
//! worker fails, the init process prints the reason, adds it to the last heartbeat, and switches
//! the machine off. Unwritten data is lost, because a guest is temporary.

use std::{
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use crate::{GuestError, mailbox};

mod channel;
mod config;
mod device;
mod init;
mod load;
mod mounts;

pub use channel::GuestChannel;
pub use config::{Device, GuestConfig};
pub use load::load;

/// Time limit for a device to appear after its driver was loaded. Some drivers probe their disks in
/// the background.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(10);
/// File with the duration of each part of booting. The init process writes this file, and the
/// worker sends its text as the first heartbeat.
const BOOTED: &str = "/run/fslab-booted";
/// File with the message of a worker that panicked.
const PANICKED: &str = "/run/fslab-panicked";

/// Runs the role of this process in a guest.
///
/// Call this function first in `main`. It returns `None` outside a guest. If the process is the
/// worker or the module loader, it returns the exit code that `main` must return. In the init
/// process it never returns.
///
/// `work` serves requests until [`GuestChannel::wait`] returns `None`. When `work` returns, the
/// guest is switched off.
pub fn run_if_guest(work: fn(GuestChannel) -> ExitCode) -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let program = arguments.next();
    if load::called_as_modprobe(program.as_ref()) {
        return Some(load::modprobe(arguments));
    }
    let child_of_init = rustix::process::getppid().is_some_and(rustix::process::Pid::is_init);
    let is_init = std::process::id() == 1;
    if !(is_init || child_of_init) || !Path::new(config::FILE).exists() {
        return None;
    }
    if is_init {
        init::run();
    }
    let config = read_config().ok()?;
    arguments.eq(config.worker.iter().map(std::ffi::OsString::from)).then(|| run_worker(work))
}

fn run_worker(work: fn(GuestChannel) -> ExitCode) -> ExitCode {
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // The file keeps the last panic. It is that of the main thread, because the main thread
        // waits for all others.
        let _ = fs::write(PANICKED, panic.to_string());
        default_hook(panic);
    }));
    let booted = fs::read_to_string(BOOTED).unwrap_or_default();
    match mailbox_disk() {
        Ok(disk) => work(GuestChannel::open(disk, &booted)),
        Err(error) => {
            print_error(&error_chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn read_config() -> Result<GuestConfig, GuestError> {
    let text = fs::read_to_string(config::FILE)
        .map_err(GuestError::io(format!("cannot read {}", config::FILE)))?;
    GuestConfig::of_text(&text)
}

/// Disk of the mailbox: the disk named on the kernel command line, otherwise the last disk of the
/// mailbox's size.
fn mailbox_disk() -> Result<channel::Disk, GuestError> {
    let line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let named = line.split_whitespace().find_map(|word| word.strip_prefix("fslab.mailbox="));
    let path = match named {
        Some(path) => PathBuf::from(path),
        None => last_disk("/sys/block".as_ref()).ok_or_else(|| GuestError::Missing {
            what: "no disk is the mailbox".to_owned(),
            hint: "load its driver (virtio_blk, ubd), or set fslab.mailbox=".to_owned(),
        })?,
    };
    wait_for(&path)?;
    channel::Disk::open(&path)
}

/// Last disk, by name, of the mailbox's size.
fn last_disk(all: &Path) -> Option<PathBuf> {
    let names = fs::read_dir(all).ok()?.flatten().filter_map(|e| e.file_name().into_string().ok());
    let disks = names.filter(|name| name.starts_with("vd") || name.starts_with("ubd"));
    let of_size = disks.filter(|name| {
        let sectors = fs::read_to_string(all.join(name).join("size")).unwrap_or_default();
        sectors.trim().parse() == Ok(mailbox::SIZE / 512)
    });
    // vdaa comes after vdz.
    let last = of_size.max_by(|a, b| (a.len(), a).cmp(&(b.len(), b)))?;
    Some(Path::new("/dev").join(last))
}

/// Waits for a device to appear.
fn wait_for(device: &Path) -> Result<(), GuestError> {
    let start = Instant::now();
    while !device.exists() {
        if start.elapsed() > DEVICE_TIMEOUT {
            return Err(GuestError::Missing {
                what: format!("{} does not exist in the guest", device.display()),
                hint: "load its driver or attach it".to_owned(),
            });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Formats an error and its causes on one line.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

/// Prints on the console the reason why the guest ends, and waits until the reason is written.
fn print_error(text: &str) {
    print_line("fslab", text);
}

/// Prints on the console an error that does not end the guest.
fn print_note(text: &str) {
    print_line("fslab note", text);
}

fn print_line(prefix: &str, text: &str) {
    let text = text.replace('\n', " ");
    let _ = writeln!(io::stderr(), "{prefix}: {text}");
    let _ = rustix::termios::tcdrain(io::stderr());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_host_nothing_runs() {
        assert!(run_if_guest(|_| unreachable!("a host has no worker")).is_none());
    }

    #[test]
    fn the_mailbox_is_the_last_disk_of_its_size() {
        let all = tempfile::tempdir().unwrap();
        let disk = |name: &str, bytes: u64| {
            let directory = all.path().join(name);
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("size"), format!("{}\n", bytes / 512)).unwrap();
        };
        assert_eq!(last_disk(all.path()), None);
        disk("vdb", mailbox::SIZE);
        disk("vdc", 1 << 30);
        disk("sdz", mailbox::SIZE);
        assert_eq!(last_disk(all.path()), Some("/dev/vdb".into()));
        disk("vdaa", mailbox::SIZE);
        assert_eq!(last_disk(all.path()), Some("/dev/vdaa".into()));
    }

    #[test]
    fn errors_are_printed_with_their_causes() {
        let error = GuestError::io("cannot open it")(io::Error::from_raw_os_error(2));
        let text = error_chain(&error);
        assert!(text.starts_with("cannot open it: No such file"), "{text}");
    }
}
