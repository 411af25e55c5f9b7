//! Conformance tests for all I/O engines.

mod wrapped;

use std::{
    io::Write as _,
    os::{fd::AsRawFd, unix::fs::FileExt},
    path::{Path, PathBuf},
};

use model::{
    Bytes,
    phase::{
        AccessPattern, Advice, CallFlags, DataPattern, Direction, FileCreation, FileSharing, Open,
        RangeSync, Stream,
    },
};
use rustix::io::pwrite;
use tempfile::TempDir;

pub(crate) use wrapped::{FailAt, Late};

use super::*;
use crate::{
    EngineError,
    buffer::{Class, Pool, Slots},
};

/// Sequential stream on a file of `n` blocks of 4 KiB.
pub(crate) fn stream(interface: IoEngineKind, direction: Direction, n: u64) -> Stream {
    Stream {
        direction,
        io_engine: interface,
        open: Open { creation: FileCreation::Any, ..Open::default() },
        data: DataPattern::Random { incompressible_fraction: 0.5, duplicate_fraction: 0.0 },
        seed: 42,
        ..Stream::new(FileSharing::PerWorker("f".into()), Bytes::kib(4 * n), Bytes::kib(4))
    }
}

/// Runs one operation and waits for it.
fn one<'p, E: IoEngine<'p>>(
    engine: &mut E,
    kind: Kind,
    offset: u64,
    buffer: &'p mut [u8],
) -> Completion<'p> {
    wait_for(engine, Op { kind, offset, len: buffer.len(), slot: 0, buffer })
}

fn wait_for<'p, E: IoEngine<'p>>(engine: &mut E, op: Op<'p>) -> Completion<'p> {
    match engine.submit(op) {
        Submitted::Done(completion) => completion,
        Submitted::Queued => loop {
            assert!(engine.reap(Wait::Some).unwrap(), "one was waited for");
            if let Some(completion) = engine.next() {
                break completion;
            }
        },
        Submitted::Full(_) => panic!("an idle engine accepts an operation"),
    }
}

/// Engine under test.
pub(crate) trait Subject {
    /// Type of the engine.
    type Engine<'p>: IoEngine<'p>;
    /// I/O engine of the stream.
    fn interface(&self) -> IoEngineKind;
    /// True if opening a file for writing extends it.
    fn extends(&self) -> bool {
        false
    }
    /// Opens the engine; its operations are in slots of `area`.
    fn open<'p>(
        &self,
        stream: &Stream,
        path: &Path,
        mode: AccessMode,
        area: SlotMemory,
    ) -> Result<Self::Engine<'p>, Fault>;
}

/// Engine without requirements on the location of buffers.
struct Plain<E>(IoEngineKind, fn(&Stream, &Path, AccessMode) -> Result<E, Fault>);

impl<E: for<'p> IoEngine<'p>> Subject for Plain<E> {
    type Engine<'p> = E;

    fn interface(&self) -> IoEngineKind {
        self.0
    }

    fn extends(&self) -> bool {
        matches!(self.0, IoEngineKind::Mmap(_))
    }

    fn open<'p>(
        &self,
        stream: &Stream,
        path: &Path,
        mode: AccessMode,
        _: SlotMemory,
    ) -> Result<Self::Engine<'p>, Fault> {
        self.1(stream, path, mode)
    }
}

impl Subject for model::phase::Ring {
    type Engine<'p> = Ring<'p>;

    fn interface(&self) -> IoEngineKind {
        IoEngineKind::Ring(*self)
    }

    fn open<'p>(
        &self,
        stream: &Stream,
        path: &Path,
        mode: AccessMode,
        area: SlotMemory,
    ) -> Result<Ring<'p>, Fault> {
        Ring::open(stream, *self, &[path.to_path_buf()], mode, area, 0)
    }
}

impl Subject for model::phase::Aio {
    type Engine<'p> = Aio<'p>;

