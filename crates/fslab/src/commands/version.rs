//! `fslab version`: version of the program, as stored in every run file.

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

pub(super) fn run(verbose: bool) -> Result<Exit, Failure> {
    let mut text = program();
    if verbose {
        let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
        let target = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
        text.push_str(&format!(
            "\ntarget {target}\nbuild {profile}\ncompiler {}\nSQLite {}",
            env!("FSLAB_RUSTC"),
            store::sqlite_version()
        ));
    }
    output::result(&text)?;
    Ok(Exit::Success)
}
