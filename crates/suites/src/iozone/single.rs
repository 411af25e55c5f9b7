//! Single-stream mode: one file, one pass per test, in the order of IOzone.

use model::{
    Phase,
    phase::{AccessPattern, Cache, Direction, FileCreation, IoEngineKind, Role, Stream},
};

use super::{Base, STRIDE};

pub(super) fn phases(base: &Base<'_>) -> Vec<Phase> {
    let mut phases = Vec::new();
    // Only these three tests create the file. If another test is the first one, it requires a
    // layout.
    let creates = ["write", "fwrite", "pwrite"];
    let first = super::TESTS.iter().find(|test| base.has(test));
    if first.is_some_and(|test| !creates.contains(test)) {
        phases.push(base.layout());
    }
    for test in super::TESTS.iter().filter(|test| base.has(test)) {
        match *test {
            "write" => pair(base, &mut phases, ["write", "rewrite"], |stream, pass| {
                write(base, stream, pass);
            }),
            "read" => pair(base, &mut phases, ["read", "reread"], |stream, _| read(base, stream)),
            "random" => random(base, &mut phases),
            "backward-read" => backward(base, &mut phases),
            "record-rewrite" => {
                phases.push(base.measure("record-rewrite", base.cache(), |stream| {
                    overwrite(base, stream, AccessPattern::SameBlock);
                }));
            }
            "strided-read" => {
                phases.push(base.measure("strided-read", base.cache(), |stream| {
                    stream.access_pattern = AccessPattern::Stride { blocks: STRIDE };
                }));
            }
            "fwrite" => pair(base, &mut phases, ["fwrite", "frewrite"], |stream, _| {
                stream.io_engine = IoEngineKind::Stdio;
                stream.direction = Direction::Write;
                stream.open.creation = FileCreation::Any;
            }),
            "fread" => pair(base, &mut phases, ["fread", "freread"], |stream, _| {
                stream.io_engine = IoEngineKind::Stdio;
                stream.open.fsync = true;
            }),
            "pwrite" => pair(base, &mut phases, ["pwrite", "repwrite"], |stream, _| {
                stream.io_engine = IoEngineKind::Offset;
                stream.direction = Direction::Write;
                stream.open.creation = FileCreation::Any;
                base.synchronous(stream);
            }),
            "pread" => pair(base, &mut phases, ["pread", "repread"], |stream, _| {
                stream.io_engine = IoEngineKind::Offset;
            }),
            _ => {}
        }
    }
    phases
}

/// Adds the two passes of a test. The cache is unchanged between them.
fn pair(
    base: &Base<'_>,
    phases: &mut Vec<Phase>,
    names: [&str; 2],
    change: impl Fn(&mut Stream, usize),
) {
    let passes = if base.flag("second_pass") { 2 } else { 1 };
    for (pass, name) in names.into_iter().enumerate().take(passes) {
        let cache = if pass == 0 { base.cache() } else { Cache::Unchanged };
        phases.push(base.measure(name, cache, |stream| change(stream, pass)));
    }
}

fn write(base: &Base<'_>, stream: &mut Stream, pass: usize) {
    stream.direction = Direction::Write;
    stream.open.creation = if pass == 0 { FileCreation::Fresh } else { FileCreation::Existing };
    base.synchronous(stream);
    stream.open.fsync = true;
}

fn read(base: &Base<'_>, stream: &mut Stream) {
    stream.open.fsync = true;
    stream.open.read_first_block = base.compat;
}

fn overwrite(base: &Base<'_>, stream: &mut Stream, access: AccessPattern) {
    stream.direction = Direction::Write;
    stream.access_pattern = access;
    stream.open.creation = FileCreation::Any;
    base.synchronous(stream);
}

/// Adds a read pass and a write pass over the same order of blocks.
fn random(base: &Base<'_>, phases: &mut Vec<Phase>) {
    phases.push(base.measure("random-read", base.cache(), |stream| {
        stream.access_pattern = AccessPattern::IozonePermutation;
        base.synchronous(stream);
    }));
    phases.push(base.measure("random-write", base.cache(), |stream| {
        overwrite(base, stream, AccessPattern::IozonePermutation);
    }));
}

fn backward(base: &Base<'_>, phases: &mut Vec<Phase>) {
    let change = |stream: &mut Stream| stream.access_pattern = AccessPattern::Backward;
    phases.push(base.measure("backward-read", base.cache(), change));
    // IOzone runs a second pass, but reports the first one.
    if base.compat && base.flag("second_pass") {
        let mut again = base.measure("backward-read-again", Cache::Unchanged, change);
        again.role = Role::Prepare;
        phases.push(again);
    }
}
