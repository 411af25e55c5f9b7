//! A file represents the disk; the host side is implemented here.

use proptest::prelude::*;

use super::*;
use crate::mailbox::{PAYLOAD_MAX, SIZE};

/// A mailbox as created by the host, and the guest's disk over it. Files of memory filesystems
/// support `O_DIRECT` only since Linux 6.6, so the disk is opened without `O_DIRECT`.
fn mailbox() -> (File, Disk) {
    let host = tempfile::NamedTempFile::new().unwrap();
    host.as_file().set_len(SIZE).unwrap();
    let file = File::options().read(true).write(true).open(host.path()).unwrap();
    (host.into_file(), Disk { path: "the mailbox".into(), file })
}

fn send(host: &File, number: u64, payload: &[u8]) {
    host.write_all_at(payload, From::Host.payload()).unwrap();
    let header = Header::of(number, payload).unwrap();
    host.write_all_at(&header.to_sector(), From::Host.header()).unwrap();
}

fn received(host: &File) -> Option<(u64, Vec<u8>)> {
    let mut sector = [0; SECTOR];
    host.read_exact_at(&mut sector, From::Guest.header()).unwrap();
    let header = Header::of_sector(&sector)?;
    let mut payload = vec![0; usize::try_from(header.length).unwrap()];
    host.read_exact_at(&mut payload, From::Guest.payload()).unwrap();
    header.check(&payload).unwrap();
    Some((header.number, payload))
}

fn heartbeat(host: &File) -> Option<Heartbeat> {
    let mut sector = [0; SECTOR];
    host.read_exact_at(&mut sector, HEARTBEAT).unwrap();
    Heartbeat::of_sector(&sector)
}

#[test]
fn requests_are_served_in_order_until_an_empty_one() {
    let (host, disk) = mailbox();
    let mut channel = GuestChannel::open(disk, "up");
    assert_eq!(received(&host), None);
    for number in 1..4_u64 {
        let request = vec![b'x'; usize::try_from(number).unwrap() * 5000];
        send(&host, number, &request);
        assert_eq!(channel.wait().unwrap(), Some(request.clone()));
        channel.reply(&request[1..]).unwrap();
        assert_eq!(received(&host), Some((number, request[1..].to_vec())));
        // The same message is not a new one.
        assert_eq!(channel.heartbeat.disk.request(channel.last).unwrap(), None);
    }
    send(&host, 4, &[]);
    assert_eq!(channel.wait().unwrap(), None);
}

#[test]
fn a_waiting_channel_receives_a_later_request() {
    let (host, disk) = mailbox();
    let mut channel = GuestChannel::open(disk, "up");
    let waits = std::thread::spawn(move || channel.wait().unwrap());
    send(&host, 1, b"later");
    assert_eq!(waits.join().unwrap().as_deref(), Some(&b"later"[..]));
}

#[test]
fn a_request_that_does_not_match_its_header_is_rejected() {
    let (host, disk) = mailbox();
    let mut channel = GuestChannel::open(disk, "up");
    send(&host, 1, b"payload");
    host.write_all_at(b"Payload", From::Host.payload()).unwrap();
    assert!(matches!(channel.wait(), Err(GuestError::Damaged(_))));
}

#[test]
fn the_longest_reply_fits_and_a_longer_one_is_rejected() {
    let (host, disk) = mailbox();
    let mut channel = GuestChannel::open(disk, "up");
    send(&host, 1, b"?");
    channel.wait().unwrap();
    let longest = vec![7; PAYLOAD_MAX];
    channel.reply(&longest).unwrap();
    assert_eq!(received(&host), Some((1, longest)));
    assert!(matches!(channel.reply(&vec![7; PAYLOAD_MAX + 1]), Err(GuestError::Damaged(_))));
}

#[test]
fn heartbeats_follow_each_step_and_repeat() {
    let (host, disk) = mailbox();
    let channel = GuestChannel::open(disk, "up");
    let first = heartbeat(&host).unwrap();
    assert_eq!(first.text, "up");
    channel.set_step("mkfs.xfs");
    let second = heartbeat(&host).unwrap();
    assert_eq!(second.text, "mkfs.xfs");
    assert!(second.count > first.count);
    while heartbeat(&host).unwrap().count == second.count {
        std::thread::yield_now();
    }
    drop(channel);
    let last = heartbeat(&host).unwrap();
    assert_eq!(last.text, "mkfs.xfs");
}

#[test]
fn sectors_are_aligned() {
    for length in [0, 1, SECTOR - 1, SECTOR, SECTOR + 1, 10 * SECTOR] {
        let sectors = Sectors::new(length);
        assert!(sectors.whole().as_ptr().addr().is_multiple_of(SECTOR));
        assert_eq!(sectors.whole().len(), length.next_multiple_of(SECTOR));
    }
}

#[test]
fn module_requests_are_reported_once() {
    let (_host, disk) = mailbox();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "fs-xfs\tloaded\nnls_cp437\tmissing\nfs-xfs\tloaded\n").unwrap();
    let mut channel = GuestChannel::open(disk, "up");
    channel.module_requests = file.path().to_owned();
    assert_eq!(channel.requested_modules(), ["fs-xfs", "nls_cp437"]);
    assert_eq!(channel.rejected_modules(), ["nls_cp437"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Any damage of the mailbox results in a message, no message, or an error.
    #[test]
    fn a_damaged_mailbox_does_not_panic(at in 0..3 * SECTOR as u64, damage: [u8; 16]) {
        let (host, disk) = mailbox();
        send(&host, 1, b"payload");
        host.write_all_at(&damage, at).unwrap();
        let _ = disk.request(0);
        let _ = disk.heartbeat();
    }
}
