//! Fuzz targets for plans and for jobs of fio. They accept any bytes, and must neither panic nor
//! use unbounded time or memory.

use model::{KnownNames, Plan, Scale};

use crate::fio;

/// Separator between a plan and settings of `--set`, one per line.
pub const SETTINGS: &str = "\n---\n";

/// Parses a plan, applies the settings, expands the cells, and creates the phases of the first 20.
pub fn plan(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (text, settings) = text.split_once(SETTINGS).unwrap_or((&text, ""));
    let suites = crate::specs();
    let filesystems = ["btrfs", "directory", "ext2", "ext4", "f2fs", "tmpfs", "xfs"];
    let presets = crate::presets();
    let vocabulary =
        KnownNames { suites: &suites, presets, filesystems: &filesystems, mounted: &[] };
    let Ok(mut plan) = Plan::parse(text, vocabulary) else { return };
    for (key, value) in settings.lines().filter_map(|line| line.split_once('=')) {
        let _refused = plan.set(key, value, vocabulary);
    }
    if plan.consistent().is_err() {
        return;
    }
    let scales = plan.scales.iter().flat_map(|scale| &scale.settings);
    let scales =
        scales.filter_map(|(key, value)| Scale::parse(value).ok().filter(|_| key == "scale"));
    for scale in scales.chain([Scale::ONE]).take(3) {
        let _storage = plan.storage_at(scale, model::Bytes(0));
        let Ok(cells) = plan.cells(scale, &crate::refine) else { continue };
        for labelled in cells.iter().take(20) {
            let point = &labelled.cell.workload;
            if let Some(suite) = crate::find(&point.suite) {
                let _bytes = (suite.footprint)(point);
                let _phases = (suite.phases)(point, 1);
            }
        }
    }
}

/// Parses a job of fio, or the arguments after [`SETTINGS`], one per line. A valid job has a
/// canonical text that defines the same job, and phases.
///
/// # Panics
/// If the canonical text is not canonical.
pub fn fio_job(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (text, arguments) = text.split_once(SETTINGS).unwrap_or((&text, ""));
    let arguments: Vec<String> = arguments.lines().map(str::to_owned).collect();
    let mut include = |_: &str, path: &str| match path {
        "common.inc" => Ok((path.to_owned(), "[global]\nbs=8k\n".to_owned())),
        "cycle.inc" => Ok((path.to_owned(), "include cycle.inc\n".to_owned())),
        path => Err(format!("{path} does not exist")),
    };
    let Ok(mut lines) = fio::expand("job.fio", text, &mut include) else { return };
    if let Ok(own) = fio::of_arguments(&arguments) {
        lines.extend(own);
    }
    for directory in ["", "/srv"] {
        let changes = fio::Changes {
            variables: [("SIZE".to_owned(), "1m".to_owned())].into(),
            map: vec!["/dev/sdb=disk:1m".to_owned()],
            directory: directory.to_owned(),
            ..fio::Changes::default()
        };
        let Ok(job) = fio::parse(&lines, &changes) else { continue };
        let canonical = job.text();
        let again = fio::expand("text", &canonical, &mut |_, _| Err(String::new()))
            .and_then(|lines| fio::parse(&lines, &fio::Changes { map: Vec::new(), ..changes }));
        assert_eq!(again.map(|job| job.text()).as_deref(), Ok(canonical.as_str()));
        let _files = job.files();
        let suite = crate::find(fio::NAME).expect("a suite");
        let mut point = suite.spec.defaults();
        let values = [(fio::TEXT, canonical.as_str()), (fio::DIRECTORY, directory)];
        for (name, value) in values {
            point.parameters.insert(name.to_owned(), model::Value::Text(value.to_owned()));
        }
        let phases = (suite.phases)(&point, 1);
        assert!(!phases.is_empty(), "{canonical}");
        let _bytes = (suite.footprint)(&point);
    }
}
