//! Scanner of Rust sources: tokens outside of comments and literals, and paths in them.

/// Identifiers, punctuation characters, and `::`, without comments and literals.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut found: Vec<String> = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        at += match rest {
            ['/', '/', ..] => until(rest, |tail| tail.starts_with(&['\n'])),
            ['/', '*', ..] => block_comment(rest),
            ['"', ..] => quoted(rest, 0),
            ['r' | 'b' | 'c', ..] if literal(rest).is_some() => literal(rest).unwrap(),
            ['\'', '\\', ..] => 2 + until(&rest[2..], |tail| tail[1..].starts_with(&['\''])) + 2,
            ['\'', _, '\'', ..] => 3,
            [':', ':', ..] => {
                found.push("::".to_owned());
                2
            }
            [first, ..] if first.is_whitespace() => 1,
            [first, ..] if first.is_alphanumeric() || *first == '_' => {
                let word = until(rest, |tail| !(tail[0].is_alphanumeric() || tail[0] == '_'));
                found.push(rest[..word].iter().collect());
                word
            }
            [other, ..] => {
                found.push(other.to_string());
                1
            }
            [] => 1,
        };
    }
    found
}

/// Number of characters before the first tail that satisfies the condition, or of all characters.
fn until(chars: &[char], is_end: impl Fn(&[char]) -> bool) -> usize {
    (0..chars.len()).find(|&at| is_end(&chars[at..])).unwrap_or(chars.len())
}

/// Length of a block comment; block comments nest.
fn block_comment(chars: &[char]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < chars.len() {
        match chars[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// Length of a string with escapes that starts after a prefix.
fn quoted(chars: &[char], prefix: usize) -> usize {
    let mut at = prefix + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// Length of a literal with a prefix (`r"`, `r#"`, `b"`, `br"`, `c"`); `None` if there is none.
fn literal(chars: &[char]) -> Option<usize> {
    let prefix = until(chars, |tail| !"rbc".contains(tail[0])).min(2);
    let hashes = until(&chars[prefix..], |tail| tail[0] != '#');
    let raw = chars[..prefix].contains(&'r');
    match chars.get(prefix + hashes) {
        Some('"') if raw => {
            let end: Vec<char> = std::iter::once('"').chain((0..hashes).map(|_| '#')).collect();
            let start = prefix + hashes + 1;
            Some(start + until(&chars[start..], |tail| tail.starts_with(&end)) + end.len())
        }
        Some('"') if hashes == 0 => Some(quoted(chars, prefix)),
        _ => None,
    }
}

/// Removes items (declarations, functions, modules, statements) that only tests compile: those with
/// `#[test]` or a `#[cfg(…)]` that names `test` outside of `not(…)`.
pub(crate) fn without_tests(tokens: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if is(tokens, at, &["#", "["]) {
            let end = after_group(tokens, at + 1);
            if only_tests(&tokens[at + 2..end - 1]) {
                at = after_item(tokens, end);
                continue;
            }
        }
        kept.push(tokens[at].clone());
        at += 1;
    }
    kept
}

fn only_tests(attribute: &[String]) -> bool {
    let names = |word: &str| attribute.iter().any(|token| token == word);
    attribute == ["test"] || attribute[0] == "cfg" && names("test") && !names("not")
}

/// Index after the item that starts at this index, which ends with `;`, `,`, or braces.
fn after_item(tokens: &[String], mut at: usize) -> usize {
    while at < tokens.len() {
        match tokens[at].as_str() {
            ";" | "," => return at + 1,
            "{" => return after_group(tokens, at),
            "(" | "[" => at = after_group(tokens, at),
            "}" | ")" | "]" => return at,
            // The braces of a `use` end at its semicolon.
            "use" => return at + tokens[at..].iter().position(|token| token == ";").unwrap() + 1,
            _ => at += 1,
        }
    }
    at
}

/// Index after the group whose opening bracket is at this index.
fn after_group(tokens: &[String], mut at: usize) -> usize {
    let mut depth = 0;
    while at < tokens.len() {
        match tokens[at].as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

fn is(tokens: &[String], at: usize, words: &[&str]) -> bool {
    tokens.len() >= at + words.len() && tokens[at..at + words.len()].iter().eq(words)
}

/// Path in a source file.
pub(crate) struct Named {
    /// Segments from the root of the crate. Names imported by `use` are not resolved.
    pub(crate) segments: Vec<String>,
    /// True for a path of a `use` with a visibility.
    pub(crate) exported: bool,
}

/// Paths that start with `crate`, `self`, or `super`, and modules declared without a body. In the
/// root, paths may also start with the name of a module.
pub(crate) fn paths(tokens: &[String], module: &[String]) -> (Vec<Named>, Vec<String>) {
    let declared: Vec<String> = (1..tokens.len())
        .filter(|&at| tokens[at - 1] == "mod" && is(tokens, at + 1, &[";"]))
        .map(|at| tokens[at].clone())
        .collect();
    let mut found = Vec::new();
    // Inline modules around the token, with the depth of their braces.
    let mut inside: Vec<(String, usize)> = Vec::new();
    let (mut depth, mut exported) = (0, false);
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].as_str() {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                inside.retain(|(_, outer)| *outer < depth);
            }
            "mod" if is(tokens, at + 2, &["{"]) => inside.push((tokens[at + 1].clone(), depth)),
            "use" => exported = at > 0 && ["pub", ")"].contains(&tokens[at - 1].as_str()),
            ";" => exported = false,
            _ => {}
        }
        let follows = at > 0 && ["::", "in"].contains(&tokens[at - 1].as_str());
        if follows || !is(tokens, at + 1, &["::"]) {
            at += 1;
            continue;
        }
        let here: Vec<String> =
            module.iter().cloned().chain(inside.iter().map(|(name, _)| name.clone())).collect();
        let start = match tokens[at].as_str() {
            "crate" => Some(Vec::new()),
            "self" => Some(here),
            "super" => here.split_last().map(|(_, outer)| outer.to_vec()),
            name if here.is_empty() && declared.iter().any(|module| module == name) => {
                Some(vec![name.to_owned()])
            }
            _ => None,
        };
        at += 2;
        if let Some(start) = start {
            let mut segments = Vec::new();
            at = tree(tokens, at, start, &mut segments);
            found.extend(segments.into_iter().map(|segments| Named { segments, exported }));
        }
    }
    (found, declared)
}

/// Collects the paths of a tree (`a::{b, c::d}`), and returns the index after it.
fn tree(
    tokens: &[String],
    mut at: usize,
    mut prefix: Vec<String>,
    found: &mut Vec<Vec<String>>,
) -> usize {
    loop {
        match tokens[at].as_str() {
            "super" => {
                prefix.pop();
            }
            "{" => {
                let end = after_group(tokens, at);
                at += 1;
                while at < end - 1 {
                    at = tree(tokens, at, prefix.clone(), found);
                    while at < end - 1 && tokens[at] != "," {
                        at += 1;
                    }
                    at += 1;
                }
                return end;
            }
            "self" | "*" => {
                found.push(prefix);
                return at + 1;
            }
            name => prefix.push(name.to_owned()),
        }
        if !is(tokens, at + 1, &["::"]) {
            found.push(prefix);
            return at + 1;
        }
        at += 2;
    }
}
