//! What the tasks of a guest are at when it does not get on, in the words of its kernel.
//!
//! The control socket of user-mode Linux enters (virt/uml/user_mode_linux_howto_v2.rst,
//! “mconsole”), and what the kernel then writes to its console leaves. QEMU's machines have no such
//! socket: they run without a monitor, and their first process is the one that does not answer.

use std::{
    fs::File,
    io,
    os::{fd::AsRawFd as _, unix::net::UnixDatagram},
    path::Path,
    time::{Duration, Instant},
};

use crate::cage::Cage;

/// The form of a request: magic, version, length, and 512 bytes of text, of which the last is a
/// zero; numbers are in the host's order (`struct mconsole_request` in arch/um/drivers/mconsole.h).
const MAGIC: u32 = 0xcafe_babe;
const VERSION: u32 = 2;
const TEXT: usize = 512;
/// Keys of the kernel's (admin-guide/sysrq.rst): everything to the console, the processor's
/// registers, tasks that are blocked, all tasks. The last comes last since 6.1 panics of it, at
/// the first idle worker, where it reads the number of a work that is not there
/// (`print_worker_info` in kernel/workqueue.c). That does no harm to a guest that is given up.
const REQUESTS: [&str; 4] = ["sysrq 9", "sysrq p", "sysrq w", "sysrq t"];
/// How long the kernel may take to its first word; a socket is answered within milliseconds.
const FIRST: Duration = Duration::from_secs(1);
/// How long it has been quiet when it has said all.
const QUIET: Duration = Duration::from_millis(200);
/// How long it may talk.
const LONGEST: Duration = Duration::from_secs(5);
/// How often the console is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Asks the kernel, and gives what it says; that also stays on its console. One that waits, as in a
/// mount that hangs, told each time (6.1, 8 of 8). One that computes may die of the question, and
/// one that is in an endless loop with interrupts off does not hear it: then this is empty.
pub(super) fn fetch(directory: &Path, cage: &mut Cage) -> String {
    let before = cage.console().heard();
    if let Err(error) = ask(directory) {
        tracing::debug!(%error, "a guest's kernel could not be asked for its stacks");
        return String::new();
    }
    let start = Instant::now();
    let (mut heard, mut last) = (before, start);
    while start.elapsed() < LONGEST {
        let ended = cage.ended_within(LOOK).is_some();
        let now = cage.console().heard();
        if now != heard {
            (heard, last) = (now, Instant::now());
        }
        let patience = if heard == before { FIRST } else { QUIET };
        if ended || last.elapsed() > patience {
            break;
        }
    }
    cage.console().since(before)
}

/// Sends the requests to the socket in the directory of a machine's control files. Replies are not
/// waited for: they are pieces of the console, and are dropped when ten of them have not been read.
///
/// # Errors
/// The system's, if there is no such socket, or nobody reads from it.
fn ask(directory: &Path) -> io::Result<()> {
    // The name of a socket has 107 bytes at most (unix(7)), and this one is short wherever it is.
    let directory = File::open(directory)?;
    let name = format!("/proc/self/fd/{}/mconsole", directory.as_raw_fd());
    let socket = UnixDatagram::unbound()?;
    // One that does not read must not hold us up as well.
    socket.set_nonblocking(true)?;
    for text in REQUESTS {
        socket.send_to(&request(text), &name)?;
    }
    Ok(())
}

/// A request as bytes; `text` is shorter than what there is room for.
pub(super) fn request(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or_default();
    let mut bytes = [MAGIC, VERSION, length].map(u32::to_ne_bytes).concat();
    bytes.extend(text.bytes());
    bytes.resize(12 + TEXT, 0);
    bytes
}
