//! What a plan may ask of a suite: parameters as data, and one point in their space.
//!
//! A suite declares its parameters once, as a [`SuiteSpec`]. The plan reader, `fslab list`, the
//! reference page and the error messages all read that table.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{
    suggest::nearest,
    units::{Bytes, Nanos, Scale},
};

/// The value of one parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// A size in bytes.
    Size(Bytes),
    /// A whole number.
    Count(u64),
    /// A number within 0..=1.
    Share(f64),
    /// A number within bounds of its own.
    Number(f64),
    /// A duration.
    Time(Nanos),
    /// On or off.
    Flag(bool),
    /// A text in the one spelling that the parameter has for what it says.
    Text(String),
    /// One of the words the parameter allows.
    Word(String),
    /// Such words, in the order given.
    Words(Vec<String>),
}

impl fmt::Display for Value {
    /// As it would be written in a plan, without quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => size.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::Share(number) | Self::Number(number) => number.fmt(f),
            Self::Time(time) => time.fmt(f),
            Self::Text(text) => text.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::Word(word) => word.fmt(f),
            Self::Words(words) => words.join(",").fmt(f),
        }
    }
}

/// What a parameter accepts.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A size of at least this many bytes.
    Size {
        /// Smallest size allowed.
        min: Bytes,
        /// Whether the size shrinks with the plan's scale.
        scales: bool,
    },
    /// A whole number within these bounds.
    Count {
        /// Smallest count allowed.
        min: u64,
        /// Largest count allowed.
        max: u64,
    },
    /// A whole number within these bounds that says how much work there is, and so shrinks with the
    /// plan's scale.
    Amount {
        /// Smallest amount allowed.
        min: u64,
        /// Largest amount allowed.
        max: u64,
    },
    /// A number within 0..=1.
    Share,
    /// A number within these bounds.
    Number {
        /// Smallest number allowed.
        min: f64,
        /// Largest number allowed.
        max: f64,
    },
    /// A duration, zero included. It does not change with the plan's scale.
    Time,
    /// A text with a form of its own.
    Text {
        /// What it takes, in words that go after "expected".
        takes: &'static str,
        /// Checks a text and answers its canonical spelling, so that equal work has equal names.
        read: fn(&str) -> Result<String, ValueError>,
    },
    /// On or off.
    Flag,
    /// Exactly one of these words.
    Word(&'static [&'static str]),
    /// A list out of these words; the list is one value and is not swept. Its order means nothing:
    /// it is brought into that of these words, so that equal work has equal names.
    Words(&'static [&'static str]),
    /// The same, in an order that matters, and a word may come again.
    Sequence(&'static [&'static str]),
}

/// One parameter of a suite.
#[derive(Clone, Copy, Debug)]
pub struct ParameterSpec {
    /// Its key in a plan.
    pub name: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// Its value when the plan does not give one, written as in a plan; lists separated by commas.
    pub default: &'static str,
    /// What it means, one sentence.
    pub doc: &'static str,
}

/// A suite as the plan reader sees it.
#[derive(Clone, Copy, Debug)]
pub struct SuiteSpec {
    /// Its name in a plan.
    pub name: &'static str,
    /// What it measures, one sentence.
    pub title: &'static str,
    /// Where its definition comes from.
    pub source: &'static str,
    /// What a user must know to read its numbers: Markdown for the reference page.
    pub notes: &'static str,
    /// The parameter that says how many clients work at the same time, if it has one: a sweep of it
    /// shows scaling.
    pub clients: Option<&'static str>,
    /// Everything it can be told.
    pub parameters: &'static [ParameterSpec],
}

/// One point in the parameter space of one suite: every parameter has a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The suite's name.
    pub suite: String,
    /// Parameter name to value, complete.
    pub parameters: BTreeMap<String, Value>,
}

/// A point with a name of its own: a workload that people ask for.
///
/// The name is a way to write the point and a heading for its numbers. It is no part of the point
/// nor of the identity of a cell, so the same work has the same cell id whatever it was called.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// Its name in a plan, kebab-case.
    pub name: String,
    /// What it stands for, one sentence.
    pub title: String,
    /// Where its parameters come from.
    pub source: String,
    /// Its suite and all parameters.
    pub point: Point,
}

/// Why a value does not fit a parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ValueError {
    /// What is wrong.
    pub message: String,
    /// What to write instead, if it can be said.
    pub cure: Option<String>,
}

