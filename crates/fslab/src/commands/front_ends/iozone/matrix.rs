//! File sizes and block sizes of a command line of IOzone, in KiB.

use crate::{
    commands::front_ends::options::{Given, wrong},
    exit::Failure,
};

/// Sizes in KiB without options: single sizes, and the limits of an automatic sweep.
const FILE: u64 = 512;
const BLOCK: u64 = 4;
const FILES: [u64; 2] = [64, 512 << 10];
const BLOCKS: [u64; 2] = [4, 16 << 10];

/// In a sweep without options of sizes, files above this size are not combined with blocks below
/// [`CROSS_OVER_BLOCK`].
const CROSS_OVER_FILE: u64 = 16 << 10;
const CROSS_OVER_BLOCK: u64 = 64;

/// Largest file in KiB, and largest block.
const LARGEST: u64 = 1 << 40;

/// Sizes to combine.
#[derive(Debug)]
pub(super) struct Matrix {
    files: Vec<u64>,
    blocks: Vec<u64>,
    cross_over: bool,
}

impl Matrix {
    pub(super) fn new(given: &Given) -> Result<Self, Failure> {
        let (files, blocks) = (sizes(given, "-s")?, sizes(given, "-r")?);
        let auto = given.has("-a") || given.has("-A") || files.len() > 1 || blocks.len() > 1;
        let limit = |name: &str, default: u64| match given.last(name) {
            Some(_) if !auto => Err(wrong(format!("{name} requires a sweep; add -a"))),
            Some(text) => kib(name, text),
            None => Ok(default),
        };
        let [least, most] = [limit("-n", FILES[0])?, limit("-g", FILES[1])?];
        let [least_block, most_block] = [limit("-y", BLOCKS[0])?, limit("-q", BLOCKS[1])?];
        if given.has("-z") && !auto {
            return Err(wrong("-z requires a sweep; add -a".into()));
        }
        let any = |names: &[&str]| names.iter().any(|name| given.has(name));
        let matrix = Self {
            cross_over: auto && !any(&["-r", "-s", "-y", "-q", "-z", "-A"]),
            files: match (files.is_empty(), auto) {
                (false, _) => files,
                (true, true) => powers("-n", least, "-g", most)?,
                (true, false) => vec![FILE],
            },
            blocks: match (blocks.is_empty(), auto) {
                (false, _) => blocks,
                (true, true) => powers("-y", least_block, "-q", most_block)?,
                (true, false) => vec![BLOCK],
            },
        };
        let fits = matrix.points().next().is_some();
        match fits {
            true => Ok(matrix),
            false => Err(wrong(format!(
                "a record of {} kB does not fit into a file of {} kB; use a larger -s or a smaller -r",
                matrix.blocks.first().unwrap_or(&BLOCK),
                matrix.files.last().unwrap_or(&FILE)
            ))),
        }
    }

    /// Combinations of file size and block size, in the order of IOzone.
    pub(super) fn points(&self) -> impl Iterator<Item = (u64, u64)> {
        self.files.iter().flat_map(move |file| {
            let least = match self.cross_over && *file > CROSS_OVER_FILE {
                true => CROSS_OVER_BLOCK,
                false => 0,
            };
            let fits = move |block: &&u64| **block <= *file && **block >= least;
            self.blocks.iter().filter(fits).map(move |block| (*file, *block))
        })
    }
}

/// Sizes of a repeatable option. IOzone leaves out sizes that are not ascending.
fn sizes(given: &Given, name: &str) -> Result<Vec<u64>, Failure> {
    let sizes = given.all(name).map(|text| kib(name, text)).collect::<Result<Vec<_>, _>>()?;
    match sizes.windows(2).find(|pair| pair[0] >= pair[1]) {
        None => Ok(sizes),
        Some(pair) => Err(wrong(format!(
            "{name} {} after {name} {}: sizes must be ascending, because IOzone leaves out the \
             others; sort them",
            pair[1], pair[0]
        ))),
    }
}

/// Powers of two between two limits.
fn powers(from: &str, least: u64, to: &str, most: u64) -> Result<Vec<u64>, Failure> {
    if least > most {
        return Err(wrong(format!("{from} {least} is greater than {to} {most}; swap them")));
    }
    let double = |size: &u64| size.checked_mul(2);
    Ok(std::iter::successors(Some(least), double).take_while(|size| *size <= most).collect())
}

/// Size in KiB: a number, or a number with `k`, `m`, or `g`.
pub(super) fn kib(name: &str, text: &str) -> Result<u64, Failure> {
    let lower = text.to_ascii_lowercase();
    let units = [("k", 1), ("m", 1 << 10), ("g", 1 << 20)];
    let (digits, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((lower.strip_suffix(*unit)?, *factor)))
        .unwrap_or((&lower, 1));
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    number.filter(|number| (1..=LARGEST).contains(number)).ok_or_else(|| {
        wrong(format!("{name} {text}: use a size in kB, or a number with `k`, `m`, or `g`"))
    })
}
