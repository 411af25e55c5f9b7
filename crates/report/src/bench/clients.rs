//! Traffic of network filesystems and RDMA ports in a phase.

use analysis::Summary;
use model::{SystemActivity, activity::ClientActivity, metric::Unit};

use crate::units::alone;

/// `NFS 12.0 MiB read, 3.00 MiB written, 400 requests, 0 sent again`: medians over the repetitions.
/// `None` if there is no such client.
pub(super) fn text<'a>(activity: impl Iterator<Item = &'a SystemActivity>) -> Option<String> {
    let all: Vec<&ClientActivity> = activity.flat_map(|it| &it.clients).collect();
    let mut names: Vec<&str> = all.iter().map(|client| client.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let of = |name: &str| {
        let median = |of: &dyn Fn(&ClientActivity) -> Option<u64>| {
            let own = all.iter().filter(|client| client.name == name);
            let values: Option<Vec<f64>> =
                own.map(|client| of(client).map(|value| value as f64)).collect();
            Some(Summary::new(&values?).ok()?.median)
        };
        let bytes = |of: fn(&ClientActivity) -> u64| {
            Some(alone(Unit::Bytes, median(&|client| Some(of(client)))?))
        };
        let mut parts = vec![
            format!("{} read", bytes(|it| it.read.0)?),
            format!("{} written", bytes(|it| it.written.0)?),
        ];
        parts.extend(median(&|it| it.requests).map(|count| format!("{count:.0} requests")));
        parts
            .extend(median(&|it| it.retransmissions).map(|count| format!("{count:.0} sent again")));
        Some(format!("{name} {}", parts.join(", ")))
    };
    let parts: Vec<String> = names.into_iter().filter_map(of).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use model::Bytes;

    use super::*;

    #[test]
    fn each_client_is_listed_with_its_medians() {
        let nfs = |read| ClientActivity {
            read: Bytes(read << 20),
            requests: Some(read),
            retransmissions: Some(0),
            ..ClientActivity::named("NFS")
        };
        let of = |clients: Vec<ClientActivity>| SystemActivity { clients, ..Default::default() };
        let all =
            [of(vec![nfs(1), ClientActivity::named("RDMA")]), of(vec![nfs(5)]), of(vec![nfs(3)])];
        let expected = "NFS 3.00 MiB read, 0 B written, 3 requests, 0 sent again; RDMA 0 B read, 0 B \
                        written";
        assert_eq!(text(all.iter()).unwrap(), expected);
        assert_eq!(text([of(Vec::new())].iter()), None);
    }
}
