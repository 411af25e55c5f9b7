//! Levels of an axis from best to worst, and claims about them.

use model::metric::Better;

use super::{
    End, Fact, Who,
    judge::{Answer, Level, Untestable, listed, named, spread},
};

/// Levels, best first.
pub(super) struct Ranks {
    levels: Vec<Level>,
    better: Better,
}

impl Ranks {
    pub(super) fn of(mut levels: Vec<Level>, better: Better) -> Self {
        levels.sort_by(|one, other| match better {
            Better::Higher | Better::Neither => other.estimate.value.total_cmp(&one.estimate.value),
            Better::Lower => one.estimate.value.total_cmp(&other.estimate.value),
        });
        Self { levels, better }
    }

    /// Factor by which the first level is better than the second.
    fn ratio(&self, one: &Level, other: &Level) -> f64 {
        match self.better {
            Better::Higher | Better::Neither => one.estimate.value / other.estimate.value,
            Better::Lower => other.estimate.value / one.estimate.value,
        }
    }

    fn all(&self, names: &[String]) -> Result<Vec<Level>, Untestable> {
        names.iter().map(|name| named(&self.levels, name).cloned()).collect()
    }

    fn fact(&self) -> Fact {
        Fact::Ranked(listed(&self.levels))
    }

    /// Checks that each upper level is better than each lower level by at least the factor
    /// `margin`. All pairs are deciding if the claim holds, else the pairs that contradict it.
    fn apart(&self, upper: &[Level], lower: &[Level], margin: f64) -> Answer {
        let pairs = upper.iter().flat_map(|one| lower.iter().map(move |other| (one, other)));
        let leads = |(one, other): &(&Level, &Level)| {
            let ratio = self.ratio(one, other);
            ratio > 1.0 && ratio >= margin
        };
        let holds = pairs.clone().all(|pair| leads(&pair));
        let deciding = pairs.filter(|pair| leads(pair) == holds);
        let deciding = deciding.map(|(one, other)| (one.clone(), other.clone())).collect();
        Answer { holds, fact: self.fact(), deciding }
    }

    pub(super) fn extreme(
        &self,
        names: &[String],
        end: End,
        margin: f64,
    ) -> Result<Answer, Untestable> {
        let group = self.all(names)?;
        let rest = self.levels.iter().filter(|level| !names.contains(&level.name));
        let rest: Vec<Level> = rest.cloned().collect();
        if rest.is_empty() {
            return Err("no other levels to compare with".into());
        }
        Ok(match end {
            End::Best => self.apart(&group, &rest, margin),
            End::Worst => self.apart(&rest, &group, margin),
        })
    }

    pub(super) fn above(&self, upper: &[String], lower: &[String]) -> Result<Answer, Untestable> {
        Ok(self.apart(&self.all(upper)?, &self.all(lower)?, 1.0))
    }

    pub(super) fn order(&self, names: &[String], from: Option<End>) -> Result<Answer, Untestable> {
        let mut levels = self.all(names)?;
        let rest = self.levels.iter().filter(|level| !names.contains(&level.name));
        let rest: Vec<Level> = rest.cloned().collect();
        let mut answers = Vec::new();
        match from {
            Some(End::Best) => answers.push(self.apart(&levels, &rest, 1.0)),
            Some(End::Worst) => answers.push(self.apart(&rest, &levels, 1.0)),
            None => {}
        }
        if from == Some(End::Worst) {
            levels.reverse();
        }
        answers.extend(levels.windows(2).map(|pair| self.apart(&pair[..1], &pair[1..], 1.0)));
        let holds = answers.iter().all(|answer| answer.holds);
        let deciding = answers.into_iter().filter(|answer| answer.holds == holds);
        let deciding = deciding.flat_map(|answer| answer.deciding).collect();
        Ok(Answer { holds, fact: self.fact(), deciding })
    }

    fn who(&self, who: &Who) -> Result<&Level, Untestable> {
        let found = match who {
            Who::Best => self.levels.first(),
            Who::Worst => self.levels.last(),
            Who::Level(name) => return named(&self.levels, name),
        };
        found.ok_or_else(|| "no levels".into())
    }

    pub(super) fn factor(
        &self,
        from: &Who,
        to: &Who,
        range: (f64, f64),
    ) -> Result<Answer, Untestable> {
        let (from, to) = (self.who(from)?, self.who(to)?);
        let ratio = self.ratio(from, to);
        let fact = Fact::Factor(from.name.clone(), to.name.clone(), ratio);
        let holds = (range.0..=range.1).contains(&ratio);
        Ok(Answer { holds, fact, deciding: Vec::new() })
    }

    pub(super) fn difference(
        &self,
        from: &str,
        to: &str,
        range: (f64, f64),
    ) -> Result<Answer, Untestable> {
        let (from, to) = (named(&self.levels, from)?, named(&self.levels, to)?);
        let lead = match self.better {
            Better::Higher | Better::Neither => from.estimate.value - to.estimate.value,
            Better::Lower => to.estimate.value - from.estimate.value,
        };
        let fact = self.fact();
        Ok(Answer { holds: (range.0..=range.1).contains(&lead), fact, deciding: Vec::new() })
    }

    pub(super) fn equal(&self, names: &[String], within: f64) -> Result<Answer, Untestable> {
        let levels = if names.is_empty() { self.levels.clone() } else { self.all(names)? };
        let (spread, ends) = spread(&levels)?;
        let holds = spread <= within;
        let deciding = if holds { Vec::new() } else { vec![ends] };
        Ok(Answer { holds, fact: Fact::Ranked(listed(&levels)), deciding })
    }
}
