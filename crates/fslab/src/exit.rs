//! Exit statuses of the program.

use std::{
    error::Error,
    process::{ExitCode, Termination},
};

use guest::GuestError;
use trace::TraceError;

use crate::output;

/// Result of a command that did not return an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Success,
    /// A check found a difference.
    DifferenceFound,
    /// Usage error or invalid plan; nothing was changed.
    Usage,
    /// Environment error; nothing was measured.
    Environment,
    /// Some cells failed.
    Incomplete,
    /// A reboot is required before the next trial.
    RebootRequired,
    /// Inconclusive: more repetitions are needed.
    Inconclusive,
    /// Interrupted; changes were undone and the run can be resumed.
    Interrupted,
    /// Exit status of a recorded program.
    Program(u8),
}

impl Exit {
    /// Every exit status with its meaning, for the reference page.
    pub(crate) const ALL: [(Self, u8, &'static str); 8] = [
        (Self::Success, 0, "success"),
        (
            Self::DifferenceFound,
            1,
            "a check found a difference: regression, contradiction, or lost \
                                    data",
        ),
        (Self::Usage, 2, "usage error or invalid plan; nothing was changed"),
        (Self::Environment, 3, "environment error, or nothing could be measured"),
        (Self::Incomplete, 4, "some cells failed (skipped cells do not count)"),
        (Self::RebootRequired, 5, "reboot required before the next trial; continue with --resume"),
        (Self::Inconclusive, 6, "inconclusive; more repetitions are needed"),
        (
            Self::Interrupted,
            130,
            "interrupted; changes were undone and the run can be resumed. A second signal exits at \
             once; then run `fslab clean`",
        ),
    ];

    fn status(self) -> u8 {
        if let Self::Program(status) = self {
            return status;
        }
        Self::ALL.into_iter().find(|(exit, ..)| *exit == self).map_or(3, |(_, status, _)| status)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.status())
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        self.into()
    }
}

/// Error with its exit status.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    error: anyhow::Error,
    /// True if the message is complete, such as a plan error with its line.
    rendered: bool,
}

impl Failure {
    /// Usage error; the message contains a hint.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Usage, error: error.into(), rendered: false }
    }

    /// Error whose text already contains the location and a hint.
    pub(crate) fn diagnostic(text: String) -> Self {
        Self { exit: Exit::Usage, error: anyhow::Error::msg(text), rendered: true }
    }

    /// Error message with its causes.
    pub(crate) fn message(&self) -> String {
        chain(self.error.as_ref())
    }

    /// Reports whether a signal interrupted the boot of a guest or the start of a recording. That
    /// is not an environment error.
    pub(crate) fn is_interrupted(&self) -> bool {
        let mut causes = self.error.chain();
        causes.any(|it| {
            matches!(it.downcast_ref(), Some(GuestError::Interrupted))
                || matches!(it.downcast_ref(), Some(TraceError::Interrupted))
        })
    }

    /// Reports whether the exit status is the same for the command lines of other programs: an
    /// interruption, or a closed stdout.
    pub(crate) fn has_own_status(&self) -> bool {
        self.is_interrupted() || output::is_broken_pipe(&self.error)
    }

    /// Prints the error and its causes to stderr and returns the exit status.
    pub(crate) fn report(self) -> ExitCode {
        if output::is_broken_pipe(&self.error) {
            return Exit::Success.into();
        }
        if self.is_interrupted() {
            output::message("interrupted; changes were undone");
            return Exit::Interrupted.into();
        }
        match self.rendered {
            true => output::message(&self.error.to_string()),
            false => output::message(&format!("error: {}", chain(self.error.as_ref()))),
        }
        self.exit.into()
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { exit: Exit::Environment, error: error.into(), rendered: false }
    }
}

/// Error and its causes in one line: `fact: cause; hint`. A cause whose text is already in the
/// message is omitted.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = match text.split_once("; ") {
                Some((fact, hint)) => format!("{fact}: {words}; {hint}"),
                None => format!("{text}: {words}"),
            };
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_cause_precedes_the_hint() {
        let cause = || std::io::Error::other("no such file");
        let error = anyhow::Error::new(cause()).context("cannot open x; check the path");
        let outer = error.context("preparing the storage");
        let text = chain(outer.as_ref());
        assert_eq!(text, "preparing the storage: cannot open x: no such file; check the path");
        let plain = anyhow::Error::new(cause()).context("cannot open x");
        assert_eq!(chain(plain.as_ref()), "cannot open x: no such file");
    }

    #[test]
    fn an_interrupted_guest_boot_is_not_an_environment_error() {
        let interrupted = || Err::<(), _>(GuestError::Interrupted);
        let booting = interrupted().context("booting the guest").unwrap_err();
        assert!(Failure::from(booting).is_interrupted());
        assert!(Failure::usage(interrupted().unwrap_err()).is_interrupted());
        assert!(!Failure::from(GuestError::Damaged("torn".into())).is_interrupted());
    }
}
