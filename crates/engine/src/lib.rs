//! The data plane: makes load on files and times it.
//!
//! Data enters as [`model::phase::Stream`] (or [`model::phase::Files`] to remove) together with a
//! [`Context`], and leaves as [`model::phase::PhaseResult`]. Everything a stream leaves open is
//! turned into concrete types before the clock starts; inside the loop a worker issues operations,
//! tells the time once for each (`clock`: the kernel's, or ticks of the processor between two of
//! its readings), and touches nothing but its own memory, one shared signal word, and its own
//! progress counter.
//!
//! ```text
//! run ─ barrier (control block) ─ worker ─ drive (the loop) ─ io (engines)
//!                                    │        ├─ patterns (order of records)
//!                                    │        └─ payload (content), buffer (memory)
//!                                    └─ process (the same worker, in a process of its own)
//! ```
//!
//! Deliberately not here: what to measure (suites), caches, devices, and knobs (rig), rates and
//! statistics (analysis). The engine neither drops caches nor subtracts overheads; it reports
//! integers.
//!
//! `unsafe` is denied here and expected only in the modules that say so at their top.
#![deny(unsafe_code)]

mod barrier;
mod buffer;
mod ceiling;
mod clock;
mod drive;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod io;
mod layout;
mod mapping;
mod mix;
mod pace;
mod patterns;
mod payload;
mod populate;
mod process;
mod progress;
mod replay;
mod run;
mod seat;
mod series;
mod set;
mod survival;
mod tally;
mod task;
mod tree;
mod worker;

pub use ceiling::{Ceiling, ceiling, memory_ceiling, write_ceiling};
pub use clock::{ClockFacts, clock, now};
pub use error::{Difference, EngineError, ListProblem, Operation};
pub use layout::run_layout;
pub use mix::run_mix;
pub use populate::populate;
pub use process::worker_process;
pub use progress::{Progress, Snapshot};
pub use replay::{check_load, inspect_load, run_replay, write_load};
pub use run::{Context, remove, run};
pub use survival::{CrashState, Loss, Survival, survival};
pub use task::run_task;
pub use tree::run_tree;
