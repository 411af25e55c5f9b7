//! Verification of written blocks by their headers.

use model::phase::{
    AccessPattern, Bound, Direction, EndSync, FileCreation, FileHandling, Open, Pace, PassStart,
    Stream, VerifyBacklog, WorkLimit,
};

use super::{
    job::{Job, Section},
    mistakes::Mistake,
    phases::stream,
    values::{Base, word},
};

/// Checksums of fio. Blocks are checked by the header of fslab.
const METHODS: [&str; 19] = [
    "md5",
    "crc64",
    "crc32c",
    "crc32c-intel",
    "crc32",
    "crc16",
    "crc7",
    "xxhash",
    "sha512",
    "sha256",
    "sha1",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "meta",
    "murmur3",
    "0",
    "none",
];

/// Smallest block with a header.
const SHORTEST: u64 = 64;

pub(super) fn read_verify(text: &str, _: Base) -> Result<String, String> {
    match text.trim() {
        "0" | "none" => Ok("none".into()),
        "pattern" | "pattern_hdr" | "null" => {
            Err("patterns are not verified; use a checksum such as verify=crc32c".into())
        }
        text => word(text, &METHODS.map(|name| (name, name))),
    }
}

/// Hash of a text (FNV-1a).
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    text.bytes().fold(0xCBF2_9CE4_8422_2325, step)
}

impl Section {
    /// True if blocks are verified, or written so that another section can verify them.
    pub(super) fn verifies(&self) -> bool {
        self.text("verify") != "none"
    }

    /// True if the section only verifies blocks of an earlier job.
    pub(super) fn only_verifies(&self) -> bool {
        self.verifies() && self.flag("verify_only")
    }

    /// Seed of the headers of blocks that are verified. It depends on the names of the files only,
    /// so that a later job can verify them.
    pub(super) fn header_seed(&self) -> Option<u64> {
        self.verifies().then(|| hash(&self.names().last_components()))
    }

    /// Size of the blocks that have a header each.
    fn header_unit(&self) -> u64 {
        let (block, _) = self.block_sizes();
        if block.is_multiple_of(4096) { 4096 } else { block }
    }

    /// Reads that verify the blocks that the section has written.
    pub(super) fn verification(&self, seed: u64) -> Option<Stream> {
        let wanted = self.verifies() && self.writes() && self.flag("do_verify");
        if !wanted || !self.touches() {
            return None;
        }
        let written = stream(self, seed);
        let (block, sizes) = self.block_sizes();
        let pass = self.pass() / block;
        let mut reads = self.as_reads(&written);
        let overwrite = self.flag("overwrite") && self.is_timed();
        if let (Some(backlog), false) = (written.verify_backlog, overwrite) {
            let handling = written.file_handling.unwrap_or_default();
            let pass_start = handling.pass_start;
            reads.rest_of = Some(backlog);
            reads.file_handling = reads.file_handling.map(|own| FileHandling { pass_start, ..own });
            if let Bound::Amount(limit) = written.bound {
                reads.bound = Bound::Amount(WorkLimit { time: None, ..limit });
            }
            return Some(reads);
        }
        reads.bound = match written.bound {
            // The file was written completely before the section.
            _ if self.flag("overwrite") => {
                reads.access_pattern = AccessPattern::Sequential;
                reads.zones = Vec::new();
                Bound::Once
            }
            Bound::Amount(WorkLimit { ops, .. }) if sizes.is_empty() && ops >= pass => Bound::Once,
            Bound::Amount(limit) => Bound::Amount(WorkLimit { time: None, ..limit }),
            bound @ (Bound::Once
            | Bound::Ops(_)
            | Bound::Together(_)
            | Bound::Time { .. }
            | Bound::Deadline(_)) => bound,
        };
        Some(reads)
    }

