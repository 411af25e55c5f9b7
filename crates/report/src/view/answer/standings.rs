//! Findings of the first page: best and worst filesystems, and filesystems outside the top group.

use analysis::ranks::Pair;
use model::{
    Metric,
    metric::{Better, Unit},
};

use super::{FOR_SLOWEST, Finding, Named, TESTS_MAX, is_contest};
use crate::{
    units::{count, grouped, ratio_of},
    view::{
        Entry, Family, View,
        findings::{disagreement, list},
    },
};

/// Filesystem that is best or worst in a test.
pub(super) struct Standing<'a> {
    pub(super) filesystem: usize,
    test: &'a Named<'a>,
    /// Effect size ([`against`]), and ratio to another filesystem as text: `1.38 × ext4 [1.21,
    /// 1.52]`. `None` if estimates of the effect size disagree.
    against: Option<(f64, String)>,
}

impl Standing<'_> {
    /// Effect size and ratio to another filesystem.
    pub(super) fn against(&self) -> Option<&(f64, String)> {
        self.against.as_ref()
    }
}

/// Best and worst filesystems: the only member of the top group of a test, and the only member of
/// the bottom group if at least [`FOR_SLOWEST`] filesystems are compared.
pub(super) fn standings<'a>(
    view: &View,
    tests: &'a [Named<'a>],
) -> (Vec<Standing<'a>>, Vec<Standing<'a>>) {
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for named in tests {
        let Some(family) = &named.test.family else { continue };
        let ranking = &family.ranking;
        let sound = |among: &[usize]| {
            let within = |pair: &&Pair| among.contains(&pair.better) && among.contains(&pair.other);
            !ranking.pairs.iter().filter(within).any(Pair::is_contradictory)
        };
        let filesystem = |member: usize| named.test.entries[family.members[member]].filesystem;
        let standing = |member: usize, other: usize, of_last: bool| Standing {
            filesystem: filesystem(member),
            test: named,
            against: against(view, named, family, (member, other), of_last),
        };
        if let (&[best], Some(&next), true) =
            (&ranking.top[..], ranking.order.get(1), sound(&ranking.top))
            && !is_exceeded(named, &named.test.entries[family.members[best]], true)
        {
            first.push(standing(best, next, false));
        }
        let enough = ranking.order.len() >= FOR_SLOWEST;
        if let (&[worst], Some(&best), true) =
            (&ranking.bottom[..], ranking.order.first(), enough && sound(&ranking.bottom))
            && !is_exceeded(named, &named.test.entries[family.members[worst]], false)
        {
            last.push(standing(worst, best, true));
        }
    }
    (first, last)
}

/// True if a filesystem that is not compared has a better median than this one, or a worse median
/// if `better` is false. This one is then not reported as best or worst.
fn is_exceeded(named: &Named<'_>, entry: &Entry, better: bool) -> bool {
    let Some(own) = entry.summary.as_ref() else { return false };
    let higher = match named.test.metric.spec().better {
        Better::Higher => better,
        Better::Lower => !better,
        Better::Neither => return false,
    };
    let others = named.test.entries.iter().filter(|other| !other.ranked);
    others.filter_map(|other| other.summary.as_ref()).any(|other| match higher {
        true => other.median > own.median,
        false => other.median < own.median,
    })
}

/// Effect size and text of the ratio of a filesystem to another one in a test. The effect size is
/// the absolute value of the natural logarithm of the ratio. The ratio is that of rates, of
/// instructions, or, for times, of speeds. `None` if estimates of the effect size disagree.
fn against(
    view: &View,
    named: &Named<'_>,
    family: &Family,
    (member, other): (usize, usize),
    of_last: bool,
) -> Option<(f64, String)> {
    let pair = match of_last {
        true => family.ranking.pair(other, member)?,
        false => family.ranking.pair(member, other)?,
    };
    let comparison = &pair.comparison;
    if disagreement(comparison).is_some() {
        return None;
    }
    // The ratio of a comparison exceeds 1 in favor of the better filesystem. It is inverted for the
    // worse one, and for instructions, because the better one executes fewer.
    let fewer = named.test.metric.spec().unit == Unit::Instructions;
    let turned = of_last != fewer;
    let name = &view.filesystems[named.test.entries[family.members[other]].filesystem].name;
    let text = ratio_of(comparison.ratio.0, comparison.interval, turned, name);
    Some((comparison.ratio.0.ln().abs(), text))
}

