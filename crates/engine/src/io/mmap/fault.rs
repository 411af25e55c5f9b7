//! SIGBUS in a watched mapping becomes a mark on it instead of the end of the process.
//!
//! The kernel raises SIGBUS in the thread that touches a page of a mapped file which it cannot
//! provide: the file ends before it, the device failed, or there is no space for it (mmap(2)). The
//! handler puts a page of zeros in the place of that page, marks the mapping, and returns, so that
//! the interrupted instruction goes on; whoever made the copy then looks at the mark.
//!
//! The handler is installed once for the process and stays. It touches atomics and calls mmap(2)
//! and sigaction(2) only, all of which may be done in a signal handler; errno is left as it was.
//! Faults elsewhere go to the disposition that was there before.
#![expect(unsafe_code, reason = "a signal handler, and the list that it reads")]

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

/// A watched range. Nodes are never freed, since a handler may be looking at them, but used again.
struct Node {
    next: *const Node,
    // Set by whoever uses the node.
    taken: AtomicBool,
    // The first byte, and the length; a length of zero watches nothing.
    base: AtomicUsize,
    len: AtomicUsize,
    tripped: AtomicBool,
}

/// All nodes.
static NODES: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());

/// What was there before, and the size of a page; set before the handler is installed.
static BEFORE: OnceLock<(libc::sigaction, usize)> = OnceLock::new();

/// Whether the handler is installed.
static INSTALLED: Mutex<bool> = Mutex::new(false);

/// Watches a range of addresses until it is dropped, which must be before the range is unmapped.
pub(super) struct Watch(&'static Node);

impl Watch {
    /// Watches `len` bytes from `base` on.
    ///
    /// # Errors
    /// Those of sigaction(2), which has none for this.
    pub(super) fn of(base: usize, len: usize) -> Result<Self, Errno> {
        install()?;
        let node = take();
        node.tripped.store(false, Relaxed);
        node.base.store(base, Relaxed);
        node.len.store(len, Release);
        Ok(Self(node))
    }

    /// Whether a page of the range could not be had since the last look.
    #[inline]
    pub(super) fn tripped(&self) -> bool {
        self.0.tripped.load(Relaxed) && self.0.tripped.swap(false, Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.len.store(0, Release);
        self.0.taken.store(false, Release);
    }
}

/// A node that nobody uses, made if need be.
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
        tripped: AtomicBool::new(false),
    }));
    loop {
        let (first, new) = (node.next.cast_mut(), &raw mut *node);
        match NODES.compare_exchange(first, new, Release, Acquire) {
            Ok(_) => return node,
            Err(other) => node.next = other,
        }
    }
}

/// Goes through all nodes.
fn nodes() -> impl Iterator<Item = &'static Node> {
    let mut next: *const Node = NODES.load(Acquire);
    std::iter::from_fn(move || {
        // SAFETY: a pointer in the list is null or that of a leaked node, published after it was
        // filled, and its `next` does not change from then on.
        let node: &'static Node = unsafe { next.as_ref() }?;
        next = node.next;
        Some(node)
    })
}

/// Installs the handler, the first time.
fn install() -> Result<(), Errno> {
    let mut installed = INSTALLED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    // SAFETY: a sigaction of zeros is a valid one: the default disposition, no flags, no mask.
    let mut before: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: the new action is none, and `before` is there to be written to.
    check(unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut before) })?;
    let _ = BEFORE.set((before, page_size()));
    // SAFETY: as above.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_sigbus;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler has the three parameters that SA_SIGINFO promises, and does only what a
    // handler may do, see the module.
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
        node.tripped.store(true, Relaxed);
    } else {
        pass_on(signal, info, context);
    }
}

/// Puts zeros in the place of a page.
fn replace(place: usize, page: usize) -> bool {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: errno is the thread's own; the page belongs to a mapping that is watched, so it is
    // still mapped, and it has no content that could be lost.
    unsafe {
        let errno = *libc::__errno_location();
        let answer = libc::mmap(place as *mut libc::c_void, page, protection, flags, -1, 0);
        *libc::__errno_location() = errno;
        answer != libc::MAP_FAILED
    }
}

/// Does what would have been done without this handler.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE.get().map(|(before, _)| *before);
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    // SAFETY: the handler was another's disposition of this signal, with the parameters that its
    // flags say. The default one, which ends the process, is reached by returning to the
    // instruction that faults; a synchronous signal cannot be ignored.
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

    /// Pages beyond the end of a file cannot be had: each marks its own mapping and reads as zeros.
    #[test]
    fn missing_pages_mark_their_own_mapping() {
        let page = page_size();
        let file = tempfile::tempfile().unwrap();
        file.set_len(page as u64).unwrap();
        let len = NonZeroUsize::new(3 * page).unwrap();
        let map = || Mapping::of_file(file.as_fd(), len, true).unwrap();
        let (one, other) = (map(), map());
        let watch = |mapping: &Mapping| Watch::of(mapping.base().as_ptr() as usize, len.get());
        let (first, second) = (watch(&one).unwrap(), watch(&other).unwrap());
        // SAFETY: within the mapping, which may be written to.
        let touch = |at: usize| unsafe {
            let place = one.base().as_ptr().add(at);
            place.write_volatile(9);
            place.add(1).read_volatile()
        };
        assert_eq!((touch(0), first.tripped()), (0, false));
        assert_eq!((touch(2 * page), first.tripped(), first.tripped()), (0, true, false));
        assert_eq!((touch(page + 100), first.tripped(), second.tripped()), (0, true, false));
        drop((first, second));
        let again = watch(&other).unwrap();
        assert!(!again.tripped(), "a node used again has no mark");
    }

    /// A fault in no watched mapping still ends the process as it did before.
    #[test]
    fn other_faults_end_the_process() {
        const CHILD: &str = "FSLAB_TEST_UNWATCHED_FAULT";
        let name = "io::mmap::fault::tests::other_faults_end_the_process";
        if std::env::var_os(CHILD).is_some() {
            install().unwrap();
            let file = tempfile::tempfile().unwrap();
            let len = NonZeroUsize::new(page_size()).unwrap();
            let mapping = Mapping::of_file(file.as_fd(), len, false).unwrap();
            // SAFETY: within the mapping; there is no page, which is the point.
            let byte = unsafe { mapping.base().as_ptr().read_volatile() };
            unreachable!("read {byte} where nothing is");
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
