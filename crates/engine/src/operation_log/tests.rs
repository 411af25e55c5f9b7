use std::fs;

use model::phase::FileSharing;
use tempfile::TempDir;

use super::*;

const MS: u64 = 1_000_000;

/// Log of these operations: issued, accepted, and ended in milliseconds.
fn log(
    change: impl FnOnce(&mut Settings),
    queues: bool,
    operations: &[(Kind, u64, [u64; 3])],
) -> (TempDir, OperationLog) {
    let directory = TempDir::new().unwrap();
    let prefix = directory.path().join("x").display().to_string();
    let mut settings = Settings {
        bandwidth: Some(prefix.clone()),
        operations: Some(prefix.clone()),
        latency: Some(prefix),
        per_worker: true,
        first: 3,
        ..Settings::default()
    };
    change(&mut settings);
    let mut stream = Stream::new(FileSharing::One("f".into()), Bytes::kib(64), Bytes::kib(4));
    stream.operation_log = Some(Box::new(settings));
    let mut log = *OperationLog::new(&stream, 1, queues).unwrap().unwrap();
    log.start(Nanos(1000 * MS));
    for (kind, offset, times) in operations {
        let [issued, accepted, ended] = times.map(|time| Nanos((1000 + time) * MS));
        log.add(*kind, *offset, 4096, Times { issued, accepted, ended, counts: true });
    }
    (directory, log)
}

fn lines(directory: &TempDir, name: &str) -> String {
    fs::read_to_string(directory.path().join(name)).unwrap()
}

const OPERATIONS: [(Kind, u64, [u64; 3]); 3] =
    [(Kind::Write, 8192, [0, 1, 4]), (Kind::Read, 0, [4, 4, 8]), (Kind::Write, 12_288, [8, 9, 12])];

#[test]
fn each_operation_has_a_line_per_log() {
    let (directory, log) = log(|_| (), true, &OPERATIONS);
    assert_eq!(log.write(Nanos(1012 * MS)).unwrap(), 0);
    assert_eq!(
        lines(&directory, "x_bw.4.log"),
        "4, 1000, 1, 4096, 0\n8, 1000, 0, 4096, 0\n12, 1000, 1, 4096, 0\n"
    );
    assert_eq!(
        lines(&directory, "x_iops.4.log"),
        "4, 1, 1, 4096, 0\n8, 1, 0, 4096, 0\n12, 1, 1, 4096, 0\n"
    );
    assert_eq!(lines(&directory, "x_lat.4.log").lines().next(), Some("4, 4000000, 1, 4096, 0"));
    assert_eq!(lines(&directory, "x_slat.4.log").lines().next(), Some("4, 1000000, 1, 4096, 0"));
    assert_eq!(lines(&directory, "x_clat.4.log").lines().next(), Some("4, 3000000, 1, 4096, 0"));
}

#[test]
fn offsets_are_a_column() {
    let (directory, log) = log(|settings| settings.offsets = true, false, &OPERATIONS);
    log.write(Nanos(1012 * MS)).unwrap();
    assert_eq!(
        lines(&directory, "x_lat.4.log").lines().next(),
        Some("4, 4000000, 1, 4096, 8192, 0")
    );
    assert_eq!(lines(&directory, "x_slat.4.log"), "", "synchronous engines have no such latency");
}

#[test]
fn intervals_have_means_or_maxima() {
    let operations: Vec<_> = (0..25)
        .map(|at| (Kind::Write, 0, [at * 4, at * 4, at * 4 + if at % 2 == 0 { 2 } else { 4 }]))
        .collect();
    let interval = |settings: &mut Settings| settings.interval = Nanos(40 * MS);
    let (directory, means) = log(interval, false, &operations);
    means.write(Nanos(1100 * MS)).unwrap();
    // The operation that ends at 40 ms closes the first interval.
    assert_eq!(
        lines(&directory, "x_lat.4.log"),
        "40, 3000000, 1, 0, 0\n80, 3000000, 1, 0, 0\n100, 2800000, 1, 0, 0\n"
    );
    assert_eq!(lines(&directory, "x_iops.4.log"), "40, 250, 1, 0, 0\n80, 250, 1, 0, 0\n");
    assert_eq!(lines(&directory, "x_bw.4.log"), "40, 1000, 1, 0, 0\n80, 1000, 1, 0, 0\n");
    let maxima = |settings: &mut Settings| {
        interval(settings);
        settings.maximum = true;
    };
    let (directory, maxima) = log(maxima, false, &operations);
    maxima.write(Nanos(1100 * MS)).unwrap();
    assert!(lines(&directory, "x_clat.4.log").starts_with("40, 4000000, 1, 0, 0\n"));
}

#[test]
fn operations_beyond_the_reserved_memory_are_counted() {
    let (directory, mut log) = log(|_| (), false, &OPERATIONS);
    let room = log.entries.capacity();
    for _ in 0..room {
        let times = Times { issued: Nanos(0), accepted: Nanos(0), ended: Nanos(1), counts: true };
        log.add(Kind::Read, 0, 4096, times);
    }
    assert_eq!(log.entries.capacity(), room, "no memory is allocated in the loop");
    assert_eq!(log.write(Nanos(1)).unwrap(), 3);
    assert_eq!(lines(&directory, "x_lat.4.log").lines().count(), room);
}

#[test]
fn workers_append_to_a_common_log() {
    let (directory, log) = log(|settings| settings.per_worker = false, false, &OPERATIONS);
    fs::write(directory.path().join("x_lat.log"), "1, 2, 0, 3, 0\n").unwrap();
    log.write(Nanos(1012 * MS)).unwrap();
    assert_eq!(lines(&directory, "x_lat.log").lines().count(), 4);
}

#[test]
fn links_and_devices_are_not_written() {
    let (directory, log) = log(|_| (), false, &OPERATIONS);
    std::os::unix::fs::symlink("/dev/null", directory.path().join("x_bw.4.log")).unwrap();
    let failure = log.write(Nanos(1012 * MS)).unwrap_err();
    assert!(failure.path.ends_with("x_bw.4.log"), "{failure:?}");
}

/// As by fio.
#[test]
fn an_existing_log_is_written_in_place() {
    let (directory, log) = log(|_| (), true, &OPERATIONS);
    let at = |name: &str| directory.path().join(name);
    fs::write(at("old"), "a longer text than the lines of the log, which replace it\n".repeat(9))
        .unwrap();
    fs::hard_link(at("old"), at("x_bw.4.log")).unwrap();
    log.write(Nanos(1012 * MS)).unwrap();
    assert_eq!(lines(&directory, "old"), lines(&directory, "x_bw.4.log"));
    assert!(lines(&directory, "old").starts_with("4, 1000, 1, 4096, 0\n"));
}

#[test]
fn a_link_in_place_of_a_log_is_not_followed() {
    let (directory, log) = log(|_| (), true, &OPERATIONS);
    let at = |name: &str| directory.path().join(name);
    std::os::unix::fs::symlink(at("victim"), at("x_bw.4.log")).unwrap();
    assert!(log.write(Nanos(1012 * MS)).is_err());
    assert!(!at("victim").exists());
}
