//! One battery for all I/O engines, and the engines that only tests have: one that fails when told,
//! and one that answers late.

use std::{
    io::Write as _,
    os::{fd::AsRawFd, unix::fs::FileExt},
    path::{Path, PathBuf},
};

use model::{
    Bytes,
    phase::{Access, Direction, Files, Fill, Flush, Interface, Open, Presence, Stream, Workers},
};
use rustix::io::pwrite;
use tempfile::TempDir;

use super::*;
use crate::{EngineError, buffer::Pool};

/// A sequential stream over a file of `n` records of 4 KiB.
pub(crate) fn stream(interface: Interface, direction: Direction, n: u64) -> Stream {
    Stream {
        files: Files::PerWorker("f".into()),
        size: Bytes::kib(4 * n),
        record: Bytes::kib(4),
        direction,
        access: Access::Sequential,
        interface,
        open: Open { presence: Presence::Any, ..Open::default() },
        fill: Fill::Random { entropy: 0.5, seed: 42 },
        verify: false,
        flush: Flush::None,
        workers: Workers::ONE,
    }
}

/// Passes operations on to another engine, but refuses the one with index `at` with `errno`.
pub(crate) struct FailAt<E> {
    pub(crate) inner: E,
    pub(crate) at: u64,
    pub(crate) errno: Errno,
    pub(crate) seen: u64,
}

impl<'p, E: IoEngine<'p>> IoEngine<'p> for FailAt<E> {
    fn submit(&mut self, op: Op<'p>) -> Submitted<'p> {
        self.seen += 1;
        if self.seen == self.at + 1 {
            let operation = match op.kind {
                Kind::Read => Operation::Read,
                Kind::Write => Operation::Write,
            };
            let cause = Cause::Os(self.errno);
            return Submitted::Done(Completion {
                op,
                result: Err(IoFault { operation, moved: 512, cause }),
            });
        }
        self.inner.submit(op)
    }

    fn reap(&mut self, min: u32, out: &mut Completions<'p>) -> Result<(), IoFault> {
        self.inner.reap(min, out)
    }

    fn rewind(&mut self) -> Result<(), Fault> {
        self.inner.rewind()
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.inner.sync()
    }

    fn close(self) -> Result<(), Fault> {
        self.inner.close()
    }
}

/// Does the I/O of another engine, but answers late and in reverse, up to `depth` at a time, as an
/// asynchronous engine may.
pub(crate) struct Late<'p, E> {
    pub(crate) inner: E,
    pub(crate) depth: usize,
    pub(crate) held: Vec<Completion<'p>>,
    pub(crate) deepest: usize,
}

impl<E> Late<'_, E> {
    pub(crate) fn new(inner: E, depth: usize) -> Self {
        Self { inner, depth, held: Vec::new(), deepest: 0 }
    }
}

impl<'p, E: IoEngine<'p>> IoEngine<'p> for Late<'p, E> {
    fn submit(&mut self, op: Op<'p>) -> Submitted<'p> {
        if self.held.len() == self.depth {
            return Submitted::Full(op);
        }
        match self.inner.submit(op) {
            Submitted::Done(completion) => self.held.push(completion),
            Submitted::Queued | Submitted::Full(_) => unreachable!("built on synchronous engines"),
        }
        self.deepest = self.deepest.max(self.held.len());
        Submitted::Queued
    }

    fn reap(&mut self, min: u32, out: &mut Completions<'p>) -> Result<(), IoFault> {
        // One more than asked for, where there is one: the loop must take what it gets.
        let count = (min as usize + 1).min(self.held.len());
        assert!(count >= min as usize, "asked to wait for what was never submitted");
        out.extend((0..count).filter_map(|_| self.held.pop()));
        Ok(())
    }

    fn rewind(&mut self) -> Result<(), Fault> {
        self.inner.rewind()
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.inner.sync()
    }

    fn close(self) -> Result<(), Fault> {
        self.inner.close()
    }
}

/// One operation, waited for.
fn one<'p, E: IoEngine<'p>>(
    engine: &mut E,
    kind: Kind,
    offset: u64,
    buffer: &'p mut [u8],
) -> Completion<'p> {
    let op = Op { kind, record: 0, offset, issued: Nanos(0), buffer };
    match engine.submit(op) {
        Submitted::Done(completion) => completion,
        Submitted::Queued => {
            let mut out = Vec::new();
            engine.reap(1, &mut out).unwrap();
            out.pop().unwrap()
        }
        Submitted::Full(_) => panic!("an idle engine has room"),
    }
}

