//! Input files specified by users: opened without blocking, and read up to a limit.
//!
//! Only regular files are read: a FIFO blocks until it has a writer, a terminal blocks until there
//! is input, and `/dev/zero` does not end. [`of`] applies the limit to any reader, such as standard
//! input.

use std::{
    fs::{File, FileType, OpenOptions},
    io::{self, Read, Seek as _, Write as _},
    os::{
        fd::AsRawFd as _,
        unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
};

/// Opens a regular file for reading.
///
/// # Errors
/// Errors of open(2); `InvalidInput` for another file type.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening a device may have side effects, so the file type is checked before open(2). It is
    // checked again on the descriptor because another file may have replaced the first one. With
    // O_NONBLOCK, open(2) of a FIFO does not wait for a writer; regular files ignore the flag.
    regular(path.metadata()?.file_type())?;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    regular(file.metadata()?.file_type())?;
    Ok(file)
}

/// Contents of a regular file of at most `most` bytes.
///
/// # Errors
/// Errors of [`open`] and read(2); `FileTooLarge` for more bytes.
pub fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    of(open(path)?, most)
}

/// Like [`bytes`], for UTF-8 text.
///
/// # Errors
/// Errors of [`bytes`]; `InvalidData` for invalid UTF-8.
pub fn text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(bytes(path, most)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Contents of a reader, at most `most` bytes.
///
/// # Errors
/// Errors of read(2); `FileTooLarge` for more bytes.
pub fn of(reader: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        false => Ok(bytes),
        true => {
            let text = match most % (1 << 20) {
                0 => format!("it is larger than {} MiB", most >> 20),
                _ => format!("it is larger than {} KiB", most >> 10),
            };
            Err(io::Error::new(io::ErrorKind::FileTooLarge, text))
        }
    }
}

/// Memory file with this content, and a path that opens it while the file is open. For fuzz tests
/// of functions that read files.
///
/// # Errors
/// Errors of memfd_create(2) and write(2).
#[doc(hidden)]
pub fn in_memory(bytes: &[u8]) -> io::Result<(File, PathBuf)> {
    let file = rustix::fs::memfd_create("input", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(bytes)?;
    file.rewind()?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    Ok((file, path))
}

fn regular(kind: FileType) -> io::Result<()> {
    let what = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    let text = format!("it is {what}, not a regular file");
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::net::UnixListener};

    use super::*;

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("full"), vec![b'x'; 1 << 20]).unwrap();
        fs::write(path("over"), vec![b'x'; (1 << 20) + 1]).unwrap();
        fs::write(path("bytes"), b"\xff").unwrap();
        File::create(path("sparse")).unwrap().set_len(1 << 42).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        std::os::unix::fs::symlink(path("fifo"), path("link")).unwrap();
        let read = |name: &str| match text(&path(name), 1 << 20) {
            Ok(text) => format!("{} bytes", text.len()),
            Err(error) => error.to_string(),
        };
        for (name, expected) in [
            ("full", "1048576 bytes"),
            ("over", "it is larger than 1 MiB"),
            ("sparse", "it is larger than 1 MiB"),
            ("bytes", "it is not UTF-8"),
            (".", "it is a directory, not a regular file"),
            ("fifo", "it is a FIFO, not a regular file"),
            ("link", "it is a FIFO, not a regular file"),
            ("socket", "it is a socket, not a regular file"),
            ("/dev/zero", "it is a device, not a regular file"),
            ("none", "No such file or directory (os error 2)"),
        ] {
            assert_eq!(read(name), expected, "{name}");
        }
    }
}
