//! What can go wrong with a guest.

use std::path::PathBuf;

use model::Nanos;

/// What kept a guest from its work.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// Something on the host could not be read, written or started.
    #[error("{what}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// A kernel, package, module or program is not what it should be.
    #[error("{}: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Something that is needed is not there.
    #[error("{what}; {cure}")]
    Missing {
        /// What is missing.
        what: String,
        /// What to do about it.
        cure: String,
    },
    /// A kernel's source is not to be configured as it is wanted.
    #[error(
        "{what} cannot be configured as a guest needs it: {}; it may be too old or too new: take \
         another version", options.join(", ")
    )]
    Configuration {
        /// The source.
        what: String,
        /// The options that did not take, each as it was wanted and as it came out.
        options: Vec<String>,
    },
    /// A program that builds a kernel failed.
    #[error("{step} failed ({status}); {} has all that was said, which ends in\n  {last}", log.display())]
    Build {
        /// The program and its arguments.
        step: String,
        /// How it ended.
        status: String,
        /// The lines that tell why.
        last: String,
        /// The file with all lines.
        log: PathBuf,
    },
    /// This machine does not allow it.
    #[error("{engine} cannot run here: {why}; {cure}")]
    Unusable {
        /// The kind of guest.
        engine: &'static str,
        /// Why not.
        why: String,
        /// What to do about it.
        cure: String,
    },
    /// The guest ended by itself: its kernel panicked, or its emulator stopped.
    #[error("the guest ended while {during}: {last}")]
    Ended {
        /// What it was doing, by its heartbeat.
        during: String,
        /// What its console said last that tells why.
        last: String,
    },
    /// The guest said nothing for too long.
    #[error("the guest was silent for {} s while {during}: {last}", silent.seconds().round())]
    Silent {
        /// How long.
        silent: Nanos,
        /// What it was doing, by its heartbeat.
        during: String,
        /// What its console said last that tells why.
        last: String,
        /// What its tasks were at, in the words of its kernel; empty where it cannot be asked.
        stacks: String,
    },
    /// The guest lives, but has been at the same thing for too long.
    #[error("the guest did not get on for {} s while {during}: {last}", stuck.seconds().round())]
    Stuck {
        /// How long the text of its heartbeat has been the same.
        stuck: Nanos,
        /// What it was doing, by its heartbeat.
        during: String,
        /// What its console said last that tells why.
        last: String,
        /// What its tasks were at, in the words of its kernel; empty where it cannot be asked.
        stacks: String,
    },
    /// A signal ended it.
    #[error("interrupted")]
    Interrupted,
    /// What came back is not an answer.
    #[error("the guest's answer is damaged: {0}")]
    Damaged(String),
}

impl GuestError {
    /// Gives an error of the system its context.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
