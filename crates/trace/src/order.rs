//! Order of the operations of a replay: workers, and waits between them.
//!
//! An operation B waits for an operation A of another worker if both use a resource, their uses
//! conflict, and A had ended before B began. Operations that overlapped when they were recorded may
//! overlap in the replay. The waits point back in recorded time, so they cannot form a circle.
//!
//! Tasks that did not overlap share a worker. An operation needs at most one number of each other
//! worker: how many of its operations must be done.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::{NONE, Op, Recording};

/// Condition for the start of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Worker.
    pub worker: u32,
    /// Number of operations that this worker must have completed.
    pub done: u32,
}

/// Use of a resource. Two uses conflict unless both are [`Self::Read`], or both are
/// [`Self::Commute`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Depends on the state of the resource.
    Read,
    /// Changes the resource. The order of such changes does not matter.
    Commute,
    /// Changes the resource.
    Change,
}

impl Use {
    const ALL: [Self; 3] = [Self::Read, Self::Commute, Self::Change];

    fn conflicts(self, other: Self) -> bool {
        self == Self::Change || self != other
    }
}

/// Worker of each task. Tasks without operations have worker 0.
pub(crate) fn workers(recording: &Recording) -> (Vec<u32>, u32) {
    let span = |task: &crate::Task| {
        task.ops.first().map(|first| (first.begin, task.ops.last().map_or(0, crate::Op::end)))
    };
    let mut spans: Vec<(u64, u64, usize)> = recording
        .tasks
        .iter()
        .enumerate()
        .filter_map(|(index, task)| span(task).map(|(begin, end)| (begin, end, index)))
        .collect();
    spans.sort_unstable();
    let mut of_task = vec![0; recording.tasks.len()];
    // Ends of the last tasks of the workers, earliest first.
    let mut free: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    let mut count = 0;
    for (begin, end, index) in spans {
        let worker = match free.peek() {
            Some(Reverse((ended, worker))) if *ended <= begin => {
                let worker = *worker;
                free.pop();
                worker
            }
            _ => {
                count += 1;
                count - 1
            }
        };
        of_task[index] = worker;
        free.push(Reverse((end, worker)));
    }
    (of_task, count)
}

/// Latest uses of a resource by a worker: the number of operations of the worker up to the use, and
/// its end. A worker has at most one operation that has not ended, so two uses are enough.
#[derive(Clone, Copy, Debug)]
struct Latest {
    worker: u32,
    uses: [[(u32, u64); 2]; 3],
}

/// Waits of the operations, which are added in the order of their begin.
pub(crate) struct Waits {
    resources: Vec<Vec<Latest>>,
    /// Number of operations of worker B that worker A has already waited for.
    known: Vec<Vec<u32>>,
}

impl Waits {
    pub(crate) fn new(resources: usize, workers: u32) -> Self {
        let workers = workers as usize;
        Self { resources: vec![Vec::new(); resources], known: vec![vec![0; workers]; workers] }
    }

    /// Waits of an operation, the `number`th of its worker, from 1, and its uses of resources.
    /// `tasks` are operations of other tasks that it follows: of the creator of its task, and of a
    /// task that it waited for.
    pub(crate) fn add(
        &mut self,
        worker: u32,
        number: u32,
        (begin, end): (u64, u64),
        uses: &[(u32, Use)],
        tasks: [Option<(u32, u32)>; 2],
    ) -> Vec<Wait> {
        let known = &mut self.known[worker as usize];
        let mut waits: Vec<Wait> = Vec::new();
        let mut require = |other: u32, done: u32| {
            if other == worker || done <= known[other as usize] {
                return;
            }
            match waits.iter_mut().find(|wait| wait.worker == other) {
                Some(wait) => wait.done = wait.done.max(done),
                None => waits.push(Wait { worker: other, done }),
            }
        };
        for (other, done) in tasks.into_iter().flatten() {
            require(other, done);
        }
        for (resource, own) in uses {
            for latest in &self.resources[*resource as usize] {
                let conflicts = Use::ALL.iter().filter(|other| own.conflicts(**other));
                let recent = conflicts.flat_map(|other| latest.uses[*other as usize]);
                let ended = recent.filter(|(done, ended)| *done > 0 && *ended <= begin);
                if let Some((done, _)) = ended.max() {
                    require(latest.worker, done);
                }
            }
        }
        for wait in &waits {
            known[wait.worker as usize] = wait.done;
        }
        for (resource, own) in uses {
            let all = &mut self.resources[*resource as usize];
            let found = all.iter_mut().position(|latest| latest.worker == worker);
            let index = found.unwrap_or_else(|| {
                all.push(Latest { worker, uses: [[(0, 0); 2]; 3] });
                all.len() - 1
            });
            let recent = &mut all[index].uses[*own as usize];
            if recent[0].0 != number {
                *recent = [(number, end), recent[0]];
            }
        }
        waits
    }
}

/// Number of operations of the parent of a task that had ended when the task was created.
pub(crate) fn before_creation(recording: &Recording, task: usize) -> Option<(usize, usize)> {
    let parent = recording.tasks[task].parent;
    if parent == NONE {
        return None;
    }
    let parent = parent as usize - 1;
    let begin = recording.tasks[task].begin;
    let count = recording.tasks[parent].ops.partition_point(|op| op.end() <= begin);
    (count > 0).then_some((parent, count))
}

/// Task that a wait is for, and the number of its operations. The number may be too large.
pub(crate) fn awaited(recording: &Recording, wait: &Op) -> Option<(usize, usize)> {
    let task = usize::try_from(wait.size).ok()?.checked_sub(1)?;
    let ops = &recording.tasks.get(task)?.ops;
    let count = match wait.offset {
        0 => ops.len(),
        until => ops.partition_point(|op| op.end() <= until),
    };
    Some((task, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_waits_for_conflicting_uses_that_had_ended() {
        let mut waits = Waits::new(1, 3);
        assert_eq!(waits.add(0, 1, (0, 10), &[(0, Use::Change)], [None; 2]), []);
        // It overlapped the change.
        assert_eq!(waits.add(1, 1, (5, 20), &[(0, Use::Read)], [None; 2]), []);
        let wait = |worker, done| Wait { worker, done };
        assert_eq!(waits.add(2, 1, (30, 40), &[(0, Use::Read)], [None; 2]), [wait(0, 1)]);
        // The wait for the same operation is not repeated.
        assert_eq!(waits.add(2, 2, (50, 60), &[(0, Use::Read)], [None; 2]), []);
        // Reads do not wait for reads; a change waits for all.
        assert_eq!(
            waits.add(1, 2, (70, 80), &[(0, Use::Change)], [None; 2]),
            [wait(0, 1), wait(2, 2)]
        );
    }

    #[test]
    fn changes_that_commute_wait_for_reads_only() {
        let mut waits = Waits::new(1, 3);
        waits.add(0, 1, (0, 10), &[(0, Use::Commute)], [None; 2]);
        assert_eq!(waits.add(1, 1, (20, 30), &[(0, Use::Commute)], [None; 2]), []);
        let found = waits.add(2, 1, (40, 50), &[(0, Use::Read)], [None; 2]);
        assert_eq!(found, [Wait { worker: 0, done: 1 }, Wait { worker: 1, done: 1 }]);
    }
}
