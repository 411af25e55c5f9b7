//! Flows, reads between writes, and sizes of random operations.

use model::phase::{Flow, PassStart, VerifyBacklog};

use super::*;

/// Streams of all phases, in order.
fn streams(text: &str) -> Vec<(String, Stream)> {
    let of = |phase: Phase| {
        let Work::Stream(stream) = phase.work else { return None };
        Some((phase.name, stream))
    };
    work(text).into_iter().filter_map(of).collect()
}

#[test]
fn flows_have_numbers_and_weights() {
    let text = "[global]\nsize=4k\nrw=write\nflow_sleep=7\n[a]\nflow=3\nflow_id=9\n[b]\nflow=1\n\
                [c]\n[d]\nflow=2\nflow_id=9\n";
    let flows: Vec<Option<Flow>> = streams(text).into_iter().map(|own| own.1.flow).collect();
    let flow = |number, weight| Some(Flow { number, weight, sleep: Nanos(7000) });
    assert_eq!(flows, [flow(1, 3), flow(0, 1), None, flow(1, 2)]);
    let waiting = "[global]\nsize=4k\n[a]\nflow=1\n[b]\nwait_for=a\nflow=1\n";
    assert!(mistakes(waiting).contains("would wait for this one"), "{}", mistakes(waiting));
    assert!(mistakes("[a]\nsize=4k\nflow=1001\n").contains("from 0 to 1000"));
}

