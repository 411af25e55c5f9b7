//! Arguments of a logged call as numbers, with the memory that they point to.

use std::collections::HashMap;

use super::words::{flags, number, unescape};
use crate::record::{memory::Memory, messages::Object, sockets::Addresses};

/// Distance of two objects in memory.
const OBJECT: u64 = 1 << 20;

/// Arguments, and memory of the program as far as they show it.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) values: [u64; 6],
    /// Texts and structures; the address of an object is its place, from 1, times [`OBJECT`].
    objects: Vec<Vec<u8>>,
    /// Paths of descriptors.
    links: HashMap<i32, Vec<u8>>,
    /// Pipes of descriptors.
    pipes: HashMap<i32, u64>,
    /// Working directory after the call.
    pub(super) directory: Option<Vec<u8>>,
    /// Kind and size of a file that the call returned.
    pub(super) status: Option<Status>,
}

/// Part of a file status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status {
    /// Type and permission bits.
    pub(super) mode: u64,
    /// Size in bytes.
    pub(super) size: u64,
}

impl Arguments {
    pub(super) fn new(texts: &[&str]) -> Self {
        let mut own = Self::default();
        for (at, text) in texts.iter().take(6).enumerate() {
            own.values[at] = own.value(text);
        }
        own
    }

    /// Bytes of the text that an argument points to.
    pub(super) fn text(&self, argument: usize) -> Option<&[u8]> {
        self.object(self.values[argument]).map(|(object, _)| object)
    }

    /// Path of the directory in an argument.
    pub(super) fn link_of(&self, argument: usize) -> Option<&Vec<u8>> {
        self.links.get(&descriptor(self.values[argument]))
    }

    fn object(&self, address: u64) -> Option<(&[u8], usize)> {
        let place = usize::try_from(address / OBJECT).ok()?.checked_sub(1)?;
        let offset = usize::try_from(address % OBJECT).ok()?;
        Some((self.objects.get(place)?, offset))
    }

    fn value(&mut self, text: &str) -> u64 {
        let text = text.trim();
        match text.as_bytes().first() {
            Some(b'"') => {
                let end = text.rfind('"').unwrap_or(0);
                self.add(unescape(text.get(1..end).unwrap_or_default()))
            }
            Some(b'{' | b'[') => self.structure(text),
            _ => self.plain(text),
        }
    }

    fn add(&mut self, object: Vec<u8>) -> u64 {
        self.objects.push(object);
        self.objects.len() as u64 * OBJECT
    }

    /// Number, flags, or a descriptor with its path.
    fn plain(&mut self, text: &str) -> u64 {
        if text == "NULL" {
            return 0;
        }
        if let Some((before, path)) = text.split_once('<') {
            let value = flags(before);
            let path = path.split('>').next().unwrap_or_default();
            if path.starts_with('/') {
                self.links.insert(descriptor(value), unescape(path));
            }
            let pipe = path.strip_prefix("pipe:[").and_then(|rest| rest.strip_suffix(']'));
            if let Some(inode) = pipe.and_then(|inode| inode.parse().ok()) {
                self.pipes.insert(descriptor(value), inode);
            }
            return value;
        }
        // Arguments of clone(2) have names.
        let named = text
            .split_once('=')
            .filter(|(name, _)| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
        flags(named.map_or(text, |(_, value)| value))
    }

    fn structure(&mut self, text: &str) -> u64 {
        let mut bytes = Vec::new();
        let word = |name: &str| field(text, name).map_or(0, flags);
        if text.contains("l_type=") {
            // struct flock: type and reference point of 2 bytes, start, length.
            let head = word("l_type") & 0xffff | (word("l_whence") & 0xffff) << 16;
            bytes.extend([head, word("l_start"), word("l_len"), 0].map(u64::to_ne_bytes).concat());
        } else if let Some(mode) = field(text, "st_mode").or(field(text, "stx_mode")) {
            let size = field(text, "st_size").or(field(text, "stx_size"));
            let size = size.and_then(number).unwrap_or(0);
            self.status = Some(Status { mode: flags(mode), size });
        } else if text.contains("iov_len=") {
            for part in text.split("iov_len=").skip(1) {
                let length = part.split([',', '}']).next().and_then(|it| number(it.trim()));
                bytes.extend([0, length.unwrap_or(0)].map(u64::to_ne_bytes).concat());
            }
        } else if text.contains("tv_nsec=") || text.contains("UTIME_") {
            bytes = times(text);
        } else if text.contains("flags=") {
            // struct open_how, and the begin of struct clone_args.
            let how = [word("flags"), word("mode"), word("resolve")];
            bytes.extend(how.map(u64::to_ne_bytes).concat());
        } else if text.contains("src_fd=") {
            // struct file_clone_range.
            // With -y, the descriptor has a path.
            let source = field(text, "src_fd").and_then(|text| text.split('<').next());
            let range = ["src_offset", "src_length", "dest_offset"].map(word);
            bytes.extend(source.map_or(0, flags).to_ne_bytes());
            bytes.extend(range.map(u64::to_ne_bytes).concat());
        } else if let Some(offset) = first(text).and_then(number) {
            bytes.extend(offset.to_ne_bytes());
        }
        self.add(bytes)
    }
}

/// Number in brackets before a call; strace adds the one after it: `[0] => [500]`, `[0 => 500]`.
fn first(text: &str) -> Option<&str> {
    text.split("=>").next().map(|before| before.trim().trim_matches(['[', ']']))
}

/// Descriptor of an argument.
fn descriptor(value: u64) -> i32 {
    i32::from_ne_bytes(u32::try_from(value & 0xffff_ffff).unwrap_or(0).to_ne_bytes())
}

/// Text of a field of a structure.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find(name)?;
        let before = text[..at].chars().next_back();
        let rest = text[at + name.len()..].strip_prefix('=');
        match (before, rest) {
            (None | Some('{' | '[' | ' ' | ','), Some(rest)) => {
                return rest.split([',', '}']).next().map(str::trim);
            }
            _ => from = at + name.len(),
        }
    }
}