/// Kind of the values of a metric, for the wording of findings.
enum Quantity {
    Instructions,
    Space,
    Speed,
}

impl Quantity {
    fn of(metric: Metric) -> Self {
        match metric.spec().unit {
            Unit::Instructions => Self::Instructions,
            Unit::Bytes => Self::Space,
            Unit::BytesPerSecond
            | Unit::OpsPerSecond
            | Unit::CommitsPerSecond
            | Unit::DeliveriesPerSecond
            | Unit::Nanoseconds
            | Unit::Count
            | Unit::Fraction
            | Unit::Ratio
            | Unit::Hertz => Self::Speed,
        }
    }
}

/// Predicates of the best and the worst filesystem: `is` with `first` and `last`, or the wording
/// for instructions and space.
pub(super) fn superlatives(metric: Metric, first: &str, last: &str) -> (String, String) {
    match Quantity::of(metric) {
        Quantity::Instructions => {
            ("executes the fewest instructions".into(), "executes the most".into())
        }
        Quantity::Space => ("has the most space".into(), "has the least".into()),
        Quantity::Speed => (format!("is {first}"), format!("is {last}")),
    }
}

/// `are fastest`, or the equivalents for instructions and space.
pub(super) fn superlative_of_several(metric: Metric) -> &'static str {
    match Quantity::of(metric) {
        Quantity::Instructions => "execute the fewest instructions",
        Quantity::Space => "have the most space",
        Quantity::Speed => "are fastest",
    }
}

/// `slower`, or the equivalents for instructions and space.
pub(super) fn comparative(metric: Metric) -> &'static str {
    match Quantity::of(metric) {
        Quantity::Instructions => "more",
        Quantity::Space => "less",
        Quantity::Speed => "slower",
    }
}

/// Subject and effect of the finding for a test without a fastest filesystem: filesystems outside
/// the top group are worse than the best. `None` if a fastest filesystem is reported, or if no
/// filesystem is outside the top group. Also `None` if the only one outside is reported as the
/// slowest.
fn outside_top(view: &View, named: &Named<'_>) -> Option<(String, (f64, String))> {
    let family = named.test.family.as_ref()?;
    let ranking = &family.ranking;
    let best = *ranking.order.first()?;
    let others: Vec<usize> =
        ranking.order.iter().copied().filter(|member| !ranking.top.contains(member)).collect();
    let entry = |member: usize| &named.test.entries[family.members[member]];
    let slowest = ranking.order.len() >= FOR_SLOWEST
        && others == ranking.bottom
        && !is_exceeded(named, entry(*others.first()?), false);
    let fastest = ranking.top.len() == 1 && !is_exceeded(named, entry(best), true);
    if fastest || slowest && others.len() == 1 {
        return None;
    }
    let name = |member: &usize| {
        view.filesystems[named.test.entries[family.members[*member]].filesystem].name.clone()
    };
    let (effect, against) = against(view, named, family, (*others.first()?, best), true)?;
    let quantity = Quantity::of(named.test.metric);
    let bound = match (others.len(), &quantity) {
        (1, _) => "",
        (_, Quantity::Instructions) => "at least ",
        (_, Quantity::Space | Quantity::Speed) => "at most ",
    };
    let worse = match (quantity, others.len()) {
        (Quantity::Instructions, 1) => "executes more instructions",
        (Quantity::Instructions, _) => "execute more instructions",
        (Quantity::Space, 1) => "has less space",
        (Quantity::Space, _) => "have less space",
        (Quantity::Speed, 1) => "is slower",
        (Quantity::Speed, _) => "are slower",
    };
    let names: Vec<String> = others.iter().map(name).collect();
    let subject = format!("{} {worse} than {}", list(&names), name(&best));
    Some((subject, (effect, format!("{bound}{against}"))))
}

