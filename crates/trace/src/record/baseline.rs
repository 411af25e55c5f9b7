//! Runs of a program without the recorder. The recorder makes a program slower between its calls,
//! too: its caches are cold after a stop. The CPU time of these runs corrects the pauses of a
//! replay.

use std::{
    io,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use sys::usage::{UsageScope, resources};

/// Medians of the runs, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Baseline {
    pub(super) elapsed: u64,
    /// CPU time in user mode, of the program and of all programs that it waited for.
    pub(super) user: u64,
    /// CPU time in kernel mode.
    pub(super) system: u64,
}

/// Runs a program a number of times; `None` for no run.
///
/// # Errors
/// If the program cannot be started.
pub(super) fn measure(
    program: &Path,
    words: &[std::ffi::OsString],
    runs: u32,
) -> io::Result<Option<Baseline>> {
    let mut all = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..runs {
        let (started, before) = (Instant::now(), resources(UsageScope::EndedChildren)?);
        let mut command = Command::new(program);
        std::os::unix::process::CommandExt::arg0(&mut command, &words[0]);
        command.args(&words[1..]).stdin(Stdio::inherit()).status()?;
        let after = resources(UsageScope::EndedChildren)?;
        let elapsed = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let user = after.user.saturating_sub(before.user);
        let system = after.time.saturating_sub(before.time).saturating_sub(user);
        for (values, value) in all.iter_mut().zip([elapsed, user, system]) {
            values.push(value);
        }
    }
    let median = |values: &mut Vec<u64>| {
        values.sort_unstable();
        values.get(values.len() / 2).copied()
    };
    let [elapsed, user, system] = all.each_mut().map(median);
    Ok(elapsed.zip(user).zip(system).map(|((elapsed, user), system)| Baseline {
        elapsed,
        user,
        system,
    }))
}
