//! Generated source tree as an archive.
//!
//! The input is a number of files and a seed. The output is a tar archive of a tree, or another
//! [`Sink`]. The tree has the shape of a kernel source tree ([`table`]): directories and files by
//! depth, files per directory, sizes, lengths of names, and a few symbolic links. Sizes are the
//! quantiles of the distribution in random order, so trees of different seeds have the same sizes.
//! Contents are cut from [`text`].
//!
//! Not included: names and contents of any real tree.

mod table;
mod text;

#[cfg(test)]
pub(crate) mod tests;

use model::phase::Compression;
use tar::EntryType;

use self::table::{DEPTHS, DIRECTORIES, FILES, LINKS, NAMES, PER_DIRECTORY, SIZES, part, quantile};
use super::{
    ResolvedPath,
    archive::Output,
    context::TaskContext,
    pack::{Facts, TarWriter},
};
use crate::EngineError;

/// Name of the tree in the archive.
const ROOT: &str = "source";
/// Modification time of all entries: 2006-01-01 00:00:00 UTC.
const MODIFIED: u64 = 1_136_073_600;
/// Bytes of a file that are cut from the text at once.
const CUT: usize = 64 << 10;

/// Tree without contents.
struct Shape {
    /// Directories; each follows its parent, and the first one is the root.
    directories: Vec<Directory>,
    /// Sizes of the files, in the order of directories.
    sizes: Vec<u64>,
}

struct Directory {
    files: u64,
    links: u64,
    children: Vec<usize>,
}

/// Destination of a tree: receives each entry once, a directory before its contents. Paths begin
/// with the name of the tree, which is also the name of its root.
pub(crate) trait Sink {
    /// Starts a directory; the first one is the root.
    fn directory(&mut self, path: &[u8]) -> Result<(), EngineError>;
    /// Adds a symbolic link to a file in the same directory.
    fn link(&mut self, path: &[u8], target: &[u8]) -> Result<(), EngineError>;
    /// Starts a file of this size, whose data follows.
    fn file(&mut self, path: &[u8], size: u64) -> Result<(), EngineError>;
    /// Adds data to the file.
    fn put(&mut self, bytes: &[u8]) -> Result<(), EngineError>;
    /// Ends the file.
    fn end(&mut self) -> Result<(), EngineError>;
    /// Ends the entry; not called for the root.
    fn done(&mut self) -> Result<(), EngineError>;
}

/// Generates a tree with this number of files and passes it to a sink.
pub(crate) fn tree(files: u64, seed: u64, sink: &mut impl Sink) -> Result<(), EngineError> {
    let mut random = fastrand::Rng::with_seed(seed);
    let shape = Shape::new(files, &mut random);
    let text = text::text(&mut random);
    Writer { shape: &shape, text: &text, random, path: ROOT.into(), next: 0 }.directory(0, sink)
}

/// Part of a path after the name of the tree; empty for its root.
pub(crate) fn below_root(path: &[u8]) -> &[u8] {
    let below = path.strip_prefix(ROOT.as_bytes()).unwrap_or(path);
    below.strip_prefix(b"/").unwrap_or(below)
}

/// Writes the archive, which must not exist.
pub(super) fn write(
    archive: &ResolvedPath,
    files: u64,
    compression: Compression,
    seed: u64,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let tape = TarWriter::new(Output::create(archive, compression, context)?);
    let mut packed = Packed { tape, context };
    tree(files, seed, &mut packed)?;
    packed.tape.finish(packed.context)
}

/// Sink that writes an archive.
struct Packed<'a, 'h, 'b> {
    tape: TarWriter<'a>,
    context: &'h mut TaskContext<'b>,
}

impl Packed<'_, '_, '_> {
    fn header(
        &mut self,
        kind: EntryType,
        path: &[u8],
        link: Option<&[u8]>,
        size: u64,
    ) -> Result<(), EngineError> {
        let mode = if kind == EntryType::Directory {
            0o755
        } else if link.is_some() {
            0o777
        } else {
            0o644
        };
        let facts = Facts { kind, path, link, mode, owner: (0, 0), mtime: MODIFIED, size };
        self.tape.header(&facts, self.context)
    }
}

impl Sink for Packed<'_, '_, '_> {
    fn directory(&mut self, path: &[u8]) -> Result<(), EngineError> {
        // Names of directories end with a slash in an archive.
        self.header(EntryType::Directory, &[path, b"/"].concat(), None, 0)
    }

    fn link(&mut self, path: &[u8], target: &[u8]) -> Result<(), EngineError> {
        self.header(EntryType::Symlink, path, Some(target), 0)
    }

    fn file(&mut self, path: &[u8], size: u64) -> Result<(), EngineError> {
        self.header(EntryType::Regular, path, None, size)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        self.tape.put(bytes, self.context)
    }

    fn end(&mut self) -> Result<(), EngineError> {
        self.tape.pad(self.context)
    }

    fn done(&mut self) -> Result<(), EngineError> {
        self.context.done(1)
    }
}

