//! Runs a few instructions on a virtual CPU for a short time, to check that KVM executes them.
//!
//! The input is an open `/dev/kvm` and machine code; the result is the reason why the run ended.
//! The code runs in 64-bit mode at privilege level 0, with 2 MiB of identity-mapped memory. It
//! cannot access the host.
//!
//! Kernel documentation: `Documentation/virt/kvm/api.rst`; numbers and structures:
//! `include/uapi/linux/kvm.h` and `arch/x86/include/uapi/asm/kvm.h`. x86-64 only.

use std::{
    ffi::{c_int, c_ulong},
    fs::File,
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd},
    ptr,
    sync::mpsc,
    time::Duration,
};

use rustix::{
    ioctl::{Opcode, opcode},
    mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap},
};

const KVMIO: u8 = 0xAE;
const KVM_GET_API_VERSION: Opcode = opcode::none(KVMIO, 0x00);
const KVM_CREATE_VM: Opcode = opcode::none(KVMIO, 0x01);
const KVM_GET_VCPU_MMAP_SIZE: Opcode = opcode::none(KVMIO, 0x04);
const KVM_CREATE_VCPU: Opcode = opcode::none(KVMIO, 0x41);
const KVM_SET_USER_MEMORY_REGION: Opcode = opcode::write::<Region>(KVMIO, 0x46);
const KVM_RUN: Opcode = opcode::none(KVMIO, 0x80);
const KVM_SET_REGS: Opcode = opcode::write::<Registers>(KVMIO, 0x82);
const KVM_GET_SREGS: Opcode = opcode::read::<System>(KVMIO, 0x83);
const KVM_SET_SREGS: Opcode = opcode::write::<System>(KVMIO, 0x84);
/// Declared with the size of `struct kvm_signal_mask` without the set that follows.
const KVM_SET_SIGNAL_MASK: Opcode = opcode::write::<u32>(KVMIO, 0x8b);

/// The only version since Linux 2.6.22 (`KVM_API_VERSION`).
const API_VERSION: c_int = 12;
/// `KVM_EXIT_IO`.
const EXIT_IO: u32 = 2;
/// Offset of `exit_reason` in `struct kvm_run`.
const EXIT_REASON: usize = 8;
/// Offset of `io.port` in `struct kvm_run`: the union begins at 32, after `direction` and `size`.
const IO_PORT: usize = 34;
/// Size of the memory in bytes: one large page.
const MEMORY: usize = 2 << 20;
/// Address of the code, which may fill one page.
const CODE: usize = 0x1000;
/// Addresses of the three page tables that identity-map the large page, each with its only entry.
/// All entries are present and writable; the last one maps a large page (Intel SDM volume 3,
/// section 4.5.4).
const TABLES: [(usize, u64); 3] = [(0x2000, 0x3003), (0x3000, 0x4003), (0x4000, 0x83)];

/// `struct kvm_userspace_memory_region`.
#[repr(C)]
struct Region {
    slot: u32,
    flags: u32,
    guest_address: u64,
    size: u64,
    address: u64,
}

/// `struct kvm_regs`: rax to r15, rip, rflags.
#[repr(C)]
struct Registers {
    general: [u64; 16],
    rip: u64,
    rflags: u64,
}

/// `struct kvm_segment`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Segment {
    base: u64,
    limit: u32,
    selector: u16,
    kind: u8,
    present: u8,
    privilege: u8,
    wide: u8,
    code_or_data: u8,
    long: u8,
    pages: u8,
    available: u8,
    unusable: u8,
    padding: u8,
}

/// `struct kvm_sregs`.
#[repr(C)]
struct System {
    code: Segment,
    /// ds, es, fs, gs, ss.
    data: [Segment; 5],
    /// tr and ldt.
    system: [Segment; 2],
    /// gdt and idt: base, then limit.
    tables: [[u64; 2]; 2],
    cr0: u64,
    cr2: u64,
    cr3: u64,
    cr4: u64,
    cr8: u64,
    efer: u64,
    apic_base: u64,
    interrupts: [u64; 4],
}

/// `struct kvm_signal_mask` with its set, which has the kernel's size: 64 signals.
#[repr(C, packed)]
struct SignalMask {
    length: u32,
    set: u64,
}

/// Reason why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The code accessed this I/O port.
    Port(u16),
    /// Another exit, by its number (`KVM_EXIT_*`).
    Other(u32),
    /// The time limit expired.
    TimedOut,
}

