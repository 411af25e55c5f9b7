//! Which points are measured: contradictions are refused with a cure, as the engine would refuse
//! them in the middle of a run, and parameters without effect get their defaults.

use model::{Bytes, Nanos, Point, Value, workload::ValueError};

use super::{SUITE, name, stream, text, touches};

/// What contradicts what, and what to change.
type Problem = (String, &'static str);

pub(super) fn refine(mut point: Point) -> Result<Vec<Point>, ValueError> {
    settle(&mut point);
    let problem = pace(&point)
        .or_else(|| access(&point))
        .or_else(|| files(&point))
        .or_else(|| sizes(&point))
        .or_else(|| engine(&point))
        .or_else(|| flags(&point))
        .or_else(|| verify(&point));
    match problem {
        None => Ok(vec![point]),
        Some((message, cure)) => Err(ValueError::new(message).cure(cure)),
    }
}

fn problem(message: &str, cure: &'static str) -> Option<Problem> {
    Some((message.into(), cure))
}

fn set(point: &mut Point, name: &str, word: &str) {
    point.parameters.insert(name.into(), Value::Word(word.into()));
}

fn reads(point: &Point) -> bool {
    point.word("access") == "replay" || point.word("direction") != "write"
}

fn writes(point: &Point) -> bool {
    point.word("access") == "replay" || point.word("direction") != "read"
}

/// Equal work gets equal parameters.
fn settle(point: &mut Point) {
    if point.word("direction") == "mixed" {
        match point.share("read_share") {
            share if share >= 1.0 => set(point, "direction", "read"),
            share if share <= 0.0 => set(point, "direction", "write"),
            _ => {}
        }
    }
    if point.text("lengths") == format!("{}:1", point.size("record")) {
        point.parameters.insert("lengths".into(), Value::Text(String::new()));
    }
    let idle = idle(point);
    point.settle(&SUITE.spec.defaults(), &idle);
}

/// The parameters that change nothing at this point.
fn idle(point: &Point) -> Vec<&'static str> {
    let mut idle = Vec::new();
    let mut unless = |effective: bool, names: &[&'static str]| {
        if !effective {
            idle.extend_from_slice(names);
        }
    };
    let (access, engine) = (point.word("access"), point.word("engine"));
    unless(access == "strided", &["stride"]);
    unless(access == "zipf", &["theta"]);
    unless(access == "pareto", &["pareto_share"]);
    unless(access == "hot", &["hot_space", "hot_visits"]);
    unless(access == "replay", &["list"]);
    unless(access != "replay", &["direction", "read_share", "readers"]);
    unless(point.word("direction") == "mixed", &["read_share"]);
    unless(point.word("direction") == "apart", &["readers"]);
    let ring = engine == "io_uring";
    unless(ring, &["depth", "batch", "registered", "sqpoll", "iopoll", "linked_sync", "nop"]);
    unless(engine == "preadv2", &["nowait", "hipri", "uncached"]);
    unless(engine == "mmap", &["advice"]);
    let writing = writes(point) && touches(point);
    unless(writing, &["flush", "flush_every", "flush_call"]);
    unless(point.text("flush_every") != "0", &["flush_call"]);
    unless(point.time("think") != Nanos(0), &["think_every"]);
    unless(point.time("time") != Nanos(0), &["ramp"]);
    unless(point.count("workers") > 1, &["files", "stonewall"]);
    unless(!point.flag("sync"), &["dsync"]);
    unless(reads(point) || name(point) == "copy", &["verify"]);
    unless(reads(point), &["prime"]);
    // A copy always makes its files.
    unless(name(point) != "copy" && touches(point), &["fresh"]);
    let data = ["direct", "sync", "dsync", "open_fsync", "prime", "cache", "entropy", "duplicates"];
    unless(touches(point), &data);
    idle
}

fn pace(point: &Point) -> Option<Problem> {
    let paced = point.text("rate") != "0";
    if paced && point.time("think") != Nanos(0) {
        return problem(
            "`rate` and `think` both say when operations begin",
            "set one of them to 0",
        );
    }
    if !paced && point.word("arrivals") != "closed" {
        return problem(
            "`arrivals` says how operations are spread, and there is no `rate`",
            "give a rate such as \"1000/s\", or set arrivals to \"closed\"",
        );
    }
    if point.time("time") != Nanos(0) && point.count("operations") > 0 {
        return problem(
            "`time` and `operations` both say when the loop ends",
            "set time to \"0s\" or operations to 0",
        );
    }
    None
}

