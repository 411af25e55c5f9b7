//! Small generated kernels and packages for tests.

use std::{
    fs,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use super::{
    Architecture, Cache, Kernel, KernelQuery, KnownKernel, finder::Finder, known, source::Source,
};
use crate::GuestError;

pub(crate) const RELEASE: &str = "6.1.0-50-amd64";
/// Interrupt flag that is never set.
pub(crate) static NEVER: AtomicBool = AtomicBool::new(false);

/// Compression of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Gzip,
    Xz,
    Zstd,
    Lz4,
    Bzip2,
}

pub(crate) fn packed(bytes: &[u8], by: By) -> Vec<u8> {
    match by {
        By::Gzip => {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap()
        }
        By::Xz => {
            let options = lzma_rust2::XzOptions::with_preset(0);
            let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap()
        }
        By::Zstd => {
            ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
        }
        By::Lz4 => {
            let mut packed = 0x184c_2102_u32.to_le_bytes().to_vec();
            for block in bytes.chunks(8 << 20) {
                let block = lz4_flex::block::compress(block);
                packed.extend(u32::try_from(block.len()).unwrap().to_le_bytes());
                packed.extend(block);
            }
            packed
        }
        By::Bzip2 => [b"BZh9", bytes].concat(),
    }
}

/// ELF file with one segment at an address, notes, sections of these names, and a text.
pub(crate) fn elf(address: u64, notes: &[u8], sections: &[&str], text: &str) -> Vec<u8> {
    let names = format!("\0{}\0", sections.join("\0"));
    let note_at = 64 + 2 * 56;
    let names_at = note_at + notes.len() as u64;
    let table_at = names_at + names.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    for number in [2, 62_u16] {
        file.extend(number.to_le_bytes());
    }
    file.extend(1_u32.to_le_bytes());
    for number in [address, 64, table_at] {
        file.extend(number.to_le_bytes());
    }
    file.extend(0_u32.to_le_bytes());
    for number in [64, 56, 2, 64, 1, 0_u16] {
        file.extend(number.to_le_bytes());
    }
    for (kind, address, length) in [(1_u32, address, 0), (4, 0, notes.len() as u64)] {
        file.extend(kind.to_le_bytes());
        file.extend(4_u32.to_le_bytes());
        for number in [note_at, address, address, length, length, 4] {
            file.extend(number.to_le_bytes());
        }
    }
    file.extend(notes);
    file.extend(names.as_bytes());
    file.extend([0; 24]);
    for number in [names_at, names.len() as u64] {
        file.extend(number.to_le_bytes());
    }
    file.extend([0; 24]);
    file.extend(text.as_bytes());
    file
}

/// ELF note: an owner with its NUL, a type, and contents.
pub(crate) fn note(owner: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
    let mut note = Vec::new();
    for number in [owner.len(), content.len()] {
        note.extend(u32::try_from(number).unwrap().to_le_bytes());
    }
    note.extend(kind.to_le_bytes());
    for part in [owner, content] {
        note.extend(part);
        note.resize(note.len().next_multiple_of(4), 0);
    }
    note
}

fn banner(release: &str) -> String {
    format!("Linux version %s\0Linux version {release} (compiler) #1 SMP\n\0")
}

/// A `vmlinux`.
pub(crate) fn vmlinux(release: &str, pvh: bool) -> Vec<u8> {
    let mut notes = note(b"GNU\0", 3, b"build-id");
    if pvh {
        notes.extend(note(b"Xen\0", 18, &0x100_0000_u64.to_le_bytes()));
    }
    elf(0xffff_ffff_8100_0000, &notes, &[".text"], &banner(release))
}

/// A user-mode Linux program.
pub(crate) fn uml(release: &str) -> Vec<u8> {
    elf(0x6000_0000, &[], &[".text", ".uml.setup.init"], &banner(release))
}

/// A boot image with a `vmlinux`.
pub(crate) fn boot_image(release: &str, vmlinux: &[u8], by: By) -> Vec<u8> {
    let mut payload = packed(vmlinux, by);
    if by != By::Gzip {
        payload.extend(u32::try_from(vmlinux.len()).unwrap().to_le_bytes());
    }
    let mut image = vec![0; 3 * 512];
    image[0x1f1] = 1;
    image[0x1fe..0x200].copy_from_slice(&[0x55, 0xaa]);
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x206..0x208].copy_from_slice(&0x020f_u16.to_le_bytes());
    image[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
    let text = format!("{release} (compiler) #1 SMP\0");
    image[0x300..0x300 + text.len()].copy_from_slice(text.as_bytes());
    image[0x248..0x24c].copy_from_slice(&512_u32.to_le_bytes());
    image[0x24c..0x250].copy_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
    image.extend(payload);
    image
}

