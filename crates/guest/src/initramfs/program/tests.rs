//! Tests with generated ELF files, this test program, scripts, and other files.

use std::process::Command;

use proptest::prelude::*;

use super::*;

/// ELF file with a loader, a dynamic section, and an unmapped section table at the end; all of it
/// mapped at its offset. System V ABI, chapters 4 and 5.
pub(in super::super) fn elf(machine: u16, needed: &[&str], paths: &[(u64, &str)]) -> Vec<u8> {
    let mut strings = vec![0];
    let mut entries: Vec<(u64, u64)> = Vec::new();
    let texts = needed.iter().map(|name| (1, *name)).chain(paths.iter().copied());
    for (tag, text) in texts {
        entries.push((tag, strings.len() as u64));
        strings.extend(text.as_bytes());
        strings.push(0);
    }
    let dynamic_at = 64 + 3 * 56 + 16;
    let strings_at = dynamic_at + 16 * (entries.len() as u64 + 3);
    let end = strings_at + strings.len() as u64;
    entries.extend([(5, strings_at), (10, strings.len() as u64), (0, 0)]);
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0".to_vec();
    bytes.extend(machine.to_le_bytes());
    bytes.extend([1, 0, 0, 0]);
    for value in [0_u64, 64, end] {
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend([0, 0, 0, 0, 64, 0, 56, 0, 3, 0, 64, 0, 1, 0, 0, 0]);
    let dynamic_size = 16 * entries.len() as u64;
    for (kind, at, size) in
        [(1_u32, 0, end), (3, dynamic_at - 16, 16), (2, dynamic_at, dynamic_size)]
    {
        bytes.extend(kind.to_le_bytes());
        bytes.extend(4_u32.to_le_bytes());
        for value in [at, at, at, size, size, 8] {
            bytes.extend(value.to_le_bytes());
        }
    }
    bytes.extend(b"/lib/ld-test.so\0");
    for (tag, value) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend(strings);
    assert_eq!(bytes.len() as u64, end);
    bytes.extend([0; 64]);
    bytes
}

fn linkage_of(bytes: &[u8]) -> Linkage {
    match kind(bytes).unwrap() {
        Kind::Elf(linkage) => linkage,
        Kind::Script(..) => panic!("not an ELF file"),
    }
}

#[test]
fn requirements_of_an_elf_file_are_parsed() {
    let bytes = elf(62, &["libc.so.6", "/x/liby.so"], &[(15, "/old:$ORIGIN/lib"), (15, "")]);
    let linkage = linkage_of(&bytes);
    assert_eq!(linkage.machine, 62);
    assert_eq!(linkage.loader, Some("/lib/ld-test.so".into()));
    assert_eq!(linkage.needed, ["libc.so.6", "/x/liby.so"]);
    assert_eq!(linkage.rpath, ["/old", "$ORIGIN/lib"]);
    let both = linkage_of(&elf(183, &[], &[(15, "/old"), (29, "/new")]));
    assert_eq!((both.rpath, both.runpath), (vec![], vec!["/new".into()]));
}

#[test]
fn only_symbols_are_removed() {
    let bytes = elf(62, &["libc.so.6"], &[]);
    let linkage = linkage_of(&bytes);
    let stripped = without_symbols(bytes.clone(), &linkage);
    assert_eq!(stripped.len(), bytes.len() - 64);
    assert_eq!(linkage_of(&stripped), linkage);
    assert_eq!(without_symbols(stripped.clone(), &linkage), stripped);
}

/// This test program, which is large in a debug build, runs without its symbols.
#[test]
fn a_program_without_its_symbols_runs() {
    let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let stripped = without_symbols(whole.clone(), &linkage_of(&whole));
    assert!(stripped.len() < whole.len());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    std::fs::write(&path, stripped).unwrap();
    // Started through its loader, which does not require execute permission or exclusive access.
    let loader = linkage_of(&whole).loader.unwrap();
    let output = Command::new(loader).arg(&path).args(["--list"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("a_program_without_its_symbols_runs: test"), "{output:?}");
}

#[test]
fn interpreters_of_scripts_are_parsed() {
    let script = |text: &str| kind(text.as_bytes());
    assert_eq!(script("#!/bin/sh\nls"), Ok(Kind::Script("/bin/sh".into(), None)));
    let env = script("#! /usr/bin/env  -S python3 -u \t\n");
    let Ok(Kind::Script(path, Some(argument))) = env else { panic!("{env:?}") };
    assert_eq!(path.to_str(), Some("/usr/bin/env"));
    assert_eq!(of_env(&argument), Some("python3".into()));
    assert_eq!(of_env(&"A=b -i".into()), None);
    for odd in ["#!", "#!\n", "#!sh\n", "", "ls", "\x7fELF", "\x7fELF\x01\x01\x01"] {
        assert!(script(odd).is_err(), "{odd:?}");
    }
}

proptest! {
    #[test]
    fn damaged_programs_fail_or_have_fewer_requirements(
        changes in prop::collection::vec((0..700_usize, any::<u8>()), 0..6),
        cut in 0..800_usize,
    ) {
        let mut bytes = elf(62, &["libc.so.6", "libm.so.6"], &[(29, "/a:/b")]);
        let length = bytes.len();
        for (at, value) in changes {
            bytes[at % length] = value;
        }
        bytes.truncate(cut.max(1));
        if let Ok(Kind::Elf(linkage)) = kind(&bytes) {
            let stripped = without_symbols(bytes.clone(), &linkage);
            prop_assert!(stripped.len() <= bytes.len());
        }
    }

    #[test]
    fn any_bytes_are_a_program_or_an_error(bytes: Vec<u8>, script: bool) {
        let bytes = if script { [b"#!", bytes.as_slice()].concat() } else { bytes };
        let _kind = kind(&bytes);
    }
}
