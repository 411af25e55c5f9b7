//! Runs with the axis `device`.

use std::{collections::BTreeSet, fs};

use model::{SystemSetting, Warning, record::Outcome};

use crate::support::{Bench, needs_root};

/// Plan with two devices, of which each is a TOML table without a name.
fn plan(first: &str, second: &str) -> String {
    format!(
        "repetitions = 2\naa_control = \"none\"\nseed = 1\n[axes]\nfilesystem = [\"ext4\"]\n\
         device = [{{ name = \"a\", {first} }}, {{ name = \"b\", {second} }}]\n\
         workload = [{{ suite = \"iozone\", file_size = \"1MiB\", tests = [\"write\"] }}]\n"
    )
}

/// Image in a directory of the test.
fn image(bench: &Bench, directory: &str) -> String {
    let directory = bench.path(directory);
    fs::create_dir_all(&directory).unwrap();
    format!("image_size = \"64MiB\", image_directory = \"{}\"", directory.display())
}

#[test]
fn trials_alternate_between_devices() {
    if !needs_root("trials_alternate_between_devices") {
        return;
    }
    let bench = Bench::new();
    let disk = bench.disk("disk.img", 64 << 20);
    let device = format!("device = \"{}\"", disk.path());
    let plan = bench.plan(&plan(&device, &image(&bench, "images")));
    let shown = bench.ends(0, &["show", &plan]).stdout;
    for line in ["device      a: loop", "images      b: in ", "commands for device a"] {
        assert!(shown.contains(line), "{line} in\n{shown}");
    }
    bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    let level = |cell: usize| record.cells[cell].cell.settings[&SystemSetting::Device].to_string();
    assert_eq!([level(0), level(1)], ["a", "b"]);
    let own = disk.path().trim_start_matches("/dev/");
    let mut rounds: [BTreeSet<String>; 2] = Default::default();
    for (index, trial) in record.trials.iter().enumerate() {
        assert_eq!(trial.outcome, Outcome::Measured);
        rounds[index / 2].insert(level(trial.cell));
        let mkfs = trial.actions.iter().find(|action| action.description.starts_with("mkfs."));
        let on_disk = mkfs.unwrap().description.ends_with(disk.path());
        assert_eq!(on_disk, level(trial.cell) == "a", "{mkfs:?}");
        let (_, activity) = &trial.activity[0];
        let top = activity.devices.iter().find(|device| device.depth == 0).unwrap();
        assert_eq!(top.name == own, level(trial.cell) == "a");
    }
    assert!(rounds.iter().all(|round| round.len() == 2), "each round has both: {rounds:?}");
    let storage = &record.info.storage;
    assert!(storage.starts_with(&format!("device a: {own}, ")), "{storage}");
    assert!(storage.contains("; device b: image file of 64MiB"), "{storage}");
    assert_eq!(record.environment.get("level.a.devices"), Some(own));
    let differ = |warning: &Warning| matches!(warning, Warning::DeviceSizesDiffer { .. });
    assert!(!record.warnings.iter().any(differ), "{:?}", record.warnings);
    let csv = bench.ends(0, &["report", "run.fslab", "--format", "csv"]).stdout;
    assert!(csv.contains("device"), "{csv}");
    assert_eq!(fs::read_dir(bench.path("images")).unwrap().count(), 0, "the image is removed");
    drop(disk);
    assert_eq!(bench.left_behind(), Vec::<String>::new());
    bench.has_nothing_to_undo();
}

#[test]
fn a_refused_device_changes_no_other() {
    if !needs_root("a_refused_device_changes_no_other") {
        return;
    }
    let bench = Bench::new();
    let (free, used) = (bench.disk("free.img", 64 << 20), bench.disk("used.img", 64 << 20));
    let before = fs::read(bench.path("free.img")).unwrap();
    let _open = fs::OpenOptions::new().write(true).open(used.path()).unwrap();
    let device = |path: &str| format!("device = \"{path}\"");
    let kept = format!("{}, image_file = \"kept.img\"", image(&bench, "images"));
    for first in [device(free.path()), kept] {
        let plan = bench.plan(&plan(&first, &device(used.path())));
        let output = bench.ends(3, &["run", &plan, "-o", "run.fslab"]);
        assert!(output.stderr.contains("is open for writing"), "{}", output.stderr);
        assert!(!bench.path("run.fslab").exists());
    }
    assert!(fs::read(bench.path("free.img")).unwrap() == before, "bytes have changed");
    assert_eq!(fs::read_dir(bench.path("images")).unwrap().count(), 0, "no image was created");
    bench.has_nothing_to_undo();
}

#[test]
fn a_single_device_of_the_axis_is_selected() {
    if !needs_root("a_single_device_of_the_axis_is_selected") {
        return;
    }
    let bench = Bench::new();
    let plan = bench.plan(&plan("device = \"/dev/absent\"", &image(&bench, "images")));
    bench.ends(0, &["run", &plan, "-o", "run.fslab", "--device", "b"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    assert_eq!(record.trials.len(), 2);
    assert!(record.info.storage.starts_with("device b: image file"), "{}", record.info.storage);
}

#[test]
fn guests_have_no_axis_device() {
    let bench = Bench::new();
    let plan = bench.plan(&plan(&image(&bench, "a"), &image(&bench, "b")));
    let output = bench.ends(2, &["run", &plan, "-o", "run.fslab", "--guest", "tcg"]);
    assert!(output.stderr.contains("guests use image files as disks"), "{}", output.stderr);
}
