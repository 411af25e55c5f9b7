//! Built-in loadfile: an office at a file server.
//!
//! The loadfile is generated from a seed. Its totals are the published totals of dbench's loadfile
//! ([`budget`]), such as the number of operations of each type per iteration. Names, files, and the
//! order of operations are original. The dbench loadfile can be replayed instead if it is
//! installed.
//!
//! The loadfile creates its files first. Each iteration then consists of activities, such as
//! editing documents, printing, and browsing directories. Up to four activities are interleaved.
//! They divide the totals of an iteration, so that every iteration has the same counts for any
//! seed. The seed determines files, offsets, odd sizes, and order.
//!
//! Every operation has its expected status if a client replays the loadfile alone in its directory:
//! opened files exist, and missing names do not.

mod budget;
mod draw;
mod files;
mod jobs;

use fastrand::Rng;
use model::phase::ReplayOp;

use self::{budget::Budget, files::Files, jobs::Job};
use super::program::{Builder, Expected, NO_SLOT, Op};
use crate::EngineError;

/// Version of the generated operations. It changes with them, because results would not be
/// comparable.
const VERSION: u32 = 1;
/// Maximum number of iterations: about 50 million operations.
const MOST: u64 = 14_000;
/// Number of interleaved activities.
const AT_ONCE: usize = 4;
/// Mean number of operations of an activity before another one continues.
const TURN: u32 = 10;

/// Label of this loadfile in results.
pub(super) fn label(iterations: u64, seed: u64) -> String {
    format!("fslab-office v{VERSION} seed {seed}, {iterations} iterations")
}

/// Generates the operations. The line number of an operation is its position, from 1.
///
/// # Errors
/// [`EngineError::Load`] for zero iterations, or too many.
pub(super) fn office(iterations: u64, seed: u64) -> Result<Builder, EngineError> {
    if !(1..=MOST).contains(&iterations) {
        return Err(EngineError::Load {
            path: "office".into(),
            line: None,
            problem: format!("iterations is {iterations}, not 1 to {MOST}"),
            hint: "use 129, as in the dbench loadfile; a replay repeats a loadfile \
                   that ends",
        });
    }
    let mut office = Office { builder: Builder::new(), random: Rng::with_seed(seed), line: 0 };
    let mut files = Files::new(&mut office.builder, &mut office.random);
    office.begin(&files);
    for iteration in 0..iterations {
        let budget = Budget::new(iteration, &mut office.random);
        let jobs = jobs::jobs(budget, &mut files, &mut office.random);
        office.interleave(jobs);
    }
    let root = Op { name: files.root, ..Op::new(ReplayOp::Deltree, Expected::Success) };
    office.push(root);
    Ok(office.builder)
}

struct Office {
    builder: Builder,
    random: Rng,
    line: u32,
}

impl Office {
    fn push(&mut self, op: Op) {
        self.line += 1;
        self.builder.push(op, self.line);
    }

    /// Creates directories and files.
    fn begin(&mut self, files: &Files) {
        let whole = |kind, name| Op { name, ..Op::new(kind, Expected::Success) };
        self.push(whole(ReplayOp::Deltree, files.root));
        self.push(whole(ReplayOp::Mkdir, files.directories[0]));
        for directory in &files.directories[1..] {
            let mut job = Job::default();
            let handle = job.make_directory(*directory);
            job.close(handle);
            self.run(job);
        }
        for file in files.all() {
            let mut job = Job::default();
            let handle = job.create(file.name);
            job.extend(handle, file.size);
            job.write_all(handle, file.size);
            job.close(handle);
            self.run(job);
        }
    }

    /// Runs one job alone.
    fn run(&mut self, job: Job) {
        let mut running = Running::new(job);
        while running.step(self) {}
    }

    /// Runs all jobs, several of them interleaved.
    fn interleave(&mut self, mut jobs: Vec<Job>) {
        self.random.shuffle(&mut jobs);
        let mut active: Vec<Running> = Vec::with_capacity(AT_ONCE);
        let mut turn = 0;
        loop {
            while active.len() < AT_ONCE {
                let Some(job) = jobs.pop() else { break };
                active.push(Running::new(job));
            }
            if active.is_empty() {
                return;
            }
            if turn >= active.len() || self.random.u32(..TURN) == 0 {
                turn = self.random.usize(..active.len());
            }
            if !active[turn].step(self) {
                active.swap_remove(turn);
            }
        }
    }
}

/// Job that has started.
struct Running {
    steps: std::vec::IntoIter<Op>,
    /// Slots by handle number of the job.
    slots: Vec<u16>,
}

impl Running {
    fn new(job: Job) -> Self {
        Self { slots: vec![NO_SLOT; usize::from(job.handles)], steps: job.steps.into_iter() }
    }

    /// Runs the next step; false if there is none.
    fn step(&mut self, office: &mut Office) -> bool {
        let Some(mut op) = self.steps.next() else { return false };
        if op.slot != NO_SLOT {
            let slot = &mut self.slots[usize::from(op.slot)];
            if op.kind() == ReplayOp::NTCreateX {
                *slot = office.builder.take_slot().expect("few handles are open");
            }
            op.slot = *slot;
        }
        office.push(op);
        if op.kind() == ReplayOp::Close {
            office.builder.give_slot(op.slot);
        }
        true
    }
}

#[cfg(test)]
mod tests;
