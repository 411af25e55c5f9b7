//! Orders, pace, syncs, and verification of sections.

use model::phase::{
    Arrivals, DataPattern, EndSync, FileCreation, Jump, Length, Pace, RangeSync, Rate, SyncCall,
    Zone,
};

use super::*;

fn pattern(options: &str) -> AccessPattern {
    stream(&format!("[a]\nsize=64k\n{options}\n")).access_pattern
}

#[test]
fn holes_and_runs_are_orders() {
    assert_eq!(pattern("rw=read:8k"), AccessPattern::Skip { blocks: 2 });
    assert_eq!(pattern("rw=write:-8k"), AccessPattern::Skip { blocks: -2 });
    assert_eq!(pattern("rw=read:0"), AccessPattern::Sequential);
    assert_eq!(pattern("rw=randread:1"), AccessPattern::Permutation);
    let runs = |jump, unique| AccessPattern::Runs { jump, unique };
    assert_eq!(pattern("rw=randread:8"), runs(Jump::Every(8), true));
    let options = "rw=randwrite:8\nrw_sequencer=identical\nnorandommap";
    assert_eq!(pattern(options), runs(Jump::EveryRepeated(8), false));
    let options = "rw=randread\npercentage_random=25,80";
    assert_eq!(pattern(options), runs(Jump::Chance(0.25), true));
    assert_eq!(pattern("rw=read\npercentage_random=25"), AccessPattern::Sequential);
    let text =
        "[a]\nrw=readwrite\nsize=8k\n[b]\nrw=randread:08\nsize=8k\n[c]\nrw=read:-8kb\nsize=8k";
    let text = canonical(text);
    assert!(text.contains("rw=rw\n") && text.contains("randread:8\n"), "{text}");
    assert_eq!(canonical(&text), text);
}

#[test]
fn random_offsets_are_aligned() {
    let aligned = |options: &str| {
        let own = stream(&format!("[a]\nsize=400k\n{options}\n"));
        let lengths: Vec<u32> = own.block_sizes.iter().map(|length| length.blocks).collect();
        (own.access_pattern, own.block_size.0, own.offset_alignment, lengths)
    };
    let random = AccessPattern::Random;
    assert_eq!(aligned("rw=randread\nbs=16k\nba=4k"), (random, 4096, 1, vec![4]));
    assert_eq!(aligned("rw=randread\nblockalign=4k"), (random, 4096, 1, vec![]));
    assert_eq!(aligned("rw=randwrite\nbs=4k\nba=12k"), (random, 4096, 3, vec![1]));
    let split = "rw=randwrite\nbssplit=512/50:8k/50\nba=4k";
    assert_eq!(aligned(split), (random, 512, 8, vec![1, 16]));
    assert_eq!(aligned("rw=read\nbs=16k\nba=4k"), (AccessPattern::Sequential, 16_384, 1, vec![]));
    assert_eq!(aligned("rw=randread\nba=0").0, AccessPattern::Permutation);
    let zones =
        "[a]\nsize=400k\nrw=randwrite\nbs=512\nba=4k\nrandom_distribution=zoned:50/10:50/90";
    let blocks: Vec<u64> = stream(zones).zones.iter().map(|zone| zone.blocks).collect();
    assert_eq!(blocks, [10, 90], "in aligned places");
    for (options, reason) in [
        ("rw=randwrite\nba=4k\nverify=md5", "cannot be verified"),
        ("rw=randwrite:4\nba=8k", "not aligned here"),
        ("rw=randwrite\nba=8k\nnrfiles=2", "one file per worker"),
        ("rw=randwrite\nba=1m", "use a larger size"),
        ("rw=randrw\nba=8k,16k", "use two sections"),
    ] {
        let found = mistakes(&format!("[a]\nsize=400k\n{options}"));
        assert!(found.contains(reason), "{options}: {found}");
    }
}

