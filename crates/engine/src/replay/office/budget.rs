//! Operations and bytes of one iteration.
//!
//! The totals are the published totals of dbench's loadfile. The distribution of the operations
//! over activities is original. Per iteration:
//!
//! - on files: 962 reads, 613 opens (163 of missing names, 124 of new ones), 450 closes, 303
//!   writes, 124 removals, 97 queries of files, 50 changes of file times, 43 flushes, 26 renames,
//!   two locks, and two unlocks;
//! - on names and directories: 557 lookups (a third of them of missing names), 215 searches (52 %
//!   without a result), and 102 queries of the filesystem;
//! - sizes of reads: 67 % have 4096 bytes, 13 % 61440, 3.7 % 2048, 3.7 % 8192, and 1.6 % 16384; in
//!   total 11.4 MB;
//! - sizes of writes: 32 % have 65536 bytes, 25 % 4096, 19 % one, 4.2 % 2048, and 2.9 % 8192; in
//!   total 7.7 MB.

use fastrand::Rng;

use super::draw::{mirrored, parts, spread};

/// Documents edited, with two renames each.
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
/// Directories browsed.
pub(super) const BROWSES: usize = 18;
/// Files opened briefly, and the number of these that are read.
pub(super) const BRIEF: usize = 266;
pub(super) const BRIEF_READ: usize = 155;

/// Bytes of the reads of slides and sheets.
pub(super) const CHUNK: u32 = 61_440;
/// Bytes of the writes that fill files.
pub(super) const BLOCK: u32 = 65_536;
/// Bytes of the most frequent reads.
pub(super) const PAGE: u32 = 4096;

/// Lookup or query between other operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LookupKind {
    /// Existing name.
    Name,
    /// Missing name.
    NoName,
    /// Search that finds files.
    Search,
    /// Search that finds nothing.
    NoSearch,
    /// Open of a missing name.
    NoOpen,
    /// Query of the filesystem.
    Space,
}

/// Operations and bytes that the activities of an iteration divide.
#[derive(Debug)]
pub(super) struct Budget {
    /// Lookups in the order in which they are used.
    pub(super) lookups: Vec<LookupKind>,
    /// Blocks of 64 KiB of each document and each print, and their remaining bytes.
    pub(super) document_blocks: Vec<u32>,
    pub(super) print_blocks: Vec<u32>,
    pub(super) tails: Vec<u32>,
    /// Bytes of the lock notes of documents.
    pub(super) notes: Vec<u32>,
    /// Number of 61440-byte reads of each load.
    pub(super) chunks: Vec<u32>,
    /// Bytes of brief reads, and the number of them per file.
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
            lookups: lookups(random),
            document_blocks: parts(EDITS, 3, 5, 52, random),
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

/// All lookups, except the 13 opens of missing names by document edits.
fn lookups(random: &mut Rng) -> Vec<LookupKind> {
    let counts = [
        (LookupKind::Name, 371),
        (LookupKind::NoName, 186),
        (LookupKind::Search, 103),
        (LookupKind::NoSearch, 112),
        (LookupKind::NoOpen, 150),
        (LookupKind::Space, 102),
    ];
    let mut lookups: Vec<_> =
        counts.into_iter().flat_map(|(lookup, count)| vec![lookup; count]).collect();
    random.shuffle(&mut lookups);
    lookups
}

/// Bytes of the 417 brief reads. Together with the reads of documents and tables, they yield the
/// published fractions, such as 67 % (645 reads) of 4096 bytes.
fn brief_reads(iteration: u64, random: &mut Rng) -> Vec<u32> {
    let middle = spread(15_400, iteration);
    let mut reads =
        [vec![PAGE; 249], vec![2048; 24], vec![8192; 24], vec![16_384; middle]].concat();
    // Odd sizes: small ones, and as many larger ones as give 11.4 MB in total.
    reads.extend(mirrored(30, 1_000, 28_200, random));
    reads.extend(mirrored(417 - reads.len(), 9, 501, random));
    random.shuffle(&mut reads);
    reads
}

/// Bytes of the 80 writes to scratch files by file, without those of one byte.
fn scratch(iteration: u64, random: &mut Rng) -> Vec<Vec<u32>> {
    let (small, large) = (spread(9_700, iteration), spread(5_800, iteration));
    let mut writes = [vec![PAGE; 52], vec![2048; small], vec![8192; large]].concat();
    writes.extend(mirrored(80 - writes.len(), 3, 4_001, random));
    random.shuffle(&mut writes);
    let mut files = vec![Vec::new(); SCRATCH];
    for (index, write) in writes.into_iter().enumerate() {
        // Each of the first 60 files gets one write. Further writes are distributed over these
        // files.
        let file = if index < WRITTEN { index } else { random.usize(..WRITTEN) };
        files[file].push(write);
    }
    files
}

/// Scratch files that are written; those before [`EXTENDED`] are extended first, and those before
/// [`FLUSHED`] are flushed.
const WRITTEN: usize = 60;
pub(super) const EXTENDED: usize = 33;
pub(super) const FLUSHED: usize = 18;
