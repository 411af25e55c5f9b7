//! Sample: one value of one metric in one phase of one trial. All results are stored as samples.

use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// Value of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Phase, or a lifecycle step named in [`lifecycle`].
    pub phase: String,
    /// Metric, which determines unit and direction.
    pub metric: Metric,
    /// Worker; `None` for all workers together.
    pub worker: Option<u32>,
    /// Value in the base unit of the metric; always finite.
    pub value: f64,
}

/// Names of the lifecycle steps of a trial.
pub mod lifecycle {
    /// mkfs: creates the filesystem.
    pub const MKFS: &str = "mkfs";
    /// All setup steps of the plan, between mkfs and the workload.
    pub const SETUP: &str = "setup";
    /// First mount.
    pub const MOUNT: &str = "mount";
    /// Last unmount.
    pub const UMOUNT: &str = "umount";
    /// Measurement of the used space after the phases, before the last unmount.
    pub const SPACE: &str = "space";
    /// Read-only check after the last unmount.
    pub const FSCK: &str = "fsck";
    /// Whole trial, from before mkfs until the filesystem is removed.
    pub const TRIAL: &str = "trial";
    /// Timed steps, in order.
    pub const ALL: [&str; 5] = [MKFS, SETUP, MOUNT, UMOUNT, FSCK];
}