#[test]
fn distributions_are_orders() {
    let normal = AccessPattern::Normal { deviation: 0.25 };
    assert_eq!(pattern("rw=randread\nrandom_distribution=normal:25"), normal);
    let most = AccessPattern::Normal { deviation: 0.5 };
    assert_eq!(pattern("rw=randread\nrandom_distribution=gauss:80"), most);
    let zones = |distribution: &str, direction: &str| {
        let text = format!("[a]\nsize=400k\nrw={direction}\nrandom_distribution={distribution}\n");
        assert_eq!(canonical(&canonical(&text)), canonical(&text));
        let own = stream(&text);
        assert_eq!(own.access_pattern, AccessPattern::Zones);
        own.zones.iter().map(|Zone { weight, blocks }| (*weight, *blocks)).collect::<Vec<_>>()
    };
    let four = [(60, 10), (30, 20), (8, 30), (2, 40)];
    assert_eq!(zones("zoned:60/10:30/20:8/30:2/40", "randread"), four);
    assert_eq!(zones("zoned:60/10:30/20:8/30:2/", "randwrite"), four);
    assert_eq!(zones("zoned:70/50:/,20/10:80/90", "randwrite"), [(20, 10), (80, 90)]);
    assert_eq!(zones("zoned_abs:60/40k:40/360k", "randread"), [(60, 10), (40, 90)]);
}

#[test]
fn contradictions_of_orders_are_rejected() {
    for (options, reason) in [
        ("rw=read:6k", "multiple of the block size"),
        ("rw=rw:8k", "two sections"),
        ("rw=randrw:8", "two sections"),
        ("rw=read:8k\nnrfiles=2", "one file per worker"),
        ("rw=read:8k\noffset=4k\nio_size=32k", "the whole file"),
        ("rw=read:8k\noffset=4k\nloops=2", "the whole file"),
        ("rw=read:8k\noffset=4k\nfilesize=128k\nio_size=8k", "the whole file"),
        ("rw=read:8k\noffset=4k\nio_size=8k\ntime_based\nruntime=1", "the whole file"),
        ("rw=read:-8k\noffset=4k", "the whole file"),
        ("rw=randread:8\nrandom_distribution=zipf:1.2", "random_distribution=random"),
        ("rw=randread:8\npercentage_random=50", "exclude each other"),
        ("rw=randread:0", "not a number from 1"),
        ("rw=randrw\npercentage_random=10,20", "two sections"),
        ("rw=randread\nrandom_distribution=zoned:50/10:40/90", "are 90 in total"),
        ("rw=randread\nrandom_distribution=zoned_abs:50/10k:50", "has no size"),
        ("rw=randread\nrandom_distribution=zoned:50/10:50/90,", "a direction without zones"),
        ("rw=randread\nrandom_distribution=zoned:100/0:0/100", "no zone with accesses"),
        ("rw=randread\nrandom_distribution=normal", "from 0 to 100"),
        ("rw=randread\nrandom_distribution=zipf:1.2:0.5", "a center of the distribution"),
        ("rw=randrw\nrandom_distribution=zoned:50/10:50/90,10/10:90/90", "two sections"),
    ] {
        let found = mistakes(&format!("[a]\nsize=64k\n{options}\n"));
        assert!(found.contains(reason), "{options}: {found}");
    }
}

