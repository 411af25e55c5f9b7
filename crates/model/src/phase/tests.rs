use super::*;
use crate::units::Bytes;

#[test]
fn a_flushed_write_is_judged_by_what_became_durable_unless_it_overwrites() {
    let stream = Stream::new(FileSharing::One("file".into()), Bytes::mib(1), Bytes(4096));
    let write = Stream { direction: Direction::Write, end_sync: EndSync::Fsync, ..stream };
    let primary = |access: AccessPattern, direct: bool| {
        let open = Open { direct, ..Open::default() };
        let stream = Stream { access_pattern: access, open, ..write.clone() };
        let phase = Phase {
            name: "write".into(),
            group: "writing".into(),
            role: Role::Measure,
            cache: Cache::Unchanged,
            work: Work::Stream(stream),
            timed: Timed::default(),
        };
        phase.primary()
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
    for access in overwritten {
        assert_eq!(primary(access, false), Metric::Throughput, "{access:?}");
        assert_eq!(primary(access, true), Metric::DurableThroughput, "{access:?}");
    }
}
