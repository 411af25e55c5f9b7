//! Direction of operations.

use fastrand::Rng;
use model::phase::{AccessPattern, Direction, Pace, Stream};

use super::draw::Chance;
use crate::{io::Kind, pace::ByDirection};

/// Source of the direction of operations.
#[derive(Clone, Copy, Debug)]
pub(super) enum DirectionSource {
    /// One direction.
    Always(Kind),
    /// Read with this probability, otherwise write.
    Mixed(Chance),
    /// The direction that is due first ([`crate::pace::ByDirection`]).
    Scheduled,
    /// Depends on the ticket: a write if it is a multiple of ten, otherwise a read.
    Ticket,
}

impl DirectionSource {
    /// Source of a worker.
    pub(super) fn of(stream: &Stream, worker: u32) -> Self {
        match stream.direction {
            Direction::Update(_) if stream.access_pattern == AccessPattern::Tickets => Self::Ticket,
            Direction::Mixed(_) if matches!(stream.pace, Pace::OpenByDirection { .. }) => {
                Self::Scheduled
            }
            Direction::Mixed(share) => Self::Mixed(Chance::new(share)),
            Direction::Update(share) => Self::Mixed(Chance::new(1.0 - share)),
            Direction::Read | Direction::Write | Direction::Alternate | Direction::FirstRead(_) => {
                let reads = stream.direction.reads(worker);
                Self::Always(if reads { Kind::Read } else { Kind::Write })
            }
        }
    }

    /// Draws the direction of the next operation of a mixed stream.
    pub(super) fn draw(self, random: &mut Rng) -> Kind {
        match self {
            Self::Always(kind) => kind,
            Self::Mixed(read) if read.happens(random) => Kind::Read,
            Self::Mixed(_) | Self::Scheduled | Self::Ticket => Kind::Write,
        }
    }

    /// The same source, with the direction of the next operation of `len` bytes if it is scheduled.
    pub(super) fn fixed(self, schedules: &mut Option<Box<ByDirection>>, len: u64) -> Self {
        match self {
            Self::Scheduled => Self::Always(scheduled(schedules, len)),
            Self::Always(_) | Self::Mixed(_) | Self::Ticket => self,
        }
    }
}

/// Direction of an operation of `len` bytes: the one that is due first.
pub(super) fn scheduled(schedules: &mut Option<Box<ByDirection>>, len: u64) -> Kind {
    schedules.as_mut().map_or(Kind::Read, |schedules| schedules.take(len))
}
