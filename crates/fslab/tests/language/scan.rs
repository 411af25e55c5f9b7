//! Prose of source files: comments, string literals, and names of tests, as tokens with lines.

/// Kind of a block of prose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Comment,
    Doc,
    String,
    TestName,
    Text,
}

/// Consecutive comment lines, a string literal, the name of a test, or a complete text file.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) kind: Kind,
    /// First line, from 1.
    pub(super) line: usize,
    pub(super) text: String,
}

/// Lower-case word or punctuation character. Text in backticks is one token, as is a placeholder.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) line: usize,
}

/// Splits a text that starts on `line`. A blank line is a token, so that phrases end there.
pub(super) fn tokens(text: &str, mut line: usize, backticks: bool) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if first == '\n' {
            line += 1;
            if rest[1..].trim_start_matches([' ', '\t', '\r']).starts_with('\n') {
                tokens.push(Token { text: "\n".into(), line });
            }
            1
        } else if first.is_whitespace() {
            first.len_utf8()
        } else if first == '`' && backticks {
            let length = code_length(rest);
            tokens.push(Token { text: "``".into(), line });
            line += rest[..length].matches('\n').count();
            length
        } else if is_word(first) {
            let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
            tokens.push(Token { text: rest[..length].to_lowercase(), line });
            length
        } else if let Some(length) = placeholder_length(rest) {
            tokens.push(Token { text: "{}".into(), line });
            length
        } else if rest.starts_with("..=") {
            tokens.push(Token { text: "..=".into(), line });
            3
        } else {
            tokens.push(Token { text: first.into(), line });
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '-'
}

/// Length of a placeholder such as `{name}` at the start of a text.
fn placeholder_length(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('{')?;
    let end = inner.find(|c: char| c == '{' || c == '}' || c.is_whitespace())?;
    inner[end..].starts_with('}').then_some(end + 2)
}

/// Length of the code span at the start of a text, or of its backticks if they are not closed.
/// Spans of one or two backticks end within their paragraph.
fn code_length(text: &str) -> usize {
    let ticks = text.len() - text.trim_start_matches('`').len();
    let body = &text[ticks..];
    let body = if ticks < 3 { body.split("\n\n").next().unwrap_or(body) } else { body };
    let mut at = 0;
    while let Some(start) = body[at..].find('`').map(|offset| at + offset) {
        let run = body[start..].len() - body[start..].trim_start_matches('`').len();
        if run == ticks {
            return ticks + start + run;
        }
        at = start + run;
    }
    ticks
}

/// All blocks of a Rust source.
pub(super) fn blocks(source: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut at, mut line) = (0, 1);
    // Marker and last line of a comment that the next line may continue.
    let mut open: Option<(&str, usize)> = None;
    while at < source.len() {
        let rest = &source[at..];
        let length = if rest.starts_with("//") {
            let text = rest.split('\n').next().unwrap_or(rest);
            let marker = marker(text);
            let is_first = source[..at].rsplit('\n').next().unwrap_or_default().trim().is_empty();
            let body = &text[marker.len()..];
            match (open, blocks.iter_mut().rfind(|block| block.kind != Kind::String)) {
                (Some((last, end)), Some(block))
                    if is_first && last == marker && end + 1 == line =>
                {
                    block.text.push('\n');
                    block.text.push_str(body);
                }
                _ => {
                    let kind = if marker == "//" { Kind::Comment } else { Kind::Doc };
                    blocks.push(Block { kind, line, text: body.into() });
                }
            }
            open = Some((marker, line));
            text.len()
        } else if let Some(literal) = literal(rest, source[..at].chars().next_back()) {
            if let Some(text) = literal.text {
                blocks.push(Block { kind: Kind::String, line, text });
            }
            literal.length
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        line += rest[..length].matches('\n').count();
        at += length;
    }
    blocks.extend(test_names(source));
    blocks
}

fn marker(comment: &str) -> &'static str {
    if comment.starts_with("//!") {
        "//!"
    } else if comment.starts_with("///") && !comment.starts_with("////") {
        "///"
    } else {
        "//"
    }
}

/// String or character literal at the start of a text.
struct Literal {
    length: usize,
    /// Content of a string.
    text: Option<String>,
}

fn literal(rest: &str, before: Option<char>) -> Option<Literal> {
    if let Some(body) = rest.strip_prefix('\'') {
        let mut characters = body.chars();
        let first = characters.next()?;
        if first == '\\' {
            let end = body[2..].find('\'')?;
            return Some(Literal { length: end + 4, text: None });
        }
        let is_character = characters.next() == Some('\'');
        let length = if is_character { first.len_utf8() + 2 } else { 1 };
        return Some(Literal { length, text: None });
    }
    if let Some(body) = rest.strip_prefix('"') {
        let mut escaped = false;
        let end = body.find(|c: char| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        })?;
        return Some(Literal { length: end + 2, text: Some(unescaped(&body[..end])) });
    }
    if before.is_some_and(is_word) {
        return None;
    }
    let raw = ["r", "br", "cr"].into_iter().find_map(|prefix| rest.strip_prefix(prefix))?;
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    let body = raw[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = body.find(&close)?;
    let length = rest.len() - body.len() + end + close.len();
    Some(Literal { length, text: Some(body[..end].into()) })
}

/// String content with escapes replaced by spaces, keeping its line breaks.
fn unescaped(literal: &str) -> String {
    let plain = literal.replace("\\\n", "\n").replace("\\n", " ").replace("\\t", " ");
    plain.replace("\\\"", "\"")
}

/// Names of tests, with spaces.
fn test_names(source: &str) -> Vec<Block> {
    let mut names = Vec::new();
    let mut is_test = false;
    for (index, line) in source.lines().enumerate() {
        let line_text = line.trim_start();
        if line_text == "#[test]" {
            is_test = true;
        } else if let Some(name) = line_text.strip_prefix("fn ").filter(|_| is_test) {
            let name = name.split('(').next().unwrap_or_default().replace('_', " ");
            names.push(Block { kind: Kind::TestName, line: index + 1, text: name });
            is_test = false;
        }
    }
    names
}