/// A tar archive of regular files.
pub(crate) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, *bytes).unwrap();
    }
    tar.into_inner().unwrap()
}

/// A Debian package with a compressed tar archive.
pub(crate) fn deb(data: &[u8]) -> Vec<u8> {
    let mut deb = b"!<arch>\n".to_vec();
    for (name, bytes) in
        [("debian-binary", &b"2.0\n"[..]), ("control.tar.xz", &b"odd"[..]), ("data.tar.xz", data)]
    {
        let length = bytes.len();
        deb.extend(format!("{name:16}{:12}{:6}{:6}{:8}{length:<10}`\n", 0, 0, 0, 100_644).bytes());
        deb.extend(bytes);
        deb.resize(deb.len().next_multiple_of(2), b'\n');
    }
    deb
}

/// Files of a kernel package.
pub(crate) fn files() -> Vec<(String, Vec<u8>)> {
    let image = boot_image(RELEASE, &vmlinux(RELEASE, true), By::Xz);
    let module = |name: &str| (format!("./lib/modules/{RELEASE}/{name}"), name.as_bytes().to_vec());
    vec![
        (format!("./boot/vmlinuz-{RELEASE}"), image),
        (format!("./boot/System.map-{RELEASE}"), b"map".to_vec()),
        module("modules.builtin"),
        module("kernel/fs/xfs/xfs.ko"),
        module("kernel/drivers/gpu/drm/i915/i915.ko"),
    ]
}

/// A tar archive of these files.
pub(crate) fn tar_of(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    tar(&files.iter().map(|(name, bytes)| (&name[..], &bytes[..])).collect::<Vec<_>>())
}

/// A root directory with a cache.
pub(crate) struct TestRoot {
    directory: tempfile::TempDir,
    pub(crate) cache: Cache,
}

impl TestRoot {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let cache = Cache::new(directory.path().join("cache"));
        Self { directory, cache }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file and returns its path.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn find(
        &self,
        query: KernelQuery<'_>,
        architecture: Architecture,
    ) -> Result<Kernel, GuestError> {
        self.find_until(query, architecture, &NEVER)
    }

    pub(crate) fn find_until(
        &self,
        query: KernelQuery<'_>,
        architecture: Architecture,
        interrupt: &AtomicBool,
    ) -> Result<Kernel, GuestError> {
        let programs = self.path("usr/bin");
        let (root, path) = (self.directory.path(), programs.as_os_str());
        Finder { root, path, architecture, cache: &self.cache, interrupt }.find(query)
    }

    /// Known kernels.
    pub(crate) fn known(&self) -> Vec<KnownKernel> {
        let programs = self.path("usr/bin");
        let (root, path, cache) = (self.directory.path(), programs.as_os_str(), &self.cache);
        let architecture = Architecture::Pc;
        known::all(Finder { root, path, architecture, cache, interrupt: &NEVER })
    }

    pub(crate) fn pc(&self, text: &str) -> Result<Kernel, GuestError> {
        self.find(KernelQuery::Text(text), Architecture::Pc)
    }

    /// All files below a directory, by their relative paths.
    pub(crate) fn list(&self, directory: &Path) -> Vec<String> {
        let mut files = Vec::new();
        let mut directories = vec![directory.to_owned()];
        while let Some(next) = directories.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                } else {
                    files.push(path.strip_prefix(directory).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        files.sort();
        files
    }

    /// Error text without the directory of this test.
    pub(crate) fn describe(&self, error: &GuestError) -> String {
        error.to_string().replace(self.directory.path().to_str().unwrap(), "")
    }
}

/// A source that is never interrupted.
pub(crate) fn source(path: &Path) -> Source<'_> {
    Source { path, interrupt: &NEVER }
}

/// Decompresses a stream.
pub(crate) fn unpacked(bytes: &[u8], limit: u64) -> Result<Vec<u8>, GuestError> {
    let source = source(Path::new("stream"));
    let mut all = Vec::new();
    let read = source.unpacked(bytes, limit)?.read_to_end(&mut all);
    read.map(|_| all).map_err(|error| source.failed(error))
}
