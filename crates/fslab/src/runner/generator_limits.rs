//! Load generator overhead of each kind of phase, measured once per run.
//!
//! Input: the phases of a trial. Output: nanoseconds per operation of the same I/O loop on the null
//! engine, which performs no system calls. [`super::samples`] compares this time with the measured
//! time.

use model::{
    Phase,
    phase::{
        Bound, Direction, EndSync, FileSharing, IoEngineKind, Open, Pace, Role, Stream, Work,
        Workers,
    },
};

/// Streams whose loops were measured, with the time per operation in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct GeneratorLimits(Vec<(Stream, Option<f64>)>);

impl GeneratorLimits {
    /// Nanoseconds per operation of the I/O loop of a measured stream; the first call for a kind of
    /// stream takes about 20 ms. `None` for other work, for paced operations, and for a loop that
    /// cannot run without a file.
    pub(super) fn of(&mut self, phase: &Phase) -> Option<f64> {
        let Work::Stream(stream) = &phase.work else { return None };
        if phase.role != Role::Measure || stream.pace != Pace::Free {
            return None;
        }
        let stream = bare(stream);
        if let Some((_, cost)) = self.0.iter().find(|(known, _)| *known == stream) {
            return *cost;
        }
        let cost = engine::generator_limit(&stream).ok().map(engine::GeneratorLimit::nanos_per_op);
        self.0.push((stream, cost));
        cost
    }
}

/// Stream with the properties that affect the cost of the loop: order, lengths, directions, and
/// content. All other properties get the values of [`engine::generator_limit`], so that equal loops
/// compare equal.
fn bare(stream: &Stream) -> Stream {
    let direction = match stream.direction {
        // The writing loop is slower, because writers stamp each block.
        Direction::Alternate | Direction::FirstRead(_) => Direction::Write,
        Direction::Read | Direction::Write | Direction::Mixed(_) | Direction::Update(_) => {
            stream.direction
        }
    };
    Stream {
        files: FileSharing::One("null".into()),
        direction,
        io_engine: IoEngineKind::Null,
        open: Open::default(),
        verify: false,
        sync_every: None,
        end_sync: EndSync::None,
        pace: Pace::Free,
        bound: Bound::Once,
        workers: Workers::ONE,
        operation_log: None,
        ..stream.clone()
    }
}

#[cfg(test)]
mod tests {
    use model::{
        Bytes,
        phase::{AccessPattern, Cache, DataPattern, Timed},
    };

    use super::*;

    fn phase(stream: Stream) -> Phase {
        Phase {
            name: "p".into(),
            group: "reading".into(),
            role: Role::Measure,
            cache: Cache::Unchanged,
            work: Work::Stream(stream),
            timed: Timed::default(),
            directory: None,
            together: None,
        }
    }

    #[test]
    fn updates_with_tickets_have_a_generator_limit() {
        let stream = Stream {
            direction: Direction::Update(0.1),
            access_pattern: AccessPattern::Tickets,
            io_engine: IoEngineKind::Position,
            data: DataPattern::Marks,
            bound: Bound::Together(100),
            workers: Workers::threads(5),
            ..Stream::new(FileSharing::Shared("f".into()), Bytes::mib(1), Bytes::kib(8))
        };
        let cost = GeneratorLimits::default().of(&phase(stream));
        assert!(cost.is_some_and(|cost| cost > 0.0));
    }

    #[test]
    fn equal_loops_are_measured_once_and_paced_ones_never() {
        let mut ceilings = GeneratorLimits::default();
        let stream = Stream::new(FileSharing::One("f".into()), Bytes::mib(1), Bytes::kib(4));
        let first = ceilings.of(&phase(stream.clone()));
        assert!(first.is_some_and(|cost| cost > 0.0));
        let other = Stream {
            files: FileSharing::PerWorker("g".into()),
            end_sync: EndSync::Fsync,
            workers: Workers::threads(4),
            ..stream.clone()
        };
        assert_eq!(ceilings.of(&phase(other)), first);
        assert_eq!(ceilings.0.len(), 1);
        let paced = Stream { pace: Pace::Limit(model::phase::Rate::Ops(1)), ..stream };
        assert_eq!(ceilings.of(&phase(paced)), None);
        assert_eq!(ceilings.0.len(), 1);
    }
}