    /// The operations of a stream as reads that verify their blocks.
    pub(super) fn as_reads(&self, written: &Stream) -> Stream {
        let handling = written.file_handling.unwrap_or_default();
        Stream {
            direction: Direction::Read,
            verify: true,
            verify_backlog: None,
            flow: None,
            sync_every: None,
            end_sync: EndSync::None,
            pace: Pace::Free,
            minimum_rate: None,
            steady_state: None,
            operation_log: None,
            open: Open {
                creation: FileCreation::Existing,
                direct: written.open.direct,
                // Before the pages are dropped, so that blocks are read from the device.
                fsync: true,
                ..Open::default()
            },
            file_handling: Some(FileHandling {
                pass_start: PassStart::Continue,
                invalidate: true,
                ..handling
            }),
            ..written.clone()
        }
    }

    /// True if a time or a rate can end the section.
    fn is_timed(&self) -> bool {
        self.flag("time_based") || self.text("runtime") != "0" || self.steady_state().is_some()
    }

    /// Reads of written blocks between the writes.
    pub(super) fn verify_backlog(&self) -> Option<VerifyBacklog> {
        let number = |name| u32::try_from(self.number(name)).unwrap_or(u32::MAX);
        let writes = number("verify_backlog");
        let verifies = self.verifies() && self.flag("do_verify");
        let wanted = writes > 0 && verifies && self.writes() && self.touches();
        let reads = match number("verify_backlog_batch") {
            0 => writes,
            reads => reads,
        };
        wanted.then_some(VerifyBacklog { writes, reads })
    }

    /// Contradictions of reads between the writes: option and message.
    fn check_backlog(&self) -> Option<(&'static str, &'static str)> {
        self.verify_backlog()?;
        let message = match () {
            () if self.has_queue() && self.number("iodepth") > 1 => {
                "verify_backlog requires one operation in flight; use iodepth=1"
            }
            () if self.open_files() < self.file_count() => {
                "verify_backlog requires that all files are open; remove openfiles"
            }
            () => return None,
        };
        Some(("verify_backlog", message))
    }

    /// Contradictions of options of verification: option and message.
    pub(super) fn check_verify(&self) -> Option<(&'static str, &'static str)> {
        if self.flag("verify_only") && !self.verifies() {
            return Some((
                "verify_only",
                "verify_only requires verify; add for example verify=crc32c",
            ));
        }
        if !self.verifies() {
            return None;
        }
        let (block, sizes) = self.block_sizes();
        if !self.touches() {
            return Some(("verify", "the null engine transfers no data; remove verify"));
        }
        if self.is_mixed() {
            let message = "verify is not supported in mixed sections; use a section that writes, \
                           and one that reads";
            return Some(("verify", message));
        }
        if block < SHORTEST || (!sizes.is_empty() && !block.is_multiple_of(4096)) {
            let message = "verify requires blocks of at least 64 bytes, or multiples of 4096 bytes \
                           with several block sizes";
            return Some(("verify", message));
        }
        if let Some(problem) = self.check_backlog() {
            return Some(problem);
        }
        if self.writes() && self.flag("do_verify") && self.is_timed() && !self.flag("overwrite") {
            let message = "the blocks that are written until runtime or steadystate ends the section \
                           are not known; add overwrite=1, or remove these options";
            return Some(("verify", message));
        }
        None
    }
}

impl Job {
    /// Sections that share files with a section that verifies them, but write other headers.
    pub(super) fn check_headers(&self) -> Option<Mistake> {
        for (at, section) in self.sections.iter().enumerate().filter(|(_, own)| own.verifies()) {
            let own = section.names();
            for other in self.sections.iter().enumerate().filter(|(place, _)| *place != at) {
                let other = other.1;
                let names = other.names();
                if !other.touches() || !names.share(&own) {
                    continue;
                }
                let message = if !other.verifies() {
                    "accesses the same files without verify; add verify to it"
                } else if names != own {
                    "accesses some of the same files; use the same list of files, or other files"
                } else if other.header_unit() != section.header_unit() {
                    "has blocks with other headers; use multiples of 4096 bytes, or equal sizes"
                } else {
                    continue;
                };
                let message = format!("section `{}` {message}", other.name);
                return Some(section.mistake("verify", message));
            }
        }
        None
    }
}
