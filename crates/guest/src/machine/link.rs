//! The host's side of the mailbox, which is a file here and a disk in the guest.

use std::{fs::File, os::unix::fs::FileExt as _};

use crate::{
    GuestError,
    mailbox::{From, HEARTBEAT, Header, Heartbeat, SECTOR},
};

/// A mailbox, seen from the host.
///
/// Emulators read and write the file through the same page cache, so that what is written here is
/// there for them at once and in this order, and nothing has to be made durable.
#[derive(Debug)]
pub(super) struct Link {
    file: File,
    sent: u64,
}

impl Link {
    /// That of an empty file of the right size.
    pub(super) fn new(file: File) -> Self {
        Self { file, sent: 0 }
    }

    /// Sends a request.
    ///
    /// # Errors
    /// [`GuestError::Damaged`] if it is too long, [`GuestError::Io`] if it cannot be written.
    pub(super) fn send(&mut self, payload: &[u8]) -> Result<(), GuestError> {
        let header = Header::of(self.sent + 1, payload)?;
        self.file
            .write_all_at(payload, From::Host.payload())
            .and_then(|()| self.file.write_all_at(&header.to_sector(), From::Host.header()))
            .map_err(GuestError::io("writing to the guest's mailbox"))?;
        self.sent = header.number;
        Ok(())
    }

    /// The answer to the last request, if it is there.
    ///
    /// # Errors
    /// [`GuestError::Damaged`] if its payload is not what its header says.
    pub(super) fn answer(&self) -> Result<Option<Vec<u8>>, GuestError> {
        let header = Header::of_sector(&self.sector(From::Guest.header())?);
        let Some(header) = header.filter(|header| header.number == self.sent) else {
            return Ok(None);
        };
        let too_long = |_| GuestError::Damaged(format!("{} bytes are too many", header.length));
        let mut payload = vec![0; usize::try_from(header.length).map_err(too_long)?];
        self.read(&mut payload, From::Guest.payload())?;
        header.check(&payload)?;
        Ok(Some(payload))
    }

    /// The last heartbeat, if there was one.
    ///
    /// # Errors
    /// [`GuestError::Io`] if it cannot be read.
    pub(super) fn heartbeat(&self) -> Result<Option<Heartbeat>, GuestError> {
        Ok(Heartbeat::of_sector(&self.sector(HEARTBEAT)?))
    }

    fn sector(&self, at: u64) -> Result<[u8; SECTOR], GuestError> {
        let mut sector = [0; SECTOR];
        self.read(&mut sector, at)?;
        Ok(sector)
    }

    fn read(&self, buffer: &mut [u8], at: u64) -> Result<(), GuestError> {
        let read = self.file.read_exact_at(buffer, at);
        read.map_err(GuestError::io("reading from the guest's mailbox"))
    }
}
