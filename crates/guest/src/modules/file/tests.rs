//! Tests with valid and damaged modules.

use std::io::Write;

use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::modules::tests::module;

fn written(name: &str, bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (directory, path)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn modinfo_is_parsed() {
    let text =
        b"license=GPL\0alias=fs-ext2\0alias=pci:v*\0alias=a\tb\nc\0softdep=pre: crypto-crc32c post: b-c d\0\0\
        softdep=ignored pre: x\0depends=jbd2,crc-itu-t\0depends=\0noise\0\xff=\xff\0vermagic=6.1 ";
    expect![[r#"
        Info {
            depends: [
                "jbd2",
                "crc_itu_t",
            ],
            pre: [
                "crypto_crc32c",
                "x",
            ],
            post: [
                "b_c",
                "d",
            ],
            aliases: [
                "fs_ext2",
            ],
        }
    "#]]
    .assert_debug_eq(&Info::of_section(text));
}

#[test]
fn compressed_modules_have_the_same_metadata() {
    let plain = module("alias=fs-x\0depends=a,b\0");
    let packed = [
        ("x.ko", plain.clone()),
        ("x.ko.gz", gzip(&plain)),
        ("x.ko.xz", xz(&plain)),
        ("x.ko.zst", zstd(&plain)),
    ];
    let expected = Info::of_section(b"alias=fs-x\0depends=a,b\0");
    for (name, bytes) in packed {
        let (_directory, path) = written(name, &bytes);
        assert_eq!(info(&path).unwrap(), expected, "{name}");
        assert_eq!(read(&path).unwrap(), plain, "{name}");
    }
}

#[test]
fn a_module_may_have_no_metadata() {
    let (_directory, path) = written("x.ko", &module(""));
    assert_eq!(info(&path).unwrap(), Info::default());
}

#[test]
fn other_files_are_rejected() {
    for name in ["x.ko", "x.ko.xz", "x.ko.zst", "x.ko.gz"] {
        let (_directory, path) = written(name, b"not a module");
        let error = info(&path).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    let missing = info(Path::new("/nowhere/x.ko")).unwrap_err().to_string();
    expect!["cannot open the module /nowhere/x.ko"].assert_eq(&missing);
}

/// A small file can claim to unpack to any size.
#[test]
fn a_too_long_module_is_not_read() {
    let (_directory, path) = written("x.ko", &module(""));
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(MODULE_MAX + 1).unwrap();
    let error = info(&path).unwrap_err().to_string();
    assert!(error.ends_with("it is longer than 512 MiB"), "{error}");
    assert!(read(&path).is_err());
}

proptest! {
    #[test]
    fn damaged_modules_fail_or_have_less_metadata(
        at in 0..600_usize,
        value: u8,
        cut in 0..700_usize,
        ending in 0..4_usize,
    ) {
        let plain = module("alias=fs-x\0depends=a,b\0softdep=pre: y\0");
        let (name, mut bytes) = match ending {
            0 => ("x.ko", plain),
            1 => ("x.ko.gz", gzip(&plain)),
            2 => ("x.ko.xz", xz(&plain)),
            _ => ("x.ko.zst", zstd(&plain)),
        };
        let length = bytes.len();
        bytes[at % length] = value;
        bytes.truncate(cut.max(1));
        let (_directory, path) = written(name, &bytes);
        // Must return without a panic and without much memory.
        let _info = info(&path);
        let _bytes = read(&path);
    }

    #[test]
    fn any_section_is_parsed(section: Vec<u8>) {
        let _info = Info::of_section(&section);
    }

    #[test]
    fn any_bytes_are_a_module_or_an_error(bytes: Vec<u8>) {
        prop_assert!(modinfo(bytes.as_slice()).is_err());
    }
}
