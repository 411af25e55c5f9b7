//! Workload sizes of the demo: each phase takes about half a second on this machine, the demo a few
//! minutes.

use std::{
    fs::File,
    io::{self, Seek, SeekFrom, Write},
    path::Path,
    time::{Duration, Instant},
};

use model::Bytes;
use rustix::fs::{Mode, OFlags};

/// Target duration of each phase, in seconds.
const PHASE: f64 = 0.5;

/// Minimum and maximum file size in MiB. An image with the maximum fits most machines. The minimum
/// is twice the smallest memory limit of a run.
const FILE_MIB: (u64, u64) = (128, 256);

/// Numbers of messages. A message takes about as long as twelve syncs of the probe: its file and
/// its directory are synced through a loop device, with two journal commits.
const MESSAGES: [u16; 5] = [30, 100, 300, 1000, 3000];
const SYNCS_PER_MESSAGE: f64 = 12.0;

/// To measure the throughput, `WRITTEN` bytes are written in calls of `CALL` bytes. Then at most
/// `SYNCS` writes of `SMALL` bytes are synced.
const WRITTEN: u64 = 64 << 20;
const CALL: usize = 1 << 20;
const SMALL: usize = 16 << 10;
const SYNCS: u32 = 32;

/// Time limit of each measurement.
const LIMIT: Duration = Duration::from_secs(2);

/// Speed of the storage of a directory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Speed {
    /// Throughput of large writes including the sync, in bytes per second.
    bytes: f64,
    /// Small writes per second, each synced.
    syncs: f64,
}

impl Speed {
    /// Measures the speed with an unnamed file (open(2), O_TMPFILE), which does not remain after a
    /// kill.
    ///
    /// # Errors
    /// If the filesystem does not support such files, or the write fails.
    pub(super) fn measure(directory: &Path) -> io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR)?);
        let mut block = vec![0_u8; CALL];
        fastrand::fill(&mut block);
        let start = Instant::now();
        let mut written = 0_u64;
        while written < WRITTEN && start.elapsed() < LIMIT {
            file.write_all(&block)?;
            written += CALL as u64;
        }
        file.sync_data()?;
        #[allow(clippy::cast_precision_loss, reason = "less than 2^53")]
        let bytes = written as f64 / start.elapsed().as_secs_f64();
        let start = Instant::now();
        let mut syncs = 0;
        while syncs < SYNCS && start.elapsed() < LIMIT {
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&block[..SMALL])?;
            file.sync_data()?;
            syncs += 1;
        }
        Ok(Self { bytes, syncs: f64::from(syncs) / start.elapsed().as_secs_f64() })
    }

    /// Overrides for the plan of the demo. Sizes are powers of two and numbers of messages are the
    /// nearest of [`MESSAGES`], so that two demos on one machine usually have equal sizes and can
    /// be compared. With `image`, the image size and the memory limit are included.
    pub(super) fn settings(self, image: bool) -> Vec<(String, String)> {
        let wanted = whole(self.bytes * PHASE / f64::from(1 << 20));
        let nearest = (wanted * 3 / 4).max(1).next_power_of_two();
        let file = nearest.clamp(FILE_MIB.0, FILE_MIB.1);
        let wanted = (self.syncs * PHASE / SYNCS_PER_MESSAGE).max(1.0);
        let distance = |number: &u16| (wanted / f64::from(*number)).ln().abs();
        let nearest = |one: &u16, other: &u16| distance(one).total_cmp(&distance(other));
        let messages = MESSAGES.into_iter().min_by(nearest).unwrap_or(MESSAGES[0]);
        let memory = Bytes::mib((file / 2).min(128));
        // The log and the small files take less than 512 MiB.
        let size = Bytes::mib(file + 512);
        let mut settings =
            vec![("file_size", Bytes::mib(file).to_string()), ("messages", messages.to_string())];
        if image {
            settings
                .extend([("image_size", size.to_string()), ("memory_limit", memory.to_string())]);
        }
        settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are positive and far below 2^63; a cast saturates"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(bytes: f64, syncs: f64) -> String {
        let settings = Speed { bytes, syncs }.settings(true);
        settings.iter().map(|(key, value)| format!("{key}={value} ")).collect()
    }

    #[test]
    fn sizes_follow_the_speed_of_the_storage_within_bounds() {
        assert_eq!(
            settings(1.0e9, 2_000.0),
            "file_size=256MiB messages=100 image_size=768MiB memory_limit=128MiB "
        );
        assert_eq!(
            settings(100.0e6, 80.0),
            "file_size=128MiB messages=30 image_size=640MiB memory_limit=64MiB "
        );
        assert_eq!(
            settings(20.0e9, 1.0e6),
            "file_size=256MiB messages=3000 image_size=768MiB memory_limit=128MiB "
        );
        let directory = Speed { bytes: 1.0e9, syncs: 80.0 }.settings(false);
        assert_eq!(directory.len(), 2, "a directory has no image and no memory limit");
    }

    #[test]
    fn the_speed_of_a_directory_is_measured_without_leaving_a_file() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let speed = Speed::measure(directory.path()).unwrap();
        assert!(speed.bytes > 0.0 && speed.syncs > 0.0, "{speed:?}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
