//! Calls on metadata.

use model::phase::{NameCall, SpaceCall};

use super::*;

#[test]
fn calls_on_metadata_are_engines_of_streams() {
    for (name, options, kind) in [
        ("filecreate", "create_on_open=1", IoEngineKind::Name(NameCall::Create)),
        ("filestat", "", IoEngineKind::Name(NameCall::Stat)),
        ("filedelete", "", IoEngineKind::Name(NameCall::Unlink)),
        ("dircreate", "", IoEngineKind::Name(NameCall::CreateDirectory)),
        ("dirstat", "", IoEngineKind::Name(NameCall::Stat)),
        ("dirdelete", "", IoEngineKind::Name(NameCall::RemoveDirectory)),
        ("falloc", "rw=write", IoEngineKind::Space(SpaceCall::Allocate)),
        ("ftruncate", "rw=write", IoEngineKind::Space(SpaceCall::Truncate)),
    ] {
        let text = format!("[a]\nioengine={name}\nfilesize=4k\nnrfiles=3\n{options}\n");
        assert_eq!(stream(&text).io_engine, kind);
        let phases = work(&text);
        let layout = phases.iter().any(|phase| phase.name == "a.layout");
        let needed = matches!(name, "filestat" | "filedelete" | "dirstat" | "dirdelete");
        assert_eq!(layout, needed, "{name}");
        let job = parsed(&text, &Changes::default()).unwrap();
        let changes = !name.ends_with("stat");
        assert_eq!(job.files().iter().all(|file| file.written), changes, "{name}");
    }
}

#[test]
fn contradictions_of_calls_on_metadata_are_rejected() {
    for (options, reason) in [
        ("ioengine=filestat\nfilesize=8k", "makes one call per file"),
        ("ioengine=filestat\nsize=12k\nnrfiles=1", "makes one call per file"),
        ("ioengine=filecreate\nfilesize=4k\nrw=write", "count as reads"),
        ("ioengine=filecreate\nfilesize=4k\nloops=2", "created or deleted once"),
        ("ioengine=filedelete\nfilesize=4k\ntime_based\nruntime=1", "created or deleted once"),
        ("ioengine=filedelete\nfilesize=4k\nunlink=1", "has not deleted"),
        ("ioengine=filedelete\nfilesize=4k\nnumjobs=2\nfilename=f", "remove filename"),
        ("ioengine=ftruncate\nsize=8k", "only writes"),
        ("ioengine=falloc\nsize=8k\nrw=write\nverify=md5", "transfers no data"),
        ("ioengine=falloc\nsize=8k\nrw=write\nend_fsync=1", "fio makes no syncs"),
        ("ioengine=ftruncate\nsize=8k\nrw=write\nfsync=2", "fio makes no syncs"),
        ("ioengine=filestat\nfilesize=4k\npre_read=1", "transfers no data"),
        ("create_on_open=1\nsize=4k", "except with ioengine=filecreate"),
        ("ioengine=dircreate\nfilesize=4k\nunlink=1", "has not deleted"),
        ("ioengine=dirstat\nfilesize=4k\nunlink=1", "removes no directories"),
        ("ioengine=e4defrag\nsize=4k", "moves blocks of ext4 files"),
    ] {
        let found = mistakes(&format!("[a]\n{options}\n"));
        assert!(found.contains(reason), "{options}: {found}");
    }
}
