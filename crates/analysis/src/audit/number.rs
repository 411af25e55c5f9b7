//! Syntax of printed numbers, and possible values of malformed ones.
//!
//! Well-formed numbers are `-1234.5`, `1,234.50`, and `1.2e6`: an optional sign, digits without
//! separators or with commas between groups of three, and at most one decimal point. Texts such as
//! `1234,5` and `1.234.567` are read as numbers and reported. In addition, thousands separators and
//! the number of decimal places are compared with those of the other numbers.

/// Fraction of the numbers of a column that must agree to determine its style.
const USUAL: f64 = 0.95;

/// Style of the numbers of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Number of decimal places, if almost all numbers have the same number and it is not zero.
    pub decimals: Option<usize>,
    /// True if almost all numbers of at least four digits before the decimal point have thousands
    /// separators.
    pub grouped: bool,
    /// True if more numbers require a decimal comma or points between thousands than require a
    /// decimal point or commas between thousands.
    pub comma: bool,
}

/// Error in the text of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not a number.
    NotANumber,
    /// No thousands separator, although the neighboring numbers have one.
    NoSeparator,
    /// A group of thousands does not have three digits.
    Group {
        /// Number of digits.
        digits: usize,
    },
    /// Comma instead of the decimal point.
    CommaForPoint,
    /// Point instead of a thousands separator.
    PointForComma,
    /// Number of decimal places that differs from that of the neighbors.
    Decimals {
        /// Decimal places of this text.
        found: usize,
        /// Decimal places of the neighbors.
        usual: usize,
    },
}

/// Possible values of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Errors; empty for a well-formed number.
    pub faults: Vec<Fault>,
    /// Possible values, most likely first; may be empty.
    pub candidates: Vec<f64>,
}

/// Groups of digits with the separators between them.
struct Groups<'a> {
    negative: bool,
    digits: Vec<&'a str>,
    separators: Vec<char>,
}

/// Splits a text that consists of digits, commas, and points.
fn split(text: &str) -> Option<Groups<'_>> {
    let (negative, body) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let known = |c: char| c.is_ascii_digit() || c == ',' || c == '.';
    if !body.chars().all(known) || !body.chars().any(|c| c.is_ascii_digit()) {
        return None;
    }
    let digits = body.split([',', '.']).collect();
    let separators = body.chars().filter(|c| !c.is_ascii_digit()).collect();
    Some(Groups { negative, digits, separators })
}

impl Groups<'_> {
    /// True if the last group follows a decimal point.
    fn has_point(&self) -> bool {
        self.separators.last() == Some(&'.')
    }

    /// Groups before the decimal point.
    fn whole(&self) -> &[&str] {
        &self.digits[..self.digits.len() - usize::from(self.has_point())]
    }

    /// Number of digits in the last group: the decimal places if the last separator is a decimal
    /// comma or point.
    fn last(&self) -> usize {
        self.digits[self.digits.len() - 1].len()
    }

    /// True if all separators except the last one are this one, with groups of three digits between
    /// them.
    fn thousands(&self, separator: char) -> bool {
        let count = self.separators.len().saturating_sub(1);
        self.separators[..count].iter().all(|own| *own == separator)
            && (1..=3).contains(&self.digits[0].len())
            && self.digits[1..=count].iter().all(|group| group.len() == 3)
    }

    /// True if points separate thousands before a decimal comma, or if several points separate
    /// thousands without a decimal comma.
    fn foreign(&self) -> bool {
        self.thousands('.')
            && match &self.separators[..] {
                [.., '.', ','] => self.last() > 0,
                [.., '.', '.'] => self.last() == 3,
                _ => false,
            }
    }

    /// Style that the text requires: `Some(true)` if a comma must be the decimal separator,
    /// `Some(false)` if a point must be. `None` if the text allows both.
    fn comma(&self) -> Option<bool> {
        match &self.separators[..] {
            [','] if !matches!(self.last(), 0 | 3) => Some(true),
            ['.'] if !matches!(self.last(), 0 | 3) => Some(false),
            [_, _, ..] if self.foreign() => Some(true),
            [.., ',', '.'] if self.thousands(',') => Some(false),
            [.., ',', ','] if self.thousands(',') && self.last() == 3 => Some(false),
            _ => None,
        }
    }

    fn decimals(&self) -> usize {
        if self.has_point() { self.digits[self.digits.len() - 1].len() } else { 0 }
    }
}

/// Style of the given texts. Texts that are not numbers are ignored.
pub fn style<'a>(texts: impl Iterator<Item = &'a str>) -> Style {
    let (mut places, mut all) = (std::collections::BTreeMap::new(), 0_u32);
    let (mut thousands, mut grouped) = (0_u32, 0_u32);
    let (mut commas, mut points) = (0_u32, 0_u32);
    for groups in texts.filter_map(|text| split(text.trim())) {
        all += 1;
        commas += u32::from(groups.comma() == Some(true));
        points += u32::from(groups.comma() == Some(false));
        *places.entry(groups.decimals()).or_insert(0_u32) += 1;
        let whole = groups.whole();
        if whole.len() > 1 || whole[0].len() > 3 {
            thousands += 1;
            grouped += u32::from(whole.len() > 1);
        }
    }
    let most = places.into_iter().max_by_key(|(_, count)| *count);
    let usual = |part: u32, all: u32| f64::from(part) >= USUAL * f64::from(all);
    Style {
        decimals: most.filter(|(n, count)| *n > 0 && usual(*count, all)).map(|(n, _)| n),
        grouped: thousands > 0 && usual(grouped, thousands),
        comma: commas > points,
    }
}

