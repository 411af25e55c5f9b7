//! Sockets that are connected to each other.
//!
//! The kernel reports the peer of a Unix socket by its inode (unix_diag, see sock_diag(7)). A
//! server has a socket of a connection only after accept(2), so the peer may be known only at a
//! later call. Internet sockets of one host are peers if the address of each is that of the other's
//! peer.

use std::{
    cell::OnceCell,
    collections::{BTreeSet, HashMap},
    net::SocketAddr,
    os::fd::OwnedFd,
};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// Own address of a socket, and that of its peer.
pub(crate) type Addresses = (SocketAddr, SocketAddr);

/// Connected sockets, by their inodes.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    peers: HashMap<u64, BTreeSet<u64>>,
    addresses: HashMap<u64, Addresses>,
    by_addresses: HashMap<Addresses, u64>,
    kernel: OnceCell<Option<OwnedFd>>,
}

impl Sockets {
    /// Sockets that are connected to this one.
    pub(super) fn peers(&self, socket: u64) -> impl Iterator<Item = u64> {
        self.peers.get(&socket).into_iter().flatten().copied()
    }

    /// Two sockets are connected.
    pub(super) fn connect(&mut self, first: u64, second: u64) {
        self.peers.entry(first).or_default().insert(second);
        self.peers.entry(second).or_default().insert(first);
    }

    /// Looks for the peer of a socket, unless one is known. `addresses` returns those of an
    /// Internet socket with a connection.
    pub(super) fn find(&mut self, socket: u64, addresses: impl FnOnce() -> Option<Addresses>) {
        if self.peers.contains_key(&socket) {
            return;
        }
        let known = self.addresses.get(&socket).copied().or_else(|| {
            let found = addresses()?;
            self.addresses.insert(socket, found);
            self.by_addresses.insert(found, socket);
            Some(found)
        });
        let peer = match known {
            Some((own, other)) => self.by_addresses.get(&(other, own)).copied(),
            None => self.peer_of_unix(socket),
        };
        // A socket can be connected to its own address.
        if let Some(peer) = peer.filter(|peer| *peer != socket) {
            self.connect(socket, peer);
        }
    }

    /// Peer of a Unix socket.
    fn peer_of_unix(&self, socket: u64) -> Option<u64> {
        let kernel = self.kernel.get_or_init(|| {
            let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
            socket_with(AddressFamily::NETLINK, kind, flags, Some(netlink::SOCK_DIAG)).ok()
        });
        let kernel = kernel.as_ref()?;
        send(kernel, &diag::request(u32::try_from(socket).ok()?), SendFlags::empty()).ok()?;
        let mut answer = [0; 512];
        let (length, _) = recv(kernel, &mut answer, RecvFlags::empty()).ok()?;
        diag::peer(answer.get(..length)?).map(u64::from)
    }
}

/// Messages of unix_diag (include/uapi/linux/{netlink,sock_diag,unix_diag}.h).
mod diag {
    /// Type of a request and its answer.
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const NLM_F_REQUEST: u16 = 1;
    const AF_UNIX: u8 = 1;
    const UDIAG_SHOW_PEER: u32 = 4;
    const UNIX_DIAG_PEER: u16 = 2;
    /// Size of `struct nlmsghdr`.
    const HEADER: usize = 16;
    /// Size of `struct unix_diag_msg`.
    const MESSAGE: usize = 16;
    /// Size of `struct unix_diag_req`.
    const REQUEST: usize = 24;

    /// Request for the peer of a socket.
    pub(super) fn request(inode: u32) -> Vec<u8> {
        let length = u32::try_from(HEADER + REQUEST).unwrap_or(u32::MAX);
        let mut message = Vec::with_capacity(HEADER + REQUEST);
        message.extend(length.to_ne_bytes());
        message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        message.extend(NLM_F_REQUEST.to_ne_bytes());
        // Sequence number and sender.
        message.extend([0; 8]);
        // Family, protocol, and padding.
        message.extend([AF_UNIX, 0, 0, 0]);
        let (states, any_cookie) = (u32::MAX, u32::MAX);
        for number in [states, inode, UDIAG_SHOW_PEER, any_cookie, any_cookie] {
            message.extend(number.to_ne_bytes());
        }
        message
    }

    /// Inode of the peer; `None` if there is none, or none that a process has.
    pub(super) fn peer(answer: &[u8]) -> Option<u32> {
        let half = |at: usize| Some(u16::from_ne_bytes(*answer.get(at..)?.first_chunk()?));
        if half(4)? != SOCK_DIAG_BY_FAMILY {
            return None;
        }
        let mut at = HEADER + MESSAGE;
        loop {
            let (length, kind) = (usize::from(half(at)?), half(at + 2)?);
            if kind == UNIX_DIAG_PEER {
                let inode = u32::from_ne_bytes(*answer.get(at + 4..)?.first_chunk()?);
                return (inode != 0).then_some(inode);
            }
            at += length.next_multiple_of(4).max(4);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::{
        fd::AsFd,
        unix::net::{UnixListener, UnixStream},
    };

    use super::*;

    fn inode(socket: impl AsFd) -> u64 {
        rustix::fs::fstat(socket).unwrap().st_ino
    }

    #[test]
    fn the_peer_of_a_unix_socket_is_known_after_accept() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let server = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let mut sockets = Sockets::default();
        let none = || None;
        sockets.find(inode(&client), none);
        assert_eq!(sockets.peers(inode(&client)).count(), 0);
        let (accepted, _) = server.accept().unwrap();
        sockets.find(inode(&client), none);
        assert_eq!(sockets.peers(inode(&client)).collect::<Vec<_>>(), [inode(&accepted)]);
        assert_eq!(sockets.peers(inode(&accepted)).collect::<Vec<_>>(), [inode(&client)]);
        // Sockets without a peer, and a number without a socket.
        sockets.find(inode(&server), none);
        sockets.find(u64::MAX, none);
        assert_eq!(sockets.peers(inode(&server)).count() + sockets.peers(u64::MAX).count(), 0);
    }

    #[test]
    fn internet_sockets_with_mirrored_addresses_are_peers() {
        let mut sockets = Sockets::default();
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        sockets.find(1, || Some((address(1000), address(80))));
        sockets.find(2, || Some((address(1001), address(80))));
        assert_eq!(sockets.peers(1).count(), 0);
        sockets.find(3, || Some((address(80), address(1001))));
        assert_eq!((sockets.peers(1).count(), sockets.peers(3).next()), (0, Some(2)));
        // The addresses of a socket are asked for once.
        sockets.find(1, || panic!("known addresses"));
    }

    #[test]
    fn answers_with_any_bytes_are_read() {
        let mut answer = vec![0; 32];
        answer[4] = 20;
        assert_eq!(diag::peer(&answer), None);
        // An attribute without a length, then the peer.
        answer.extend([0, 0, 9, 0]);
        answer.extend([8, 0, 2, 0, 7, 0, 0, 0]);
        assert_eq!(diag::peer(&answer), Some(u32::from_ne_bytes([7, 0, 0, 0])));
        (0..answer.len()).for_each(|length| assert_eq!(diag::peer(&answer[..length]), None));
    }
}