    fn interface(&self) -> IoEngineKind {
        IoEngineKind::Aio(*self)
    }

    fn open<'p>(
        &self,
        stream: &Stream,
        path: &Path,
        mode: AccessMode,
        area: SlotMemory,
    ) -> Result<Aio<'p>, Fault> {
        Aio::open(stream, *self, &[path.to_path_buf()], mode, area.slots)
    }
}

/// Calls `then` with an engine, or the error of opening it, and its slots.
pub(crate) fn with<S: Subject, T>(
    subject: &S,
    stream: &Stream,
    path: &Path,
    mode: AccessMode,
    then: impl for<'p> FnOnce(Result<S::Engine<'p>, Fault>, Slots<'p>) -> T,
) -> T {
    let depth = crate::io::depth(subject.interface());
    let mut pool = Pool::new(stream, mode, depth).unwrap();
    let (base, len) = pool.region();
    let slots = pool.slots();
    let area = SlotMemory { base, len, slots: slots.len() };
    then(subject.open(stream, path, mode, area), slots)
}

/// Error of opening the engine, if any.
fn refusal<S: Subject>(subject: &S, plan: &Stream, path: &Path, mode: AccessMode) -> Option<Fault> {
    with(subject, plan, path, mode, |engine, _| engine.map(drop).err())
}

/// Runs one operation in a slot and waits for it; a write consists of `byte`. Also returns the
/// bytes.
pub(crate) fn turn<'p, E: IoEngine<'p>>(
    engine: &mut E,
    slots: &mut Slots<'p>,
    kind: Kind,
    (offset, len): (u64, usize),
    byte: u8,
) -> (Result<(), IoFault>, Vec<u8>) {
    let class = if kind == Kind::Read { Class::Read } else { Class::Write };
    let (slot, buffer) = slots.take(class).unwrap();
    buffer.fill(byte);
    let completion = wait_for(engine, Op { kind, offset, len, slot, buffer });
    let Completion { mut op, result } = completion;
    assert_eq!((op.kind, op.offset, op.len, op.slot), (kind, offset, len, slot));
    let bytes = op.bytes().to_vec();
    slots.give(slot, op.buffer);
    (result, bytes)
}

/// Requirements for every engine that transfers data.
pub(crate) fn battery<S: Subject>(subject: &S) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("f");
    written_data_is_read_back(subject, &path);
    synced_data_is_in_the_file(subject, &path);
    the_end_of_the_file_is_reported(subject, &path);
    missing_and_short_files_are_refused(subject, directory.path());
    presence_is_obeyed(subject, directory.path());
}

/// Blocks written out of order are at their offsets.
fn written_data_is_read_back<S: Subject>(subject: &S, path: &Path) {
    let interface = subject.interface();
    let order = [2u8, 0, 3, 1];
    let place = |block: u8| (u64::from(block) * 4096, 4096);
    let mut plan = stream(interface, Direction::Write, 4);
    plan.access_pattern = AccessPattern::IozonePermutation;
    with(subject, &plan, path, AccessMode::Write, |engine, mut slots| {
        let mut writer = engine.unwrap();
        for block in order {
            let (result, _) = turn(&mut writer, &mut slots, Kind::Write, place(block), block + 1);
            assert_eq!(result, Ok(()), "{interface:?}");
        }
        writer.close().unwrap();
    });
    let content = std::fs::read(path).unwrap();
    assert_eq!(content.len(), 4 * 4096);
    for (block, bytes) in (1u8..).zip(content.chunks(4096)) {
        assert!(bytes.iter().all(|byte| *byte == block), "{interface:?}: block {block}");
    }
    plan.open.creation = FileCreation::Existing;
    with(subject, &plan, path, AccessMode::Read, |engine, mut slots| {
        let mut reader = engine.unwrap();
        for block in order {
            let (result, bytes) = turn(&mut reader, &mut slots, Kind::Read, place(block), 0);
            assert_eq!(result, Ok(()));
            assert!(bytes.iter().all(|byte| *byte == block + 1), "{interface:?}");
        }
        reader.rewind().unwrap();
        let (_, bytes) = turn(&mut reader, &mut slots, Kind::Read, (0, 4096), 0);
        assert!(bytes.iter().all(|byte| *byte == 1));
        assert_eq!(reader.would_block(), 0, "cached data does not block");
        reader.close().unwrap();
    });
}

