//! A file stands for the disk; the host's side is written by hand.

use proptest::prelude::*;

use super::*;
use crate::mailbox::{PAYLOAD_MAX, SIZE};

/// A mailbox as the host makes it, and the guest's disk over it. Files of memory file systems can
/// be opened with `O_DIRECT` since Linux 6.6 only, so it is opened without.
fn mailbox() -> (File, Disk) {
    let host = tempfile::NamedTempFile::new().unwrap();
    host.as_file().set_len(SIZE).unwrap();
    let file = File::options().read(true).write(true).open(host.path()).unwrap();
    (host.into_file(), Disk { path: "the mailbox".into(), file })
}

fn ask(host: &File, number: u64, payload: &[u8]) {
    host.write_all_at(payload, From::Host.payload()).unwrap();
    let header = Header::of(number, payload).unwrap();
    host.write_all_at(&header.to_sector(), From::Host.header()).unwrap();
}

fn answered(host: &File) -> Option<(u64, Vec<u8>)> {
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
fn requests_are_answered_one_after_the_other_until_an_empty_one() {
    let (host, disk) = mailbox();
    let mut door = Door::open(disk, "up");
    assert_eq!(answered(&host), None);
    for number in 1..4_u64 {
        let request = vec![b'x'; usize::try_from(number).unwrap() * 5000];
        ask(&host, number, &request);
        assert_eq!(door.wait().unwrap(), Some(request.clone()));
        door.answer(&request[1..]).unwrap();
        assert_eq!(answered(&host), Some((number, request[1..].to_vec())));
        // The same message is no new one.
        assert_eq!(door.heart.disk.request(door.last).unwrap(), None);
    }
    ask(&host, 4, &[]);
    assert_eq!(door.wait().unwrap(), None);
}

#[test]
fn a_door_that_waits_sees_a_request_that_comes_later() {
    let (host, disk) = mailbox();
    let mut door = Door::open(disk, "up");
    let waits = std::thread::spawn(move || door.wait().unwrap());
    ask(&host, 1, b"later");
    assert_eq!(waits.join().unwrap().as_deref(), Some(&b"later"[..]));
}

#[test]
fn a_request_that_is_not_what_its_header_says_is_refused() {
    let (host, disk) = mailbox();
    let mut door = Door::open(disk, "up");
    ask(&host, 1, b"payload");
    host.write_all_at(b"Payload", From::Host.payload()).unwrap();
    assert!(matches!(door.wait(), Err(GuestError::Damaged(_))));
}

#[test]
fn the_longest_answer_fits_and_a_longer_one_is_refused() {
    let (host, disk) = mailbox();
    let mut door = Door::open(disk, "up");
    ask(&host, 1, b"?");
    door.wait().unwrap();
    let longest = vec![7; PAYLOAD_MAX];
    door.answer(&longest).unwrap();
    assert_eq!(answered(&host), Some((1, longest)));
    assert!(matches!(door.answer(&vec![7; PAYLOAD_MAX + 1]), Err(GuestError::Damaged(_))));
}

#[test]
fn the_heart_beats_at_once_with_each_text_and_goes_on_by_itself() {
    let (host, disk) = mailbox();
    let door = Door::open(disk, "up");
    let first = heartbeat(&host).unwrap();
    assert_eq!(first.text, "up");
    door.doing("mkfs.xfs");
    let second = heartbeat(&host).unwrap();
    assert_eq!(second.text, "mkfs.xfs");
    assert!(second.count > first.count);
    while heartbeat(&host).unwrap().count == second.count {
        std::thread::yield_now();
    }
    drop(door);
    let last = heartbeat(&host).unwrap();
    assert_eq!(last.text, "mkfs.xfs");
}

#[test]
fn sectors_begin_where_the_disk_may_write() {
    for length in [0, 1, SECTOR - 1, SECTOR, SECTOR + 1, 10 * SECTOR] {
        let sectors = Sectors::new(length);
        assert!(sectors.whole().as_ptr().addr().is_multiple_of(SECTOR));
        assert_eq!(sectors.whole().len(), length.next_multiple_of(SECTOR));
    }
}

#[test]
fn what_the_kernel_asked_for_is_told_once_each() {
    let (_host, disk) = mailbox();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "fs-xfs\tloaded\nnls_cp437\tmissing\nfs-xfs\tloaded\n").unwrap();
    let mut door = Door::open(disk, "up");
    door.requests_of_modules = file.path().to_owned();
    assert_eq!(door.modules_asked_for(), ["fs-xfs", "nls_cp437"]);
    assert_eq!(door.refused(), ["nls_cp437"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever a host writes, the guest gets a message, none, or an error.
    #[test]
    fn a_damaged_mailbox_is_no_panic(at in 0..3 * SECTOR as u64, damage: [u8; 16]) {
        let (host, disk) = mailbox();
        ask(&host, 1, b"payload");
        host.write_all_at(&damage, at).unwrap();
        let _ = disk.request(0);
        let _ = disk.heartbeat();
    }
}
