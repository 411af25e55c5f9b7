//! Filesystems with limits or missing features, which only root can mount.

use std::{path::PathBuf, process::Command, time::Duration};

use super::*;

/// Mounted filesystem, unmounted on drop.
pub(super) struct Mounted {
    image: Option<TempDir>,
    bench: Option<Bench>,
    point: PathBuf,
}

impl Mounted {
    /// Mounts with these arguments of mount(8) before the directory; `None` if that fails.
    fn new(arguments: &[&str], image: Option<TempDir>) -> Option<Self> {
        let directory = TempDir::new().unwrap();
        let point = directory.path().to_path_buf();
        let mounted = Command::new("mount").args(arguments).arg(&point).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            skipped("cannot mount here");
            return None;
        }
        Some(Self { image, bench: Some(Bench::at(directory)), point })
    }

    /// tmpfs with these options.
    pub(super) fn memory(options: &str) -> Option<Self> {
        root().then(|| Self::new(&["-t", "tmpfs", "-o", options, "tmpfs"], None)).flatten()
    }

    /// Filesystem created by `mkfs` in an image file.
    fn image(mkfs: &[&str], kind: &str) -> Option<Self> {
        if !root() {
            return None;
        }
        let directory = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
        let image = directory.path().join("image");
        fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let made = Command::new(mkfs[0]).args(&mkfs[1..]).arg(&image).output();
        if !made.is_ok_and(|output| output.status.success()) {
            skipped(&format!("needs {}", mkfs[0]));
            return None;
        }
        let image = image.display().to_string();
        Self::new(&["-t", kind, "-o", "loop", &image], Some(directory))
    }

    pub(super) fn bench(&self) -> &Bench {
        self.bench.as_ref().unwrap()
    }
}

/// Maximum number of attempts to unmount, with increasing pauses.
const UNMOUNTS: u32 = 60;
const PAUSE: Duration = Duration::from_millis(10);

impl Drop for Mounted {
    fn drop(&mut self) {
        // The kernel closes the files of a ring some time after the ring (io_uring_setup(2)), and
        // the filesystem is busy until then.
        let mut umount = Command::new("umount");
        umount.arg(&self.point);
        let unmounted = (0..UNMOUNTS).any(|attempt| {
            std::thread::sleep(PAUSE * attempt);
            umount.status().is_ok_and(|status| status.success())
        });
        assert!(unmounted, "{}", self.point.display());
        drop(self.bench.take());
        drop(self.image.take());
    }
}

fn root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped("needs root");
    }
    root
}

#[expect(clippy::print_stderr, reason = "reports that the test is skipped")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

#[test]
fn a_full_filesystem_is_reported_and_can_be_cleaned_up() {
    let Some(mounted) = Mounted::memory("size=1m,nr_inodes=40") else { return };
    let bench = mounted.bench();
    for step in [TreeStep::Mknod, TreeStep::Mkdir, TreeStep::Symlink] {
        let many = with(&[step], |tree| {
            (tree.set.spread, tree.set.files) = (Spread::Flat, 100);
        });
        let refusal = bench.refusal(&many);
        assert!(refusal.contains("more inodes if df -i shows none left"), "{refusal}");
        assert!(refusal.contains("/t.0/3"), "{refusal}");
        fs::remove_dir_all(bench.path("")).unwrap();
    }
    let large = with(&MAKE, |tree| tree.set.sizes = Sizes::Fixed(Bytes(300_000)));
    let refusal = bench.refusal(&large);
    assert!(refusal.starts_with("writing ") && refusal.contains("the filesystem is full"));
    assert!(refusal.contains(" at offset "), "{refusal}");
    fs::remove_dir_all(bench.path("")).unwrap();
}

#[test]
fn too_many_links_are_reported_with_the_entry() {
    let Some(mounted) = Mounted::image(&["mkfs.ext4", "-q", "-F"], "ext4") else { return };
    let bench = mounted.bench();
    let many = with(&[TreeStep::LinkFirst], |tree| {
        (tree.set.spread, tree.set.files) = (Spread::Flat, 70_000);
    });
    let refusal = bench.refusal(&many);
    // ext4 supports up to 65000 links (EXT4_LINK_MAX in fs/ext4/ext4.h).
    assert!(refusal.starts_with("linking ") && refusal.contains("t.0/65000: "), "{refusal}");
    assert!(refusal.contains("number of links to one file"), "{refusal}");
    fs::remove_dir_all(bench.path("")).unwrap();
}

#[test]
fn missing_filesystem_features_are_reported_before_any_change() {
    let Some(mounted) = Mounted::image(&["mkfs.vfat"], "vfat") else { return };
    let bench = mounted.bench();
    for (step, lack) in [
        (TreeStep::LinkFirst, "hard links"),
        (TreeStep::Symlink, "symbolic links"),
        (TreeStep::SetXattr, "user extended attributes"),
        (TreeStep::Chmod, "file modes"),
    ] {
        let refusal = bench.run(&tree(&[step])).unwrap_err();
        let EngineError::Unsupported { what, .. } = &refusal else { panic!("{refusal}") };
        assert_eq!(*what, lack);
        assert_eq!(fs::read_dir(bench.directory.path()).unwrap().count(), 0);
    }
    bench.run(&tree(&MAKE)).unwrap();
}
