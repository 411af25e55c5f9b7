//! Order of a section: holes, runs, and distributions of random offsets.

use model::phase::{AccessPattern, Jump, Zone};

use super::{
    job::Section,
    values::{self, Base, MOST, number, word},
};

/// Direction and order, with holes (`read:8k`) or runs (`randread:8`).
pub(super) fn read_direction(text: &str, base: Base) -> Result<String, String> {
    if text.contains("trim") {
        return Err("files cannot be trimmed; remove the section, or use `section` to select \
                    others"
            .into());
    }
    let (name, suffix) =
        text.split_once(':').map_or((text, None), |(name, suffix)| (name, Some(suffix.trim())));
    let known = [
        ("read", "read"),
        ("write", "write"),
        ("randread", "randread"),
        ("randwrite", "randwrite"),
        ("rw", "rw"),
        ("readwrite", "rw"),
        ("randrw", "randrw"),
    ];
    let name = word(name, &known)?;
    let Some(suffix) = suffix else { return Ok(name) };
    let suffix = if name.starts_with("rand") {
        number(suffix, 1, MOST)?
    } else {
        let (sign, size) = suffix.strip_prefix('-').map_or(("", suffix), |size| ("-", size));
        match values::size(size, base)? {
            0 => "0".into(),
            size => format!("{sign}{size}"),
        }
    };
    // Holes of no bytes, and runs of one operation.
    let is_default = suffix == if name.starts_with("rand") { "1" } else { "0" };
    Ok(if is_default { name } else { format!("{name}:{suffix}") })
}

pub(super) fn read_sequencer(text: &str, _: Base) -> Result<String, String> {
    word(text, &[("sequential", "sequential"), ("identical", "identical")])
}

pub(super) fn read_percentages(text: &str, _: Base) -> Result<String, String> {
    values::directions(text, "100", |part| number(part, 0, 100))
}

/// Distribution of random offsets. Zones have a list for reads and another one for writes.
pub(super) fn read_distribution(text: &str, base: Base) -> Result<String, String> {
    let text = text.trim();
    let (name, value) =
        text.split_once(':').map_or((text, None), |(own, value)| (own, Some(value.trim())));
    if let "zoned" | "zoned_abs" = name {
        let value = value.ok_or_else(|| format!("`{name}` has no zones"))?;
        if value.split(',').any(|part| part.trim().is_empty()) {
            return Err(format!("`{text}` has a direction without zones"));
        }
        let list = |part: &str| {
            let part = part.strip_prefix(name).map_or(part, |part| part.trim_start_matches(':'));
            Ok(format!("{name}:{}", zones(part, name == "zoned_abs", base)?))
        };
        return values::directions(value, "", list);
    }
    let bad = || {
        format!("`{text}` is not random, zipf:THETA, pareto:H, normal:DEVIATION, or zoned:ZONES")
    };
    if value.is_some_and(|value| value.contains(':')) {
        return Err(
            "a center of the distribution is not supported; remove the second number".into()
        );
    }
    let value = value.map(|value| value.parse::<f64>().map_err(|_| bad())).transpose()?;
    match (name, value) {
        ("random", None) => Ok("random".into()),
        ("zipf", theta) => match theta.unwrap_or(1.1) {
            theta if (0.0..=10.0).contains(&theta) => Ok(format!("zipf:{theta}")),
            _ => Err("theta of zipf is not from 0 to 10".into()),
        },
        ("pareto", share) => match share.unwrap_or(0.2) {
            share if share > 0.0 && share < 0.5 => Ok(format!("pareto:{share}")),
            _ => Err("h of pareto is not between 0 and 0.5".into()),
        },
        ("normal" | "gauss", Some(deviation)) if (0.0..=100.0).contains(&deviation) => {
            Ok(format!("normal:{deviation}"))
        }
        ("normal" | "gauss", _) => Err("the deviation of normal is not from 0 to 100".into()),
        _ => Err(bad()),
    }
}

/// Accesses and space of a zone, as far as they are given.
type Shares = (Option<u64>, Option<u64>);

