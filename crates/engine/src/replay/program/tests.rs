use std::{fs::File, os::fd::AsFd};

use proptest::prelude::*;

use super::{
    names::{Name, ROOT},
    *,
};

/// Two files, one after the other in the same slot, and a third file open at the same time.
fn builder() -> Builder {
    let mut builder = Builder::new();
    let mut open = |name: &[u8], line| {
        let slot = builder.take_slot().unwrap();
        let name = builder.name(name).unwrap();
        builder.push(
            Op { slot, name, size: 2, ..Op::new(ReplayOp::NTCreateX, Expected::Success) },
            line,
        );
        (slot, name)
    };
    let (a, first) = open(b"/clients/client1/a", 2);
    let (b, _) = open(b"clients//client1/./b/", 3);
    assert_eq!((a, b), (0, 1));
    let write =
        Op { slot: a, name: first, size: 70_000, ..Op::new(ReplayOp::WriteX, Expected::Any) };
    builder.push(write.at(Some(1_500_000)), 4);
    builder.give_slot(a);
    builder.push(Op { slot: a, name: first, ..Op::new(ReplayOp::Close, Expected::Failure) }, 6);
    builder
}

#[test]
fn an_attached_program_equals_the_collected_one() {
    let made = builder();
    let ops = made.ops().to_vec();
    let mut facts = Environment::default();
    facts.set("loadfile.label", "test");
    let program = made.finish(7, facts).unwrap();
    let adopted = Program::attach(program.file().try_clone_to_owned().unwrap()).unwrap();
    for program in [&program, &adopted] {
        assert_eq!(program.ops(), ops);
        assert_eq!((0..4).map(|op| program.line(op)).collect::<Vec<_>>(), [2, 3, 4, 6]);
        assert_eq!((program.slots(), program.largest()), (2, 70_000));
        assert!(program.timestamped());
        assert_eq!(program.ops()[2].due(), Some(1_500_000));
        assert_eq!(program.ops()[1].due(), None);
        let name = program.names().get(program.ops()[0].name);
        assert_eq!(name.path(12).to_bytes(), b"clients/client12/a");
        let directory = program.names().get(name.parent);
        assert_eq!(directory.path(0).to_bytes(), b"clients/client0");
    }
    let facts = program.facts();
    assert_eq!(facts.get("loadfile.mix"), Some("NTCreateX 50.00 %, Close 25.00 %, WriteX 25.00 %"));
    assert_eq!(
        (facts.get("loadfile.operations"), facts.get("loadfile.lines")),
        (Some("4"), Some("7"))
    );
    assert!(adopted.facts().0.is_empty());
}

#[test]
fn types_and_expected_results_are_preserved() {
    for kind in ReplayOp::ALL {
        for expected in [Expected::Success, Expected::Failure, Expected::Any] {
            let op = Op::new(kind, expected);
            assert_eq!((op.kind(), op.expected()), (kind, expected));
        }
    }
    assert!(Expected::Success.allows(true) && !Expected::Success.allows(false));
    assert!(Expected::Failure.allows(false) && !Expected::Failure.allows(true));
    assert!(Expected::Any.allows(true) && Expected::Any.allows(false));
}

#[test]
fn a_program_is_immutable() {
    let program = builder().finish(4, Environment::default()).unwrap();
    let file = program.file();
    assert_eq!(rustix::io::write(file, b"x"), Err(Errno::PERM));
    assert_eq!(rustix::fs::ftruncate(file, 0), Err(Errno::PERM));
}

#[test]
fn invalid_programs_are_not_attached() {
    let errno = |file: &File| {
        let fault = Program::attach(file.as_fd().try_clone_to_owned().unwrap()).unwrap_err();
        let Fault::Memory { what: Memory::Program, errno, .. } = fault else { panic!("{fault:?}") };
        errno
    };
    // A file on a disk has no seals, one in memory may lack them.
    assert_eq!(errno(&tempfile::tempfile_in("/var/tmp").unwrap()), libc::EINVAL);
    let flags = rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING;
    for content in [&b""[..], b"short", &[7; 4096]] {
        let file = File::from(rustix::fs::memfd_create("test", flags).unwrap());
        if !content.is_empty() {
            rustix::io::write(&file, content).unwrap();
        }
        assert_eq!(errno(&file), libc::EPERM);
        rustix::fs::fcntl_add_seals(&file, SEALS).unwrap();
        assert_eq!(errno(&file), libc::EINVAL);
    }
    let mut header = Header { magic: MAGIC, ops: u64::MAX / 32, ..Header::default() };
    for _ in 0..2 {
        let file = File::from(rustix::fs::memfd_create("test", flags).unwrap());
        rustix::io::write(&file, bytes_of(&[header])).unwrap();
        rustix::fs::fcntl_add_seals(&file, SEALS).unwrap();
        assert_eq!(errno(&file), libc::EINVAL, "the counts do not match the length");
        header.ops = 1;
    }
}

