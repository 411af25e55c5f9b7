//! Throughput mode: several workers, each with a file of its own, start together.

use model::{
    Phase,
    phase::{Access, Cache, Direction, Interface, Presence, Stonewall, Stream},
};

use super::{Base, STRIDE};

/// One test of this mode.
struct Test {
    /// The word of `tests` that selects it.
    selects: &'static str,
    name: &'static str,
    second: bool,
    direction: Direction,
    access: Access,
    stonewall: Stonewall,
    interface: Option<Interface>,
}

const fn test(selects: &'static str, name: &'static str, direction: Direction) -> Test {
    let stonewall = Stonewall::Stop;
    let access = Access::Sequential;
    Test { selects, name, second: false, direction, access, stonewall, interface: None }
}

/// In the original's order. Whoever makes or spoils data later tests need finishes uncounted;
/// readers and rewriters stop; stdio knows no stonewall.
const ORDER: &[Test] = &[
    Test { stonewall: Stonewall::Finish, ..test("write", "initial-write", Direction::Write) },
    Test { second: true, ..test("write", "rewrite", Direction::Write) },
    test("read", "read", Direction::Read),
    Test { second: true, ..test("read", "reread", Direction::Read) },
    Test { access: Access::Backward, ..test("backward-read", "backward-read", Direction::Read) },
    Test {
        access: Access::Stride { records: STRIDE },
        ..test("strided-read", "strided-read", Direction::Read)
    },
    Test { access: Access::Shuffled, ..test("random", "random-read", Direction::Read) },
    Test { access: Access::Shuffled, ..test("mixed", "mixed", Direction::Alternate) },
    Test {
        access: Access::Shuffled,
        stonewall: Stonewall::Finish,
        ..test("random", "random-write", Direction::Write)
    },
    Test {
        stonewall: Stonewall::Finish,
        interface: Some(Interface::Offset),
        ..test("pwrite", "pwrite", Direction::Write)
    },
    Test { interface: Some(Interface::Offset), ..test("pread", "pread", Direction::Read) },
    Test {
        stonewall: Stonewall::Off,
        interface: Some(Interface::Stdio),
        ..test("fwrite", "fwrite", Direction::Write)
    },
    Test {
        stonewall: Stonewall::Off,
        interface: Some(Interface::Stdio),
        ..test("fread", "fread", Direction::Read)
    },
];

pub(super) fn phases(base: &Base<'_>) -> Vec<Phase> {
    let selected = |test: &&Test| base.has(test.selects) && (!test.second || base.flag("retest"));
    let tests: Vec<&Test> = ORDER.iter().filter(selected).collect();
    let mut phases = Vec::new();
    let creates = ["initial-write", "pwrite", "fwrite"];
    if tests.first().is_some_and(|test| !creates.contains(&test.name)) {
        phases.push(base.layout());
    }
    for test in tests {
        let cache = if test.second { Cache::AsLeft } else { base.cache() };
        phases.push(base.measure(test.name, cache, |stream| shape(base, test, stream)));
    }
    phases
}

fn shape(base: &Base<'_>, test: &Test, stream: &mut Stream) {
    stream.direction = match (test.direction, base.point.count("mixed_readers")) {
        (Direction::Alternate, readers @ 1..) => {
            Direction::FirstRead(u32::try_from(readers).unwrap_or(u32::MAX))
        }
        (direction, _) => direction,
    };
    stream.access = test.access;
    stream.interface = test.interface.unwrap_or(stream.interface);
    stream.workers.stonewall = if base.flag("stonewall") { test.stonewall } else { Stonewall::Off };
    if test.direction == Direction::Write {
        stream.open.presence = Presence::Any;
    }
    stream.open.sync = base.flag("sync") && test.interface != Some(Interface::Stdio);
    stream.open.prime = base.compat && matches!(test.name, "read" | "reread");
}