/// After each kind of sync, the data is visible to others while the engine is open.
fn synced_data_is_in_the_file<S: Subject>(subject: &S, path: &Path) {
    let mut plan = stream(subject.interface(), Direction::Write, 2);
    plan.access_pattern = AccessPattern::IozonePermutation;
    with(subject, &plan, path, AccessMode::Write, |engine, mut slots| {
        let mut writer = engine.unwrap();
        let calls = [SyncCall::Range(RangeSync::ALL), SyncCall::Fsync, SyncCall::Fdatasync];
        for (call, byte) in calls.into_iter().zip(1u8..) {
            let (result, _) = turn(&mut writer, &mut slots, Kind::Write, (4096, 4096), byte);
            assert_eq!(result, Ok(()));
            writer.make_durable(call, (4096, 4096)).unwrap();
            let content = std::fs::read(path).unwrap();
            assert!(content[4096..8192].iter().all(|found| *found == byte), "{call:?}");
        }
        writer.close().unwrap();
    });
}

/// A block cut by the end of the file: a short transfer, resumed, and then nothing. The end is in
/// the first page of the block, because a mapping does not detect an end within a page.
fn the_end_of_the_file_is_reported<S: Subject>(subject: &S, path: &Path) {
    let interface = subject.interface();
    std::fs::write(path, vec![7; 16_384]).unwrap();
    let plan = Stream { block_size: Bytes::kib(8), ..stream(interface, Direction::Read, 4) };
    with(subject, &plan, path, AccessMode::Read, |engine, mut slots| {
        let mut reader = engine.unwrap();
        // Truncated after the length was checked, as another process might do.
        std::fs::File::options().write(true).open(path).unwrap().set_len(9000).unwrap();
        let (result, _) = turn(&mut reader, &mut slots, Kind::Read, (0, 8192), 0);
        assert_eq!(result, Ok(()));
        let (result, bytes) = turn(&mut reader, &mut slots, Kind::Read, (8192, 8192), 0);
        let moved = 9000 - 8192;
        let fault = IoFault { operation: Operation::Read, moved, cause: Cause::Nothing };
        assert_eq!(result, Err(fault), "{interface:?}");
        assert_eq!(fault.at(8192), Fault::Nothing { operation: Operation::Read, offset: 9000 });
        assert!(bytes[..808].iter().all(|byte| *byte == 7));
    });
}

fn missing_and_short_files_are_refused<S: Subject>(subject: &S, directory: &Path) {
    let mut plan = stream(subject.interface(), Direction::Read, 2);
    plan.open.creation = FileCreation::Existing;
    // The size is two whole blocks and a rest, which is not needed.
    plan.size = Bytes(10_000);
    let path = directory.join("short");
    let refused = |found| Some(Fault::NotLaidOut { found, needed: 8192 });
    assert_eq!(refusal(subject, &plan, &path, AccessMode::Read), refused(0));
    std::fs::write(&path, vec![0; 8191]).unwrap();
    assert_eq!(refusal(subject, &plan, &path, AccessMode::Read), refused(8191));
    std::fs::write(&path, vec![0; 8192]).unwrap();
    assert_eq!(refusal(subject, &plan, &path, AccessMode::Read), None);
    let missing = refusal(subject, &plan, &directory.join("missing"), AccessMode::Write);
    assert_eq!(missing, Some(Fault::whole(Operation::Open, Errno::NOENT)));
}

