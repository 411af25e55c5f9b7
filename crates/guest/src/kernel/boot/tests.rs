use std::fs;

use expect_test::expect;
use proptest::prelude::*;

use super::{
    super::testing::{By, RELEASE, boot_image, source, vmlinux},
    *,
};

fn extracted(image: &[u8]) -> Result<(String, Vec<u8>), GuestError> {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let (path, to) = (directory.path().join("vmlinuz"), directory.path().join("vmlinux"));
    fs::write(&path, image).unwrap();
    let file = File::open(&path).unwrap();
    let source = source(Path::new("vmlinuz"));
    let header = Header::read(source, &file)?;
    header.extract(source, &file, &to)?;
    Ok((header.release, fs::read(to).unwrap()))
}

#[test]
fn the_kernel_round_trips() {
    let kernel = vmlinux(RELEASE, true);
    for by in [By::Gzip, By::Xz, By::Zstd, By::Lz4] {
        let image = boot_image(RELEASE, &kernel, by);
        // A signature, or the padding of a certificate table, may follow.
        for image in [image.clone(), [&image[..], &[0; 1472]].concat()] {
            assert_eq!(extracted(&image).unwrap(), (RELEASE.to_owned(), kernel.clone()), "{by:?}");
        }
    }
}

#[test]
fn inconsistent_images_are_rejected() {
    let image = boot_image(RELEASE, &vmlinux(RELEASE, true), By::Gzip);
    let with = |at: usize, bytes: &[u8]| {
        let mut image = image.clone();
        image[at..at + bytes.len()].copy_from_slice(bytes);
        image
    };
    let end = image.len();
    let mut errors = String::new();
    for image in [
        image[..0x300].to_vec(),
        with(0x206, &0x0207_u16.to_le_bytes()),
        with(0x202, b"hdrs"),
        with(0x300, b"../../etc"),
        with(0x20e, &[0xff, 0xff]),
        with(0x248, &u32::MAX.to_le_bytes()),
        with(0x24c, &u32::MAX.to_le_bytes()),
        with(0x24c, &[0; 4]),
        with(0x1f1, &[0]),
        with(end - 4, &u32::MAX.to_le_bytes()),
        with(1536, &[0, 0]),
    ] {
        errors += &extracted(&image).unwrap_err().to_string();
        errors.push('\n');
    }
    expect![[r#"
        vmlinuz: is truncated; copy it again
        vmlinuz: is not a boot image of Linux 2.6.26 or later
        vmlinuz: is not a boot image of Linux 2.6.26 or later
        vmlinuz: is a boot image without a release
        vmlinuz: is a boot image without a release
        vmlinuz: is truncated: it has 1741 bytes, but its kernel ends at 4294968524; copy it again
        vmlinuz: is truncated: it has 1741 bytes, but its kernel ends at 4294968831; copy it again
        vmlinuz: contains a kernel of 0 bytes
        vmlinuz: is truncated: it has 1741 bytes, but its kernel ends at 3277; copy it again
        vmlinuz: contains a kernel of 4294967295 bytes
        vmlinuz: its kernel has 201 instead of 360 bytes; copy it again
    "#]]
    .assert_eq(&errors);
}

#[test]
fn a_wrong_length_is_detected() {
    let kernel = vmlinux(RELEASE, true);
    for by in [By::Xz, By::Zstd, By::Lz4] {
        for wrong in [kernel.len() - 1, kernel.len() + 1] {
            let mut image = boot_image(RELEASE, &kernel, by);
            let end = image.len();
            image[end - 4..].copy_from_slice(&u32::try_from(wrong).unwrap().to_le_bytes());
            assert!(extracted(&image).is_err(), "{by:?} {wrong}");
        }
    }
}

proptest! {
    #[test]
    fn any_damage_is_handled(
        gzip: bool,
        at in 0x1f0..0x800_usize,
        values in prop::collection::vec(any::<u8>(), 1..8),
        cut: prop::sample::Index,
    ) {
        let kernel = vmlinux(RELEASE, true);
        let mut image = boot_image(RELEASE, &kernel, if gzip { By::Gzip } else { By::Xz });
        for (offset, value) in values.into_iter().enumerate() {
            if let Some(byte) = image.get_mut(at + offset) {
                *byte = value;
            }
        }
        if let Ok((release, _)) = extracted(&image) {
            prop_assert!(elf::is_release(&release));
        }
        prop_assert!(extracted(&image[..cut.index(0x400)]).is_err());
    }
}
