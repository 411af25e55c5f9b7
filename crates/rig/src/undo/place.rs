//! Where journals are kept.

use std::path::PathBuf;

use crate::{error::RigError, host::Host};

/// The state directory if none is given: `/var/lib/fslab` for root, else `$XDG_STATE_HOME/fslab` or
/// `$HOME/.local/state/fslab` (XDG Base Directory Specification 0.8).
///
/// # Errors
/// [`RigError::NoHome`] for an ordinary user without either variable.
pub fn default_state_directory(host: &dyn Host) -> Result<PathBuf, RigError> {
    if host.is_root() {
        return Ok("/var/lib/fslab".into());
    }
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let absolute = |path: &PathBuf| path.is_absolute();
    let home = || variable("HOME").filter(absolute).map(|home| home.join(".local/state"));
    let state = variable("XDG_STATE_HOME").filter(absolute).or_else(home);
    state.map(|state| state.join("fslab")).ok_or(RigError::NoHome)
}
