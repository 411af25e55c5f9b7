//! Logs of histograms, of fslab and of fio.

use std::{fs, path::Path};

use super::{FIO, fio_is_missing, fslab_fio, in_data};
use crate::support::Bench;

/// Lines of a log as numbers.
fn lines(path: &Path) -> Vec<Vec<u64>> {
    let text = fs::read_to_string(path).unwrap();
    let number = |own: &str| own.trim().parse().unwrap();
    let line = |line: &str| line.trim_end_matches([',', ' ']).split(',').map(number).collect();
    text.lines().map(line).collect()
}

pub(super) fn compare() {
    let bench = Bench::new();
    let options = [
        "--name=own",
        "--rw=randrw",
        "--size=4m",
        "--bs=4k",
        "--time_based",
        "--runtime=2",
        "--write_hist_log=h",
        "--log_hist_msec=400",
        "--log_hist_coarseness=4",
    ];
    let logs = || bench.path("data").join("h_clat_hist.1.log");
    assert_eq!(fslab_fio(&bench, &options).status, Some(0));
    let ours = lines(&logs());
    // Whole intervals of two seconds, each with a line for reads and another one for writes.
    assert!((6..=10).contains(&ours.len()), "{}", ours.len());
    assert!(ours.iter().all(|line| line.len() == 3 + 1856 / 16), "{:?}", ours[0]);
    for direction in [0, 1] {
        let own: Vec<_> = ours.iter().filter(|line| line[1] == direction).collect();
        assert!(own.iter().all(|line| line[2] == 4096 && line[3..].iter().sum::<u64>() > 0));
        assert!(own.windows(2).all(|two| two[0][0] < two[1][0]), "{own:?}");
    }
    if fio_is_missing("logs_of_histograms_have_the_form_of_fio") {
        return;
    }
    assert_eq!(in_data(&bench, Path::new(FIO), &options).status, Some(0));
    let theirs = lines(&logs());
    assert!(theirs.iter().all(|line| line.len() == ours[0].len()), "{:?}", theirs[0]);
}
