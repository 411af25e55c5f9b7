use std::io::Write as _;

use proptest::prelude::*;

use super::{
    super::testing::{elf, note, uml, vmlinux},
    *,
};

fn examined(bytes: &[u8]) -> Result<ElfKind, String> {
    let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
    file.write_all(bytes).unwrap();
    examine(&file)
}

fn found_release(mut bytes: &[u8]) -> Option<String> {
    release(&mut bytes).unwrap()
}

#[test]
fn kernels_and_programs_are_distinguished() {
    assert_eq!(examined(&vmlinux("6.1", true)), Ok(ElfKind::Pc { pvh: true }));
    assert_eq!(examined(&vmlinux("6.1", false)), Ok(ElfKind::Pc { pvh: false }));
    assert_eq!(examined(&uml("6.1")), Ok(ElfKind::Uml));
    assert_eq!(examined(&elf(0x40_0000, &[], &[".text", ".init"], "x")), Err(NEITHER.to_owned()));
}

#[test]
fn notes_of_other_owners_are_ignored() {
    let pvh = |notes: &[u8]| examined(&elf(KERNEL_TEXT, notes, &[], ""));
    assert_eq!(pvh(&note(b"Xen\0", 17, b"")), Ok(ElfKind::Pc { pvh: false }));
    assert_eq!(pvh(&note(b"Xenon\0", 18, b"")), Ok(ElfKind::Pc { pvh: false }));
    let odd = [note(b"odd", 1, b"12345"), note(b"Xen\0", 18, b"1234")].concat();
    assert_eq!(pvh(&odd), Ok(ElfKind::Pc { pvh: true }));
    // Contents of 4 GiB.
    let long = [&[4, 0, 0, 0, 255, 255, 255, 255, 1, 0, 0, 0][..], &odd].concat();
    assert_eq!(pvh(&long), Ok(ElfKind::Pc { pvh: false }));
}

#[test]
fn too_long_tables_are_not_read() {
    let with_count = |at: usize, count: u16, offset: usize| {
        let mut bytes = uml("6.1");
        bytes[at..at + 2].copy_from_slice(&count.to_le_bytes());
        bytes[offset..offset + 8].copy_from_slice(&64_u64.to_le_bytes());
        bytes.resize(2 << 20, 0);
        examined(&bytes).unwrap_err()
    };
    let long = "is an ELF file with a table of 4194240 bytes, too long for a kernel";
    assert_eq!(with_count(60, u16::MAX, 40), long, "sections");
    assert!(with_count(56, u16::MAX, 32).contains("a table of 3669960 bytes"), "segments");
    // Overlapping note segments of 1 MiB each.
    let count = u16::try_from(usize::try_from(TABLE_MAX).unwrap() / PROGRAM).unwrap();
    let mut bytes = vmlinux("6.1", false);
    bytes[56..58].copy_from_slice(&count.to_le_bytes());
    let load = bytes[64..64 + PROGRAM].to_vec();
    bytes.resize(64 + usize::from(count) * PROGRAM, 0);
    bytes[64..64 + PROGRAM].copy_from_slice(&load);
    for entry in bytes[64 + PROGRAM..].chunks_exact_mut(PROGRAM) {
        entry[..4].copy_from_slice(&PT_NOTE.to_le_bytes());
        entry[32..40].copy_from_slice(&TABLE_MAX.to_le_bytes());
    }
    bytes.resize(2 << 20, 0);
    assert_eq!(examined(&bytes).unwrap_err(), "is an ELF file with too many notes for a kernel");
}

#[test]
fn the_release_begins_with_a_number() {
    assert_eq!(found_release(&vmlinux("6.1.0-50-amd64", true)), Some("6.1.0-50-amd64".to_owned()));
    assert_eq!(
        found_release(b"Linux version 6.12.117+deb12-amd64"),
        Some("6.12.117+deb12-amd64".to_owned())
    );
    assert_eq!(found_release(b"Linux version %s (%s)"), None);
    assert_eq!(found_release(b"Linux version "), None);
    assert_eq!(found_release(format!("Linux version 6{}", "1".repeat(64)).as_bytes()), None);
}

#[test]
fn a_release_is_found_across_windows() {
    for before in [(1 << 20) - 30, (1 << 20) - 14, (1 << 20) - 1, 1 << 20, 3 << 20] {
        let mut bytes = vec![b' '; before];
        bytes.extend(b"Linux version 6.1.0-50-amd64 (x)");
        bytes.extend([0; 100]);
        assert_eq!(found_release(&bytes), Some("6.1.0-50-amd64".to_owned()), "{before}");
    }
}

proptest! {
    #[test]
    fn any_damage_is_handled(
        kernel: bool,
        at in 0..64_usize,
        values in prop::collection::vec(any::<u8>(), 1..8),
        cut: prop::sample::Index,
    ) {
        let mut bytes = if kernel { vmlinux("6.1", true) } else { uml("6.1") };
        for (offset, value) in values.into_iter().enumerate() {
            bytes[at + offset] = value;
        }
        let _ = examined(&bytes);
        prop_assert!(examined(&bytes[..cut.index(64)]).is_err());
        let _ = examined(&bytes[..cut.index(bytes.len())]);
    }

    #[test]
    fn parsing_of_any_notes_terminates(notes: Vec<u8>) {
        let _ = has_note(&notes, PVH_NOTE);
    }

    #[test]
    fn a_release_is_a_valid_directory_name(text: String) {
        if is_release(&text) {
            let path = std::path::Path::new(&text);
            let parts: Vec<_> = path.components().collect();
            prop_assert!(matches!(parts[..], [std::path::Component::Normal(_)]));
        }
    }
}
