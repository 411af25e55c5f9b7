use std::collections::BTreeSet;

use expect_test::{expect, expect_file};

use super::*;

#[test]
fn presets_are_valid_workloads() {
    let mut names = BTreeSet::new();
    for Preset { name, title, source, workload: point } in presets() {
        let kebab = name.split('-').all(|part| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        });
        assert!(kebab, "{name} is kebab-case");
        assert!(names.insert(name), "{name} is unique");
        assert!(crate::find(name).is_none(), "{name} is not a suite");
        assert!(title.ends_with('.') && !source.is_empty(), "{name} has a title and a source");
        let points = crate::refine(point.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(points.len(), 1, "{name} is one workload");
        let again = crate::refine(points[0].clone()).unwrap();
        assert_eq!(again, points, "refining {name} is idempotent");
    }
    assert!(presets().len() >= 32);
}

#[test]
fn presets_are_different_workloads() {
    let refined = |preset: &Preset| crate::refine(preset.workload.clone()).unwrap().remove(0);
    for (i, one) in presets().iter().enumerate() {
        for other in &presets()[..i] {
            assert_ne!(refined(one), refined(other), "{} and {}", one.name, other.name);
        }
    }
}

/// Presets with the phases of one trial.
#[test]
fn presets_expand_to_phases() {
    let mut text = String::new();
    for preset in presets() {
        let point = crate::refine(preset.workload.clone()).unwrap().remove(0);
        let suite = crate::find(&point.suite).unwrap();
        text += &format!("{} ({}, {})\n", preset.name, point.suite, (suite.footprint)(&point));
        for phase in (suite.phases)(&point, 1) {
            text += &format!("  {}", crate::described(&phase));
        }
    }
    expect_file!["expanded.txt"].assert_eq(&text);
}

#[test]
fn errors_name_the_preset() {
    let entry = |rest: &str| {
        let text = format!("[[workload]]\nname = \"n\"\ntitle = \"t\"\nsource = \"s\"\n{rest}");
        read(&text).unwrap_err()
    };
    expect!["n: unknown suite `strem`"].assert_eq(&entry("suite = \"strem\""));
    expect!["n: suite `stream` has no parameter `blokc_size`"]
        .assert_eq(&entry("suite = \"stream\"\n[workload.parameters]\nblokc_size = 1"));
    expect![
        "n: `x` is not a duration; use an integer and ns, us, ms, s, min, or h, such as `500ms`"
    ]
    .assert_eq(&entry("suite = \"stream\"\n[workload.parameters]\nruntime = \"x\""));
    assert_eq!(preset("randread-4k").map(|preset| preset.name.as_str()), Some("randread-4k"));
    assert_eq!(preset("nonesuch"), None);
}
