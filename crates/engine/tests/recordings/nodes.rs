//! Files that are not regular: FIFOs, sockets, and devices.

use std::{
    fs,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{
            ffi::OsStrExt,
            fs::PermissionsExt,
            net::{UnixDatagram, UnixListener},
        },
    },
};

use model::phase::{FileCall, TraceOrder, TraceTiming};
use rustix::fs::{CWD, FileType, Mode, OFlags, open};
use trace::summary;

use crate::{Bench, as_program, compare, tree};

#[test]
fn fifos_and_sockets_are_created_and_devices_are_counted() {
    let Some(root) = as_program() else {
        let bench = Bench::new();
        let test = "nodes::fifos_and_sockets_are_created_and_devices_are_counted";
        let recording = bench.record_test(test);
        assert_eq!(recording.facts["not_recorded.mknod of a device"], "1");
        let calls = summary(&recording).calls;
        assert_eq!(calls[&FileCall::Mknod].count, 5, "mknod(2) and bind(2)");
        assert_eq!(calls[&FileCall::Open].count, 4, "without that of the FIFO to read and write");
        for order in [TraceOrder::Resources, TraceOrder::Tasks] {
            let (result, place) = bench.replay(order, TraceTiming::Asap);
            compare(&recording, &result);
            fs::remove_file(bench.root.join("device")).ok();
            assert_eq!(tree(&place.path().join("fslab-trace")), tree(&bench.root));
        }
        return;
    };
    let make = |name: &str, kind| {
        rustix::fs::mknodat(CWD, root.join(name), kind, Mode::from_raw_mode(0o640), 0)
    };
    make("fifo", FileType::Fifo).unwrap();
    make("file", FileType::RegularFile).unwrap();
    assert_eq!(make("file", FileType::RegularFile).unwrap_err(), rustix::io::Errno::EXIST);
    // Without a reader.
    let writes = OFlags::WRONLY | OFlags::NONBLOCK;
    let refused = open(root.join("fifo"), writes, Mode::empty()).unwrap_err();
    assert_eq!(refused, rustix::io::Errno::NXIO);
    let ends = OFlags::RDWR;
    let fifo = open(root.join("fifo"), ends, Mode::empty()).unwrap();
    rustix::io::write(&fifo, b"through the FIFO").unwrap();
    assert_eq!(rustix::io::read(&fifo, &mut [0; 100]).unwrap(), 16);
    let file = open(root.join("file"), ends, Mode::empty()).unwrap();
    rustix::io::write(&file, b"content").unwrap();
    let socket = root.join("socket");
    let first = UnixDatagram::unbound().unwrap();
    rustix::fs::fchmod(&first, Mode::from_raw_mode(0o700)).unwrap();
    let name = socket.as_os_str().as_bytes();
    let mut address = libc::sockaddr_un { sun_family: 1, sun_path: [0; 108] };
    address.sun_path.iter_mut().zip(name).for_each(|(to, from)| *to = from.cast_signed());
    let length = u32::try_from(2 + name.len()).unwrap();
    // SAFETY: the address is valid for the call, and not longer than its structure.
    let bound = unsafe { libc::bind(first.as_raw_fd(), (&raw const address).cast(), length) };
    assert_eq!(bound, 0);
    let taken = UnixListener::bind(&socket).unwrap_err();
    assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    fs::rename(&socket, root.join("renamed")).unwrap();
    fs::metadata(root.join("renamed")).unwrap();
    // The mode of a FIFO, and names of descriptors.
    let path_only = open(root.join("fifo"), OFlags::PATH, Mode::empty()).unwrap();
    let own = |number: &OwnedFd| format!("/proc/self/fd/{}", number.as_raw_fd());
    fs::set_permissions(own(&path_only), fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(own(&file), root.join("moved")).unwrap_err();
    // A file with the former name of a FIFO.
    fs::remove_file(root.join("fifo")).unwrap();
    fs::write(root.join("fifo"), "no FIFO").unwrap();
    // The device of a whiteout needs no privileges.
    make("device", FileType::CharacterDevice).unwrap();
}
