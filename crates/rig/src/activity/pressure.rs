//! Pressure stall information (PSI): time in which tasks waited for a resource
//! (Documentation/accounting/psi.rst).

use std::{io, path::Path};

use model::{
    Nanos,
    activity::{Pressure, Unavailable},
};

use crate::host::Host;

/// `EOPNOTSUPP`, the error of a read if PSI is built in but disabled (`psi_show` in
/// kernel/sched/psi.c).
const UNSUPPORTED: i32 = 95;

/// Totals since boot, or the reason why they are not available.
pub(super) fn read(host: &dyn Host) -> Result<Pressure, Unavailable> {
    let one = |resource: &str| {
        let text = host.read(&Path::new("/proc/pressure").join(resource));
        text.map_err(|error| Unavailable { what: "PSI".into(), why: reason(&error) })
    };
    let (cpu, memory, io) = (one("cpu")?, one("memory")?, one("io")?);
    let totals = || {
        Some(Pressure {
            cpu_some: total(&cpu, "some")?,
            memory_some: total(&memory, "some")?,
            memory_full: total(&memory, "full")?,
            io_some: total(&io, "some")?,
            io_full: total(&io, "full")?,
        })
    };
    let unknown = || Unavailable {
        what: "PSI".into(),
        why: "the files of /proc/pressure have an unknown format".into(),
    };
    totals().ok_or_else(unknown)
}

fn reason(error: &io::Error) -> String {
    match (error.raw_os_error(), error.kind()) {
        (Some(UNSUPPORTED), _) => "disabled; boot with psi=1 on the kernel command line".into(),
        (_, io::ErrorKind::NotFound) => "needs Linux 4.20 or newer, built with CONFIG_PSI".into(),
        _ => format!("/proc/pressure: {error}"),
    }
}

/// Total stall time of a line such as `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`, where it
/// is in microseconds.
fn total(text: &str, line: &str) -> Option<Nanos> {
    let line = text.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(' '))?;
    let total = line.split_whitespace().find_map(|word| word.strip_prefix("total="))?;
    Some(Nanos(total.parse::<u64>().ok()?.saturating_mul(1000)))
}

/// Stall times between `earlier` and `later`.
pub(super) fn since(later: Pressure, earlier: Pressure) -> Pressure {
    Pressure {
        cpu_some: later.cpu_some - earlier.cpu_some,
        memory_some: later.memory_some - earlier.memory_some,
        memory_full: later.memory_full - earlier.memory_full,
        io_some: later.io_some - earlier.io_some,
        io_full: later.io_full - earlier.io_full,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::FakeHost;

    #[test]
    fn totals_are_microseconds_and_are_subtracted() {
        let directory = tempfile::tempdir().unwrap();
        let some = |total: u32| format!("some avg10=1.50 avg60=0.00 avg300=0.00 total={total}\n");
        let full = |total: u32| format!("full avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n");
        let host = |n: u32| {
            FakeHost::new(directory.path())
                .file("/proc/pressure/cpu", &(some(n) + &full(0)))
                .file("/proc/pressure/memory", &(some(2 * n) + &full(3 * n)))
                .file("/proc/pressure/io", &(some(4 * n) + &full(5 * n)))
        };
        let before = read(&host(10)).unwrap();
        let lost = since(read(&host(11)).unwrap(), before);
        let [a, b, c, d, e] = [1, 2, 3, 4, 5].map(|micros| Nanos(micros * 1000));
        let expected =
            Pressure { cpu_some: a, memory_some: b, memory_full: c, io_some: d, io_full: e };
        assert_eq!(lost, expected);
    }

    #[test]
    fn reasons_contain_a_hint() {
        let directory = tempfile::tempdir().unwrap();
        let host = FakeHost::new(directory.path());
        assert!(read(&host).unwrap_err().why.contains("Linux 4.20"));
        let host = host
            .file("/proc/pressure/cpu", "")
            .file("/proc/pressure/memory", "")
            .file("/proc/pressure/io", "some total=x\n");
        assert!(read(&host).unwrap_err().why.contains("unknown format"));
        host.fail_read(Path::new("/proc/pressure/cpu"), UNSUPPORTED);
        assert!(read(&host).unwrap_err().why.contains("psi=1"));
    }
}
