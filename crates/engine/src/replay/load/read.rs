//! The reader: text of a load file → operations.
//!
//! One operation a line, by what `grammar` says of it, and the control lines of version 5, which
//! are carried out here: loops are unrolled, and what is random is drawn from a fixed seed, so that
//! one text is one sequence of operations. Each line is either an operation, a control line, or
//! nothing (blank, a comment, or a single word); anything else is refused.

use std::{collections::HashMap, io::BufRead};

use fastrand::Rng;

use super::{
    super::program::{Builder, NameLimits, Op},
    grammar,
    problem::{Problem, shown},
    words::{Words, number, stamp},
};

/// What random numbers and texts of version 5 are drawn from.
const SEED: u64 = 5;
/// Loops within loops.
const DEPTH: usize = 16;
/// Bytes of the longest line.
const LINE: usize = 64 << 10;
/// Numbered texts.
const TEXTS: u64 = 100;

/// How much a load file may ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Operations after loops are unrolled.
    pub(crate) ops: usize,
    /// Bytes of lines looked at, each counted as often as it is, and 64 more for each: what an
    /// empty loop comes to in the end.
    pub(crate) work: u64,
    /// Names.
    pub(crate) names: NameLimits,
}

impl Limits {
    /// Fifty million operations, which take 1.8 GB.
    pub(crate) const FULL: Self = Self { ops: 50_000_000, work: 16 << 30, names: NameLimits::FULL };
}

/// Why a load file is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Number of the line, from 1; none if it is about the file as a whole.
    pub(crate) line: Option<u64>,
    /// What is wrong.
    pub(crate) problem: Problem,
}

/// Reads a load file: its operations, and the number of its lines.
///
/// # Errors
/// [`Refusal`] of the first line that cannot be replayed.
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

/// What operations before left behind.
pub(super) struct State {
    pub(super) builder: Builder,
    /// By the number that the load file chose: slot, and name of the file.
    pub(super) handles: HashMap<u64, (u16, u32)>,
    /// Random texts by their numbers.
    pub(super) texts: HashMap<u64, Vec<u8>>,
    pub(super) random: Rng,
    /// The numbers of the operation before.
    pub(super) before: grammar::Numbers,
}

/// A loop that is not at its end.
struct Loop {
    // Where its first line begins, and the number of the line before.
    next: usize,
    line: u64,
    left: u64,
}

struct Reader<'a> {
    text: &'a [u8],
    limits: Limits,
    state: State,
    loops: Vec<Loop>,
    /// How often the next operation is done, and the line that says so.
    repeat: Option<(u64, u64)>,
    /// Where the next line begins.
    next: usize,
    /// Number of the line that was read last.
    line: u64,
    /// The highest number of a line.
    lines: u64,
    work: u64,
    /// The line as its words are taken from it.
    words: Vec<u8>,
}