/// Zones `60/10:40/90`: percentages of the accesses, and of the file or sizes. Missing parts are
/// split evenly.
fn zones(text: &str, sized: bool, base: Base) -> Result<String, String> {
    let mut all: Vec<Shares> = Vec::new();
    let percent = |text: &str| number(text, 0, 100)?.parse::<u64>().map_err(|own| own.to_string());
    for entry in text.split(':').map(str::trim) {
        let (visits, space) = entry.split_once('/').unwrap_or((entry, ""));
        let [visits, space] = [visits.trim(), space.trim()];
        let given = |text: &str, read: &dyn Fn(&str) -> Result<u64, String>| match text {
            "" => Ok(None),
            text => read(text).map(Some),
        };
        let of_size = |text: &str| values::size(text, base);
        let space = given(space, if sized { &of_size } else { &percent })?;
        all.push((given(visits, &percent)?, space));
    }
    if all.len() > 256 {
        return Err("more than 256 zones".into());
    }
    let filled = |own: fn(&Shares) -> Option<u64>, name: &str| {
        let given: u64 = all.iter().filter_map(own).sum();
        let open = all.iter().filter(|zone| own(zone).is_none()).count() as u64;
        if given > 100 || (open == 0 && given != 100) {
            return Err(format!(
                "the percentages of {name} in `{text}` are {given} in total; use 100"
            ));
        }
        let rest = (100 - given).checked_div(open).unwrap_or(0);
        Ok(all.iter().map(|zone| own(zone).unwrap_or(rest)).collect::<Vec<_>>())
    };
    let visits = filled(|zone| zone.0, "the accesses")?;
    let space = match sized {
        false => filled(|zone| zone.1, "the file")?,
        true => {
            let missing = || format!("a zone of `{text}` has no size; add it");
            all.iter().map(|zone| zone.1.ok_or_else(missing)).collect::<Result<_, _>>()?
        }
    };
    let pairs = visits.iter().zip(&space).map(|(visits, space)| format!("{visits}/{space}"));
    Ok(pairs.collect::<Vec<_>>().join(":"))
}

impl Section {
    /// Direction and order without holes and runs.
    pub(super) fn kind(&self) -> &str {
        self.text("rw").split(':').next().unwrap_or_default()
    }

    /// Distance in bytes between the end of an operation and the start of the next one, for
    /// sequential sections.
    pub(super) fn hole(&self) -> i64 {
        let suffix = self.text("rw").split_once(':').map(|(_, suffix)| suffix);
        suffix.filter(|_| !self.is_random()).and_then(|own| own.parse().ok()).unwrap_or(0)
    }

    /// Selection of the operations that jump, for random sections with runs.
    pub(super) fn jump(&self) -> Option<Jump> {
        if !self.is_random() {
            return None;
        }
        if let Some((_, every)) = self.text("rw").split_once(':') {
            let every = every.parse().unwrap_or(1);
            return Some(match self.text("rw_sequencer") {
                "identical" => Jump::EveryRepeated(every),
                _ => Jump::Every(every),
            });
        }
        match self.by_direction("percentage_random").unwrap_or("100") {
            "100" => None,
            percent => Some(Jump::Chance(percent.parse::<f64>().unwrap_or(100.0) / 100.0)),
        }
    }

    /// True for holes in a part that reaches the end of the file, of which one pass at most is
    /// accessed. In fio, the end of the file ends a pass, and not that of the part (traced).
    fn has_holes_to_the_end(&self) -> bool {
        let (block, _) = self.block_sizes();
        let Ok(hole) = u64::try_from(self.hole()) else { return false };
        let operations = (self.region_size() / block).saturating_sub(1) / (1 + hole / block) + 1;
        let amount = self.number("io_size").saturating_mul(self.number("loops"));
        let fits = amount > 0 && amount.div_ceil(block) <= operations;
        fits && !self.flag("time_based") && self.reaches_the_end()
    }

    /// Order of offsets.
    pub(super) fn pattern(&self) -> AccessPattern {
        let (block, _) = self.block_sizes();
        let block = i64::try_from(block).unwrap_or(i64::MAX);
        if !self.is_random() {
            let both = self.is_mixed() && (1..100).contains(&self.read_percent());
            return match self.hole() {
                0 if both => AccessPattern::SequentialPerDirection,
                0 => AccessPattern::Sequential,
                hole => AccessPattern::Skip { blocks: hole / block },
            };
        }
        if let Some(jump) = self.jump() {
            return AccessPattern::Runs { jump, unique: !self.flag("norandommap") };
        }
        let value = |text: &str| text.parse().unwrap_or(0.0);
        match self.by_direction("random_distribution").and_then(|own| own.split_once(':')) {
            Some(("zipf", theta)) => AccessPattern::Zipf { theta: value(theta) },
            Some(("pareto", share)) => AccessPattern::Pareto { share: value(share) },
            Some(("normal", deviation)) => {
                // fio uses at most half of the file.
                AccessPattern::Normal { deviation: f64::min(value(deviation) / 100.0, 0.5) }
            }
            Some(("zoned" | "zoned_abs", _)) => AccessPattern::Zones,
            _ if self.flag("norandommap") || self.alignment().is_some() => AccessPattern::Random,
            _ => AccessPattern::Permutation,
        }
    }

