//! Kernels in the cache that were built by fslab ([`crate::build`]).

use std::path::PathBuf;

use super::{
    Architecture,
    cache::Cache,
    version::{matches_release, release_order},
};

/// Kernel built by fslab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Built {
    /// Release (`uname -r`).
    pub(crate) release: String,
    /// Description of its source and changes.
    pub(crate) origin: String,
    /// True if the user added patches or options.
    pub(crate) is_changed: bool,
    /// Path of the program.
    pub(crate) image: PathBuf,
    /// Directory with the lists of built-in modules.
    pub(crate) modules: Option<PathBuf>,
}

/// All built kernels, newest first; builds of the same release by time, latest first.
pub(crate) fn all(cache: &Cache) -> Vec<Built> {
    let mut found: Vec<_> = cache
        .manifests()
        .into_iter()
        .filter(|(_, manifest)| {
            manifest.is_built() && manifest.architecture == Architecture::Uml.name()
        })
        .map(|(directory, manifest)| {
            let made = directory.metadata().and_then(|directory| directory.modified()).ok();
            let is_changed = !manifest.changes.is_empty();
            let with = if is_changed { " with " } else { "" };
            let built = Built {
                origin: format!("built from {}{with}{}", manifest.origin, manifest.changes),
                is_changed,
                image: directory.join(&manifest.image),
                modules: (!manifest.modules.is_empty()).then(|| directory.join(&manifest.modules)),
                release: manifest.release,
            };
            (made, built)
        })
        .collect();
    found.sort_by(|(made, one), (other_made, other)| {
        (release_order(&other.release), other_made).cmp(&(release_order(&one.release), made))
    });
    found.into_iter().map(|(_, built)| built).collect()
}

/// Kernel whose release is `wanted`, otherwise the newest kernel that matches `wanted`. Without
/// `wanted`, the newest kernel that the user did not change.
pub(crate) fn newest(cache: &Cache, wanted: Option<&str>) -> Option<Built> {
    let mut matching = all(cache);
    matching.retain(|built| match wanted {
        Some(wanted) => matches_release(wanted, &built.release),
        None => !built.is_changed,
    });
    let exact =
        matching.iter().position(|built| wanted == Some(&built.release)).unwrap_or_default();
    (exact < matching.len()).then(|| matching.swap_remove(exact))
}
