//! Results of a simulated host that a test sets while it runs, and the list of operations.

use std::path::Path;

use model::{Bytes, Nanos};

use super::{FakeHost, Usage};

impl FakeHost {
    /// Makes reads of this file fail from now on.
    pub fn fail_read(&self, path: &Path, error: i32) {
        self.lock().refusals.fail_read(self.at(path), error);
    }

    /// Makes reads of this file fail after it was written.
    pub fn fail_read_after_write(&self, path: &Path, error: i32) {
        self.lock().refusals.fail_read_after_write(self.at(path), error);
    }

    /// Makes the next `times` writes of this text to the file fail.
    pub fn fail_write(&self, path: &Path, text: &str, error: i32, times: u32) {
        self.lock().refusals.fail_write(self.at(path), text, error, times);
    }

    /// Sets the CPU time of a process; `None` ends it.
    pub fn set_process_time(&self, process: u32, time: Option<Nanos>) {
        let times = &mut self.lock().times;
        match time {
            Some(time) => times.insert(process, time),
            None => times.remove(&process),
        };
    }

    /// Sets the resource usage of this process.
    pub fn set_usage(&self, usage: Usage) {
        self.lock().usage = usage;
    }

    /// Makes the next `times` unmounts of this path fail with `EBUSY`.
    pub fn keep_busy(&self, path: &Path, times: u32) {
        self.lock().busy.insert(path.to_owned(), times);
    }

    /// Limits the space for files.
    #[must_use]
    pub fn with_space(self, space: Bytes) -> Self {
        self.lock().space = Some(space);
        self
    }

    /// Adds a file that contains the current time, like the CPU time of a thread that works until
    /// then.
    #[must_use]
    pub fn working(self, path: &str, until: Nanos) -> Self {
        self.lock().working.insert(path.into(), until);
        self
    }

    /// Operations so far that would have changed a machine, in order; empties the list.
    pub fn done(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().done)
    }

    /// Standard input of the programs so far; empties the list.
    pub fn inputs(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().inputs)
    }
}
