//! Runs with level `none`: the block device without a filesystem.

use std::fs;

use model::{
    metric::Metric,
    record::{CellState, Outcome},
};

use crate::support::{Bench, needs_root};

/// Plan with the device and ext4. Two of its workloads require files.
fn plan(storage: &str) -> String {
    format!(
        "repetitions = 2\naa_control = \"none\"\nseed = 1\n[storage]\n{storage}\n[axes]\n\
         filesystem = [\"none\", \"ext4\"]\nworkload = [\n\
         {{ suite = \"stream\", file_size = \"4MiB\", block_size = \"64KiB\", workers = 2, \
         verify = true }},\n\
         {{ suite = \"stream\", file_size = \"4MiB\", block_size = \"64KiB\", direction = \
         \"write\", overwrite = false, direct = true }},\n\
         {{ suite = \"stream\", file_size = \"4MiB\", block_size = \"64KiB\", direction = \
         \"write\", access_pattern = \"append\" }},\n\
         {{ suite = \"metadata\", files = 10, operations = [\"create\"] }},\n]\n"
    )
}

#[test]
fn the_block_device_is_measured_next_to_filesystems() {
    if !needs_root("the_block_device_is_measured_next_to_filesystems") {
        return;
    }
    let bench = Bench::new();
    let disk = bench.disk("disk.img", 64 << 20);
    let plan = bench.plan(&plan(&format!("device = \"{}\"", disk.path())));
    let shown = bench.ends(0, &["show", &plan]).stdout;
    assert!(shown.contains(&format!("open(2) of {}, without", disk.path())), "{shown}");
    bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    let own = disk.path().trim_start_matches("/dev/");
    let mut measured = 0;
    for trial in &record.trials {
        let cell = &record.cells[trial.cell].cell;
        assert_eq!(trial.outcome, Outcome::Measured, "{cell:?}");
        if !cell.filesystem.is_raw() {
            continue;
        }
        measured += 1;
        let programs = |start| trial.actions.iter().any(|it| it.description.starts_with(start));
        assert!(!programs("mkfs") && !programs("mount"), "{:?}", trial.actions);
        let (phase, activity) = &trial.activity[0];
        let device = activity.devices.iter().find(|device| device.depth == 0).unwrap();
        assert_eq!(device.name, own);
        // Cold reads and direct writes reach the device completely.
        let moved = if phase == "read" { device.read } else { device.written };
        let files = if phase == "read" { 2 } else { 1 };
        assert!(moved.0 >= files * (4 << 20), "{phase}: {device:?}");
        let space = trial.samples.iter().find(|it| it.metric == Metric::SpaceAvailable);
        assert_eq!(space.map(|it| it.value), Some(f64::from(64 << 20)));
    }
    assert_eq!(measured, 4);
    let reasons = record.cells.iter().filter_map(|cell| match &cell.state {
        CellState::Skipped { reason } => Some(reason.as_str()),
        CellState::Open | CellState::Done { .. } | CellState::Failed { .. } => None,
    });
    assert_eq!(
        reasons.collect::<Vec<_>>(),
        [
            "suite `stream` cannot run on a block device: a block device cannot be appended to",
            "suite `metadata` requires a filesystem; use suite `stream`",
        ]
    );
    let text = bench.ends(0, &["report", "run.fslab", "--detail"]).stdout;
    assert!(text.contains("Block device: level `none`"), "{text}");
    drop(disk);
    assert_eq!(bench.left_behind(), Vec::<String>::new());
    bench.has_nothing_to_undo();
}

#[test]
fn a_device_with_data_is_refused_without_a_filesystem_as_well() {
    if !needs_root("a_device_with_data_is_refused_without_a_filesystem_as_well") {
        return;
    }
    let bench = Bench::new();
    let disk = bench.disk("disk.img", 64 << 20);
    let mut image = fs::read(bench.path("disk.img")).unwrap();
    // Magic number of ext2, ext3, and ext4.
    image[1080..1082].copy_from_slice(&[0x53, 0xef]);
    fs::write(bench.path("disk.img"), &image).unwrap();
    let text = plan(&format!("device = \"{}\"", disk.path()));
    let only = text.replace("[\"none\", \"ext4\"]", "[\"none\"]");
    let output = bench.ends(3, &["run", &bench.plan(&only), "-o", "run.fslab"]);
    assert!(output.stderr.contains("--overwrite-device"), "{}", output.stderr);
    assert!(fs::read(bench.path("disk.img")).unwrap() == image, "bytes have changed");
}

#[test]
fn the_block_device_has_no_options_and_is_not_in_a_directory() {
    let bench = Bench::new();
    let text = plan("image_size = \"64MiB\"");
    let level = "{ name = \"raw\", type = \"none\", mount_options = \"noatime\" }";
    let options = text.replace("[\"none\", ", &format!("[{level}, "));
    let output = bench.ends(2, &["show", &bench.plan(&options)]);
    assert!(output.stderr.contains("has no mkfs, mount, and setup"), "{}", output.stderr);
    let directory = plan("directory = \"/tmp\"");
    let output = bench.ends(2, &["show", &bench.plan(&directory)]);
    assert!(output.stderr.contains("cannot be created in a directory"), "{}", output.stderr);
    let filled = text.replace("[axes]", "[axes]\nfill_percent = [50]");
    let shown = bench.ends(0, &["show", &bench.plan(&filled)]).stdout;
    assert!(shown.contains("`fill_percent` requires a filesystem"), "{shown}");
}
