//! Text of findings and judgments.

use analysis::audit::{
    CHANCE, Cause, Chance, Fact, Finding, Judged, Location, LocationResult, NOISE, Parts, Ruling,
    number::Fault,
};

use super::Audit;

/// Maximum number of levels listed per fact.
const LEVELS: usize = 12;
/// Maximum number of contradicting locations that are named.
const NAMES: usize = 24;

/// Replaces control characters, which could affect a terminal or break the line.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Formats a number with thousands separators and up to two decimal places, or four below 1. Very
/// large and very small numbers have an exponent.
pub(super) fn figure(value: f64) -> String {
    let size = value.abs();
    if size >= 1e15 || (size > 0.0 && size < 1e-3) {
        return format!("{value:e}");
    }
    let text = if size < 1.0 { format!("{value:.4}") } else { format!("{value:.2}") };
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let decimals = decimals.trim_end_matches('0');
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |rest| ("-", rest));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let point = if decimals.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{decimals}")
}

/// Formats a fraction as a signed percentage.
fn percent(share: f64) -> String {
    match share.abs() < 0.001 {
        true => format!("{:+.3} %", share * 100.0),
        false => format!("{:+.1} %", share * 100.0),
    }
}

fn p_value(p: f64) -> String {
    if p < 1e-4 { "p < 0.0001".into() } else { format!("p = {p:.2}") }
}

/// Name of a ruling.
pub(super) const fn ruling(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Holds => "holds",
        Ruling::InPart => "in part",
        Ruling::Contradicted => "contradicted",
        Ruling::NotTestable => "not testable",
    }
}

impl Audit {
    /// Name of a cell: its coordinates in the order of the columns, the location last.
    pub(super) fn cell(&self, cell: usize) -> String {
        self.location(&self.table.cells[cell].at)
    }

    pub(super) fn location(&self, at: &Location) -> String {
        let place = |name: &&String| self.layout.place.contains(name);
        let level = |name: &String| at.get(name).filter(|level| !level.is_empty());
        let own = self.table.columns.iter().filter(|name| !place(name)).filter_map(level);
        let own: Vec<String> = own.map(|level| plain(level)).collect();
        let stands = self.table.columns.iter().filter(place);
        let stands = stands.filter_map(|name| Some(format!("{name} {}", plain(level(name)?))));
        let stands: Vec<String> = stands.collect();
        match stands.is_empty() {
            true => own.join(" "),
            false => format!("{} ({})", own.join(" "), stands.join(", ")),
        }
    }

    fn printed(&self, cell: usize) -> String {
        plain(&self.table.cells[cell].printed)
    }

    /// Sentence that describes a finding.
    pub(super) fn sentence(&self, finding: &Finding) -> String {
        match finding {
            Finding::Malformed { cell, faults, reading, others, confirmed } => {
                let faults: Vec<String> = faults.iter().map(fault).collect();
                let read = match reading {
                    Some(value) => format!("read as {}", figure(*value)),
                    None => "skipped".into(),
                };
                let source = confirmed.map(|cell| format!(", as in {}", self.cell(cell)));
                let others: Vec<String> = others.iter().take(3).map(|v| figure(*v)).collect();
                let others = match others.is_empty() || confirmed.is_some() {
                    true => String::new(),
                    false => format!("; possibly {}", others.join(" or ")),
                };
                format!(
                    "{}: \"{}\": {}; {read}{}{others}",
                    self.cell(*cell),
                    self.printed(*cell),
                    faults.join(", "),
                    source.unwrap_or_default()
                )
            }
            Finding::Conflicting { first, second, difference, reason } => format!(
                "{}: {}, but {} in {} ({}); {}",
                self.cell(*second),
                self.printed(*second),
                self.printed(*first),
                self.cell(*first),
                percent(*difference),
                self.cause(reason)
            ),
            Finding::Duplicated { first, second, whole, .. } => format!(
                "{} = {}: {}{}",
                self.cell(*first),
                self.cell(*second),
                self.printed(*first),
                if *whole { "; the whole cell is identical" } else { "" }
            ),
            Finding::DuplicateTest(chance) => self.chance(chance),
            Finding::MissingCell { at } => format!("no cell for {}", self.location(at)),
            Finding::Granular { statistic, parts, values } => {
                let of = if statistic.is_empty() { "numbers" } else { statistic };
                format!("all {values} {} {}", plain(of), endings(parts))
            }
        }
    }

    fn cause(&self, cause: &Cause) -> String {
        match cause {
            Cause::OneDigit { .. } => "one digit differs".into(),
            Cause::Swapped { .. } => "two digits are swapped".into(),
            Cause::SecondIsOf { cell } => format!("this is the value of {}", self.cell(*cell)),
            Cause::FirstIsOf { cell } => {
                format!(
                    "the first value is that of {}, so this one is more likely",
                    self.cell(*cell)
                )
            }
            Cause::Unknown => "unknown reason".into(),
        }
    }

