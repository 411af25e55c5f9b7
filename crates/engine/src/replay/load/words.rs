//! Words and numbers of a line.

use fastrand::Rng;

use super::problem::Problem;

/// Maximum number of words in a line.
const WORDS: usize = 19;

/// Words of one line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a> {
    words: [&'a [u8]; WORDS],
    count: usize,
}

impl<'a> Words<'a> {
    /// Splits a line at blanks. Text in double quotes is one word.
    pub(super) fn of(line: &'a [u8]) -> Result<Self, Problem> {
        let mut words = Self { words: [b""; WORDS], count: 0 };
        let mut rest = line;
        loop {
            let blanks = rest.iter().take_while(|byte| is_blank(**byte)).count();
            rest = &rest[blanks..];
            if rest.is_empty() {
                return Ok(words);
            }
            let (word, after) = word(rest)?;
            let slot = words.words.get_mut(words.count).ok_or_else(|| {
                Problem::new(
                    format!("the line has more than {WORDS} words"),
                    "quote names with blanks",
                )
            })?;
            *slot = word;
            words.count += 1;
            rest = after;
        }
    }

    /// All words.
    pub(super) fn all(&self) -> &[&'a [u8]] {
        &self.words[..self.count]
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// First word of a text that does not begin with a blank, and the rest.
fn word(text: &[u8]) -> Result<(&[u8], &[u8]), Problem> {
    let quotes = "quote whole words, and close each quote";
    if let Some(quoted) = text.strip_prefix(b"\"") {
        let Some(end) = quoted.iter().position(|byte| *byte == b'"') else {
            return Err(Problem::new("a quote is not closed", quotes));
        };
        let after = &quoted[end + 1..];
        if after.first().is_some_and(|byte| !is_blank(*byte)) {
            return Err(Problem::new("a quote ends within a word", quotes));
        }
        return Ok((&quoted[..end], after));
    }
    let end = text.iter().position(|byte| is_blank(*byte)).unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    if word.contains(&b'"') {
        return Err(Problem::new("a quote begins within a word", quotes));
    }
    Ok((word, after))
}

/// Parses a number as strtoull(3) with base 0: `0x` for hexadecimal, `0` for octal, otherwise
/// decimal.
pub(super) fn number(word: &[u8]) -> Option<u64> {
    let (digits, base) = match word {
        [b'0', b'x' | b'X', digits @ ..] => (digits, 16),
        [b'0', digits @ ..] if !digits.is_empty() => (digits, 8),
        digits => (digits, 10),
    };
    if digits.is_empty() {
        return None;
    }
    digits_of(digits, base)
}

/// Parses a decimal number regardless of leading zeros; `None` without digits.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() { None } else { digits_of(digits, 10) }
}

fn digits_of(digits: &[u8], base: u32) -> Option<u64> {
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = char::from(*digit).to_digit(base)?;
        number.checked_mul(u64::from(base))?.checked_add(u64::from(digit))
    })
}

/// Parses a number or an expression of version 5: `*` is random, followed by any of `%n` (modulo),
/// `/n` (rounded down to a multiple), and `+n` (added), from left to right. A leading `+n` adds to
/// the number at the same position of the previous operation.
pub(super) fn value(word: &[u8], before: Option<u64>, random: &mut Rng) -> Result<u64, Problem> {
    if let Some(number) = number(word) {
        return Ok(number);
    }
    if let Some(more) = word.strip_prefix(b"+") {
        if more == b"child" || more == b"num_children" {
            return Err(Problem::new(
                format!("`{}` differs between clients", super::problem::shown(word)),
                "all clients share one sequence of operations; use client1 in names \
                 instead, which is replaced per client",
            ));
        }
        let wrong = || Problem::word(word, "a number", EXPRESSION);
        let more = number(more).ok_or_else(wrong)?;
        let before = before.ok_or_else(|| {
            Problem::new(
                "`+n` has no number at this position of the previous operation",
                EXPRESSION,
            )
        })?;
        return before.checked_add(more).ok_or_else(wrong);
    }
    let wrong = || Problem::word(word, "a number", EXPRESSION);
    let mut steps = word.strip_prefix(b"*").ok_or_else(wrong)?;
    let mut value = random.u64(..);
    while let Some((step, rest)) = steps.split_first() {
        let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let operand = number(&rest[..end]).ok_or_else(wrong)?;
        let next = match step {
            b'%' => value.checked_rem(operand),
            b'/' => value.checked_rem(operand).map(|beyond| value - beyond),
            b'+' => value.checked_add(operand),
            _ => None,
        };
        value = next.ok_or_else(wrong)?;
        steps = &rest[end..];
    }
    Ok(value)
}

const EXPRESSION: &str = "use decimal or hexadecimal (0x) numbers; version 5 also has * with %n, \
                          /n, and +n for random numbers, and a leading + for increments";

/// Parses a timestamp in seconds, such as `12.345`, to microseconds; further digits are ignored.
/// `None` if it is invalid or more than 31 years.
pub(super) fn timestamp(word: &[u8]) -> Option<u64> {
    let mut parts = word.splitn(2, |byte| *byte == b'.');
    let seconds = decimal(parts.next()?).filter(|seconds| *seconds < 1_000_000_000)?;
    let mut fraction = *b"000000";
    let digits = parts.next().unwrap_or(b"");
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    for (place, digit) in fraction.iter_mut().zip(digits) {
        *place = *digit;
    }
    Some(seconds * 1_000_000 + decimal(&fraction)?)
}
