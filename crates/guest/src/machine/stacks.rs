//! Task stacks of a guest that makes no progress, as printed by its kernel.
//!
//! The stacks are requested through the control socket of user-mode Linux
//! (virt/uml/user_mode_linux_howto_v2.rst, “mconsole”) and read from the console. QEMU guests have
//! no such socket: they run without a monitor. The init process of the guest cannot print the
//! stacks, because it does not reply.

use std::{
    fs::File,
    io,
    os::{fd::AsRawFd as _, unix::net::UnixDatagram},
    path::Path,
    time::{Duration, Instant},
};

use crate::supervisor::Supervisor;

/// Format of a request: magic, version, length, and 512 bytes of text ending with a zero; numbers
/// are in host byte order (`struct mconsole_request` in arch/um/drivers/mconsole.h).
const MAGIC: u32 = 0xcafe_babe;
const VERSION: u32 = 2;
const TEXT: usize = 512;
/// SysRq keys (admin-guide/sysrq.rst): log everything to the console, CPU registers, blocked tasks,
/// all tasks. `t` is last because Linux 6.1 panics when it prints the first idle worker: it reads
/// the number of a work item that does not exist (`print_worker_info` in kernel/workqueue.c). The
/// guest is ended in any case.
const REQUESTS: [&str; 4] = ["sysrq 9", "sysrq p", "sysrq w", "sysrq t"];
/// Time limit for the first output; a socket is served within milliseconds.
const FIRST_OUTPUT: Duration = Duration::from_secs(1);
/// Silence after which the output is complete.
const QUIET: Duration = Duration::from_millis(200);
/// Time limit for the complete output.
const LONGEST: Duration = Duration::from_secs(5);
/// Interval between polls of the console.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Requests the stacks and returns the kernel's output, which also stays on its console. A waiting
/// kernel, for example in a mount that does not return, replied each time (6.1, 8 of 8). A kernel
/// that computes may crash on the request. A kernel in an endless loop with interrupts disabled
/// does not receive the request, and the result is empty.
pub(super) fn fetch(directory: &Path, supervisor: &mut Supervisor) -> String {
    let before = supervisor.console().bytes_received();
    if let Err(error) = send_requests(directory) {
        tracing::debug!(%error, "cannot request the task stacks of a guest kernel");
        return String::new();
    }
    let start = Instant::now();
    let (mut received, mut last) = (before, start);
    while start.elapsed() < LONGEST {
        let ended = supervisor.ended_within(POLL_INTERVAL).is_some();
        let now = supervisor.console().bytes_received();
        if now != received {
            (received, last) = (now, Instant::now());
        }
        let limit = if received == before { FIRST_OUTPUT } else { QUIET };
        if ended || last.elapsed() > limit {
            break;
        }
    }
    supervisor.console().since(before)
}

/// Sends the requests to the socket in the directory of the machine's control files. Replies are
/// not read: they repeat the console, and the kernel drops replies after ten unread ones.
///
/// # Errors
/// Errors of the system if the socket does not exist or no process reads from it.
fn send_requests(directory: &Path) -> io::Result<()> {
    // A socket path has at most 107 bytes (unix(7)); a path through `/proc/self/fd` is always
    // short.
    let directory = File::open(directory)?;
    let name = format!("/proc/self/fd/{}/mconsole", directory.as_raw_fd());
    let socket = UnixDatagram::unbound()?;
    // A kernel that does not read must not block this process.
    socket.set_nonblocking(true)?;
    for text in REQUESTS {
        socket.send_to(&request(text), &name)?;
    }
    Ok(())
}

/// Encodes a request; `text` must be shorter than its field.
pub(super) fn request(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or_default();
    let mut bytes = [MAGIC, VERSION, length].map(u32::to_ne_bytes).concat();
    bytes.extend(text.bytes());
    bytes.resize(12 + TEXT, 0);
    bytes
}
