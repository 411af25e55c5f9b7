//! Content of written blocks.

use model::phase::DataPattern;

use super::{job::Section, values::Base};

/// Longest pattern in bytes, the limit of fio.
const LONGEST: usize = 512;

/// Bytes of a pattern in hexadecimal form: numbers in hexadecimal or decimal form, and text in
/// quotes, one after the other.
pub(super) fn read_pattern(text: &str, _: Base) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        rest = part(rest, &mut bytes)?;
    }
    if bytes.is_empty() || bytes.len() > LONGEST {
        return Err(format!("`{text}` is not a pattern of 1 to {LONGEST} bytes"));
    }
    Ok(format!("0x{}", hex::encode(bytes)))
}

/// Adds the bytes of the first part of a pattern, and returns the rest.
fn part<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Result<&'a str, String> {
    let bad = || format!("`{text}` is not a number or a text in quotes");
    if let Some(inner) = text.strip_prefix('"') {
        let (inner, rest) = inner.split_once('"').ok_or("the quote `\"` is missing")?;
        bytes.extend(inner.bytes());
        return Ok(rest);
    }
    if text.starts_with('\'') {
        return Err("patterns from files are not supported; write the bytes".into());
    }
    if text.starts_with('%') {
        return Err("formats such as %o are not supported; use verify, whose headers contain the \
                    offset"
            .into());
    }
    if let Some(digits) = text.strip_prefix("0x") {
        let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
        let (digits, rest) = digits.split_at(end);
        let even = if digits.len().is_multiple_of(2) { "" } else { "0" };
        let digits = format!("{even}{digits}");
        if digits.is_empty() {
            return Err(bad());
        }
        for pair in digits.as_bytes().chunks(2) {
            let pair = std::str::from_utf8(pair).map_err(|_| bad())?;
            bytes.push(u8::from_str_radix(pair, 16).map_err(|_| bad())?);
        }
        return Ok(rest);
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let number: i32 = digits.parse().map_err(|_| bad())?;
    // The least significant byte is the first one. Zeros at the end are left out.
    let own = number.to_le_bytes();
    let used = own.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    bytes.extend(&own[..used]);
    Ok(rest)
}

impl Section {
    /// Bytes that are repeated in written blocks; empty without a pattern.
    pub(super) fn content(&self) -> Vec<u8> {
        let text = match self.text("buffer_pattern") {
            "" => self.text("verify_pattern"),
            text => text,
        };
        let digits = text.trim_start_matches("0x").as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        digits.chunks(2).filter_map(byte).collect()
    }

    /// Content without the pattern.
    pub(super) fn data(&self) -> DataPattern {
        let percent = |name: &str| super::phases::share(self.number(name));
        let constant = self.flag("zero_buffers") || !self.content().is_empty();
        let compressible = if constant { 1.0 } else { percent("buffer_compress_percentage") };
        DataPattern::Random {
            incompressible_fraction: 1.0 - compressible,
            duplicate_fraction: percent("dedupe_percentage"),
        }
    }

    /// Contradictions of options of the content: option and message.
    pub(super) fn check_content(&self) -> Option<(&'static str, &'static str)> {
        let [own, other] = ["buffer_pattern", "verify_pattern"];
        let name = if self.text(own).is_empty() { other } else { own };
        if self.text(name).is_empty() {
            return None;
        }
        if name == own && !self.text(other).is_empty() && self.text(other) != self.text(own) {
            return Some((other, "buffer_pattern and verify_pattern differ; remove one"));
        }
        let others = ["buffer_compress_percentage", "dedupe_percentage", "zero_buffers"];
        let excluded = others.iter().any(|name| self.number(name) > 0);
        let message = "a pattern excludes zero_buffers, buffer_compress_percentage, and \
                       dedupe_percentage; remove it, or them";
        excluded.then_some((name, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_the_bytes_of_fio() {
        for (text, bytes) in [
            ("0xdeadface", "0xdeadface"),
            ("0xabc", "0x0abc"),
            ("\"abcd\"", "0x61626364"),
            ("-10", "0xf6ffffff"),
            ("10", "0x0a"),
            ("300", "0x2c01"),
            ("0", "0x00"),
            ("\"ab\"0xff12", "0x6162ff12"),
            ("\"a\"-1\"b\"", "0x61ffffffff62"),
        ] {
            assert_eq!(read_pattern(text, Base::Binary).as_deref(), Ok(bytes), "{text}");
            assert_eq!(read_pattern(bytes, Base::Binary).as_deref(), Ok(bytes));
        }
        for text in ["", "0x", "abc", "\"a", "'file'", "%o", "99999999999", "é", "1-2"] {
            assert!(read_pattern(text, Base::Binary).is_err(), "{text}");
        }
    }
}
