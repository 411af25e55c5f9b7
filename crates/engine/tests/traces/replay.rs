//! The calls of a client that replays a load file, compared with fixtures written from what the
//! classic tool's clients do (version 4.0, its file backend). It makes two kinds of calls more that
//! are left out there: kill(2) on its parent before each line, and an fstat(2) that the C library
//! makes on each directory it opens to read. What ours opens by openat2(2) to be held below its
//! root is told as the openat(2) with the same flags.

use std::{fs, path::Path};

use model::phase::{Durability, Load, Replay, Until, Work, Workers};
use tempfile::TempDir;

use crate::strace::{Call, expected, threads};

/// Every operation, in the situations that make a difference to its calls.
const LOAD: &str = include_str!("replay.load");

pub(crate) fn tests() {
    let plain = |path: &Path| Replay {
        load: Load::File { path: Some(path.to_str().unwrap().into()) },
        until: Until::Replayed(1),
        resolve: true,
        durability: Durability::default(),
        attributes: false,
        rate: None,
        paced: false,
        line_call: false,
        workers: Workers::threads(1),
    };
    let files = TempDir::new().unwrap();
    let load = files.path().join("load");
    fs::write(&load, LOAD).unwrap();
    compare("plain", plain(&load), include_str!("replay.txt"));
    let durability = Durability { files: true, directories: true, writes: true };
    let options = Replay { durability, attributes: true, resolve: false, ..plain(&load) };
    compare("with options", options, include_str!("replay-options.txt"));
}

/// What a client does between the opening of its root and the end.
fn compare(what: &str, replay: Replay, fixture: &str) {
    // Extended attributes are not on every tmpfs.
    let directory = TempDir::new_in("/var/tmp").unwrap();
    let threads = threads(&Work::Replay(replay), directory.path());
    let client = threads.last().unwrap();
    // The first look at it, whether it is the one that was made, ends its opening.
    let is_look = |call: &Call| call.name == "stat" && call.path == Path::new("fslab-replay");
    let root = client.iter().position(is_look).unwrap();
    let calls: Vec<String> = client[root + 1..]
        .iter()
        .filter(|call| call.path.starts_with("fslab-replay"))
        .map(|call| {
            let path = call.path.strip_prefix("fslab-replay").unwrap();
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            let details = match call.name.as_str() {
                // The times are of this minute, and the attributes hold nothing.
                "utimensat" | "setxattr" | "getxattr" | "fsetxattr" | "fgetxattr" => "",
                _ => by_openat(&call.details),
            };
            format!("{} {} {details}", call.name, path.display()).trim_end().to_owned()
        })
        .filter(|call| call != "close .")
        .collect();
    assert_eq!(calls.join("\n"), expected(fixture).join("\n"), "{what}");
}

/// The flags alone where openat2(2) has them in its `{flags=..., resolve=...}`.
fn by_openat(details: &str) -> &str {
    let how = details.strip_prefix("{flags=").and_then(|how| how.split_once(", resolve="));
    how.map_or(details, |(flags, _)| flags)
}