/// The two times of utimensat(2), seconds and nanoseconds of each.
fn times(text: &str) -> Vec<u8> {
    let mut words = Vec::new();
    let mut rest = text;
    while words.len() < 4 {
        let next = ["UTIME_NOW", "UTIME_OMIT", "tv_sec="]
            .into_iter()
            .filter_map(|word| Some((rest.find(word)?, word)))
            .min();
        let Some((at, word)) = next else { break };
        match word {
            "tv_sec=" => {
                let part = &rest[at..];
                let value = |name| field(part, name).map_or(0, flags);
                words.extend([value("tv_sec"), value("tv_nsec")]);
            }
            word => words.extend([0, flags(word)]),
        }
        rest = &rest[at + word.len()..];
    }
    words.resize(4, 0);
    words.into_iter().flat_map(u64::to_ne_bytes).collect()
}

impl Memory for Arguments {
    fn read(&self, address: u64, to: &mut [u8]) -> usize {
        let Some((object, offset)) = self.object(address) else { return 0 };
        let bytes = object.get(offset..).unwrap_or_default();
        let count = bytes.len().min(to.len());
        to[..count].copy_from_slice(&bytes[..count]);
        count
    }

    fn string(&self, address: u64) -> Option<Vec<u8>> {
        self.object(address).map(|(object, offset)| object[offset.min(object.len())..].to_vec())
    }

    fn link(&self, descriptor: i32) -> Option<Vec<u8>> {
        self.links.get(&descriptor).cloned()
    }

    fn directory(&self) -> Option<Vec<u8>> {
        self.directory.clone()
    }

    fn channel(&self, descriptor: i32) -> Option<Object> {
        self.pipes.get(&descriptor).map(|inode| Object::Pipe(0, *inode))
    }

    fn addresses(&self, _: i32) -> Option<Addresses> {
        None
    }

    fn permissions(&self, _: i32) -> Option<u32> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_numbers_with_the_memory_they_point_to() {
        let own = Arguments::new(&[
            "AT_FDCWD</srv/a\\40b>",
            "\"n\\n\"...",
            "O_RDONLY|O_CLOEXEC",
            "{l_type=F_WRLCK, l_whence=SEEK_CUR, l_start=5, l_len=7}",
            "[{iov_base=\"ab\", iov_len=2}, {iov_base=\"\", iov_len=70000}]",
            "5<pipe:[70]>",
        ]);
        assert_eq!(own.link(-100).unwrap(), b"/srv/a b");
        assert_eq!(own.link_of(0), Some(&b"/srv/a b".to_vec()));
        assert_eq!(own.string(own.values[1]).unwrap(), b"n\n");
        assert_eq!((own.values[2], own.values[5]), (0o2_000_000, 5));
        assert_eq!((own.channel(5), own.channel(6)), (Some(Object::Pipe(0, 70)), None));
        assert_eq!(Arguments::new(&["child_tidptr=0x10"]).values[0], 16);
        let mut lock = [0; 32];
        assert_eq!(own.read(own.values[3], &mut lock), 32);
        let word = |at: usize| u64::from_ne_bytes(lock[at..at + 8].try_into().unwrap());
        assert_eq!((word(0), word(8), word(16)), (0x1_0001, 5, 7));
        let mut vector = [0; 64];
        assert_eq!(own.read(own.values[4], &mut vector), 32);
        assert_eq!(u64::from_ne_bytes(vector[24..32].try_into().unwrap()), 70_000);
        assert_eq!((own.read(0, &mut vector), own.string(5)), (0, None));
    }

    #[test]
    fn structures_of_times_and_statuses_are_read() {
        let words = |text| {
            let own = Arguments::new(&[text]);
            let mut bytes = [0; 32];
            own.read(own.values[0], &mut bytes);
            let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
            [word(0), word(8), word(16), word(24)]
        };
        let two = "[{tv_sec=5, tv_nsec=6} /* 1970 */, {tv_sec=7, tv_nsec=0}]";
        assert_eq!(words(two), [5, 6, 7, 0]);
        assert_eq!(words("[UTIME_OMIT, {tv_sec=7, tv_nsec=8}]"), [0, 0x3fff_fffe, 7, 8]);
        assert_eq!(words("{flags=O_RDWR|O_CREAT, mode=0600, resolve=0}"), [0o102, 0o600, 0, 0]);
        assert_eq!(words("[4096]"), [4096, 0, 0, 0]);
        let status = |text| Arguments::new(&[text]).status;
        let file = Some(Status { mode: 0o100_644, size: 55 });
        assert_eq!(status("{st_mode=S_IFREG|0644, st_size=55, ...}"), file);
        assert_eq!(status("{stx_mask=STATX_ALL, stx_mode=S_IFREG|0644, stx_size=55}"), file);
        assert_eq!(status("0x7ffc"), None);
    }
}