fn access(point: &Point) -> Option<Problem> {
    match point.word("access") {
        "pareto" if !(point.share("pareto_share") > 0.0 && point.share("pareto_share") < 0.5) => {
            problem("`pareto_share` is out of bounds", "use a number above 0 and below 0.5")
        }
        "hot" if !(point.share("hot_space") > 0.0 && point.share("hot_space") < 1.0) => {
            problem("the hot part is no part of the file", "use a `hot_space` above 0 and below 1")
        }
        "append" if reads(point) => {
            problem("an append is a write", "set direction to \"write\", or take another access")
        }
        "append" if point.word("engine") == "mmap" => {
            problem("a mapping cannot grow its file", "append with another engine")
        }
        "append" if point.time("time") != Nanos(0) => problem(
            "appending for a time may fill the filesystem",
            "set time to \"0s\" and `operations` to how many",
        ),
        "append" if point.count("depth") > 1 => {
            problem("appends in flight have no order", "use a depth of 1")
        }
        "replay" if point.text("list").is_empty() => {
            problem("replay has no `list` to go through", "give the path of a list")
        }
        _ => None,
    }
}

fn files(point: &Point) -> Option<Problem> {
    let workers = point.count("workers");
    let apart = point.word("direction") == "apart";
    if apart && (workers < 2 || point.count("readers") >= workers) {
        return problem(
            "there are no workers both to read and to write",
            "use 2 workers or more, and fewer `readers` than workers",
        );
    }
    if point.flag("fresh") && reads(point) {
        return problem(
            "it reads files that are not there yet",
            "set fresh to false, or direction to \"write\"",
        );
    }
    if point.word("cache") == "warm" && point.flag("fresh") {
        return problem("there are no files to read into the cache", "set cache to \"as-left\"");
    }
    None
}

fn sizes(point: &Point) -> Option<Problem> {
    let (file, record) = (point.size("file"), point.size("record"));
    let uneven = |(size, _): &(Bytes, u32)| !size.0.is_multiple_of(record.0);
    if let Some((size, _)) = text::sizes(point.text("lengths")).find(uneven) {
        let message = format!("a length of {size} is not a multiple of the record, {record}");
        return Some((message, "make the record a common divisor of all lengths"));
    }
    let longest = stream(point, 0).longest();
    let part = match point.word("files") {
        "split" => Bytes(file.0 / point.count("workers")),
        _ => file,
    };
    if longest > part {
        let what = if part == file { "a file" } else { "a worker's part" };
        let message = format!("an operation of {longest} does not fit into {what} of {part}");
        return Some((message, "use larger files, shorter operations, or fewer workers"));
    }
    if point.flag("direct") && !record.0.is_multiple_of(512) {
        let message = format!("direct I/O moves whole sectors, which {record} is not");
        return Some((message, "use a record that is a multiple of 512 (4KiB suits most devices)"));
    }
    None
}

fn engine(point: &Point) -> Option<Problem> {
    let engine = point.word("engine");
    let durable = point.flag("sync") || point.flag("dsync");
    match engine {
        "stdio" if point.flag("direct") || durable => problem(
            "streams of the C library open without O_DIRECT, O_SYNC, and O_DSYNC",
            "set direct, sync, and dsync to false, or use another engine",
        ),
        "stdio" if !point.text("lengths").is_empty() => problem(
            "streams of the C library have a buffer of one record",
            "leave `lengths` empty, or use another engine",
        ),
        "mmap" if point.flag("direct") => {
            problem("a mapping is the page cache", "set direct to false")
        }
        "mmap" if durable => problem(
            "stores into a mapping do not heed O_SYNC and O_DSYNC",
            "set sync and dsync to false, and flush with `flush_every`",
        ),
        "io_uring" if point.count("batch") > point.count("depth") => {
            problem("the batch is larger than the queue", "use a batch within 0..=depth")
        }
        "copy_file_range" | "sendfile" | "splice" if point.word("direction") != "write" => {
            problem("a copy is a write", "set direction to \"write\"")
        }
        "copy_file_range" | "sendfile" | "splice"
            if matches!(point.word("access"), "append" | "replay") =>
        {
            problem("a copy goes to where its data come from", "take another access")
        }
        _ => None,
    }
}

fn flags(point: &Point) -> Option<Problem> {
    let direct = point.flag("direct");
    if (point.flag("iopoll") || point.flag("hipri")) && !direct {
        return problem("polling for completions is for direct I/O", "set direct to true");
    }
    if point.flag("uncached") && direct {
        return problem(
            "`uncached` is about the page cache, which direct I/O goes around",
            "set one of them to false",
        );
    }
    if point.flag("linked_sync") && point.flag("iopoll") {
        return problem("a sync cannot be polled for", "set iopoll or linked_sync to false");
    }
    if point.flag("linked_sync") && !writes(point) {
        return problem("there are no writes to link with a flush", "set linked_sync to false");
    }
    None
}

fn verify(point: &Point) -> Option<Problem> {
    if !point.flag("verify") {
        return None;
    }
    let copy = name(point) == "copy";
    if writes(point) && !copy {
        return problem("it verifies while it writes", "verify a workload that only reads");
    }
    if !touches(point) {
        return problem("nothing is read that could be verified", "set verify to false");
    }
    if copy && point.word("files") == "own" && point.count("workers") > 1 {
        return problem(
            "copies of several files cannot be told from each other",
            "set files to \"split\", or verify with one worker",
        );
    }
    if point.size("record") < Bytes(64) {
        return problem("blocks below 64 bytes have no headers", "use larger records");
    }
    None
}
