//! Log of the histograms of intervals, in the form of fio.
//!
//! ```text
//! milliseconds, direction (0 read, 1 write), bytes of the last operation, number in each bin, …
//! ```
//!
//! Bins are those of fio: 29 groups of 64. Latencies below 128 ns have a bin each. In each later
//! group, the bins are twice as wide as in the one before (fio(1), `log_hist_coarseness`;
//! boundaries from logs of fio 3.33).

use std::io::{self, Write};

use model::{Bytes, phase::HistogramLog};

/// Bins per group.
const GROUP: u64 = 64;

/// Number of bins.
const BINS: usize = 29 * 64;

/// Number of operations in a bin.
type Cell = (u16, u32);

/// Histogram of an interval.
#[derive(Debug)]
struct Interval {
    ended: u64,
    writes: bool,
    bytes: u64,
    // First cell; the last one precedes that of the next interval.
    first: usize,
}

/// Operations of one direction in the current interval.
#[derive(Debug)]
struct Current {
    bins: Box<[u32]>,
    begun: u64,
}

/// Histograms of a worker.
#[derive(Debug)]
pub(super) struct Histograms {
    settings: HistogramLog,
    current: [Current; 2],
    intervals: Vec<Interval>,
    cells: Vec<Cell>,
}

impl Histograms {
    /// Maximum memory of the histograms of all workers.
    pub(super) const MOST: Bytes = Bytes::mib(256);

    /// Histograms with reserved memory for a worker of this many; `None` if there is not enough.
    pub(super) fn new(settings: HistogramLog, workers: u32) -> Option<Self> {
        let room = usize::try_from(Self::MOST.0 / u64::from(workers.max(1))).unwrap_or(usize::MAX);
        let (mut intervals, mut cells) = (Vec::new(), Vec::new());
        if settings.interval.0 > 0 {
            intervals.try_reserve_exact(room / 8 / size_of::<Interval>()).ok()?;
            cells.try_reserve_exact(room * 7 / 8 / size_of::<Cell>()).ok()?;
        }
        let current = [(); 2].map(|()| Current { bins: vec![0; BINS].into(), begun: 0 });
        Some(Self { settings, current, intervals, cells })
    }

    /// Path of the log without the name and the number of the worker.
    pub(super) fn path(&self) -> &str {
        &self.settings.path
    }

    /// Adds an operation that ended at a time since the start. Returns false if the memory is full.
    pub(super) fn add(&mut self, writes: bool, bytes: u64, latency: u64, ended: u64) -> bool {
        let interval = self.settings.interval.0;
        if interval == 0 {
            return true;
        }
        let current = &mut self.current[usize::from(writes)];
        let number = &mut current.bins[bin(latency)];
        *number = number.saturating_add(1);
        if ended.saturating_sub(current.begun) < interval {
            return true;
        }
        current.begun = ended - ended % interval;
        let used = current.bins.iter().filter(|number| **number > 0).count();
        let room = self.cells.capacity() - self.cells.len();
        if room < used || self.intervals.len() == self.intervals.capacity() {
            current.bins.fill(0);
            return false;
        }
        self.intervals.push(Interval { ended, writes, bytes, first: self.cells.len() });
        for (place, number) in current.bins.iter_mut().enumerate() {
            if *number > 0 {
                self.cells.push((u16::try_from(place).unwrap_or(u16::MAX), *number));
                *number = 0;
            }
        }
        true
    }

    /// Writes the lines. Operations of an incomplete last interval have none, as in fio.
    pub(super) fn lines(&self, writer: &mut impl Write) -> io::Result<()> {
        let shift = self.settings.coarseness.min(6);
        let mut joined = vec![0u64; BINS >> shift];
        for (place, own) in self.intervals.iter().enumerate() {
            let end = self.intervals.get(place + 1).map_or(self.cells.len(), |next| next.first);
            joined.fill(0);
            for (bin, number) in &self.cells[own.first..end] {
                joined[usize::from(*bin) >> shift] += u64::from(*number);
            }
            let (time, direction) = (own.ended / 1_000_000, u8::from(own.writes));
            write!(writer, "{time}, {direction}, {}", own.bytes)?;
            for number in &joined {
                write!(writer, ", {number}")?;
            }
            writeln!(writer)?;
        }
        Ok(())
    }
}

/// Bin of a latency in nanoseconds; the last one also has all larger latencies.
fn bin(latency: u64) -> usize {
    let group = (u64::from(latency.max(1).ilog2()) + 1).saturating_sub(7);
    let place = (group * GROUP) + (latency >> group);
    usize::try_from(place).unwrap_or(usize::MAX).min(BINS - 1)
}

#[cfg(test)]
mod tests {
    use model::Nanos;

    use super::*;

    fn histograms(interval: u64, coarseness: u8) -> Histograms {
        let interval = Nanos(interval);
        Histograms::new(HistogramLog { path: "h".into(), interval, coarseness }, 1).unwrap()
    }

    fn text(histograms: &Histograms) -> Vec<Vec<u64>> {
        let mut bytes = Vec::new();
        histograms.lines(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        text.lines()
            .map(|line| line.split(", ").map(|own| own.parse().unwrap()).collect())
            .collect()
    }

    #[test]
    fn bins_double_their_width_in_each_group() {
        for (latency, expected) in [
            (0, 0),
            (63, 63),
            (64, 64),
            (127, 127),
            (128, 128),
            (129, 128),
            (130, 129),
            (255, 191),
            (256, 192),
            (259, 192),
            (260, 193),
            (u64::MAX, BINS - 1),
        ] {
            assert_eq!(bin(latency), expected, "{latency}");
        }
        let all: Vec<usize> = (0..1 << 20).map(bin).collect();
        assert!(all.windows(2).all(|two| two[1] == two[0] || two[1] == two[0] + 1));
    }

    #[test]
    fn an_interval_has_a_line_per_direction() {
        let mut own = histograms(500_000_000, 6);
        assert!(own.add(false, 4096, 10, 100));
        assert!(own.add(true, 8192, 70, 200));
        assert!(own.add(false, 4096, 200, 501_000_000));
        assert!(own.add(true, 8192, 70, 502_000_000));
        assert!(own.add(false, 4096, 10, 600_000_000));
        let lines = text(&own);
        assert_eq!(lines.len(), 2, "the last interval is not complete");
        assert_eq!(lines[0][..6], [501, 0, 4096, 1, 0, 1]);
        assert_eq!(lines[1][..6], [502, 1, 8192, 0, 2, 0]);
        assert!(lines.iter().all(|line| line.len() == 3 + 29));
    }

    #[test]
    fn a_log_without_an_interval_is_empty() {
        let mut own = histograms(0, 0);
        assert!(own.add(false, 4096, 10, u64::MAX));
        assert!(text(&own).is_empty());
        let mut fine = histograms(1, 0);
        assert!(fine.add(true, 512, 1000, 5));
        let lines = text(&fine);
        assert_eq!((lines[0].len(), lines[0].iter().skip(3).sum::<u64>()), (3 + 1856, 1));
    }
}
