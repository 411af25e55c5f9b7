//! Counters of the clients of network filesystems, and of RDMA ports.
//!
//! The counters of a client cover all mounts of its kind on the host, and those of a port all
//! traffic.

use std::path::{Path, PathBuf};

use model::{Bytes, activity::ClientActivity};

use crate::host::Host;

/// Directories in which the Lustre client has a directory per mount with a file `stats`: before
/// version 2.12 and since.
const LUSTRE: [&str; 2] = ["/sys/kernel/debug/lustre/llite", "/proc/fs/lustre/llite"];

const INFINIBAND: &str = "/sys/class/infiniband";

/// Statistics of NFS mounts (`nfs_show_stats` in fs/nfs/super.c).
const MOUNTS: &str = "/proc/self/mountstats";

/// Counters that exist on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clients {
    nfs: bool,
    /// Files `stats`.
    lustre: Vec<PathBuf>,
    /// Directories `counters` of ports.
    ports: Vec<PathBuf>,
}

impl Clients {
    pub(super) fn find(host: &dyn Host) -> Self {
        let list = |directory: &Path| -> Vec<PathBuf> {
            let names = host.list(directory).unwrap_or_default();
            names.iter().map(|name| directory.join(name)).collect()
        };
        let lustre = LUSTRE.iter().map(|place| list(Path::new(place)));
        let lustre = lustre.into_iter().find(|mounts| !mounts.is_empty()).unwrap_or_default();
        let devices = list(Path::new(INFINIBAND));
        let ports = devices.iter().flat_map(|device| list(&device.join("ports")));
        let nfs = host.read(Path::new(MOUNTS)).is_ok_and(|text| nfs(&text).is_some());
        Self {
            nfs,
            lustre: lustre.iter().map(|mount| mount.join("stats")).collect(),
            ports: ports.map(|port| port.join("counters")).collect(),
        }
    }

    /// Totals since the mount, or since the counters of a port were reset.
    pub(super) fn read(&self, host: &dyn Host) -> Vec<ClientActivity> {
        let of_nfs = || nfs(&host.read(Path::new(MOUNTS)).ok()?);
        let lustre = self.lustre.iter().filter_map(|file| lustre(&host.read(file).ok()?));
        let ports = self.ports.iter().filter_map(|port| {
            let counter = |name: &str| host.read(&port.join(name)).ok()?.trim().parse().ok();
            port_traffic(counter("port_rcv_data")?, counter("port_xmit_data")?)
        });
        let found = [self.nfs.then(of_nfs).flatten(), lustre.reduce(sum), ports.reduce(sum)];
        found.into_iter().flatten().collect()
    }
}

/// Differences of totals that exist at both times.
pub(super) fn since(later: &[ClientActivity], earlier: &[ClientActivity]) -> Vec<ClientActivity> {
    let difference = |later: &ClientActivity| {
        let before = earlier.iter().find(|before| before.name == later.name)?;
        let part = |of: fn(&ClientActivity) -> Option<u64>| {
            of(later).zip(of(before)).map(|(later, before)| later.saturating_sub(before))
        };
        Some(ClientActivity {
            name: later.name.clone(),
            read: later.read - before.read,
            written: later.written - before.written,
            requests: part(|it| it.requests),
            retransmissions: part(|it| it.retransmissions),
        })
    };
    later.iter().filter_map(difference).collect()
}

fn sum(one: ClientActivity, other: ClientActivity) -> ClientActivity {
    let mut all = vec![one];
    ClientActivity::add(&mut all, &other);
    all.remove(0)
}

/// Sum over all NFS mounts: bytes read from and written to servers (fields 5 and 6 of `bytes:`),
/// and over all operations the requests and the transmissions beyond the first of each (fields 1
/// and 2 of a line after `per-op statistics`). `None` if there is no such mount.
fn nfs(text: &str) -> Option<ClientActivity> {
    let mut all: Option<ClientActivity> = None;
    let (mut of_nfs, mut operations) = (false, false);
    for line in text.lines() {
        if line.starts_with("device ") {
            of_nfs = line.contains(" with fstype nfs");
            operations = false;
            continue;
        }
        if !of_nfs {
            continue;
        }
        let all = all.get_or_insert_with(|| ClientActivity {
            requests: Some(0),
            retransmissions: Some(0),
            ..ClientActivity::named("NFS")
        });
        if line.trim() == "per-op statistics" {
            operations = true;
            continue;
        }
        let Some((name, fields)) = line.split_once(':') else { continue };
        let mut fields = fields.split_whitespace().map(|field| field.parse::<u64>().unwrap_or(0));
        if name.trim() == "bytes" {
            all.read = all.read + Bytes(fields.nth(4).unwrap_or(0));
            all.written = all.written + Bytes(fields.next().unwrap_or(0));
        } else if operations && let (Some(ops), Some(sent)) = (fields.next(), fields.next()) {
            let add = |total: &mut Option<u64>, more: u64| {
                *total = total.map(|total| total.saturating_add(more));
            };
            add(&mut all.requests, ops);
            add(&mut all.retransmissions, sent.saturating_sub(ops));
        }
    }
    all
}

