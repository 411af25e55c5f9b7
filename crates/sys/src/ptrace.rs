//! Tracing of a program and of all programs that it starts (ptrace(2), seccomp(2)).
//!
//! [`spawn`] starts a program with a seccomp filter that stops it at the beginning of chosen system
//! calls only. The thread that called [`spawn`] is the tracer: it must make all other calls of this
//! module. No privileges are required. The traced programs cannot gain privileges
//! (`PR_SET_NO_NEW_PRIVS`), and the kernel kills them if the tracer ends (`PTRACE_O_EXITKILL`).
//!
//! A chosen call stops its thread twice: at its beginning ([`Stop::Entry`]) and, if the thread was
//! resumed by [`Resume::UntilExit`], at its end ([`Stop::Exit`]). Requires Linux 5.3
//! (`PTRACE_GET_SYSCALL_INFO`).

mod start;

use std::{
    io, ptr,
    sync::atomic::{AtomicI32, Ordering::SeqCst},
};

pub use start::{StopCost, spawn, stop_cost};

use crate::checked;

/// Requests and options of ptrace(2) (include/uapi/linux/ptrace.h). The C libraries disagree about
/// their types.
mod request {
    pub(super) const POKE_USER: usize = 6;
    pub(super) const CONT: usize = 7;
    pub(super) const SYSCALL: usize = 24;
    pub(super) const GET_EVENT_MESSAGE: usize = 0x4201;
    pub(super) const SEIZE: usize = 0x4206;
    pub(super) const LISTEN: usize = 0x4208;
    pub(super) const GET_SYSCALL_INFO: usize = 0x420e;
    // TRACESYSGOOD, TRACEFORK, TRACEVFORK, TRACECLONE, TRACEEXEC, TRACESECCOMP, EXITKILL.
    pub(super) const OPTIONS: usize = 1 | 2 | 4 | 8 | 0x10 | 0x80 | 0x10_0000;
}

use request::{OPTIONS, SEIZE};

/// Events of ptrace(2).
mod event {
    pub(super) const FORK: i32 = 1;
    pub(super) const VFORK: i32 = 2;
    pub(super) const CLONE: i32 = 3;
    pub(super) const EXEC: i32 = 4;
    pub(super) const SECCOMP: i32 = 7;
    pub(super) const STOP: i32 = 128;
}

/// Change of the state of a traced thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The thread ended with this exit status. For the first thread of a process, all other threads
    /// have ended.
    Exited(i32),
    /// A signal ended the thread.
    Killed(i32),
    /// The thread is stopped, until it is resumed.
    Stopped(Stop),
    /// No change: this signal asks the tracer to end, see [`report_signals`].
    Asked(i32),
}

/// Reason why a thread is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Beginning of a chosen system call.
    Entry,
    /// End of a system call.
    Exit,
    /// The thread created a process or thread with this ID, which is traced, too.
    Created(i32),
    /// The thread executed a program. Its former ID; it now has the ID of its process, and all
    /// other threads of the process have ended.
    Executed(i32),
    /// First stop of a new thread.
    New,
    /// A signal stopped the whole process. Resume with [`Resume::Listen`].
    Group,
    /// A signal arrived. Resume with this signal to deliver it.
    Signal(i32),
}

/// Way of resuming a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Until the next chosen system call.
    Run,
    /// Until the current system call ends.
    UntilExit,
    /// Keep it stopped until its process continues.
    Listen,
}

/// System call at which a thread is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syscall {
    /// Architecture (`AUDIT_ARCH_*`).
    pub arch: u32,
    /// Number and arguments; zeros at [`Stop::Exit`].
    pub number: u64,
    /// Arguments.
    pub args: [u64; 6],
    /// Result at [`Stop::Exit`]: the value, or a negative error number.
    pub result: i64,
}

fn ptrace(request: usize, tid: i32, address: usize, data: usize) -> io::Result<libc::c_long> {
    // SAFETY: the requests of this module take integers, or pointers to live memory of the callers
    // below.
    checked(unsafe { libc::syscall(libc::SYS_ptrace, request, tid, address, data) })
}

