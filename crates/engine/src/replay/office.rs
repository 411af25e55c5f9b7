//! Our own load: a day in an office at a file server, over and over.
//!
//! It is made from a seed, and from nothing else but published totals of what the classic tool's
//! load file comes to: how many operations of each kind an iteration has, how many of them look for
//! what is not there, how large reads and writes are, and how much they move. Names, files, and the
//! order of things are our own; a user who has the classic load file can replay that instead.
//!
//! The load makes its files first. Each iteration is then a number of activities, each with a plan
//! of its own (letters edited, tables searched, slides and sheets loaded, prints spooled, scratch
//! files used, folders browsed), of which up to four go on at once. The plans share out one budget
//! ([`budget`]), so that every iteration comes to the same counts, whatever the seed; the seed
//! decides on files, offsets, odd sizes, and order.
//!
//! Every operation goes as it says when a client replays the load alone in its directory: files are
//! there when they are opened, and not when they are looked for in vain.

mod budget;
mod draw;
mod files;
mod jobs;

use fastrand::Rng;
use model::phase::ReplayOp;

use self::{budget::Budget, files::Files, jobs::Job};
use super::program::{Builder, Expected, NO_SLOT, Op};
use crate::EngineError;

/// The version of what is made: another one for any change, as results would not compare.
const VERSION: u32 = 1;
/// Iterations at most: about fifty million operations.
const MOST: u64 = 14_000;
/// Activities that go on at once.
const AT_ONCE: usize = 4;
/// An activity goes on for this many operations, on average, before another has its turn.
const TURN: u32 = 10;

/// What results call this load.
pub(super) fn label(iterations: u64, seed: u64) -> String {
    format!("fslab-office v{VERSION} seed {seed}, {iterations} iterations")
}

/// Makes the load; its operations are their own lines.
///
/// # Errors
/// [`EngineError::Load`] for no iteration, or too many.
pub(super) fn office(iterations: u64, seed: u64) -> Result<Builder, EngineError> {
    if !(1..=MOST).contains(&iterations) {
        return Err(EngineError::Load {
            path: "office".into(),
            line: None,
            problem: format!("{iterations} iterations are none, or more than {MOST}"),
            cure: "choose 129, as many as the classic load has; a replay that gets to the end \
                   begins anew",
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

    /// Makes directories and files.
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

    /// Does one job alone.
    fn run(&mut self, job: Job) {
        let mut running = Running::new(job);
        while running.step(self) {}
    }

    /// Does all jobs, several at once.
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

/// A job that has begun.
struct Running {
    steps: std::vec::IntoIter<Op>,
    /// Slots by the number that the job has for its handles.
    slots: Vec<u16>,
}

impl Running {
    fn new(job: Job) -> Self {
        Self { slots: vec![NO_SLOT; usize::from(job.handles)], steps: job.steps.into_iter() }
    }

    /// Does the next step; false if there is none.
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
