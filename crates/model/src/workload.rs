//! Suite parameters: specifications, values, and presets.
//!
//! A suite declares its parameters once, as a [`SuiteSpec`]. The plan parser, `fslab list`, the
//! reference page, and error messages use this declaration.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{
    suggest::nearest,
    units::{Bytes, Nanos, Scale},
};

/// Value of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Size in bytes.
    Size(Bytes),
    /// Integer.
    Count(u64),
    /// Number from 0 to 1.
    Fraction(f64),
    /// Number between a minimum and a maximum that the parameter declares.
    Number(f64),
    /// Duration.
    Time(Nanos),
    /// Boolean.
    Flag(bool),
    /// Text in canonical form.
    Text(String),
    /// One of the keywords of the parameter.
    Word(String),
    /// List of keywords.
    Words(Vec<String>),
}

impl fmt::Display for Value {
    /// Writes the value as in a plan, without quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => size.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::Fraction(number) | Self::Number(number) => number.fmt(f),
            Self::Time(time) => time.fmt(f),
            Self::Text(text) => text.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::Word(word) => word.fmt(f),
            Self::Words(words) => words.join(",").fmt(f),
        }
    }
}

/// Accepted values of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Size.
    Size {
        /// Minimum.
        min: Bytes,
        /// True if the size is multiplied by the scale.
        scales: bool,
    },
    /// Integer.
    Count {
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
    },
    /// Integer amount of work, which is multiplied by the scale.
    Amount {
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
    },
    /// Number from 0 to 1.
    Fraction,
    /// Number.
    Number {
        /// Minimum.
        min: f64,
        /// Maximum.
        max: f64,
    },
    /// Duration, which is not scaled and may be 0.
    Time,
    /// Text with a syntax that the parameter defines.
    Text {
        /// Description of the accepted values. It follows the word "expected" in messages.
        takes: &'static str,
        /// Function that checks a text and returns its canonical form, so that equal workloads are
        /// identical.
        read: fn(&str) -> Result<String, ValueError>,
    },
    /// Lines of words: command lines, or rows of `key=value` words ([`crate::words`]). A list is
    /// one value and is not swept.
    Lines {
        /// As for [`Self::Text`].
        takes: &'static str,
        /// As for [`Self::Text`].
        read: fn(&str) -> Result<String, ValueError>,
    },
    /// Boolean.
    Flag,
    /// One of these keywords.
    Word(&'static [&'static str]),
    /// Set of these keywords. A list is one value and is not swept. It is stored in the order of
    /// the keywords here, so that equal workloads are identical.
    Words(&'static [&'static str]),
    /// Sequence of these keywords, in which the order matters and keywords may repeat.
    Sequence(&'static [&'static str]),
}

/// Parameter of a suite.
#[derive(Clone, Copy, Debug)]
pub struct ParameterSpec {
    /// Plan key.
    pub name: &'static str,
    /// Accepted values.
    pub kind: Kind,
    /// Default as written in a plan. Lists are separated by commas.
    pub default: &'static str,
    /// Meaning, for the reference page.
    pub doc: &'static str,
}

/// Specification of a suite for the plan parser.
#[derive(Clone, Copy, Debug)]
pub struct SuiteSpec {
    /// Name in a plan.
    pub name: &'static str,
    /// One-line description.
    pub title: &'static str,
    /// Source of the definition of the suite.
    pub source: &'static str,
    /// Notes for the reference page, in Markdown.
    pub notes: &'static str,
    /// Parameter with the number of concurrent workers or clients, if any. A sweep of this
    /// parameter shows scaling.
    pub clients: Option<&'static str>,
    /// All parameters.
    pub parameters: &'static [ParameterSpec],
}

/// Suite with a value for each of its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadParameters {
    /// Name of the suite.
    pub suite: String,
    /// Values of all parameters by name.
    pub parameters: BTreeMap<String, Value>,
}

/// Named workload.
///
/// The name is part of neither the parameters nor the cell ID. Equal workloads therefore have the
/// same cell ID regardless of their names.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// Name in a plan, kebab-case.
    pub name: String,
    /// One-line description.
    pub title: String,
    /// Source of the parameters.
    pub source: String,
    /// Suite and all parameters.
    pub workload: WorkloadParameters,
}

/// Invalid value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ValueError {
    /// Message.
    pub message: String,
    /// Hint, if any.
    pub hint: Option<String>,
}

impl Value {
    /// The size, if the value is one.
    pub fn as_size(&self) -> Option<Bytes> {
        if let Self::Size(size) = self { Some(*size) } else { None }
    }
}

