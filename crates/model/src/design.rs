//! Designs: the combinations of option values that a plan measures.
//!
//! A screening design measures a regular fraction of all combinations of factors with two values.
//! Its resolution is at least IV: main effects are not confounded with interactions of two factors,
//! which are confounded with each other (Box and Hunter, "The 2^(k-p) fractional factorial
//! designs", Technometrics 3, 1961). Fractions of a lower resolution are not offered.
//!
//! With m base factors, the design has 2^m combinations. The value of each further factor is the
//! sum modulo 2 of an odd number of base factors, at least three. The product of two or three
//! factors is then never constant, because it has an even number of base factors that differ, or an
//! odd number.

use crate::workload::{Value, ValueError};

/// Combinations of option values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// All combinations.
    Full,
    /// A fraction that separates the effects of the options.
    Screen,
}

/// An option with its values, in the order of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionAxis {
    /// Plan key, such as `mount.data`.
    pub key: String,
    /// Values, at least one; the first is the reference.
    pub values: Vec<Value>,
}

/// Maximum number of combinations of options without `design`.
pub const COMBINATIONS_MAX: usize = 64;

/// Maximum number of options of a screening design.
const FACTORS_MAX: usize = 16;

impl Design {
    /// All designs.
    pub const ALL: [Self; 2] = [Self::Full, Self::Screen];

    /// Name in a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Screen => "screen",
        }
    }

    /// Design with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|design| design.name() == name)
    }

    /// Indices of the values of each option, one list per combination. The first combination has
    /// the first value of each option. Without a design, all combinations, up to
    /// [`COMBINATIONS_MAX`].
    ///
    /// # Errors
    /// [`ValueError`] if the options do not fit the design.
    pub fn combinations(
        design: Option<Self>,
        options: &[OptionAxis],
    ) -> Result<Vec<Vec<usize>>, ValueError> {
        let error = |message: String, hint: String| Err(ValueError::new(message).hint(hint));
        let sizes: Vec<usize> = options.iter().map(|option| option.values.len()).collect();
        let all = sizes.iter().fold(1_usize, |all, size| all.saturating_mul(*size));
        match design {
            Some(Self::Screen) => {
                if let Some(option) = options.iter().find(|option| option.values.len() > 2) {
                    return error(
                        format!("design `screen` has two values per option, not {}", option.key),
                        "list the reference and one other value, or set design = \"full\"".into(),
                    );
                }
                let varied = sizes.iter().filter(|size| **size == 2).count();
                if varied > FACTORS_MAX {
                    return error(
                        format!(
                            "design `screen` has {varied} options; the maximum is {FACTORS_MAX}"
                        ),
                        "split the plan".into(),
                    );
                }
                Ok(screen(&sizes))
            }
            None if all > COMBINATIONS_MAX => error(
                format!("the options of the plan have {all} combinations"),
                match sizes.iter().all(|size| *size <= 2) {
                    true => format!(
                        "set design = \"screen\" for {} of them, or design = \"full\" for all",
                        screen(&sizes).len()
                    ),
                    false => "shorten the lists, or set design = \"full\" for all".into(),
                },
            ),
            Some(Self::Full) | None => Ok(product(&sizes)),
        }
    }
}

/// All combinations; the last option varies fastest.
fn product(sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for size in sizes {
        let with = |rest: &Vec<usize>, value| [rest.as_slice(), &[value]].concat();
        all = all.iter().flat_map(|rest| (0..*size).map(move |value| with(rest, value))).collect();
    }
    all
}

/// Screening design. Options with one value have this value in all combinations.
fn screen(sizes: &[usize]) -> Vec<Vec<usize>> {
    let words = generators(sizes.iter().filter(|size| **size == 2).count());
    let base = words.iter().map(|word| 32 - word.leading_zeros()).max().unwrap_or(0);
    let combination = |run: u32| {
        let mut words = words.iter();
        let value = |size: &usize| match size {
            2 => words.next().map_or(0, |word| ((run & word).count_ones() % 2) as usize),
            _ => 0,
        };
        sizes.iter().map(value).collect()
    };
    (0..1 << base).map(combination).collect()
}

