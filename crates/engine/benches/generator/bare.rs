//! Bare loops: the minimal code that makes the same calls, as baseline for the load generator
//! overhead.
//!
//! They handle no signals, record no latencies unless stated, and read the clock to detect the end.

use std::{fs::File, os::fd::AsRawFd, time::Duration};

use engine::now;
use io_uring::{IoUring, opcode, types};
use model::{Histogram, Nanos};
use rustix::io::{pread, pwrite};

use crate::rate::Rate;

/// Random block numbers from wyrand, mapped to their range by a multiplication.
struct RandomOffsets(fastrand::Rng, u64);

impl RandomOffsets {
    fn next(&mut self) -> u64 {
        let product = u128::from(self.0.u64(..)) * u128::from(self.1);
        (product >> 64) as u64
    }
}

/// Page-aligned memory, as used for direct I/O in fslab, because the alignment of a buffer affects
/// the speed of copies in the kernel by several percent.
struct Memory(Vec<u8>, usize, usize);

impl Memory {
    fn new(len: usize) -> Self {
        let bytes = vec![0x5a; len + 4096];
        let first = bytes.as_ptr().align_offset(4096);
        Self(bytes, first, len)
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.0[self.1..][..self.2]
    }
}

fn deadline(length: Duration) -> Nanos {
    now() + Nanos::from(length)
}

/// pread(2) of 4 KiB at random offsets. The clock is read before and after each call.
pub(crate) fn pread_4k(file: &File, size: u64, length: Duration) -> Rate {
    let mut memory = Memory::new(4096);
    let buffer = memory.bytes();
    let mut offsets = RandomOffsets(fastrand::Rng::with_seed(1), size / 4096);
    let (started, deadline) = (now(), deadline(length));
    let mut ops = 0;
    loop {
        let before = now();
        pread(file, &mut *buffer, offsets.next() * 4096).expect("the file exists");
        let after = now();
        std::hint::black_box(after - before);
        ops += 1;
        if after >= deadline {
            return Rate::new(ops, after - started);
        }
    }
}

/// Sequential pread(2) or pwrite(2) of 1 MiB, with one clock read per call. The file is read or
/// written repeatedly.
pub(crate) fn sequential_1m(file: &File, size: u64, writes: bool, length: Duration) -> Rate {
    let mut memory = Memory::new(1 << 20);
    let buffer = memory.bytes();
    let (started, deadline) = (now(), deadline(length));
    let (mut ops, mut offset) = (0, 0);
    loop {
        let moved = match writes {
            true => pwrite(file, &*buffer, offset),
            false => pread(file, &mut *buffer, offset),
        };
        assert_eq!(moved.expect("the file exists"), buffer.len());
        ops += 1;
        offset += 1 << 20;
        if offset == size {
            offset = 0;
        }
        let after = now();
        if after >= deadline {
            return Rate::new(ops, after - started);
        }
    }
}

/// Statistics of a bare io_uring loop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// No statistics. The clock is read once per batch to detect the end.
    Nothing,
    /// Histogram of latencies, with one clock read before an operation is queued and one after its
    /// completion is read.
    Each,
}

/// io_uring with registered file and buffers and a full queue. The operations are random reads of 4
/// KiB, or NOPs without a file.
pub(crate) fn ring(
    file: Option<(&File, u64)>,
    depth: u32,
    counting: Counting,
    length: Duration,
) -> Rate {
    let mut memory = Memory::new(4096 * depth as usize);
    let base = memory.bytes().as_mut_ptr();
    let mut builder = IoUring::<io_uring::squeue::Entry>::builder();
    builder.setup_single_issuer().setup_defer_taskrun();
    let mut ring = builder.build(depth).expect("io_uring is available");
    let mut offsets =
        RandomOffsets(fastrand::Rng::with_seed(1), file.map_or(1, |(_, size)| size / 4096));
    if let Some((file, _)) = file {
        ring.submitter().register_files(&[file.as_raw_fd()]).expect("one file can be registered");
        let buffers = [libc::iovec { iov_base: base.cast(), iov_len: 4096 * depth as usize }];
        // SAFETY: the memory outlives the ring, which is dropped at the end of this function.
        unsafe { ring.submitter().register_buffers(&buffers) }.expect("128 KiB can be registered");
    }
    let mut entry = |slot: u64| match file {
        None => opcode::Nop::new().build().user_data(slot),
        // SAFETY: the slot is below the depth, so its 4 KiB are inside the memory.
        Some(_) => opcode::ReadFixed::new(
            types::Fixed(0),
            unsafe { base.add(usize::try_from(slot).unwrap_or(0) * 4096) },
            4096,
            0,
        )
        .offset(offsets.next() * 4096)
        .build()
        .user_data(slot),
    };
    let (submitter, mut submission, mut completion) = ring.split();
    for slot in 0..u64::from(depth) {
        // SAFETY: file and buffers outlive the ring.
        unsafe { submission.push(&entry(slot)) }.expect("the queue has `depth` entries");
    }
    submission.sync();
    let (started, deadline) = (now(), deadline(length));
    let mut ops = 0;
    let mut begun = vec![started; depth as usize];
    let mut histogram = Histogram::new();
    loop {
        submitter.submit_and_wait(1).expect("the ring works");
        completion.sync();
        submission.sync();
        for done in &mut completion {
            assert_eq!(done.result(), if file.is_some() { 4096 } else { 0 });
            ops += 1;
            let slot = done.user_data();
            if counting == Counting::Each {
                let begun = &mut begun[usize::try_from(slot).unwrap_or(usize::MAX)];
                histogram.record((now() - *begun).0);
                *begun = now();
            }
            // SAFETY: as above.
            unsafe { submission.push(&entry(slot)) }.expect("one entry is free");
        }
        submission.sync();
        let after = now();
        if after >= deadline {
            return drain(ops, after - started, depth, &submitter, &mut completion);
        }
    }
}

/// Waits for operations in flight before the memory is released.
fn drain(
    ops: u64,
    elapsed: Nanos,
    depth: u32,
    submitter: &io_uring::Submitter<'_>,
    completion: &mut io_uring::CompletionQueue<'_>,
) -> Rate {
    let mut left = depth;
    while left > 0 {
        submitter.submit_and_wait(1).expect("the ring works");
        completion.sync();
        left -= u32::try_from(completion.by_ref().count()).unwrap_or(left);
    }
    Rate::new(ops, elapsed)
}
