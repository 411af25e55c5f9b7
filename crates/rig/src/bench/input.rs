//! Standard input of programs, of which a part may be secret.

/// Standard input of a program.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    /// The whole text.
    pub(crate) text: &'a str,
    /// The part that is not recorded, such as a key; empty for none.
    pub(crate) secret: &'a str,
}

impl<'a> Input<'a> {
    /// No input.
    pub(crate) const NONE: Self = Self { text: "", secret: "" };

    /// A text that may be recorded.
    pub(crate) fn open(text: &'a str) -> Self {
        Self { text, secret: "" }
    }

    /// A text without the secret part.
    pub(super) fn veiled(&self, text: &str) -> String {
        match self.secret {
            "" => text.to_owned(),
            secret => text.replace(secret, "(key)"),
        }
    }
}
