//! Checks after a phase: the kernel logged no error, and the filesystem is still writable.
//!
//! Input: log lines and mount flags. Output: the reason why the trial failed. This module does not
//! access the machine.

use model::activity::LogLine;
use rustix::fs::StatVfsMountFlags;

/// Checks that the kernel logged no error of the filesystem or its devices.
///
/// # Errors
/// The first error line, with a hint.
pub(super) fn check_log(log: &[LogLine]) -> Result<(), String> {
    match log.iter().find(|line| line.fatal) {
        None => Ok(()),
        Some(line) => Err(format!(
            "the kernel logged an error: {}; inspect the kernel log with dmesg, and check the \
             device",
            line.text
        )),
    }
}

/// Checks the flags of statvfs(3), because the kernel remounts many filesystems read-only after an
/// error.
///
/// # Errors
/// If the filesystem is read-only.
pub(super) fn still_writable(flags: StatVfsMountFlags) -> Result<(), String> {
    match flags.contains(StatVfsMountFlags::RDONLY) {
        false => Ok(()),
        true => {
            Err("the filesystem became read-only, probably after an error; inspect the kernel \
                     log with dmesg"
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fatal_line_fails_a_trial() {
        let line = |fatal, text: &str| LogLine { level: 4, fatal, text: text.into() };
        let mut log = vec![line(false, "a notice")];
        assert_eq!(check_log(&log), Ok(()));
        log.push(line(true, "XFS (loop3): metadata I/O error"));
        log.push(line(true, "XFS (loop3): shutting down"));
        let why = check_log(&log).unwrap_err();
        assert!(why.contains("metadata I/O error") && why.contains("dmesg"), "{why}");
    }

    #[test]
    fn a_filesystem_that_became_read_only_fails_a_trial() {
        let flags = StatVfsMountFlags::NOSUID;
        assert_eq!(still_writable(flags), Ok(()));
        assert!(still_writable(flags | StatVfsMountFlags::RDONLY).is_err());
    }
}
