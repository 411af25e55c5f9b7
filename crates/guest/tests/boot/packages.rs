//! Kernel packages for tests.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Requirement of tests without a kernel package.
pub(crate) const NO_PACKAGE: &str =
    "a kernel package in $FSLAB_KERNELS or target/kernels; scripts/prepare --kernel downloads one";

/// Kernel packages: `$FSLAB_KERNELS` is a package or a directory of packages; default:
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
