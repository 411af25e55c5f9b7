//! Entropy for a kernel without an entropy source.
//!
//! Such a kernel blocks readers of random bytes until it has gathered entropy. Bytes from the host
//! avoid that.

use std::{ffi::c_int, fs::File, io};

use rustix::ioctl::{Opcode, Setter, ioctl, opcode};

/// `_IOW('R', 0x03, int [2])`. The call also reads the bytes that follow the two integers
/// (random(4)).
const RNDADDENTROPY: Opcode = opcode::write::<[c_int; 2]>(b'R', 0x03);
/// `_IO('R', 0x07)`.
const RNDRESEEDCRNG: Opcode = opcode::none(b'R', 0x07);

/// `struct rand_pool_info` of `include/uapi/linux/random.h`, for 64 bytes.
#[repr(C)]
struct Pool {
    bits: c_int,
    bytes: c_int,
    data: [u8; 64],
}

/// Adds random bytes to the kernel's pool and credits them in full: 512 bits, twice the amount that
/// the generator requires (`POOL_READY_BITS` in `drivers/char/random.c`).
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`; `ENOENT` without `/dev/random`.
pub fn add(seed: [u8; 64]) -> io::Result<()> {
    let device = File::options().write(true).open("/dev/random")?;
    let pool = Pool { bits: 512, bytes: 64, data: seed };
    // SAFETY: RNDADDENTROPY reads two integers and as many bytes as the second integer says; the
    // structure contains them and lives through the call.
    unsafe { ioctl(&device, Setter::<RNDADDENTROPY, Pool>::new(pool)) }?;
    // SAFETY: RNDRESEEDCRNG has no argument.
    let reseeded = unsafe { ioctl(&device, rustix::ioctl::NoArg::<RNDRESEEDCRNG>::new()) };
    // INVAL: Linux before 4.17 lacks this call. NODATA: the generator is not ready and cannot be
    // reseeded yet.
    match reseeded {
        Ok(()) | Err(rustix::io::Errno::NODATA | rustix::io::Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Read as _};

    #[test]
    fn root_can_add_bytes_to_the_pool() {
        let mut seed = [0; 64];
        File::open("/dev/urandom").unwrap().read_exact(&mut seed).unwrap();
        let answer = super::add(seed);
        assert!(answer.is_ok() || !rustix::process::geteuid().is_root(), "{answer:?}");
    }
}