#[test]
fn rates_of_each_direction_are_those_of_all_workers() {
    let pace = |options: &str| stream(&format!("[a]\nsize=64k\n{options}\n")).pace;
    let open = |rate, arrivals| Pace::Open { rate, arrivals };
    let constant = Arrivals::Constant;
    assert_eq!(pace("rw=write\nrate_iops=5,7\nnumjobs=2"), open(Rate::Ops(14), constant));
    let both = Pace::OpenByDirection {
        reads: Rate::Bytes(Bytes::mib(1)),
        writes: Rate::Bytes(Bytes::kib(512)),
        arrivals: Arrivals::Poisson,
    };
    assert_eq!(pace("rw=randrw\nrate=1m,512k\nrate_process=poisson"), both);
    let equal =
        Pace::OpenByDirection { reads: Rate::Ops(9), writes: Rate::Ops(9), arrivals: constant };
    assert_eq!(pace("rw=rw\nrate_iops=9\nioengine=libaio\nio_submit_mode=offload"), equal);
    assert_eq!(pace("rw=rw\nrwmixread=100\nrate_iops=9"), open(Rate::Ops(9), constant));
    let think = |ops, spin, completed, every| Pace::Think {
        ops,
        pause: Nanos(50_000_000),
        spin: Nanos(spin),
        completed,
        every: Nanos(every),
    };
    let own = pace("thinktime=50ms\nthinktime_blocks=4\nthinktime_spin=20ms");
    assert_eq!(own, think(4, 20_000_000, false, 0));
    let own = pace("thinktime=50ms\nthinktime_iotime=2\nioengine=libaio\niodepth=4");
    assert_eq!(own, think(u64::MAX, 0, true, 2_000_000_000));
    for (options, reason) in [
        ("rate=1m\nrate_iops=5", "exclude each other"),
        ("thinktime_spin=5", "requires thinktime"),
        ("io_submit_mode=offload", "with a rate only"),
        ("io_submit_mode=offload\nrate_iops=5\niodepth=2", "one operation in flight"),
        ("rate_min=1k\nrate_iops_min=4", "exclude each other"),
        ("rw=write\nbuffer_pattern=5\nzero_buffers", "excludes zero_buffers"),
        ("rw=write\nbuffer_pattern='f'", "patterns from files"),
    ] {
        let found = mistakes(&format!("[a]\nsize=64k\n{options}\n"));
        assert!(found.contains(reason), "{options}: {found}");
    }
}

#[test]
fn minimum_rates_are_those_of_each_worker() {
    let options = "[a]\nrw=randrw\nsize=64k\nnumjobs=2\nrate_min=8k,0\nrate_cycle=500\n";
    let own = stream(options).minimum_rate.unwrap();
    assert_eq!((own.reads, own.writes), (Some(Rate::Bytes(Bytes::kib(8))), None));
    assert_eq!(own.cycle, Nanos(500_000_000));
    let own = stream("[a]\nrw=write\nsize=64k\nrate_iops_min=7\n").minimum_rate.unwrap();
    assert_eq!((own.reads, own.writes), (None, Some(Rate::Ops(7))));
}

#[test]
fn patterns_are_content_without_random_bytes() {
    let own = stream("[a]\nrw=write\nsize=64k\nbuffer_pattern=0xdead\n");
    assert_eq!(own.pattern, [0xde, 0xad]);
    let random = DataPattern::Random { incompressible_fraction: 0.0, duplicate_fraction: 0.0 };
    assert_eq!(own.data, random);
    let own = stream("[a]\nrw=write\nsize=64k\nverify=meta\nverify_pattern=\"ab\"\n");
    assert_eq!(own.pattern, *b"ab");
}

#[test]
fn ranges_are_synced_with_their_flags() {
    let text = "[a]\nrw=write\nsize=24k\nsync_file_range=write,wait_before:2\n";
    let every = stream(text).sync_every.unwrap();
    let flags = RangeSync { wait_before: true, write: true, wait_after: false };
    assert_eq!(every.call, SyncCall::Range(flags));
    assert!(canonical(text).contains("sync_file_range=wait_before,write:2\n"));
    for (options, reason) in [
        ("sync_file_range=write", "is not MODE:NUMBER"),
        ("sync_file_range=wait:2", "did you mean"),
        ("ioengine=mmap\nsync_file_range=write:2", "synced by msync"),
    ] {
        let found = mistakes(&format!("[a]\nrw=write\nsize=64k\n{options}\n"));
        assert!(found.contains(reason), "{options}: {found}");
    }
}