#[test]
fn blocks_are_read_between_writes_and_the_rest_after_them() {
    let text = |options: &str| {
        format!("[a]\nrw=randwrite\nsize=32k\nverify=crc32c\nverify_backlog=3\n{options}\n")
    };
    let found = streams(&text(""));
    let [(_, writes), (name, reads)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(writes.verify_backlog, Some(VerifyBacklog { writes: 3, reads: 3 }));
    assert_eq!((name.as_str(), reads.verify_backlog), ("a-verify", None));
    assert_eq!(reads.rest_of, writes.verify_backlog);
    assert_eq!(reads.access_pattern, writes.access_pattern);
    let part = streams(&text("io_size=48k")).pop().unwrap().1;
    assert!(matches!(part.bound, Bound::Amount(limit) if limit.ops == 12));
    let start = |own: &Stream| own.file_handling.unwrap().pass_start;
    assert_eq!(start(&part), PassStart::Reopen, "so that both have the same passes");
    let unverified = streams(&text("do_verify=0"));
    assert_eq!(unverified.len(), 1);
    assert_eq!(unverified[0].1.verify_backlog, None, "as fio 3.33");
    let unused = "[a]\nrw=write\nsize=32k\nverify_backlog=3\n";
    assert_eq!(streams(unused)[0].1.verify_backlog, None, "without verify");
    for (options, reason) in [
        ("ioengine=libaio\niodepth=2", "use iodepth=1"),
        ("nrfiles=2\nopenfiles=1", "remove openfiles"),
    ] {
        assert!(mistakes(&text(options)).contains(reason), "{options}");
    }
}

#[test]
fn files_are_removed_before_another_pass() {
    let start = |options: &str| {
        let text = format!("[a]\nrw=write\nsize=8k\nunlink_each_loop=1\n{options}\n");
        stream(&text).file_handling.unwrap().pass_start
    };
    assert_eq!(start("loops=2"), PassStart::Recreate);
    assert_eq!(start("io_size=16k"), PassStart::Recreate);
    assert_eq!(start(""), PassStart::Continue);
    assert_eq!(start("time_based\nruntime=1"), PassStart::Invalidate, "as fio 3.33");
    let found = mistakes("[a]\nrw=read\nsize=8k\nloops=2\nunlink_each_loop=1\n");
    assert!(found.contains("the first one has removed"), "{found}");
    for options in ["loops=2\nverify_backlog=3", "io_size=12k"] {
        let text =
            format!("[a]\nrw=write\nsize=8k\nunlink_each_loop=1\nverify=crc32c\n{options}\n");
        let found = mistakes(&text);
        assert!(found.contains("remove it or verify"), "{options}: {found}");
    }
}

#[test]
fn sizes_are_those_of_sequential_and_random_operations() {
    let sizes = |options: &str| {
        let own = stream(&format!("[a]\nsize=1m\nbs_is_seq_rand=1\n{options}\n"));
        let blocks = |all: &[model::phase::Length]| all.iter().map(|own| own.blocks).collect();
        let (one, jumps): (Vec<u32>, Vec<u32>) =
            (blocks(&own.block_sizes), blocks(&own.jump_sizes));
        (own.block_size.0, one, jumps, own.offset_alignment)
    };
    assert_eq!(sizes("rw=rw\nbs=8k,4k"), (8192, vec![], vec![], 1));
    assert_eq!(sizes("rw=randwrite\nbs=8k,4k"), (4096, vec![], vec![], 1));
    assert_eq!(sizes("rw=randread\nbs=8k,4k\nnorandommap"), (4096, vec![1], vec![], 2));
    let runs = "percentage_random=30\nnorandommap";
    let read = sizes(&format!("rw=randread\nbs=128k,4k\n{runs}"));
    assert_eq!(read, (4096, vec![32], vec![1], 32));
    let write = sizes(&format!("rw=randwrite\nbs=128k,4k\n{runs}"));
    assert_eq!(write, (4096, vec![32], vec![1], 1));
    for (options, reason) in [
        ("rw=randread\nbs=8k,4k", "add norandommap=1"),
        ("rw=randrw\nbs=8k,4k", "one kind of sizes"),
        ("rw=randread\nbs=8k,4k\nnorandommap\nba=4k", "remove ba"),
        ("rw=randread\nbs=8k,4k\nnorandommap\nnrfiles=2", "one file per worker"),
    ] {
        let found = mistakes(&format!("[a]\nsize=1m\nbs_is_seq_rand=1\n{options}\n"));
        assert!(found.contains(reason), "{options}: {found}");
    }
}

#[test]
fn keywords_are_numbers_of_the_machine() {
    let text = "[a$ncpus]\nsize=$pagesize\nnumjobs=$ncpus\n";
    let values = [("$pagesize", "4096"), ("$ncpus", "3")];
    let variables = values.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let job = parsed(text, &Changes { variables, ..Changes::default() }).unwrap();
    assert_eq!(job.text(), "[a$ncpus]\nnumjobs=3\nsize=4096\n");
    assert!(mistakes(text).contains("$pagesize depends on the machine"), "{}", mistakes(text));
    let arguments = ["--name=a", "--size=$pagesize"].map(str::to_owned);
    let lines = of_arguments(&arguments).unwrap();
    let found = parse(&lines, &Changes::default()).unwrap_err().to_string();
    assert!(found.contains("`$pagesize` is not a size"), "{found}");
}

#[test]
fn create_only_measures_the_writes_that_create_files() {
    let found = streams("[a]\nrw=randread\nsize=32k\ncreate_only=1\n");
    let [(name, stream)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((name.as_str(), stream.direction), ("a", Direction::Write));
    let found = mistakes("[a]\nrw=write\nsize=32k\ncreate_only=1\n");
    assert!(found.contains("creates its files by writing"), "{found}");
    assert_eq!(streams("[a]\nrw=write\nsize=32k\noverwrite=1\ncreate_only=1\n").len(), 1);
    let own = super::stream("[a]\nsize=32k\ncreate_only=1\nnice=5\ncpus_allowed=0\n");
    assert_ne!(own.workers.pin, model::phase::Pin::Free);
    assert_eq!(own.workers.nice, 5);
    for (text, reason) in [
        ("create_only=1\npre_read=1", "remove pre_read"),
        ("create_only=1\nallow_file_create=0", "remove allow_file_create"),
        ("create_only=1\n[b]\nfilename=a.0.0\nsize=32k\nstonewall", "section `b` creates"),
        ("create_only=1\n[b]\nfilename=c:a.0.0\nsize=32k\nnumjobs=2", "section `b` creates"),
        ("create_only=1\n[b]\nfilename=a.0.0\nsize=32k\ncreate_only=1", "the same files"),
    ] {
        let found = mistakes(&format!("[a]\nfilename=a.0.0\nsize=32k\n{text}\n"));
        assert!(found.contains(reason), "{text}: {found}");
    }
}

#[test]
fn a_later_section_writes_files_that_are_only_created() {
    let text = "[a]\nfilename=f\nsize=32k\ncreate_only=1\n\
                [b]\nfilename=f\nrw=write\nsize=32k\nstonewall\n";
    let names: Vec<String> = streams(text).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn directories_are_created_as_fast_as_possible() {
    let text = "[a]\nioengine=dirstat\nnrfiles=8\nfilesize=4k\nthinktime=1s\n\
                file_service_type=random\nnorandommap\nrw=randread\n";
    let phases = work(text);
    let layout = phases.iter().find(|own| own.name == "a.layout").unwrap();
    let Work::Stream(own) = &layout.work else { panic!("{layout:?}") };
    assert_eq!(own.pace, model::phase::Pace::Free);
    assert_eq!(own.files.several().unwrap().order, model::phase::FileOrder::Sequential);
}
