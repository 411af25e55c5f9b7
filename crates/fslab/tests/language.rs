//! Rules for wording: no banned phrases, and doc comments that start with a noun phrase or a verb.
//!
//! `language/phrases.txt` lists the phrases with their replacements. `language/exceptions.txt`
//! lists texts that are allowed nevertheless, with reasons.

mod old_names;
mod scan;

use std::{collections::HashMap, fs, path::Path};

use self::scan::{Block, Kind, Token, blocks, tokens};
use crate::support::{files, root};

const PHRASES: &str = include_str!("language/phrases.txt");
const EXCEPTIONS: &str = include_str!("language/exceptions.txt");

/// Words that a doc comment must not begin with.
const OPENERS: [&str; 8] = ["what", "who", "whose", "whether", "where", "how", "why", "which"];

struct Phrase {
    words: Vec<String>,
    text: String,
    replacement: String,
}

struct Exception {
    /// Beginning of the path; empty for all files.
    path: String,
    words: Vec<String>,
}

struct Rules {
    /// Phrases by their first word.
    phrases: HashMap<String, Vec<Phrase>>,
    exceptions: Vec<Exception>,
}

/// Columns of a rule file, without comments and blank lines.
fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split(" | ").map(str::trim).collect())
}

fn words(text: &str) -> Vec<String> {
    tokens(text, 1, true).into_iter().map(|token| token.text).collect()
}

impl Rules {
    fn read() -> Self {
        let mut phrases: HashMap<String, Vec<Phrase>> = HashMap::new();
        for row in rows(PHRASES) {
            let [list, replacement] = row[..] else { panic!("`{row:?}` has not two columns") };
            for text in list.split(", ") {
                let (words, replacement) = (words(text), replacement.to_owned());
                let phrase = Phrase { words, text: text.to_owned(), replacement };
                phrases.entry(phrase.words[0].clone()).or_default().push(phrase);
            }
        }
        let exceptions = rows(EXCEPTIONS).map(|row| {
            let [path, text, _reason] = row[..] else { panic!("`{row:?}` has not three columns") };
            let path = if path == "*" { String::new() } else { path.to_owned() };
            Exception { path, words: words(text) }
        });
        Self { phrases, exceptions: exceptions.collect() }
    }

    /// Banned phrases in a text, one line each.
    fn hits(&self, path: &str, tokens: &[Token]) -> Vec<String> {
        let matches = |at: usize, words: &[String]| {
            tokens.len() - at >= words.len()
                && words.iter().zip(&tokens[at..]).all(|(word, token)| *word == token.text)
        };
        let allowed = |at: usize, length: usize| {
            let mut relevant =
                self.exceptions.iter().filter(|exception| path.starts_with(&exception.path));
            relevant.any(|exception| {
                let longest = exception.words.len();
                let first = (at + length).saturating_sub(longest);
                (first..=at).any(|start| matches(start, &exception.words))
            })
        };
        let mut hits = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            for phrase in self.phrases.get(&token.text).into_iter().flatten() {
                if matches(at, &phrase.words) && !allowed(at, phrase.words.len()) {
                    let Phrase { text, replacement, .. } = phrase;
                    hits.push(format!("{path}:{}: \"{text}\" [{replacement}]", token.line));
                }
            }
        }
        hits
    }
}

/// Files whose wording is checked.
fn is_covered(path: &str) -> bool {
    let exempt = [
        "CHANGELOG.md",
        // Titles and quotations of other publications.
        "crates/report/published/",
        "crates/fslab/tests/language",
    ];
    let extension = Path::new(path).extension().and_then(|it| it.to_str()).unwrap_or_default();
    if exempt.iter().any(|prefix| path.starts_with(prefix)) {
        return false;
    }
    if path.starts_with("crates/report/templates/") {
        return ["html", "css", "js", "svg"].contains(&extension);
    }
    let code = path.starts_with("crates/") || path.starts_with("fuzz/");
    let text = path.starts_with("plans/") || path.starts_with("docs/");
    match extension {
        "md" => true,
        "toml" => code || text,
        "rs" => code,
        _ => false,
    }
}

fn covered() -> Vec<(String, String)> {
    let paths = files(root()).into_iter().filter_map(|path| {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        is_covered(&name).then(|| (name, fs::read_to_string(path).unwrap()))
    });
    paths.collect()
}

/// Blocks of prose of a file: comments and string literals of a source, otherwise the complete
/// text.
fn prose(path: &str, text: &str) -> Vec<Block> {
    if path.ends_with(".rs") {
        return blocks(text);
    }
    let mut text = text.to_owned();
    if path.ends_with(".toml") {
        let lines = text.lines().map(|line| line.trim_start().trim_start_matches('#'));
        text = lines.collect::<Vec<_>>().join("\n");
    }
    vec![Block { kind: Kind::Text, line: 1, text }]
}

/// Tokens of a block. In JavaScript, a backtick opens a template string.
fn block_tokens(path: &str, block: &Block) -> Vec<Token> {
    tokens(&block.text, block.line, !path.starts_with("crates/report/templates/"))
}

#[test]
fn texts_have_no_banned_phrases() {
    let rules = Rules::read();
    let mut hits = Vec::new();
    for (path, text) in covered() {
        for block in prose(&path, &text) {
            hits.extend(rules.hits(&path, &block_tokens(&path, &block)));
        }
    }
    assert!(hits.is_empty(), "{}\n{} banned phrases", hits.join("\n"), hits.len());
}

#[test]
fn doc_comments_start_with_a_noun_phrase_or_a_verb() {
    let mut hits = Vec::new();
    for (path, text) in covered().into_iter().filter(|(path, _)| path.ends_with(".rs")) {
        for block in blocks(&text).iter().filter(|block| block.kind == Kind::Doc) {
            let first = block_tokens(&path, block).into_iter().next();
            if first.is_some_and(|token| OPENERS.contains(&token.text.as_str())) {
                let line = block.text.trim().lines().next().unwrap_or_default();
                hits.push(format!("{path}:{}: {line}", block.line));
            }
        }
    }
    assert!(hits.is_empty(), "{}\n{} doc comments", hits.join("\n"), hits.len());
}

#[test]
fn messages_state_ranges_as_text() {
    let mut hits = Vec::new();
    for (path, text) in covered() {
        let is_test = path.contains("/tests/") || path.ends_with("tests.rs");
        if is_test || path.contains("/benches/") || !path.ends_with(".rs") {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
        for block in blocks(code).iter().filter(|block| block.kind == Kind::String) {
            let range = block_tokens(&path, block).into_iter().find(|token| token.text == "..=");
            hits.extend(range.map(|token| format!("{path}:{}: ..=", token.line)));
        }
    }
    assert!(hits.is_empty(), "{}", hits.join("\n"));
}

#[test]
fn phrases_are_found_across_lines_and_not_in_backticks() {
    let rules = Rules::read();
    let source = "/// The disk is\n/// no disk. There is no `is no` disk.\nconst A: &str = \"it is \\\n\
                  no {is} no\"; // is no-op\n#[test]\nfn a_cell_is_no_cell() {}\n";
    let hits: Vec<String> = blocks(source)
        .iter()
        .flat_map(|block| rules.hits("x.rs", &block_tokens("x.rs", block)))
        .collect();
    let lines: Vec<&str> =
        hits.iter().map(|hit| hit.split(": ").next().unwrap_or_default()).collect();
    assert_eq!(lines, ["x.rs:1", "x.rs:3", "x.rs:6"], "{hits:?}");
}
