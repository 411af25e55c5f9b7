//! What one iteration comes to.
//!
//! The totals are those of the classic load file, as published: per iteration 962 reads, 613 opens
//! (163 of names that are not there, 124 of new ones), 557 looks at names (a third of which are not
//! there), 450 closes, 303 writes, 215 searches (52 % in vain), 124 removals, 102 looks at the
//! filesystem, 97 at files, 50 times set, 43 flushes, 26 renames, two locks, and two unlocks;
//! 11.4 MB read and 7.7 MB written. Of the reads 67 % are of 4096 bytes, 13 % of 61440, 3.7 % of
//! 2048 and of 8192 each, and 1.6 % of 16384; of the writes 32 % are of 65536 bytes, 25 % of 4096,
//! 19 % of one, 4.2 % of 2048, and 2.9 % of 8192. How they are shared out among activities is our
//! own.

use fastrand::Rng;

use super::draw::{mirrored, parts, spread};

/// Letters edited: each comes to two renames.
pub(super) const EDITS: u32 = 13;
/// Prints spooled.
pub(super) const PRINTS: u32 = 12;
/// Scratch files, and the activities that use them.
pub(super) const SCRATCH: usize = 86;
pub(super) const SCRATCH_JOBS: usize = 22;
/// Sessions with all tables.
pub(super) const SESSIONS: usize = 3;
/// Slides and sheets loaded.
pub(super) const LOADS: u32 = 10;
/// Folders browsed.
pub(super) const BROWSES: usize = 18;
/// Files opened in passing, and how many of these are read from.
pub(super) const BRIEF: usize = 266;
pub(super) const BRIEF_READ: usize = 155;

/// Bytes of the reads that load slides and sheets.
pub(super) const CHUNK: u32 = 61_440;
/// Bytes of the writes that fill files.
pub(super) const BLOCK: u32 = 65_536;
/// Bytes of the most frequent reads.
pub(super) const PAGE: u32 = 4096;

/// A look at something on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Glance {
    /// At a name that is there.
    Name,
    /// At one that is not.
    NoName,
    /// For files, of which there are some.
    Search,
    /// For files, in vain.
    NoSearch,
    /// An open of a name that is not there.
    NoOpen,
    /// At the filesystem.
    Space,
}

/// What the activities of an iteration share out among themselves.
#[derive(Debug)]
pub(super) struct Budget {
    /// In the order in which they are taken.
    pub(super) glances: Vec<Glance>,
    /// Blocks of 64 KiB in each letter and each print, and what they have beyond.
    pub(super) letter_blocks: Vec<u32>,
    pub(super) print_blocks: Vec<u32>,
    pub(super) tails: Vec<u32>,
    /// Bytes of the notes that say who edits a letter.
    pub(super) notes: Vec<u32>,
    /// Reads of 61440 bytes of each load.
    pub(super) chunks: Vec<u32>,
    /// Bytes of reads in passing, and how many of them each of the files has.
    pub(super) brief_reads: Vec<u32>,
    pub(super) brief_runs: Vec<u32>,
    /// Bytes of the writes of each scratch file; most have one, some have none.
    pub(super) scratch: Vec<Vec<u32>>,
}

impl Budget {
    pub(super) fn new(iteration: u64, random: &mut Rng) -> Self {
        let brief_reads = brief_reads(iteration, random);
        let runs = u32::try_from(BRIEF_READ).expect("a small number");
        let all = u32::try_from(brief_reads.len()).expect("a small number");
        Self {
            glances: glances(random),
            letter_blocks: parts(EDITS, 3, 5, 52, random),
            print_blocks: parts(PRINTS, 3, 5, 45, random),
            tails: mirrored((EDITS + PRINTS) as usize, 8_000, 64_500, random),
            notes: mirrored(EDITS as usize, 100, 200, random),
            chunks: parts(LOADS, 11, 14, 125, random),
            brief_runs: parts(runs, 1, 9, all, random),
            brief_reads,
            scratch: scratch(iteration, random),
        }
    }
}

/// All looks, without the 13 opens in vain that editing letters comes to.
fn glances(random: &mut Rng) -> Vec<Glance> {
    let counts = [
        (Glance::Name, 371),
        (Glance::NoName, 186),
        (Glance::Search, 103),
        (Glance::NoSearch, 112),
        (Glance::NoOpen, 150),
        (Glance::Space, 102),
    ];
    let mut glances: Vec<_> =
        counts.into_iter().flat_map(|(glance, count)| vec![glance; count]).collect();
    random.shuffle(&mut glances);
    glances
}

/// Bytes of the 417 reads in passing: 645 of 4096 bytes come to the 67 % together with those of
/// letters and tables, and so on.
fn brief_reads(iteration: u64, random: &mut Rng) -> Vec<u32> {
    let middle = spread(15_400, iteration);
    let mut reads =
        [vec![PAGE; 249], vec![2048; 24], vec![8192; 24], vec![16_384; middle]].concat();
    // Odd sizes: tiny ones, and so many larger ones that all reads come to 11.4 MB.
    reads.extend(mirrored(30, 1_000, 28_200, random));
    reads.extend(mirrored(417 - reads.len(), 9, 501, random));
    random.shuffle(&mut reads);
    reads
}

/// Bytes of the 80 writes to scratch files, not counting those of one byte, by file.
fn scratch(iteration: u64, random: &mut Rng) -> Vec<Vec<u32>> {
    let (small, large) = (spread(9_700, iteration), spread(5_800, iteration));
    let mut writes = [vec![PAGE; 52], vec![2048; small], vec![8192; large]].concat();
    writes.extend(mirrored(80 - writes.len(), 3, 4_001, random));
    random.shuffle(&mut writes);
    let mut files = vec![Vec::new(); SCRATCH];
    for (index, write) in writes.into_iter().enumerate() {
        // Each of the first sixty has one, the others go to any of these.
        let file = if index < WRITTEN { index } else { random.usize(..WRITTEN) };
        files[file].push(write);
    }
    files
}

/// Scratch files that are written to; those before [`EXTENDED`] get their length first, and those
/// before [`FLUSHED`] are flushed.
const WRITTEN: usize = 60;
pub(super) const EXTENDED: usize = 33;
pub(super) const FLUSHED: usize = 18;
