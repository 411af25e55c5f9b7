//! Sizes of the options `-s`, `-r`, `-f`, and `-n` of bonnie++.

use std::fs;

use model::Bytes;

use super::count;
use crate::{
    commands::front_ends::options::{Given, wrong},
    exit::Failure,
};

/// Default size of the large file in MiB, at least.
const LEAST: u64 = 300;

/// Memory of the machine in MiB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory(pub(super) u64);

impl Memory {
    /// Memory of this machine; 0 if it is unknown.
    pub(super) fn of_machine() -> Self {
        let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
        let kib: Option<u64> = total.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        Self(kib.unwrap_or(0) / 1024)
    }
}

/// Tests on the large file.
#[derive(Debug)]
pub(super) struct FilePart {
    size: Bytes,
    block: Bytes,
    seeks: u64,
    seekers: u64,
    /// Bytes of the tests by character; `None` leaves them out.
    by_character: Option<Bytes>,
    direct: bool,
}

impl FilePart {
    /// Large file of a command line; `None` for `-s 0`. `files` is the number by which the memory
    /// check multiplies the size.
    pub(super) fn new(given: &Given, memory: Memory, files: u64) -> Result<Option<Self>, Failure> {
        let memory = match given.last("-r") {
            Some(text) => mib("-r", text)?,
            None => memory.0,
        };
        let parts: Vec<&str> =
            given.last("-s").map_or(Vec::new(), |text| text.split(':').collect());
        if parts.len() > 4 {
            let text = parts.join(":");
            return Err(wrong(format!("-s {text}: use SIZE[:CHUNK[:SEEKS[:SEEKERS]]]")));
        }
        let part = |at: usize| parts.get(at).copied().filter(|text| !text.is_empty());
        let size = match part(0) {
            Some(text) => mib("-s", text)?,
            None => whole_gib(LEAST.max(2 * memory)),
        };
        if size == 0 {
            return Ok(None);
        }
        if size.saturating_mul(files) < 2 * memory {
            return Err(wrong(format!(
                "-s: {size} MiB is less than twice the memory ({memory} MiB), so reads would be \
                 cached; use -s {} or -r 0",
                2 * memory
            )));
        }
        let block = part(1).map_or(Ok(Bytes::kib(8)), |text| bytes("-s", text))?;
        if !block.0.is_power_of_two() || !(256..=1 << 20).contains(&block.0) {
            return Err(wrong(format!(
                "-s: the chunk has {block}; use a power of two from 256 bytes to 1 MiB"
            )));
        }
        let by_character = match given.last("-f") {
            None => Some(Bytes::mib(3)),
            Some("") => None,
            Some(text) => Some(Bytes::mib(mib("-f", text)?)),
        };
        let direct = given.has("-D");
        if direct && by_character.is_some() {
            return Err(wrong(
                "-D requires -f without a size: single bytes cannot be written with O_DIRECT"
                    .into(),
            ));
        }
        Ok(Some(Self {
            size: Bytes::mib(size),
            block,
            seeks: part(2).map_or(Ok(8192), |text| thousands("-s", text))?,
            seekers: part(3).map_or(Ok(5), |text| count("-s", text, 1, 1024))?,
            by_character,
            direct,
        }))
    }

    pub(super) fn tests(&self) -> impl Iterator<Item = &'static str> {
        let all = ["putc", "put-block", "rewrite", "getc", "get-block", "seeks"];
        let bytewise = self.by_character.is_some();
        all.into_iter().filter(move |test| bytewise || !matches!(*test, "putc" | "getc"))
    }

    pub(super) fn keys(&self) -> Vec<String> {
        let mut keys = vec![
            format!("file_size = \"{}\"", self.size),
            format!("block_size = \"{}\"", self.block),
            format!("seeks = {}", self.seeks),
            format!("seekers = {}", self.seekers),
        ];
        keys.extend(self.by_character.map(|size| format!("char_io_size = \"{size}\"")));
        keys.extend(self.direct.then(|| "direct_create = true".to_owned()));
        keys
    }
}

/// Tests on small files.
#[derive(Debug)]
pub(super) struct SmallFiles {
    files: u64,
    links: Option<&'static str>,
    largest: Bytes,
    smallest: Bytes,
    directories: u64,
    block: Bytes,
}

