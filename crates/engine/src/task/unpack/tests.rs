use std::{fs, os::unix::fs::symlink};

use model::phase::{Compression, Method, TaskOperation};
use tempfile::TempDir;

use super::*;
use crate::{
    barrier::ControlBlock,
    task::{
        archive::{Output, fetch},
        pack::{Facts, TarWriter},
    },
};

/// Entry: type, path, link, data.
type Planted<'a> = (EntryType, &'a str, Option<&'a str>, &'a [u8]);

const FILE: EntryType = EntryType::Regular;
const LINK: EntryType = EntryType::Symlink;

struct Bench(TempDir);

impl Bench {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn place(&self, name: &str) -> ResolvedPath {
        ResolvedPath { at: model::phase::TaskRoot::Target, path: self.path(name) }
    }

    fn with<T>(&self, work: impl FnOnce(&mut TaskContext<'_>) -> T) -> T {
        let control = ControlBlock::new(1).unwrap();
        work(&mut TaskContext::new(model::Bytes(4096), &control).unwrap())
    }

    /// Writes an archive with these entries, valid or not.
    fn archive(&self, compression: Compression, entries: &[Planted<'_>]) -> ResolvedPath {
        let place = self.place("t");
        let _ = fs::remove_file(&place.path);
        self.with(|context| {
            let mut tape = TarWriter::new(Output::create(&place, compression, context).unwrap());
            for (kind, path, link, data) in entries {
                let facts = Facts {
                    kind: *kind,
                    path: path.as_bytes(),
                    link: link.map(str::as_bytes),
                    mode: 0o4644,
                    owner: (0, 0),
                    mtime: 1,
                    size: data.len() as u64,
                };
                tape.header(&facts, context).unwrap();
                tape.put(data, context).unwrap();
                tape.pad(context).unwrap();
            }
            tape.finish(context).unwrap();
        });
        place
    }

    fn unpack(&self, into: &str, entries: &[Planted<'_>]) -> Result<u64, String> {
        let archive = self.archive(Compression::None, entries);
        self.with(|context| {
            unpack(&archive, &self.place(into), context).map_err(|error| error.to_string())?;
            Ok(context.ops())
        })
    }
}

#[test]
fn no_entry_is_written_outside_the_directory() {
    let bench = Bench::new();
    let outside = bench.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("mine"), b"mine").unwrap();
    let absolute = outside.join("x").display().to_string();
    let there = outside.display().to_string();
    let to_mine = outside.join("mine").display().to_string();
    let cases: &[(&str, &[Planted<'_>])] = &[
        ("leads out of the directory", &[(FILE, "../outside/x", None, b"!")]),
        ("leads out of the directory", &[(FILE, "a/../../outside/x", None, b"!")]),
        ("leads out of the directory", &[(FILE, &absolute, None, b"!")]),
        ("leads out of the directory", &[(EntryType::Directory, "../new", None, b"")]),
        ("leads out of the directory", &[(LINK, "../new", Some("x"), b"")]),
        (
            "has a parent that is not a directory",
            &[(LINK, "l", Some(&there), b""), (FILE, "l/x", None, b"!")],
        ),
        (
            "has a parent that is not a directory",
            &[(LINK, "l", Some("../outside"), b""), (EntryType::Directory, "l/x", None, b"")],
        ),
        (
            "has a parent that is not a directory",
            &[(LINK, "l", Some(&there), b""), (EntryType::Directory, "l", None, b"")],
        ),
        (
            "has a parent that is not a directory",
            &[(LINK, "l", Some(&there), b""), (EntryType::Link, "h", Some("l/mine"), b"")],
        ),
        ("leads out of the directory", &[(EntryType::Link, "h", Some(&to_mine), b"")]),
        ("leads out of the directory", &[(EntryType::Link, "h", Some("../outside/mine"), b"")]),
        ("is a device", &[(EntryType::Char, "c", None, b"")]),
        ("has no name", &[(FILE, "./", None, b"!")]),
    ];
    for (index, (why, entries)) in cases.iter().enumerate() {
        let text = bench.unpack(&format!("into{index}"), entries).unwrap_err();
        assert!(text.contains(why), "{entries:?}: {text}");
        assert!(text.contains("/t: the entry `") && text.contains("tar -tvf"), "{text}");
        let left: Vec<_> = fs::read_dir(&outside).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(left, [outside.join("mine")], "{entries:?}");
        assert!(!bench.path("new").exists(), "{entries:?}");
    }
    assert_eq!(fs::read(outside.join("mine")).unwrap(), b"mine");
}

#[test]
fn the_last_entry_of_a_name_replaces_earlier_ones_and_links_are_not_followed() {
    let bench = Bench::new();
    fs::write(bench.path("mine"), b"mine").unwrap();
    let mine = bench.path("mine").display().to_string();
    let entries = [
        (FILE, "a", None, &b"one"[..]),
        (LINK, "a", Some(&mine[..]), b""),
        (FILE, "a", None, b"two"),
    ];
    assert_eq!(bench.unpack("into", &entries), Ok(3));
    assert_eq!(fs::read(bench.path("mine")).unwrap(), b"mine");
    let status = fs::symlink_metadata(bench.path("into/a")).unwrap();
    assert!(status.is_file());
    assert_eq!(fs::read(bench.path("into/a")).unwrap(), b"two");
}

#[test]
fn links_are_unchanged_and_modes_have_no_special_bits() {
    use std::os::unix::fs::MetadataExt;
    let bench = Bench::new();
    let entries = [
        (EntryType::XGlobalHeader, "pax_global_header", None, &b"20 comment=0123456789\n"[..]),
        (FILE, "d/e/file", None, b"data"),
        (LINK, "d/away", Some("/etc/passwd"), b""),
        (EntryType::Link, "hard", Some("d/e/file"), b""),
        (EntryType::Link, "hard", Some("hard"), b""),
    ];
    assert_eq!(bench.unpack("into", &entries), Ok(4));
    assert_eq!(fs::read_link(bench.path("into/d/away")).unwrap(), Path::new("/etc/passwd"));
    let [one, two] = ["into/hard", "into/d/e/file"].map(|n| fs::metadata(bench.path(n)).unwrap());
    assert_eq!((one.ino(), one.nlink()), (two.ino(), 2));
    assert_eq!((one.mode() & 0o7777, one.mtime()), (0o644, 1));
}

#[test]
fn given_archives_are_checked_and_copied() {
    let bench = Bench::new();
    let fetched = |given: &str, to: &str| {
        let given = bench.path(given);
        let answer = bench.with(|context| fetch(&given, &bench.place(to), context));
        answer.map_err(|error| error.to_string())
    };
    for (number, compression) in [Compression::None, Compression::Gzip].into_iter().enumerate() {
        bench.archive(compression, &[(FILE, "a", None, b"data")]);
        symlink(bench.path("t"), bench.path(&format!("link{number}"))).unwrap();
        let to = format!("fetched{number}");
        assert_eq!(fetched(&format!("link{number}"), &to), Ok(()));
        let content = fs::read(bench.path(&to)).unwrap();
        assert_eq!(content, fs::read(bench.path("t")).unwrap());
        let gzip = content.starts_with(&[0x1F, 0x8B]);
        assert_eq!(gzip, compression == Compression::Gzip);
    }
    let refused = |bytes: &[u8]| {
        fs::write(bench.path("given"), bytes).unwrap();
        fetched("given", "never").unwrap_err()
    };
    for (magic, hint) in [
        (&b"\xFD7zXZ\0\0\0"[..], "`xz -d -k "),
        (b"\x28\xB5\x2F\xFD....", "`zstd -d -k "),
        (b"BZh91AY", "`bzip2 -d -k "),
        (b"PK\x03\x04", "`tar -cf "),
    ] {
        let text = refused(magic);
        assert!(text.contains("is not supported; ") && text.contains(hint), "{text}");
    }
    assert!(refused(&[b'x'; 2000]).contains("not a tar archive"), "noise");
    assert!(refused(b"short").contains("not a tar archive"), "too short");
    assert!(refused(b"").contains("the file is empty"), "empty");
    assert!(fetched("nowhere", "never").unwrap_err().contains("no such file; use"));
    assert!(fetched("", "never").unwrap_err().contains("not a regular file; use"), "a directory");
    assert!(!bench.path("never").exists());
}

#[test]
fn a_truncated_archive_is_an_error() {
    let bench = Bench::new();
    for compression in [Compression::None, Compression::Gzip] {
        let archive = bench.archive(compression, &[(FILE, "a", None, &[1; 5000])]);
        let bytes = fs::read(&archive.path).unwrap();
        let end = if compression == Compression::None { 2000 } else { bytes.len() - 20 };
        fs::write(&archive.path, &bytes[..end]).unwrap();
        let into = format!("{compression:?}");
        let answer = bench.with(|context| unpack(&archive, &bench.place(&into), context));
        let text = answer.unwrap_err().to_string();
        assert!(text.contains("damaged, or not a tar archive"), "{text}");
    }
}

#[test]
fn method_and_operation_are_serialized_as_text() {
    let operation = TaskOperation::Unpack {
        archive: crate::task::tests::task_path("t"),
        into: crate::task::tests::task_path("into"),
    };
    let text = serde_json::to_string(&(Method::Programs { per_file: true }, &operation)).unwrap();
    let back: (Method, TaskOperation) = serde_json::from_str(&text).unwrap();
    assert_eq!(back, (Method::Programs { per_file: true }, operation));
}
