use model::{
    Bytes,
    phase::{Bound, Direction, FileHandling, PassStart, SeveralFiles, SyncCall, SyncEvery},
};

use super::{super::Order, *};
use crate::file_offset::{file_of, within};

const BLOCK: u64 = 4096;

/// Stream of `files` files with `blocks` blocks each.
fn plan(files: usize, blocks: u64, order: FileOrder) -> Stream {
    let several = SeveralFiles {
        names: (0..files).map(|file| format!("f.{{worker}}.{file}")).collect(),
        directories: Vec::new(),
        order,
        turn: 1,
        open: u32::try_from(files).unwrap(),
    };
    Stream {
        direction: Direction::Write,
        ..Stream::new(FileSharing::Several(several), Bytes(blocks * BLOCK), Bytes(BLOCK))
    }
}

fn several(plan: &mut Stream) -> &mut SeveralFiles {
    let FileSharing::Several(files) = &mut plan.files else { unreachable!() };
    files
}

/// Operations and changes of files as text: `a0` is block 0 of the first file.
fn sequence(plan: &Stream, most: usize) -> String {
    let prepared = Prepared::new(plan).unwrap();
    let mut order = Order::new(plan, 0, 0, &prepared).unwrap();
    let letter = |file: usize| char::from(b'a' + u8::try_from(file).unwrap());
    let mut words = Vec::new();
    for _ in 0..most {
        let Some(next) = order.next() else { break };
        if order.take_pass_start() {
            words.push("pass".to_owned());
        }
        while let Some(change) = order.take_change() {
            let FileChange { open, close } = change;
            words.extend(close.map(|file| format!("-{}", letter(file))));
            words.push(format!("+{}", letter(open)));
        }
        let block = within(next.offset) / BLOCK;
        words.push(format!("{}{block}", letter(file_of(next.offset))));
    }
    words.join(" ")
}

#[test]
fn files_are_accessed_in_turn_until_their_end() {
    let mut own = plan(3, 2, FileOrder::RoundRobin);
    assert_eq!(sequence(&own, 99), "a0 b0 c0 a1 b1 c1");
    several(&mut own).turn = 2;
    assert_eq!(sequence(&own, 99), "a0 a1 b0 b1 c0 c1");
    assert_eq!(sequence(&plan(2, 3, FileOrder::Sequential), 99), "a0 a1 a2 b0 b1 b2");
}

#[test]
fn at_most_the_given_number_of_files_is_open() {
    let mut own = plan(3, 2, FileOrder::RoundRobin);
    several(&mut own).open = 2;
    assert_eq!(sequence(&own, 99), "a0 b0 a1 b1 -a +c c0 c1");
    several(&mut own).open = 1;
    assert_eq!(sequence(&own, 99), "a0 a1 -a +b b0 b1 -b +c c0 c1");
}

#[test]
fn passes_start_over_with_all_files() {
    let mut own = plan(2, 2, FileOrder::RoundRobin);
    own.bound = Bound::Ops(6);
    assert_eq!(sequence(&own, 99), "a0 b0 a1 b1 pass a0 b0");
    own.access_pattern = AccessPattern::Permutation;
    own.size = Bytes(64 * BLOCK);
    own.bound = Bound::Ops(256);
    own.file_handling =
        Some(FileHandling { pass_start: PassStart::Reopen, ..FileHandling::default() });
    let all = sequence(&own, 999);
    let (first, second) = all.split_once(" pass ").unwrap();
    assert_eq!(first, second, "the order of the first pass is repeated");
    let mut words: Vec<&str> = first.split(' ').collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), 128, "each block once");
}

#[test]
fn random_selection_visits_each_block_once() {
    let mut own = plan(4, 16, FileOrder::Random);
    own.seed = 3;
    let all = sequence(&own, 999);
    let mut words: Vec<&str> = all.split(' ').collect();
    assert_ne!(words[..8], ["a0", "b0", "c0", "d0", "a1", "b1", "c1", "d1"]);
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), 64);
}

#[test]
fn independent_draws_have_no_end_of_a_file() {
    let mut own = plan(2, 16, FileOrder::Random);
    own.access_pattern = AccessPattern::Random;
    let in_first = |seed| {
        own.seed = seed;
        let all = sequence(&own, 999);
        assert_eq!(all.split(' ').count(), 32, "as many operations as blocks");
        all.split(' ').filter(|word| word.starts_with('a')).count()
    };
    let counts: Vec<usize> = (0..8).map(in_first).collect();
    assert!(counts.iter().any(|count| *count > 16), "{counts:?}");
    assert!(counts.iter().all(|count| (4..=28).contains(count)), "{counts:?}");
}

#[test]
fn each_direction_of_a_mix_has_a_position_per_file() {
    let mut own = plan(2, 8, FileOrder::Sequential);
    own.direction = Direction::Mixed(0.5);
    own.access_pattern = AccessPattern::SequentialPerDirection;
    let prepared = Prepared::new(&own).unwrap();
    let mut order = Order::new(&own, 0, 0, &prepared).unwrap();
    let mut next = [[0, 0], [0, 0]];
    let mut count = 0;
    while let Some(op) = order.next() {
        let direction = usize::from(op.kind == Kind::Write);
        let expected = &mut next[file_of(op.offset)][direction];
        assert_eq!(within(op.offset), *expected * BLOCK);
        *expected += 1;
        count += 1;
    }
    assert_eq!(count, 16);
    assert!(next[0].contains(&8), "the first file ends with one of its positions: {next:?}");
}

#[test]
fn a_sync_takes_a_turn() {
    let mut own = plan(2, 3, FileOrder::RoundRobin);
    own.sync_every =
        Some(SyncEvery { after: SyncInterval::Ops(2), call: SyncCall::Fsync, before_next: true });
    let prepared = Prepared::new(&own).unwrap();
    let mut order = Order::new(&own, 0, 0, &prepared).unwrap();
    let mut files = Vec::new();
    while let Some(op) = order.next() {
        files.push((file_of(op.offset), file_of(order.sync_range((7, 7)).0)));
    }
    // a, b, sync of a, b, a, sync of b, a, b
    assert_eq!(files, [(0, 0), (1, 0), (1, 0), (0, 0), (0, 1), (1, 1)]);
}
