//! Head of an output in the layout of IOzone 3.471.
//!
//! Lines 1 to 4 have the program, the version, the mode, and the build; lines 6 to 14 describe the
//! run, because IOzone has its contributors there; line 16 has the time. One line per option
//! follows, then the command line, unit, time resolution, cache size, cache line size, and stride.
//! The heads of the columns are next, so that scripts find each line at its distance from the first
//! line or from the heads. Cache sizes and stride are constants of the workload, not measurements
//! of the machine.

use super::IozoneUnit;
use crate::units::one_line;

/// Number of lines that describe the run.
const ABOUT: usize = 9;

/// Texts of a head.
pub(super) struct Head<'a> {
    /// Version and commit of the program that measured.
    pub(super) program: &'a str,
    /// True if another program measured.
    pub(super) is_imported: bool,
    /// Description of the run, at most [`ABOUT`] lines.
    pub(super) about: [String; 7],
    /// Start of the run.
    pub(super) began: String,
    /// Lines of options.
    pub(super) options: Vec<String>,
    /// Command line.
    pub(super) command: String,
    /// Unit of the results; the line of another unit is one of the options.
    pub(super) unit: IozoneUnit,
}

/// Writes a head without the heads of the columns.
pub(super) fn write(text: &mut String, head: &Head<'_>) {
    let program = one_line(head.program);
    let version = program.split(" (").next().unwrap_or_default();
    let mut line = |line: &str| {
        text.push_str(line.trim_end_matches('\t'));
        text.push('\n');
    };
    match head.is_imported {
        true => {
            line(&format!("\tIozone: imported from {program}, not measured by fslab"));
            line(&format!("\t        Version {version}, written by fslab"));
        }
        false => {
            line("\tIozone: workload as of IOzone, measured by fslab, not by IOzone");
            line(&format!("\t        Version {version}, workload of 3.471"));
        }
    }
    line("\t\tCompiled for 64 bit mode.");
    line(&format!("\t\tBuild: fslab-{}", std::env::consts::ARCH));
    line("");
    for place in 0..ABOUT {
        line(&format!("\t{}", head.about.get(place).map_or("", String::as_str)));
    }
    line("");
    line(&format!("\tRun began: {}", head.began));
    line("");
    head.options.iter().for_each(|option| line(&format!("\t{option}")));
    line(&format!("\tCommand line used: {}", head.command));
    if head.unit == IozoneUnit::KiloBytes {
        line("\tOutput is in kBytes/sec");
    }
    line("\tTime Resolution = 0.000001 seconds.");
    line("\tProcessor cache size set to 1024 kBytes.");
    line("\tProcessor cache line size set to 32 bytes.");
    line("\tFile stride size set to 17 * record size.");
}