/// `Fresh` creates another file; `Any` uses an existing file, or creates one.
fn presence_is_obeyed<S: Subject>(subject: &S, directory: &Path) {
    let interface = subject.interface();
    let path = directory.join("presence");
    let mut plan = stream(interface, Direction::Write, 1);
    let touch = |plan: &Stream| {
        with(subject, plan, &path, AccessMode::Write, |engine, _| engine.unwrap().close().unwrap());
    };
    let holds = |content: &[u8]| {
        let mut expected = content.to_vec();
        expected.resize(if subject.extends() { 4096 } else { content.len() }, 0);
        std::fs::read(&path).unwrap() == expected
    };
    touch(&plan);
    assert!(path.exists(), "{interface:?}: created if missing");
    std::fs::write(&path, b"old").unwrap();
    touch(&plan);
    assert!(holds(b"old"), "{interface:?}: used unchanged");

    std::fs::write(&path, b"old").unwrap();
    let old = std::fs::File::open(&path).unwrap();
    plan.open.creation = FileCreation::Fresh;
    touch(&plan);
    assert!(holds(b""), "{interface:?}: created");
    let mut kept = [0; 3];
    old.read_exact_at(&mut kept, 0).unwrap();
    assert_eq!(&kept, b"old", "{interface:?}: the old file was unlinked, not truncated");
}

#[test]
fn offset_conforms() {
    battery(&Plain(IoEngineKind::Offset, Offset::open));
}

#[test]
fn position_conforms() {
    battery(&Plain(IoEngineKind::Position, Position::open));
}

#[test]
fn bytewise_conforms() {
    battery(&Plain(IoEngineKind::Bytewise, Bytewise::open));
}

#[test]
fn stdio_conforms() {
    battery(&Plain(IoEngineKind::Stdio, Stdio::open));
}

const DSYNC: CallFlags = CallFlags { nowait: false, hipri: false, dsync: true, uncached: false };

#[test]
fn vector_conforms() {
    battery(&Plain(IoEngineKind::Vector(CallFlags::default()), |stream, path, mode| {
        Vector::open(stream, CallFlags::default(), path, mode)
    }));
    battery(&Plain(IoEngineKind::Vector(DSYNC), |stream, path, mode| {
        Vector::open(stream, DSYNC, path, mode)
    }));
}

#[test]
fn mmap_conforms() {
    battery(&Plain(IoEngineKind::Mmap(Advice::Normal), |stream, path, mode| {
        Mmap::open(stream, Advice::Normal, path, mode)
    }));
    battery(&Plain(IoEngineKind::Mmap(Advice::WillNeed), |stream, path, mode| {
        Mmap::open(stream, Advice::WillNeed, path, mode)
    }));
}

/// Linux AIO with one and with several operations per call.
const AIO: [model::phase::Aio; 2] = [model::phase::Aio::of(4, 0), model::phase::Aio::of(4, 1)];

#[test]
fn linux_aio_conforms() {
    AIO.iter().for_each(battery);
}

#[test]
fn a_full_device_is_reported() {
    fn full<S: Subject>(subject: &S) {
        let plan = stream(subject.interface(), Direction::Write, 1);
        with(subject, &plan, Path::new("/dev/full"), AccessMode::Write, |engine, mut slots| {
            let mut writer = engine.unwrap();
            let (result, _) = turn(&mut writer, &mut slots, Kind::Write, (0, 4096), 1);
            let cause = Cause::Os(Errno::NOSPC);
            let fault = IoFault { operation: Operation::Write, moved: 0, cause };
            assert_eq!(result, Err(fault), "{:?}", subject.interface());
        });
    }
    full(&Plain(IoEngineKind::Offset, Offset::open));
    full(&Plain(IoEngineKind::Position, Position::open));
    full(&Plain(IoEngineKind::Bytewise, Bytewise::open));
    full(&Plain(IoEngineKind::Vector(CallFlags::default()), |stream, path, mode| {
        Vector::open(stream, CallFlags::default(), path, mode)
    }));
    if uring_is_available() {
        for (registered, linked_sync) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            full(&model::phase::Ring {
                fixed_buffers: registered,
                linked_fdatasync: linked_sync,
                ..model::phase::Ring::of(4)
            });
        }
    }
}

