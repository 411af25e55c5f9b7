use std::collections::BTreeSet;

use expect_test::{expect, expect_file};

use super::*;

#[test]
fn every_recipe_is_a_workload_that_can_be_measured() {
    let mut names = BTreeSet::new();
    for Recipe { name, title, source, point } in recipes() {
        let kebab = name.split('-').all(|part| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        });
        assert!(kebab, "{name} is kebab-case");
        assert!(names.insert(name), "{name} is there once");
        assert!(crate::find(name).is_none(), "{name} is no suite");
        assert!(title.ends_with('.') && !source.is_empty(), "{name} says what it is");
        let points = crate::refine(point.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(points.len(), 1, "{name} is one point");
        let again = crate::refine(points[0].clone()).unwrap();
        assert_eq!(again, points, "{name} is refined once");
    }
    assert!(recipes().len() >= 32);
}

#[test]
fn no_two_recipes_are_the_same_work() {
    let refined = |recipe: &Recipe| crate::refine(recipe.point.clone()).unwrap().remove(0);
    for (i, one) in recipes().iter().enumerate() {
        for other in &recipes()[..i] {
            assert_ne!(refined(one), refined(other), "{} and {}", one.name, other.name);
        }
    }
}

/// Each recipe with the phases of one trial.
#[test]
fn recipes_expand_to_phases() {
    let mut text = String::new();
    for recipe in recipes() {
        let point = crate::refine(recipe.point.clone()).unwrap().remove(0);
        let suite = crate::find(&point.suite).unwrap();
        text += &format!("{} ({}, {})\n", recipe.name, point.suite, (suite.footprint)(&point));
        for phase in (suite.phases)(&point, 1) {
            text += &format!("  {}", crate::described(&phase));
        }
    }
    expect_file!["expanded.txt"].assert_eq(&text);
}

#[test]
fn a_wrong_file_says_where() {
    let entry = |rest: &str| {
        let text = format!("[[workload]]\nname = \"n\"\ntitle = \"t\"\nsource = \"s\"\n{rest}");
        read(&text).unwrap_err()
    };
    expect!["n: there is no suite `strem`"].assert_eq(&entry("suite = \"strem\""));
    expect!["n: suite `stream` has no parameter `recrod`"]
        .assert_eq(&entry("suite = \"stream\"\n[workload.parameters]\nrecrod = 1"));
    expect!["n: `x` is not a duration; write a whole number and ns, us, ms, s, min, or h: `500ms`"]
        .assert_eq(&entry("suite = \"stream\"\n[workload.parameters]\ntime = \"x\""));
    assert_eq!(recipe("randread-4k").map(|recipe| recipe.name.as_str()), Some("randread-4k"));
    assert_eq!(recipe("nonesuch"), None);
}
