//! Network counters of this host.

use std::fs;

use model::{Bytes, cluster::Network};

/// Reads the counters; `None` if the kernel does not provide them.
pub(super) fn read() -> Option<Network> {
    let devices = fs::read_to_string("/proc/net/dev").ok()?;
    let protocols = fs::read_to_string("/proc/net/snmp").unwrap_or_default();
    let network = interfaces(&devices)?;
    Some(Network { retransmitted: retransmitted(&protocols).unwrap_or(0), ..network })
}

/// Sum over all interfaces of /proc/net/dev except the loopback interface (proc(5)).
fn interfaces(text: &str) -> Option<Network> {
    let mut sum = Network::default();
    for line in text.lines().skip(2) {
        let (name, counters) = line.split_once(':')?;
        if name.trim() == "lo" {
            continue;
        }
        let numbers: Vec<u64> =
            counters.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        let get = |column: usize| numbers.get(column).copied();
        sum.received = sum.received + Bytes(get(0)?);
        sum.packets_received += get(1)?;
        sum.sent = sum.sent + Bytes(get(8)?);
        sum.packets_sent += get(9)?;
    }
    Some(sum)
}

/// Column `RetransSegs` of /proc/net/snmp.
fn retransmitted(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let column = names.split_whitespace().position(|name| name == "RetransSegs")?;
    values.split_whitespace().nth(column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_except_loopback_are_added() {
        let text = "Inter-| Receive | Transmit\n face |bytes packets\n    lo: 9 9 0 0 0 0 0 0 9 9 0 0\n\
                    \u{20} eth0: 100 2 0 0 0 0 0 0 50 1 0 0 0 0 0 0\n  ib0:7 1 0 0 0 0 0 0 3 2 0 0 0 0 0 0\n";
        let sum = interfaces(text).unwrap();
        assert_eq!((sum.received, sum.sent), (Bytes(107), Bytes(53)));
        assert_eq!((sum.packets_received, sum.packets_sent), (3, 3));
        assert_eq!(interfaces("a\nb\neth0: x"), None);
        let tcp = "Ip: A B\nIp: 1 2\nTcp: ActiveOpens RetransSegs\nTcp: 5 17\n";
        assert_eq!(retransmitted(tcp), Some(17));
        assert!(read().is_some());
    }
}
