//! The program as its users meet it: the built binary, real files, real kernels.
//!
//! Nothing here needs root; what does calls [`support::needs_root`] first, which counts it when it
//! cannot run.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on says so by panicking, one that must not by a line on stderr"
)]

mod audit;
mod bench;
mod browser;
mod campaign;
mod cli;
mod compare;
mod damaged;
mod data;
mod ended;
mod evidence;
mod failures;
mod guest;
mod hostile;
mod import;
mod input;
mod kept;
mod loadfile;
mod made;
mod pipeline;
mod reboot;
mod support;
mod sure;
mod tidy;
mod trust;
