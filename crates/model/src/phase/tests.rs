use super::*;
use crate::units::Bytes;

fn primary_of(work: Work) -> Metric {
    let phase = Phase {
        name: "write".into(),
        group: "writing".into(),
        role: Role::Measure,
        cache: Cache::Unchanged,
        work,
        timed: Timed::default(),
        directory: None,
        together: None,
    };
    phase.primary()
}

#[test]
fn a_flushed_write_is_judged_by_what_became_durable_unless_it_overwrites() {
    let stream = Stream::new(FileSharing::One("file".into()), Bytes::mib(1), Bytes(4096));
    let write = Stream { direction: Direction::Write, end_sync: EndSync::Fsync, ..stream };
    let primary = |access: AccessPattern, direct: bool| {
        let open = Open { direct, ..Open::default() };
        let stream = Stream { access_pattern: access, open, ..write.clone() };
        primary_of(Work::Stream(stream))
    };
    for access in
        [AccessPattern::Sequential, AccessPattern::IozonePermutation, AccessPattern::Permutation]
    {
        assert_eq!(primary(access, false), Metric::DurableThroughput, "{access:?}");
    }
    let overwritten = [
        AccessPattern::Random,
        AccessPattern::SameBlock,
        AccessPattern::Zipf { theta: 1.0 },
        AccessPattern::Pareto { share: 0.2 },
        AccessPattern::Hotspot { space: 0.1, visits: 0.9 },
    ];
    // Each write is synced before the next.
    let commit = Stream {
        sync_every: Some(SyncEvery {
            after: SyncInterval::Ops(1),
            call: SyncCall::Fdatasync,
            before_next: false,
        }),
        ..write.clone()
    };
    assert_eq!(primary_of(Work::Stream(commit.clone())), Metric::CommitRate);
    let range = SyncEvery {
        after: SyncInterval::Ops(1),
        call: SyncCall::Range(RangeSync::ALL),
        before_next: false,
    };
    let range = Stream { sync_every: Some(range), ..commit.clone() };
    assert_eq!(primary_of(Work::Stream(range)), Metric::DurableThroughput);
    let rare = SyncEvery { after: SyncInterval::Ops(2), call: SyncCall::Fsync, before_next: false };
    let rare = Stream { sync_every: Some(rare), ..commit.clone() };
    assert_eq!(primary_of(Work::Stream(rare)), Metric::DurableThroughput);
    let read = Stream { direction: Direction::Read, ..commit };
    assert_eq!(primary_of(Work::Stream(read)), Metric::Throughput);
    for access in overwritten {
        assert_eq!(primary(access, false), Metric::Throughput, "{access:?}");
        assert_eq!(primary(access, true), Metric::DurableThroughput, "{access:?}");
    }
}

#[test]
fn files_that_are_synced_and_renamed_are_deliveries() {
    let set = Set {
        name: "mail".into(),
        sharing: Sharing::Private,
        files: 1,
        spread: Spread::Flat,
        naming: Naming::Numbers,
        sizes: Sizes::Fixed(Bytes(1)),
        block_size: Bytes(1),
        data: DataPattern::default(),
        seed: 0,
    };
    use TreeStep::{Close, Create, Fsync, FsyncDirectory, Rename, RenameBack, Write};
    let primary =
        |steps: &[TreeStep]| primary_of(Work::Tree(Tree::new(set.clone(), steps.to_vec())));
    let delivery = [Create, Write, Fsync, Close, Rename, FsyncDirectory];
    assert_eq!(primary(&delivery), Metric::DeliveryRate);
    assert_eq!(primary(&delivery[..5]), Metric::DeliveryRate);
    assert_eq!(primary(&delivery[..4]), Metric::OpsRate, "not renamed");
    assert_eq!(primary(&[Create, Write, Close, Rename]), Metric::OpsRate, "not synced");
    assert_eq!(primary(&[Rename, RenameBack]), Metric::OpsRate);
}
