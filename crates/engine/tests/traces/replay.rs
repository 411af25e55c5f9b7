//! Calls of a client that replays a loadfile, compared with fixtures derived from the clients of
//! dbench 4.0 with its file backend. Two kinds of calls of dbench are omitted: kill(2) on its
//! parent before each line, and an fstat(2) of the C library on each directory it opens for
//! reading. An openat2(2) that keeps a path below the root is reported as openat(2) with the same
//! flags.

use std::{fs, path::Path};

use model::phase::{Durability, Load, Replay, Until, Work, Workers};
use tempfile::TempDir;

use crate::strace::{Call, expected, threads};

/// Every operation, in all situations that affect its calls.
const LOAD: &str = include_str!("replay.load");

pub(crate) fn tests() {
    let plain = |path: &Path| Replay {
        loadfile: Load::File { path: Some(path.to_str().unwrap().into()) },
        until: Until::Replayed(1),
        resolve: true,
        durability: Durability::default(),
        xattr: false,
        rate: None,
        use_timestamps: false,
        parent_check: false,
        workers: Workers::threads(1),
    };
    let files = TempDir::new().unwrap();
    let load = files.path().join("load");
    fs::write(&load, LOAD).unwrap();
    compare("plain", plain(&load), include_str!("replay.txt"));
    let durability = Durability { files: true, directories: true, writes: true };
    let options = Replay { durability, xattr: true, resolve: false, ..plain(&load) };
    compare("with options", options, include_str!("replay-options.txt"));
}

/// Calls of a client between the opening of its root and the end.
fn compare(what: &str, replay: Replay, fixture: &str) {
    // Not every tmpfs supports extended attributes.
    let directory = TempDir::new_in("/var/tmp").unwrap();
    let threads = threads(&Work::Replay(replay), directory.path());
    let client = threads.last().unwrap();
    // The first stat, which verifies the identity of the root, ends its opening.
    let is_look = |call: &Call| call.name == "stat" && call.path == Path::new("fslab-replay");
    let root = client.iter().position(is_look).unwrap();
    let calls: Vec<String> = client[root + 1..]
        .iter()
        .filter(|call| call.path.starts_with("fslab-replay"))
        .map(|call| {
            let path = call.path.strip_prefix("fslab-replay").unwrap();
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            let details = match call.name.as_str() {
                // Times are current, and the attributes have no content.
                "utimensat" | "setxattr" | "getxattr" | "fsetxattr" | "fgetxattr" => "",
                _ => by_openat(&call.details),
            };
            format!("{} {} {details}", call.name, path.display()).trim_end().to_owned()
        })
        .filter(|call| call != "close .")
        .collect();
    assert_eq!(calls.join("\n"), expected(fixture).join("\n"), "{what}");
}

/// Only the flags of openat2(2) from `{flags=..., resolve=...}`.
fn by_openat(details: &str) -> &str {
    let how = details.strip_prefix("{flags=").and_then(|how| how.split_once(", resolve="));
    how.map_or(details, |(flags, _)| flags)
}
