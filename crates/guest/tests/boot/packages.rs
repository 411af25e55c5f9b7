//! Where tests find packages of kernels.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// What to do about packages that are missing.
pub(crate) const NO_PACKAGE: &str =
    "a package of a kernel in $FSLAB_KERNELS or target/kernels; scripts/prepare --guest gets one";

/// Packages of kernels: `$FSLAB_KERNELS` is one, or a folder of them; otherwise they are those in
/// `target/kernels`.
pub(crate) fn packages() -> Vec<PathBuf> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/kernels");
    let at = env::var_os("FSLAB_KERNELS").map_or(ours, PathBuf::from);
    if at.is_file() {
        return vec![at];
    }
    let entries = fs::read_dir(at).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut packages: Vec<_> =
        entries.filter(|path| path.extension() == Some("deb".as_ref())).collect();
    packages.sort();
    packages
}
