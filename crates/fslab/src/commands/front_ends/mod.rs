//! Command lines of other benchmark programs, which run suites of fslab.
//!
//! Each program has a table of its options ([`options`]): done, accepted without effect, or not
//! supported. The options become a plan with one repetition, which runs like any plan
//! ([`measure`]). The output has the layout of the program and names fslab as the program that
//! measured. Messages are on stderr. The exit status is 0, 1 after an error, or 130 after an
//! interruption.

pub(super) mod bonnie;
pub(super) mod dbench;
pub(super) mod iozone;
pub(super) mod mdtest;
pub(super) mod measure;
pub(super) mod options;

pub(super) use options::Program;

/// Programs of this module, in the order of their reference pages.
pub(super) const PROGRAMS: [&Program; 4] =
    [&bonnie::PROGRAM, &dbench::PROGRAM, &iozone::PROGRAM, &mdtest::PROGRAM];

/// Names of links that are commands of fslab.
pub(crate) const LINKS: [&str; 5] = ["bonnie++", "dbench", "fio", "iozone", "mdtest"];