/// Each flag of a call works, or the phase fails with an error that mentions the flag.
#[test]
fn call_flags_work_or_fail_with_a_specific_error() {
    let directory = TempDir::new_in("/var/tmp").unwrap();
    let path = directory.path().join("f");
    std::fs::write(&path, [1; 4096]).unwrap();
    let none = CallFlags::default();
    for flags in [
        CallFlags { nowait: true, ..none },
        CallFlags { hipri: true, ..none },
        DSYNC,
        CallFlags { uncached: true, ..none },
    ] {
        let plan = stream(IoEngineKind::Vector(flags), Direction::Mixed(0.5), 1);
        let mut engine = Vector::open(&plan, flags, &path, AccessMode::Both).unwrap();
        for kind in [Kind::Read, Kind::Write] {
            let mut buffer = vec![2; 4096];
            let completion = one(&mut engine, kind, 0, &mut buffer);
            let cause = Cause::Os(Errno::OPNOTSUPP);
            let refusal = IoFault { operation: Operation::CallFlags, moved: 0, cause };
            let read = kind == Kind::Read;
            match completion.result {
                Ok(()) if read => assert!(completion.op.buffer.iter().all(|byte| *byte == 1)),
                Ok(()) => assert!(std::fs::read(&path).unwrap().iter().all(|byte| *byte == 2)),
                Err(fault) => assert_eq!(fault, refusal, "{flags:?}"),
            }
        }
        assert!(flags.nowait || engine.would_block() == 0);
        std::fs::write(&path, [1; 4096]).unwrap();
    }
}

/// True if io_uring is available to this process; prints a message if not.
#[expect(clippy::print_stderr, reason = "reports that the test is skipped")]
pub(crate) fn uring_is_available() -> bool {
    let available = io_uring::IoUring::new(1).is_ok();
    if !available {
        eprintln!("skipped: io_uring is not available");
    }
    available
}

/// Result of a transfer of ten bytes with these results of calls, and the start of each call.
fn resumed(answers: &[Result<usize, Errno>]) -> (Result<(), IoFault>, Vec<usize>) {
    let mut answers = answers.iter();
    let mut starts = Vec::new();
    let result = resume(Operation::Write, 10, |done| {
        starts.push(done);
        *answers.next().unwrap()
    });
    (result, starts)
}

#[test]
fn short_transfers_and_interruptions_are_resumed() {
    assert_eq!(resumed(&[Ok(10)]), (Ok(()), vec![0]));
    assert_eq!(resumed(&[Ok(3), Err(Errno::INTR), Ok(7)]), (Ok(()), vec![0, 3, 3]));
    let fault = |moved, cause| Err(IoFault { operation: Operation::Write, moved, cause });
    assert_eq!(resumed(&[Ok(4), Ok(0)]), (fault(4, Cause::Nothing), vec![0, 4]));
    let full = Errno::NOSPC;
    assert_eq!(resumed(&[Ok(9), Err(full)]), (fault(9, Cause::Os(full)), vec![0, 9]));
}

/// Reads from a pipe: real short reads of read(2) and fread(3).
fn from_a_pipe<E: for<'p> IoEngine<'p>>(
    open: impl Fn(&Stream, &Path, AccessMode) -> Result<E, Fault>,
) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
    let plan = stream(IoEngineKind::Position, Direction::Read, 1);
    let plan = Stream { open: Open::default(), ..plan };
    let mut engine = open(&plan, &path, AccessMode::Read).unwrap();
    let mut buffer = vec![0; 4096];
    let feeder = std::thread::spawn(move || {
        for part in [&[1u8; 1000][..], &[2; 3000], &[3; 96]] {
            writer.write_all(part).unwrap();
        }
    });
    assert_eq!(one(&mut engine, Kind::Read, 0, &mut buffer).result, Ok(()));
    feeder.join().unwrap();
    assert_eq!((buffer[999], buffer[1000], buffer[4000]), (1, 2, 3));
}

