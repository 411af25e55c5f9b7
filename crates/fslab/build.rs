//! Passes commit and compiler to the program. The commit is missing without a repository.

use std::process::Command;

fn main() {
    let output = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    if let Some(commit) = output("git", &["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo::rustc-env=FSLAB_COMMIT={commit}");
    }
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = output(&rustc, &["--version"]).unwrap_or_else(|| "unknown".into());
    println!("cargo::rustc-env=FSLAB_RUSTC={version}");
    println!("cargo::rerun-if-changed=build.rs");
    if let Some(head) = output("git", &["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={head}");
    }
}