/// Signal of [`report_signals`] that arrived last; 0 if there is none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Waits until a traced thread changes its state, or a signal of [`report_signals`] arrives.
/// Returns `None` if there is no traced thread.
///
/// # Errors
/// Errors of wait4(2) other than an interruption by a signal.
pub fn wait() -> io::Result<Option<(i32, Change)>> {
    // Other threads of this process wait for their own children.
    const WAITS: libc::c_int = libc::__WALL | libc::__WNOTHREAD;
    let mut status = 0;
    let tid = loop {
        let signal = SIGNAL.swap(0, SeqCst);
        if signal != 0 {
            return Ok(Some((0, Change::Asked(signal))));
        }
        // SAFETY: the status is live memory.
        let tid = unsafe { libc::waitpid(-1, &raw mut status, WAITS) };
        if tid > 0 {
            break tid;
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ECHILD) => return Ok(None),
            Some(libc::EINTR) => {}
            _ => return Err(error),
        }
    };
    if libc::WIFEXITED(status) {
        return Ok(Some((tid, Change::Exited(libc::WEXITSTATUS(status)))));
    }
    if libc::WIFSIGNALED(status) {
        return Ok(Some((tid, Change::Killed(libc::WTERMSIG(status)))));
    }
    let signal = libc::WSTOPSIG(status);
    let stop = match status >> 16 {
        event::SECCOMP => Stop::Entry,
        event::FORK | event::VFORK | event::CLONE => Stop::Created(message(tid)),
        event::EXEC => Stop::Executed(message(tid)),
        event::STOP if signal == libc::SIGTRAP => Stop::New,
        event::STOP => Stop::Group,
        // TRACESYSGOOD sets this bit.
        _ if signal == libc::SIGTRAP | 0x80 => Stop::Exit,
        _ => Stop::Signal(signal),
    };
    Ok(Some((tid, Change::Stopped(stop))))
}

/// Number that belongs to an event: a thread ID. 0 if the thread was killed since.
fn message(tid: i32) -> i32 {
    let mut message: libc::c_ulong = 0;
    match ptrace(request::GET_EVENT_MESSAGE, tid, 0, &raw mut message as usize) {
        Ok(_) => i32::try_from(message).unwrap_or(0),
        Err(_) => 0,
    }
}

/// Resumes a stopped thread and delivers a signal, if it is not 0.
///
/// # Errors
/// `ESRCH` if the thread was killed.
pub fn resume(tid: i32, how: Resume, signal: i32) -> io::Result<()> {
    let request = match how {
        Resume::Run => request::CONT,
        Resume::UntilExit => request::SYSCALL,
        Resume::Listen => request::LISTEN,
    };
    ptrace(request, tid, 0, usize::try_from(signal).unwrap_or(0)).map(|_| ())
}

/// System call at which a thread is stopped.
///
/// # Errors
/// `ESRCH` if the thread was killed; `EIO` before Linux 5.3.
pub fn syscall(tid: i32) -> io::Result<Syscall> {
    // struct ptrace_syscall_info: op, 3 bytes, arch (u32), ip, sp, then a union.
    let mut info = [0u64; 11];
    let size = size_of_val(&info);
    ptrace(request::GET_SYSCALL_INFO, tid, size, info.as_mut_ptr() as usize)?;
    let kind = info[0] & 0xff;
    let arch = u32::try_from(info[0] >> 32).unwrap_or(0);
    const EXIT: u64 = 2;
    Ok(match kind {
        EXIT => Syscall { arch, number: 0, args: [0; 6], result: info[3].cast_signed() },
        _ => Syscall {
            arch,
            number: info[3],
            args: [info[4], info[5], info[6], info[7], info[8], info[9]],
            result: 0,
        },
    })
}

