//! The MPI library of the site, opened at run time.
//!
//! One binary works with three ABIs: that of MPI 5, that of MPICH and Intel MPI, and that of Open
//! MPI. All handles are passed as machine words. Those of MPICH are 32-bit integers, of which the
//! callee reads the low half, so output handles are set to zero first. The constants are those of
//! `mpi.h` of each ABI; those of MPI 5 are in section 20 of the standard.
#![expect(unsafe_code, reason = "functions of a library that is opened at run time")]

use std::{
    ffi::{OsString, c_char, c_int, c_void},
    time::Duration,
};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW, Symbol};
use mpi::{Fabric, FabricError, Patience};

/// Environment variable with the path of the library.
pub(crate) const LIBRARY: &str = "FSLAB_MPI_LIBRARY";

/// Handle of a communicator, datatype, info object, or request.
type Handle = usize;

type InitThread =
    unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> c_int;
type Finalize = unsafe extern "C" fn() -> c_int;
type Abort = unsafe extern "C" fn(Handle, c_int) -> c_int;
type OfComm = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
type SplitType = unsafe extern "C" fn(Handle, c_int, c_int, Handle, *mut Handle) -> c_int;
type Bcast = unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, Handle) -> c_int;
type Gather = unsafe extern "C" fn(
    *const c_void,
    c_int,
    Handle,
    *mut c_void,
    c_int,
    Handle,
    c_int,
    Handle,
) -> c_int;
type Gatherv = unsafe extern "C" fn(
    *const c_void,
    c_int,
    Handle,
    *mut c_void,
    *const c_int,
    *const c_int,
    Handle,
    c_int,
    Handle,
) -> c_int;
type Ibarrier = unsafe extern "C" fn(Handle, *mut Handle) -> c_int;
type Test = unsafe extern "C" fn(*mut Handle, *mut c_int, *mut c_void) -> c_int;
type Version = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;

/// Constants of an ABI.
#[derive(Clone, Copy, Debug)]
struct Abi {
    name: &'static str,
    world: Handle,
    byte: Handle,
    info_null: Handle,
    shared: c_int,
    funneled: c_int,
}

const MPICH: Abi = Abi {
    name: "MPICH",
    world: 0x4400_0000,
    byte: 0x4c00_010d,
    info_null: 0x1c00_0000,
    shared: 1,
    funneled: 1,
};

const MPI_5: Abi =
    Abi { name: "MPI 5", world: 0x101, byte: 0x247, info_null: 0x130, shared: 221, funneled: 1024 };

/// Functions of an opened library.
pub(crate) struct Mpi {
    abi: Abi,
    init: Symbol<InitThread>,
    finalize: Symbol<Finalize>,
    abort: Symbol<Abort>,
    rank: Symbol<OfComm>,
    size: Symbol<OfComm>,
    split: Symbol<SplitType>,
    bcast: Symbol<Bcast>,
    gather: Symbol<Gather>,
    gatherv: Symbol<Gatherv>,
    ibarrier: Symbol<Ibarrier>,
    test: Symbol<Test>,
    version: Symbol<Version>,
    // Dropped last: closing the library would unload its code.
    _library: Library,
}

/// Names of the library, those of the launcher that started this process first.
fn names() -> Vec<OsString> {
    let open = ["libmpi.so.40"];
    let mpich = ["libmpi_abi.so.1", "libmpi.so.12", "libmpich.so.12"];
    let of_mpich = std::env::var_os("PMI_RANK").is_some()
        && std::env::var_os("OMPI_COMM_WORLD_RANK").is_none();
    let ordered: Vec<&str> = match of_mpich {
        true => mpich.into_iter().chain(open).collect(),
        false => open.into_iter().chain(mpich).collect(),
    };
    let others = ["libmpi.so"];
    ordered.into_iter().chain(others).map(OsString::from).collect()
}

impl Mpi {
    /// Opens the library.
    ///
    /// # Errors
    /// A text with the names that were tried, and a hint.
    pub(crate) fn open() -> Result<Self, String> {
        let named = std::env::var_os(LIBRARY);
        let names = named.clone().map_or_else(names, |name| vec![name]);
        let mut tried = Vec::new();
        for name in names {
            // SAFETY: the initializers of the MPI library run, which the site installed for this
            // purpose. The process has no other threads yet that they could affect.
            match unsafe { Library::open(Some(&name), RTLD_NOW | RTLD_GLOBAL) } {
                Ok(library) => {
                    let standard = name.to_string_lossy().contains("libmpi_abi");
                    return Self::load(library, standard)
                        .map_err(|error| format!("{}: {error}", name.display()));
                }
                Err(error) => tried.push(format!("{}: {error}", name.display())),
            }
        }
        Err(format!(
            "no MPI library was found ({}); install Open MPI or MPICH (Debian: openmpi-bin \
             libopenmpi3, or mpich), load the MPI module of the site, or set {LIBRARY} to the path \
             of the library",
            tried.join("; ")
        ))
    }