#[test]
fn names_that_lead_out_or_are_too_long_are_rejected() {
    let problem = |name: &[u8]| Builder::new().name(name).unwrap_err();
    assert_eq!(problem(b"//server/share"), NameProblem::Absolute);
    for name in [&b".."[..], b"/..", b"a/../b", b"a/.."] {
        assert_eq!(problem(name), NameProblem::Escapes);
    }
    assert_eq!(problem(b"a\0b"), NameProblem::Nul);
    assert_eq!(problem(&[b'x'; 256]), NameProblem::Long);
    assert_eq!(problem(&b"0123456/".repeat(513)), NameProblem::Long);
    // With the number of a client, a name may become longer.
    let near = [&[b'x'; 240][..], b"client1"].concat();
    assert_eq!(problem(&near), NameProblem::Long);
    for name in [&b"..."[..], b"a..b", b"/a/./b//c/", &[b'x'; 255], &near[1..]] {
        Builder::new().name(name).unwrap();
    }
}

#[test]
fn the_root_has_many_spellings_and_each_client_separate_paths() {
    let mut builder = Builder::new();
    for name in [&b""[..], b"/", b".", b"/./"] {
        assert_eq!(builder.name(name), Ok(ROOT));
    }
    let name = builder.name(b"/client1/client12/myclient1s").unwrap();
    let program = builder.finish(0, Environment::default()).unwrap();
    let names = program.names();
    assert_eq!(names.get(ROOT), Name { template: b".", parent: ROOT });
    assert_eq!(names.get(name).path(7).to_bytes(), b"client7/client72/myclient7s");
    assert_eq!(names.get(name).path(1).to_bytes(), b"client1/client12/myclient1s");
    assert_eq!(program.ops(), []);
}

#[test]
fn a_directory_that_is_also_a_name_gets_its_parent() {
    let mut builder = Builder::new();
    let file = builder.name(b"a/b/c").unwrap();
    let directory = builder.parent(file);
    assert_eq!(builder.parent(directory), NO_NAME);
    assert_eq!(builder.name(b"a/b"), Ok(directory));
    let names = builder.names();
    assert_eq!(names.get(builder.parent(directory)).template, b"a");
    assert_eq!(names.len(), 4);
}

proptest! {
    #[test]
    fn paths_stay_below_the_root(parts in prop::collection::vec(
        prop_oneof!["[a-c]{0,3}", "\\.{0,3}", Just("client1".to_owned()), Just("/".to_owned())], 0..6))
    {
        let mut builder = Builder::new();
        let text = parts.join("/");
        let Ok(name) = builder.name(text.as_bytes()) else {
            let second = text.strip_prefix('/').is_some_and(|rest| rest.starts_with('/'));
            prop_assert!(second || text.split('/').any(|part| part == ".."));
            return Ok(());
        };
        prop_assert_eq!(builder.name(text.as_bytes()), Ok(name));
        prop_assert!(builder.names().get(name).parent != NO_NAME);
        let program = builder.finish(1, Environment::default()).unwrap();
        for (index, name) in (0..).zip(program.names().iter()) {
            let path = String::from_utf8(name.path(3).into_bytes()).unwrap();
            if name.parent == NO_NAME {
                continue;
            }
            prop_assert!(index == ROOT || index != name.parent);
            let parent = program.names().get(name.parent).path(3).into_string().unwrap();
            match path.rsplit_once('/') {
                Some((directory, _)) => prop_assert_eq!(directory, parent),
                None => prop_assert_eq!(name.parent, ROOT),
            }
            prop_assert!(index == ROOT || path.split('/').all(|p| !matches!(p, "" | "." | "..")));
        }
    }

    #[test]
    fn slots_are_the_smallest_that_are_free(steps in prop::collection::vec(any::<(bool, u8)>(), 0..200)) {
        let mut builder = Builder::new();
        let mut taken: Vec<u16> = Vec::new();
        for (take, which) in steps {
            if take || taken.is_empty() {
                let smallest = (0..).find(|slot| !taken.contains(slot)).unwrap();
                prop_assert_eq!(builder.take_slot(), Some(smallest));
                taken.push(smallest);
            } else {
                builder.give_slot(taken.swap_remove(usize::from(which) % taken.len()));
            }
        }
    }
}
