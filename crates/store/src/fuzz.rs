//! Fuzz target of run files.

use std::{fs, path::PathBuf, process, thread};

use model::{Nanos, RunRecord};

use crate::Store;

/// Reads a run file, passes the run to `shown`, and stores another trial if the run can be resumed.
pub fn run_file(bytes: &[u8], shown: impl FnOnce(&mut RunRecord)) {
    // In memory, because SQLite reads files only.
    let (process, thread) = (process::id(), thread::current().id());
    let directory = PathBuf::from(format!("/dev/shm/fslab-fuzz-{process}-{thread:?}"));
    let file = directory.join("run.fslab");
    let made = fs::create_dir_all(&directory).and_then(|()| fs::write(&file, bytes));
    if made.is_err() {
        return;
    }
    if let Ok(mut record) = crate::read(&file) {
        shown(&mut record);
    }
    if let Ok((mut run, record)) = Store::resume(&file) {
        if let Some(mut trial) = record.trials.last().cloned() {
            trial.repetition = trial.repetition.wrapping_add(1);
            let _stored = run.trial(&trial, None);
        }
        let _finished = run.finish(Nanos(1));
    }
    let _gone = fs::remove_dir_all(&directory);
}
