//! The reader of run files, fed with anything: it refuses or accepts, and never panics; and what it
//! accepts, a report can be made of. Start from a sound run: a corpus of nothing finds the header
//! late.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // One file for each process, in memory: SQLite reads files only.
    let path = format!("/dev/shm/fslab-fuzz-{}.fslab", std::process::id());
    if std::fs::write(&path, bytes).is_ok()
        && let Ok(mut record) = store::read(path.as_ref())
    {
        report::plain(&mut record);
        let _ = report::html(&report::View::new(&record));
    }
});
