//! Several files of a worker: one synchronous engine per file, selected by the offset.
//!
//! Engines with a queue have one queue for all files, and use this type with [`super::Offset`] for
//! their descriptors.

use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use model::phase::{Stream, SyncCall};

use super::{
    AccessMode, Completion, IoEngine, Offset, Op, PassCalls, PassPoint, Submitted, open, sync,
};
use crate::{
    error::{Failure, Fault, Operation},
    file_offset::{FileChange, file_of, first_of, within},
};

/// Opens a file of a worker.
type Opener<E> = Box<dyn Fn(&Path) -> Result<E, Fault>>;

/// Files of a worker, of which some are open.
pub(crate) struct Several<E> {
    engines: Vec<Option<E>>,
    paths: Vec<PathBuf>,
    open: Opener<E>,
    // Number of files that are open at the start of a pass.
    limit: usize,
    // Reads repeated after EAGAIN in files that were closed.
    would_block: u64,
}

impl<E> Several<E> {
    /// Opens the first `limit` files.
    pub(crate) fn open(
        paths: Vec<PathBuf>,
        limit: u32,
        open: impl Fn(&Path) -> Result<E, Fault> + 'static,
    ) -> Result<Self, Fault> {
        let mut own = Self {
            engines: paths.iter().map(|_| None).collect(),
            limit: (limit as usize).clamp(1, paths.len().max(1)),
            paths,
            open: Box::new(open),
            would_block: 0,
        };
        own.open_first()?;
        Ok(own)
    }

    fn open_first(&mut self) -> Result<(), Fault> {
        for file in 0..self.limit.min(self.paths.len()) {
            let engine = (self.open)(&self.paths[file]);
            self.engines[file] = Some(engine.map_err(|fault| in_file(fault, file))?);
        }
        Ok(())
    }

    fn each(
        &mut self,
        mut call: impl FnMut(&mut E, usize) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        for (file, engine) in self.engines.iter_mut().enumerate() {
            if let Some(engine) = engine {
                call(engine, file).map_err(|fault| in_file(fault, file))?;
            }
        }
        Ok(())
    }

    #[inline]
    fn engine(&mut self, offset: u64) -> &mut E {
        self.engines[file_of(offset)].as_mut().expect("a file is opened before its operations")
    }
}

impl Several<Offset> {
    /// Descriptor of the file of an offset, and the first offset of the file.
    pub(super) fn descriptor(&self, offset: u64) -> (i32, u64) {
        let file = file_of(offset);
        let engine = self.engines[file].as_ref();
        (engine.map_or(-1, Offset::descriptor), first_of(file))
    }
}

impl<'p, E: IoEngine<'p>> Several<E> {
    /// Syncs and closes a file that has no more blocks.
    fn close_one(&mut self, calls: &PassCalls, file: usize) -> Result<(), Fault> {
        let Some(mut engine) = self.engines[file].take() else { return Ok(()) };
        let mut closed = || {
            if let Some(call) = calls.end_sync() {
                engine.make_durable(call, (0, 0))?;
            }
            engine.begin_pass(calls.file(file), PassPoint::Ended)
        };
        closed().map_err(|fault| in_file(fault, file))?;
        self.would_block += engine.would_block();
        engine.close().map_err(|fault| in_file(fault, file))
    }
}

impl<'p, E: IoEngine<'p>> IoEngine<'p> for Several<E> {
    #[inline]
    fn submit(&mut self, mut op: Op<'p>) -> Submitted<'p> {
        let offset = op.offset;
        op.offset = within(offset);
        match self.engine(offset).submit(op) {
            Submitted::Done(Completion { op, result }) => {
                Submitted::Done(Completion { op: Op { offset, ..op }, result })
            }
            Submitted::Queued | Submitted::Full(_) => {
                unreachable!("a synchronous engine completes before it returns")
            }
        }
    }

    fn would_block(&self) -> u64 {
        let open = self.engines.iter().flatten().map(IoEngine::would_block);
        open.sum::<u64>() + self.would_block
    }

    fn rewind(&mut self) -> Result<(), Fault> {
        self.each(|engine, _| engine.rewind())
    }

    fn begin_pass(&mut self, calls: &PassCalls, point: PassPoint) -> Result<(), Fault> {
        if point == PassPoint::Next && self.limit < self.paths.len() {
            // Files are opened again in the order of the first pass.
            for file in 0..self.paths.len() {
                self.close_one(calls, file)?;
            }
            self.open_first()?;
            return self
                .each(|engine, file| engine.begin_pass(calls.file(file), PassPoint::Opened));
        }
        self.each(|engine, file| engine.begin_pass(calls.file(file), point))
    }

    fn change_file(&mut self, calls: &PassCalls, change: FileChange) -> Result<(), Fault> {
        let FileChange { open: file, close } = change;
        if let Some(old) = close {
            self.close_one(calls, old)?;
        }
        let opened = || {
            let mut engine = (self.open)(&self.paths[file])?;
            engine.begin_pass(calls.file(file), PassPoint::Opened)?;
            Ok(engine)
        };
        self.engines[file] = Some(opened().map_err(|fault| in_file(fault, file))?);
        Ok(())
    }

    fn make_durable(&mut self, call: SyncCall, (offset, len): (u64, u64)) -> Result<(), Fault> {
        match len {
            0 => self.each(|engine, _| engine.make_durable(call, (0, 0))),
            _ => self
                .engine(offset)
                .make_durable(call, (0, 0))
                .map_err(|fault| in_file(fault, file_of(offset))),
        }
    }

    fn close(self) -> Result<(), Fault> {
        for (file, engine) in self.engines.into_iter().enumerate() {
            if let Some(engine) = engine {
                engine.close().map_err(|fault| in_file(fault, file))?;
            }
        }
        Ok(())
    }
}