    fn load(library: Library, standard: bool) -> Result<Self, libloading::Error> {
        // SAFETY: the symbol is read as an address only.
        let open_mpi = unsafe { library.get::<*mut c_void>(b"ompi_mpi_comm_world\0") };
        let abi = match open_mpi {
            Ok(world) => {
                // SAFETY: as above. In Open MPI, a predefined handle is the address of its object.
                let address = |name: &[u8]| unsafe {
                    library.get::<*mut c_void>(name).map(|object| object.into_raw() as Handle)
                };
                Abi {
                    name: "Open MPI",
                    world: world.into_raw() as Handle,
                    byte: address(b"ompi_mpi_byte\0")?,
                    info_null: address(b"ompi_mpi_info_null\0")?,
                    shared: 0,
                    funneled: 1,
                }
            }
            Err(_) if standard => MPI_5,
            Err(_) => MPICH,
        };
        // SAFETY: the types are those of the functions in the MPI standard, with handles as machine
        // words.
        unsafe {
            Ok(Self {
                abi,
                init: library.get(b"MPI_Init_thread\0")?,
                finalize: library.get(b"MPI_Finalize\0")?,
                abort: library.get(b"MPI_Abort\0")?,
                rank: library.get(b"MPI_Comm_rank\0")?,
                size: library.get(b"MPI_Comm_size\0")?,
                split: library.get(b"MPI_Comm_split_type\0")?,
                bcast: library.get(b"MPI_Bcast\0")?,
                gather: library.get(b"MPI_Gather\0")?,
                gatherv: library.get(b"MPI_Gatherv\0")?,
                ibarrier: library.get(b"MPI_Ibarrier\0")?,
                test: library.get(b"MPI_Test\0")?,
                version: library.get(b"MPI_Get_library_version\0")?,
                _library: library,
            })
        }
    }

    /// First line of the version, and the ABI.
    pub(crate) fn version(&self) -> String {
        // MPI_MAX_LIBRARY_VERSION_STRING is 256 in Open MPI and 8192 in MPICH and in MPI 5.
        let mut text = vec![0_u8; 1 << 14];
        let mut length = 0;
        // SAFETY: the buffer is longer than the maximum of every ABI. The function may be called
        // before MPI_Init.
        let code = unsafe { (self.version)(text.as_mut_ptr().cast(), &raw mut length) };
        if code != 0 {
            return self.abi.name.into();
        }
        text.truncate(usize::try_from(length).unwrap_or(0));
        let text = String::from_utf8_lossy(&text);
        let end = |c: char| c == '\n' || c == ',' || c == '\0';
        let words: Vec<&str> = text.split(end).next().unwrap_or("").split_whitespace().collect();
        format!("{} (ABI of {})", words.join(" "), self.abi.name)
    }

    /// Joins the ranks that the launcher started. Call it once.
    ///
    /// # Errors
    /// The function that failed.
    pub(crate) fn join(self) -> Result<World, FabricError> {
        let mut provided = 0;
        // SAFETY: MPI_Init_thread accepts null pointers instead of the arguments of main. All calls
        // are made by this thread.
        let code = unsafe {
            let (count, words) = (std::ptr::null_mut(), std::ptr::null_mut());
            (self.init)(count, words, self.abi.funneled, &raw mut provided)
        };
        checked("MPI_Init_thread", code)?;
        let world = self.abi.world;
        let (rank, size) = (self.number(&self.rank, world)?, self.number(&self.size, world)?);
        let mut local: Handle = 0;
        // SAFETY: the handles are valid after MPI_Init, and `local` is a whole machine word.
        let code =
            unsafe { (self.split)(world, self.abi.shared, 0, self.abi.info_null, &raw mut local) };
        checked("MPI_Comm_split_type", code)?;
        let local = self.number(&self.size, local)?;
        Ok(World { mpi: self, rank, size, local })
    }

    fn number(&self, function: &Symbol<OfComm>, comm: Handle) -> Result<usize, FabricError> {
        let mut number = 0;
        // SAFETY: the communicator is valid after MPI_Init, and the result is an int.
        let code = unsafe { function(comm, &raw mut number) };
        checked("MPI_Comm_rank", code)?;
        Ok(usize::try_from(number).unwrap_or(0))
    }
}

