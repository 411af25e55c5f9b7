//! The top-level modules of a crate have no circular dependencies: of two modules, at most one uses
//! the other, directly or indirectly.
//!
//! The graph is computed from the source without tests. Modules are followed from the root, and
//! each path that names a module is an edge. The root of the crate is also a module; items that it
//! only re-exports belong to the module that defines them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use super::scan::{Named, paths, tokens, without_tests};
use crate::support::root;

/// Name of the root in messages.
const ROOT: &str = "(root)";

/// Dependencies between top-level modules, each with a file and path in which it occurs.
type Graph = BTreeMap<(String, String), String>;

/// Source file: its module, and the paths in it.
struct Source {
    file: PathBuf,
    module: Vec<String>,
    paths: Vec<Named>,
}

/// Sources of a crate that are declared outside of tests.
fn sources(root: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    let mut open = vec![(root.to_owned(), Vec::new())];
    while let Some((file, module)) = open.pop() {
        let text =
            fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let (paths, declared) = paths(&without_tests(&tokens(&text)), &module);
        let own = module.is_empty() || file.ends_with("mod.rs");
        let directory =
            if own { file.parent().unwrap().to_owned() } else { file.with_extension("") };
        for name in declared {
            let flat = directory.join(format!("{name}.rs"));
            let file = if flat.exists() { flat } else { directory.join(&name).join("mod.rs") };
            let module = module.iter().cloned().chain([name]).collect();
            open.push((file, module));
        }
        found.push(Source { file, module, paths });
    }
    found
}

/// Graph of the top-level modules of the crate with this root.
fn graph(root: &Path) -> Graph {
    let sources = sources(root);
    let top: BTreeSet<&str> =
        sources.iter().filter_map(|s| s.module.first()).map(|s| &**s).collect();
    let exports: BTreeMap<&str, &str> = sources
        .iter()
        .filter(|source| source.module.is_empty())
        .flat_map(|source| &source.paths)
        .filter(|path| path.exported)
        .filter_map(|path| Some((&**path.segments.last()?, &**path.segments.first()?)))
        .collect();
    let mut graph = Graph::new();
    for source in &sources {
        let from = source.module.first().map_or(ROOT, |name| name);
        for path in &source.paths {
            let first = path.segments.first().map_or(ROOT, |name| name);
            let to = [Some(first), exports.get(first).copied()].into_iter().flatten();
            let to = to.into_iter().find(|name| top.contains(name)).unwrap_or(ROOT);
            let re_exports = from == ROOT && path.exported;
            if from != to && !re_exports {
                let why = format!("{}: {}", source.file.display(), path.segments.join("::"));
                graph.entry((from.to_owned(), to.to_owned())).or_insert(why);
            }
        }
    }
    graph
}

/// Circular dependencies: modules of each circle, and its edges, sorted.
fn circles(graph: &Graph) -> Vec<(BTreeSet<&str>, Vec<String>)> {
    let reached = |start: &str| -> BTreeSet<&str> {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start.to_owned()]);
        while let Some(from) = open.pop() {
            for (_, to) in graph.keys().filter(|(of, _)| *of == from) {
                if seen.insert(&**to) {
                    open.push(to.clone());
                }
            }
        }
        seen
    };
    let all: BTreeSet<&str> = graph.keys().map(|(from, _)| &**from).collect();
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        all.iter().map(|module| (*module, reached(module))).collect();
    let mut found: BTreeMap<BTreeSet<&str>, Vec<String>> = BTreeMap::new();
    for (module, seen) in &reach {
        let both = |other: &&&str| reach.get(**other).is_some_and(|back| back.contains(module));
        let circle: BTreeSet<&str> = seen.iter().filter(both).copied().collect();
        if circle.contains(module) {
            found.entry(circle).or_default();
        }
    }
    for (circle, edges) in &mut found {
        for ((from, to), why) in graph {
            if circle.contains(&**from) && circle.contains(&**to) {
                edges.push(format!("  {from} → {to}  ({why})"));
            }
        }
    }
    found.into_iter().collect()
}

