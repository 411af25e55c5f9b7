//! Checks of parameters. Contradictions are rejected before the run, because the engine would
//! reject them during the run. Parameters without effect are reset to their defaults.

use model::{Bytes, Nanos, Value, WorkloadParameters, workload::ValueError};

use crate::load_generator::is_fio;

use super::{SUITE, fio, measured, name, stream, text, touches};

/// Description of a contradiction, and hint.
type Problem = (String, &'static str);

pub(super) fn refine(mut point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    normalize(&mut point);
    let problem = pace(&point)
        .or_else(|| access(&point))
        .or_else(|| files(&point))
        .or_else(|| sizes(&point))
        .or_else(|| engine(&point))
        .or_else(|| flags(&point))
        .or_else(|| verify(&point))
        .or_else(|| load_generator(&point));
    match problem {
        None => Ok(vec![point]),
        Some((message, hint)) => Err(ValueError::new(message).hint(hint)),
    }
}

fn problem(message: &str, hint: &'static str) -> Option<Problem> {
    Some((message.into(), hint))
}

fn set(point: &mut WorkloadParameters, name: &str, word: &str) {
    point.parameters.insert(name.into(), Value::Word(word.into()));
}

fn reads(point: &WorkloadParameters) -> bool {
    point.word("access_pattern") == "trace" || point.word("direction") != "write"
}

fn writes(point: &WorkloadParameters) -> bool {
    point.word("access_pattern") == "trace" || point.word("direction") != "read"
}

/// Replaces different parameters for the same work by the same ones, so that equal workloads are
/// identical.
fn normalize(point: &mut WorkloadParameters) {
    if point.word("direction") == "mixed" {
        match point.fraction("read_fraction") {
            share if share >= 1.0 => set(point, "direction", "read"),
            share if share <= 0.0 => set(point, "direction", "write"),
            _ => {}
        }
    }
    if point.text("block_size_split") == format!("{}:1", point.size("block_size")) {
        point.parameters.insert("block_size_split".into(), Value::Text(String::new()));
    }
    let unused = unused(point);
    point.reset(&SUITE.spec.defaults(), &unused);
}

/// Parameters without effect.
fn unused(point: &WorkloadParameters) -> Vec<&'static str> {
    let mut unused = Vec::new();
    let mut unless = |effective: bool, names: &[&'static str]| {
        if !effective {
            unused.extend_from_slice(names);
        }
    };
    let (access, engine) = (point.word("access_pattern"), point.word("io_engine"));
    unless(access == "strided", &["stride"]);
    unless(access == "zipf", &["zipf_theta"]);
    unless(access == "pareto", &["pareto_h"]);
    unless(access == "hotspot", &["hotspot_data_fraction", "hotspot_access_fraction"]);
    unless(access == "trace", &["trace_file"]);
    unless(access != "trace", &["direction", "read_fraction", "readers"]);
    unless(point.word("direction") == "mixed", &["read_fraction"]);
    unless(point.word("direction") == "separate", &["readers"]);
    let ring = engine == "io_uring";
    unless(ring || engine == "io_submit", &["queue_depth", "submit_batch"]);
    unless(ring, &["fixed_buffers", "sqpoll", "iopoll", "linked_fdatasync", "nop"]);
    unless(engine == "preadv2", &["nowait", "hipri", "uncached"]);
    unless(engine == "mmap", &["madvise"]);
    let writing = writes(point) && touches(point);
    unless(writing, &["end_fsync", "fsync_every", "fsync_call"]);
    unless(point.text("fsync_every") != "0", &["fsync_call"]);
    unless(point.time("think_time") != Nanos(0), &["think_time_every"]);
    unless(point.time("runtime") != Nanos(0), &["ramp_time"]);
    unless(point.count("workers") > 1, &["sharing", "stonewall", "stonewall_time"]);
    unless(!point.flag("o_sync"), &["o_dsync"]);
    unless(reads(point) || name(point) == "copy", &["verify"]);
    unless(reads(point), &["read_first_block"]);
    // A copy always creates its target files.
    unless(name(point) != "copy" && touches(point), &["overwrite"]);
    let data = [
        "direct",
        "o_sync",
        "o_dsync",
        "fsync_after_open",
        "read_first_block",
        "cache",
        "incompressible_fraction",
        "duplicate_fraction",
    ];
    unless(touches(point), &data);
    unless(is_fio(point), &["fio_program"]);
    unused
}

