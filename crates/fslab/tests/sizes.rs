//! Runs with the axis `size`.

use std::fs;

use model::{Bytes, Metric, Warning, record::Outcome, sample::lifecycle};

use crate::support::{Bench, needs_root};

/// Plan with sparse images of these sizes.
fn plan(bench: &Bench, sizes: &str, filesystems: &str) -> String {
    let images = bench.path("images");
    fs::create_dir_all(&images).unwrap();
    bench.plan(&format!(
        "repetitions = 2\naa_control = \"none\"\nseed = 1\n[storage]\nimage_allocation = \
         \"sparse\"\nimage_directory = \"{}\"\n[axes]\nfilesystem = [{filesystems}]\n\
         size = [{sizes}]\nworkload = [{{ suite = \"iozone\", file_size = \"1MiB\", tests = \
         [\"write\"] }}]\n",
        images.display()
    ))
}

#[test]
fn lifecycle_steps_are_measured_by_size() {
    if !needs_root("lifecycle_steps_are_measured_by_size") {
        return;
    }
    let bench = Bench::new();
    let plan = plan(&bench, "\"512MiB\", \"2GiB\", \"256GiB\"", "\"xfs\", \"btrfs\"");
    bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    assert_eq!(record.trials.len(), 12);
    for trial in &record.trials {
        assert_eq!(trial.outcome, Outcome::Measured);
        let wanted = record.cells[trial.cell].cell.settings.values().next().unwrap();
        let sizes = trial.samples.iter().filter(|sample| {
            sample.phase == lifecycle::MKFS && sample.metric == Metric::DeviceSize
        });
        let size = sizes.map(|it| format!("{:.0}B", it.value)).next().unwrap();
        assert_eq!(Bytes::parse(&size).unwrap().to_string(), wanted.to_string());
    }
    assert!(record.warnings.contains(&Warning::EmptyFilesystems), "{:?}", record.warnings);
    let text = bench.ends(0, &["report", "run.fslab", "--detail"]).stdout;
    for row in ["xfs · 512MiB", "btrfs · 256GiB", "empty-filesystems"] {
        assert!(text.contains(row), "{row} in\n{text}");
    }
    bench.ends(0, &["report", "run.fslab", "--html", "report.html"]);
    let html = fs::read_to_string(bench.path("report.html")).unwrap();
    for id in ["size-mkfs", "size-mount", "size-umount", "size-fsck", "size-space"] {
        assert!(html.contains(id), "{id}");
    }
    assert_eq!(fs::read_dir(bench.path("images")).unwrap().count(), 0, "the image is removed");
    assert_eq!(bench.left_behind(), Vec::<String>::new());
    bench.has_nothing_to_undo();
}

#[test]
fn cells_are_skipped_if_mkfs_would_fill_the_disk() {
    if !needs_root("cells_are_skipped_if_mkfs_would_fill_the_disk") {
        return;
    }
    let bench = Bench::new();
    let lazy = "{ name = \"lazy\", type = \"ext4\", mkfs_options = [\"-E\", \
                \"nodiscard,lazy_itable_init=1\"] }";
    let plan = plan(&bench, "\"1GiB\", \"8192TiB\"", &format!("\"ext4\", {lazy}, \"xfs\""));
    let shown = bench.ends(0, &["show", &plan]).stdout;
    assert_eq!(shown.matches("mkfs writes about").count(), 1, "{shown}");
    assert!(shown.contains("6 cells, 5 of them"), "only ext4 without the option: {shown}");
}

#[test]
fn guests_and_devices_have_no_sizes() {
    let bench = Bench::new();
    let plan = plan(&bench, "\"1GiB\", \"2GiB\"", "\"ext4\"");
    let output = bench.ends(2, &["run", &plan, "-o", "run.fslab", "--guest", "tcg"]);
    assert!(output.stderr.contains("disks of a guest have one size"), "{}", output.stderr);
    let output = bench.ends(2, &["run", &plan, "-o", "run.fslab", "--device", "/dev/absent"]);
    assert!(output.stderr.contains("`size` requires image files"), "{}", output.stderr);
}
