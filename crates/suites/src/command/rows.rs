//! Texts of the parameters: programs, variables, numbers, and logs of latencies.

use model::{
    phase::command::{
        Argv, LatencyLog, Number, NumberKind, OutputStream, PLACEHOLDERS, Pattern, fill,
    },
    words,
    workload::ValueError,
};

/// Nanoseconds per unit.
const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// Programs, one per line.
pub(super) fn programs(text: &str) -> Result<Vec<Argv>, ValueError> {
    let programs = words::split(text)?;
    for word in programs.iter().flatten() {
        check(word)?;
    }
    Ok(programs)
}

/// Checks the placeholders of a word.
fn check(word: &str) -> Result<(), ValueError> {
    let known = |name: &str| PLACEHOLDERS.contains(&name).then(String::new);
    fill(word, known).map(|_| ())
}

pub(super) fn read_programs(text: &str) -> Result<String, ValueError> {
    programs(text).map(|programs| words::join_lines(&programs))
}

pub(super) fn read_program(text: &str) -> Result<String, ValueError> {
    match &programs(text)?[..] {
        [_, second, ..] => {
            let second = words::join(second);
            Err(ValueError::new(format!("there is a second program, `{second}`")).hint("use one"))
        }
        programs => Ok(words::join_lines(programs)),
    }
}

pub(super) fn read_variables(text: &str) -> Result<String, ValueError> {
    let variables = programs(text)?.concat();
    for variable in &variables {
        match variable.split_once('=') {
            Some((name, _)) if !name.is_empty() && name != "LD_PRELOAD" => {}
            _ => {
                return Err(ValueError::new(format!("`{variable}` is not NAME=VALUE"))
                    .hint("use for example PGPORT=5433; LD_PRELOAD is not passed on"));
            }
        }
    }
    Ok(words::join(variables))
}

/// True for lower-case letters, digits, and dashes.
pub(super) fn is_name(text: &str) -> bool {
    let part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(part)
}

/// Row of `key=value` words.
struct Row(Vec<(String, String)>);

impl Row {
    /// Reads a row; `keys` are all known keys.
    fn read(line: &[String], keys: &[&str]) -> Result<Self, ValueError> {
        let pair = |word: &String| {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            match keys.contains(&key) {
                true => Ok((key.to_owned(), value.to_owned())),
                false => Err(ValueError::new(format!("unknown key `{key}`"))
                    .hint(format!("use {}", keys.join(", ")))),
            }
        };
        line.iter().map(pair).collect::<Result<_, _>>().map(Self)
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str())
    }

    fn required(&self, key: &str) -> Result<&str, ValueError> {
        self.get(key).ok_or_else(|| ValueError::new(format!("the table has no `{key}`")))
    }

    /// Value of a key with these values, by default the first.
    fn one_of<'a, T: Copy>(
        &self,
        key: &str,
        all: &[(&'a str, T)],
    ) -> Result<(&'a str, T), ValueError> {
        let Some(value) = self.get(key) else { return Ok(all[0]) };
        all.iter().find(|(name, _)| *name == value).copied().ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
            ValueError::new(format!("`{key}` is `{value}`"))
                .hint(format!("use {}", names.join(", ")))
        })
    }
}

/// Numbers, one per line.
pub(super) fn numbers(text: &str) -> Result<Vec<Number>, ValueError> {
    let numbers: Vec<Number> =
        words::split(text)?.iter().map(|line| number(line)).collect::<Result<_, _>>()?;
    let repeated = numbers
        .iter()
        .enumerate()
        .find(|(at, number)| numbers[..*at].iter().any(|other| other.name == number.name));
    match repeated {
        Some((_, number)) => Err(ValueError::new(format!("two numbers are `{}`", number.name))),
        None => Ok(numbers),
    }
}

fn number(line: &[String]) -> Result<Number, ValueError> {
    let row = Row::read(line, &["name", "is", "pattern", "from", "unit", "which"])?;
    row.required("is")?;
    let kinds = [
        ("rate", NumberKind::Rate),
        ("time", NumberKind::Time(1)),
        ("bytes", NumberKind::Bytes),
        ("count", NumberKind::Count),
    ];
    let kind = match row.one_of("is", &kinds)?.1 {
        NumberKind::Time(_) => {
            row.required("unit")?;
            NumberKind::Time(row.one_of("unit", &UNITS)?.1)
        }
        kind @ (NumberKind::Rate | NumberKind::Bytes | NumberKind::Count) => kind,
    };
    let name = row.required("name")?.to_owned();
    if !is_name(&name) || ["durable", "elapsed"].contains(&name.as_str()) {
        return Err(ValueError::new(format!("`{name}` is not a name of a number"))
            .hint("use lower-case letters, digits, and dashes"));
    }
    let streams = [("stdout", OutputStream::Stdout), ("stderr", OutputStream::Stderr)];
    Ok(Number {
        name,
        kind,
        from: row.one_of("from", &streams)?.1,
        pattern: Pattern::parse(row.required("pattern")?)?,
        last: row.one_of("which", &[("only", false), ("last", true)])?.1,
    })
}

/// Canonical text of numbers, without defaults.
pub(super) fn read_numbers(text: &str) -> Result<String, ValueError> {
    let line = |number: &Number| {
        let (is, unit) = match number.kind {
            NumberKind::Rate => ("rate", None),
            NumberKind::Bytes => ("bytes", None),
            NumberKind::Count => ("count", None),
            NumberKind::Time(unit) => ("time", Some(name_of(unit))),
        };
        let words = [
            Some(format!("name={}", number.name)),
            Some(format!("is={is}")),
            unit.map(|unit| format!("unit={unit}")),
            Some(format!("pattern={}", number.pattern.text())),
            (number.from == OutputStream::Stderr).then(|| "from=stderr".to_owned()),
            number.last.then(|| "which=last".to_owned()),
        ];
        words.into_iter().flatten().collect()
    };
    Ok(words::join_lines(&numbers(text)?.iter().map(line).collect::<Vec<Vec<String>>>()))
}

fn name_of(unit: u64) -> &'static str {
    UNITS.iter().find(|(_, own)| *own == unit).map_or("ns", |(name, _)| name)
}

/// Log of latencies, if the text is not empty.
pub(super) fn latencies(text: &str) -> Result<Option<LatencyLog>, ValueError> {
    let lines = words::split(text)?;
    let [line] = &lines[..] else {
        return match lines.is_empty() {
            true => Ok(None),
            false => Err(ValueError::new("there are several logs").hint("use one table")),
        };
    };
    let row = Row::read(line, &["file", "column", "unit"])?;
    let file = row.required("file")?.to_owned();
    check(&file)?;
    row.required("unit")?;
    let column = row.get("column").unwrap_or("1");
    let column = column.parse().ok().filter(|column| *column > 0).ok_or_else(|| {
        ValueError::new(format!("`column` is `{column}`")).hint("columns are counted from 1")
    })?;
    Ok(Some(LatencyLog { file, column, unit: row.one_of("unit", &UNITS)?.1 }))
}

pub(super) fn read_latencies(text: &str) -> Result<String, ValueError> {
    let words = latencies(text)?.map(|log| {
        words::join([
            format!("file={}", log.file),
            format!("column={}", log.column),
            format!("unit={}", name_of(log.unit)),
        ])
    });
    Ok(words.unwrap_or_default())
}
