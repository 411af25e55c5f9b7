//! Parsers of untrusted input as fuzz targets. Each target accepts any bytes and must neither panic
//! nor use unbounded time or memory.

use std::{
    ffi::OsStr,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use crate::{
    Architecture, Cache, KernelQuery,
    in_guest::GuestConfig,
    kernel::{elf, finder::Finder, source::Source},
    mailbox::{Header, Heartbeat, SECTOR},
    modules::Index,
};

/// Maximum unpacked size of a stream in bytes.
const LIMIT: u64 = 16 << 20;

static NEVER: AtomicBool = AtomicBool::new(false);

/// Directory in memory of this thread, which each input creates and removes.
fn directory() -> PathBuf {
    let (process, thread) = (std::process::id(), std::thread::current().id());
    PathBuf::from(format!("/dev/shm/fslab-fuzz-{process}-{thread:?}"))
}

/// Kernel selected by path: a package, an archive, a boot image, or an ELF file. Files are written
/// inside the cache only, as directories and regular files.
///
/// # Panics
/// If a file was created outside the cache, or if a file of another type was created.
pub fn kernel(bytes: &[u8]) {
    let directory = directory();
    let (cache, file) = (directory.join("cache"), directory.join("file"));
    let prepared = fs::create_dir_all(&directory).and_then(|()| fs::write(&file, bytes));
    if prepared.is_err() {
        return;
    }
    for architecture in [Architecture::Pc, Architecture::Uml] {
        let finder = Finder {
            root: &directory.join("none"),
            path: OsStr::new(""),
            architecture,
            cache: &Cache::new(cache.clone()),
            interrupt: &NEVER,
        };
        let _result = finder.find(KernelQuery::Text(&file.to_string_lossy()));
    }
    let mut others = names(&directory);
    others.retain(|name| !["cache", "file"].contains(&name.as_str()));
    assert!(others.is_empty(), "{others:?}");
    check_file_types(&cache);
    let _gone = fs::remove_dir_all(&directory);
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Checks that a tree has directories and regular files only.
fn check_file_types(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        assert!(kind.is_dir() || kind.is_file(), "{}", entry.path().display());
        if kind.is_dir() {
            check_file_types(&entry.path());
        }
    }
}

/// Compressed stream: gzip, xz, zstd, or lz4.
///
/// # Panics
/// If the output exceeds the limit.
pub fn stream(bytes: &[u8]) {
    let source = Source { path: Path::new("stream"), interrupt: &NEVER };
    if let Ok(mut stream) = source.unpacked(bytes, LIMIT) {
        let length = io::copy(&mut stream, &mut io::sink()).unwrap_or_default();
        assert!(length <= LIMIT, "{length} bytes");
    }
}

/// ELF file and the kernel release that it contains.
pub fn elf(bytes: &[u8]) {
    let Ok((file, _path)) = sys::input::in_memory(bytes) else { return };
    let _kind = elf::examine(&file);
    let _release = elf::release(&mut (&file).take(LIMIT));
}

/// Directory of modules: the first byte selects the file whose contents follow.
pub fn modules(bytes: &[u8]) {
    const FILES: [&str; 6] = [
        "kernel/fs/a.ko",
        "kernel/fs/a.ko.xz",
        "kernel/fs/a.ko.zst",
        "kernel/fs/a.ko.gz",
        "modules.builtin",
        "modules.builtin.modinfo",
    ];
    let Some((first, rest)) = bytes.split_first() else { return };
    let name = FILES[usize::from(*first) % FILES.len()];
    let directory = directory();
    let made = fs::create_dir_all(directory.join("kernel/fs"));
    if made.and_then(|()| fs::write(directory.join(name), rest)).is_err() {
        return;
    }
    if let Ok(index) = Index::read(&directory, None) {
        let _state = index.has("ext4");
        let _order = index.order(&["a", "fs-ext4"]);
    }
    let _gone = fs::remove_dir_all(&directory);
}

/// Mailbox contents: a header or heartbeat sector and a payload; also the text of a guest
/// configuration.
pub fn mailbox(bytes: &[u8]) {
    let mut sector = [0; SECTOR];
    let length = bytes.len().min(SECTOR);
    sector[..length].copy_from_slice(&bytes[..length]);
    if let Some(header) = Header::of_sector(&sector) {
        let _damaged = header.check(&bytes[length..]);
    }
    let _heartbeat = Heartbeat::of_sector(&sector);
    if let Ok(text) = str::from_utf8(bytes) {
        let _config = GuestConfig::of_text(text);
    }
}