/// Bytes of a Lustre mount: the sum at the end of the lines `read_bytes` and `write_bytes`
/// (`lprocfs_counter` in the Lustre sources: samples, unit, minimum, maximum, sum).
fn lustre(text: &str) -> Option<ClientActivity> {
    let total = |name: &str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.and_then(|line| line.split_whitespace().nth(6)?.parse().ok()).unwrap_or(0)
    };
    text.contains("snapshot_time").then(|| ClientActivity {
        read: Bytes(total("read_bytes")),
        written: Bytes(total("write_bytes")),
        ..ClientActivity::named("Lustre")
    })
}

/// Traffic of a port. Its counters are in units of four bytes
/// (Documentation/ABI/stable/sysfs-class-infiniband).
fn port_traffic(received: u64, sent: u64) -> Option<ClientActivity> {
    Some(ClientActivity {
        read: Bytes(received.checked_mul(4)?),
        written: Bytes(sent.checked_mul(4)?),
        ..ClientActivity::named("RDMA")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::FakeHost;

    const NFS: &str = "\
device rootfs mounted on / with fstype rootfs
device server:/a mounted on /mnt with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2
\tage:\t120
\tbytes:\t10 20 30 40 4096 8192 1 2
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 0 0 1 0 0 5 5 0 5 0 2 0 0
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t        READ: 8 9 1 1000 5000 1 2 3 0
device server:/b mounted on /b with fstype nfs statvers=1.1
\tbytes:\t0 0 0 0 4 8 0 0
\tper-op statistics
\t       WRITE: 2 2 0 1000 5000 1 2 3 0
";

    #[test]
    fn counters_of_nfs_mounts_are_added() {
        let all = nfs(NFS).unwrap();
        assert_eq!((all.read, all.written), (Bytes(4100), Bytes(8200)));
        assert_eq!((all.requests, all.retransmissions), (Some(11), Some(1)));
        assert_eq!(nfs("device /dev/sda mounted on / with fstype ext4\n"), None);
    }

    #[test]
    fn counters_of_all_kinds_are_differences() {
        let directory = tempfile::tempdir().unwrap();
        let empty = FakeHost::new(directory.path().join("empty"));
        assert_eq!(Clients::find(&empty), Clients::default());
        assert_eq!(Clients::default().read(&empty), []);
        let stats = "/sys/kernel/debug/lustre/llite/scratch-1/stats";
        let lustre = |sum: u64| {
            format!(
                "snapshot_time 1.5 secs.usecs\nread_bytes 2 samples [bytes] 0 9 {sum}\n\
                 write_bytes 1 samples [bytes] 5 5 7\nopen 3 samples [regs]\n"
            )
        };
        let mut host = FakeHost::new(directory.path().join("host"));
        host = host.file(MOUNTS, NFS).file(stats, &lustre(9));
        for (port, received) in [("1", "100"), ("2", "11")] {
            let counters = format!("{INFINIBAND}/mlx5_0/ports/{port}/counters");
            host = host
                .file(&format!("{counters}/port_rcv_data"), received)
                .file(&format!("{counters}/port_xmit_data"), "5\n");
        }
        let clients = Clients::find(&host);
        let before = clients.read(&host);
        let names: Vec<&str> = before.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["NFS", "Lustre", "RDMA"]);
        assert_eq!((before[2].read, before[2].written), (Bytes(444), Bytes(40)));
        std::fs::write(host.at(Path::new(stats)), lustre(1009)).unwrap();
        let difference = since(&clients.read(&host), &before);
        assert_eq!((difference[1].read, difference[1].written), (Bytes(1000), Bytes(0)));
        assert_eq!(difference[0].requests, Some(0));
        assert_eq!(since(&before, &[]), []);
    }
}
