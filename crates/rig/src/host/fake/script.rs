//! Answers of a fake machine that a test sets while it runs, and the list of what was done.

use std::path::Path;

use model::{Bytes, Nanos};

use super::{FakeHost, Usage};

impl FakeHost {
    /// From now on the file answers this error number to who would read it.
    pub fn refuse(&self, path: &Path, error: i32) {
        self.lock().refusals.refuse(self.at(path), error);
    }

    /// The same once the file has been written.
    pub fn refuse_once_written(&self, path: &Path, error: i32) {
        self.lock().refusals.refuse_once_written(self.at(path), error);
    }

    /// The next `times` writes of this text to the file answer this error number.
    pub fn decline(&self, path: &Path, text: &str, error: i32, times: u32) {
        self.lock().refusals.decline(self.at(path), text, error, times);
    }

    /// What a process has used by now; `None` ends it.
    pub fn set_process_time(&self, process: u32, time: Option<Nanos>) {
        let times = &mut self.lock().times;
        match time {
            Some(time) => times.insert(process, time),
            None => times.remove(&process),
        };
    }

    /// What this process has used by now.
    pub fn set_usage(&self, usage: Usage) {
        self.lock().usage = usage;
    }

    /// The next `times` unmounts of this path answer `EBUSY`.
    pub fn keep_busy(&self, path: &Path, times: u32) {
        self.lock().busy.insert(path.to_owned(), times);
    }

    /// Files do not fit any more once they would take more than this.
    #[must_use]
    pub fn room(self, room: Bytes) -> Self {
        self.lock().room = Some(room);
        self
    }

    /// A file that reads as the clock does, as CPU time of somebody who works until then.
    #[must_use]
    pub fn working(self, path: &str, until: Nanos) -> Self {
        self.lock().working.insert(path.into(), until);
        self
    }

    /// Everything done so far that would have changed a machine, in order, and empties the list.
    pub fn done(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().done)
    }

    /// What programs were told on their standard input so far, and empties the list.
    pub fn told(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().told)
    }
}