#[test]
fn written_blocks_are_verified_in_a_second_phase() {
    let phases = work(
        "[w]\nrw=randwrite\nsize=64k\nverify=crc32c\nnumjobs=2\n[x]\nrw=write\nsize=8k\n\
         verify=md5\ndo_verify=0\n[r]\nstonewall\nrw=read\nsize=8k\nverify=meta\n",
    );
    let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["r.layout", "w", "x", "w-verify", "r"]);
    let own = |name: &str| {
        let phase = phases.iter().find(|phase| phase.name == name).unwrap();
        let Work::Stream(stream) = phase.work.clone() else { panic!("{phase:?}") };
        stream
    };
    let (written, read) = (own("w"), own("w-verify"));
    assert!(!written.verify && read.verify && own("r").verify);
    assert_eq!((read.direction, read.open.fsync), (Direction::Read, true));
    assert_eq!((read.seed, read.access_pattern), (written.seed, written.access_pattern));
    assert_eq!(read.header_seed, written.header_seed);
    assert_eq!(own("r.layout").header_seed, own("r").header_seed);
    assert_ne!(written.header_seed, own("r").header_seed, "other files");
    // The seed of the headers does not depend on the run.
    let job = "[w]\nrw=write\nsize=64k\nverify=crc32c\nverify_only\n";
    let later = phases::phases(&parsed(job, &Changes::default()).unwrap(), 99);
    let [only] = &later[..] else { panic!("{later:?}") };
    let Work::Stream(only) = &only.work else { panic!("{only:?}") };
    assert!(only.verify && only.direction == Direction::Read);
    assert_eq!(only.header_seed, written.header_seed);
    let twice = work("[w]\nrw=write\nsize=8k\nloops=3\nverify=crc32c\n[w-verify]\nsize=4k\n");
    let names: Vec<&str> = twice.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["w-verify.layout", "w", "w-verify", "w-verify-job"]);
    let Work::Stream(reads) = &twice[3].work else { panic!("{twice:?}") };
    assert_eq!(reads.bound, Bound::Once);
}

#[test]
fn contradictions_of_verification_are_rejected() {
    for (options, reason) in [
        ("rw=write\nruntime=5\nverify=crc32c", "overwrite=1"),
        ("rw=rw\nverify=crc32c", "mixed sections"),
        ("rw=write\nioengine=null\nverify=crc32c", "null"),
        ("rw=write\nbs=32\nverify=crc32c", "at least 64 bytes"),
        ("rw=write\nverify=pattern", "patterns are not verified"),
        ("rw=write\nverify=crc33", "did you mean"),
        ("rw=write\nverify_only", "requires verify"),
        ("rw=write\nfilename=f\n[b]\nfilename=f\nsize=64k\nverify=md5", "`a` accesses the same"),
        (
            "rw=write\nbs=1k\nfilename=f\nverify=md5\n[b]\nfilename=f\nsize=64k\nverify=md5",
            "`b` has blocks with other headers",
        ),
    ] {
        let found = mistakes(&format!("[a]\nsize=64k\n{options}\n"));
        assert!(found.contains(reason), "{options}: {found}");
    }
}

#[test]
fn reads_and_writes_have_separate_sizes() {
    let sizes = |options: &str| {
        let own = stream(&format!("[a]\nsize=1m\n{options}\n"));
        let blocks = |lengths: &[Length]| -> Vec<u32> {
            lengths.iter().map(|length| length.blocks).collect()
        };
        (own.block_size.0, blocks(&own.block_sizes), blocks(&own.write_sizes), own.access_pattern)
    };
    let both = AccessPattern::SequentialPerDirection;
    assert_eq!(sizes("rw=rw\nbs=4k,16k"), (4096, vec![1], vec![4], both));
    let random = AccessPattern::Random;
    assert_eq!(sizes("rw=randrw\nbs=4k,6k\nnorandommap"), (2048, vec![2], vec![3], random));
    let own = sizes("rw=randrw\nbssplit=4k/50:8k/50,16k\nnorandommap");
    assert_eq!(own, (4096, vec![1, 2], vec![4], random));
    assert_eq!(sizes("rw=rw\nbsrange=4k-8k,8k-8k"), (4096, vec![1, 2], vec![2], both));
    let sequential = AccessPattern::Sequential;
    assert_eq!(sizes("rw=write\nbs=4k,16k"), (16_384, vec![], vec![], sequential));
    assert_eq!(sizes("rw=rw\nrwmixread=100\nbs=4k,16k"), (4096, vec![], vec![], sequential));
    assert_eq!(
        canonical("[a]\nsize=1m\nrw=rw\nbs=,64k"),
        "[a]\nbs=4096,65536\nrw=rw\nsize=1048576\n"
    );
    for (options, reason) in [
        ("rw=randrw\nbs=4k,8k", "add norandommap=1"),
        ("rw=randrw\nbs=4k,8k\nrandom_distribution=zipf:1.2", "uniformly random offsets"),
        ("rw=randrw\nbs=4k,8k\nnorandommap\nba=4k", "without ba"),
        ("rw=rw\nbs=4k,8k\nnrfiles=2", "one file per worker"),
        ("rw=rw\nbs=4k,8k\nrate_iops=9", "rates require equal sizes"),
    ] {
        let found = mistakes(&format!("[a]\nsize=64k\n{options}\n"));
        assert!(found.contains(reason), "{options}: {found}");
    }
}

