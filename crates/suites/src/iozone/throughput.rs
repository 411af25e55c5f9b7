//! Throughput mode: several workers start together, each with a separate file.

use model::{
    Phase,
    phase::{AccessPattern, Cache, Direction, FileCreation, IoEngineKind, Stonewall, Stream},
};

use super::{Base, STRIDE};

/// Test of throughput mode.
struct Test {
    /// Value of the parameter `tests` that selects the test.
    selects: &'static str,
    name: &'static str,
    second: bool,
    direction: Direction,
    access: AccessPattern,
    stonewall: Stonewall,
    interface: Option<IoEngineKind>,
}

const fn test(selects: &'static str, name: &'static str, direction: Direction) -> Test {
    let stonewall = Stonewall::Stop;
    let access = AccessPattern::Sequential;
    Test { selects, name, second: false, direction, access, stonewall, interface: None }
}

/// Tests in the order of IOzone. When the first worker finishes, the other workers complete their
/// files without measurement if they write data for later tests; otherwise they stop. This does not
/// apply to stdio tests, in which all workers finish.
const ORDER: &[Test] = &[
    Test { stonewall: Stonewall::Finish, ..test("write", "initial-write", Direction::Write) },
    Test { second: true, ..test("write", "rewrite", Direction::Write) },
    test("read", "read", Direction::Read),
    Test { second: true, ..test("read", "reread", Direction::Read) },
    Test {
        access: AccessPattern::Backward,
        ..test("backward-read", "backward-read", Direction::Read)
    },
    Test {
        access: AccessPattern::Stride { blocks: STRIDE },
        ..test("strided-read", "strided-read", Direction::Read)
    },
    Test {
        access: AccessPattern::IozonePermutation,
        ..test("random", "random-read", Direction::Read)
    },
    Test {
        access: AccessPattern::IozonePermutation,
        ..test("mixed", "mixed", Direction::Alternate)
    },
    Test {
        access: AccessPattern::IozonePermutation,
        stonewall: Stonewall::Finish,
        ..test("random", "random-write", Direction::Write)
    },
    Test {
        stonewall: Stonewall::Finish,
        interface: Some(IoEngineKind::Offset),
        ..test("pwrite", "pwrite", Direction::Write)
    },
    Test { interface: Some(IoEngineKind::Offset), ..test("pread", "pread", Direction::Read) },
    Test {
        stonewall: Stonewall::Off,
        interface: Some(IoEngineKind::Stdio),
        ..test("fwrite", "fwrite", Direction::Write)
    },
    Test {
        stonewall: Stonewall::Off,
        interface: Some(IoEngineKind::Stdio),
        ..test("fread", "fread", Direction::Read)
    },
];

pub(super) fn phases(base: &Base<'_>) -> Vec<Phase> {
    let selected =
        |test: &&Test| base.has(test.selects) && (!test.second || base.flag("second_pass"));
    let tests: Vec<&Test> = ORDER.iter().filter(selected).collect();
    let mut phases = Vec::new();
    let creates = ["initial-write", "pwrite", "fwrite"];
    if tests.first().is_some_and(|test| !creates.contains(&test.name)) {
        phases.push(base.layout());
    }
    for test in tests {
        let cache = if test.second { Cache::Unchanged } else { base.cache() };
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
    stream.access_pattern = test.access;
    stream.io_engine = test.interface.unwrap_or(stream.io_engine);
    stream.workers.stonewall = if base.flag("stonewall") { test.stonewall } else { Stonewall::Off };
    if test.direction == Direction::Write {
        stream.open.creation = FileCreation::Any;
    }
    if test.interface != Some(IoEngineKind::Stdio) {
        base.synchronous(stream);
    }
    stream.open.read_first_block = base.compat && matches!(test.name, "read" | "reread");
}
