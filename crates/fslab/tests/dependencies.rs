//! Third-party crates: the rules of `deny.toml`, checked without cargo-deny, which may not be
//! installed.

use std::{collections::BTreeMap, fs, process::Command};

use serde_json::Value;

use crate::support::root;

/// Packages of the lock file for Linux, with the keys of `cargo metadata`. Packages of other
/// systems need not be downloaded.
fn packages() -> Vec<Value> {
    let platform = ["--filter-platform", "x86_64-unknown-linux-gnu"];
    let arguments = ["metadata", "--format-version", "1", "--locked", "--offline"];
    let mut command = Command::new(env!("CARGO"));
    let output = command.args(arguments).args(platform).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn text<'a>(package: &'a Value, key: &str) -> &'a str {
    package[key].as_str().unwrap_or_default()
}

/// Rules of `deny.toml`: allowed licenses, and crates that may have several versions, as
/// `name@version`.
fn rules() -> (Vec<String>, Vec<String>) {
    let rules: toml::Table = fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap();
    let word = |value: &toml::Value| value.as_str().unwrap().to_owned();
    let list = |table: &str, key: &str| rules[table][key].as_array().unwrap().clone();
    let licenses = list("licenses", "allow").iter().map(word).collect();
    let skipped = list("bans", "skip").iter().map(|entry| word(&entry["crate"])).collect();
    (licenses, skipped)
}

/// True if the licenses of an SPDX expression are allowed. Supported are alternatives of
/// conjunctions, of which one may be in parentheses.
fn permits(allowed: &[String], expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    if let Some((inner, rest)) = expression.strip_prefix('(').and_then(|it| it.split_once(") AND "))
    {
        return permits(allowed, inner) && permits(allowed, rest);
    }
    let permitted = |license: &str| allowed.iter().any(|known| known == license.trim());
    expression.split(" OR ").any(|all| all.split(" AND ").all(permitted))
}

#[test]
fn crates_follow_the_rules_of_deny_toml() {
    let (allowed, skipped) = rules();
    let mut versions = BTreeMap::<String, Vec<String>>::new();
    let mut wrong = Vec::new();
    for package in packages() {
        let (name, version) = (text(&package, "name"), text(&package, "version"));
        if !permits(&allowed, text(&package, "license")) {
            wrong.push(format!("{name}: license {}", package["license"]));
        }
        let source = text(&package, "source");
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        if !source.is_empty() && source != registry {
            wrong.push(format!("{name}: {source}"));
        }
        versions.entry(name.to_owned()).or_default().push(version.to_owned());
    }
    let matches = |rule: &String, name: &str, version: &str| {
        rule.split_once('@')
            .is_some_and(|(known, start)| known == name && format!("{version}.").starts_with(start))
    };
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        let rest =
            versions.iter().filter(|version| !skipped.iter().any(|it| matches(it, name, version)));
        if rest.count() > 1 {
            wrong.push(format!("{name}: versions {versions:?}"));
        }
    }
    for rule in &skipped {
        let used = versions.iter().any(|(name, versions)| {
            versions.len() > 1 && versions.iter().any(|version| matches(rule, name, version))
        });
        if !used {
            wrong.push(format!("{rule} is skipped without need"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn license_expressions_are_evaluated() {
    let allowed = ["MIT".to_owned(), "Unicode-3.0".to_owned()];
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-2.0-only", false),
        ("", false),
        ("GPL-2.0-only OR MIT", true),
        ("Apache-2.0/MIT", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("(GPL-2.0-only OR Apache-2.0) AND Unicode-3.0", false),
        ("MIT AND GPL-2.0-only", false),
    ] {
        assert_eq!(permits(&allowed, expression), expected, "{expression}");
    }
}

#[test]
fn manifests_are_complete() {
    for package in packages().iter().filter(|package| package["source"].is_null()) {
        let name = text(package, "name");
        for key in ["description", "license", "edition", "rust_version"] {
            assert!(!text(package, key).is_empty(), "{name} has no {key}");
        }
    }
}