/// Runs code on a new virtual CPU, for at most `limit`.
///
/// `node` is an open `/dev/kvm`. The code runs in a separate thread that has ended when this
/// function returns. No signal handler is required or changed.
///
/// # Errors
/// `EINVAL` if the code is longer than a page (4096 bytes), `ENOSYS` if the node has an unknown KVM
/// version, and errors of the calls that create the machine.
pub fn run(node: &File, code: &[u8], limit: Duration) -> io::Result<Exit> {
    if code.len() > TABLES[0].0 - CODE {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: KVM_GET_API_VERSION has no argument.
    if unsafe { call(node, KVM_GET_API_VERSION, 0) }? != API_VERSION {
        return Err(io::Error::from_raw_os_error(libc::ENOSYS));
    }
    let (id_sender, id_receiver) = mpsc::channel();
    let (finish, finished) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let runner = scope.spawn(move || {
            let _finish = finish;
            block_signal()?;
            let cpu = VirtualCpu::new(node, code)?;
            // SAFETY: gettid has no arguments and always succeeds.
            if id_sender.send(unsafe { libc::gettid() }).is_err() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            cpu.run()
        });
        if let Ok(thread) = id_receiver.recv()
            && finished.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout)
        {
            // SAFETY: tgkill takes three integers. If the thread has just ended, the call returns
            // ESRCH, or another thread of this process gets SIGURG, which is ignored by default.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGURG) };
        }
        runner.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    })
}

/// Blocks SIGURG, the signal that ends a run, in the calling thread. `KVM_RUN` unblocks the signal
/// while the virtual CPU runs (`kvm_sigset_activate`, `virt/kvm/kvm_main.c`), so that the signal
/// ends the run but is never delivered.
fn block_signal() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initializes the set, sigaddset changes it and pthread_sigmask reads it;
    // a null pointer for the old mask is allowed.
    let error = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGURG);
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut())
    };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Virtual machine with one CPU, ready to execute the first instruction of the code.
struct VirtualCpu {
    // Fields are dropped in this order, so the memory is unmapped after both descriptors are
    // closed.
    cpu: OwnedFd,
    _machine: OwnedFd,
    state: Mapping,
    _memory: Mapping,
}

impl VirtualCpu {
    fn new(node: &File, code: &[u8]) -> io::Result<Self> {
        // SAFETY: KVM_CREATE_VM takes the number of a machine type; 0 is the default one.
        let machine = owned(unsafe { call(node, KVM_CREATE_VM, 0) }?);
        let memory = Mapping::anonymous(MEMORY)?;
        memory.write(CODE, code);
        for (table, entry) in TABLES {
            memory.write(table, &entry.to_ne_bytes());
        }
        let region = Region {
            slot: 0,
            flags: 0,
            guest_address: 0,
            size: MEMORY as u64,
            address: memory.start.addr() as u64,
        };
        // SAFETY: the call reads the structure, which lives through the call. The memory at
        // `address` is a private mapping without other references in this process. It is unmapped
        // after the machine's descriptor is closed.
        unsafe { call(&machine, KVM_SET_USER_MEMORY_REGION, (&raw const region).addr()) }?;
        // SAFETY: KVM_CREATE_VCPU takes the number of the CPU.
        let cpu = owned(unsafe { call(&machine, KVM_CREATE_VCPU, 0) }?);
        // SAFETY: KVM_GET_VCPU_MMAP_SIZE has no argument.
        let size = unsafe { call(node, KVM_GET_VCPU_MMAP_SIZE, 0) }?;
        let size = usize::try_from(size).map_err(|_| io::ErrorKind::InvalidData)?;
        if size < IO_PORT + 2 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let state = Mapping::shared(&cpu, size)?;
        let new = Self { cpu, _machine: machine, state, _memory: memory };
        new.enter_long_mode()?;
        new.set_signal_mask()?;
        Ok(new)
    }

    /// Sets the registers as after a jump to the code in 64-bit mode with privilege level 0.
    fn enter_long_mode(&self) -> io::Result<()> {
        let mut system = MaybeUninit::<System>::zeroed();
        // SAFETY: KVM_GET_SREGS writes one `struct kvm_sregs`, for which there is space.
        unsafe { call(&self.cpu, KVM_GET_SREGS, system.as_mut_ptr().addr()) }?;
        // SAFETY: a structure of integers, zeroed before and written by the call.
        let mut system = unsafe { system.assume_init() };
        // Kind 11: code that may be executed and read. Kind 3: data that may be read and written.
        // Both have the accessed bit set (Intel SDM volume 3, section 3.4.5.1).
        let code = Segment {
            base: 0,
            limit: u32::MAX,
            selector: 8,
            kind: 11,
            present: 1,
            privilege: 0,
            wide: 0,
            code_or_data: 1,
            long: 1,
            pages: 1,
            available: 0,
            unusable: 0,
            padding: 0,
        };
        system.code = code;
        system.data = [Segment { selector: 16, kind: 3, wide: 1, long: 0, ..code }; 5];
        system.cr3 = TABLES[0].0 as u64;
        // CR4: PAE. CR0: protected mode, paging, write protection, and other bits that systems set.
        // EFER: long mode enabled and active.
        (system.cr4, system.cr0, system.efer) = (0x20, 0x8005_0033, 0x500);
        // SAFETY: KVM_SET_SREGS reads one `struct kvm_sregs`, which lives through the call.
        unsafe { call(&self.cpu, KVM_SET_SREGS, (&raw const system).addr()) }?;
        // Bit 1 of the flags is always set. Interrupts are disabled.
        let registers = Registers { general: [0; 16], rip: CODE as u64, rflags: 2 };
        // SAFETY: KVM_SET_REGS reads one `struct kvm_regs`, which lives through the call.
        unsafe { call(&self.cpu, KVM_SET_REGS, (&raw const registers).addr()) }?;
        Ok(())
    }