#[test]
fn short_reads_of_the_kernel_are_resumed() {
    from_a_pipe(Position::open);
    from_a_pipe(Bytewise::open);
    from_a_pipe(Stdio::open);
}

/// A pipe cannot seek, so an error shows that a stream seeks. The test above covers the sequential
/// order.
fn seeks_in_a_pipe<E: for<'p> IoEngine<'p>>(
    open: impl Fn(&Stream, &Path, AccessMode) -> Result<E, Fault>,
) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&[1; 4096]).unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
    for access in
        [AccessPattern::Backward, AccessPattern::SameBlock, AccessPattern::IozonePermutation]
    {
        let plan = stream(IoEngineKind::Position, Direction::Read, 1);
        let plan = Stream { open: Open::default(), access_pattern: access, ..plan };
        let mut engine = open(&plan, &path, AccessMode::Read).unwrap();
        let mut buffer = vec![0; 4096];
        let result = one(&mut engine, Kind::Read, 0, &mut buffer).result;
        let cause = Cause::Os(Errno::SPIPE);
        assert_eq!(result, Err(IoFault { operation: Operation::Seek, moved: 0, cause }));
    }
}

#[test]
fn all_but_sequential_patterns_seek_before_each_block() {
    seeks_in_a_pipe(Position::open);
    seeks_in_a_pipe(Bytewise::open);
    seeks_in_a_pipe(Update::open);
    seeks_in_a_pipe(Stdio::open);
}

/// True if the kernel allows a transfer of `len` bytes with `O_DIRECT` on this file.
pub(crate) fn kernel_allows_direct(path: &Path, len: usize) -> bool {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::DIRECT;
    let Ok(file) = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600)) else { return false };
    let mut pages = crate::mapping::Pages::new(std::num::NonZeroUsize::MIN.saturating_add(len));
    let bytes = &pages.as_mut().unwrap().bytes_mut()[..len];
    pwrite(&file, bytes, 0).is_ok_and(|moved| moved == len)
}

/// Aligned and misaligned blocks: the engine transfers what the kernel allows, or reports an error.
#[test]
fn direct_transfers_follow_the_alignment_rules_of_the_kernel() {
    // Not the default directory, which is often a tmpfs without direct I/O.
    let directory = TempDir::new_in("/var/tmp").unwrap();
    for (block, name) in [(4096usize, "aligned"), (1000, "misaligned")] {
        let mut plan = stream(IoEngineKind::Offset, Direction::Write, 1);
        plan.open.direct = true;
        plan.block_size = Bytes(block as u64);
        let allowed = kernel_allows_direct(&directory.path().join("probe"), block);
        let mut pool = Pool::new(&plan, AccessMode::Write, 1).unwrap();
        let (_, buffer) = pool.slots().take(Class::Write).unwrap();
        let buffer = &mut buffer[..block];
        let moved = Offset::open(&plan, &directory.path().join(name), AccessMode::Write).map(
            |mut engine| {
                one(&mut engine, Kind::Write, 0, buffer).result.map_err(|fault| fault.at(0))
            },
        );
        let refusal = match moved {
            Ok(Ok(())) => None,
            Ok(Err(fault)) | Err(fault) => {
                Some(EngineError::from(fault.of_stream(&plan, Path::new(name))))
            }
        };
        assert_eq!(refusal.is_none(), allowed, "{name}: {refusal:?}");
        if let Some(error) = refusal {
            assert!(matches!(error, EngineError::Direct { .. }), "{error:?}");
        }
    }
}
