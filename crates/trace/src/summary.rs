//! Summary of a recording, for `fslab trace show` and for the facts of a run.
//!
//! Facts of a recording: `program`, `root`, `kernel`, `recorder`, `user`, `status`, `elapsed_ns`,
//! `calls_stopped`; `calls_cpu_ns` (CPU time of the recorded calls); `stop_cost_ns` (CPU time of a
//! thread for the stops of one call, which is not part of [`Op::think`](crate::Op::think)) and
//! `call_cost_ns` (recorded time of a call that does nothing); `baseline_elapsed_ns`,
//! `baseline_user_ns`, and `baseline_system_ns` of runs without the recorder; `processes_killed` if
//! the recording was interrupted; `mapped_bytes` and `mapped_writable_bytes` of mmap(2);
//! `rings_denied`; and `not_recorded.NAME` for each kind of call that is not recorded.
#![expect(clippy::wildcard_enum_match_arm, reason = "the other calls need no special handling")]

use std::collections::BTreeMap;

use model::phase::FileCall;

use crate::{Recording, block_log, order};

/// Summary of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Operations of each kind.
    pub calls: BTreeMap<FileCall, Total>,
    /// Tasks with operations.
    pub tasks: usize,
    /// Workers of a replay: tasks that ran at the same time.
    pub workers: u32,
    /// Bytes that were read.
    pub read: u64,
    /// Bytes that were written.
    pub written: u64,
    /// CPU time between operations, in nanoseconds, as a replay uses it.
    pub think: u64,
    /// Time in operations of all tasks, in nanoseconds.
    pub in_calls: u64,
    /// As [`Self::in_calls`], without the time that the recorder adds.
    pub in_calls_net: u64,
    /// Fraction of the time of the tasks that their operations take, without the time that the
    /// recorder adds to them. The rest is CPU time between operations. `None` without any time, and
    /// for logs of block I/O, which do not have the times of calls.
    pub share: Option<f64>,
    /// Files before the program started.
    pub files: usize,
    /// Bytes of these files.
    pub file_bytes: u64,
}

/// Operations of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Number.
    pub count: u64,
    /// Number that failed.
    pub failed: u64,
    /// Bytes that were transferred.
    pub bytes: u64,
    /// Sum of their times in nanoseconds.
    pub time: u64,
}

/// Summary of a recording.
pub fn summary(recording: &Recording) -> Summary {
    let mut summary = Summary {
        workers: order::workers(recording).1,
        files: recording.nodes.len(),
        file_bytes: recording
            .nodes
            .iter()
            .filter(|node| node.kind == crate::NodeKind::File && node.same == crate::NONE)
            .fold(0, |sum: u64, node| sum.saturating_add(node.size)),
        ..Summary::default()
    };
    let scale = recording.think_scale();
    let cost = recording.facts.get("call_cost_ns").and_then(|text| text.parse().ok());
    for task in recording.tasks.iter().filter(|task| !task.ops.is_empty()) {
        summary.tasks += 1;
        for op in &task.ops {
            let total = summary.calls.entry(op.call).or_default();
            total.count += 1;
            total.failed += u64::from(!op.succeeded());
            total.bytes = total.bytes.saturating_add(op.bytes());
            total.time = total.time.saturating_add(op.length);
            summary.think = summary.think.saturating_add(scale.apply(op.think));
            let net = op.length.saturating_sub(cost.unwrap_or(0));
            summary.in_calls_net = summary.in_calls_net.saturating_add(net);
            summary.in_calls = summary.in_calls.saturating_add(op.length);
            match op.call {
                FileCall::Write | FileCall::Pwrite | FileCall::CopyRange | FileCall::Sendfile => {
                    summary.written = summary.written.saturating_add(op.bytes());
                }
                _ => summary.read = summary.read.saturating_add(op.bytes()),
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a fraction")]
    let share = |part: u64, rest: u64| part as f64 / (part as f64 + rest as f64);
    summary.share = Some(share(summary.in_calls_net, summary.think))
        .filter(|share| share.is_finite() && !block_log::has_made(recording));
    summary
}
