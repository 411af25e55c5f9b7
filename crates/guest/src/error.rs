//! Errors of guests.

use std::path::PathBuf;

use model::Nanos;

/// Failure to prepare, boot, or use a guest.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// An operation on the host failed.
    #[error("{what}")]
    Io {
        /// Failed operation.
        what: String,
        /// Cause of the failure.
        #[source]
        source: std::io::Error,
    },
    /// A kernel, package, module, or program is damaged or has an unsupported format.
    #[error("{}: {why}", path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// Description of the defect.
        why: String,
    },
    /// A required file, program, or resource is missing.
    #[error("{what}; {hint}")]
    Missing {
        /// Missing item.
        what: String,
        /// Hint.
        hint: String,
    },
    /// Some kernel options cannot be set in this kernel source.
    #[error("{what} cannot be configured for a guest: {}; {hint}", options.join(", "))]
    Configuration {
        /// Name of the source.
        what: String,
        /// Options with another value than required, each with the required value, the actual
        /// value, and the reason.
        options: Vec<String>,
        /// Hint.
        hint: &'static str,
    },
    /// A patch does not apply to a kernel source.
    #[error("{patch} does not apply to {origin}; nothing was built:\n  {why}")]
    Patch {
        /// Name of the patch.
        patch: String,
        /// Name of the source.
        origin: String,
        /// Messages about the hunks that failed, and the hunks.
        why: String,
    },
    /// A program that builds a kernel failed.
    #[error("{step} failed ({status}): {last}\n  the complete log is {}", log.display())]
    Build {
        /// Program and arguments.
        step: String,
        /// Exit status or signal.
        status: String,
        /// Lines of the log that show the cause.
        last: String,
        /// File with the complete log.
        log: PathBuf,
    },
    /// This kind of guest cannot run on this machine.
    #[error("{engine} cannot run here: {why}; {hint}")]
    Unusable {
        /// Kind of guest.
        engine: &'static str,
        /// Reason.
        why: String,
        /// Hint.
        hint: String,
    },
    /// The guest ended unexpectedly: its kernel panicked, or its emulator stopped.
    #[error("the guest ended while {during}: {last}")]
    Ended {
        /// Current step of the guest according to its heartbeat.
        during: String,
        /// Console lines that show the cause.
        last: String,
    },
    /// No heartbeat of the guest arrived within the limit.
    #[error("no guest heartbeat for {} s while {during}: {last}", silent.seconds().round())]
    Silent {
        /// Time since the last heartbeat.
        silent: Nanos,
        /// Current step of the guest according to its heartbeat.
        during: String,
        /// Console lines that show the cause.
        last: String,
        /// Task stacks as printed by the guest kernel; empty if they are not available.
        stacks: String,
    },
    /// The guest sends heartbeats but makes no progress.
    #[error("the guest made no progress for {} s while {during}: {last}", stuck.seconds().round())]
    Stuck {
        /// Time since the heartbeat text changed.
        stuck: Nanos,
        /// Current step of the guest according to its heartbeat.
        during: String,
        /// Console lines that show the cause.
        last: String,
        /// Task stacks as printed by the guest kernel; empty if they are not available.
        stacks: String,
    },
    /// A signal interrupted the operation.
    #[error("interrupted")]
    Interrupted,
    /// A message between host and guest is malformed or too long.
    #[error("damaged message between host and guest: {0}")]
    Damaged(String),
}

impl GuestError {
    /// Adds context to an error of the system.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
