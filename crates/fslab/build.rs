//! Passes commit, compiler, target, profile, and features to the program. The commit is missing
//! without a repository.

use std::{env, path::Path, process::Command};

fn main() {
    let output = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let variable = |name: &str| env::var(name).unwrap_or_default();
    if let Some(commit) = output("git", &["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo::rustc-env=FSLAB_COMMIT={commit}");
    }
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = output(&rustc, &["--version"]).unwrap_or_else(|| "unknown".into());
    println!("cargo::rustc-env=FSLAB_RUSTC={version}");
    println!("cargo::rustc-env=FSLAB_TARGET={}", variable("TARGET"));
    // OUT_DIR is PROFILE/build/PACKAGE/out; the variable PROFILE does not name custom profiles.
    let directory = variable("OUT_DIR");
    let profile = Path::new(&directory).ancestors().nth(3).and_then(Path::file_name);
    let profile = profile.map_or_else(|| variable("PROFILE"), |it| it.display().to_string());
    println!("cargo::rustc-env=FSLAB_PROFILE={profile}");
    let features = variable("CARGO_CFG_FEATURE");
    let features: Vec<_> = features.split(',').filter(|name| *name != "default").collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(",") };
    println!("cargo::rustc-env=FSLAB_FEATURES={features}");
    println!("cargo::rerun-if-changed=build.rs");
    if let Some(head) = output("git", &["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={head}");
    }
}
