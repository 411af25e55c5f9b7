//! Parser of loadfiles.
//!
//! A line is one operation, parsed according to `grammar`, or a control line of version 5. Control
//! lines are executed here: loops are unrolled, and random values are drawn from a fixed seed. A
//! text therefore always yields the same operations. Blank lines, comments, and single words are
//! ignored; all other lines are rejected.

use std::{collections::HashMap, io::BufRead};

use fastrand::Rng;

use super::{
    super::program::{Builder, NameLimits, Op},
    grammar,
    problem::{Problem, shown},
    words::{Words, number, timestamp},
};

/// Seed of random numbers and texts of version 5.
const SEED: u64 = 5;
/// Maximum nesting depth of loops.
const DEPTH: usize = 16;
/// Maximum bytes of a line.
const LINE: usize = 64 << 10;
/// Maximum number of texts.
const TEXTS: u64 = 100;

/// Limits of a loadfile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Operations after loops are unrolled.
    pub(crate) ops: usize,
    /// Bytes of parsed lines, each counted once per repetition, plus 64 per line, which limits
    /// empty loops.
    pub(crate) work: u64,
    /// Names.
    pub(crate) names: NameLimits,
}

impl Limits {
    /// 50 million operations, which take 1.8 GB.
    pub(crate) const FULL: Self = Self { ops: 50_000_000, work: 16 << 30, names: NameLimits::FULL };
}

/// Error of a loadfile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Line number, from 1; `None` for the file as a whole.
    pub(crate) line: Option<u64>,
    /// Problem.
    pub(crate) problem: Problem,
}

/// Parses a loadfile: its operations, and the number of its lines.
///
/// # Errors
/// [`Refusal`] of the first invalid line.
pub(crate) fn read(text: &[u8], limits: Limits) -> Result<(Builder, u64), Refusal> {
    let mut reader = Reader {
        text,
        limits,
        state: State {
            builder: Builder::limited(limits.names),
            handles: HashMap::new(),
            texts: HashMap::new(),
            random: Rng::with_seed(SEED),
            before: grammar::Numbers::default(),
        },
        loops: Vec::new(),
        repeat: None,
        next: 0,
        line: 0,
        lines: 0,
        work: 0,
        words: Vec::new(),
    };
    match reader.all() {
        Ok(()) => Ok((reader.state.builder, reader.lines)),
        Err(problem) => Err(Refusal { line: Some(reader.line).filter(|line| *line > 0), problem }),
    }
}

/// State that depends on earlier operations.
pub(super) struct State {
    pub(super) builder: Builder,
    /// Slot and name of the file by the handle of the loadfile.
    pub(super) handles: HashMap<u64, (u16, u32)>,
    /// Random texts by number.
    pub(super) texts: HashMap<u64, Vec<u8>>,
    pub(super) random: Rng,
    /// Numbers of the previous operation.
    pub(super) before: grammar::Numbers,
}

/// Open loop.
struct Loop {
    // Start of its first line, and number of the line before.
    next: usize,
    line: u64,
    left: u64,
}

struct Reader<'a> {
    text: &'a [u8],
    limits: Limits,
    state: State,
    loops: Vec<Loop>,
    /// Number of repetitions of the next operation, and the line of the REPEAT.
    repeat: Option<(u64, u64)>,
    /// Start of the next line.
    next: usize,
    /// Number of the last parsed line.
    line: u64,
    /// Highest line number.
    lines: u64,
    work: u64,
    /// Buffer of the line from which words are taken.
    words: Vec<u8>,
}