/// Base factors whose sum modulo 2 is the value of each factor, as bits. Up to four factors are
/// base factors. Five have resolution V, E = ABCD.
fn generators(factors: usize) -> Vec<u32> {
    let base = match factors {
        ..=4 => factors,
        5..=8 => 4,
        _ => 5,
    };
    let mut words: Vec<u32> = (0..base).map(|factor| 1 << factor).collect();
    if factors == 5 {
        words.push(0b1111);
    }
    let odd = |word: &u32| word.count_ones() % 2 == 1 && word.count_ones() > 1;
    words.extend((1..1 << base).filter(odd));
    words.truncate(factors);
    words
}

/// Interactions of two options that a screening design does not distinguish, as groups of pairs of
/// indices. Empty if all are distinguished.
pub fn aliases(options: &[OptionAxis]) -> Vec<Vec<(usize, usize)>> {
    let varied: Vec<usize> =
        (0..options.len()).filter(|at| options[*at].values.len() == 2).collect();
    let words = generators(varied.len());
    let mut groups: Vec<(u32, Vec<(usize, usize)>)> = Vec::new();
    for (at, one) in varied.iter().enumerate() {
        for (other_at, other) in varied.iter().enumerate().skip(at + 1) {
            let product = words[at] ^ words[other_at];
            match groups.iter_mut().find(|(known, _)| *known == product) {
                Some((_, pairs)) => pairs.push((*one, *other)),
                None => groups.push((product, vec![(*one, *other)])),
            }
        }
    }
    groups.into_iter().map(|(_, pairs)| pairs).filter(|pairs| pairs.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(sizes: &[usize]) -> Vec<OptionAxis> {
        let values = |size: usize| (0..size).map(|n| Value::Text(n.to_string())).collect();
        let option = |(at, size): (usize, &usize)| OptionAxis {
            key: format!("mount.o{at}"),
            values: values(*size),
        };
        sizes.iter().enumerate().map(option).collect()
    }

    #[test]
    fn screens_are_orthogonal_and_separate_main_effects_from_interactions() {
        for factors in 1..=16 {
            let runs =
                Design::combinations(Some(Design::Screen), &options(&vec![2; factors])).unwrap();
            let expected = match factors {
                ..=4 => 1 << factors,
                5..=8 => 16,
                _ => 32,
            };
            assert_eq!(runs.len(), expected, "{factors} factors");
            assert!(runs[0].iter().all(|value| *value == 0), "the first is the reference");
            let column = |chosen: &[usize]| -> Vec<usize> {
                runs.iter().map(|run| chosen.iter().map(|at| run[*at]).sum::<usize>() % 2).collect()
            };
            // A product of up to three factors has each value equally often. Hence factors are
            // orthogonal to each other and to all interactions of two.
            let balanced = |chosen: &[usize]| {
                assert_eq!(column(chosen).iter().sum::<usize>(), runs.len() / 2, "{chosen:?}");
            };
            for one in 0..factors {
                balanced(&[one]);
                for two in one + 1..factors {
                    balanced(&[one, two]);
                    (two + 1..factors).for_each(|three| balanced(&[one, two, three]));
                }
            }
            let pairs = aliases(&options(&vec![2; factors]));
            for group in &pairs {
                let first = column(&[group[0].0, group[0].1]);
                assert!(group.iter().all(|(one, two)| column(&[*one, *two]) == first));
            }
            assert_eq!(pairs.is_empty(), factors <= 5, "{factors} factors");
        }
    }

    #[test]
    fn full_designs_have_all_combinations() {
        let runs = Design::combinations(None, &options(&[2, 1, 3])).unwrap();
        assert_eq!(runs.len(), 6);
        assert_eq!(runs[..2], [[0, 0, 0], [0, 0, 1]]);
        assert_eq!(Design::combinations(None, &[]).unwrap(), [Vec::<usize>::new()]);
        let mixed = Design::combinations(Some(Design::Screen), &options(&[2, 1, 2])).unwrap();
        assert_eq!(mixed, [[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 1]]);
    }

    #[test]
    fn many_combinations_require_a_design() {
        let error = |design, sizes: &[usize]| {
            let error = Design::combinations(design, &options(sizes)).unwrap_err();
            format!("{}; {}", error.message, error.hint.unwrap())
        };
        assert_eq!(
            error(None, &[2; 8]),
            "the options of the plan have 256 combinations; set design = \"screen\" for 16 of \
             them, or design = \"full\" for all"
        );
        assert_eq!(Design::combinations(Some(Design::Full), &options(&[2; 8])).unwrap().len(), 256);
        assert!(error(Some(Design::Screen), &[2, 3]).contains("two values per option"));
        assert!(error(Some(Design::Screen), &[2; 17]).contains("the maximum is 16"));
    }
}
