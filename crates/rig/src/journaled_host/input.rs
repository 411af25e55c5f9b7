//! Standard input of programs, part of which may be secret.

/// Standard input of a program.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    /// The whole text.
    pub(crate) text: &'a str,
    /// Part of `text` that must not be recorded, such as a key; empty if there is none.
    pub(crate) secret: &'a str,
}

impl<'a> Input<'a> {
    /// No input.
    pub(crate) const NONE: Self = Self { text: "", secret: "" };

    /// Input without a secret part.
    pub(crate) fn plain(text: &'a str) -> Self {
        Self { text, secret: "" }
    }

    /// `text` with the secret part replaced by `(key)`.
    pub(super) fn redacted(&self, text: &str) -> String {
        match self.secret {
            "" => text.to_owned(),
            secret => text.replace(secret, "(key)"),
        }
    }
}
