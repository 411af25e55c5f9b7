//! What the load generator itself costs, for each kind of phase, measured once in a run.
//!
//! Enters: the phases of a trial. Leaves: nanoseconds for an operation of the same loop on an
//! engine that makes no call. What a phase does with its number is up to [`super::name`].

use model::{
    Phase,
    phase::{Bound, Direction, Files, Flush, Interface, Open, Pace, Role, Stream, Work, Workers},
};

/// Loops measured so far.
#[derive(Debug, Default)]
pub(super) struct Ceilings(Vec<(Stream, Option<f64>)>);

impl Ceilings {
    /// Nanoseconds that the loop of a measured stream takes for an operation; takes some 20 ms the
    /// first time. `None` for work of another kind, for what is paced, and for a loop that cannot
    /// run without its file.
    pub(super) fn of(&mut self, phase: &Phase) -> Option<f64> {
        let Work::Stream(stream) = &phase.work else { return None };
        if phase.role != Role::Measure || stream.pace != Pace::Free {
            return None;
        }
        let stream = bare(stream);
        if let Some((_, cost)) = self.0.iter().find(|(known, _)| *known == stream) {
            return *cost;
        }
        let cost = engine::ceiling(&stream).ok().map(engine::Ceiling::nanos_per_op);
        self.0.push((stream, cost));
        cost
    }
}

/// What matters to the cost of the loop: order, lengths, directions, and content. The rest is as
/// [`engine::ceiling`] would set it anyway, so that equal loops are equal.
fn bare(stream: &Stream) -> Stream {
    let direction = match stream.direction {
        // Writers cost more, since they stamp what they write.
        Direction::Alternate | Direction::FirstRead(_) => Direction::Write,
        Direction::Read | Direction::Write | Direction::Mixed(_) | Direction::Update(_) => {
            stream.direction
        }
    };
    Stream {
        files: Files::One("null".into()),
        direction,
        interface: Interface::Null,
        open: Open::default(),
        verify: false,
        flush_every: None,
        flush: Flush::None,
        pace: Pace::Free,
        bound: Bound::Once,
        workers: Workers::ONE,
        ..stream.clone()
    }
}

#[cfg(test)]
mod tests {
    use model::{
        Bytes,
        phase::{Access, Cache, Fill, Timed},
    };

    use super::*;

    fn phase(stream: Stream) -> Phase {
        Phase {
            name: "p".into(),
            group: "reading".into(),
            role: Role::Measure,
            cache: Cache::AsLeft,
            work: Work::Stream(stream),
            timed: Timed::default(),
        }
    }

    #[test]
    fn updates_with_tickets_have_a_ceiling() {
        let stream = Stream {
            direction: Direction::Update(0.1),
            access: Access::Tickets,
            interface: Interface::Position,
            fill: Fill::Marks,
            bound: Bound::Together(100),
            workers: Workers::threads(5),
            ..Stream::new(Files::Shared("f".into()), Bytes::mib(1), Bytes::kib(8))
        };
        let cost = Ceilings::default().of(&phase(stream));
        assert!(cost.is_some_and(|cost| cost > 0.0));
    }

    #[test]
    fn equal_loops_are_measured_once_and_paced_ones_never() {
        let mut ceilings = Ceilings::default();
        let stream = Stream::new(Files::One("f".into()), Bytes::mib(1), Bytes::kib(4));
        let first = ceilings.of(&phase(stream.clone()));
        assert!(first.is_some_and(|cost| cost > 0.0));
        let other = Stream {
            files: Files::PerWorker("g".into()),
            flush: Flush::Fsync,
            workers: Workers::threads(4),
            ..stream.clone()
        };
        assert_eq!(ceilings.of(&phase(other)), first);
        assert_eq!(ceilings.0.len(), 1);
        let paced = Stream { pace: Pace::Think { ops: 1, pause: model::Nanos(1) }, ..stream };
        assert_eq!(ceilings.of(&phase(paced)), None);
        assert_eq!(ceilings.0.len(), 1);
    }
}
