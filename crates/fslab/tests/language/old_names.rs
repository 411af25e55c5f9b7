//! Names that the terms of the glossary replaced must not occur.
//!
//! `old_names.txt` lists them. A name that is not an English word must not occur at all. An English
//! word must not be a key, a parameter, another name of the program, or a definition in the code.
//! `old_names_exceptions.txt` lists names that are allowed in some files, with reasons.

use std::{collections::BTreeSet, fs};

use super::{prose, rows};
use crate::support::{files, root};

const NAMES: &str = include_str!("old_names.txt");
const EXCEPTIONS: &str = include_str!("old_names_exceptions.txt");

/// Old name, its kind, and its scope.
struct OldName {
    kind: &'static str,
    scope: &'static str,
    name: &'static str,
}

struct Exception {
    kind: &'static str,
    name: &'static str,
    path: &'static str,
}

fn old_names() -> Vec<OldName> {
    let names = rows(NAMES).flat_map(|row| {
        let [kind, scope, names] = row[..] else { panic!("`{row:?}` has not three columns") };
        names.split(", ").map(move |name| OldName { kind, scope, name })
    });
    names.collect()
}

fn exceptions() -> Vec<Exception> {
    let exceptions = rows(EXCEPTIONS).map(|row| {
        let [kind, name, path, _reason] = row[..] else { panic!("`{row:?}` has not four columns") };
        Exception { kind, name, path }
    });
    exceptions.collect()
}

/// File of the repository.
struct File {
    path: String,
    text: String,
    /// Comments and strings of a source, otherwise the whole text.
    prose: String,
    /// Prose with each run of blanks and line breaks replaced by a blank.
    collapsed: String,
}

/// Text files of crates, docs, and plans, except the lists of this test and data of other authors.
fn texts() -> Vec<File> {
    let below = ["crates", "docs", "plans"].iter().flat_map(|below| files(&root().join(below)));
    let texts = below.filter_map(|file| {
        let path = file.strip_prefix(root()).unwrap().display().to_string();
        let exempt = ["crates/fslab/tests/language/", "crates/report/published/"];
        if exempt.iter().any(|prefix| path.starts_with(prefix)) {
            return None;
        }
        let text = fs::read_to_string(file).ok()?;
        let blocks = prose(&path, &text).into_iter().map(|block| block.text);
        let prose = blocks.collect::<Vec<_>>().join("\n");
        let collapsed = prose.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(File { path, text, prose, collapsed })
    });
    texts.collect()
}

/// Identifiers and words with hyphens.
fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').collect()
}

/// Names that a source defines outside of tests, each with its keyword.
fn definitions(source: &str) -> BTreeSet<(&str, &str)> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut found = BTreeSet::new();
    for line in source.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        while let Some(word) = words.next() {
            let kind = match word {
                "struct" | "enum" | "trait" | "type" | "union" => "type",
                "fn" | "mod" => word,
                _ => continue,
            };
            found.extend(words.next().map(|name| (kind, name)));
        }
    }
    found
}

/// Keys of objects in a JSON schema.
fn schema_keys(schema: &serde_json::Value) -> Vec<&str> {
    let mut keys = Vec::new();
    match schema {
        serde_json::Value::Object(members) => {
            let properties = members.get("properties").and_then(|value| value.as_object());
            keys.extend(properties.into_iter().flat_map(|map| map.keys().map(String::as_str)));
            keys.extend(members.values().flat_map(schema_keys));
        }
        serde_json::Value::Array(items) => keys.extend(items.iter().flat_map(schema_keys)),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => {}
    }
    keys
}

/// Names in tables of the program: kind, scope, and name.
fn tables() -> BTreeSet<(&'static str, String, String)> {
    let mut names = BTreeSet::new();
    for spec in model::plan::KEYS {
        let table = if spec.table.is_empty() { "top" } else { spec.table };
        names.insert(("key", table.to_owned(), spec.key.to_owned()));
    }
    for suite in suites::specs() {
        for parameter in suite.parameters {
            names.insert(("parameter", suite.name.into(), parameter.name.into()));
            use model::workload::Kind;
            if let Kind::Word(values) | Kind::Words(values) | Kind::Sequence(values) =
                parameter.kind
            {
                for value in values {
                    names.insert(("value", suite.name.into(), (*value).into()));
                }
            }
        }
    }
    let mut add = |group: &str, found: Vec<&str>| {
        names.extend(found.into_iter().map(|name| ("name", group.to_owned(), name.to_owned())));
    };
    add("metrics", model::metric::ALL.iter().map(|spec| spec.name).collect());
    let warnings = model::Warning::examples();
    add("warnings", warnings.iter().map(model::Warning::code).collect());
    add("settings", model::setting::SETTINGS.iter().map(|spec| spec.name).collect());
    add("presets", suites::presets().iter().map(|preset| preset.name.as_str()).collect());
    add("charts", report::ChartKind::ALL.iter().map(|kind| kind.name()).collect());
    for schema in files(&root().join("docs/schemas")) {
        let schema = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
        let keys = schema_keys(&schema).into_iter();
        names.extend(keys.map(|key| ("json", String::new(), key.to_owned())));
    }
    // The page contains the help of all commands.
    let help = fs::read_to_string(root().join("docs/reference/commands.md")).unwrap();
    for word in words(&help).into_iter().filter(|word| word.starts_with("--")) {
        names.insert(("flag", String::new(), word.to_owned()));
    }
    let values = help.lines().filter_map(|line| line.trim_start().strip_prefix("- "));
    for (value, _) in values.filter_map(|line| line.split_once(':')) {
        names.insert(("command", String::new(), value.to_owned()));
    }
    names
}

