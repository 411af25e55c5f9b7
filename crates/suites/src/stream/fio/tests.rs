use expect_test::{Expect, expect};
use model::{
    WorkloadParameters,
    phase::{Open, SyncEvery, WorkLimit},
};

use super::*;
use crate::stream::table;

fn point(settings: &[(&str, &str)]) -> WorkloadParameters {
    let mut point = table::SPEC.defaults();
    for (name, text) in settings {
        let kind = table::SPEC.parameter(name).unwrap().kind;
        point.parameters.insert((*name).into(), kind.read(text).unwrap());
    }
    crate::refine(point).unwrap().remove(0)
}

/// Options of the measured job, in one line.
fn shown(settings: &[(&str, &str)], expected: Expect) {
    let phases = crate::stream::phases(&point(settings), 7 << 33);
    let Work::Stream(stream) = &phases.last().unwrap().work else { panic!("a stream") };
    let text = match fio_job(stream) {
        Ok(job) => {
            let options = job.options.iter();
            options.map(|(option, value)| format!("{option}={value}")).collect::<Vec<_>>()
        }
        Err(reasons) => reasons.iter().map(|reason| (*reason).to_owned()).collect(),
    };
    expected.assert_eq(&text.join(" "));
}

#[test]
fn jobs_have_the_operations_of_the_stream() {
    shown(
        &[],
        expect![
            "rw=read bs=4k filesize=512m size=512m ioengine=psync direct=0 filename_format=file.$jobnum numjobs=1 thread=1 invalidate=0 fadvise_hint=0 randseed=7"
        ],
    );
    shown(
        &[
            ("direction", "mixed"),
            ("access_pattern", "zipf"),
            ("workers", "4"),
            ("sharing", "segmented"),
            ("io_engine", "io_uring"),
            ("queue_depth", "8"),
            ("direct", "true"),
            ("runtime", "1500ms"),
            ("end_fsync", "none"),
        ],
        expect![
            "rw=randrw rwmixread=70 random_distribution=zipf:0.99 norandommap=1 bs=4k filesize=512m size=128m offset_increment=128m ioengine=io_uring iodepth=8 iodepth_batch_submit=1 iodepth_batch_complete_min=1 iodepth_batch_complete_max=8 fixedbufs=1 registerfiles=1 direct=1 filename=file overwrite=1 time_based=1 runtime=1500ms numjobs=4 thread=1 invalidate=0 fadvise_hint=0 randseed=7 group_reporting=1"
        ],
    );
    shown(
        &[
            ("direction", "write"),
            ("overwrite", "false"),
            ("fsync_every", "1MiB"),
            ("block_size", "64KiB"),
            ("worker_type", "process"),
            ("rate", "1000/s"),
            ("arrivals", "poisson"),
            ("io_priority", "be-2"),
            ("incompressible_fraction", "0.5"),
        ],
        expect![
            "rw=write bs=64k filesize=512m size=512m ioengine=psync direct=0 filename_format=file.$jobnum fallocate=none fdatasync=16 end_fsync=1 rate_iops=1000 rate_process=poisson numjobs=1 prioclass=2 prio=2 refill_buffers=1 buffer_compress_percentage=50 buffer_compress_chunk=4096 invalidate=0 fadvise_hint=0 randseed=7"
        ],
    );
    shown(
        &[
            ("block_size_split", "4KiB:3,64KiB:1"),
            ("access_pattern", "hotspot"),
            ("think_time", "5us"),
            ("o_sync", "true"),
        ],
        expect![
            "rw=randread random_distribution=zoned:90/10:10/90 norandommap=1 bssplit=4k/75:64k/25 blockalign=4k filesize=512m size=512m ioengine=psync direct=0 sync=sync filename_format=file.$jobnum thinktime=5us thinktime_blocks=1 number_ios=131072 io_size=8g numjobs=1 thread=1 invalidate=0 fadvise_hint=0 randseed=7"
        ],
    );
}

