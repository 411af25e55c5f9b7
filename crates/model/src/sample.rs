//! One value of one metric of one phase of one trial: the only form in which results are kept.

use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// One value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The phase it belongs to; life-cycle steps have the names in [`lifecycle`].
    pub phase: String,
    /// What was measured; gives unit and direction.
    pub metric: Metric,
    /// The worker, or `None` for all of them together.
    pub worker: Option<u32>,
    /// The value in the metric's base unit; finite.
    pub value: f64,
}

/// Names of the steps around the phases of a trial.
pub mod lifecycle {
    /// Making the filesystem.
    pub const MKFS: &str = "mkfs";
    /// What the plan does to it between mkfs and the workload, all steps together.
    pub const SETUP: &str = "setup";
    /// Mounting it for the first time.
    pub const MOUNT: &str = "mount";
    /// Unmounting it at the end.
    pub const UMOUNT: &str = "umount";
    /// The space it takes after the phases, before it is unmounted.
    pub const SPACE: &str = "space";
    /// Checking it, read-only, after the end.
    pub const FSCK: &str = "fsck";
    /// The trial as a whole, from before its filesystem is made until it is gone.
    pub const TRIAL: &str = "trial";
    /// The steps that take time, in order.
    pub const ALL: [&str; 5] = [MKFS, SETUP, MOUNT, UMOUNT, FSCK];
}
