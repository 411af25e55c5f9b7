//! Fuzz targets for parsers of untrusted input. Each target accepts any bytes, and must neither
//! panic nor use unbounded time or memory.

use std::{
    fs,
    path::{Path, PathBuf},
};

use model::Bytes;

use crate::{
    Catalog, FakeHost, activity,
    guard::{self, Permission, Roots},
    signature, undo,
};

/// Directory in memory, which the current thread uses again for each input.
fn directory() -> PathBuf {
    let name = format!("fslab-fuzz-{}-{:?}", std::process::id(), std::thread::current().id());
    Path::new("/dev/shm").join(name)
}

/// Input: the first bytes of a disk.
pub fn signature(bytes: &[u8]) {
    let Ok((file, _path)) = sys::input::in_memory(bytes) else { return };
    let _found = signature::probe(&file, Bytes(bytes.len() as u64));
}

/// Input: the text of a file in `/proc` or sysfs, or of records of the kernel log. Each parser gets
/// the same text.
pub fn machine(bytes: &[u8]) {
    const FILES: [&str; 12] = [
        "/proc/stat",
        "/proc/1/stat",
        "/proc/1/cgroup",
        "/proc/1/comm",
        "/proc/pressure/cpu",
        "/proc/pressure/memory",
        "/proc/pressure/io",
        "/sys/block/sda/stat",
        "/sys/block/sda/dev",
        "/sys/class/block/sda/stat",
        "/sys/class/block/sda/dev",
        "/proc/diskstats",
    ];
    guard::fuzz(bytes);
    let (directory, text) = (directory(), String::from_utf8_lossy(bytes));
    let image = directory.join("image");
    if fs::create_dir_all(directory.join("proc")).is_err() {
        return;
    }
    let _swaps = fs::write(directory.join("proc/swaps"), bytes);
    let roots = Roots {
        sys: directory.join("sys"),
        proc: directory.join("proc"),
        dev: directory.join("dev"),
    };
    let _image = fs::write(&image, b"").map(|()| {
        let permission = Permission::default();
        let _refused = guard::claim_image(&image, Bytes(1 << 20), &permission, &roots);
    });
    let host = FILES.iter().fold(FakeHost::new(&directory), |host, file| host.file(file, &text));
    activity::fuzz(&host, &text);
    let _gone = fs::remove_dir_all(&directory);
}

/// Input: the user's catalog of filesystem types.
pub fn catalog(bytes: &[u8]) {
    let _refused = Catalog::embedded().merged(&String::from_utf8_lossy(bytes), Path::new("-"));
}

/// Input: the undo journal of a dead run, which is undone on a simulated host.
pub fn journal(bytes: &[u8]) {
    let directory = directory();
    let state = directory.join("state");
    let journals = state.join("journal");
    let made = fs::create_dir_all(&journals);
    if made.and_then(|()| fs::write(journals.join("fuzz.jsonl"), bytes)).is_ok() {
        let host = FakeHost::new(directory.join("machine"));
        let _report = undo::clean(&host, &state);
    }
    let _gone = fs::remove_dir_all(&directory);
}
