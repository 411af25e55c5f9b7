//! Frames on pipes and sockets: the length (four bytes, little-endian), then the bytes.

use std::io::{self, Read, Write};

/// Maximum length of a frame. A message is a trial at most, which is some megabytes.
const LONGEST: u32 = 1 << 28;

/// Writes a frame.
///
/// # Errors
/// The error of the write, or [`io::ErrorKind::InvalidInput`] if the frame is longer than 256 MiB.
pub fn write_frame(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= LONGEST);
    let length = length.ok_or(io::ErrorKind::InvalidInput)?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(bytes)?;
    to.flush()
}

/// Reads a frame; `None` at the end of the input.
///
/// # Errors
/// The error of the read, or [`io::ErrorKind::InvalidData`] if the frame is longer than 256 MiB.
pub fn read_frame(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = u32::from_le_bytes(length);
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    let read = from.take(length.into()).read_to_end(&mut bytes)?;
    match read == length as usize {
        true => Ok(Some(bytes)),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Splits the first length-prefixed part off `bytes`; `None` if there is none.
pub(crate) fn split<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let part = rest.get(..length)?;
    *bytes = &rest[length..];
    Some(part)
}

/// Appends a length-prefixed part.
pub(crate) fn append(to: &mut Vec<u8>, part: &[u8]) {
    let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(part);
}
