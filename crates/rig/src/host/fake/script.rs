//! Methods by which a test scripts the results of a simulated host and reads the list of
//! operations.

use std::path::Path;

use model::{Bytes, Nanos};

use super::{FakeHost, State, Usage};
use crate::mount::MountEntry;

impl FakeHost {
    /// Makes all further reads of a file fail with this error number.
    pub fn fail_read(&self, path: &Path, error: i32) {
        self.lock().refusals.fail_read(self.at(path), error);
    }

    /// Makes reads of a file fail with this error number after the next write of the file.
    pub fn fail_read_after_write(&self, path: &Path, error: i32) {
        self.lock().refusals.fail_read_after_write(self.at(path), error);
    }

    /// Makes the next `times` writes of this text to a file, or with an empty text removals of a
    /// loop device, fail with this error number.
    pub fn fail_write(&self, path: &Path, text: &str, error: i32, times: u32) {
        self.lock().refusals.fail_write(self.at(path), text, error, times);
    }

    /// Adds a program that mounts a filesystem of this type on its last argument, or unmounts its
    /// last argument.
    #[must_use]
    pub fn mounter(self, name: &str, fstype: Option<&str>) -> Self {
        self.lock().mounters.insert(name.to_owned(), fstype.map(str::to_owned));
        self.program(name, [])
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

    /// Makes the next `times` unmounts or removals of this path fail with `EBUSY`.
    pub fn keep_busy(&self, path: &Path, times: u32) {
        self.lock().busy.insert(path.to_owned(), times);
    }

    /// Freezes the filesystem mounted at this path.
    pub fn freeze(&self, path: &Path) {
        self.lock().frozen.insert(path.to_owned());
    }

    /// Thaws a filesystem if it is frozen.
    pub(super) fn note_thaw(&self, path: &Path) {
        let mut state = self.lock();
        if state.frozen.remove(path) {
            state.done.push(format!("thaw {}", path.display()));
        }
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

impl State {
    /// Changes the mount table as the program would.
    pub(super) fn run_mounter(&mut self, argv: &[String]) {
        let (Some(name), Some(target)) = (argv.first(), argv.last()) else { return };
        match self.mounters.get(name).cloned() {
            None => {}
            Some(None) => {
                let place = self.mounts.iter().rposition(|mount| mount.target == Path::new(target));
                place.map(|place| self.mounts.remove(place));
            }
            Some(Some(fstype)) => self.mounts.push(MountEntry {
                id: 1,
                device: format!("0:{}", 40 + self.mounts.len()),
                root: "/".into(),
                target: target.into(),
                options: "rw".into(),
                fstype,
                source: argv.get(1).cloned().unwrap_or_default(),
                super_options: "rw".into(),
            }),
        }
    }
}
