//! Findings and judgments in words.

use analysis::audit::{
    AtPlace, CHANCE, Chance, Fact, Finding, Judged, NOISE, Parts, Place, Ruling, Why, number::Fault,
};

use super::Audit;

/// Levels of a fact that are named.
const LEVELS: usize = 12;
/// Places where a part does not hold that are named.
const NAMES: usize = 24;

/// Text that commands no terminal and stays in its line.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A number with thousands separated; digits behind the point only as far as they are needed.
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

/// A share as a signed percentage.
fn percent(share: f64) -> String {
    match share.abs() < 0.001 {
        true => format!("{:+.3} %", share * 100.0),
        false => format!("{:+.1} %", share * 100.0),
    }
}

fn p_value(p: f64) -> String {
    if p < 1e-4 { "p < 0.0001".into() } else { format!("p = {p:.2}") }
}

/// What a ruling is called.
pub(super) const fn ruling(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Holds => "holds",
        Ruling::InPart => "in part",
        Ruling::Contradicted => "contradicted",
        Ruling::NotTestable => "not testable",
    }
}

impl Audit {
    /// What a cell is: its coordinates in the order of the columns, the place last.
    pub(super) fn cell(&self, cell: usize) -> String {
        self.place(&self.table.cells[cell].at)
    }

    pub(super) fn place(&self, at: &Place) -> String {
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

    /// A finding in a sentence.
    pub(super) fn sentence(&self, finding: &Finding) -> String {
        match finding {
            Finding::Malformed { cell, faults, reading, others, confirmed } => {
                let faults: Vec<String> = faults.iter().map(fault).collect();
                let read = match reading {
                    Some(value) => format!("read as {}", figure(*value)),
                    None => "left out".into(),
                };
                let told = confirmed.map(|cell| format!(", as {} has it", self.cell(cell)));
                let others: Vec<String> = others.iter().take(3).map(|v| figure(*v)).collect();
                let others = match others.is_empty() || confirmed.is_some() {
                    true => String::new(),
                    false => format!("; may be {} as well", others.join(" or ")),
                };
                format!(
                    "{}: \"{}\": {}; {read}{}{others}",
                    self.cell(*cell),
                    self.printed(*cell),
                    faults.join(", "),
                    told.unwrap_or_default()
                )
            }
            Finding::Differs { first, second, difference, why } => format!(
                "{}: {}, but {} in {} ({}); {}",
                self.cell(*second),
                self.printed(*second),
                self.printed(*first),
                self.cell(*first),
                percent(*difference),
                self.why(why)
            ),
            Finding::Repeats { first, second, whole, .. } => format!(
                "{} = {}: {}{}",
                self.cell(*first),
                self.cell(*second),
                self.printed(*first),
                if *whole { "; the whole cell is the same" } else { "" }
            ),
            Finding::Repeated(chance) => self.chance(chance),
            Finding::Hole { at } => format!("there is no cell for {}", self.place(at)),
            Finding::Granular { statistic, parts, values } => {
                let of = if statistic.is_empty() { "numbers" } else { statistic };
                format!("all {values} {} {}", plain(of), endings(parts))
            }
        }
    }

    fn why(&self, why: &Why) -> String {
        match why {
            Why::OneDigit { .. } => "one digit differs".into(),
            Why::Swapped { .. } => "two digits are swapped".into(),
            Why::SecondIsOf { cell } => format!("that is the value of {}", self.cell(*cell)),
            Why::FirstIsOf { cell } => {
                format!("the earlier one is that of {}, so this is likelier", self.cell(*cell))
            }
            Why::Unknown => "no reason is seen".into(),
        }
    }

    fn chance(&self, chance: &Chance) -> String {
        let coordinates = self.layout.repeats[chance.shared].join(" and ");
        let of = if chance.statistic.is_empty() { "numbers" } else { &chance.statistic };
        let count =
            |(equal, pairs): (u64, u64)| format!("{equal} of {} pairs", figure(pairs as f64));
        let verdict = match chance.p < CHANCE {
            true => "chance is an unlikely cause",
            false => "chance may be the cause, so none is listed",
        };
        let p = match chance.p < CHANCE {
            true => format!("p = {:.0e}", chance.p),
            false => format!("p = {:.2}", chance.p),
        };
        format!(
            "{} are equal in {} that share {} (chance would give {}), and in \
             {} that do not: {verdict} ({p})",
            plain(of),
            count(chance.sharing),
            plain(&coordinates),
            figure(chance.expected),
            count(chance.apart)
        )
    }

    /// What a part comes to: its ruling, and numbers of the places that decide.
    pub(super) fn judged(&self, judged: &Judged, most: usize) -> Vec<String> {
        if let (true, Some(why)) = (judged.places.is_empty(), &judged.absent) {
            return vec![format!("not testable: {}", plain(why))];
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
            head.push_str(&format!(" at {} of {} places", counts.0, judged.places.len()));
        }
        if counts.2 > 0 {
            head.push_str(&format!("; {} rest on copied cells", counts.2));
        }
        if several && counts.1 > 0 {
            let names: Vec<String> = no.clone().take(NAMES).map(|at| self.place(&at.at)).collect();
            let more = if counts.1 > NAMES { ", …" } else { "" };
            head.push_str(&format!("; not at {}{more}", names.join(", ")));
        }
        lines.push(head);
        let shown: Vec<&AtPlace> = match counts.1 {
            0 => yes.take(1).collect(),
            _ => no.take(most).collect(),
        };
        for at in shown {
            let place = self.place(&at.at);
            let place = if place.is_empty() { place } else { format!("{place}: ") };
            lines.push(format!("{place}{}", self.fact(at)));
        }
        lines
    }

    fn fact(&self, at: &AtPlace) -> String {
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
            Fact::Number(value, elsewhere) => {
                let place =
                    elsewhere.map(|cell| format!("; the quoted one is {}", self.cell(cell)));
                format!("the cells say {}{}", figure(*value), place.unwrap_or_default())
            }
            Fact::Count(found) => format!("there are {found}"),
        };
        match at.p.filter(|p| *p > NOISE) {
            Some(p) => format!("{text} (within noise, {})", p_value(p)),
            None => text,
        }
    }
}

fn endings(parts: &Parts) -> String {
    match (parts.of, parts.cut) {
        (1, _) => "end in zeros, so they are whole numbers".into(),
        (of, Some(true)) => format!("end as means of {of} whole numbers do, cut and not rounded"),
        (of, Some(false) | None) => format!("end as means of {of} whole numbers do"),
    }
}

fn fault(fault: &Fault) -> String {
    match fault {
        Fault::NotANumber => "no number".into(),
        Fault::NoSeparator => "no comma between thousands".into(),
        Fault::Group { digits } => format!("a group of {digits} digits instead of 3"),
        Fault::CommaForPoint => "a comma where the point belongs".into(),
        Fault::PointForComma => "a point where a comma belongs".into(),
        Fault::Decimals { found, usual } => format!("{found} decimal places instead of {usual}"),
    }
}
