//! Kernels that were built here ([`crate::build`]), as they lie in the cache.
//!
//! A cache and a version enter; the image and the modules of the newest kernel that is meant leave.

use std::path::PathBuf;

use super::{
    Architecture,
    cache::Cache,
    version::{is_meant, newness},
};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Built {
    /// What `uname -r` says in it.
    pub(crate) release: String,
    /// Where it came from, for people.
    pub(crate) origin: String,
    /// The program.
    pub(crate) image: PathBuf,
    /// The lists of what is built in.
    pub(crate) modules: Option<PathBuf>,
}

/// All of them, newest first; of one release the one that was made last.
pub(crate) fn all(cache: &Cache) -> Vec<Built> {
    let mut found: Vec<_> = cache
        .cards()
        .into_iter()
        .filter(|(_, card)| card.is_built() && card.architecture == Architecture::Uml.name())
        .map(|(folder, card)| {
            let made = folder.metadata().and_then(|folder| folder.modified()).ok();
            let built = Built {
                origin: format!("built here from {}", card.origin),
                image: folder.join(&card.image),
                modules: (!card.modules.is_empty()).then(|| folder.join(&card.modules)),
                release: card.release,
            };
            (made, built)
        })
        .collect();
    found.sort_by(|(made, one), (other_made, other)| {
        (newness(&other.release), other_made).cmp(&(newness(&one.release), made))
    });
    found.into_iter().map(|(_, built)| built).collect()
}

/// The newest of those that are meant; of all without a text.
pub(crate) fn newest(cache: &Cache, wanted: Option<&str>) -> Option<Built> {
    let mut meant = all(cache);
    meant.retain(|built| wanted.is_none_or(|wanted| is_meant(wanted, &built.release)));
    let exact = meant.iter().position(|built| wanted == Some(&built.release)).unwrap_or_default();
    (exact < meant.len()).then(|| meant.swap_remove(exact))
}
