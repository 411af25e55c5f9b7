//! Host side of the mailbox, which is a file on the host and a disk in the guest.

use std::{fs::File, os::unix::fs::FileExt as _};

use crate::{
    GuestError,
    mailbox::{From, HEARTBEAT, Header, Heartbeat, SECTOR},
};

/// Host side of a mailbox.
///
/// Emulators access the file through the same page cache. Emulators therefore see writes at once
/// and in order, without a sync.
#[derive(Debug)]
pub(super) struct HostChannel {
    file: File,
    sent: u64,
}

impl HostChannel {
    /// Creates the channel of a new mailbox file.
    pub(super) fn new(file: File) -> Self {
        Self { file, sent: 0 }
    }

    /// Sends a request.
    ///
    /// # Errors
    /// [`GuestError::Damaged`] if the payload is too long, [`GuestError::Io`] if the mailbox cannot
    /// be written.
    pub(super) fn send(&mut self, payload: &[u8]) -> Result<(), GuestError> {
        let header = Header::of(self.sent + 1, payload)?;
        self.file
            .write_all_at(payload, From::Host.payload())
            .and_then(|()| self.file.write_all_at(&header.to_sector(), From::Host.header()))
            .map_err(GuestError::io("cannot write to the guest's mailbox"))?;
        self.sent = header.number;
        Ok(())
    }

    /// Reads the reply to the last request; `None` if there is none yet.
    ///
    /// # Errors
    /// [`GuestError::Damaged`] if the payload does not match its header.
    pub(super) fn reply(&self) -> Result<Option<Vec<u8>>, GuestError> {
        let header = Header::of_sector(&self.sector(From::Guest.header())?);
        let Some(header) = header.filter(|header| header.number == self.sent) else {
            return Ok(None);
        };
        let too_long =
            |_| GuestError::Damaged(format!("{} bytes exceed the address space", header.length));
        let mut payload = vec![0; usize::try_from(header.length).map_err(too_long)?];
        self.read(&mut payload, From::Guest.payload())?;
        header.check(&payload)?;
        Ok(Some(payload))
    }

    /// Reads the last heartbeat; `None` if there was none.
    ///
    /// # Errors
    /// [`GuestError::Io`] if the mailbox cannot be read.
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
        read.map_err(GuestError::io("cannot read from the guest's mailbox"))
    }
}
