use std::sync::atomic::AtomicBool;

use expect_test::expect;
use proptest::prelude::*;

use super::{
    super::testing::{By, packed, unpacked},
    *,
};

const ALL: [By; 4] = [By::Gzip, By::Xz, By::Zstd, By::Lz4];

fn error_text(result: Result<Vec<u8>, GuestError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn compression_round_trips() {
    let block = b"a kernel, more or less ".repeat(500_000);
    for by in ALL {
        for bytes in [&b""[..], b"short", &block] {
            assert!(unpacked(&packed(bytes, by), 20 << 20).unwrap() == bytes, "{by:?}");
        }
    }
    assert_eq!(unpacked(b"plain", 5).unwrap(), b"plain");
}

#[test]
fn a_decompression_bomb_ends_at_the_limit() {
    for by in ALL {
        let bomb = packed(&vec![0; 9 << 20], by);
        assert!(bomb.len() < 1 << 20);
        let error = error_text(unpacked(&bomb, (9 << 20) - 1));
        assert_eq!(error, "stream: cannot be unpacked: its decompressed size exceeds the limit");
        assert!(unpacked(&bomb, 9 << 20).is_ok());
    }
}

#[test]
fn claimed_memory_sizes_are_limited() {
    // An xz stream that requires a dictionary of 1.5 GiB: its block header has the filter LZMA2
    // (0x21), one byte of properties, the size (37), then padding and a CRC.
    let mut stream = packed(b"x", By::Xz);
    let at = 12 + stream[12..].windows(2).position(|pair| pair == [0x21, 1]).unwrap() + 2;
    stream[at] = 37;
    let length = (usize::from(stream[12]) + 1) * 4;
    let crc = crc32fast::hash(&stream[12..12 + length - 4]);
    stream[12 + length - 4..12 + length].copy_from_slice(&crc.to_le_bytes());
    expect!["stream: requires too much memory to be decompressed"]
        .assert_eq(&error_text(unpacked(&stream, 10)));
    // A zstd frame with a window of 1 GiB: no flags, and the exponent 20.
    let stream = [0x28, 0xb5, 0x2f, 0xfd, 0, 20 << 3, 1, 0, 0];
    assert!(
        error_text(unpacked(&stream, 10)).contains("window"),
        "{}",
        error_text(unpacked(&stream, 10))
    );
    // An lz4 block of 2 GiB.
    let stream = [0x02, 0x21, 0x4c, 0x18, 0, 0, 0, 0x80];
    expect!["stream: cannot be unpacked: an lz4 block is too long"]
        .assert_eq(&error_text(unpacked(&stream, 10)));
}

#[test]
fn unsupported_compressions_are_named() {
    for (first, name) in
        [(&b"BZh91AY"[..], "bzip2"), (&[0x5d, 0, 0, 0, 4], "lzma"), (b"\x89LZO\0\r\n", "lzo")]
    {
        let text = error_text(unpacked(first, 10));
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn an_interrupt_ends_reading() {
    let interrupt = AtomicBool::new(false);
    let source = Source { path: Path::new("endless"), interrupt: &interrupt };
    let mut stream = source.watched(io::repeat(1), u64::MAX);
    stream.read_exact(&mut [0; 100]).unwrap();
    interrupt.store(true, Ordering::Relaxed);
    let error = stream.read_exact(&mut [0; 100]).unwrap_err();
    assert!(matches!(source.failed(error), GuestError::Interrupted));
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let error =
        source.write_to(&mut io::repeat(1), &directory.path().join("x"), 0o644).unwrap_err();
    assert!(matches!(error, GuestError::Interrupted));
}

proptest! {
    #[test]
    fn damaged_streams_fail_or_end(
        which in 0..4_usize,
        bytes: Vec<u8>,
        cut: prop::sample::Index,
        at: prop::sample::Index,
        value: u8,
    ) {
        let mut stream = packed(&bytes, ALL[which]);
        let at = at.index(stream.len());
        stream[at] = value;
        let cut = cut.index(stream.len());
        for stream in [&stream[..], &stream[..cut]] {
            if let Ok(read) = unpacked(stream, 1 << 16) {
                prop_assert!(read.len() <= 1 << 16);
            }
        }
    }

    #[test]
    fn any_bytes_after_a_magic_number_fail_or_end(which in 0..4_usize, bytes: Vec<u8>) {
        let stream = packed(b"", ALL[which]);
        let stream = [&stream[..stream.len().min(Compression::MAGIC)], &bytes].concat();
        let _ = unpacked(&stream, 1 << 16).map(|read| assert!(read.len() <= 1 << 16));
    }
}