impl Reader<'_> {
    fn all(&mut self) -> Result<(), Problem> {
        while self.next < self.text.len() {
            self.one()?;
        }
        if let Some(begun) = self.loops.last() {
            self.line = begun.line;
            return Err(Problem::new("its loop does not end", "end it by a line ENDLOOP"));
        }
        if let Some((_, line)) = self.repeat {
            self.line = line;
            return Err(Problem::new(
                "nothing follows that could be repeated",
                "put the operation on the next line",
            ));
        }
        if self.state.builder.ops().is_empty() {
            self.line = 0;
            return Err(Problem::new(
                "it has no operation",
                "check that it is a load file; each of its lines is an operation",
            ));
        }
        Ok(())
    }

    /// Reads one line.
    fn one(&mut self) -> Result<(), Problem> {
        let rest = &self.text[self.next..];
        // Finds the end by the fast search that the standard library has for readers only.
        let taken = (&*rest).skip_until(b'\n').expect("memory is read without errors");
        let end = taken - usize::from(rest[..taken].last() == Some(&b'\n'));
        self.line += 1;
        self.lines = self.lines.max(self.line);
        self.next += taken;
        self.work += end as u64 + 64;
        if self.work > self.limits.work {
            return Err(Problem::new("the loops take too long to read", "loop less often"));
        }
        if end > LINE {
            return Err(Problem::new(
                format!("it is longer than {LINE} bytes"),
                "check that it is a load file, and not damaged",
            ));
        }
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        if line.starts_with(b"#") {
            return Ok(());
        }
        if line.starts_with(b"SMB") {
            return Err(Problem::new(
                "it is a load file of version 1",
                "use one of version 3 or later, such as client.txt of the package dbench, or our \
                 own load (load = \"office\")",
            ));
        }
        // The line is kept in a buffer that is used again; it is put back in every case.
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
                let due = stamp(words[0]).ok_or_else(|| {
                    Problem::word(words[0], "time", "begin the line by seconds, such as 12.345")
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
                format!("the load file comes to more than {most} operations"),
                "loop less often; a replay that gets to the end begins anew",
            ));
        }
        let line = u32::try_from(self.line).expect("a text of 96MiB has fewer lines");
        self.state.builder.push(op, line);
        Ok(())
    }

    /// Carries out a control line; whether it was one.
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
                "put the operation that is repeated right after REPEAT",
            ));
        }
        match *word {
            b"LOOP" => self.begin_loop(rest)?,
            b"REPEAT" => self.repeat = Some((count(rest, "REPEAT")?, self.line)),
            b"RANDOMSTRING" => self.random_text(rest)?,
            b"WRITEPATTERN" => {
                return Err(Problem::new(
                    "WRITEPATTERN gives the content of writes, and replays write zeros",
                    "take the line out; where something compresses or deduplicates, that makes a difference",
                ));
            }
            _ => {
                return Err(Problem::new(
                    format!("{} makes clients wait for one another", shown(word)),
                    "take the line out: clients of a replay do not wait for others",
                ));
            }
        }
        Ok(true)
    }

    fn begin_loop(&mut self, rest: &[&[u8]]) -> Result<(), Problem> {
        let left = count(rest, "LOOP")?;
        if self.loops.len() >= DEPTH {
            return Err(Problem::new(
                format!("there are more than {DEPTH} loops in one another"),
                "end loops by ENDLOOP",
            ));
        }
        self.loops.push(Loop { next: self.next, line: self.line, left });
        Ok(())
    }

    fn end_loop(&mut self) -> Result<(), Problem> {
        if self.repeat.is_some() {
            return Err(Problem::new(
                "ENDLOOP cannot be repeated",
                "put the operation that is repeated right after REPEAT",
            ));
        }
        let Some(begun) = self.loops.last_mut() else {
            return Err(Problem::new("no loop begins before", "begin it by a line LOOP n"));
        };
        begun.left -= 1;
        if begun.left == 0 {
            self.loops.pop();
        } else {
            (self.next, self.line) = (begun.next, begun.line);
        }
        Ok(())
    }

    /// Draws a text: from each pair of brackets one of the characters in it.
    fn random_text(&mut self, rest: &[&[u8]]) -> Result<(), Problem> {
        let cure = "write RANDOMSTRING n \"text\" with a number below 100, and characters to \
                    choose from in brackets, as in \"file[0123456789]\"";
        let [index, pattern] = rest else {
            return Err(Problem::new("RANDOMSTRING takes a number and a text", cure));
        };
        let index = number(index).filter(|index| *index < TEXTS);
        let index = index.ok_or_else(|| Problem::word(rest[0], "number of a text", cure))?;
        let mut text = Vec::with_capacity(pattern.len());
        let mut left = *pattern;
        while let Some((byte, after)) = left.split_first() {
            left = after;
            if *byte != b'[' {
                text.push(*byte);
                continue;
            }
            let end = after.iter().position(|byte| *byte == b']').filter(|end| *end > 0);
            let end = end.ok_or_else(|| Problem::word(pattern, "text with brackets", cure))?;
            text.push(after[self.state.random.usize(..end)]);
            left = &after[end + 1..];
        }
        self.state.texts.insert(index, text);
        Ok(())
    }
}

/// The one number after LOOP or REPEAT.
fn count(rest: &[&[u8]], word: &str) -> Result<u64, Problem> {
    let cure = "give one number, at least 1: how often";
    match rest {
        [times] => number(times)
            .filter(|times| *times > 0)
            .ok_or_else(|| Problem::word(times, "number of times", cure)),
        _ => Err(Problem::new(format!("{word} takes one number"), cure)),
    }
}

/// The line with slashes for backslashes, and without a slash that follows a blank.
fn normalize(line: &[u8], into: &mut Vec<u8>) {
    into.clear();
    into.extend(line.iter().map(|byte| if *byte == b'\\' { b'/' } else { *byte }));
    // Without a way out in between, so that it becomes a loop over vectors.
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