/// What every engine that moves bytes must do. `open` gets the stream, the path, and whether to
/// read.
fn battery<E, F>(interface: Interface, open: F)
where
    E: for<'p> IoEngine<'p>,
    F: Fn(&Stream, &Path, bool) -> Result<E, Fault>,
{
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("f");
    what_is_written_is_read_back(interface, &open, &path);
    the_end_of_the_file_is_told(interface, &open, &path);
    missing_and_short_files_are_refused(interface, &open, directory.path());
    presence_is_obeyed(interface, &open, directory.path());
}

/// Records written out of order are where they belong, and durable data is in the file.
fn what_is_written_is_read_back<E, F>(interface: Interface, open: &F, path: &Path)
where
    E: for<'p> IoEngine<'p>,
    F: Fn(&Stream, &Path, bool) -> Result<E, Fault>,
{
    let order = [2u8, 0, 3, 1];
    let mut plan = stream(interface, Direction::Write, 4);
    plan.access = Access::Shuffled;
    let mut buffers = order.map(|record| vec![record + 1; 4096]);
    let mut writer = open(&plan, path, false).unwrap();
    for (record, buffer) in order.into_iter().zip(&mut buffers) {
        let completion = one(&mut writer, Kind::Write, u64::from(record) * 4096, buffer);
        assert_eq!(completion.result, Ok(()), "{interface:?}");
        assert_eq!(
            (completion.op.offset, completion.op.buffer.len()),
            (u64::from(record) * 4096, 4096)
        );
    }
    writer.sync().unwrap();
    let content = std::fs::read(path).unwrap();
    assert_eq!(content.len(), 4 * 4096);
    for (record, bytes) in (1u8..).zip(content.chunks(4096)) {
        assert!(bytes.iter().all(|byte| *byte == record), "{interface:?}: record {record}");
    }
    writer.close().unwrap();

    plan.open.presence = Presence::Existing;
    let mut buffers = order.map(|_| vec![0; 4096]);
    let mut reader = open(&plan, path, true).unwrap();
    for (record, buffer) in order.into_iter().zip(&mut buffers) {
        let completion = one(&mut reader, Kind::Read, u64::from(record) * 4096, buffer);
        assert_eq!(completion.result, Ok(()));
        assert!(completion.op.buffer.iter().all(|byte| *byte == record + 1));
    }
    let mut first = vec![0; 4096];
    reader.rewind().unwrap();
    assert!(one(&mut reader, Kind::Read, 0, &mut first).op.buffer.iter().all(|byte| *byte == 1));
    reader.close().unwrap();
}

/// A record cut by the end of the file: a short transfer, resumed, and then nothing.
fn the_end_of_the_file_is_told<E, F>(interface: Interface, open: &F, path: &Path)
where
    E: for<'p> IoEngine<'p>,
    F: Fn(&Stream, &Path, bool) -> Result<E, Fault>,
{
    std::fs::write(path, vec![7; 8192]).unwrap();
    let plan = stream(interface, Direction::Read, 2);
    let mut reader = open(&plan, path, true).unwrap();
    // Truncated after the length was checked, as another program might do.
    std::fs::File::options().write(true).open(path).unwrap().set_len(5000).unwrap();
    let (mut whole, mut cut) = (vec![0; 4096], vec![0; 4096]);
    assert_eq!(one(&mut reader, Kind::Read, 0, &mut whole).result, Ok(()));
    let completion = one(&mut reader, Kind::Read, 4096, &mut cut);
    let fault = IoFault { operation: Operation::Read, moved: 5000 - 4096, cause: Cause::Nothing };
    assert_eq!(completion.result, Err(fault), "{interface:?}");
    assert_eq!(fault.at(4096), Fault::Nothing { operation: Operation::Read, offset: 5000 });
    assert!(completion.op.buffer[..904].iter().all(|byte| *byte == 7));
}

fn missing_and_short_files_are_refused<E, F>(interface: Interface, open: &F, directory: &Path)
where
    E: for<'p> IoEngine<'p>,
    F: Fn(&Stream, &Path, bool) -> Result<E, Fault>,
{
    let mut plan = stream(interface, Direction::Read, 2);
    plan.open.presence = Presence::Existing;
    // 2 whole records of a size that is no multiple: the rest is not needed.
    plan.size = Bytes(10_000);
    let path = directory.join("short");
    let refused = |found| Some(Fault::NotLaidOut { found, needed: 8192 });
    assert_eq!(open(&plan, &path, true).err(), refused(0));
    std::fs::write(&path, vec![0; 8191]).unwrap();
    assert_eq!(open(&plan, &path, true).err(), refused(8191));
    std::fs::write(&path, vec![0; 8192]).unwrap();
    assert_eq!(open(&plan, &path, true).err(), None);
    let missing = open(&plan, &directory.join("missing"), false).err();
    assert_eq!(missing, Some(Fault::whole(Operation::Open, Errno::NOENT)));
}

