//! Orders with a constant step: forward, backward, and staying in place.

/// From a first record on by a constant step.
#[derive(Clone, Debug)]
pub(crate) struct Linear {
    next: u64,
    // Added with wrapping: -1 is u64::MAX, which spares the loop a signed conversion.
    step: u64,
    left: u64,
}

impl Linear {
    /// 0, 1, … n-1.
    pub(crate) fn sequential(n: u64) -> Self {
        Self { next: 0, step: 1, left: n }
    }

    /// n-1, … 1, 0.
    pub(crate) fn backward(n: u64) -> Self {
        Self { next: n.wrapping_sub(1), step: u64::MAX, left: n }
    }

    /// n times 0.
    pub(crate) fn same_record(n: u64) -> Self {
        Self { next: 0, step: 0, left: n }
    }
}

impl Iterator for Linear {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        let record = self.next;
        self.next = record.wrapping_add(self.step);
        Some(record)
    }
}
