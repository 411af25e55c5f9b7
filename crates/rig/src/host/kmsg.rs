//! Reader of the kernel log, `/dev/kmsg` (Documentation/ABI/testing/dev-kmsg).
//!
//! Each `read(2)` returns one record; the records are not interpreted here. On a
//! [`FakeHost`](super::FakeHost) the same code reads a regular file.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::{fs::OFlags, io::Errno};

use super::{KernelLog, Records};

/// Maximum length of a record with its dictionary. `PRINTKRB_RECORD_MAX` (kernel/printk/internal.h)
/// is 1 KiB, and `CONSOLE_EXT_LOG_MAX` of older kernels is 8 KiB. A read with a smaller buffer
/// fails.
const LONGEST: usize = 8192;

/// Maximum number of records per call. Without a limit, the call would not return while the log
/// grows faster than it is read.
const MAX_RECORDS: usize = 100_000;

/// Records that the kernel adds after the log was opened.
#[derive(Debug)]
pub(super) struct Kmsg(File);

impl Kmsg {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        // Position of the next record that the kernel writes (`devkmsg_llseek`).
        file.seek(SeekFrom::End(0))?;
        Ok(Self(file))
    }
}

impl KernelLog for Kmsg {
    fn records(&mut self) -> io::Result<Records> {
        let (mut text, mut lost) = (String::new(), false);
        let mut buffer = vec![0; LONGEST];
        for _ in 0..MAX_RECORDS {
            match self.0.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => text.push_str(&String::from_utf8_lossy(&buffer[..length])),
                // EPIPE: records were overwritten. The next read returns the oldest available
                // record.
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN) => break,
                    Some(Errno::PIPE) => lost = true,
                    Some(Errno::INTR) => {}
                    _ => return Err(error),
                },
            }
        }
        // Lines that begin with a blank are the dictionary of the preceding record.
        let lines = text.lines().filter(|line| !line.starts_with(' ')).map(str::to_owned);
        Ok(Records { lines: lines.collect(), lost })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn only_new_records_are_read_and_only_once() {
        let mut log = tempfile::NamedTempFile::new().unwrap();
        log.write_all(b"6,1,5,-;old\n").unwrap();
        let mut kmsg = Kmsg::open(log.path()).unwrap();
        assert_eq!(kmsg.records().unwrap(), Records::default());
        log.write_all(b"6,2,7,-;new\n SUBSYSTEM=block\n DEVICE=b7:0\n3,3,8,-;newer\n").unwrap();
        let lines = ["6,2,7,-;new", "3,3,8,-;newer"].map(String::from).to_vec();
        assert_eq!(kmsg.records().unwrap(), Records { lines, lost: false });
        assert_eq!(kmsg.records().unwrap(), Records::default());
    }

    #[test]
    fn reading_the_kernel_log_terminates() {
        // Without permission, the error is reported.
        match Kmsg::open(Path::new("/dev/kmsg")) {
            Ok(mut kmsg) => {
                let records = kmsg.records().unwrap();
                assert!(records.lines.iter().all(|line| line.contains(';')), "{records:?}");
            }
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
        }
    }
}
