//! Host with fault injection. Calls of the methods that can fail are counted, and the call with a
//! given number returns a given error. A change of a device by another program can follow its
//! erasure.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering},
    },
};

use model::{Allocation, Bytes, Nanos};

use super::{
    Entry, Host, Identity, KernelLog, Loop, Output, ResidentPages, Statistics, TreeRefusal,
    UnreadablePath, Usage, WipeMethod,
};
use crate::{
    medium::{Medium, Roots},
    mount::{MountEntry, MountRefusal, MountRequest},
};

/// Host with one fault.
#[derive(Debug)]
pub(crate) struct FailingHost {
    inner: Box<dyn Host>,
    calls: AtomicU64,
    fails: AtomicU64,
    errno: AtomicI32,
    /// Called with each device that was erased.
    pub(crate) erased: OnceLock<fn(&Path)>,
}

impl FailingHost {
    /// Creates a host without a fault.
    pub(crate) fn new(inner: impl Host + 'static) -> Self {
        let (calls, fails) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        let (inner, errno, erased) = (Box::new(inner), AtomicI32::new(0), OnceLock::new());
        Self { inner, calls, fails, errno, erased }
    }

    /// Resets the call counter and sets the number of the call that fails, from 0; `None` for no
    /// fault. Returns the number of calls since the last reset.
    pub(crate) fn fail(&self, call: Option<u64>, errno: i32) -> u64 {
        self.errno.store(errno, Ordering::Relaxed);
        self.fails.store(call.unwrap_or(u64::MAX), Ordering::Relaxed);
        self.calls.swap(0, Ordering::Relaxed)
    }

    fn pass(&self) -> io::Result<()> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        match call == self.fails.load(Ordering::Relaxed) {
            true => Err(io::Error::from_raw_os_error(self.errno.load(Ordering::Relaxed))),
            false => Ok(()),
        }
    }
}

/// Implements methods of [`Host`] by calling those of `inner`. The first form is for methods that
/// cannot fail. In the second form, `pass` may return the fault instead.
macro_rules! delegate {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $($argument: $kind),*) -> $answer {
            self.inner.$name($($argument),*)
        })*
    };
    ($fault:expr; $($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $($argument: $kind),*) -> $answer {
            self.pass().map_err($fault)?;
            self.inner.$name($($argument),*)
        })*
    };
}

impl Host for FailingHost {
    fn erase_device(&self, device: &Path, expected: &Medium) -> io::Result<WipeMethod> {
        self.pass()?;
        let method = self.inner.erase_device(device, expected)?;
        if let Some(erased) = self.erased.get() {
            erased(device);
        }
        Ok(method)
    }
    delegate! {
        is_root() -> bool;
        pid() -> u32;
        roots() -> Roots;
        now() -> Nanos;
        sleep(time: Nanos) -> ();
        find(program: &str) -> Option<PathBuf>;
        thread_time() -> Nanos;
        reap(process: u32) -> ();
    }
    delegate! { |error| error;
        run(argv: &[String]) -> io::Result<Output>;
        run_with_input(argv: &[String], input: &str) -> io::Result<Output>;
        adopt_orphans() -> io::Result<()>;
        random(length: usize) -> io::Result<Vec<u8>>;
        process_time(process: u32) -> io::Result<Nanos>;
        usage() -> io::Result<Usage>;
        kernel_log() -> io::Result<Box<dyn KernelLog>>;
        bytes(path: &Path) -> io::Result<Vec<u8>>;
        read(path: &Path) -> io::Result<String>;
        write(path: &Path, text: &str) -> io::Result<()>;
        create(path: &Path, text: &str) -> io::Result<()>;
        list(path: &Path) -> io::Result<Vec<String>>;
        follow(path: &Path) -> io::Result<PathBuf>;
        entry(path: &Path) -> io::Result<Entry>;
        make_directory(path: &Path) -> io::Result<()>;
        remove_directory(path: &Path) -> io::Result<()>;
        remove_tree(path: &Path) -> io::Result<()>;
        remove_file(path: &Path) -> io::Result<()>;
        remove_same(path: &Path, identity: Identity) -> io::Result<bool>;
        create_image(path: &Path) -> io::Result<Identity>;
        renew_image(
            path: &Path, identity: Identity, size: Bytes, allocation: Allocation
        ) -> io::Result<()>;
        attach_loop(image: &Path, identity: Identity) -> io::Result<Loop>;
        loops_of(identity: Identity) -> io::Result<Vec<PathBuf>>;
        detach_loop(device: &Path, identity: Identity) -> io::Result<()>;
        remove_loop(number: u32) -> io::Result<()>;
        zero(device: &Path, expected: &Medium, length: Bytes) -> io::Result<()>;
        flush_device(device: &Path) -> io::Result<()>;
        mounts() -> io::Result<Vec<MountEntry>>;
        unmount(target: &Path) -> io::Result<()>;
        thaw(target: &Path) -> io::Result<()>;
        statistics(path: &Path) -> io::Result<Statistics>;
        make_files(
            directory: &Path, sizes: &[Bytes], seed: u64, stop: &AtomicBool
        ) -> io::Result<()>;
        sync(path: &Path) -> io::Result<()>;
        resident(path: &Path) -> io::Result<Bytes>;
        evict(directory: &Path) -> io::Result<ResidentPages>;
    }
    delegate! { |source| MountRefusal { step: "fsopen".into(), words: String::new(), source };
        mount(request: &MountRequest) -> Result<(), MountRefusal>;
    }
    delegate! { |source| UnreadablePath { path: "/".into(), source };
        sizes(directory: &Path, except: &[&str]) -> Result<Bytes, UnreadablePath>;
    }
    delegate! { |source| TreeRefusal::Failed { path: "/".into(), source };
        remove_marked(
            path: &Path, token: &str, identity: Option<Identity>
        ) -> Result<(), TreeRefusal>;
    }
}