/// A fresh file is another file; any file is used as it is, and made where there is none.
fn presence_is_obeyed<E, F>(interface: Interface, open: &F, directory: &Path)
where
    E: for<'p> IoEngine<'p>,
    F: Fn(&Stream, &Path, bool) -> Result<E, Fault>,
{
    let path = directory.join("presence");
    let mut plan = stream(interface, Direction::Write, 1);
    open(&plan, &path, false).unwrap().close().unwrap();
    assert!(path.exists(), "{interface:?}: created where it may be missing");
    std::fs::write(&path, b"old").unwrap();
    open(&plan, &path, false).unwrap().close().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"old");

    let old = std::fs::File::open(&path).unwrap();
    plan.open.presence = Presence::Fresh;
    open(&plan, &path, false).unwrap().close().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"");
    let mut kept = [0; 3];
    old.read_exact_at(&mut kept, 0).unwrap();
    assert_eq!(&kept, b"old", "{interface:?}: the old file was unlinked, not emptied");
}

#[test]
fn offset_conforms() {
    battery(Interface::Offset, Offset::open);
}

#[test]
fn position_conforms() {
    battery(Interface::Position, Position::open);
}

#[test]
fn stdio_conforms() {
    battery(Interface::Stdio, Stdio::open);
}

/// What a plan of answers makes of a transfer of ten bytes, and where each call began.
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

/// A pipe gives what is in it: real short reads of read(2) and fread(3).
fn from_a_pipe<E: for<'p> IoEngine<'p>>(open: impl Fn(&Stream, &Path, bool) -> Result<E, Fault>) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
    let plan = stream(Interface::Position, Direction::Read, 1);
    let plan = Stream { open: Open::default(), ..plan };
    let mut engine = open(&plan, &path, true).unwrap();
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
    from_a_pipe(Stdio::open);
}

/// A pipe cannot seek: it tells a stream that seeks from one that does not, which the test above
/// shows of the sequential order.
fn seeks_in_a_pipe<E: for<'p> IoEngine<'p>>(
    open: impl Fn(&Stream, &Path, bool) -> Result<E, Fault>,
) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&[1; 4096]).unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
    for access in [Access::Backward, Access::SameRecord, Access::Shuffled] {
        let plan = stream(Interface::Position, Direction::Read, 1);
        let plan = Stream { open: Open::default(), access, ..plan };
        let mut engine = open(&plan, &path, true).unwrap();
        let mut buffer = vec![0; 4096];
        let result = one(&mut engine, Kind::Read, 0, &mut buffer).result;
        let cause = Cause::Os(Errno::SPIPE);
        assert_eq!(result, Err(IoFault { operation: Operation::Seek, moved: 0, cause }));
    }
}

#[test]
fn every_order_but_the_sequential_seeks_before_each_record() {
    seeks_in_a_pipe(Position::open);
    seeks_in_a_pipe(Stdio::open);
}

/// Asks the kernel itself whether a transfer of `len` bytes with `O_DIRECT` is allowed here.
pub(crate) fn kernel_allows_direct(path: &Path, len: usize) -> bool {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::DIRECT;
    let Ok(file) = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600)) else { return false };
    let mut pages = crate::mapping::Pages::new(std::num::NonZeroUsize::MIN.saturating_add(len));
    let bytes = &pages.as_mut().unwrap().bytes_mut()[..len];
    pwrite(&file, bytes, 0).is_ok_and(|moved| moved == len)
}

/// Aligned and misaligned records: the engine moves what the kernel would, and says so otherwise.
#[test]
fn direct_transfers_go_as_far_as_the_kernel_allows() {
    // Not the default directory, which is often a tmpfs without direct I/O.
    let directory = TempDir::new_in("/var/tmp").unwrap();
    for (record, name) in [(4096usize, "aligned"), (1000, "misaligned")] {
        let mut plan = stream(Interface::Offset, Direction::Write, 1);
        plan.open.direct = true;
        plan.record = Bytes(record as u64);
        let allowed = kernel_allows_direct(&directory.path().join("probe"), record);
        let mut pool = Pool::new(plan.record).unwrap();
        let buffer = pool.slots().take(0).unwrap();
        let moved = Offset::open(&plan, &directory.path().join(name), false).map(|mut engine| {
            one(&mut engine, Kind::Write, 0, buffer).result.map_err(|fault| fault.at(0))
        });
        let refusal = match moved {
            Ok(Ok(())) => None,
            Ok(Err(fault)) | Err(fault) => Some(fault.into_error(&plan, Path::new(name))),
        };
        assert_eq!(refusal.is_none(), allowed, "{name}: {refusal:?}");
        if let Some(error) = refusal {
            assert!(matches!(error, EngineError::Direct { .. }), "{error:?}");
        }
    }
}