impl Reader<'_> {
    fn all(&mut self) -> Result<(), Problem> {
        while self.next < self.text.len() {
            self.one()?;
        }
        if let Some(begun) = self.loops.last() {
            self.line = begun.line;
            return Err(Problem::new("the loop is not closed", "add a line ENDLOOP"));
        }
        if let Some((_, line)) = self.repeat {
            self.line = line;
            return Err(Problem::new(
                "REPEAT has no operation",
                "put the operation on the next line",
            ));
        }
        if self.state.builder.ops().is_empty() {
            self.line = 0;
            return Err(Problem::new(
                "no operation found",
                "check that the file is a loadfile with one operation per line",
            ));
        }
        Ok(())
    }

    /// Parses one line.
    fn one(&mut self) -> Result<(), Problem> {
        let rest = &self.text[self.next..];
        // Finds the end of the line by the fast search that std provides for readers only.
        let taken = (&*rest).skip_until(b'\n').expect("memory is read without errors");
        let end = taken - usize::from(rest[..taken].last() == Some(&b'\n'));
        self.line += 1;
        self.lines = self.lines.max(self.line);
        self.next += taken;
        self.work += end as u64 + 64;
        if self.work > self.limits.work {
            return Err(Problem::new("the loops have too many lines", "use fewer iterations"));
        }
        if end > LINE {
            return Err(Problem::new(
                format!("the line is longer than {LINE} bytes"),
                "check that the file is a loadfile and not damaged",
            ));
        }
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        if line.starts_with(b"#") {
            return Ok(());
        }
        if line.starts_with(b"SMB") {
            return Err(Problem::new(
                "loadfiles of version 1 are not supported",
                "use version 3 or later, such as client.txt of the package dbench, or the \
                 built-in one (loadfile = \"office\")",
            ));
        }
        // The buffer is taken out of the parser during the call, and restored in every case.
        let mut buffer = std::mem::take(&mut self.words);
        normalize(line, &mut buffer);
        let result = Words::of(&buffer).and_then(|words| self.words(words.all()));
        self.words = buffer;
        result
    }

    fn words(&mut self, words: &[&[u8]]) -> Result<(), Problem> {
        if words == [b"ENDLOOP"] {
            return self.end_loop();
        }
        if words.len() < 2 {
            return Ok(());
        }
        let (due, words) = match words[0].first() {
            Some(b'0'..=b'9') => {
                let due = timestamp(words[0]).ok_or_else(|| {
                    Problem::word(words[0], "a time", "begin the line with seconds, such as 12.345")
                })?;
                (Some(due), &words[1..])
            }
            _ => (None, words),
        };
        if self.control(words)? {
            return Ok(());
        }
        let (times, _) = self.repeat.take().unwrap_or((1, 0));
        for _ in 0..times {
            let op = grammar::operation(words, &mut self.state)?;
            self.push(op.at(due))?;
        }
        Ok(())
    }

    fn push(&mut self, op: Op) -> Result<(), Problem> {
        let most = self.limits.ops;
        if self.state.builder.ops().len() >= most {
            return Err(Problem::new(
                format!("the loadfile has more than {most} operations"),
                "use fewer iterations; a replay repeats a loadfile that ends",
            ));
        }
        let line = u32::try_from(self.line).expect("a text of 96MiB has fewer lines");
        self.state.builder.push(op, line);
        Ok(())
    }

    /// Executes a control line. Returns false for other lines.
    fn control(&mut self, words: &[&[u8]]) -> Result<bool, Problem> {
        let (word, rest) = words.split_first().expect("at least one word");
        if !matches!(
            *word,
            b"LOOP" | b"REPEAT" | b"RANDOMSTRING" | b"WRITEPATTERN" | b"SETSP" | b"WAITSP"
        ) {
            return Ok(false);
        }
        if self.repeat.is_some() {
            return Err(Problem::new(
                format!("{} cannot be repeated", shown(word)),
                "put an operation right after REPEAT",
            ));
        }
        match *word {
            b"LOOP" => self.begin_loop(rest)?,
            b"REPEAT" => self.repeat = Some((count(rest, "REPEAT")?, self.line)),
            b"RANDOMSTRING" => self.random_text(rest)?,
            b"WRITEPATTERN" => {
                return Err(Problem::new(
                    "WRITEPATTERN is not supported: replays write zeros",
                    "remove the line; compression or deduplication may change the results",
                ));
            }
            _ => {
                return Err(Problem::new(
                    format!("{} synchronizes clients, which is not supported", shown(word)),
                    "remove the line",
                ));
            }
        }
        Ok(true)
    }

    fn begin_loop(&mut self, rest: &[&[u8]]) -> Result<(), Problem> {
        let left = count(rest, "LOOP")?;
        if self.loops.len() >= DEPTH {
            return Err(Problem::new(
                format!("more than {DEPTH} nested loops"),
                "close loops with ENDLOOP",
            ));
        }
        self.loops.push(Loop { next: self.next, line: self.line, left });
        Ok(())
    }

    fn end_loop(&mut self) -> Result<(), Problem> {
        if self.repeat.is_some() {
            return Err(Problem::new(
                "ENDLOOP cannot be repeated",
                "put an operation right after REPEAT",
            ));
        }
        let Some(begun) = self.loops.last_mut() else {
            return Err(Problem::new("ENDLOOP without a loop", "add a line LOOP n"));
        };
        begun.left -= 1;
        if begun.left == 0 {
            self.loops.pop();
        } else {
            (self.next, self.line) = (begun.next, begun.line);
        }
        Ok(())
    }

    /// Draws a text: one character of each pair of brackets.
    fn random_text(&mut self, rest: &[&[u8]]) -> Result<(), Problem> {
        let hint = "use RANDOMSTRING n \"text\" with a number below 100, and characters to \
                    choose from in brackets, as in \"file[0123456789]\"";
        let [index, pattern] = rest else {
            return Err(Problem::new("RANDOMSTRING takes a number and a text", hint));
        };
        let index = number(index).filter(|index| *index < TEXTS);
        let index = index.ok_or_else(|| Problem::word(rest[0], "a text number", hint))?;
        let mut text = Vec::with_capacity(pattern.len());
        let mut left = *pattern;
        while let Some((byte, after)) = left.split_first() {
            left = after;
            if *byte != b'[' {
                text.push(*byte);
                continue;
            }
            let end = after.iter().position(|byte| *byte == b']').filter(|end| *end > 0);
            let end = end.ok_or_else(|| Problem::word(pattern, "a text with brackets", hint))?;
            text.push(after[self.state.random.usize(..end)]);
            left = &after[end + 1..];
        }
        self.state.texts.insert(index, text);
        Ok(())
    }
}

/// Number after LOOP or REPEAT.
fn count(rest: &[&[u8]], word: &str) -> Result<u64, Problem> {
    let hint = "use one number of at least 1";
    match rest {
        [times] => number(times)
            .filter(|times| *times > 0)
            .ok_or_else(|| Problem::word(times, "a repeat count", hint)),
        _ => Err(Problem::new(format!("{word} takes one number"), hint)),
    }
}

/// Converts backslashes to slashes, and removes a slash that follows a blank.
fn normalize(line: &[u8], into: &mut Vec<u8>) {
    into.clear();
    into.extend(line.iter().map(|byte| if *byte == b'\\' { b'/' } else { *byte }));
    // Without an early exit, so that it is vectorized.
    let drop = into.windows(2).fold(false, |found, pair| found | (pair == b" /"));
    if drop {
        let mut before = 0;
        into.retain(|byte| {
            let drop = before == b' ' && *byte == b'/';
            before = *byte;
            !drop
        });
    }
}
