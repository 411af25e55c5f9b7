//! Single-stream mode: one file, every test a pass over it, in the original's order.

use model::{
    Phase,
    phase::{Access, Cache, Direction, Interface, Presence, Role, Stream},
};

use super::{Base, STRIDE};

pub(super) fn phases(base: &Base<'_>) -> Vec<Phase> {
    let mut phases = Vec::new();
    // Only these three make the file themselves; whatever else comes first needs it laid out.
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
                    overwrite(base, stream, Access::SameRecord);
                }));
            }
            "strided-read" => {
                phases.push(base.measure("strided-read", base.cache(), |stream| {
                    stream.access = Access::Stride { records: STRIDE };
                }));
            }
            "fwrite" => pair(base, &mut phases, ["fwrite", "frewrite"], |stream, _| {
                stream.interface = Interface::Stdio;
                stream.direction = Direction::Write;
                stream.open.presence = Presence::Any;
            }),
            "fread" => pair(base, &mut phases, ["fread", "freread"], |stream, _| {
                stream.interface = Interface::Stdio;
                stream.open.fsync = true;
            }),
            "pwrite" => pair(base, &mut phases, ["pwrite", "repwrite"], |stream, _| {
                stream.interface = Interface::Offset;
                stream.direction = Direction::Write;
                stream.open.presence = Presence::Any;
                stream.open.sync = base.flag("sync");
            }),
            "pread" => pair(base, &mut phases, ["pread", "repread"], |stream, _| {
                stream.interface = Interface::Offset;
            }),
            _ => {}
        }
    }
    phases
}

/// Two passes of one kind; the second finds the cache as the first left it.
fn pair(
    base: &Base<'_>,
    phases: &mut Vec<Phase>,
    names: [&str; 2],
    change: impl Fn(&mut Stream, usize),
) {
    let passes = if base.flag("retest") { 2 } else { 1 };
    for (pass, name) in names.into_iter().enumerate().take(passes) {
        let cache = if pass == 0 { base.cache() } else { Cache::AsLeft };
        phases.push(base.measure(name, cache, |stream| change(stream, pass)));
    }
}

fn write(base: &Base<'_>, stream: &mut Stream, pass: usize) {
    stream.direction = Direction::Write;
    stream.open.presence = if pass == 0 { Presence::Fresh } else { Presence::Existing };
    stream.open.sync = base.flag("sync");
    stream.open.fsync = true;
}

fn read(base: &Base<'_>, stream: &mut Stream) {
    stream.open.fsync = true;
    stream.open.prime = base.compat;
}

fn overwrite(base: &Base<'_>, stream: &mut Stream, access: Access) {
    stream.direction = Direction::Write;
    stream.access = access;
    stream.open.presence = Presence::Any;
    stream.open.sync = base.flag("sync");
}

/// One reading and one writing pass in the same order, each of its own.
fn random(base: &Base<'_>, phases: &mut Vec<Phase>) {
    phases.push(base.measure("random-read", base.cache(), |stream| {
        stream.access = Access::Shuffled;
        stream.open.sync = base.flag("sync");
    }));
    phases.push(base.measure("random-write", base.cache(), |stream| {
        overwrite(base, stream, Access::Shuffled);
    }));
}

fn backward(base: &Base<'_>, phases: &mut Vec<Phase>) {
    let change = |stream: &mut Stream| stream.access = Access::Backward;
    phases.push(base.measure("backward-read", base.cache(), change));
    // The original runs a second pass and reports the first.
    if base.compat && base.flag("retest") {
        let mut again = base.measure("backward-read-again", Cache::AsLeft, change);
        again.role = Role::Prepare;
        phases.push(again);
    }
}