#[test]
fn properties_that_fio_lacks_are_named() {
    shown(
        &[("access_pattern", "backward"), ("verify", "true")],
        expect![
            "verify: fio does not know the block headers of fslab access_pattern: fio has no such order"
        ],
    );
    shown(
        &[("direction", "mixed"), ("read_fraction", "0.333")],
        expect![
            "direction mixed, access_pattern sequential: fio has a position per direction read_fraction: fio has whole percentages"
        ],
    );
    shown(
        &[("block_size_split", "4KiB:1,8KiB:2")],
        expect!["block_size_split: fio has whole percentages"],
    );
    shown(
        &[("io_engine", "stdio"), ("pin", "true")],
        expect!["io_engine: fio has no such engine pin: the CPUs of the process are not known"],
    );
}

#[test]
fn fio_is_refused_if_its_time_is_not_comparable() {
    let refused = |settings: &[(&str, &str)]| {
        let mut point = point(settings);
        let kind = table::SPEC.parameter("load_generator").unwrap().kind;
        point.parameters.insert("load_generator".into(), kind.read("fio").unwrap());
        crate::refine(point).map_err(|error| error.to_string()).err()
    };
    assert_eq!(refused(&[]), None);
    let write = ("direction", "write");
    assert_eq!(refused(&[write]), None);
    let timed = [write, ("runtime", "1s")];
    assert!(refused(&timed).unwrap().contains("end_fsync"));
    assert_eq!(refused(&[timed[0], timed[1], ("end_fsync", "none")]), None);
}

/// Measured stream of suite `fio` for the job file of these parameters.
fn read_back(settings: &[(&str, &str)]) -> (Stream, Stream) {
    let measured = |phases: Vec<Phase>| {
        let streams = phases.into_iter().rev().find_map(|phase| {
            let Work::Stream(stream) = phase.work else { return None };
            Some(stream)
        });
        streams.unwrap()
    };
    let phases = crate::stream::phases(&point(settings), 7 << 33);
    let text = fio_jobs(&phases[phases.len() - 1..]).unwrap();
    let mut job = crate::fio::SUITE.spec.defaults();
    job.parameters.insert("text".into(), model::Value::Text(text.clone()));
    let job = (crate::fio::SUITE.refine)(job).unwrap_or_else(|error| panic!("{error}: {text}"));
    (measured(phases), measured((crate::fio::SUITE.phases)(&job[0], 7)))
}

#[test]
fn exported_jobs_are_read_back_as_the_same_work() {
    let cases: [&[(&str, &str)]; 8] = [
        &[],
        &[("access_pattern", "random"), ("direct", "true"), ("workers", "3")],
        &[("access_pattern", "permutation"), ("runtime", "2s"), ("ramp_time", "100ms")],
        &[("io_engine", "io_uring"), ("queue_depth", "8"), ("submit_batch", "4")],
        &[("io_engine", "io_submit"), ("queue_depth", "16"), ("submit_batch", "2")],
        &[("direction", "write"), ("fsync_every", "4"), ("o_dsync", "true"), ("operations", "100")],
        &[
            ("direction", "mixed"),
            ("access_pattern", "zipf"),
            ("sharing", "shared"),
            ("workers", "2"),
        ],
        &[
            ("direction", "write"),
            ("rate", "50/s"),
            ("arrivals", "poisson"),
            ("worker_type", "process"),
        ],
    ];
    for settings in cases {
        let (own, read) = read_back(settings);
        let expected = Stream {
            files: read.files.clone(),
            open: Open { creation: read.open.creation, ..own.open },
            seed: read.seed,
            file_handling: read.file_handling,
            sync_every: own.sync_every.map(|every| SyncEvery { before_next: true, ..every }),
            // fio has an amount of work instead of a number of operations.
            bound: if let Bound::Ops(ops) = own.bound {
                Bound::Amount(WorkLimit { ops, ..WorkLimit::UNLIMITED })
            } else {
                own.bound
            },
            ..own.clone()
        };
        assert_eq!(read, expected, "{settings:?}");
        assert_eq!(own.files.count(own.workers.count), read.files.count(own.workers.count));
        assert_eq!(own.files.name(0), read.files.name(0), "{settings:?}");
    }
}
