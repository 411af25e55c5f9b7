//! JSON in the layout of fio: keys in the given order, `"key" : value`, two spaces per level, and
//! floating-point numbers with six decimals. Programs that cut lines rely on it.

/// Part of a document.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Text(String),
    Int(u64),
    Float(f64),
    Object(Vec<(String, Node)>),
    Array(Vec<Node>),
}

impl Node {
    pub(super) fn object<const N: usize>(entries: [(&str, Self); N]) -> Self {
        Self::Object(entries.into_iter().map(|(key, node)| (key.to_owned(), node)).collect())
    }

    /// Complete document with a line end.
    pub(super) fn document(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, 0);
        text.push('\n');
        text
    }

    fn write(&self, text: &mut String, level: usize) {
        match self {
            Self::Text(own) => text.push_str(&quoted(own)),
            Self::Int(own) => text.push_str(&own.to_string()),
            Self::Float(own) => text.push_str(&format!("{own:.6}")),
            Self::Object(own) => {
                let entry = |text: &mut String, (key, node): &(String, Self)| {
                    text.push_str(&quoted(key));
                    text.push_str(" : ");
                    node.write(text, level + 1);
                };
                listed(text, level, ['{', '}'], own, entry);
            }
            Self::Array(own) => {
                let entry = |text: &mut String, node: &Self| node.write(text, level + 1);
                listed(text, level, ['[', ']'], own, entry);
            }
        }
    }
}

/// Writes entries on separate lines, between brackets.
fn listed<T>(
    text: &mut String,
    level: usize,
    [open, close]: [char; 2],
    entries: &[T],
    write: impl Fn(&mut String, &T),
) {
    text.push(open);
    for (place, entry) in entries.iter().enumerate() {
        text.push_str(if place > 0 { ",\n" } else { "\n" });
        text.push_str(&"  ".repeat(level + 1));
        write(text, entry);
    }
    text.push('\n');
    text.push_str(&"  ".repeat(level));
    text.push(close);
}

/// String of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}