    /// Zones of the accessed part of a file, in blocks.
    pub(super) fn zones(&self) -> Vec<Zone> {
        let block = self.alignment().unwrap_or_else(|| self.block_sizes().0);
        let blocks = self.region_size() / block;
        let Some((name, list)) =
            self.by_direction("random_distribution").and_then(|own| own.split_once(':'))
        else {
            return Vec::new();
        };
        let pair = |entry: &str| {
            let (visits, space) = entry.split_once('/')?;
            Some((visits.parse::<u32>().ok()?, space.parse::<u64>().ok()?))
        };
        let pairs = list.split(':').filter_map(pair);
        match name {
            "zoned_abs" => {
                let zone = |(weight, size): (u32, u64)| Zone { weight, blocks: size / block };
                pairs.map(zone).collect()
            }
            "zoned" => {
                let border = |percent: u64| {
                    let border = u128::from(blocks) * u128::from(percent.min(100)) / 100;
                    u64::try_from(border).unwrap_or(blocks)
                };
                let mut percent = 0;
                pairs
                    .map(|(weight, space)| {
                        let start = border(percent);
                        percent += space;
                        Zone { weight, blocks: border(percent) - start }
                    })
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// Problems of offsets with an alignment, by `ba` or `bs_is_seq_rand`: option and message.
    fn check_alignment(&self) -> Option<(&'static str, &'static str)> {
        let by_sizes = self.flag("bs_is_seq_rand");
        if by_sizes && self.is_random() {
            let message = match () {
                () if self.is_mixed() => "random mixed sections have one kind of sizes; remove it",
                () if self.text("ba") != "0" => "it determines the alignment; remove ba",
                () if self.alignment().is_some() && !self.flag("norandommap") => {
                    "with different sizes, fio ends a pass before each block was accessed; add \
                     norandommap=1"
                }
                () => "",
            };
            if !message.is_empty() {
                return Some(("bs_is_seq_rand", message));
            }
        }
        let alignment = self.alignment()?;
        let name = if by_sizes { "bs_is_seq_rand" } else { "ba" };
        let message = match () {
            () if self.region_size() < alignment => {
                "the accessed part of the file is smaller; use a larger size"
            }
            () if self.jump().is_some() && !by_sizes => {
                "runs and percentage_random are not aligned here; remove ba"
            }
            () if self.file_count() > 1 => {
                "an alignment requires one file per worker; remove nrfiles"
            }
            () if self.verifies() => "overlapping blocks cannot be verified; remove this or verify",
            () => return None,
        };
        Some((name, message))
    }

    /// Problems of the order: option and message.
    pub(super) fn check_order(&self) -> Option<(&'static str, &'static str)> {
        let (block, _) = self.block_sizes();
        if self.by_direction("random_distribution").is_none() {
            return Some((
                "random_distribution",
                "reads and writes of a mixed section have the same zones here; use two sections",
            ));
        }
        if self.by_direction("ba").is_none() {
            let message = "reads and writes of a mixed section have the same alignment here; use \
                           two sections";
            return Some(("ba", message));
        }
        if let Some(problem) = self.check_alignment() {
            return Some(problem);
        }
        if self.by_direction("percentage_random").is_none() {
            let message = "reads and writes of a mixed section have the same percentage here; use \
                           two sections";
            return Some(("percentage_random", message));
        }
        let (hole, jump) = (self.hole(), self.jump());
        if hole == 0 && jump.is_none() {
            let empty = self.pattern() == AccessPattern::Zones
                && self.zones().iter().all(|zone| zone.blocks == 0 || zone.weight == 0);
            let message = "no zone with accesses has a whole block; use larger zones";
            return empty.then_some(("random_distribution", message));
        }
        if self.is_mixed() {
            return Some((
                "rw",
                "holes and runs of mixed sections are not supported; use two sections",
            ));
        }
        if self.file_count() > 1 {
            return Some(("rw", "holes and runs require one file per worker; remove nrfiles"));
        }
        if !hole.unsigned_abs().is_multiple_of(block) {
            return Some(("rw", "the hole is not a multiple of the block size; change it"));
        }
        let whole = self.offset() == 0
            && self.number("offset_increment") == 0
            && self.region_size() == self.file_size();
        if hole != 0 && !whole && !self.has_holes_to_the_end() {
            let message = "holes require that the section accesses the whole file, or once a part \
                           that reaches its end; set io_size, or remove offset, offset_increment, \
                           or filesize";
            return Some(("rw", message));
        }
        if jump.is_some() && self.text("random_distribution") != "random" {
            let message = "runs and percentage_random require random_distribution=random";
            return Some(("random_distribution", message));
        }
        if self.text("rw").contains(':') && self.text("percentage_random") != "100" {
            return Some(("percentage_random", "runs and percentage_random exclude each other"));
        }
        None
    }
}
