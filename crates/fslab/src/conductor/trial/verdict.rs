//! Whether a trial can stand after what was seen: the kernel told of no error, and the filesystem
//! still takes writes.
//!
//! Lines of the log and flags enter; the reason why the trial failed leaves. Nothing is looked at
//! here.

use model::evidence::LogLine;
use rustix::fs::StatVfsMountFlags;

/// Whether the kernel logged no error of the filesystem or its devices.
///
/// # Errors
/// Its first line that tells of one, with what to do.
pub(super) fn stands(log: &[LogLine]) -> Result<(), String> {
    match log.iter().find(|line| line.fatal) {
        None => Ok(()),
        Some(line) => Err(format!(
            "the kernel told of an error: {}; read the log with dmesg, and look at the device",
            line.text
        )),
    }
}

/// Whether a filesystem can be written to, by the flags of statvfs(3): many are made read-only when
/// the kernel finds an error in them.
///
/// # Errors
/// When it cannot.
pub(super) fn still_writable(flags: StatVfsMountFlags) -> Result<(), String> {
    match flags.contains(StatVfsMountFlags::RDONLY) {
        false => Ok(()),
        true => Err("the filesystem has become read-only, as after an error; read the log with \
                     dmesg"
            .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fatal_line_fails_a_trial() {
        let line = |fatal, text: &str| LogLine { level: 4, fatal, text: text.into() };
        let mut log = vec![line(false, "a notice")];
        assert_eq!(stands(&log), Ok(()));
        log.push(line(true, "XFS (loop3): metadata I/O error"));
        log.push(line(true, "XFS (loop3): shutting down"));
        let why = stands(&log).unwrap_err();
        assert!(why.contains("metadata I/O error") && why.contains("dmesg"), "{why}");
    }

    #[test]
    fn a_filesystem_that_became_read_only_fails_a_trial() {
        let flags = StatVfsMountFlags::NOSUID;
        assert_eq!(still_writable(flags), Ok(()));
        assert!(still_writable(flags | StatVfsMountFlags::RDONLY).is_err());
    }
}
