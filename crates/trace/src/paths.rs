//! Paths of a recorded program: their numbers, and their places relative to the root.

use std::collections::HashMap;

/// Numbers of paths, from 1.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    numbers: HashMap<Vec<u8>, u32>,
    pub(crate) all: Vec<Vec<u8>>,
}

impl Paths {
    /// Number of a path that is not empty.
    pub(crate) fn number(&mut self, path: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        self.all.push(path.to_vec());
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.numbers.insert(path.to_vec(), number);
        number
    }
}

/// Root of a recording.
#[derive(Debug)]
pub(crate) struct Root {
    /// Absolute paths: without symbolic links, and as given.
    names: Vec<Vec<u8>>,
}

impl Root {
    pub(crate) fn new(names: Vec<Vec<u8>>) -> Self {
        // A path below the root begins with its name and a slash, also below `/`.
        let trimmed = |name: Vec<u8>| name.strip_suffix(b"/").map_or(name.clone(), <[u8]>::to_vec);
        Self { names: names.into_iter().map(trimmed).collect() }
    }

    /// Rest of an absolute path below the root; `.` for the root itself. Components `..` are
    /// resolved without regard to symbolic links.
    pub(crate) fn below(&self, path: &[u8]) -> Option<Vec<u8>> {
        let dots = path.split(|byte| *byte == b'/').any(|part| part == b"..");
        let plain = if dots { normal(path) } else { path.to_vec() };
        self.names.iter().find_map(|name| {
            let rest = plain.strip_prefix(name.as_slice())?;
            if !rest.is_empty() && rest[0] != b'/' {
                return None;
            }
            let first = rest.iter().position(|byte| *byte != b'/').unwrap_or(rest.len());
            let rest = &rest[first..];
            Some(if rest.is_empty() { b".".to_vec() } else { rest.to_vec() })
        })
    }
}

/// Absolute path without `.`, `..`, and repeated slashes.
pub(crate) fn normal(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    let mut plain = Vec::with_capacity(path.len());
    for part in parts {
        plain.push(b'/');
        plain.extend(part);
    }
    if plain.is_empty() { b"/".to_vec() } else { plain }
}

/// Path from a directory: the path itself if it is absolute.
pub(crate) fn join(directory: &[u8], path: &[u8]) -> Vec<u8> {
    if path.first() == Some(&b'/') {
        return path.to_vec();
    }
    [directory, b"/", path].concat()
}

/// Descriptor number of a path such as `/proc/self/fd/3`, of the process with this ID.
pub(crate) fn descriptor(path: &[u8], process: i32) -> Option<i32> {
    let text = std::str::from_utf8(path).ok()?;
    let own = format!("/proc/{process}/fd/");
    let prefixes = ["/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/", own.as_str()];
    prefixes.iter().find_map(|prefix| text.strip_prefix(prefix)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_the_root_are_found() {
        let root = Root::new(vec![b"/srv/mail".to_vec(), b"/mail".to_vec()]);
        let below =
            |path: &str| root.below(path.as_bytes()).map(|rest| String::from_utf8(rest).unwrap());
        assert_eq!(below("/srv/mail").as_deref(), Some("."));
        assert_eq!(below("/srv/mail/").as_deref(), Some("."));
        assert_eq!(below("/srv/mail//a/b/").as_deref(), Some("a/b/"));
        assert_eq!(below("/mail/a").as_deref(), Some("a"));
        assert_eq!(below("/srv/x/../mail/a").as_deref(), Some("a"));
        assert_eq!(below("/srv/mail/../x"), None);
        assert_eq!(below("/srv/mailbox"), None);
        let all = Root::new(vec![b"/".to_vec()]);
        assert_eq!(all.below(b"/srv//mail").as_deref(), Some(&b"srv//mail"[..]));
        assert_eq!(all.below(b"/").as_deref(), Some(&b"."[..]));
    }

    #[test]
    fn descriptors_in_proc_are_found() {
        assert_eq!(descriptor(b"/proc/self/fd/7", 1), Some(7));
        assert_eq!(descriptor(b"/proc/12/fd/7", 12), Some(7));
        assert_eq!(descriptor(b"/proc/12/fd/7", 13), None);
        assert_eq!(descriptor(b"/dev/fd/x", 1), None);
    }
}