#[test]
fn queues_collect_completions_as_requested() {
    let completions = |options: &str| {
        let own = stream(&format!("[a]\nrw=read\nsize=1m\niodepth=8\n{options}\n"));
        let own = own.io_engine.completions();
        (own.min, own.max, own.refill_at)
    };
    assert_eq!(completions("ioengine=libaio"), (1, 0, None));
    assert_eq!(completions("ioengine=libaio\niodepth_batch=4"), (1, 1, None));
    let own = completions("ioengine=libaio\niodepth_batch_complete=16\niodepth_low=2");
    assert_eq!(own, (8, 8, Some(2)));
    assert_eq!(completions("ioengine=io_uring\niodepth_low=8"), (1, 0, None));
    let own = completions(
        "ioengine=io_uring\niodepth_batch_complete_min=2\niodepth_batch_complete_max=5",
    );
    assert_eq!(own, (2, 5, None));
    let found = mistakes("[a]\nsize=1m\niodepth_batch_complete_min=0\n");
    assert!(found.contains("use iodepth=1"), "{found}");
}

#[test]
fn files_are_created_and_synced_as_requested() {
    let phases = work("[a]\nsize=64k\ncreate_fsync=0\n[b]\nsize=64k\nallow_file_create=0\n");
    let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["a.layout", "a", "b"]);
    let Work::Stream(layout) = &phases[0].work else { panic!("{phases:?}") };
    assert_eq!(layout.end_sync, EndSync::None);
    let own = stream("[a]\nrw=write\nsize=64k\nallow_file_create=0\nnice=-5\nend_syncfs=1\n");
    assert_eq!((own.open.creation, own.workers.nice), (FileCreation::Existing, -5));
    assert_eq!(own.end_sync, EndSync::Syncfs);
    let region = stream("[a]\nrw=write\nfilesize=100k\noffset=33%\noffset_align=8k\n").region();
    assert_eq!(region.map(|own| own.offset.0), Some(40_960), "33 KiB are rounded up");
    for (options, reason) in
        [("end_syncfs\nend_fsync", "only one sync"), ("nice=21", "from -20 to 20")]
    {
        let found = mistakes(&format!("[a]\nsize=64k\nrw=write\n{options}\n"));
        assert!(found.contains(reason), "{options}: {found}");
    }
}

#[test]
fn percentages_of_a_size_are_of_the_files() {
    let size = |options: &str, map: &str| {
        let changes = Changes { map: vec![map.into()], ..Changes::default() };
        parsed(&format!("[a]\n{options}\n"), &changes).map(|job| job.text())
    };
    let own = size("filesize=64k\nsize=50%", "/dev/x=f:1m").unwrap();
    assert_eq!(own, "[a]\nfilesize=65536\nsize=32768\n");
    let own = size("filename=/dev/x\nsize=25%\noffset=50%", "/dev/x=f:1m").unwrap();
    assert!(own.contains("filesize=1048576\n") && own.contains("size=262144\n"), "{own}");
    let existing = Changes {
        directory: "/d".into(),
        size_of: Some(|path| path.ends_with("/d/a").then_some(70_000)),
        ..Changes::default()
    };
    let own = parsed("[x]\nfilename=a\nsize=50%\noffset=25%\n", &existing).unwrap().text();
    assert!(own.contains("filesize=70000\n") && own.contains("size=35000\n"), "{own}");
    let none = parsed("[x]\nfilename=b\nsize=50%\n", &existing).unwrap_err().to_string();
    assert!(none.contains("files that exist"), "{none}");
    let missing = size("size=50%", "/dev/x=f:1m").unwrap_err().to_string();
    assert!(missing.contains("requires filesize"), "{missing}");
}
