//! `fslab version`: version of the program, as stored in every run file.

use serde_json::{Value, json};

use crate::{
    exit::{Exit, Failure},
    output,
};

/// Name, version, and commit of this program.
pub(crate) fn program() -> String {
    match option_env!("FSLAB_COMMIT") {
        Some(commit) => format!("fslab {} ({commit})", env!("CARGO_PKG_VERSION")),
        None => format!("fslab {}", env!("CARGO_PKG_VERSION")),
    }
}

/// Properties of the build that affect results.
const BUILD: [(&str, &str); 5] = [
    ("target", env!("FSLAB_TARGET")),
    ("profile", env!("FSLAB_PROFILE")),
    ("features", env!("FSLAB_FEATURES")),
    ("allocator", if cfg!(target_env = "musl") { "mimalloc" } else { "C library" }),
    ("compiler", env!("FSLAB_RUSTC")),
];

/// Version, commit (null without a repository), and build as JSON.
pub(super) fn build() -> Value {
    let mut build = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": option_env!("FSLAB_COMMIT"),
        "sqlite": store::sqlite_version(),
    });
    for (name, value) in BUILD {
        build[name] = json!(value);
    }
    build
}

pub(super) fn run(verbose: bool) -> Result<Exit, Failure> {
    let mut lines = vec![program()];
    if verbose {
        lines.push(format!("commit {}", option_env!("FSLAB_COMMIT").unwrap_or("unknown")));
        lines.extend(BUILD.iter().map(|(name, value)| format!("{name} {value}")));
        lines.push(format!("SQLite {}", store::sqlite_version()));
    }
    output::lines(&lines)?;
    Ok(Exit::Success)
}
