//! Failures of a stream: the file that a fault concerns, and whether direct I/O was rejected.

use std::path::{Path, PathBuf};

use model::phase::Stream;

use super::source_of;
use crate::error::{Failure, Fault, Operation};

impl Fault {
    /// Failure of a worker of `stream` that uses the file `path`.
    pub(crate) fn of_stream(self, stream: &Stream, path: &Path) -> Failure {
        let mut failure = Failure { fault: self, path: path.to_path_buf() };
        if matches!(self, Self::TraceFile { .. } | Self::Trace { .. }) {
            failure.path = PathBuf::from(&stream.trace_file);
        }
        let copied = matches!(self, Self::Nothing { operation: Operation::Copy, .. });
        if copied || matches!(self, Self::SourceNotLaidOut { .. }) {
            failure.path = source_of(path);
        }
        if let Self::Os { operation, offset, errno } = self
            && stream.open.direct
            && matches!(operation, Operation::Open | Operation::Read | Operation::Write)
            && matches!(errno, libc::EINVAL | libc::EOPNOTSUPP)
        {
            let block_size = stream.block_size.0;
            failure.fault = Self::Direct { operation, offset, errno, block_size };
        }
        failure
    }
}