impl ValueError {
    /// Creates an error without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl SuiteSpec {
    /// Parameter with this name.
    ///
    /// # Errors
    /// [`ValueError`] with a suggestion if the name is unknown.
    pub fn parameter(&self, name: &str) -> Result<&'static ParameterSpec, ValueError> {
        self.parameters.iter().find(|parameter| parameter.name == name).ok_or_else(|| {
            let names = || self.parameters.iter().map(|parameter| parameter.name);
            let error = ValueError::new(format!("suite `{}` has no parameter `{name}`", self.name));
            match nearest(name, names()) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error
                    .hint(format!("valid parameters: {}", names().collect::<Vec<_>>().join(", "))),
            }
        })
    }

    /// All parameters with their defaults.
    ///
    /// # Panics
    /// If a default in the table is invalid; a test checks all tables.
    pub fn defaults(&self) -> WorkloadParameters {
        let parameters = self.parameters.iter().map(|parameter| {
            let value = parameter.kind.read_default(parameter.default);
            (parameter.name.to_owned(), value)
        });
        WorkloadParameters { suite: self.name.to_owned(), parameters: parameters.collect() }
    }
}

impl Kind {
    /// True if a list of values is a sweep with one cell per value. False if the list is a single
    /// value.
    pub fn sweeps(self) -> bool {
        !matches!(self, Self::Words(_) | Self::Sequence(_) | Self::Lines { .. })
    }

    /// Checks a value.
    ///
    /// # Errors
    /// [`ValueError`] with the valid values if the value is invalid.
    pub fn check(self, value: Value) -> Result<Value, ValueError> {
        let known = |word: &str, words: &[&'static str]| {
            if words.contains(&word) {
                return Ok(());
            }
            let error = ValueError::new(format!("`{word}` is not one of {}", words.join(", ")));
            Err(match nearest(word, words.iter().copied()) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error,
            })
        };
        match (self, &value) {
            (Self::Size { min, .. }, Value::Size(size)) if *size < min => {
                Err(ValueError::new(format!("{size} is too small; the minimum is {min}")))
            }
            (Self::Count { min, max } | Self::Amount { min, max }, Value::Count(count))
                if !(min..=max).contains(count) =>
            {
                Err(ValueError::new(format!(
                    "{count} is out of range; use an integer from {min} to {max}"
                )))
            }
            (Self::Fraction, Value::Fraction(fraction)) if !(0.0..=1.0).contains(fraction) => Err(
                ValueError::new(format!("{fraction} is out of range; use a number from 0 to 1")),
            ),
            (Self::Number { min, max }, Value::Number(number)) if !(min..=max).contains(number) => {
                Err(ValueError::new(format!(
                    "{number} is out of range; use a number from {min} to {max}"
                )))
            }
            (Self::Text { read, .. } | Self::Lines { read, .. }, Value::Text(text)) => {
                read(text).map(Value::Text)
            }
            (Self::Word(words), Value::Word(word)) => known(word, words).map(|()| value),
            (Self::Words(_) | Self::Sequence(_), Value::Words(given)) if given.is_empty() => {
                Err(ValueError::new("the list is empty"))
            }
            (Self::Sequence(words), Value::Words(given)) => {
                given.iter().try_for_each(|word| known(word, words)).map(|()| value)
            }
            (Self::Words(words), Value::Words(given)) => {
                given.iter().try_for_each(|word| known(word, words))?;
                let repeated = (1..given.len()).find(|i| given[..*i].contains(&given[*i]));
                if let Some(i) = repeated {
                    return Err(ValueError::new(format!("duplicate value `{}`", given[i])));
                }
                let listed = words.iter().filter(|word| given.iter().any(|own| own == *word));
                Ok(Value::Words(listed.map(|word| (*word).to_owned()).collect()))
            }
            (Self::Size { .. }, Value::Size(_))
            | (Self::Count { .. } | Self::Amount { .. }, Value::Count(_))
            | (Self::Fraction, Value::Fraction(_))
            | (Self::Number { .. }, Value::Number(_))
            | (Self::Time, Value::Time(_))
            | (Self::Flag, Value::Flag(_)) => Ok(value),
            _ => Err(ValueError::new(format!("expected {self}"))),
        }
    }

    /// Parses a sweep: values separated by commas. If the whole text is a valid value, it is the
    /// only value, even if it contains commas.
    ///
    /// # Errors
    /// [`ValueError`] for the first invalid value.
    pub fn read_sweep(self, text: &str) -> Result<Vec<Value>, ValueError> {
        match self.read(text) {
            Ok(value) => Ok(vec![value]),
            Err(_) if self.sweeps() => text.split(',').map(|part| self.read(part.trim())).collect(),
            Err(error) => Err(error),
        }
    }

    /// Parses the text of a value, as it is written on the command line or as a default.
    ///
    /// # Errors
    /// [`ValueError`] if the text is invalid.
    pub fn read(self, text: &str) -> Result<Value, ValueError> {
        let bad = || ValueError::new(format!("invalid value `{text}`; expected {self}"));
        let value = match self {
            Self::Size { .. } => {
                Value::Size(Bytes::parse(text).map_err(|error| ValueError::new(error.to_string()))?)
            }
            Self::Count { .. } | Self::Amount { .. } => {
                Value::Count(text.parse().map_err(|_| bad())?)
            }
            Self::Fraction => Value::Fraction(text.parse().map_err(|_| bad())?),
            Self::Number { .. } => Value::Number(text.parse().map_err(|_| bad())?),
            Self::Time => {
                Value::Time(Nanos::parse(text).map_err(|error| ValueError::new(error.to_string()))?)
            }
            Self::Text { .. } | Self::Lines { .. } => Value::Text(text.to_owned()),
            Self::Flag => Value::Flag(text.parse().map_err(|_| bad())?),
            Self::Word(_) => Value::Word(text.to_owned()),
            Self::Words(_) | Self::Sequence(_) => {
                Value::Words(text.split(',').map(|word| word.trim().to_owned()).collect())
            }
        };
        self.check(value)
    }

    fn read_default(self, text: &str) -> Value {
        match self.read(text) {
            Ok(value) => value,
            Err(error) => unreachable!("invalid default in a suite table: {error}"),
        }
    }

    /// Value at a scale. Sizes and amounts of work are scaled; all other values are unchanged. A
    /// size is at least its minimum, and a multiple of 512 bytes if it was one before. An amount is
    /// at least its minimum. It does not become 0, because 0 may have a special meaning.
    #[must_use]
    pub fn scaled(self, value: Value, scale: Scale) -> Value {
        match (self, value) {
            (Self::Size { min, scales: true }, Value::Size(size)) => {
                let scaled = size.scaled(scale);
                let whole = if size.0 % 512 == 0 { Bytes(scaled.0 / 512 * 512) } else { scaled };
                Value::Size(whole.max(min))
            }
            (Self::Amount { min, .. }, Value::Count(count)) => {
                let scaled = Bytes(count).scaled(scale).0;
                Value::Count(scaled.max(min).max(count.min(1)))
            }
            (_, value) => value,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { .. } => write!(f, "size such as \"64KiB\""),
            Self::Count { min, max } | Self::Amount { min, max } => {
                write!(f, "integer, {min} to {max}")
            }
            Self::Fraction => write!(f, "number, 0 to 1"),
            Self::Number { min, max } => write!(f, "number, {min} to {max}"),
            Self::Time => write!(f, "duration such as \"500ms\""),
            Self::Text { takes, .. } | Self::Lines { takes, .. } => takes.fmt(f),
            Self::Flag => write!(f, "boolean"),
            Self::Word(words) => write!(f, "one of {}", words.join(", ")),
            Self::Words(words) => write!(f, "list of {}", words.join(", ")),
            Self::Sequence(words) => write!(f, "sequence of {}", words.join(", ")),
        }
    }
}