/// Crates that still have circular dependencies, with the number of modules in them. Entries are
/// only removed.
const REMAINING: &[(&str, usize)] = &[];

#[test]
fn modules_form_no_circles() {
    let mut problems = Vec::new();
    for (name, _) in super::ARROWS {
        let source = root().join("crates").join(name).join("src");
        let roots = ["lib.rs", "main.rs"].map(|file| source.join(file));
        let graph = graph(roots.iter().find(|file| file.exists()).unwrap());
        let circles = circles(&graph);
        let found: usize = circles.iter().map(|(modules, _)| modules.len()).sum();
        let allowed = REMAINING.iter().find(|(remaining, _)| remaining == name);
        match allowed {
            Some(_) if found == 0 => problems.push(format!("{name}: remove it from the list")),
            Some((_, allowed)) if found <= *allowed => {}
            Some(_) | None => {
                for (modules, edges) in circles {
                    problems.push(format!("{name}: circle of {modules:?}\n{}", edges.join("\n")));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Circular dependencies of a crate with these files.
fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let graph = graph(&directory.path().join("lib.rs"));
    let names = |modules: &BTreeSet<&str>| modules.iter().map(ToString::to_string).collect();
    circles(&graph).iter().map(|(modules, _)| names(modules)).collect()
}

#[test]
fn every_kind_of_path_is_an_edge() {
    let root = "mod a; mod b; mod c; pub use c::Export;";
    let uses = [
        "use crate::a::X;",
        "use crate::{c::{self}, a};",
        "fn f() -> crate::a::X { todo }",
        "mod inner { mod more { use super::super::super::a::X; } }",
        "impl super::a::X {}",
        "pub(crate) use super::{c, a::*};",
        "#[cfg(not(test))] use super::a;",
        "fn f<'a>(_: &'a str) { let _ = ('{', '\\'', b'\"', r#\"\"\"#); crate::a::f() }",
    ];
    for text in uses {
        let files = [("lib.rs", root), ("a.rs", "use crate::b::Y;"), ("b.rs", text), ("c.rs", "")];
        assert_eq!(circles_of(&files), [["a", "b"]], "{text}");
    }
    let files = [("lib.rs", root), ("a.rs", ""), ("b.rs", "use crate::Export;")];
    let files =
        [&files[..], &[("c/mod.rs", "mod d;"), ("c/d.rs", "use super::super::b;")]].concat();
    assert_eq!(circles_of(&files), [["b", "c"]], "through a re-export and a child");
    let root = "mod a; mod b; pub fn work() { a::f() }";
    let files = [("lib.rs", root), ("a.rs", "use crate::{work, b};"), ("b.rs", "")];
    assert_eq!(circles_of(&files), [[ROOT, "a"]], "the work of a root is a module");
}

#[test]
fn comments_literals_and_tests_add_no_edge() {
    let root = "mod a; mod b; pub use a::X; pub use b::Y;";
    let none = [
        "// use crate::a;\n//! [`crate::a`]\n/* /* */ use crate::a; */",
        "const A: &str = \"crate::a\"; const B: &str = r##\"\"# crate::a\"##;",
        "#[cfg(test)] use crate::{a, a::X}; #[cfg(test)] mod t { use crate::a; }",
        "#[cfg(any(test, feature = \"x\"))] fn f(x: [u8; 2]) -> u8 { crate::a::f() } fn g() {}",
        "#[cfg(test)] mod tests;",
        "pub(in crate::a) fn f() {} mod a {} use self::a::X;",
    ];
    for text in none {
        let files = [("lib.rs", root), ("a.rs", "use crate::b::Y;"), ("b.rs", text)];
        assert_eq!(circles_of(&files), [[""; 0]; 0], "{text}");
    }
}
