//! How the program ends: one exit status for each kind of ending.

use std::{
    error::Error,
    process::{ExitCode, Termination},
};

use guest::GuestError;

use crate::output;

/// How a command ended without an error of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Done,
    /// The answer is no: a check found a difference.
    No,
    /// Wrong usage or plan; nothing was done.
    Usage,
    /// The rig or the environment failed; nothing was measured.
    Rig,
    /// Measured, but incomplete or invalid.
    Incomplete,
    /// The rest is to be measured after the machine was booted.
    Boot,
    /// The data cannot say: neither yes nor no.
    Undecided,
    /// Interrupted; undone, and can be resumed.
    Interrupted,
}

impl Exit {
    /// Every ending, its status and its meaning, for the reference page.
    pub(crate) const ALL: [(Self, u8, &'static str); 8] = [
        (Self::Done, 0, "done"),
        (Self::No, 1, "the answer is no: a check found a difference"),
        (Self::Usage, 2, "wrong usage or plan; nothing was done"),
        (Self::Rig, 3, "the rig or the environment failed, or nothing could be measured"),
        (Self::Incomplete, 4, "measured, but some cells failed; skipped ones do not count"),
        (
            Self::Boot,
            5,
            "the plan wants the machine booted before the next trial; go on with --resume",
        ),
        (Self::Undecided, 6, "the data cannot say: more repeats, or fewer differences, would"),
        (
            Self::Interrupted,
            130,
            "interrupted and undone, the run can be resumed; a second signal stops at once, and then \
             `fslab clean` undoes",
        ),
    ];

    fn status(self) -> u8 {
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

/// An error with the ending it leads to.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    error: anyhow::Error,
    /// A message that is complete as it stands, such as a plan's mistake with its line.
    rendered: bool,
}

impl Failure {
    /// Wrong usage: the message says what to type instead.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Usage, error: error.into(), rendered: false }
    }

    /// A diagnostic that already shows place and cure.
    pub(crate) fn diagnostic(text: String) -> Self {
        Self { exit: Exit::Usage, error: anyhow::Error::msg(text), rendered: true }
    }

    /// What went wrong, causes included.
    pub(crate) fn text(&self) -> String {
        chain(self.error.as_ref())
    }

    /// A signal ended the preparation of a guest, which is no failure of the rig.
    pub(crate) fn is_interrupted(&self) -> bool {
        let mut causes = self.error.chain();
        causes.any(|it| matches!(it.downcast_ref(), Some(GuestError::Interrupted)))
    }

    /// Says what went wrong on stderr, causes included, and gives the status.
    pub(crate) fn report(self) -> ExitCode {
        if output::is_broken_pipe(&self.error) {
            return Exit::Done.into();
        }
        if self.is_interrupted() {
            output::message("interrupted, and undone");
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
        Self { exit: Exit::Rig, error: error.into(), rendered: false }
    }
}

/// An error and its causes in one line, leaving out a cause whose words its parent already has.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
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
    fn a_guest_that_is_interrupted_while_it_boots_is_not_a_failure_of_the_rig() {
        let interrupted = || Err::<(), _>(GuestError::Interrupted);
        let booting = interrupted().context("booting the guest").unwrap_err();
        assert!(Failure::from(booting).is_interrupted());
        assert!(Failure::usage(interrupted().unwrap_err()).is_interrupted());
        assert!(!Failure::from(GuestError::Damaged("torn".into())).is_interrupted());
    }
}