pub(super) fn findings(
    view: &View,
    tests: &[Named<'_>],
    first: &[Standing<'_>],
    last: &[Standing<'_>],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (filesystem, own) in view.filesystems.iter().enumerate() {
        for (standings, is_first) in [(first, true), (last, false)] {
            let standings = standings.iter().filter(|it| it.filesystem == filesystem);
            // Instructions and space have other predicates than speed.
            let by_predicate = grouped(standings.map(|it| {
                let (best, least) = superlatives(it.test.test.metric, "the fastest", "the slowest");
                let least = least.replace("the most", "the most instructions");
                let about = (it.test.title.as_str(), it.against.as_ref());
                (if is_first { best } else { least }, about)
            }));
            let about = |(predicate, tests)| about(&format!("{} {predicate}", own.name), tests);
            findings.extend(by_predicate.into_iter().map(about));
        }
    }
    let outside: Vec<_> = tests
        .iter()
        .filter_map(|named| outside_top(view, named).map(|own| (named.title.as_str(), own)))
        .collect();
    let same = outside.iter().map(|(title, (subject, effect))| (subject, (*title, Some(effect))));
    findings.extend(grouped(same).into_iter().map(|(subject, tests)| about(subject, tests)));
    let is_tied = |named: &&Named<'_>| {
        let family = named.test.family.as_ref();
        is_contest(named)
            && family.is_some_and(|family| family.ranking.top.len() == family.members.len())
    };
    let ties = tests.iter().filter(is_tied).map(|named| named.title.as_str());
    findings.extend(tied("filesystem", &view.facts.margin.percent(), ties.collect()));
    findings
}

/// Finding about tests, given by their titles and effects: the largest effects first.
pub(super) fn about(subject: &str, mut tests: Vec<(&str, Option<&(f64, String)>)>) -> Finding {
    let effect = |(_, own): &(&str, Option<&(f64, String)>)| own.map_or(0.0, |(effect, _)| *effect);
    tests.sort_by(|one, other| effect(other).total_cmp(&effect(one)));
    let title = |(title, effect): &(&str, Option<&(f64, String)>)| match effect {
        Some((_, text)) => format!("{title} ({text})"),
        None => (*title).to_owned(),
    };
    let text = format!("{subject} in {}.", some(tests.iter().map(title).collect()));
    Finding { effect: tests.first().map_or(0.0, effect), text }
}

/// Finding about tests without a significant difference; `None` without tests.
pub(super) fn tied(subject: &str, margin: &str, tests: Vec<&str>) -> Option<Finding> {
    let text = format!(
        "No {subject} differs significantly from the best by more than {margin} in {}.",
        some(tests.iter().map(|title| (*title).to_owned()).collect())
    );
    (!tests.is_empty()).then_some(Finding { effect: 0.0, text })
}

/// The first [`TESTS_MAX`] of several tests, and the number of the others.
fn some(mut tests: Vec<String>) -> String {
    if tests.len() > TESTS_MAX {
        let more = count(tests.len() - TESTS_MAX, "more test");
        tests.truncate(TESTS_MAX);
        tests.push(more);
    }
    list(&tests)
}

#[cfg(test)]
mod tests {
    use model::metric::Better;

    use crate::{
        fixture,
        view::{View, answer::Answer},
    };

    fn texts(view: &View) -> Vec<String> {
        Answer::new(view).findings.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn none_is_the_fastest_if_a_better_one_is_not_compared() {
        let mut view = View::new(&fixture::record());
        let is_fastest = |text: &&String| text.contains("is the fastest in");
        let said = texts(&view);
        let before = said.iter().filter(is_fastest).count();
        assert!(before > 0, "{said:?}");
        for point in view.suites.iter_mut().flat_map(|suite| &mut suite.points) {
            for test in &mut point.tests {
                let Some(family) = &test.family else { continue };
                let (&[best], Some(&worst)) =
                    (&family.ranking.top[..], family.ranking.order.last())
                else {
                    continue;
                };
                let median = test.entries[family.members[best]].summary.as_ref().unwrap().median;
                let entry = &mut test.entries[family.members[worst]];
                entry.ranked = false;
                entry.summary.as_mut().unwrap().median = match test.metric.spec().better {
                    Better::Lower => median / 2.0,
                    Better::Higher | Better::Neither => median * 2.0,
                };
            }
        }
        let said = texts(&view);
        assert_eq!(said.iter().filter(is_fastest).count(), 0, "{said:?}");
        assert!(said.iter().any(|text| text.contains(" slower than ")), "{said:?}");
    }
}
