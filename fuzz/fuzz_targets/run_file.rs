//! Parser of run files: rejects or accepts any input without a panic, and a report can be generated
//! from accepted input. Start from a valid run: an empty corpus rarely produces a valid header.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // One file per process, in memory, because SQLite reads files only.
    let path = format!("/dev/shm/fslab-fuzz-{}.fslab", std::process::id());
    if std::fs::write(&path, bytes).is_ok()
        && let Ok(mut record) = store::read(path.as_ref())
    {
        report::plain(&mut record);
        let _ = report::html(&report::View::new(&record));
    }
});
