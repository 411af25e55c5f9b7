//! Statements about cells that can be read in several ways.

use super::{Judged, Part, Ruling, judge::Judge};

/// Maximum number of combinations of readings that are tried. If there are more, only one cell at a
/// time, or all cells together, are read in another way.
const COMBINATIONS: usize = 64;

impl Judge<'_> {
    /// Checks a part with each combination of readings of its cells. The part cannot be tested if
    /// the results differ.
    pub(super) fn under_each_reading(&mut self, part: &Part) -> Judged {
        let likeliest = self.part(part);
        let cells = match self.about(part) {
            Ok(cells) if likeliest.ruling != Ruling::NotTestable => cells,
            Ok(_) | Err(_) => return likeliest,
        };
        let all = &self.printed.ambiguous;
        let several = |cell: usize| Some((cell, all.get(&cell)?.as_slice()));
        let several: Vec<(usize, &[f64])> = cells.into_iter().filter_map(several).collect();
        for readings in combinations(&several) {
            for (cell, value) in &readings {
                self.values[*cell] = Some(*value);
            }
            let ruling = self.part(part).ruling;
            for (cell, _) in &readings {
                self.values[*cell] = self.printed.values[*cell];
            }
            if ruling != likeliest.ruling {
                let (cell, other) = readings[0];
                let text = self.printed.cells[cell].printed.trim();
                let own = self.printed.values[cell].unwrap_or(other);
                let more = if readings.len() > 1 { ", and on similar cells" } else { "" };
                let reason =
                    format!("the result depends on whether \"{text}\" is {own} or {other}{more}");
                return Judged {
                    ruling: Ruling::NotTestable,
                    places: Vec::new(),
                    absent: Some(reason),
                };
            }
        }
        likeliest
    }
}

/// Combinations of readings that differ from the most likely ones, for one cell or several; single
/// cells first.
fn combinations(several: &[(usize, &[f64])]) -> Vec<Vec<(usize, f64)>> {
    let of = |(cell, others): &(usize, &[f64])| {
        others.iter().map(|other| vec![(*cell, *other)]).collect::<Vec<_>>()
    };
    let mut found: Vec<Vec<(usize, f64)>> = several.iter().flat_map(of).collect();
    let count = several.iter().map(|(_, others)| others.len() + 1);
    if count.fold(1, usize::saturating_mul) <= COMBINATIONS {
        let mut all = vec![Vec::new()];
        for (cell, others) in several {
            let longer = |begun: &Vec<(usize, f64)>| {
                let with = |other: &f64| [&begun[..], &[(*cell, *other)]].concat();
                others.iter().map(with).collect::<Vec<_>>()
            };
            let next: Vec<_> = all.iter().flat_map(longer).collect();
            all.extend(next);
        }
        found.extend(all.into_iter().filter(|readings| readings.len() > 1));
    } else {
        let most = several.iter().map(|(_, others)| others.len()).max().unwrap_or(0);
        for rank in 0..most {
            let ranked = several.iter().filter_map(|(cell, o)| Some((*cell, *o.get(rank)?)));
            found.push(ranked.collect());
        }
    }
    found
}
