//! SIGBUS handler that marks a registered mapping instead of terminating the process.
//!
//! If the kernel cannot provide a page of a mapped file, it raises SIGBUS in the thread that
//! accesses the page. Reasons: the file ends before the page, the device failed, or no space is
//! left (mmap(2)). The handler replaces the page by a page of zeros, marks the mapping, and
//! returns, so that the interrupted instruction continues. The caller of the copy then checks the
//! mark.
//!
//! The handler is installed once per process and never removed. It accesses atomics and calls
//! mmap(2) and sigaction(2) only, which is allowed in a signal handler; errno is preserved. Faults
//! outside registered mappings are passed to the previous disposition.
#![expect(unsafe_code, reason = "a signal handler and the list that it reads")]

use std::{
    mem, ptr,
    sync::{
        Mutex, OnceLock,
        atomic::{
            AtomicBool, AtomicPtr, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};

use rustix::{io::Errno, param::page_size};

/// Registered range. Nodes are reused, never freed, because a handler may be reading them.
struct Node {
    next: *const Node,
    // Set while the node is in use.
    taken: AtomicBool,
    // Address of the first byte, and length; a length of zero matches no address.
    base: AtomicUsize,
    len: AtomicUsize,
    has_faulted: AtomicBool,
}

/// List of all nodes.
static NODES: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());

/// Previous disposition, and the page size; set before the handler is installed.
static BEFORE: OnceLock<(libc::sigaction, usize)> = OnceLock::new();

/// True if the handler is installed.
static INSTALLED: Mutex<bool> = Mutex::new(false);

/// Registration of an address range. Drop it before the range is unmapped.
pub(super) struct Watch(&'static Node);

impl Watch {
    /// Registers `len` bytes starting at `base`.
    ///
    /// # Errors
    /// Errors of sigaction(2), none of which apply here.
    pub(super) fn of(base: usize, len: usize) -> Result<Self, Errno> {
        install()?;
        let node = take();
        node.has_faulted.store(false, Relaxed);
        node.base.store(base, Relaxed);
        node.len.store(len, Release);
        Ok(Self(node))
    }

    /// True if an access to the range has failed since the last call.
    #[inline]
    pub(super) fn has_faulted(&self) -> bool {
        self.0.has_faulted.load(Relaxed) && self.0.has_faulted.swap(false, Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.len.store(0, Release);
        self.0.taken.store(false, Release);
    }
}

/// Unused node; allocated if there is none.
fn take() -> &'static Node {
    for node in nodes() {
        if node.taken.compare_exchange(false, true, Acquire, Relaxed).is_ok() {
            return node;
        }
    }
    let node = Box::leak(Box::new(Node {
        next: NODES.load(Acquire),
        taken: AtomicBool::new(true),
        base: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        has_faulted: AtomicBool::new(false),
    }));
    loop {
        let (first, new) = (node.next.cast_mut(), &raw mut *node);
        match NODES.compare_exchange(first, new, Release, Acquire) {
            Ok(_) => return node,
            Err(other) => node.next = other,
        }
    }
}

/// Iterates over all nodes.
fn nodes() -> impl Iterator<Item = &'static Node> {
    let mut next: *const Node = NODES.load(Acquire);
    std::iter::from_fn(move || {
        // SAFETY: a pointer in the list is null or that of a leaked node, which was initialized
        // before it was published, and whose `next` does not change afterwards.
        let node: &'static Node = unsafe { next.as_ref() }?;
        next = node.next;
        Some(node)
    })
}

/// Installs the handler on the first call.
fn install() -> Result<(), Errno> {
    let mut installed = INSTALLED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    // SAFETY: an all-zero sigaction is valid: the default disposition, no flags, no mask.
    let mut before: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: the new action is null, and `before` is valid for writes.
    check(unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut before) })?;
    let _ = BEFORE.set((before, page_size()));
    // SAFETY: as above.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_sigbus;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler has the three parameters of SA_SIGINFO and is async-signal-safe, see the
    // module.
    check(unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) })?;
    *installed = true;
    Ok(())
}

fn check(answer: libc::c_int) -> Result<(), Errno> {
    if answer == 0 { Ok(()) } else { Err(super::sync::last_errno()) }
}