impl WorkloadParameters {
    /// Value of a parameter.
    ///
    /// # Panics
    /// If the suite has no parameter of this name.
    pub fn value(&self, name: &str) -> &Value {
        match self.parameters.get(name) {
            Some(value) => value,
            None => {
                unreachable!("suite `{}` has no parameter `{name}`", self.suite)
            }
        }
    }

    /// Value of a size parameter. Panics like [`Self::value`], and if the parameter is not a size.
    pub fn size(&self, name: &str) -> Bytes {
        let Value::Size(size) = self.value(name) else { unreachable!("`{name}` is a size") };
        *size
    }

    /// Value of a count parameter. Panics like [`Self::size`].
    pub fn count(&self, name: &str) -> u64 {
        let Value::Count(count) = self.value(name) else { unreachable!("`{name}` is a count") };
        *count
    }

    /// Value of a fraction parameter. Panics like [`Self::size`].
    pub fn fraction(&self, name: &str) -> f64 {
        let Value::Fraction(fraction) = self.value(name) else {
            unreachable!("`{name}` is a fraction")
        };
        *fraction
    }

    /// Value of a number parameter. Panics like [`Self::size`].
    pub fn number(&self, name: &str) -> f64 {
        let Value::Number(number) = self.value(name) else { unreachable!("`{name}` is a number") };
        *number
    }

    /// Value of a duration parameter. Panics like [`Self::size`].
    pub fn time(&self, name: &str) -> Nanos {
        let Value::Time(time) = self.value(name) else { unreachable!("`{name}` is a duration") };
        *time
    }

    /// Value of a text parameter. Panics like [`Self::size`].
    pub fn text(&self, name: &str) -> &str {
        let Value::Text(text) = self.value(name) else { unreachable!("`{name}` is a text") };
        text
    }

    /// Value of a boolean parameter. Panics like [`Self::size`].
    pub fn flag(&self, name: &str) -> bool {
        let Value::Flag(flag) = self.value(name) else { unreachable!("`{name}` is a flag") };
        *flag
    }

    /// Value of a keyword parameter. Panics like [`Self::size`].
    pub fn word(&self, name: &str) -> &str {
        let Value::Word(word) = self.value(name) else { unreachable!("`{name}` is a word") };
        word
    }

    /// Resets parameters that have no effect to their defaults, so that equal workloads are
    /// identical.
    pub fn reset(&mut self, defaults: &Self, unused: &[&str]) {
        for name in unused {
            self.parameters.insert((*name).to_owned(), defaults.value(name).clone());
        }
    }

    /// Value of a list parameter. Panics like [`Self::size`].
    pub fn words(&self, name: &str) -> &[String] {
        let Value::Words(words) = self.value(name) else { unreachable!("`{name}` is a list") };
        words
    }
}

#[cfg(test)]
mod tests;