/// Places where an old name occurs.
fn places(
    old: &OldName,
    texts: &[File],
    tables: &BTreeSet<(&'static str, String, String)>,
) -> Vec<String> {
    let OldName { kind, scope, name } = *old;
    let of_text = |found: &dyn Fn(&File) -> bool| -> Vec<String> {
        texts.iter().filter(|file| found(file)).map(|file| file.path.clone()).collect()
    };
    match kind {
        "word" => of_text(&|file| file.prose.contains(name) && words(&file.prose).contains(name)),
        "text" => of_text(&|file| file.collapsed.contains(name)),
        "type" | "fn" | "mod" => of_text(&|File { path, text, .. }| {
            let inside = path.strip_prefix("crates/").is_some_and(|path| {
                (scope == "*" || path.starts_with(scope)) && path.contains("/src/")
            });
            let is_test = path.contains("/tests/") || path.ends_with("tests.rs");
            let is_source = inside && !is_test && path.ends_with(".rs");
            is_source && text.contains(name) && definitions(text).contains(&(kind, name))
        }),
        "key" | "parameter" | "value" | "name" | "flag" | "command" | "json" => {
            let matches = |(other, place, named): &&(&'static str, String, String)| {
                let anywhere = scope == "*" || ["flag", "command", "json"].contains(&kind);
                *other == kind && named == name && (anywhere || place == scope)
            };
            tables.iter().filter(matches).map(|(_, place, _)| format!("table {place}")).collect()
        }
        _ => panic!("`{kind}` is not a kind of name"),
    }
}

#[test]
fn no_old_name_remains() {
    let texts = texts();
    let (tables, exceptions) = (tables(), exceptions());
    let (mut hits, mut used) = (Vec::new(), vec![false; exceptions.len()]);
    let names = old_names();
    assert!(names.len() > 500, "the list is incomplete");
    for old in &names {
        for place in places(old, &texts, &tables) {
            let allowed = exceptions.iter().position(|exception| {
                (exception.kind, exception.name) == (old.kind, old.name)
                    && place.starts_with(exception.path)
            });
            match allowed {
                Some(at) => used[at] = true,
                None => hits.push(format!("{} {} in {place}", old.kind, old.name)),
            }
        }
    }
    for (exception, _) in exceptions.iter().zip(used).filter(|(_, used)| !used) {
        hits.push(format!("unused exception {} {}", exception.kind, exception.name));
    }
    assert!(hits.is_empty(), "{}\n{} old names", hits.join("\n"), hits.len());
}

#[test]
fn old_names_are_found_as_words_phrases_and_definitions() {
    assert!(words("`flush_time`, a-b").is_superset(&["flush_time", "a-b"].into()));
    assert!(!words("end_flush_time").contains("flush_time"));
    let source = "pub struct Deed<'a> {}\n// enum Spot\nfn act() {}\nmod bench;\nlet Place = 1;";
    let found = [("fn", "act"), ("mod", "bench"), ("type", "Deed")];
    assert_eq!(definitions(source), found.into());
    let (tables, texts) = (tables(), texts());
    let old = |kind, scope, name| places(&OldName { kind, scope, name }, &texts, &tables).len();
    assert!(old("text", "", "What is new is") == 0 && old("word", "", "throughput_tick") == 0);
    assert!(old("word", "", "block_size") > 20 && old("text", "", "confidence interval") > 20);
    assert!(old("type", "model", "Nanos") == 1 && old("type", "suites", "Nanos") == 0);
    assert!(old("json", "schemas", "run_conditions") > 0);
    assert_eq!(old("key", "storage", "image_size"), 1);
    assert_eq!(old("key", "axes", "image_size"), 0);
    assert!(old("parameter", "*", "block_size") > 3 && old("flag", "*", "--json") == 1);
    assert_eq!((old("name", "metrics", "throughput"), old("command", "list", "studies")), (1, 1));
}
