//! Calibration of the statistics on simulated data: `make calibrate`.
//!
//! Runs with known properties are simulated from fixed seeds and analyzed with the same stopping
//! rule, intervals, and verdicts as measured runs. If `cargo bench` passes the name of a page as
//! the last argument, the program runs the full simulation (a few minutes) and writes the page.
//! With the name of a part (`coverage`, `verdicts`, `families`, `answer`, `scaling`, `factors`) it
//! prints only that part, and with `costs` it prints the duration of the larger analyses. Started
//! by `cargo test`, it runs everything once in a small size as a smoke test. `tests/calibration.rs`
//! checks a small version against bounds.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a separate program")]
#![expect(clippy::disallowed_methods, reason = "it measures what an analysis costs")]
#![expect(clippy::unwrap_used, reason = "a simulation that fails may stop")]

mod answer;
mod costs;
mod coverage;
mod factors;
mod page;
mod run;
mod scaling;
mod shapes;
mod verdicts;

use page::Section;

/// Part of the page: its name, and the function that simulates it with this many runs per rate.
type Part = (&'static str, fn(u32) -> Section);

const PARTS: [Part; 6] = [
    ("coverage", coverage::section),
    ("verdicts", verdicts::section),
    ("families", verdicts::families),
    ("answer", answer::section),
    ("scaling", scaling::section),
    ("factors", factors::section),
];

/// Simulated runs per rate.
const RUNS: u32 = 2000;

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let full = std::env::args().any(|word| word == "--bench");
    if arguments.iter().any(|word| word == "costs") {
        costs::tell();
        return;
    }
    let runs = if full { RUNS } else { 2 };
    let chosen = |(name, _): &&Part| arguments.iter().any(|word| word == name);
    let parts: Vec<&Part> = match PARTS.iter().filter(chosen).collect::<Vec<_>>() {
        none if none.is_empty() => PARTS.iter().collect(),
        some => some,
    };
    let make = |(name, part): &&Part| {
        eprintln!("{name} …");
        part(runs)
    };
    let sections: Vec<Section> = parts.iter().map(make).collect();
    let text = page::page(runs, &sections);
    match arguments.last().filter(|last| last.ends_with(".md")) {
        Some(path) if full => std::fs::write(path, text).unwrap(),
        Some(_) | None => println!("{text}"),
    }
}
