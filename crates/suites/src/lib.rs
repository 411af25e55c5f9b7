//! What is measured: each suite turns its parameters into the phases of a trial.
//!
//! Data enters as a [`Point`] (every parameter has a value) and leaves as [`Phase`]s, plain data
//! that the engine carries out. A suite decides order, sizes, access and what is timed; it never
//! looks at the host and never touches a file. To add one, write its file and its line in [`ALL`].
#![forbid(unsafe_code)]

mod iozone;

use model::{Bytes, Phase, Point, SuiteSpec, workload::ValueError};

/// A suite: its table of parameters and its three pure functions.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// Name, source and parameters.
    pub spec: &'static SuiteSpec,
    /// Checks a point, and multiplies it where a parameter asks for a sweep of the suite's own.
    pub refine: fn(Point) -> Result<Vec<Point>, ValueError>,
    /// The phases of one trial at a refined point; the seed is that of the data written.
    pub phases: fn(&Point, u64) -> Vec<Phase>,
    /// The most space the files of a trial take.
    pub footprint: fn(&Point) -> Bytes,
}

/// Every suite.
pub const ALL: &[Suite] = &[iozone::SUITE];

/// The suite of that name.
pub fn find(name: &str) -> Option<&'static Suite> {
    ALL.iter().find(|suite| suite.spec.name == name)
}

/// The tables of all suites, for reading plans.
pub fn specs() -> Vec<&'static SuiteSpec> {
    ALL.iter().map(|suite| suite.spec).collect()
}

/// Checks a point by its own suite's rules; see [`Suite::refine`].
///
/// # Errors
/// When the suite refuses the combination.
///
/// # Panics
/// If no suite has the point's name: points are made from the tables of [`specs`].
pub fn refine(point: Point) -> Result<Vec<Point>, ValueError> {
    match find(&point.suite) {
        Some(suite) => (suite.refine)(point),
        None => unreachable!("a point of the unknown suite `{}`", point.suite),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sound() {
        for suite in ALL {
            let spec = suite.spec;
            assert!(spec.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", spec.name);
            assert!(!spec.source.is_empty());
            let mut names: Vec<_> = spec.parameters.iter().map(|p| p.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), spec.parameters.len(), "{}: a parameter twice", spec.name);
            for parameter in spec.parameters {
                assert!(parameter.doc.ends_with('.'), "{} {}", spec.name, parameter.name);
            }
            for point in (suite.refine)(spec.defaults()).expect("the defaults are a valid point") {
                let phases = (suite.phases)(&point, 1);
                let mut names: Vec<_> = phases.iter().map(|phase| &phase.name).collect();
                names.sort_unstable();
                names.dedup();
                assert_eq!(names.len(), phases.len(), "{}: a phase twice", spec.name);
            }
        }
    }
}