fn pace(point: &WorkloadParameters) -> Option<Problem> {
    let paced = point.text("rate") != "0";
    if paced && point.time("think_time") != Nanos(0) {
        return problem("`rate` and `think_time` exclude each other", "set one of them to 0");
    }
    if !paced && point.word("arrivals") != "closed-loop" {
        return problem(
            "`arrivals` requires `rate`",
            "set `rate` to a value such as \"1000/s\", or `arrivals` to \"closed-loop\"",
        );
    }
    if point.time("runtime") != Nanos(0) && point.count("operations") > 0 {
        return problem(
            "`runtime` and `operations` exclude each other",
            "set `runtime` to \"0s\" or `operations` to 0",
        );
    }
    let unpaced = !paced && point.time("think_time") == Nanos(0);
    let once = point.time("runtime") == Nanos(0) && point.count("operations") == 0;
    let alone = unpaced && once && point.word("stonewall") == "off";
    if point.time("stonewall_time") != Nanos(0) && !alone {
        return problem(
            "`stonewall_time` excludes `runtime`, `operations`, `rate`, `think_time`, and `stonewall`",
            "set `stonewall_time` to \"0s\", or use the default values of the other parameters",
        );
    }
    None
}

fn access(point: &WorkloadParameters) -> Option<Problem> {
    match point.word("access_pattern") {
        "pareto" if !(point.fraction("pareto_h") > 0.0 && point.fraction("pareto_h") < 0.5) => {
            problem("`pareto_h` is out of range", "use a number greater than 0 and less than 0.5")
        }
        "hotspot"
            if !(point.fraction("hotspot_data_fraction") > 0.0
                && point.fraction("hotspot_data_fraction") < 1.0) =>
        {
            problem(
                "`hotspot_data_fraction` is out of range",
                "use a number greater than 0 and less than 1",
            )
        }
        "append" if reads(point) => problem(
            "access pattern `append` requires writes",
            "set `direction` to \"write\", or use another `access_pattern`",
        ),
        "append" if point.word("io_engine") == "mmap" => {
            problem("mmap cannot append", "use another `io_engine`")
        }
        "append" if point.time("runtime") != Nanos(0) => problem(
            "appending for a given time may fill the filesystem",
            "set `runtime` to \"0s\" and `operations` to a number",
        ),
        "append" if point.count("queue_depth") > 1 => {
            problem("appends in flight are not ordered", "set `queue_depth` to 1")
        }
        "trace" if point.text("trace_file").is_empty() => {
            problem("access pattern `trace` requires `trace_file`", "set `trace_file` to a path")
        }
        _ => None,
    }
}

fn files(point: &WorkloadParameters) -> Option<Problem> {
    let workers = point.count("workers");
    let apart = point.word("direction") == "separate";
    if apart && (workers < 2 || point.count("readers") >= workers) {
        return problem(
            "`separate` requires at least one reader and one writer",
            "use at least 2 `workers`, and fewer `readers` than `workers`",
        );
    }
    if !point.flag("overwrite") && reads(point) {
        return problem(
            "`overwrite` = false creates new files, which cannot be read",
            "set `overwrite` to true, or `direction` to \"write\"",
        );
    }
    if point.word("cache") == "warm" && !point.flag("overwrite") {
        return problem("a warm cache requires existing files", "set `cache` to \"unchanged\"");
    }
    None
}

