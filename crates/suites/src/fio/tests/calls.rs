//! Calls on metadata.

use model::phase::{NameCall, SpaceCall};

use super::*;

#[test]
fn calls_on_metadata_are_engines_of_streams() {
    for (name, options, kind) in [
        ("filecreate", "create_on_open=1", IoEngineKind::Name(NameCall::Create)),
        ("filestat", "", IoEngineKind::Name(NameCall::Stat)),
        ("filedelete", "", IoEngineKind::Name(NameCall::Unlink)),
        ("falloc", "rw=write", IoEngineKind::Space(SpaceCall::Allocate)),
        ("ftruncate", "rw=write", IoEngineKind::Space(SpaceCall::Truncate)),
    ] {
        let text = format!("[a]\nioengine={name}\nfilesize=4k\nnrfiles=3\n{options}\n");
        assert_eq!(stream(&text).io_engine, kind);
        let phases = work(&text);
        let layout = phases.iter().any(|phase| phase.name == "a.layout");
        assert_eq!(layout, matches!(name, "filestat" | "filedelete"), "{name}");
        let job = parsed(&text, &Changes::default()).unwrap();
        assert_eq!(job.files().iter().all(|file| file.written), name != "filestat", "{name}");
    }
}

#[test]
fn contradictions_of_calls_on_metadata_are_rejected() {
    for (options, reason) in [
        ("ioengine=filestat\nfilesize=8k", "make one call per file"),
        ("ioengine=filestat\nsize=12k\nnrfiles=1", "make one call per file"),
        ("ioengine=filecreate\nfilesize=4k\nrw=write", "count each call as a read"),
        ("ioengine=filecreate\nfilesize=4k\nloops=2", "created or deleted once"),
        ("ioengine=filedelete\nfilesize=4k\ntime_based\nruntime=1", "created or deleted once"),
        ("ioengine=filedelete\nfilesize=4k\nunlink=1", "deleted by the section"),
        ("ioengine=filedelete\nfilesize=4k\nnumjobs=2\nfilename=f", "remove filename"),
        ("ioengine=ftruncate\nsize=8k", "only writes"),
        ("ioengine=falloc\nsize=8k\nrw=write\nverify=md5", "transfers no data"),
        ("ioengine=falloc\nsize=8k\nrw=write\nend_fsync=1", "fio makes no syncs"),
        ("ioengine=ftruncate\nsize=8k\nrw=write\nfsync=2", "fio makes no syncs"),
        ("ioengine=filestat\nfilesize=4k\npre_read=1", "transfers no data"),
        ("create_on_open=1\nsize=4k", "except with ioengine=filecreate"),
        ("ioengine=dircreate\nfilesize=4k", "use suite `metadata`"),
    ] {
        let found = mistakes(&format!("[a]\n{options}\n"));
        assert!(found.contains(reason), "{options}: {found}");
    }
}
