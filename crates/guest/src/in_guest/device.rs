//! Block device in the memory of a guest.
//!
//! [`make`] expects a [`Device`] whose modules are loaded. When it returns, the device exists and
//! has the configured size. `null_blk` is documented in `Documentation/block/null_blk.rst` of the
//! kernel, brd in `drivers/block/brd.c`.

use std::{fs, io::Write as _, path::Path};

use model::Bytes;

use super::{config::Device, wait_for};
use crate::GuestError;

/// Configuration directory of `null_blk`: creating a directory here creates a device.
const CONFIGURATION: &str = "/sys/kernel/config/nullb";

/// Creates the device.
///
/// # Errors
/// [`GuestError::Missing`] if the device does not appear, [`GuestError::Io`] if the kernel refuses
/// a setting or lacks `null_blk`, [`GuestError::Malformed`] if the device has another size than
/// configured.
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

/// Settings of `null_blk`, in the order in which they are written. `power` is last: a device that
/// is on accepts no other settings.
fn settings(device: &Device) -> Vec<(&'static str, u64)> {
    let Device::NullBlk { size, latency, cache, sector } = device else { return Vec::new() };
    // Completion mode of requests: inline, or by a timer that simulates the latency of a device.
    const INLINE: u64 = 0;
    const BY_TIMER: u64 = 2;
    // Multi-queue, which every driver uses today.
    const MULTIQUEUE: u64 = 2;
    vec![
        ("memory_backed", 1),
        ("size", size.0 / Bytes::MIB),
        ("blocksize", sector.0),
        ("queue_mode", MULTIQUEUE),
        ("irqmode", if latency.0 == 0 { INLINE } else { BY_TIMER }),
        ("completion_nsec", latency.0),
        ("cache_size", cache.0 / Bytes::MIB),
        ("discard", 1),
        ("power", 1),
    ]
}

fn configure(directory: &Path, settings: &[(&str, u64)]) -> Result<(), GuestError> {
    fs::create_dir(directory).map_err(GuestError::io(format!(
        "cannot create {}, which requires configfs and null_blk",
        directory.display()
    )))?;
    for (name, value) in settings {
        let file = directory.join(name);
        // The file exists: in configfs, only the kernel creates files.
        let opened = fs::File::options().write(true).open(&file);
        let written = opened.and_then(|mut file| file.write_all(value.to_string().as_bytes()));
        let what = format!("cannot set {} to {value}", file.display());
        written.map_err(GuestError::io(what))?;
    }
    Ok(())
}

/// Checks the size of the device. Another size means that the device existed before, or that the
/// kernel did not accept its parameters.
fn check_size(path: &Path, wanted: Bytes) -> Result<(), GuestError> {
    let device =
        fs::File::open(path).map_err(GuestError::io(format!("cannot open {}", path.display())))?;
    let size = sys::block::size_bytes(&device)
        .map_err(GuestError::io(format!("cannot read the size of {}", path.display())))?;
    if Bytes(size) == wanted {
        return Ok(());
    }
    let why = format!("its size is {} instead of {wanted}", Bytes(size));
    Err(GuestError::Malformed { path: path.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use model::Nanos;

    use super::*;

    #[test]
    fn a_latency_uses_timer_completion() {
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
    fn settings_are_written_to_existing_files_only() {
        let directory = tempfile::tempdir().unwrap();
        let error = configure(&directory.path().join("no/nullb0"), &[]).unwrap_err();
        assert!(matches!(error, GuestError::Io { .. }));
        let error = configure(&directory.path().join("nullb0"), &[("power", 1)]).unwrap_err();
        assert!(error.to_string().ends_with("nullb0/power to 1"), "{error}");
    }

    #[test]
    fn no_device_requires_no_setup() {
        assert!(make(&Device::None).is_ok());
    }
}
