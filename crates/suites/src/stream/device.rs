//! Streams on a block device instead of files.
//!
//! A workload on files has the same requests, order, and regions on a device: the file of a worker
//! becomes a segment of the device, and a file of several workers becomes the start of the device.
//! Files are neither created nor removed.

use model::{
    Bytes, Phase,
    phase::{AccessPattern, FileCreation, FileSharing, IoEngineKind, Stream, Work},
};

/// Phases of the suite on the block device with this path.
///
/// # Errors
/// The reason why the phases require files.
pub(crate) fn on_device(phases: Vec<Phase>, device: &str) -> Result<Vec<Phase>, &'static str> {
    let on_device = |mut phase: Phase| {
        let Work::Stream(stream) = &mut phase.work else {
            return Err("it works on files");
        };
        check(stream)?;
        if let FileSharing::PerWorker(_) = stream.files
            && stream.workers.count > 1
        {
            let file = stream.size.0 - stream.size.0 % stream.block_size.0;
            stream.size = Bytes(file.saturating_mul(stream.workers.count.into()));
            stream.files = FileSharing::Segmented(device.to_owned());
        }
        stream.files = match stream.files {
            FileSharing::One(_) | FileSharing::PerWorker(_) | FileSharing::Template(_) => {
                FileSharing::One(device.to_owned())
            }
            FileSharing::Shared(_) => FileSharing::Shared(device.to_owned()),
            FileSharing::Segmented(_) => FileSharing::Segmented(device.to_owned()),
            FileSharing::Interleaved(_) => FileSharing::Interleaved(device.to_owned()),
            FileSharing::Several(_) => return Err("workers have several files"),
        };
        stream.open.creation = FileCreation::Existing;
        Ok(phase)
    };
    phases.into_iter().map(on_device).collect()
}

fn check(stream: &Stream) -> Result<(), &'static str> {
    match (stream.io_engine, stream.access_pattern) {
        (IoEngineKind::Copy(_), _) => Err("a copy requires two files"),
        (_, AccessPattern::Append) => Err("a block device cannot be appended to"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::{described, find, on_device};

    fn on(settings: &[(&str, &str)]) -> String {
        let suite = find("stream").unwrap();
        let mut point = suite.spec.defaults();
        for (name, text) in settings {
            let kind = suite.spec.parameter(name).unwrap().kind;
            point.parameters.insert((*name).to_owned(), kind.read(text).unwrap());
        }
        let point = (suite.refine)(point).unwrap().remove(0);
        match on_device(&point, 1, "/dev/sdx") {
            Ok(phases) => phases.iter().map(described).collect(),
            Err(reason) => reason,
        }
    }

    #[test]
    fn files_become_the_device_or_its_segments() {
        let base = [("file_size", "1MiB"), ("block_size", "64KiB")];
        let with = |more: &[(&'static str, &'static str)]| on(&[&base, more].concat());
        expect![[r#"
            layout Prepare Unchanged One("/dev/sdx") 1MiB/1MiB direction="write" end_sync="fsync"
            read Measure Cold One("/dev/sdx") 1MiB/64KiB
        "#]]
        .assert_eq(&with(&[("direction", "read")]));
        let four = with(&[("direction", "write"), ("workers", "4"), ("overwrite", "false")]);
        assert!(four.contains(r#"Segmented("/dev/sdx") 4MiB/64KiB"#), "{four}");
        assert!(!four.contains("creation"), "nothing is created: {four}");
        let shared = with(&[("direction", "read"), ("workers", "2"), ("sharing", "shared")]);
        assert!(shared.contains(r#"Shared("/dev/sdx") 1MiB/64KiB"#), "{shared}");
    }

    #[test]
    fn workloads_that_require_files_are_rejected_with_a_reason() {
        let reason = on(&[("io_engine", "splice"), ("direction", "write")]);
        assert_eq!(
            reason,
            "suite `stream` cannot run on a block device: a copy requires two files"
        );
        let reason = on(&[("access_pattern", "append"), ("direction", "write")]);
        assert!(reason.ends_with("a block device cannot be appended to"), "{reason}");
        let tasks = find("metadata").unwrap();
        let point = (tasks.refine)(tasks.spec.defaults()).unwrap().remove(0);
        let reason = on_device(&point, 1, "/dev/sdx").unwrap_err();
        assert_eq!(reason, "suite `metadata` requires a filesystem; use suite `stream`");
    }
}
