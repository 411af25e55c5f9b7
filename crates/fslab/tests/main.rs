//! Integration tests: the built program, real files, real kernels.
//!
//! No test fails without root: tests that require it call [`support::needs_root`] first, which
//! counts skipped tests.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by a panic, and reports that it is skipped on stderr"
)]

mod activity;
mod audit;
mod bench;
mod browser;
mod by_name;
mod campaign;
mod cli;
mod cluster;
mod command;
mod compare;
mod crosscheck;
mod damaged;
mod data;
mod dependencies;
mod devices;
mod ended;
mod failures;
mod fio;
mod front_ends;
mod guest;
mod guides;
mod hostile;
mod import;
mod input;
mod installed;
mod kept;
mod language;
mod listings;
mod loadfile;
mod made;
mod mounts;
mod options;
mod pipeline;
mod raw;
mod reboot;
mod record;
mod recordings;
mod sizes;
mod support;
mod sure;
mod tidy;
mod together;
mod trust;
mod usage;