fn checked(function: &'static str, code: c_int) -> Result<(), FabricError> {
    match code {
        0 => Ok(()),
        code => Err(FabricError::Call { function, code }),
    }
}

/// Length as an int. Messages are shorter than 2 GiB.
fn length(bytes: usize) -> c_int {
    c_int::try_from(bytes).unwrap_or(c_int::MAX)
}

/// All ranks of the launcher.
pub(crate) struct World {
    mpi: Mpi,
    rank: usize,
    size: usize,
    local: usize,
}

impl World {
    /// Leaves the ranks. All ranks must call it.
    pub(crate) fn leave(self) {
        // SAFETY: called once, after the last other call, by the thread that joined.
        let _ended = unsafe { (self.mpi.finalize)() };
    }
}

impl Fabric for World {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn ranks_on_host(&self) -> usize {
        self.local
    }

    fn version(&self) -> String {
        self.mpi.version()
    }

    fn barrier(&mut self, limit: Duration) -> Result<(), FabricError> {
        let mut request: Handle = 0;
        // SAFETY: the communicator is valid, and the request is a whole machine word.
        let code = unsafe { (self.mpi.ibarrier)(self.mpi.abi.world, &raw mut request) };
        checked("MPI_Ibarrier", code)?;
        let patience = Patience::new(limit);
        loop {
            let mut done = 0;
            // MPI_Status has 20 to 32 bytes.
            let mut status = [0_u64; 16];
            // SAFETY: the request is that of MPI_Ibarrier, and the status is longer than that of
            // every ABI.
            let code = unsafe {
                (self.mpi.test)(&raw mut request, &raw mut done, status.as_mut_ptr().cast())
            };
            checked("MPI_Test", code)?;
            if done != 0 {
                return Ok(());
            }
            patience.sleep()?;
        }
    }

    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), FabricError> {
        let Abi { world, byte, .. } = self.mpi.abi;
        // SAFETY: the buffer has the stated length on all ranks, as the trait requires.
        let code = unsafe {
            (self.mpi.bcast)(bytes.as_mut_ptr().cast(), length(bytes.len()), byte, 0, world)
        };
        checked("MPI_Bcast", code)
    }

    fn gather(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, FabricError> {
        let Abi { world, byte, .. } = self.mpi.abi;
        let own = length(bytes.len()).to_ne_bytes();
        let each = if self.rank == 0 { self.size } else { 0 };
        let mut lengths = vec![[0_u8; 4]; each];
        // SAFETY: each rank sends four bytes, and rank 0 has four bytes per rank.
        let code = unsafe {
            let to = lengths.as_mut_ptr().cast();
            (self.mpi.gather)(own.as_ptr().cast(), 4, byte, to, 4, byte, 0, world)
        };
        checked("MPI_Gather", code)?;
        let counts: Vec<c_int> = lengths.into_iter().map(c_int::from_ne_bytes).collect();
        let mut offsets = Vec::with_capacity(counts.len());
        let mut total: c_int = 0;
        for count in &counts {
            offsets.push(total);
            total = total
                .checked_add(*count)
                .ok_or(FabricError::Call { function: "MPI_Gatherv (more than 2 GiB)", code: -1 })?;
        }
        let total = usize::try_from(total).unwrap_or(0);
        // Not empty, because the address of an empty slice may be 1, which is MPI_IN_PLACE in Open
        // MPI.
        let mut all = vec![0_u8; total.max(1)];
        let sent = if bytes.is_empty() { &[0][..] } else { bytes };
        // SAFETY: rank 0 has as many bytes as all ranks announced, at these offsets.
        let code = unsafe {
            let (from, to) = (sent.as_ptr().cast(), all.as_mut_ptr().cast());
            let (counts, offsets) = (counts.as_ptr(), offsets.as_ptr());
            let own = length(bytes.len());
            (self.mpi.gatherv)(from, own, byte, to, counts, offsets, byte, 0, world)
        };
        checked("MPI_Gatherv", code)?;
        let mut rest = &all[..];
        let mut parts = Vec::with_capacity(counts.len());
        for count in counts {
            let (part, others) = rest.split_at(usize::try_from(count).unwrap_or(0));
            parts.push(part.to_vec());
            rest = others;
        }
        Ok(parts)
    }

    fn abort(&mut self) {
        // SAFETY: the communicator is valid. The call ends this process, too.
        let _ended = unsafe { (self.mpi.abort)(self.mpi.abi.world, i32::from(mpi::EXIT_LOST)) };
    }
}