/// Reads a text in the style of its neighbors. Surrounding white space is ignored.
pub fn read(text: &str, style: &Style) -> Reading {
    let text = text.trim();
    let Some(groups) = split(text) else { return scientific(text) };
    if groups.foreign() || (style.comma && groups.separators.len() == 1 && groups.last() > 0) {
        return foreign(&groups, style);
    }
    let mut faults = Vec::new();
    let comma_for_point = !groups.separators.contains(&'.')
        && groups.separators.last() == Some(&',')
        && style.decimals.is_some_and(|usual| {
            usual != 3 && groups.digits.last().is_some_and(|last| last.len() == usual)
        });
    let mut whole = groups.whole();
    if comma_for_point {
        whole = &whole[..whole.len() - 1];
    }
    let inner = groups.separators.len().min(whole.len().saturating_sub(1));
    let points = groups.separators[..inner].contains(&'.');
    let behind = whole.iter().skip(1).filter(|group| group.len() != 3);
    faults.extend(behind.map(|group| Fault::Group { digits: group.len() }));
    if whole.len() > 1 && !(1..=3).contains(&whole[0].len()) {
        faults.push(Fault::Group { digits: whole[0].len() });
    }
    if comma_for_point {
        faults.push(Fault::CommaForPoint);
    } else if let Some(usual) = style.decimals.filter(|usual| *usual != groups.decimals()) {
        faults.push(Fault::Decimals { found: groups.decimals(), usual });
    }
    if points {
        faults.push(Fault::PointForComma);
    }
    if style.grouped && whole.len() == 1 && whole[0].len() > 3 {
        faults.push(Fault::NoSeparator);
    }
    let candidates = candidates(&groups, style, comma_for_point, &faults);
    Reading { faults, candidates }
}

/// Reads a text with points between thousands or with a decimal comma, or an ambiguous text among
/// such neighbors. The second candidate is the reading in the other style, unless the text and its
/// neighbors require the first one.
fn foreign(groups: &Groups<'_>, style: &Style) -> Reading {
    let all = groups.digits.concat();
    let of = |places| value(&all, places, groups.negative);
    let comma = groups.separators.last() == Some(&',');
    let points = groups.separators.contains(&'.');
    let whole = !comma && points && groups.last() == 3 && groups.thousands('.');
    if !comma && !whole {
        // The point is a decimal point, regardless of the neighbors.
        return Reading { faults: Vec::new(), candidates: of(groups.last()).into_iter().collect() };
    }
    let mut faults = Vec::new();
    if comma {
        faults.push(Fault::CommaForPoint);
    }
    if points {
        faults.push(Fault::PointForComma);
    }
    let own = of(if comma { groups.last() } else { 0 });
    let other = of(if comma { 0 } else { groups.last() });
    let certain = style.comma && groups.comma() == Some(true);
    // If the neighbors have a decimal point with the same number of places, the last of several
    // points is a decimal point.
    let swapped = !comma && !style.comma && style.decimals == Some(groups.last());
    let both = if swapped { [other, own] } else { [own, other.filter(|_| !certain)] };
    Reading { faults, candidates: both.into_iter().flatten().collect() }
}

/// Reads a number with an exponent.
fn scientific(text: &str) -> Reading {
    let known = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
    match value.filter(|_| text.chars().all(known)) {
        Some(value) => Reading { faults: Vec::new(), candidates: vec![value] },
        None => Reading { faults: vec![Fault::NotANumber], candidates: Vec::new() },
    }
}

/// Possible values of a malformed number, most likely first. The first ones contain all digits:
/// with a decimal comma if possible, and with the usual number of decimal places. If a group has
/// one digit too many, as in `1,2345`, the values without one of the digits of this group follow.
fn candidates(groups: &Groups<'_>, style: &Style, comma: bool, faults: &[Fault]) -> Vec<f64> {
    let own = if comma { groups.digits[groups.digits.len() - 1].len() } else { groups.decimals() };
    // The decimal point is moved only if a group has the wrong number of digits.
    let moved = faults.iter().any(|fault| matches!(fault, Fault::Group { .. }));
    let places = if moved { style.decimals.unwrap_or(own) } else { own };
    let mut values = Vec::new();
    let mut push = |digits: &str, places: usize| {
        if let Some(value) = value(digits, places, groups.negative)
            && !values.contains(&value)
        {
            values.push(value);
        }
    };
    let all = groups.digits.concat();
    // A last comma that is not followed by three digits may be a decimal comma. With four digits,
    // one digit too many is more likely, so the decimal comma is tried last.
    let last = groups.separators.last() == Some(&',') && groups.last() > 0 && groups.last() != 3;
    let last = last && groups.separators.iter().all(|own| *own == ',');
    if last && groups.last() != 4 {
        push(&all, groups.last());
    }
    push(&all, places);
    let mut start = 0;
    for (index, group) in groups.digits.iter().enumerate() {
        let behind_point = groups.has_point() && index + 1 == groups.digits.len();
        if index > 0 && !behind_point && group.len() == 4 {
            for at in start..start + group.len() {
                push(&[&all[..at], &all[at + 1..]].concat(), own);
            }
        }
        start += group.len();
    }
    if last {
        push(&all, groups.last());
    }
    values
}

/// Value of digits with a decimal point before the last `places` digits; `None` if there are fewer
/// digits.
fn value(digits: &str, places: usize, negative: bool) -> Option<f64> {
    let whole = digits.len().checked_sub(places)?;
    let text =
        format!("{}0{}.{}0", if negative { "-" } else { "" }, &digits[..whole], &digits[whole..]);
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}

/// Decimal places of a text; 0 if it is not a number or has an exponent.
pub(super) fn places(text: &str) -> usize {
    split(text.trim()).map_or(0, |groups| groups.decimals())
}