fn sizes(point: &WorkloadParameters) -> Option<Problem> {
    let (file, block) = (point.size("file_size"), point.size("block_size"));
    let uneven = |(size, _): &(Bytes, u32)| !size.0.is_multiple_of(block.0);
    if let Some((size, _)) = text::sizes(point.text("block_size_split")).find(uneven) {
        let message =
            format!("{size} in `block_size_split` is not a multiple of `block_size`, {block}");
        return Some((message, "set `block_size` to a common divisor of all sizes"));
    }
    let interleaved = point.word("sharing") == "interleaved";
    if interleaved && !point.text("block_size_split").is_empty() {
        let message = "interleaved blocks have one size".to_owned();
        return Some((message, "remove `block_size_split`, or set `sharing` to \"segmented\""));
    }
    if interleaved && matches!(point.word("access_pattern"), "append" | "trace") {
        let message = format!("`{}` does not interleave blocks", point.word("access_pattern"));
        return Some((message, "set `sharing` to \"segmented\", or use another `access_pattern`"));
    }
    let longest = stream(point, 0).longest_operation();
    let part = match point.word("sharing") {
        "segmented" | "interleaved" => Bytes(file.0 / point.count("workers")),
        _ => file,
    };
    if longest > part {
        let what = if part == file { "a file" } else { "a segment" };
        let message = format!("a block of {longest} does not fit into {what} of {part}");
        return Some((message, "use larger files, smaller blocks, or fewer workers"));
    }
    if point.flag("direct") && !block.0.is_multiple_of(512) {
        let message = format!("direct I/O requires whole sectors; `block_size` is {block}");
        return Some((message, "use a multiple of 512 (4KiB suits most devices)"));
    }
    None
}

fn engine(point: &WorkloadParameters) -> Option<Problem> {
    let engine = point.word("io_engine");
    let durable = point.flag("o_sync") || point.flag("o_dsync");
    match engine {
        "stdio" if point.flag("direct") || durable => problem(
            "stdio does not support O_DIRECT, O_SYNC, and O_DSYNC",
            "set `direct`, `o_sync`, and `o_dsync` to false, or use another `io_engine`",
        ),
        "stdio" if !point.text("block_size_split").is_empty() => problem(
            "stdio has a buffer of one block",
            "remove `block_size_split`, or use another `io_engine`",
        ),
        "mmap" if point.flag("direct") => {
            problem("mmap does not support direct I/O", "set `direct` to false")
        }
        "mmap" if durable => problem(
            "mmap does not support O_SYNC and O_DSYNC",
            "set `o_sync` and `o_dsync` to false, and use `fsync_every`",
        ),
        "io_uring" | "io_submit" if point.count("submit_batch") > point.count("queue_depth") => {
            problem("`submit_batch` is larger than `queue_depth`", "use at most `queue_depth`")
        }
        "copy_file_range" | "sendfile" | "splice" if point.word("direction") != "write" => {
            problem("copy engines require writes", "set `direction` to \"write\"")
        }
        "copy_file_range" | "sendfile" | "splice"
            if matches!(point.word("access_pattern"), "append" | "trace") =>
        {
            problem(
                "copy engines do not support this access pattern",
                "use another `access_pattern`",
            )
        }
        _ => None,
    }
}

fn flags(point: &WorkloadParameters) -> Option<Problem> {
    let direct = point.flag("direct");
    if (point.flag("iopoll") || point.flag("hipri")) && !direct {
        return problem("polling requires direct I/O", "set `direct` to true");
    }
    if point.flag("uncached") && direct {
        return problem("`uncached` and `direct` exclude each other", "set one of them to false");
    }
    if point.flag("linked_fdatasync") && point.flag("iopoll") {
        return problem(
            "fdatasync does not support polling",
            "set `iopoll` or `linked_fdatasync` to false",
        );
    }
    if point.flag("linked_fdatasync") && !writes(point) {
        return problem("`linked_fdatasync` requires writes", "set `linked_fdatasync` to false");
    }
    None
}

fn verify(point: &WorkloadParameters) -> Option<Problem> {
    if !point.flag("verify") {
        return None;
    }
    let copy = name(point) == "copy";
    if writes(point) && !copy {
        return problem(
            "`verify` does not support writes",
            "use `verify` with a workload that only reads",
        );
    }
    if !touches(point) {
        return problem("`verify` requires reads", "set `verify` to false");
    }
    if copy && point.word("sharing") == "per-worker" && point.count("workers") > 1 {
        return problem(
            "`verify` cannot distinguish copies of several files",
            "set `sharing` to \"segmented\", or use one worker",
        );
    }
    if point.size("block_size") < Bytes(64) {
        return problem("blocks below 64 bytes have no headers", "use a larger `block_size`");
    }
    None
}

fn load_generator(point: &WorkloadParameters) -> Option<Problem> {
    if !is_fio(point) {
        return None;
    }
    let why = fio::refusal(&measured(point, stream(point, 0)))?;
    Some((
        format!("fio cannot perform these operations: {why}"),
        "change these parameters, or set `load_generator` to \"fslab\"",
    ))
}