    /// Sets the signal mask of runs: all signals are blocked except the one that ends a run.
    fn set_signal_mask(&self) -> io::Result<()> {
        // Signal n is bit n - 1 of the kernel's sets.
        let mask = SignalMask { length: 8, set: !(1 << (libc::SIGURG - 1)) };
        // SAFETY: KVM_SET_SIGNAL_MASK reads a length and a set of that length; both live through
        // the call.
        unsafe { call(&self.cpu, KVM_SET_SIGNAL_MASK, (&raw const mask).addr()) }?;
        Ok(())
    }

    /// Runs until the first exit or the signal.
    fn run(&self) -> io::Result<Exit> {
        // SAFETY: KVM_RUN has no argument; it writes to the mapped state.
        match unsafe { call(&self.cpu, KVM_RUN, 0) } {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Exit::TimedOut),
            Err(error) => return Err(error),
        }
        let reason = u32::from_ne_bytes(self.state.read(EXIT_REASON));
        Ok(match reason {
            EXIT_IO => Exit::Port(u16::from_ne_bytes(self.state.read(IO_PORT))),
            other => Exit::Other(other),
        })
    }
}

/// Memory that is unmapped when dropped.
struct Mapping {
    start: *mut u8,
    length: usize,
}

impl Mapping {
    fn anonymous(length: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address chosen by the kernel.
        let start =
            unsafe { mmap_anonymous(ptr::null_mut(), length, protection, MapFlags::PRIVATE) }?;
        Ok(Self { start: start.cast(), length })
    }

    fn shared(of: impl AsFd, length: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address chosen by the kernel.
        let start = unsafe { mmap(ptr::null_mut(), length, protection, MapFlags::SHARED, of, 0) }?;
        Ok(Self { start: start.cast(), length })
    }

    /// Copies bytes to an offset within the mapping.
    fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.length);
        // SAFETY: the range is within the mapping, as checked above, and has no references.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(offset), bytes.len()) };
    }

    /// Copies bytes from an offset within the mapping.
    fn read<const N: usize>(&self, offset: usize) -> [u8; N] {
        assert!(offset + N <= self.length);
        // SAFETY: the range is within the mapping, as checked above; any bytes are a valid array,
        // and the kernel writes there only in KVM_RUN.
        unsafe { self.start.add(offset).cast::<[u8; N]>().read_volatile() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was created by this type and has no references. After an error it
        // stays mapped.
        let _ = unsafe { munmap(self.start.cast(), self.length) };
    }
}

/// ioctl(2) whose argument is an integer or an address.
///
/// # Safety
/// The argument must be as documented by the kernel for this number.
unsafe fn call(of: impl AsFd, number: Opcode, argument: usize) -> io::Result<c_int> {
    let argument = argument as c_ulong;
    // SAFETY: the caller guarantees a valid argument.
    let answer = unsafe { libc::ioctl(of.as_fd().as_raw_fd(), number as _, argument) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// Takes ownership of a descriptor that a call has just returned.
fn owned(descriptor: c_int) -> OwnedFd {
    // SAFETY: KVM_CREATE_VM and KVM_CREATE_VCPU return new descriptors without another owner.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `KVMIO` calls carry the size of their structures in their numbers.
    #[test]
    fn structures_have_the_kernel_sizes() {
        assert_eq!(size_of::<Region>(), 32);
        assert_eq!(size_of::<Registers>(), 144);
        assert_eq!(size_of::<Segment>(), 24);
        assert_eq!(size_of::<System>(), 312);
        assert_eq!(size_of::<SignalMask>(), 12);
    }

    #[test]
    fn regular_files_are_rejected() {
        let file = tempfile::tempfile().unwrap();
        let error = run(&file, &[0xf4], Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
        let error = run(&file, &[0; 0x1001], Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }

    /// For any node, an endless loop is ended, and code that accesses a port ends itself or is
    /// ended.
    #[test]
    #[expect(clippy::print_stderr, reason = "reports that it is skipped")]
    fn all_runs_end() {
        let Ok(node) = File::options().read(true).write(true).open("/dev/kvm") else {
            eprintln!("skipped: needs access to /dev/kvm");
            return;
        };
        let forever = run(&node, &[0xeb, 0xfe], Duration::from_millis(50));
        assert!(!matches!(forever, Ok(Exit::Port(_) | Exit::Other(_))), "{forever:?}");
        let port = run(&node, &[0xe6, 0x42], Duration::from_millis(500));
        assert!(!matches!(port, Ok(Exit::Other(_))), "{port:?}");
    }
}