    fn chance(&self, chance: &Chance) -> String {
        let coordinates = self.layout.repeats[chance.shared].join(" and ");
        let of = if chance.statistic.is_empty() { "numbers" } else { &chance.statistic };
        let count =
            |(equal, pairs): (u64, u64)| format!("{equal} of {} pairs", figure(pairs as f64));
        let verdict = match chance.p < CHANCE {
            true => "unlikely by chance",
            false => "possibly by chance, not listed",
        };
        let p = match chance.p < CHANCE {
            true => format!("p = {:.0e}", chance.p),
            false => format!("p = {:.2}", chance.p),
        };
        format!(
            "{} are equal in {} with common {} ({} expected by chance), and in {} without: \
             {verdict} ({p})",
            plain(of),
            count(chance.sharing),
            plain(&coordinates),
            figure(chance.expected),
            count(chance.apart)
        )
    }

    /// Ruling of a part, and the deciding numbers: those of the first `most` locations that
    /// contradict it, or of one location at which it holds.
    pub(super) fn judged(&self, judged: &Judged, most: usize) -> Vec<String> {
        if let (true, Some(reason)) = (judged.places.is_empty(), &judged.absent) {
            return vec![format!("not testable: {}", plain(reason))];
        }
        let of = |held: Option<bool>| judged.places.iter().filter(move |at| at.holds == held);
        let (yes, no, open) = (of(Some(true)), of(Some(false)), of(None));
        let mut lines = Vec::new();
        let counts = (yes.clone().count(), no.clone().count(), open.count());
        let noise = match judged.within_noise() {
            Some(true) => ", but within noise",
            Some(false) | None => "",
        };
        let mut head = format!("{}{noise}", ruling(judged.ruling));
        let several = judged.places.len() > 1;
        if several {
            head.push_str(&format!(" at {} of {} locations", counts.0, judged.places.len()));
        }
        if counts.2 > 0 {
            head.push_str(&format!("; {} depend on duplicated cells", counts.2));
        }
        if several && counts.1 > 0 {
            let names: Vec<String> =
                no.clone().take(NAMES).map(|at| self.location(&at.at)).collect();
            let more = if counts.1 > NAMES { ", …" } else { "" };
            head.push_str(&format!("; not at {}{more}", names.join(", ")));
        }
        lines.push(head);
        let shown: Vec<&LocationResult> = match counts.1 {
            0 => yes.take(1).collect(),
            _ => no.take(most).collect(),
        };
        for at in shown {
            let place = self.location(&at.at);
            let place = if place.is_empty() { place } else { format!("{place}: ") };
            lines.push(format!("{place}{}", self.fact(at)));
        }
        lines
    }

    fn fact(&self, at: &LocationResult) -> String {
        let list = |levels: &[(String, f64)], separator: &str| {
            let level =
                |(name, value): &(String, f64)| format!("{} {}", plain(name), figure(*value));
            let mut texts: Vec<String> = levels.iter().take(LEVELS).map(level).collect();
            if levels.len() > LEVELS {
                texts.push("…".into());
            }
            texts.join(separator)
        };
        let text = match &at.fact {
            Fact::Ranked(levels) | Fact::Steps(levels) => list(levels, ", "),
            Fact::Factor(one, other, ratio) => {
                format!("{} is {ratio:.2} times as good as {}", plain(one), plain(other))
            }
            Fact::Change(from, to) => {
                let change = percent((to - from) / from);
                format!("{} → {}, {change}", figure(*from), figure(*to))
            }
            Fact::Gains(levels) => {
                let level =
                    |(name, gain): &(String, f64)| format!("{} {}", plain(name), percent(*gain));
                let texts: Vec<String> = levels.iter().take(LEVELS).map(level).collect();
                texts.join(", ")
            }
            Fact::Number(value, other) => {
                let place =
                    other.map(|cell| format!("; the quoted number is that of {}", self.cell(cell)));
                format!("the cells have {}{}", figure(*value), place.unwrap_or_default())
            }
            Fact::Count(found) => format!("the table has {found}"),
        };
        match at.p.filter(|p| *p > NOISE) {
            Some(p) => format!("{text} (within noise, {})", p_value(p)),
            None => text,
        }
    }
}

fn endings(parts: &Parts) -> String {
    match (parts.of, parts.cut) {
        (1, _) => "end in zeros: they are integers".into(),
        (of, Some(true)) => format!("have endings of means of {of} integers, truncated"),
        (of, Some(false) | None) => format!("have endings of means of {of} integers"),
    }
}

fn fault(fault: &Fault) -> String {
    match fault {
        Fault::NotANumber => "not a number".into(),
        Fault::NoSeparator => "no thousands separator".into(),
        Fault::Group { digits } => format!("group of {digits} digits instead of 3"),
        Fault::CommaForPoint => "comma instead of the decimal point".into(),
        Fault::PointForComma => "point instead of a comma".into(),
        Fault::Decimals { found, usual } => format!("{found} decimal places instead of {usual}"),
    }
}
