//! Protocol between host and guest over a disk that is a file on the host.
//!
//! The guest sees the file as its last disk. Each side writes messages to its own area: first the
//! payload and then a header sector, which makes the payload valid. The guest writes the header
//! when the payload is durable. The protocol works on every machine with disks, requires no
//! additional driver, survives a broken console, and needs no text parsing.
//!
//! ```text
//!        0  header of the host's message     32 MiB         header of the guest's message
//!     4096  heartbeat of the guest
//!     8192  payload of the host's message    32 MiB + 8192  payload of the guest's message
//! ```
//!
//! A header and a heartbeat are one sector each, which disks write atomically. Numbers are little
//! endian. A message is valid if its magic, number, and payload CRC match. Message numbers ascend
//! from 1, and a reply has the number of its request, so that an old message is not read as a new
//! message.

use crate::GuestError;

/// Unit of reads and writes in bytes, so that the guest can use direct I/O.
pub(crate) const SECTOR: usize = 4096;
/// Offset of the guest's heartbeat.
pub(crate) const HEARTBEAT: u64 = 4096;
/// Size of the disk in bytes.
pub(crate) const SIZE: u64 = 64 << 20;
/// Maximum size of a payload in bytes.
pub(crate) const PAYLOAD_MAX: usize = (SIZE / 2) as usize - 2 * SECTOR;

const MAGIC: [u8; 8] = *b"fslabbox";
const HEARTBEAT_MAGIC: [u8; 8] = *b"fslabalv";
/// Maximum size of a heartbeat text in bytes.
const TEXT_MAX: usize = 256;

/// Sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// Host, which sends requests.
    Host,
    /// Guest, which sends replies.
    Guest,
}

impl From {
    /// Offset of the header.
    pub(crate) const fn header(self) -> u64 {
        match self {
            Self::Host => 0,
            Self::Guest => SIZE / 2,
        }
    }

    /// Offset of the payload.
    pub(crate) const fn payload(self) -> u64 {
        self.header() + 2 * SECTOR as u64
    }
}

/// Header that validates a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Number of the message, from 1.
    pub(crate) number: u64,
    /// Size of the payload in bytes.
    pub(crate) length: u64,
    /// CRC-32 (IEEE 802.3) of the payload.
    pub(crate) crc: u32,
}

impl Header {
    /// Creates the header of a payload.
    ///
    /// # Errors
    /// [`GuestError::Damaged`] if the payload is too long for the disk.
    pub(crate) fn of(number: u64, payload: &[u8]) -> Result<Self, GuestError> {
        if payload.len() > PAYLOAD_MAX {
            let length = payload.len();
            return Err(GuestError::Damaged(format!(
                "{length} bytes exceed the maximum message size"
            )));
        }
        Ok(Self { number, length: payload.len() as u64, crc: crc32fast::hash(payload) })
    }

    /// Encodes the header as a sector with its own CRC.
    pub(crate) fn to_sector(self) -> [u8; SECTOR] {
        let mut sector = [0; SECTOR];
        sector[..8].copy_from_slice(&MAGIC);
        sector[8..16].copy_from_slice(&self.number.to_le_bytes());
        sector[16..24].copy_from_slice(&self.length.to_le_bytes());
        sector[24..28].copy_from_slice(&self.crc.to_le_bytes());
        let own = crc32fast::hash(&sector[..28]);
        sector[28..32].copy_from_slice(&own.to_le_bytes());
        sector
    }

    /// Decodes the header of a sector; `None` if there is no message.
    pub(crate) fn of_sector(sector: &[u8; SECTOR]) -> Option<Self> {
        let own = u32::from_le_bytes(sector[28..32].try_into().ok()?);
        if sector[..8] != MAGIC || crc32fast::hash(&sector[..28]) != own {
            return None;
        }
        let number = |at: usize| Some(u64::from_le_bytes(sector[at..at + 8].try_into().ok()?));
        let crc = u32::from_le_bytes(sector[24..28].try_into().ok()?);
        let header = Self { number: number(8)?, length: number(16)?, crc };
        usize::try_from(header.length).is_ok_and(|length| length <= PAYLOAD_MAX).then_some(header)
    }

    /// Checks that the header matches a payload.
    ///
    /// # Errors
    /// [`GuestError::Damaged`] if it does not match.
    pub(crate) fn check(&self, payload: &[u8]) -> Result<(), GuestError> {
        let (length, crc) = (payload.len() as u64, crc32fast::hash(payload));
        if length == self.length && crc == self.crc {
            return Ok(());
        }
        let Self { number, length: expected_length, crc: expected_crc } = self;
        Err(GuestError::Damaged(format!(
            "message {number} has {length} of {expected_length} bytes and CRC {crc:08x} instead of \
             {expected_crc:08x}"
        )))
    }
}

/// Heartbeat of the guest with its current step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heartbeat {
    /// Number of heartbeats sent.
    pub(crate) count: u64,
    /// Current step of the guest, cut to 256 bytes.
    pub(crate) text: String,
}

impl Heartbeat {
    /// Encodes the heartbeat as a sector.
    pub(crate) fn to_sector(&self) -> [u8; SECTOR] {
        let mut sector = [0; SECTOR];
        let mut end = self.text.len().min(TEXT_MAX);
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        sector[..8].copy_from_slice(&HEARTBEAT_MAGIC);
        sector[8..16].copy_from_slice(&self.count.to_le_bytes());
        sector[16..16 + end].copy_from_slice(&self.text.as_bytes()[..end]);
        sector
    }

    /// Decodes the heartbeat of a sector; `None` before the first heartbeat.
    pub(crate) fn of_sector(sector: &[u8; SECTOR]) -> Option<Self> {
        if sector[..8] != HEARTBEAT_MAGIC {
            return None;
        }
        let count = u64::from_le_bytes(sector[8..16].try_into().ok()?);
        let text = sector[16..16 + TEXT_MAX].split(|byte| *byte == 0).next().unwrap_or_default();
        Some(Self { count, text: String::from_utf8_lossy(text).into_owned() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn headers_round_trip(number: u64, payload: Vec<u8>) {
            let header = Header::of(number, &payload).unwrap();
            prop_assert_eq!(Header::of_sector(&header.to_sector()), Some(header));
            prop_assert!(header.check(&payload).is_ok());
            let mut other = payload;
            other.push(0);
            prop_assert!(header.check(&other).is_err());
        }

        #[test]
        fn a_flipped_bit_invalidates_a_header(number: u64, bit in 0..256_usize) {
            let mut sector = Header::of(number, b"payload").unwrap().to_sector();
            sector[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Header::of_sector(&sector), None);
        }

        #[test]
        fn heartbeats_keep_their_text(count: u64, text in "[^\\x00]{0,400}") {
            let beat = Heartbeat { count, text: text.clone() };
            let read = Heartbeat::of_sector(&beat.to_sector()).unwrap();
            prop_assert_eq!(read.count, count);
            prop_assert!(text.starts_with(&read.text) && read.text.len() <= TEXT_MAX);
        }
    }

    #[test]
    fn an_empty_disk_has_no_message_and_no_heartbeat() {
        assert_eq!(Header::of_sector(&[0; SECTOR]), None);
        assert_eq!(Heartbeat::of_sector(&[0; SECTOR]), None);
    }

    #[test]
    fn areas_do_not_overlap() {
        let end = |from: From| from.payload() + PAYLOAD_MAX as u64;
        assert!(HEARTBEAT + SECTOR as u64 <= From::Host.payload());
        assert!(end(From::Host) <= From::Guest.header());
        assert_eq!(end(From::Guest), SIZE);
    }
}