impl ValueError {
    /// A message without a cure.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), cure: None }
    }

    /// The same with a cure.
    #[must_use]
    pub fn cure(self, cure: impl Into<String>) -> Self {
        Self { cure: Some(cure.into()), ..self }
    }
}

impl SuiteSpec {
    /// The parameter of that name.
    ///
    /// # Errors
    /// Names the nearest known parameter, and all of them.
    pub fn parameter(&self, name: &str) -> Result<&'static ParameterSpec, ValueError> {
        self.parameters.iter().find(|parameter| parameter.name == name).ok_or_else(|| {
            let names = || self.parameters.iter().map(|parameter| parameter.name);
            let error = ValueError::new(format!("suite `{}` has no parameter `{name}`", self.name));
            match nearest(name, names()) {
                Some(near) => error.cure(format!("did you mean `{near}`?")),
                None => error.cure(format!("it has: {}", names().collect::<Vec<_>>().join(", "))),
            }
        })
    }

    /// The point at which every parameter has its default.
    ///
    /// # Panics
    /// If the suite's own table holds a default that does not fit its kind; a test visits every
    /// table.
    pub fn defaults(&self) -> Point {
        let parameters = self.parameters.iter().map(|parameter| {
            let value = parameter.kind.read_default(parameter.default);
            (parameter.name.to_owned(), value)
        });
        Point { suite: self.name.to_owned(), parameters: parameters.collect() }
    }
}

impl Kind {
    /// Whether a list of values is a sweep (one cell each) rather than one value.
    pub fn sweeps(self) -> bool {
        !matches!(self, Self::Words(_) | Self::Sequence(_))
    }

    /// Checks a value against this kind.
    ///
    /// # Errors
    /// [`ValueError`] says what is out of bounds and what is allowed.
    pub fn check(self, value: Value) -> Result<Value, ValueError> {
        let known = |word: &str, words: &[&'static str]| {
            if words.contains(&word) {
                return Ok(());
            }
            let error = ValueError::new(format!("`{word}` is not one of {}", words.join(", ")));
            Err(match nearest(word, words.iter().copied()) {
                Some(near) => error.cure(format!("did you mean `{near}`?")),
                None => error,
            })
        };
        match (self, &value) {
            (Self::Size { min, .. }, Value::Size(size)) if *size < min => {
                Err(ValueError::new(format!("{size} is too small; the least is {min}")))
            }
            (Self::Count { min, max } | Self::Amount { min, max }, Value::Count(count))
                if !(min..=max).contains(count) =>
            {
                Err(ValueError::new(format!("{count} is not within {min}..={max}")))
            }
            (Self::Share, Value::Share(share)) if !(0.0..=1.0).contains(share) => {
                Err(ValueError::new(format!("{share} is not within 0..=1")))
            }
            (Self::Number { min, max }, Value::Number(number)) if !(min..=max).contains(number) => {
                Err(ValueError::new(format!("{number} is not within {min}..={max}")))
            }
            (Self::Text { read, .. }, Value::Text(text)) => read(text).map(Value::Text),
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
                    return Err(ValueError::new(format!("`{}` is listed twice", given[i])));
                }
                let listed = words.iter().filter(|word| given.iter().any(|own| own == *word));
                Ok(Value::Words(listed.map(|word| (*word).to_owned()).collect()))
            }
            (Self::Size { .. }, Value::Size(_))
            | (Self::Count { .. } | Self::Amount { .. }, Value::Count(_))
            | (Self::Share, Value::Share(_))
            | (Self::Number { .. }, Value::Number(_))
            | (Self::Time, Value::Time(_))
            | (Self::Flag, Value::Flag(_)) => Ok(value),
            _ => Err(ValueError::new(format!("expected {self}"))),
        }
    }

    /// Reads a sweep given as one text: values separated by commas, unless the whole of it is one
    /// value, as a text with commas inside may be.
    ///
    /// # Errors
    /// [`ValueError`] of the first value that does not fit.
    pub fn read_sweep(self, text: &str) -> Result<Vec<Value>, ValueError> {
        match self.read(text) {
            Ok(value) => Ok(vec![value]),
            Err(_) if self.sweeps() => text.split(',').map(|part| self.read(part.trim())).collect(),
            Err(error) => Err(error),
        }
    }

    /// Reads a parameter given as text, as in the default table or on the command line.
    ///
    /// # Errors
    /// [`ValueError`] when the text does not fit.
    pub fn read(self, text: &str) -> Result<Value, ValueError> {
        let bad = || ValueError::new(format!("`{text}` is not {self}"));
        let value = match self {
            Self::Size { .. } => {
                Value::Size(Bytes::parse(text).map_err(|error| ValueError::new(error.to_string()))?)
            }
            Self::Count { .. } | Self::Amount { .. } => {
                Value::Count(text.parse().map_err(|_| bad())?)
            }
            Self::Share => Value::Share(text.parse().map_err(|_| bad())?),
            Self::Number { .. } => Value::Number(text.parse().map_err(|_| bad())?),
            Self::Time => {
                Value::Time(Nanos::parse(text).map_err(|error| ValueError::new(error.to_string()))?)
            }
            Self::Text { .. } => Value::Text(text.to_owned()),
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
            Err(error) => unreachable!("a default of the suite table does not fit: {error}"),
        }
    }

    /// The value at a scale: sizes and amounts of work shrink, everything else stays. A size never
    /// falls below the kind's least, nor leaves whole multiples of 512 bytes unless it had left
    /// them before; an amount never falls below the least, nor to zero, which may mean something
    /// else.
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
            Self::Size { .. } => write!(f, "a size such as \"64KiB\""),
            Self::Count { min, max } | Self::Amount { min, max } => {
                write!(f, "a whole number within {min}..={max}")
            }
            Self::Share => write!(f, "a number within 0..=1"),
            Self::Number { min, max } => write!(f, "a number within {min}..={max}"),
            Self::Time => write!(f, "a duration such as \"500ms\""),
            Self::Text { takes, .. } => takes.fmt(f),
            Self::Flag => write!(f, "true or false"),
            Self::Word(words) => write!(f, "one of {}", words.join(", ")),
            Self::Words(words) => write!(f, "a list out of {}", words.join(", ")),
            Self::Sequence(words) => write!(f, "a sequence out of {}", words.join(", ")),
        }
    }
}

