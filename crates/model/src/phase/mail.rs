//! Mail: messages are delivered to a mailbox, and read from it at the same time.

use serde::{Deserialize, Serialize};

use super::{together::TimeLimit, tree::Sizes};
use crate::units::Nanos;

/// Work on one mailbox, which does not exist before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mail {
    /// Format of the mailbox.
    pub format: MailFormat,
    /// Messages per deliverer, at least 1; not used if `time` limits the loop.
    pub messages: u64,
    /// Time limit; `None`: the number of messages ends the loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeLimit>,
    /// Sizes of the messages.
    pub sizes: Sizes,
    /// Workers that deliver messages, at least 1. The readers are the workers after them.
    pub deliverers: u32,
    /// Workers that read messages.
    pub readers: u32,
    /// Pause of a reader that found no new message.
    pub poll_interval: Nanos,
    /// Seed of the sizes and of the contents.
    pub seed: u64,
}

/// Format of a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MailFormat {
    /// A file per message, in the directories `tmp`, `new`, and `cur`.
    Maildir,
    /// One file, which is locked while it is read or written.
    Mbox,
}

impl MailFormat {
    /// All formats.
    pub const ALL: [Self; 2] = [Self::Maildir, Self::Mbox];

    /// Name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Maildir => "maildir",
            Self::Mbox => "mbox",
        }
    }
}
