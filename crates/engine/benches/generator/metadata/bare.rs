//! Bare loops over files: the minimal code that makes the same calls.

use std::{ffi::CString, path::Path};

use engine::now;
use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, statat, unlinkat},
    thread::UnshareFlags,
};

use crate::rate::Rate;

/// Rates of creating and closing, stat, and unlinking files with these names in an open directory.
/// The descriptor table is not shared, as in a single-threaded program and in the workers of fslab.
/// Reads the clock after each operation if `reads_clock`.
#[expect(deprecated, reason = "all descriptors are made and closed in this thread")]
pub(crate) fn calls(directory: &Path, names: &[CString], reads_clock: bool) -> [Rate; 3] {
    rustix::thread::unshare(UnshareFlags::FILES).expect("there is memory for a table");
    let root = opened(directory);
    let files = names.len() as u64;
    let begun = now();
    for name in names {
        create(&root, name);
        read_clock(reads_clock);
    }
    let created = now();
    for name in names {
        let status = statat(&root, name.as_c_str(), AtFlags::empty());
        std::hint::black_box(status.expect("it was just made"));
        read_clock(reads_clock);
    }
    let looked = now();
    for name in names {
        unlinkat(&root, name.as_c_str(), AtFlags::empty()).expect("it was just made");
        read_clock(reads_clock);
    }
    let removed = now();
    [
        Rate::new(files, created - begun),
        Rate::new(files, looked - created),
        Rate::new(files, removed - looked),
    ]
}

#[inline]
fn read_clock(reads_clock: bool) {
    if reads_clock {
        std::hint::black_box(now());
    }
}

/// Creates and closes files of these names, `each` per directory.
pub(crate) fn layout(directory: &Path, names: &[CString], each: u64) -> Rate {
    let root = opened(directory);
    let chunks = names.chunks(usize::try_from(each).expect("a thousand"));
    let begun = now();
    for (number, chunk) in chunks.enumerate() {
        let name = number.to_string();
        mkdirat(&root, &name, Mode::RWXU).expect("the directory is new");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let holder = openat(&root, &name, flags, Mode::empty()).expect("it was just created");
        for name in chunk {
            create(&holder, name);
        }
    }
    Rate::new(names.len() as u64, now() - begun)
}

fn create(directory: &OwnedFd, name: &CString) {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = openat(directory, name.as_c_str(), flags, Mode::RUSR | Mode::WUSR);
    drop(file.expect("the file is created"));
}

fn opened(directory: &Path) -> OwnedFd {
    std::fs::create_dir_all(directory).expect("the directory is created");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(directory, flags, Mode::empty()).expect("it was just made")
}