impl Point {
    /// The value of a parameter.
    ///
    /// # Panics
    /// If the suite has no such parameter: points are complete, so the name is misspelt in the
    /// suite.
    pub fn value(&self, name: &str) -> &Value {
        match self.parameters.get(name) {
            Some(value) => value,
            None => {
                unreachable!("suite `{}` reads its parameter `{name}`, which it lacks", self.suite)
            }
        }
    }

    /// A size parameter; panics as [`Point::value`] does, and if it is not a size.
    pub fn size(&self, name: &str) -> Bytes {
        let Value::Size(size) = self.value(name) else { unreachable!("`{name}` is a size") };
        *size
    }

    /// A count parameter; panics as [`Point::size`] does.
    pub fn count(&self, name: &str) -> u64 {
        let Value::Count(count) = self.value(name) else { unreachable!("`{name}` is a count") };
        *count
    }

    /// A share parameter; panics as [`Point::size`] does.
    pub fn share(&self, name: &str) -> f64 {
        let Value::Share(share) = self.value(name) else { unreachable!("`{name}` is a share") };
        *share
    }

    /// A number parameter; panics as [`Point::size`] does.
    pub fn number(&self, name: &str) -> f64 {
        let Value::Number(number) = self.value(name) else { unreachable!("`{name}` is a number") };
        *number
    }

    /// A duration parameter; panics as [`Point::size`] does.
    pub fn time(&self, name: &str) -> Nanos {
        let Value::Time(time) = self.value(name) else { unreachable!("`{name}` is a duration") };
        *time
    }

    /// A text parameter; panics as [`Point::size`] does.
    pub fn text(&self, name: &str) -> &str {
        let Value::Text(text) = self.value(name) else { unreachable!("`{name}` is a text") };
        text
    }

    /// A flag parameter; panics as [`Point::size`] does.
    pub fn flag(&self, name: &str) -> bool {
        let Value::Flag(flag) = self.value(name) else { unreachable!("`{name}` is a flag") };
        *flag
    }

    /// A word parameter; panics as [`Point::size`] does.
    pub fn word(&self, name: &str) -> &str {
        let Value::Word(word) = self.value(name) else { unreachable!("`{name}` is a word") };
        word
    }

    /// Sets parameters back to what they are in `defaults`: those without effect at this point, so
    /// that equal work has equal names.
    pub fn settle(&mut self, defaults: &Self, idle: &[&str]) {
        for name in idle {
            self.parameters.insert((*name).to_owned(), defaults.value(name).clone());
        }
    }

    /// A list parameter; panics as [`Point::size`] does.
    pub fn words(&self, name: &str) -> &[String] {
        let Value::Words(words) = self.value(name) else { unreachable!("`{name}` is a list") };
        words
    }
}

#[cfg(test)]
mod tests;
