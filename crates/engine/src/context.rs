//! Parameters of a phase in addition to its description.

use std::{ffi::OsString, path::Path, sync::atomic::AtomicBool};

use crate::{Progress, crash_state::CrashState, start_gate::Start};

/// Parameters of a phase in addition to its description.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Directory under test, which exists.
    pub directory: &'a Path,
    /// Progress of the phase.
    pub progress: &'a Progress,
    /// Set by the caller, from any thread or signal handler, to stop the phase within about 50 ms
    /// and one operation per worker.
    pub interrupt: &'a AtomicBool,
    /// State file for verifying the files after a crash, see [`crate::crash_report`].
    pub state: Option<&'a CrashState>,
    /// Program and arguments of a worker process, which must call [`crate::worker_process`], such
    /// as `["/proc/self/exe", "worker"]`. Empty if no phase uses processes.
    pub worker_command: &'a [OsString],
    /// Common start with other phases; `None` if the phase runs alone.
    pub start: Option<Start<'a>>,
}
