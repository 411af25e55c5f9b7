//! The block device that a guest makes for itself.
//!
//! A [`Device`] enters, with its modules loaded; it is there, and has the size that was wanted,
//! when [`make`] returns. Kernel document of `null_blk`: `Documentation/block/null_blk.rst`; brd:
//! `drivers/block/brd.c`.

use std::{fs, io::Write as _, path::Path};

use model::Bytes;

use super::{job::Device, wait_for};
use crate::GuestError;

/// Devices appear here as folders, and folders made here become devices.
const CONFIGURATION: &str = "/sys/kernel/config/nullb";

/// Makes a device.
///
/// # Errors
/// [`GuestError::Missing`] when its module is not there, [`GuestError::Io`] when the kernel refuses
/// a setting, [`GuestError::Malformed`] when the size is not the wanted one.
pub(super) fn make(device: &Device) -> Result<(), GuestError> {
    let (Some(path), Some(size)) = (device.path(), size(device)) else { return Ok(()) };
    let path = Path::new(path);
    if let Device::NullBlk { .. } = device {
        let name = path.file_name().unwrap_or_default();
        configure(&Path::new(CONFIGURATION).join(name), &settings(device))?;
    }
    wait_for(path)?;
    check_size(path, size)
}

const fn size(device: &Device) -> Option<Bytes> {
    match device {
        Device::None => None,
        Device::RamDisk { size } | Device::NullBlk { size, .. } => Some(*size),
    }
}

/// The settings of `null_blk`, in the order in which to write them. `power` comes last: a device
/// that is on takes no others.
fn settings(device: &Device) -> Vec<(&'static str, u64)> {
    let Device::NullBlk { size, latency, cache, sector } = device else { return Vec::new() };
    // Ends of requests: at once where they were begun, or by a timer that stands for the device.
    const AT_ONCE: u64 = 0;
    const BY_TIMER: u64 = 2;
    // Queues of the kind that every driver has by now.
    const MULTIQUEUE: u64 = 2;
    vec![
        ("memory_backed", 1),
        ("size", size.0 / Bytes::MIB),
        ("blocksize", sector.0),
        ("queue_mode", MULTIQUEUE),
        ("irqmode", if latency.0 == 0 { AT_ONCE } else { BY_TIMER }),
        ("completion_nsec", latency.0),
        ("cache_size", cache.0 / Bytes::MIB),
        ("discard", 1),
        ("power", 1),
    ]
}

fn configure(folder: &Path, settings: &[(&str, u64)]) -> Result<(), GuestError> {
    fs::create_dir(folder).map_err(GuestError::io(format!(
        "cannot make {}, for which configfs and null_blk are needed",
        folder.display()
    )))?;
    for (name, value) in settings {
        let file = folder.join(name);
        // The file is there already: this is no filesystem that makes new ones.
        let opened = fs::File::options().write(true).open(&file);
        let written = opened.and_then(|mut file| file.write_all(value.to_string().as_bytes()));
        let what = format!("cannot set {} to {value}", file.display());
        written.map_err(GuestError::io(what))?;
    }
    Ok(())
}

/// A device that was there before, or was made with parameters that were not understood, is not the
/// one that was wanted.
fn check_size(path: &Path, wanted: Bytes) -> Result<(), GuestError> {
    let device =
        fs::File::open(path).map_err(GuestError::io(format!("cannot open {}", path.display())))?;
    let size = sys::block::size_bytes(&device)
        .map_err(GuestError::io(format!("cannot read the size of {}", path.display())))?;
    if Bytes(size) == wanted {
        return Ok(());
    }
    let why = format!("it has {} instead of {wanted}", Bytes(size));
    Err(GuestError::Malformed { path: path.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use model::Nanos;

    use super::*;

    #[test]
    fn a_latency_is_kept_by_a_timer() {
        let device = |latency| Device::NullBlk {
            size: Bytes::mib(512),
            latency: Nanos(latency),
            cache: Bytes::mib(16),
            sector: Bytes(4096),
        };
        expect![[r#"
            [("memory_backed", 1), ("size", 512), ("blocksize", 4096), ("queue_mode", 2), ("irqmode", 2), ("completion_nsec", 100000), ("cache_size", 16), ("discard", 1), ("power", 1)]"#]]
        .assert_eq(&format!("{:?}", settings(&device(100_000))));
        assert!(settings(&device(0)).contains(&("irqmode", 0)));
        assert!(settings(&Device::None).is_empty());
    }

    #[test]
    fn settings_are_written_to_files_that_are_there_only() {
        let directory = tempfile::tempdir().unwrap();
        let error = configure(&directory.path().join("no/nullb0"), &[]).unwrap_err();
        assert!(matches!(error, GuestError::Io { .. }));
        let error = configure(&directory.path().join("nullb0"), &[("power", 1)]).unwrap_err();
        assert!(error.to_string().ends_with("nullb0/power to 1"), "{error}");
    }

    #[test]
    fn no_device_needs_nothing() {
        assert!(make(&Device::None).is_ok());
    }
}
