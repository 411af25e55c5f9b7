//! Start of traced processes.

use std::{
    ffi::{CStr, CString},
    io, ptr,
    time::Instant,
};

use super::{Change, OPTIONS, Resume, SEIZE, Stop, ptrace, resume, wait};
use crate::{checked, usage};

/// Starts a program as a traced process with this filter. The program must be a path. The process
/// is stopped before its first instruction, until [`resume`] is called.
///
/// # Errors
/// Errors of fork(2), ptrace(2) (`EPERM` if the system does not allow tracing, or if this process
/// is traced by a tracer that refuses it), seccomp(2), and execve(2).
pub fn spawn(program: &CStr, words: &[CString], filter: &[libc::sock_filter]) -> io::Result<i32> {
    let mut argv: Vec<*const libc::c_char> = words.iter().map(|word| word.as_ptr()).collect();
    argv.push(ptr::null());
    let (child, failed) = start(filter, &|| {
        // SAFETY: the pointers are to live memory of this function.
        unsafe { libc::execv(program.as_ptr(), argv.as_ptr()) };
    })?;
    let started = until_executed(child, failed);
    // SAFETY: `start` opened it, and it is not used otherwise.
    unsafe { libc::close(failed) };
    started.map(|()| child)
}

/// Costs of tracing a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopCost {
    /// CPU time that the stops of a call add to its thread between the end of the previous call and
    /// the beginning of this one, in nanoseconds.
    pub cpu: u64,
    /// CPU time of a thread between beginning and end of a call that does nothing, in nanoseconds.
    pub call: u64,
    /// Time between beginning and end of a call that does nothing, in nanoseconds.
    pub elapsed: u64,
}

/// Costs of tracing a call: medians of a process that makes 2000 calls with this number and an
/// invalid argument. `entered` is called with the thread at the beginning of each call.
///
/// # Errors
/// As [`spawn`].
pub fn stop_cost(
    filter: &[libc::sock_filter],
    number: i64,
    mut entered: impl FnMut(i32),
) -> io::Result<StopCost> {
    const CALLS: usize = 2000;
    let (child, failed) = start(filter, &|| {
        for _ in 0..CALLS {
            // SAFETY: the arguments are numbers; no call accepts this descriptor.
            unsafe { libc::syscall(number, -1, 0, 0, 0) };
        }
        // SAFETY: it has no precondition.
        unsafe { libc::_exit(0) };
    })?;
    // SAFETY: `start` opened it, and it is not used otherwise.
    unsafe { libc::close(failed) };
    let process = child.cast_unsigned();
    let [mut costs, mut calls, mut lengths] = [(); 3].map(|()| Vec::with_capacity(CALLS));
    let (mut begun, mut before, mut ended) = (Instant::now(), 0, None);
    loop {
        match wait()? {
            Some((tid, Change::Stopped(Stop::Entry))) => {
                before = usage::process_time(process)?;
                costs.extend(ended.map(|ended| before.saturating_sub(ended)));
                entered(tid);
                begun = Instant::now();
                resume(tid, Resume::UntilExit, 0)?;
            }
            Some((tid, Change::Stopped(Stop::Exit))) => {
                lengths.push(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
                let time = usage::process_time(process)?;
                calls.push(time.saturating_sub(before));
                ended = Some(time);
                resume(tid, Resume::Run, 0)?;
            }
            Some((tid, Change::Stopped(Stop::Signal(signal)))) => {
                resume(tid, Resume::Run, signal)?;
            }
            Some((tid, Change::Stopped(_))) => resume(tid, Resume::Run, 0)?,
            Some((tid, Change::Exited(_) | Change::Killed(_))) if tid == child => break,
            Some((_, Change::Asked(_))) => return Err(io::ErrorKind::Interrupted.into()),
            Some(_) => {}
            None => break,
        }
    }
    let none = || io::Error::other("no call stopped");
    Ok(StopCost {
        cpu: median(costs).ok_or_else(none)?,
        call: median(calls).ok_or_else(none)?,
        elapsed: median(lengths).ok_or_else(none)?,
    })
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// Starts a traced process that installs the filter and then calls a function, which makes system
/// calls only. Returns the process, and a descriptor from which an error number can be read if the
/// function returns.
fn start(filter: &[libc::sock_filter], then: &dyn Fn()) -> io::Result<(i32, i32)> {
    let length = libc::c_ushort::try_from(filter.len()).map_err(io::Error::other)?;
    let rules = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut() };
    let (mut start, mut failed) = ([0; 2], [0; 2]);
    // SAFETY: the pipes are arrays of two descriptors.
    unsafe {
        checked(libc::pipe2(start.as_mut_ptr(), libc::O_CLOEXEC).into())?;
        checked(libc::pipe2(failed.as_mut_ptr(), libc::O_CLOEXEC).into())?;
    }
    // SAFETY: the child makes system calls only, which are async-signal-safe, on memory that was
    // prepared before, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above; the pointers are to live memory of this function.
        unsafe {
            let mut byte = 0u8;
            libc::close(start[1]);
            libc::read(start[0], (&raw mut byte).cast(), 1);
            const FILTER: usize = 1; // SECCOMP_SET_MODE_FILTER
            if byte == 1
                && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1usize, 0usize, 0usize, 0usize) == 0
                && libc::syscall(libc::SYS_seccomp, FILTER, 0usize, &raw const rules) == 0
            {
                then();
            }
            let errno = *libc::__errno_location();
            libc::write(failed[1], (&raw const errno).cast(), size_of_val(&errno));
            libc::_exit(127);
        }
    }
    // SAFETY: the descriptors were created above and are closed once.
    let closed = |pipe: i32| unsafe { libc::close(pipe) };
    closed(start[0]);
    closed(failed[1]);
    let seized = match child {
        -1 => Err(io::Error::last_os_error()),
        _ => ptrace(SEIZE, child, 0, OPTIONS),
    };
    let byte = u8::from(seized.is_ok());
    // SAFETY: one byte of live memory.
    unsafe { libc::write(start[1], (&raw const byte).cast(), 1) };
    closed(start[1]);
    if let Err(error) = seized {
        closed(failed[0]);
        return Err(error);
    }
    Ok((child, failed[0]))
}

/// Resumes the child until it executes its program. It is stopped then.
fn until_executed(child: i32, failed: i32) -> io::Result<()> {
    loop {
        match wait()? {
            Some((tid, Change::Stopped(Stop::Executed(_)))) if tid == child => return Ok(()),
            Some((tid, Change::Stopped(Stop::Signal(signal)))) => {
                resume(tid, Resume::Run, signal)?;
            }
            Some((tid, Change::Stopped(_))) => resume(tid, Resume::Run, 0)?,
            Some((tid, Change::Exited(_) | Change::Killed(_))) if tid == child => break,
            // The program is killed when this process ends.
            Some((_, Change::Asked(_))) => return Err(io::ErrorKind::Interrupted.into()),
            Some(_) => {}
            None => break,
        }
    }
    let mut errno: i32 = 0;
    let size = size_of_val(&errno);
    // SAFETY: the integer is live memory of this size.
    let got = unsafe { libc::read(failed, (&raw mut errno).cast(), size) };
    match usize::try_from(got) {
        Ok(bytes) if bytes == size => Err(io::Error::from_raw_os_error(errno)),
        _ => Err(io::Error::other("the program was killed before it started")),
    }
}
