//! What this binary is inside a guest: its first process, the loader of its modules, and the worker
//! that requests come to.
//!
//! A binary calls [`take_over`] before anything else. On a host that does nothing. In a guest the
//! kernel starts the binary as its first process, which makes the guest usable as the [`Job`] in
//! the archive says, starts the binary again as the worker, and waits for every process that ends;
//! the kernel also starts it as `/sbin/modprobe`. The worker gets a [`Door`], through which
//! requests enter and answers leave.
//!
//! What goes wrong before the worker has said that the guest is up is told on the console, in a
//! line that begins with `fslab: `; what is no reason to end begins with `fslab note: `. The end of
//! a worker that fails is told there too, and is added to the last heartbeat. Then the machine is
//! switched off, and whatever was not written yet is lost: a guest is thrown away.

use std::{
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use crate::{GuestError, mailbox};

mod device;
mod door;
mod first;
mod job;
mod load;
mod mounts;

pub use door::Door;
pub use job::{Device, Job};
pub use load::load;

/// How long a device may take to appear once its driver is loaded. Some look for their disks in the
/// background.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the first process tells the worker to say first: how long each part of booting took.
const BOOTED: &str = "/run/fslab-booted";
/// Where a worker that panics leaves what it said.
const PANICKED: &str = "/run/fslab-panicked";

/// Becomes what a guest needs this process to be.
///
/// Call it first in `main`. Outside a guest it answers `None` at once: go on. The worker, and the
/// loader of modules, answer the code to return from `main`; as a guest's first process it never
/// returns.
///
/// `work` serves requests until [`Door::wait`] answers that there are no more. When it returns, the
/// guest is switched off.
pub fn take_over(work: fn(Door) -> ExitCode) -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let program = arguments.next();
    if load::called_as_modprobe(program.as_ref()) {
        return Some(load::modprobe(arguments));
    }
    let of_first = rustix::process::getppid().is_some_and(rustix::process::Pid::is_init);
    let first = std::process::id() == 1;
    if !(first || of_first) || !Path::new(job::FILE).exists() {
        return None;
    }
    if first {
        first::run();
    }
    let job = read_job().ok()?;
    arguments.eq(job.worker.iter().map(std::ffi::OsString::from)).then(|| be_worker(work))
}

fn be_worker(work: fn(Door) -> ExitCode) -> ExitCode {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // The last one counts: that of the main thread, which waits for the others.
        let _ = fs::write(PANICKED, panic.to_string());
        told(panic);
    }));
    let booted = fs::read_to_string(BOOTED).unwrap_or_default();
    match mailbox_disk() {
        Ok(disk) => work(Door::open(disk, &booted)),
        Err(error) => {
            say(&told_in_full(&error));
            ExitCode::FAILURE
        }
    }
}

fn read_job() -> Result<Job, GuestError> {
    let text = fs::read_to_string(job::FILE)
        .map_err(GuestError::io(format!("cannot read {}", job::FILE)))?;
    Job::of_text(&text)
}

/// The disk for messages: the one that the kernel's command line names, or the last one that has
/// its size.
fn mailbox_disk() -> Result<door::Disk, GuestError> {
    let line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let named = line.split_whitespace().find_map(|word| word.strip_prefix("fslab.mailbox="));
    let path = match named {
        Some(path) => PathBuf::from(path),
        None => last_disk("/sys/block".as_ref()).ok_or_else(|| GuestError::Missing {
            what: "no disk is a mailbox".to_owned(),
            cure: "load its driver (virtio_blk, ubd), or name it by fslab.mailbox=".to_owned(),
        })?,
    };
    wait_for(&path)?;
    door::Disk::open(&path)
}

/// The last disk, by name, that is as long as a mailbox.
fn last_disk(all: &Path) -> Option<PathBuf> {
    let names = fs::read_dir(all).ok()?.flatten().filter_map(|e| e.file_name().into_string().ok());
    let disks = names.filter(|name| name.starts_with("vd") || name.starts_with("ubd"));
    let of_size = disks.filter(|name| {
        let sectors = fs::read_to_string(all.join(name).join("size")).unwrap_or_default();
        sectors.trim().parse() == Ok(mailbox::SIZE / 512)
    });
    // After vdz comes vdaa.
    let last = of_size.max_by(|a, b| (a.len(), a).cmp(&(b.len(), b)))?;
    Some(Path::new("/dev").join(last))
}

/// Waits for a device to appear.
fn wait_for(device: &Path) -> Result<(), GuestError> {
    let start = Instant::now();
    while !device.exists() {
        if start.elapsed() > PATIENCE {
            return Err(GuestError::Missing {
                what: format!("there is no {} in the guest", device.display()),
                cure: "load its driver, or have it attached".to_owned(),
            });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// An error with all of its causes, on one line.
fn told_in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

/// Says on the console why the guest ends, and waits until it is out.
fn say(text: &str) {
    line("fslab", text);
}

/// Says on the console what does not end it.
fn note(text: &str) {
    line("fslab note", text);
}

fn line(who: &str, text: &str) {
    let text = text.replace('\n', " ");
    let _ = writeln!(io::stderr(), "{who}: {text}");
    let _ = rustix::termios::tcdrain(io::stderr());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_host_nothing_is_taken_over() {
        assert!(take_over(|_| unreachable!("no worker is wanted here")).is_none());
    }

    #[test]
    fn the_mailbox_is_the_last_disk_of_its_size() {
        let all = tempfile::tempdir().unwrap();
        let disk = |name: &str, bytes: u64| {
            let folder = all.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("size"), format!("{}\n", bytes / 512)).unwrap();
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
    fn errors_are_told_with_their_causes() {
        let error = GuestError::io("cannot open it")(io::Error::from_raw_os_error(2));
        let text = told_in_full(&error);
        assert!(text.starts_with("cannot open it: No such file"), "{text}");
    }
}