/// Makes the system call at whose beginning a thread is stopped fail with `ENOSYS`.
///
/// # Errors
/// `ESRCH` if the thread was killed; unsupported on other architectures than x86-64.
pub fn deny(tid: i32) -> io::Result<()> {
    // Offset of orig_rax in struct user (arch/x86/include/asm/user_64.h). At the beginning of a
    // call, the register of the result already contains -ENOSYS.
    const ORIG_RAX: usize = 15 * 8;
    if cfg!(target_arch = "x86_64") {
        ptrace(request::POKE_USER, tid, ORIG_RAX, usize::MAX).map(|_| ())
    } else {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Reads memory of a traced thread. Returns the number of bytes read, which is smaller than the
/// buffer if a page is not mapped.
///
/// # Errors
/// `EFAULT` if the first byte is not mapped; `ESRCH` if the thread ended.
pub fn read(tid: i32, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let address = usize::try_from(address).unwrap_or(0);
    let remote =
        libc::iovec { iov_base: ptr::without_provenance_mut(address), iov_len: buffer.len() };
    // SAFETY: the local vector is the exclusively borrowed buffer; the kernel checks the other.
    let answer =
        unsafe { libc::process_vm_readv(tid, &raw const local, 1, &raw const remote, 1, 0) };
    checked(libc::c_long::try_from(answer).unwrap_or(-1))
        .map(|bytes| usize::try_from(bytes).unwrap_or(0))
}

/// System call that a filter stops.
#[derive(Clone, Copy, Debug)]
pub enum Chosen {
    /// Every call with this number.
    Always(i64),
    /// Calls with this number unless the lower half of the argument with this index has this value.
    Unless(i64, u8, u32),
    /// Calls with this number if the lower half of the argument with this index has one of these
    /// values.
    If(i64, u8, &'static [u32]),
}

/// Seccomp filter that stops the chosen calls, and all calls of another architecture than this one,
/// and allows the rest.
///
/// # Panics
/// If there are more than about 200 chosen calls, because jumps have 8 bits.
pub fn filter(chosen: &[Chosen]) -> Vec<libc::sock_filter> {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const JEQ: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const JGE: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    const ALLOW: u32 = 0x7fff_0000;
    const TRACE: u32 = 0x7ff0_0000;
    // struct seccomp_data: number, architecture, instruction pointer, arguments.
    const NUMBER: u32 = 0;
    const ARCH: u32 = 4;
    const ARGUMENTS: u32 = 16;
    /// Bit of the numbers of the x32 interface.
    const X32: u32 = 0x4000_0000;
    let step = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let number = |call: i64| u32::try_from(call).expect("call numbers are small");
    let stop = step(RETURN, TRACE);
    let mut program = vec![
        step(LOAD, ARCH),
        libc::sock_filter { code: JEQ, jt: 1, jf: 0, k: ARCHITECTURE },
        stop,
        step(LOAD, NUMBER),
        libc::sock_filter { code: JGE, jt: 0, jf: 1, k: X32 },
        stop,
    ];
    // A condition is a block that ends with a return, so later blocks need no jump over it.
    for call in chosen {
        let (call, argument, values, hit, miss) = match *call {
            Chosen::Always(call) => {
                program.push(libc::sock_filter { code: JEQ, jt: 0, jf: 1, k: number(call) });
                program.push(stop);
                continue;
            }
            Chosen::Unless(call, argument, ref value) => {
                (call, argument, std::slice::from_ref(value), ALLOW, TRACE)
            }
            Chosen::If(call, argument, values) => (call, argument, values, TRACE, ALLOW),
        };
        let length = u8::try_from(1 + 2 * values.len() + 1).expect("few values");
        program.push(libc::sock_filter { code: JEQ, jt: 0, jf: length, k: number(call) });
        program.push(step(LOAD, ARGUMENTS + 8 * u32::from(argument)));
        for value in values {
            program.push(libc::sock_filter { code: JEQ, jt: 0, jf: 1, k: *value });
            program.push(step(RETURN, hit));
        }
        program.push(step(RETURN, miss));
    }
    program.push(step(RETURN, ALLOW));
    program
}

/// Architecture of system calls of this program (`AUDIT_ARCH_*`, include/uapi/linux/audit.h).
pub const ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };

/// Lets [`wait`] report the signals of the keyboard and SIGTERM, which then do not end this
/// process. The traced programs receive the signals of the keyboard, too.
pub fn report_signals() {
    extern "C" fn arrived(signal: libc::c_int) {
        SIGNAL.store(signal, SeqCst);
    }
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
        // SAFETY: an all-zero sigaction is valid: no mask and no flags, so that a call is
        // interrupted.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = arrived as *const () as usize;
        // SAFETY: the handler only writes an atomic number.
        unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn only_chosen_calls_stop_a_program() {
        let run = |chosen: &[Chosen]| {
            let words = [c"sh".to_owned(), c"-c".to_owned(), c"cd / && cd /".to_owned()];
            let child = spawn(c"/bin/sh", &words, &filter(chosen)).unwrap();
            resume(child, Resume::Run, 0).unwrap();
            let mut numbers = Vec::new();
            let mut results = Vec::new();
            loop {
                match wait().unwrap() {
                    Some((tid, Change::Stopped(Stop::Entry))) => {
                        numbers.push(syscall(tid).unwrap().number.cast_signed());
                        resume(tid, Resume::UntilExit, 0).unwrap();
                    }
                    Some((tid, Change::Stopped(Stop::Exit))) => {
                        results.push(syscall(tid).unwrap().result);
                        resume(tid, Resume::Run, 0).unwrap();
                    }
                    Some((tid, Change::Stopped(Stop::Signal(signal)))) => {
                        resume(tid, Resume::Run, signal).unwrap();
                    }
                    Some((tid, Change::Stopped(_))) => resume(tid, Resume::Run, 0).unwrap(),
                    Some((tid, Change::Exited(0))) if tid == child => break,
                    other => panic!("{other:?}"),
                }
            }
            assert!(results.iter().all(|result| *result == 0), "{results:?}");
            numbers
        };
        assert_eq!(run(&[]), [0i64; 0]);
        assert_eq!(run(&[Chosen::Always(libc::SYS_chdir)]), [libc::SYS_chdir; 2]);
    }

    #[test]
    fn a_stop_takes_cpu_time_of_the_thread() {
        let calls = filter(&[Chosen::Always(libc::SYS_read)]);
        let mut entries = 0;
        let cost = stop_cost(&calls, libc::SYS_read, |_| entries += 1).unwrap();
        assert!(cost.cpu > 0 && cost.call > 0 && cost.elapsed > 0, "{cost:?}");
        assert_eq!(entries, 2000);
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let error = spawn(c"/missing/program", &[c"p".to_owned()], &filter(&[])).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }
}
