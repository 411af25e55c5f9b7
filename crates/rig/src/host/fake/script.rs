//! Methods by which a test scripts the results of a simulated host and reads the list of
//! operations.

use std::path::Path;

use model::{Bytes, Nanos};

use super::{FakeHost, Usage};

impl FakeHost {
    /// Makes all further reads of a file fail with this error number.
    pub fn fail_read(&self, path: &Path, error: i32) {
        self.lock().refusals.fail_read(self.at(path), error);
    }

    /// Makes reads of a file fail with this error number after the next write of the file.
    pub fn fail_read_after_write(&self, path: &Path, error: i32) {
        self.lock().refusals.fail_read_after_write(self.at(path), error);
    }

    /// Makes the next `times` writes of this text to a file fail with this error number.
    pub fn fail_write(&self, path: &Path, text: &str, error: i32, times: u32) {
        self.lock().refusals.fail_write(self.at(path), text, error, times);
    }

    /// Sets the CPU time of a process; `None` removes the process.
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

    /// Adds a file that contains the current time. After the time `until`, the content does not
    /// change anymore. This is the `schedstat` file of a thread that uses CPU time until then.
    #[must_use]
    pub fn working(self, path: &str, until: Nanos) -> Self {
        self.lock().working.insert(path.into(), until);
        self
    }

    /// Takes the list of the operations that would have changed a machine, in order. The list is
    /// empty afterwards.
    pub fn done(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().done)
    }

    /// Takes the list of the standard inputs of programs. The list is empty afterwards.
    pub fn inputs(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().inputs)
    }
}