/// Files of an engine with a queue: one, or several.
pub(super) struct QueueFiles {
    // `None` for several files, for no file, and after close.
    one: Option<OwnedFd>,
    several: Option<Box<Several<Offset>>>,
}

impl QueueFiles {
    /// Files of an engine without files.
    pub(super) const NONE: Self = Self { one: None, several: None };

    /// Opens the files of a worker.
    pub(super) fn open(
        stream: &Stream,
        paths: &[PathBuf],
        mode: AccessMode,
    ) -> Result<Self, Fault> {
        let Some(files) = stream.files.several() else {
            return Ok(Self { one: Some(open::open(stream, &paths[0], mode)?), several: None });
        };
        let own = stream.clone();
        let open = move |path: &Path| Offset::open(&own, path, mode);
        let several = Several::open(paths.to_vec(), files.open, open)?;
        Ok(Self { one: None, several: Some(Box::new(several)) })
    }

    /// The file, if there is one.
    pub(super) fn one(&self) -> Option<BorrowedFd<'_>> {
        self.one.as_ref().map(AsFd::as_fd)
    }

    /// True if there are several files.
    #[inline]
    pub(super) fn are_several(&self) -> bool {
        self.several.is_some()
    }

    /// Descriptor of the file of an offset, and the first offset of the file.
    #[inline]
    pub(super) fn place(&self, offset: u64) -> (i32, u64) {
        match &self.several {
            None => (self.one.as_ref().map_or(-1, AsRawFd::as_raw_fd), 0),
            Some(several) => several.descriptor(offset),
        }
    }

    /// As [`IoEngine::begin_pass`].
    pub(super) fn begin_pass(&mut self, calls: &PassCalls, point: PassPoint) -> Result<(), Fault> {
        match (&mut self.one, &mut self.several) {
            (Some(file), _) => calls.make(file, point),
            (None, Some(several)) => several.begin_pass(calls, point),
            (None, None) => Ok(()),
        }
    }

    /// As [`IoEngine::change_file`].
    pub(super) fn change(&mut self, calls: &PassCalls, change: FileChange) -> Result<(), Fault> {
        self.several.as_mut().map_or(Ok(()), |several| several.change_file(calls, change))
    }

    /// As [`IoEngine::make_durable`].
    pub(super) fn make_durable(&mut self, call: SyncCall, range: (u64, u64)) -> Result<(), Fault> {
        match (&self.one, &mut self.several) {
            (Some(file), _) => sync::make_durable(file.as_fd(), call, range),
            (None, Some(several)) => several.make_durable(call, range),
            (None, None) => Ok(()),
        }
    }

    /// Closes all files.
    pub(super) fn close(&mut self) -> Result<(), Fault> {
        self.one.take().map_or(Ok(()), sync::close)?;
        self.several.take().map_or(Ok(()), |several| several.close())
    }
}

/// Fault in a file, with the number of the file in its offset.
fn in_file(fault: Fault, file: usize) -> Fault {
    let first = first_of(file);
    if let Fault::Os { operation, offset, errno } = fault {
        Fault::Os { operation, offset: Some(offset.unwrap_or(0) + first), errno }
    } else if let Fault::NotLaidOut { found, needed } = fault {
        Fault::NotLaidOut { found, needed: needed + first }
    } else {
        fault
    }
}

/// Failure of a worker with these files, from a fault with the number of the file in its offset.
#[cold]
pub(crate) fn failure(fault: Fault, paths: &[PathBuf]) -> Failure {
    let (file, fault) = if let Fault::Os { operation, offset: Some(offset), errno } = fault {
        let transfer = matches!(operation, Operation::Read | Operation::Write);
        let own = transfer.then_some(within(offset));
        (file_of(offset), Fault::Os { operation, offset: own, errno })
    } else if let Fault::Nothing { operation, offset } = fault {
        (file_of(offset), Fault::Nothing { operation, offset: within(offset) })
    } else if let Fault::NotLaidOut { found, needed } = fault {
        (file_of(needed), Fault::NotLaidOut { found, needed: within(needed) })
    } else if let Fault::Content { offset, difference } = fault {
        (file_of(offset), Fault::Content { offset: within(offset), difference })
    } else {
        (0, fault)
    };
    Failure { fault, path: paths.get(file).cloned().unwrap_or_default() }
}
