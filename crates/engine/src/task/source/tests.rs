use std::{collections::BTreeMap, fs, io::Read};

use model::{
    Bytes,
    phase::{TaskOperation, TaskRoot},
};
use tempfile::TempDir;

use super::*;
use crate::{
    barrier::ControlBlock,
    task::tests::{Bench, NATIVE, task_path},
};

/// Archive in memory.
pub(crate) fn archive(files: u64, seed: u64, compression: Compression) -> Vec<u8> {
    let directory = TempDir::new().unwrap();
    let place = ResolvedPath { at: TaskRoot::External, path: directory.path().join("t") };
    let control = ControlBlock::new(1).unwrap();
    let mut context = TaskContext::new(Bytes::kib(128), &control).unwrap();
    write(&place, files, compression, seed, &mut context).unwrap();
    assert_eq!(context.written, 0, "writes to the external directory are not counted");
    fs::read(place.path).unwrap()
}

/// Shape of a tree: sizes of files, files per directory, directories and files by depth, links.
#[derive(Default)]
struct Seen {
    sizes: Vec<u64>,
    per_directory: BTreeMap<String, u64>,
    directories: Vec<u64>,
    files: Vec<u64>,
    links: u64,
    names: usize,
}

fn look(archive: &[u8]) -> Seen {
    let mut seen = Seen { directories: vec![0; 10], files: vec![0; 10], ..Seen::default() };
    let mut tape = tar::Archive::new(archive);
    for entry in tape.entries().unwrap() {
        let entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let parent = path.rsplit_once('/').map(|(parent, _)| parent.to_owned());
        let kind = entry.header().entry_type();
        if kind == EntryType::Directory {
            let path = path.trim_end_matches('/').to_owned();
            seen.directories[path.matches('/').count()] += 1;
            assert_eq!(seen.per_directory.insert(path, 0), None, "a directory twice");
        } else if kind == EntryType::Regular {
            seen.sizes.push(entry.size());
            seen.names += path.len() - path.rfind('/').unwrap() - 1;
            seen.files[path.matches('/').count() - 1] += 1;
            *seen.per_directory.get_mut(&parent.unwrap()).expect("parents come first") += 1;
        } else {
            assert_eq!(kind, EntryType::Symlink, "{path}");
            let target = entry.link_name().unwrap().unwrap().display().to_string();
            assert!(!target.contains('/') && !target.is_empty());
            assert!(seen.per_directory[&parent.unwrap()] > 0);
            seen.links += 1;
        }
    }
    seen.sizes.sort_unstable();
    seen
}

#[test]
fn a_whole_tree_has_the_counted_shape() {
    let (directories, files) = levels(FILES);
    assert_eq!(directories.iter().sum::<u64>(), DIRECTORIES);
    assert_eq!(files.iter().sum::<u64>(), FILES);
    let counted: Vec<_> = directories.into_iter().zip(files).collect();
    assert_eq!(counted, DEPTHS);
    assert_eq!(scaled(FILES, LINKS), LINKS);

    let sizes: Vec<u64> = (0..FILES).map(|index| quantile(&SIZES, part(index, FILES))).collect();
    let sum: u64 = sizes.iter().sum();
    // 1,298,681,992 bytes were counted.
    assert!((1_280_000_000..1_320_000_000).contains(&sum), "{sum}");
    let mut shape = Shape::new(FILES, &mut fastrand::Rng::with_seed(1));
    shape.sizes.sort_unstable();
    assert!(shape.sizes == sizes, "each quantile once, for any seed");

    // Space per file that a plan reserves on the filesystem, as used by `suites`.
    let blocks: u64 = sizes.iter().map(|size| size.next_multiple_of(4096)).sum();
    let tree = (blocks + 4096 * DIRECTORIES) / FILES;
    let records: u64 = sizes.iter().map(|size| 512 + size.next_multiple_of(512)).sum();
    let tape = (records + 512 * DIRECTORIES) / FILES;
    assert!((19_000..20_000).contains(&tree), "{tree}");
    assert!((17_200..18_000).contains(&tape), "{tape}");
}

#[test]
fn a_small_tree_has_the_shape_of_a_large_one() {
    let files = 5_000;
    let seen = look(&archive(files, 3, Compression::None));
    let (directories, in_depth) = levels(files);
    assert_eq!(seen.directories, directories);
    assert_eq!(seen.files, in_depth);
    assert_eq!(seen.sizes.len() as u64, files);
    assert_eq!(seen.links, 4);
    for (place, size) in &SIZES[2..22] {
        let index = usize::try_from(u64::from(*place) * files / 100_000).unwrap();
        let there = seen.sizes[index.min(seen.sizes.len() - 1)];
        let near = size * 95 / 100..=size * 105 / 100 + 2;
        assert!(near.contains(&there), "{place}: {there} for {size}");
    }
    let mut per_directory: Vec<_> = seen.per_directory.into_values().collect();
    per_directory.sort_unstable();
    let median = per_directory[per_directory.len() / 2];
    // Rounding to whole files within each depth shifts it slightly from the counted 6.
    assert!((4..=8).contains(&median), "{median}");
    assert!(per_directory[per_directory.len() - 1] > 150, "few directories have many files");
    let mean = seen.names as u64 / files;
    assert!((11..=14).contains(&mean), "12.7 were counted: {mean}");
}

#[test]
fn trees_of_any_size_are_valid() {
    for files in (1..40).chain([100, 333, 1000]) {
        let seen = look(&archive(files, files, Compression::None));
        assert_eq!(seen.sizes.len() as u64, files);
        let gap = seen.directories.windows(2).any(|pair| pair[0] == 0 && pair[1] > 0);
        assert!(!gap, "{files}: {:?}", seen.directories);
    }
}

#[test]
fn the_content_depends_on_the_seed() {
    let one = archive(300, 1, Compression::None);
    assert!(one == archive(300, 1, Compression::None));
    let other = archive(300, 2, Compression::None);
    assert_eq!(one.len(), other.len(), "sizes are independent of the seed");
    assert!(one != other);
    let mut unpacked = Vec::new();
    let packed = archive(300, 1, Compression::Gzip);
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == one);
}

#[test]
fn the_tree_compresses_like_source_code() {
    let [plain, packed] =
        [Compression::None, Compression::Gzip].map(|how| archive(2_000, 5, how).len());
    let ratio = plain as f64 / packed as f64;
    assert!((5.6..6.7).contains(&ratio), "6.15 was measured: {ratio}");
}

#[test]
fn the_archive_can_be_unpacked_and_packed_again() {
    let bench = Bench::new();
    let compression = Compression::None;
    let made = bench
        .run(NATIVE, TaskOperation::Archive { archive: task_path("t"), files: 200, compression });
    let unpacked =
        bench.run(NATIVE, TaskOperation::Unpack { archive: task_path("t"), into: task_path("d") });
    let length = fs::metadata(bench.path("t")).unwrap().len();
    assert_eq!(made.written.bytes.0, length);
    // Besides the root: files and directories, but no link in a tree this small. The root is an
    // entry of the archive.
    let directories: u64 = levels(200).0.iter().sum();
    assert_eq!(made.written.ops.0 + 1, 200 + directories);
    assert_eq!(unpacked.written.ops.0, 200 + directories);
    assert_eq!(unpacked.read.bytes.0, length);
    assert!(bench.path("d/source").is_dir());
    assert_eq!(length % 10_240, 0, "whole records, as in tar");
}
