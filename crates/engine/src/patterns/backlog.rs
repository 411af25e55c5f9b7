//! Reads of written blocks between the writes of an order ([`VerifyBacklog`]).

use std::collections::VecDeque;

use model::phase::VerifyBacklog;

use super::PlannedOp;
use crate::io::Kind;

/// Writes whose blocks are unread, and the next write.
#[derive(Debug)]
pub(super) struct Backlog {
    rule: VerifyBacklog,
    unread: VecDeque<PlannedOp>,
    // Reads until the next write; more than the unread blocks if the next writes are read at once.
    reads: usize,
    // True if the last operation was a write.
    wrote: bool,
    // No read follows the last write, so reads begin only if there is another write.
    write: Option<PlannedOp>,
}

impl Backlog {
    pub(super) fn new(rule: VerifyBacklog) -> Self {
        let unread = VecDeque::with_capacity(rule.writes as usize + 1);
        Self { rule, unread, reads: 0, wrote: false, write: None }
    }

    /// True if the next write is known.
    pub(super) fn has_write(&self) -> bool {
        self.write.is_some()
    }

    /// Sets the next write. If it begins another pass, all blocks are read before it.
    pub(super) fn plan(&mut self, write: PlannedOp, begins: bool) {
        self.write = Some(write);
        if begins {
            self.reads = self.unread.len();
        }
    }

    /// Next operation: a read, or the next write.
    pub(super) fn next(&mut self) -> Option<PlannedOp> {
        let due = self.unread.len().is_multiple_of(self.rule.writes.max(1) as usize);
        if self.reads == 0 && self.wrote && due {
            self.reads = self.rule.reads as usize;
        }
        if self.reads > 0
            && let Some(written) = self.unread.pop_front()
        {
            self.reads -= 1;
            self.wrote = false;
            return Some(PlannedOp { kind: Kind::Read, ..written });
        }
        let write = self.write.take()?;
        self.unread.push_back(write);
        self.wrote = true;
        Some(write)
    }
}

#[cfg(test)]
mod tests {
    use model::{
        Bytes,
        phase::{
            AccessPattern, Bound, Direction, FileHandling, FileSharing, PassStart, Stream,
            WorkLimit,
        },
    };

    use super::*;
    use crate::patterns::{Order, Prepared};

    /// Operations of passes of writes: `w3` writes block 3, `r3` reads it.
    fn operations(writes: u32, reads: u32, passes: &[u64]) -> String {
        let mut backlog = Backlog::new(VerifyBacklog { writes, reads });
        let mut all = Vec::new();
        for (pass, blocks) in passes.iter().enumerate() {
            for offset in 0..*blocks {
                let write = PlannedOp { offset, len: 1, kind: Kind::Write };
                backlog.plan(write, pass > 0 && offset == 0);
                while backlog.has_write() {
                    all.push(backlog.next().unwrap());
                }
            }
        }
        let name = |op: &PlannedOp| {
            format!("{}{}", if op.kind == Kind::Write { "w" } else { "r" }, op.offset)
        };
        all.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn reads_are_those_of_fio() {
        // Traces of fio 3.33.
        for (writes, reads, blocks, expected) in [
            (3, 3, 8, "w0 w1 w2 r0 r1 r2 w3 w4 w5 r3 r4 r5 w6 w7"),
            (4, 2, 8, "w0 w1 w2 w3 r0 r1 w4 w5 r2 r3 w6 w7"),
            (3, 3, 6, "w0 w1 w2 r0 r1 r2 w3 w4 w5"),
            (1, 1, 3, "w0 r0 w1 r1 w2"),
            (3, 5, 10, "w0 w1 w2 r0 r1 r2 w3 r3 w4 r4 w5 w6 w7 r5 r6 r7 w8 r8 w9"),
        ] {
            assert_eq!(operations(writes, reads, &[blocks]), expected);
            let rule = VerifyBacklog { writes, reads };
            assert_eq!(rule.reads_of(blocks), expected.matches('r').count() as u64);
        }
    }

    #[test]
    fn the_number_of_reads_is_that_of_the_operations() {
        for (writes, reads) in [(1, 1), (1, 3), (2, 7), (5, 2), (7, 7), (8, 3)] {
            let rule = VerifyBacklog { writes, reads };
            for blocks in 0..40 {
                let found = operations(writes, reads, &[blocks]).matches('r').count() as u64;
                assert_eq!(rule.reads_of(blocks), found, "{rule:?} {blocks}");
            }
        }
    }

    #[test]
    fn all_blocks_are_read_before_another_pass() {
        assert_eq!(operations(2, 2, &[3, 1]), "w0 w1 r0 r1 w2 r2 w0");
        assert_eq!(operations(9, 9, &[2, 2]), "w0 w1 r0 r1 w0 w1");
        assert_eq!(operations(1, 3, &[2, 1]), "w0 r0 w1 r1 w0");
    }

    /// Offsets of an order, in blocks of 512 bytes, with `w` for writes.
    fn listed(plan: &Stream) -> Vec<String> {
        let prepared = Prepared::new(plan).unwrap();
        let mut order = Order::new(plan, 0, 0, &prepared).unwrap();
        let name = |op: PlannedOp| {
            let kind = if op.kind == Kind::Write { "w" } else { "r" };
            format!("{kind}{}", op.offset / 512)
        };
        std::iter::from_fn(|| order.next().map(name)).collect()
    }

    #[test]
    fn the_rest_of_the_last_pass_is_read_by_another_stream() {
        let files = FileSharing::One("f".into());
        let handling = FileHandling { pass_start: PassStart::Reopen, ..FileHandling::default() };
        for (access_pattern, ops) in [
            (AccessPattern::Sequential, 8),
            (AccessPattern::Permutation, 8),
            (AccessPattern::Permutation, 13),
            (AccessPattern::Permutation, 17),
        ] {
            let rule = VerifyBacklog { writes: 3, reads: 2 };
            let writes = Stream {
                direction: Direction::Write,
                access_pattern,
                verify_backlog: Some(rule),
                bound: Bound::Amount(WorkLimit { ops, ..WorkLimit::UNLIMITED }),
                file_handling: Some(handling),
                seed: 5,
                ..Stream::new(files.clone(), Bytes(8 * 512), Bytes(512))
            };
            let reads = Stream {
                direction: Direction::Read,
                verify_backlog: None,
                rest_of: Some(rule),
                ..writes.clone()
            };
            let both: Vec<String> = listed(&writes).into_iter().chain(listed(&reads)).collect();
            let of = |kind: &str| -> Vec<String> {
                let own = both.iter().filter_map(|op| op.strip_prefix(kind));
                own.map(str::to_owned).collect()
            };
            assert_eq!(of("w").len() as u64, ops);
            assert_eq!(of("r"), of("w"), "{access_pattern:?} {ops}: {both:?}");
        }
    }
}