impl SmallFiles {
    pub(super) const TESTS: [&'static str; 6] =
        ["seq-create", "seq-stat", "seq-delete", "ran-create", "ran-stat", "ran-delete"];

    /// Small files of a command line; `None` for `-n 0`.
    pub(super) fn new(given: &Given) -> Result<Option<Self>, Failure> {
        let text = given.last("-n").unwrap_or("16");
        let parts: Vec<&str> = text.split(':').collect();
        if parts.len() > 5 {
            return Err(wrong(format!("-n {text}: use NUM[:MAX[:MIN[:DIRS[:CHUNK]]]]")));
        }
        let part = |at: usize| parts.get(at).copied().filter(|text| !text.is_empty());
        let files = match part(0).map(|own| (own, own.strip_suffix('m'))) {
            Some((_, Some(millions))) => 1024 * count("-n", millions, 0, 4096)?,
            Some((own, None)) => count("-n", own, 0, 1 << 22)?,
            None => 16,
        };
        if files == 0 {
            return Ok(None);
        }
        let links = match part(1) {
            Some("-1") => Some("hard"),
            Some("-2") => Some("symbolic"),
            Some(_) | None => None,
        };
        let sized = |at: usize| match part(at) {
            Some(text) if links.is_none() => bytes("-n", text),
            Some(_) | None => Ok(Bytes(0)),
        };
        let (largest, smallest) = (sized(1)?, sized(2)?);
        if smallest > largest {
            return Err(wrong(format!(
                "-n {text}: the minimum size {smallest} is greater than the maximum {largest}; use \
                 NUM:MAX:MIN"
            )));
        }
        Ok(Some(Self {
            files: files * 1024,
            links,
            largest,
            smallest,
            directories: part(3).map_or(Ok(1), |own| count("-n", own, 0, 99_999))?.max(1),
            block: part(4).map_or(Ok(Bytes::kib(8)), |own| bytes("-n", own))?,
        }))
    }

    pub(super) fn keys(&self) -> Vec<String> {
        let mut keys = vec![format!("files = {}", self.files)];
        keys.extend(self.links.map(|kind| format!("links = \"{kind}\"")));
        if self.largest > Bytes(0) {
            keys.push(format!("small_file_size_max = \"{}\"", self.largest));
            keys.push(format!("small_file_size_min = \"{}\"", self.smallest));
            keys.push(format!("small_file_block_size = \"{}\"", self.block));
        }
        if self.directories > 1 {
            keys.push(format!("directories = {}", self.directories));
        }
        keys
    }
}

/// Default size in MiB. bonnie++ rounds it up to GiB if that adds less than half a GiB.
fn whole_gib(mib: u64) -> u64 {
    if mib % 1024 > 512 { mib.next_multiple_of(1024) } else { mib }
}

/// Number with a suffix. The suffix and its factor are in `units`.
fn scaled(option: &str, text: &str, units: &[(char, u64)]) -> Result<u64, Failure> {
    let lower = text.to_ascii_lowercase();
    let (digits, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((lower.strip_suffix(*unit)?, *factor)))
        .unwrap_or((&lower, 1));
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    let number = number.filter(|number| *number < 1 << 50);
    let names: Vec<String> = units.iter().map(|(unit, _)| format!("`{unit}`")).collect();
    number.ok_or_else(|| {
        wrong(format!("{option} {text}: use a number, or a number with {}", names.join(" or ")))
    })
}

fn mib(option: &str, text: &str) -> Result<u64, Failure> {
    let number = scaled(option, text, &[('m', 1), ('g', 1 << 10), ('t', 1 << 20)])?;
    match number < 1 << 30 {
        true => Ok(number),
        false => Err(wrong(format!("{option} {text}: use less than 1024 TiB"))),
    }
}

fn bytes(option: &str, text: &str) -> Result<Bytes, Failure> {
    scaled(option, text, &[('k', 1 << 10), ('m', 1 << 20), ('g', 1 << 30)]).map(Bytes)
}

fn thousands(option: &str, text: &str) -> Result<u64, Failure> {
    match scaled(option, text, &[('k', 1 << 10)])? {
        0 => Err(wrong(format!("{option} {text}: use at least 1 seek"))),
        number => Ok(number),
    }
}
