//! I/O engine: runs workloads on files and measures their time.
//!
//! The input is the description of a phase, such as a [`model::phase::Stream`], and a [`Context`].
//! The output is a [`model::phase::PhaseResult`]. Everything that the description determines is
//! resolved to concrete types before the clock starts. Inside the loop, a worker issues operations,
//! reads the clock once per operation (`clock`: the kernel clock, or CPU ticks between two readings
//! of the kernel clock), and accesses only its own memory, one shared signal word, and its own
//! progress counter.
//!
//! ```text
//! run, tree, replay, mix, layout, task, sqlite, recording, maintenance     kinds of phases
//!  └─ driver ─ barrier (control block), counter, process (workers in separate processes),
//!              start_gate, flow (phases that start together)
//! run ─ worker ─ io_loop ─ io (engines)
//!                  ├─ patterns (order of blocks), pace (start times)
//!                  └─ payload (content), buffer (memory), operation_log
//! ```
//!
//! Not part of this crate: the choice of phases (suites); caches, devices, and system settings
//! (rig); rates and statistics (analysis). The engine neither drops caches nor subtracts overheads;
//! it reports integers.
//!
//! `unsafe` code is denied in this crate, except in modules that begin with `expect(unsafe_code)`.
#![deny(unsafe_code)]

mod affinity;
mod barrier;
mod buffer;
mod calls;
mod clock;
mod coherence;
mod context;
mod counter;
mod crash_report;
mod crash_state;
mod driver;
mod error;
mod file_offset;
mod flow;
#[doc(hidden)]
pub mod fuzz;
mod generator_limit;
mod io;
mod io_loop;
mod layout;
mod mail;
mod maintenance;
mod mapping;
mod mix;
mod operation_log;
mod pace;
mod patterns;
mod payload;
mod populate;
mod process;
mod progress;
mod recording;
mod replay;
mod run;
mod series;
mod set;
mod sqlite;
mod start_gate;
mod steady;
mod task;
mod tree;
mod worker;
mod worker_process;

pub use clock::{ClockFacts, clock, now};
pub use coherence::run_coherence;
pub use context::Context;
pub use crash_report::{CrashReport, LostBlock, crash_report};
pub use crash_state::CrashState;
pub use error::{Difference, EngineError, Operation, TraceProblem};
pub use flow::Flows;
pub use generator_limit::{
    GeneratorLimit, generator_limit, memory_copy_rate, write_generator_limit,
};
pub use layout::run_layout;
pub use mail::run_mail;
pub use maintenance::run_maintenance;
pub use mix::run_mix;
pub use payload::is_written_by_fslab;
pub use populate::populate;
pub use progress::{Progress, Snapshot};
pub use recording::run_trace;
pub use replay::{check_load, inspect_load, installed_load, run_replay, write_load};
pub use run::{remove, run};
pub use sqlite::run_sqlite;
pub use start_gate::{Start, StartGate};
pub use task::run_task;
pub use tree::run_tree;
pub use worker_process::worker_process;
