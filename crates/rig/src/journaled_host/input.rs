//! Standard input of programs, part of which may be secret.

/// Standard input of a program.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    /// The whole text.
    pub(crate) text: &'a str,
    /// Part that is not recorded, such as a key; empty for none.
    pub(crate) secret: &'a str,
}

impl<'a> Input<'a> {
    /// No input.
    pub(crate) const NONE: Self = Self { text: "", secret: "" };

    /// Input without secret.
    pub(crate) fn plain(text: &'a str) -> Self {
        Self { text, secret: "" }
    }

    /// The text without the secret part.
    pub(super) fn redacted(&self, text: &str) -> String {
        match self.secret {
            "" => text.to_owned(),
            secret => text.replace(secret, "(key)"),
        }
    }
}
