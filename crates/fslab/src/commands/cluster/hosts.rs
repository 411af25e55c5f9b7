//! Names of the hosts: from the command line, a host file, the plan, or a Slurm allocation.

use std::path::Path;

use crate::exit::Failure;

/// Reads a host file: one host per line. Comments (`#`) and everything after the first word, such
/// as `slots=4` of Open MPI, are ignored, and so is `:4` of MPICH.
///
/// # Errors
/// If the file cannot be read, or names no host.
pub(super) fn of_file(path: &Path) -> Result<Vec<String>, Failure> {
    let text = sys::input::text(path, 1 << 20).map_err(|error| {
        Failure::usage(anyhow::anyhow!("cannot read the host file {}: {error}", path.display()))
    })?;
    let hosts = parse(&text);
    if hosts.is_empty() {
        return Err(Failure::usage(anyhow::anyhow!(
            "the host file {} names no host; write one host per line",
            path.display()
        )));
    }
    Ok(hosts)
}

fn parse(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let words = lines.filter_map(|line| line.split_whitespace().next());
    words.map(|word| word.split(':').next().unwrap_or(word).to_owned()).collect()
}

/// Checks the names of the hosts, which become arguments of the launcher.
///
/// # Errors
/// The first invalid name, or a name that occurs twice.
pub(super) fn check(hosts: &[String]) -> Result<(), Failure> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    for (at, host) in hosts.iter().enumerate() {
        if host.is_empty() || host.starts_with('-') || !host.chars().all(fits) {
            return Err(Failure::usage(anyhow::anyhow!(
                "`{}` is not a host name; use letters, digits, `-`, `_`, and `.`",
                host.escape_debug()
            )));
        }
        if hosts[..at].contains(host) && host != LOCAL {
            return Err(Failure::usage(anyhow::anyhow!(
                "host {host} occurs twice; each host has one process, and its workers are set in \
                 the workload"
            )));
        }
    }
    Ok(())
}

/// This host. It may occur several times, to try a plan on one host.
pub(super) const LOCAL: &str = "localhost";

/// Number of hosts of the Slurm allocation of this process; `None` without one.
pub(super) fn of_slurm() -> Option<u32> {
    std::env::var("SLURM_JOB_NUM_NODES").ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_file_has_one_host_per_line() {
        let text = "# rack 1\nnode1 slots=4\n\nnode2:2   # spare\n  node3\n";
        assert_eq!(parse(text), ["node1", "node2", "node3"]);
    }

    #[test]
    fn invalid_and_repeated_names_are_rejected() {
        let check =
            |names: &[&str]| check(&names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        assert!(check(&["node1", "10.0.0.2", LOCAL, LOCAL]).is_ok());
        for bad in [&["--mca"][..], &["a b"], &["a,b"], &[""], &["node1", "node1"]] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }
}
