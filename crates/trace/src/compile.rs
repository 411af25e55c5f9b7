//! Compilation of a recording to the operations of the workers of a replay.

use std::ffi::CString;

use model::phase::{FileCall, TraceOrder};

use crate::{
    Node, NodeKind, Op, Recording, TraceError,
    check::TRANSFER,
    effects::{Compiler, Effect},
    order::{self, Wait, Waits},
};

/// Maximum number of workers.
const WORKERS: u32 = 1024;

/// Number of the rules by which recordings are compiled. Results of different rules are not
/// comparable.
pub const RULES: u32 = 2;

/// Compiled recording.
#[derive(Debug, Default)]
pub struct Program {
    /// Operations of each worker.
    pub workers: Vec<Vec<Step>>,
    /// Waits of all steps.
    pub waits: Vec<Wait>,
    /// Paths of the recording, and paths that were added here.
    pub paths: Vec<CString>,
    /// Files before the replay.
    pub nodes: Vec<Node>,
    /// Number of descriptors.
    pub descriptors: u32,
    /// Largest transfer in bytes.
    pub transfer: u64,
    /// Operations that are not replayed: their path leaves the root, or they change an extended
    /// attribute that is not one of the user.
    pub left_out: u64,
}

impl Program {
    /// True if a FIFO existed before, or is created.
    pub fn has_fifos(&self) -> bool {
        let mut steps = self.workers.iter().flatten();
        self.nodes.iter().any(|node| node.kind == NodeKind::Fifo)
            || steps.any(|step| {
                step.op.call == FileCall::Mknod && step.op.flags == u64::from(libc::S_IFIFO)
            })
    }
}

/// Operation of a replay.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Operation. Its paths are numbers in [`Program::paths`], plus 1.
    pub op: Op,
    /// Path from the root to the same file without symbolic links and `..`; [`NONE`] if
    /// [`Op::path`] has none of them. For replays that must not follow links.
    pub straight: u32,
    /// As [`Self::straight`], for [`Op::path2`].
    pub straight2: u32,
    /// First wait in [`Program::waits`].
    pub first_wait: u32,
    /// Number of waits.
    pub waits: u32,
}

/// Compiles a recording.
///
/// # Errors
/// [`TraceError::Refused`] if the recording has more tasks at the same time than a replay supports,
/// or [`TraceError::Damaged`] if it is not valid.
pub fn compile(recording: &Recording, order: TraceOrder) -> Result<Program, TraceError> {
    let (of_task, count) = order::workers(recording);
    if count > WORKERS {
        return Err(TraceError::Refused(format!(
            "{count} of its tasks ran at the same time; a replay has at most {WORKERS} workers"
        )));
    }
    let mut compiler = Compiler::new(recording, order);
    let mut all: Vec<(usize, usize)> = Vec::with_capacity(recording.operations());
    for (index, task) in recording.tasks.iter().enumerate() {
        all.extend((0..task.ops.len()).map(|place| (index, place)));
    }
    let op = |(task, place): (usize, usize)| &recording.tasks[task].ops[place];
    all.sort_by_key(|at| (op(*at).end(), op(*at).begin));
    // Uses of each operation, by task and place.
    let mut effects: Vec<Vec<Effect>> =
        recording.tasks.iter().map(|task| vec![Effect::default(); task.ops.len()]).collect();
    for at in &all {
        effects[at.0][at.1] = compiler.apply(op(*at));
    }
    all.sort_by_key(|at| (op(*at).begin, op(*at).end()));
    let mut waits = Waits::new(compiler.resources(), count);
    let scale = recording.think_scale();
    let mut program = Program { workers: vec![Vec::new(); count as usize], ..Program::default() };
    // Number of steps of the worker up to each operation; left-out operations repeat the number.
    let mut numbers: Vec<Vec<u32>> =
        recording.tasks.iter().map(|task| Vec::with_capacity(task.ops.len())).collect();
    for (task, place) in all {
        let worker = of_task[task];
        let (own, effect) = (op((task, place)), effects[task][place]);
        let steps = &mut program.workers[worker as usize];
        if effect.leaves {
            program.left_out += 1;
            numbers[task].push(u32::try_from(steps.len()).unwrap_or(u32::MAX));
            continue;
        }
        let number = u32::try_from(steps.len() + 1).unwrap_or(u32::MAX);
        let created_by = (place == 0 && order != TraceOrder::Tasks)
            .then(|| order::before_creation(recording, task))
            .flatten()
            .and_then(|(parent, count)| Some((of_task[parent], *numbers[parent].get(count - 1)?)));
        let awaited = (own.call == FileCall::Wait && order != TraceOrder::Tasks)
            .then(|| order::awaited(recording, own))
            .flatten()
            .and_then(|(other, count)| {
                // Later operations were not waited for.
                let own = &numbers[other];
                Some((of_task[other], *own.get(count.min(own.len()).checked_sub(1)?)?))
            });
        let uses = compiler.uses_of(effect);
        let others = [created_by, awaited];
        let found = waits.add(worker, number, (own.begin, own.end()), uses, others);
        steps.push(Step {
            op: Op { think: scale.apply(own.think), ..*own },
            straight: effect.straight,
            straight2: effect.straight2,
            first_wait: u32::try_from(program.waits.len()).unwrap_or(u32::MAX),
            waits: u32::try_from(found.len()).unwrap_or(0),
        });
        program.waits.extend(found);
        numbers[task].push(number);
        program.descriptors = program.descriptors.max(own.opened);
        if own.call.moves_data() {
            program.transfer = program.transfer.max(own.size.min(TRANSFER));
        }
    }
    program.nodes.clone_from(&recording.nodes);
    for path in compiler.paths {
        program.paths.push(
            CString::new(path).map_err(|_| TraceError::Damaged("a path has a NUL byte".into()))?,
        );
    }
    Ok(program)
}