impl Shape {
    fn new(files: u64, random: &mut fastrand::Rng) -> Self {
        let (directories, in_depth) = levels(files);
        let mut all: Vec<Directory> = Vec::new();
        let mut above = 0..0;
        for (depth, (count, files)) in directories.iter().zip(&in_depth).enumerate() {
            let first = all.len();
            for files in spread(*count, *files, random) {
                // The fourth power assigns most subdirectories to few parents.
                let draw = random.f64().powi(4);
                let parent = above.start + text::place(draw, above.len());
                if depth > 0 {
                    let child = all.len();
                    all[parent].children.push(child);
                }
                all.push(Directory { files, links: 0, children: Vec::new() });
            }
            above = first..all.len();
        }
        for _ in 0..scaled(files, LINKS) {
            let filled: Vec<_> = all.iter_mut().filter(|directory| directory.files > 0).collect();
            let len = filled.len();
            if let Some(directory) = filled.into_iter().nth(random.usize(0..len.max(1))) {
                directory.links += 1;
            }
        }
        let mut sizes: Vec<u64> =
            (0..files).map(|index| quantile(&SIZES, part(index, files))).collect();
        random.shuffle(&mut sizes);
        Self { directories: all, sizes }
    }
}

/// Scales a count of the table to this number of files; halves are rounded up.
fn scaled(files: u64, of_table: u64) -> u64 {
    let product = u128::from(files) * u128::from(of_table) * 2 + u128::from(FILES);
    u64::try_from(product / (2 * u128::from(FILES))).unwrap_or(u64::MAX)
}

/// Directories and files of each depth.
fn levels(files: u64) -> (Vec<u64>, Vec<u64>) {
    let below_root = scaled(files, DIRECTORIES).saturating_sub(1);
    let weights = DEPTHS[1..].iter().map(|(directories, _)| *directories);
    let mut directories = vec![1];
    directories.extend(apportion(below_root, &weights.collect::<Vec<_>>()));
    // A depth needs at least one directory in all depths above it.
    for depth in 1..directories.len() {
        let deepest = directories.iter().rposition(|count| *count > 0).unwrap_or(0);
        if directories[depth] == 0 && deepest > depth {
            directories[deepest] -= 1;
            directories[depth] = 1;
        }
    }
    let weight = |(there, (_, files)): (&u64, &(u64, u64))| if *there > 0 { *files } else { 0 };
    let weights: Vec<_> = directories.iter().zip(&DEPTHS).map(weight).collect();
    let files = apportion(files, &weights);
    (directories, files)
}

/// Divides a total in the ratio of weights, by the largest remainders; the first of equal
/// remainders gets more.
fn apportion(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if sum == 0 {
        return vec![0; weights.len()];
    }
    let product = |weight: &u64| u128::from(total) * u128::from(*weight);
    let whole = |weight| u64::try_from(product(weight) / sum).unwrap_or(u64::MAX);
    let mut parts: Vec<u64> = weights.iter().map(whole).collect();
    let left = total - parts.iter().sum::<u64>();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(product(&weights[*index]) % sum));
    order.iter().zip(0..left).for_each(|(index, _)| parts[*index] += 1);
    parts
}

/// Files of each directory of one depth.
fn spread(directories: u64, files: u64, random: &mut fastrand::Rng) -> Vec<u64> {
    let weight = |index| quantile(&PER_DIRECTORY, part(index, directories));
    let mut weights: Vec<u64> = (0..directories).map(weight).collect();
    if weights.iter().all(|weight| *weight == 0) {
        weights.fill(1);
    }
    random.shuffle(&mut weights);
    apportion(files, &weights)
}

/// Writes a shape, directory by directory, depth first.
struct Writer<'a> {
    shape: &'a Shape,
    text: &'a [u8],
    random: fastrand::Rng,
    path: Vec<u8>,
    /// Index of the next size.
    next: usize,
}

impl Writer<'_> {
    fn directory(&mut self, index: usize, sink: &mut impl Sink) -> Result<(), EngineError> {
        let shape = self.shape;
        let directory = &shape.directories[index];
        sink.directory(&self.path)?;
        if index > 0 {
            sink.done()?;
        }
        self.path.push(b'/');
        let end = self.path.len();
        let mut first = Vec::new();
        for number in 0..directory.files {
            let name = self.name(number);
            self.path.extend_from_slice(&name);
            self.file(sink)?;
            self.path.truncate(end);
            if number == 0 {
                first = name;
            }
            sink.done()?;
        }
        for number in 0..directory.links {
            self.path.extend_from_slice(format!("link{number}").as_bytes());
            sink.link(&self.path, &first)?;
            self.path.truncate(end);
            sink.done()?;
        }
        for (number, child) in directory.children.iter().enumerate() {
            self.path.extend_from_slice(format!("dir{number}").as_bytes());
            self.directory(*child, sink)?;
            self.path.truncate(end);
        }
        self.path.truncate(end - 1);
        Ok(())
    }

    /// Name that is unique in the directory: letters, its number, and a suffix.
    fn name(&mut self, number: u64) -> Vec<u8> {
        let end = format!("{number}.c");
        let wanted = quantile(&NAMES, self.random.f64());
        let letters = usize::try_from(wanted).unwrap_or(0).saturating_sub(end.len());
        let mut name: Vec<u8> = (0..letters).map(|_| self.random.u8(b'a'..=b'z')).collect();
        name.extend_from_slice(end.as_bytes());
        name
    }

    fn file(&mut self, sink: &mut impl Sink) -> Result<(), EngineError> {
        let size = self.shape.sizes[self.next];
        self.next += 1;
        sink.file(&self.path, size)?;
        let mut left = usize::try_from(size).unwrap_or(usize::MAX);
        while left > 0 {
            let len = left.min(CUT);
            let start = self.random.usize(0..=self.text.len() - len);
            sink.put(&self.text[start..start + len])?;
            left -= len;
        }
        sink.end()
    }
}