extern "C" fn on_sigbus(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo, which for SIGBUS has an address.
    let address = unsafe { (*info).si_addr() } as usize;
    let watched = nodes().find(|node| {
        let (len, base) = (node.len.load(Acquire), node.base.load(Relaxed));
        address.wrapping_sub(base) < len
    });
    // The page size was stored before the handler was installed.
    let (Some(node), Some((_, page))) = (watched, BEFORE.get()) else {
        return pass_on(signal, info, context);
    };
    if replace(address - address % page, *page) {
        node.has_faulted.store(true, Relaxed);
    } else {
        pass_on(signal, info, context);
    }
}

/// Replaces a page by a page of zeros. Returns false if that fails.
fn replace(place: usize, page: usize) -> bool {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: errno belongs to the thread. The page belongs to a registered mapping, so it is still
    // mapped, and has no content that could be lost.
    unsafe {
        let errno = *libc::__errno_location();
        let answer = libc::mmap(place as *mut libc::c_void, page, protection, flags, -1, 0);
        *libc::__errno_location() = errno;
        answer != libc::MAP_FAILED
    }
}

/// Runs the previous disposition.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE.get().map(|(before, _)| *before);
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    // SAFETY: the handler was the previous disposition of this signal, with the parameters given by
    // its flags. The default disposition, which terminates the process, is reached by returning to
    // the faulting instruction; a synchronous signal cannot be ignored.
    unsafe {
        match before {
            Some(before) if handler != libc::SIG_DFL && handler != libc::SIG_IGN => {
                if before.sa_flags & libc::SA_SIGINFO != 0 {
                    type Full = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
                    mem::transmute::<usize, Full>(handler)(signal, info, context);
                } else {
                    mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler)(signal);
                }
            }
            _ => {
                let default: libc::sigaction = mem::zeroed();
                libc::sigaction(signal, &raw const default, ptr::null_mut());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroUsize, os::fd::AsFd};

    use super::*;
    use crate::mapping::Mapping;

    /// Pages beyond the end of a file are not available: each marks its own mapping and reads as
    /// zeros.
    #[test]
    fn missing_pages_mark_their_own_mapping() {
        let page = page_size();
        let file = tempfile::tempfile().unwrap();
        file.set_len(page as u64).unwrap();
        let len = NonZeroUsize::new(3 * page).unwrap();
        let map = || Mapping::of_file(file.as_fd(), len, true).unwrap();
        let (one, other) = (map(), map());
        let registration =
            |mapping: &Mapping| Watch::of(mapping.base().as_ptr() as usize, len.get());
        let (first, second) = (registration(&one).unwrap(), registration(&other).unwrap());
        // SAFETY: inside the mapping, which is writable.
        let touch = |at: usize| unsafe {
            let place = one.base().as_ptr().add(at);
            place.write_volatile(9);
            place.add(1).read_volatile()
        };
        assert_eq!((touch(0), first.has_faulted()), (0, false));
        assert_eq!((touch(2 * page), first.has_faulted(), first.has_faulted()), (0, true, false));
        assert_eq!(
            (touch(page + 100), first.has_faulted(), second.has_faulted()),
            (0, true, false)
        );
        drop((first, second));
        let again = registration(&other).unwrap();
        assert!(!again.has_faulted(), "a reused node has no mark");
    }

    /// A fault outside registered mappings still terminates the process.
    #[test]
    fn other_faults_terminate_the_process() {
        const CHILD: &str = "FSLAB_TEST_UNWATCHED_FAULT";
        let name = "io::mmap::fault::tests::other_faults_terminate_the_process";
        if std::env::var_os(CHILD).is_some() {
            install().unwrap();
            let file = tempfile::tempfile().unwrap();
            let len = NonZeroUsize::new(page_size()).unwrap();
            let mapping = Mapping::of_file(file.as_fd(), len, false).unwrap();
            // SAFETY: inside the mapping; the missing page is intended.
            let byte = unsafe { mapping.base().as_ptr().read_volatile() };
            unreachable!("read {byte} beyond the end of the file");
        }
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env(CHILD, "1")
            .output()
            .unwrap();
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(child.status.signal(), Some(libc::SIGBUS), "{child:?}");
    }
}
